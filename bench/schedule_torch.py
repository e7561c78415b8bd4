"""usage: schedule_torch.py PROBLEM PASS: CPU seconds that PyTorch's own pass takes on the problem.

Needs the environment of tests/torch/run.sh (build/torch-venv).
"""
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "torch"))
import schedule_stubs as stubs  # noqa: E402
from torch._inductor.virtualized import V  # noqa: E402

problem = json.load(open(sys.argv[1]))
maker = {out["name"]: op["name"] for op in problem["snodes"] for out in op["outputs"]}
above = {}
for op in problem["snodes"]:  # the file leaves ancestors out
    # Inputs that are never freed are no dependences of scheduler nodes.
    op["deps"] = [dep for dep in op["deps"] if dep["name"] in maker]
    mine = set()
    for dep in op["deps"]:
        mine.add(maker[dep["name"]])
        mine |= above[maker[dep["name"]]]
    above[op["name"]] = mine
    op["ancestors"] = mine
made = stubs.Stubs(problem)
with V.set_graph_handler(made):
    start = time.process_time()
    stubs.run_pass(sys.argv[2], made.nodes)
    print(time.process_time() - start)

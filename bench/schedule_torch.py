"""usage: schedule_torch.py OPS PASS FILE: writes a random problem of that many ops to FILE, and
prints the CPU seconds that PyTorch's own pass takes on it.

Needs the environment of tests/torch/run.sh (build/torch-venv).
"""
import json
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "torch"))
import schedule_stubs as stubs  # noqa: E402
from torch._inductor.virtualized import V  # noqa: E402

problem = stubs.random_problem(random.Random(1), int(sys.argv[1]), share=0.06)
Path(sys.argv[3]).write_text(json.dumps(
    {**problem, "snodes": [{k: v for k, v in op.items() if k != "ancestors"}
                           for op in problem["snodes"]]}))
made = stubs.Stubs(problem)
with V.set_graph_handler(made):
    start = time.process_time()
    stubs.run_pass(sys.argv[2], made.nodes)
    print(time.process_time() - start)

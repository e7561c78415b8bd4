"""Record what torch 2.15.0 makes of random problems with simple_overlap, which 2.13 does not have.

    pip download --no-deps -d wheel torch==2.15.0
    unzip wheel/torch-2.15.0*.whl torch/_inductor/comms.py -d new
    build/torch-venv/bin/python tests/torch/record_simple_overlap.py new/torch/_inductor/comms.py

The new source file stays where it was unpacked; what it imports is the installed 2.13, in which those parts are
the same. The answers go to tests/schedule/simple.jsonl, which tests/unit/test_schedule.c compares Tuck with; with
a number after the file name, so many fresh problems are compared instead and nothing is written.
"""
import importlib.util
import json
import random
import sys
import time

from torch._inductor.virtualized import V

import schedule_odd as odd
import schedule_stubs as stubs
from harness import ROOT
from test_schedule import ask

KINDS = ("compute", "gemm", "collective", "wait")


def load(path):
    spec = importlib.util.spec_from_file_location("torch._inductor.comms_of_2_15", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


def answer(comms, problem):
    graph = stubs.Stubs(problem)
    with V.set_graph_handler(graph):
        nodes = comms.simple_overlap(graph.nodes)
        return [node.get_name() for node in nodes], graph.peak(nodes)


def row(name, problem, order, peak):
    """A line of tests/schedule/README.md."""
    ops, inputs = problem["snodes"], problem["freeable_inputs"]
    number = {op["name"]: i for i, op in enumerate(ops)}
    names = [x["name"] for x in inputs] + [out["name"] for op in ops for out in op["outputs"]]
    buffers = {name: i for i, name in enumerate(names)}

    def dep(x):
        flags = x["weak"] + 2 * x["fake"]
        return [buffers[x["name"]], flags] if flags else buffers[x["name"]]

    def output(x):
        succ, after = ([number[op] for op in x[key]] for key in ("succ", "succ_ordering"))
        return [x["size_alloc"], x["size_free"], succ] + ([after] if after != succ else [])

    listed = [number[op] for op in order]
    return {"name": name, "set": {}, "in": [[x["size_free"], [number[op] for op in x["succ"]]]
                                           for x in inputs],
            "ops": [[KINDS.index(op["kind"]), int(op["is_async"]), 0, op["runtime"],
                     [dep(x) for x in op["deps"]], [output(x) for x in op["outputs"]]] for op in ops],
            "out": [buffers[x] for x in problem["graph_outputs"] if x in buffers],
            "runs": [{"p": "simple_overlap", "o": [] if listed == sorted(listed) else listed,
                      "k": peak, "s": None}]}


def problems(seed):
    rng = random.Random(seed)
    while True:
        yield stubs.random_problem(rng)
        yield odd.odd_problem(rng)


def compare(comms, count):
    seed = int(time.time())
    cases = [p for p, _ in zip(problems(seed), range(count))]
    answers = ask([{"problem": p, "passes": ["simple_overlap"], "set": {}} for p in cases])
    wanted = [answer(comms, p) for p in cases]
    differ = sum((got["order"], got["peak"]) != want
                 for got, want in zip(answers, wanted, strict=True))
    print(f"seed {seed}: {count} problems, {differ} answers differ")
    return differ > 0


def record(comms):
    lines = []
    for i, problem in enumerate(problems(1)):
        order, peak = answer(comms, problem)
        if len(order) <= 25 and order != [op["name"] for op in problem["snodes"]]:
            lines.append(json.dumps(row(f"simple-{i}", problem, order, peak), separators=(",", ":")))
        if len(lines) == 300:
            break
    (ROOT / "tests/schedule/simple.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(compare(load(sys.argv[1]), int(sys.argv[2])))
    record(load(sys.argv[1]))

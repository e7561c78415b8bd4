"""One rank of a GPT of 4 layers, width 256, 512 tokens, f32, forward and backward: `tuck run` beside
PyTorch eager and compiled, one thread each, in turns.

    python bench/gpt.py [--rounds N] [--tuck build/release/tuck]

Prints the best and the median step of each, and fails if Tuck's best is more than 1.0 times eager's
or 1.1 times compiled's. The graph that Tuck runs is the step as PyTorch traces it (bench/step.py).
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import tuck_run

HERE = Path(__file__).resolve().parent
STEPS, WARMUP = 5, 2


def torch_step(compiled):
    import torch

    import steps

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, inputs = steps.make("gpt")
    run = torch.compile(model) if compiled else model

    def step():
        for p in model.parameters():
            p.grad = None
        run(*inputs).backward()

    return step


def torch_times(step):
    times = []
    for i in range(WARMUP + STEPS):
        begin = time.perf_counter()
        step()
        if i >= WARMUP:
            times.append(1e3 * (time.perf_counter() - begin))
    return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tuck", default=str(HERE.parent / "build/release/tuck"))
    args = parser.parse_args()
    eager, compiled = torch_step(False), torch_step(True)
    compiled()
    with tempfile.TemporaryDirectory() as folder:
        graph = f"{folder}/gpt.txt"
        with open(graph, "w") as f:
            subprocess.run([sys.executable, "-W", "ignore", HERE / "step.py", "gpt", "--ranks", "1"],
                           check=True, stdout=f)
        runs = {
            "torch, eager": lambda: torch_times(eager),
            "torch, compiled": lambda: torch_times(compiled),
            "tuck run": lambda: tuck_run.times(args.tuck, graph, 1, STEPS, WARMUP),
        }
        if tuck_run.bound_row():
            runs[tuck_run.bound_row()] = lambda: tuck_run.times(args.tuck, graph, 1, STEPS, WARMUP, bound=True)
        found = {name: [] for name in runs}
        for _ in range(args.rounds):
            for name, run in runs.items():
                found[name] += run()
    best = {name: min(times) for name, times in found.items()}
    for name, times in found.items():
        print(f"gpt          {name:22} best {best[name]:9.3f} ms, "
              f"median {statistics.median(times):9.3f} ms", flush=True)
    ok = True
    for name, most in (("torch, eager", 1.0), ("torch, compiled", 1.1)):
        ratio = best["tuck run"] / best[name]
        good = ratio <= most
        ok &= good
        print(f"gpt          {ratio:.2f} of {name}, at most {most}: {'ok' if good else 'MISSED'}")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())

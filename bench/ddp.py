"""A DDP step on 2 ranks: `tuck run` beside PyTorch's DDP over gloo, one thread each, interleaved.

    python bench/ddp.py [--rounds N] [--tuck build/release/tuck] [--model mlp|transformer|transformer256]

Prints the best and the median step of each, and fails if Tuck's median is more than 0.7 times that of
PyTorch, eager or compiled: what a job waits for is its usual step, not its luckiest one. The graph that Tuck runs is the step as PyTorch traces it
(bench/step.py), as it came and after `tuck optimize` with costs measured here. The transformer with
256 tokens a rank, not 128, is shown and not judged: its matrix products alone take two thirds of
PyTorch's step where these run at AVX2's peak. If the environment binds OpenBLAS to another processor's kernels, a row shows that, too; it is not judged.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import tuck_run

HERE = Path(__file__).resolve().parent
WORLD, STEPS, WARMUP, MOST = 2, 10, 3, 0.7
MODELS, SHOWN = ("mlp", "transformer", "transformer256"), ("transformer256",)


def worker(rank, model_name, compiled, store, out):
    """One rank of PyTorch's DDP."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    import steps

    os.sched_setaffinity(0, {rank % os.cpu_count()})
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=WORLD)
    torch.manual_seed(0)
    model, inputs = steps.make(model_name)
    ddp = DistributedDataParallel(model, gradient_as_bucket_view=True)
    run = torch.compile(ddp) if compiled else ddp
    optimizer = torch.optim.SGD(ddp.parameters(), lr=steps.RATE)
    times = []
    for i in range(WARMUP + STEPS):
        dist.barrier()
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=False)
        run(*inputs).backward()
        optimizer.step()
        if i >= WARMUP:
            times.append(1e3 * (time.perf_counter() - begin))
    if rank == 0:
        Path(out).write_text(json.dumps(times))
    dist.barrier()
    os._exit(0)


def torch_times(model, compiled):
    with tempfile.TemporaryDirectory() as folder:
        store, out = f"{folder}/store", f"{folder}/times"
        env = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        args = [sys.executable, "-W", "ignore", __file__, "--worker"]
        ranks = [
            subprocess.Popen([*args, str(r), model, str(int(compiled)), store, out], env=env)
            for r in range(WORLD)
        ]
        for rank in ranks:
            rank.wait(timeout=600)
        return json.loads(Path(out).read_text())


def measure(model, tuck, rounds, folder):
    """Times of each, in turns."""
    graph, better = f"{folder}/{model}.txt", f"{folder}/{model}_better.txt"
    with open(graph, "w") as f:
        subprocess.run([sys.executable, "-W", "ignore", HERE / "step.py", model], check=True,
                       stdout=f)
    here = f"{folder}/here.json"
    subprocess.run([tuck, "calibrate", "-n", str(WORLD), "-o", here], check=True,
                   capture_output=True, env=tuck_run.environment())
    subprocess.run([tuck, "optimize", graph, "--group", f"0={WORLD}", "--cluster", here,
                    "-o", better], check=True, capture_output=True)
    runs = {
        "torch DDP, eager": lambda: torch_times(model, False),
        "torch DDP, compiled": lambda: torch_times(model, True),
        "tuck run": lambda: tuck_run.times(tuck, graph, WORLD, STEPS, WARMUP),
        "tuck run, optimized": lambda: tuck_run.times(tuck, better, WORLD, STEPS, WARMUP),
    }
    if tuck_run.bound_row():
        runs[tuck_run.bound_row()] = lambda: tuck_run.times(tuck, graph, WORLD, STEPS, WARMUP, bound=True)
    found = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            found[name] += run()
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tuck", default=str(HERE.parent / "build/release/tuck"))
    parser.add_argument("--model", choices=MODELS)
    args = parser.parse_args()
    missed = False
    for model in [args.model] if args.model else MODELS:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(model, args.tuck, args.rounds, folder)
        for name, times in found.items():
            print(f"{model:14} {name:22} best {min(times):9.3f} ms, "
                  f"median {statistics.median(times):9.3f} ms")
        for name in ("torch DDP, eager", "torch DDP, compiled"):
            ratio, best = (
                min(f(found["tuck run"]), f(found["tuck run, optimized"])) / f(found[name])
                for f in (statistics.median, min)
            )
            judged = model not in SHOWN
            missed |= judged and ratio > MOST
            word = "not judged" if not judged else f"at most {MOST}: {'MISSED' if ratio > MOST else 'ok'}"
            print(f"{model:14} {ratio:.2f} of {name}, {word}; best steps {best:.2f}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(int(sys.argv[2]), sys.argv[3], sys.argv[4] == "1", sys.argv[5], sys.argv[6])
    else:
        sys.exit(main())

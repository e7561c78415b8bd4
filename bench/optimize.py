"""usage: optimize.py TUCK FOLDER [TORCH_SECONDS]: `tuck optimize` on training steps (training.py), in CPU seconds of all
threads, the best of several runs. The pass overlap_scheduling(compat=torch) alone, and how its time grows; the whole
command, from reading to printing, with PyTorch's own scheduler among what it runs; how that grows to 1,000,000 nodes.
TORCH_SECONDS is what PyTorch's scheduler takes for the step of 10,000 nodes in the same run (overlap_torch.py). The exit
status is 1 if a requirement is missed.
"""
import json
import math
import resource
import subprocess
import sys
from pathlib import Path

from training import write

ALONE = (2000, 4000, 8000, 16000, 32000)
WHOLE = (10_000, 100_000, 1_000_000)
COMPAT = "overlap_scheduling(compat=torch)"
missed = False


def path_of(folder, nodes):
    path = folder / f"training{nodes}.txt"
    if not path.exists():
        write(nodes, path)
    return path


def children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(tuck, path, *options):
    """CPU seconds of the whole command, and what it printed."""
    start = children()
    done = subprocess.run([tuck, "optimize", path, "-o", "/dev/null", *options], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"optimize.py: tuck optimize {path} {' '.join(options)}: {done.stderr}")
    return children() - start, done.stdout


def exponent(sizes, times):
    """Least squares, in logarithms."""
    x, y = [math.log(n) for n in sizes], [math.log(t) for t in times]
    mx, my = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mx) * (b - my) for a, b in zip(x, y)) / sum((a - mx) ** 2 for a in x)


def line(text, fine):
    global missed
    missed |= not fine
    print(f"  {text}{'' if fine else '   MISSED'}")


def pass_ms(tuck, path, runs):
    return min(json.loads(run(tuck, path, "-p", COMPAT, "--json")[1])["passes"][0]["ms"] for _ in range(runs))


def alone(tuck, folder, torch):
    took = [pass_ms(tuck, path_of(folder, n), 7) for n in ALONE]
    print(f"{COMPAT}, the pass alone")
    for n, ms in zip(ALONE, took):
        print(f"  {n:9,} nodes {ms:9.2f} ms")
    grows = exponent(ALONE, took)
    line(f"exponent {grows:.2f}   at most: 1.2", grows <= 1.2)
    if torch:
        ms = pass_ms(tuck, path_of(folder, 10_000), 7)
        times = 1e3 * torch / ms
        line(f"   10,000 nodes {ms:9.2f} ms   torch {torch:.2f} s   {times:.0f} times   at least: 100", times >= 100)


def whole(tuck, folder, torch):
    path = path_of(folder, 10_000)
    print("tuck optimize, from reading to printing, 10,000 nodes")
    for name, options, runs, most in (("effort 0", ["--effort", "0"], 9, 0.3), ("default", [], 3, 3)):
        took = min(run(tuck, path, *options)[0] for _ in range(runs))
        beside = f"   torch's scheduler {torch:.2f} s   {torch / took:.1f} times" if torch else ""
        line(f"{name:9} {took:7.3f} s{beside}   at most: {most} s", took <= most)


def large(tuck, folder):
    print("tuck optimize --effort 0")
    took = [min(run(tuck, path_of(folder, n), "--effort", "0")[0] for _ in range(runs)) for n, runs in zip(WHOLE, (5, 2, 1))]
    for n, s in zip(WHOLE, took):
        print(f"  {n:9,} nodes {s:9.3f} s   {1e9 * s / n:8.0f} ns a node")
    grows = exponent(WHOLE, took)
    line(f"exponent {grows:.2f}   at most: 1.15", grows <= 1.15)


tuck, folder = sys.argv[1], Path(sys.argv[2])
torch = float(sys.argv[3]) if len(sys.argv) > 3 else 0
alone(tuck, folder, torch)
whole(tuck, folder, torch)
large(tuck, folder)
sys.exit(missed)

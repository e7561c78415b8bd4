"""`tuck run` for the benchmarks that compare it with PyTorch."""

import json
import os
import subprocess

BOUND = "OPENBLAS_CORETYPE"  # binds OpenBLAS to the kernels of a processor that is not this one


def environment(bound=False):
    """One thread a rank. PyTorch's libraries choose their kernels by the processor, so OpenBLAS may, too,
    unless `bound`."""
    kept = {k: v for k, v in os.environ.items() if bound or k != BOUND}
    return {**kept, "OPENBLAS_NUM_THREADS": "1"}


def times(tuck, graph, ranks, steps, warmup, bound=False):
    """Milliseconds of each step."""
    text = subprocess.run(
        [tuck, "run", graph, "-n", str(ranks), "--steps", str(steps), "--warmup", str(warmup), "-j"],
        check=True, capture_output=True, text=True, env=environment(bound),
    ).stdout
    return [ns / 1e6 for ns in json.loads(text)["steps_ns"]]


def bound_row():
    """The name of the row with OpenBLAS as the environment binds it; None: it does not."""
    return f"tuck run, {os.environ[BOUND]}" if os.environ.get(BOUND) else None

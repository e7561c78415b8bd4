"""Compiled jobs that are recorded while they run, for test_measured.py.

    TORCH_TRACE=folder python -m torch.distributed.run --nproc-per-node 2 measured_worker.py out ddp:1 sharded:0
"""

import os
import sys

import torch
import torch.distributed as dist
from job_worker import shard
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WIDTHS = (512, 640, 512, 640, 512)
SOAK = bool(os.environ.get("TUCK_SOAK"))
# Much work beside the communication, and often: two ranks of a small machine disturb each other.
ROWS, ROUNDS, STEPS = (1536, 3, 12) if SOAK else (256, 1, 12)
WARM = 3


class Perceptron(nn.Module):
    """Layers of two sizes: gradients that are alike, and some that are not."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(WIDTHS, WIDTHS[1:]))

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


def ddp(bucket_mb):
    torch._dynamo.config.optimize_ddp = "python_reducer"
    torch._dynamo.config.compiled_autograd = True
    model = DistributedDataParallel(Perceptron(), bucket_cap_mb=bucket_mb)

    def step(x, y):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss.detach()

    # The size of buckets is known while it is compiled only: no two jobs may share compiled code.
    step.__code__ = step.__code__.replace(co_name=f"step_{bucket_mb}")
    return torch.compile(step), model


def sharded(bucket_mb):
    del bucket_mb
    model = torch.compile(shard(Perceptron()), dynamic=False)

    def step(x, y):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss.detach()

    return step, model


def steps(n, step, model, x, y):
    for _ in range(n):
        model.zero_grad()
        step(x, y)
        yield


def record(job, file):
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        record_shapes=True,
        schedule=torch.profiler.schedule(wait=0, warmup=2, active=STEPS, repeat=1),
        on_trace_ready=lambda p: p.export_chrome_trace(file),
    ) as profiler:
        for _ in steps(STEPS + 2, *job):
            profiler.step()


def main():
    """Jobs are words such as ddp:1, with the size of buckets in MB. Those of a kind take turns, a trace each time, so that what the machine does
    meanwhile is the same for all of them."""
    dist.init_process_group("gloo")
    out, rank, words = sys.argv[1], dist.get_rank(), sys.argv[2:]
    for kind, make in {"ddp": ddp, "sharded": sharded}.items():
        torch.manual_seed(0)
        torch._dynamo.reset()
        data = torch.randn(ROWS, WIDTHS[0]), torch.randn(ROWS, WIDTHS[-1])
        jobs = {w: (*make(int(w.split(":")[1])), *data) for w in words if w.split(":")[0] == kind}
        for job in jobs.values():
            list(steps(WARM, *job))
        for turn in range(ROUNDS):
            for word, job in jobs.items():
                dist.barrier()
                record(job, f"{out}/{words.index(word)}.{turn}.rank{rank}.json")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

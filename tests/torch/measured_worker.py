"""Compiled jobs that are recorded while they run, for test_measured.py.

    TORCH_TRACE=folder python -m torch.distributed.run --nproc-per-node 2 measured_worker.py out ddp:1 sharded:0
"""

import sys

import torch
import torch.distributed as dist
from job_worker import shard
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WIDTHS = (512, 640, 512, 640, 512)
ROWS = 256
WARM, STEPS = 3, 40


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

    @torch.compile
    def step(x, y):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss.detach()

    return step, model


def sharded(bucket_mb):
    del bucket_mb
    model = torch.compile(shard(Perceptron()), dynamic=False)

    def step(x, y):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss.detach()

    return step, model


def record(job, bucket_mb, file):
    torch.manual_seed(0)
    torch._dynamo.reset()
    step, model = {"ddp": ddp, "sharded": sharded}[job](bucket_mb)
    x, y = torch.randn(ROWS, WIDTHS[0]), torch.randn(ROWS, WIDTHS[-1])
    for _ in range(WARM):
        model.zero_grad()
        step(x, y)
    dist.barrier()
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        record_shapes=True,
        schedule=torch.profiler.schedule(wait=0, warmup=2, active=STEPS, repeat=1),
        on_trace_ready=lambda p: p.export_chrome_trace(file),
    ) as profiler:
        for _ in range(STEPS + 2):
            model.zero_grad()
            step(x, y)
            profiler.step()


def main():
    """Jobs are words such as ddp:1, with the size of buckets in MB."""
    dist.init_process_group("gloo")
    for k, word in enumerate(sys.argv[2:]):
        job, mb = word.split(":")
        record(job, int(mb), f"{sys.argv[1]}/{k}.rank{dist.get_rank()}.json")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

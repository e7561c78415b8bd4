"""Compiled jobs that are recorded while they run, for test_measured.py.

    TORCH_TRACE=folder python -m torch.distributed.run --nproc-per-node 2 measured_worker.py out ddp:3 ddp:6 sharded:0

--widths gives other layers, --rows another batch, --rounds more recordings.
"""

import argparse

import torch
import torch._inductor.config
import torch.distributed as dist
from job_worker import shard
from torch import nn
from torch.nn.parallel import DistributedDataParallel

# Gradients of 1.6 MB a layer, and steps of 100 ms and more, so that what else a small machine does matters little.
WIDTHS, ROWS = (640,) * 9, 512
ROUNDS, STEPS = 3, 12
WARM = 3
BARRIERS = 8


class Perceptron(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


def ddp(widths, bucket_mb):
    torch._dynamo.config.optimize_ddp = "python_reducer"
    torch._dynamo.config.compiled_autograd = True
    model = DistributedDataParallel(Perceptron(widths), bucket_cap_mb=bucket_mb)

    def step(x, y):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss.detach()

    # No two jobs may share compiled code: the size of buckets is a setting while it is compiled.
    step.__code__ = step.__code__.replace(co_name=f"step_{bucket_mb}")
    return torch.compile(step), model


def sharded(widths, bucket_mb):
    torch._inductor.config.bucket_all_gathers_fx = "all" if bucket_mb else "none"
    torch._inductor.config.bucket_reduce_scatters_fx = "all" if bucket_mb else "none"
    torch._inductor.config.bucket_all_gathers_fx_bucket_size_determinator = lambda _: bucket_mb
    torch._inductor.config.bucket_reduce_scatters_fx_bucket_size_determinator = lambda _: bucket_mb
    torch._dynamo.config.compiled_autograd = False
    model = shard(Perceptron(widths))

    def forward(x):
        return model(x)

    forward.__code__ = forward.__code__.replace(co_name=f"forward_{bucket_mb}")
    compiled = torch.compile(forward, dynamic=False)

    def step(x, y):
        loss = nn.functional.mse_loss(compiled(x), y)
        loss.backward()
        return loss.detach()

    return step, model


def reserve(blocks=16):
    """384 MB that malloc keeps, with pages. While the profiler records, the largest tensors would else be thousands of new pages in nearly every
    step, which takes longer than to fill them."""
    kept = [torch.ones(6 << 20) for _ in range(blocks)]
    del kept


def one(step, model, x, y):
    model.zero_grad()
    step(x, y)


def probe(x):
    """Barriers, which tell the latency of a message. Each comes after a product, as messages of a job do: of several in a row, all but the first
    are faster, since no rank computes any more."""
    for _ in range(BARRIERS):
        torch.mm(x, x.t())
        dist.barrier()


def record(jobs, file):
    """One step of each job, and again: what the machine does meanwhile is the same for all of them."""
    reserve()
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        record_shapes=True,
        schedule=torch.profiler.schedule(wait=0, warmup=2 * len(jobs), active=STEPS * len(jobs), repeat=1),
        on_trace_ready=lambda p: p.export_chrome_trace(file),
    ) as profiler:
        for _ in range(STEPS + 2):
            for job in jobs:
                probe(job[2])
                one(*job)
                profiler.step()


def arguments():
    said = argparse.ArgumentParser()
    said.add_argument("out")
    said.add_argument("jobs", nargs="+")
    said.add_argument("--widths", type=lambda s: tuple(map(int, s.split(","))), default=WIDTHS)
    said.add_argument("--rows", type=int, default=ROWS)
    said.add_argument("--rounds", type=int, default=ROUNDS)
    return said.parse_args()


def main():
    said = arguments()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for kind, make in {"ddp": ddp, "sharded": sharded}.items():
        torch.manual_seed(0)
        torch._dynamo.reset()
        data = torch.randn(said.rows, said.widths[0]), torch.randn(said.rows, said.widths[-1])
        jobs = []
        for word in (w for w in said.jobs if w.split(":")[0] == kind):
            jobs.append((*make(said.widths, int(word.split(":")[1])), *data))
            for _ in range(WARM):  # compiled before the next one has another size of buckets
                one(*jobs[-1])
        for turn in range(said.rounds if jobs else 0):
            record(jobs, f"{said.out}/{kind}.{turn}.rank{rank}.json")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Tensor parallelism: each layer is split over the ranks, activations are summed.

    torchrun --nproc-per-node 2 tensor_parallel.py
    TUCK=0 torchrun --nproc-per-node 2 tensor_parallel.py
"""

import common
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

import tuck.torch


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(x)))


def main():
    arguments = common.arguments()
    dist.init_process_group("gloo")
    tuck.torch.install(**common.tuck_options(arguments))

    torch.manual_seed(0)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = nn.Sequential(*[Block(32) for _ in range(3)])
    plan = {}
    for i in range(len(model)):
        plan[f"{i}.up"], plan[f"{i}.down"] = ColwiseParallel(), RowwiseParallel()
    parallelize_module(model, mesh, plan)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    compiled = torch.compile(model)

    losses = []
    with common.capturing(arguments):
        for x, y in common.batches(arguments.steps, 32, same=True):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(compiled(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    common.report(losses, model, arguments)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

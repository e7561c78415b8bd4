"""Sharded parameters (ZeRO-3) that torch.compile traces, so that Tuck can bucket and prefetch them.

    torchrun --nproc-per-node 2 sharded.py
    TUCK=0 torchrun --nproc-per-node 2 sharded.py

Each parameter is a DTensor, split over the ranks. A parametrization gathers it where it is used;
its backward scatters the gradient. All of that is in the graph, unlike the hooks of fully_shard().
"""

import common
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
from torch.nn.utils import parametrize

import tuck.torch


class Gathered(nn.Module):
    """The whole parameter from its shards; gradients are averaged and split again."""

    def forward(self, shard):
        whole = shard.redistribute(placements=[Replicate()])
        return whole.to_local(grad_placements=[Partial("avg")])


def shard(model, mesh):
    for module in list(model.modules()):
        for name, parameter in list(module.named_parameters(recurse=False)):
            split = distribute_tensor(parameter.detach(), mesh, [Shard(0)])
            module.register_parameter(name, nn.Parameter(split))
            parametrize.register_parametrization(module, name, Gathered(), unsafe=True)
    return model


def main():
    arguments = common.arguments()
    dist.init_process_group("gloo")
    tuck.torch.install(**common.tuck_options(arguments))

    torch.manual_seed(0)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = shard(common.Perceptron(width=64, layers=4), mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    compiled = torch.compile(model, fullgraph=True)

    losses = []
    with common.capturing(arguments):
        for x, y in common.batches(arguments.steps, 64):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(compiled(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    common.report(losses, model, arguments)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""DistributedDataParallel with its communication in the graph, where Tuck can schedule it.

    torchrun --nproc-per-node 2 ddp.py            # with Tuck
    TUCK=0 torchrun --nproc-per-node 2 ddp.py     # without

The gradients' all-reduces are part of the graph if the Python reducer is used and the compiled
function contains the backward. The rest is an ordinary training script.
"""

import common
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import tuck.torch

torch._dynamo.config.optimize_ddp = "python_reducer"
torch._dynamo.config.compiled_autograd = True


def main():
    arguments = common.arguments()
    dist.init_process_group("gloo")
    tuck.torch.install(**common.tuck_options(arguments))

    torch.manual_seed(0)
    model = DistributedDataParallel(common.Perceptron(width=64, layers=6))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    @torch.compile
    def step(x, y):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss.detach()

    losses = []
    with common.capturing(arguments):
        for x, y in common.batches(arguments.steps, 64):
            optimizer.zero_grad()
            losses.append(step(x, y))
            optimizer.step()
    common.report(losses, model, arguments)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

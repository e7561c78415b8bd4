"""What the examples share: a model, data, arguments, and a report that can be compared."""

import argparse
import contextlib

import torch
import torch.distributed as dist
from torch import nn

import tuck.torch


class Perceptron(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--passes", default="auto", help="auto, or names of passes")
    parser.add_argument("--verify", action="store_true", help="run the first step both ways")
    parser.add_argument("--capture", metavar="DIR", help="write the compiled graphs to a folder")
    parser.add_argument("--out", help="write losses and parameters to OUT.RANK.pt")
    return parser.parse_args()


def capturing(given):
    return tuck.torch.capture(given.capture) if given.capture else contextlib.nullcontext()


def tuck_options(given):
    return {"passes": given.passes, "verify": given.verify}


def batches(steps, width, same=False):
    """Random data: different on each rank, unless all ranks work on the same batch."""
    random = torch.Generator().manual_seed(100 + (0 if same else dist.get_rank()))
    for _ in range(steps):
        yield tuple(torch.randn(16, width, generator=random) for _ in range(2))


def report(losses, model, given):
    values = [loss.item() for loss in losses]
    local = [getattr(p, "_local_tensor", p).detach().clone() for p in model.parameters()]
    if given.out:
        torch.save({"losses": values, "parameters": local}, f"{given.out}.{dist.get_rank()}.pt")
    if dist.get_rank() == 0:
        print(f"loss {values[0]:.6f} at first, {values[-1]:.6f} after {len(values)} steps")

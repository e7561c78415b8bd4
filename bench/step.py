"""Prints a DDP training step as PyTorch traces it, for `tuck run`: forward, backward, an all-reduce
of every gradient, SGD. With one rank: forward, backward and the gradients, no optimizer.

    python bench/step.py mlp|transformer|gpt [--width W] [--layers L] [--batch B] [--ranks N] > step.txt
"""

import argparse

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.distributed.fake_pg import FakeStore

import steps


def trace(model, inputs, world):
    """One step as a function of parameters and data."""
    names = [n for n, _ in model.named_parameters()]
    group = dist.group.WORLD

    def step(*args):
        params, data = args[: len(names)], args[len(names) :]
        leaves = [p.detach().requires_grad_() for p in params]
        loss = torch.func.functional_call(model, dict(zip(names, leaves)), data)
        grads = torch.autograd.grad(loss, leaves)
        if world == 1:
            return (loss.detach(), *grads)
        sums = [funcol.all_reduce(g, "sum", group) for g in grads]
        for param, s in zip(params, sums):
            param.add_(funcol.wait_tensor(s), alpha=-steps.RATE / world)
        return (loss.detach(),)

    params = [p.detach() for p in model.parameters()]
    return make_fx(step, tracing_mode="fake", decomposition_table=decompositions())(
        *params, *inputs
    )


def decompositions():
    aten = torch.ops.aten
    return torch._decomp.get_decompositions(
        [
            aten.gelu, aten.gelu_backward, aten.native_layer_norm, aten.native_layer_norm_backward,
            aten.mse_loss, aten.mse_loss_backward, aten.threshold_backward, aten._softmax,
            aten._softmax_backward_data, aten.embedding_dense_backward, aten.detach,
        ]
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=sorted(steps.MODELS))
    parser.add_argument("--width", type=int, default=None)
    parser.add_argument("--layers", type=int, default=None)
    parser.add_argument("--batch", type=int, default=None)
    parser.add_argument("--ranks", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(0)
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=args.ranks)
    model, inputs = steps.make(args.model, args.width, args.layers, args.batch)
    gm = trace(model, inputs, args.ranks)
    type(gm).__name__ = "step"
    gm.graph.eliminate_dead_code()
    gm.recompile()
    print(gm.print_readable(print_output=False, include_stride=True, include_device=True))


if __name__ == "__main__":
    main()

"""Small jobs that leave folders behind, for test_job.py and tests/jobs.

    TORCH_TRACE=folder python -m torch.distributed.run --nproc-per-node 2 job_worker.py sharded
    TORCH_TRACE=folder python job_worker.py fake peak.json 5 256   # one process, no device
"""

import json
import sys

import torch
import torch._functorch.config
import torch._inductor.config
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import parametrize

WIDTH = 64


class Perceptron(nn.Module):
    def __init__(self, layers, broken=False, width=WIDTH):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.broken = broken

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = torch.tanh(layer(x))
            if self.broken and i == 0:
                torch._dynamo.graph_break()
        return x


class Gathered(nn.Module):
    def forward(self, shard):
        whole = shard.redistribute(placements=[Replicate()])
        return whole.to_local(grad_placements=[Partial("avg")])


def shard(model):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for module in list(model.modules()):
        for name, p in list(module.named_parameters(recurse=False)):
            split = distribute_tensor(p.detach(), mesh, [Shard(0)])
            module.register_parameter(name, nn.Parameter(split))
            parametrize.register_parametrization(module, name, Gathered(), unsafe=True)
    return model


def ddp():
    torch._dynamo.config.optimize_ddp = "python_reducer"
    torch._dynamo.config.compiled_autograd = True
    model = DistributedDataParallel(Perceptron(3))

    @torch.compile
    def step(x, y):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss.detach()

    for _ in range(2):
        step(torch.randn(16, WIDTH), torch.randn(16, WIDTH))


def split():
    """DDP's optimizer cuts the frame where its buckets of 1 MiB end."""
    model = torch.compile(DistributedDataParallel(Perceptron(4, width=512), bucket_cap_mb=1))
    for _ in range(2):
        model(torch.randn(16, 512)).sum().backward()


def sharded(sizes=(16, 16), broken=False):
    model = torch.compile(shard(Perceptron(2, broken)), dynamic=False)
    for n in sizes:
        nn.functional.mse_loss(model(torch.randn(n, WIDTH)), torch.randn(n, WIDTH)).backward()


def twice():
    """Two models of one class, each with a backward() of its own in a step."""
    first, second = (torch.compile(shard(Perceptron(n)), dynamic=False) for n in (2, 3))
    for _ in range(2):
        x = torch.randn(16, WIDTH)
        first(x).sum().backward()
        second(x).sum().backward()


def of_both(fw, bw):
    """get_peak_memory() of torch 2.13, which stumbles over the graph's last node."""
    from torch._inductor.fx_passes import memory_estimator as m

    fwd = m.GraphAliasTracker(list(fw.graph.nodes))
    primals = set()
    for node in fw.graph.find_nodes(op="placeholder"):
        if node.name.startswith("primals"):
            primals |= set(fwd.get_fresh_allocations(node))
    returned = set(fwd.get_storage_uses(next(iter(reversed(fw.graph.nodes)))))
    kept, given = set(), set()
    for node in bw.graph.find_nodes(op="placeholder"):
        own = set(m.GraphAliasTracker._get_output_storages(node))
        given |= own
        if own & primals or not own & returned:
            kept.add(node.name)
    baseline = sum(s.storage.nbytes() for s in returned - given if s.device.type != "cpu")
    free = m._is_releasable
    first = max(m.build_memory_profile(fw.graph, free))
    then = max(m.build_memory_profile(bw.graph, lambda n: free(n) and n.name not in kept))
    return max(first, baseline + then)


def fake(path, layers, rows):
    """Forward and backward on a device that is not there, "meta": autograd asks a fake cuda for
    streams, and torch's estimator counts every device but the CPU."""
    import torch.distributed._functional_collectives as funcol
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
    made = []

    def keep(gm, _):
        made.append(gm)
        return make_boxed_func(gm.forward)

    class Reduced(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return funcol.wait_tensor(funcol.all_reduce(g, "avg", dist.group.WORLD))

    def model(x, *weights):
        for i, w in enumerate(weights):
            x = torch.nn.functional.gelu(x @ Reduced.apply(w))
            if i % 2:
                x = torch.cat([x, x[:, : WIDTH // 2]], 1)[:, WIDTH // 2 :] * x.t().sum(0)[:, None]
        return x.sum(), x[:8] * 2

    compiled = torch.compile(model, backend=aot_autograd(fw_compiler=keep, bw_compiler=keep),
                             fullgraph=True, dynamic=False)  # fmt: skip
    x, *weights = (torch.randn(n, WIDTH, device="meta", requires_grad=True)
                   for n in (rows, *[WIDTH] * layers))  # fmt: skip
    compiled(x, *weights)[0].backward()
    with open(path, "w") as f:
        json.dump(of_both(*made), f)


def main():
    if sys.argv[1] == "fake":
        fake(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        return
    torch._inductor.config.fx_graph_cache = False  # graphs from a cache are not logged
    torch._functorch.config.enable_autograd_cache = False
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    run = {"ddp": ddp, "sharded": sharded, "break": lambda: sharded(broken=True),
           "recompile": lambda: sharded((16, 16, 8)), "split": split, "twice": twice}  # fmt: skip
    run[sys.argv[1]]()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""What the tests of the bridge share: a small training step, and a stand-in for passes on graphs.

The stand-in merges all-reduces with torch's own bucketing, so that these tests are about switching
on, agreeing and caching; test_bridge_graph.py is about what passes do.
"""

import contextlib
import os
import shutil
import sys
import warnings

from harness import ROOT

# Kernels that were compiled in an earlier run are used again; graphs only in tests of the cache.
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(ROOT / "build" / "torch-cache" / "all"))

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
from torch._dynamo.utils import counters
from torch._inductor import config
from torch._inductor.fx_passes import bucketing
from torch._inductor.pattern_matcher import stable_topological_sort
from torch._functorch._aot_autograd.autograd_cache import AOTAutogradCache
from torch._inductor.codecache import FxGraphCache
from torch.testing._internal.distributed.fake_pg import FakeStore

sys.path.insert(0, str(ROOT / "python"))

import tuck.torch  # noqa: E402
from tuck.torch import confirm, hooks, settings, spent, switch  # noqa: E402
from tuck.torch.job import job  # noqa: E402

WIDTH = 16
CALLS = []  # of the stand-in: the passes it was asked for


def merge(graph, passes="auto", **options):
    CALLS.append(passes)
    if passes != "nothing":
        bucketing.bucket_all_reduce(graph.owning_module, lambda i: 25.0)
        stable_topological_sort(graph)


def stand_in(run=merge):
    hooks.bridge.run = run


class Sync(torch.autograd.Function):
    """The identity; gradients are averaged over the ranks."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return collectives.all_reduce(g / dist.get_world_size(), "sum", dist.group.WORLD)


def loss_of(x, y, *weights):
    for w in weights[:-1]:
        x = torch.tanh(x @ Sync.apply(w))
    return ((x @ Sync.apply(weights[-1])) - y).square().mean()


def weights(layers=3):
    torch.manual_seed(0)
    return [torch.nn.Parameter(torch.randn(WIDTH, WIDTH) / 4) for _ in range(layers)]


def train(fn, sizes=(8, 8, 8), layers=3, backward=None):
    """Parameters and losses after a step for each batch size."""
    ws = weights(layers)
    optimizer = torch.optim.SGD(ws, lr=0.1)
    random = torch.Generator().manual_seed(7 + dist.get_rank())
    losses = []
    for size in sizes:
        x, y = (torch.randn(size, WIDTH, generator=random) for _ in range(2))
        optimizer.zero_grad()
        loss = fn(x, y, *ws)
        (backward or (lambda v: v.backward()))(loss)
        optimizer.step()
        losses.append(loss.item())
    return [w.detach().clone() for w in ws], losses


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a[0], b[0])) and a[1] == b[1]


def start_fake_group():
    if not dist.is_initialized():
        dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())


def forget():
    """As in a new process, but for Inductor's cache."""
    torch._dynamo.reset()
    counters.clear()
    CALLS.clear()
    settings.forget_said()
    switch._reset()
    spent.reset()
    with job.lock:
        job.generation += 1
        job.forget()


@contextlib.contextmanager
def caught():
    """Tuck's warnings, as a list of texts."""
    texts = []
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            yield texts
        finally:
            ours = [w for w in found if issubclass(w.category, tuck.torch.TuckWarning)]
            texts += [str(w.message) for w in ours]


def use_cache(name):
    """A folder of its own for each class of tests and each rank: they run at the same time."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(ROOT / "build" / "torch-cache" / name)


def clear_graphs():
    """Forgets compiled graphs, but not kernels."""
    shutil.rmtree(FxGraphCache._get_tmp_dir(), ignore_errors=True)
    shutil.rmtree(AOTAutogradCache._get_tmp_dir(), ignore_errors=True)


def cache_counts():
    found = counters["inductor"]
    return found["fxgraph_cache_hit"], found["fxgraph_cache_miss"], found["fxgraph_cache_bypass"]


__all__ = [name for name in globals() if not name.startswith("__")]

"""Steps that Inductor schedules, as problems: real scheduler nodes, taken from a compilation on a CPU.

The compilation is left by an exception once the nodes are there: no kernel is ever built.
"""
import hashlib

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
from torch._inductor import comms, memory
from torch._inductor.compile_fx import compile_fx_inner
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.dependencies import WeakDep
from torch._inductor.utils import contains_collective, contains_wait
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._ordered_set import OrderedSet

WORLD = 4


class Seen(Exception):
    pass


def start_group():
    if not dist.is_initialized():
        dist.init_process_group("fake", rank=0, world_size=WORLD, store=FakeStore())


def runtime(snode):
    """Milliseconds that do not add up exactly, from the name; waits take nothing."""
    if contains_wait(snode):
        return 0.0
    digest = hashlib.md5(snode.get_name().encode()).digest()
    return (digest[0] * 256 + digest[1]) * (3e-5 if contains_collective(snode) else 1e-5)


def names(nodes):
    return [node.get_name() for node in nodes]


def describe(snode):
    kind = ("wait" if contains_wait(snode) else "collective" if contains_collective(snode)
            else "gemm" if comms.contains_gemm_like(snode) else "compute")
    kernel = getattr(snode.node, "python_kernel_name", None)
    return {"name": snode.get_name(), "kind": kind, "runtime": runtime(snode),
            "is_async": bool(comms.contains_async_collective(snode)),
            "kernel": kernel if isinstance(kernel, str) else None,
            "ops": list(snode.get_operation_names()), "ancestors": list(snode.ancestors),
            "deps": [{"name": d.name, "weak": isinstance(d, WeakDep),
                      "fake": isinstance(d, WeakDep) and d.is_fake} for d in snode.unmet_dependencies],
            "outputs": [{"name": b.get_name(), "size_alloc": int(b.mpi_buffer.size_alloc),
                         "size_free": int(b.mpi_buffer.size_free), "succ": names(b.mpi_buffer.succ_nodes),
                         "succ_ordering": names(b.mpi_buffer.succ_nodes_for_ordering)}
                        for b in snode.get_outputs()]}


def problem_of(snodes):
    inputs = OrderedSet(V.graph.graph_inputs)
    freeable = memory.get_freeable_input_buf(snodes, inputs)
    return {"schema": 1, "unit": "ms", "snodes": [describe(snode) for snode in snodes],
            "graph_inputs": list(inputs), "graph_outputs": list(V.graph.get_output_names()),
            "freeable_inputs": [{"name": name, "size_free": int(b.mpi_buffer.size_free),
                                 "succ": names(b.mpi_buffer.succ_nodes)}
                                for name, b in freeable.items()],
            "mutation_real_name": dict(V.graph.scheduler.mutation_real_name)}


def capture(step, inputs, look):
    """look(problem, snodes) while the graph is being compiled."""
    found = []

    def hook(snodes):
        found.append(look(problem_of(snodes), snodes))
        raise Seen

    start_group()
    with FakeTensorMode() as mode:
        fake = [mode.from_tensor(x) for x in inputs]
        graph = make_fx(step, decomposition_table=select_decomp_table())(*fake)
        with torch._inductor.config.patch({
                "reorder_for_compute_comm_overlap": True,
                "reorder_for_compute_comm_overlap_passes": [hook], "estimate_op_runtime": runtime,
                "fx_graph_cache": False, "compile_threads": 1}), V.set_fake_mode(mode):
            try:
                compile_fx_inner(graph, fake)
            except Exception:
                if not found:
                    raise
    return found[0]


# ---------------------------------------------------------------- steps

def data_parallel(layers, width):
    """Forward and backward, every gradient averaged over the ranks as soon as it is there."""
    def step(x, *weights):
        values = [x]
        for w in weights:
            values.append(torch.nn.functional.gelu(values[-1] @ w) + values[-1].sin())
        grad, grads = values[-1].cos(), []
        for w, value in zip(reversed(weights), reversed(values[:-1])):
            grads.append(collectives.all_reduce(value.t() @ grad, "sum", dist.group.WORLD) / WORLD)
            grad = (grad @ w.t()) * (1 - value.tanh().square()) + grad.mean()
        return [w - 0.1 * g for w, g in zip(reversed(weights), grads)]
    return step, [torch.randn(16, width)] + [torch.randn(width, width) for _ in range(layers)]


def fully_sharded(layers, width):
    """Weights gathered before use, gradients scattered after it."""
    def step(x, *shards):
        values, full = [x], []
        for shard in shards:
            full.append(collectives.all_gather_tensor(shard * 1.0, 0, dist.group.WORLD))
            values.append(torch.relu(values[-1] @ full[-1]) + values[-1].abs().sqrt())
        grad, grads = values[-1].exp(), []
        for w, value in zip(reversed(full), reversed(values[:-1])):
            grads.append(collectives.reduce_scatter_tensor(value.t() @ grad, "sum", 0,
                                                           dist.group.WORLD))
            grad = (grad @ w.t()) * value.sigmoid() + grad.amax()
        return grads
    return step, [torch.randn(16, width)] + [torch.randn(width // WORLD, width)
                                             for _ in range(layers)]


def tensor_parallel(layers, width):
    """Attention and MLP split over the ranks, sequences gathered before and scattered after each."""
    def step(x, *weights):
        for query, out, up, down in zip(*[iter(weights)] * 4):
            full = collectives.all_gather_tensor(x * 2, 0, dist.group.WORLD)
            score = torch.softmax((full @ query) @ full.t(), -1) @ full
            x = x + collectives.reduce_scatter_tensor(score @ out, "sum", 0, dist.group.WORLD)
            full = collectives.all_gather_tensor(x.tanh(), 0, dist.group.WORLD)
            hidden = torch.nn.functional.silu(full @ up)
            x = x + collectives.reduce_scatter_tensor(hidden @ down, "sum", 0, dist.group.WORLD)
        return collectives.all_reduce((x * x).mean(), "avg", dist.group.WORLD), x
    return step, [torch.randn(8, width)] + [torch.randn(width, width) for _ in range(4 * layers)]


def experts(layers, width):
    """Tokens to their experts and back; gradients of what all ranks share are summed in place."""
    def step(x, gate, *weights):
        grads = []
        for up, down in zip(*[iter(weights)] * 2):
            score = torch.sigmoid(x @ gate)
            split = [x.shape[0] // WORLD] * WORLD
            there = collectives.all_to_all_single(x * score, split, split, dist.group.WORLD)
            done = torch.relu(there @ up) @ down
            back = collectives.all_to_all_single(done, split, split, dist.group.WORLD)
            grads.append(collectives.all_reduce(x.t() @ score, "sum", dist.group.WORLD))
            x = torch.nn.functional.layer_norm(x + back, x.shape[-1:])
        return [x] + [gate - 0.01 * g for g in grads]
    return step, ([torch.randn(16, width), torch.randn(width, 1)] +
                  [torch.randn(width, width) for _ in range(2 * layers)])


STEPS = {"data_parallel": data_parallel(6, 32), "fully_sharded": fully_sharded(6, 32),
         "tensor_parallel": tensor_parallel(3, 16), "experts": experts(3, 16),
         "large": data_parallel(45, 16)}

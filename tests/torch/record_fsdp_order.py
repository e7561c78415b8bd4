"""Record what torch 2.12.1's enforce_comm_ordering_for_fsdp, which 2.13 no longer has, makes of steps.

    python3 -m venv build/venv-2.12.1
    build/venv-2.12.1/bin/pip install torch==2.12.1 numpy safetensors
    build/venv-2.12.1/bin/python tests/torch/record_fsdp_order.py

Each step is compiled by Inductor on a CPU up to where the pass runs, on real scheduler nodes. torch's fake
dependences between all collectives are left out: with them the pass walks from one block into the next and
asserts. Problems and answers go to tests/schedule/fsdp.jsonl, which tests/unit/test_schedule_fsdp.c
compares Tuck with.
"""

import json
import warnings
from pathlib import Path
from unittest import mock

import torch
import torch.distributed as dist
import torch.distributed.fsdp._fully_shard._fsdp_collectives  # registers torch.ops.fsdp
from torch._inductor import comms, memory
from torch._inductor.compile_fx import compile_fx_inner
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.scheduler import GroupedSchedulerNode, NopKernelSchedulerNode
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._ordered_set import OrderedSet

import schedule_capture

OUT = Path(__file__).resolve().parents[1] / "schedule" / "fsdp.jsonl"
WORLD, WIDTH = schedule_capture.WORLD, 16
SHARD = WIDTH * WIDTH // WORLD
c10d, fsdp = torch.ops._c10d_functional, torch.ops.fsdp


def group():
    return dist.group.WORLD.group_name


def start_gather(shards, cast=False):
    """Cast, copy-in and all-gather of the shards of one layer."""
    shards = [s.to(torch.bfloat16) for s in shards] if cast else list(shards)
    out = torch.empty(SHARD * len(shards) * WORLD, dtype=shards[0].dtype)
    part, whole = fsdp.all_gather_copy_in(
        shards, out, [SHARD] * len(shards), SHARD * len(shards), dist.get_rank()
    )
    return c10d.all_gather_into_tensor_out(part, WORLD, group(), out=whole)


def end_gather(gather, n=2):
    """Its wait and copy-out: the weights."""
    full = c10d.wait_tensor(gather)
    weights = [torch.empty(WIDTH * WIDTH, dtype=full.dtype) for _ in range(n)]
    outs = [w.view(WORLD, -1) for w in weights]
    fsdp.split_with_sizes_copy(full.view(WORLD, -1), [SHARD] * n, dim=1, out=outs)
    return [w.view(WIDTH, WIDTH) for w in weights]


def start_scatter(grads):
    buffer = torch.empty(WIDTH * WIDTH * len(grads))
    fsdp.chunk_cat(grads, dim=0, num_chunks=WORLD, out=buffer.view(WORLD, -1))
    return c10d.reduce_scatter_tensor(buffer, "avg", WORLD, group())


def layer(x, weights):
    for w in weights:
        x = torch.relu(x.to(w.dtype) @ w)
    return x


def forward(layers, cast):
    """One layer after the other."""

    def step(x, *shards):
        for i in range(layers):
            x = layer(x, end_gather(start_gather(shards[2 * i : 2 * i + 2], cast)))
        return [x]

    return step, 2 * layers


def prefetch(layers):
    """The gather of the next layer starts before the wait for this one."""

    def step(x, *shards):
        pairs = [shards[2 * i : 2 * i + 2] for i in range(layers)]
        ahead = start_gather(pairs[0])
        for i in range(layers):
            gather, ahead = ahead, start_gather(pairs[i + 1]) if i + 1 < layers else None
            x = layer(x, end_gather(gather))
        return [x]

    return step, 2 * layers


def backward(layers, late):
    """Reduce-scatters of gradients; late: waited for at the end."""

    def step(x, *shards):
        started, done = [], []
        for _ in range(layers):
            started.append(start_scatter([x.t() @ x, x.t().cos() @ x]))
            if not late:
                done.append(c10d.wait_tensor(started[-1]) * 2)
            x = x + 1
        done += [c10d.wait_tensor(s) * 2 for s in started] if late else []
        return [x, *done]

    return step, 0


def training(layers, reuse=False):
    """Forward, and backward with a second gather of every layer; reuse: all layers are the same one."""

    def step(x, *shards):
        pairs = [shards[0:2] if reuse else shards[2 * i : 2 * i + 2] for i in range(layers)]
        values = [x]
        for pair in pairs:
            values.append(layer(values[-1], end_gather(start_gather(pair))))
        grad, done = values[-1].cos(), []
        for pair, value in zip(reversed(pairs), reversed(values[:-1])):
            weights = end_gather(start_gather(pair))
            scatter = start_scatter([value.t() @ grad, value.t() @ grad.sin()])
            grad = layer(grad, [w.t() for w in weights])
            done.append(c10d.wait_tensor(scatter))
        return [grad, *done]

    return step, 2 if reuse else 2 * layers


def chained():
    """The shards of the second layer are computed from the weights of the first."""

    def step(x, *shards):
        first = end_gather(start_gather(shards))
        made = [w.reshape(-1)[:SHARD] * 2 for w in first]
        second = end_gather(start_gather(made))
        return [layer(layer(x, first), second)]

    return step, 2


def with_tensor_parallel(layers):
    """Other collectives of activations in between, which are none of FSDP's."""

    def step(x, *shards):
        for i in range(layers):
            x = layer(x, end_gather(start_gather(shards[2 * i : 2 * i + 2])))
            x = c10d.wait_tensor(c10d.all_reduce(x, "sum", group()))
            x = c10d.wait_tensor(c10d.all_gather_into_tensor(x, WORLD, group()))
        return [x]

    return step, 2 * layers


STEPS = {
    "forward": forward(2, False),
    "forward_cast": forward(3, True),
    "prefetch": prefetch(4),
    "backward": backward(3, False),
    "backward_late": backward(3, True),
    "training": training(4),
    "training_reuse": training(3, reuse=True),
    "chained": chained(),
    "tensor_parallel": with_tensor_parallel(3),
}


class Seen(Exception):
    pass


def members(node):
    return [s.get_name() for s in getattr(node, "snodes", [node])]


def answer(snodes):
    """The order, and the dependences that were added: [first op of the block, buffer]."""
    scheduler = snodes[0].scheduler
    try:
        nodes = comms.enforce_comm_ordering_for_fsdp(
            snodes, scheduler.name_to_buf, scheduler.name_to_fused_node
        )
    except Exception as error:
        return {"error": type(error).__name__}
    nodes = scheduler.topological_sort_schedule(nodes)  # as it is before anything else looks at it
    added = [
        [members(node)[0], dep.name]
        for node in nodes
        if isinstance(node, GroupedSchedulerNode)
        for dep in node.unmet_dependencies
        if getattr(dep, "is_fake", False)
    ]
    blocks = [members(n) for n in nodes if isinstance(n, GroupedSchedulerNode)]
    return {"order": [name for n in nodes for name in members(n)], "blocks": blocks, "deps": added}


by_name = schedule_capture.runtime


def runtime(snode):
    """Only waits and what launches nothing take no time."""
    return 0.0 if isinstance(snode, NopKernelSchedulerNode) else by_name(snode)


def record(step, n_shards):
    found = []

    def hook(snodes):
        scheduler = snodes[0].scheduler
        memory.assign_memory_planning_info_for_scheduler_buffers(snodes, scheduler.name_to_buf)
        with mock.patch.object(schedule_capture, "runtime", runtime):
            problem = schedule_capture.problem_of(snodes)
        for snode in problem["snodes"]:
            del snode["ancestors"]  # follow from the rest, and are long
        found.append({"problem": problem, **answer(snodes)})
        raise Seen

    inputs = [torch.randn(WIDTH, WIDTH)] + [torch.randn(SHARD) for _ in range(n_shards)]
    with FakeTensorMode() as mode:
        fake = [mode.from_tensor(x) for x in inputs]
        graph = make_fx(step, decomposition_table=select_decomp_table())(*fake)
        with (
            torch._inductor.config.patch(
                {"_pre_fusion_custom_pass": hook, "fx_graph_cache": False, "compile_threads": 1}
            ),
            mock.patch.object(comms, "decide_global_ordering_of_comms", lambda nodes, *_: nodes),
            V.set_fake_mode(mode),
        ):
            try:
                compile_fx_inner(graph, fake)
            except Exception:
                if not found:
                    raise
    return found[0]


def main():
    warnings.simplefilter("ignore")
    schedule_capture.start_group()
    lines = [json.dumps({"name": n, **record(*s)}, separators=(",", ":")) for n, s in STEPS.items()]
    OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

"""usage: bridge_torch.py NODES [PASS]: Tuck's passes on a live torch.fx graph of about NODES nodes beside the
passes of PyTorch 2.13 that they replace: into arrays, the pass, back into the graph, all in CPU
seconds, in one process, each time on a fresh copy of the graph. Then what Tuck adds to a whole
compilation. Says which passes are not 20 times faster, and fails if there are any.
Needs build/torch-venv.
"""

import copy
import sys
import time
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "torch"), str(ROOT / "python")]

import fakes  # noqa: E402
import torch  # noqa: E402
from torch._inductor.fx_passes import bucketing, ddp_fusion  # noqa: E402
from torch._inductor.fx_passes.overlap_scheduling import schedule_overlap_bucketing  # noqa: E402
from torch._inductor.pattern_matcher import stable_topological_sort  # noqa: E402
from torch._inductor.virtualized import V  # noqa: E402
from torch.fx.passes.shape_prop import _extract_tensor_metadata  # noqa: E402
import tuck.torch  # noqa: E402
from tuck.torch.arrays import Arrays  # noqa: E402

WHOLE, SHARD = '"f32[64, 64][64, 1]cpu"', '"f32[8, 64][64, 1]cpu"'
COMM = "torch.ops._c10d_functional"
NEED = 20
SHORT = 0.2  # seconds: what takes less is repeated more often


def text_of(inputs, lines, returned):
    body = "".join(f"        {line}\n" for line in lines)
    inputs = ", ".join(inputs)
    return (
        f"class step(torch.nn.Module):\n    def forward(self, {inputs}):\n{body}"
        f"        return ({', '.join(returned)},)\n"
    )


def sharded(nodes):
    """A parameter is gathered before each product; its gradient is scattered."""
    layers, lines = nodes // 10, []
    for i in range(layers):
        given = "x" if i == 0 else f"r{i - 1}"
        lines += [
            f"g{i}: {WHOLE} = {COMM}.all_gather_into_tensor.default(p{i}, 8, '0')",
            f"a{i}: {WHOLE} = {COMM}.wait_tensor.default(g{i})",
            f"m{i}: {WHOLE} = torch.ops.aten.mm.default({given}, a{i})",
            f"q{i}: {WHOLE} = torch.ops.aten.sin.default(m{i})",
            f"r{i}: {WHOLE} = torch.ops.aten.relu.default(q{i})",
            f"w{i}: {WHOLE} = torch.ops.aten.mm.default(x, r{i})",
            f"s{i}: {SHARD} = {COMM}.reduce_scatter_tensor.default(w{i}, 'avg', 8, '0')",
            f"b{i}: {SHARD} = {COMM}.wait_tensor.default(s{i})",
            f"c{i}: {SHARD} = torch.ops.aten.neg.default(b{i})",
        ]
    inputs = [f"x: {WHOLE}", *(f"p{i}: {SHARD}" for i in range(layers))]
    return text_of(inputs, lines, [f"c{i}" for i in range(layers)])


def replicated(nodes):
    """Each layer has a gradient, which is divided and reduced."""
    layers, lines = nodes // 7, []
    for i in range(layers):
        given = "x" if i == 0 else f"r{i - 1}"
        lines += [
            f"m{i}: {WHOLE} = torch.ops.aten.mm.default({given}, p{i})",
            f"r{i}: {WHOLE} = torch.ops.aten.relu.default(m{i})",
            f"w{i}: {WHOLE} = torch.ops.aten.mm.default(x, r{i})",
            f"d{i}: {WHOLE} = torch.ops.aten.div.Tensor(w{i}, 8)",
            f"s{i}: {WHOLE} = {COMM}.all_reduce.default(d{i}, 'sum', '0')",
            f"b{i}: {WHOLE} = {COMM}.wait_tensor.default(s{i})",
        ]
    inputs = [f"x: {WHOLE}", *(f"p{i}: {WHOLE}" for i in range(layers))]
    return text_of(inputs, lines, [f"b{i}" for i in range(layers)])


def seconds(run, make, times):
    """The least CPU seconds of run(make()); the first of several runs warms caches."""
    taken = []
    while len(taken) < times or (len(taken) < 15 and min(taken) < SHORT):
        given = make()
        start = time.process_time()
        run(given)
        taken.append(time.process_time() - start)
    return min(taken)


def copies(module):
    """Fresh modules with the same graph and values."""

    def make():
        graph = copy.deepcopy(module.graph)
        for node in graph.nodes:
            if isinstance(node.meta.get("val"), torch.Tensor):
                node.meta["tensor_meta"] = _extract_tensor_metadata(node.meta["val"])
        return torch.fx.GraphModule(module, graph)

    return make


def bucket(name):
    def run(gm):
        getattr(bucketing, name)(gm, lambda index: 25.0, "default")
        stable_topological_sort(gm.graph)

    return run


def ddp(gm):
    """As Inductor runs it; the graph is in order only after the sort."""
    ddp_fusion.fuse_ddp_communication(gm.graph, ["fuse_ddp_with_concat_op", "schedule_comm_wait"], 25)
    stable_topological_sort(gm.graph)


def waits(gm):
    ddp_fusion.schedule_comm_wait(gm.graph)
    stable_topological_sort(gm.graph)


def overlap(gm):
    estimate = lambda node, size=None: 0.05 if "mm" in str(node.target) else 0.01
    schedule_overlap_bucketing(gm, collective_bucketing=True, custom_runtime_estimation=estimate)


def rows():
    yield sharded, "bucket_all_gather(cap_mb=25)", bucket("bucket_all_gather")
    yield sharded, "bucket_reduce_scatter(cap_mb=25)", bucket("bucket_reduce_scatter")
    yield replicated, "bucket_all_reduce(cap_mb=25)", bucket("bucket_all_reduce")
    yield (
        replicated,
        "fuse_ddp_with_concat_op(bucket_size_mb=25)",
        lambda gm: ddp_fusion.fuse_ddp_with_concat_op(gm.graph, 25),
    )
    yield (
        replicated,
        "fuse_ddp_with_coalesced_op(bucket_size_mb=25)",
        lambda gm: ddp_fusion.fuse_ddp_with_coalesced_op(gm.graph, 25),
    )
    yield replicated, "fuse_ddp_communication(bucket_size_mb=25)", ddp
    yield replicated, "schedule_comm_wait", waits
    yield sharded, "schedule_overlap_bucketing(compat=torch)", overlap


def whole_compilation():
    """What Tuck adds to compiling a training step, which is mostly Inductor."""
    import bridge

    bridge.start_fake_group()
    bridge.use_cache("bench")
    taken = {}
    for tucked in (False, True):
        bridge.forget()
        if tucked:
            tuck.torch.install()
        with torch._inductor.config.patch(force_disable_caches=True):
            start = time.process_time()
            bridge.train(torch.compile(bridge.loss_of), sizes=(8,), layers=24)
            taken[tucked] = time.process_time() - start
    spent = tuck.torch.spent.seconds()
    mine = spent["passes"] + spent["keeping"]
    print(f"a whole compilation, 24 layers: {taken[False]:.2f} s without Tuck, {taken[True]:.2f} s with; Tuck "
          f"added {1e3 * spent['passes']:.0f} ms in passes, {1e3 * spent['keeping']:.0f} ms in copies of graphs: "
          f"{100 * mine / taken[True]:.1f} %", flush=True)


def main():
    nodes = int(sys.argv[1])
    fast = True
    made = {}
    path = ROOT / "tests" / "graphs" / "step.txt"
    known = {"printed_on_rank": 0, "groups": {"0": {"ranks": list(range(8))}}}
    rates = "torch.utils._runtime_estimation."
    with (
        mock.patch.object(fakes, "sidecar", lambda path: known),
        mock.patch(rates + "get_gpu_dram_gbps", lambda: 2000.0),
        mock.patch(rates + "get_device_tflops", lambda dtype: 300.0),
        fakes.groups(path),
    ):
        for graph, passes, theirs in rows():
            if not passes.startswith(sys.argv[2] if len(sys.argv) > 2 else ""):
                continue
            if graph not in made:
                made[graph] = fakes.fake_module(graph(nodes))
            module, mode = made[graph]
            make = copies(module)
            into = seconds(Arrays, lambda: make().graph, 2)
            ours = seconds(lambda gm: tuck.torch.run(gm.graph, passes), make, 3)
            with V.set_fake_mode(mode):
                torchs = seconds(theirs, make, 1)
            times = torchs / ours
            fast &= times >= NEED
            print(
                f"{passes:46} torch {torchs:8.3f}  tuck {ours:7.4f} (whole graph in: {into:.3f})"
                f"  {times:6.1f} times{'' if times >= NEED else f'  BELOW {NEED}'}",
                flush=True,
            )
    if len(sys.argv) <= 2 or sys.argv[2] == "compilation":
        whole_compilation()
    sys.exit(not fast)


if __name__ == "__main__":
    main()

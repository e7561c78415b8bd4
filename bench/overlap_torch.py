"""usage: overlap_torch.py NODES FOLDER: prints the CPU seconds that PyTorch 2.13's overlap scheduler
needs for a training step of about that many nodes, its buckets included; writes the step to
FOLDER/overlap.txt with its side-car. Times of nodes are given, so that none is estimated. Needs the
environment of tests/torch/run.sh (build/torch-venv).
"""
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "torch"))
import fakes  # noqa: E402
import overlap  # noqa: E402
import torch  # noqa: E402
from torch._inductor.fx_passes.overlap_scheduling import schedule_overlap_bucketing  # noqa: E402
from torch._inductor.virtualized import V  # noqa: E402
from torch.fx.passes.fake_tensor_prop import FakeTensorProp  # noqa: E402

WHOLE, SHARD = '"f32[64, 64][64, 1]cuda:0"', '"f32[8, 64][64, 1]cuda:0"'
COMM = "torch.ops._c10d_functional"


def training(nodes):
    """A parameter is gathered before each product, forward and backward; its gradient is scattered."""
    layers, lines = nodes // 18, []
    for i in range(2 * layers):
        k = i if i < layers else 2 * layers - 1 - i
        given = "x" if i == 0 else "d" if i == layers else f"r{i - 1}_3"
        lines += [
            f"g{i}: {WHOLE} = {COMM}.all_gather_into_tensor.default(p{k}, 8, '0')",
            f"a{i}: {WHOLE} = {COMM}.wait_tensor.default(g{i})",
            f"m{i}: {WHOLE} = torch.ops.aten.mm.default({given}, a{i})",
            f"r{i}_0: {WHOLE} = torch.ops.aten.relu.default(m{i})",
            *(f"r{i}_{n}: {WHOLE} = torch.ops.aten.sin.default(r{i}_{n - 1})" for n in (1, 2, 3)),
        ]
        if i >= layers:
            lines += [
                f"w{i}: {WHOLE} = torch.ops.aten.mm.default(r{k}_3, r{i}_3)",
                f"s{i}: {SHARD} = {COMM}.reduce_scatter_tensor.default(w{i}, 'avg', 8, '0')",
                f"b{i}: {SHARD} = {COMM}.wait_tensor.default(s{i})",
                f"c{i}: {SHARD} = torch.ops.aten.neg.default(b{i})",
            ]
    inputs = ", ".join([f"x: {WHOLE}", f"d: {WHOLE}", *(f"p{i}: {SHARD}" for i in range(layers))])
    body = "".join(f"        {line}\n" for line in lines)
    returned = "".join(f"c{i}, " for i in range(layers, 2 * layers))
    return f"class step(torch.nn.Module):\n    def forward(self, {inputs}):\n{body}        return ({returned})\n"


def time_of(node, size=None):
    if size == 0:
        return 0.01
    kind = str(node.target)
    return 0.04 if "mm" in kind else 0.002 if "relu" in kind or "sin" in kind else 0.05 if "_tensor" in kind else 0.0


nodes, folder = int(sys.argv[1]), Path(sys.argv[2])
path = folder / "overlap.txt"
path.write_text(training(nodes))
path.with_suffix(".json").write_text('{"printed_on_rank": 0, "groups": {"0": {"ranks": [0, 1, 2, 3, 4, 5, 6, 7]}}}\n')
with fakes.groups(path):
    module, mode = fakes.fake_module(path.read_text())
    FakeTensorProp(module, mode).propagate_dont_convert_inputs(*fakes.inputs_of(module))
    overlap.overlap_scheduling.get_group_name.cache_clear()
    start = time.process_time()
    with V.set_fake_mode(mode), torch.no_grad(), mode:
        schedule_overlap_bucketing(
            module, collective_bucketing=True, pre_bucketing_fsdp_collectives=False,
            compute_estimator="analytical", custom_runtime_estimation=time_of,
        )
    print(time.process_time() - start)

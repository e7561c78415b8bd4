"""usage: bucket_torch.py GRAPH PASS CAP_MB FOLDER: prints the CPU seconds that PyTorch 2.13 needs
to find and merge buckets and to sort; writes the graph, on cpu, to FOLDER/bucket.txt with its
side-car.

GRAPH is a file, or a number: that many all-gathers that make one bucket, each before 18 other
nodes. Needs the environment of tests/torch/run.sh (build/torch-venv).
"""
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "torch"))
import fakes  # noqa: E402
from torch._inductor.fx_passes import bucketing  # noqa: E402
from torch._inductor.pattern_matcher import stable_topological_sort  # noqa: E402
from torch._inductor.virtualized import V  # noqa: E402


def chain(n):
    """n times: gather a parameter, multiply by it, 16 activations."""
    lines, x = [], "x"
    for i in range(n):
        lines += [
            f'g{i}: "f32[64, 64][64, 1]cpu" = torch.ops._c10d_functional.all_gather_into_tensor.default(p{i}, 8, \'0\')',
            f'w{i}: "f32[64, 64][64, 1]cpu" = torch.ops._c10d_functional.wait_tensor.default(g{i})',
            f'm{i}: "f32[16, 64][64, 1]cpu" = torch.ops.aten.mm.default({x}, w{i})',
        ]
        x = f"m{i}"
        for k in range(16):
            lines.append(f'r{i}_{k}: "f32[16, 64][64, 1]cpu" = torch.ops.aten.relu.default({x})')
            x = f"r{i}_{k}"
    inputs = ", ".join(['x: "f32[16, 64][64, 1]cpu"', *(f'p{i}: "f32[8, 64][64, 1]cpu"' for i in range(n))])
    body = "".join(f"        {line}\n" for line in lines)
    return f"class step(torch.nn.Module):\n    def forward(self, {inputs}):\n{body}        return ({x},)\n"


graph, name, cap, folder = sys.argv[1], sys.argv[2], float(sys.argv[3]), Path(sys.argv[4])
path = folder / "bucket.txt"
side = folder / "bucket.json"
if graph.isdigit():
    path.write_text(chain(int(graph)))
    side.write_text('{"printed_on_rank": 0, "groups": {"0": {"size": 8, "ranks": [0, 1, 2, 3, 4, 5, 6, 7]}}}\n')
else:
    text = Path(graph).read_text().replace("cuda:0", "cpu")
    path.write_text(text.replace("device(type='cuda', index=0)", "device(type='cpu')"))
    shutil.copy(Path(graph).with_suffix(".json"), side)
best = None
with fakes.groups(path):
    for _ in range(2):
        module, mode = fakes.fake_module(path.read_text())
        start = time.process_time()
        with V.set_fake_mode(mode):
            getattr(bucketing, name)(module, lambda index: cap, "default")
            stable_topological_sort(module.graph)
        taken = time.process_time() - start
        best = taken if best is None else min(best, taken)
print(best)

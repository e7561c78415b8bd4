"""usage: overlap_torch.py NODES FOLDER: prints the CPU seconds that PyTorch 2.13's overlap scheduler
needs for a training step (training.py) of about that many nodes, its buckets included; writes the step to
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
from training import write  # noqa: E402


def time_of(node, size=None):
    if size == 0:
        return 0.01
    kind = str(node.target)
    return 0.04 if "mm" in kind else 0.002 if "relu" in kind or "sin" in kind else 0.05 if "_tensor" in kind else 0.0


nodes, folder = int(sys.argv[1]), Path(sys.argv[2])
path = folder / "overlap.txt"
write(nodes, path)
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

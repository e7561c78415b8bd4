"""`tuck lower --peak fx` compared with PyTorch's own estimate of a graph's peak,
memory_estimator.py."""

import re
import unittest

import torch
from torch._inductor.fx_passes import memory_estimator
from torch._inductor.virtualized import V
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

import fakes
import harness

# What torch cannot run under fake tensors without the history of the graph's symbols, or without a GPU.
NOT_RUN = """layer_routed_bw llama_async_bw llama_async_fw""".split()
PATHS = [p for p in harness.graphs("ddp", "fsdp", "moe", "tp") if p.stem not in NOT_RUN]
HINT = 8  # of every symbol of a size that is given, as fakes.py has it


def of_torch(path):
    with fakes.groups(path):
        gm, mode = fakes.fake_module(path.read_text())
        # Values from annotations share nothing; those of a run with fake tensors share as the
        # operators say.
        FakeTensorProp(gm, mode).propagate_dont_convert_inputs(*fakes.inputs_of(gm))
        with V.set_fake_mode(mode):
            return max(memory_estimator.build_memory_profile(gm.graph, memory_estimator._is_releasable))


@harness.one_test_each(PATHS)
class Peak(unittest.TestCase):
    def check(self, path):
        symbols = sorted(set(re.findall(r"\bs\d+\b", path.read_text())))
        hints = [word for s in symbols for word in ("--assume", f"{s}={HINT}")]
        said = harness.tuck("lower", "--peak", "fx", *hints, path)
        self.assertEqual(int(re.search(r": (\d+) bytes", said)[1]), of_torch(path))


if __name__ == "__main__":
    unittest.main()

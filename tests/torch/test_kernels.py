"""Inductor still makes as many kernels of a graph as tests/results/kernels.txt says. A sample; record_kernels.py asks for all."""

import collections
import pathlib
import re
import tempfile
import unittest

import torch._inductor.config
import harness
import inductor
import record_kernels

SAMPLE = """ddp/mlp_bw ddp/two_groups_bw ddp/resnet_fw fsdp/mlp_bw fsdp/llama_fw tp/ring_attention_fw tp/pipeline_p2p_fw
moe/layer_static_bw exec/gpt2_ddp_fw exec/llama_hsdp_bw exec/resnet_ddp_bw exec/moe_routed_bw exec/mlp_ddp_dynamic_fw""".split()


@harness.one_test_each([harness.GRAPHS / (name + ".txt") for name in SAMPLE])
class Kernels(unittest.TestCase):
    def check(self, path):
        name = str(path.relative_to(harness.GRAPHS))
        kept = [x for x in record_kernels.TABLE.read_text().splitlines() if x.startswith(name + " ")]
        self.assertEqual(kept[0].split(" | ")[1], record_kernels.inductors(name))


class Clones(unittest.TestCase):
    """docs/differences.md, Lowering: the clone of an all-reduce's operand."""

    def test_clone(self):
        page = (harness.ROOT / "docs" / "differences.md").read_text()
        text = re.search(r"--- file reduced.txt\n(.*?)\$ tuck", page, flags=re.S)[1]
        ops = re.findall(r"^op \S+ (\w+)", page.split("reduced.txt\n", 2)[2].split("$ tuck")[0], flags=re.M)
        self.assertEqual(ops, ["compute", "copy", "collective", "wait"])
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "reduced.txt"
            path.write_text(text)
            for early, loops in ((True, 2), (False, 1)):
                with torch._inductor.config.patch(reorder_for_compute_comm_overlap=early):
                    found = inductor.kernels_of(path)
                self.assertEqual(found, collections.Counter(loops=loops, collectives=1, waits=1))


if __name__ == "__main__":
    unittest.main()

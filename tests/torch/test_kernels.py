"""Inductor still makes as many kernels of a graph as tests/results/kernels.txt says. A sample; record_kernels.py asks for all."""

import unittest

import harness
import record_kernels

SAMPLE = """ddp/mlp_bw ddp/two_groups_bw ddp/resnet_fw fsdp/mlp_bw fsdp/llama_fw tp/ring_attention_fw tp/pipeline_p2p_fw
moe/layer_static_bw exec/gpt2_ddp_fw exec/llama_hsdp_bw exec/resnet_ddp_bw exec/moe_routed_bw exec/mlp_ddp_dynamic_fw""".split()


@harness.one_test_each([harness.GRAPHS / (name + ".txt") for name in SAMPLE])
class Kernels(unittest.TestCase):
    def check(self, path):
        name = str(path.relative_to(harness.GRAPHS))
        kept = [x for x in record_kernels.TABLE.read_text().splitlines() if x.startswith(name + " ")]
        self.assertEqual(kept[0].split(" | ")[1], record_kernels.inductors(name))


if __name__ == "__main__":
    unittest.main()

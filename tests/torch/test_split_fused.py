"""split_fused_collectives: `tuck run` of the split graph gives what the operator is defined to give, computed from the operands of all ranks."""

import itertools
import tempfile
import unittest
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from harness import tuck

FORM = """class step(torch.nn.Module):
    def forward(self, {inputs}):
{body}
        return ({results},)
"""


def text(inputs, body, results):
    named = ", ".join(f'{name}: "f32{list(t.shape)}cpu"' for name, t in inputs.items())
    return FORM.format(inputs=named, body="\n".join("        " + line for line in body), results=", ".join(results))


class SplitTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_split(self, inputs, body, results):
        """By rank: what it returns."""
        world = len(inputs)
        graph, plain = self.folder / "fused.txt", self.folder / "plain.txt"
        graph.write_text(text(inputs[0], body, results))
        for rank, own in enumerate(inputs):
            save_file({f"input.{name}": t for name, t in own.items()}, self.folder / f"in.rank{rank}.safetensors")
        tuck("optimize", graph, "--group", f"tp={world}", "-p", "split_fused_collectives", "-o", plain)
        self.assertNotIn("symm_mem", plain.read_text())
        self.assertNotIn("_dtensor", plain.read_text())
        tuck("run", plain, "-n", world, "--inputs", self.folder / "in", "--outputs", self.folder / "out", "--steps", 1, "--warmup", 0, "--no-pin")
        return [load_file(self.folder / f"out.rank{rank}.safetensors") for rank in range(world)]

    def check(self, found, wanted):
        for rank, (own, want) in enumerate(zip(found, wanted)):
            for i, t in enumerate(want):
                self.assertEqual(own[f"output.{i}"].shape, t.shape, rank)
                self.assertTrue(torch.allclose(own[f"output.{i}"], t, rtol=1e-4, atol=1e-5), (rank, i))

    def test_gather(self):
        for world, dim, back in itertools.product((2, 3), (0, 1, -1), (True, False)):
            with self.subTest(world=world, dim=dim, back=back):
                deep = 5 * (world if dim == -1 else 1)
                inputs = [{"a": torch.randn(2, 4, 5), "v": torch.randn(deep, 3), "w": torch.randn(deep, 6)} for _ in range(world)]
                body = [f"fused = torch.ops.symm_mem.fused_all_gather_matmul.default(a, [v, w], {dim}, 'tp', return_A = {back})",
                        "whole = fused[0]", "products = fused[1]", "first = products[0]", "second = products[1]"]  # fmt: skip
                body = body if back else [body[0], *body[2:]]
                whole = torch.cat([own["a"] for own in inputs], dim)
                wanted = [[whole @ own["w"], whole @ own["v"], *([whole] if back else [])] for own in inputs]
                self.check(self.run_split(inputs, body, ["second", "first", *(["whole"] if back else [])]), wanted)

    def test_scatter(self):
        for world, dim, op in itertools.product((2, 3), (0, 1, 2), ("sum", "avg")):
            with self.subTest(world=world, dim=dim, op=op):
                inputs = [{"a": torch.randn(6, 12, 5), "b": torch.randn(5, 18)} for _ in range(world)]
                body = [f"out = torch.ops.symm_mem.fused_matmul_reduce_scatter.default(a, b, '{op}', {dim}, 'tp')"]
                total = sum(own["a"] @ own["b"] for own in inputs) / (world if op == "avg" else 1)
                self.check(self.run_split(inputs, body, ["out"]), [[part] for part in total.chunk(world, dim)])

    def test_move(self):
        for world, (gather, shard) in itertools.product((2, 3), itertools.permutations(range(3), 2)):
            with self.subTest(world=world, gather=gather, shard=shard):
                inputs = [{"x": torch.randn(6, 12, 18)} for _ in range(world)]
                body = [f"out = torch.ops._dtensor.shard_dim_alltoall.default(x, {gather}, {shard}, 'tp')"]
                whole = torch.cat([own["x"] for own in inputs], gather)
                self.check(self.run_split(inputs, body, ["out"]), [[part] for part in whole.chunk(world, shard)])


if __name__ == "__main__":
    unittest.main()

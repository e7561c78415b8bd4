"""Costs: the model `torch` is PyTorch's own estimate, and flops are those of its flop counter.

Drives `test_cost --ask` (tests/unit/test_cost.c) and `tuck cost --json`; nothing is compiled here.
"""
import json
import os
import random
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import torch
import torch._inductor.comm_analysis as comm
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import flop_registry

from harness import ROOT, SECONDS, some, tuck

TEST_COST = os.environ.get("TEST_COST") or str(ROOT / "build/release/tests/unit/test_cost")
GENERATION = {"v100": comm.NVIDIA_GPU_TYPE.VOLTA, "a100": comm.NVIDIA_GPU_TYPE.AMPERE,
              "h100": comm.NVIDIA_GPU_TYPE.HOPPER, "b200": comm.NVIDIA_GPU_TYPE.BLACKWELL}
COLLECTIVE = {"all_reduce": comm.NCCL_COLL.ALL_REDUCE, "all_gather": comm.NCCL_COLL.ALL_GATHER,
              "reduce_scatter": comm.NCCL_COLL.REDUCE_SCATTER, "all_to_all": comm.NCCL_COLL.ALL_TO_ALL}
SATURATED = ("all_reduce", "all_gather", "reduce_scatter")


def theirs(device, nvlink, coll, ranks, size):
    with mock.patch.object(comm, "get_gpu_type", lambda: GENERATION[device]), \
         mock.patch.object(comm, "_has_nvlink", lambda: nvlink):
        us, algo, proto = comm._nccl_best_algo_time(size, ranks, COLLECTIVE[coll])
        enough = comm.compute_min_saturation_bytes(ranks, COLLECTIVE[coll]) if coll in SATURATED else None
    return us, f"{algo.name.lower()}/{proto.name}", enough


class Estimate(unittest.TestCase):
    def test_collectives(self):
        r = random.Random(7)
        cases = [(device, nvlink, coll, ranks, size)
                 for device in GENERATION for nvlink in (True, False) for coll in COLLECTIVE
                 for ranks in (2, 3, 4, 8, 9, 16, 24, 64, 256, 1024)
                 for size in [1 << k for k in range(0, 37, 4)] + [int(2 ** r.uniform(0, 36)) for _ in range(12)]]
        lines = "".join(f"{d} {'nvlink' if n else 'pcie'} {c} {p} {s}\n" for d, n, c, p, s in cases)
        done = subprocess.run([TEST_COST, "--ask"], input=lines, text=True, capture_output=True, timeout=SECONDS)
        answers = done.stdout.splitlines()
        self.assertEqual((done.returncode, len(answers)), (0, len(cases)))
        wrong = []
        for case, answer in zip(cases, answers):
            ps, way, enough = answer.split()
            want_us, want_way, want_enough = theirs(*case)
            if abs(int(ps) - 1e6 * want_us) > 0.5 + 1e-3 * want_us or way != want_way or \
                    (want_enough is not None and abs(int(enough) - want_enough) > 1):
                wrong.append(f"{case}: {answer}, torch: {want_us} {want_way} {want_enough}")
        self.assertEqual(wrong, [], some(wrong))


ABBR = {torch.float32: "f32", torch.bfloat16: "bf16"}


def annotation(t):
    return f"{ABBR[t.dtype]}{list(t.shape)}{list(t.stride())}cuda:0"


class Flops(unittest.TestCase):
    """Calls with random sizes, all in one graph; each of torch's formulas is used for the same."""

    def calls(self, r):
        def t(*size, dtype=torch.float32):
            return torch.empty(size, dtype=dtype)

        def n():
            return r.randint(1, 40)

        aten = torch.ops.aten
        for _ in range(20):
            b, m, k, o = n(), n(), n(), n()
            yield aten.mm.default, (t(m, k), t(k, o))
            yield aten.addmm.default, (t(o), t(m, k), t(k, o))
            yield aten.bmm.default, (t(b, m, k), t(b, k, o))
            yield aten.baddbmm.default, (t(b, m, o), t(b, m, k), t(b, k, o))
            c_in, c_out, side, kernel = n(), n(), r.randint(8, 20), r.choice((1, 3, 5))
            image, weight = t(b, c_in, side, side), t(c_out, c_in, kernel, kernel)
            options = ([1, 1], [kernel // 2] * 2, [1, 1], False, [0, 0], 1)
            yield aten.convolution.default, (image, weight, None, *options)
            yield aten.convolution.default, (image, t(c_in, c_out, kernel, kernel), None, [1, 1], [0, 0], [1, 1],
                                             True, [0, 0], 1)
            out = t(b, c_out, side, side)
            for mask in ([True, True, False], [True, False, False], [False, True, True]):
                yield aten.convolution_backward.default, (out, image, weight, [c_out], *options, mask)
            heads, q, s, d = r.randint(1, 4), 8 * n(), 8 * n(), 8 * r.randint(1, 16)
            query, key = t(b, heads, q, d, dtype=torch.bfloat16), t(b, heads, s, d, dtype=torch.bfloat16)
            yield aten._scaled_dot_product_flash_attention.default, (query, key, key)

    def test_formulas(self):
        calls, lines, parameters, want = [], [], [], []
        with FakeTensorMode():
            calls = list(self.calls(random.Random(11)))
            for i, (op, args) in enumerate(calls):
                texts = []
                for k, a in enumerate(args):
                    if isinstance(a, torch.Tensor):
                        parameters.append(f'x{i}_{k}: "{annotation(a)}"')
                        texts.append(f"x{i}_{k}")
                    else:
                        texts.append(repr(a))
                lines.append(f"        y{i} = torch.ops.{op}({', '.join(texts)})\n")
                out = None if "attention" in str(op) else op(*args)
                want.append(flop_registry[op.overloadpacket](*args, out_val=out))
        text = "class GraphModule(torch.nn.Module):\n    def forward(self, " + ", ".join(parameters) + "):\n" + \
            "".join(lines) + "        return (" + ", ".join(f"y{i}" for i in range(len(lines))) + ",)\n"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "g.txt"
            path.write_text(text)
            nodes = {x["name"]: x for x in json.loads(tuck("cost", "--json", path))["nodes"]}
        wrong = [f"{op}{[tuple(a.shape) for a in args if isinstance(a, torch.Tensor)]}: "
                 f"{nodes[f'y{i}']['flops']}, torch: {want[i]}"
                 for i, (op, args) in enumerate(calls) if nodes[f"y{i}"]["flops"] != want[i]]
        self.assertEqual(wrong, [], some(wrong))

    def test_all_have_one(self):
        """Tuck has a formula for everything torch has one for."""
        rows = json.loads(tuck("ops", "--json"))["operators"]
        ours = {row["name"].rsplit(".", 1)[0] if row["name"].startswith("aten.") else row["name"]
                for row in rows if row["flops"] != "none"}
        missing = [str(op) for op in flop_registry
                   if (str(op) if str(op).startswith("aten.") else f"higher_order.{op}") not in ours]
        self.assertEqual(missing, [])


if __name__ == "__main__":
    unittest.main()

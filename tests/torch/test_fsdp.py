"""The FSDP passes: compared with torch 2.12.1's recorded answers for those that 2.13 no longer has,
and with 2.13 itself for the others."""

import json
import logging
import re
import shutil
import tempfile
import unittest
from pathlib import Path

import torch
import torch.distributed as dist
import torch.fx
from torch._inductor.fx_passes import fsdp
from torch._inductor.pattern_matcher import stable_topological_sort
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.passes.fake_tensor_prop import FakeTensorProp
from torch.testing._internal.distributed.fake_pg import FakeStore

import fakes
import fxload
from harness import GRAPHS, one_test_each, some, test_name, tuck
from unordered import differences_but_order

RECORDED = json.loads((Path(__file__).parent / "old_fsdp.json").read_text())["cases"]

# Where Tuck behaves differently, and why: docs/differences.md.
OTHERWISE = {
    "getitem_1_used": "torch raises; Tuck leaves the all-gather alone",
    "CU": "torch drops a copy that the caller sees; Tuck leaves the parameter alone",
    "FUCU0": "torch leaves a use of a parameter without storage; Tuck leaves the parameter alone",
    "FCL0": "torch does not see uses in lists and drops their values; Tuck replaces them",
    "FCMU0": "both refuse",
    "getitem_1_used_before": "torch raises; Tuck rewrites, since it was read before",
    "buffer_is_input": "torch writes into the caller's buffer; Tuck leaves the all-gather alone",
    "FCK0": "torch does not see uses by keyword and drops their values; Tuck replaces them",
    "FCVCW0": "torch gives the view its first values; Tuck leaves the parameter alone",
    "FCYU0": "torch uses what overwrote the values; Tuck leaves the parameter alone",
    "FDU0": "torch uses values of another dtype; Tuck leaves the parameter alone",
}
REWRITES = {"getitem_1_used_before"}  # where torch raises
LEAVES = {"buffer_is_input": "pattern", "FCVCW0": "shared", "FCYU0": "mutated", "FDU0": "pattern",
          "CU": "pattern", "FUCU0": "pattern", "getitem_1_used": "shared"}  # fmt: skip


def optimize(text, passes, side=None):
    """The text that `tuck optimize` writes for this one, and its report."""
    with tempfile.TemporaryDirectory(prefix="tuck-fsdp-") as folder:
        before, after = Path(folder, "before.txt"), Path(folder, "after.txt")
        before.write_text(text)
        if side is not None:
            shutil.copy(side, Path(folder, "before.json"))
        report = json.loads(tuck("optimize", before, "-p", passes, "-o", after, "--json"))
        return after.read_text(), report["passes"][-1]


@one_test_each(RECORDED, name=lambda c: f"test_{c['pass'][:9]}_{c['case']}")
class OldFsdp(unittest.TestCase):
    def check(self, case):
        if case["case"] == "FCMU0":
            self.assertEqual(case["error"], "AssertionError")
            with self.assertRaisesRegex(AssertionError, "'m2' writes the unsharded parameter 'p'"):
                optimize(case["before"], case["pass"])
            return
        after, report = optimize(case["before"], case["pass"])
        if "error" in case:
            self.assertIn(case["case"], OTHERWISE)
            if case["case"] in REWRITES:
                self.assertIn("all_gather_into_tensor_out", after)
                return
            self.assertEqual(after, case["before"])
            self.assertTrue(report["left"])
            return
        found = differences_but_order(
            fxload.load(after).graph, fxload.load(case["after"]).graph
        )
        if case["case"] in LEAVES:
            self.assertFalse(report["changed"])
            self.assertEqual({e["reason"] for e in report["left"]}, {LEAVES[case["case"]]})
        if case["case"] in OTHERWISE:
            self.assertTrue(found, "torch and Tuck agree: docs/differences.md says otherwise")
        else:
            self.assertEqual(found, [], some(found))


# ---- dedup_fsdp_reduce_scatter, against 2.13 ----

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def scatters(inputs, lines, returned):
    """A text from short lines: "r1 = rs(a, 'sum', 2, '0')", "w1 = wait(r1)", "s = add(w1, w2)"."""
    long = {"rs(": "_c10d_functional.reduce_scatter_tensor.default(", "add(": "aten.add.Tensor(",
            "wait(": "_c10d_functional.wait_tensor.default(", "mul(": "aten.mul.Tensor("}
    body = []
    for line in lines:
        for short, name in long.items():
            line = line.replace(f"= {short}", f"= torch.ops.{name}")
        body.append(f"        {line}\n")
    given = ", ".join(f'{n}: "{t}"' for n, t in inputs.items())
    return (
        f"class step(torch.nn.Module):\n    def forward(self, {given}):\n{''.join(body)}"
        f"        return {returned}\n"
    )


FULL = "f32[8, 4][4, 1]cpu"
PAIR = ["r1 = rs(a, 'sum', 2, '0')", "r2 = rs(b, 'sum', 2, '0')", "w1 = wait(r1)", "w2 = wait(r2)"]
FOUR = [f"r{i} = rs({n}, 'sum', 2, '0')" for i, n in enumerate("abcd", 1)]
FOUR += [f"w{i} = wait(r{i})" for i in range(1, 5)]
AB = {"a": FULL, "b": FULL}
ABCD = {n: FULL for n in "abcd"}
DEDUP = {
    "pair": scatters(AB, [*PAIR, "s = add(w1, w2)"], "(s,)"),
    "avg": scatters(AB, [*[x.replace("sum", "avg") for x in PAIR], "s = add(w1, w2)"], "(s,)"),
    "max": scatters(AB, [*[x.replace("sum", "max") for x in PAIR], "s = add(w1, w2)"], "(s,)"),
    "chain": scatters(
        ABCD, [*FOUR, "s = add(w1, w2)", "t = add(s, w3)", "u = add(w4, t)"], "(u,)"
    ),
    "tree": scatters(
        ABCD, [*FOUR, "s = add(w1, w2)", "t = add(w3, w4)", "u = add(s, t)"], "(u,)"
    ),
    "partial_sum_used": scatters(ABCD, [*FOUR, "s = add(w1, w2)", "t = add(s, w3)"], "(t, s, w4)"),
    "wait_used": scatters(AB, [*PAIR, "s = add(w1, w2)"], "(s, w1)"),
    "groups": scatters(
        AB, [*[x.replace("b, 'sum', 2, '0'", "b, 'sum', 2, '1'") for x in PAIR], "s = add(w1, w2)"], "(s,)"
    ),
    "ops": scatters(AB, [PAIR[0], PAIR[1].replace("sum", "avg"), *PAIR[2:], "s = add(w1, w2)"], "(s,)"),
    "dtypes": scatters({"a": FULL, "b": "bf16[8, 4][4, 1]cpu"}, [*PAIR, "s = add(w1, w2)"], "(s,)"),
    "sizes": scatters({"a": FULL, "b": "f32[8, 1][1, 1]cpu"}, [*PAIR, "s = add(w1, w2)"], "(s,)"),
    "alpha": scatters(AB, [*PAIR, "s = add(w1, w2, alpha = 2)"], "(s,)"),
    "itself": scatters(AB, [PAIR[0], PAIR[2], "s = add(w1, w1)"], "(s, b)"),
    "between": scatters(
        ABCD, [*FOUR, "h = mul(w4, 0.5)", "s = add(w1, w3)", "t = add(w2, s)"], "(t, h)"
    ),
}


def torch_dedup(text):
    """What torch 2.13 does with it."""
    mode = FakeTensorMode()
    module = fxload.load(text).module()
    with mode:
        given = []
        for node in module.graph.find_nodes(op="placeholder"):
            found = re.match(r"(\w+)\[([\d, ]+)\]", node.meta["annotation"].strip("\"'"))
            given.append(torch.empty([int(n) for n in found[2].split(",")], dtype=DTYPES[found[1]]))
    FakeTensorProp(module, mode).propagate_dont_convert_inputs(*given)
    with V.set_fake_mode(mode):
        fsdp.dedup_fsdp_reduce_scatter(module)
    return module.graph


@one_test_each(DEDUP, name=lambda name: f"test_{name}")
class Dedup(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
        cls.addClassCleanup(dist.destroy_process_group)

    def check(self, name):
        after, _ = optimize(DEDUP[name], "dedup_fsdp_reduce_scatter(compat=torch)")
        found = differences_but_order(fxload.load(after).graph, torch_dedup(DEDUP[name]))
        self.assertEqual(found, [], some(found))


# ---- pre_bucket_fsdp_collectives, against 2.13 ----

PRE_BUCKETED = [
    GRAPHS / f"fsdp/{name}.txt"
    for name in ("mlp_fw", "mlp_bw", "llama_fw", "llama_bw", "llama_regather_bw", "llama_hsdp_fw", "bert_fw")
]


@one_test_each(PRE_BUCKETED, name=test_name)
class PreBucket(unittest.TestCase):
    """With a given cap: the same graph, up to names and order."""

    @classmethod
    def setUpClass(cls):
        level = fsdp.logger.level
        fsdp.logger.setLevel(logging.WARNING)  # it tells what it did
        cls.addClassCleanup(fsdp.logger.setLevel, level)

    def check(self, path):
        text = path.read_text().replace("cuda:0", "cpu")
        text = text.replace("device(type='cuda', index=0)", "device(type='cpu')")
        for cap in (50.0, 300.0):
            with fakes.groups(path):
                module, mode = fakes.fake_module(text)
                with V.set_fake_mode(mode):
                    fsdp.pre_bucket_fsdp_collectives(module, "default", cap)
            stable_topological_sort(module.graph)  # as Inductor does behind this pass
            passes = f"pre_bucket_fsdp_collectives(cap_mb={cap},compat=torch)"
            after, _ = optimize(text, passes, path.with_suffix(".json"))
            found = differences_but_order(fxload.load(after).graph, module.graph)
            self.assertEqual(found, [], f"{cap} MiB: {some(found)}")

"""Bucketing compared with torch 2.13's: with compat=torch the same buckets and the same merged
graphs; without, only the differences that docs/differences.md lists."""

import json
import re
import shutil
import tempfile
import unittest
from functools import lru_cache
from pathlib import Path

import torch
from torch._inductor.fx_passes import bucketing, fsdp
from torch._inductor.pattern_matcher import stable_topological_sort
from torch._inductor.virtualized import V

import fakes
import fxload
from harness import GRAPHS, REBUILT, graphs, one_test_each, some, tuck
from unordered import differences_but_order

bucketing.logger.setLevel("WARNING")  # it says on every call what it does not do

KINDS = {
    "all_gather": "all_gather_into_tensor.default",
    "reduce_scatter": "reduce_scatter_tensor.default",
    "all_reduce": "_c10d_functional.all_reduce.default",
}
FSDP_WAIT = {
    "all_gather": fsdp.is_fsdp_all_gather_wait,
    "reduce_scatter": fsdp.is_fsdp_reduce_scatter_wait,
}
HINT = 64  # of every symbol


def on_cpu(text):
    return text.replace("cuda:0", "cpu").replace("device(type='cuda', index=0)", "device(type='cpu')")


def kinds_in(text):
    """Kinds that occur more than once."""
    return [kind for kind, call in KINDS.items() if text.count(call) > 1]


def symbols_in(text):
    return sorted(set(re.findall(r"\b[su]\d+\b", "\n".join(re.findall(r'"([^"\n]*)"', text)))))


CORPUS = [path for path in graphs(*REBUILT) if kinds_in(path.read_text())]


@lru_cache(maxsize=2)
def text_of(path):
    return on_cpu(path.read_text())


def optimize(path, passes, text=None):
    """What `tuck optimize` writes for the graph on cpu, and its report."""
    text = text or text_of(path)
    with tempfile.TemporaryDirectory(prefix="tuck-bucket-") as folder:
        before, after = Path(folder, path.name), Path(folder, "after.out")
        before.write_text(text)
        side = path.with_name(re.sub(r"\.rank\d+$", "", path.stem) + ".json")
        if side.exists():
            shutil.copy(side, folder)
        assume = [f"--assume={s}={HINT}" for s in symbols_in(text)]
        said = tuck("optimize", before, "-p", passes, "-o", after, "--json", *assume)
        return after.read_text(), json.loads(said)["passes"]


def torch_module(path, text=None):
    text = text or text_of(path)
    return fakes.fake_module(text, {s: HINT for s in symbols_in(text)})


def torch_find(module, kind, cap, mode="default", only_fsdp=False):
    keep = FSDP_WAIT[kind] if only_fsdp else None
    args = [module, lambda index: cap, keep]
    if kind != "all_reduce":
        args.append(mode)
    found = getattr(bucketing, f"bucket_{kind}_by_mb")(*args)
    return [[node.name for node in bucket] for bucket in found]


def found_by(report):
    return [bucket["members"] for bucket in report["buckets"]]


def listed_differences(report, answer):
    """Why Tuck's buckets differ from torch's: lines of docs/differences.md."""
    closed = {bucket["closed_by"] for bucket in report["buckets"]}
    left = {entry["reason"] for entry in report["left"]}
    found = (closed | left) & {"dependence", "order", "group_of_one", "mutated", "layout", "alignment"}
    if report.get("counts", {}).get("duplicate waits removed"):
        found.add("waits")
    if len({bucket["group"] for bucket in report["buckets"]}) > 1:
        found.add("groups")  # whose collectives stand among each other
    if any("tensor_out" in name for bucket in answer for name in bucket):
        found.add("out=")
    return found


@one_test_each(CORPUS)
class Find(unittest.TestCase):
    """The finders, all kinds, caps and filters over one loaded graph."""

    CASES = [(2000, "default", False), (50, "default", False), (1, "default", False)]

    def check(self, path):
        with fakes.groups(path):
            module, _ = torch_module(path)
            asked, answers = [], []
            for kind in kinds_in(text_of(path)):
                cases = list(self.CASES)
                if kind in FSDP_WAIT:
                    cases.append((50, "default", True))
                if kind == "all_gather":
                    cases.append((50, "custom_ops_multidtype", False))
                for cap, mode, only_fsdp in cases:
                    keep = "fsdp" if only_fsdp else "none"
                    asked.append(
                        f"bucket_{kind}_by_mb(cap_mb={cap},mode={mode},filter={keep},compat=torch)"
                    )
                    answers.append(torch_find(module, kind, cap, mode, only_fsdp))
        without = [question.replace("compat=torch", "compat=none") for question in asked]
        _, reports = optimize(path, ",".join(asked + without))
        for question, answer, report in zip(asked, answers, reports):
            self.assertEqual(found_by(report), answer, question)
        for question, answer, report in zip(without, answers, reports[len(asked) :]):
            if found_by(report) != answer:
                self.assertTrue(listed_differences(report, answer), question)


# ---- merged graphs ----


def inline_numbers(graph, value_of):
    """Computed sizes become numbers: torch and Tuck add and multiply them in different ways."""
    for node in list(graph.nodes):
        value = value_of(node)
        if value is None or node.op != "call_function":
            continue
        for user in list(node.users):
            def put(old, node=node, value=value):
                return value if old is node else old

            user.args = torch.fx.node.map_arg(user.args, put)
            user.kwargs = torch.fx.node.map_arg(user.kwargs, put)
        graph.erase_node(node)
    return graph


def hinted(node):
    """For a node that torch made."""
    value = node.meta.get("val")
    return value.node.hint if isinstance(value, torch.SymInt) else None


def stated(node):
    """For a node that Tuck printed."""
    found = re.match(r"Sym\((.*)\)$", (node.meta.get("annotation") or "").strip("\"'"))
    if not found:
        return None
    return eval(re.sub(r"\b[su]\d+\b", str(HINT), found[1]), {"__builtins__": {}})


def torch_merge(path, kind, cap, mode, only_fsdp=False, text=None):
    module, fake = torch_module(path, text)
    family, prefix = (fsdp, "bucket_fsdp_") if only_fsdp else (bucketing, "bucket_")
    args = [module, lambda index: cap]
    if kind != "all_reduce":
        args.append(mode)
    with V.set_fake_mode(fake):
        getattr(family, prefix + kind)(*args)
    stable_topological_sort(module.graph)  # as Inductor does behind these passes
    module.graph.lint()
    return module.graph


def compare(test, path, kind, cap, mode, only_fsdp=False):
    try:
        with fakes.groups(path):
            expected = torch_merge(path, kind, cap, mode, only_fsdp)
    except AssertionError as e:
        if "Expected single user" not in str(e):
            raise
        with test.assertRaisesRegex(AssertionError, "torch raises here"):
            optimize(path, f"bucket_{kind}(cap_mb={cap},mode={mode},compat=torch)")
        return
    prefix = "bucket_fsdp_" if only_fsdp else "bucket_"
    after, _ = optimize(path, f"{prefix}{kind}(cap_mb={cap},mode={mode},compat=torch)")
    found = fxload.load(fxload.fix_class_name(after)).graph
    if symbols_in(text_of(path)):
        expected, found = inline_numbers(expected, hinted), inline_numbers(found, stated)
    wrong = differences_but_order(found, expected)
    test.assertEqual(wrong, [], f"{kind} {cap} {mode}: {some(wrong)}")


@one_test_each([p for p in CORPUS if not p.is_relative_to(GRAPHS / "big")])
class Merge(unittest.TestCase):
    def check(self, path):
        for kind in kinds_in(text_of(path)):
            compare(self, path, kind, 50, "default")


# One graph of each sort in every mode.
MODES = [
    GRAPHS / name
    for name in (
        "fsdp/mlp_fw.txt",
        "fsdp/mlp_bw.txt",
        "fsdp/llama_dynamic_fw.txt",
        "fsdp/llama_dynamic_bw.txt",
        "exec/llama_hsdp_fw.rank2.txt",
        "exec/llama_hsdp_bw.rank2.txt",
        "tp/llama_fsdp_tp_bw.txt",
        "ddp/gpt2_dynamic_bw.txt",
    )
]


@one_test_each(MODES)
class Modes(unittest.TestCase):
    def check(self, path):
        for kind in kinds_in(text_of(path)):
            modes = ["custom_ops", "coalesced"]
            if kind == "all_gather":
                modes.append("custom_ops_multidtype")
            for mode in modes:
                compare(self, path, kind, 2000, mode)
            if kind != "all_reduce":
                compare(self, path, kind, 2000, "default", only_fsdp=True)


@one_test_each([GRAPHS / "big" / "llama32_fsdp_bw.txt"])
class Big(unittest.TestCase):
    def check(self, path):
        for kind in ("all_gather", "reduce_scatter"):
            compare(self, path, kind, 2000, "default")


# ---- each difference of docs/differences.md, on a minimal graph ----

AR, AG = "_c10d_functional.all_reduce.default(", "_c10d_functional.all_gather_into_tensor.default("


SHARD, WHOLE = "f32[4][1]cpu", "f32[8][1]cpu"


def step(lines, returned):
    """A text from short lines, of inputs a, b and c: "r = ar(a, 'sum', '0')", "w = wait(r)"."""
    long = {"ar": AR, "ag": AG, "wait": "_c10d_functional.wait_tensor.default("}
    long |= {op: f"aten.{op}.default(" for op in ("neg", "copy_")}
    types = dict.fromkeys("abc", SHARD)
    body = []
    for line in lines:
        name, call, given = re.fullmatch(r"(\w+) = (\w+)\((.*)\)", line).groups()
        types[name] = WHOLE if call == "ag" else types[given.split(",")[0]]
        body.append(f'        {name}: "{types[name]}" = torch.ops.{long[call]}{given})\n')
    inputs = ", ".join(f'{n}: "{SHARD}"' for n in "abc")
    return (
        f"class step(torch.nn.Module):\n    def forward(self, {inputs}):\n{''.join(body)}"
        f"        return {returned}\n"
    )


def reduces(*names):
    return [f"{c} = {k}" for n in names for c, k in ((f"r{n}", f"ar({n}, 'sum', '0')"), (f"w{n}", f"wait(r{n})"))]


SMALL = {
    # a dependent collective: torch leaves it out for good
    "dependence": (
        "all_reduce",
        step([*reduces("a", "b"), "n = neg(wa)", *reduces("n", "c")], "(wb, wn, wc)"),
        [["ra", "rb", "rc"]],
        [["ra", "rb"], ["rn", "rc"]],
    ),
    # p uses a result and is issued before q, which the second gather needs: torch lets them change places
    "order": (
        "all_gather",
        step(
            ["ga = ag(a, 2, '0')", "wa = wait(ga)", "p = ar(wa, 'sum', '0')", "q = ar(c, 'sum', '0')"]
            + ["wq = wait(q)", "gq = ag(wq, 2, '0')", "w = wait(gq)", "wp = wait(p)"],
            "(w, wp)",
        ),
        [["ga", "gq"]],
        [],
    ),
    # an operand written before the wait
    "mutated": (
        "all_reduce",
        step(
            ["ra = ar(a, 'sum', '0')", "k = copy_(a, c)", "wa = wait(ra)", *reduces("b", "c")],
            "(wa, wb, wc, k)",
        ),
        [["ra", "rb", "rc"]],
        [["rb", "rc"]],
    ),
    # two waits of one collective: torch lists it twice, and raises when it merges
    "waits": (
        "all_reduce",
        step([*reduces("a"), "v = wait(ra)", *reduces("b")], "(wa, v, wb)"),
        [["ra", "ra", "rb"]],
        [["ra", "rb"]],
    ),
}


@one_test_each(SMALL, name=lambda name: f"test_{name}")
class Differences(unittest.TestCase):
    def check(self, name):
        kind, text, torchs, tucks = SMALL[name]
        path = GRAPHS / "step.txt"  # no such file: no side-car
        module, _ = torch_module(path, text)
        self.assertEqual(torch_find(module, kind, 2000), torchs)
        passes = f"bucket_{kind}_by_mb(compat=torch),bucket_{kind}_by_mb"
        _, (same, own) = optimize(path, passes, text)
        self.assertEqual(found_by(same), torchs)
        self.assertEqual(found_by(own), tucks)

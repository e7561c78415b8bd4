"""The small graphs of docs/differences.md, run by PyTorch: the output in
tests/golden/passes/differences.txt for compat=torch is what PyTorch does with them, buckets or
graphs up to names and order, or the exception it raises; and the output without compat differs."""

import logging
import re
import unittest

import torch
import torch.distributed as dist
from torch._inductor.fx_passes import bucketing, ddp_fusion, fsdp
from torch._inductor.pattern_matcher import stable_topological_sort
from torch._inductor.virtualized import V
from torch.fx.passes.shape_prop import _extract_tensor_metadata
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._pytree import tree_map

import fakes
import fxload
from harness import ROOT, one_test_each, some
from test_passes_ddp import structure
from unordered import differences_but_order

GOLDEN = ROOT / "tests" / "golden" / "passes" / "differences.txt"
bucketing.logger.setLevel("WARNING")
logging.getLogger("torch._subclasses.fake_tensor").setLevel("CRITICAL")  # refusals that are expected


def read_cases():
    """One per graph: {title, passes, options, graph, compat: {stdout, stderr}, none: …}"""
    found = {}
    for part in re.split(r"^--- # ", GOLDEN.read_text(), flags=re.M)[1:]:
        title, rest = part.split("\n", 1)
        title, whose = title.rsplit(": ", 1)
        passes = re.search(r"--passes '(\w+)\((.*)\)'", rest)
        pieces = re.split(r"^--- (file step.txt|stdout|stderr|exit \d+)\n", rest, flags=re.M)
        pieces = dict(zip(pieces[1::2], pieces[2::2]))
        options = dict(o.split("=") for o in passes[2].split(","))
        key = f"{passes[1]} {title}"
        case = found.setdefault(key, {"name": passes[1], "options": options})
        pieces.setdefault("stdout", "")
        case["graph"] = pieces["file step.txt"]
        case[options["compat"]] = pieces
    return found


CASES = read_cases()

# Where PyTorch raises and Tuck leaves the collectives alone, with compat=torch too.
RAISES = {
    "bucket_all_gather dtypes that do not align": RuntimeError,
    "bucket_all_reduce a size without a hint": RuntimeError,
}

# Where PyTorch merges, and reads or writes in another order; Tuck refuses with compat=torch.
REFUSED = {
    "bucket_all_gather a buffer that is filled again before it is gathered again",
    "bucket_all_reduce a list of writes between two all-reduces",
}


def buckets_in(report):
    """The members of each row of a report."""
    rows = re.findall(r"^  all_\w+ .*?(?:cap|key|dependence|order|end)\s+(.*)$", report, flags=re.M)
    return [row.split(" = ")[-1].split() for row in rows]


def buckets_text(pieces):
    """A report without its first lines, which repeat the options; an error unchanged."""
    return "\n".join(x for x in pieces["stderr"].splitlines() if not x.startswith(("bucket_", "fuse_", "sched")))


def without_hint(module, mode):
    """A data-dependent size."""
    size = mode.shape_env.create_unbacked_symint()
    for node in module.graph.nodes:
        if "val" in node.meta:
            with mode:
                node.meta["val"] = torch.empty([size])


def run_torch(case):
    """The finder's buckets, or the graph after the pass."""
    module, mode = fakes.fake_module(case["graph"])
    if "[u0]" in case["graph"]:
        without_hint(module, mode)
    name, options = case["name"], case["options"]
    cap = float(options.get("cap_mb", "2000").split(":")[0])
    if "cap_mb" in options:
        caps = [float(c) for c in options["cap_mb"].split(":")]
        args = [module, lambda index: caps[min(index, len(caps) - 1)]]
    else:
        args = [module, lambda index: cap]
    with V.set_fake_mode(mode):
        if name.endswith("_by_mb"):
            return [[n.name for n in bucket] for bucket in getattr(bucketing, name)(*args)]
        if name.startswith("dedup_"):
            getattr(fsdp, name)(module)
        elif name.startswith("bucket_"):
            family = fsdp if "fsdp" in name else bucketing
            if "all_reduce" not in name:
                args.append(options.get("mode", "default"))
            getattr(family, name)(*args)
        else:
            for node in module.graph.nodes:
                if "val" in node.meta:
                    node.meta["tensor_meta"] = tree_map(_extract_tensor_metadata, (node.meta["val"],))[0]
            more = {"bucket_size_mb": 25} if name.startswith("fuse") else {}
            getattr(ddp_fusion, name)(module.graph, **more)
            return module.graph
    stable_topological_sort(module.graph)
    module.graph.lint()
    return module.graph


def values_of(text, graph=None):
    """The results of a graph for inputs derived from their positions. Its collectives have no other
    participants."""
    module = fxload.load(fxload.fix_class_name(text)).module()
    fake = fakes.inputs_of(fakes.fake_module(text)[0])
    run = torch.fx.GraphModule(torch.nn.Module(), graph or module.graph)
    return run(*[torch.arange(x.numel(), dtype=x.dtype).reshape(x.shape) + 100 * i for i, x in enumerate(fake)])


def slug(key):
    return "test_" + re.sub(r"\W+", "_", key)


@one_test_each(CASES, name=slug)
class Differences(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
        cls.addClassCleanup(dist.destroy_process_group)

    def check(self, key):
        case = CASES[key]
        same, own = case["torch"], case["none"]
        if key not in RAISES:
            self.assertNotEqual(same["stdout"] + buckets_text(same), own["stdout"] + buckets_text(own))
        said = re.search(r"PyTorch raises (\w+)", same["stderr"])
        if said or key in RAISES:
            with self.assertRaises(Exception) as raised:
                run_torch(case)
            name = type(raised.exception).__name__
            self.assertEqual(name, said[1] if said else RAISES[key].__name__, raised.exception)
            return
        answer = run_torch(case)
        if key in REFUSED:
            self.assertIn("exit 6", same)
            self.assertIn("PyTorch merges them all the same, and computes something else", same["stderr"])
            before, after = values_of(case["graph"]), values_of(case["graph"], answer)
            self.assertFalse(all(torch.equal(a, b) for a, b in zip(before, after)))
            return
        if isinstance(answer, list):
            self.assertEqual(buckets_in(same["stderr"]), answer)
            self.assertNotEqual(buckets_in(own["stderr"]), answer)
            return
        found = fxload.load(same["stdout"]).graph
        if case["name"].startswith(("bucket", "dedup")):
            wrong = differences_but_order(found, answer)
            self.assertEqual(wrong, [], some(wrong))
        else:
            self.assertEqual(structure(found), structure(answer))

"""PyTorch's overlap scheduler on a graph's text, with given times, beside Tuck's.

    times = random_times(path, seed)            ns by name of node, for both
    torch_result(path, times, options)          (order, buckets) or what torch raises
    tuck_result(path, times, options)           the same from `tuck optimize`

An order is a list of nodes: names of the text, and what a new node calls where merging made it.
"""

import copy
import functools
import json
import logging
import math
import random
import re
import shutil
import tempfile
from pathlib import Path

import torch
import torch.utils._runtime_estimation as estimation
from torch._inductor import config
from torch._inductor.fx_passes import overlap_scheduling
from torch._inductor.fx_passes.overlap_preserving_bucketer import OverlapPreservingBucketer
from torch._inductor.virtualized import V
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

import fakes
import fxload
from harness import tuck

# Fake tensors of a GPU where there is none: a device guard that does nothing.
torch._C._ensureCUDADeviceGuardSet()
torch.Tensor.copy_ = lambda self, src, non_blocking=False: torch.ops.aten.copy_.default(self, src, non_blocking)
DRAM_GBPS = 2000.0  # for what Inductor is going to fuse; every other time that counts is given
estimation.get_gpu_dram_gbps = lambda *a: DRAM_GBPS
estimation.get_device_tflops = lambda *a: 900.0
for name in ("", ".fx_passes.bucketing", ".fx_passes.fsdp"):
    logging.getLogger("torch._inductor" + name).setLevel(logging.ERROR)

LATENCY_MS = 0.0078125
CLUSTER = {"schema": 1, "device": "h100", "per_node": 8, "nodes": 32,
           "compute": {"dram_gbps": DRAM_GBPS, "dram_efficiency": 1}}
HINT = 64  # of every symbol
HINTS = {"layer_routed": 256, "moe_routed": 5}  # there all rows of one rank add up to what other nodes have


def symbols(text):
    return set(re.findall(r"\b[su]\d+\b", text))


def hint_of(path):
    return next((hint for word, hint in HINTS.items() if word in Path(path).name), HINT)


class Propagate(FakeTensorProp):
    """Numbers that are read from data have the value of their symbol's hint; torch makes symbols without one."""

    def run_node(self, n):
        return n.meta["val"] if n.target is torch.ops.aten._local_scalar_dense.default else super().run_node(n)


def text_of(path):
    return Path(path).read_text()


class Step:
    """A graph's text for torch, read and propagated once for several runs one after the other."""

    def __init__(self, path):
        with fakes.groups(Path(path)):
            text = text_of(path)
            self.gm, self.mode = fakes.fake_module(text, dict.fromkeys(symbols(text), hint_of(path)))
            Propagate(self.gm, self.mode).propagate_dont_convert_inputs(*fakes.inputs_of(self.gm))
        self.names = {n.name for n in self.gm.graph.nodes}

    def module(self):
        """One that a pass may change."""
        gm = torch.fx.GraphModule(self.gm, copy.deepcopy(self.gm.graph))
        assert self.names == {n.name for n in gm.graph.nodes}
        return gm


read_step = functools.lru_cache(maxsize=1)(Step)


@functools.lru_cache(maxsize=1)
def names_of(path):
    return {n.name for n in fxload.load(fxload.fix_class_name(text_of(path))).graph.nodes}


@functools.lru_cache(maxsize=1)
def costed(path):
    """Names of nodes that take time by themselves, in order."""
    rows = json.loads(tuck("cost", path, "--json", f"--assume=*={hint_of(path)}"))["nodes"]
    return [(r["name"], r["bound"], r["ns"]) for r in rows if r["bound"] != "nothing"]


def random_times(path, seed):
    """ns: some kernels take next to nothing, some much, and collectives more."""
    rng = random.Random(f"{Path(path).stem} {seed}")
    scale = 10 ** rng.uniform(-1, 1)
    times = {}
    for name, bound, _ in costed(path):
        ns = rng.choice([0, 1000, 20000, 300000]) * rng.random()
        times[name] = round(ns * (1 if bound != "collective" else scale), 3)
        if bound == "collective":
            times[name] += 8000
    return times


def modelled_times(path):
    return {name: ns for name, _, ns in costed(path) if ns is not None}


def token(node, names):
    return node.name if node.name in names else str(node.target)


def torch_result(path, times, options=None, made=None):
    """made: FSDP's collectives are merged first, and made.ms(node) is the time of a node that comes of it."""
    options = dict(options or {})
    autofix = options.pop("overlap_scheduling_autofix_cycles", False)
    found = []
    real = OverlapPreservingBucketer._apply_bucket

    def apply(self, bucket):
        found.append([n.name for n in bucket.collectives])
        return real(self, bucket)

    step = read_step(path)
    names = step.names
    with fakes.groups(Path(path)):

        def time_of(node, size=None):
            if size == 0:
                return LATENCY_MS
            if node.target is torch.ops._c10d_functional.wait_tensor.default:
                return None
            if made is not None and node.name not in names:
                return made.ms(node)
            ns = times.get(node.name)
            return None if ns is None else round(ns * 1000) / 1e9  # whole picoseconds, in ms

        OverlapPreservingBucketer._apply_bucket = apply
        overlap_scheduling.get_group_name.cache_clear()
        try:
            with V.set_fake_mode(step.mode), torch.no_grad(), step.mode, config.patch(
                {"aten_distributed_optimizations.overlap_scheduling_autofix_cycles": autofix}
            ):
                out = overlap_scheduling.schedule_overlap_bucketing(step.module(), **{
                    "collective_bucketing": True, "pre_bucketing_fsdp_collectives": made is not None,
                    "compute_estimator": "analytical", "custom_runtime_estimation": time_of,
                    "enable_fusion_regions": True, **options})
        finally:
            OverlapPreservingBucketer._apply_bucket = real
    order = [token(n, names) for n in out.graph.nodes if n.op not in ("placeholder", "output")]
    return order, found


def word(value):
    return "None" if value is None else str(value)


def tuck_result(path, times, options=None, made=None):
    given = {"latency_ms": LATENCY_MS, **(options or {}), "compat": "torch"}
    passes = "overlap_scheduling" if made is None else "schedule_overlap_bucketing"
    times = times if made is None else {**times, **made.ns}
    listed = ",".join(f"{k}={word(v)}" for k, v in given.items())
    with tempfile.TemporaryDirectory(prefix="tuck-overlap-") as folder:
        before, after, profile, cluster = (Path(folder, n) for n in
                                           (Path(path).name, "after.out", "times.json", "cluster.json"))
        before.write_text(text_of(path))
        side = Path(path).with_name(re.sub(r"\.rank\d+$", "", Path(path).stem) + ".json")
        if side.exists():
            shutil.copy(side, folder)
        profile.write_text(json.dumps({"schema": 1, "unit": "ns", "nodes": times}))
        cluster.write_text(json.dumps(CLUSTER))
        said = tuck("optimize", before, "-p", f"{passes}({listed})", "-o", after, "--json",
                    "--profile", profile, "--cluster", cluster, "--no-times", f"--assume=*={hint_of(path)}")
        result = after.read_text()
    names = names_of(path) if made is None else made.names
    graph = fxload.load(fxload.fix_class_name(result)).graph
    order = [token(n, names) for n in graph.nodes if n.op not in ("placeholder", "output")]
    return order, [b["members"] for b in json.loads(said)["passes"][-1]["buckets"]]


def pre_bucketed(path, cap, mode):
    """What `schedule_overlap_bucketing` orders: a text, with FSDP's collectives in buckets of `cap` MiB."""
    with tempfile.TemporaryDirectory(prefix="tuck-overlap-") as folder:
        after = Path(folder, "after.out")
        tuck("optimize", path, "-p", f"pre_bucket_fsdp_collectives(cap_mb={cap},mode={mode},compat=torch)", "-o", after,
             "--no-times", f"--assume=*={hint_of(path)}")
        return after.read_text()


def elements(node):
    """Of a result with fixed sizes; a list is not annotated, but its items are."""
    if "annotation" not in node.meta:
        return sum(map(elements, node.users))
    sizes = fakes.TENSOR.match(node.meta["annotation"].strip("\"'"))[2]
    return math.prod(int(n) for n in sizes.split(",")) if sizes else 1


def differences(expected, found):
    """Sentences; [] where both are the same."""
    said = []
    for i, (a, b) in enumerate(zip(expected[0], found[0])):
        if a != b:
            said.append(f"node {i}: torch has {a}, Tuck {b}")
            break
    if len(expected[0]) != len(found[0]):
        said.append(f"{len(expected[0])} nodes, Tuck has {len(found[0])}")
    if expected[1] != found[1]:
        said.append(f"buckets: {expected[1]}, Tuck has {found[1]}")
    return said

"""overlap_scheduling with compat=torch beside torch 2.13's overlap scheduler, given the same times and sizes: the same
order of nodes and the same buckets, or both refuse.

    TUCK_SOAK=1     also the other large steps, and 2,000 random ones with seeds that are drawn
    TUCK_STEPS=n    so many random steps
    TUCK_SEED=n     from this one on
"""

import json
import os
import tempfile
import time
import unittest
from pathlib import Path

import torch
from torch._inductor.fx_passes import node_runtime_estimation

import fxload
import overlap
from harness import GRAPHS, graphs, one_test_each
from overlap_random import random_step

node_runtime_estimation._log_compute_estimations = lambda *a: None  # a fifth of the scheduler's time

# Torch's order has a read or a write on the wrong side of a write, and Tuck says so.
BROKEN = {"fsdp2_ops_step.txt", "pipeline_p2p_fw.txt"}
SOAK = bool(os.environ.get("TUCK_SOAK"))
STEPS = int(os.environ.get("TUCK_STEPS") or (2000 if SOAK else 500))
SEED = int(os.environ.get("TUCK_SEED") or (time.time_ns() // 1000 % 10**9 if SOAK else 0))
LONG_STEPS, AT_ONCE = 60, 20  # the others are short, which is quick
LARGE = sorted([*(GRAPHS / "big").glob("*.txt"), *(GRAPHS.parent / "large").glob("*.txt")])


def refused(test, said, run):
    with test.assertRaises(AssertionError, msg=said) as refusal:
        run()
    return str(refusal.exception)


def compare(test, path, times, options=None, made=None):
    """True: torch has an order, and Tuck the same. made: FSDP's collectives are merged first."""

    def ours():
        return overlap.tuck_result(path, times, options, made=made)

    try:
        expected = overlap.torch_result(path, times, options, made)
    except (AssertionError, AttributeError, RecursionError, KeyError, RuntimeError) as e:
        test.assertIn("PyTorch", refused(test, f"torch raises {e!r:.200}", ours))
        return False
    if path.name in BROKEN:
        test.assertIn("over a write or an effect", refused(test, "torch breaks an order", ours))
        return False
    test.assertEqual(overlap.differences(expected, ours()), [])
    return True


class Made:
    """Times of what pre_bucket_fsdp_collectives makes: 0, and for collectives by their size, on both sides."""

    def __init__(self, path, cap, mode="default"):
        text = overlap.pre_bucketed(path, cap, mode)
        old = overlap.names_of(path)
        with tempfile.TemporaryDirectory(prefix="tuck-overlap-") as folder:
            after = Path(folder, path.name)
            after.write_text(text)
            nodes = {n.name: n for n in fxload.load(fxload.fix_class_name(text)).graph.nodes}
            costs = [nodes[name] for name, _, _ in overlap.costed(after) if name not in old]
        self.names = old & set(nodes)
        self.targets = {str(n.target) for n in costs}
        sizes = {n.name: overlap.elements(n) for n in costs if is_collective(n)}
        self.ns = {n.name: time_of_size(sizes.get(n.name)) for n in costs}

    def ms(self, node):
        if str(node.target) not in self.targets:
            return None
        values = torch.utils._pytree.tree_leaves(node.meta["val"])
        return time_of_size(sum(v.numel() for v in values) if is_collective(node) else None) / 1e6


def is_collective(node):
    return "_c10d_functional" in str(node.target)


def time_of_size(elements):
    return 0 if elements is None else 8000 + elements // 64


def gathers(path):
    return path.read_text().count("all_gather_into_tensor.default(")


def merged_first(path, cap, options):
    """Options and what is made, if FSDP's collectives are merged up to `cap` MiB; None: they are not."""
    if cap is None:
        return options, None
    given = {**options, "pre_bucketing_fsdp_collectives_bucket_cap_mb": cap}
    return given, Made(path, cap, options.get("bucket_mode", "default"))


def given_caps(path):
    """MiB: FSDP's collectives are merged first, up to these."""
    if gathers(path) < 2:
        return []
    return (2, 100) if SOAK or path.stem in ("bert_fw", "vit_world4_fw", "llama_fsdp_ep_bw") else (100,)


# Torch's configuration, one key or two at a time; each graph has one of them, in `make soak` all.
KEYS = [
    {"collective_bucketing": False},
    {"max_compute_pre_fetch": 1},
    {"max_memory_increase_gb": None, "max_memory_increase_ratio": None},
    {"max_memory_increase_gb": None},
    {"max_memory_increase_gb": 0.0, "max_memory_increase_ratio": 0.0},
    {"compute_overlap_multipler": 0.5},
    {"compute_overlap_multipler": 2.0},
    {"max_in_flight_gb": 0.001},
    {"max_coll_distance": 3},
    {"bucket_exposed_first": True},
    {"bucket_exposed_first": False},
    {"bucket_only_internode_comms": True},
    {"enable_fusion_regions": False},
    {"prioritize_bucketing_during_scheduling": False},
    {"bucket_mode": "custom_ops"},
    {"bucket_mode": "custom_ops_multidtype"},
    {"bucket_mode": "coalesced"},
    {"overlap_scheduling_autofix_cycles": True},
    {"max_off_bucket_gb": None},
]
CORPUS = graphs("ddp", "fsdp", "tp", "moe", "exec")


@one_test_each(CORPUS)
class Graphs(unittest.TestCase):
    """Times of the model, with kernels that Inductor is going to fuse as torch counts them, with and without FSDP's
    collectives merged first; and random times with another configuration."""

    def check(self, path):
        times, other, turn = overlap.modelled_times(path), overlap.random_times(path, 1), CORPUS.index(path)
        caps = [None, *given_caps(path)]
        for cap in caps:
            self.compare(path, times, cap, {})
        for key in KEYS if SOAK else [KEYS[turn % len(KEYS)]]:
            for cap in caps if SOAK else caps[-1:]:
                self.compare(path, other, cap, key)

    def compare(self, path, times, cap, key):
        with self.subTest(cap=cap, **key):
            compare(self, path, times, *merged_first(path, cap, key))


@one_test_each(LARGE if SOAK else [p for p in LARGE if p.stem in ("gpt2_xl_ddp_bw", "moe16_ep_fsdp_fw")],
               name=lambda path: f"test_{path.stem}")  # fmt: skip
class Large(unittest.TestCase):
    def check(self, path):
        self.assertTrue(compare(self, path, overlap.modelled_times(path)))
        if SOAK:
            compare(self, path, overlap.random_times(path, 1), {"enable_fusion_regions": False})
            if gathers(path) > 1:
                compare(self, path, overlap.modelled_times(path), *merged_first(path, 100, {}))


@one_test_each(range(0, STEPS, AT_ONCE), name=lambda first: f"test_from_{first}")
class Random(unittest.TestCase):
    def check(self, first):
        with tempfile.TemporaryDirectory(prefix="tuck-overlap-") as folder:
            for seed in range(SEED + first, SEED + first + AT_ONCE):
                text, side, options, cap = random_step(seed, short=first >= LONG_STEPS and not SOAK)
                path = Path(folder, f"step{seed}.txt")
                path.write_text(text)
                path.with_suffix(".json").write_text(json.dumps(side))
                with self.subTest(seed=seed, cap=cap, options=options):
                    compare(self, path, overlap.random_times(path, seed), *merged_first(path, cap, options))


if __name__ == "__main__":
    unittest.main()

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

import fxload
import overlap
from harness import GRAPHS, graphs, one_test_each
from overlap_random import random_step

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
    except (AssertionError, RecursionError, KeyError, RuntimeError) as e:
        test.assertIn("PyTorch", refused(test, f"torch raises {e!r:.200}", ours))
        return False
    if path.name in BROKEN:
        test.assertIn("over a write or an effect", refused(test, "torch breaks an order", ours))
        return False
    test.assertEqual(overlap.differences(expected, ours()), [])
    return True


@one_test_each(graphs("ddp", "fsdp", "tp", "moe", "exec"))
class Graphs(unittest.TestCase):
    """Times of the model, with kernels that Inductor is going to fuse as torch counts them, and random ones."""

    def check(self, path):
        compare(self, path, overlap.modelled_times(path))
        compare(self, path, overlap.random_times(path, 1), {"enable_fusion_regions": False})


@one_test_each(LARGE if SOAK else [p for p in LARGE if p.stem in ("gpt2_xl_ddp_bw", "moe16_ep_fsdp_fw")],
               name=lambda path: f"test_{path.stem}")  # fmt: skip
class Large(unittest.TestCase):
    def check(self, path):
        self.assertTrue(compare(self, path, overlap.modelled_times(path)))
        if SOAK:
            compare(self, path, overlap.random_times(path, 1), {"enable_fusion_regions": False})


class Made:
    """Times of what pre_bucket_fsdp_collectives makes: 0, and for collectives by their size, on both sides."""

    def __init__(self, path, cap):
        text = overlap.pre_bucketed(path, cap)
        old = {n.name for n in fxload.load(fxload.fix_class_name(overlap.text_of(path))).graph.nodes}
        with tempfile.TemporaryDirectory(prefix="tuck-overlap-") as folder:
            after = Path(folder, path.name)
            after.write_text(text)
            nodes = {n.name: n for n in fxload.load(fxload.fix_class_name(text)).graph.nodes}
            costs = [nodes[name] for name, _, _ in overlap.costed(after) if name not in old]
        self.names = old & set(nodes)
        self.targets = {str(n.target) for n in costs}
        sizes = {n.name: overlap.elements(n.meta["annotation"]) for n in costs if is_collective(n)}
        self.ns = {n.name: time_of_size(sizes.get(n.name)) for n in costs}

    def ms(self, node):
        if str(node.target) not in self.targets:
            return None
        return time_of_size(node.meta["val"].numel() if is_collective(node) else None) / 1e6


def is_collective(node):
    return "_c10d_functional" in str(node.target)


def time_of_size(elements):
    return 0 if elements is None else 8000 + elements // 64


def gathers(path):
    return path.read_text().count("all_gather_into_tensor.default(")


@one_test_each([p for p in graphs("fsdp", "moe", "tp") if gathers(p) > 1])
class PreBucketed(unittest.TestCase):
    """The whole of schedule_overlap_bucketing: FSDP's collectives are merged first."""

    def check(self, path):
        for cap in (2, 100) if path.stem in ("bert_fw", "vit_world4_fw", "llama_fsdp_ep_bw") else (100,):
            made = Made(path, cap)
            given = {"pre_bucketing_fsdp_collectives_bucket_cap_mb": cap, "enable_fusion_regions": False}
            with self.subTest(cap=cap):
                if made.ns:
                    compare(self, path, overlap.modelled_times(path), given, made)


@one_test_each(range(0, STEPS, AT_ONCE), name=lambda first: f"test_from_{first}")
class Random(unittest.TestCase):
    def check(self, first):
        with tempfile.TemporaryDirectory(prefix="tuck-overlap-") as folder:
            for seed in range(SEED + first, SEED + first + AT_ONCE):
                text, side, options = random_step(seed, short=first >= LONG_STEPS and not SOAK)
                path = Path(folder, f"step{seed}.txt")
                path.write_text(text)
                path.with_suffix(".json").write_text(json.dumps(side))
                with self.subTest(seed=seed, options=options):
                    compare(self, path, overlap.random_times(path, seed), options)


if __name__ == "__main__":
    unittest.main()

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


def compare(test, path, times, options=None):
    """True: torch has an order, and Tuck the same."""

    def ours():
        return overlap.tuck_result(path, times, options)

    try:
        expected = overlap.torch_result(path, times, options)
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

"""overlap_scheduling with compat=torch beside torch 2.13's overlap scheduler, given the same times: the same order of
nodes and the same buckets, or both refuse."""

import json
import os
import tempfile
import unittest
from pathlib import Path

import overlap
from harness import GRAPHS, graphs, one_test_each
from overlap_random import random_step

# Sizes that only data decides: torch makes symbols of its own for them, without a value.
NOT_RUN = {"moe/layer_routed_fw.txt", "moe/layer_routed_bw.txt", "exec/moe_routed_bw.txt", "exec/moe_routed_fw.txt"}
# Torch's order has a read or a write on the wrong side of a write, and Tuck says so.
BROKEN = {"fsdp/fsdp2_ops_step.txt", "tp/pipeline_p2p_fw.txt"}
STEPS = int(os.environ.get("TUCK_STEPS", "60"))
AT_ONCE = 20


def name_of(path):
    return str(path.relative_to(GRAPHS))


def compare(test, path, times, options=None):
    """True: torch has an order, and Tuck the same."""
    try:
        expected = overlap.torch_result(path, times, options)
    except (AssertionError, RecursionError, KeyError, RuntimeError) as e:
        with test.assertRaises(AssertionError, msg=f"torch raises {e!r:.200}") as refused:
            overlap.tuck_result(path, times, options)
        test.assertIn("PyTorch", str(refused.exception))
        return False
    if path.is_relative_to(GRAPHS) and name_of(path) in BROKEN:
        with test.assertRaisesRegex(AssertionError, "over a write or an effect"):
            overlap.tuck_result(path, times, options)
        return False
    test.assertEqual(overlap.differences(expected, overlap.tuck_result(path, times, options)), [])
    return True


@one_test_each([p for p in graphs("ddp", "fsdp", "tp", "moe", "exec") if name_of(p) not in NOT_RUN])
class Graphs(unittest.TestCase):
    """Times of the model, and random ones."""

    def check(self, path):
        compare(self, path, overlap.modelled_times(path))
        compare(self, path, overlap.random_times(path, 1))


@one_test_each([GRAPHS / "big" / "gpt2_xl_ddp_bw.txt"])
class Big(unittest.TestCase):
    def check(self, path):
        self.assertTrue(compare(self, path, overlap.modelled_times(path)))


@one_test_each(range(0, STEPS, AT_ONCE), name=lambda first: f"test_from_{first}")
class Random(unittest.TestCase):
    def check(self, first):
        with tempfile.TemporaryDirectory(prefix="tuck-overlap-") as folder:
            for seed in range(first, first + AT_ONCE):
                text, side, options = random_step(seed)
                path = Path(folder, f"step{seed}.txt")
                path.write_text(text)
                path.with_suffix(".json").write_text(json.dumps(side))
                with self.subTest(seed=seed, options=options):
                    compare(self, path, overlap.random_times(path, seed), options)


if __name__ == "__main__":
    unittest.main()

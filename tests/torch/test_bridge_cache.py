"""Warm caches, with real processes: the second run of a script compiles nothing, with other options it
does; and ranks that share the folder of the cache do not get each other's code."""

import json
import tempfile
import unittest
from pathlib import Path

import torch
from harness import ROOT
from test_bridge_examples import EXAMPLES, run

WORKER = ROOT / "tests" / "torch" / "cache_worker.py"


class CacheTest(unittest.TestCase):
    def again(self, name, folder, tag, *options):
        """Counts and results of each rank, in a cache that all runs of the test share."""
        counts = f"{folder}/counts.{tag}"
        got, said = run(name, 2, "", f"{folder}/{tag}", worker=[WORKER, EXAMPLES / f"{name}.py", counts],
                        options=options, cache=f"{folder}/cache")  # fmt: skip
        for text in said:
            self.assertNotIn("TuckWarning", text)
        return [json.loads(Path(f"{counts}.{r}.json").read_text()) for r in range(2)], got

    def same(self, a, b):
        for x, y in zip(a, b):
            self.assertEqual(x["losses"], y["losses"])
            self.assertTrue(all(map(torch.equal, x["parameters"], y["parameters"])))

    def check(self, name, passes, autograd):
        with tempfile.TemporaryDirectory() as folder:
            cold, first = self.again(name, folder, "cold", "--passes", passes)
            warm, second = self.again(name, folder, "warm", "--passes", passes)
            other, third = self.again(name, folder, "other", "--passes", "sink_waits_iterative")
        for c, w, o in zip(cold, warm, other):
            self.assertGreater(c["miss"], 0, c)
            self.assertEqual((w["miss"], w["bypass"]), (0, 0), w)
            self.assertGreater(w["hit"], 0, w)
            self.assertEqual(w["autograd_hit"] > 0, autograd, w)
            self.assertGreater(o["miss"], 0, o)
        self.same(first, second)
        self.same(first, third)

    def test_sharded(self):
        """Merged gathers: each rank's code writes into its own part of a buffer."""
        self.check("sharded", "bucket_all_gather", True)


if __name__ == "__main__":
    unittest.main()

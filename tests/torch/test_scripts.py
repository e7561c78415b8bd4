"""`tuck optimize` of a script that torch wrote gives a script that torch runs, with the same values.

What stands around the graph is the same byte for byte, and `tuck simulate` of it gives what the report of `tuck optimize` says.
"""

import json
import re
import tempfile
import unittest
from pathlib import Path

import torch
import warm

from harness import GRAPHS, HERE, SECONDS, one_test_each, tuck

# Of those in forms213 one has a class <lambda>, which Python does not read, one sets up a group '1' that torch 2.13 has already.
SCRIPTS = sorted((GRAPHS / "forms").glob("*.runnable.py"))
PASSES = [
    None,
    "bucket_all_reduce,bucket_all_gather,bucket_reduce_scatter",
    "sink_waits,reorder_compute_for_overlap",
]


def run(script, out):
    log = out.with_suffix(".log")
    process = warm.Process(HERE / "script_worker.py", [script, out], output=log)
    try:
        code = process.wait(SECONDS)
    finally:
        process.stop()
    if code != 0:
        raise AssertionError(f"{script.name} does not run: {code}\n{log.read_text(errors='replace')[-2000:]}")
    return torch.load(out)


def around(text):
    """What comes before and after the body of forward."""
    head, rest = re.split(r"(?<=\n)(?=    def forward\()", text, maxsplit=1)
    signature, body = rest.split("\n", 1)
    tail = body[re.search(r"^        return .*\n", body, flags=re.M).end():]
    return head, signature, tail


def same(a, b):
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return a == b
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.nan_to_num(7), b.nan_to_num(7))


@one_test_each(SCRIPTS)
class Scripts(unittest.TestCase):
    def check(self, path):
        text = path.read_text().replace("device(type='cuda', index=0)", "device(type='cpu')")
        with tempfile.TemporaryDirectory(prefix="tuck-scripts-") as folder:
            folder = Path(folder)
            before = folder / "before.py"
            before.write_text(text)
            expected = run(before, folder / "before.pt")
            self.assertTrue(expected)
            for i, passes in enumerate(PASSES):
                after = folder / f"after{i}.py"
                report = tuck("optimize", before, "-o", after, "--json", *(["-p", passes] if passes else []))
                self.assertEqual(around(text), around(after.read_text()))
                got = run(after, folder / f"after{i}.pt")
                self.assertEqual(len(got), len(expected))
                for k, (x, y) in enumerate(zip(got, expected)):
                    self.assertTrue(same(x, y), f"{passes}: result {k} is another one")
                if passes is None:
                    self.figures(json.loads(report), after)

    def figures(self, report, after):
        step = json.loads(tuck("simulate", "--json", after))
        self.assertGreater(step["comm_ns"], 0)
        for name in ("step_ns", "compute_ns", "comm_ns", "exposed_ns", "peak_bytes"):
            self.assertEqual(step[name], report["after"][name], name)


if __name__ == "__main__":
    unittest.main()

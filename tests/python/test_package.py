"""The package without PyTorch: loading, errors, graphs from text."""

import gc
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

import tuck
from tuck import _lib

ROOT = Path(__file__).resolve().parent.parent.parent
DDP = ROOT / "examples" / "gpt2_ddp_bw.txt"


class Loading(unittest.TestCase):
    def test_version_is_that_of_the_header(self):
        text = (ROOT / "include" / "tuck.h").read_text()
        self.assertIn(f'#define TUCK_VERSION "{tuck.__version__}"', text)

    def python(self, program, **environment):
        return subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
        )

    def test_missing_library(self):
        ran = self.python("import tuck", TUCK_LIBRARY="/nowhere/libtuck.so")
        self.assertIn("ImportError: libtuck.so was not found", ran.stderr)

    def test_other_version(self):
        program = f"""
import sys, types
package = types.ModuleType("tuck")
package.__path__ = [{str(ROOT / "python" / "tuck")!r}]
sys.modules["tuck"] = package
import tuck._version
tuck._version.VERSION = "9.9.9"
import tuck._lib
"""
        ran = self.python(program, TUCK_LIBRARY=_lib.lib._name)
        self.assertRegex(ran.stderr, "ImportError: tuck 9.9.9 found libtuck [0-9.]+ in ")

    def test_torch_is_not_imported(self):
        ran = self.python("import sys, tuck; print('torch' in sys.modules)")
        self.assertEqual(ran.stdout, "False\n")


class Errors(unittest.TestCase):
    def test_text_without_a_graph(self):
        with self.assertRaises(tuck.Error) as caught:
            tuck.Graph("hello", name="hello.txt")
        self.assertEqual(caught.exception.status, "ESYNTAX")
        self.assertIn("hello.txt: error: no graph", caught.exception.diagnostics)

    def test_unknown_pass(self):
        graph = tuck.Graph.read(DDP)
        before = str(graph)
        with self.assertRaisesRegex(tuck.Error, "unknown pass 'nope'"):
            graph.optimize(["nope"])
        self.assertEqual(str(graph), before)

    def test_no_such_graph(self):
        with self.assertRaises(IndexError):
            tuck.Graph.read(DDP, index=7)

    def test_settings(self):
        for options, said in [
            ({"clutser": "h100"}, "no setting 'clutser'; did you mean 'cluster'"),
            ({"order": "some"}, r"'order' wants free\|groups\|all, found 'some'"),
            ({"memory": "much"}, "'memory' wants a peak"),
            ({"symbols": {"s0": -1}}, "'symbol' wants"),
            ({"cluster": "abacus"}, "abacus"),
        ]:
            with self.subTest(options), self.assertRaisesRegex(tuck.Error, said):
                _lib.Settings(**options)


class Graphs(unittest.TestCase):
    def test_text_is_unchanged(self):
        text = DDP.read_text()
        self.assertEqual(str(tuck.Graph(text)).strip(), text[text.index("class ") :].strip())

    def test_questions_agree(self):
        graph = tuck.Graph.read(DDP, cluster="h100x8")
        step = graph.simulate()
        self.assertEqual(step["exposed_ns"], graph.explain()["exposed_ns"])
        self.assertEqual(len(graph.collectives), len(step["collectives"]))
        self.assertGreater(len(graph.collectives), 5)
        self.assertEqual(graph.groups, {"0": 8})
        self.assertIn("step ", str(step))
        self.assertIn("all_reduce_27", str(graph.explain("all_reduce_27")))

    def test_optimize(self):
        graph = tuck.Graph.read(DDP)
        before = graph.simulate()
        report = graph.optimize()
        self.assertTrue(report.changed)
        self.assertLess(graph.simulate()["step_ns"], before["step_ns"])
        ran = [each["name"] for each in report.data["passes"] if each["name"] in report.brief]
        self.assertGreater(len(ran), 1)
        self.assertFalse(graph.optimize("deduplicate_wait_tensors").changed)

    def test_memory_of_one_call_only(self):
        graph = tuck.Graph.read(DDP)
        peak = graph.simulate()["peak_bytes"]
        self.assertEqual(graph.copy().optimize(memory="40GiB").data["memory_limit_bytes"], 40 << 30)
        self.assertEqual(graph.copy().optimize().data["memory_limit_bytes"], peak)

    def test_group_sizes(self):
        graph = tuck.Graph.read(DDP, cluster="h100x8x4")
        few = graph.simulate()["comm_ns"]
        graph.set_group("0", 32, range(32))
        self.assertGreater(graph.simulate()["comm_ns"], few)
        with self.assertRaises(tuck.Error):
            graph.set_group("nobody", 8)
        with self.assertRaises(ValueError):
            graph.set_group("0", 8, [0, 1])

    def test_page(self):
        graph = tuck.Graph.read(DDP)
        self.assertRegex(graph._repr_html_(), re.compile("^<iframe srcdoc=.*</iframe>$", re.S))
        before = graph.simulate()
        graph.optimize()
        self.assertIn('"after"', before.html(after=graph.simulate(), title="step"))

    def test_results_outlive_the_graph(self):
        step = tuck.Graph.read(DDP).simulate()
        told = tuck.Graph.read(DDP).explain()
        gc.collect()
        self.assertEqual(step["step_ns"], told["step_ns"])
        self.assertIn("exposed", str(told))


if __name__ == "__main__":
    unittest.main()

"""The wheel, installed into a fresh environment: it needs no compiler, no make, no libjansson."""

import os
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

from harness import ROOT

USE = """
import tuck
from tuck import _lib
graph = tuck.Graph.read({graph!r})
report = graph.optimize()
assert report.changed
maps = [line.split()[-1] for line in open("/proc/self/maps") if ".so" in line]
print(*sorted({{m for m in maps if "tuck" in m or "jansson" in m}}), sep="\\n")
"""


class WheelTest(unittest.TestCase):
    def run_ok(self, *command, **options):
        done = subprocess.run(
            [str(c) for c in command], capture_output=True, text=True, timeout=900, **options
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_installed_wheel(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            built = folder / "wheels"
            pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
            self.run_ok(*pip, "wheel", "--no-deps", "--no-index", "-w", built, ROOT)
            (wheel,) = built.iterdir()
            self.assertRegex(wheel.name, r"^tuck-[\d.]+-py3-none-linux_\w+\.whl$")
            names = zipfile.ZipFile(wheel).namelist()
            self.assertTrue(any("libjansson" in n for n in names), names)
            self.run_ok(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
            (site,) = (folder / "venv" / "lib").glob("python3*/site-packages")
            self.run_ok(*pip, "install", "--no-index", "--target", site, wheel)
            tools = folder / "bin"  # a PATH without gcc and make
            tools.mkdir()
            environment = {"PATH": str(tools), "HOME": str(folder)}
            python = folder / "venv" / "bin" / "python"
            graph = str(ROOT / "examples" / "gpt2_ddp_bw.txt")
            said = self.run_ok(
                python, "-c", USE.format(graph=graph), cwd=folder, env=environment
            )
            loaded = [Path(path) for path in said.split()]
            self.assertTrue(all(path.parent.name == "tuck" for path in loaded), said)  # none of the system's
            self.assertLessEqual({"libtuck.so", "libjansson.so.4"}, {path.name for path in loaded})
            tool = self.run_ok(python, "-m", "tuck", "explain", graph, cwd=folder, env=environment)
            self.assertIn("what would help", tool)
            self.assertTrue((site / "bin" / "tuck").exists())
            self.assertTrue(all(line.startswith(str(site)) for line in said.split()), said)

    def test_editable(self):
        """`pip install -e .` uses the library of the source tree."""
        with tempfile.TemporaryDirectory() as folder:
            code = (
                "import sys; sys.path.insert(0, 'tools'); import tuck_wheel;"
                f"print(tuck_wheel.build_editable({folder!r}), tuck_wheel.build_sdist({folder!r}))"
            )
            said = self.run_ok(sys.executable, "-c", code, cwd=ROOT, env=dict(os.environ))
            self.assertEqual(sorted(said.split()), sorted(os.listdir(folder)))


if __name__ == "__main__":
    unittest.main()

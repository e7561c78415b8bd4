"""The runner: a test that hangs is ended, with all that it started, and named; the others run. And processes
of warm.py end as they should."""

import os
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import runner
import warm


class Stuck(unittest.TestCase):
    folder = None

    def runTest(self):
        process = subprocess.Popen(["sleep", "600"], start_new_session=True)
        (Path(self.folder) / "pid").write_text(str(process.pid))
        while True:
            try:
                time.sleep(600)
            except KeyboardInterrupt:  # does not end when it is asked to
                pass


class Quick(unittest.TestCase):
    def runTest(self):
        pass


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class RunnerTest(unittest.TestCase):
    def test_a_hang_is_ended(self):
        with (
            tempfile.TemporaryDirectory() as folder,
            mock.patch.object(Stuck, "folder", folder),
            mock.patch.object(runner, "SECONDS", 2),
            mock.patch.object(runner, "GRACE_SECONDS", 1),
            mock.patch.object(os, "getloadavg", return_value=(0, 0, 0)),
            mock.patch.object(runner.faulthandler, "register"),
            mock.patch.object(runner.signal, "SIGUSR1", signal.SIGCHLD),  # nothing to be seen
        ):
            groups = {"a.Stuck": [Stuck()], "a.Quick": [Quick()]}
            found = {name: (passed, bad) for name, passed, bad, _ in runner.run_all(groups)}
            started = int((Path(folder) / "pid").read_text())
        self.assertEqual(found["a.Quick"], (1, []))
        passed, ((test, why),) = found["a.Stuck"]
        self.assertEqual((passed, test), (0, "test_runner.Stuck.runTest"))
        self.assertIn("does not end", why)
        self.assertFalse(alive(started))


class ProcessTest(unittest.TestCase):
    def script(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = Path(folder.name) / "script.py"
        path.write_text(text)
        return path

    def test_code_arguments_environment_and_output(self):
        script = self.script("import os, sys\nprint(sys.argv[1:], os.environ['MINE'])\nsys.exit(5)\n")
        out = script.with_name("out")
        process = warm.Process(script, ["a", 1], {**os.environ, "MINE": "yes"}, output=out)
        self.assertEqual(process.wait(100), 5)
        self.assertEqual(out.read_text(), "['a', '1'] yes\n")

    def test_an_exception_is_said(self):
        script = self.script("raise ValueError('wrong')\n")
        out = script.with_name("out")
        self.assertEqual(warm.Process(script, output=out).wait(100), 1)
        self.assertIn("ValueError: wrong", out.read_text())

    def test_stop_ends_all(self):
        script = self.script("import subprocess, sys, time\n"
                             "open(sys.argv[1], 'w').write(str(subprocess.Popen(['sleep', '600']).pid) + '\\n')\n"
                             "time.sleep(600)\n")  # fmt: skip
        pid = script.with_name("pid")
        process = warm.Process(script, [pid])
        for _ in range(1000):
            if pid.exists() and pid.read_text().endswith("\n"):
                break
            time.sleep(0.1)
        self.assertIsNone(process.poll())
        process.stop()
        self.assertEqual(process.returncode, -9)
        time.sleep(0.2)
        self.assertFalse(alive(int(pid.read_text())))


def load_tests(loader, tests, pattern):
    """Not those that only the runner is to run."""
    return unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in (RunnerTest, ProcessTest))


if __name__ == "__main__":
    unittest.main()

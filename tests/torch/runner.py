"""Run the tests of this folder: all, or those whose name contains one of the given words.

runner.py                  everything
runner.py exec_text        one file
runner.py exec_run.*moe    by regular expression, on file.Class.test_name
"""

import io
import re
import signal
import sys
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent


def every(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from every(test)
        else:
            yield test


class Result(unittest.TextTestResult):
    """Counts what passed, too."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def stop(number, frame):
    raise KeyboardInterrupt  # unwinds, so that temporary folders and workers go


def main(words):
    signal.signal(signal.SIGTERM, stop)
    sys.path.insert(0, str(HERE))
    tests = list(every(unittest.TestLoader().discover(str(HERE), "test_*.py", str(HERE))))
    if words:
        tests = [t for t in tests if any(re.search(w, t.id()) for w in words)]
    if not tests:
        print("no test has such a name", file=sys.stderr)
        return 2
    failed = passed = 0
    by_file = {}
    for test in tests:
        by_file.setdefault(test.id().split(".")[0], []).append(test)
    for name, group in by_file.items():
        start = time.monotonic()
        runner = unittest.TextTestRunner(io.StringIO(), resultclass=Result, warnings="ignore")
        result = runner.run(unittest.TestSuite(group))
        for test, trace in result.failures + result.errors:
            print(f"FAIL {test.id()}\n{trace}")
        bad = len(result.failures) + len(result.errors)
        good = result.passed
        print(f"{name}: {good} passed, {bad} failed, {time.monotonic() - start:.1f} s", flush=True)
        passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("interrupted")

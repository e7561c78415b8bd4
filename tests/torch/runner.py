"""Run the tests of this folder: all, or those whose name contains one of the given words. A class of tests is a
process, and as many run at a time as there are cores.

runner.py                  everything
runner.py exec_text        one file
runner.py exec_run.*moe    by regular expression, on file.Class.test_name
"""

import io
import multiprocessing.connection
import os
import re
import signal
import sys
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Those that take longest run first.
LONG = ("test_shapes_pointwise.PointwiseTest", "test_shapes_hops.GraphTest", "test_shapes_sym.ArithmeticTest")


def every(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from every(test)
        else:
            yield test


class Result(unittest.TextTestResult):
    """Also counts what passed."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def stop(number, frame):
    raise KeyboardInterrupt  # unwinds, so that temporary folders and workers go


def run(tests, answer):
    """In a process of its own."""
    start = time.monotonic()
    runner = unittest.TextTestRunner(io.StringIO(), resultclass=Result, warnings="ignore")
    result = runner.run(unittest.TestSuite(tests))
    bad = [(test.id(), trace) for test, trace in result.failures + result.errors]
    answer.send((result.passed, bad, time.monotonic() - start))


def run_all(groups):
    """Yields (name, passed, [(test, trace)], seconds) as they end. Forked, so that torch is imported once."""
    fork = multiprocessing.get_context("fork")
    waiting, running = list(reversed(groups.items())), {}
    try:
        while waiting or running:
            while waiting and len(running) < (os.cpu_count() or 1):
                name, tests = waiting.pop()
                ours, theirs = fork.Pipe(duplex=False)
                process = fork.Process(target=run, args=(tests, theirs))
                process.start()
                theirs.close()
                running[ours] = name, process
            for ours in multiprocessing.connection.wait(running):
                name, process = running[ours]
                try:
                    good, bad, seconds = ours.recv()
                except EOFError:
                    process.join()
                    good, bad, seconds = 0, [(name, f"its process died: {process.exitcode}")], 0.0
                process.join()
                del running[ours]
                yield name, good, bad, seconds
    finally:
        for _, process in running.values():
            process.terminate()
            process.join()


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
    groups = {}
    for test in sorted(tests, key=lambda t: not t.id().startswith(LONG)):
        groups.setdefault(".".join(test.id().split(".")[:2]), []).append(test)
    for name, good, bad, seconds in run_all(groups):
        for test, trace in bad:
            print(f"FAIL {test}\n{trace}")
        print(f"{name}: {good} passed, {len(bad)} failed, {seconds:.1f} s", flush=True)
        passed, failed = passed + good, failed + len(bad)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("interrupted")

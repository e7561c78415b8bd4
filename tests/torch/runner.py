"""Run the tests of this folder: all, or those whose name contains one of the given words. A class of tests is a
process, and as many run at a time as there are cores. One that does not end is ended, with all that it started.

runner.py                  everything
runner.py exec_text        one file
runner.py exec_run.*moe    by regular expression, on file.Class.test_name
"""

import faulthandler
import io
import itertools
import multiprocessing.connection
import os
import re
import signal
import sys
import time
import unittest
from pathlib import Path

# For all processes of a run: as many of them compute as there are cores, so threads would only be in each
# other's way; and a process of Inductor's own that compiles imports torch again.
os.environ.update(OMP_NUM_THREADS="1", TORCHINDUCTOR_COMPILE_THREADS="1")

HERE = Path(__file__).resolve().parent
# Kernels that were compiled in an earlier run are used again.
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(HERE.parents[1] / "build" / "torch-cache" / "all"))
SECONDS = 420  # for one class, on a machine that does nothing else
GRACE_SECONDS = 10  # to clean up, for one that is ended
# Those that take longest run first.
LONG = (
    "test_overlap.",
    "test_bridge.CorpusTest",
    "test_bridge_examples.",
    "test_bridge_ranks.",
    "test_pass_values.",
    "test_bridge.RandomTest",
    "test_shapes_pointwise.PointwiseTest",
    "test_job.",
    "test_shapes_hops.GraphTest",
    "test_shapes_sym.ArithmeticTest",
)
# These measure: they run one by one, when all others are done.
ALONE = ("test_measured.",)


def every(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from every(test)
        else:
            yield test


def place(name):
    """Where a class comes in the order of running."""
    return next((i for i, long in enumerate(LONG) if name.startswith(long)), len(LONG))


class Result(unittest.TextTestResult):
    """Also counts what passed, and says which test begins."""

    answer = None  # the connection to the runner

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.passed = 0

    def startTest(self, test):
        super().startTest(test)
        self.answer.send(test.id())

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def stop(number, frame):
    raise KeyboardInterrupt  # unwinds, so that temporary folders and workers go


def run(tests, answer):
    """In a process of its own."""
    faulthandler.register(signal.SIGUSR1)  # says where it is, before it is ended
    Result.answer = answer
    runner = unittest.TextTestRunner(io.StringIO(), resultclass=Result, warnings="ignore")
    result = runner.run(unittest.TestSuite(tests))
    bad = [(test.id(), trace) for test, trace in result.failures + result.errors]
    answer.send((result.passed, bad))


def descendants(pid):
    """Of a process, also those in groups of their own."""
    children = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = path.read_text().rpartition(")")[2].split()[1]
        except OSError:  # it has just ended
            continue
        children.setdefault(int(parent), []).append(int(path.parent.name))
    found = list(children.get(pid, ()))
    for child in found:
        found += children.get(child, ())
    return found


def end(process):
    """Ends a process and all that it started."""
    started = descendants(process.pid)
    os.kill(process.pid, signal.SIGUSR1)
    time.sleep(0.2)
    process.terminate()
    process.join(GRACE_SECONDS)
    process.kill()
    process.join()
    for pid in started:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Group:
    """A class of tests that runs. fork: torch is imported once."""

    def __init__(self, name, tests):
        fork = multiprocessing.get_context("fork")
        self.name, self.now, self.start = name, name, time.monotonic()
        self.looked, self.had = self.start, 0.0  # seconds that it had, of a machine of its own
        self.answer, theirs = fork.Pipe(duplex=False)
        self.process = fork.Process(target=run, args=(tests, theirs))
        self.process.start()
        theirs.close()

    def seconds(self):
        return time.monotonic() - self.start

    def take(self):
        """What it says: None, or at its end (passed, [(test, trace)])."""
        try:
            said = self.answer.recv()
        except EOFError:
            self.process.join()
            return 0, [(self.now, f"its process died: {self.process.exitcode}")]
        if isinstance(said, str):
            self.now = said
            return None
        self.process.join()
        return said

    def late(self):
        """Ends it, if its time is up; what others compute meanwhile does not count."""
        now = time.monotonic()
        self.had += (now - self.looked) / max(1, os.getloadavg()[0] / (os.cpu_count() or 1))
        self.looked = now
        if self.had < SECONDS * (2 if self.name.startswith(ALONE) else 1):  # they may record twice
            return None
        end(self.process)
        return 0, [(self.now, f"{self.name} does not end: stopped after {self.seconds():.0f} s, in {self.now}")]


def run_all(groups):
    """Yields (name, passed, [(test, trace)], seconds) as they end."""
    waiting, running = list(reversed(groups.items())), {}
    try:
        while waiting or running:
            while waiting and len(running) < (os.cpu_count() or 1):
                group = Group(*waiting.pop())
                running[group.answer] = group
            ready = multiprocessing.connection.wait(running, timeout=1)
            for answer, group in list(running.items()):
                found = (group.take() if answer in ready else None) or group.late()
                if found is not None:
                    del running[answer]
                    yield group.name, *found, group.seconds()
    finally:
        for group in running.values():
            end(group.process)


def main(words):
    signal.signal(signal.SIGTERM, stop)
    sys.path.insert(0, str(HERE))
    import warm

    warm.serve()
    tests = list(every(unittest.TestLoader().discover(str(HERE), "test_*.py", str(HERE))))
    if words:
        tests = [t for t in tests if any(re.search(w, t.id()) for w in words)]
    if not tests:
        print("no test has such a name", file=sys.stderr)
        return 2
    failed = passed = 0
    groups = {}
    for test in sorted(tests, key=lambda t: place(t.id())):
        groups.setdefault(".".join(test.id().split(".")[:2]), []).append(test)
    alone = {name: groups.pop(name) for name in list(groups) if name.startswith(ALONE)}
    for name, good, bad, seconds in itertools.chain(run_all(groups), *(run_all({n: t}) for n, t in alone.items())):
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

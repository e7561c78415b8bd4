"""What the tests share: where things are, how tuck is called, one test method a graph."""

import os
import re
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GRAPHS = ROOT / "tests" / "graphs"
TUCK = os.environ.get("TUCK") or str(ROOT / "build" / "release" / "tuck")
SECONDS = 600  # for one call of tuck, however busy the machine is

# Folders whose graphs must be the same after a round trip through torch.
REBUILT = ("big", "ddp", "fsdp", "tp", "moe", "exec")


def graphs(*folders):
    """The class-form files of some folders, sorted."""
    return sorted(path for folder in folders for path in (GRAPHS / folder).glob("*.txt"))


def tuck(*args):
    """Standard output of `tuck ARGS`; if it fails, so does the test, with tuck's message."""
    args = [str(a) for a in args]
    done = subprocess.run(
        [TUCK, *args], stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace")
        raise AssertionError(f"tuck {' '.join(args)}: exit code {done.returncode}\n{said}")
    return done.stdout.decode("utf-8")


def needs(text):
    """The globals that the header of an --exec text lists."""
    return re.findall(r"^# needs: (\S+)$", text, flags=re.M)


def test_name(path):
    return "test_" + re.sub(r"\W", "_", str(Path(path).relative_to(GRAPHS).with_suffix("")))


def one_test_each(paths, name=test_name):
    """Class decorator: `check(self, item)` becomes one test method per item."""

    def decorate(cls):
        for item in paths:

            def method(self, item=item):
                self.check(item)

            method.__name__ = name(item)
            method.__doc__ = None
            if hasattr(cls, method.__name__):
                raise ValueError(f"two tests are called {method.__name__}")
            setattr(cls, method.__name__, method)
        return cls

    return decorate


def some(lines, limit=8):
    """The first few of many messages."""
    more = [f"... and {len(lines) - limit} more"] if len(lines) > limit else []
    return "\n".join(lines[:limit] + more)

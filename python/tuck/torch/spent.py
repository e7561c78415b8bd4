"""How long Tuck takes: in passes, in keeping graphs, in asking other ranks; beside whole compilations."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator

log = logging.getLogger("tuck.torch")
if os.environ.get("TUCK_LOG", "0") not in ("", "0"):
    _handler = logging.StreamHandler(sys.stderr)
    _handler.setFormatter(logging.Formatter("tuck: %(message)s"))
    log.addHandler(_handler)
    log.setLevel(logging.INFO)
    atexit.register(lambda: log.info("%s", text()))

PARTS = ("compiling", "passes", "keeping", "agreeing")
_lock = threading.Lock()
_seconds: dict[str, float] = dict.fromkeys(PARTS, 0.0)
_counts = {"graphs": 0, "before": 0, "after": 0}


def add(part: str, seconds: float) -> None:
    with _lock:
        _seconds[part] += seconds


def count(before: int, after: int) -> None:
    with _lock:
        _counts["graphs"] += 1
        _counts["before"] += before
        _counts["after"] += after


@contextlib.contextmanager
def on(part: str) -> Iterator[None]:
    start = time.perf_counter()
    try:
        yield
    finally:
        add(part, time.perf_counter() - start)


def seconds() -> dict[str, float]:
    """Seconds so far: whole compilations of graphs that communicate, and in them Tuck's passes and
    the copies of graphs; and waiting for other ranks, which is not part of compiling."""
    with _lock:
        return dict(_seconds)


def text() -> str:
    s, n = seconds(), dict(_counts)
    if not n["graphs"]:
        return "no graph that communicates was compiled"
    mine = s["passes"] + s["keeping"]
    share = 100 * mine / s["compiling"] if s["compiling"] else 0.0
    return (f"{n['graphs']} graphs with communication, {n['before']} collectives became {n['after']}; "
            f"compiled in {s['compiling']:.2f} s, of which Tuck took {1e3 * mine:.0f} ms "
            f"({share:.1f} %); {1e3 * s['agreeing']:.0f} ms until ranks agreed")


def reset() -> None:
    """For tests."""
    with _lock:
        _seconds.update(dict.fromkeys(PARTS, 0.0))
        _counts.update(dict.fromkeys(_counts, 0))

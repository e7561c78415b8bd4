"""The objects that Inductor calls: on the graph, and on its schedule.

Each says by uuid() what its result depends on, so that Inductor's cache works with it. A failure
inside Tuck leaves graph or order as they are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch.distributed as dist
from torch import fx
from torch._inductor.custom_graph_pass import CustomGraphPass

from .. import Error
from . import graph as bridge
from . import schedule, spent
from .settings import Settings, say

DDP_PASSES = ("fuse_ddp_with_concat_op", "fuse_ddp_with_coalesced_op", "schedule_comm_wait")
PLAN = "tuck_plan"
state = threading.local()  # .notes: what the hooks did in the compilation of this thread


def note(**what: Any) -> None:
    notes = getattr(state, "notes", None)
    if notes is not None:
        notes.update(what)


def guarded(settings: Settings, what: str, work: Callable[[], Any], instead: Any = None) -> Any:
    """work(), or a warning and `instead` if it fails."""
    try:
        return work()
    except Exception as e:
        if settings.strict:
            raise
        note(failed=f"{type(e).__name__}: {e}")
        say(f"{what} failed, and the graph stays as it is: {type(e).__name__}: {e}")
        return instead


def split_passes(text: str) -> tuple[str, str]:
    """The passes that belong before Inductor's own DDP fusion, and the rest."""
    if text.strip() == "auto":
        return "", "auto"
    steps, depth, step = [], 0, ""
    for c in text + ",":
        depth += {"(": 1, ")": -1}.get(c, 0)
        if c in ",\n" and depth == 0:
            steps.append(step.strip())
            step = ""
        else:
            step += c
    steps = [s for s in steps if s]
    before = [s for s in steps if s.split("(")[0] in DDP_PASSES]
    return ", ".join(before), ", ".join(s for s in steps if s not in before)


def plan_of(report: Any) -> str:
    """The passes that "auto" chose, as a pipeline: to decide the same again for other sizes."""
    if report is None:
        return ""
    rows = report.data.get("passes", [])
    return ", ".join(f"{r['name']}({r['options']})" if r.get("options") else r["name"] for r in rows)


class GraphPass(CustomGraphPass):
    """Tuck's passes on a graph; `earlier` are those that the user had set, which come first.
    `instead`: for a graph on which the passes of an earlier decision cannot be repeated."""

    def __init__(self, settings: Settings, passes: str, earlier: Any = None, pin: str = "",
                 instead: str = ""):
        self.settings, self.passes, self.pin, self.instead = settings, passes, pin, instead
        self.earlier = _as_list(earlier)

    def __call__(self, graph: fx.Graph, *rest: Any, **kwargs: Any) -> None:
        for other in self.earlier:
            other(graph, *rest, **kwargs)
        if self.passes and has_collective(graph):
            guarded(self.settings, f"passes {self.passes!r}", lambda: self.run(graph))

    def run(self, graph: fx.Graph) -> None:
        s = self.settings
        options = {"cluster": s.cluster, "memory": s.memory}
        options = {k: v for k, v in options.items() if v is not None}
        with spent.on("passes"):
            try:
                report = bridge.run(graph, self.passes, **options)
            except Error:
                if not self.instead:
                    raise
                report = bridge.run(graph, self.instead, **options)
            note(**{PLAN: plan_of(report)})

    def uuid(self) -> Any:
        names = []
        for other in self.earlier:
            named = getattr(other, "uuid", None)
            name = named() if named is not None else None
            if name is None:
                return None  # Inductor does not cache what it cannot name
            names.append(str(name))
        return "/".join(["tuck", self.settings.key(), where(), self.passes, self.pin, *names])


class SchedulePass:
    """An order of Inductor's schedule. It has no uuid(): Inductor takes the members into its key."""

    def __init__(self, settings: Settings, passes: str, pinned: tuple[tuple[str, str], ...] = ()):
        self.key, self.passes, self.pinned = settings.key(), passes, pinned
        self.strict = settings.strict

    def __call__(self, snodes: list[Any]) -> list[Any]:
        settings = Settings(strict=self.strict)
        work = lambda: schedule.arrange(snodes, self.passes, self.pinned)  # noqa: E731
        with spent.on("passes"):
            return guarded(settings, "the order of the schedule", work, snodes)


def where() -> str:
    """Which rank this is, of how many: gathers are merged into this rank's part of a buffer, so code
    is for one rank. Ranks of a machine share the folder of the cache."""
    if not dist.is_available() or not dist.is_initialized():
        return ""
    return f"{dist.get_rank()} of {dist.get_world_size()}"


def has_collective(graph: fx.Graph) -> bool:
    return any(n.op == "call_function" and "c10d" in str(n.target) for n in graph.nodes)


def _as_list(hook: Any) -> list[Any]:
    if hook is None:
        return []
    return list(hook) if isinstance(hook, (list, tuple)) else [hook]

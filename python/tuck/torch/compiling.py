"""Around Inductor's compilation of one graph: with Tuck, confirmed by all ranks, or without.

Inductor's caches mean that one rank may compile what another loads. Both come past compile(), and
both get a callable whose first call asks the other ranks (agree.py): does your code issue the same
collectives? If all say yes, the call goes on and later calls are direct. If not, the graph as it was
before Tuck is compiled, on every rank, and used from then on.

The question is named by the collectives of the graph before Tuck (its place). A place is asked about
once. Later graphs of the same place, also one that a rank compiles alone, must issue the sequence
that was agreed: Tuck's decision is pinned to it. If it cannot be had, compiling fails: any other
sequence would hang, or add up what does not belong together.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import weakref
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import fx
from torch._guards import TracingContext, tracing
from torch._inductor import config
from torch._inductor.output_code import CompiledFxGraph

from . import agree, hooks, sequence
from .settings import Settings, say


IMPATIENT = 10.0  # seconds


class Disagreement(RuntimeError):
    """This rank cannot run what all others run already."""


@dataclasses.dataclass
class Verdict:
    """What was agreed about a place: the entries that all issue, or None: the unchanged graph."""

    entries: tuple[str, ...] | None
    plan: str = ""  # the passes that led there


class Job:
    """What this process knows about the ranks of its job; begins again with a new default group."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.group: Any = None
        self.generation = 0
        self.verdicts: dict[str, Verdict] = {}
        self.kinds: list[str] = []
        self.missed = False  # a rank did not answer, or ran another graph

    def patience(self, settings: Settings) -> float:
        """Once ranks were found to run different graphs, nobody waits long for an answer that may
        never come."""
        seconds = agree.seconds_allowed(settings.timeout)
        return min(seconds, IMPATIENT) if self.missed else seconds

    def kind(self, settings: Settings) -> int:
        """A number for what the user asked for: the first in this process, the second, ..."""
        with self.lock:
            key = settings.key()
            if key not in self.kinds:
                self.kinds.append(key)
            return self.kinds.index(key)

    def refresh(self) -> None:
        """Forgets what was agreed in an earlier process group."""
        now = dist.distributed_c10d._get_default_group() if _many() else None
        if (self.group() if self.group is not None else None) is not now:
            self.group = weakref.ref(now) if now is not None else None
            self.generation += now is not None
            self.verdicts.clear()
            self.kinds.clear()
            self.missed = False

    def question(self, what: str) -> str:
        return f"{self.generation}/{what}"


job = Job()


def _many() -> bool:
    return dist.is_available() and dist.is_initialized()


# ---- what compiled code issues, kept in Inductor's cache with it ---------------------------------

SEQUENCE, PLAN = "tuck_sequence", "tuck_plan"


def remember_sequences() -> None:
    """Lets every compiled graph know what it issues. The cache keeps its members."""
    plain = CompiledFxGraph.__init__
    if getattr(plain, "tuck", False):
        return

    def init(self: Any, current_callable: Any, graph: Any, *args: Any, **kwargs: Any) -> None:
        plain(self, current_callable, graph, *args, **kwargs)
        with contextlib.suppress(Exception):  # without it the ranks run the unchanged graph
            setattr(self, PLAN, (getattr(hooks.state, "notes", None) or {}).get("plan", ""))
            setattr(self, SEQUENCE, sequence.of_schedule(graph.scheduler.nodes))

    init.tuck = True  # type: ignore[attr-defined]
    CompiledFxGraph.__init__ = init


def issued(code: Any) -> sequence.Sequence | None:
    return getattr(code, SEQUENCE, None)


# ---- one graph -----------------------------------------------------------------------------------


def copied(gm: fx.GraphModule) -> fx.GraphModule:
    """The graph as it is now; its attributes are shared."""
    graph = fx.Graph()
    graph._codegen = gm.graph._codegen
    known: dict[fx.Node, fx.Node] = {}
    returned = graph.graph_copy(gm.graph, known)
    out = graph.output(returned)
    old = next(iter(reversed(gm.graph.nodes)))
    out.meta = dict(old.meta)
    copy = fx.GraphModule(gm, graph)
    copy.meta = dict(gm.meta)
    return copy


class Compiler:
    """inner_compile for Inductor: `with_tuck` and `without` are configurations."""

    def __init__(self, inner: Callable[..., Any], settings: Settings,
                 patches: Callable[..., dict[str, Any]], without: dict[str, Any]):
        self.inner, self.settings, self.patches, self.without = inner, settings, patches, without
        self.__name__ = "compile_with_tuck"
        self.tuck = True  # functools.wraps() copies it

    def __call__(self, gm: fx.GraphModule, example_inputs: Any, **kwargs: Any) -> Any:
        before = sequence.of_graph(gm)
        plain = lambda g: self.compile(g, example_inputs, kwargs, self.without)  # noqa: E731
        if not len(before):
            return plain(gm)
        if not before.complete:
            say("a process group of this graph cannot be found by its name; it stays as it is",
                once="no group")
            return plain(gm)
        kind = "backward" if kwargs.get("is_backward") else "forward"
        with job.lock:
            job.refresh()
            place = before.digest(kind, str(job.kind(self.settings)))
            verdict = job.verdicts.get(place)
        if verdict is not None and verdict.entries is None:
            return plain(gm)
        unchanged = copied(gm)
        notes: dict[str, Any] = {}
        hooks.state.notes = notes
        try:
            patches = self.patches(verdict.entries, verdict.plan) if verdict else self.patches()
            code = self.compile(gm, example_inputs, kwargs, patches)
        finally:
            hooks.state.notes = None
        if not isinstance(code, CompiledFxGraph):
            return code
        if verdict is not None:
            return self.pinned(code, unchanged, verdict, plain, before)
        again = lambda: plain(unchanged)  # noqa: E731
        code.current_callable = First(code, place, before, self.settings, again, notes)
        return code

    def compile(self, gm: fx.GraphModule, inputs: Any, kwargs: dict[str, Any],
                patches: dict[str, Any]) -> Any:
        with config.patch(patches):
            return self.inner(gm, inputs, **kwargs)

    def pinned(self, code: Any, unchanged: fx.GraphModule, verdict: Verdict,
               plain: Callable[[fx.GraphModule], Any], before: sequence.Sequence) -> Any:
        """A later graph of a place: its sequence must be the agreed one."""
        if _entries(code) == verdict.entries or len(before.ranks) < 2:
            return code
        other = plain(unchanged)
        if _entries(other) == verdict.entries:
            return other
        raise Disagreement(
            "tuck: this rank compiled a graph again whose collectives cannot be put into the "
            "sequence that all ranks agreed on earlier. Its sequence would not fit the others', "
            "so it stops here. Compile with dynamic=True, give all ranks the same shapes, or turn "
            "Tuck off for this graph.\n"
            f"  agreed: {_short(verdict.entries)}\n  here:   {_short(_entries(code))}")


def _entries(code: Any) -> tuple[str, ...] | None:
    found = issued(code)
    return tuple(found.entries) if found is not None else None


def _short(entries: tuple[str, ...] | None) -> str:
    shown = list(entries or ())
    return ", ".join(shown[:8]) + (f", ... {len(shown)} in all" if len(shown) > 8 else "")


class First:
    """The callable of a compiled graph until its first call is over."""

    def __init__(self, code: Any, place: str, before: sequence.Sequence, settings: Settings,
                 unchanged: Callable[[], Any], notes: dict[str, Any]):
        self.code, self.place, self.before, self.settings = code, place, before, settings
        self.fast, self.unchanged, self.notes = code.current_callable, unchanged, notes
        self.context = TracingContext.try_get()
        self.lock = threading.Lock()

    def __call__(self, inputs: Any) -> Any:
        with self.lock:
            if self.code.current_callable is not self:  # another thread was first
                return self.code.current_callable(inputs)
            chosen = self.choose()
            if chosen is self.fast and self.settings.verify:
                chosen, result = self.verified(inputs)
            else:
                result = None
            self.code.current_callable = chosen
        return chosen(inputs) if result is None else result[0]

    def choose(self) -> Callable[[Any], Any]:
        """Tuck's code if all ranks agree, else that of the unchanged graph."""
        with job.lock:
            verdict = job.verdicts.get(self.place)
        if verdict is None:
            verdict = self.asked()
            with job.lock:
                job.verdicts[self.place] = verdict
        if verdict.entries is not None and verdict.entries == _entries(self.code):
            return self.fast
        return self.compiled_unchanged()

    def asked(self) -> Verdict:
        entries = _entries(self.code)
        value, why = None, ""
        if self.notes.get("failed"):
            why = f"Tuck failed there: {self.notes['failed']}"
        elif entries is None:
            why = "what its compiled code issues is not known"
        else:
            value = issued(self.code).digest(self.settings.digest(), self.settings.token)
        vote = {"value": value, "why": why, "ranks": sorted(self.before.ranks),
                "sequence": list(entries or ())[:512], **self.settings.facts()}  # fmt: skip
        answer = agree.ask(job.question("graph/" + self.place), vote, job.patience(self.settings))
        if not answer.agreed:
            job.missed |= any(v.get("absent") for v in answer.votes.values())
            what = f"{len(self.before)} collectives"
            say(f"ranks do not agree about a graph with {what}, and all run it unchanged: "
                f"rank {answer.rank}: {answer.difference}")
            if self.settings.strict:
                raise Disagreement(f"tuck: rank {answer.rank}: {answer.difference}")
        return Verdict(entries if answer.agreed else None, getattr(self.code, PLAN, ""))

    def compiled_unchanged(self) -> Callable[[Any], Any]:
        with tracing(self.context):
            other = self.unchanged()
        if isinstance(other, CompiledFxGraph):
            if other.output_strides != self.code.output_strides:
                raise Disagreement("tuck: the unchanged graph has results of other strides; "
                                   "compile without Tuck")
            self.kept = other  # its callable needs it
            return other.current_callable
        return other

    # ---- verify=True: both ways once

    def verified(self, inputs: Any) -> tuple[Callable[[Any], Any], list[Any]]:
        """Runs both on the same inputs; Tuck's stays if every rank got the same results."""
        slow = self.compiled_unchanged()
        mine = [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]
        theirs = list(mine)
        with torch.random.fork_rng():
            expected = slow([x.clone() if isinstance(x, torch.Tensor) else x for x in theirs])
        with torch.random.fork_rng():
            got = self.fast([x.clone() if isinstance(x, torch.Tensor) else x for x in mine])
        why = difference(expected, got)
        vote = {"value": None if why else "same", "why": why, "ranks": sorted(self.before.ranks)}
        answer = agree.ask(job.question("verify/" + self.place), vote, self.settings.timeout)
        if answer.agreed:
            return self.fast, [self.fast(inputs)]
        say(f"verify: the optimized graph gives other results, and the unchanged one is used: "
            f"rank {answer.rank}: {answer.difference}")
        with job.lock:
            job.verdicts[self.place] = Verdict(None)
        if self.settings.strict:
            raise Disagreement(f"tuck: verify: rank {answer.rank}: {answer.difference}")
        return slow, [slow(inputs)]


RTOL = {torch.float64: 1e-7, torch.float32: 1e-4, torch.bfloat16: 5e-2, torch.float16: 1e-2}


def difference(expected: Any, got: Any) -> str:
    """In words, or "" if results are equal up to the order of sums."""
    for i, (a, b) in enumerate(zip(expected, got)):
        if not isinstance(a, torch.Tensor):
            continue
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"result {i} is {b.dtype}{list(b.shape)} instead of {a.dtype}{list(a.shape)}"
        if torch.equal(a, b):
            continue
        rtol = RTOL.get(a.dtype, 0.0)
        scale = float(a.abs().max()) if a.numel() and rtol else 0.0
        if not torch.allclose(a, b, rtol=rtol, atol=rtol * scale, equal_nan=True):
            return f"result {i} differs by up to {float((a - b).abs().max()):.3g}"
    return ""

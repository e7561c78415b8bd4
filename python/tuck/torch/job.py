"""What this process knows about the ranks of its job: what was agreed, and about which graphs.

A graph is known by its place: the collectives it had before Tuck, and what the user asked for. A
place is asked about once. Later graphs of the same place must issue what was agreed. So must those
of a function that is compiled again, if they are of the same form, that is, if their collectives
differ in size alone: the other ranks may be running their code already and cannot be asked. That is
how a rank can compile alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import torch.distributed as dist
from torch._guards import CompileContext

from . import agree
from .sequence import Sequence
from .settings import Settings

IMPATIENT = 10.0  # seconds


class Disagreement(RuntimeError):
    """This rank cannot run what all others run already."""


@dataclasses.dataclass
class Verdict:
    """What was agreed about a place."""

    before: Sequence  # the collectives without Tuck
    after: Sequence | None  # those that all ranks issue; None: the unchanged graph
    plan: str = ""  # the passes that led there

    @property
    def pin(self) -> tuple[tuple[str, str], ...]:
        return tuple(zip(self.after.entries, self.after.forms)) if self.after is not None else ()

    def fits(self, before: Sequence, after: Sequence | None) -> bool:
        """Does code that issues `after` go with what the other ranks run? Groups whose collectives
        are those of the verdict must see the same ones; others have other sizes at most, and their
        ranks compile as this one does."""
        if after is None or self.after is None or after.forms != self.after.forms:
            return False
        same = [n for n in before.groups if before.of_group(n) == self.before.of_group(n)]
        return all(after.of_group(n) == self.after.of_group(n) for n in same)


class Job:
    """Begins again with a new default group."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.group: Any = None
        self.generation = 0
        self.forget()

    def forget(self) -> None:
        self.places: dict[str, Verdict] = {}
        self.forms: dict[str, Verdict] = {}
        self.kinds: list[str] = []
        self.exchanges = 0
        self.missed = False  # a rank did not answer, or ran another graph
        self.compiles = 0
        self.frames: dict[Any, Settings] = {}  # functions that were compiled with Tuck
        self.told_off: bool | None = None

    def refresh(self) -> None:
        """Forgets what was agreed in an earlier process group."""
        there = dist.is_available() and dist.is_initialized()
        now = dist.distributed_c10d._get_default_group() if there else None
        if (self.group() if self.group is not None else None) is not now:
            self.group = weakref.ref(now) if now is not None else None
            self.generation += now is not None
            self.forget()

    def question(self, what: str) -> str:
        return f"{self.generation}/{what}"

    def kind(self, settings: Settings) -> str:
        """A number for what the user asked for: the first in this process, the second, ..."""
        key = settings.key()
        if key not in self.kinds:
            self.kinds.append(key)
        return str(self.kinds.index(key))

    def patience(self, settings: Settings) -> float:
        """Once ranks were found to run different graphs, nobody waits long for an answer that may
        never come."""
        seconds = agree.seconds_allowed(settings.timeout)
        return min(seconds, IMPATIENT) if self.missed else seconds

    def kept(self, settings: Settings | None) -> Settings | None:
        """The settings for a function. One that was compiled with Tuck on several ranks stays so when
        it is compiled again, whatever was switched meanwhile: other ranks may be running its code."""
        known = CompileContext.current_compile_id()
        if known is None or agree.job_store() is None:
            return settings
        key = (getattr(known, "compiled_autograd_id", None), known.frame_id)
        with self.lock:
            self.refresh()
            if not compiles_again():
                self.frames.pop(key, None)
            if settings is not None:
                self.frames.setdefault(key, settings)
            return self.frames.get(key)

    # ---- verdicts

    def find(self, before: Sequence, stage: str, settings: Settings) -> tuple[str, Verdict | None]:
        """The place of a graph, and what was agreed about it or, if its function is compiled again,
        about its form."""
        with self.lock:
            self.refresh()
            more = (stage, self.kind(settings))
            place = before.digest(*more)
            found = self.places.get(place)
            if found is None and compiles_again():
                found = self.forms.get(before.form(*more))
            return place, found

    def decided(self, place: str) -> Verdict | None:
        with self.lock:
            return self.places.get(place)

    def decide(self, place: str, stage: str, settings: Settings, verdict: Verdict,
               form: bool = True) -> None:
        """form: it also holds for graphs of the same form."""
        with self.lock:
            self.places[place] = verdict
            if not form:
                return
            key = verdict.before.form(stage, self.kind(settings))
            if key not in self.forms or verdict.after is None:
                self.forms[key] = verdict

    def shares(self, ranks: set[int]) -> bool:
        """Does code with Tuck's order run on some of these ranks?"""
        with self.lock:
            return any(v.after is not None and v.before.ranks & ranks for v in self.places.values())

    # ---- what others can see

    def tell_off(self, off: bool) -> None:
        """Others see in the store whether Tuck is off on this rank, and do not wait for it then."""
        store = agree.job_store()
        if store is None:
            return
        with self.lock:
            self.refresh()
            if off != self.told_off:
                agree.tell_off(store, dist.get_rank(), off)
                self.told_off = off

    @contextlib.contextmanager
    def compiling(self, settings: Settings) -> Iterator[None]:
        """Others see in the store that this rank compiles, and will come to the question."""
        store = agree.job_store()
        if store is None:
            yield
            return
        with self.lock:
            self.compiles += 1
            if self.compiles == 1:
                agree.tell_busy(store, dist.get_rank(), True)
        try:
            yield
        finally:
            with self.lock:
                self.compiles -= 1
                if self.compiles == 0:
                    agree.tell_busy(store, dist.get_rank(), False)


def compiles_again() -> bool:
    """Is this function compiled for the second time or later? A rank may be alone with that."""
    known = CompileContext.current_compile_id()
    return known is not None and (known.frame_compile_id or 0) > 0


def stop(text: str) -> Disagreement:
    """Ends the communication of this rank, so that the others fail at once instead of waiting for
    collectives that will not come, and returns what to raise."""
    with contextlib.suppress(Exception):
        if agree.job_store() is not None:
            dist.distributed_c10d._abort_process_group()
    return Disagreement("tuck: " + text)


job = Job()

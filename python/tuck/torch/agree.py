"""Ranks agree through the job's store: write-once votes, no collective, and never a wait without end.

A question has a name. Each rank that must agree casts one vote, which can never change: either its
own, or "absent", which another rank writes after waiting too long. The answer is computed from the
votes alone, so all ranks compute the same one, whenever they look. Whoever comes late finds its
vote cast and follows.

Which ranks must agree? Those that share a process group with this one, those that share one with
them, and so on: each vote lists the ranks that its rank knows, and a reader follows the lists.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from typing import Any

import torch.distributed as dist

SECONDS = 300.0
ABSENT = "absent"


class StoreLost(RuntimeError):
    """The store does not answer: whether the other ranks agreed cannot be known."""


@dataclass
class Answer:
    """What the votes say."""

    agreed: bool
    value: str = ""  # what all voted for
    rank: int = -1  # the first one that differs from this rank, or is absent
    difference: str = ""  # how
    votes: dict[int, dict[str, Any]] = field(default_factory=dict)


def seconds_allowed(given: float | None) -> float:
    if given is not None:
        return given
    try:
        return float(os.environ.get("TUCK_TIMEOUT", SECONDS))
    except ValueError:
        return SECONDS


def job_store() -> Any:
    """The store of the job under names of our own; None if there are no other ranks to ask."""
    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() < 2:
        return None
    if dist.get_backend() == "fake":
        return None
    return dist.PrefixStore("tuck", dist.distributed_c10d._get_default_store())


def _key(question: str, rank: int) -> str:
    return f"{question}/{rank}"


def _board(rank: int) -> str:
    return f"waits/{rank}"


def _busy(rank: int) -> str:
    return f"compiles/{rank}"


def tell_busy(store: Any, rank: int, busy: bool) -> None:
    """Does this rank compile? Whoever waits for its vote wants to know."""
    try:
        store.set(_busy(rank), "1" if busy else "")
    except (dist.DistError, RuntimeError):
        pass  # the store is gone: whoever asks will find out


def is_busy(rank: int, store: Any = None) -> bool:
    store = store if store is not None else job_store()
    try:
        return store.check([_busy(rank)]) and store.get(_busy(rank)) == b"1"
    except (dist.DistError, RuntimeError):
        return False


def _off(rank: int) -> str:
    return f"off/{rank}"


def tell_off(store: Any, rank: int, off: bool) -> None:
    """Is Tuck off on this rank? Nobody needs to wait for its votes then."""
    try:
        store.set(_off(rank), "1" if off else "")
    except (dist.DistError, RuntimeError):
        pass


def is_off(rank: int, store: Any) -> bool:
    return store.check([_off(rank)]) and store.get(_off(rank)) == b"1"


class Poll:
    """One rank's side of one question."""

    def __init__(self, store: Any, question: str, me: int, vote: dict[str, Any]):
        self.store, self.question, self.me = store, question, me
        self.known = {me}
        self.votes: dict[int, dict[str, Any]] = {}
        self.mine = dict(vote, ranks=sorted(set(vote.get("ranks", [])) | {me}))

    def cast(self) -> None:
        """My vote, unless somebody has given up on me."""
        text = self.store.compare_set(_key(self.question, self.me), "", json.dumps(self.mine))
        self.take(self.me, text)
        self.store.set(_board(self.me), self.question)

    def take(self, rank: int, text: bytes) -> None:
        vote = json.loads(text)
        self.votes[rank] = vote
        self.known.update(vote.get("ranks", []))

    def missing(self) -> list[int]:
        return sorted(self.known - self.votes.keys())

    def look(self) -> None:
        """Takes the votes that have been cast, and those of ranks that they list."""
        while True:
            there = [r for r in self.missing() if self.store.check([_key(self.question, r)])]
            if not there:
                return
            for rank, text in zip(there, self.many([_key(self.question, r) for r in there])):
                self.take(rank, text)

    def many(self, keys: list[str]) -> list[bytes]:
        if self.store.has_extended_api():
            return self.store.multi_get(keys)
        return [self.store.get(k) for k in keys]

    def refused(self) -> bool:
        """Is the answer no already, whatever the others say?"""
        votes = list(self.votes.values())
        return any(v.get("value") is None for v in votes) or len({v["value"] for v in votes}) > 1

    def stuck(self, rank: int) -> str | None:
        """The question that `rank` waits with, if I can never answer it before it answers mine."""
        if not self.store.check([_board(rank)]):
            return None
        other = self.store.get(_board(rank)).decode()
        if other == self.question or other == "":
            return None
        if self.store.check([_key(other, self.me)]) or not self.store.check([_key(other, rank)]):
            return None
        vote = json.loads(self.store.get(_key(other, rank)))
        if self.me not in vote.get("ranks", []):
            return None
        still = self.store.get(_board(rank)).decode() == other
        return other if still else None

    def give_up_on(self, rank: int, why: str, late: bool = False) -> None:
        """Casts the vote of another rank, unless it has just come."""
        vote = {"value": None, "absent": True, "late": late, "why": why, "ranks": [rank]}
        absent = json.dumps(vote)
        self.take(rank, self.store.compare_set(_key(self.question, rank), "", absent))

    def decline(self, other: str) -> None:
        """Tells the other, who may not look before I go on, that I will not answer its question."""
        absent = {"value": None, "absent": True, "why": "it runs another graph", "ranks": [self.me]}
        self.store.compare_set(_key(other, self.me), "", json.dumps(absent))

    def run(self, seconds: float) -> None:
        end, pause = time.monotonic() + seconds, 0.001
        self.cast()
        try:
            while True:
                self.look()
                missing = self.missing()
                if not missing or self.refused():
                    return
                late = time.monotonic() >= end
                for rank in missing[:64]:
                    if is_off(rank, self.store):
                        self.give_up_on(rank, "Tuck is off there (TUCK=0)", late=True)
                    elif late:
                        self.give_up_on(rank, f"no answer within {seconds:g} s", late=True)
                    elif pause > 0.02:
                        other = self.stuck(rank)
                        if other is not None:
                            self.give_up_on(rank, "it runs another graph")
                            self.decline(other)
                time.sleep(0 if late else pause)
                pause = min(pause * 1.5, 0.25)
        finally:
            self.store.set(_board(self.me), "")


def _differs(mine: dict[str, Any], other: dict[str, Any]) -> str:
    """In words: what another vote has that mine has not."""
    if other.get("value") is None:
        return other.get("why", ABSENT)
    here, there = ({**v, **v.get("options", {})} for v in (mine, other))
    for key in ("version", "torch", *mine.get("options", {}), "options", "cluster", "estimates"):
        if here.get(key) != there.get(key):
            return f"its {key}: {there.get(key)!r}, here {here.get(key)!r}"
    a, b = mine.get("sequence", []), other.get("sequence", [])
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            return f"its collective {i} is {y}, here {x}"
    if len(a) != len(b):
        return f"it has {len(b)} collectives, here are {len(a)}"
    return "it decided otherwise"


def ask(question: str, vote: dict[str, Any], seconds: float | None = None,
        store: Any = None, me: int | None = None) -> Answer:
    """Asks all ranks that share a group, directly or not, whether they vote for vote["value"].

    vote["ranks"] are the ranks known here; other members only serve the explanation of a
    difference. Returns the same answer on every rank. Raises StoreLost if the store is gone."""
    store = store if store is not None else job_store()
    if store is None:
        value = vote.get("value")
        if value is None:
            return Answer(False, "", 0, vote.get("why", ABSENT), {0: vote})
        return Answer(True, value, votes={0: vote})
    me = dist.get_rank() if me is None else me
    poll = Poll(store, question, me, vote)
    try:
        poll.run(seconds_allowed(seconds))
    except (dist.DistError, dist.DistStoreError, RuntimeError) as e:
        raise StoreLost(f"tuck: the store of the job is lost while ranks agree: {e}") from e
    return count(poll, me)


def count(poll: Poll, me: int) -> Answer:
    """The answer, with the first rank that differs and how."""
    mine, cast = poll.mine, poll.votes[me]
    if mine.get("value") is None:
        return Answer(False, "", me, mine.get("why", ABSENT), poll.votes)
    if cast.get("value") is None:
        why = f"the others went on without it ({cast.get('why', ABSENT)})"
        return Answer(False, "", me, why, poll.votes)
    for rank in sorted(poll.votes):
        if poll.votes[rank].get("value") != mine["value"]:
            return Answer(False, "", rank, _differs(mine, poll.votes[rank]), poll.votes)
    return Answer(True, mine["value"], votes=poll.votes)

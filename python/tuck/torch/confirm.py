"""The first call of compiled code: do all ranks issue the same collectives?

Code that was compiled and code from a cache both get a First as their callable. Its call asks the
other ranks (agree.py). If all say yes, the call goes on, and later calls are direct. If not, the
graph as it was before Tuck is compiled, on every rank, and used from then on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import torch
from torch._guards import TracingContext, tracing
from torch._inductor.output_code import CompiledFxGraph

from . import agree, sequence, spent
from .hooks import PLAN
from .job import Disagreement, Verdict, job, stop
from .settings import Settings, say

# What compiled code issues is kept in Inductor's cache with it, as members of CompiledFxGraph.
AFTER, BEFORE, PIN = "tuck_sequence", "tuck_before", "tuck_pin"


def issued(code: Any) -> sequence.Sequence | None:
    return getattr(code, AFTER, None)


class First:
    """The callable of a compiled graph until its first call is over. `unchanged` compiles the graph
    without Tuck; `failed` is why Tuck could not work on it, if so."""

    def __init__(self, code: Any, place: str, stage: str, before: sequence.Sequence,
                 settings: Settings, unchanged: Callable[[], Any], failed: str = ""):
        self.code, self.place, self.stage, self.before = code, place, stage, before
        self.settings, self.unchanged, self.failed = settings, unchanged, failed
        self.fast = code.current_callable
        self.context = TracingContext.try_get()
        self.lock = threading.Lock()

    def __call__(self, inputs: Any) -> Any:
        with self.lock:
            if self.code.current_callable is not self:  # another thread was first
                return self.code.current_callable(inputs)
            chosen = self.choose()
            result = None
            if chosen is self.fast and self.settings.verify:
                chosen, result = self.verified(inputs)
            self.code.current_callable = chosen
        return chosen(inputs) if result is None else result[0]

    def choose(self) -> Callable[[Any], Any]:
        """Tuck's code if all ranks agree, else that of the unchanged graph."""
        verdict = job.decided(self.place)
        if verdict is None:
            start = time.perf_counter()
            verdict = self.asked()
            spent.add("agreeing", time.perf_counter() - start)
            job.decide(self.place, self.stage, self.settings, verdict)
        if verdict.fits(self.before, issued(self.code)):
            return self.fast
        return self.compiled_unchanged()

    def vote(self) -> dict[str, Any]:
        after = issued(self.code)
        value, why = None, ""
        if self.failed:
            why = f"Tuck failed there: {self.failed}"
        elif after is None:
            why = "what its compiled code issues is not known"
        else:
            value = after.digest(self.settings.digest(), self.settings.token)
        shown = after.entries[:512] if after is not None else []
        return {"value": value, "why": why, "ranks": sorted(self.before.ranks), "sequence": shown,
                **self.settings.facts()}  # fmt: skip

    def asked(self) -> Verdict:
        question = job.question("graph/" + self.place)
        answer = agree.ask(question, self.vote(), job.patience(self.settings))
        if answer.agreed:
            return Verdict(self.before, issued(self.code), getattr(self.code, PLAN, ""))
        self.must_be_safe(answer)
        job.missed |= any(v.get("absent") for v in answer.votes.values())
        say(f"ranks do not agree about a graph with {len(self.before)} collectives, and all run it "
            f"unchanged: rank {answer.rank}: {answer.difference}")
        if self.settings.strict:
            raise Disagreement(f"tuck: rank {answer.rank}: {answer.difference}")
        return Verdict(self.before, None)

    def must_be_safe(self, answer: agree.Answer) -> None:
        """A rank that neither answers nor compiles may be in the middle of code that was agreed
        earlier, whose collectives are not those of this graph: then nothing here fits."""
        late = [r for r, v in answer.votes.items() if v.get("late") and not agree.is_busy(r)]
        if late and job.shares(self.before.ranks):
            raise stop(f"rank {late[0]} has not answered about a graph with {len(self.before)} "
                       "collectives that is new on this rank. It may be running code that was "
                       "agreed on earlier, which this graph does not fit, so this rank stops. "
                       "Give all ranks the same shapes and the same program, or raise `timeout` if "
                       "that rank is only slow.")  # fmt: skip

    def compiled_unchanged(self) -> Callable[[Any], Any]:
        with tracing(self.context):
            other = self.unchanged()
        if isinstance(other, CompiledFxGraph):
            if other.output_strides != self.code.output_strides:
                raise stop("the unchanged graph has results of other strides; compile without Tuck")
            self.code.tuck_kept = other  # its callable needs it
            return other.current_callable
        return other

    # ---- verify=True: both ways once

    def verified(self, inputs: Any) -> tuple[Callable[[Any], Any], list[Any]]:
        """Runs both on the same inputs; Tuck's stays if every rank got the same results, and the
        same in the inputs that are written."""
        slow = self.compiled_unchanged()
        theirs, mine = cloned(inputs), cloned(inputs)
        with torch.random.fork_rng():
            expected = slow(list(theirs))
        with torch.random.fork_rng():
            got = self.fast(list(mine))
        why = difference(expected, got) or difference(theirs, mine, "input")
        vote = {"value": None if why else "same", "why": why, "ranks": sorted(self.before.ranks)}
        answer = agree.ask(job.question("verify/" + self.place), vote, self.settings.timeout)
        if answer.agreed:
            return self.fast, [self.fast(inputs)]
        say(f"verify: the optimized graph gives other results, and the unchanged one is used: "
            f"rank {answer.rank}: {answer.difference}")
        job.decide(self.place, self.stage, self.settings, Verdict(self.before, None))
        if self.settings.strict:
            raise Disagreement(f"tuck: verify: rank {answer.rank}: {answer.difference}")
        return slow, [slow(inputs)]


class Again(First):
    """A graph whose form was agreed on, but which cannot be given the agreed sequence. If all ranks
    compiled it together, they run it unchanged; a rank that is alone with it cannot go on."""

    def __init__(self, code: Any, place: str, stage: str, before: sequence.Sequence,
                 settings: Settings, agreed: Verdict):
        super().__init__(code, place, stage, before, settings, lambda: code)
        self.agreed = agreed

    def __call__(self, inputs: Any) -> Any:
        with self.lock:
            if self.code.current_callable is self:
                self.ask_again()
                self.code.current_callable = self.fast
        return self.fast(inputs)

    def ask_again(self) -> None:
        question = job.question(f"again/{self.place}")
        answer = agree.ask(question, self.vote(), job.patience(self.settings))
        if answer.agreed:
            job.decide(self.place, self.stage, self.settings, Verdict(self.before, None), form=False)
            return
        here = issued(self.code)
        raise stop(
            "this rank compiled a graph again, alone, and its collectives cannot be put into the "
            "sequence that all ranks agreed on earlier and are running. It stops here, since any "
            "other sequence would hang or mix up data. Compile with dynamic=True, give all ranks the "
            "same shapes, or turn Tuck off for this graph.\n"
            f"  rank {answer.rank}: {answer.difference}\n"
            f"  agreed: {short(self.agreed.after)}\n  here:   {short(here)}")  # fmt: skip


def short(found: sequence.Sequence | None) -> str:
    shown = list(found.entries) if found is not None else ["not known"]
    return ", ".join(shown[:8]) + (f", ... {len(shown)} in all" if len(shown) > 8 else "")


# ---- comparing results


def cloned(inputs: Any) -> list[Any]:
    return [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]


RTOL = {torch.float64: 1e-7, torch.float32: 1e-4, torch.bfloat16: 5e-2, torch.float16: 1e-2}


def difference(expected: Any, got: Any, what: str = "result") -> str:
    """In words, or "" if results are equal up to the order of sums."""
    if len(expected) != len(got):
        return f"{len(got)} {what}s instead of {len(expected)}"
    for i, (a, b) in enumerate(zip(expected, got)):
        if not isinstance(a, torch.Tensor):
            continue
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{what} {i} is {b.dtype}{list(b.shape)} instead of {a.dtype}{list(a.shape)}"
        if torch.equal(a, b):
            continue
        rtol = RTOL.get(a.dtype, 0.0)
        scale = float(a.abs().max()) if a.numel() and rtol else 0.0
        if not torch.allclose(a, b, rtol=rtol, atol=rtol * scale, equal_nan=True):
            return f"{what} {i} differs by up to {float((a - b).abs().max()):.3g}"
    return ""

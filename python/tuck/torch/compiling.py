"""Around Inductor's compilation of one graph: with Tuck, without, or from a cache.

Inductor's caches mean that one rank may compile what another loads, and AOTAutograd's that it does
not even ask for a graph to be compiled. All code comes past here: compiled code and that of
Inductor's cache as the result of inner_compile, code of AOTAutograd's cache when it is loaded. It
gets a callable whose first call asks the other ranks (confirm.py).

A graph of a place, or of the form of a place, that was asked about before is not asked about again:
its decision is pinned to what was agreed (job.py).
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch._functorch.config
from torch import fx
from torch._guards import TracingContext
from torch._inductor import config
from torch._inductor.output_code import CompiledFxGraph

from . import hooks, sequence, spent
from .confirm import AFTER, BEFORE, PIN, Again, First, issued
from .hooks import PLAN
from .job import Verdict, job
from .settings import Settings, say

try:
    from torch._functorch._aot_autograd.autograd_cache import FXGraphCacheMiss
except ImportError:  # the class moved: loading fails all the same, and the graph is compiled

    class FXGraphCacheMiss(Exception):  # type: ignore[no-redef]
        pass


state = threading.local()  # .compiler: whose code may come from AOTAutograd's cache; .inside


# ---- what compiled code issues, kept in Inductor's cache with it ---------------------------------


def watch_code() -> None:
    """Lets every compiled graph know what it issues, and notices those that AOTAutograd loads."""
    plain, load = CompiledFxGraph.__init__, CompiledFxGraph.post_compile
    if getattr(plain, "tuck", False):
        return

    def init(self: Any, current_callable: Any, graph: Any, *args: Any, **kwargs: Any) -> None:
        plain(self, current_callable, graph, *args, **kwargs)
        notes = getattr(hooks.state, "notes", None)
        with contextlib.suppress(Exception):  # without it the ranks run the unchanged graph
            for key in (PLAN, PIN, BEFORE) if notes else ():
                setattr(self, key, notes.get(key))
            setattr(self, AFTER, sequence.of_schedule(graph.scheduler.nodes))

    def post_compile(self: Any, inputs: Any, constants: Any, kwargs: Any) -> None:
        load(self, inputs, constants, kwargs)
        compiler = getattr(state, "compiler", None)
        if compiler is not None and not getattr(state, "inside", False):
            compiler.loaded(self, "backward" if kwargs.get("is_backward") else "forward")

    init.tuck = True  # type: ignore[attr-defined]
    CompiledFxGraph.__init__ = init
    CompiledFxGraph.post_compile = post_compile


# ---- graphs --------------------------------------------------------------------------------------


class Kept:
    """A graph as it is now. A module, whose code takes long to make, is made when it is needed; its
    attributes are shared."""

    def __init__(self, gm: fx.GraphModule):
        self.graph = fx.Graph()
        self.graph._codegen = gm.graph._codegen
        known: dict[fx.Node, fx.Node] = {}
        returned = self.graph.graph_copy(gm.graph, known)
        out = self.graph.output(returned)
        out.meta = dict(next(iter(reversed(gm.graph.nodes))).meta)
        for old, new in known.items():
            if hasattr(old, "_dynamo_source"):  # which AOTAutograd wants of inputs
                new._dynamo_source = old._dynamo_source
        self.meta = dict(gm.meta)
        self.sources = getattr(gm, "_param_name_to_source", None)
        self.owner = fx.GraphModule.__new__(type(gm))  # attributes, whatever becomes of those of gm
        self.owner.__dict__.update(gm.__dict__)
        for name in ("_modules", "_parameters", "_buffers"):
            self.owner.__dict__[name] = dict(gm.__dict__[name])

    def module(self) -> fx.GraphModule:
        made = fx.GraphModule(self.owner, self.graph)
        made.meta = dict(self.meta)
        if self.sources is not None:
            made._param_name_to_source = self.sources
        return made


class Compiler:
    """inner_compile for Inductor. `patches(pin, plan)` are configurations with Tuck, `without` is
    the one without. `retrace(inner_compile)` compiles the whole program again from what Dynamo
    gave: where the code comes from AOTAutograd's cache, its graphs are not at hand."""

    def __init__(self, inner: Callable[..., Any], settings: Settings,
                 patches: Callable[..., dict[str, Any]], without: dict[str, Any],
                 retrace: Callable[[Any], Any]):
        self.inner, self.settings, self.patches, self.without = inner, settings, patches, without
        self.retrace = retrace
        self.__name__ = "compile_with_tuck"
        self.tuck = True  # functools.wraps() copies it

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Code that is loaded in this thread is this compiler's."""
        was = getattr(state, "compiler", None)
        state.compiler = self
        try:
            yield
        finally:
            state.compiler = was

    def __call__(self, gm: fx.GraphModule, example_inputs: Any, **kwargs: Any) -> Any:
        before = sequence.of_graph(gm)
        plain = lambda g: self.compile(g, example_inputs, kwargs, self.without)  # noqa: E731
        if not len(before):
            return plain(gm)
        if not before.complete:
            say("a process group of this graph cannot be found by its name; it stays as it is",
                once="no group")
            return plain(gm)
        stage = "backward" if kwargs.get("is_backward") else "forward"
        place, verdict = job.find(before, stage, self.settings)
        if verdict is not None and verdict.after is None:
            return uncached(plain(gm))
        start = time.perf_counter()
        with job.compiling(self.settings):
            with spent.on("keeping"):
                unchanged = Kept(gm)
            code, notes = self.with_tuck(gm, example_inputs, kwargs, before, verdict)
        self.report(before, code, time.perf_counter() - start, notes)
        if not isinstance(code, CompiledFxGraph):
            return code
        if verdict is not None:
            return self.pinned(code, place, stage, before, verdict, lambda: plain(unchanged.module()))
        again = lambda: plain(unchanged.module())  # noqa: E731
        failed = notes.get("failed", "")
        code.current_callable = First(code, place, stage, before, self.settings, again, failed)
        return uncached(code) if failed else code

    def with_tuck(self, gm: fx.GraphModule, inputs: Any, kwargs: dict[str, Any],
                  before: sequence.Sequence, verdict: Verdict | None) -> tuple[Any, dict[str, Any]]:
        pin, plan = (verdict.pin, verdict.plan) if verdict else ((), "")
        notes: dict[str, Any] = {BEFORE: before, PIN: pin, PLAN: ""}
        hooks.state.notes = notes
        try:
            return self.compile(gm, inputs, kwargs, self.patches(pin, plan)), notes
        finally:
            hooks.state.notes = None

    def compile(self, gm: fx.GraphModule, inputs: Any, kwargs: dict[str, Any],
                patches: dict[str, Any]) -> Any:
        was, state.inside = getattr(state, "inside", False), True
        try:
            with config.patch(patches):
                return self.inner(gm, inputs, **kwargs)
        finally:
            state.inside = was

    def report(self, before: sequence.Sequence, code: Any, took: float, notes: dict[str, Any]) -> None:
        after = issued(code)
        spent.add("compiling", took)
        spent.count(len(before), len(after if after is not None else before))
        spent.log.info("a graph with %d collectives, %s after Tuck, compiled in %.2f s%s", len(before),
                       "?" if after is None else len(after), took,
                       f": {notes[PLAN]}" if notes.get(PLAN) else "")  # fmt: skip

    def pinned(self, code: Any, place: str, stage: str, before: sequence.Sequence, verdict: Verdict,
               plain: Callable[[], Any]) -> Any:
        """A later graph of a place or form: it must issue what was agreed."""
        if verdict.fits(before, issued(code)) or len(before.ranks) < 2:
            return uncached(code)
        forget_strides()
        other = plain()
        if not isinstance(other, CompiledFxGraph) or verdict.fits(before, issued(other)):
            return uncached(other)
        other.current_callable = Again(other, place, stage, before, self.settings, verdict)
        return uncached(other)

    # ---- AOTAutograd's cache

    def loaded(self, code: Any, stage: str) -> None:
        """Code of that cache: asks at its first call, or is compiled anew if something else was
        agreed."""
        before = getattr(code, BEFORE, None)
        if before is None or not len(before):
            return
        before = before.now()
        place, verdict = job.find(before, stage, self.settings)
        usable = not getattr(code, PIN, ()) and before.complete
        if not usable or (verdict is not None and not verdict.fits(before, issued(code))):
            raise FXGraphCacheMiss
        after = issued(code)
        spent.count(len(before), len(after if after is not None else before))
        spent.log.info("a graph with %d collectives, %s after Tuck, from AOTAutograd's cache",
                       len(before), "?" if after is None else len(after))  # fmt: skip
        if verdict is None:
            again = lambda: self.traced_again(stage)  # noqa: E731
            code.current_callable = First(code, place, stage, before, self.settings, again)

    def traced_again(self, stage: str) -> Any:
        """The code of the unchanged graph of that stage."""
        found: dict[str, Any] = {}

        def inner(gm: fx.GraphModule, inputs: Any, **kwargs: Any) -> Any:
            code = self.compile(gm, inputs, kwargs, self.without)
            found["backward" if kwargs.get("is_backward") else "forward"] = code
            return code

        inner.tuck = True  # type: ignore[attr-defined]
        off = {"enable_autograd_cache": False, "force_non_lazy_backward_lowering": True}
        with torch._functorch.config.patch(off):
            self.retrace(inner)
        return found[stage]


def forget_strides() -> None:
    """Of the outputs of code that is not used: the next one tells its own, and Inductor wants the list
    to be empty."""
    context = TracingContext.try_get()
    if context is not None and context.output_strides:
        context.output_strides.clear()


def uncached(code: Any) -> Any:
    """Not for AOTAutograd's cache, whose key does not know what ranks agreed about this graph."""
    if isinstance(code, CompiledFxGraph):
        code._fx_graph_cache_key = None
    return code

"""Switching Tuck on and off: options() for one torch.compile, install() for all of them."""

from __future__ import annotations

import contextlib
import contextvars
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch._functorch.config
from torch import fx
from torch._guards import TracingContext, tracing
from torch._inductor import compile_fx as inductor
from torch._inductor import config
from torch._subclasses.fake_tensor import FakeTensor

from . import advice, agree, capturing, compiling, hooks, spent
from .job import Disagreement, job
from .settings import Settings, say, text_of_passes

GRAPH = "post_grad_custom_post_pass"
EARLY = "post_grad_custom_pre_pass"
ORDER = "reorder_for_compute_comm_overlap_passes"
# Inductor's own, which would undo or repeat what Tuck does: off in what Tuck compiles.
REPLACED = {
    "_fuse_ddp_communication": False,
    "bucket_all_gathers_fx": "none",
    "bucket_reduce_scatters_fx": "none",
    "bucket_all_reduces_fx": "none",
    "enable_simple_overlap": False,
    "aten_distributed_optimizations.enable_overlap_scheduling": False,
    "aten_distributed_optimizations.enable_simple_overlap": False,
    # collectives while compiling: a rank that loads from its cache would not take part
    "aten_distributed_optimizations.spmd_check": False,
}

_lock = threading.RLock()
_installed: list[Settings] = []


def is_off() -> bool:
    """By the environment; other ranks are told, which would else wait for an answer of this one."""
    off = os.environ.get("TUCK", "") == "0"
    job.tell_off(off)
    return off


# ---- what Inductor gets --------------------------------------------------------------------------


def _now(patches: dict[str, Any], key: str) -> Any:
    if key in patches:
        return patches[key]
    found: Any = config
    for name in key.split("."):
        found = getattr(found, name, None)
    return found


def _is_key(key: str) -> bool:
    return key in config.get_config_copy()


def _user_hooks(hook: Any) -> list[Any]:
    return [h for h in hooks._as_list(hook) if not isinstance(h, (hooks.GraphPass, hooks.SchedulePass))]


def patches_for(settings: Settings, given: dict[str, Any],
                pin: tuple[tuple[str, str], ...] = (), plan: str = "") -> dict[str, Any]:
    """Inductor's configuration with Tuck in it: the user's hooks stay and come first. pin and plan:
    the collectives that were agreed on earlier, and the passes that led to them."""
    asked = hooks.split_passes(settings.passes)
    early, late = hooks.split_passes(plan) if plan else asked
    out = {k: v for k, v in REPLACED.items() if _is_key(k)}
    for key, passes, else_ in ((EARLY, early, asked[0]), (GRAPH, late, asked[1])):
        mine = _user_hooks(_now(given, key))
        instead = else_ if else_ != passes else ""
        out[key] = hooks.GraphPass(settings, passes, mine, ";".join(e for e, _ in pin), instead)
    on = _now(given, "reorder_for_compute_comm_overlap")
    theirs = _user_hooks(_now(given, ORDER)) if on else []
    out["reorder_for_compute_comm_overlap"] = True
    out[ORDER] = [*theirs, hooks.SchedulePass(settings, settings.schedule, pin)]
    return out


def without_tuck(given: dict[str, Any]) -> dict[str, Any]:
    """The same configuration as if Tuck were not there: with a value for all that it sets."""
    now = {key: _now({}, key) for key in patches_for(Settings(), {})}
    if _settings_in(given) is None:
        return {**now, **given}
    out = {**given, **now}
    for key in (EARLY, GRAPH, ORDER):
        both = _user_hooks(now[key]) + [h for x in hooks._as_list(given.get(key)) for h in _behind(x)]
        out[key] = list({id(h): h for h in both}.values()) or now[key]
    return out


def _behind(hook: Any) -> list[Any]:
    """A hook of the user, or those that Tuck's hook took over from the user."""
    if isinstance(hook, hooks.GraphPass):
        return hook.earlier
    return _user_hooks(hook)


def _settings_in(given: dict[str, Any] | None) -> Settings | None:
    for hook in hooks._as_list((given or {}).get(GRAPH)):
        if isinstance(hook, hooks.GraphPass):
            return hook.settings
    return None


# ---- every compilation comes past here -----------------------------------------------------------


def _compile_fx(plain: Callable[..., Any]) -> Callable[..., Any]:
    def compile_fx(model_: Any, example_inputs_: Any, inner_compile: Any = inductor.compile_fx_inner,
                   config_patches: dict[str, Any] | None = None, **kwargs: Any) -> Any:
        if getattr(inner_compile, "tuck", False):
            return plain(model_, example_inputs_, inner_compile, config_patches, **kwargs)
        given = dict(config_patches or {})
        asked = _settings_in(given)
        settings = asked or (_installed[-1] if _installed else None)
        settings = job.kept(None if is_off() else settings)
        capture = capturing.active()
        if capture is not None:
            inner_compile = _captured(inner_compile, capture)
        off = settings is None
        if off and capture is None:
            given = without_tuck(given) if asked else given
            return plain(model_, example_inputs_, inner_compile, given or None, **kwargs)
        without = without_tuck(given)
        if off:
            with _cache(False):
                return plain(model_, example_inputs_, inner_compile, without, **kwargs)
        advice.look(settings)
        if _now(given, "deterministic"):
            say("torch._inductor.config.deterministic allows no order of the schedule: Tuck's "
                "buckets are used, its order is not", once="deterministic")  # fmt: skip
        patches = lambda pin=(), plan="": {**without, **patches_for(settings, without, pin, plan)}  # noqa: E731
        compiler = compiling.Compiler(inner_compile, settings, patches, without,
                                      _retrace(plain, model_, example_inputs_, without, kwargs))
        # With Tuck's configuration, so that it is part of the key of AOTAutograd's cache. What is
        # captured must not come from there: no graph would be seen.
        with compiler.watching(), _cache(capture is None):
            return plain(model_, example_inputs_, compiler, patches(), **kwargs)

    compile_fx.tuck = True  # type: ignore[attr-defined]
    return compile_fx


def _cache(on: bool) -> Any:
    """AOTAutograd's cache as it is set, or off."""
    return contextlib.nullcontext() if on else torch._functorch.config.patch(enable_autograd_cache=False)


def _retrace(plain: Callable[..., Any], model: Any, inputs: Any, without: dict[str, Any],
             kwargs: dict[str, Any]) -> Callable[[Any], Any]:
    """A function that compiles the program again with another inner_compile. Compiling changes the
    graph, so it keeps a copy; of the inputs it keeps no memory."""
    with spent.on("keeping"):
        kept = compiling.Kept(model) if isinstance(model, fx.GraphModule) else None
        context = TracingContext.try_get()
        mode = context.fake_mode if context is not None else None
        fakes = [mode.from_tensor(x) if mode is not None and isinstance(x, torch.Tensor)
                 and not isinstance(x, FakeTensor) else x for x in inputs]  # fmt: skip
    grad = torch.is_grad_enabled()

    def work(inner: Any) -> None:
        with tracing(context), torch.set_grad_enabled(grad):
            plain(kept.module() if kept is not None else model, fakes, inner, without, **kwargs)

    return lambda inner: _elsewhere(work, inner)


def _elsewhere(work: Callable[..., None], *args: Any) -> None:
    """In a thread of its own, with the configuration of this one: in the middle of a call of
    compiled code nothing can be traced."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work(*args)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,))
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def _captured(inner: Callable[..., Any], capture: capturing.Capture) -> Callable[..., Any]:
    """Writes each graph before it is compiled; the same graph compiled again is not written."""
    number = capture.next_number()
    done: set[str] = set()

    def compile_captured(gm: Any, example_inputs: Any, **kwargs: Any) -> Any:
        stage = "backward" if kwargs.get("is_backward") else "forward"
        if stage == "forward" and kwargs.get("is_inference"):
            stage = "inference"
        if stage not in done:
            done.add(stage)
            capture.take(gm, number, stage)
        return inner(gm, example_inputs, **kwargs)

    compile_captured.tuck = True  # type: ignore[attr-defined]
    return compile_captured


def _hook_inductor() -> None:
    with _lock:
        compiling.watch_code()
        if not getattr(inductor.compile_fx, "tuck", False):
            inductor.compile_fx = _compile_fx(inductor.compile_fx)


# ---- for users -----------------------------------------------------------------------------------


def _make(passes: Any, schedule: Any, cluster: Any, memory: Any, verify: bool, strict: bool,
          timeout: float | None) -> Settings:
    return Settings(text_of_passes(passes), text_of_passes(schedule),
                    None if cluster is None else str(cluster),
                    None if memory is None else str(memory), verify, strict, timeout)  # fmt: skip


def options(passes: Any = "auto", cluster: str | None = None, memory: Any = None,
            verify: bool = False, *, schedule: Any = "graph", strict: bool = False,
            timeout: float | None = None) -> dict[str, Any]:
    """Options for torch.compile(options=...): Tuck's passes in this one compilation, forward and
    backward. {**tuck.torch.options(), "other": value} is fine, too.

    passes: "auto", or names of passes (docs/passes.md) as a list or a pipeline's text.
    cluster: the machine, "h100x8x4" or a cluster file; None: by the devices in the graph.
    memory: how much a rank has, "60GiB".
    verify: run the first step both ways and compare.
    schedule: passes on Inductor's schedule; "graph" keeps the order of the graph.
    strict: raise where Tuck fails or ranks do not agree, instead of a warning.
    timeout: seconds that a rank waits for others; None: TUCK_TIMEOUT, or 300.
    """
    if is_off():
        return {}
    settings = _make(passes, schedule, cluster, memory, verify, strict, timeout)
    if problem := settings.problem():
        raise problem
    _hook_inductor()
    return patches_for(settings, {})


def install(passes: Any = "auto", cluster: str | None = None, memory: Any = None,
            verify: bool = False, *, schedule: Any = "graph", strict: bool = False,
            timeout: float | None = None) -> bool:
    """Tuck in every torch.compile from now on, in any thread: call it on all ranks, after
    init_process_group(). True if Tuck is on: that is, all ranks want the same. The arguments are
    those of options(); tuck.Error if they cannot be used."""
    if is_off():
        return False
    settings = _make(passes, schedule, cluster, memory, verify, strict, timeout)
    advice.look(settings, at_install=True)
    answer = _exchange(settings)
    if problem := settings.problem():  # only now: other ranks may wait for this one's answer
        raise problem
    if not answer.agreed:
        text = f"ranks do not agree, and Tuck is off: rank {answer.rank}: {answer.difference}"
        if strict:
            raise Disagreement("tuck: " + text)
        say(text)
        return False
    _hook_inductor()
    with _lock:
        _installed.append(settings.agreed(answer.value))
    return True


def _exchange(settings: Settings) -> agree.Answer:
    """Version, options, cluster and estimates of all ranks, through the job's store."""
    store = agree.job_store()
    value = settings.digest()
    if store is None:
        return agree.Answer(True, value)
    import torch.distributed as dist

    with job.lock:
        job.refresh()
        job.exchanges += 1
        question = job.question(f"install/{job.exchanges}")
    vote = {"value": value, "ranks": list(range(dist.get_world_size())), **settings.facts()}
    return agree.ask(question, vote, settings.timeout)


def uninstall() -> None:
    """Takes back the last install(); what was set before it is in force again."""
    with _lock:
        if _installed:
            _installed.pop()
            spent.log.info("uninstalled: %s", spent.text())


@contextlib.contextmanager
def installed(*args: Any, **kwargs: Any) -> Iterator[bool]:
    """install() for the block. A graph whose forward was compiled in it also has its backward
    compiled with Tuck, even after the block."""
    on = install(*args, **kwargs)
    try:
        yield on
    finally:
        if on:
            uninstall()


def _reset() -> None:
    """For tests."""
    _installed.clear()


__all__ = ["install", "installed", "options", "uninstall"]

"""Switching Tuck on and off: options() for one torch.compile, install() for all of them."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch._functorch.config
from torch._inductor import compile_fx as inductor
from torch._inductor import config

from . import advice, agree, capturing, compiling, hooks
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
    return os.environ.get("TUCK", "") == "0"


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
                pinned: tuple[str, ...] | None = (), plan: str = "") -> dict[str, Any]:
    """Inductor's configuration with Tuck in it: the user's hooks stay and come first. pinned and
    plan: the collectives that were agreed on earlier, and the passes that led to them."""
    pin = ";".join(pinned or ())
    early, late = hooks.split_passes(plan or settings.passes)
    out = {k: v for k, v in REPLACED.items() if _is_key(k)}
    for key, passes in ((EARLY, early), (GRAPH, late)):
        mine = _user_hooks(_now({}, key)) + _user_hooks(given.get(key))
        unique = list({id(h): h for h in mine}.values())
        out[key] = hooks.GraphPass(settings, passes, unique, pin)
    on = _now(given, "reorder_for_compute_comm_overlap")
    theirs = _user_hooks(_now(given, ORDER)) if on else []
    out["reorder_for_compute_comm_overlap"] = True
    out[ORDER] = [*theirs, hooks.SchedulePass(settings, settings.schedule, tuple(pinned or ()))]
    return out


def without_tuck(given: dict[str, Any]) -> dict[str, Any]:
    """The same configuration as if Tuck were not there."""
    ours = set(patches_for(Settings(), given))
    out = {k: v for k, v in given.items() if k not in ours}
    for key in ours & given.keys():
        kept = _user_hooks(given[key]) if key in (EARLY, GRAPH, ORDER) else [given[key]]
        if key in (EARLY, GRAPH):
            out[key] = kept or _now({}, key)
        elif key == ORDER:
            out[key] = kept or _now({}, key)
    if _settings_in(given) is None:
        out.update({k: given[k] for k in ours & given.keys() if k not in (EARLY, GRAPH, ORDER)})
    return out


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
        capture = capturing.active()
        if capture is not None:
            inner_compile = _captured(inner_compile, capture)
        off = settings is None or is_off()
        if off and capture is None:
            given = without_tuck(given) if asked else given
            return plain(model_, example_inputs_, inner_compile, given or None, **kwargs)
        functorch = torch._functorch.config
        without = without_tuck(given)
        if off:
            with functorch.patch(enable_autograd_cache=False):
                return plain(model_, example_inputs_, inner_compile, without or None, **kwargs)
        advice.look(settings)
        if _now(given, "deterministic"):
            say("torch._inductor.config.deterministic allows no order of the schedule: Tuck's "
                "buckets are used, its order is not", once="deterministic")  # fmt: skip
        compiler = compiling.Compiler(
            inner_compile, settings, lambda *pinned: {**given, **patches_for(settings, given, *pinned)},
            without)  # fmt: skip
        with functorch.patch(enable_autograd_cache=False):
            return plain(model_, example_inputs_, compiler, without or None, **kwargs)

    compile_fx.tuck = True  # type: ignore[attr-defined]
    return compile_fx


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

    return compile_captured


def _hook_inductor() -> None:
    with _lock:
        compiling.remember_sequences()
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
    _hook_inductor()
    return patches_for(settings, {})


def install(passes: Any = "auto", cluster: str | None = None, memory: Any = None,
            verify: bool = False, *, schedule: Any = "graph", strict: bool = False,
            timeout: float | None = None) -> bool:
    """Tuck in every torch.compile from now on, in any thread: call it on all ranks, after
    init_process_group(). True if Tuck is on: that is, all ranks want the same. The arguments are
    those of options()."""
    if is_off():
        return False
    settings = _make(passes, schedule, cluster, memory, verify, strict, timeout)
    advice.look(settings, at_install=True)
    answer = _exchange(settings)
    if not answer.agreed:
        text = f"ranks do not agree, and Tuck is off: rank {answer.rank}: {answer.difference}"
        if strict:
            raise compiling.Disagreement("tuck: " + text)
        say(text)
        return False
    _hook_inductor()
    with _lock:
        _installed.append(settings.agreed(answer.value))
    return True


_exchanges = 0


def _exchange(settings: Settings) -> agree.Answer:
    """Version, options, cluster and estimates of all ranks, through the job's store."""
    global _exchanges
    store = agree.job_store()
    value = settings.digest()
    if store is None:
        return agree.Answer(True, value)
    import torch.distributed as dist

    with compiling.job.lock:
        compiling.job.refresh()
        _exchanges += 1
        question = compiling.job.question(f"install/{_exchanges}")
    vote = {"value": value, "ranks": list(range(dist.get_world_size())), **settings.facts()}
    return agree.ask(question, vote, settings.timeout)


def uninstall() -> None:
    """Takes back the last install(); what was set before it is in force again."""
    with _lock:
        if _installed:
            _installed.pop()


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

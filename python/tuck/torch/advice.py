"""DDP and FSDP as people write them: what Tuck cannot see, said once, with what brings it in."""

from __future__ import annotations

import functools
import sys
from typing import Any

import torch
from torch import nn

from .settings import Settings, say

DDP = ("DistributedDataParallel under torch.compile communicates outside of the graph, where Tuck "
       "cannot see it. To bring it in: torch._dynamo.config.optimize_ddp = \"python_reducer\" before "
       "compiling, and compile a function that contains the backward(), or run the step inside "
       "torch._dynamo.compiled_autograd._enable(torch.compile()). See docs/pytorch.md")  # fmt: skip
FSDP = ("fully_shard() gathers and scatters in hooks that are never part of the graph (from torch "
        "2.12 on): Tuck leaves them alone. Sharding by parametrised DTensors is traced: see "
        "examples/torch/sharded.py")  # fmt: skip
FSDP_WRONG = ("fully_shard() under compiled autograd trains wrongly in torch 2.12 and later, without "
              "an error: do not combine them")  # fmt: skip


def _python_reducer() -> bool:
    import torch._dynamo.config as dynamo

    return dynamo._get_optimize_ddp_mode() == "python_reducer" if hasattr(
        dynamo, "_get_optimize_ddp_mode") else dynamo.optimize_ddp == "python_reducer"  # fmt: skip


def _version() -> tuple[int, int]:
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


def _in_use(name: str, attribute: str) -> Any:
    """A class of torch, if the program has imported it."""
    module = sys.modules.get(name)
    return getattr(module, attribute, None) if module else None


def on_ddp(module: nn.Module) -> None:
    if not _python_reducer():
        say(DDP, once="ddp")


def on_fsdp(module: nn.Module) -> None:
    if _version() >= (2, 12):
        say(FSDP, once="fsdp")


def on_compiled_autograd() -> None:
    if "fsdp" in _seen and _version() >= (2, 12):
        say(FSDP_WRONG, once="fsdp wrong")


_seen: set[str] = set()


def look(settings: Settings, at_install: bool = False) -> None:
    """Watches for such modules from now on, and looks at what there is."""
    _watch_ddp()
    _watch_fsdp()
    _watch_compiled_autograd()
    if "ddp" in _seen and not _python_reducer():
        say(DDP, once="ddp")
    if "fsdp" in _seen:
        on_fsdp(None)  # type: ignore[arg-type]


@functools.cache
def _watch_ddp() -> None:
    from torch.nn.parallel import DistributedDataParallel

    plain = DistributedDataParallel.__init__

    @functools.wraps(plain)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        plain(self, *args, **kwargs)
        _seen.add("ddp")

    DistributedDataParallel.__init__ = init  # type: ignore[method-assign]
    if any(True for _ in _live(DistributedDataParallel)):
        _seen.add("ddp")


@functools.cache
def _watch_fsdp() -> None:
    try:
        from torch.distributed.fsdp import FSDPModule
        from torch.distributed.fsdp._fully_shard import _fsdp_state
    except ImportError:
        return
    plain = _fsdp_state.FSDPState.__init__

    @functools.wraps(plain)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        plain(self, *args, **kwargs)
        _seen.add("fsdp")

    _fsdp_state.FSDPState.__init__ = init  # type: ignore[method-assign]
    if any(True for _ in _live(FSDPModule)):
        _seen.add("fsdp")


@functools.cache
def _watch_compiled_autograd() -> None:
    from torch._dynamo import compiled_autograd

    plain = compiled_autograd._enable

    @functools.wraps(plain)
    def enable(*args: Any, **kwargs: Any) -> Any:
        on_compiled_autograd()
        return plain(*args, **kwargs)

    compiled_autograd._enable = enable


def _live(kind: type) -> Any:
    import gc

    return (x for x in gc.get_objects() if issubclass(type(x), kind))

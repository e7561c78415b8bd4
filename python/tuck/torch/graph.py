"""Passes on live torch.fx graphs."""

from __future__ import annotations

from typing import Any, Optional, Union

from .._lib import Handle
from .._run import Passes, Report


def take(source: Any) -> Handle:
    """The graph of a GraphModule, or a torch.fx.Graph, as a graph of the library."""
    raise NotImplementedError("live graphs")


def run(
    graph: Any,
    passes: Passes = "auto",
    *,
    cluster: Optional[str] = None,
    profile: Optional[str] = None,
    model: Optional[str] = None,
    memory: Union[str, int, None] = None,
    keep_order: Union[bool, str] = False,
    strict: bool = False,
) -> Report:
    """Runs passes on a torch.fx.Graph in place: the function for Inductor's hooks."""
    raise NotImplementedError("live graphs")


def optimize(gm: Any, passes: Passes = "auto", **options: Any) -> Report:
    """Runs passes on a GraphModule and recompiles it, or on a torch.fx.Graph."""
    raise NotImplementedError("live graphs")

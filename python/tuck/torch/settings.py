"""What a user asked for, and how Tuck speaks: warnings, errors, the token of a decision."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import threading
import warnings
from typing import Any

import torch

from .. import __version__


class TuckWarning(UserWarning):
    """Something did not work and training goes on without it, or training works otherwise than one
    might think."""


_said: set[str] = set()
_saying = threading.Lock()


def say(text: str, once: str = "") -> None:
    """A warning; with `once`, the first one of that kind only."""
    with _saying:
        if once and once in _said:
            return
        _said.add(once)
    warnings.warn("tuck: " + text, TuckWarning, stacklevel=3)


def forget_said() -> None:
    """For tests: every warning may come again."""
    _said.clear()


@dataclasses.dataclass(frozen=True)
class Settings:
    """The arguments of options() and install()."""

    passes: str = "auto"
    schedule: str = "graph"  # passes on Inductor's schedule; "graph": keep the graph's order
    cluster: str | None = None
    memory: str | None = None
    verify: bool = False
    strict: bool = False
    timeout: float | None = None
    token: str = ""  # what all ranks agreed on in install()

    def agreed(self, token: str) -> Settings:
        return dataclasses.replace(self, token=token)

    def key(self) -> str:
        """What decides about the compiled code: part of every cache key."""
        decides = (self.passes, self.schedule, self.cluster, self.memory, self.token)
        return json.dumps([__version__, *decides])

    def facts(self) -> dict[str, Any]:
        """What ranks compare."""
        return {"version": __version__, "torch": str(torch.__version__),
                "options": json.dumps([self.passes, self.schedule, self.memory, self.verify,
                                       self.strict]),
                "cluster": self.cluster, "estimates": device_name()}  # fmt: skip

    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self.facts(), sort_keys=True).encode()).hexdigest()[:16]


def device_name() -> str:
    """Estimates of times depend on it."""
    try:
        if torch.cuda.is_available():
            return torch.cuda.get_device_name()
    except RuntimeError:
        pass
    return "cpu"


def text_of_passes(given: Any) -> str:
    """A list, a pipeline's text, "auto", or "" and None for no pass."""
    if given is None:
        return ""
    return given if isinstance(given, str) else ", ".join(given)

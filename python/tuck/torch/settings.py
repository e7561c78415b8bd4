"""What a user asked for, and how Tuck speaks: warnings, errors, the token of a decision."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import threading
import warnings
from typing import Any

import torch
import torch.distributed
from torch._inductor import config

from .. import Error, Graph, __version__, _lib
from .._run import parse


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
                "options": {"passes": self.passes, "schedule": self.schedule, "memory": self.memory,
                            "verify": self.verify, "strict": self.strict},
                "cluster": self.cluster, "estimates": estimates(self.cluster, _world())}  # fmt: skip

    def problem(self) -> Error | None:
        """What the library says about arguments that it cannot use."""
        try:
            _lib.Settings(cluster=self.cluster, memory=self.memory)
            for given, own in ((self.passes, "auto"), (self.schedule, "graph")):
                if given.strip() != own:
                    parse(given, _lib.Diags())
        except Error as error:
            return error
        return None

    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self.facts(), sort_keys=True).encode()).hexdigest()[:16]


# A product, and messages of two sizes: what they take says what the machine is.
_SAMPLE = """class sample(torch.nn.Module):
    def forward(self, x: "bf16[4096, 4096][4096, 1]{device}", y: "bf16[1024][1]{device}"):
        a: "bf16[4096, 4096][4096, 1]{device}" = torch.ops._c10d_functional.all_reduce.default(x, 'sum', '0')
        b: "bf16[1024][1]{device}" = torch.ops._c10d_functional.all_reduce.default(y, 'sum', '0')
        m: "bf16[4096, 4096][4096, 1]{device}" = torch.ops.aten.mm.default(x, x)
        c: "bf16[4096, 4096][4096, 1]{device}" = torch.ops._c10d_functional.wait_tensor.default(a)
        d: "bf16[1024][1]{device}" = torch.ops._c10d_functional.wait_tensor.default(b)
        return (m, c, d)
"""


@functools.lru_cache(maxsize=None)
def estimates(cluster: str | None, world: int) -> dict[str, Any]:
    """What decisions rest on besides the graph: the device, what the library thinks that computing
    and communicating takes, and where Inductor's estimates come from."""
    device = device_name()
    text = _SAMPLE.format(device="cpu" if device == "cpu" else "cuda:0")
    given = config.estimate_op_runtime
    inductor = given if isinstance(given, str) else getattr(given, "__qualname__", "?")
    rates = f"{inductor}, bandwidths {config.intra_node_bw} and {config.inter_node_bw}"
    out = {"device": device, "ranks": world, "inductor": rates}
    try:
        graph = Graph(text, cluster=cluster, name="sample")
        graph.set_group("0", world)
        found = graph.simulate().data
    except Error as error:  # no such cluster: the passes will say so
        return {**out, "error": str(error)}
    return {**out, "product_ns": found["compute_ns"],
            "all_reduce_ns": [c["ns"] for c in found["collectives"]]}  # fmt: skip


def _world() -> int:
    there = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_world_size() if there else 1


def device_name() -> str:
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

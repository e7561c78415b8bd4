"""Which collectives a graph issues, in which order: of a torch.fx graph, and of compiled code.

An entry says what another rank must agree about: "all_reduce f32 4096 g0 sum". Groups are numbered
in the order in which they first occur, since names of groups differ from rank to rank. Its form is
the same without sizes: what stays if a rank compiles the same program for another batch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import fx

SPACES = ("_c10d_functional", "_c10d_functional_autograd", "c10d_functional", "_dtensor", "c10d",
          "bucketing", "symm_mem")
QUIET = ("wait_tensor", "wait_tensors", "_wrap_tensor_autograd", "get_rank", "barrier_handle")


def _is_collective(target: Any) -> bool:
    if not isinstance(target, torch._ops.OpOverload):
        return False
    space, name = target.namespace, target._schema.name.split("::")[1]
    if space not in SPACES or name in QUIET:
        return False
    return any("group" in a.name or a.name == "tag" for a in target._schema.arguments)


def members(group: Any) -> list[int] | None:
    """The global ranks of a group by its name or object; None if it cannot be found."""
    try:
        if isinstance(group, str):
            group = torch._C._distributed_c10d._resolve_process_group(group)
        return sorted(dist.get_process_group_ranks(group))
    except Exception:
        return None


class Sequence:
    """The entries, the ranks of all groups, and whether every group was found."""

    def __init__(self) -> None:
        self.entries: list[str] = []
        self.forms: list[str] = []
        self.names: list[str] = []  # the group of each entry, as this rank calls it
        self.groups: dict[str, int] = {}
        self.ranks: set[int] = set()
        self.complete = True

    def group(self, name: Any) -> str:
        key = name if isinstance(name, str) else getattr(name, "group_name", None) or repr(name)
        if key not in self.groups:
            self.groups[key] = len(self.groups)
            self.look_up(name)
        self.names.append(key)
        return f"g{self.groups[key]}"

    def look_up(self, name: Any) -> None:
        found = members(name)
        self.complete &= found is not None
        self.ranks.update(found or [])

    def add(self, op: str, payload: Iterable[tuple[str, str]], rest: Iterable[Any], group: Any) -> None:
        payload, rest, op = list(payload), list(rest), op.rstrip("_")
        where = self.group(group)
        sized = [word for part in payload for word in part]
        self.entries.append(" ".join([op, *sized, where, *map(str, rest)]))
        plain = ["[]" if isinstance(x, (list, tuple)) else str(x) for x in rest]  # sizes of parts
        self.forms.append(" ".join([op, *(dtype for dtype, _ in payload), where, *plain]))

    def digest(self, *more: str) -> str:
        return _digest([self.entries, *more])

    def form(self, *more: str) -> str:
        return _digest([self.forms, *more])

    def of_group(self, name: str) -> list[str]:
        """What one group sees, without the number of the group."""
        number = f" g{self.groups.get(name)}"
        return [e.replace(number, "", 1) for e, n in zip(self.entries, self.names) if n == name]

    def now(self) -> Sequence:
        """The same, read from a cache: who is in the groups of this job?"""
        other = Sequence()
        other.entries, other.forms, other.names = self.entries, self.forms, self.names
        other.groups = self.groups
        for name in self.groups:
            other.look_up(name)
        return other

    def __len__(self) -> int:
        return len(self.entries)


def _digest(what: Any) -> str:
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:32]


def _dtype(x: Any) -> str:
    return str(x).replace("torch.", "")


def _of_values(values: Any) -> Iterator[tuple[str, str]]:
    for v in values if isinstance(values, (list, tuple)) else [values]:
        if isinstance(v, torch.Tensor):
            yield _dtype(v.dtype), str(v.numel())


def of_graph(gm: fx.GraphModule) -> Sequence:
    """Of a graph and those nested in it."""
    found = Sequence()
    for module in gm.modules():
        if isinstance(module, fx.GraphModule):
            for node in module.graph.nodes:
                if node.op == "call_function" and _is_collective(node.target):
                    _add_node(found, node)
    return found


def _add_node(found: Sequence, node: fx.Node) -> None:
    schema = node.target._schema
    payload: list[tuple[str, str]] = []
    rest: list[Any] = []
    group: Any = None
    for i, arg in enumerate(schema.arguments):
        given = node.kwargs.get(arg.name, node.args[i] if i < len(node.args) else None)
        if "group_name" in arg.name or arg.name == "group":
            group = given.meta.get("val", given) if isinstance(given, fx.Node) else given
        elif "Tensor" in str(arg.type):
            vals = fx.map_arg(given, lambda n: n.meta.get("val"))
            payload.extend(_of_values(vals))
        else:
            rest.append(fx.map_arg(given, lambda n: n.meta.get("val")))
    found.add(schema.name.split("::")[1], payload, rest, group)


def of_schedule(snodes: Iterable[Any]) -> Sequence:
    """Of Inductor's final schedule: what the compiled code issues."""
    from torch._inductor import ir

    found = Sequence()
    for snode in snodes:
        for inner in snode.get_nodes():
            node = inner.node
            if isinstance(node, ir.FallbackKernel) and _is_collective(node.op_overload):
                _add_kernel(found, node)
    return found


def _add_kernel(found: Sequence, node: Any) -> None:
    schema = node.op_overload._schema
    payload = [(_dtype(x.get_dtype()), str(x.get_numel())) for x in node.inputs]
    names = [a.name for a in schema.arguments if "Tensor" not in str(a.type)]
    given = dict(zip(names, node.constant_args))
    given.update({k: v for k, v in (node.kwargs or {}).items() if k in names})
    group = next((v for k, v in given.items() if "group_name" in k or k == "group"), None)
    rest = [v for k, v in given.items() if not ("group_name" in k or k == "group")]
    found.add(schema.name.split("::")[1], payload, rest, group)

"""Which collectives a graph issues, in which order: of a torch.fx graph, and of compiled code.

An entry says what another rank must agree about: "all_reduce f32 4096 g0 sum". Groups are numbered
in the order in which they first occur, since names of groups differ from rank to rank.
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
        self.groups: dict[str, int] = {}
        self.ranks: set[int] = set()
        self.complete = True

    def group(self, name: Any) -> str:
        key = name if isinstance(name, str) else getattr(name, "group_name", None) or repr(name)
        if key not in self.groups:
            self.groups[key] = len(self.groups)
            found = members(name)
            self.complete &= found is not None
            self.ranks.update(found or [])
        return f"g{self.groups[key]}"

    def add(self, op: str, payload: Iterable[str], rest: Iterable[Any], group: Any) -> None:
        words = [op.rstrip("_"), *payload, self.group(group), *map(str, rest)]
        self.entries.append(" ".join(words))

    def digest(self, *more: str) -> str:
        text = json.dumps([self.entries, *more])
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def __len__(self) -> int:
        return len(self.entries)

    def __getstate__(self) -> dict[str, Any]:
        return {"entries": self.entries, "groups": {str(k): v for k, v in self.groups.items()},
                "ranks": self.ranks, "complete": self.complete}  # fmt: skip


def _dtype(x: Any) -> str:
    return str(x.dtype).replace("torch.", "")


def _of_values(values: Any) -> Iterator[str]:
    for v in values if isinstance(values, (list, tuple)) else [values]:
        if isinstance(v, torch.Tensor):
            yield _dtype(v)
            yield str(v.numel())


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
    payload: list[str] = []
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
    payload: list[str] = []
    for x in node.inputs:
        payload += [str(x.get_dtype()).replace("torch.", ""), str(x.get_numel())]
    names = [a.name for a in schema.arguments if "Tensor" not in str(a.type)]
    given = dict(zip(names, node.constant_args))
    given.update({k: v for k, v in (node.kwargs or {}).items() if k in names})
    group = next((v for k, v in given.items() if "group_name" in k or k == "group"), None)
    rest = [v for k, v in given.items() if not ("group_name" in k or k == "group")]
    found.add(schema.name.split("::")[1], payload, rest, group)

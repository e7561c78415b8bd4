"""meta["val"] of new nodes.

Operators run on the fake values of their operands. Most need not go through the whole of fake mode:
what shares no memory with its operands is made from the type that the library inferred, a view by the
operator on the meta tensors inside."""

from __future__ import annotations

import contextlib
import operator
import re
from typing import Any, Optional, Sequence

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensor, in_kernel_invocation_manager

from .arrays import dtype_abbrs

Node = torch.fx.Node

_DTYPES = {text: dtype for dtype, text in dtype_abbrs.items()}
_STATIC = re.compile(r"(\w+)\[([\d, ]*)\]\[([\d, ]*)\]([\w:]+)")


class Values:
    def __init__(self, encoder: Any) -> None:
        self.encoder = encoder
        self.mode = encoder.fake_mode
        self._nodes: Optional[dict[str, Node]] = None
        self._types: dict[str, Any] = {}
        self._ways: dict[Any, str] = {}

    def make(self, new: Sequence[Node], types: Sequence[str], retyped: Sequence[Node]) -> None:
        """Gives the nodes their values, in the order of the graph."""
        if self.mode is None or not (new or retyped):
            return
        shapes = self.mode.shape_env
        symbols = contextlib.nullcontext() if shapes is None else _no_new_symbols(shapes)
        with torch.no_grad(), symbols:
            left = self.quick(new, types)
            for node, text in zip(new[left:], types[left:]):
                if node.op == "call_function":
                    node.meta["val"] = self.value(node, text)
            for node in retyped:
                if node.op == "call_function":
                    node.meta["val"] = self.run(node)

    def quick(self, new: Sequence[Node], types: Sequence[str]) -> int:
        """The values of all nodes up to the first that needs fake mode, without leaving the meta
        kernels; how many those are."""
        if self.encoder.symbolic:
            return 0
        with in_kernel_invocation_manager(self.mode):
            for i, node in enumerate(new):
                if node.op != "call_function":
                    continue
                made = self.without_mode(node, types[i])
                if made is None:
                    return i
                node.meta["val"] = made
        return len(new)

    def without_mode(self, node: Node, text: str) -> Any:
        """None: it needs fake mode."""
        target = node.target
        if target is operator.getitem:
            return node.args[0].meta["val"][node.args[1]]
        way = self.way(target)
        if way == "type":
            return self.from_type(text)
        if way == "meta":
            with contextlib.suppress(Exception):
                return self.inside(node)
        return None

    def value(self, node: Node, text: str) -> Any:
        if not self.encoder.symbolic:
            with in_kernel_invocation_manager(self.mode):
                made = self.without_mode(node, text)
            if made is not None:
                return made
        return self.run(node)

    def way(self, target: Any) -> str:
        """How a value is made: from its type if it shares no memory, by meta kernels if it is a view,
        else in fake mode."""
        found = self._ways.get(target)
        if found is None:
            found = "fake"
            if isinstance(target, torch._ops.OpOverload) and not target._schema.is_mutable:
                returns = target._schema.returns
                if len(returns) == 1:
                    found = "type" if returns[0].alias_info is None else "meta"
            self._ways[target] = found
        return found

    def from_type(self, text: str) -> Any:
        """New memory of this type, a tensor or a list; None if it is not complete or has symbols."""
        parts = self._types.get(text, ())
        if parts == ():
            parts = self._types[text] = _parts_of(text)
        if parts is None:
            return None
        if isinstance(parts, list):
            return [self.empty(*part) for part in parts]
        return self.empty(*parts)

    def empty(self, size: Any, stride: Any, dtype: Any, device: Any) -> Any:
        inner = torch.empty_strided(size, stride, dtype=dtype, device="meta")
        return FakeTensor(self.mode, inner, device)

    def inside(self, node: Node) -> Any:
        """The operator on the meta tensors inside of its operands; among the meta kernels."""
        args, kwargs = _operands(node)
        first = args[0][0] if isinstance(args[0], (list, tuple)) else args[0]
        device = first.fake_device
        result = node.target(*args, **kwargs)
        if isinstance(result, torch.Tensor):
            return FakeTensor(self.mode, result, device)
        return [FakeTensor(self.mode, part, device) for part in result]

    def run(self, node: Node) -> Any:
        args, kwargs = _operands(node)
        with self.mode:
            return node.target(*args, **kwargs)

    def symbol(self, text: str) -> Any:
        """A symbolic number as an operand: one that was there, a node that has it, or a new one."""
        if text in self.encoder.symbols:
            return self.encoder.symbols[text]
        if self._nodes is None:
            self._nodes = {}
            for node in self.encoder.graphs[0][1]:
                value = node.meta.get("val")
                if isinstance(value, torch.SymInt):
                    self._nodes.setdefault(str(value.node.expr), node)
        found = self._nodes.get(text)
        if found is not None:
            return found
        import sympy

        shapes = self.mode.shape_env
        known = {str(s): s for s in shapes.var_to_range}
        return shapes.create_symintnode(sympy.sympify(text, locals=known), hint=None)


def _parts_of(text: str) -> Any:
    """Sizes, strides, dtype and device of a tensor; a list of them for a list; None: not known."""
    found = list(_STATIC.finditer(text))
    parts = []
    for one in found:
        if one[1] not in _DTYPES:
            return None
        size, stride = ([int(n) for n in one[i].split(",") if n.strip()] for i in (2, 3))
        parts.append((size, stride, _DTYPES[one[1]], torch.device(one[4])))
    rest = _STATIC.sub("", text)
    if rest == "" and len(parts) == 1:
        return parts[0]
    return parts if parts and not rest.strip("()[], ") else None


def _operands(node: Node) -> tuple[Any, Any]:
    args = torch.fx.node.map_arg(node.args, _value_of)
    return args, torch.fx.node.map_arg(node.kwargs, _value_of) if node.kwargs else {}


def _value_of(node: Node) -> Any:
    return node.meta["val"]


def _no_new_symbols(shapes: Any) -> Any:
    return shapes.ignore_fresh_unbacked_symbols()

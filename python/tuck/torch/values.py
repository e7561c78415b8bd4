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
_STATIC = re.compile(r"(\w+)\[([\d, ]*)\]\[([\d, ]*)\]([\w:]+)\Z")


class Values:
    def __init__(self, encoder: Any) -> None:
        self.encoder = encoder
        self.mode = encoder.fake_mode
        self._nodes: Optional[dict[str, Node]] = None
        self._types: dict[str, Any] = {}
        self._shares: dict[Any, Optional[bool]] = {}

    def make(self, new: Sequence[Node], types: Sequence[str], retyped: Sequence[Node]) -> None:
        """Gives the nodes their values, in the order of the graph."""
        if self.mode is None or not (new or retyped):
            return
        shapes = self.mode.shape_env
        symbols = contextlib.nullcontext() if shapes is None else _no_new_symbols(shapes)
        with torch.no_grad(), symbols:
            for node, text in zip(new, types):
                if node.op == "call_function":
                    node.meta["val"] = self.value(node, text)
            for node in retyped:
                if node.op == "call_function":
                    node.meta["val"] = self.run(node)

    def value(self, node: Node, text: str) -> Any:
        target = node.target
        if target is operator.getitem:
            return node.args[0].meta["val"][node.args[1]]
        shares = self.shares(target)
        if shares is False:
            made = self.from_type(text)
            if made is not None:
                return made
        elif shares and not self.encoder.symbolic:
            with contextlib.suppress(Exception):
                return self.view(node)
        return self.run(node)

    def shares(self, target: Any) -> Optional[bool]:
        """Is the result new memory (False) or a view of an operand (True)? None: not known."""
        if target not in self._shares:
            answer: Optional[bool] = None
            if isinstance(target, torch._ops.OpOverload) and not target._schema.is_mutable:
                returns = target._schema.returns
                if len(returns) == 1:
                    answer = returns[0].alias_info is not None
                    if not answer and str(returns[0].type) != "Tensor":
                        answer = None
            self._shares[target] = answer
        return self._shares[target]

    def from_type(self, text: str) -> Any:
        """A tensor of its own of this type; None if the type is not complete or has symbols."""
        parts = self._types.get(text, ())
        if parts == ():
            found = _STATIC.match(text)
            parts = None
            if found and found[1] in _DTYPES:
                size, stride = ([int(n) for n in found[i].split(",") if n.strip()] for i in (2, 3))
                parts = size, stride, _DTYPES[found[1]], torch.device(found[4])
            self._types[text] = parts
        if parts is None:
            return None
        size, stride, dtype, device = parts
        inner = torch.empty_strided(size, stride, dtype=dtype, device="meta")
        return FakeTensor(self.mode, inner, device)

    def view(self, node: Node) -> Any:
        """The operator on the meta tensors inside of its operands."""
        args, kwargs = _operands(node)
        device = args[0].device
        with in_kernel_invocation_manager(self.mode):
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


def _operands(node: Node) -> tuple[Any, Any]:
    args = torch.fx.node.map_arg(node.args, _value_of)
    return args, torch.fx.node.map_arg(node.kwargs, _value_of) if node.kwargs else {}


def _value_of(node: Node) -> Any:
    return node.meta["val"]


def _no_new_symbols(shapes: Any) -> Any:
    return shapes.ignore_fresh_unbacked_symbols()

"""meta["val"] of new nodes: their operators run on the fake values of their operands."""

from __future__ import annotations

import contextlib
from typing import Any, Sequence

import torch
import torch.fx

Node = torch.fx.Node


class Values:
    def __init__(self, encoder: Any) -> None:
        self.encoder = encoder
        self.mode = encoder.fake_mode
        self._symbols: dict[str, Node] | None = None

    def make(self, new: Sequence[Node], retyped: Sequence[Node]) -> None:
        """Gives the nodes their values, in the order of the graph."""
        if self.mode is None or not (new or retyped):
            return
        with self.mode, _no_new_symbols(self.mode):
            for node in new:
                self.one(node)
            for node in retyped:
                self.one(node)

    def one(self, node: Node) -> None:
        if node.op != "call_function":
            return
        take = _value_of
        args = torch.fx.node.map_arg(node.args, take)
        kwargs = torch.fx.node.map_arg(node.kwargs, take) if node.kwargs else {}
        node.meta["val"] = node.target(*args, **kwargs)

    def symbol(self, text: str) -> Any:
        """A symbolic number as an operand: one that was there, a node that has it, or a new one."""
        if text in self.encoder.symbols:
            return self.encoder.symbols[text]
        if self._symbols is None:
            self._symbols = {}
            for _, nodes in self.encoder.graphs[:1]:
                for node in nodes:
                    value = node.meta.get("val")
                    if isinstance(value, torch.SymInt):
                        self._symbols.setdefault(str(value.node.expr), node)
        found = self._symbols.get(text)
        if found is not None:
            return found
        import sympy

        shapes = self.mode.shape_env
        known = {str(s): s for s in _symbols_of(shapes)}
        return shapes.create_symintnode(sympy.sympify(text, locals=known), hint=None)


def _value_of(node: Node) -> Any:
    return node.meta["val"]


def _symbols_of(shapes: Any) -> Any:
    return list(shapes.var_to_range)


def _no_new_symbols(mode: Any) -> Any:
    shapes = mode.shape_env
    if shapes is None:
        return contextlib.nullcontext()
    return shapes.ignore_fresh_unbacked_symbols()

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

from .arrays import dtype_abbrs, no_torch_functions

Node = torch.fx.Node

_DTYPES = {text: dtype for dtype, text in dtype_abbrs.items()}
_STATIC = re.compile(r"(\w+)\[([\d, ]*)\]\[([\d, ]*)\]([\w:]+)")


_UNSAFE_VIEW = torch.ops.aten._unsafe_view.default  # shares memory, though its schema says that it does not
_META = torch.device("meta")
_make_subclass = torch.Tensor._make_subclass
# The same by a shorter way; by id(), since the hash of an operator takes long.
_METHODS = {
    id(torch.ops.aten.flatten.using_ints): torch.Tensor.flatten,
    id(torch.ops.aten.reshape.default): torch.Tensor.reshape,
    id(torch.ops.aten.view.default): torch.Tensor.view,
}
# Of this version it is known what the constructors of fake tensors and nodes do.
KNOWN = torch.__version__.startswith("2.13.")


class Values:
    def __init__(self, encoder: Any) -> None:
        self.encoder = encoder
        self.mode = encoder.fake_mode
        self._nodes: Optional[dict[str, Node]] = None
        self._types: dict[str, Any] = {}
        self._ways: dict[int, str] = {}
        self._models: dict[Any, dict[str, Any]] = {}  # members of a fake tensor, by device
        self._bare: dict[Node, Any] = {}  # the meta tensors inside of new values

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
        without_mode = self.without_mode
        with in_kernel_invocation_manager(self.mode), no_torch_functions():
            for i, node in enumerate(new):
                if node.op != "call_function":
                    continue
                made = without_mode(node, types[i])
                if made is None:
                    return i
                node.meta["val"] = made
        return len(new)

    def without_mode(self, node: Node, text: str) -> Any:
        """None: it needs fake mode."""
        target = node.target
        if target is operator.getitem:
            source, index = node._args
            bare = self._bare.get(source)
            if bare is not None:
                self._bare[node] = bare[index]
            return source.meta["val"][index]
        way = self.way(target)
        if way == "type":
            return self.from_type(node, text)
        if way == "meta":
            try:
                return self.inside(node)
            except Exception:
                return None
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
        found = self._ways.get(id(target))  # the hash of an operator takes long
        if found is None:
            found = "fake"
            if isinstance(target, torch._ops.OpOverload) and not target._schema.is_mutable:
                returns = target._schema.returns
                if len(returns) == 1:
                    fresh = returns[0].alias_info is None and target is not _UNSAFE_VIEW
                    found = "type" if fresh else "meta"
            self._ways[id(target)] = found
        return found

    def from_type(self, node: Node, text: str) -> Any:
        """New memory of this type, a tensor or a list; None if it is not complete or has symbols."""
        parts = self._types.get(text, ())
        if parts == ():
            parts = self._types[text] = _parts_of(text)
        if parts is None:
            return None
        many = isinstance(parts, list)
        bare = [torch.empty_strided(size, stride, dtype=dtype, device=_META)
                for size, stride, dtype, _ in (parts if many else [parts])]  # fmt: skip
        device = (parts[0] if many else parts)[3]
        self._bare[node] = bare if many else bare[0]
        made = [self.fake(x, device) for x in bare]
        return made if many else made[0]

    def inside(self, node: Node) -> Any:
        """A view: the operator on the meta tensor inside of its first operand; among the meta kernels."""
        args = node._args
        source = args[0]
        value = source.meta["val"]
        bare = self._bare.get(source)
        if bare is None:
            bare = self._bare[source] = value.detach()  # from among the meta kernels it comes out bare
        others = args[1:]
        if len(node._input_nodes) > 1:
            others = torch.fx.node.map_arg(others, _value_of)
        function = _METHODS.get(id(node.target), node.target)
        result = self._bare[node] = function(bare, *others, **node._kwargs)
        device = value.fake_device
        if isinstance(result, torch.Tensor):
            return self.fake(result, device, True)
        return [self.fake(part, device, True) for part in result]

    def fake(self, bare: Any, device: Any, view: bool = False) -> Any:
        """A fake tensor around a meta tensor. Its constructor sets a dozen members, one by one; they
        are those of any other fresh tensor on the device."""
        model = self._models.get(device)
        if model is None:
            made = FakeTensor(self.mode, bare, device)
            self._models[device] = dict(made.__dict__)
            return made
        if not KNOWN:
            return FakeTensor(self.mode, bare, device)
        made = _make_subclass(
            FakeTensor, bare, False, dispatch_device=True, device_for_backend_keys=device
        )
        if not view:  # it is the storage that remembers this
            torch._C._set_throw_on_mutable_data_ptr(made)
        made.__dict__ = model.copy()
        return made

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

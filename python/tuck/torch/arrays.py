"""A torch.fx graph as the arrays of tuck_arrays_read(), and values back from such arrays.

What the library has no notion of goes in under a name of its own and comes back as the same object.
"""

from __future__ import annotations

import builtins
import ctypes
import importlib
import math
import operator
import re
from array import array
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p
from struct import pack
from typing import Any, Callable, Optional

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.node import _get_qualified_name

from .._lib import HANDLE, Diags, Handle, declare, lib, make

try:
    from torch.utils._dtype_abbrs import dtype_abbrs
except ImportError:  # before 2.10
    from torch.fx.graph import dtype_abbrs

Node = torch.fx.Node

declare(
    {
        "tuck_arrays_read": (
            c_int,
            [
                c_void_p,
                c_size_t,
                c_char_p,
                c_size_t,
                c_void_p,
                c_size_t,
                c_void_p,
                c_void_p,
                HANDLE,
            ],
        ),
        "tuck_arrays_free": (None, [c_void_p]),
        "tuck_arrays_graph": (c_void_p, [c_void_p]),
        "tuck_arrays_edit": (c_int, [c_void_p]),
        "tuck_arrays_words": (POINTER(c_int64), [c_void_p, POINTER(c_size_t)]),
        "tuck_arrays_floats": (POINTER(c_double), [c_void_p, POINTER(c_size_t)]),
        "tuck_arrays_texts": (c_void_p, [c_void_p, POINTER(c_size_t)]),
    }
)

KIND = {
    "placeholder": 1,
    "get_attr": 2,
    "call_function": 3,
    "call_method": 4,
    "call_module": 5,
    "output": 6,
}
OPERATION = {number: name for name, number in KIND.items()}

NONE, BOOL, INT, FLOAT, NUMBER, STR, BYTES, DTYPE, LAYOUT, FORMAT, DEVICE, NAME, OP, SYM = range(
    1, 15
)
NODE, KEY, LIST, TUPLE, SIZE, DICT, SET, SLICE = 16, 17, 18, 19, 20, 21, 22, 23
WIDE = 31
LIMIT = 1 << 58

# Whether a tensor's class has a __torch_function__ is else looked up whenever a member of it is read.
no_torch_functions = torch._C.DisableTorchFunctionSubclass

_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*\Z")
_SYM_TYPES = (torch.SymInt, torch.SymFloat, torch.SymBool)


def target_text(target: Any) -> Optional[str]:
    """How fx prints a function; None if it cannot be printed."""
    if isinstance(target, str):
        return target
    try:
        text = _get_qualified_name(target)
    except Exception:
        return None
    if text.startswith("_operator."):
        text = text[1:]
    return text if _DOTTED.match(text) else None


def annotation(value: Any) -> str:
    """The type of a node's value as print_readable() annotates it; "" if it does not."""
    if isinstance(value, torch.Tensor):
        if value.layout in (torch.sparse_csc, torch.sparse_csr):
            return ""
        sizes = ", ".join(map(str, value.shape))
        try:
            strides = ", ".join(map(str, value.stride()))
        except RuntimeError:  # a sparse tensor
            return ""
        core = f"{dtype_abbrs[value.dtype]}[{sizes}][{strides}]{value.device}"
        if type(value) is torch.Tensor or isinstance(value, torch._subclasses.FakeTensor):
            return core
        return f"{type(value).__name__}({core})"
    if isinstance(value, _SYM_TYPES):
        return f"Sym({value})"
    return ""


class Encoder:
    """Collects graphs; nested GraphModules, read as attributes, go in with the graph."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.texts: list[str] = [""]
        self.floats = array("d")
        self.number: dict[str, int] = {"": 0}  # text -> its number
        self.strings: dict[str, int] = {}  # the words of those among the operands
        self.opaque: dict[str, Any] = {}  # names of what the library does not know
        self.symbols: dict[str, Any] = {}  # symbolic numbers among the operands, by their text
        self.targets: dict[int, int] = {}
        self.types: dict[Any, int] = {}
        self.kept: list[Any] = []  # whatever is known by its id() lives as long as this
        self.graphs: list[tuple[torch.fx.Graph, list[Node]]] = []
        self.symbolic = False
        self.fake_mode: Any = None

    def text(self, s: str) -> int:
        n = self.number.get(s)
        if n is None:
            n = self.number[s] = len(self.texts)
            self.texts.append(s)
        return n

    def handle(self, value: Any) -> int:
        name = f"opaque_{len(self.opaque)}"
        self.opaque[name] = value
        return self.text(name)

    # ---- graphs ----

    def all(self, graph: torch.fx.Graph) -> None:
        todo: list[tuple[torch.fx.Graph, int, str]] = [(graph, 0, "GraphModule")]
        for g, parent, name in todo:  # grows
            at = len(self.graphs)
            for attribute, child in nested(g):
                todo.append((child, at, attribute))
            self.one(g, parent, name)

    def one(self, graph: torch.fx.Graph, parent: int, name: str) -> None:
        nodes = list(graph.nodes)
        self.graphs.append((graph, nodes))
        self.words += (parent, self.text(name), len(nodes))
        with no_torch_functions():
            self.nodes(nodes)

    def nodes(self, nodes: list[Node]) -> None:
        """This runs for every node of a graph, and most of the time of a pass may be spent here: no
        calls for what most nodes have, and members instead of properties."""
        texts, number, targets, types = self.texts, self.number, self.targets, self.types
        extend, kinds, tensor_type = self.words.extend, KIND, self.tensor_type
        position: dict[Node, int] = {}  # as the word of a value
        place = position.get
        at = NODE
        for node in nodes:
            position[node] = at
            at += 32
            target = node.target
            callee = targets.get(id(target))
            if callee is None:
                callee = self.target(target)
            label = node.name
            mine = number.get(label)
            if mine is None:
                mine = number[label] = len(texts)
                texts.append(label)
            value = node.meta.get("val")
            if value is None:
                kind = 0
            else:
                try:
                    device = value.fake_device if type(value) is FakeTensor else value.device
                    kind = types[value.dtype, value.shape, value.stride(), device]
                except (KeyError, TypeError, AttributeError, RuntimeError):
                    kind = tensor_type(value)
            n = kinds[node.op]
            if n < 3:
                extend((n, callee, mine, kind, 0, 0, 0))
                continue
            args, kwargs = node._args, node._kwargs
            try:
                values = [*map(place, args)]
            except TypeError:  # no hash
                values = [None]
            if None in values or kwargs:
                values = self.operands(args, kwargs, position)
            if n == 4 and (not values or values[0] & 31 != NODE):
                n, callee = 3, self.handle(target)
            extend((n, callee, mine, kind, len(args), len(kwargs), len(values), *values))

    def operands(self, args: Any, kwargs: Any, position: dict[Node, int]) -> list[int]:
        words: list[int] = []
        self.each(args, words, position)
        for key, v in kwargs.items():
            words.append(self.text(key) * 32 + KEY)
            self.value(v, words, position)
        return words

    def target(self, target: Any) -> int:
        text = target_text(target)
        n = self.text(text) if text is not None else self.handle(target)
        self.kept.append(target)
        self.targets[id(target)] = n
        return n

    def tensor_type(self, value: Any) -> int:
        n = self.text(annotation(value))
        if self.fake_mode is None:
            self.fake_mode = getattr(value, "fake_mode", None)
        try:
            device = value.fake_device if type(value) is FakeTensor else value.device
            self.types[value.dtype, value.shape, value.stride(), device] = n
        except (TypeError, AttributeError, RuntimeError):
            self.symbolic = True
        return n

    # ---- values ----

    def value(self, v: Any, out: list[int], position: dict[Node, int]) -> None:
        kind = type(v)
        if kind is Node:
            out.append(position[v])
        elif kind is int:
            if -LIMIT < v < LIMIT:
                out.append(v * 32 + INT)
            elif -(1 << 63) <= v < 1 << 63:
                out += (WIDE, v)
            else:
                out.append(self.text(str(v)) * 32 + NUMBER)
        elif kind is bool:
            out.append(v * 32 + BOOL)
        elif v is None:
            out.append(NONE)
        elif kind is float:
            out.append(len(self.floats) * 32 + FLOAT)
            self.floats.append(v)
        elif kind is str:
            if "\0" not in v and v.isprintable():
                self.strings[v] = self.text(v) * 32 + STR
                out.append(self.strings[v])
            else:
                out.append(self.handle(v) * 32 + NAME)
        elif isinstance(v, torch.Size):
            self.items(SIZE, v, out, position)
        elif isinstance(v, list):
            self.items(LIST, v, out, position)
        elif kind is tuple:
            self.items(TUPLE, v, out, position)
        elif isinstance(v, dict):
            out.append(2 * len(v) * 32 + DICT)
            for key, item in v.items():
                self.value(key, out, position)
                self.value(item, out, position)
        elif kind is slice:
            self.items(SLICE, (v.start, v.stop, v.step), out, position)
        elif kind is torch.dtype:
            out.append(self.text(str(v)) * 32 + DTYPE)
        elif kind is torch.layout:
            out.append(self.text(str(v)) * 32 + LAYOUT)
        elif kind is torch.memory_format:
            out.append(self.text(str(v)) * 32 + FORMAT)
        elif kind is torch.device:
            out.append(self.text(repr(v)) * 32 + DEVICE)
        elif kind in _SYM_TYPES:
            text = str(v)
            self.symbols.setdefault(text, v)
            out.append(self.text(text) * 32 + SYM)
        elif isinstance(v, torch._ops.OpOverload):
            out.append(self.text(target_text(v) or "") * 32 + OP)
        else:
            self.odd(v, out, position)

    def items(self, kind: int, items: Any, out: list[int], position: dict[Node, int]) -> None:
        out.append(len(items) * 32 + kind)
        self.each(items, out, position)

    def each(self, items: Any, out: list[int], position: dict[Node, int]) -> None:
        strings = self.strings
        for v in items:
            kind = type(v)
            if kind is Node:
                out.append(position[v])
            elif kind is int and -LIMIT < v < LIMIT:
                out.append(v * 32 + INT)
            elif kind is str and v in strings:
                out.append(strings[v])
            else:
                self.value(v, out, position)

    def odd(self, v: Any, out: list[int], position: dict[Node, int]) -> None:
        """Anything else: its name, and with it the nodes inside, which are uses."""
        inside: list[Node] = []
        torch.fx.node.map_arg(v, lambda n: inside.append(n) or n)
        if inside:
            out.append((len(inside) + 1) * 32 + TUPLE)
        out.append(self.handle(v) * 32 + NAME)
        for n in inside:
            out.append(position[n])


def nested(graph: torch.fx.Graph) -> list[tuple[str, torch.fx.Graph]]:
    """The GraphModules that nodes of a graph read as attributes."""
    owner = graph.owning_module
    found: dict[str, torch.fx.Graph] = {}
    if owner is None:
        return []
    for node in graph.find_nodes(op="get_attr"):
        if node.target in found or "." in node.target:
            continue
        child = getattr(owner, node.target, None)
        if isinstance(child, torch.fx.GraphModule):
            found[node.target] = child.graph
    return list(found.items())


class Arrays:
    """A live graph in the library, and what passes did to it."""

    def __init__(self, graph: torch.fx.Graph) -> None:
        e = self.encoder = Encoder()
        e.all(graph)
        words = pack(f"{len(e.words) + 1}q", len(e.graphs), *e.words)  # half as long as an array
        texts = ("\0".join(e.texts) + "\0").encode("utf-8", "surrogatepass")
        diags = Diags()
        self.handle = make(
            lib.tuck_arrays_read,
            lib.tuck_arrays_free,
            diags,
            words,
            len(e.words) + 1,
            texts,
            len(texts),
            e.floats.buffer_info()[0] if e.floats else None,
            len(e.floats),
            None,
            diags,
        )
        self.graph = Handle(lib.tuck_arrays_graph(self.handle), None, self.handle)

    def edit(self) -> "Edit":
        Diags().check(lib.tuck_arrays_edit(self.handle))
        n = c_size_t()
        words = lib.tuck_arrays_words(self.handle, byref(n))[: n.value]
        floats = lib.tuck_arrays_floats(self.handle, byref(n))[: n.value]
        pointer = lib.tuck_arrays_texts(self.handle, byref(n))
        raw = ctypes.string_at(pointer, n.value) if n.value else b""
        texts = raw.decode("utf-8", "surrogatepass").split("\0")
        return Edit(words, floats, texts, self.encoder.opaque)


class Edit:
    """A cursor over the words of an edit."""

    def __init__(
        self, words: list[int], floats: list[float], texts: list[str], opaque: dict[str, Any]
    ) -> None:
        self.words = words
        self.at = 0
        self.floats = floats
        self.texts = texts
        self.opaque = opaque
        self.targets: dict[int, Any] = {}  # by the number of their text
        self.symbol: Callable[[str], Any] = _no_symbol

    def next(self) -> int:
        word = self.words[self.at]
        self.at += 1
        return word

    def take(self, n: int) -> list[int]:
        words = self.words[self.at : self.at + n]
        self.at += n
        return words

    def values(self, n: int, nodes: Any) -> list[Any]:
        """The next n values; most are nodes or ints."""
        words, found = self.words, []
        for _ in range(n):
            word = words[self.at]
            kind = word & 31
            if kind == NODE:
                found.append(nodes[word >> 5])
                self.at += 1
            elif kind == INT:
                found.append(word >> 5)
                self.at += 1
            else:
                found.append(self.value(nodes))
        return found

    def value(self, nodes: Any) -> Any:
        word = self.next()
        kind, number = word & 31, word >> 5
        if kind == NODE:
            return nodes[number]
        if kind == INT:
            return number
        if kind == WIDE:
            return self.next()
        if kind == NONE:
            return None
        if kind == BOOL:
            return bool(number)
        if kind == FLOAT:
            return self.floats[number]
        if kind < NODE:
            return self.atom(kind, self.texts[number])
        if kind == DICT:
            pairs = self.values(number, nodes)
            return dict(zip(pairs[::2], pairs[1::2]))
        items = self.values(number, nodes)
        if kind == LIST:
            return items
        if kind == SIZE:
            return torch.Size(items)
        if kind == SLICE:
            return slice(*items)
        return tuple(items)

    def atom(self, kind: int, text: str) -> Any:
        if kind == STR:
            return text
        if kind == NUMBER:
            return complex(text) if "j" in text else int(text)
        if kind == SYM:
            return self.symbol(text)
        if kind == DEVICE:
            return torch.device(*re.findall(r"type='(\w+)'", text), *_index(text))
        if text in self.opaque:
            return self.opaque[text]
        if text in ("inf", "nan"):
            return float(text)
        if text == "Ellipsis":
            return Ellipsis
        return resolve(text)


def _no_symbol(text: str) -> Any:
    raise ValueError(f"no value for the expression {text}")


def _index(text: str) -> list[int]:
    found = re.search(r"index=(\d+)", text)
    return [int(found.group(1))] if found else []


# Operators that exist once a module of torch is imported.
_DEFINED_IN = {
    "torch.ops.bucketing.": "torch._inductor.fx_passes.bucketing",
    "torch.ops.higher_order.control_deps": "torch._inductor.fx_passes.control_dependencies",
    "torch.ops.symm_mem.": "torch.distributed._symmetric_memory",
}
_resolved: dict[str, Any] = {}


def resolve(text: str) -> Any:
    """What a dotted name of torch, operator, math or builtins refers to."""
    found = _resolved.get(text)
    if found is None:
        for prefix, module in _DEFINED_IN.items():
            if text.startswith(prefix):
                importlib.import_module(module)
        first, *rest = text.split(".")
        roots = {"torch": torch, "operator": operator, "math": math}
        found = roots[first] if first in roots else getattr(builtins, first)
        for part in rest:
            found = getattr(found, part)
        _resolved[text] = found
    return found

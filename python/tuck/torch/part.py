"""Passes on a part of a live graph.

A pass that only moves a few nodes need not read all of them. The library says by the operators of a
graph whether the pass can tell from a part of it, and which nodes that part has; it decides on the part
as it would on the whole."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint32, c_void_p
from itertools import chain, count, groupby, repeat
from operator import is_not
from struct import pack
from typing import Any, Container, Optional
from weakref import WeakKeyDictionary

import torch
import torch.fx

from .._lib import HANDLE, Diags, Handle, declare, lib, make
from .arrays import nested, target_text

Node = torch.fx.Node
_prepend = getattr(Node, "_prepend", Node.prepend)  # before 2.10 it is a method in Python

declare(
    {
        "tuck_op_find": (c_uint32, [c_char_p]),
        "tuck_pipeline_part": (c_int, [c_void_p, c_uint32]),
        "tuck_pipeline_run_part": (
            c_int,
            [c_void_p, c_void_p, c_size_t, c_size_t, c_void_p, c_void_p, POINTER(c_size_t), HANDLE],
        ),
    }
)

WHOLE, NOTHING, START, FOLLOW = range(4)  # tuck_part
SAME, COUNTED, LISTED = range(3)  # tuck_run

_numbers: dict[int, int] = {}  # by id() of a function: its number in the library
_known: WeakKeyDictionary[Handle, dict[int, int]] = WeakKeyDictionary()  # by pipeline and number
_kept: list[Any] = []  # those functions, so that no other gets their id()


def run(graph: torch.fx.Graph, pipeline: Handle) -> Optional[tuple[Handle, bool]]:
    """Runs the pipeline on a part of the graph: the report, and whether anything moved. None: the
    pipeline needs the whole graph; nothing was done.

    A graph may have thousands of such nodes, so this goes from list to list rather than from node to
    node, which takes twice as long."""
    means = _means(graph, pipeline)
    if means is None:
        return None
    table = graph._find_nodes_lookup_table.table
    by_target = [
        (_numbers[id(target)], nodes)
        for (_, target), nodes in table.items()
        if nodes and means.get(id(target)) == START
    ]
    starts = list(chain.from_iterable(nodes for _, nodes in by_target))
    followed = {_numbers[target] for target, meaning in means.items() if meaning == FOLLOW}
    found = _Found(table)
    latest, follows = starts, list[Node]()
    counts: list[bytes] = []  # of the users of the starts; of those that are followed; of those...
    users: list[list[Node]] = []
    while latest:
        used = [node.users for node in latest]
        users.append(list(chain.from_iterable(used)))
        once = len(users[-1]) == len(used) and all(used)
        counts.append(_same(1, len(used)) if once else _run(list(map(len, used))))
        latest = found.add(users[-1], followed)
        follows += latest
    order = sorted(found.nodes)
    place: dict[Node, int] = {}
    words = [
        pack("4q", len(starts), len(order), len(follows), sum(map(len, users))),
        *(_same(number, len(nodes)) for number, nodes in by_target),
        found.numbers(order),
        _run(list(map(is_not, [node._prev for node in order], chain((graph._root,), order)))),
        _places(follows, order, place),
        *counts,
        *(_places(some, order, place) for some in users),
    ]
    return _decide(graph, pipeline, order, b"".join(words))


class _Found:
    """The nodes of the part, without the starts."""

    def __init__(self, table: dict[Any, Any]) -> None:
        self.table = table  # the graph's nodes by operator
        self.nodes: list[Node] = []
        self.runs: list[tuple[int, int]] = []  # the numbers of their operators, and how many have it
        self.first: Container[Node] = ()  # those of the first call of add(), and of later ones
        self.later: set[Node] = set()

    def add(self, users: list[Node], followed: set[int]) -> list[Node]:
        """Adds those that are new; returns those of them that are followed."""
        listed = self.table.get((users[0].op, users[0].target), ()) if users else ()
        if not self.nodes and len(listed) == len(users) and list(listed) == users:
            # All that the graph has of an operator: nobody looks at them one by one.
            new, self.first = users, listed
            number = _numbers.get(id(users[0].target), 0) if users else 0
            self.runs = [(number, len(users))]
            latest = users if number in followed else []
        else:
            new = [n for n in dict.fromkeys(users) if n not in self.first and n not in self.later]
            self.later.update(new)
            numbers = [_numbers.get(id(node.target), 0) for node in new]  # the output has 0
            self.runs += [(number, len(list(same))) for number, same in groupby(numbers)]
            latest = [node for node, number in zip(new, numbers) if number in followed]
        self.nodes += new
        return latest

    def numbers(self, order: list[Node]) -> bytes:
        """Of the operators of all nodes, in this order."""
        if self.nodes == order:
            return b"".join(_same(number, n) for number, n in self.runs)
        return _run([_numbers.get(id(node.target), 0) for node in order])


def _same(number: int, n: int) -> bytes:
    return pack("3q", n, SAME, number) if n else b""


def _run(numbers: list[int]) -> bytes:
    """A run of numbers for the library."""
    n = len(numbers)
    if n == 0 or numbers.count(numbers[0]) == n:
        return _same(numbers[0] if n else 0, n)
    return pack(f"{n + 2}q", n, LISTED, *numbers)  # takes half as long as an array


def _places(nodes: list[Node], order: list[Node], place: dict[Node, int]) -> bytes:
    """Where nodes are in the order; `place` is filled the first time it is needed."""
    n = len(nodes)
    if n and nodes == order[:n]:
        return pack("3q", n, COUNTED, 0)
    if n and nodes.count(nodes[0]) == n:
        return _same(bisect_left(order, nodes[0]), n)
    if not place:
        place.update(zip(order, count()))
    return _run(list(map(place.__getitem__, nodes)))


def _means(graph: torch.fx.Graph, pipeline: Handle) -> Optional[dict[int, int]]:
    """What the functions of a graph mean to the pipeline, by their id(); None: that it needs the
    whole graph."""
    table = getattr(getattr(graph, "_find_nodes_lookup_table", None), "table", None)
    if table is None or not hasattr(graph._root, "_sort_key"):
        return None
    if table.get(("get_attr", None)) and nested(graph):
        return None
    means: dict[int, int] = {}
    known = _known.setdefault(pipeline, {})
    for (op, target), nodes in table.items():
        if not nodes or op in ("placeholder", "get_attr", "output"):
            continue
        if op != "call_function":
            return None
        number = _number(target)
        meaning = known.get(number)
        if meaning is None:
            meaning = known[number] = lib.tuck_pipeline_part(pipeline, number)
        if meaning == WHOLE:
            return None
        means[id(target)] = meaning
    return means


def _number(target: Any) -> int:
    """Of an operator in the library; 0 if it does not know it."""
    found = _numbers.get(id(target))
    if found is None:
        text = target_text(target)
        found = _numbers[id(target)] = lib.tuck_op_find(text.encode()) if text is not None else 0
        _kept.append(target)
    return found


def _decide(
    graph: torch.fx.Graph, pipeline: Handle, order: list[Node], words: bytes
) -> Optional[tuple[Handle, bool]]:
    moves = array("q", bytes(16 * len(order) + 16))  # to make a type of ctypes takes 50 us
    n = c_size_t()
    diags = Diags()
    report = make(
        lib.tuck_pipeline_run_part,
        lib.tuck_report_free,
        diags,
        pipeline,
        words,
        len(words) // 8,
        len(graph.nodes),
        None,
        moves.buffer_info()[0],
        byref(n),
    )
    if not report.pointer:
        return None
    at, end = order.__getitem__, 2 * n.value
    before = moves[1:end:2]
    targets = repeat(at(before[0])) if before and before.count(before[0]) == n.value else map(at, before)
    deque(map(_prepend, targets, map(at, moves[:end:2])), maxlen=0)
    return report, n.value > 0

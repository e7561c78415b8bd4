"""Passes on a part of a live graph.

A pass that only moves a few nodes need not read all of them. The library says by the operators of a
graph whether the pass can tell from a part of it, and which nodes that part has; it decides on the part
as it would on the whole."""

from __future__ import annotations

from array import array
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint32, c_void_p
from itertools import chain, count
from operator import is_not
from struct import pack
from typing import Any, Optional
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

WHOLE, NOTHING, START, FOLLOW = range(4)

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
    starts = sorted(chain.from_iterable(nodes for _, nodes in by_target))
    followed = {_numbers[target] for target, meaning in means.items() if meaning == FOLLOW}
    used = [node.users for node in starts]
    users = [list(chain.from_iterable(used))]  # of the starts; of those that are followed; of those...
    nodes = new = _by_number(users[0])
    follows: list[Node] = []
    while new:
        if followed.issuperset(set(new.values())):
            latest = list(new)
        else:
            latest = [node for node, number in new.items() if number in followed]
        follows += latest
        more = [node.users for node in latest]
        used += more
        users.append(list(chain.from_iterable(more)))
        new = _by_number([node for node in dict.fromkeys(users[-1]) if node not in nodes])
        nodes.update(new)
    order = sorted(nodes)
    words = [
        pack("3q", len(starts), len(order), len(follows)),
        _words([_numbers[id(node.target)] for node in starts])
        if len(by_target) > 1
        else pack("q", by_target[0][0] if by_target else 0) * len(starts),
        _words(list(nodes.values()) if list(nodes) == order else list(map(nodes.__getitem__, order))),
        _words(list(map(is_not, [node._prev for node in order], chain((graph._root,), order)))),
    ]
    place = nodes
    place.update(zip(order, count()))  # from now on; a new one would take twice as long
    words.append(_places(follows, order, place))
    words.append(_words(list(map(len, used))))
    words += [_places(some, order, place) for some in users]
    return _decide(graph, pipeline, order, b"".join(words))


def _words(numbers: list[int]) -> bytes:
    """As words of the library; often all are the same."""
    n = len(numbers)
    if n and numbers.count(numbers[0]) == n:
        return pack("q", numbers[0]) * n
    return pack(f"{n}q", *numbers)  # takes half as long as an array


def _by_number(nodes: list[Node]) -> dict[Node, int]:
    """Nodes with the numbers of their operators; the output has 0."""
    targets = [node.target for node in nodes]
    if targets and targets.count(targets[0]) == len(targets):
        return dict.fromkeys(nodes, _numbers.get(id(targets[0]), 0))
    return {node: _numbers.get(id(target), 0) for node, target in zip(nodes, targets)}


def _places(nodes: list[Node], order: list[Node], place: dict[Node, int]) -> bytes:
    n = len(nodes)
    if nodes == order[:n]:
        return pack(f"{n}q", *range(n))
    if nodes.count(nodes[0]) == n:
        return pack("q", place[nodes[0]]) * n
    return _words(list(map(place.__getitem__, nodes)))


def _means(graph: torch.fx.Graph, pipeline: Handle) -> Optional[dict[int, int]]:
    """What the functions of a graph mean to the pipeline, by their id(); None: that it needs the
    whole graph."""
    table = getattr(getattr(graph, "_find_nodes_lookup_table", None), "table", None)
    if table is None or not hasattr(graph._root, "_sort_key") or nested(graph):
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
    for _ in map(_prepend, map(at, moves[1:end:2]), map(at, moves[:end:2])):
        pass
    return report, n.value > 0

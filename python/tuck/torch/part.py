"""Passes on a part of a live graph.

A pass that only moves a few nodes need not read all of them. The library says by the operators of a
graph whether the pass can tell from a part of it, and which nodes that part has; it decides on the part
as it would on the whole."""

from __future__ import annotations

from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p
from itertools import chain
from struct import pack
from typing import Any, Optional

import torch
import torch.fx

from .._lib import HANDLE, Diags, Handle, declare, lib, make
from .arrays import nested, target_text

Node = torch.fx.Node

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
    followed = {target for target, meaning in means.items() if meaning == FOLLOW}
    used = [node.users for node in starts]
    users = list(chain.from_iterable(used))
    new = seen = dict.fromkeys(users)
    follows: list[Node] = []
    while new:
        latest = [node for node in new if id(node.target) in followed]
        follows += latest
        more = [node.users for node in latest]
        used += more
        given = list(chain.from_iterable(more))
        users += given
        new = {node: None for node in dict.fromkeys(given) if node not in seen}
        seen.update(new)
    order = sorted(seen)
    place = dict(zip(order, range(len(order))))
    words = [len(starts), len(order), len(follows)]
    if len(by_target) == 1:
        words += [by_target[0][0]] * len(starts)
    else:
        words += [_numbers[id(node.target)] for node in starts]
    double = {target: 2 * _numbers[target] for target in means}
    before = chain((graph._root,), order)
    words += [
        double.get(id(node.target), 0) + (node._prev is not other)  # the output has no number
        for node, other in zip(order, before)
    ]
    words += map(place.__getitem__, follows)
    words += map(len, used)
    words += map(place.__getitem__, users)
    return _decide(graph, pipeline, order, words)


def _means(graph: torch.fx.Graph, pipeline: Handle) -> Optional[dict[int, int]]:
    """What the functions of a graph mean to the pipeline, by their id(); None: that it needs the
    whole graph."""
    table = getattr(getattr(graph, "_find_nodes_lookup_table", None), "table", None)
    if table is None or not hasattr(graph._root, "_sort_key") or nested(graph):
        return None
    means: dict[int, int] = {}
    for (op, target), nodes in table.items():
        if not nodes or op in ("placeholder", "get_attr", "output"):
            continue
        if op != "call_function":
            return None
        means[id(target)] = lib.tuck_pipeline_part(pipeline, _number(target))
        if means[id(target)] == WHOLE:
            return None
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
    graph: torch.fx.Graph, pipeline: Handle, order: list[Node], words: list[int]
) -> Optional[tuple[Handle, bool]]:
    given = pack(f"{len(words)}q", *words)  # takes half as long as an array
    moves = (c_int64 * (2 * len(order)))()
    n = c_size_t()
    diags = Diags()
    report = make(
        lib.tuck_pipeline_run_part,
        lib.tuck_report_free,
        diags,
        pipeline,
        given,
        len(words),
        len(graph.nodes),
        None,
        moves,
        byref(n),
    )
    if not report.pointer:
        return None
    at, end = order.__getitem__, 2 * n.value
    for _ in map(Node._prepend, map(at, moves[1:end:2]), map(at, moves[:end:2])):
        pass
    return report, n.value > 0

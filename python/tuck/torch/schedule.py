"""Inductor's schedule as a problem for the library, and an order back.

Inductor's own passes on it are in comms.py; each has its counterpart under the same name.
"""

from __future__ import annotations

import ctypes
import heapq
import json
from ctypes import c_char_p, c_int, c_size_t, c_uint32, c_void_p
from typing import Any

from torch._inductor import comms, memory
from torch._inductor.dependencies import WeakDep
from torch._inductor.utils import contains_collective, contains_wait
from torch._inductor.virtualized import V
from torch.utils._ordered_set import OrderedSet

from .. import _lib
from . import sequence

_lib.declare({
    "tuck_problem_read_text": (c_int, [c_char_p, c_size_t, c_char_p, c_void_p, c_void_p, _lib.HANDLE]),
    "tuck_problem_free": (None, [c_void_p]),
    "tuck_problem_op_count": (c_uint32, [c_void_p]),
    "tuck_schedule_new": (c_int, [c_void_p, c_void_p, c_void_p, _lib.HANDLE]),
    "tuck_schedule_free": (None, [c_void_p]),
    "tuck_schedule_run": (c_int, [c_void_p, c_char_p, c_void_p]),
    "tuck_schedule_order": (ctypes.POINTER(c_uint32), [c_void_p]),
})  # fmt: skip

KINDS = {"all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter",
         "all_to_all": "all_to_all", "broadcast": "broadcast"}  # fmt: skip


# ---- to the library ------------------------------------------------------------------------------


def _names(nodes: Any) -> list[str]:
    return [node.get_name() for node in nodes]


def _kind(snode: Any) -> str:
    if contains_wait(snode):
        return "wait"
    if contains_collective(snode):
        return "collective"
    return "gemm" if comms.contains_gemm_like(snode) else "compute"


def _communication(snode: Any) -> dict[str, Any]:
    """Group and kind of a collective. A block of several has none: nothing passes it."""
    found = sequence.of_schedule([snode])
    if len(found) != 1:
        return {}
    op = found.entries[0].split(" ")[0]
    kind = next((k for name, k in KINDS.items() if name in op), None)
    return {"group": next(iter(found.groups)), **({"coll": kind} if kind else {})}


def _is_fake(dep: Any) -> bool:
    return isinstance(dep, WeakDep) and bool(getattr(dep, "is_fake", False))


def _describe(snode: Any, later: set[str]) -> dict[str, Any]:
    """A node of the problem. later: what nodes behind it make. An earlier pass may have put it before
    one that it follows by a fake dependence alone; Inductor allows that, so it is none any more."""
    kind = _kind(snode)
    row = {"name": snode.get_name(), "kind": kind, "runtime": _runtime(snode),
           "is_async": bool(comms.contains_async_collective(snode)),
           "ops": list(snode.get_operation_names()),
           "deps": [{"name": d.name, "weak": isinstance(d, WeakDep), "fake": _is_fake(d)}
                    for d in snode.unmet_dependencies if not (_is_fake(d) and d.name in later)],
           "outputs": [{"name": b.get_name(), "size_alloc": int(b.mpi_buffer.size_alloc),
                        "size_free": int(b.mpi_buffer.size_free),
                        "succ": _names(b.mpi_buffer.succ_nodes),
                        "succ_ordering": _names(getattr(b.mpi_buffer, "succ_nodes_for_ordering",
                                                        b.mpi_buffer.succ_nodes))}
                       for b in snode.get_outputs()]}  # fmt: skip
    if kind == "collective":
        row.update(_communication(snode))
    return row


def _runtime(snode: Any) -> float:
    """Milliseconds, as Inductor estimates them; a CPU has no estimate."""
    if contains_wait(snode):
        return 0.0
    t = float(comms.estimate_op_runtime(snode))
    return t if t >= 0 else 0.0


def problem_of(snodes: list[Any]) -> dict[str, Any]:
    """The schedule problem of docs/scheduling.md."""
    inputs = OrderedSet(V.graph.graph_inputs)
    freeable = memory.get_freeable_input_buf(snodes, inputs)
    later = {name for s in snodes for name in (*s.get_buffer_names(), *s.get_operation_names())}
    rows = []
    for s in snodes:
        later -= {*s.get_buffer_names(), *s.get_operation_names()}
        rows.append(_describe(s, later))
    return {"schema": 1, "unit": "ms", "snodes": rows,
            "graph_inputs": list(inputs), "graph_outputs": list(V.graph.get_output_names()),
            "freeable_inputs": [{"name": name, "size_free": int(b.mpi_buffer.size_free),
                                 "succ": _names(b.mpi_buffer.succ_nodes)}
                                for name, b in freeable.items()],
            "mutation_real_name": dict(V.graph.scheduler.mutation_real_name)}  # fmt: skip


def solve(problem: dict[str, Any], passes: str) -> list[int]:
    """The order that passes of the library give to a problem."""
    text = json.dumps(problem).encode()
    diags = _lib.Diags()
    p = _lib.make(_lib.lib.tuck_problem_read_text, _lib.lib.tuck_problem_free, diags,
                  text, len(text), b"schedule", None, diags)  # fmt: skip
    s = _lib.make(_lib.lib.tuck_schedule_new, _lib.lib.tuck_schedule_free, diags,
                  p, None, diags, keep=(p,))  # fmt: skip
    diags.check(_lib.lib.tuck_schedule_run(s, passes.encode(), diags))
    n = _lib.lib.tuck_problem_op_count(p)
    return list(_lib.lib.tuck_schedule_order(s)[:n])


# ---- orders --------------------------------------------------------------------------------------


Pin = tuple[tuple[str, str], ...]  # entries and their forms (sequence.py)


def arrange(snodes: list[Any], passes: str, pinned: Pin = ()) -> list[Any]:
    """The schedule in the order of the graph (passes "graph") or that of passes of the library;
    then with its collectives in the pinned order, if there is one."""
    if not any(contains_collective(s) for s in snodes):
        return snodes
    if passes == "graph":
        snodes = in_graph_order(snodes)
    elif passes:
        snodes = [snodes[i] for i in solve(problem_of(snodes), passes)]
    if pinned:
        snodes = with_pinned(snodes, pinned)
    return snodes


def _needs(snodes: list[Any]) -> list[set[int]]:
    """Which earlier nodes each one needs, by position."""
    maker: dict[str, int] = {}
    for i, s in enumerate(snodes):
        for name in s.get_buffer_names():
            maker[name] = i
        for name in s.get_operation_names():
            maker.setdefault(name, i)
    needs = []
    for i, s in enumerate(snodes):
        found = {maker[d.name] for d in s.unmet_dependencies if d.name in maker}
        needs.append(found - {i})
    return needs


def _sorted(needs: list[set[int]], rank: list[Any]) -> list[int] | None:
    """A topological order, the lowest rank that is ready first; None if there is a cycle."""
    users: list[list[int]] = [[] for _ in needs]
    left = [len(n) for n in needs]
    for i, n in enumerate(needs):
        for j in n:
            users[j].append(i)
    ready = [(rank[i], i) for i, n in enumerate(left) if n == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        _, i = heapq.heappop(ready)
        order.append(i)
        for u in users[i]:
            left[u] -= 1
            if left[u] == 0:
                heapq.heappush(ready, (rank[u], u))
    return order if len(order) == len(needs) else None


def _graph_rank(snodes: list[Any]) -> list[tuple[int, int]]:
    """The position in the graph: of a kernel, where the last node it computes is."""
    at = {node: i for i, node in enumerate(V.graph.graph.nodes)}
    rank, last = [], -1
    for i, s in enumerate(snodes):
        places = [at[o] for inner in s.get_nodes() if inner.node is not None
                  for o in inner.node.get_origins() if o in at]  # fmt: skip
        last = max(places) if places else last
        rank.append((last, i))
    return rank


def in_graph_order(snodes: list[Any]) -> list[Any]:
    """As in the graph: Inductor keeps its own order, which need not be that of the graph."""
    order = _sorted(_needs(snodes), _graph_rank(snodes))
    return [snodes[i] for i in order] if order else snodes


def with_pinned(snodes: list[Any], pinned: Pin) -> list[Any]:
    """The same with the collectives in a given sequence, where that is possible: each is the one with
    the same entry or, if its size is another one here, with the same form."""
    comm = [i for i, s in enumerate(snodes) if len(sequence.of_schedule([s]))]
    whole = sequence.of_schedule(snodes)
    if len(comm) != len(whole) or sorted(whole.forms) != sorted(form for _, form in pinned):
        return snodes
    left = dict(zip(comm, zip(whole.entries, whole.forms)))
    chain: list[int | None] = [None] * len(pinned)
    for part in (0, 1):
        waiting: dict[str, list[int]] = {}
        for i, names in left.items():
            waiting.setdefault(names[part], []).append(i)
        for k, names in enumerate(pinned):
            if chain[k] is None and waiting.get(names[part]):
                chain[k] = waiting[names[part]].pop(0)
                del left[chain[k]]
    needs = _needs(snodes)
    for before, after in zip(chain, chain[1:]):
        needs[after].add(before)
    order = _sorted(needs, list(range(len(snodes))))
    return [snodes[i] for i in order] if order else snodes

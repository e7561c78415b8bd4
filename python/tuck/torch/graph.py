"""Passes on live torch.fx graphs: the graph goes into the library as arrays, and what passes did is
applied to it. Nodes that no pass touched stay the same objects, with the same `meta`."""

from __future__ import annotations

import ctypes
from typing import Any, Optional, Union

import torch
import torch.fx

from .._lib import Diags, Error, Handle, Settings, lib
from .._run import Passes, Report, run_passes
from ..notebook import order_rule
from .arrays import OPERATION, Arrays, Edit, resolve
from .values import Values

Node = torch.fx.Node


def take(source: Any) -> Handle:
    """The graph of a GraphModule, or a torch.fx.Graph, as a graph of the library."""
    if isinstance(source, torch.fx.GraphModule):
        source = source.graph
    if not isinstance(source, torch.fx.Graph):
        raise TypeError(f"wants a text, a GraphModule or a torch.fx.Graph, not {type(source)}")
    live = Arrays(source)
    _tell(live)
    return live.graph


def run(
    graph: torch.fx.Graph,
    passes: Passes = "auto",
    *,
    cluster: Optional[str] = None,
    profile: Optional[str] = None,
    model: Optional[str] = None,
    memory: Union[str, int, None] = None,
    keep_order: Union[bool, str] = False,
    strict: bool = False,
) -> Report:
    """Runs passes on a torch.fx.Graph in place: the function for Inductor's hooks.

    `passes` is "auto", a pipeline as text, or a list of passes; `cluster` a name or a file;
    `memory` what "auto" may use, a peak or an increase ("40GiB", "+5%"); `keep_order` "groups" if
    collectives of one group may not change places, True if none may. After an exception the graph
    is unchanged."""
    settings = Settings(
        cluster=cluster,
        profile=profile,
        model=model,
        memory=memory,
        order=order_rule(keep_order),
        strict=strict,
    )
    diags = Diags()
    live = Arrays(graph)
    _tell(live)
    report = run_passes(live.graph, passes, settings, diags)
    changed = apply(live)
    return Report(report, str(diags), changed)


def optimize(
    gm: Union[torch.fx.GraphModule, torch.fx.Graph], passes: Passes = "auto", **options: Any
) -> Report:
    """Runs passes on a GraphModule and recompiles it, or on a torch.fx.Graph. Options: see run()."""
    graph = gm.graph if isinstance(gm, torch.fx.GraphModule) else gm
    report = run(graph, passes, **options)
    if report.changed and isinstance(gm, torch.fx.GraphModule):
        gm.recompile()
    return report


# ---- what the process knows about the graph ----


def _tell(live: Arrays) -> None:
    """Process groups, this rank, and values of symbols."""
    graph = live.graph
    dist = torch.distributed
    if dist.is_available() and dist.is_initialized():
        for i in range(lib.tuck_graph_group_count(graph)):
            name = lib.tuck_graph_group_name(graph, i)
            ranks = _ranks_of(name.decode())
            if ranks:
                diags = Diags()
                members = (ctypes.c_int64 * len(ranks))(*ranks)
                diags.check(lib.tuck_graph_set_group(graph, name, len(ranks), members, diags))
        diags = Diags()
        diags.check(lib.tuck_graph_set_rank(graph, dist.get_rank(), diags))
    shapes = getattr(live.encoder.fake_mode, "shape_env", None)
    if shapes is not None and live.encoder.symbolic:
        for symbol, value in _hints_of(shapes).items():
            if int(value) >= 0:
                Diags().check(
                    lib.tuck_graph_set_symbol(graph, str(symbol).encode(), int(value))
                )


def _ranks_of(name: str) -> list[int]:
    try:
        group = torch.distributed.distributed_c10d._resolve_process_group(name)
        return torch.distributed.get_process_group_ranks(group)
    except Exception:  # not a group of this process
        return []


def _hints_of(shapes: Any) -> dict[Any, Any]:
    for name in ("backed_var_to_val", "var_to_val"):
        found = getattr(shapes, name, None)
        if found is not None:
            return {k: v for k, v in found.items() if getattr(v, "is_integer", False)}
    return {}


# ---- applying ----


class _Undo:
    """How a graph was, until its edit is complete."""

    def __init__(self, graph: torch.fx.Graph, nodes: list[Node]) -> None:
        self.graph = graph
        self.nodes = nodes
        self.calls: list[tuple[Node, Any, Any, Any]] = []
        self.values: list[tuple[Node, Any]] = []
        self.new: list[Node] = []
        self.types: list[str] = []  # of the new nodes
        self.moved = 0

    def call(self, node: Node) -> None:
        self.calls.append((node, node.target, node.args, node.kwargs))

    def back(self) -> None:
        for node, target, args, kwargs in reversed(self.calls):
            node.target, node.args, node.kwargs = target, args, kwargs
        for node, value in self.values:
            node.meta["val"] = value
        for node in reversed(self.new):
            node.args, node.kwargs = (), {}
            self.graph.erase_node(node)
        last = self.graph._root
        for node in self.nodes:
            last.append(node)
            last = node


def apply(live: Arrays) -> bool:
    """Does to the live graphs what was done to those in the library. All or nothing."""
    edit = live.edit()
    values = Values(live.encoder)
    edit.symbol = values.symbol
    undos: list[_Undo] = []
    erased: list[tuple[torch.fx.Graph, list[Node]]] = []
    changed = False
    try:
        for graph, nodes in live.encoder.graphs:
            edit.next()
            undo = _Undo(graph, nodes)
            undos.append(undo)
            gone = _apply_one(edit, graph, nodes, values, undo)
            erased.append((graph, gone))
            if undo.new or undo.calls or undo.moved or gone:
                changed = True
                graph.lint()
    except Exception:
        for undo in undos:
            undo.back()
        raise
    for graph, gone in erased:
        for node in reversed(gone):
            graph.erase_node(node)
    return changed


def _apply_one(
    edit: Edit, graph: torch.fx.Graph, nodes: list[Node], values: Values, undo: _Undo
) -> list[Node]:
    """Everything but erasing: nodes that are to be erased lose their operands and are returned."""
    by_number = dict(enumerate(nodes))
    n = edit.next()
    if n:
        with graph.inserting_after(nodes[-1]):
            for _ in range(n):
                _create(edit, graph, by_number, undo)
    for _ in range(edit.next()):
        node = by_number[edit.next()]
        mentions = iter([by_number[m] for m in edit.take(edit.next())])
        undo.call(node)
        swap = lambda _, mentions=mentions: next(mentions)
        args = torch.fx.node.map_arg(node.args, swap)
        if node.kwargs:
            node.kwargs = torch.fx.node.map_arg(node.kwargs, swap)
        node.args = args
    for _ in range(edit.next()):
        node = by_number[edit.next()]
        undo.call(node)
        target, _, _, args, kwargs = _call(edit, by_number)
        if node.op != "output" and target is not None:
            node.target = target
        node.args, node.kwargs = args, kwargs
    retyped = [by_number[i] for i in edit.take(edit.next())]
    undo.moved = edit.next()
    for _ in range(undo.moved):
        node, before = edit.take(2)
        (by_number[before] if before >= 0 else graph._root).append(by_number[node])
    for node in retyped:
        undo.values.append((node, node.meta.get("val")))
    values.make(undo.new, undo.types, retyped)
    gone = [by_number[i] for i in edit.take(edit.next())]
    for node in gone:
        undo.call(node)
        node.args = ()
        if node.kwargs:
            node.kwargs = {}
    return gone


def _call(edit: Edit, by_number: dict[int, Node]) -> tuple[Any, str, str, tuple, dict]:
    """The words of a call after its number: target, name, type, arguments."""
    kind = OPERATION[edit.next()]
    target: Any = edit.texts[edit.next()]
    name = edit.texts[edit.next()]
    type_text = edit.texts[edit.next()]
    n_args, n_kwargs, _ = edit.take(3)
    if kind == "call_function":
        target = edit.opaque[target] if target in edit.opaque else _function(target)
    args = tuple([edit.value(by_number) for _ in range(n_args)])
    kwargs = {}
    for _ in range(n_kwargs):
        key = edit.texts[edit.next() >> 5]
        kwargs[key] = edit.value(by_number)
    return target, name, type_text, args, kwargs


def _function(text: str) -> Any:
    try:
        return resolve(text)
    except AttributeError:
        raise Error(f"this torch has no {text}") from None


def _create(edit: Edit, graph: torch.fx.Graph, by_number: dict[int, Node], undo: _Undo) -> None:
    number = edit.next()
    kind = OPERATION[edit.words[edit.at]]
    target, name, type_text, args, kwargs = _call(edit, by_number)
    # Operands are set afterwards: create_node() looks for symbols in them, which takes longer.
    node = graph.create_node(kind, target, (), {}, name)
    node.args = args
    if kwargs:
        node.kwargs = kwargs
    by_number[number] = node
    undo.new.append(node)
    undo.types.append(type_text)

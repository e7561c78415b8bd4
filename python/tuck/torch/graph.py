"""Passes on live torch.fx graphs: the graph goes into the library as arrays, and what passes did is
applied to it. Nodes that no pass touched stay the same objects, with the same `meta`."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
from collections.abc import Iterator
from typing import Any, Optional, Union

import torch
import torch.fx

from .._lib import Diags, Error, Handle, Settings, lib
from .._run import Passes, Report, parse, pipeline_text, run_passes
from ..notebook import order_rule
from . import part
from .arrays import KIND, OPERATION, Arrays, Edit, resolve
from .values import KNOWN, Values

Node = torch.fx.Node
# As assignments to args and kwargs, but for the table behind Graph.find_nodes(), which does not depend
# on operands: an assignment removes a node from it and enters it again.
_set_operands = Node._update_args_kwargs


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
    options = dict(cluster=cluster, profile=profile, model=model, memory=memory)
    diags = Diags()
    with _no_collector():
        if pipeline_text(passes).strip() != "auto":
            passes = _parsed(pipeline_text(passes))
            if not (any(v is not None for v in options.values()) or keep_order or strict):
                done = part.run(graph, passes)
                if done is not None:
                    return Report(done[0], "", done[1])
        settings = Settings(**options, order=order_rule(keep_order), strict=strict)
        live = Arrays(graph)
        _tell(live)
        report = run_passes(live.graph, passes, settings, diags)
        changed = apply(live)
    return Report(report, str(diags), changed)


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> Handle:
    return parse(text, Diags())


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
        self.moved: list[Node] = []

    def call(self, node: Node) -> None:
        self.calls.append((node, node.target, node._args, node._kwargs))

    def back(self) -> None:
        for node, target, args, kwargs in reversed(self.calls):
            if node.target is not target:
                node.target = target
            _set_operands(node, args, kwargs)
        for node, value in self.values:
            node.meta["val"] = value
        for node in reversed(self.new):
            _set_operands(node, (), {})
            self.graph.erase_node(node)
        last = self.graph._root
        for node in self.nodes:
            last.append(node)
            last = node


@contextlib.contextmanager
def _no_collector() -> Iterator[None]:
    """Thousands of new nodes and tensors, none of which is garbage: without it most of the time goes
    into looking for garbage. Afterwards they are old, so that nobody looks at all of them at once."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            if gc.get_freeze_count() == 0:
                gc.freeze()
                gc.unfreeze()
            gc.enable()


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
                _check(graph, undo, gone)
        modules = _add_modules(edit, undos)
    except Exception:
        for undo in undos:
            undo.back()
        raise
    for owner, name, module in modules:
        owner.add_module(name, module)
    for graph, gone in erased:
        _erase(graph, gone)
    return changed


def _erase(graph: torch.fx.Graph, nodes: list[Node]) -> None:
    """graph.erase_node() for nodes without operands and users. To assign a member of a node takes it out
    of the table behind Graph.find_nodes() and enters it again."""
    if not KNOWN or getattr(graph.owning_module, "_erase_node_hooks", None):
        for node in reversed(nodes):
            graph.erase_node(node)
        return
    remove = graph._find_nodes_lookup_table.remove
    for node in nodes:
        remove(node)
        node._remove_from_list()
        object.__setattr__(node, "_erased", True)
    graph._len -= len(nodes)


# ---- new nested graphs ----


def _add_modules(edit: Edit, undos: list[_Undo]) -> list[tuple[torch.nn.Module, str, torch.fx.GraphModule]]:
    """Makes the nested graphs that passes added: where they belong, under which names."""
    graphs = [undo.graph for undo in undos]
    reads = [undo.new for undo in undos]  # among these are the nodes that read them
    found = []
    for _ in range(edit.next()):
        parent, name, n = edit.next(), edit.texts[edit.next()], edit.next()
        owner = graphs[parent].owning_module
        if owner is None:
            raise Error("a pass adds nested graphs: the graph must belong to a GraphModule")
        graph, new = torch.fx.Graph(), _Undo(torch.fx.Graph(), [])
        by_number: dict[int, Node] = {}
        for _ in range(n):
            _create(edit, graph, by_number, new)
        module = torch.fx.GraphModule(torch.nn.Module(), graph)
        free = name
        while hasattr(owner, free) or any(o is owner and free == k for o, k, _ in found):
            free += "_"
        for node in reads[parent]:
            if node.op == "get_attr" and node.target == name:
                node.target = free
                for user in node.users:
                    _give_values(graph, user, node)
        graphs.append(graph)
        reads.append(new.new)
        found.append((owner, free, module))
    return found


def _give_values(graph: torch.fx.Graph, caller: Node, read: Node) -> None:
    """Values of a nested graph of one operation, from the node that calls it."""
    given = list(caller.args[caller.args.index(read) + 1 :]) if read in caller.args else []
    for place, operand in zip(graph.find_nodes(op="placeholder"), given):
        if isinstance(operand, Node) and "val" in operand.meta:
            place.meta["val"] = operand.meta["val"]
    inner = [n for n in graph.nodes if n.op == "call_function"]
    if len(inner) == 1 and "val" in caller.meta:
        inner[0].meta["val"] = caller.meta["val"]


def _check(graph: torch.fx.Graph, undo: _Undo, gone: list[Node]) -> None:
    """graph.lint() for what an edit can have broken: operands of nodes that are new, moved or changed
    come before them, their users after them, and nothing uses a node that goes."""
    for node in gone:
        if node.users:
            raise Error(f"{node.name} is erased, but {next(iter(node.users)).name} uses it")
    checked = dict.fromkeys([*undo.moved, *undo.new])
    checked.update((call[0], None) for call in undo.calls)
    for node in checked:
        for operand in node._input_nodes:
            if not operand < node or operand.graph is not graph:
                raise Error(f"{node.name} comes before its operand {operand.name}")
        for user in node.users:
            if not node < user:
                raise Error(f"{user.name} comes before its operand {node.name}")


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
        args = torch.fx.node.map_arg(node._args, swap)
        kwargs = torch.fx.node.map_arg(node._kwargs, swap) if node._kwargs else node._kwargs
        _set_operands(node, args, kwargs)
    for _ in range(edit.next()):
        node = by_number[edit.next()]
        undo.call(node)
        _, target, _, _, args, kwargs = _call(edit, by_number)
        if node.op != "output" and target is not None:
            node.target = target
        _set_operands(node, args, kwargs)
    retyped = [by_number[i] for i in edit.take(edit.next())]
    moves = iter(edit.take(2 * edit.next()))
    by_number[-1] = graph._root
    for number, before in zip(moves, moves):
        node = by_number[number]
        by_number[before].append(node)
        undo.moved.append(node)
    for node in retyped:
        undo.values.append((node, node.meta.get("val")))
    values.make(undo.new, undo.types, retyped)
    gone = [by_number[i] for i in edit.take(edit.next())]
    for node in gone:
        undo.call(node)
        _set_operands(node, (), {})
    return gone


def _call(edit: Edit, by_number: dict[int, Node]) -> tuple[str, Any, str, str, tuple, Any]:
    """The words of a call after its number: kind, target, name, type, arguments."""
    texts = edit.texts
    kind, text, name, type_text, n_args, n_kwargs, _ = edit.take(7)
    target = texts[text]
    if kind == KIND["call_function"]:
        target = edit.targets.get(text)
        if target is None:
            target = edit.targets[text] = _function(edit, texts[text])
    args = tuple(edit.values(n_args, by_number))
    kwargs = {}
    for _ in range(n_kwargs):
        key = texts[edit.next() >> 5]
        kwargs[key] = edit.value(by_number)
    return OPERATION[kind], target, texts[name], texts[type_text], args, kwargs


def _function(edit: Edit, text: str) -> Any:
    if text in edit.opaque:
        return edit.opaque[text]
    try:
        return resolve(text)
    except AttributeError:
        raise Error(f"this torch has no {text}") from None


def _create(edit: Edit, graph: torch.fx.Graph, by_number: dict[int, Node], undo: _Undo) -> None:
    number = edit.next()
    kind, target, name, type_text, args, kwargs = _call(edit, by_number)
    node = _new_node(graph, kind, target, name, args, kwargs)
    by_number[number] = node
    undo.new.append(node)
    undo.types.append(type_text)


def _new_node(
    graph: torch.fx.Graph, kind: str, target: Any, name: str, args: tuple, kwargs: dict[str, Any]
) -> Node:
    """graph.create_node(), which is slow about a name that is free, and looks for symbols in operands."""
    names = graph._graph_namespace
    base, _, count = name.rpartition("_")
    if (
        not KNOWN
        or name in names._used_names
        or not (count.isdecimal() and base.isidentifier() and name.isascii())
        or getattr(graph.owning_module, "_create_node_hooks", None)
    ):
        node = graph.create_node(kind, target, (), {}, name)
        _set_operands(node, args, kwargs)
        return node
    names._used_names.add(name)
    names._base_count[base] = int(count)
    node = Node(graph, name, kind, target, args, kwargs)
    names._obj_to_name[node] = name
    graph._insert(node)
    graph._find_nodes_lookup_table.insert(node)
    graph._len += 1
    return node

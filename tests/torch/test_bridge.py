"""Passes on live graphs give the same graphs as passes on their texts; nodes that no pass touched are
the same objects with the same meta."""

import copy
import random
import re
import sys
import unittest
from unittest import mock

import torch

from torch.utils._pytree import tree_leaves

from harness import ROOT, graphs, one_test_each

sys.path.insert(0, str(ROOT / "python"))

import tuck
import tuck.torch
from fakes import fake_module, groups, groups_of
from random_fx import random_graph
from tuck.torch import part

# Every pass, with the options that change what is inserted.
PASSES = list(tuck.passes()) + [
    f"{p}(mode={mode})"
    for p in ("bucket_all_gather", "bucket_reduce_scatter")
    for mode in ("custom_ops", "custom_ops_multidtype", "coalesced")
]
PASSES += ["schedule_overlap_bucketing(compat=torch)", "overlap_scheduling(compat=torch)", "auto"]
# Those that make nodes.
MAKING = ["fuse_ddp_communication", "fuse_ddp_with_coalesced_op", "bucket_all_gather", "bucket_reduce_scatter",
          "bucket_all_reduce", "bucket_all_gather(mode=coalesced)"]  # fmt: skip
N_RANDOM = 2000


def text_of(graph):
    """The graph as torch prints it, with the graphs nested in it."""
    owner = graph.owning_module
    if owner is not None:
        text = owner.print_readable(False, include_stride=True, include_device=True)
        return re.sub(r"^ *# No stacktrace found .*\n", "", text, flags=re.M)
    body = graph.python_code("self", verbose=True, include_stride=True, include_device=True).src
    lines = [line for line in body.split("\n") if "No stacktrace found" not in line]
    text = "class GraphModule(torch.nn.Module):\n"
    text += "\n".join("    " + line if line else "" for line in lines)
    return text.replace("random_fx_strange", "random_fx.strange")


def canonical(text):
    """Without the name of the class, the names that the two ways give to what only Python knows,
    and marks for the simulation, which a live graph has no place for."""
    text = text.replace("  # tuck: a loop of its own", "")
    text = re.sub(r"\Aclass \w+\(", "class GraphModule(", text)
    first, *nested = re.split(r"^(?=    class )", text, flags=re.M)
    text = "\n\n".join(part.strip() for part in [first, *sorted(nested)])
    return re.sub(r"\bopaque_\d+\b|\bOdd\.N\d+\b", "odd", text)


def renamed(text):
    """With names by the order of definition."""
    names = {}
    for name in re.findall(r"^ +(\w+)(?=: \"| = )", text, re.M):
        names.setdefault(name, f"n{len(names)}")
    return re.sub(r"(?<![.\w])\w+\b", lambda word: names.get(word[0], word[0]), text)  # not operators


def symbols_of(graph):
    """Values of the symbols in its sizes."""
    for node in graph.nodes:
        mode = getattr(node.meta.get("val"), "fake_mode", None)
        if mode is not None and mode.shape_env is not None:
            return {str(k): int(v) for k, v in mode.shape_env.backed_var_to_val.items()}
    return {}


def outcome(run):
    try:
        return run().changed, None
    except tuck.Error as error:
        return None, re.sub(r"^\S+: ", "", str(error).split("\n")[0])


def holder_of(owner):
    """A module with the same attributes, for what passes add to it."""
    holder = torch.nn.Module()
    for name in ("_modules", "_parameters", "_buffers") if owner is not None else ():
        getattr(holder, name).update(getattr(owner, name))
    return holder


class Way:
    """Compares both ways for one graph and counts."""

    def __init__(self, test, graph, known, rank=None):
        self.test = test
        self.graph = graph
        self.known = known
        self.rank = rank
        self.text = text_of(graph)
        self.symbols = symbols_of(graph)
        self.changed = 0

    def compare(self, passes):
        live = copy.deepcopy(self.graph)
        live.owning_module = holder_of(self.graph.owning_module)
        read = tuck.Graph(self.text, symbols=self.symbols)
        for name, ranks in self.known.items():
            if name in read.groups:
                read.set_group(name, len(ranks), ranks)
        if self.rank is not None:
            read.set_rank(self.rank)
        before = {n: (n.meta, dict(n.meta), n.target, n.args, n.kwargs) for n in live.nodes}
        by_text = outcome(lambda: read.optimize(passes))
        by_bridge = outcome(lambda: tuck.torch.run(live, passes))
        self.test.assertEqual(by_text[0] is None, by_bridge[0] is None, (by_text, by_bridge))
        if by_text[0] is None:  # the live graph is as it was
            read = tuck.Graph(self.text)
        a, b = canonical(str(read)), canonical(str(tuck.Graph(live)))
        if a != b:  # numbers of new names may differ
            a, b = renamed(a), renamed(b)
        self.test.assertEqual(a, b, f"{passes}\n{self.text}")
        self.changed += bool(by_bridge[0])
        self.untouched(live, before)
        live.lint()

    def untouched(self, live, before):
        for n in live.nodes:
            if n not in before:
                self.test.assertTrue(n.op != "call_function" or "val" in n.meta or not self.graph)
                continue
            meta, entries, target, args, kwargs = before[n]
            self.test.assertIs(n.meta, meta)
            if n.target is target and n.args == args and n.kwargs == kwargs:
                self.test.assertEqual(entries.keys(), n.meta.keys())
                self.test.assertTrue(all(n.meta[k] is v for k, v in entries.items()), n)


def by_part(test, graph):
    """Moves waits of one copy by a part of it, of another by the whole, and compares: None if the whole
    was needed, else whether anything moved."""
    copies = [copy.deepcopy(graph) for _ in range(3)]
    answers, run = [], part.run
    listed = copies[2]._find_nodes_lookup_table.table  # of nodes made in another order
    listed.update({key: dict(reversed(nodes.items())) for key, nodes in listed.items()})
    with mock.patch.object(part, "run", lambda *given: answers.append(run(*given)) or answers[-1]):
        mine = tuck.torch.run(copies[0], "schedule_comm_wait")
        other = tuck.torch.run(copies[2], "schedule_comm_wait")
    with mock.patch.object(part, "run", return_value=None):
        whole = tuck.torch.run(copies[1], "schedule_comm_wait")
    names = [[node.name for node in g.nodes] for g in copies]
    test.assertEqual(names[0], names[1])
    test.assertEqual(names[2], names[1])
    test.assertEqual(mine.data, whole.data)
    test.assertEqual(other.data, whole.data)
    test.assertEqual(mine.changed, names[0] != [node.name for node in graph.nodes])
    copies[0].lint()
    return None if answers[0] is None else mine.changed


@one_test_each(graphs("ddp", "fsdp", "tp", "moe", "exec"))
class CorpusTest(unittest.TestCase):
    def check(self, path):
        module, _ = fake_module(path.read_text())
        with groups(path):
            rank, known = groups_of(path)
            way = Way(self, module.graph, known, rank)
            by_part(self, module.graph)
            for passes in PASSES:
                with self.subTest(passes=passes):
                    way.compare(passes)


@one_test_each(graphs("ddp", "fsdp"))
class NewNodesTest(unittest.TestCase):
    """What torch would have made: values of new nodes are those of fake mode, and the graph knows its nodes."""

    def check(self, path):
        module, mode = fake_module(path.read_text())
        with groups(path):
            for passes in MAKING:
                with self.subTest(passes=passes):
                    live = copy.deepcopy(module.graph)
                    old = set(live.nodes)
                    tuck.torch.run(live, passes)
                    for node in live.nodes:
                        if node not in old and node.op == "call_function":
                            self.compare(node, mode)
                    self.known(live)

    def compare(self, node, mode):
        schema = getattr(node.target, "_schema", None)
        if schema is not None and schema.is_mutable:
            return
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
        with mode, torch.no_grad():
            wanted = node.target(*args, **kwargs)
        given = [v for v in tree_leaves((args, kwargs)) if isinstance(v, torch.Tensor)]
        for mine, theirs in zip(tree_leaves(node.meta["val"]), tree_leaves(wanted), strict=True):
            self.assertEqual(self.facts(mine, given), self.facts(theirs, given), node.format_node())

    def facts(self, value, given):
        if not isinstance(value, torch.Tensor):
            return value
        memory = [g.untyped_storage()._cdata == value.untyped_storage()._cdata for g in given]
        return (type(value), value.dtype, value.shape, value.stride(), value.storage_offset(), value.device,
                value.requires_grad, str(torch._C._dispatch_keys(value)), memory)  # fmt: skip

    def known(self, live):
        self.assertEqual(len(live.nodes), len(list(live.nodes)))
        for op, target in {(n.op, n.target) for n in live.nodes if n.op == "call_function"}:
            wanted = [n for n in live.nodes if n.op == op and n.target is target]
            self.assertEqual(sorted(live.find_nodes(op=op, target=target)), wanted)
        last = list(live.nodes)[-2]
        with live.inserting_after(last):
            other = live.create_node("call_function", torch.ops.aten.neg.default, (last,), name=last.name)
        self.assertNotEqual(other.name, last.name)


class RandomTest(unittest.TestCase):
    def test_random_graphs(self):
        changed = dict.fromkeys(PASSES, 0)
        parts = []
        for seed in range(N_RANDOM):
            graph = random_graph(seed, plain=seed % 3 == 0)
            way = Way(self, graph, {})
            with self.subTest(seed=seed, passes="on a part"):
                parts.append(by_part(self, graph))
            pick = random.Random(seed)
            for passes in pick.sample(PASSES, 4):
                with self.subTest(seed=seed, passes=passes):
                    count = way.changed
                    way.compare(passes)
                    changed[passes] += way.changed - count
        idle = [k for k, v in changed.items() if v == 0]
        self.assertLess(len(idle), 20, f"never changed anything: {idle}")
        counts = [parts.count(answer) for answer in (None, False, True)]
        self.assertTrue(all(n > N_RANDOM // 12 for n in counts), f"whole, part without a move, with: {counts}")


if __name__ == "__main__":
    unittest.main()

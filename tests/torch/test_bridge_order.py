"""Orders of Inductor's schedule: what Tuck decides is in the generated code, pass by pass."""

import inspect
import re
import unittest

import torch
from torch._inductor import comms
from torch._inductor.utils import run_and_get_code

from bridge import *  # noqa: F403
from schedule_capture import STEPS, capture, problem_of
from tuck.torch import passes, schedule

c10d = torch.ops._c10d_functional
PASSES = ("raise_comms", "sink_waits", "reorder_compute_for_overlap",
          "reorder_communication_preserving_peak_memory", "sink_waits_iterative",
          "reorder_for_peak_memory", "simple_overlap", "list_overlap", "improve_order", "issue_late",
          "decide_global_ordering_of_comms", "reorder_compute_and_comm_for_overlap",
          "align_runtime_estimations_across_all_distributed_ranks",
          "enforce_comm_ordering_for_fsdp", "graph")  # fmt: skip


def gathers(x, *shards):
    g = dist.group.WORLD.group_name
    for s in shards:
        w = c10d.wait_tensor(c10d.all_gather_into_tensor(s, dist.get_world_size(), g))
        x = torch.relu(x @ w)
    return x


def word(code):
    """The generated code in letters: collectives, waits, products."""
    code = re.sub(r"#.*", "", code)
    found = re.findall(r"(all_gather_into_tensor\w*\.default\(|wait_tensor\.default\(|\.mm\()", code)
    return "".join({"a": "C", "w": "W", ".": "m"}[f[0]] for f in found)


def fx_word(graph):
    letters = {"all_gather_into_tensor": "C", "wait_tensor": "W", "mm": "m"}
    names = (str(n.target).split(".")[-2] for n in graph.nodes if n.op == "call_function")
    return "".join(letters.get(name, "") for name in names)


class HoldTest(unittest.TestCase):
    """An order that Inductor does not keep by itself."""

    def code(self, options):
        start_fake_group()
        use_cache(type(self).__name__)
        forget()
        torch._dynamo.reset()
        args = [torch.randn(16, 64)] + [torch.randn(64 // dist.get_world_size(), 64)] * 4
        with config.patch(force_disable_caches=True):
            _, codes = run_and_get_code(torch.compile(gathers, fullgraph=True, options=options), *args)
        return word(codes[-1])

    def test_an_order_of_the_graph_holds(self):
        """The graph that Inductor gets has all gathers first; its schedule has not."""
        fx = []
        stand_in(lambda graph, *args, **kwargs: fx.append(fx_word(graph)))
        alone = self.code({})
        held = self.code(tuck.torch.options())
        self.assertEqual(fx, ["CCCCWmWmWmWm"])
        self.assertEqual(alone, "CWmCWmCWmCWm")  # or this test shows nothing
        self.assertEqual(held, fx[0])

    def test_a_pass_by_its_name(self):
        got = self.code({"reorder_for_compute_comm_overlap": True,
                         "reorder_for_compute_comm_overlap_passes": [passes.raise_comms.set(list_peak_memory_budget=10)]})
        self.assertEqual(got, "CCCCWmWmWmWm")


class PassTest(unittest.TestCase):
    """Every pass on Inductor's own schedules: a valid order of the same nodes."""

    def test_passes(self):
        for name in ("data_parallel", "fully_sharded", "tensor_parallel", "experts"):
            step, inputs = STEPS[name]
            for order in capture(step, inputs, self.orders):
                with self.subTest(f"{name} {order[0]}"):
                    self.assertEqual(order[1], "")

    def orders(self, problem, snodes):
        return [(name, self.wrong(snodes, getattr(passes, name)(list(snodes)))) for name in PASSES]

    def test_one_pass_after_another(self):
        """A list of passes: each gets the order of the one before, which may be one of Inductor's
        own, and in which what Inductor only pretends to depend on may come later."""
        for name in ("data_parallel", "fully_sharded"):
            for order in capture(*STEPS[name], self.two):
                with self.subTest(f"{name} {order[0]}"):
                    self.assertEqual(order[1], "")

    def two(self, problem, snodes):
        out = []
        firsts = {n: getattr(passes, n) for n in PASSES}
        firsts["Inductor's own"] = comms.reorder_communication_preserving_peak_memory
        for first, run in firsts.items():
            between = run(list(snodes))
            for second in PASSES:
                try:
                    wrong = self.wrong(snodes, getattr(passes, second)(list(between)))
                except tuck.Error as error:
                    wrong = str(error)
                out.append((f"{first}, {second}", wrong))
        return out

    def wrong(self, before, after):
        if sorted(map(id, before)) != sorted(map(id, after)):
            return "not the same nodes"
        made, known = set(), {b for s in before for b in s.get_buffer_names()}
        for s in after:
            late = {d.name for d in s.unmet_dependencies if not getattr(d, "is_fake", False)} & known - made - set(s.get_buffer_names())
            if late:
                return f"{s.get_name()} comes before {sorted(late)}"
            made |= set(s.get_buffer_names())
        return ""

    def test_every_name_of_comms(self):
        """What Inductor finds in comms.py by its name has a counterpart."""
        found = []
        for name, function in vars(comms).items():
            if inspect.isfunction(function) and function.__module__ == comms.__name__ and name[0] != "_":
                returned = str(inspect.signature(function).return_annotation)
                if "BaseSchedulerNode" in returned:
                    found.append(name)
                    self.assertTrue(callable(getattr(passes, name)), name)
        self.assertGreaterEqual(set(found), {"raise_comms", "sink_waits", "sink_waits_iterative"})

    def test_pinned(self):
        """The collectives of a schedule in another possible sequence, and what is impossible."""

        def look(problem, snodes):
            found = schedule.sequence.of_schedule(snodes)
            entries = found.entries
            pin = tuple(reversed(list(zip(entries, found.forms))))
            back = schedule.with_pinned(list(snodes), pin)
            return (len(entries), schedule.sequence.of_schedule(back).entries == entries[::-1],
                    self.wrong(snodes, back), schedule.with_pinned(list(snodes), (("x", "x"),)) == snodes)

        n, reversed_, wrong, kept = capture(*STEPS["data_parallel"], look)
        self.assertEqual((n > 2, wrong, kept), (True, "", True))

    def test_problem_is_that_of_the_captures(self):
        """The same members as the problems that schedulers are compared on."""

        def look(problem, snodes):
            mine = schedule.problem_of(snodes)
            skip = ("runtime", "kernel", "ancestors", "group", "coll")
            strip = lambda p: [{k: v for k, v in s.items() if k not in skip} for s in p["snodes"]]  # noqa: E731
            return strip(mine) == strip(problem), mine["freeable_inputs"] == problem["freeable_inputs"]

        self.assertEqual(capture(*STEPS["fully_sharded"], look), (True, True))
        self.assertTrue(callable(problem_of))


if __name__ == "__main__":
    unittest.main()

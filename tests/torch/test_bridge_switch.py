"""Tuck in torch.compile: switching on and off, caches, hooks of the user, errors. One process."""

import os
import threading
import unittest
from unittest import mock

import torch
from bridge import *  # noqa: F403
from bridge import CALLS, WIDTH
from tuck.torch.job import Verdict


def compiled(**options):
    return torch.compile(loss_of, **options)


def sequences(fn, *args, **kwargs):
    """What the compiled graphs of a call issue."""
    found = []
    plain = confirm.First.choose

    def choose(self):
        chosen = plain(self)
        found.append(list(confirm.issued(self.code).entries) if chosen is self.fast else None)
        return chosen

    confirm.First.choose = choose
    try:
        result = fn(*args, **kwargs)
    finally:
        confirm.First.choose = plain
    return result, found


class BridgeTest(unittest.TestCase):
    def setUp(self):
        start_fake_group()
        use_cache(type(self).__name__)
        clear_graphs()
        stand_in()
        forget()
        self.addCleanup(forget)


class SwitchTest(BridgeTest):
    def setUp(self):
        super().setUp()
        self.expected = train(compiled())
        forget()

    def test_options_reach_forward_and_backward(self):
        got, found = sequences(train, compiled(options=tuck.torch.options()))
        self.assertTrue(same(got, self.expected))
        self.assertEqual(CALLS, ["auto"])
        self.assertEqual([len(x) for x in found], [1])

    def test_install_and_uninstall(self):
        self.assertTrue(tuck.torch.install(passes=["sink_waits"]))
        self.assertTrue(tuck.torch.install())
        got = train(compiled())
        self.assertTrue(same(got, self.expected))
        tuck.torch.uninstall()
        torch._dynamo.reset()
        train(compiled())
        tuck.torch.uninstall()
        tuck.torch.uninstall()
        torch._dynamo.reset()
        train(compiled())
        self.assertEqual(CALLS, ["auto", "sink_waits"])

    def test_arguments_that_cannot_be_used(self):
        wrong = {
            "unknown pass 'bucket_al_gather'; did you mean 'bucket_all_gather'": {"passes": "bucket_al_gather"},
            "unknown pass 'nothing'": {"schedule": ["nothing"]},
            "no cluster 'h1000'": {"cluster": "h1000"},
            "found 'lots'": {"memory": "lots"},
        }
        for said, given in wrong.items():
            for way in (tuck.torch.options, tuck.torch.install):
                with self.assertRaisesRegex(tuck.Error, said):
                    way(**given)
        got = train(compiled())
        self.assertTrue(same(got, self.expected))
        self.assertEqual(CALLS, [])

    def test_context_left_before_the_backward(self):
        with tuck.torch.installed() as on:
            self.assertTrue(on)
            ws = weights()
            x = torch.ones(8, WIDTH)
            loss = compiled()(x, x, *ws)
        self.assertEqual(CALLS, [])
        loss.backward()
        self.assertEqual(CALLS, ["auto"])

    def test_backward_in_another_thread(self):
        def backward(loss):
            thread = threading.Thread(target=loss.backward)
            thread.start()
            thread.join()

        tuck.torch.install()
        got = train(compiled(), backward=backward)
        self.assertTrue(same(got, self.expected))
        self.assertEqual(CALLS, ["auto"])

    def test_compiled_in_another_thread(self):
        tuck.torch.install()
        thread = threading.Thread(target=lambda: train(compiled()))
        thread.start()
        thread.join()
        self.assertEqual(CALLS, ["auto"])

    def test_variable_turns_it_off(self):
        os.environ["TUCK"], before = "0", os.environ.get("TUCK")
        try:
            self.assertEqual(tuck.torch.options(), {})
            self.assertFalse(tuck.torch.install())
            train(compiled(options=tuck.torch.options()))
        finally:
            os.environ.pop("TUCK")
            if before is not None:
                os.environ["TUCK"] = before
        self.assertEqual(CALLS, [])

    def test_configuration_is_restored(self):
        keys = list(switch.patches_for(settings.Settings(), {}))
        before = {k: config.get_config_copy()[k] for k in keys}
        tuck.torch.install()
        train(compiled())
        tuck.torch.uninstall()
        self.assertEqual(before, {k: config.get_config_copy()[k] for k in keys})

    def test_own_hooks_run_first(self):
        seen = []

        class Mine(hooks.CustomGraphPass):
            def __call__(self, graph):
                seen.append(sum("all_reduce" in str(n.target) for n in graph.nodes))

            def uuid(self):
                return "mine"

        class Order:
            def __call__(self, snodes):
                seen.append("order")
                return snodes

        mine = {"post_grad_custom_post_pass": Mine(), "reorder_for_compute_comm_overlap": True,
                "reorder_for_compute_comm_overlap_passes": [Order()]}
        for how in ("options", "config"):
            with self.subTest(how):
                forget()
                seen.clear()
                if how == "options":
                    tuck.torch.install()
                    got, found = sequences(train, compiled(options=mine))
                else:
                    with config.patch(mine):
                        got, found = sequences(train, compiled(options=tuck.torch.options()))
                self.assertIn(3, seen)
                self.assertIn("order", seen)
                self.assertEqual([len(x) for x in found], [1])
                self.assertTrue(same(got, self.expected))

    def test_deterministic_is_said(self):
        with caught() as said, config.patch(deterministic=True):
            tuck.torch.install()
            got, found = sequences(train, compiled())
        self.assertEqual(len(said), 1)
        self.assertIn("deterministic", said[0])
        self.assertEqual([len(x) for x in found], [1])


class ErrorTest(BridgeTest):
    def broken(self, *args, **kwargs):
        raise tuck.Error("not today")

    def test_failure_is_a_warning_and_the_unchanged_graph(self):
        expected = train(compiled())
        forget()
        stand_in(self.broken)
        tuck.torch.install()
        with caught() as said:
            got, found = sequences(train, compiled())
        self.assertTrue(same(got, expected))
        self.assertEqual(found, [None])
        self.assertTrue(any("not today" in text for text in said), said)

    def test_strict_raises(self):
        stand_in(self.broken)
        tuck.torch.install(strict=True)
        with self.assertRaisesRegex(Exception, "not today"):
            train(compiled())

    def test_out_of_memory(self):
        def run(*args, **kwargs):
            raise MemoryError

        stand_in(run)
        tuck.torch.install()
        with caught() as said:
            _, found = sequences(train, compiled())
        self.assertEqual(found, [None])
        self.assertTrue(any("MemoryError" in text for text in said), said)

    def test_verify_keeps_what_is_right(self):
        expected = train(compiled())
        forget()
        tuck.torch.install(verify=True)
        with caught() as said:
            got = train(compiled())
        self.assertTrue(same(got, expected))
        self.assertEqual(said, [])

    def test_verify_finds_what_is_wrong(self):
        def wrong(graph, passes="auto", **options):
            merge(graph, passes)
            for node in graph.nodes:
                if "div" in str(node.target):
                    node.args = (node.args[0], 3)

        expected = train(compiled())
        forget()
        stand_in(wrong)
        tuck.torch.install(verify=True)
        with caught() as said:
            got = train(compiled())
        self.assertTrue(any("verify" in text and "differs" in text for text in said), said)
        self.assertTrue(same(got, expected))


class CacheTest(BridgeTest):
    def once(self, **options):
        forget()
        tuck.torch.install(**options)
        train(compiled())
        return cache_counts()

    def test_second_run_compiles_nothing_and_other_options_do(self):
        self.assertEqual(self.once(), (0, 2, 0))
        self.assertEqual(len(CALLS), 1)
        self.assertEqual(self.once(), (2, 0, 0))
        self.assertEqual(CALLS, [])
        self.assertEqual(self.once(passes="bucket_all_reduce")[:2], (1, 1))  # the forward is plain
        self.assertEqual(self.once(schedule="sink_waits")[:2], (1, 1))
        self.assertEqual(self.once(cluster="h100x8")[:2], (1, 1))
        self.assertEqual(self.once(), (2, 0, 0))

    def test_what_is_loaded_knows_what_it_issues(self):
        self.once()
        forget()
        tuck.torch.install()
        _, found = sequences(train, compiled())
        self.assertEqual([len(x) for x in found], [1])


class LibraryTest(BridgeTest):
    """With the library's own passes instead of the stand-in."""

    def test_compiled_again_by_the_same_plan(self):
        expected = train(compiled(dynamic=False), (8, 5))
        forget()
        plans = []

        def run(graph, passes, **options):
            plans.append(passes)
            return tuck.torch.run(graph, passes, **options)

        stand_in(run)
        tuck.torch.install(cluster="h100x8")
        with caught() as said:
            got = train(compiled(dynamic=False), (8, 5))
        self.assertEqual(said, [])
        self.assertTrue(same(got, expected))
        self.assertEqual(len(plans), 2)
        self.assertEqual(plans[0], "auto")
        self.assertNotEqual(plans[1], "auto")

    def test_compiled_again_without(self):
        """What was agreed cannot be had for another size: the unchanged graph is compiled, in the same
        context of a forward, whose strides are those of the code that is used."""

        def step(x):
            found = [collectives.all_reduce(x * k, "sum", dist.group.WORLD) for k in (1, 2)]
            return [y.t() + 1 for y in found]

        inputs = [torch.ones(n, WIDTH) for n in (8, 5)]
        stand_in(tuck.torch.run)
        tuck.torch.install(["bucket_all_reduce"])
        with torch.no_grad(), mock.patch.object(Verdict, "fits", lambda *_: False):
            fn = torch.compile(step, dynamic=False)
            got = [fn(x) for x in inputs]
        for x, found in zip(inputs, got):
            self.assertTrue(all(torch.equal(y, w) for y, w in zip(found, step(x))))

    def test_passes_by_name(self):
        expected = train(compiled())
        forget()
        stand_in(tuck.torch.run)
        tuck.torch.install(["fuse_ddp_with_concat_op", "bucket_all_reduce"])
        with caught() as said:
            got, found = sequences(train, compiled())
        self.assertEqual(said, [])
        self.assertTrue(same(got, expected))
        self.assertEqual([len(x) for x in found], [1])


    def test_control_dependences(self):
        """A pass that adds nested graphs to a live one, down to running code."""
        expected = train(compiled())
        forget()
        stand_in(tuck.torch.run)
        tuck.torch.install(["bucket_all_reduce", "insert_control_deps"])
        with caught() as said:
            got, found = sequences(train, compiled())
        self.assertEqual(said, [])
        self.assertTrue(same(got, expected))
        self.assertEqual([len(x) for x in found], [1])


if __name__ == "__main__":
    unittest.main()

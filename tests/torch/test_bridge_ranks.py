"""Faults on real ranks: nothing hangs, and nothing trains on a wrong graph.

Each scenario of bridge_worker.py runs on two or four ranks over gloo, with time-outs.
"""

import unittest

import launch

TOGETHER = ("all_agree", "other_options", "other_version", "other_estimates",
            "other_options_without_install", "other_decision", "other_graph", "error_in_c",
            "out_of_memory", "one_rank_warm", "one_rank_does_not_trace", "one_rank_recompiles", "one_rank_recompiles_with_auto",
            "another_form_together", "one_rank_recompiles_later", "another_function", "off_on_one_rank")  # fmt: skip
ALONE = ("one_rank_decides_otherwise", "another_program_later", "killed_before_install",
         "killed_while_asked")  # fmt: skip
FORMS = ("fullgraph", "mode", "dynamic", "recompiles", "automatic_dynamic", "graph_breaks",
         "checkpointing", "backward_in_a_thread", "own_hooks", "context_left")  # fmt: skip


def outcome(names, world=2):
    jobs = [{"graph": name} for name in names]
    return launch.run_jobs(world, jobs, "bridge_worker.py", collective_seconds=120)


def _add(case, name):
    def test(self):
        self.assertEqual(self.found[name], [])

    setattr(case, "test_" + name, test)


class RanksTest(unittest.TestCase):
    """Faults."""

    @classmethod
    def setUpClass(cls):
        cls.found = outcome(TOGETHER)
        for name in ALONE:
            cls.found.update(outcome([name]))


class FormTest(unittest.TestCase):
    """Ways to compile: each gives what it gives without Tuck."""

    @classmethod
    def setUpClass(cls):
        cls.found = outcome([f"form_{name}" for name in FORMS])


class MeshTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.found = outcome(["mesh_recompiles"], world=4)


for name in TOGETHER + ALONE:
    _add(RanksTest, name)
for name in FORMS:
    _add(FormTest, f"form_{name}")
_add(MeshTest, "mesh_recompiles")

if __name__ == "__main__":
    unittest.main()

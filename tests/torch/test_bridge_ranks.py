"""Faults on real ranks: nothing hangs, and nothing trains on a wrong graph.

Each scenario of bridge_worker.py runs on two ranks over gloo, with time-outs.
"""

import unittest

import launch

TOGETHER = ("all_agree", "other_options", "other_version", "other_options_without_install",
            "other_decision", "other_graph", "error_in_the_library", "one_rank_warm",
            "one_rank_recompiles", "one_rank_recompiles_with_auto")  # fmt: skip
ALONE = ("one_rank_decides_otherwise", "killed_before_install", "killed_while_asked")


def outcome(names):
    jobs = [{"graph": name} for name in names]
    return launch.run_jobs(2, jobs, "bridge_worker.py", collective_seconds=120)


class RanksTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.found = outcome(TOGETHER)
        for name in ALONE:
            cls.found.update(outcome([name]))


def _add(name):
    def test(self):
        self.assertEqual(self.found[name], [])

    setattr(RanksTest, "test_" + name, test)


for name in TOGETHER + ALONE:
    _add(name)

if __name__ == "__main__":
    unittest.main()

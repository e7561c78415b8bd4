"""Ranks agree through a store: the same answer on all, whoever is late, absent or different.

The ranks are threads with a client each, of a TCP store and of a file store.
"""

import random
import tempfile
import threading
import time
import unittest

import torch.distributed as dist
from bridge import *  # noqa: F403
from tuck.torch import agree


def ask_all(kind, plans, seconds=3.0):
    """plans: for each rank a list of (pause, question, vote). Answers by rank, and the time."""
    with tempfile.TemporaryDirectory() as folder:
        if kind == "tcp":
            server = dist.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
        found = {}

        def rank(r, plan):
            if kind == "tcp":
                store = dist.TCPStore("127.0.0.1", server.port, None, False)
            else:
                store = dist.FileStore(folder + "/store", -1)
            for pause, question, vote in plan:
                time.sleep(pause)
                answer = agree.ask(question, vote, seconds, dist.PrefixStore("tuck", store), r)
                found.setdefault(r, []).append(answer)

        threads = [threading.Thread(target=rank, args=item) for item in plans.items()]
        start = time.monotonic()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return found, time.monotonic() - start


def vote(value, ranks=(0, 1, 2, 3), **more):
    return {"value": value, "ranks": list(ranks), **more}


class AgreeTest(unittest.TestCase):
    def both(self, plans, agreed, seconds=3.0, within=30.0):
        for kind in ("tcp", "file"):
            found, took = ask_all(kind, plans, seconds)
            self.assertEqual({r: [a.agreed for a in x] for r, x in found.items()}, agreed, kind)
            self.assertLess(took, within)
        return found

    def test_all_the_same(self):
        self.both({r: [(r * 0.05, "q", vote("a"))] for r in range(4)}, {r: [True] for r in range(4)})

    def test_one_differs(self):
        plans = {r: [(0, "q", vote("ab"[r == 2], options={"passes": "auto", "verify": r == 2}))] for r in range(4)}
        found = self.both(plans, {r: [False] for r in range(4)})
        self.assertEqual((found[0][0].rank, found[0][0].difference),
                         (2, "its verify: True, here False"))

    def test_one_is_absent(self):
        found = self.both({r: [(0, "q", vote("a"))] for r in range(3)},
                          {r: [False] for r in range(3)}, 0.5)
        self.assertEqual((found[1][0].rank, found[1][0].difference), (3, "no answer within 0.5 s"))

    def test_one_is_late(self):
        """It finds that the others have gone on, and follows."""
        plans = {r: [(1.2 * (r == 3), "q", vote("a"))] for r in range(4)}
        found = self.both(plans, {r: [False] for r in range(4)}, 0.4)
        self.assertIn("went on without", found[3][0].difference)

    def test_groups_that_overlap(self):
        """A mesh of two by two: nobody knows all ranks."""
        know = {0: (0, 1, 2), 1: (0, 1, 3), 2: (0, 2, 3), 3: (1, 2, 3)}
        plans = {r: [(0, "q", vote("a", know[r]))] for r in range(4)}
        self.both(plans, {r: [True] for r in range(4)})
        plans[3] = [(0, "q", vote(None, know[3], why="failed"))]
        self.both(plans, {r: [False] for r in range(4)})

    def test_two_stages(self):
        """Ranks that share no group do not have to agree."""
        plans = {r: [(0, "q", vote("ab"[r // 2], (r // 2 * 2, r // 2 * 2 + 1)))] for r in range(4)}
        self.both(plans, {r: [True] for r in range(4)})

    def test_another_question(self):
        """Ranks that wait for each other find out long before the time is up."""
        plans = {r: [(0, "q" if r else "z", vote("a")), (0, "w", vote("b"))] for r in range(4)}
        self.both(plans, {r: [False, True] for r in range(4)}, 60.0, within=20.0)

    def test_random(self):
        """Whatever happens, all ranks that answer have the same answer."""
        r = random.Random(int(os.environ.get("TUCK_SEED", 5)))
        for _ in range(6):
            plans = {}
            for rank in range(5):
                if r.random() < 0.9:
                    value = "b" if r.random() < 0.1 else None if r.random() < 0.1 else "a"
                    pause = r.choice([0, 0, 0.1, 0.3, 0.6])
                    plans[rank] = [(pause, "q", vote(value, range(5)))]
            found, _ = ask_all("tcp", plans, r.choice([0.1, 0.3, 1.0]))
            answers = {a[0].agreed for a in found.values()}
            self.assertLessEqual(len(answers), 1, plans)


if __name__ == "__main__":
    unittest.main()

"""Jobs recorded while they run: every collective gets the time of its own transfers, and the simulated step is the measured one.

Times come from some steps and are judged by the others, and by the steps of the same job with another size of buckets, which take turns with them.
Each job is recorded several times and the median of the errors counts. On a machine that does something else at the same time, which the steps
themselves show, the recording is repeated once.
"""

import json
import os
import re
import statistics
import tempfile
import unittest
from pathlib import Path

import measured_worker
from measured import end, events, is_step, middle, record, within

BOUND = 0.10
ROUNDS, STEPS = measured_worker.ROUNDS, measured_worker.STEPS


# ---- what the trace says, read without tuck ----


def elements(e):
    text = json.dumps(e["args"]["Input Dims"])
    product = 1
    for n in re.findall(r"\d+", text.split("]")[0]):
        product *= int(n)
    return product


def transfers(found):
    """Calls of collectives, each with the time of its gloo transfer: since its call, or the transfer before it, until the host, which waited for
    it, goes on. Gloo has two threads, which may begin two transfers in the other order: a call's is the first one of its size."""
    calls = sorted((e for e in found if re.match(r"_c10d_functional::(?!wait_tensor)", e["name"])), key=lambda e: e["ts"])
    runs = sorted((e for e in found if e["name"].startswith("gloo:")), key=lambda e: e["ts"])
    runs = [r for r in runs if "barrier" not in r["name"]]
    if len(calls) != len(runs):
        raise AssertionError(f"{len(calls)} calls, {len(runs)} transfers")
    waits = [e for e in found if e["name"] == "_c10d_functional::wait_tensor"]
    until = {}
    for w in waits:
        ended = [r for r in runs if w["ts"] <= end(r) <= end(w)]
        if ended:
            until[id(max(ended, key=end))] = end(w)
    before = float("-inf")
    for call in calls:
        sizes = elements(call), elements(call) // 2, elements(call) // 4  # a scatter by gloo shows a part
        run = next(r for size in sizes for r in runs if elements(r) == size and r["ts"] >= call["ts"])
        runs.remove(run)
        start = max(min(run["ts"], end(call)), before)
        before = max(before, end(run))
        yield call, run, max(until.get(id(run), end(run)) - start, 0)


def regions(found):
    """Runs of compiled graphs, each with the number of its step."""
    steps = [e for e in found if e["name"].startswith("ProfilerStep#")]
    runs = []
    for e in found:
        if e["name"].startswith("## Call CompiledFxGraph"):
            number = [int(s["name"].split("#")[1]) for s in steps if within(e, s)]
            if number:
                runs.append((number[0], e))
    return runs


WORLDS = 2, 4
PAIRS = [("ddp:3", "ddp:6")]  # the same job with two sizes of buckets
if os.environ.get("TUCK_SOAK"):  # four more recordings
    PAIRS.append(("sharded:2", "sharded:8"))
BUCKETS = [job for pair in PAIRS for job in pair]
JOBS = [*BUCKETS, "sharded:0"]
DISTURBED = 0.10  # half of the steps differ by more than that from each other
ATTEMPTS = 2


def spread(graphs):
    """How far the steps of a job are apart: the middle half of them, the median of its recordings."""
    found = []
    for traces in graphs[0].traces:
        times = sorted(e["dur"] for e in events(traces[0]) if is_step(e))
        found.append((times[3 * len(times) // 4] - times[len(times) // 4]) / statistics.median(times))
    return statistics.median(found)


def record_undisturbed(folder, cache, world):
    """All jobs, those with buckets again if their steps are not alike; the recording in which they are most. And how much they are not."""
    found, best = {}, float("inf")
    for attempt in range(ATTEMPTS):
        again = record(folder / str(attempt), cache, world, BUCKETS if found else JOBS)
        apart = max(spread(again[job]) for job in BUCKETS)
        print(f"{world} ranks: steps are {apart:.0%} apart")
        if apart < best:
            found, best = {**found, **again}, apart
        if best < DISTURBED:
            break
    return found, best


class Recorded(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temp = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temp.cleanup)
        path = Path(temp.name)
        recorded = {world: record_undisturbed(path / str(world), path / "cache", world) for world in WORLDS}
        cls.found = {world: found for world, (found, _) in recorded.items()}
        cls.apart = {world: apart for world, (_, apart) in recorded.items()}

    def all(self):
        return ((f"{job}, {world} ranks", graphs) for world, jobs in self.found.items() for job, graphs in jobs.items())

    def judge(self, what, errors, bound=BOUND):
        error = statistics.median(errors)
        print(f"{what}: {error:+.1%}, the median of {', '.join(f'{e:+.1%}' for e in errors)}")
        self.assertLess(abs(error), bound, what)

    def test_every_collective_is_tied_to_its_node(self):
        for job, graphs in self.all():
            for turn in range(ROUNDS):
                found = events(graphs[0].traces[turn][0])
                moved, runs = list(transfers(found)), regions(found)
                for graph in graphs:
                    if graph.nodes:
                        with self.subTest(job=job, graph=graph.text.name, turn=turn):
                            self.check_ties(graph, turn, moved, runs)

    def check_ties(self, graph, turn, moved, runs):
        order = graph.in_code_order()
        self.assertEqual(sorted(order), sorted(graph.nodes))
        kinds = [re.sub(r"(_default)?(_\d+)?$", "", n) for n in order]
        calls = {id(e): [c["name"].split("::")[1].rstrip("_") for c, _, _ in moved if within(c, e)] for _, e in runs}
        runs = [(n, e) for n, e in runs if calls[id(e)] == kinds]
        self.assertEqual([n for n, _ in runs], sorted({n for n, _ in runs}))  # one in each step
        self.assertEqual(len(runs), STEPS)
        for parity, steps in enumerate(("even", "odd")):
            used = middle([e for n, e in runs if n % 2 == parity], lambda e: e["dur"])
            each = [[us for c, _, us in moved if within(c, e)] for e in used]
            expected = {n: statistics.mean(times) * 1000 for n, times in zip(order, zip(*each))}
            for mapping in (True, False):
                said = graph.simulate(steps, turn, mapping)
                m = said["measured_runs"]
                self.assertEqual((m["runs_used"], m["collectives"]["ops"], m["collectives"]["tied"]), (len(used), len(order), len(order)))
                self.assertEqual(len(m["ambiguous"]), m["collectives"]["ambiguous"])
                for c in said["collectives"]:
                    if c["node"] not in m["ambiguous"]:
                        self.assertAlmostEqual(c["ns"], expected[c["node"]], delta=5)
                if m["order_of_code"]:
                    self.assertEqual([c["node"] for c in said["collectives"]], order)

    def test_other_steps(self):
        for job, graphs in self.all():
            errors = []
            for turn in range(ROUNDS):
                # Each half by the costs of the other; on a busy machine they differ, but not in the sum.
                said = [g.simulate(steps, turn)["measured_runs"]["step"] for g in graphs for steps in ("even", "odd")]
                errors.append(sum(x["simulated_ns"] for x in said) / sum(x["measured_ns"] for x in said) - 1)
            with self.subTest(job=job):
                self.judge(f"{job} by its other steps", errors)
                self.judge(f"{job}, share of a step outside of its graphs", [self.outside(graphs, t) for t in range(ROUNDS)])

    def outside(self, graphs, turn):
        """The share of a step that no graph has: Python, autograd, gradients that are put in their place."""
        found = events(graphs[0].traces[turn][0])
        steps = [e for e in found if e["name"].startswith("ProfilerStep#")]
        inside = [e for e in found if e["name"].startswith("## Call CompiledFxGraph")]
        shares = [1 - sum(e["dur"] for e in inside if within(e, s)) / s["dur"] for s in steps]
        return statistics.median(shares)

    def test_another_bucket_size(self):
        for world, jobs in self.found.items():
            for known, other in [way for pair in PAIRS for way in (pair, pair[::-1])]:
                errors = []
                for turn in range(ROUNDS):
                    said = [(t.simulate("even", turn), t.simulate("odd", turn), t.simulate_by(s, turn)) for t, s in zip(jobs[other], jobs[known])]
                    measured = sum(x["measured_runs"]["step"]["measured_ns"] for even, odd, _ in said for x in (even, odd)) / 2
                    errors.append(sum(x["step_ns"] for _, _, x in said) / measured - 1)
                # With fewer cores than ranks each wait takes until others have given up their core, and one recording does
                # not say how much that is.
                sure = self.apart[world] < DISTURBED and world <= (os.cpu_count() or 1)
                with self.subTest(world=world, other=other):
                    self.judge(f"{world} ranks, a step of {other} by the times of {known}", errors, BOUND if sure else 3 * BOUND)


if __name__ == "__main__":
    unittest.main()

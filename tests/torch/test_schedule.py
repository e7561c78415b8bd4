"""The schedulers give PyTorch's order, peak and statistics: on random problems, on steps that Inductor
schedules, and so do the three orders for peak memory. TUCK_SEED repeats a run."""
import json
import os
import random
import subprocess
import time
import unittest

from torch._inductor import config_comms

import schedule_capture
import schedule_odd as odd
import schedule_stubs as stubs
from harness import ROOT

TEST_SCHEDULE = os.environ.get("TEST_SCHEDULE") or str(ROOT / "build/release/tests/unit/test_schedule")
PROBLEMS = int(os.environ.get("TUCK_PROBLEMS") or 1000)
CODES = {"None": "end", "unexposed": "covered", "collective ordering": "order",
         "data dependency": "dependency", "candidate has compute": "exposes_group",
         "candidate is wait": "exposes_passed", "candidate contains_async": "collective",
         "peak memory": "memory"}
CASE = ROOT / "build" / "schedule_case.json"  # the last problem on which we differed
NUMBERS = ("moves", "grouped", "comm_time", "comp_time", "initial_exposed", "final_exposed")


def code(text):
    return next((c for prefix, c in CODES.items() if text.startswith(prefix)), "exposes_passed")


def ask(cases):
    """Answers of Tuck: a line in, a line out."""
    done = subprocess.run([TEST_SCHEDULE, "--answer"], text=True, capture_output=True, timeout=300,
                          input="".join(json.dumps(case) + "\n" for case in cases))
    if done.returncode:
        raise AssertionError(f"test_schedule --answer: {done.returncode}\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def plain(answer, deps):
    """PyTorch's answer in our format."""
    stats = {name: [x[key] for key in NUMBERS] + [code(x["limiting_factor"])]
             for name, x in answer["stats"].items()}
    return {"order": answer["order"], "peak": answer["peak"], "stats": stats,
            **({"deps": answer["deps"]} if deps else {})}


class Schedules(unittest.TestCase):
    maxDiff = 2000

    def compare(self, cases, wanted):
        answers = ask(cases)
        self.assertEqual(len(answers), len(cases))
        for case, want, got in zip(cases, wanted, answers):
            if got != want:
                CASE.write_text(json.dumps(case["problem"]))
            self.assertEqual(got, want, f"{case['passes']} {case['set']}, on {CASE}")

    def test_random_problems(self):
        seed = int(os.environ.get("TUCK_SEED") or time.time())
        print(f"TUCK_SEED={seed}, {PROBLEMS} problems", flush=True)
        rng = random.Random(seed)
        cases, wanted = [], []
        for _ in range(PROBLEMS):
            problem, chosen = stubs.random_problem(rng), stubs.random_options(rng)
            runs = [[name] for name in (*stubs.LIST, stubs.REORDER, stubs.SINK, stubs.ORDERING)]
            if rng.random() < 0.2:
                runs.append([stubs.REORDER, stubs.SINK, stubs.REORDER])
            for passes in runs:
                deps = passes == [stubs.ORDERING]
                cases.append({"problem": problem, "passes": passes, "set": chosen, "deps": deps})
                wanted.append(plain(stubs.answer(problem, passes, chosen), deps))
        self.compare(cases, wanted)

    def test_odd_problems(self):
        """Unlike a training step; those on which PyTorch itself fails are skipped."""
        rng = random.Random(int(os.environ.get("TUCK_SEED") or time.time()))
        cases, wanted, own = [], [], []
        for _ in range(PROBLEMS // 4):
            problem = odd.odd_problem(rng)
            for passes in ([stubs.LIST[2]], [stubs.ORDERING], [stubs.REORDER, stubs.SINK],
                           [stubs.SINK, stubs.REORDER]):
                chosen, deps = odd.odd_options(rng), passes == [stubs.ORDERING]
                try:
                    answer = stubs.answer(problem, passes, chosen)
                except StopIteration:  # a collective that makes nothing
                    continue
                cases.append({"problem": problem, "passes": passes, "set": chosen, "deps": deps})
                wanted.append(plain(answer, deps))
            own += [{"problem": problem, "passes": [name], "set": {}, "own": True}
                    for name in (*stubs.LIST, stubs.REORDER, stubs.SINK, "simple_overlap",
                                 "reorder_for_peak_memory")]
        self.compare(cases, wanted)
        for case, got in zip(own, ask(own), strict=True):
            self.assertNotIn("broken", got, case)

    def test_orders_for_peak_memory(self):
        rng = random.Random(int(os.environ.get("TUCK_SEED") or time.time()))
        cases, wanted = [], []
        for i in range(PROBLEMS // 2):
            problem = stubs.random_problem(rng)
            size = rng.choice((0, 0, 50))
            inductor = {"size_threshold_for_succ_based_strategy": size}
            for method in stubs.PEAK:
                cases.append({"problem": problem, "passes": [method], "set": inductor})
                wanted.append(plain(stubs.answer(problem, [method], {}, inductor), False))
        self.compare(cases, wanted)


OPTIONS = [{},
           {"reorder_iterative_peak_memory_budget": 0.0, "sink_iterative_peak_memory_budget": 0.0},
           {"reorder_iterative_use_runtime_estimations": True,
            "sink_iterative_use_runtime_estimations": True},
           {"reorder_iterative_use_runtime_estimations": True,
            "sink_iterative_use_runtime_estimations": True,
            "reorder_iterative_group_with_collectives": True,
            "sink_waits_iterative_swap_with_collectives": True,
            "reorder_iterative_unsafe_collectives_reorder": False,
            "sink_waits_iterative_unsafe_collectives_reorder": False}]


class Steps(unittest.TestCase):
    maxDiff = 2000

    def check(self, name, least_ops=0):
        cases, wanted = [], []

        def look(problem, snodes):
            runs = [([one], {}) for one in stubs.LIST]
            for chosen in OPTIONS:
                runs += [([stubs.REORDER], chosen), ([stubs.SINK], chosen),
                         ([stubs.REORDER, stubs.SINK, stubs.REORDER], chosen)]
            freeable = schedule_capture.memory.get_freeable_input_buf(
                snodes, schedule_capture.OrderedSet(problem["graph_inputs"]))
            outputs = schedule_capture.OrderedSet(problem["graph_outputs"])
            for passes, chosen in runs:
                nodes, stats = snodes, {}
                with config_comms.patch(chosen):
                    for one in passes:
                        nodes, stats = stubs.run_pass(one, nodes)
                peak = schedule_capture.memory.estimate_peak_memory_allocfree(nodes, freeable, outputs)
                cases.append({"problem": problem, "passes": passes, "set": chosen})
                wanted.append(plain({"order": schedule_capture.names(nodes), "stats": stats,
                                     "peak": int(peak[0])}, False))
            return problem

        problem = schedule_capture.capture(*schedule_capture.STEPS[name], look)
        fused = sum(len(op["ops"]) > 1 for op in problem["snodes"])
        print(f"{name}: {len(problem['snodes'])} ops, {fused} of them fused", flush=True)
        self.assertGreater(fused, 0)
        self.assertGreaterEqual(len(problem["snodes"]), least_ops)
        Schedules.compare(self, cases, wanted)

    def test_data_parallel(self):
        self.check("data_parallel")

    def test_fully_sharded(self):
        self.check("fully_sharded")

    def test_tensor_parallel(self):
        self.check("tensor_parallel")

    def test_experts(self):
        self.check("experts")

    def test_large(self):
        self.check("large", 300)


if __name__ == "__main__":
    unittest.main()

"""`tuck trace` beside Holistic Trace Analysis: the same figures, to the microsecond. Its own figures, by brute force."""

import gzip
import json
import logging
import os
import tempfile
import unittest
import warnings
from decimal import Decimal
from pathlib import Path

from harness import tuck
from trace_gen import COMMUNICATES, Writer

TRACES = int(os.environ.get("TUCK_TRACES", 60))
FIGURES = {"compute_us": "compute_time(us)", "non_compute_us": "non_compute_time(us)", "idle_us": "idle_time(us)",
           "kernel_us": "kernel_time(us)"}  # fmt: skip


def holistic(path):
    """Its figures under our names."""
    from hta.analyzers.breakdown_analysis import BreakdownAnalysis
    from hta.analyzers.communication_analysis import CommunicationAnalysis
    from hta.common.trace import Trace

    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace = Trace(trace_files={0: str(path)}, trace_dir="/")
        trace.parse_traces(use_multiprocessing=False, use_memory_profiling=False)
        trace.align_and_filter_trace(False)
        row = BreakdownAnalysis.get_temporal_breakdown(trace, visualize=False).iloc[0]
        found = {ours: float(row[theirs]) for ours, theirs in FIGURES.items()}
        overlap = CommunicationAnalysis.get_comm_comp_overlap(trace, visualize=False)
        found["overlap_percent"] = float(overlap.iloc[0]["comp_comm_overlap_pctg"])
    return found


def kernels(path):
    return json.loads(tuck("trace", "--json", path))["ranks"][0]


def ps(us):
    return int(us * 1000000)


def covered(intervals):
    """When something runs, as disjoint intervals."""
    out = []
    for a, b in sorted(intervals):
        if out and a <= out[-1][1]:
            out[-1][1] = max(b, out[-1][1])
        elif b > a:
            out.append([a, b])
    return out


def length(intervals):
    return sum(b - a for a, b in covered(intervals))


def without(intervals, others):
    return length(intervals + others) - length(others)


def plain_steps(path):
    """The figures of each step from the file alone, in the simplest way."""
    text = path.read_bytes()
    events = json.loads(gzip.decompress(text) if path.suffix == ".gz" else text, parse_float=Decimal)["traceEvents"]
    events = [e for e in events if e["ph"] == "X" and "cat" in e and e.get("dur") is not None]
    named = [e for e in events if e["cat"] == "user_annotation" and e["name"].startswith("ProfilerStep#")]
    spans = sorted((ps(e["ts"]), -ps(e["dur"]), int(e["name"][13:])) for e in named)
    steps = []
    for start, minus, number in spans:
        if not steps or start - minus > steps[-1][1]:  # not inside of the one before
            steps.append((start, start - minus, number))
    launched = {}
    for e in events:
        c = e.get("args", {}).get("correlation", -1)
        if e["cat"].endswith(("_runtime", "_driver")) and c >= 0:
            launched[c] = min(ps(e["ts"]), launched.get(c, ps(e["ts"])))
    found = {number: {"compute": [], "comm": [], "copies": []} for _, _, number in steps}
    for e in events:
        if e["cat"] not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        args = e.get("args", {})
        when = launched.get(args.get("correlation", -1), ps(e["ts"]))
        inside = [number for start, end, number in steps if start <= when < end]
        comm = "Collective name" in args or any(word in e["name"] for word in COMMUNICATES)
        kind = "copies" if e["cat"] != "kernel" else "comm" if comm else "compute"
        if inside:
            found[inside[-1]][kind].append((ps(e["ts"]), ps(e["ts"]) + ps(e["dur"])))
    return found


class OwnFigures(unittest.TestCase):
    def test_generated(self):
        compared = 0
        with tempfile.TemporaryDirectory() as folder:
            for seed in range(TRACES):
                path = Path(folder) / ("t.json.gz" if seed % 3 else "t.json")
                Writer(seed).write(path)
                ours = kernels(path)["steps"]
                expected = plain_steps(path)
                for step in ours if expected else []:
                    x = expected[step["step"]]
                    every = x["compute"] + x["comm"] + x["copies"]
                    span = max(b for _, b in every) - min(a for a, _ in every) if every else 0
                    figures = {"compute_ns": length(x["compute"]), "comm_ns": length(x["comm"]),
                               "exposed_ns": without(x["comm"], x["compute"]),
                               "copies_ns": without(x["copies"], x["compute"] + x["comm"]),
                               "idle_ns": span - length(every)}  # fmt: skip
                    figures = {k: v / 1000 for k, v in figures.items()}
                    figures |= {"kernels": len(x["compute"]), "collectives": len(x["comm"])}
                    self.assertEqual({k: step[k] for k in figures}, figures, f"seed {seed}, step {step['step']}")
                    compared += 1
        self.assertGreater(compared, TRACES // 2)


class HolisticTest(unittest.TestCase):
    def test_generated(self):
        some = {"fractions": 0, "steps": 0}
        with tempfile.TemporaryDirectory() as folder:
            for seed in range(TRACES):
                path = Path(folder) / ("t.json.gz" if seed % 3 else "t.json")
                writer = Writer(seed)
                writer.write(path)
                ours = kernels(path)
                if ours["all"]["comm_ns"] == 0 or ours["all"]["compute_ns"] == 0:
                    continue  # of nothing it has no figures
                if "holistic" not in ours:
                    continue
                try:
                    theirs = holistic(path)
                except (IndexError, AssertionError):
                    continue  # no kernel is left without the last step; it does not expect that
                mine = dict(ours["holistic"])
                if mine["overlap_percent"] is None:
                    continue
                mine["overlap_percent"] = round(mine["overlap_percent"], 2)
                self.assertEqual(mine, theirs, f"seed {seed}")
                some["fractions"] += not writer.whole
                some["steps"] += len(ours["steps"]) > 1
        self.assertGreater(some["fractions"], TRACES // 4)
        self.assertGreater(some["steps"], TRACES // 5)

    def test_recorded(self):
        """Traces in the folder that TUCK_TRACE_FOLDER names, if any."""
        folder = os.environ.get("TUCK_TRACE_FOLDER")
        for path in sorted(Path(folder).glob("*.json*")) if folder else []:
            mine = dict(kernels(path)["holistic"])
            mine["overlap_percent"] = round(mine["overlap_percent"], 2)
            self.assertEqual(mine, holistic(path), path)


if __name__ == "__main__":
    unittest.main()

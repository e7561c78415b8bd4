"""`tuck trace` beside Holistic Trace Analysis: the same figures, to the microsecond."""

import json
import logging
import os
import tempfile
import unittest
import warnings
from pathlib import Path

from harness import tuck
from trace_gen import Writer

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

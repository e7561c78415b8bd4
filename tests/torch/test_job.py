"""Folders that torch leaves behind: the right graphs, pairs and ranks, and the peak of forward and backward together."""

import json
import os
import tarfile
import tempfile
import time
import unittest
from pathlib import Path

import harness
import warm

WORKER = harness.HERE / "job_worker.py"
KERNELS = harness.ROOT / "build" / "torch-cache" / "jobs"  # compiled ones are used again, graphs are not
SECONDS = 900  # of a busy machine; most take 10
LOGS = "graph_code,aot_joint_graph,aot_graphs,post_grad_graphs"


def launch(job, world, folder, **variables):
    """Runs a job in a folder; what its ranks say goes to log.txt there."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "WORLD_SIZE": str(world),
           "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(warm.free_port()), "TORCHINDUCTOR_CACHE_DIR": str(KERNELS),
           **variables}  # fmt: skip
    ranks, end = [], time.monotonic() + SECONDS
    try:
        for r in range(world):
            own = {**env, "RANK": str(r), "LOCAL_RANK": str(r)}
            ranks.append(warm.Process(WORKER, [job], own, cwd=folder, output=folder / "log.txt"))
        codes = [p.wait(max(0, end - time.monotonic())) for p in ranks]
    finally:
        for p in ranks:
            p.stop()
    if codes != [0] * world:
        raise AssertionError(f"ranks ended with {codes}\n{(folder / 'log.txt').read_text(errors='replace')[-3000:]}")


def contents(*paths):
    return json.loads(harness.tuck("show", "--json", *paths))


def graphs(rank):
    return [(g["role"], g["compile_id"]) for g in rank["graphs"]]


class Folders(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.addCleanup(self.temp.cleanup)
        self.folder = Path(self.temp.name)

    def traced(self, job, world=2):
        launch(job, world, self.folder, TORCH_TRACE=str(self.folder / "trace"))
        return contents(self.folder / "trace")

    def check_pairs(self, found, world, expected, saved):
        self.assertEqual([r["rank"] for r in found["ranks"]], list(range(world)))
        for rank in found["ranks"]:
            self.assertEqual(graphs(rank), expected)
            self.assertEqual([g["saved_values"] for g in rank["graphs"] if g["role"] == "backward"], saved)
            backward = [g for g in rank["graphs"] if g["role"] == "backward"]
            self.assertTrue(all(rank["graphs"][g["forward"]]["role"] == "forward" for g in backward))

    def test_trace(self):
        found = self.traced("sharded")
        self.check_pairs(found, 2, [("forward", "0/0"), ("backward", "0/0")], [5])
        self.assertEqual({g["title"] for r in found["ranks"] for g in r["graphs"]}, {"inductor_post_grad_graph"})
        with tarfile.open(self.folder / "t.tar.gz", "w:gz") as t:
            t.add(self.folder / "trace", "trace")
        packed = contents(self.folder / "t.tar.gz")
        self.assertEqual([graphs(r) for r in packed["ranks"]], [graphs(r) for r in found["ranks"]])
        both = json.loads(harness.tuck("simulate", "--json", "--rank", "1", self.folder / "trace"))
        each = json.loads(harness.tuck("simulate", "--json", "--each", "--rank", "1", self.folder / "trace"))
        self.assertAlmostEqual(both["step_ns"], sum(g["step_ns"] for g in each["graphs"]), places=3)

    def test_compiled_autograd(self):
        found = self.traced("ddp")
        first = graphs(found["ranks"][0])
        self.assertEqual(first[0], ("forward", "0/0_1"))
        self.assertRegex(first[1][1], r"!1/\d+/0")
        backward = found["ranks"][0]["graphs"][1]
        self.assertEqual((backward["forward"], backward["saved_values"], backward["collectives"]), (0, 7, 1))
        reasons = {p["reason"] for p in found["passed_over"]}
        self.assertTrue(any(r.startswith("compiled autograd runs it") for r in reasons), reasons)

    def test_graph_break(self):
        found = self.traced("break")
        ids = [("forward", "1/0"), ("forward", "1/1"), ("backward", "1/1"), ("backward", "1/0")]
        self.check_pairs(found, 2, ids, [1, 1])

    def test_recompile(self):
        self.check_pairs(self.traced("recompile"), 2, [("forward", "0/1"), ("backward", "0/1")], [5])

    def test_split(self):
        """Each part's backward gets what its own forward saved, the last part's first."""
        found = self.traced("split")
        parts = [g for g in found["ranks"][0]["graphs"] if g["role"] == "forward"]
        self.assertGreater(len(parts), 2)
        ids = [f"{p['compile_id'].split('.')[0]}.{k + 1}" for k, p in enumerate(parts)]
        expected = [("forward", i) for i in ids] + [("backward", i) for i in reversed(ids)]
        for rank in found["ranks"]:
            self.assertEqual(graphs(rank), expected)
            self.assertEqual({g["other_inputs"] for g in rank["graphs"] if g["role"] == "backward"}, {0})

    def test_several_backwards(self):
        ids = [(role, f"0/{k}") for k in range(2) for role in ("forward", "backward")]
        self.check_pairs(self.traced("twice"), 2, ids, [5, 7])

    def test_debug_folder(self):
        launch("sharded", 2, self.folder, TORCH_COMPILE_DEBUG="1")
        debug = self.folder / "torch_compile_debug"
        self.check_pairs(contents(debug), 2, [("forward", "0/0"), ("backward", "0/0")], [5])
        for log in debug.glob("tlparse/*"):  # as older versions, which write no structured log there
            log.unlink()
        found = contents(debug)
        self.check_pairs(found, 2, [("forward", "0"), ("backward", "0")], [5])
        self.assertEqual({g["title"] for r in found["ranks"] for g in r["graphs"]}, {"fx_graph_transformed"})

    def test_eight_ranks_in_one_log(self):
        launch("sharded", 8, self.folder, TORCH_LOGS=LOGS)
        log = self.folder / "log.txt"
        self.check_pairs(contents(self.folder), 8, [("forward", "0/0"), ("backward", "0/0")], [5])
        harness.tuck("simulate", log)


class Peak(unittest.TestCase):
    """As the memory estimator has it: of storages that the backward gets, returns, or keeps."""

    def check(self, layers, rows):
        with tempfile.TemporaryDirectory() as temp:
            trace, said = Path(temp) / "trace", Path(temp) / "peak.json"
            env = {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_TRACE": str(trace)}
            process = warm.Process(WORKER, ["fake", said, layers, rows], env, output=Path(temp) / "log.txt")
            try:
                self.assertEqual(process.wait(SECONDS), 0, (Path(temp) / "log.txt").read_text(errors="replace")[-3000:])
            finally:
                process.stop()
            own = contents(trace)["ranks"][0]["pytorch_peak_bytes"]
            self.assertEqual(own, json.loads(said.read_text()))

    def test_two_layers(self):
        self.check(2, 32)

    def test_five_layers_of_many_rows(self):
        self.check(5, 256)


if __name__ == "__main__":
    unittest.main()

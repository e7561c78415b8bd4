"""The texts of `tuck show --exec`, run on real ranks over gloo, give the stored outputs."""

import json
import tempfile
import unittest
from pathlib import Path

from harness import GRAPHS, one_test_each, some, tuck
from launch import run_jobs

SIDE_CARS = sorted((GRAPHS / "exec").glob("*.json"))
_outcomes = {}  # world size -> {graph: problems}


def job_of(path, folder):
    """What the ranks need to know about one graph. tuck prints the texts into the folder."""
    about = json.loads(path.read_text())
    world, name = about["world_size"], path.stem
    texts = []
    for rank in range(world):
        own = "" if about["same_text_on_all_ranks"] else f".rank{rank}"
        source = path.with_name(f"{name}{own}.txt")
        text = folder / f"{source.stem}.py"
        if not text.exists():
            text.write_text(tuck("show", "--exec", source))
        texts.append(text)
    return make_job(name, path, about, texts)


def make_job(graph, path, about, texts):
    """A job of exec_worker.py: one text per rank, the rest from the side-car."""
    return {
        "graph": graph,
        "texts": [str(text) for text in texts],
        "tensors": [str(path.with_name(t)) for t in about["tensors"]],
        "inputs_by_rank": about.get("inputs_by_rank") or [about["inputs"]] * about["world_size"],
        "outputs": about["outputs"],
        "groups_by_rank": about["groups_by_rank"],
    }


def outcomes(world):
    """Runs all graphs of a world size, once."""
    if world not in _outcomes:
        found, jobs = {}, []
        with tempfile.TemporaryDirectory(prefix="tuck-exec-") as folder:
            for path in SIDE_CARS:
                if json.loads(path.read_text())["world_size"] != world:
                    continue
                try:
                    jobs.append(job_of(path, Path(folder)))
                except Exception as error:
                    found[path.stem] = [str(error)]
            found.update(run_jobs(world, jobs))
        _outcomes[world] = found
    return _outcomes[world]


@one_test_each(SIDE_CARS)
class ExecRun(unittest.TestCase):
    def check(self, path):
        world = json.loads(path.read_text())["world_size"]
        problems = outcomes(world)[path.stem]
        self.assertEqual(problems, [], some(problems))

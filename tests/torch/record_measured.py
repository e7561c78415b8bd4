"""The table of recorded jobs in docs/accuracy.md: records them, and says how far the simulated steps are from the recorded ones.

    build/torch-venv/bin/python tests/torch/record_measured.py FOLDER 2 ddp:3 ddp:6 sharded:2 sharded:8
    build/torch-venv/bin/python tests/torch/record_measured.py FOLDER

The first one runs the jobs on two ranks and keeps what was recorded in FOLDER; nothing else should run meanwhile. The second one computes the table
of such a folder. --widths gives other layers, --rows another batch, --rounds more recordings. Jobs of DDP come before sharded ones.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import measured
import measured_worker


def arguments():
    said = argparse.ArgumentParser()
    said.add_argument("folder", type=Path)
    said.add_argument("world", type=int, nargs="?")
    said.add_argument("jobs", nargs="*")
    said.add_argument("--widths", type=lambda s: tuple(map(int, s.split(","))), default=measured_worker.WIDTHS)
    said.add_argument("--rows", type=int, default=measured_worker.ROWS)
    said.add_argument("--rounds", type=int, default=5)
    return said.parse_args()


def show(what, errors, more=""):
    print(f"{what:28} {statistics.median(errors):+6.1%}   {min(errors):+6.1%} ... {max(errors):+6.1%}{more}", flush=True)


def table(found, rounds):
    for job, graphs in found.items():
        errors = [measured.by_other_steps(graphs, t) for t in range(rounds)]
        away = statistics.median(measured.outside(graphs, t) for t in range(rounds))
        show(f"{job} by other steps", errors, f"   steps {measured.spread(graphs):.0%} apart, {away:.0%} of a step outside of its graphs")
    for other in found:
        for known in found:
            if other != known and other.split(":")[0] == known.split(":")[0]:
                show(f"{other} by {known}", [measured.by_another_job(found[other], found[known], t) for t in range(rounds)])


def main():
    said = arguments()
    about = said.folder / "about.json"
    if said.jobs:
        measured.record(said.folder, said.folder / "cache", said.world, said.jobs, said.widths, said.rows, said.rounds)
        about.write_text(json.dumps({"world": said.world, "jobs": said.jobs, "rounds": said.rounds}))
    kept = json.loads(about.read_text())
    table(measured.load(said.folder, kept["world"], kept["jobs"], kept["rounds"]), kept["rounds"])


if __name__ == "__main__":
    main()

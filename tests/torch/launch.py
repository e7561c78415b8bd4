"""Start a few worker processes, watch them, and never leave one behind.

The ranks of one launch run many graphs one after another, which saves starting torch for each. If a
rank fails or stops, the others are ended at once, the graph they were in is recorded as failed, and
a new launch takes up the rest.
"""

import json
import os
import signal
import tempfile
import time
from pathlib import Path

import warm

HERE = Path(__file__).resolve().parent
COLLECTIVE_SECONDS = 300  # no graph here needs one second; a busy machine may
LAUNCH_SECONDS = 1800
GRACE_SECONDS = 3  # for the other ranks, once one has failed
STOPPED = 3  # exit code of a rank whose reason is in its report
LAUNCHES = 6  # with faults in many graphs, the later ones count as not run


def run_jobs(world, jobs, worker="exec_worker.py", collective_seconds=COLLECTIVE_SECONDS):
    """{graph: list of problems}; an empty list is a success. A job holds "graph", its name, and
    whatever the worker needs."""
    left = list(jobs)
    outcome = {}
    for _ in range(LAUNCHES):
        if not left:
            break
        done, stopped_in = one_launch(world, left, worker, collective_seconds)
        outcome.update(done)
        if stopped_in is None:
            break
        outcome.update(stopped_in)
        left = [j for j in left if j["graph"] not in outcome]
    for job in jobs:
        outcome.setdefault(job["graph"], [f"not run: {LAUNCHES} launches failed before it"])
    return outcome


def one_launch(world, jobs, worker, collective_seconds):
    """{graph: problems} of finished graphs, and of the one it stopped in, or None."""
    with tempfile.TemporaryDirectory(prefix="tuck-torch-") as folder:
        folder = Path(folder)
        reports = [str(folder / f"report.{r}") for r in range(world)]
        plan = {
            "world": world,
            "jobs": jobs,
            "store": str(folder / "store"),
            "reports": reports,
            "seconds": LAUNCH_SECONDS,
            "collective_seconds": collective_seconds,
        }
        (folder / "plan").write_text(json.dumps(plan))
        ended = watch(world, folder, worker)
        lines = [read_report(path) for path in reports]
        said = {r: (folder / f"said.{r}").read_text(errors="replace")[-2000:] for r in range(world)}
    done = {}
    for job in jobs:
        each = [lines[r].get(job["graph"]) for r in range(world)]
        if any(e is None or e["stopped"] for e in each):
            problems = [f"rank {r}: {p}" for r, e in enumerate(each) if e for p in e["problems"]]
            for r, code in enumerate(ended):
                if code not in (0, STOPPED, -signal.SIGKILL):
                    problems.append(f"rank {r} ended with {code}: {said[r]}")
            return done, {job["graph"]: problems or [f"ranks ended with {ended}, no reason given"]}
        done[job["graph"]] = [f"rank {r}: {p}" for r, e in enumerate(each) for p in e["problems"]]
        if not all(e["tensors"] for e in each):
            done[job["graph"]].append("no tensor was compared")
    if any(ended):
        done[jobs[-1]["graph"]].append(f"ranks ended with {ended}: {said}")
    return done, None


def watch(world, folder, worker):
    """Runs the ranks until all have ended, one failed, or time is up; returns the exit codes."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "GLOO_SOCKET_IFNAME": "lo"}
    ranks = []
    try:
        for r in range(world):
            ranks.append(warm.Process(HERE / worker, [folder / "plan", r], env, output=folder / f"said.{r}"))
        deadline = time.monotonic() + LAUNCH_SECONDS + 10
        while time.monotonic() < deadline:
            codes = [p.poll() for p in ranks]
            if None not in codes:
                break
            if any(codes):  # the others may be about to write what they found in the graph before
                deadline = min(deadline, time.monotonic() + GRACE_SECONDS)
            time.sleep(0.05)
    finally:
        for p in ranks:
            p.stop()
    return [p.returncode for p in ranks]


def read_report(path):
    try:
        with open(path) as f:
            lines = f.read().splitlines()
    except FileNotFoundError:
        return {}
    found = {}
    for text in lines:
        try:
            line = json.loads(text)
        except ValueError:  # a rank was ended while it wrote
            continue
        found[line["graph"]] = line
    return found

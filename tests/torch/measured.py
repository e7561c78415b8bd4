"""Jobs recorded while they run, and what tuck makes of them: for test_measured.py and record_measured.py."""

import bisect
import json
import os
import re
import statistics
import subprocess
import sys

import harness
import measured_worker

SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "GLOO_SOCKET_IFNAME": "lo",
    "INDUCTOR_PROVENANCE": "1",
    "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "TORCHINDUCTOR_FX_GRAPH_CACHE": "0",  # graphs from a cache are not logged; both ranks share compiled kernels
    "TORCHINDUCTOR_AUTOGRAD_CACHE": "0",
    # Freed memory is kept, as the allocators do that PyTorch recommends: else a large tensor is thousands of new pages in every step.
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
}
CALL = re.compile(r"^\s+(?:\w+ = )?torch\.ops\._c10d_functional\.(?!wait_tensor)(\w+)\.default\(")


def record(folder, cache, world, jobs, widths=measured_worker.WIDTHS, rows=measured_worker.ROWS, rounds=measured_worker.ROUNDS):
    """Runs jobs in one launch. By job: its two graphs, forward and backward, as rank 0 compiled and ran them."""
    env = {"TORCHINDUCTOR_CACHE_DIR": str(cache), **os.environ, **SETTINGS, "TORCH_TRACE": str(folder / "trace")}
    (folder / "out").mkdir(parents=True)
    with open(folder / "log.txt", "wb") as log:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(world),
             str(harness.HERE / "measured_worker.py"), str(folder / "out"), *jobs,
             "--widths", ",".join(map(str, widths)), "--rows", str(rows), "--rounds", str(rounds)],
            cwd=folder, env=env, stdout=log, stderr=log, timeout=900,
        )  # fmt: skip
    if done.returncode:
        raise AssertionError((folder / "log.txt").read_text(errors="replace")[-3000:])
    for kind in {job.split(":")[0] for job in jobs}:
        of_kind = [job for job in jobs if job.split(":")[0] == kind]
        for turn in range(rounds):
            for r in range(world):
                whole = folder / "out" / f"{kind}.{turn}.rank{r}.json"
                split(whole, [folder / "out" / f"{job}.{turn}.rank{r}.json" for job in of_kind])
                whole.unlink()
    return load(folder, world, jobs, rounds)


def load(folder, world, jobs, rounds):
    """What record() made of a folder."""
    graphs, found = list(compiled(next((folder / "trace").glob("*rank_0_*")))), {}
    if len(graphs) != 2 * len(jobs):
        raise AssertionError(f"{len(graphs)} graphs for {len(jobs)} jobs")
    for k, job in enumerate(jobs):
        traces = [[folder / "out" / f"{job}.{turn}.rank{r}.json" for r in range(world)] for turn in range(rounds)]
        found[job] = [Graph(folder, f"{k}.{i}", world, traces, graphs[2 * k + i]) for i in range(2)]
    return found


def split(path, jobs):
    """A trace in which jobs take turns, step by step, as one trace for each. A job's steps are numbered one by one."""
    trace = json.loads(path.read_text())
    steps = sorted((e for e in trace["traceEvents"] if is_step(e)), key=lambda e: e["ts"])
    starts = [e["ts"] for e in steps]
    kept = [[] for _ in jobs]
    for e in trace["traceEvents"]:
        at = bisect.bisect_right(starts, e["ts"]) - 1 if e.get("ph") == "X" else -1
        if at >= 0 and within(e, steps[at]):
            kept[at % len(jobs)].append({**e, "name": f"ProfilerStep#{at // len(jobs) + 1}"} if is_step(e) else e)
    for to, found in zip(jobs, kept):
        to.write_text(json.dumps({**trace, "traceEvents": found}))


def is_step(e):
    return e.get("ph") == "X" and e["name"].startswith("ProfilerStep#")


def artifacts(path):
    """Names and texts of a structured log."""
    name, text = None, []
    for line in path.read_text().splitlines(keepends=True):
        if line.startswith("\t"):
            text.append(line[1:])
            continue
        if name:
            yield name, "".join(text)
        head = json.loads(line[line.index("{") :])
        name, text = head.get("artifact", {}).get("name") or next(iter(head)), []
    yield name, "".join(text)


def compiled(path):
    graph = None
    for name, text in artifacts(path):
        if name == "inductor_post_grad_graph":
            graph = {"graph": text}
        elif name == "inductor_output_code":
            graph["code"] = text
        elif name == "inductor_provenance_tracking_node_mappings":
            yield {**graph, "kernels": text}


class Graph:
    def __init__(self, folder, name, world, traces, texts):
        self.world, self.traces, self.code = world, traces, texts["code"]
        self.kernels = json.loads(texts["kernels"]).get("cppCodeToPost", {})
        self.text, self.mapping = folder / f"{name}.txt", folder / f"{name}.json"
        self.text.write_text(texts["graph"])
        self.mapping.write_text(texts["kernels"])
        sized = re.findall(r"^\s+(\w+): \"\w+\[(\d+)\].* = torch\.ops\._c10d_functional\.(?!wait_tensor)", texts["graph"], flags=re.M)
        self.results = {name: int(n) for name, n in sized}  # elements
        self.nodes = re.findall(r"^\s+(\w+): .* = torch\.ops\._c10d_functional\.(?!wait_tensor)", texts["graph"], flags=re.M)
        self.waits = dict(re.findall(r"^\s+(\w+): .* = torch\.ops\._c10d_functional\.wait_tensor\.default\((\w+)\)", texts["graph"], flags=re.M))

    def words(self, traces, mapping):
        words = [w for t in traces for w in ("--measured", t)]
        if mapping and self.kernels:  # torch 2.13 has none for the backward of AOTAutograd
            words += ["--provenance", self.mapping]
        if self.nodes:
            words += ["--group", f"0={self.world}"]
        return words

    def simulate(self, steps, turn, mapping=True):
        """tuck's answer, with times from one recording."""
        words = self.words(self.traces[turn], mapping)
        return json.loads(harness.tuck("simulate", "--json", self.text, *words, "--measured-steps", steps))

    def simulate_by(self, other, turn):
        """With times from another job, and what its kernels and transfers take from each other; in the order of the code, which only the own
        mapping has."""
        ordered = self.text.with_suffix(".ordered.txt")
        if not ordered.exists():
            harness.tuck("optimize", self.text, *self.words(self.traces[0], True), "--passes", "deduplicate_wait_tensors", "-o", ordered)
        return json.loads(harness.tuck("simulate", "--json", "--contention", ordered, *self.words(other.traces[turn], False)))

    def in_code_order(self):
        """Nodes of the collectives as Inductor's code calls them, by its own comments."""
        lines, order = self.code.splitlines(), []
        for i, line in enumerate(lines):
            if not CALL.match(line):
                continue
            handle = re.search(r"handles\] (\S+)", lines[i - 1]).group(1)
            source = re.search(r"Source Nodes: \[(.*?)\]", lines[i - 2]).group(1).split(", ")
            names = [self.waits.get(n, n) for n in self.kernels.get(handle, source)]  # some name the wait instead
            names = [n for n in names if n in self.nodes] or [self.by_size(line, order)]
            order.append(names[-1])
        return order

    def by_size(self, line, used):
        """Of a call whose comment names what buckets replaced: the first node of its size that no other call is."""
        moved = re.search(r"\((\d+), \), \(1, \), 0\)", line).group(1)
        return next(n for n in self.nodes if n not in used and self.results[n] * self.world == int(moved))


def events(path):
    return [e for e in json.loads(path.read_text())["traceEvents"] if e.get("ph") == "X"]


def end(e):
    return e["ts"] + e["dur"]


def within(e, outer):
    return outer["ts"] <= e["ts"] < end(outer)


def middle(items, key):
    items = sorted(items, key=key)
    drop = len(items) // 4
    return items[drop : len(items) - drop]


# ---- what tuck makes of them ----


def spread(graphs):
    """How far the steps of a job are apart: the middle half of them, the median of its recordings."""
    found = []
    for traces in graphs[0].traces:
        times = sorted(e["dur"] for e in events(traces[0]) if is_step(e))
        found.append((times[3 * len(times) // 4] - times[len(times) // 4]) / statistics.median(times))
    return statistics.median(found)


def outside(graphs, turn):
    """The share of a step that no graph has: Python, autograd, gradients that are put in their place. Barriers before it are no part of it."""
    found = events(graphs[0].traces[turn][0])
    inside = [e for e in found if e["name"].startswith("## Call CompiledFxGraph")]
    barriers = [e for e in found if e["name"] == "gloo:barrier"]
    shares = []
    for step in (e for e in found if is_step(e)):
        begin = max((end(e) for e in barriers if within(e, step)), default=step["ts"])
        shares.append(1 - sum(e["dur"] for e in inside if within(e, step)) / (end(step) - begin))
    return statistics.median(shares)


def by_other_steps(graphs, turn):
    """The error of the step. Each half of the steps by the costs of the other; on a busy machine they differ, but not in the sum."""
    said = [g.simulate(steps, turn)["measured_runs"]["step"] for g in graphs for steps in ("even", "odd")]
    return sum(x["simulated_ns"] for x in said) / sum(x["measured_ns"] for x in said) - 1


def by_another_job(graphs, known, turn):
    """The error of the step, by the costs of the same job with another size of buckets."""
    halves = [g.simulate(steps, turn)["measured_runs"]["step"]["measured_ns"] for g in graphs for steps in ("even", "odd")]
    return sum(g.simulate_by(k, turn)["step_ns"] for g, k in zip(graphs, known)) / (sum(halves) / 2) - 1

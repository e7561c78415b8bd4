"""Is the overlap real? A step on two ranks over MPI with a link of a given rate between them: as it
came, optimized, and by other passes, measured in turns and simulated with calibrated costs.

    python bench/overlap.py mlp|transformer [--rate 5gbit] [--rounds N] [--steps N] [--tuck PATH]

Needs root, for tests/comm/two_hosts.sh. Prints a table, and fails if
 - the optimized step is not faster than the step as it came,
 - it hides less than 80 % of what could be hidden (docs/running.md),
 - the simulated step, before or after, is more than 15 % off,
 - two schedules whose medians differ by more than 10 % are simulated in the other order.
"""

import argparse
import itertools
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LINK = HERE.parent / "tests/comm/two_hosts.sh"
# Compute takes longer than communication, of 34 and of 50 MB.
SIZES = {"mlp": ["--batch", 192], "transformer": ["--width", 512, "--batch", 2]}
CAME, BEST = "as it came", "optimized"
SCHEDULES = {
    CAME: None,
    BEST: [],
    "waits late": ["-p", "schedule_comm_wait"],
    "buckets of 8 MiB": ["-p", "bucket_all_reduce(cap_mb=8),raise_comms,sink_waits"],
    "buckets of 16 MiB": ["-p", "bucket_all_reduce(cap_mb=16),raise_comms,sink_waits"],
    "one bucket": ["-p", "bucket_all_reduce(cap_mb=2000)"],
}


def sh(*args):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(str(a) for a in args)}:\n{done.stdout}{done.stderr}")
    return done.stdout


def alone(text):
    """The collectives of a graph, in its order, with nothing between them."""
    kind = dict(re.findall(r'(\w+): ("[^"]*")', text))
    calls = re.findall(r"_c10d_functional\.(all_reduce\w*)\.default\(\[?([\w, ]*?)\]?, 'sum', '0'\)", text)
    call, inputs, lines, waits = "torch.ops._c10d_functional.", [], [], []
    for i, (op, names) in enumerate(calls):
        kinds = [kind[name] for name in names.split(", ")]
        mine = [f"x{i}_{k}" for k in range(len(kinds))]
        inputs += [f"{x}: {t}" for x, t in zip(mine, kinds)]
        if op == "all_reduce":
            lines.append(f"r{i}_0: {kinds[0]} = {call}all_reduce.default({mine[0]}, 'sum', '0')")
        else:
            lines.append(f"r{i} = {call}{op}.default([{', '.join(mine)}], 'sum', '0')")
            lines += [f"r{i}_{k}: {t} = r{i}[{k}]" for k, t in enumerate(kinds)]
        waits += [f"w{i}_{k}: {t} = {call}wait_tensor.default(r{i}_{k})" for k, t in enumerate(kinds)]
    body = lines + waits + [f"return ({', '.join(w.split(':')[0] for w in waits)},)"]
    return "\n".join(["class step(torch.nn.Module):", f"    def forward(self, {', '.join(inputs)}):",
                      *(f"        {line}" for line in body)]) + "\n"


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder = args, Path(folder)
        self.costs = self.folder / "here.json"
        self.graphs = {}

    def over_link(self, *command):
        return sh(LINK, self.args.rate, self.args.tuck, *command)

    def prepare(self):
        self.over_link("calibrate", "-o", self.costs)
        came = self.folder / "came.txt"
        came.write_text(sh(sys.executable, "-W", "ignore", HERE / "step.py", self.args.model,
                           *SIZES[self.args.model]))
        for i, (name, passes) in enumerate(SCHEDULES.items()):
            self.graphs[name] = came if passes is None else self.folder / f"{i}.txt"
            if passes is not None:
                sh(self.args.tuck, "optimize", came, "--group", "0=2", "--cluster", self.costs,
                   "--contention", *passes, "-o", self.graphs[name])
        self.graphs["alone"] = self.folder / "alone.txt"
        self.graphs["alone"].write_text(alone(self.graphs[BEST].read_text()))

    def run(self, graph):
        text = self.over_link("run", graph, "-n", 2, "--steps", self.args.steps, "--warmup", 1, "-j")
        return json.loads(text[text.index("{") :])

    def simulate(self, graph):
        text = sh(self.args.tuck, "simulate", graph, "--group", "0=2", "--cluster", self.costs,
                  "--contention", "-j")
        return json.loads(text)["step_ns"]

    def measure(self):
        """By graph: all steps, and what was exposed of the median one of each run."""
        times = {name: [] for name in self.graphs}
        exposed = {name: [] for name in self.graphs}
        compute = []
        for _ in range(self.args.rounds):
            for name, graph in self.graphs.items():
                found = self.run(graph)
                times[name] += found["steps_ns"]
                exposed[name].append(found["exposed_ns"])
                if name == CAME:
                    compute.append(found["compute_ns"])
        return times, exposed, statistics.median(compute)


def check(ok, text):
    print(f"{text}: {'ok' if ok else 'MISSED'}", flush=True)
    return ok


def report(model, times, exposed, compute, simulated):
    median = {name: statistics.median(t) for name, t in times.items()}
    print(f"{model}: ms a step        measured  simulated    error   exposed")
    for name, t in simulated.items():
        print(f"  {name:20} {median[name] / 1e6:9.2f}  {t / 1e6:9.2f}  "
              f"{100 * (t / median[name] - 1):6.1f} %  {statistics.median(exposed[name]) / 1e6:8.2f}")
    print(f"  communication alone  {median['alone'] / 1e6:9.2f}, compute {compute / 1e6:.2f}")
    hidden = 1 - statistics.median(exposed[BEST]) / min(median["alone"], compute)
    ok = check(median[BEST] < median[CAME],
               f"{model}: optimized {median[BEST] / median[CAME]:.2f} of the step as it came")
    ok &= check(hidden >= 0.8, f"{model}: {100 * hidden:.0f} % of what could be hidden is hidden")
    for name in (CAME, BEST):
        error = simulated[name] / median[name] - 1
        ok &= check(abs(error) <= 0.15, f"{model}: {name}, simulated {100 * error:+.1f} %")
    apart = [(a, b) for a, b in itertools.combinations(simulated, 2)
             if max(median[a], median[b]) > 1.1 * min(median[a], median[b])]
    wrong = [p for p in apart
             if (median[p[0]] < median[p[1]]) != (simulated[p[0]] < simulated[p[1]])]
    ok &= check(not wrong, f"{model}: {len(apart) - len(wrong)} of {len(apart)} pairs of schedules "
                f"that are apart are simulated in their order")
    return ok


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=("mlp", "transformer"))
    parser.add_argument("--rate", default="5gbit")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--tuck", default=str(HERE.parent / "build/release/tuck"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, folder)
        bench.prepare()
        found = bench.measure()
        simulated = {name: bench.simulate(bench.graphs[name]) for name in SCHEDULES}
    return 0 if report(args.model, *found, simulated) else 1


if __name__ == "__main__":
    sys.exit(main())

"""What passes make of a graph computes the same: run before and after on real ranks over gloo.

One launch a world size runs everything: the executable graphs of tests/graphs/exec and the small graphs
of cases/, each with small integers, for which results must be equal bit for bit, and with random floats,
for which they must be too unless the pass changes the order of sums.

A file of cases/ is a graph with a head:

    #: world 2 4                     sizes of the world; {W} in the text is that number, {8 * W} eight times
                                     it, and {R} the rank
    #: group 1 0,1 2,3               beside '0', which has all ranks: a group of these ranks on each of them
    #: without_storage p             an input that is given without storage
    #: exact PASSES                  a pipeline that must change the graph and no bit of any result
    #: near PASSES                   the same, but ranks are summed in another order: with floats and more
                                     than two ranks, equal up to rounding
    #: sums PASSES                   the same, but what was added after the sum over ranks is added before
"""

import json
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import harness
from fxload import KNOWN_GLOBALS, fix_class_name
from harness import GRAPHS, TUCK, one_test_each, some
from launch import run_jobs

CASES = sorted((Path(__file__).parent / "cases").glob("*.txt"))
SIDE_CARS = sorted((GRAPHS / "exec").glob("*.json"))
NEEDS = "".join(f"# needs: {name}\n" for name in KNOWN_GLOBALS)

# Without passes: the default, one that only orders, and one with room for DDP's fusions in coalesced calls.
OWN = {
    "tuck optimize": [],
    "tuck optimize --keep-order": ["--keep-order"],
    "tuck optimize --memory=1GB": ["--memory=1GB"],
    "tuck optimize --effort=0 --memory=1GB": ["--effort=0", "--memory=1GB"],
}

# Small integers in the graphs of tests/graphs/exec: (least, most, mixed, why), if not (-4, 4, False).
# Integers stay multiples of 1/8 through matmul, relu, sums and divisions by the number of ranks, so that
# in eight of the graphs that sum over ranks these sums are exact in every order, and the others
# only gather. "mixed": what goes into such a sum is something else by then, and is turned into small
# multiples of 1/8 on its way in, before and after the passes alike (pass_worker.Reductions).
INTEGERS = {
    "gpt2_ddp_bw": (-1, 1, True, "layer norm, gelu, softmax; products of larger ones overflow"),
    "llama_fsdp_bw": (-1, 1, True, "rms norm, silu, softmax; products of larger ones overflow"),
    "llama_hsdp_bw": (-1, 1, True, "rms norm, silu, softmax; products of larger ones overflow"),
    "llama_tp_sp_bw": (-4, 4, True, "rms norm, silu, softmax"),
    "llama_tp_sp_fw": (-4, 4, True, "rms norm, silu, softmax, between the sums"),
    "moe_routed_bw": (-4, 4, True, "softmax of the router, silu"),
    "moe_static_bw": (-4, 4, True, "softmax of the router, silu"),
    "resnet_ddp_bw": (-4, 4, True, "batch norm, log softmax"),
    "ring_attention_bw": (1, 2, True, "softmax; and it takes logarithms of an input"),
}

# For every graph of tests/graphs/exec: (pipeline, its effect on sums: see above)
PIPELINES = [
    ("deduplicate_wait_tensors", "exact"),
    ("dedup_fsdp_reduce_scatter", "sums"),
    ("fuse_ddp_communication", "near"),
    ("fuse_ddp_with_concat_op(bucket_size_mb=0.001)", "near"),
    ("fuse_ddp_with_coalesced_op,schedule_comm_wait", "near"),
    ("schedule_comm_wait", "exact"),
    ("bucket_all_gather", "exact"),
    ("bucket_all_gather(mode=custom_ops,cap_mb=0.001:0.002)", "exact"),
    ("bucket_all_gather(mode=custom_ops_multidtype)", "exact"),
    ("bucket_all_gather(mode=coalesced)", "exact"),
    ("bucket_fsdp_all_gather,bucket_fsdp_reduce_scatter", "exact"),
    ("bucket_reduce_scatter", "exact"),
    ("bucket_reduce_scatter(mode=custom_ops,cap_mb=0.002)", "exact"),
    ("bucket_reduce_scatter(mode=coalesced)", "exact"),
    ("bucket_all_reduce", "near"),
    ("bucket_all_reduce(mode=coalesced,cap_mb=0.001)", "near"),
    ("bucket_all_gather,bucket_reduce_scatter,bucket_all_reduce,schedule_comm_wait", "near"),
    ("pre_bucket_fsdp_collectives(cap_mb=0.004)", "exact"),
    ("raise_comms,sink_waits", "exact"),
    ("reorder_compute_for_overlap", "exact"),
    ("list_overlap", "exact"),
    ("list_overlap,improve_order", "exact"),
    ("pre_bucket_fsdp_collectives(cap_mb=0.004),list_overlap", "exact"),
    ("reorder_communication_preserving_peak_memory,sink_waits_iterative,simple_overlap", "exact"),
    ("tuck optimize", "sums"),
    ("tuck optimize --keep-order", "exact"),
    ("tuck optimize --memory=1GB", "sums"),
    ("tuck optimize --effort=0 --memory=1GB", "sums"),
]
ITEMS = [(path, world) for path in CASES for world in (2, 4)]
ITEMS += [(path, json.loads(path.read_text())["world_size"]) for path in SIDE_CARS]
_outcomes, _changed = {}, set()  # pipelines that changed something, whatever the graph


def head(text):
    """{word: the rest of each line of the head that begins with it}"""
    found = {}
    for line in re.findall(r"^#: (.*)$", text, flags=re.M):
        word, rest = line.split(" ", 1)
        found.setdefault(word, []).append(rest)
    return found


def optimize(source, passes, rank, groups, after):
    """Runs the passes; False if they changed nothing."""
    said = [f"--group={n}={','.join(map(str, g['ranks']))}" for n, g in groups.items()]
    annotations = " ".join(re.findall(r'"([^"\n]*)"', source.read_text()))
    said += [f"--assume={s}=8" for s in sorted(set(re.findall(r"\bs\d+\b", annotations)))]
    said += OWN.get(passes, ["-p", passes])
    done = subprocess.run(
        [TUCK, "optimize", source, "-o", after, "--json", f"--rank={rank}", *said],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=harness.SECONDS,
    )
    if done.returncode:
        raise AssertionError(f"{passes} on {source}: {done.stderr.decode(errors='replace')}")
    after.write_text(NEEDS + fix_class_name(after.read_text()))
    return any(p["changed"] for p in json.loads(done.stdout)["passes"])


def afters(name, sources, pipelines, groups_by_rank, folder):
    """The texts after each pipeline that changes something, and the problems of those that fail."""
    found, problems = [], []
    for k, (passes, kind) in enumerate(pipelines):
        texts = [folder / f"{name}.{k}.rank{r}.py" for r in range(len(sources))]
        changed = []
        try:
            for r, (source, groups, text) in enumerate(zip(sources, groups_by_rank, texts)):
                changed.append(optimize(source, passes, r, groups, text))
                if not changed[0]:
                    break  # all ranks decide alike
        except AssertionError as error:
            problems.append(str(error))
            continue
        if not all(changed) and changed[0]:
            problems.append(f"{passes}: not all ranks decide alike: {changed}")
        elif changed[0]:
            _changed.add(passes)
            found.append({"passes": passes, "kind": kind, "texts": [str(t) for t in texts]})
    return found, problems


def exec_job(path, folder):
    about = json.loads(path.read_text())
    sources, texts = [], []
    for rank in range(about["world_size"]):
        own = "" if about["same_text_on_all_ranks"] else f".rank{rank}"
        sources.append(path.with_name(f"{path.stem}{own}.txt"))
        texts.append(folder / f"{path.stem}.{rank}.py")
        texts[-1].write_text(NEEDS + fix_class_name(sources[-1].read_text()))
    found, problems = afters(path.stem, sources, PIPELINES, about["groups_by_rank"], folder)
    least, most, mix, _ = INTEGERS.get(path.stem, (-4, 4, False, None))
    job = {
        "graph": path.stem,
        "texts": [str(t) for t in texts],
        "after": found,
        "tensors": [str(path.with_name(t)) for t in about["tensors"]],
        "inputs_by_rank": about.get("inputs_by_rank") or [about["inputs"]] * about["world_size"],
        "groups_by_rank": about["groups_by_rank"],
        "least": least,
        "most": most,
        "mix": mix,
    }
    return job, problems


def groups_of(words, world):
    """The groups of each rank, by name."""
    every = [{"0": {"ranks": list(range(world))}} for _ in range(world)]
    for line in words.get("group", []):
        name, *sets = line.split()
        for ranks in ([int(r) for r in s.split(",")] for s in sets):
            for r in ranks:
                if r < world:
                    every[r][name] = {"ranks": ranks}
    return every


def case_job(path, world, folder):
    text = path.read_text()
    words = head(text)
    if str(world) not in words["world"][0].split():
        return None, []
    body = re.sub(r"^#:.*\n", "", text, flags=re.M)
    sources = [folder / f"{path.stem}.{r}.txt" for r in range(world)]
    befores = [folder / f"{path.stem}.{r}.py" for r in range(world)]
    for r in range(world):
        own = re.sub(r"\{([^{}]*)\}", lambda m: str(eval(m[1], {"W": world, "R": r})), body)
        sources[r].write_text(own)
        befores[r].write_text(NEEDS + own)
    groups = groups_of(words, world)
    pipelines = [(p, kind) for kind in ("exact", "near", "sums") for p in words.get(kind, [])]
    found, problems = afters(path.stem, sources, pipelines, groups, folder)
    missed = {p for p, _ in pipelines} - {a["passes"] for a in found}
    if not problems:
        problems = [f"{p} changes nothing" for p in missed]
    job = {
        "graph": path.stem,
        "texts": [str(b) for b in befores],
        "after": found,
        "groups_by_rank": groups,
        "without_storage": " ".join(words.get("without_storage", [])).split(),
        "least": -4,
        "most": 4,
        "mix": False,
    }
    return job, problems


def outcomes(world):
    """Everything for one world size, in one launch."""
    if world in _outcomes:
        return _outcomes[world]
    found, jobs = {}, []
    with tempfile.TemporaryDirectory(prefix="tuck-values-") as folder:
        for path, size in ITEMS:
            if size != world:
                continue
            make = exec_job if path.suffix == ".json" else case_job
            args = (path, Path(folder)) if make is exec_job else (path, world, Path(folder))
            job, problems = make(*args)
            found[path.stem] = problems
            if job is not None and job["after"]:
                jobs.append(job)
        for name, problems in run_jobs(world, jobs, worker="pass_worker.py").items():
            found[name] = found[name] + problems
    _outcomes[world] = found
    return found


@one_test_each(ITEMS, name=lambda item: f"test_{item[0].stem}_on_{item[1]}")
class PassValues(unittest.TestCase):
    def check(self, item):
        path, world = item
        problems = outcomes(world)[path.stem]
        self.assertEqual(problems, [], some(problems))

    def test_zz_every_pipeline_changed_something(self):
        for world in (2, 4):
            outcomes(world)
        idle = [passes for passes, _ in PIPELINES if passes not in _changed]
        self.assertEqual(idle, [])

"""One rank of a launch: runs executable texts over gloo and compares what they return.

    exec_worker.py PLAN RANK

PLAN is a JSON file that launch.py writes. For each graph one line of JSON goes to the rank's
report, at once, so that whoever reads it knows how far the rank got. A graph whose run raises ends
this process, because other ranks may already be waiting in a collective; a wrong value does not.
"""

import datetime
import faulthandler
import functools
import json
import os
import sys
import traceback

import warm

warm.end_with_parent()  # however that ends; before torch is imported, which may take seconds

import torch
import torch.distributed as dist
from safetensors.torch import load_file

import fxload
from harness import needs
from launch import STOPPED

torch_groups = torch._C._distributed_c10d


class Mesh:
    """Represents an input that the graph only passes on."""


def main(plan_path, rank, run_job):
    """run_job(job, rank, groups, line) runs one job and puts what it finds into the line."""
    with open(plan_path) as f:
        plan = json.load(f)
    faulthandler.dump_traceback_later(plan["seconds"], exit=True)
    torch.set_num_threads(1)
    limit = datetime.timedelta(seconds=plan["collective_seconds"])
    world = plan["world"]
    store = dist.FileStore(plan["store"], world)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world, timeout=limit)
    groups = make_groups(plan, world, limit)
    with open(plan["reports"][rank], "w") as report:
        for job in plan["jobs"]:
            line = {"graph": job["graph"], "problems": [], "tensors": 0, "stopped": False}
            try:
                run_job(job, rank, groups, line)
            except Exception as error:
                line["problems"].append(reason(error, job["texts"][rank]))
                line["stopped"] = True
            report.write(json.dumps(line) + "\n")
            report.flush()
            if line["stopped"]:
                return STOPPED
    meet(store, rank, world)
    return 0


def meet(store, rank, world):
    """No rank exits, closing its connections, while another still needs them."""
    store.set(f"finished.{rank}", "")
    store.wait([f"finished.{r}" for r in range(world)])


def leave(code):
    """End at once. Torn down in the usual order, gloo's threads now and then abort a process whose
    work is done ("terminate called without an active exception"), which says nothing of a graph."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def reason(error, text):
    """An exception in one line, with the statement of the graph that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [f for f in frames if f.filename == text]
    where = inside[-1] if inside else frames[-1]
    message = " ".join(str(error).split())[:600]
    place = f"{where.filename}:{where.lineno}: {str(where.line)[:160]}"
    return f"{place}: {type(error).__name__}: {message}"


def make_groups(plan, world, limit):
    """A process group for each set of ranks that some graph names. torch's own names for them are
    removed: a graph must find exactly the groups its side-car lists."""
    every = [g for job in plan["jobs"] for groups in job["groups_by_rank"] for g in groups.values()]
    made = {tuple(range(world)): dist.group.WORLD}
    for ranks in sorted({tuple(group["ranks"]) for group in every} - made.keys()):
        made[ranks] = dist.new_group(list(ranks), timeout=limit)
    for group in made.values():
        if group is not dist.GroupMember.NON_GROUP_MEMBER:
            torch_groups._unregister_process_group(group.group_name)
    return made


def run(job, rank, groups, line):
    with open(job["texts"][rank]) as f:
        text = f.read()
    tensors = load_file(job["tensors"][rank])
    given = make_inputs(job, rank, text, tensors)
    module = make_module(text, job["texts"][rank], tensors)
    copies = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in given.items()}
    results = run_with_groups(module, given, job["groups_by_rank"][rank], groups)
    check_results(job, rank, results, given, tensors, line)
    check_inputs(given, copies, tensors, line)


def run_with_groups(module, given, named, groups):
    """What the graph returns, while its groups have the names that it uses."""
    for name, group in named.items():
        torch_groups._register_process_group(name, groups[tuple(group["ranks"])])
    try:
        with torch.no_grad():
            return module.forward(*given.values())
    finally:
        for name in named:
            torch_groups._unregister_process_group(name)


def make_inputs(job, rank, text, tensors):
    """Inputs in the order of the signature, with the strides of the text's annotations."""
    inputs = {}
    described = {i["name"]: i for i in job["inputs_by_rank"][rank]}
    nodes = parameters(text)
    if [n.name for n in nodes] != list(described):
        names = [n.name for n in nodes]
        raise AssertionError(f"parameters {names}, described are {list(described)}")
    for node in nodes:
        what = described[node.name]
        if "value" in what:
            inputs[node.name] = what["value"]
        elif "opaque" in what:
            inputs[node.name] = Mesh()
        else:
            stride = annotated_stride(node.meta["annotation"]) or what["stride"]
            stored = tensors[f"input.{node.name}"]
            empty = torch.empty_strided(stored.shape, stride, dtype=stored.dtype)
            inputs[node.name] = empty.copy_(stored)
    return inputs


@functools.lru_cache(maxsize=4)
def parameters(text):
    return fxload.load(text).graph.find_nodes(op="placeholder")


def annotated_stride(annotation):
    """[16, 1] of "f32[4, 16][16, 1]cpu"; None where it is symbolic or absent."""
    parts = annotation.split("[")
    numbers = [n.strip() for n in parts[2].split("]")[0].split(",")] if len(parts) == 3 else [""]
    return [int(n) for n in numbers] if all(n.isdigit() for n in numbers) else None


def make_module(text, path, tensors):
    space = {"__name__": "graph", **{name: fxload.global_value(name) for name in needs(text)}}
    before = set(space)
    exec(compile(text, path, "exec"), space)
    (name,) = set(space) - before - {"__builtins__"}
    module = with_nested(space[name])
    for key, value in tensors.items():
        if key.startswith("constant."):
            setattr(module, key.removeprefix("constant."), value)
    return module


def with_nested(cls):
    """An instance whose nested classes are instances too, as modules are."""
    module = cls()
    for name, value in vars(cls).items():
        if isinstance(value, type) and issubclass(value, torch.nn.Module):
            setattr(module, name, with_nested(value))
    return module


def check_results(job, rank, results, given, tensors, line):
    described = job["outputs"]
    if type(results) is not tuple or len(results) != len(described):
        raise AssertionError(f"returned {results!r:.200}, expected a tuple of {len(described)}")
    for i, (result, what) in enumerate(zip(results, described)):
        stored = tensors.get(f"output.{i}")
        if stored is not None:
            check_close(f"output {i}", result, stored, line)
        elif "opaque" in what:
            if not any(result is value for value in given.values()):
                line["problems"].append(f"output {i} is not an input")
        elif rank == 0 or what["value"] is None:
            if type(result) is not type(what["value"]) or result != what["value"]:
                line["problems"].append(f"output {i} is {result!r}, expected {what['value']!r}")
        elif not isinstance(result, (int, float)):  # the side-car holds the numbers of rank 0
            line["problems"].append(f"output {i} is {result!r:.200}, expected a number")


def check_inputs(given, copies, tensors, line):
    """Inputs that the graph writes have the new value, all others the old one."""
    for name, before in copies.items():
        if not isinstance(before, torch.Tensor):
            continue
        changed = tensors.get(f"changed.{name}")
        if changed is not None:
            check_close(f"input {name}, written in place,", given[name], changed, line)
        elif not torch.equal(given[name], before):
            line["problems"].append(f"input {name} was changed")


def check_close(what, result, stored, line):
    line["tensors"] += 1
    rtol, atol = (1e-4, 1e-5) if stored.is_floating_point() else (0, 0)
    try:
        torch.testing.assert_close(result, stored, rtol=rtol, atol=atol)
    except AssertionError as error:
        line["problems"].append(f"{what}: {' '.join(str(error).split())}")


if __name__ == "__main__":
    leave(main(sys.argv[1], int(sys.argv[2]), run))

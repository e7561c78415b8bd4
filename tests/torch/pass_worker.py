"""One rank of a launch: runs graphs before and after passes, on the same inputs, and compares.

    pass_worker.py PLAN RANK

A job has the text before, the texts after one pipeline each, and says how inputs are made: stored
ones, or small integers (sums of them are exact in every order, so results must be equal bit for bit)
and random floats.
"""

import importlib
import sys
import zlib

import exec_worker
import torch
from safetensors.torch import load_file

import fxload

ROUNDING = {torch.float32: (1e-5, 1e-5), torch.bfloat16: (2e-2, 2e-2), torch.float64: (1e-10, 1e-10)}
SHORT = {
    "f32": torch.float32,
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "f64": torch.float64,
    "i64": torch.int64,
    "i32": torch.int32,
}


def run(job, rank, groups, line):
    fills = ["stored"] if "tensors" in job else ["integers", "floats"]
    named, before = job["groups_by_rank"][rank], job["texts"][rank]
    for fill in fills:
        expected = one_run(job, rank, before, before, fill, named, groups)
        for after in job["after"]:
            job["texts"][rank] = after["texts"][rank]  # the place to be named if it raises
            found = one_run(job, rank, before, after["texts"][rank], fill, named, groups)
            near = after["near"] and fill != "integers"
            compare(f"{after['passes']}, {fill}", expected, found, near, line)


def one_run(job, rank, before, path, fill, named, groups):
    """(what is returned, what the inputs are afterwards); the text before says what inputs there are"""
    with open(before) as f:
        signature = f.read()
    with open(path) as f:
        text = f.read()
    for name, home in fxload.REGISTERED_BY.items():
        if f"torch.ops.{name}." in text:
            importlib.import_module(home)
    stored = load_file(job["tensors"][rank]) if fill == "stored" else {}
    if fill == "stored":
        given = exec_worker.make_inputs(job, rank, signature, stored)
    else:
        given = make_inputs(job, rank, signature, fill)
    module = exec_worker.make_module(text, path, stored)
    results = exec_worker.run_with_groups(module, given, named, groups)
    return list(results), list(given.values())


def make_inputs(job, rank, text, fill):
    """By the annotations of the parameters; the same for every text of a job."""
    made = {}
    for node in exec_worker.parameters(text):
        dtype, sizes, strides = annotated(node.meta["annotation"].strip("\"'"))
        seed = zlib.crc32(f"{job['graph']} {rank} {node.name} {fill}".encode())
        random = torch.Generator().manual_seed(seed)
        if fill == "integers" or not dtype.is_floating_point:
            value = torch.randint(-4, 5, sizes, generator=random).to(dtype)
        else:
            value = torch.randn(sizes, generator=random).to(dtype)
        made[node.name] = torch.empty_strided(sizes, strides, dtype=dtype).copy_(value)
        if node.name in job["without_storage"]:
            made[node.name].untyped_storage().resize_(0)
    return made


def annotated(text):
    """dtype, sizes and strides of "f32[4, 16][16, 1]cpu"."""
    dtype, sizes, strides = text.split("[")
    numbers = [
        [int(n) for n in part.split("]")[0].split(",") if n.strip()] for part in (sizes, strides)
    ]
    return SHORT[dtype], *numbers


def compare(what, expected, found, near, line):
    for kind, a, b in zip(("output", "input"), expected, found):
        if len(a) != len(b):
            line["problems"].append(f"{what}: {len(b)} {kind}s, expected {len(a)}")
        for i, (x, y) in enumerate(zip(a, b)):
            problem = difference(x, y, near)
            line["tensors"] += isinstance(x, torch.Tensor)
            if problem:
                line["problems"].append(f"{what}: {kind} {i}: {problem}")


def difference(x, y, near):
    if not isinstance(x, torch.Tensor):
        same = type(x) is type(y) and (x == y or isinstance(x, exec_worker.Mesh))
        return "" if same else f"{y!r:.100}, expected {x!r:.100}"
    if x.dtype != y.dtype or x.shape != y.shape or x.stride() != y.stride():
        return f"{y.dtype} {list(y.shape)} {y.stride()}, expected {x.dtype} {list(x.shape)} {x.stride()}"
    if x.untyped_storage().size() == 0 or y.untyped_storage().size() == 0:
        same = x.untyped_storage().size() == y.untyped_storage().size()
        return "" if same else "only one of the two has a storage"
    if torch.equal(x, y) or (x.isnan() & y.isnan() | (x == y)).all():
        return ""
    if near and x.dtype in ROUNDING:
        rtol, atol = ROUNDING[x.dtype]
        if torch.allclose(x, y, rtol=rtol, atol=atol, equal_nan=True):
            return ""
    worst = (x.double() - y.double()).abs().max().item()
    return f"{(x != y).sum().item()} of {x.numel()} elements differ, by up to {worst}"


if __name__ == "__main__":
    sys.exit(exec_worker.main(sys.argv[1], int(sys.argv[2]), run))

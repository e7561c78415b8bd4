"""One rank of a launch: runs graphs before and after passes, on the same inputs, and compares.

    pass_worker.py PLAN RANK

A job has the text before, the texts after one pipeline each, and says how inputs are made. Each graph
runs twice. With small integers the sums of its collectives are exact in every order, so results must
be equal bit for bit; test_pass_values.py says what that takes where integers do not stay integers on
their way to a collective. With random floats they must be equal too, unless the pass changes the order
in which ranks are summed and there are more than two of them, or it adds before it sums over ranks.
"""

import importlib
import sys
import zlib

import exec_worker
import torch
from safetensors.torch import load_file
from torch.utils._python_dispatch import TorchDispatchMode

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


GRID = 1 / 8  # integers that are divided by 2, 4 or 8 are multiples of it
GOLDEN = -7046029254386353131  # 2^64 over the golden ratio, as a signed number


class Reductions(TorchDispatchMode):
    """Checks what is summed over ranks, and mixes it if requested: each element becomes a multiple
    of 1/8 between -4 and 4 that depends on every bit of it. Sums of those are exact, and because
    it is done element by element it does not matter how tensors were cut or joined before."""

    def __init__(self, world, mix):
        super().__init__()
        self.world, self.mix, self.inexact, self.zeros = world, mix, 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "_c10d_functional" and "reduce" in func.__name__:
            many = isinstance(args[0], (list, tuple))
            operands = [self.looked_at(t) for t in (args[0] if many else args[:1])]
            if func.__name__.startswith(("all_reduce_.", "all_reduce_coalesced_.")):
                for t, mixed in zip(args[0] if many else args[:1], operands):
                    t.copy_(mixed)
            else:
                args = (operands if many else operands[0], *args[1:])
        return func(*args, **(kwargs or {}))

    def looked_at(self, t):
        if not t.is_floating_point():
            return t
        limit = 1 / torch.finfo(t.dtype).eps * GRID / self.world
        exact = (t / GRID == (t / GRID).round()).all() and (t.abs() <= limit).all()
        self.inexact += not exact
        self.zeros += not t.any()
        if not self.mix:
            return t
        bits = (t.double() + 0.0).view(torch.int64) * GOLDEN
        return ((bits >> 58).double() * GRID).to(t.dtype)


def run(job, rank, groups, line):
    named, before = job["groups_by_rank"][rank], job["texts"][rank]
    world = len(job["texts"])
    for fill in ["integers", "floats"]:
        watch = Reductions(world, job["mix"] and fill == "integers")
        expected = one_run(job, rank, before, before, fill, named, groups, watch)
        if fill == "integers":
            look_at_integers(job, expected, watch, line)
        for after in job["after"]:
            if fill == "integers" and job["mix"] and after["kind"] == "sums":
                continue  # what is added before the sum over ranks is not what was mixed
            job["texts"][rank] = after["texts"][rank]  # the place to be named if it raises
            watch = Reductions(world, watch.mix)
            found = one_run(job, rank, before, after["texts"][rank], fill, named, groups, watch)
            near = {"exact": False, "near": world > 2, "sums": True}[after["kind"]]
            what = f"{after['passes']}, {fill}"
            compare(what, expected, found, near and fill != "integers", line)


def look_at_integers(job, expected, watch, line):
    """Small integers must be useful: nothing overflows, and sums are as exact as claimed."""
    tensors = [t for part in expected for t in part if isinstance(t, torch.Tensor)]
    for t in tensors:
        if t.untyped_storage().size() > 0 and not t.isfinite().all():
            line["problems"].append(f"integers: a result of {list(t.shape)} is not finite")
    if watch.zeros:
        line["problems"].append(f"integers: {watch.zeros} sums over ranks of nothing but zeros")
    if watch.inexact and not job["mix"]:
        line["problems"].append(f"integers: {watch.inexact} sums over ranks are not exact")
    if not watch.inexact and job["mix"]:
        line["problems"].append("integers: sums over ranks are exact without mixing")


def one_run(job, rank, before, path, fill, named, groups, watch):
    """(what is returned, what the inputs are afterwards); the text before says what inputs there are"""
    with open(before) as f:
        signature = f.read()
    with open(path) as f:
        text = f.read()
    for name, home in fxload.REGISTERED_BY.items():
        if f"torch.ops.{name}." in text:
            importlib.import_module(home)
    stored = load_file(job["tensors"][rank]) if "tensors" in job else {}
    if stored:
        given = exec_worker.make_inputs(job, rank, signature, stored)
        for name, value in given.items():
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                value.copy_(like_stored(job, rank, name, value, fill))
    else:
        given = make_inputs(job, rank, signature, fill)
    module = exec_worker.make_module(text, path, stored)
    with watch:
        results = exec_worker.run_with_groups(module, given, named, groups)
    return list(results), list(given.values())


def generator(job, rank, name, fill):
    """The same for every text of a job."""
    return torch.Generator().manual_seed(zlib.crc32(f"{job['graph']} {rank} {name} {fill}".encode()))


def like_stored(job, rank, name, stored, fill):
    """Indices keep their values, so only floats come here; random ones keep about the same sign and
    size, because some are variances, sums of exponentials and so on."""
    random = generator(job, rank, name, fill)
    if fill == "integers" and stored.numel() == 1:
        return torch.full(stored.shape, job["most"])  # such as what all gradients are multiplied by
    if fill == "integers":
        return torch.randint(job["least"], job["most"] + 1, stored.shape, generator=random)
    return stored * (0.75 + 0.5 * torch.rand(stored.shape, generator=random))


def make_inputs(job, rank, text, fill):
    """By the annotations of the parameters."""
    made = {}
    for node in exec_worker.parameters(text):
        dtype, sizes, strides = annotated(node.meta["annotation"].strip("\"'"))
        random = generator(job, rank, node.name, fill)
        if fill == "integers" or not dtype.is_floating_point:
            value = torch.randint(job["least"], job["most"] + 1, sizes, generator=random).to(dtype)
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
    exec_worker.leave(exec_worker.main(sys.argv[1], int(sys.argv[2]), run))

"""Collectives, operators fused with them and flat buffers: random calls on a simulated group of
four."""

import importlib
import math

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

import shapes
from shapes import FLOATS, ShapeTest

RANKS = 4
GROUP = "0"


def setUpModule():
    for name in """torch.distributed._functional_collectives torch.distributed._symmetric_memory
        torch.distributed.tensor torch.distributed.fsdp._fully_shard._fsdp_collectives
        torch._inductor.fx_passes.bucketing torch._inductor.inductor_prims""".split():
        importlib.import_module(name)
    if not dist.is_initialized():
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=RANKS)
    assert dist.group.WORLD.group_name == GROUP


def tearDownModule():
    dist.destroy_process_group()


def multiple(r, size, dim=0):
    """Sizes with one that the number of ranks divides."""
    size = list(size)
    size[dim] *= RANKS
    return size


def old(row):
    return row["name"].startswith("c10d_functional")


def group(row):
    return ["", list(range(RANKS)), RANKS] if old(row) else [RANKS, GROUP]


def all_gather(r, row):
    return [r.tensor(), *group(row)], {}


def all_gather_list(r, row):
    return [[r.tensor(min_dim=1) for _ in range(r.randrange(1, 4))], *group(row)], {}


def all_gather_low(r, row):
    return [r.tensor(min_dim=1), GROUP], {}


def reduce_scatter(r, row):
    return [r.tensor(multiple(r, r.size(min_dim=1))), "sum", *group(row)], {}


def reduce_scatter_list(r, row):
    made = [r.tensor(multiple(r, r.size(min_dim=1))) for _ in range(r.randrange(1, 4))]
    return [made, "sum", *group(row)], {}


def reduce_scatter_low(r, row):
    return [r.tensor(multiple(r, r.size(min_dim=1)), FLOATS), "sum", GROUP], {}


def all_to_all(r, row):
    x = r.tensor(multiple(r, r.size(min_dim=1)))
    out = [r.randrange(4) for _ in range(RANKS)]
    given = [x.size[0] // RANKS] * RANKS
    if old(row):
        if r.random() < 0.3:
            out = given = None
        return [x, out, given, "", list(range(RANKS)), RANKS], {}
    return [x, out, given, GROUP], {}


def shard_dim_alltoall(r, row):
    size = r.size(min_dim=2)
    a, b = r.sample(range(len(size)), 2)
    return [r.tensor(multiple(r, size, b)), a, b, GROUP], {}


def plain(r, size, dtype):
    return r.tensor(size, dtype, stride=shapes.dense(size))


def gathered_out(r, row):
    x = r.tensor(min_dim=1)
    return [x, RANKS, GROUP], {"out": plain(r, multiple(r, x.size), x.dtype)}


def scattered_out(r, row):
    x = r.tensor(multiple(r, r.size(min_dim=1)))
    part = [x.size[0] // RANKS, *x.size[1:]]
    return [x, "sum", RANKS, GROUP], {"out": plain(r, part, x.dtype)}


def whole(r, row):
    """Reduced or sent as it is; in place, it has no gaps."""
    name = row["name"].split(".")[1]
    x = r.tensor()
    if name.endswith("_") or name in ("irecv", "wait_tensor"):
        x.stride = shapes.dense(x.size)
    if "coalesced" in name:
        x = [r.tensor(x.size, x.dtype, stride=x.stride)] + [
            plain(r, r.size(), r.dtype()) if name.endswith("_") else r.tensor() for _ in range(r.randrange(3))
        ]
    if name in ("wait_tensor", "_wrap_tensor_autograd"):
        return [x], {}
    if name == "irecv":
        return [x, 1, 0, GROUP], {}
    first = ["sum"] if "reduce" in name else [0]
    return [x, *first, *(["", list(range(RANKS)), RANKS] if old(row) else [GROUP])], {}


def symmetric(r, row):
    """A buffer in symmetric memory, and what is reduced."""
    x = r.tensor(dtype=FLOATS)
    local = [r.tensor(x.size, x.dtype)] if "copy" in row["name"] else []
    return [x, *local, "sum", GROUP], {}


def isend(r, row):
    return [r.tensor(), 1, 0, GROUP], {}


def batch_p2p(r, row):
    n = r.randrange(1, 4)
    kinds = [r.choice(["isend", "irecv"]) for _ in range(n)]
    return [kinds, [1] * n, [0] * n, [r.tensor() for _ in range(n)], GROUP], {}


def operands(r, gather):
    """[..., k] and several [k, n] of one dtype."""
    size, k = [r.randrange(1, 5) for _ in range(r.randrange(1, 4))], r.randrange(1, 5)
    dim = r.randrange(len(size))
    if not gather:
        size[dim] *= RANKS
    dtype = r.dtype(FLOATS)
    return r.tensor(size + [k], dtype), k, dim, dtype


def fused_ag_mm(r, row):
    a, k, dim, dtype = operands(r, True)
    bs = [r.tensor([k, r.randrange(1, 5)], dtype) for _ in range(r.randrange(1, 3))]
    return [a, bs, dim, GROUP], r.choice([{}, {"return_A": r.random() < 0.5}])


def fused_mm_rs(r, row):
    a, k, dim, dtype = operands(r, False)
    return [a, r.tensor([k, r.randrange(1, 5)], dtype), "sum", dim, GROUP], {}


def scaled(r, dims):
    k, n = 16 * r.randrange(1, 3), 16 * r.randrange(1, 3)
    a = r.tensor([16 * r.randrange(1, 3) for _ in range(dims - 1)] + [k], torch.float8_e4m3fn)
    a.stride = shapes.dense(a.size)
    b = r.tensor([k, n], torch.float8_e4m3fn, stride=[1, k])
    return a, b, n, r.tensor([], "float32"), r.tensor([], "float32")


def fused_ag_scaled_mm(r, row):
    a, b, n, scale_a, scale_b = scaled(r, r.choice([2, 3]))
    dim = r.randrange(len(a.size) - 1)
    dtype = r.choice([torch.bfloat16, torch.float32, torch.float16])
    return [a, [b], scale_a, [scale_b], dim, GROUP, [None], [None], [dtype], [False]], {}


def fused_scaled_mm_rs(r, row):
    a, b, n, scale_a, scale_b = scaled(r, 2)
    dtype = r.choice([torch.bfloat16, torch.float32])
    if r.random() < 0.5:
        return [a, b, scale_a, scale_b, "sum", 0, 0, GROUP, [*a.size[:-1], n], None, None, dtype, False], {}
    shape, dim = [2, a.size[0] // 2, n], r.randrange(2)
    if shape[dim] % RANKS:
        return None
    return [a, b, scale_a, scale_b, "sum", dim, 0, GROUP, shape, None, None, dtype, False], {}


def all_gather_copy_in(r, row):
    dtype = r.dtype(FLOATS)
    inputs = [r.tensor(dtype=dtype) for _ in range(r.randrange(1, 4))]
    lengths = [math.prod(x.size) for x in inputs]
    buffer = r.tensor([sum(lengths) * RANKS], dtype, stride=[1])
    return [inputs, buffer, lengths, sum(lengths), r.randrange(RANKS)], {}


DTYPES = {"bfloat16": 0, "float32": 15, "float16": 16, "float64": 14}


def bucket_all_gather(r, row):
    names = [r.choice(list(DTYPES)) for _ in range(r.randrange(1, 4))]
    if r.random() < 0.5:
        names = names[:1] * len(names)
    dtype = getattr(torch, names[0]) if len(set(names)) == 1 else torch.uint8
    inputs = [r.tensor(dtype=FLOATS, stride=None) for _ in names]
    return [inputs, RANKS, dtype, [DTYPES[n] for n in names], r.randrange(RANKS)], {}


def bucket_reduce_scatter(r, row):
    one = r.dtype(FLOATS)
    inputs = [r.tensor(multiple(r, r.size(min_dim=1)), one) for _ in range(r.randrange(1, 4))]
    return [inputs, RANKS], {}


WHOLE = [
    f"{library}.{name}.default"
    for library, names in {
        "_c10d_functional": "_wrap_tensor_autograd all_reduce all_reduce_ all_reduce_coalesced_ broadcast broadcast_ irecv wait_tensor",
        "c10d_functional": "all_reduce broadcast irecv wait_tensor",
    }.items()
    for name in names.split()
]


class CommTest(ShapeTest):
    RULES = {
        "all_gather": all_gather, "all_gather_list": all_gather_list, "all_gather_low": all_gather_low,
        "reduce_scatter": reduce_scatter, "reduce_scatter_list": reduce_scatter_list,
        "reduce_scatter_low": reduce_scatter_low, "all_to_all": all_to_all,
        "shard_dim_alltoall": shard_dim_alltoall, "isend": isend, "batch_p2p": batch_p2p,
        "fused_ag_mm": fused_ag_mm, "fused_mm_rs": fused_mm_rs, "fused_scaled_mm_rs": fused_scaled_mm_rs,
        "all_gather_copy_in": all_gather_copy_in, "bucket_all_gather": bucket_all_gather,
        "bucket_reduce_scatter": bucket_reduce_scatter, "like_list": whole, "like_local": symmetric,
    }  # fmt: skip
    GROUPS = {GROUP: RANKS}
    ROWS = {
        "symm_mem.fused_all_gather_scaled_matmul.default": fused_ag_scaled_mm,
        "_c10d_functional.all_gather_into_tensor_out.default": gathered_out,
        "_c10d_functional.reduce_scatter_tensor_out.default": scattered_out,
        "symm_mem.one_shot_all_reduce.default": symmetric,
        **dict.fromkeys(WHOLE, whole),
    }

"""Operators without a result: torch returns nothing for random calls, and so does inference."""

import torch

import test_shapes_comm as comm
from shapes import ANY, FLOATS, Opaque, ShapeTest, by_schema, dense, rows
from test_shapes_pointwise import foreach

GROUP = comm.GROUP


def setUpModule():
    comm.setUpModule()


def tearDownModule():
    comm.tearDownModule()


def plain(r, size, dtype):
    return r.tensor(size, dtype, stride=dense(size))


def alike(r, n, size_of=None):
    """n lists of equal length; items at the same position have one size and dtype."""
    count, dtype = r.randrange(1, 4), r.dtype(("float32", "float64", "bfloat16"))
    sizes = [size_of(r) if size_of else r.size() for _ in range(count)]
    return [[plain(r, size, dtype) for size in sizes] for _ in range(n)], dtype


# ---- optimizers ----------------------------------------------------------------------------------


def fused(r, row):
    """Lists of parameters, gradients and states by name; steps are numbers in tensors."""
    names = [p["name"] for p in row["params"]]
    lists, _ = alike(r, 5)
    args, kwargs = [], {}
    for p in row["params"]:
        name = p["name"]
        if p["depth"]:
            if name == "state_steps":
                value = [plain(r, [], "float32") for _ in lists[0]]
            elif name == "max_exp_avg_sqs":
                value = []
            else:
                value = lists[len(args)]
        elif name in ("grad_scale", "found_inf") or p["default"] is not None:
            continue
        elif p["type"] == 0:
            value = plain(r, [], "float32")
        else:
            value = {2: r.random(), 3: False}[p["type"]]
        if p["kwarg_only"]:
            kwargs[name] = value
        else:
            args.append(value)
    assert "self" in names
    return args, kwargs


def unscale(r, row):
    (tensors,), _ = alike(r, 1)
    return [tensors, plain(r, [1], "float32"), plain(r, [1], "float32")], {}


# ---- checks --------------------------------------------------------------------------------------


def assert_async(r, row):
    x = r.tensor([1] * r.randrange(3), ANY)
    return ([x, "it holds"] if len(row["params"]) == 2 and (row["name"].endswith("msg") or r.random() < 0.5)
            else [x]), {}  # fmt: skip


def assert_number(r, row):
    return [r.choice([True, 1, 2.5]), "it holds"], {}


def assert_metadata(r, row):
    x = r.tensor()
    args = [x, x.size, x.stride, x.dtype][: r.randrange(1, 5)]
    return args, {"device": torch.device(x.device)} if r.random() < 0.5 else {}


def constrain(r, row):
    return [r.randrange(3, 9)], {"min": r.choice([None, 0, 3]), "max": r.choice([None, 9, 20])}


def check(r, row):
    return [True, "it holds"][: r.randrange(1, 3)] if "_check" in row["name"] else [True, "it holds"], {}


# ---- copies --------------------------------------------------------------------------------------


def split_out(r, row):
    x = r.tensor(min_dim=1)
    dim, meta = r.dim(x), torch.empty(x.size, device="meta")
    n = x.size[dim]
    if "sizes" in row["name"]:
        cut = r.randint(0, n)
        lengths = [cut, n - cut]
        parts = meta.split(lengths, dim)
    else:
        lengths = r.randrange(1, 4)
        parts = meta.split(lengths, dim)
    return [x, lengths, dim], {"out": [plain(r, list(p.size()), x.dtype) for p in parts]}


def chunk_cat(r, row):
    rows_, width = 2 * r.randrange(1, 4), r.length()
    x = r.tensor([rows_, width], FLOATS)
    return [[x], 0, 2], {"out": plain(r, [2, rows_ * width // 2], x.dtype)}


def copy(r, row):
    x = r.tensor()
    return [x, r.tensor(x.size)], {}


def storage_bytes(r, row):
    x = r.tensor()
    return [plain(r, x.size, x.dtype), r.choice([0, 64, 4096])], {}


def set_item(r, row):
    x = plain(r, [n or 1 for n in r.size(min_dim=1)], r.dtype(FLOATS))
    at = r.choice([0, -1, slice(0, 1, None), (Ellipsis, 0), None, (slice(None, None, 2), Ellipsis)])
    return [x, at, r.choice([2.0, 1, plain(r, [], x.dtype)])], {}


def delete_item(r, row):
    tensors = [r.tensor() for _ in range(r.randrange(1, 4))]
    return [tensors, r.randrange(len(tensors))], {}


# ---- environment ---------------------------------------------------------------------------------


def say(r, row):
    return [r.choice(["here", "loss", ""])], {}


def format_(r, row):
    return ["{} {}", r.tensor(), r.number()], {}


def tokens(r, row):
    return [[r.tensor([0], "float32") for _ in range(r.randrange(4))]], {}


def enter():
    return torch.ops.profiler._record_function_enter_new("step")


def profiled(r, row):
    if row["name"].endswith("_RecordFunction"):
        return [Opaque(enter)], {}
    return [Opaque(lambda: torch.ops.profiler._record_function_enter("step"))], {}


def triton(r, row):
    x, y = r.tensor(), r.tensor()
    return [], {"kernel_idx": 0, "constant_args_idx": 0, "grid": [(1, 1, 1)],
                "tma_descriptor_metadata": {}, "kwargs": {"in_ptr": x, "out_ptr": y}}  # fmt: skip


def streams(r, row):
    """By the signature: numbers of streams and events, tensors, "cuda"."""
    return [{0: r.tensor(), 1: r.randrange(4), 4: "cuda"}[p["type"]] for p in row["params"]], {}


def by_types(r, row):
    """Any operands of the types of the signature."""
    args = []
    for p in row["params"]:
        if p["default"] is not None and r.random() < 0.5:
            break
        if p["type"] == 0:
            value = [r.tensor() for _ in range(r.randrange(1, 4))] if p["depth"] else r.tensor()
        elif p["type"] == 1:
            value = [r.randrange(4) for _ in range(r.randrange(1, 4))] if p["depth"] else r.randrange(4)
        elif p["type"] == 4:
            value = GROUP if "group" in p["name"] else "sum"
        else:
            return None
        args.append(value)
    return args, {}


def barrier(r, row):
    group = Opaque(lambda: torch.distributed.group.WORLD.boxed())
    return [r.tensor(device="cpu"), group, [], 1000, False], {}


ROWS = {
    "aten._amp_foreach_non_finite_check_and_unscale_.default": unscale,
    "aten._assert_async.default": assert_async,
    "aten._assert_async.msg": assert_async,
    "aten._assert_scalar.default": assert_number,
    "aten._assert_tensor_metadata.default": assert_metadata,
    "aten._print.default": say,
    "aten.split_copy.Tensor_out": split_out,
    "aten.split_with_sizes_copy.out": split_out,
    "aten.sym_constrain_range.default": constrain,
    "aten.sym_constrain_range_for_size.default": constrain,
    "builtins.print": say,
    "c10d.monitored_barrier_.default": barrier,
    "fsdp.chunk_cat.default": chunk_cat,
    "fsdp.copy_.default": copy,
    "fsdp.split_with_sizes_copy.default": split_out,
    "higher_order.print": format_,
    "higher_order.triton_kernel_wrapper_mutation": triton,
    "inductor.resize_storage_bytes_.default": storage_bytes,
    "operator.delitem": delete_item,
    "operator.setitem": set_item,
    "prims._sink_tokens.default": tokens,
    "profiler._record_function_exit._RecordFunction": profiled,
    "profiler._record_function_exit.default": profiled,
    "torch._assert": check,
    "torch._assert_async": assert_async,
    "torch._check": check,
}


def nothing(r, row):
    name = row["name"]
    if name in ROWS:
        return ROWS[name](r, row)
    if "_fused_" in name:
        return fused(r, row)
    if "_foreach_" in name:
        return foreach(r, row)
    return streams(r, row) if name.startswith("streams.") else by_types(r, row)


class VoidTest(ShapeTest):
    RULES = {"void": nothing}
    REAL = ("aten._foreach_addcdiv_.Tensor", "aten._foreach_addcmul_.Tensor", "c10d.check_for_nan.default",
            "profiler._record_function_exit.default")  # fmt: skip

    def test_signatures(self):
        for name, row in rows().items():
            if row["shape"] == "void":
                self.assertEqual(row["results"], [], name)

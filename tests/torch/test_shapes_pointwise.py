"""Element-wise operators, copies, factories, scans and sorts: what is inferred is what torch gives."""

import torch

from shapes import ANY, FLOATS, INTS, ShapeTest, by_schema, dense

FORMATS = (torch.preserve_format, torch.contiguous_format)


def only(dtypes):
    return lambda r, row: by_schema(r, row, dtypes)


# ---- element-wise --------------------------------------------------------------------------------


def method(r, row):
    """A tensor and a tensor or number."""
    x = r.tensor(dtype=FLOATS)
    if row["name"].endswith("_"):
        x.stride = dense(x.size)
        return [x, r.among(r.number(), r.tensor(r.shrink(x.size), x.dtype))], r.among({}, {"alpha": 2})
    return [x, r.among(r.number(), r.tensor(r.grow(x.size)))], {}


def masked_fill(r, row):
    x = r.tensor()
    mask = r.tensor(r.grow(x.size), "bool")
    value = r.number() if row["name"].endswith("Scalar") else r.tensor([], x.dtype)
    return [x, mask, value], {}


def where(r, row):
    args, kwargs = by_schema(r, row)
    size = args[0].size
    args[0] = r.tensor(size, "bool", stride=args[0].stride)
    if row["name"].startswith("prims") and not any(hasattr(a, "size") for a in args[1:]):
        return None
    return args, kwargs


def div_mode(r, row):
    if len(row["params"]) == 2:
        return by_schema(r, row)
    args, _ = by_schema(r, {"params": row["params"][:2]})
    return args, {"rounding_mode": r.among(None, "floor", "trunc")}


def glu(r, row):
    x = r.tensor(dtype=FLOATS, min_dim=1)
    return [x] + ([r.dim(x)] if r.random() < 0.8 else []), {}


def flip(r, row):
    x = r.tensor()
    dims = [d - r.choice([0, len(x.size)]) for d in range(len(x.size)) if r.random() < 0.5]
    return [x, dims], {}


def foreach(r, row):
    """Lists of one length; items of the lists fit each other."""
    n = r.randrange(1, 4)
    sizes = [r.size(max_dim=4) for _ in range(n)]
    strides = [r.stride(size) for size in sizes]
    dtype, mixed, equal = r.dtype(), r.random() < 0.3, r.random() < 0.6
    args, kwargs = [], {}
    for p in row["params"]:
        if p["type"] == 0 and p["depth"]:
            value = [
                r.tensor(size if equal or not args else r.grow(size), r.dtype() if mixed else dtype,
                         stride=stride if equal and r.random() < 0.7 else None)
                for size, stride in zip(sizes, strides)
            ]  # fmt: skip
        elif p["type"] == 0:
            size = [n] if p["name"] == "scalars" else []
            value = r.tensor(size, dtype, device="cpu" if size else None)
        elif p["depth"]:
            value = [r.number() for _ in range(n)]
        elif p["type"] == 5:
            value = r.number()
        else:
            continue
        if p["default"] is not None and r.random() < 0.5:
            continue
        if p["kwarg_only"]:
            kwargs[p["name"]] = value
        else:
            args.append(value)
    return args, kwargs


def foreach_reduce(r, row):
    dtype = r.dtype(FLOATS + INTS)
    items = [r.tensor([n + (n == 0) for n in r.size()], dtype) for _ in range(r.randrange(1, 4))]
    if row["name"].endswith("max.default"):
        return [items], {}
    kwargs = {"dtype": r.dtype(FLOATS)} if r.random() < 0.3 else {}
    return [items] + ([r.among(1, 2, 3.0)] if r.random() < 0.7 else []), kwargs


# ---- copies --------------------------------------------------------------------------------------


def options(r, row, dtypes=ANY):
    """dtype=, device=, memory_format= of those that the row has."""
    kwargs = {}
    for p in row["params"]:
        if p["default"] is not None and r.random() < 0.5:
            continue
        if p["name"] == "dtype":
            kwargs["dtype"] = r.dtype(dtypes)
        elif p["name"] == "device":
            kwargs["device"] = torch.device(r.among("cpu", "cuda:0"))
        elif p["name"] == "memory_format":
            kwargs["memory_format"] = r.among(*FORMATS, torch.channels_last)
    return kwargs


def copies(r, row):
    x = r.tensor()
    if r.random() < 0.2:
        x = r.tensor(r.size(4, 4), x.dtype)
    return [x], options(r, row)


def full_like(r, row):
    _, kwargs = copies(r, row)
    if row["name"].startswith("prims"):
        kwargs |= {"dtype": r.dtype(), "device": torch.device(r.device), "requires_grad": False}
    return [r.tensor(), r.number()], kwargs


def randint_like(r, row):
    args, kwargs = copies(r, row)
    return args + ([-3, 9] if "low" in row["name"] else [9]), kwargs


def convert(r, row):
    return [r.tensor(), r.dtype()], {}


def device_put(r, row):
    return [r.tensor(), torch.device(r.among("cpu", "cuda:0", "cuda"))], {}


def to(r, row):
    x, kwargs = r.tensor(), {}
    other = {"aten.to.device": [torch.device(r.among("cpu", "cuda:0")), r.dtype()],
             "aten.to.dtype": [r.among(x.dtype, r.dtype())],
             "aten.to.dtype_layout": [], "aten.to.other": [r.tensor()]}[row["name"]]  # fmt: skip
    if not other:
        kwargs = options(r, row)
    kwargs.pop("memory_format", None)
    if r.random() < 0.4:
        kwargs["copy"] = r.random() < 0.5
    if r.random() < 0.4:
        kwargs["memory_format"] = r.among(*FORMATS, torch.channels_last)
    return [x, *other], kwargs


def copy(r, row):
    x = r.tensor()
    return [x, r.tensor(r.shrink(x.size), device=r.among("cpu", "cuda:0"))], {}


def force_stride(r, row):
    x = r.tensor()
    order = list(range(len(x.size)))
    r.shuffle(order)
    return [x, dense(x.size, order)], {}


def aliased(r, row):
    return [r.tensor()], {}


# ---- operands given back -------------------------------------------------------------------------


def inplace(r, row):
    """The first operand stays as it is; the others must fit it."""
    drawn = by_schema(r, row)
    if drawn is None or not hasattr(drawn[0][0], "size"):
        return None
    args, kwargs = drawn
    x = args[0]
    if r.random() < 0.8:
        x.stride = dense(x.size)
    args = [x] + [
        r.tensor(r.shrink(x.size), x.dtype if r.random() < 0.7 else a.dtype)
        if hasattr(a, "size") else a
        for a in args[1:]
    ]  # fmt: skip
    return args, kwargs


def gemm(r, row):
    name = row["name"].split(".")[1]
    n, m, k, b = (r.randrange(1, 5) for _ in range(4))
    sizes = {"addmm_": [[n, m], [n, k], [k, m]], "addmv_": [[n], [n, k], [k]],
             "addr_": [[n, m], [n], [m]], "baddbmm_": [[b, n, m], [b, n, k], [b, k, m]],
             "addbmm_": [[n, m], [b, n, k], [b, k, m]],
             "_mm_plus_mm": [[n, k], [k, m], [n, k], [k, m], [n, m]]}[name]  # fmt: skip
    dtype = r.dtype(FLOATS)
    args = [r.tensor(size, dtype) for size in sizes]
    args[-1 if "mm_plus" in name else 0].stride = dense(sizes[-1 if "mm_plus" in name else 0])
    return args, {}


def masked(r, row):
    x = r.tensor(stride=None)
    x.stride = dense(x.size)
    rest = {"masked_fill_.Scalar": [2], "masked_fill_.Tensor": [r.tensor([], x.dtype)],
            "masked_scatter_.default": [r.tensor([9000], x.dtype)]}  # fmt: skip
    return [x, r.tensor(r.shrink(x.size), "bool"), *rest[row["name"].split(".", 1)[1]]], {}


def out(r, row):
    a = r.tensor([3, 4], "float32", stride=[4, 1])
    b = r.tensor([4, 3], "float32")
    n = row["name"].split(".")[1]
    o = r.tensor([3, 3], "float32", stride=r.among([3, 1], [1, 3]))
    same = [r.tensor([3, 3], "float32") for _ in range(2)]
    batch = [r.tensor([2, 3, 4], "float32"), r.tensor([2, 4, 3], "float32")]
    o3 = r.tensor([2, 3, 3], "float32", stride=[9, 3, 1])
    calls = {"mm": ([a, b], o), "addmm": ([same[0], a, b], o), "bmm": (batch, o3),
             "baddbmm": ([r.tensor([2, 3, 3], "float32"), *batch], o3),
             "amax": ([r.tensor([3, 3, 2], "float32"), [2]], o),
             "cat": ([[r.tensor([1, 3], "float32"), r.tensor([2, 3], "float32")]], o),
             "_chunk_cat": ([[r.tensor([3, 3], "float32", stride=[3, 1])], 0, 1],
                            r.tensor([1, 9], "float32", stride=[9, 1]))}  # fmt: skip
    args, o = calls.get(n, (same, o))
    return args, {"out": o}


def copy_number(r, row):
    return [r.tensor(), 3 if row["name"].endswith("int") else 2.5], {}


def random_range(r, row):
    return [r.tensor(dtype=FLOATS + INTS), 0, 100], {}


def put(r, row):
    x = r.tensor([2, 3, 4], "float32", stride=[12, 4, 1])
    return [x, r.tensor([5], "int64"), r.tensor([5], "float32")], {"accumulate": True}


def tri(r, row):
    return [r.tensor(min_dim=2), r.randrange(-2, 3)][: r.randrange(1, 3)], {}


# ---- written by index ----------------------------------------------------------------------------


def index_size(r, size):
    return [max(1, n - r.randrange(2)) for n in size]


def some_size(r):
    return [max(1, n) for n in r.size(1, 4)]


def scatter(r, row):
    x = r.tensor(some_size(r), r.dtype(FLOATS + INTS))
    index = r.tensor(index_size(r, x.size), "int64")
    args = [x, r.dim(x), index]
    kwargs = {}
    for p in row["params"][3:]:
        if p["name"] == "src":
            args.append(r.tensor(index.size, x.dtype))
        elif p["name"] == "value":
            args.append(2)
        elif p["name"] == "reduce":
            how = r.among("add", "multiply") if ".scatter." in row["name"] or "scatter_." in row[
                "name"] else r.among("sum", "amax", "mean")  # fmt: skip
            if p["kwarg_only"]:
                kwargs["reduce"] = how
            else:
                args.append(how)
    return args, kwargs


def index_along(r, row):
    x = r.tensor(some_size(r), r.dtype(FLOATS))
    dim = r.dim(x)
    n = r.randrange(1, 5)
    size = list(x.size)
    size[dim] = n
    args = [x, dim, r.tensor([n], "int64")]
    for p in row["params"][3:]:
        if p["name"] == "source":
            args.append(r.tensor(size, x.dtype))
        elif p["name"] == "value":
            args.append(2.0 if p["type"] == 5 else r.tensor([], x.dtype))
        elif p["name"] == "reduce":
            args.append(r.among("prod", "amax", "mean"))
    return args, {}


def index_put(r, row):
    x = r.tensor(some_size(r), r.dtype(FLOATS))
    n = r.randrange(1, 4)
    k = r.randrange(1, len(x.size) + 1)
    indices = [r.tensor([n], "int64") for _ in range(k)]
    values = r.tensor(r.shrink([n, *x.size[k:]]), x.dtype)
    if row["name"].endswith("accumulate.default"):
        return [x, r.tensor([n], "bool"), indices, r.tensor([n, *x.size[k:]], x.dtype)], {}
    return [x, indices, values] + ([True] if r.random() < 0.5 else []), {}


def masked_scatter(r, row):
    x = r.tensor()
    return [x, r.tensor(r.shrink(x.size), "bool"), r.tensor([9000], x.dtype)], {}


def fill_diagonal(r, row):
    return [r.tensor(r.among([3, 4], [5, 5], [2, 2, 2]), FLOATS), 2], {}


# ---- backward of a loss or a pool ----------------------------------------------------------------


def loss_backward(r, row):
    x = r.tensor(dtype=FLOATS)
    target = r.tensor(x.size, x.dtype)
    reduction = r.randrange(3)
    grad = r.tensor(x.size if reduction == 0 else [], x.dtype)
    args = [grad, x, target]
    for p in row["params"][3:]:
        args.append({"reduction": reduction, "weight": None}.get(p["name"], 1.0))
    return args, {}


def spatial(r, n):
    """[batch, channels, *n lengths], or without batch."""
    return [r.randrange(1, 4) for _ in range(r.among(1, 2))] + [r.randrange(4, 8) for _ in range(n)]


def pool_backward(r, row):
    name = row["name"].split(".")[1]
    n = 3 if "3d" in name else 2
    size = spatial(r, n)
    x = r.tensor(size, FLOATS)
    half = size[:-n] + [k // 2 for k in size[-n:]]
    grad = r.tensor(half, x.dtype)
    index = r.tensor(half, "int64")
    args = {
        "_adaptive_avg": [], "adaptive_max": [index],
        "avg": [[2] * n, [2] * n, [0] * n, False, True, None],
        "max": [[2] * n, [2] * n, [0] * n, [1] * n, False, index],
        "fractional_max": [[2] * n, half[-n:], index],
    }[name.split("_pool")[0]]  # fmt: skip
    return [grad, x, *args], {}


def pad_backward(r, row):
    n = int(row["name"].split("pad")[1][0])
    size = spatial(r, n)
    x = r.tensor(size, FLOATS)
    pad = [r.randrange(3) for _ in range(2 * n)]
    sizes = list(size)
    for i in range(n):
        sizes[-1 - i] += pad[2 * i] + pad[2 * i + 1]
    return [r.tensor(sizes, x.dtype), x, pad], {}


def nll_backward(r, row):
    wide = "2d" in row["name"]
    rest = [r.randrange(1, 4), r.randrange(1, 4)] if wide else []
    n, c = r.randrange(1, 5), r.randrange(1, 5)
    x = r.tensor([n, c, *rest], FLOATS)
    reduction = r.randrange(3)
    grad = r.tensor([n, *rest] if reduction == 0 else [], x.dtype)
    target = r.tensor([n, *rest], "int64")
    total = r.tensor([], x.dtype)
    return [grad, x, target, None, reduction, -100, total], {}


def glu_backward(r, row):
    x = r.tensor([2 * r.randrange(1, 3) for _ in range(r.randrange(1, 5))], FLOATS)
    dim = r.dim(x)
    half = list(x.size)
    half[dim] //= 2
    return [r.tensor(half, x.dtype), x, dim], {}


def backward(r, row):
    name = row["name"]
    if "_pool" in name:
        return pool_backward(r, row)
    return (pad_backward if "_pad" in name else nll_backward if "nll" in name else
            glu_backward if "glu" in name else loss_backward)(r, row)  # fmt: skip


# ---- factories -----------------------------------------------------------------------------------


def factory(r, row):
    args, kwargs = [], {}
    for p in row["params"]:
        value = {"size": r.size(), "shape": r.size(), "fill_value": r.number(), "high": 9, "low": -3,
                 "mean": 0.5, "std": 1.5, "n": r.length(), "m": r.length(), "generator": None,
                 "requires_grad": False, "s": r.number()}.get(p["name"])  # fmt: skip
        if p["name"] == "dtype":
            value = r.dtype()
        if p["name"] == "device":
            value = torch.device(r.device)
        if p["name"] == "memory_format" and r.random() < 0.5:
            value = torch.contiguous_format
        if p["default"] is not None and r.random() < 0.5:
            continue
        if p["name"] in ("layout", "pin_memory") or (value is None and p["name"] != "generator"):
            continue
        if p["kwarg_only"]:
            kwargs[p["name"]] = value
        else:
            args.append(value)
    return args, kwargs


def prims_uniform(r, row):
    size = r.size()
    order = list(range(len(size)))
    r.shuffle(order)
    return [size], {"low": 0.0, "high": 1.0, "dtype": r.dtype(FLOATS), "stride": dense(size, order),
                    "device": torch.device(r.device)}  # fmt: skip


def empty_channels_last(r, row):
    if r.random() < 0.6:
        return factory(r, row)
    return [r.size(4, 4)], {"memory_format": torch.channels_last} | options(r, {"params": []})


def new(r, row):
    size = r.size()
    fill = [r.number()] if "full" in row["name"] else []
    return [r.tensor(), size, *fill], options(r, row)


def empty_strided(r, row):
    size = r.size()
    first = [r.tensor()] if "new" in row["name"] else []
    kwargs = options(r, row)
    if row["name"].startswith("prims"):
        kwargs["requires_grad"] = False
    return [*first, size, r.stride(size)], kwargs


def empty_permuted(r, row):
    size = r.size()
    order = list(range(len(size)))
    r.shuffle(order)
    kwargs = options(r, row)
    if row["name"].startswith("prims"):
        kwargs["requires_grad"] = False
    return [size, order], kwargs


def arange(r, row):
    step = r.among(1, 2, 3, -1, -2, 0.5, 0.3, 1.7, -0.7)
    span = r.among(0, 1, 5, 7, 10, 4.5, 9.9)
    start = r.among(0, 1, -3, 2.5)
    args = {"default": [span], "start": [start, start + span],
            "start_step": [start, start + (span if step > 0 else -span), step]}  # fmt: skip
    return args[row["name"].split(".")[-1]], options(r, row, FLOATS + INTS)


def linspace(r, row):
    def bound(p):
        return r.among(-1, 2.5, 3) if p["type"] == 5 else r.tensor([], FLOATS)

    return [bound(row["params"][0]), bound(row["params"][1]), r.length()], options(r, row, FLOATS)


def iota(r, row):
    return [r.length()], {"start": r.randrange(5), "step": r.randrange(1, 4), "dtype": r.dtype(INTS),
                          "device": torch.device(r.device), "requires_grad": False}  # fmt: skip


def seeds(r, row):
    device = torch.device(r.among("cpu", "cuda:0"))
    return ([r.randrange(1, 9), device] if "seeds" in row["name"] else [device]), {}


def lookup_seed(r, row):
    return [r.tensor([9], "int64", stride=[1]), r.randrange(9)], {}


def inductor_random(r, row):
    seed = r.tensor([], "int64")
    if "randint" in row["name"]:
        return [0, 9, r.size(), seed], {}
    align = {"align_dtype": r.dtype(FLOATS)} if r.random() < 0.3 else {}
    return [r.size(), seed, r.among("rand", "randn")], align


# ---- scans and sorts -----------------------------------------------------------------------------


def scan(r, row):
    x = r.tensor(dtype=ANY)
    kwargs = {}
    if row["name"].endswith("_.default"):
        x.stride = dense(x.size)
    elif r.random() < 0.3 and "log" not in row["name"]:
        kwargs["dtype"] = r.dtype()
    return [x, r.dim(x)], kwargs


def sort(r, row):
    x = r.tensor(dtype=FLOATS + INTS + ("bool",))
    if row["name"].endswith("stable"):
        return [x], {"stable": True, "dim": r.dim(x), "descending": r.random() < 0.5}
    return [x, r.dim(x)], {}


def topk(r, row):
    x = r.tensor(dtype=FLOATS + INTS)
    dim = r.dim(x)
    k = r.randrange(x.size[dim] + 1) if x.size else r.randrange(2)
    return [x, k] + r.among([], [dim], [dim, False], [dim, True, False]), {}


def searchsorted(r, row):
    bounds = r.tensor([r.randrange(1, 7)], FLOATS)
    value = r.number() if "Scalar" in row["name"] else r.tensor(dtype=FLOATS)
    kwargs = {"out_int32": r.random() < 0.5} if r.random() < 0.5 else {}
    args = [value, bounds] if "bucketize" in row["name"] else [bounds, value]
    return args, kwargs


def histc(r, row):
    return [r.tensor(dtype=FLOATS)] + r.among([], [7], [16, 0, 1], [5, -1.5, 2.5]), {}


def dropout_backward(r, row):
    x = r.tensor(dtype=FLOATS)
    return [x, r.tensor(x.size, "bool", stride=x.stride if r.random() < 0.5 else None), 1.25], {}


def dropout(r, row):
    args = [r.tensor(dtype=FLOATS), r.among(0.0, 0.25, 0.5, 1.0)]
    return args + ([r.among(True, False)] if len(row["params"]) == 3 and "fused" not in
                   row["name"] else []), {}  # fmt: skip


def multinomial(r, row):
    x = r.tensor([r.randrange(1, 8) for _ in range(r.randrange(1, 3))], FLOATS)
    return [x, r.randrange(1, 5), True], {}


# Computed in several steps (rule_steps.c).
STEPS = """bce_backward cauchy celu clamp copysign elu elu_backward exponential gelu gelu_backward
    geometric hardshrink hardsigmoid hardsigmoid_backward hardswish hardswish_backward hardtanh
    hardtanh_backward heaviside huber_loss_backward isfinite isin isinf isreal iterator lcm
    leaky_relu_backward log_ndtr log_normal log_sigmoid log_sigmoid_backward logaddexp logaddexp2
    logit logit_backward mish mish_backward mse_loss_backward ndtr normal pow_of_number prelu rsub
    sigmoid_backward silu_backward sinc smooth_l1_backward soft_margin_backward softplus
    softplus_backward softshrink square tanh_backward xlogy""".split()


class PointwiseTest(ShapeTest):
    RULES = {
        **dict.fromkeys(["unary", "unary_float", "unary_real", "unary_bool", "angle"], by_schema),
        **dict.fromkeys(["broadcast", "broadcast_float", "broadcast_bool", "logical"], by_schema),
        **{"unary_pair": only(FLOATS), "masked_fill": masked_fill, "where": where},
        **{"relu": by_schema, "fma": by_schema, "tri": tri, "complex": only(FLOATS), "div_mode": div_mode, "glu": glu, "foreach": foreach, "foreach_clamp": foreach, "foreach_pow": foreach},
        **{"foreach_reduce": foreach_reduce, "foreach_copy": foreach},
        **dict.fromkeys(STEPS, by_schema),
    }
    ROWS = dict.fromkeys(["aten.flip.default", "prims.rev.default"], flip) | {"torch.Tensor.__add__": method}


def written(r, row):
    name = row["name"]
    if "index_put" in name:
        return index_put(r, row)
    if "masked_scatter" in name:
        return masked_scatter(r, row)
    if "scatter" in name:
        return scatter(r, row)
    if ".put." in name:
        return put(r, row)
    return index_along(r, row)


def fresh(r, row):
    """As large as the first operand."""
    name = row["name"]
    if any(word in name for word in ("index", "scatter", ".put.")):
        return written(r, row)
    if "bernoulli" in name or "dirichlet" in name:
        return by_schema(r, row, FLOATS)
    return copies(r, row) if len(row["params"]) != 1 else aliased(r, row)


def random_like(r, row):
    if "index_put" in row["name"]:
        return index_put(r, row)
    return copies(r, row) if row["name"].split(".")[1] == "clone" else by_schema(r, row)


COMM = ("_c10d_functional", "c10d_functional", "symm_mem")


class CopyTest(ShapeTest):
    RULES = {
        **{"alias": aliased, "clone": random_like, "to_copy": copies, "convert": convert, "to": to},
        **{"device_put": device_put, "copy": copy, "contiguous": copies, "like": fresh},
        **{"force_stride": force_stride, "plain": fresh, "index_add": fresh},
        **{"like0": fresh, "like1": backward, "plain1": backward},
    }
    ROWS = {
        **dict.fromkeys(["aten.full_like.default", "prims.full_like.default"], full_like),
        **dict.fromkeys(["aten.randint_like.default", "aten.randint_like.low_dtype"], randint_like),
        "aten.uniform.default": only(FLOATS),
    }
    SKIP = COMM


class FactoryTest(ShapeTest):
    RULES = {
        **dict.fromkeys(["full", "scalar_tensor", "eye", "randperm"], factory),
        **{"new": new, "empty_strided": empty_strided, "empty_permuted": empty_permuted},
        **{"arange": arange, "linspace": linspace, "iota": iota, "inductor_seeds": seeds},
        **{"inductor_lookup_seed": lookup_seed, "inductor_random": inductor_random},
    }
    ROWS = {"aten.empty.memory_format": empty_channels_last, "prims.uniform.default": prims_uniform}


class ScanTest(ShapeTest):
    RULES = {
        **{"scan": scan, "sort": sort, "argsort": sort, "topk": topk, "histc": histc},
        **{"searchsorted": searchsorted, "native_dropout": dropout, "native_dropout_backward": dropout_backward, "multinomial": multinomial},
    }


def given_back(r, row):
    name = row["name"].split(".")[1]
    if any(word in name for word in ("index", "scatter")) and "masked" not in name:
        return written(r, row)
    return inplace(r, row)


class SelfTest(ShapeTest):
    RULES = {"self": given_back}
    ROWS = {
        **dict.fromkeys(
            [f"aten.{name}.out" for name in
             "add addmm amax baddbmm bmm cat div mm mul _chunk_cat".split()], out
        ),
        **dict.fromkeys(
            ["aten.masked_fill_.Scalar", "aten.masked_fill_.Tensor", "aten.masked_scatter_.default"],
            masked,
        ),
        **dict.fromkeys(["aten.copy_.int", "aten.copy_.float"], copy_number),
        **{"aten.random_.from": random_range, "aten.put_.default": put},
        **dict.fromkeys(["aten.tril_.default", "aten.triu_.default"], tri),
        **dict.fromkeys([f"aten.{name}_.default" for name in "addmm addmv addr baddbmm addbmm".split()],
                        gemm),
        "inductor._mm_plus_mm.default": gemm,
        "aten.fill_diagonal_.default": fill_diagonal,
        "torch.Tensor.add_": method,
    }  # fmt: skip
    SKIP = COMM

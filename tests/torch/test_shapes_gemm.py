"""Matrix products: what is inferred is what torch gives."""

import torch
from shapes import FLOATS, ShapeTest, dense

FLOAT8 = ("float8_e4m3fn", "float8_e5m2")


def factors(r, dims, dtype=FLOATS):
    """[.., m, k] and [.., k, n] of one dtype."""
    m, k, n, dtype = r.length(), r.length(), r.length(), r.dtype(dtype)
    batch = [r.length() for _ in range(dims - 2)]
    return r.tensor([*batch, m, k], dtype), r.tensor([*batch, k, n], dtype)


def product(dims):
    def make(r, row):
        typed = row["name"].endswith(".dtype")
        a, b = factors(r, dims, ("float16", "bfloat16") if typed else FLOATS)
        args = [a, b]
        if any(p["name"] in ("mat1", "batch1") for p in row["params"]):
            size = [*a.size[:-1], b.size[-1]]
            if row["name"] == "aten.addbmm.default":
                size = size[1:]
            if not typed:
                size = r.shrink(size)
            args.insert(0, r.tensor(size, torch.float32 if typed else a.dtype))
        if typed:
            args.append(torch.float32)
        return args, {}

    return make


def int_mm(r, row):
    m, k, n = 17 + r.randrange(20), 8 * r.randrange(1, 5), 8 * r.randrange(1, 5)
    return [r.tensor([m, k], "int8"), r.tensor([k, n], "int8")], {}


def mv(r, row):
    dtype, m, k = r.dtype(FLOATS), r.length(), r.length()
    args = [r.tensor([m, k], dtype), r.tensor([k], dtype)]
    if row["name"] == "aten.addmv.default":
        args.insert(0, r.tensor(r.shrink([m]) if m else [m], dtype))
    return args, {}


def dot(r, row):
    dtype, n = r.dtype((*FLOATS, "int64", "int32", "complex64")), r.length()
    return [r.tensor([n], dtype), r.tensor([n], dtype)], {}


def outer(r, row):
    a, b = r.tensor(min_dim=1, max_dim=1), r.tensor(min_dim=1, max_dim=1)
    if r.random() < 0.4:
        b.dtype = a.dtype
    if row["name"] != "aten.addr.default":
        return [a, b], {}
    dtype = a.dtype if r.random() < 0.5 else r.dtype()
    matrix = r.tensor(r.shrink([*a.size, *b.size]), dtype)
    if 1 in matrix.size:
        matrix.stride = dense(matrix.size)
    return [matrix, a, b], {}


def matmul(r, row):
    dtype, k = r.dtype(FLOATS), r.length()
    batch = r.size(max_dim=3)
    a = [*r.shrink(batch), r.length(), k] if r.random() < 0.8 else [k]
    b = [*r.shrink(batch), k, r.length()] if r.random() < 0.8 else [k]
    return [r.tensor(a, dtype), r.tensor(b, dtype)], {}


def linear(r, row):
    dtype, k, n = r.dtype(FLOATS), r.length(), r.length()
    x = r.tensor([*r.size(max_dim=3), k], dtype)
    if r.random() < 0.1:
        return [x, r.tensor([k], dtype)], {}
    args = [x, r.tensor([n, k], dtype)]
    if r.random() < 0.5:
        args.append(r.tensor([n], dtype))
    return args, {}


def linear_backward(r, row):
    dtype, k, n, batch = r.dtype(FLOATS), r.length(), r.length(), r.size(1, 3)
    mask = [r.random() < 0.7 for _ in range(3)]
    return [r.tensor([*batch, k], dtype), r.tensor([*batch, n], dtype), r.tensor([n, k], dtype), mask], {}


def scaled_mm(r, row):
    """8-bit factors, the first by rows, the second by columns; one scale each."""
    m, k, n = (16 * r.randrange(1, 4) for _ in range(3))
    a, b = r.tensor([m, k], "float8_e4m3fn", stride=[k, 1]), r.tensor([k, n], FLOAT8, stride=[1, k])
    scale = [r.tensor([], "float32"), r.tensor([], "float32")]
    bias = r.tensor([n], "bfloat16") if r.random() < 0.3 else None
    out = r.choice([torch.bfloat16, torch.float16, torch.float32, None])
    if row["name"].endswith("v2.default"):
        return [a, b, [scale[0]], [0], [0], [scale[1]], [0], [0], bias, out], {}
    return [a, b, *scale, bias, None, out], {}


def grouped_mm(r, row):
    scaled = "scaled" in row["name"]
    g, m, k, n = r.randrange(1, 6), *(16 * r.randrange(1, 4) for _ in range(3))
    dtype = torch.float8_e4m3fn if scaled else torch.bfloat16
    dims_a, dims_b = r.choice([2, 3]), r.choice([2, 3])
    if dims_a == 2 and dims_b == 2 and not scaled and r.random() < 0.5:
        n += r.randrange(8)
    a = r.tensor([g, m, k][3 - dims_a :], dtype, stride=dense([g, m, k][3 - dims_a :]))
    b_size = [g, k, n][3 - dims_b :]
    b = r.tensor(b_size, dtype, stride=[n * k, 1, k][3 - dims_b :])
    offs = None if dims_a == 3 and dims_b == 3 else r.tensor([g], "int32", stride=[1])
    out = r.choice([None, torch.bfloat16])
    if not scaled:
        return [a, b, offs, None, out], {}
    scale_a = [g, m] if dims_a == 3 else [m * (g if dims_b == 2 else 1)]
    scale_b = [g, n] if dims_b == 3 else [n * (g if dims_a == 2 else 1)]
    scales = [r.tensor(s, "float32", stride=dense(s)) for s in (scale_a, scale_b)]
    return [a, b, *scales, offs, None, None, out], {}


class GemmTest(ShapeTest):
    RULES = {
        "mm": product(2),
        "addmm": product(2),
        "bmm": product(3),
        "baddbmm": product(3),
        "addbmm": product(3),
        "int_mm": int_mm,
        "mv": mv,
        "dot": dot,
        "outer": outer,
        "matmul": matmul,
        "linear": linear,
        "linear_backward": linear_backward,
        "scaled_mm": scaled_mm,
        "grouped_mm": grouped_mm,
    }

"""Indexing, and numbers read from tensors: random calls give torch's sizes and strides."""

import torch

from shapes import FLOATS, Made, ShapeTest, broadcast, dense

INDEX = ("int64", "int64", "int32")


def index(r, row):
    x = r.tensor(min_dim=1)
    size = r.size(max_dim=3)
    indices, d = [], 0
    while d < len(x.size) and (r.random() < 0.8 or not any(indices)):
        if r.random() < 0.35:
            indices.append(None)
            d += 1
        elif r.random() < 0.12 and "datadep" in row["flags"]:
            span = r.randint(1, min(2, len(x.size) - d))
            indices.append(r.tensor(x.size[d : d + span], r.choice(("bool", "uint8"))))
            d += span
        else:
            indices.append(r.tensor(r.shrink(size), INDEX))
            d += 1
    if not any(indices):
        return None
    if "masked" not in row["name"]:
        return [x, indices], {}
    places = [range(len(x.size))[k] for k, i in enumerate(indices) if i]
    rest = [n for k, n in enumerate(x.size) if k >= len(indices) or not indices[k]]
    at = places[0] if places[-1] - places[0] + 1 == len(places) else 0
    read = rest[:at] + (broadcast(*[i.size for i in indices if i]) or []) + rest[at:]
    return [x, r.tensor(r.shrink(read), "bool"), indices, 0.5], {}


def gather(r, row):
    x = r.tensor()
    dim = r.dim(x)
    size = [r.randint(0, n) for n in x.size]
    if size:
        size[dim] = r.length()
    return [x, dim, r.tensor(size, "int64")], {}


def index_select(r, row):
    x = r.tensor()
    i = r.tensor([r.length()] if x.size or r.random() < 0.5 else [], INDEX)
    return [x, r.dim(x), i if x.size else r.tensor([1], "int64")], {}


def take(r, row):
    x = r.tensor()
    if len(row["params"]) == 2:
        return [x, r.tensor(dtype="int64")], {}
    if r.random() < 0.3:
        return [x, r.tensor(dtype="int64")], {}
    dim = r.dim(x)
    size = r.shrink(x.size)
    size = [1] * (len(x.size) - len(size)) + size
    if size:
        size[dim] = r.length()
    return [x, r.tensor(size, "int64"), dim], {}


def embedding(r, row):
    return [r.tensor(min_dim=2, max_dim=2, dtype=FLOATS), r.tensor(dtype=INDEX, max_dim=4)], {}


def embedding_backward(r, row):
    i = r.tensor(dtype="int64", max_dim=3)
    return [r.tensor(i.size + [r.length()], FLOATS), i, r.randrange(9), -1, False], {}


def embedding_bag(r, row):
    x = r.tensor(min_dim=2, max_dim=2, dtype=("float32", "float64"), device="cpu")
    i = r.tensor([r.length()], "int64", device="cpu")
    start = r.tensor([r.randrange(1, 5)], "int64", device="cpu")
    args = [x, i, start, False, r.randrange(3)]
    return args + r.choice([[], [False, None, r.random() < 0.5]]), {}


def embedding_bag_backward(r, row):
    count, rows, width, bags = r.length(), r.randrange(1, 9), r.length(), r.randrange(1, 5)

    def ints(n):
        return r.tensor([n], "int64", device="cpu")

    grad = r.tensor([bags, width], ("float32", "float64"), device="cpu")
    mode = r.randrange(2)
    args = [grad, ints(count)] + ([ints(bags)] if "sparse" in [p["name"] for p in row["params"]] else [])
    args += [ints(count), ints(bags), ints(0), rows, False, mode]
    return args + ([False, None] if len(args) > 8 else [None]), {}


def masked_scatter(r, row):
    x = r.tensor()
    mask = r.tensor(r.choice([r.shrink, r.grow])(x.size), "bool")
    return [x, mask, r.tensor([9000], x.dtype)], {}


def index_fill(r, row):
    x = r.tensor()
    value = 2 if row["name"].endswith("Scalar") else r.tensor([], x.dtype)
    return [x, r.dim(x), r.tensor([r.length()], "int64"), value], {}


def masked_select(r, row):
    x = r.tensor()
    return [x, r.tensor(r.grow(x.size), "bool")], {}


def one(r, row):
    return [r.tensor()], {}


def nonzero_static(r, row):
    return [r.tensor()], {"size": r.randrange(9)}


def one_hot(r, row):
    return [r.tensor(dtype="int64", max_dim=4), r.randrange(1, 9)], {}


def size(r, row):
    x = r.tensor(min_dim=1)
    return ([x, r.dim(x)] if len(row["params"]) > 1 else [x]), {}


def number(r, row):
    return [r.tensor([1] * r.randrange(3), ("int64", "int32", "uint8", "float32", "float64", "bool"))], {}


def in_format(r, row):
    x = r.tensor(r.size(r.choice([0, 4, 4, 5]), 5))
    if len(x.size) > 3 and r.random() < 0.5:
        x.stride = dense(x.size, [0, *range(2, len(x.size)), 1])
    return [x, r.choice([torch.contiguous_format, torch.channels_last, torch.channels_last_3d])], {}


def bound(r):
    return r.choice([None, None, 0, 1, 2, -1, -2, 5])


def item(r, row):
    """Of a list of results, or of a tensor, with all that Python allows and a graph may hold."""
    x = r.tensor(min_dim=1)
    if r.random() < 0.4:
        dim = r.dim(x)
        how = r.choice(["split", "unbind", "max", "sizes"])
        if how == "max":
            several, n = Made("aten.max.dim", r.tensor([n or 1 for n in x.size], FLOATS), dim), 2
        elif how == "sizes":
            several, n = Made("aten.sym_size.default", x), len(x.size)
        elif how == "unbind":
            several, n = Made("aten.unbind.int", x, dim), x.size[dim]
        else:
            parts = r.randint(1, 4)
            several, n = Made("aten.split.Tensor", x, parts, dim), max(1, -(-x.size[dim] // parts))
        at = r.randrange(-n, n) if n and r.random() < 0.8 else slice(bound(r), bound(r), r.choice([None, 1, 2]))
        return [several, at], {}
    at = []
    for n in x.size[: r.randint(0, len(x.size))]:
        at.append(r.choice([r.randrange(-n, n) if n else 0, slice(bound(r), bound(r), r.choice([None, None, 1, 2, 3]))]))
    for _ in range(r.choice([0, 0, 1])):
        at.insert(r.randint(0, len(at)), None)
    if r.random() < 0.3:
        at.insert(r.randint(0, len(at)), Ellipsis)
    return [x, at[0] if len(at) == 1 and r.random() < 0.5 else tuple(at)], {}


def narrow(r, row):
    x = r.tensor(min_dim=1)
    dim = r.dim(x)
    return [x, dim, r.tensor([], ("int64", "int32"), device="cpu"), r.randint(0, x.size[dim])], {}


def accumulate_grad(r, row):
    x = r.tensor(dtype=FLOATS)
    old, new = (r.choice([None, r.tensor(x.size, x.dtype)]) for _ in range(2))
    return [x, old, new], {}


class IndexTest(ShapeTest):
    RULES = {
        "index": index, "gather": gather, "index_select": index_select, "take": take,
        "embedding": embedding, "embedding_backward": embedding_backward,
        "embedding_bag_backward": embedding_bag_backward, "masked_scatter": masked_scatter, "index_fill": index_fill,
        "embedding_bag": embedding_bag, "embedding_bag_forward": embedding_bag, "masked_select": masked_select, "nonzero": one,
        "nonzero_static": nonzero_static, "one_hot": one_hot,
    }  # fmt: skip


class NumberTest(ShapeTest):
    RULES = {
        "sym_size": size, "sym_stride": size, "sym_numel": one, "sym_dim": one, "is_complex": one,
        "is_floating": one, "is_dense": one, "local_scalar": number,
    }  # fmt: skip
    ROWS = {
        "aten.is_contiguous.default": one,
        "aten.is_contiguous.memory_format": in_format,
        "aten.sym_is_contiguous.default": one,
    }
    REAL = ("prims.item.default",)


class ItemTest(ShapeTest):
    RULES = {"getitem": item, "accumulate_grad": accumulate_grad}
    ROWS = {"aten.narrow.Tensor": narrow}
    REAL = ("aten.narrow.Tensor",)

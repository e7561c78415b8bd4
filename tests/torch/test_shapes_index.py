"""Indexing and what numbers are read from tensors: random calls give torch's sizes and strides."""

from shapes import FLOATS, ShapeTest, broadcast

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
    return [r.tensor([1] * r.randrange(3), ("int64", "int32", "uint8"))], {}


class IndexTest(ShapeTest):
    RULES = {
        "index": index, "gather": gather, "index_select": index_select, "take": take,
        "embedding": embedding, "embedding_backward": embedding_backward,
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
        "aten.sym_is_contiguous.default": one,
    }
    SKIP = {
        "prims.item.default": "torch gives no symbol for it",
    }

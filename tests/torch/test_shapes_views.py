"""Views, parts and joins: random calls give the sizes and strides that torch gives."""

import math

import torch

from shapes import COMPLEX, FLOATS, INTS, ShapeTest, dense

PLAIN = FLOATS + INTS + ("bool",)


def factors(r, n, parts):
    """Sizes whose product is n."""
    out = []
    for _ in range(parts - 1):
        some = r.choice([k for k in range(1, n + 1) if n % k == 0]) if n else r.length()
        out.append(some)
        n = n // some if some else n
    return out + [n]


def other_sizes(r, size, hole=True):
    """Sizes with as many elements: dimensions cut and joined, and ones inserted."""
    n = math.prod(size)
    how = r.randrange(4)
    if how == 0:
        out = factors(r, n, r.randrange(1, 5)) if n else [0, *size[1:]]
    elif how == 1 and size:
        at = r.randrange(len(size))
        out = size[:at] + factors(r, size[at], 2) + size[at + 1 :]
    elif how == 2 and len(size) > 1:
        at = r.randrange(len(size) - 1)
        out = size[:at] + [size[at] * size[at + 1]] + size[at + 2 :]
    else:
        out = [k for k in size if k != 1]
    while r.random() < 0.4:
        out.insert(r.randint(0, len(out)), 1)
    if hole and out and r.random() < 0.3:
        out[r.randrange(len(out))] = -1
    return out


def view(r, row):
    x = r.tensor(dtype=PLAIN)
    if row["params"][1]["type"] == 0:  # view_as
        return [x, r.tensor(other_sizes(r, x.size, hole=False))], {}
    return [x, other_sizes(r, x.size)], {}


def unflatten(r, row):
    x = r.tensor(min_dim=1)
    dim = r.dim(x)
    sizes = factors(r, x.size[dim], r.randrange(1, 4))
    if r.random() < 0.3:
        sizes[r.randrange(len(sizes))] = -1
    return [x, dim, sizes], {}


def flatten(r, row):
    x = r.tensor()
    if len(row["params"]) == 1:
        return [x], {}
    return r.some((1, [x]), (1, [x, r.dim(x)]), (2, [x, r.dim(x), r.dim(x)])), {}


def view_dtype(r, row):
    return [r.tensor(), r.dtype()], {}


def permute(r, row):
    x = r.tensor()
    dims = list(range(len(x.size)))
    r.shuffle(dims)
    if row["name"].startswith("aten"):
        dims = [d - len(dims) * (r.random() < 0.3) for d in dims]
    return [x, dims], {}


def transpose(r, row):
    if len(row["params"]) == 3:
        x = r.tensor()
        return [x, r.dim(x), r.dim(x)], {}
    return [r.tensor()], {}


def movedim(r, row):
    x = r.tensor()
    n = len(x.size)
    if row["params"][1]["depth"]:
        k = r.randint(0, n)
        return [x, r.sample(range(n), k), [d - n for d in r.sample(range(n), k)]], {}
    return [x, r.dim(x), r.dim(x)], {}


def unsqueeze(r, row):
    x = r.tensor(max_dim=4)
    return [x, r.randint(-len(x.size) - 1, len(x.size))], {}


def squeeze(r, row):
    x = r.tensor([r.choice([1, 1, 3]) for _ in range(r.randrange(5))])
    if len(row["params"]) == 1:
        return [x], {}
    if row["params"][1]["depth"]:
        dims = r.sample(range(len(x.size)), r.randint(0, len(x.size)))
        return [x, dims if row["name"].startswith("prims") else [d - len(x.size) for d in dims]], {}
    return [x, r.dim(x)], {}


def expand(r, row):
    x = r.tensor(r.size(max_dim=4))
    size = [r.length() if n == 1 else n for n in x.size]
    front = [r.length() for _ in range(r.some((3, 0), (2, 1), (1, 2)))]
    if row["params"][1]["type"] == 0:
        return [x, r.tensor(front + size)], {}
    return [x, front + [-1 if r.random() < 0.2 else n for n in size]], {}


def broadcast_in_dim(r, row):
    x = r.tensor(max_dim=3)
    n = len(x.size) + r.randrange(3)
    places = sorted(r.sample(range(n), len(x.size)))
    shape = [r.length() for _ in range(n)]
    for place, size in zip(places, x.size):
        shape[place] = size if size != 1 or r.random() < 0.5 else shape[place]
    return [x, shape, places], {}


def bound(r):
    return r.some((3, None), (3, r.randrange(8)), (3, -r.randrange(8)), (1, 2**63 - 1))


def slice_(r, row):
    x = r.tensor(min_dim=1)
    args = [x, r.dim(x), bound(r), bound(r), r.some((3, 1), (1, 2), (1, 3))]
    return args[: r.randint(1, 5)], {}


def roll(r, row):
    x = r.tensor()
    n = r.randrange(3)
    return ([x, [r.randrange(-3, 4)]] if n == 0 else
            [x, [r.randrange(-3, 4) for _ in range(n)], [r.dim(x) for _ in range(n)]]), {}  # fmt: skip


def narrow(r, row):
    x = r.tensor(min_dim=1)
    dim = r.dim(x)
    start = r.randrange(x.size[dim] + 1)
    if row["params"][2]["type"] == 0:
        return None
    return [x, dim, start, r.randrange(x.size[dim] - start + 1)], {}


def select(r, row):
    x = r.tensor(min_dim=1)
    dim = r.dim(x)
    n = x.size[dim]
    return ([x, dim, r.randrange(-n, n)], {}) if n else None


def parts(r, n):
    out = []
    while n:
        out.append(r.randint(0, n))
        n -= out[-1]
    return out


def split(r, row):
    x = r.tensor(min_dim=1)
    dim = r.choice([0, r.dim(x)])
    if row["params"][1]["depth"] or (row["name"].startswith("torch") and r.random() < 0.5):
        how = parts(r, x.size[dim])
    else:
        how = r.randrange(6)
    return [x, how] + ([dim] if dim or r.random() < 0.5 else []), {}


def chunk(r, row):
    x = r.tensor(min_dim=1)
    if row["params"][1]["depth"]:
        how = [r.randrange(-6, 8) for _ in range(r.randrange(4))]
        if r.random() < 0.7:
            how.sort()
    else:
        how = r.randrange(6)
    if len(row["params"]) < 3:
        return [x, how], {}
    dim = r.dim(x)
    return [x, how, dim], {}


def even_split(r, row):
    """hsplit and its like take parts of one size only."""
    args, kwargs = chunk(r, row)
    if not row["params"][1]["depth"]:
        args[1] = r.choice([1, 1, 2, 3])
    return args, kwargs


def unbind(r, row):
    x = r.tensor(min_dim=1)
    return [x, r.dim(x)], {}


def as_strided(r, row):
    x, size = r.tensor(), r.size()
    args = [x, size, [r.randrange(4) for _ in size]]
    if row["name"].startswith("prims"):
        args.append(0)
    return args, {}


def reshape_alias(r, row):
    x = r.tensor()
    size = other_sizes(r, x.size, hole=False)
    return [x, size, dense(size)], {}


def view_as_real(r, row):
    return [r.tensor(dtype=COMPLEX)], {}


def view_as_complex(r, row):
    size = r.size(max_dim=4)
    stride = [2 * s for s in r.stride(size)]
    return [r.tensor(size + [2], dtype=("float32", "float64", "float16"), stride=stride + [1])], {}


def real(r, row):
    return [r.tensor(dtype=COMPLEX if r.random() < 0.7 or "imag" in row["name"] else FLOATS)], {}


def diagonal(r, row):
    x = r.tensor(min_dim=2)
    a, b = r.sample(range(len(x.size)), 2)
    return [x, r.randrange(-3, 4), a, b - len(x.size)], {}


def unfold(r, row):
    x = r.tensor(max_dim=4)
    dim = r.dim(x)
    n = x.size[dim] if x.size else 1
    return [x, dim, r.randint(0, n), r.randrange(1, 4)], {}


COPIES = {
    "_reshape_copy": view, "as_strided_copy": as_strided, "diagonal_copy": diagonal, "expand_copy": expand,
    "permute_copy": permute, "select_copy": select, "slice_copy": slice_, "squeeze_copy": squeeze,
    "t_copy": transpose, "transpose_copy": transpose, "unfold_copy": unfold, "unsqueeze_copy": unsqueeze,
    "view_as_complex_copy": view_as_complex, "view_as_real_copy": view_as_real, "view_copy": view,
    "reshape": view, "split_copy": split, "split_with_sizes_copy": split, "unbind_copy": unbind,
}  # fmt: skip


def copy(r, row):
    if row["name"] == "aten.view_copy.dtype":
        return view_dtype(r, row)
    return COPIES[row["name"].split(".")[1]](r, row)


def slice_backward(r, row):
    args, _ = slice_(r, row)
    x = args[0]
    if len(args) < 5 or args[2] is None or args[3] is None:
        return None
    dim, n = args[1], x.size[args[1]]
    size = list(x.size)
    size[dim] = len(range(n)[args[2] : args[3] : args[4]])
    return [r.tensor(size, x.dtype), x.size, *args[1:]], {}


def select_backward(r, row):
    x = r.tensor(min_dim=1)
    dim = r.randrange(len(x.size))
    size = x.size[:dim] + x.size[dim + 1 :]
    return [r.tensor(size), x.size, dim, 0], {}


def diagonal_backward(r, row):
    x = r.tensor(min_dim=2)
    a, b = r.sample(range(len(x.size)), 2)
    size = list(torch.empty(x.size, device="meta").diagonal(0, a, b).size())
    return [r.tensor(size), x.size, 0, a, b], {}


def unfold_backward(r, row):
    x = r.tensor(min_dim=1)
    dim = r.randrange(len(x.size))
    if not x.size[dim]:
        return None
    window, step = r.randint(1, x.size[dim]), r.randint(1, 3)
    size = list(torch.empty(x.size, device="meta").unfold(dim, window, step).size())
    return [r.tensor(size), x.size, dim, window, step], {}


def sum_to_size(r, row):
    size = [n or 1 for n in r.size()]
    x = r.tensor(size, stride=dense(size))
    return [x, r.shrink(size)], {}


# ---- joins ---------------------------------------------------------------------------------------


def cat(r, row):
    x = r.tensor(min_dim=1)
    dim = r.randrange(len(x.size))
    one_dtype = r.random() < 0.6
    one_layout = r.random() < 0.5
    tensors = [x]
    for _ in range(r.randrange(4)):
        size = list(x.size)
        size[dim] = r.length()
        dtype = x.dtype if one_dtype else r.dtype()
        if r.random() < 0.1:
            size = [0]
        order = sorted(range(len(size)), key=lambda d: -x.stride[d]) if len(size) > 1 else [0]
        stride = dense(size, order) if one_layout else None
        tensors.append(r.tensor(size, dtype, stride=stride))
    r.shuffle(tensors)
    if row["name"].startswith("aten") and r.random() < 0.5:
        dim -= len(x.size)
    return [tensors, dim], {}


def stack(r, row):
    x = r.tensor(max_dim=4)
    same = r.random() < 0.6
    tensors = [x] + [
        r.tensor(x.size, x.dtype if r.random() < 0.7 else None or r.dtype(), stride=x.stride if same else None)
        for _ in range(r.randrange(4))
    ]
    if len(row["params"]) == 1:
        return [tensors], {}
    return [tensors, r.randint(-len(x.size) - 1, len(x.size))], {}


def repeat(r, row):
    x = r.tensor(max_dim=4)
    n = len(x.size) + r.randrange(3) if "repeat" in row["name"] else r.randrange(5)
    return [x, [r.randrange(4) for _ in range(n)]], {}


def repeat_interleave(r, row):
    if row["name"].endswith(".Tensor"):
        x = r.tensor(size=[r.length()], dtype=("int64", "int32"))
        return [x], r.choice([{}, {"output_size": r.randrange(20)}])
    x = r.tensor()
    dim = r.choice([None, r.dim(x)])
    times = r.randrange(4)
    if row["params"][1]["type"] == 0:
        n = math.prod(x.size) if dim is None else x.size[dim] if x.size else 1
        times = r.tensor([r.choice([n, n, 1])], dtype=("int64", "int32"))
        return [x, times, dim], r.choice([{}, {"output_size": r.randrange(20)}])
    return [x, times, dim], {}


def pad(r, row):
    name = row["name"]
    if "constant" in name:
        x = r.tensor()
        return [x, [r.some((2, 0), (3, r.randrange(4)), (1, -1)) for _ in range(2 * r.randint(0, len(x.size)))], 0.5], {}
    if name == "aten.pad.default":
        x = r.tensor(dtype=FLOATS)
        mode = r.choice(["constant", "constant", "reflect", "replicate"])
        return [x, [r.randrange(3) for _ in range(2 * r.randint(0, len(x.size)))], mode], {}
    n = int(name.split("pad")[1][0])
    x = r.tensor(dtype=FLOATS, size=[r.choice([1, 2, 3, 5]) for _ in range(n + r.choice([1, 2]))])
    return [x, [r.randrange(3) for _ in range(2 * n)]], {}


def scatter_into(r, row):
    name = row["name"].split(".")[1]
    x = r.tensor(min_dim=2 if "diagonal" in name else 1)
    meta = torch.empty(x.size, device="meta")
    dim = r.randrange(len(x.size))
    if "strided" in name:
        x = r.tensor(stride=dense(x.size), size=x.size)
        rest = [x.size, dense(x.size), 0]
        part = x.size
    elif "diagonal" in name:
        a, b = r.sample(range(len(x.size)), 2)
        rest, part = [0, a, b], meta.diagonal(0, a, b).size()
    elif "select" in name:
        if not x.size[dim]:
            return None
        rest, part = [dim, 0], meta.select(dim, 0).size()
    else:
        a, b = sorted([r.randint(0, x.size[dim]), r.randint(0, x.size[dim])])
        rest, part = [dim, a, b, 1], meta.narrow(dim, a, b - a).size()
    return [x, r.tensor(list(part), x.dtype if r.random() < 0.7 else r.dtype()), *rest], {}


def chunk_cat(r, row):
    x = r.tensor(min_dim=1)
    dim = r.randrange(len(x.size))
    tensors = [x]
    for _ in range(r.randrange(3)):
        size = x.size[:dim] + r.size(min_dim=1, max_dim=3)
        tensors.append(r.tensor(size, x.dtype))
    for t in tensors:
        if 1 in t.size:  # lest strides that mean nothing decide
            t.stride = dense(t.size)
    return [tensors, dim, r.randrange(1, 4)], {}


def pixel_shuffle(r, row):
    k = r.randrange(1, 4)
    up = "unshuffle" not in row["name"]
    c, h, w = (r.choice([1, 2, 3]) for _ in range(3))
    size = [c * k * k, h, w] if up else [c, h * k, w * k]
    return [r.tensor(r.size(max_dim=2) + size), k], {}


def meshgrid(r, row):
    tensors = [r.tensor(max_dim=1, dtype="float32") for _ in range(r.randrange(1, 4))]
    return [tensors], {"indexing": r.choice(["xy", "ij"])} if len(row["params"]) > 1 else {}


def broadcast_tensors(r, row):
    size = r.size()
    return [[r.tensor(r.shrink(size)) for _ in range(r.randrange(1, 4))]], {}


def diag(r, row):
    offset = r.randrange(-3, 4)
    if row["name"] == "aten.diag_embed.default":
        x = r.tensor(min_dim=1, max_dim=4)
        a, b = r.sample(range(len(x.size) + 1), 2)
        return r.choice([[x], [x, offset], [x, offset, a, b]]), {}
    return [r.tensor(max_dim=2), offset], {}


class ViewTest(ShapeTest):
    RULES = {
        "view": view, "reshape": view, "flatten": flatten, "unflatten": unflatten,
        "view_dtype": view_dtype, "permute": permute, "transpose": transpose, "reverse_dims": transpose,
        "movedim": movedim, "unsqueeze": unsqueeze, "squeeze": squeeze, "expand": expand,
        "broadcast_in_dim": broadcast_in_dim, "slice": slice_, "narrow": narrow, "narrow_copy": narrow, "roll": roll, "select": select,
        "split": split, "chunk": chunk, "hsplit": even_split, "vsplit": even_split, "dsplit": even_split,
        "unbind": unbind, "as_strided": as_strided, "view_as_real": view_as_real,
        "view_as_complex": view_as_complex, "real": real, "diagonal": diagonal, "unfold": unfold,
        "view_copy": copy, "split_copy": copy,
    }  # fmt: skip
    ROWS = {
        "aten.slice_backward.default": slice_backward,
        "aten.select_backward.default": select_backward,
        "aten.diagonal_backward.default": diagonal_backward,
        "aten.unfold_backward.default": unfold_backward,
        "aten._reshape_alias.default": reshape_alias,
        "aten.sum_to_size.default": sum_to_size,
    }
    SKIP = ("aten.narrow.Tensor",)  # its start is data


class JoinTest(ShapeTest):
    RULES = {
        "cat": cat, "prims_cat": cat, "stack": stack, "hstack": stack, "vstack": stack, "dstack": stack, "column_stack": stack,
        "repeat": repeat, "tile": repeat, "repeat_interleave": repeat_interleave, "pad": pad,
        "scatter_into": scatter_into, "chunk_cat": chunk_cat, "pixel_shuffle": pixel_shuffle,
        "meshgrid": meshgrid, "broadcast_tensors": broadcast_tensors, "diag": diag,
    }  # fmt: skip

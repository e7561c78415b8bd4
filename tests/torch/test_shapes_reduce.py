"""Reductions: what is inferred is what torch gives."""

from shapes import ANY, FLOATS, INTS, ShapeTest, dense

NUMBERS = FLOATS + INTS + ("bool",)


def reduction(dtypes, empty=True):
    """Reads the signature: dim or dims as one int, a list or None, keepdim, dtype."""

    def make(r, row):
        x, args, kwargs = r.tensor(dtype=dtypes), [], {}
        if row["name"] == "aten.trace.default":
            x = r.tensor([r.length(), r.length()], dtypes)
        for p in row["params"]:
            value = None
            if p["name"] in ("self", "inp", "a"):
                value = x
            elif p["name"] in ("dim", "dims"):
                value = r.dim(x)
                if p["depth"]:
                    value = [value] if r.random() < 0.5 else r.sample(
                        range(len(x.size)), r.randrange(0 if empty else 1, len(x.size) + 1) if x.size else 0
                    )  # fmt: skip
                    if not empty and not value:
                        value = [-1]
                if p["optional"] and r.random() < 0.2:
                    value = None
            elif p["name"] in ("dtype", "output_dtype"):
                if p["optional"] and r.random() < 0.5:
                    continue
                value = r.dtype(FLOATS if row["shape"] == "norm" else ANY)
            elif p["name"] in ("keepdim", "unbiased"):
                value = r.random() < 0.5
            elif p["name"] == "correction":
                value = r.choice([0, 1, 0.5])
            elif p["name"] == "k":
                value = 1
            elif p["name"] in ("p", "ord"):
                value = r.choice([1, 2, 0, 3.5, float("inf")])
            if p["kwarg_only"]:
                kwargs[p["name"]] = value
            else:
                args.append(value)
        return args, kwargs

    return make


def norm(r, row):
    """Sizes of 1 only in contiguous tensors: otherwise the layout may be the operand's, and is not
    inferred."""
    args, kwargs = reduction(FLOATS + ("complex64",))(r, row)
    x = args[0]
    if 1 in x.size or not x.size:
        x.stride = dense(x.size)
    return args, kwargs


class ReduceTest(ShapeTest):
    RULES = {
        "reduce": reduction(ANY),
        "mean": reduction(ANY),
        "nansum": reduction(ANY),
        "reduce_same": reduction(NUMBERS),
        "reduce_float": reduction(ANY, empty=False),
        "reduce_any": reduction(ANY), "reduce_bool": reduction(ANY),
        "reduce_pair": reduction(NUMBERS),
        "arg_reduce": reduction(NUMBERS),
        "count": reduction(ANY),
        "aminmax": reduction(NUMBERS),
        "var": reduction(FLOATS + ("complex64", "complex128")),
        "std": reduction(FLOATS + ("complex64", "complex128")),
        "std_mean": reduction(FLOATS + ("complex64", "complex128")),
        "var_mean": reduction(FLOATS + ("complex64", "complex128")),
        "norm": norm,
        "softmax_online": reduction(FLOATS),
    }

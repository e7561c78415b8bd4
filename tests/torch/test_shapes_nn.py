"""Convolutions, pooling, norms, losses, attention: what is inferred is what torch gives.

Where a layout depends on how torch was built or on the kernel chosen at run time, no strides are inferred;
shapes.py lists rows of which such calls are drawn, and they are counted.
"""

import torch
from shapes import FLOATS, ShapeTest, Tensor, dense
from torch._prims_common import suggest_memory_format

LOW = ("float32", "float16", "bfloat16")


def is_last(x):
    t = torch.empty_strided(x.size, x.stride, device="meta")
    return suggest_memory_format(t) != torch.contiguous_format


def is_tidy(x):
    """Strictly contiguous, or without a dimension of size 1."""
    return 1 not in x.size or x.stride == dense(x.size)


def tidy(make):
    """Calls with tidy tensors only."""

    def drawn(r, row):
        args, kwargs = make(r, row)
        return (args, kwargs) if all(is_tidy(x) for x in args if isinstance(x, Tensor)) else None

    return drawn


def image(r, dims, dtype=FLOATS, batched=None, channels=None, least=1):
    """[N, C, spatial...], now and then without N."""
    size = [r.length(), channels or r.choice([1, 2, 3, 4, 6, 16, 20])]
    size += [least + r.randrange(9) for _ in range(dims)]
    if batched is False or (batched is None and r.random() < 0.2):
        size.pop(0)
    return r.tensor(size, dtype)


def spatial(row):
    """The number of spatial dimensions, by the operator's name."""
    return next(int(c) for c in row["name"].rsplit(".", 1)[0].replace("2d3d", "") [::-1] if c in "123")


def numbers(r, n, *among):
    return [r.choice(among) for _ in range(n)]


def extent(r, n, *among):
    """A list of n numbers, or one for all."""
    return [r.choice(among)] if r.random() < 0.15 else numbers(r, n, *among)


# ---- convolutions --------------------------------------------------------------------------------


def wide(x, dims):
    """As torch computes with it: with a batch dimension, and with two spatial dimensions instead of
    one."""
    size, stride = list(x.size), list(x.stride)
    if len(size) == dims + 1:
        size.insert(0, 1), stride.insert(0, size[1] * stride[0])
    if dims == 1:
        size.insert(2, 1), stride.insert(2, size[3] * stride[2])
    return Tensor(x.dtype, size, stride, x.device)


def conv_operands(r, dims, transposed, dtype=FLOATS, batched=True):
    groups = r.choice([1, 1, 1, 2, 3])
    c_in, c_out = groups * r.choice([1, 2, 3, 4]), groups * r.choice([1, 2, 3, 4])
    x = image(r, dims, dtype, batched, c_in, least=5)
    kernel = numbers(r, dims, 1, 2, 3)
    size = [c_in, c_out // groups, *kernel] if transposed else [c_out, c_in // groups, *kernel]
    weight = r.tensor(size, x.dtype)
    bias = r.tensor([c_out], x.dtype) if r.random() < 0.5 else None
    return x, weight, bias, groups


def conv(r, row):
    dims, transposed = r.choice([1, 2, 2, 3]), r.random() < 0.3
    drawn = conv_operands(r, dims, transposed)
    if drawn is None:
        return None
    x, weight, bias, groups = drawn
    lists = [extent(r, dims, 1, 2, 3), extent(r, dims, 0, 1), extent(r, dims, 1, 2)]
    args = [x, weight, bias, *lists, transposed, [0] * dims, groups]
    if row["name"].endswith("_convolution.default"):
        args += [False, False, True, True]
    return args, {}


def conv_nd(r, row):
    dims, transposed = spatial(row), "transpose" in row["name"]
    drawn = conv_operands(r, dims, transposed, batched=None)
    if drawn is None:
        return None
    x, weight, bias, groups = drawn
    stride, padding, dilation = extent(r, dims, 1, 2), extent(r, dims, 0, 1), extent(r, dims, 1, 2)
    if transposed:
        return [x, weight, bias, stride, padding, [0] * dims, groups, dilation], {}
    if row["name"].endswith(".padding"):
        padding = r.choice(["same", "valid"])
        stride = [1] * dims if padding == "same" else stride
    return [x, weight, bias, stride, padding, dilation, groups], {}


def conv_backward(r, row):
    dims = r.choice([1, 2, 2, 3])
    drawn = conv_operands(r, dims, False)
    if drawn is None:
        return None
    x, weight, bias, groups = drawn
    stride, padding = numbers(r, dims, 1, 2), numbers(r, dims, 0, 1)
    out = [x.size[0], weight.size[0]]
    for i in range(dims):
        out.append((x.size[2 + i] + 2 * padding[i] - weight.size[2 + i]) // stride[i] + 1)
    grad = r.tensor(out, x.dtype)
    mask = [r.random() < 0.8 for _ in range(3)]
    bias = [[weight.size[0]]] if "overrideable" not in row["name"] else []
    return [grad, x, weight, *bias, stride, padding, [1] * dims, False, [0] * dims, groups, mask], {}


# ---- pooling -------------------------------------------------------------------------------------


def pool(r, row):
    name = row["name"]
    low = "low_memory" in name
    dims = r.choice([2, 3]) if low else spatial(row)
    x = image(r, dims, batched=True if low else None, least=4)
    kernel, stride = extent(r, dims, 1, 2, 3), extent(r, dims, 1, 2, 3)
    padding = [r.randrange(k // 2 + 1) for k in kernel]
    if low:
        full = [v * dims if len(v) == 1 else v for v in (kernel, stride, padding)]
        return [x, *full, [1] * dims, r.random() < 0.3], {}
    args = [x, kernel, stride if r.random() < 0.7 else [], padding]
    if "max" in name:
        args.append(numbers(r, 1, 1, 1, 2))
    args.append(r.random() < 0.4)
    return args, {}


def pool_offsets(r, row):
    x = image(r, 2, "int8", batched=True)
    return [x, [3, 3], [20, 20], [2, 2], [1, 1], [1, 1]], {}


def adaptive_pool(r, row):
    dims = spatial(row)
    return [image(r, dims), numbers(r, dims, 1, 2, 3, 4)], {}


def upsample(r, row):
    dims = spatial(row)
    x = image(r, dims, batched=True)
    if row["name"].endswith(".vec"):
        args = [x, numbers(r, dims, 1, 3, 8), None]
        if r.random() < 0.6:
            args[1:] = [None, [r.choice([0.5, 1.0, 1.7, 2.0, 3.3]) for _ in range(dims)]]
        if any(p["name"] == "align_corners" for p in row["params"]):
            args.insert(2, r.random() < 0.5)
        return args, {}
    args = [x, numbers(r, dims, 1, 3, 8)]
    if any(p["name"] == "align_corners" for p in row["params"]):
        args.append(r.random() < 0.5)
    return args, {}


def upsample_linear(r, row):
    """Without sizes of 1, except in a contiguous tensor."""
    args, kwargs = upsample(r, row)
    x, size = args[:2]
    if size is None:
        size = [int(n * f) for n, f in zip(x.size[2:], args[-1])]
    ones = 1 in size or 1 in x.size
    return None if ones and x.stride != dense(x.size) else (args, kwargs)


def upsample_backward(r, row):
    dims = spatial(row)
    grad = image(r, dims, batched=True)
    args = [grad, grad.size[2:], [*grad.size[:2], *numbers(r, dims, 1, 3, 8)]]
    if any(p["name"] == "align_corners" for p in row["params"]):
        args.append(r.random() < 0.5)
    return args, {}


def grid_sampler(r, row):
    dims = r.choice([2, 3]) if row["name"] == "aten.grid_sampler.default" else spatial(row)
    x = image(r, dims, batched=True)
    grid = r.tensor([x.size[0], *numbers(r, dims, 1, 2, 5), dims], x.dtype)
    if 1 in grid.size or 1 in x.size:
        x.stride, grid.stride = dense(x.size), dense(grid.size)
    return [x, grid, r.randrange(2), r.randrange(3), r.random() < 0.5], {}


# ---- norms ---------------------------------------------------------------------------------------


def maybe(r, *args):
    return r.tensor(*args) if r.random() < 0.7 else None


def layer_norm(r, row):
    x = r.tensor(dtype=FLOATS, min_dim=1)
    shape = x.size[r.randrange(len(x.size)) :]
    dtype = x.dtype if r.random() < 0.7 else torch.float32
    weight = maybe(r, shape, dtype)
    if "rms" in row["name"]:
        return [x, shape, weight, r.choice([None, 1e-5])], {}
    return [x, shape, weight, r.tensor(shape, dtype) if weight else None, 1e-5], {}


def layer_norm_backward(r, row):
    rms = "rms" in row["name"]
    x = r.tensor(dtype=FLOATS, min_dim=1)
    n = r.randrange(1, len(x.size) + 1)
    shape = x.size[-n:]
    stat = [*x.size[:-n], *[1] * n]
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    dtype = x.dtype if r.random() < 0.7 else torch.float32
    weight = maybe(r, shape, dtype)
    args = [r.tensor(x.size, x.dtype), x, shape]
    args += [r.tensor(stat, wide) for _ in range(1 if rms else 2)] + [weight]
    if not rms:
        args.append(r.tensor(shape, dtype) if weight else None)
    mask = [r.random() < 0.8 for _ in range(2 if rms else 3)]
    return [*args, mask], {}


def group_norm(r, row):
    groups = r.choice([1, 2, 3])
    channels = groups * r.choice([1, 2, 4])
    x = image(r, r.choice([1, 2, 2, 3]), batched=True, channels=channels)
    pixels = 1
    for n in x.size[2:]:
        pixels *= n
    dtype = x.dtype if r.random() < 0.7 else torch.float32
    numbers_ = [x.size[0], channels, pixels, groups]
    if not row["name"].endswith("backward.default"):
        return [x, maybe(r, [channels], dtype), maybe(r, [channels], dtype), *numbers_, 1e-5], {}
    size = [x.size[0], groups]
    stat = [r.tensor(size, x.dtype, stride=dense(size)) for _ in range(2)]
    mask = [r.random() < 0.8 for _ in range(3)]
    return [r.tensor(x.size, x.dtype), x, *stat, maybe(r, [channels], x.dtype), *numbers_, mask], {}


def batch_norm(r, row):
    x = r.tensor(dtype=FLOATS, min_dim=2)
    dtype = x.dtype if r.random() < 0.6 else torch.float32
    vector = lambda: r.tensor([x.size[1]], dtype)  # noqa: E731
    args = []
    for p in row["params"]:
        name = p["name"]
        if name == "input":
            value = x
        elif name in ("grad_out", "grad_output"):
            value = r.tensor(x.size, x.dtype)
        elif name in ("training", "train", "update"):
            value = r.random() < 0.5
        elif name == "output_mask":
            value = [r.random() < 0.8 for _ in range(3)]
        elif name in ("reserve", "reserveSpace"):
            value = r.tensor([0], "uint8")
        elif name in ("momentum", "eps", "epsilon", "exponential_average_factor"):
            value = 0.1
        else:
            value = vector()
        args.append(value)
    return args, {}


def softmax(r, row):
    x = r.tensor(dtype=FLOATS)
    args = [x, r.dim(x)]
    if any(p["name"] == "half_to_float" for p in row["params"]):
        args.append(x.dtype == torch.float16 and r.device != "cpu" and r.random() < 0.5)
    elif r.random() < 0.5:
        args.append(r.dtype(FLOATS))
    return args, {}


def softmax_backward(r, row):
    x = r.tensor(dtype=FLOATS)
    out = r.tensor(x.size, x.dtype, stride=x.stride if r.random() < 0.5 else None)
    half = x.dtype == torch.float32 and r.device != "cpu" and r.random() < 0.5
    return [x, out, r.dim(x), torch.float16 if half else x.dtype], {}


def weight_norm(r, row):
    size = r.size(min_dim=2, max_dim=4)
    v = r.tensor(size, ("float32", "float64", "bfloat16"), stride=dense(size))
    dim = r.among(0, len(v.size) - 1)
    one = [n if i == dim else 1 for i, n in enumerate(v.size)]
    g = r.tensor(one, v.dtype, stride=dense(one))
    if "backward" not in row["name"]:
        return [v, g, dim], {}
    return [r.tensor(v.size, v.dtype), v, g, r.tensor(g.size, v.dtype), dim], {}


def nll_loss(r, row):
    if "2d" in row["name"]:
        x = image(r, 2, batched=True)
        target = r.tensor([x.size[0], *x.size[2:]], "int64")
        channels = x.size[1]
    else:
        x = r.tensor(dtype=FLOATS, min_dim=1, max_dim=2)
        target, channels = r.tensor(x.size[:-1], "int64"), x.size[-1]
    return [x, target, maybe(r, [channels], x.dtype), r.randrange(3), -100], {}


def nll_loss2d_backward(r, row):
    args, _ = nll_loss(r, row)
    x, target, reduction = args[0], args[1], args[3]
    grad = r.tensor(target.size if reduction == 0 else [], x.dtype)
    return [grad, *args, r.tensor([], x.dtype)], {}


def loss(r, row):
    x = r.tensor(dtype=FLOATS)
    one_dtype = r.random() < 0.6
    target = r.tensor(x.size if r.random() < 0.6 else r.grow(x.size), x.dtype if one_dtype else FLOATS)
    args = [x, target]
    for p in row["params"][2:]:
        if p["kwarg_only"]:
            continue
        if p["name"] == "reduction":
            args.append(r.randrange(3))
        elif p["name"] in ("delta", "beta"):
            args.append(0.5)
        else:
            args.append(maybe(r, r.shrink(x.size), x.dtype))
    return args, {}


def loss_steps(r, row):
    """Of one layout, or reduced."""
    args, kwargs = loss(r, row)
    x, target = args[:2]
    reduction = args[[p["name"] for p in row["params"]].index("reduction")]
    if reduction == 0:
        target.size, target.stride = x.size, x.stride = x.size, dense(x.size, r.sample(range(len(x.size)), len(x.size)))
        for i, other in enumerate(args[2:], 2):
            if isinstance(other, Tensor):
                args[i] = None
    return (args, kwargs) if reduction or is_tidy(x) else None


# ---- attention -----------------------------------------------------------------------------------


def heads(r, size, dtype, layout=None):
    """[B, H, L, E], with the heads before or after the length in memory, or in any other layout."""
    layout = layout or r.choice(["plain", "inside", "any", "padded"])
    if layout == "any":
        return r.tensor(size, dtype)
    order = [0, 2, 1, 3] if layout == "inside" else [0, 1, 2, 3]
    whole = [*size[:3], size[3] + 8] if layout == "padded" else size
    return r.tensor(size, dtype, stride=dense(whole, order))


def qkv(r, dtype=LOW, value_width=False):
    b, h, q, k = r.choice([1, 2, 3]), r.choice([1, 2, 3]), r.choice([1, 5, 16, 33]), r.choice([1, 7, 16, 140, 300])
    e = 8 * r.choice([1, 2, 5, 9])
    v = 8 * r.choice([1, 2, 5]) if value_width and r.random() < 0.4 else e
    dtype = r.dtype(dtype)
    return [heads(r, s, dtype) for s in ([b, h, q, e], [b, h, k, e], [b, h, k, v])]


def sdpa_forward(r, row):
    name = row["name"]
    half = ("float16", "bfloat16")
    if "efficient" in name:
        args = qkv(r, LOW, True)
        return [*args, None, r.random() < 0.5, 0.0, r.random() < 0.5], {}
    if "cudnn" in name:
        q, k, v = qkv(r, half, True)
        if q.stride != dense(q.size) and len({*q.stride} - {0}) < 4:
            return None
        return [q, k, v, None, r.random() < 0.5, 0.0, r.random() < 0.5, False], {}
    if "for_cpu" in name:
        return [*qkv(r, (*LOW, "float64")), 0.0, r.random() < 0.5], {}
    args = qkv(r, half)
    debug = args[1].size[2] <= 256 and r.random() < 0.3
    return [*args, r.choice([0.0, 0.1]), r.random() < 0.5, debug], {}


def sdpa_math(r, row):
    return [*qkv(r, FLOATS, True), None, 0.0, r.random() < 0.3], {}


def sdpa(r, row):
    if r.device != "cpu":
        return None
    q, k, v = qkv(r, FLOATS, True)
    q = heads(r, q.size, q.dtype, "plain")
    return [q, k, v, None, 0.0, r.random() < 0.3], {}


def sdpa_backward(r, row):
    name = row["name"]
    q, k, v = qkv(r, LOW)
    out, grad = heads(r, q.size, q.dtype), heads(r, q.size, q.dtype)
    lse, one = r.tensor(q.size[:3], "float32"), r.tensor([], "int64")
    lengths = [q.size[2], k.size[2]]
    if "efficient" in name:
        bias = r.tensor([*q.size[:3], k.size[2]], q.dtype) if r.random() < 0.5 else None
        mask = [True, True, True, bias is not None and r.random() < 0.8]
        return [grad, q, k, v, bias, out, lse, one, one, 0.0, mask], {}
    if "cudnn" in name:
        return [grad, q, k, v, out, lse, one, one, None, None, None, *lengths, 0.0, True], {}
    if "for_cpu" in name:
        return [grad, q, k, v, out, lse, 0.0, True], {}
    return [grad, q, k, v, out, lse, None, None, *lengths, 0.0, True, one, one], {}


class ConvTest(ShapeTest):
    RULES = {"conv": conv, "conv_nd": conv_nd, "conv_backward": conv_backward}


class PoolTest(ShapeTest):
    RULES = {
        "pool": pool,
        "pool_pair": pool,
        "pool_low": pool,
        "pool_offsets": tidy(pool_offsets),
        "adaptive_pool": adaptive_pool,
        "adaptive_pool_pair": adaptive_pool,
        "upsample": upsample,
        "upsample_packed": upsample,
        "upsample_linear": upsample_linear,
        "upsample_backward": upsample_backward,
        "upsample_backward_plain": upsample_backward,
        "grid_sampler": grid_sampler,
    }


class NormTest(ShapeTest):
    RULES = {
        "layer_norm": tidy(layer_norm),
        "rms_norm": tidy(layer_norm),
        "layer_norm_backward": tidy(layer_norm_backward),
        "rms_norm_backward": tidy(layer_norm_backward),
        "group_norm": tidy(group_norm),
        "group_norm_backward": tidy(group_norm),
        "batch_norm": tidy(batch_norm),
        "batch_norm_eval": tidy(batch_norm),
        "batch_norm_library": tidy(batch_norm),
        "batch_norm_backward": tidy(batch_norm),
        "softmax": softmax,
        "log_softmax": tidy(softmax),
        "softmax_backward": tidy(softmax_backward),
        "log_softmax_backward": tidy(softmax_backward),
        "nll_loss": tidy(nll_loss),
        "nll_loss2d_backward": tidy(nll_loss2d_backward),
        "weight_norm": tidy(weight_norm),
        "weight_norm_backward": tidy(weight_norm),
        "loss": loss,
        "loss_steps": loss_steps,
        "loss_logits": loss_steps,
    }


class AttentionTest(ShapeTest):
    RULES = {
        "sdpa": sdpa,
        "sdpa_flash": sdpa_forward,
        "sdpa_efficient": sdpa_forward,
        "sdpa_cudnn": sdpa_forward,
        "sdpa_flash_cpu": sdpa_forward,
        "sdpa_math": sdpa_math,
        "sdpa_backward": sdpa_backward,
        "sdpa_backward_cpu": sdpa_backward,
        "sdpa_efficient_backward": sdpa_backward,
    }

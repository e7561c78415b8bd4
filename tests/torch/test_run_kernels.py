"""Every kernel against torch, on the calls that the tests of shapes draw, with data.

KERNELS_ROWS=re: only rows whose name matches; KERNELS_CALLS=n: more calls of each.
"""

import importlib
import itertools
import os
import re
import unittest

import torch

import kernels
import test_run_random
import test_shapes_nn
from harness import HERE, some
from shapes import Tensor, dense, rows

CALLS = int(os.environ.get("KERNELS_CALLS", "10"))
ONLY = os.environ.get("KERNELS_ROWS", "")

EXACT = set("""copy copy_from full scalar_tensor zeros ones iota eye tril triu cat stack slice_scatter select_scatter pad
    repeat flip index embedding gather scatter index_select index_copy index_fill sort sort_stable max_dim min_dim argmax argmin amax
    amin""".split())  # kernels whose floats are exact
INDEXED = set("""index index_put masked_index_put embedding embedding_backward gather scatter scatter_add scatter_reduce
    scatter_op index_select index_add index_copy index_fill nll_loss nll_loss_backward max_pool_backward""".split())  # integers are indices
UNDEFINED = {"empty", "bucket_all_gather", "pool_indices"}  # other ranks' parts; offsets beyond the window


def not_compared(case):
    """Where torch's own result is no reference."""
    twice = case.row["name"] == "prims._unsafe_index_put_.default" and case.args[3]  # torch 2.13 adds twice
    views = case.row["name"] == "fsdp.all_gather_copy_in.default"  # its results are views of an operand
    # Of operands of other sizes torch 2.13 computes as many elements as the result has; its own callers never have such.
    apart = case.row["kernel"] == "bce_loss_backward" and case.args[1].shape != case.args[2].shape
    # It selects in a copy that overlaps where the operand does.
    mixed = case.row["kernel"] in {"median_dim", "kthvalue"} and kernels.overlaps(case.args[0])
    # Of 32 elements and more torch 2.13 mixes up the halves of vectors of 16-bit floats.
    halves = case.row["kernel"] == "fused_sgd" and any(t.element_size() == 2 for t in case.args[0])
    return case.row["kernel"] in UNDEFINED or twice or views or apart or mixed or halves


PLAIN = set("""cdist cdist_backward multi_margin_loss multi_margin_loss_backward softmax log_softmax softmax_backward log_softmax_backward softmax_online grid_sampler grid_sampler_backward layer_norm layer_norm_backward
    rms_norm rms_norm_backward batch_norm batch_norm_eval batch_norm_backward nll_loss nll_loss_backward convolution
    convolution_backward upsample_linear upsample_linear_backward upsample_cubic upsample_cubic_backward elu_backward fake_quantize fake_quantize_channels fused_sgd fused_adam fused_adamw group_norm group_norm_backward std_mean""".split())  # kernels that get no NaNs and infinities
VIEWS = {"aten._conj.default", "aten.conj.default"}  # torch only marks the operand: tests/golden/run
NOT_ON_CPU = {"aten._fused_rms_norm_backward.default"}  # torch has it for GPUs only: test_rms_backward
# torch takes the last dimension for dense, whatever its stride, and drawn logarithms belong to no call: test_attention
OWN_TEST = {"attention_cpu", "attention_cpu_backward", "scaled_mm"}
ON_GPUS = {f"attention_{form}{way}" for form in ("flash", "efficient", "cudnn") for way in ("", "_backward")}
LEAST = 5  # calls of every row that torch takes


def dense_group_norm(r, row):
    """torch reads weights and gradients of group norm as if they were contiguous."""
    args, kwargs = test_shapes_nn.group_norm(r, row)
    for t in args:
        if isinstance(t, Tensor):
            t.stride = dense(t.size)
    return args, kwargs


def float_tensor(r, size, dtype=None):
    return Tensor(dtype or r.choice([torch.float32, torch.float64, torch.bfloat16]), size, dense(size), "cpu")


def log_sigmoid_backward(r, row):
    """The last operand is what the way forth kept."""
    x = float_tensor(r, [r.randint(1, 4) for _ in range(r.randint(0, 3))])
    return [float_tensor(r, x.size, x.dtype), x, float_tensor(r, x.size, x.dtype)], {}


def glu_backward(r, row):
    """Halves along any dimension."""
    size = [r.randint(1, 4) for _ in range(r.randint(1, 3))]
    dim = r.randrange(-len(size), len(size))
    grad = float_tensor(r, size)
    size = list(size)
    size[dim] *= 2
    return [grad, float_tensor(r, size, grad.dtype), dim], {}


def log_sigmoid_forward(r, row):
    return [float_tensor(r, [r.randint(1, 4) for _ in range(r.randint(0, 3))])], {}


def int_mm(r, row):
    """torch's own product of 8-bit integers takes contiguous matrices only, or it may crash."""
    a, b, c = 17 + r.randint(0, 9), 8 * r.randint(1, 3), 8 * r.randint(1, 3)
    return [Tensor(torch.int8, size, dense(size), "cpu") for size in ([a, b], [b, c])], {}


def without_statistics(r, row):
    """Training: torch crashes if there are no statistics to use."""
    args, kwargs = test_shapes_nn.batch_norm(r, row)
    args[3] = True
    return args, kwargs


def prelu_backward(r, row):
    size = [r.randint(1, 4) for _ in range(r.randint(2, 4))]
    dtype = r.choice([torch.float32, torch.float64])
    return [float_tensor(r, n, dtype) for n in (size, size, [1, size[1], *[1] * (len(size) - 2)])], {}


def channel_shuffle(r, row):
    groups = r.randint(1, 3)
    size = [r.randint(1, 3), groups * r.randint(1, 3), *[r.randint(1, 4) for _ in range(r.randint(1, 2))]]
    return [r.tensor(size), groups], {}


def bincount(r, row):
    n = r.randint(0, 9)
    weights = r.choice([None, float_tensor(r, [n], torch.float64)])
    return [Tensor(torch.int64, [n], (1,), "cpu"), weights, r.randint(0, 5)], {}


def fake_quantize(r, row):
    """By one step for all, or by one for each channel."""
    x, one = float_tensor(r, [2, 3, 4], torch.float32), []
    if "channel" in row["name"]:
        axis = r.randrange(3)
        return [x, *[Tensor(t, [x.size[axis]], (1,), "cpu") for t in (torch.float32, torch.int32)], axis, -8, 7], {}
    if "tensor_qparams" in row["name"]:
        return [x, *[Tensor(t, one, (), "cpu") for t in (torch.float32, torch.int32, torch.int64)], -8, 7], {}
    return [x, r.choice([0.05, 0.5]), r.choice([0, 3]), -8, 7], {}


def quantized(args):
    """Steps that are none of 0, zeros in the middle."""
    if isinstance(args[1], torch.Tensor):
        args[1].copy_(args[1].nan_to_num(1, 1, 1).abs().clamp(0.01, 1))
        args[2].remainder_(5)
        if isinstance(args[3], torch.Tensor):
            args[3].fill_(args[3] % 2)


def amp(r, row):
    if "update" in row["name"]:
        f = [Tensor(torch.float32, [], (), "cpu") for _ in range(2)]
        return [f[0], Tensor(torch.int32, [], (), "cpu"), f[1], 2.0, 0.5, 4], {}
    size = [r.randint(1, 5)]
    dtype = r.choice([torch.float32, torch.float64, torch.bfloat16])
    return [[float_tensor(r, size, dtype) for _ in range(2)], *[Tensor(torch.float32, [1], (1,), "cpu") for _ in range(2)]], {}


def amp_state(args):
    """A scale, steps since it grew, and whether something was not finite."""
    args[0].copy_(args[0].nan_to_num(2, 2, 2).abs() + 1)
    args[1].remainder_(4)
    args[2].copy_((args[2] > 0).float())


def amp_scale(args):
    args[1].zero_()
    args[2].copy_(args[2].nan_to_num(1, 1, 1).abs() + 0.5)


def windows(args):
    """Places that are in the plane."""
    plane = args[1].size(-1) * args[1].size(-2)
    torch.empty(0, dtype=torch.int64).set_(args[2].untyped_storage()).remainder_(max(1, plane))


def pooled3(r, row):
    """Volumes; on the way back also what the way there gave."""
    dtype, most = r.choice([torch.float32, torch.float64, torch.bfloat16]), "max" in row["name"]
    x = [r.randint(1, 2), r.randint(1, 2), *[r.randint(3, 6) for _ in range(3)]]
    window, padding, dilation = [r.randint(1, 3) for _ in range(3)], [0, 0, 0], [1, 1, 1]
    stride = [r.randint(1, 2) for _ in range(3)]
    if "adaptive" in row["name"]:
        out, rest = [r.randint(1, 4) for _ in range(3)], []
    else:
        padding = [r.randint(0, n // 2) for n in window]
        dilation = [r.randint(1, 2) if n == 2 and most else 1 for n in window]
        ways = zip(x[2:], window, stride, padding, dilation)
        out = [(n + 2 * p - d * (w - 1) - 1) // s + 1 for n, w, s, p, d in ways]
        rest = [dilation, False] if most else [False, r.random() < 0.5, r.choice([None, 3])]
        rest = [window, stride, padding, *rest]
    if "backward" not in row["name"]:
        return [float_tensor(r, x, dtype), *(rest or [out])], {}
    args = [float_tensor(r, x[:2] + out, dtype), float_tensor(r, x, dtype), *rest]
    return args + ([Tensor(torch.int64, x[:2] + out, dense(x[:2] + out), "cpu")] if most else []), {}


def folded(r, row):
    """Windows of an image, as many as there are."""
    size, window = [r.randint(3, 6) for _ in range(2)], [r.randint(1, 2) for _ in range(2)]
    dilation, padding, stride = ([r.randint(low, low + 1) for _ in range(2)] for low in (1, 0, 1))
    many = [(n + 2 * p - d * (w - 1) - 1) // s + 1 for n, w, d, p, s in zip(size, window, dilation, padding, stride)]
    planes, dtype = r.randint(1, 3), r.choice([torch.float32, torch.float64, torch.bfloat16])
    lead = [r.randint(1, 2)] if r.random() < 0.7 else []
    if "im2col" in row["name"]:
        return [float_tensor(r, [*lead, planes, *size], dtype), window, dilation, padding, stride], {}
    x = float_tensor(r, [*lead, planes * window[0] * window[1], many[0] * many[1]], dtype)
    return [x, size, window, dilation, padding, stride], {}


def sampled(r, row):
    n, c, h, w, y, x = (r.randint(1, 4) for _ in range(6))
    dtype = r.choice([torch.float32, torch.float64])  # torch computes places in the dtype of the image
    args = [float_tensor(r, size, dtype) for size in ([n, c, y, x], [n, c, h, w], [n, y, x, 2])]
    rest = [r.randint(0, 1), r.randint(0, 2), r.random() < 0.5]
    return ([*args, *rest, [True, True]] if "backward" in row["name"] else [*args[1:], *rest]), {}


def bag(r, row):
    """Bags of growing offsets, which offsets_of_bags() makes."""
    rows, width, n, bags = r.randint(1, 5), r.randint(1, 4), r.randint(0, 7), r.randint(1, 3)
    dtype, mode = r.choice([torch.float32, torch.float64]), r.randint(0, 2)
    ints = [Tensor(torch.int64, [k], (1,), "cpu") for k in (n, bags)]
    weights = float_tensor(r, [n], dtype) if mode == 0 and r.random() < 0.5 else None
    if "backward" not in row["name"]:
        return [float_tensor(r, [rows, width], dtype), *ints, False, mode, False, weights, False, r.choice([-1, 0])], {}
    mode = r.randint(0, 1)
    rest = [Tensor(torch.int64, [k], (1,), "cpu") for k in (n, bags, bags)]
    grad = float_tensor(r, [bags, width], dtype)
    return [grad, *ints, *rest, rows, False, mode, False, weights if mode == 0 else None, -1], {}


def offsets_of_bags(args):
    indices, off = args[1], args[2]
    rows = args[6] if isinstance(args[6], int) else args[0].size(0)
    indices.remainder_(rows)
    off.copy_(off.remainder(indices.numel() + 1).sort().values)
    off[0] = 0
    if isinstance(args[6], int):
        ends = torch.cat([off[1:], torch.tensor([indices.numel()])])
        args[4].copy_(ends - off)
        args[3].copy_(torch.repeat_interleave(torch.arange(off.numel()), ends - off))


def volumes(args):
    """Places that are in the volume."""
    args[7].remainder_(args[1][0, 0].numel())


def diagonal_blocks(r, row):
    dtype = r.choice([torch.float32, torch.int64, torch.bool, torch.complex64])
    size = lambda: [r.randint(0, 3) for _ in range(r.randint(0, 2))]
    return [[Tensor(dtype, s, dense(s), "cpu") for s in (size() for _ in range(r.randint(1, 3)))]], {}


def crossed(r, row):
    size, dtype = [r.randint(1, 3) for _ in range(r.randint(1, 3))], r.choice([torch.float32, torch.float64, torch.bfloat16])
    dim = r.randrange(len(size))
    size[dim] = 3
    return [float_tensor(r, size, dtype), float_tensor(r, size, dtype)], {"dim": dim}


def triangle(r, row):
    return [r.randint(0, 5), r.randint(0, 5), r.randint(-3, 3)], {}


def reduced_slices(r, row):
    size, dtype = [r.randint(1, 4) for _ in range(r.randint(1, 3))], r.choice([torch.float32, torch.float64, torch.int64])
    dim, n = r.randrange(len(size)), r.randint(1, 5)
    src = size[:dim] + [n] + size[dim + 1 :]
    x, y = (Tensor(dtype, s, dense(s), "cpu") for s in (size, src))
    return [x, dim, Tensor(torch.int64, [n], (1,), "cpu"), y, r.choice(["prod", "mean", "amax", "amin"])], {"include_self": r.random() < 0.5}


def slices_of(args):
    args[2].remainder_(args[0].size(args[1]))


def distances(r, row):
    lead, n, m, width = [r.randint(1, 2) for _ in range(r.randint(0, 2))], *(r.randint(1, 4) for _ in range(3))
    dtype, p = r.choice([torch.float32, torch.float64]), r.choice([0.0, 1.0, 1.5, 2.0, 3.0, float("inf")])
    x, y, each = (float_tensor(r, [*lead, *size], dtype) for size in ([n, width], [m, width], [n, m]))
    if "forward" in row["name"]:
        return [x, y, p, r.choice([None, 1, 2])], {}
    return [each, x, y, p, float_tensor(r, [*lead, n, m], dtype)], {}


def their_distances(args):
    args[4].copy_(torch.cdist(args[1], args[2], args[3]))


def margins(r, row):
    n, classes, dtype, reduction = r.randint(1, 4), r.randint(1, 5), r.choice([torch.float32, torch.float64]), r.randint(0, 2)
    x, target = float_tensor(r, [n, classes], dtype), Tensor(torch.int64, [n], (1,), "cpu")
    weight = r.choice([None, float_tensor(r, [classes], dtype)])
    args = [x, target, r.randint(1, 2), r.choice([1, 0.5]), weight, reduction]
    return ([float_tensor(r, [n] if reduction == 0 else [], dtype)] if "backward" in row["name"] else []) + args, {}


# row -> generator, where that of the shapes does not give useful data, or there is none
ROWS = dict.fromkeys(("aten.native_group_norm.default", "aten.native_group_norm_backward.default"), dense_group_norm)
ROWS |= {"aten.log_sigmoid_backward.default": log_sigmoid_backward, "aten.glu_backward.default": glu_backward, "aten.log_sigmoid_forward.default": log_sigmoid_forward}
ROWS |= {"aten._native_batch_norm_legit.no_stats": without_statistics, "aten._int_mm.default": int_mm, "aten._prelu_kernel_backward.default": prelu_backward, "aten.channel_shuffle.default": channel_shuffle, "aten.bincount.default": bincount}
ROWS |= dict.fromkeys(("aten._amp_foreach_non_finite_check_and_unscale_.default", "aten._amp_update_scale_.default"), amp)
ROWS |= {f"aten.{name}.default": fake_quantize for name in ("fake_quantize_per_tensor_affine_cachemask", "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", "fake_quantize_per_channel_affine_cachemask")}


ROWS |= {f"aten.{name}.default": pooled3 for name in ("max_pool3d_with_indices", "max_pool3d_with_indices_backward", "avg_pool3d", "avg_pool3d_backward", "_adaptive_avg_pool3d", "_adaptive_avg_pool3d_backward")}
ROWS |= {f"aten.{name}.default": make for make, names in {folded: "im2col col2im", sampled: "grid_sampler_2d grid_sampler_2d_backward", bag: "_embedding_bag _embedding_bag_forward_only _embedding_bag_backward", triangle: "tril_indices triu_indices", reduced_slices: "index_reduce index_reduce_", diagonal_blocks: "block_diag", distances: "_cdist_forward _cdist_backward", margins: "multi_margin_loss multi_margin_loss_backward", crossed: "linalg_cross"}.items() for name in names.split()}


def offsets(args):
    """Groups that grow."""
    if args[2] is not None:
        a, b = args[0], args[1]
        most = a.size(0) if b.dim() == 3 else a.size(-1) if a.dim() == 2 else b.size(-1)
        n = args[2].numel()
        args[2].copy_(torch.tensor([most * (i + 1) // n for i in range(n)]))


def targets(args):
    """Classes that there are: torch writes anywhere for others."""
    for x, t in zip(args, args[1:]):
        if isinstance(t, torch.Tensor) and t.dtype == torch.int64:
            torch.empty(0, dtype=t.dtype).set_(t.untyped_storage()).remainder_(max(1, x.size(min(1, x.dim() - 1))))
            return


def buffers(args):
    """What the way forth kept."""
    args[2].copy_(args[1].abs().neg().exp())


def sorted_lines(args):
    """Lines in order, where they can be written."""
    for t in args[:2]:
        if t.dim() and not kernels.overlaps(t):
            t.copy_(t.sort(-1).values)


ALTER = {"cdist_backward": their_distances, "multi_margin_loss": targets, "multi_margin_loss_backward": targets, "embedding_bag": offsets_of_bags, "embedding_bag_backward": offsets_of_bags, "max_pool3_backward": volumes, "index_reduce": slices_of, "fake_quantize": quantized, "fake_quantize_channels": quantized, "amp_unscale": amp_scale, "amp_update": amp_state, "adaptive_max_pool_backward": windows, "log_sigmoid_backward": buffers, "searchsorted": sorted_lines, "bucketize": sorted_lines, "grouped_mm": offsets, "nll_loss": targets, "nll_loss_backward": targets}  # kernel -> function that makes operands meaningful
SCALE = {}  # kernel -> factor of the tolerance


def generators():
    """row -> generator of a call, from the tests of shapes."""
    found = {}
    for path in sorted(HERE.glob("test_shapes_*.py")):
        for kind in vars(importlib.import_module(path.stem)).values():
            if hasattr(kind, "rows_compared") and getattr(kind, "__module__", "") == path.stem and hasattr(kind, "generators"):
                for name, make in kind("test_rows").generators().items():
                    found.setdefault(name, make)
    return found


class KernelTest(unittest.TestCase):
    def test_rows(self):
        makers, missing = generators(), []
        wanted = [row for row in rows().values() if row["kernel"] not in {"none", *OWN_TEST, *ON_GPUS, *test_run_random.KERNELS} and re.search(ONLY, row["name"])]
        drawn = []
        for row in wanted:
            name, kernel = row["name"], row["kernel"]
            make = ROWS.get(name) or makers.get(name)
            if make is None:
                missing.append(name)
                continue
            cases = kernels.draw(row, make, CALLS, plain=kernel in PLAIN, indices=kernel in INDEXED, alter=ALTER.get(kernel))
            if len(cases) < LEAST and name not in NOT_ON_CPU | VIEWS:
                missing.append(f"{name}: {len(cases)} calls")
            drawn += cases
        said = {}
        for case, answer in zip(drawn, kernels.run_cases(drawn)):
            kernel = case.row["kernel"]
            if not_compared(case):
                continue
            what = kernels.judge(case, answer, kernel in EXACT, SCALE.get(kernel, 1.0))
            if what:
                said.setdefault(f"{case.row['name']} ({kernel})", []).append(what)
        calls = len(drawn)
        complaints = [f"{name}: {len(list_)} differ\n    " + "\n    ".join(list_[:3]) for name, list_ in said.items()]
        print(f"KernelTest: {calls} calls of {len(wanted)} rows")
        self.assertFalse(complaints, some(complaints, 200))
        self.assertFalse(missing, "rows with a kernel that no generator makes calls of: " + some(missing, 40))

    def test_attention(self):
        """Heads that share keys, more keys than queries, a mask, halves; the backward of the forward's results."""
        ops = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        back = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
        f32, f64, bf16 = torch.float32, torch.float64, torch.bfloat16
        for batch, heads, shared, n, keys, width, causal, dtype, masked in (
            (2, 2, 2, 8, 8, 4, True, f32, False), (2, 2, 1, 8, 8, 4, True, f32, False), (1, 4, 2, 5, 7, 4, False, f64, False),
            (2, 4, 4, 6, 6, 8, False, f32, True), (2, 4, 4, 6, 6, 8, True, bf16, False), (1, 6, 2, 9, 9, 3, True, f32, False),
        ):  # fmt: skip
            q, k, v = (torch.randn(batch, h, m, width, dtype=dtype) for h, m in ((heads, n), (shared, keys), (shared, keys)))
            mask = {"attn_mask": torch.randn(batch, 1, n, keys, dtype=dtype) if masked else None}
            out, lse = ops.default(q, k, v, 0.0, causal, **mask)
            grad = torch.randn_like(out)
            for op, args in ((ops, [q, k, v, 0.0, causal]), (back, [grad, q, k, v, out, lse, 0.0, causal])):
                case = kernels.make_case(rows()[f"aten.{op.__name__}.default"], op.default, args, mask)
                self.assertIsNone(kernels.judge(case, kernels.run_cases([case])[0], False, 4.0))

    def test_attention_on_gpus(self):
        """The forms that torch has for GPUs only, against the formula and the gradients that autograd finds."""
        for form, (n, keys), causal, biased, dtype in itertools.product(
            ("flash", "efficient", "cudnn"), ((6, 6), (5, 7)), (False, True), (False, True), (torch.float32, torch.bfloat16)
        ):
            if form == "flash" and biased:
                continue
            wide = torch.float32
            q, k, v = (torch.randn(2, 3, m, 4, dtype=dtype).to(wide).requires_grad_() for m in (n, keys, keys))
            bias = torch.randn(2, 1, n, keys, dtype=dtype) if biased else None
            scores = q @ k.transpose(-1, -2) / 2 + (bias.to(wide) if biased else 0)
            if causal:
                scores = scores.masked_fill(torch.ones(n, keys, dtype=torch.bool).triu(1), -torch.inf)
            lse = torch.logsumexp(scores, -1)
            out = scores.softmax(-1) @ v
            grad = torch.randn_like(out).to(dtype)
            grads = [g.to(dtype) for g in torch.autograd.grad(out, (q, k, v), grad.to(wide))]
            q, k, v, out = (t.detach().to(dtype) for t in (q, k, v, out))
            sums = lse.detach()
            if form == "efficient":
                sums = torch.nn.functional.pad(sums, (0, -n % 32))
            elif form == "cudnn":
                sums = sums.unsqueeze(-1)
            self.check_gpu(form, q, k, v, bias, causal, out, sums, grad, grads)

    def check_gpu(self, form, q, k, v, bias, causal, out, sums, grad, grads):
        seed = torch.zeros((), dtype=torch.int64)
        n, keys = q.size(2), k.size(2)
        if form == "flash":
            there = [q, k, v, 0.0, causal, False, None]
            back = [grad, q, k, v, out, sums, None, None, n, keys, 0.0, causal, seed, seed, None]
        elif form == "efficient":
            there = [q, k, v, bias, True, 0.0, causal, None]
            back = [grad, q, k, v, bias, out, sums, seed, seed, 0.0, [True, True, True, False], causal, None]
        else:
            there = [q, k, v, bias, True, 0.0, causal, False, None]
            back = [grad, q, k, v, out, sums, seed, seed, bias, None, None, n, keys, 0.0, causal, None]
        name = f"aten._scaled_dot_product_{form}_attention"
        for row, args, want in ((f"{name}.default", there, [out, sums]), (f"{name}_backward.default", back, grads)):
            case = kernels.Case(rows()[row], args, [kernels.room_like(t) for t in want], want, [])
            self.assertIsNone(kernels.judge(case, kernels.run_cases([case])[0], False, 8.0), (row, n, keys, causal))

    def test_scaled_mm(self):
        """One scale for each operand, or one for each row and column; a bias."""
        row, op = rows()["aten._scaled_mm.default"], torch.ops.aten._scaled_mm.default
        for one, biased, dtype in itertools.product((True, False), (True, False), (torch.float32, torch.bfloat16)):
            a, b = torch.randn(16, 32).to(torch.float8_e4m3fn), torch.randn(48, 32).to(torch.float8_e4m3fn).t()
            scales = [torch.rand(()), torch.rand(())] if one else [torch.rand(16, 1), torch.rand(1, 48)]
            bias = torch.randn(48, dtype=dtype) if biased else None
            case = kernels.make_case(row, op, [a, b, *scales, bias, None, dtype, False], {})
            self.assertIsNone(kernels.judge(case, kernels.run_cases([case])[0], False, 4.0))

    def test_rms_backward(self):
        """The gradients that autograd finds for the formula."""
        row = rows()["aten._fused_rms_norm_backward.default"]
        for dtype, weighted in ((torch.float32, True), (torch.float64, True), (torch.float32, False)):
            g, x, w = (torch.randn(n, dtype=dtype, requires_grad=True) for n in ((3, 2, 5), (3, 2, 5), (5,)))
            rstd = (x.pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt()
            (x * rstd * (w if weighted else 1)).backward(g)
            want = [x.grad, w.grad if weighted else None]
            args = [g.detach(), x.detach(), [5], rstd.detach(), w.detach() if weighted else None, [True, weighted]]
            outs = [None if t is None else kernels.room_like(t) for t in want]
            case = kernels.Case(row, args, outs, want, [])
            self.assertIsNone(kernels.judge(case, kernels.run_cases([case])[0], False, 4.0))


if __name__ == "__main__":
    unittest.main()

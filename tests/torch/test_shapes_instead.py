"""Rows that torch cannot run without a GPU, or no longer has: this shows that it cannot, and
compares random calls with torch's results for another operator that computes the same.

If torch begins to support an operator, it fails here: it then belongs in the test of its family.
"""

import unittest

import torch
from torch._library.fake_class_registry import FakeScriptObject

import test_shapes_comm as comm
from harness import some
from shapes import CALLS, LEAST, NOT_RUN, SEED, TYPES, Opaque, dense, draw_calls, infer, operator_of, rows, same
from test_shapes_comm import GROUP, RANKS, bucket_all_gather, bucket_reduce_scatter
from test_shapes_gemm import factors, grouped_mm, product
from test_shapes_nn import conv, conv_backward, conv_nd, is_last, wide

aten = torch.ops.aten


def setUpModule():
    comm.setUpModule()


def tearDownModule():
    comm.tearDownModule()


# ---- calls ---------------------------------------------------------------------------------------


def by_types(r, row):
    """Any operands of the types of the signature."""
    args = []
    for p in row["params"]:
        kind = TYPES[p["type"]]
        if kind == "tensor":
            args.append([r.tensor() for _ in range(r.randrange(1, 4))] if p["depth"] else r.tensor())
        elif kind == "stream":
            args.append(Opaque(lambda: torch.Stream(stream_id=0, device_index=0, device_type=1)))
        elif kind == "any":  # a handle of symmetric memory
            name = "__torch__.torch.classes.c10d.SymmetricMemory"
            args.append(Opaque(lambda: FakeScriptObject(object(), name, None)))
        else:
            args.append({"int": r.randrange(4), "bool": r.random() < 0.5,
                         "str": GROUP if "group" in p["name"] else "sum"}[kind])  # fmt: skip
    return args, {}


def dense_list(r, row):
    sizes = [r.size() for _ in range(r.randrange(1, 4))]
    return [[r.tensor(size, stride=dense(size)) for size in sizes]], {}


def on_host(r, row):
    return [r.tensor(device="cpu")], {}


def grouped_v2(r, row):
    a, b, scale_a, scale_b, offs, bias, _, out = grouped_mm(r, row)[0]
    return [a, b, [scale_a], [0], [0], [scale_b], [0], [0], offs, bias, out], {}


def signalled_mm(r, row):
    a, b = factors(r, 2)
    return [a, b, r.tensor([4], "int32"), r.randrange(4)], {}


def cudnn(r, row):
    drawn = conv_nd(r, {"name": r.choice(["conv1d.", "conv2d.", "conv3d."])})
    if drawn is None or len(drawn[0][0].size) != len(drawn[0][1].size):
        return None
    x, weight, _, stride, padding, dilation, groups = drawn[0]
    return [x, weight, padding, stride, dilation, groups, False, False, True], {}


def packed(make, at=0):
    """Convolutions without channels-last operands, whose layout a library decides. at: of the image."""

    def drawn(r, row):
        found = make(r, row)
        if found is None:
            return None
        x, weight = found[0][at : at + 2]
        dims = len(weight.size) - 2
        return None if is_last(wide(x, dims)) or is_last(wide(weight, dims)) else found

    return drawn


def with_group(make):
    def drawn(r, row):
        args, kwargs = make(r, row)
        return [*args[:2], GROUP, *args[2:]], kwargs

    return drawn


# ---- what computes the same ----------------------------------------------------------------------


def nothing(*args):
    return None


def written(name):
    """Returned according to its schema: the operand that is written."""
    schema = operator_of(name)._schema
    alias = schema.returns[0].alias_info
    assert len(schema.returns) == 1 and alias.is_write
    at = [a.alias_info is not None and a.alias_info.before_set == alias.before_set
          for a in schema.arguments].index(True)  # fmt: skip
    return lambda *args: args[at]


def wide_product(x, a, b, dtype):
    return aten.baddbmm(x.to(a.dtype), a, b).to(dtype)


def pinned(x):
    return torch.empty_strided(x.size(), x.stride(), dtype=x.dtype)


def grouped(a, b, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, offs, bias, out):
    return aten._scaled_grouped_mm(a, b, scale_a[0], scale_b[0], offs, bias, None, out)


def convolution(x, weight, padding, stride, dilation, groups, *_):
    return aten.convolution(x, weight, None, stride, padding, dilation, False, [0] * (x.dim() - 2), groups)


def convolution_backward(grad, x, weight, *rest):
    return aten.convolution_backward(grad, x, weight, [weight.size(0)], *rest)


def bucketing(name):
    def run(inputs, size, group, *rest):
        return getattr(torch.ops.bucketing, name)(inputs, size, *rest)

    return run


def copy_in_2_6(r, row):
    (inputs, buffer, lengths, numel, rank), _ = comm.all_gather_copy_in(r, row)
    return [inputs, lengths, numel, RANKS, rank, buffer.dtype, torch.device(buffer.device)], {}


def fill_new(inputs, lengths, numel, ranks, rank, dtype, device):
    buffer = torch.empty(numel * ranks, dtype=dtype, device=device)
    return buffer.narrow(0, numel * rank, numel), buffer


# row -> how calls of it are drawn, and what gives its result
INSTEAD = {
    "_c10d_functional.wait_tensors.default": (
        dense_list, lambda xs: [torch.ops._c10d_functional.wait_tensor(x) for x in xs]
    ),
    "aten._scaled_grouped_mm_v2.default": (grouped_v2, grouped),
    "aten.baddbmm.dtype": (product(3), wide_product),
    "aten.convolution_overrideable.default": (packed(conv), aten.convolution),
    "aten.convolution_backward_overrideable.default": (packed(conv_backward, 1), convolution_backward),
    "aten.cudnn_convolution.default": (packed(cudnn), convolution),
    "aten.pin_memory.default": (on_host, pinned),
    "bucketing._pre_bucket_all_gather_symm_mem.default": (
        with_group(bucket_all_gather), bucketing("_pre_bucket_all_gather")
    ),
    "bucketing._pre_bucket_reduce_scatter_symm_mem.default": (
        with_group(bucket_reduce_scatter), bucketing("_pre_bucket_reduce_scatter")
    ),
    "fsdp.all_gather_copy_in.default_2_6": (copy_in_2_6, fill_new),
    "symm_mem._async_input_mm.default": (signalled_mm, lambda a, b, *_: aten.mm(a, b)),
    "symm_mem.multimem_one_shot_all_reduce.default": (
        comm.symmetric, lambda *args: torch.ops.symm_mem.one_shot_all_reduce(*args)
    ),
}  # fmt: skip


def instead(name):
    if name in INSTEAD:
        return INSTEAD[name]
    return by_types, nothing if rows()[name]["results"] == [] else written(name)


class InsteadTest(unittest.TestCase):
    @staticmethod
    def rows_compared():
        return [name for name in NOT_RUN if name in rows()]

    def refused(self, call, op):
        """torch cannot run it, and not because the call is malformed."""
        problem = call.problem(op)
        self.assertIsNotNone(problem, f"torch runs {call}")
        self.assertNotRegex(str(problem), "schema|value of type|positional|missing", str(call))

    def test_rows(self):
        self.assertFalse(set(INSTEAD) - set(NOT_RUN))
        drawn = []
        for name in self.rows_compared():
            make, run = instead(name)
            found = draw_calls(rows()[name], make, op=run)
            self.assertGreaterEqual(len(found), min(LEAST, CALLS), name)
            op = operator_of(name)
            for call, _ in found:
                if op is not None:
                    self.refused(call, op)
            drawn += found
        answers = infer([call for call, _ in drawn], {GROUP: RANKS})
        wrong = [f"{call}\n    {got}\n    {wanted}" for (call, wanted), got in zip(drawn, answers)
                 if not same(got, wanted)]  # fmt: skip
        self.assertFalse(wrong, f"seed {SEED}: {len(wrong)} of {len(drawn)} differ\n" + some(wrong))

    def test_gone(self):
        """Torch has no such operator, or it has."""
        for name, why in NOT_RUN.items():
            self.assertEqual(operator_of(name) is None, why is None, name)


if __name__ == "__main__":
    unittest.main()

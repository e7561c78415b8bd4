"""Every row with a shape rule is compared with torch by some test, or it is known why torch cannot run it.

A class of test_shapes_*.py names the rows it compares (rows_compared()), and fails where fewer than 20 calls of
one were drawn and compared: an answer of ours that says nothing does not count.
"""

import importlib
import unittest

import torch

import shapes
from harness import HERE, some
from shapes import GONE, NO_KERNEL, NOT_RUN, Draw, operator_of, rows
from test_shapes_gemm import product
from test_shapes_nn import conv, conv_backward
from test_shapes_pointwise import aliased


def compared():
    """row -> classes that compare it"""
    found = {}
    for path in sorted(HERE.glob("test_shapes_*.py")):
        for name, kind in vars(importlib.import_module(path.stem)).items():
            if hasattr(kind, "rows_compared") and kind.__module__ == path.stem:
                for row in kind.rows_compared():
                    found.setdefault(row, []).append(f"{path.stem}.{name}")
    return found


def has_kernel(op):
    keys = ("Meta", "CPU", "CompositeImplicitAutograd", "CompositeExplicitAutograd")
    return torch._library.utils.can_generate_trivial_fake_impl(op) or any(
        torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key) for key in keys
    )


class CoverTest(unittest.TestCase):
    def test_every_row(self):
        found = compared()
        missing = [f"{name} ({row['shape']})" for name, row in rows().items()
                   if row["shape"] != "none" and name not in found and name not in NOT_RUN]  # fmt: skip
        self.assertFalse(missing, some(missing, 40))

    def test_nothing_is_listed_in_vain(self):
        found = compared()
        known = {name for name, row in rows().items() if row["shape"] != "none"}
        self.assertFalse(set(NOT_RUN) & set(found))
        self.assertFalse(set(NOT_RUN) - known)

    def test_gone(self):
        for name, why in NOT_RUN.items():
            self.assertEqual(operator_of(name) is None, why == GONE, name)

    def test_no_kernel(self):
        for name, why in NOT_RUN.items():
            if why == NO_KERNEL:
                self.assertFalse(has_kernel(operator_of(name)), name)

    def test_refused(self):
        """The others do raise, on fake tensors and on others."""
        made = {
            "aten.baddbmm.dtype": product(3),
            "aten.pin_memory.default": aliased,
            "aten.convolution_overrideable.default": conv,
            "aten.convolution_backward_overrideable.default": conv_backward,
        }
        for name, make in made.items():
            self.assertNotIn(NOT_RUN[name], (GONE, NO_KERNEL))
            row, calls = rows()[name], 0
            for i in range(200):
                drawn = make(Draw(i, "cpu"), row)
                if drawn is None:
                    continue
                call = shapes.Call(row, *drawn)
                calls += 1
                self.assertIsNone(call.run(operator_of(name)), str(call))
                self.assertIsNone(call.run(operator_of(name), data=True), str(call))
            self.assertGreater(calls, 20, name)


if __name__ == "__main__":
    unittest.main()

"""Every row with a shape rule is compared with torch by some test.

A class of test_shapes_*.py names the rows it compares (rows_compared()), and fails if fewer than
20 calls of one were drawn and compared: an answer without information does not count.
"""

import importlib
import unittest

from harness import HERE, some
from shapes import NOT_RUN, rows


def compared():
    """row -> classes that compare it"""
    found = {}
    for path in sorted(HERE.glob("test_shapes_*.py")):
        for name, kind in vars(importlib.import_module(path.stem)).items():
            if hasattr(kind, "rows_compared") and kind.__module__ == path.stem:
                for row in kind.rows_compared():
                    found.setdefault(row, []).append(f"{path.stem}.{name}")
    return found


class CoverTest(unittest.TestCase):
    def test_every_row(self):
        found = compared()
        missing = [f"{name} ({row['shape']})" for name, row in rows().items()
                   if row["shape"] != "none" and name not in found]  # fmt: skip
        self.assertFalse(missing, some(missing, 40))

    def test_nothing_is_listed_in_vain(self):
        found = compared()
        for name in NOT_RUN:
            self.assertEqual(found.get(name), ["test_shapes_instead.InsteadTest"], name)
            self.assertNotEqual(rows()[name]["shape"], "none")


if __name__ == "__main__":
    unittest.main()

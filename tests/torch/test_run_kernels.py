"""Every kernel against torch, on the calls that the tests of shapes draw, with data.

KERNELS_ROWS=re: only rows whose name matches; KERNELS_CALLS=n: more calls of each.
"""

import importlib
import os
import re
import unittest

import kernels
from harness import HERE, some
from shapes import rows

CALLS = int(os.environ.get("KERNELS_CALLS", "10"))
ONLY = os.environ.get("KERNELS_ROWS", "")

EXACT = {"copy"}  # kernels whose floats are exact
PLAIN = set()  # kernels that get no NaNs and infinities
LEAST = 5  # calls of every row that torch takes
ROWS = {}  # row -> generator, where that of the shapes does not give useful data
ALTER = {}
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
        wanted = [row for row in rows().values() if row["kernel"] != "none" and re.search(ONLY, row["name"])]
        drawn = []
        for row in wanted:
            name, kernel = row["name"], row["kernel"]
            make = ROWS.get(name) or makers.get(name)
            if make is None:
                missing.append(name)
                continue
            cases = kernels.draw(row, make, CALLS, plain=kernel in PLAIN, alter=ALTER.get(kernel))
            if len(cases) < LEAST:
                missing.append(f"{name}: {len(cases)} calls")
            drawn += cases
        said = {}
        for case, answer in zip(drawn, kernels.run_cases(drawn)):
            kernel = case.row["kernel"]
            what = kernels.judge(case, answer, kernel in EXACT, SCALE.get(kernel, 1.0))
            if what:
                said.setdefault(f"{case.row['name']} ({kernel})", []).append(what)
        calls = len(drawn)
        complaints = [f"{name}: {len(list_)} differ\n    " + "\n    ".join(list_[:3]) for name, list_ in said.items()]
        print(f"KernelTest: {calls} calls of {len(wanted)} rows")
        self.assertFalse(complaints, some(complaints, 200))
        self.assertFalse(missing, "rows with a kernel that no generator makes calls of: " + some(missing, 40))


if __name__ == "__main__":
    unittest.main()

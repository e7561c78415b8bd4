"""Runs the test files here, or those that are named, and prints the numbers as tools/test.sh wants
them."""

import sys
import unittest
from pathlib import Path

names = sys.argv[1:] or sorted(p.stem for p in Path(__file__).parent.glob("test_*.py"))
result = unittest.TextTestRunner(verbosity=1).run(unittest.TestLoader().loadTestsFromNames(names))
failed = len(result.failures) + len(result.errors)
print(f"{result.testsRun - failed} passed, {failed} failed")
sys.exit(failed != 0)

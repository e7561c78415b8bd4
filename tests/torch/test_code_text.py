"""`tuck show --code`: the same text as torch's `GraphModule.code` for the same graph."""

import difflib
import unittest

import fxload
from harness import GRAPHS, REBUILT, graphs, one_test_each, some, tuck


@one_test_each(graphs(*REBUILT))
class CodeText(unittest.TestCase):
    def check(self, path):
        expected = fxload.load(fxload.fix_class_name(path.read_text())).module().code
        compare(self, expected, tuck("show", "--code", path))


@one_test_each(sorted((GRAPHS / "forms").glob("*.code.txt")))
class CodeAsPrinted(unittest.TestCase):
    """The class form and the code form of one graph lie side by side."""

    def check(self, path):
        beside = path.with_name(path.name.replace(".code.txt", ".txt"))
        compare(self, path.read_text(), tuck("show", "--code", beside))


def compare(test, expected, got):
    if got != expected:
        both = (expected.splitlines(), got.splitlines())
        lines = list(difflib.unified_diff(*both, "torch", "tuck", n=0, lineterm=""))
        test.fail("--code differs\n" + some(lines, 12))

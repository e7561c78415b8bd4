"""All forms of text that torch prints are read as the same graph, seen through `tuck show --exec`."""
import unittest

import fxload
from harness import GRAPHS, one_test_each, some, tuck

SAME_GRAPH = [f"forms/{name}.{form}" for name in ("mlp_ddp_bw", "mlp_fsdp_bw", "moe_routed_fw")
              for form in ("txt", "plain.txt", "expanded.txt", "seq_nr.txt", "colored.txt", "code.txt", "graph.txt", "runnable.py")]
ANNOTATED = ("txt", "expanded.txt", "seq_nr.txt", "colored.txt")


def python_texts():
    """Texts of one or more graphs that Python itself can parse: [(path, number, loaded)]."""
    for folder in ("forms213", "synthetic"):
        for path in sorted((GRAPHS / folder).glob("*.txt")):
            try:
                found = fxload.load_all(fxload.fix_class_name(path.read_text()))
            except (SyntaxError, fxload.LoadError):
                continue
            for number, loaded in enumerate(found):
                yield path, number, loaded


def rename(loaded, like):
    """Names of the class and of its parameters are the reader's to choose where the text has none."""
    loaded.name, loaded.signature = like.name, like.signature
    return loaded


@one_test_each(SAME_GRAPH, lambda name: "test_" + name.split("/")[1].replace(".", "_"))
class OneGraphManyForms(unittest.TestCase):
    def check(self, name):
        stem, form = name.split(".", 1)
        expected = fxload.load(fxload.fix_class_name((GRAPHS / f"{stem}.txt").read_text()))
        got = rename(fxload.load(tuck("show", "--exec", GRAPHS / name)), expected)
        found = fxload.differences(expected, got, annotations=form in ANNOTATED)
        self.assertEqual(found, [], some(found))


@one_test_each(list(python_texts()), lambda case: f"test_{case[0].parent.name}_{case[0].name.split('.')[0]}_{case[1]}")
class OtherForms(unittest.TestCase):
    """A graph whose operands all have values must be printed; another may be refused, or printed as it is."""

    def check(self, case):
        path, number, expected = case
        try:
            text = tuck("show", "--exec", "--graph", number, path)
        except AssertionError:
            if not expected.opaque():
                raise
            return
        got = rename(fxload.load(text), expected)
        found = fxload.differences(expected, got)
        self.assertEqual(found, [], some(found))

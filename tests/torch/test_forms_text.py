"""All forms in which torch prints a graph are read alike, seen through `tuck show --exec`."""

import unittest

import fxload
from harness import GRAPHS, one_test_each, some, tuck

ANNOTATED = ("txt", "expanded.txt", "seq_nr.txt", "colored.txt")
BARE = ("plain.txt", "code.txt", "graph.txt", "runnable.py")
GRAPH_NAMES = ("mlp_ddp_bw", "mlp_fsdp_bw", "moe_routed_fw")
SAME_GRAPH = [f"forms/{name}.{form}" for name in GRAPH_NAMES for form in ANNOTATED + BARE]


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
    """If a text names no class or no parameters, their names are not compared."""
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


def case_name(case):
    path, number, _ = case
    return f"test_{path.parent.name}_{path.name.split('.')[0]}_{number}"


@one_test_each(list(python_texts()), case_name)
class OtherForms(unittest.TestCase):
    """A graph whose operands all have values must be printed; others may be refused."""

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

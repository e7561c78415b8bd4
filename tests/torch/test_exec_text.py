"""`tuck show --exec`: Python that torch can rebuild the graph from, node for node."""

import builtins
import dis
import re
import types
import unittest

import torch

import fxload
from harness import REBUILT, graphs, needs, one_test_each, some, tuck


def globals_used(code):
    """Names that code, and code inside it, looks up as globals, less those it defines itself."""
    used, defined = set(), set()
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            used.add(instruction.argval)
        elif instruction.opname in ("STORE_NAME", "STORE_GLOBAL"):
            defined.add(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            used |= globals_used(constant)
    return used - defined - {"__name__", "__qualname__", "__module__"}


def run_class(text, what):
    """Executes a text with only the globals it lists; returns the class it defines."""
    space = {"__name__": "graph", **{name: fxload.global_value(name) for name in needs(text)}}
    before = set(space)
    exec(compile(text, str(what), "exec"), space)
    made = [v for k, v in space.items() if k not in before and k != "__builtins__"]
    assert len(made) == 1 and issubclass(made[0], torch.nn.Module), f"{what} defines {made}"
    return made[0]


@one_test_each(graphs(*REBUILT))
class ExecText(unittest.TestCase):
    def check(self, path):
        original = fxload.load(fxload.fix_class_name(path.read_text()))
        text = tuck("show", "--exec", path)
        self.rebuilt(original, fxload.load(text))
        self.executed(original, text, path)
        for where, graph in original.walk():
            self.assertEqual(graph.unresolved, [], where)
        module = original.module()
        module.graph.lint()

    def rebuilt(self, original, printed):
        found = fxload.differences(original, printed)
        self.assertEqual(found, [], some(found))

    def executed(self, original, text, path):
        listed = needs(text)
        self.assertEqual(len(listed), len(set(listed)), "a global is listed twice")
        used = globals_used(compile(text, str(path), "exec"))
        missing = {name for name in used if not hasattr(builtins, name)} - set(listed)
        self.assertEqual(missing, set(), "globals that the header does not list")
        self.assertEqual(set(listed) - used, set(), "globals that are listed and not used")
        made = run_class(text, path)
        self.assertEqual(made.__name__, original.name)
        self.assertTrue(callable(made.__dict__.get("forward")))
        self.nested(original, made)
        self.assertIsNone(re.search(r"\x1b", text))

    def nested(self, loaded, made):
        classes = [k for k, v in vars(made).items() if isinstance(v, type)]
        self.assertEqual(classes, list(loaded.children))
        for name in classes:
            self.assertTrue(callable(vars(made)[name].__dict__.get("forward")))
            self.nested(loaded.children[name], vars(made)[name])

"""The loader that other tests rely on: it reads what torch printed, and detects every difference."""

import unittest

import torch

import fxload
from harness import GRAPHS, one_test_each

# Code forms whose graph fx prints back without help from the module it came from.
CODE_FORMS = [
    "forms/mlp_ddp_bw.code.txt",
    "forms/mlp_fsdp_bw.code.txt",
    "forms/moe_routed_fw.code.txt",
    "forms213/names_reserved_suffixes_alias.code.txt",
    "forms213/operators_syntax_then_attribute_paths.code.txt",
]
# Prints of one graph in several forms.
TWINS = [
    (name, form)
    for name in ("mlp_ddp_bw", "mlp_fsdp_bw", "moe_routed_fw")
    for form in ("plain.txt", "expanded.txt", "seq_nr.txt", "code.txt", "runnable.py")
]

TEXT = """
class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[4][1]cpu", y: "f32[4][1]cpu"):
        sub = self.sub
        add: "f32[4][1]cpu" = torch.ops.aten.add.Tensor(x, y, alpha = 2.0);  x = None
        view: "f32[2, 2][2, 1]cpu" = torch.ops.aten.view.default(add, [2, 2]);  add = None
        all_reduce = torch.ops._c10d_functional.all_reduce.default(view, 'sum', '0');  view = None
        full = torch.ops.aten.full.default([], -inf, device = device(type='cpu'), dtype = torch.int8)
        cond = torch.ops.higher_order.cond(True, sub, sub, (y, full));  sub = full = None
        getitem: "f32[4][1]cpu" = cond[0];  cond = None
        return (all_reduce, getitem, y)

    class sub(torch.nn.Module):
        def forward(self, a: "f32[4][1]cpu", b: "f32[][]cpu"):
            mul: "f32[4][1]cpu" = torch.ops.aten.mul.Tensor(a, b);  a = b = None
            return (mul,)
"""
CHANGES = [
    ("view", "reshape"),
    ("view.default", "view.dtype"),
    ("[2, 2])", "[2, 2.0])"),
    ("[2, 2])", "(2, 2))"),
    ("alpha = 2.0", "alpha = 2"),
    ("alpha = 2.0", "beta = 2.0"),
    ("'0'", "0"),
    ("'0'", "'1'"),
    ("'sum'", "'avg'"),
    ("-inf", "inf"),
    ("torch.int8", "torch.int16"),
    ("type='cpu'", "type='cuda'"),
    ("(True,", "(1,"),
    ("cond[0]", "cond[-1]"),
    ("(x, y, alpha", "(y, x, alpha"),
    ("(y, full)", "[y, full]"),
    ("getitem, y)", "getitem, getitem)"),
    ("(mul,)", "mul"),
    ("mul.Tensor(a, b)", "mul.Tensor(b, a)"),
    ("class sub(", "class other("),
    ("class GraphModule(", "class step("),
    ("[4][1]cpu", "[4][2]cpu"),
    ("y: ", "z: "),
    ("        full = ", "        torch._check(True)\n        full = "),
]
BROKEN = [
    ("(view, 'sum'", "(add, 'sum'"),  # used after it was freed
    ("view = None", "view = cond = None"),  # freed before it is defined
    ("getitem: ", "add: "),  # defined twice
    ("        return (all_reduce, getitem, y)\n", ""),
]


@one_test_each(CODE_FORMS, lambda name: "test_" + name.split("/")[1].split(".")[0])
class PrintsBack(unittest.TestCase):
    """torch's code for the loaded graph is the text it was loaded from."""

    def check(self, name):
        text = (GRAPHS / name).read_text()
        for loaded in fxload.load_all(text):
            self.assertIn(loaded.module().code.strip(), text)


@one_test_each(TWINS, lambda twin: "test_" + ".".join(twin).replace(".", "_"))
class OneGraphManyForms(unittest.TestCase):
    def check(self, twin):
        name, form = twin
        plain, other = (
            fxload.load(fxload.fix_class_name((GRAPHS / "forms" / f"{name}.{end}").read_text()))
            for end in ("txt", form)
        )
        other.name = plain.name
        self.assertEqual(fxload.differences(plain, other, annotations=False), [])


class Loader(unittest.TestCase):
    def test_builds_what_the_text_says(self):
        graph = fxload.load(TEXT).graph
        nodes = {n.name: n for n in graph.nodes}
        self.assertIs(nodes["add"].target, torch.ops.aten.add.Tensor)
        self.assertEqual(nodes["add"].kwargs, {"alpha": 2.0})
        self.assertEqual(nodes["sub"].op, "get_attr")
        self.assertEqual(nodes["full"].kwargs["device"], torch.device("cpu"))
        self.assertIs(nodes["getitem"].args[0], nodes["cond"])
        self.assertEqual([n.name for n in nodes["y"].users], ["add", "cond", "output"])
        fxload.load(TEXT).module().graph.lint()

    def test_a_graph_is_the_same_as_itself(self):
        self.assertTrue(fxload.same(fxload.load(TEXT), fxload.load(TEXT)))
        nan = TEXT.replace("inf", "nan")
        self.assertTrue(fxload.same(fxload.load(nan), fxload.load(nan)))

    def test_sees_every_change(self):
        for old, new in CHANGES:
            with self.subTest(old=old, new=new):
                changed = TEXT.replace(old, new, 1)
                self.assertNotEqual(changed, TEXT)
                try:
                    self.assertFalse(fxload.same(fxload.load(TEXT), fxload.load(changed)))
                except fxload.LoadError:
                    pass  # seen even earlier

    def test_refuses_broken_texts(self):
        for old, new in BROKEN:
            with self.subTest(old=old, new=new):
                self.assertIn(old, TEXT)
                with self.assertRaises(fxload.LoadError):
                    fxload.load(TEXT.replace(old, new, 1))

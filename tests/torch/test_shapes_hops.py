"""Operators that take graphs, and arithmetic on sizes: small graphs that torch traces and prints, inferred
from their inputs alone.
"""

import os
import random
import re
import subprocess
import tempfile
import unittest

import torch
import torch.distributed.fsdp._fully_shard._fsdp_collectives  # registers operators
from torch._dynamo.backends.common import aot_autograd
from torch._higher_order_ops.auto_functionalize import auto_functionalized
from torch._higher_order_ops.invoke_subgraph import invoke_subgraph
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention.flex_attention import flex_attention

from shapes import program

CALLS = 20


def draw(r, least=1):
    return [r.randrange(1, 5) for _ in range(r.randint(least, 3))]


def cond(r):
    size = draw(r)

    def f(p, x):
        return torch.cond(p, lambda x: (x.sin(), x.sum(0)), lambda x: (x.cos(), x.sum(0) + 1), (x,))

    return f, [torch.tensor(True), torch.empty(size)]


def while_(r):
    size = draw(r)

    def f(i, x):
        return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (i, x))

    return f, [torch.zeros((), dtype=torch.int64), torch.empty(size)]


def scan_(r):
    size, steps = draw(r), r.randrange(2, 5)

    def f(c, xs):
        return scan(lambda c, x: (c + x, (c * x).sum(-1)), c, xs)

    return f, [torch.empty(size), torch.empty([steps, *size])]


def subgraph(r):
    def inner(x, y):
        return x @ y, x.sum(), y.t().contiguous()

    args = [torch.empty(r.randrange(2, 5), 3), torch.empty(3, r.randrange(2, 5))]
    module = make_fx(inner)(*args)
    return lambda x, y: invoke_subgraph(module, "inner", x, y), args


def written(r):
    rows, width = 2 * r.randrange(1, 4), r.randrange(1, 5)

    def f(x, y):
        out = auto_functionalized(torch.ops.fsdp.chunk_cat.default, tensors=[x], dim=0, num_chunks=2, out=y)
        return out[1] + 1

    return f, [torch.empty(rows, width), torch.empty(2, rows * width // 2)]


def effect(r):
    """An operator with an effect gets a token."""

    def f(x):
        torch.ops.aten._print("here")
        return x + 1

    return f, [torch.empty(draw(r))]


def attention(r):
    b, h, n, m, d = (r.randrange(1, 3), r.randrange(1, 4), r.randrange(4, 9), r.randrange(4, 9), 16)

    turned = r.random() < 0.5

    def f(q, k, v):
        q = q.transpose(1, 2) if turned else q.reshape(b, h, n, d)
        return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + i - j, return_lse=True)

    return f, [torch.empty(b, n, h, d), torch.empty(b, h, m, d), torch.empty(b, h, m, d)]


def arithmetic(r):
    """Sizes of a view by what Python makes of other sizes."""

    def f(x, y):
        a, b = x.shape
        n = r.choice([lambda: a + b, lambda: a * b, lambda: a * 2 - 1, lambda: (a + 7) // 8, lambda: a % 3 + b,
                      lambda: max(a, b), lambda: torch.sym_min(a, b), lambda: -(-a // 2), lambda: a**2,
                      lambda: int(a * 0.5), lambda: a << 1, lambda: b >> 1])()  # fmt: skip
        return y.new_empty(n, 3), x.new_zeros(a, n)

    return f, [torch.empty(r.randrange(5, 9), r.randrange(10, 15)), torch.empty(4)]


def compiled(f, args):
    """The graph that a compiler gets of f."""
    graphs = []

    def take(module, inputs):
        graphs.append(module)
        return module

    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(f, backend=aot_autograd(fw_compiler=take), fullgraph=True, dynamic=False)(*args)
    return graphs[0]


def differences(module):
    text = module.print_readable(print_output=False, include_stride=True, include_device=True)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.txt")
        with open(path, "w") as file:
            file.write(text)
        done = subprocess.run([program("test_infer"), "-v", path], capture_output=True, text=True)
    found = re.search(r"(\d+) annotated nodes, (-?\d+) differ", done.stdout)
    if done.returncode not in (0, 1) or found is None or int(found[1]) == 0:
        raise AssertionError(done.stdout + done.stderr + text)
    return (done.stdout + text) if int(found[2]) else None


class TracedTest(unittest.TestCase):
    def check(self, make, mode):
        for seed in range(CALLS):
            f, args = make(random.Random(seed))
            module = make_fx(f, tracing_mode=mode)(*args)
            self.assertIsNone(differences(module))

    def test_cond(self):
        self.check(cond, "fake")

    def test_while_loop(self):
        self.check(while_, "fake")

    def test_scan(self):
        self.check(scan_, "fake")

    def test_cond_symbolic(self):
        self.check(cond, "symbolic")

    def test_auto_functionalized(self):
        self.check(written, "fake")

    def test_invoke_subgraph(self):
        self.check(subgraph, "fake")

    def test_arithmetic(self):
        self.check(arithmetic, "symbolic")


class CompiledTest(unittest.TestCase):
    def check(self, make, hop):
        for seed in range(CALLS):
            module = compiled(*make(random.Random(seed)))
            self.assertIn(hop, module.code)
            self.assertIsNone(differences(module))

    def test_with_effects(self):
        self.check(effect, "with_effects")

    def test_flex_attention(self):
        self.check(attention, "flex_attention")


if __name__ == "__main__":
    unittest.main()

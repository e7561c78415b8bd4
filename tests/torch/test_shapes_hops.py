"""Operators that take graphs, and arithmetic on sizes: small graphs that torch traces and prints, inferred
from their inputs alone.
"""

import ctypes
import json
import os
import random
import re
import subprocess
import tempfile
import unittest
from unittest import mock

import torch
import torch.distributed.fsdp._fully_shard._fsdp_collectives  # registers operators
from torch._dynamo.backends.common import aot_autograd
from torch._higher_order_ops.auto_functionalize import auto_functionalized
from torch._higher_order_ops.invoke_subgraph import invoke_subgraph
from torch._higher_order_ops.map import map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch._inductor.fx_passes.control_dependencies import preserve_node_ordering
from torch.nn.attention.flex_attention import flex_attention
from torch.utils._ordered_set import OrderedSet
from torch.utils.checkpoint import checkpoint

from harness import one_test_each, tuck
from shapes import LEAST, SEED, program


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


def map_(r):
    size, steps = draw(r), r.randrange(2, 5)

    def f(xs, y):
        return map(lambda x, y: ((x * y).sin(), x.sum(-1), y * 2), xs, y)

    return f, [torch.empty([steps, *size]), torch.empty(size)]


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


def written_in_place(r):
    """What a compiler gets instead of an operator that writes."""
    rows, width = 2 * r.randrange(1, 4), r.randrange(1, 5)

    def f(x, y):
        torch.ops.fsdp.chunk_cat.default([x + 1], 0, 2, out=y)
        return y * 2

    return f, [torch.empty(rows, width), torch.empty(2, rows * width // 2)]


def checkpointed(r):
    n, m, k = (r.randrange(1, 5) for _ in range(3))

    def inner(x, y):
        z = torch.ops.aten.mm.default(x, y)
        return torch.ops.aten.t.default(z), torch.ops.aten.sum.default(z)

    def f(x, y):
        a, b = checkpoint(inner, x, y, use_reentrant=False)
        return torch.ops.aten.add.Tensor(a, b)

    return f, [torch.empty(n, m), torch.empty(m, k)]


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


def attended(r):
    f, args = attention(r)
    return lambda q, k, v: f(q, k, v)[0], args


def arithmetic(r):
    """Sizes of a view computed in Python from other sizes."""

    def f(x, y):
        a, b = x.shape
        n = r.choice([lambda: a + b, lambda: a * b, lambda: a * 2 - 1, lambda: (a + 7) // 8, lambda: a % 3 + b,
                      lambda: max(a, b), lambda: torch.sym_min(a, b), lambda: -(-a // 2), lambda: a**2,
                      lambda: int(a * 0.5), lambda: a << 1, lambda: b >> 1])()  # fmt: skip
        return y.new_empty(n, 3), x.new_zeros(a, n)

    return f, [torch.empty(r.randrange(5, 9), r.randrange(10, 15)), torch.empty(4)]


# ---- graphs of them ------------------------------------------------------------------------------


def traced(mode="fake"):
    return lambda f, args: make_fx(f, tracing_mode=mode)(*args)


def ordered(f, args):
    """After something that it does not need, in a graph of its own."""
    module = make_fx(f, tracing_mode="fake")(*args)
    calls = [n for n in module.graph.nodes if n.op == "call_function" and isinstance(n.meta.get("val"), torch.Tensor)]
    preserve_node_ordering(module.graph, {calls[-1]: OrderedSet(calls[:1])})
    module.recompile()
    return module


def compiled(f, args):
    """The graph of f that a compiler gets."""
    graphs = []

    def take(module, inputs):
        graphs.append(module)
        return module

    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(f, backend=aot_autograd(fw_compiler=take), fullgraph=True, dynamic=False)(*args)
    return graphs[0]


def differentiated(f, args):
    """The graph of the gradients of f."""
    graphs = []

    def take(module, inputs):
        graphs.append(module)
        return module

    torch._dynamo.reset()
    args = [x.requires_grad_() for x in args]
    backend = aot_autograd(fw_compiler=take, bw_compiler=take)
    with mock.patch("torch.nn.attention.flex_attention._validate_device", lambda *_: None):  # a cpu traces it as well
        out = torch.compile(f, backend=backend, fullgraph=True, dynamic=False)(*args)
        out.backward(torch.ones_like(out))
    return graphs[1]


def captured(f, args):
    """The graph that is compiled, before anything is decomposed."""
    graphs = []

    def take(module, inputs):
        graphs.append(module)
        return module.forward

    torch._dynamo.reset()
    torch.compile(f, backend=take, fullgraph=True, dynamic=False)(*args)
    return graphs[0]


def silently(graph_of):
    """Without what operators print, which is C++'s output and not Python's."""

    def make(f, args):
        libc = ctypes.CDLL(None)
        libc.fflush(None)
        kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        try:
            return graph_of(f, args)
        finally:
            libc.fflush(None)
            os.dup2(kept, 1)
            os.close(kept)
            os.close(nowhere)

    return make


def simple(r):
    n, m, k = (r.randrange(1, 5) for _ in range(3))

    def f(x, y):
        a = x.t()
        return a.sum(0), r.choice([lambda: (x @ y).sin(), lambda: y.sum(1), lambda: y.t().contiguous()])()

    return f, [torch.empty(n, m), torch.empty(m, k)]


# row -> how operands and function are drawn, how a graph is made of them
HOPS = {
    "higher_order.auto_functionalized": (written, traced()),
    "higher_order.auto_functionalized_v2": (written_in_place, compiled),
    "higher_order.cond": (cond, traced()),
    "higher_order.control_deps": (simple, ordered),
    "higher_order.flex_attention": (attention, compiled),
    "higher_order.flex_attention_backward": (attended, differentiated),
    "higher_order.invoke_subgraph": (subgraph, traced()),
    "higher_order.map_impl": (map_, traced()),
    "higher_order.scan": (scan_, traced()),
    "higher_order.tag_activation_checkpoint": (checkpointed, captured),
    "higher_order.while_loop": (while_, traced()),
    "higher_order.with_effects": (effect, silently(compiled)),
}


def differences(module):
    """Where inference and annotation differ, or None."""
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


@one_test_each(HOPS, name=lambda row: "test_" + row.split(".")[1])
class GraphTest(unittest.TestCase):
    @staticmethod
    def rows_compared():
        return list(HOPS)

    def check(self, row):
        draw_, graph_of = HOPS[row]
        target = getattr(torch.ops.higher_order, row.split(".")[1])
        for i in range(LEAST):
            module = graph_of(*draw_(random.Random(SEED * 1000 + i)))
            calls = [n for n in module.graph.nodes if n.target is target]
            self.assertTrue(calls, module.code)
            # Its results are annotated: itself, or items picked from it.
            given = [n for call in calls for n in (call, *call.users)]
            self.assertTrue(any(isinstance(value_of(n), torch.Tensor) for n in given), module.code)
            self.assertIsNone(differences(module))

    def test_cond_symbolic(self):
        self.trace(cond)

    def test_arithmetic(self):
        self.trace(arithmetic)

    def trace(self, draw_):
        for i in range(LEAST):
            self.assertIsNone(differences(traced("symbolic")(*draw_(random.Random(SEED * 1000 + i)))))


def value_of(node):
    return node.meta.get("val", node.meta.get("example_value"))


class TritonTest(unittest.TestCase):
    """Results of a functional Triton kernel are clones of the operands that it names, by their names."""

    @staticmethod
    def rows_compared():
        return ["higher_order.triton_kernel_wrapper_functional"]

    def test_results(self):
        from torch._higher_order_ops.triton_kernel_wrap import triton_kernel_wrapper_functional

        for i in range(LEAST):
            r = random.Random(SEED * 1000 + i)
            names = [f"ptr{k}" for k in range(r.randrange(1, 4))]
            cloned = r.sample(names, r.randrange(1, len(names) + 1))
            with FakeTensorMode():
                given = {name: torch.empty([r.randrange(1, 5) for _ in range(r.randrange(1, 4))],
                                           dtype=r.choice((torch.float32, torch.int64))).transpose(0, -1)
                         for name in names}  # fmt: skip
                made = triton_kernel_wrapper_functional(
                    kernel_idx=0, constant_args_idx=0, grid=[(1, 1, 1)], tma_descriptor_metadata={},
                    kwargs=given, tensors_to_clone=cloned)  # fmt: skip
            self.assertEqual(set(made), set(cloned))
            note = {name: f'"{"f32" if t.dtype is torch.float32 else "i64"}{list(t.shape)}{list(t.stride())}cpu"'
                    for name, t in given.items()}  # fmt: skip
            items = "".join(f"        got_{n} = call['{n}']\n" for n in cloned)
            text = ("class Step(torch.nn.Module):\n"
                    f"    def forward(self, {', '.join(f'{n}: {note[n]}' for n in names)}):\n"
                    "        call = torch.ops.higher_order.triton_kernel_wrapper_functional(kernel_idx = 0, "
                    "constant_args_idx = 0, grid = [(1, 1, 1)], tma_descriptor_metadata = {}, kwargs = "
                    f"{{{', '.join(repr(n) + ': ' + n for n in names)}}}, tensors_to_clone = {cloned})\n"
                    f"{items}        return ({', '.join('got_' + n for n in cloned)},)\n")  # fmt: skip
            with tempfile.NamedTemporaryFile("w", suffix=".txt") as f:
                f.write(text)
                f.flush()
                said = json.loads(tuck("show", "--json", f.name))
            nodes = {n["name"]: n for n in said["graphs"][0]["nodes"]}
            for name in cloned:
                want = made[name]
                got = nodes["got_" + name]
                self.assertEqual(got["shape"], list(want.shape), text)
                self.assertEqual(got["stride"], list(want.stride()), text)

if __name__ == "__main__":
    unittest.main()

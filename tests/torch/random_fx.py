"""Random live fx graphs of a training step: compute, views, writes, collectives of two groups and
their waits, patterns of DDP and FSDP, and things that Tuck does not know. Values are fake tensors."""

import operator
import random

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

aten = torch.ops.aten
c10d = torch.ops._c10d_functional
WORLD = 4
DTYPES = (torch.float32, torch.float32, torch.bfloat16)


class Odd:
    """An operand that only Python knows."""

    def __init__(self, number):
        self.number = number

    def __repr__(self):
        return f"Odd.N{self.number}"


def strange(x, what, *more):
    return x + 1


class Maker:
    def __init__(self, seed, plain):
        self.r = random.Random(seed)
        self.plain = plain
        self.graph = torch.fx.Graph()
        self.env = ShapeEnv()
        self.mode = FakeTensorMode(shape_env=self.env)
        self.pool = []  # nodes with tensors
        self.open = []  # collectives that nothing waits for yet
        self.odd = 0

    def call(self, target, *args, **kwargs):
        node = self.graph.call_function(target, args, kwargs)
        value = torch.fx.node.map_arg((args, kwargs), lambda n: n.meta["val"])
        with self.mode:
            node.meta["val"] = target(*value[0], **value[1])
        return node

    def keep(self, node):
        self.pool.append(node)
        return node

    def any(self, test=lambda v: True):
        found = [n for n in self.pool if test(n.meta["val"])]
        return self.r.choice(found) if found else None

    def like(self, node):
        v = node.meta["val"]
        same = lambda w: w.dtype == v.dtype and tuple(w.shape) == tuple(v.shape)
        return self.any(same) or node

    # ---- parts ----

    def inputs(self):
        for i in range(self.r.randint(2, 6)):
            n = self.graph.placeholder(self.r.choice(("arg", "primals_", "tangents_")) + str(i))
            size = self.r.choice(((8, 16), (16, 16), (32,), (4, 8, 16), (64,)))
            with self.mode:
                value = torch.empty(size, dtype=self.r.choice(DTYPES), device="cuda")
            if self.r.random() < 0.1:
                dims = [DimDynamic.DYNAMIC] + [DimDynamic.STATIC] * (len(size) - 1)
                real = torch.empty(size, dtype=value.dtype, device="meta")
                shape = self.mode.from_tensor(
                    real, symbolic_context=StatelessSymbolicContext(dims)
                ).shape
                with self.mode:
                    value = torch.empty(shape, dtype=value.dtype, device="cuda")
            n.meta["val"] = value
            self.pool.append(n)

    def compute(self):
        x = self.any()
        kind = self.r.randrange(6 if self.plain else 9)
        two = self.any(lambda v: v.dim() == 2 and v.shape[0] == v.shape[1])
        if kind == 0 and two is not None:
            self.keep(self.call(aten.mm.default, two, self.like(two)))
        elif kind == 1:
            self.keep(self.call(aten.add.Tensor, x, self.like(x), alpha=self.r.choice((1, 2, 0.5))))
        elif kind == 2:
            self.keep(self.call(aten.view.default, x, [-1]))
        elif kind == 3:
            other = torch.bfloat16 if x.meta["val"].dtype == torch.float32 else torch.float32
            self.keep(self.call(torch.ops.prims.convert_element_type.default, x, other))
        elif kind == 4:
            self.keep(self.call(aten.div.Tensor, x, WORLD))
        elif kind == 5 and x.meta["val"].shape[0] % 4 == 0:
            parts = self.call(aten.split.Tensor, x, x.meta["val"].shape[0] // 4)
            if type(x.meta["val"].shape[0]) is int:
                self.keep(self.call(operator.getitem, parts, self.r.randrange(4)))
        elif kind == 6:
            y = self.call(aten.clone.default, x)
            self.call(aten.copy_.default, y, x)
            self.keep(y)
        elif kind == 7:
            self.odd += 1
            more = [y for y in (self.any(),) if self.r.random() < 0.5]
            node = self.graph.call_function(strange, (x, Odd(self.odd), *more))
            node.meta["val"] = self.call(aten.add.Tensor, x, x).meta["val"]
            self.keep(node)
        else:
            self.keep(self.call(aten.relu.default, x))

    def collective(self):
        kind = self.r.randrange(5)
        group = self.r.choice("001")
        if kind < 2:
            node = self.call(c10d.all_reduce.default, self.any(), self.r.choice(("sum", "avg")), group)
        elif kind == 2:
            node = self.call(c10d.all_gather_into_tensor.default, self.any(), WORLD, group)
        elif kind == 3:
            whole = self.any(lambda v: type(v.shape[0]) is int and v.shape[0] % WORLD == 0)
            if whole is None:
                return
            node = self.call(c10d.reduce_scatter_tensor.default, whole, "sum", WORLD, group)
        else:
            x = self.any()
            many = self.call(c10d.all_reduce_coalesced.default, [x, self.like(x)], "sum", group)
            for i in range(2):
                self.open.append(self.call(operator.getitem, many, i))
            return
        self.open.append(node)

    def wait(self):
        node = self.open.pop(self.r.randrange(len(self.open)))
        self.keep(self.call(c10d.wait_tensor.default, node))
        if self.r.random() < 0.1:
            self.keep(self.call(c10d.wait_tensor.default, node))

    def gradients(self):
        """DDP: divide, reduce, wait; FSDP: convert, gather or scatter."""
        x = [self.any() for _ in range(self.r.randint(2, 4))]
        if self.r.random() < 0.5:
            for n in x:
                reduced = self.call(
                    c10d.all_reduce.default, self.call(aten.div.Tensor, n, WORLD), "sum", "0"
                )
                self.keep(self.call(c10d.wait_tensor.default, reduced))
            return
        for n in self.graph.find_nodes(op="placeholder")[:3]:
            half = self.call(torch.ops.prims.convert_element_type.default, n, torch.bfloat16)
            full = self.call(c10d.all_gather_into_tensor.default, half, WORLD, "0")
            self.keep(self.call(c10d.wait_tensor.default, full))

    def make(self):
        self.inputs()
        for _ in range(self.r.randint(3, 25)):
            kind = self.r.random()
            if kind < 0.5:
                self.compute()
            elif kind < 0.75:
                self.collective()
            elif kind < 0.95 and self.open:
                self.wait()
            elif kind >= 0.95:
                self.gradients()
        while self.open:
            self.wait()
        last = self.pool[-self.r.randint(1, 6) :]
        self.graph.output((tuple(last) if self.r.random() < 0.5 else last + [None],)[0])
        return self.graph


def random_graph(seed, plain=False):
    """plain: without writes, and without what Tuck does not know."""
    return Maker(seed, plain).make()

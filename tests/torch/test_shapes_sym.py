"""Arithmetic on sizes: what Python, math and torch compute from symbolic numbers, by value.

A call is drawn once and run with symbols for five random pairs of sizes each; what is inferred
for it is one expression, which must have torch's value and type at all five.
"""

import contextlib
import logging
import math
import random
import re
import unittest
import zlib

import torch
from torch._dynamo.source import ConstantSource
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

import shapes
from harness import some
from test_sym import ask

for noisy in ("sym_node", "symbolic_shapes"):  # they report refused calls
    logging.getLogger("torch.fx.experimental." + noisy).disabled = True

ASSIGNMENTS = 5
SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)

# Possible operands, from two sizes.
INTS = [
    lambda a, b: a,
    lambda a, b: b,
    lambda a, b: a + 3,
    lambda a, b: a - b,
    lambda a, b: 2 * a * b,
    lambda a, b: a // 2,
    lambda a, b: -a,
    lambda a, b: (a * b) % 5,
    lambda a, b: torch.sym_max(a, b),
]
FLOATS = [
    lambda a, b: a / 4,
    lambda a, b: 1 / b,
    lambda a, b: a * 0.25,
    lambda a, b: -a / b,
    lambda a, b: torch.sym_float(b),
    lambda a, b: (a + b) / 7 - 1.5,
]
BOOLS = [lambda a, b: a < b, lambda a, b: a * 2 == b, lambda a, b: a > 5, lambda a, b: a != b]
NUMBERS = (2, 3, -1, 7, 1, 0.5, 2.0, -1.25, True, False, 4)


def sizes(values):
    """Two symbolic sizes with these values."""
    env = ShapeEnv()

    def one(name, value):
        source = ConstantSource(name)
        symbol = env.create_symbol(value, source, DimDynamic.DYNAMIC, None)
        return env.create_symintnode(symbol, hint=value, source=source)

    return one("a", values[0]), one("b", values[1])


class Operand:
    def __init__(self, r, kinds=None):
        self.make = r.choice(kinds or (r.choice([INTS, INTS, FLOATS, BOOLS]) if r.random() < 0.7 else [None]))
        self.number = r.choice(NUMBERS)

    def of(self, a, b):
        return self.make(a, b) if self.make else self.number


def text_of(value):
    return str(value.node.expr) if isinstance(value, SYMBOLIC) else None


def value_of(result):
    """As test_sym --eval prints values: 3, 0.5, True."""
    if isinstance(result, SYMBOLIC):
        kind = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}[type(result)]
        return kind(result.node.hint)
    return result


def operands(r, row):
    name = row["name"].rsplit(".", 1)[1]
    if name == "sym_ite":
        return [Operand(r, BOOLS), Operand(r), Operand(r)]
    if name == "sym_sum":
        return [[Operand(r, INTS) for _ in range(r.randrange(1, 5))]]
    if name == "round":
        return [Operand(r, r.choice([INTS, FLOATS]))]
    if name in ("max", "min"):
        kind = r.choice([INTS, FLOATS])
        return [Operand(r, kind) for _ in range(r.randrange(2, 4))]
    if name.endswith("shift"):
        return [Operand(r, INTS), Operand(r, r.choice([INTS[:1], [None]]))]
    if name.strip("i_") in ("and", "or", "xor", "nd"):
        kind = r.choice([INTS, BOOLS])
        return [Operand(r, kind), Operand(r, kind)]
    if name.endswith("pow"):  # of True and a size torch makes a bool, Python an integer
        return [Operand(r, r.choice([INTS, FLOATS])), Operand(r)]
    if name in ("eq", "ne"):  # to torch True is not 1
        kind = r.choice([INTS, FLOATS, BOOLS])
        return [Operand(r, kind), Operand(r, kind if kind is BOOLS else r.choice([INTS, FLOATS]))]
    n = len(row["params"])
    return [Operand(r, r.choice([INTS, FLOATS, BOOLS]) if n == 1 else None) for _ in range(n)]


class SymCall:
    """inputs: text of a symbolic operand -> its name in the graph."""

    def __init__(self, row, op, drawn, assignments):
        self.inputs, self.values, self.symbols = {}, [], []
        for values in assignments:
            a, b = sizes(values)
            made = [[o.of(a, b) for o in x] if isinstance(x, list) else x.of(a, b) for x in drawn]
            pieces = ", ".join(self.piece(x) for x in made)
            text = f"{row['name']}({pieces})"
            if getattr(self, "text", text) != text:
                raise ValueError("torch has specialised an operand")
            self.text = text
            self.symbols.append({text_of(s): v for s, v in zip((a, b), values)})
            self.values.append(value_of(op(*made)))
        if not self.inputs or any(not isinstance(v, (int, float)) or abs(v) >= 2**62 for v in self.values):
            raise ValueError("nothing symbolic, or no number")

    def piece(self, value):
        if isinstance(value, list):
            return "[" + ", ".join(map(self.piece, value)) + "]"
        text = text_of(value)
        if text is None:
            return repr(value)
        return self.inputs.setdefault(text, f"n{len(self.inputs)}")

    def graph(self):
        inputs = "".join(f', {name}: "Sym({text})"' for text, name in self.inputs.items())
        return (
            "class GraphModule(torch.nn.Module):\n"
            f"    def forward(self{inputs}):\n"
            f"        y = {self.text}\n"
            "        return (y,)\n\n"
        )

    def __str__(self):
        return f"{self.text}    " + ", ".join(f"{name}: {text}" for text, name in self.inputs.items())


def draw_calls(row):
    op, found = shapes.operator_of(row["name"]), []
    seed = zlib.crc32(row["name"].encode()) + shapes.SEED * 1000003
    for i in range(shapes.CALLS * shapes.TRIES):
        if len(found) == shapes.CALLS:
            break
        r = random.Random(seed * 100003 + i)
        drawn = operands(r, row)
        assignments = [(r.randrange(2, 13), r.randrange(2, 13)) for _ in range(ASSIGNMENTS)]
        with contextlib.suppress(Exception):  # whatever torch raises
            found.append(SymCall(row, op, drawn, assignments))
    return found


def agree(got, wanted):
    """got: as printed; wanted: a Python number."""
    if isinstance(wanted, bool) or got in ("True", "False"):
        return got == str(wanted)
    try:
        whole = got.lstrip("-").isdigit() and len(got) < 16  # larger floats are printed without a point
        value = int(got) if whole else type(wanted)(got)
    except ValueError:
        return False
    return type(value) is type(wanted) and math.isclose(value, wanted, rel_tol=1e-12, abs_tol=1e-15)


class ArithmeticTest(unittest.TestCase):
    @staticmethod
    def rows_compared():
        return [name for name, row in shapes.rows().items() if row["shape"] == "sym"]

    def test_rows(self):
        drawn, complaints = [], []
        for name in self.rows_compared():
            if re.search(shapes.ONLY, name):
                calls = draw_calls(shapes.rows()[name])
                drawn += [(name, call) for call in calls]
                if len(calls) < shapes.LEAST:
                    complaints.append(f"{name}: only {len(calls)} calls that torch takes")
        got = [text.removeprefix("Sym(").removesuffix(")") for text in shapes.infer([c for _, c in drawn])]
        lines, wanted = [], []
        for (_, call), text in zip(drawn, got):
            for symbols, value in zip(call.symbols, call.values):
                lines.append(text + ";" + ",".join(f"{s}={v}" for s, v in symbols.items()))
                wanted.append(value)
        answers = iter(zip(ask("--eval", lines), wanted))
        for (name, call), text in zip(drawn, got):
            pairs = [next(answers) for _ in range(ASSIGNMENTS)]
            if not all(agree(*pair) for pair in pairs):
                complaints.append(f"{name}: {call}\n    {text}: {pairs}")
        self.assertFalse(complaints, f"seed {shapes.SEED}\n" + some(complaints, 400))


if __name__ == "__main__":
    unittest.main()

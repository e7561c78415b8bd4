"""Sizes as expressions: the same text and the same values as PyTorch's own sympy functions.

Drives `test_sym --print` and `test_sym --eval` (tests/unit/test_sym.c); nothing is compiled
here.
"""
import ast
import os
import random
import re
import subprocess
import unittest

import sympy
import torch.utils._sympy.functions as functions

from harness import GRAPHS, ROOT, SECONDS, some

TEST_SYM = os.environ.get("TEST_SYM") or str(ROOT / "build/release/tests/unit/test_sym")
FUNCTIONS = {name: getattr(functions, name) for name in functions.__all__ + ["Min", "Max"]}
FUNCTIONS.update({name: getattr(sympy, name)
                  for name in ("Eq", "Ne", "Lt", "Le", "Gt", "Ge", "And", "Or", "Not", "Abs")})
NO_VALUE = (ZeroDivisionError, AssertionError, ValueError, OverflowError, TypeError, AttributeError)


def ask(option, lines):
    if not os.path.exists(TEST_SYM):
        raise AssertionError(f"{TEST_SYM} is not there: make V=release tests")
    done = subprocess.run([TEST_SYM, option], input="\n".join(lines) + "\n", text=True,
                          capture_output=True, timeout=SECONDS)
    if done.returncode:
        raise AssertionError(f"test_sym {option}: exit code {done.returncode}\n{done.stderr}")
    answers = done.stdout.splitlines()
    if len(answers) != len(lines):
        raise AssertionError(f"test_sym {option}: {len(lines)} lines in, {len(answers)} out")
    return answers


class Exact(ast.NodeTransformer):
    """Python text to calls of torch's functions: sympy's own // and numbers mean something else."""

    def visit_BinOp(self, node):
        self.generic_visit(node)
        if isinstance(node.op, ast.FloorDiv):
            return ast.Call(ast.Name("FloorDiv", ast.Load()), [node.left, node.right], [])
        return node

    def visit_Constant(self, node):
        if isinstance(node.value, bool):
            return ast.Attribute(ast.Name("sympy", ast.Load()), str(node.value).lower(), ast.Load())
        kind = "Float" if isinstance(node.value, float) else "Integer"
        function = ast.Attribute(ast.Name("sympy", ast.Load()), kind, ast.Load())
        return ast.Call(function, [node], [])


def names(text):
    return sorted(set(re.findall(r"\b[a-z]+\d+\b", text)))


def symbol(name):
    if name.startswith("z"):
        return sympy.Symbol(name, real=True)
    return sympy.Symbol(name, integer=True)


def evaluate(text, symbols):
    """The text as torch's functions compute it, from the leaves up."""
    tree = ast.fix_missing_locations(Exact().visit(ast.parse(text, mode="eval")))
    return eval(compile(tree, text, "eval"), {**FUNCTIONS, "sympy": sympy, **symbols})


def symbolic(text):
    return str(evaluate(text, {name: symbol(name) for name in names(text)}))


# ---------------------------------------------------------------- the texts of the corpus

def split(text):
    """At commas outside of parentheses."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return parts + [text[start:].strip()]


def corpus():
    """Every size, stride and Sym(...) of the graphs that is not a plain number."""
    tensor = re.compile(r'"(?:\w+\()?[a-z]\w*\[([^\[\]"\n]*)\](?:\[([^\[\]"\n]*)\])?')
    texts = set()
    for path in sorted(GRAPHS.rglob("*.txt")):
        text = path.read_text(encoding="utf-8", errors="replace")
        for match in tensor.finditer(text):
            for part in match.groups():
                texts.update(split(part or ""))
        texts.update(re.findall(r'"Sym\(([^"\n]*)\)"', text))
    return sorted(t for t in texts if t and not re.fullmatch(r"-?\d+", t))


class Corpus(unittest.TestCase):
    def test_texts(self):
        """Texts of the normal printer are printed unchanged, those of the fast one in the normal
        form."""
        texts = corpus()
        self.assertGreater(len(texts), 90)
        bad = []
        for text, ours in zip(texts, ask("--print", texts)):
            expected = symbolic(text)
            if ours != expected:
                bad.append(f"{text}: {ours}, not {expected}")
        self.assertFalse(bad, some(bad))

    def test_spellings(self):
        """Both printers' texts of one expression, argument by argument."""
        path = GRAPHS / "forms213" / "symbolic_sizes_normal_then_fast_sympy.readable.txt"
        normal, fast = [re.findall(r'"Sym\(([^"\n]*)\)"', part)
                        for part in path.read_text().split("class GraphModule")[1:]]
        self.assertEqual(len(normal), len(fast))
        self.assertEqual(ask("--print", normal), normal)
        self.assertEqual(ask("--print", fast), normal)

    def test_values(self):
        rng = random.Random(1)
        check_values(self, corpus(), rng, 5)


# ---------------------------------------------------------------- random expressions

SYMBOLS = ["s0", "s1", "s27", "u0", "u1"]
NUMBERS = ["0", "1", "2", "3", "4", "5", "8", "12", "64"]


def random_int(rng, depth):
    """An integer expression, written as a program would: nothing simplified."""
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(SYMBOLS if rng.random() < 0.7 else NUMBERS)
    a, b = random_int(rng, depth - 1), random_int(rng, depth - 1)
    c = rng.choice([2, 3, 4, 8])
    return rng.choice([
        f"({a} + {b})", f"({a} + {b})", f"{a}*{b}", f"{a}*{b}", f"({a} - {b})", f"(-{a})",
        f"({a}//{c})", f"FloorDiv({a}, {b})", f"PythonMod({a}, {b})", f"PythonMod({a}, {c})",
        f"Max({a}, {b})", f"Min({a}, {b}, {c})", f"({a})**{rng.choice([2, 3])}",
        f"CeilDiv({a}, {c})",
        f"Where({a} > {c}, {a}, {b})", f"CeilToInt(IntTrueDiv({a}, {c}))", f"Abs({a})",
        f"TruncToInt(1.5*ToFloat({a}))", f"RoundToInt(IntTrueDiv({a}, {c}))",
        f"FloorToInt(0.3*ToFloat({a}))",
    ])


def random_bool(rng, depth):
    if depth > 0 and rng.random() < 0.5:
        a, b = random_bool(rng, depth - 1), random_bool(rng, depth - 1)
        return rng.choice([f"(({a}) & ({b}))", f"(({a}) | ({b}))", f"Not({a})"])
    a, b = random_int(rng, 2), random_int(rng, 1)
    return rng.choice([f"Eq({a}, {b})", f"Ne({a}, {b})", f"{a} < {b}", f"{a} <= {b}", f"{a} > {b}",
                       f"{a} >= {b}"])


def random_float(rng, depth):
    if depth == 0:
        return rng.choice(["zuf0", "0.5", "2.0", "0.1", f"ToFloat({rng.choice(SYMBOLS)})"])
    a, b = random_float(rng, depth - 1), random_float(rng, depth - 1)
    return rng.choice([f"({a} + {b})", f"{a}*{b}", f"({a} - {b})", f"FloatTrueDiv({a}, {b})",
                       f"IntTrueDiv({random_int(rng, 1)}, {random_int(rng, 1)})"])


def random_texts(seed, n):
    rng = random.Random(seed)
    make = [lambda: random_int(rng, rng.randint(1, 4))] * 5 + [lambda: random_bool(rng, 2),
                                                                lambda: random_float(rng, 2)]
    return [rng.choice(make)() for _ in range(n)]


def random_value(rng, name):
    return rng.uniform(-9, 9) if name.startswith("z") else rng.randint(0, rng.choice([4, 99]))


def check_values(test, texts, rng, times):
    """Our value of each text equals that of torch's functions, at random assignments."""
    lines, expected = [], []
    for text in texts:
        for _ in range(times):
            values = {name: random_value(rng, name) for name in names(text)}
            symbols = {name: sympy.sympify(value) for name, value in values.items()}
            try:
                value = evaluate(text, symbols)
            except NO_VALUE:
                continue
            if value not in (sympy.true, sympy.false) and not (value.is_number and value.is_finite):
                continue
            assigned = ",".join(f"{name}={value!r}" for name, value in values.items())
            lines.append(f"{text};{assigned}")
            expected.append(value)
    test.assertGreater(len(lines), len(texts) * times // 2)
    bad = [f"{line} is {value}, not {ours}"
           for line, value, ours in zip(lines, expected, ask("--eval", lines))
           if not is_value(value, ours)]
    test.assertFalse(bad, some(bad))


def is_value(value, ours):
    """Integers and booleans exactly, floats up to rounding."""
    if value in (sympy.true, sympy.false):
        return ours == str(value)
    if ours == "overflow":
        return abs(value) >= 2**63
    if value.is_Integer and re.fullmatch(r"-?\d+", ours):
        return ours == str(value)
    try:
        return abs(float(ours) - float(value)) <= 1e-9 * max(1.0, abs(float(value)))
    except ValueError:
        return False


class Random(unittest.TestCase):
    def test_values(self):
        check_values(self, random_texts(2, 1500), random.Random(3), 4)

    def test_texts(self):
        """print(parse(x)) == x for what sympy prints. Large operands of And, Or, Min and Max are
        not sorted exactly as in sympy: a few may differ, and are read as equal.
        """
        texts = []
        for text in random_texts(4, 2000):
            try:
                text = symbolic(text)
            except NO_VALUE:
                continue
            if not re.search(r"\b(nan|zoo|oo|int_oo|I)\b|\d{19}", text):
                texts.append(text)
        self.assertGreater(len(texts), 1500)
        ours = ask("--print", texts)
        bad = [f"{text}\n    {mine}" for text, mine in zip(texts, ours) if text != mine]
        self.assertLess(len(bad), len(texts) * 0.01, some(bad))
        self.assertEqual(ask("--print", ours), ours)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""usage: check_gen.py FILE

Could PyTorch have printed this generated graph? Reads it with Python's own parser: names are
assigned once and used after that, values are freed after their last use and in the right order,
and a comment occurs only where it changes. Prints what the graph consists of.
"""
import ast
import collections
import sys


def names_of(node):
    """The names a statement mentions, in the order of the text."""
    found = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    found.sort(key=lambda n: (n.lineno, n.col_offset))
    return list(dict.fromkeys(n.id for n in found))


def frees(statement):
    """The names of `a = b = None`, or None for any other statement."""
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
        if statement.value.value is None:
            return [t.id for t in statement.targets]
    return None


def split(body):
    """[(name, names it mentions, names it frees)] and the names that are returned."""
    calls = []
    for statement in body[:-1]:
        freed = frees(statement)
        if freed is not None:
            assert statement.lineno == line, f"line {statement.lineno}: a free on its own"
            calls[-1][2].extend(freed)
            continue
        target = statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
        calls.append((target.id, names_of(statement.value), []))
        line = statement.lineno
    return calls, names_of(body[-1])


def check(text):
    function = ast.parse(text).body[0].body[0]
    inputs = [a.arg for a in function.args.args[1:]]
    calls, returned = split(function.body)
    defined = set(inputs)
    assert len(defined) == len(inputs), "a parameter appears twice"
    last = {}
    for i, (name, uses, _) in enumerate(calls):
        for use in uses:
            assert use in defined or use in ("torch", "self", "device", "inf"), f"{use} is undefined"
            last[use] = i
        assert name not in defined, f"{name} is defined twice"
        defined.add(name)
    for use in returned:
        assert use in defined, f"{use} is undefined"
        last[use] = len(calls)
    for i, (name, uses, freed) in enumerate(calls):
        rule = [u for u in uses if last[u] == i and u in defined]
        rule += [name] if name not in last else []
        assert freed == rule, f"{name} frees {freed}, not {rule}"
    return inputs, calls, returned


def main():
    text = open(sys.argv[1], encoding="utf-8").read()
    inputs, calls, returned = check(text)
    comments = [s for s in text.split("\n") if s.lstrip().startswith("#")]
    for a, b in zip(comments, comments[1:]):
        assert a != b, f"comment repeated: {a}"
    kinds = collections.Counter()
    for part in text.split("torch.ops._c10d_functional.")[1:]:
        kinds[part.split("(")[0].split(".")[0]] += 1
    waits = kinds.pop("wait_tensor", 0)
    nodes = len(inputs) + len(calls) + 1
    print(f"{nodes} nodes, {len(text)} bytes: {len(inputs)} inputs, {len(returned)} outputs, "
          f"{len(comments)} comments, {sum(kinds.values())} collectives "
          f"({100 * sum(kinds.values()) / nodes:.1f} %), {waits} waits")
    return 0


if __name__ == "__main__":
    sys.exit(main())

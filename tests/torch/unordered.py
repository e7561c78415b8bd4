"""Compares graphs up to the names of their nodes and their order.

A node is described by what it calls on what: its operands are replaced by their descriptions,
down to the inputs, which are distinguished by their number. Two graphs are the same if they have
the same nodes, each equally often, and return the same.
"""

import hashlib
from collections import Counter

import torch.fx

from fxload import _plain


def shape_of(graph):
    """({description of a node: how often}, what is returned), for a torch.fx.Graph."""
    known, inputs, returned = {}, 0, None

    def operand(v):
        if isinstance(v, torch.fx.Node):
            return "node", known[v]
        if isinstance(v, (list, tuple)):
            return type(v).__name__, tuple(operand(x) for x in v)
        if isinstance(v, dict):
            return "dict", tuple((k, operand(x)) for k, x in sorted(v.items()))
        return _plain(v)

    found = Counter()
    for node in graph.nodes:
        if node.op == "output":
            returned = operand(node.args[0])
            continue
        if node.op == "placeholder":
            what = "input", inputs
            inputs += 1
        else:
            what = node.op, str(node.target), operand(node.args), operand(node.kwargs)
        known[node] = short(what)
        found[what] += 1
    return found, returned


def short(what):
    """Nested descriptions grow without limit: long ones are replaced by their digest."""
    text = repr(what)
    return text if len(text) < 80 else hashlib.sha256(text.encode()).hexdigest()[:16]


def differences_but_order(a, b):
    """Sentences; [] if the graphs are the same up to names and order."""
    (nodes_a, out_a), (nodes_b, out_b) = shape_of(a), shape_of(b)
    found = [f"only the first has {n} of {w}" for w, n in (nodes_a - nodes_b).items()]
    found += [f"only the second has {n} of {w}" for w, n in (nodes_b - nodes_a).items()]
    if out_a != out_b:
        found.append(f"returned: {out_a} against {out_b}")
    return found

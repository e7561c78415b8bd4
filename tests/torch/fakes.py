"""What torch's own passes need around a graph: fake values on its nodes, and process groups.

    with groups(path):                      the groups of a graph's side-car, on fake ranks
        module, mode = fake_module(text)    nodes carry meta["val"] as their annotations say
        with V.set_fake_mode(mode): …

Values come from the annotations, so nothing is executed and every graph of the corpus gets them. Symbols
become SymInts with the hints that are given.
"""

import contextlib
import json
import re

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv, ValueRangesSLoc
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._dtype_abbrs import dtype_abbrs

import fxload

DTYPES = {abbr: dtype for dtype, abbr in dtype_abbrs.items()}
TENSOR = re.compile(r"(\w+)\[([^\]]*)\](?:\[([^\]]*)\])?(\w+(?::\d+)?)?$")
native_groups = torch._C._distributed_c10d


def sidecar(path):
    """The side-car of a graph: X.json for X.txt, also for X.rankR.txt."""
    name = re.sub(r"\.rank\d+$", "", path.with_suffix("").name)
    found = path.with_name(name + ".json")
    return json.loads(found.read_text()) if found.exists() else {}


def groups_of(path):
    """(rank, {name: members}) from the side-car."""
    side = sidecar(path)
    rank = re.search(r"\.rank(\d+)$", path.with_suffix("").name)
    rank = int(rank[1]) if rank else side.get("printed_on_rank", 0)
    by_rank = side.get("groups_by_rank")
    named = by_rank[rank] if by_rank else side.get("groups", {})
    return rank, {n: g["ranks"] for n, g in named.items() if g.get("ranks")}


@contextlib.contextmanager
def groups(path):
    rank, named = groups_of(path)
    world = max([r + 1 for ranks in named.values() for r in ranks] + [rank + 1, 2])
    dist.init_process_group("fake", rank=rank, world_size=world, store=FakeStore())
    made = {tuple(range(world)): dist.group.WORLD}
    for ranks in named.values():
        if tuple(ranks) not in made:
            made[tuple(ranks)] = dist.new_group(ranks)
    # torch's own names are replaced by those of the graph, and restored at the end.
    mine = [g for g in made.values() if g is not dist.GroupMember.NON_GROUP_MEMBER]
    for group in mine:
        native_groups._unregister_process_group(group.group_name)
    here = {n: made[tuple(ranks)] for n, ranks in named.items() if rank in ranks}
    for name, group in here.items():
        native_groups._register_process_group(name, group)
    try:
        yield rank, named
    finally:
        for name in here:
            native_groups._unregister_process_group(name)
        for group in mine:
            native_groups._register_process_group(group.group_name, group)
        dist.destroy_process_group()


class Symbols(dict):
    """SymInts by the names of symbols, made when first needed."""

    def __init__(self, env, hints):
        self.env, self.hints = env, hints

    def __missing__(self, name):
        if not re.fullmatch(r"[su]\d+", name):
            raise KeyError(name)
        import sympy

        symbol = sympy.Symbol(name, positive=True, integer=True)
        hint = self.hints.get(name, 8)
        self.env.backed_var_to_val[symbol] = sympy.Integer(hint)
        self.env.var_to_range[symbol] = torch.utils._sympy.value_ranges.ValueRanges(2, 1 << 40)
        place = self.env._get_sloc()
        self.env.var_to_range_sloc[symbol] = ValueRangesSLoc(place, place)
        self[name] = self.env.create_symintnode(symbol, hint=hint)
        return self[name]


def numbers(text, symbols):
    return tuple(eval(f"[{text}]", {"__builtins__": {}}, symbols)) if text.strip() else ()


def value_of(annotation, mode, symbols):
    """The fake value that an annotation describes, or None."""
    annotation = (annotation or "").strip("\"'")
    if annotation.startswith("Sym("):
        try:
            return eval(annotation[4:-1], {"__builtins__": {}}, symbols)
        except (NameError, KeyError, SyntaxError, TypeError):
            return None
    found = TENSOR.match(annotation)
    if not found or found[1] not in DTYPES:
        return None
    with mode:
        size = numbers(found[2], symbols)
        dtype, device = DTYPES[found[1]], found[4] or "cpu"
        if found[3] is None:
            return torch.empty(size, dtype=dtype, device=device)
        return torch.empty_strided(size, numbers(found[3], symbols), dtype=dtype, device=device)


# torch without CUDA fails on ~x of a fake CUDA tensor, which some decompositions use; not on this.
torch.Tensor.__invert__ = lambda self: torch.bitwise_not(self)


def inputs_of(module):
    """Fake values for its placeholders; one without annotation is a DeviceMesh that nothing reads."""
    return [n.meta.get("val") for n in module.graph.nodes if n.op == "placeholder"]


def fake_module(text, hints=None):
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=True)
    symbols = Symbols(env, hints or {})
    module = fxload.load(fxload.fix_class_name(text)).module()
    for node in module.graph.nodes:
        value = value_of(node.meta.get("annotation"), mode, symbols)
        if value is not None:
            node.meta["val"] = value
    return module, mode

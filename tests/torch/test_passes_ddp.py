"""DDP fusion compared with torch's own: the same buckets, the same merged graphs, an error where
torch raises."""

import collections
import json
import re
import tempfile
import unittest
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
from torch._inductor.fx_passes import ddp_fusion
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.passes.shape_prop import _extract_tensor_metadata
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._pytree import tree_map

import fxload
from harness import GRAPHS, graphs, one_test_each, some, tuck

SIZES = (25, 1, 0.05)
DTYPES = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
    "i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8,
    "u8": torch.uint8, "b8": torch.bool,
}  # fmt: skip
TENSOR = re.compile(r"^([a-z]+[0-9]+)\[([0-9, ]*)\](?:\[([0-9, ]*)\])?")

RANKS = (".rank0", ".rank1", ".rank2", ".rank3")

# Where torch raises, and what. Tuck's compat=torch must refuse those, and name the exception.
RAISES = {"ddp/two_groups_bw": "AssertionError"}

# Where the buckets without compat differ from torch's, and which difference of docs/differences.md it is.
DIFFERENT = {
    "ddp/two_groups_bw": "one open bucket a key",
    "ddp/two_dtypes_bw": "one open bucket a key",
    **{f"exec/two_groups_ddp_bw{r}": "one open bucket a key" for r in ("", *RANKS)},
    "ddp/resnet_bw": "two waits of one all-reduce",
    "ddp/resnet_post_grad_bw": "two waits of one all-reduce",
    "exec/resnet_ddp_bw": "two waits of one all-reduce",
}


def with_reduces(paths):
    return [p for p in paths if "_c10d_functional.all_reduce" in p.read_text()]


PATHS = with_reduces(graphs("ddp", "exec"))


def name_of(path):
    return str(Path(path).relative_to(GRAPHS).with_suffix(""))


def numbers(text):
    return [int(x) for x in text.split(",")] if text.strip() else []


def fake_value(mode, annotation):
    """The tensor that an annotation describes, on the CPU; None if a size is a symbol."""
    found = TENSOR.match(annotation or "")
    if not found or found.group(1) not in DTYPES:
        return None
    sizes = numbers(found.group(2))
    with mode:
        if found.group(3) is None:
            return torch.empty(sizes, dtype=DTYPES[found.group(1)])
        return torch.empty_strided(sizes, numbers(found.group(3)), dtype=DTYPES[found.group(1)])


def in_torch(path):
    """The graph of a file, rebuilt from what --exec prints, with the values that torch's passes
    need."""
    mode = FakeTensorMode()
    module = fxload.load(tuck("show", "--exec", path)).module()
    for node in module.graph.nodes:
        value = fake_value(mode, node.meta.get("annotation"))
        if node.target is torch.ops.aten._foreach_div.Scalar:  # lists have no annotation
            with mode:
                value = node.target([n.meta["val"] for n in node.args[0]], node.args[1])
        if value is not None:
            node.meta["val"] = value
            node.meta["tensor_meta"] = tree_map(_extract_tensor_metadata, (value,))[0]
    return module, mode


def torch_buckets(module, mode, size):
    """Names of the all-reduces, bucket by bucket, as torch's finder gives them."""
    found = []

    def record(graph, blocks, indices):
        found.append([b.comm_node.name for b in blocks])

    with V.set_fake_mode(mode):
        ddp_fusion._fuse_ddp_communication(
            module.graph, partial(ddp_fusion._bucket_size_fusion, bucket_size_mb=size), record
        )
    return found


def optimize(path, passes):
    """The report and the resulting graph."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.txt"
        report = json.loads(tuck("optimize", path, "--json", "--passes", passes, "-o", out))
        return report["passes"], fxload.load(fxload.fix_class_name(out.read_text()))


def tuck_buckets(path, size, compat):
    passes, _ = optimize(path, f"fuse_ddp_with_concat_op(bucket_size_mb={size},compat={compat})")
    (report,) = passes
    merged = [b["members"] for b in report["buckets"]]
    alone = [[n["node"]] for n in report["left"] if n["reason"] in ("alone", "oversized")]
    return merged, alone


def overload(target, args):
    """What torch's DDP fusion calls without overload, with its overload."""
    if target is torch.ops.aten.cat:
        return torch.ops.aten.cat.default
    if target is torch.ops.aten.reshape:
        return torch.ops.aten.reshape.default
    if target is torch.ops.aten.split and isinstance(args[1], (list, tuple)):
        return torch.ops.aten.split.sizes
    return target


def structure(graph):
    """Every node as a number that depends on its operator, its operands and theirs: equal graphs,
    whatever their names and order, have the same numbers equally often."""
    number, known = {}, {}

    def plain(v):
        if isinstance(v, torch.fx.Node):
            return "node", number[v]
        if isinstance(v, (list, tuple)):
            return tuple(plain(x) for x in v)
        if isinstance(v, dict):
            return tuple((k, plain(x)) for k, x in v.items())
        return type(v).__name__, str(v)

    for node in in_order(graph):
        target = node.name if node.op == "placeholder" else overload(node.target, node.args)
        key = (node.op, str(target), plain(node.args), plain(node.kwargs))
        number[node] = known.setdefault(key, hash(key))
    return collections.Counter(number.values())


def in_order(graph):
    """Nodes after what they use: torch's schedule_comm_wait leaves others."""
    done, order = set(), []
    for last in graph.nodes:
        stack = [last]
        while stack:
            node = stack[-1]
            missing = [n for n in node.all_input_nodes if n not in done]
            if missing and node not in done:
                stack += missing
                continue
            stack.pop()
            if node not in done:
                done.add(node)
                order.append(node)
    return order


def start_group():
    if not dist.is_initialized():
        dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())


class Driven(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        start_group()


@one_test_each(PATHS)
class Buckets(Driven):
    def check(self, path):
        module, mode = in_torch(path)
        for size in SIZES:
            wanted = torch_buckets(module, mode, size)
            many = [b for b in wanted if len(b) > 1]
            single = [b for b in wanted if len(b) == 1]
            if name_of(path) not in RAISES:
                self.assertEqual(tuck_buckets(path, size, "torch"), (many, single), size)
            found = tuck_buckets(path, size, "none")
            if name_of(path) not in DIFFERENT:
                self.assertEqual(found, (many, single), size)
            elif size == SIZES[0]:
                self.assertNotEqual(found, (many, single), "no difference any more")


@one_test_each(PATHS)
class Merged(Driven):
    def run_torch(self, path, fuse):
        module, mode = in_torch(path)
        with V.set_fake_mode(mode):
            fuse(module.graph)
        return module.graph

    def check(self, path):
        for how in ("concat", "coalesced"):
            fuse = getattr(ddp_fusion, f"fuse_ddp_with_{how}_op")
            passes = f"fuse_ddp_with_{how}_op(compat=torch)"
            if name_of(path) in RAISES:
                self.refused(path, partial(fuse, bucket_size_mb=25), passes)
                continue
            graph = self.run_torch(path, partial(fuse, bucket_size_mb=25))
            self.same(graph, optimize(path, passes)[1].graph)
        if name_of(path) not in RAISES:
            listed = ["fuse_ddp_with_concat_op", "schedule_comm_wait"]
            graph = self.run_torch(
                path,
                lambda g: ddp_fusion.fuse_ddp_communication(g, listed, bucket_size_mb=1),
            )
            passes = "fuse_ddp_communication(compat=torch,bucket_size_mb=1)"
            self.same(graph, optimize(path, passes)[1].graph)

    def refused(self, path, fuse, passes):
        with self.assertRaises(Exception) as raised:
            self.run_torch(path, fuse)
        name = type(raised.exception).__name__
        self.assertEqual(name, RAISES[name_of(path)])
        with self.assertRaisesRegex(AssertionError, f"PyTorch raises {name}"):
            optimize(path, passes)

    def same(self, wanted, found):
        a, b = structure(wanted), structure(found)
        self.assertEqual(sum(a.values()), sum(b.values()), "nodes")
        self.assertEqual(sum(((a - b) + (b - a)).values()), 0, "nodes that only one of them has")


@one_test_each(PATHS)
class WaitPlaces(Driven):
    """schedule_comm_wait: how many of the other nodes come before each wait."""

    def places(self, graph, moved):
        before, at = 0, {}
        for node in graph.nodes:
            if node.name not in moved:
                before += 1
            elif node.target is torch.ops._c10d_functional.wait_tensor.default:
                at[node.name] = before
        return at

    def check(self, path):
        module, mode = in_torch(path)
        reduces = [n for n in module.graph.nodes if "all_reduce" in str(n.target) and n.users]
        blocks = [b for b in map(ddp_fusion.get_comm_block, reduces) if b]
        moved = {n.name for b in blocks for n in b.node_list if n is not b.comm_node}
        with V.set_fake_mode(mode):
            ddp_fusion.schedule_comm_wait(module.graph)
        for compat in ("torch", "none"):
            _, loaded = optimize(path, f"schedule_comm_wait(compat={compat})")
            wanted, found = self.places(module.graph, moved), self.places(loaded.graph, moved)
            wrong = [f"{n}: {found[n]} for {wanted[n]}" for n in wanted if found[n] != wanted[n]]
            self.assertEqual(wrong, [], some(wrong))


if __name__ == "__main__":
    unittest.main()

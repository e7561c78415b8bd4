"""The tables of operators and dtypes say what PyTorch says, and where a schema does not tell the
truth, a run shows it.

The tables come from `test_ops --dump`, the unit test's program: one JSON object a row, signatures
taken apart.
"""

import ast
import builtins
import datetime
import functools
import importlib
import json
import math
import operator
import os
import pickle
import pkgutil
import random
import re
import subprocess
import sys
import tempfile
import time
import unittest
import warnings

import torch
import torch.distributed as dist
import torch.fx.graph
import torch.fx.node
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from harness import GRAPHS, ROOT, some

PROGRAM = ROOT / "build" / "release" / "tests" / "unit" / "test_ops"
RANK_SECONDS = 1800
WAIT = datetime.timedelta(seconds=20)

# Importing these registers the operators that torch defines in Python, and all higher-order ones.
REGISTER = """torch.distributed._functional_collectives torch.distributed._symmetric_memory
    torch.distributed.tensor torch.distributed.fsdp._fully_shard._fsdp_collectives
    torch._inductor.fx_passes.bucketing torch._inductor.inductor_prims torch._inductor.lowering
    torch._inductor.fx_passes.control_dependencies torch._export.wrappers"""

# Rows that only other releases have.
ABSENT = {
    "tuck.next_graph.default",
    "_c10d_functional.wait_tensors.default",
    "bucketing._pre_bucket_all_gather_symm_mem.default",
    "bucketing._pre_bucket_reduce_scatter_symm_mem.default",
    "fsdp.all_gather_copy_in.default_2_6",
    "fsdp.set_.default",
}
PYTHON = {"operator": operator, "builtins": builtins, "math": math, "torch": torch}

# Namespaces in the graphs that are invented, or third-party.
FOREIGN = {"my", "my_ns", "apex", "tg", "megatron", "vllm", "mylib"}


@functools.cache
def dump():
    make = ["make", "--no-print-directory", "-s", "V=release", str(PROGRAM.relative_to(ROOT))]
    done = subprocess.run(make, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{PROGRAM} does not build\n{done.stderr}")
    done = subprocess.run([str(PROGRAM), "--dump"], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@functools.cache
def rows():
    return {row["name"]: row for row in dump() if row["kind"] == "op"}


@functools.cache
def register():
    package = importlib.import_module("torch._higher_order_ops")
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
    for name in REGISTER.split():
        importlib.import_module(name)


def overload(name):
    """torch's operator of that name, or None."""
    register()
    parts = name.split(".")
    if len(parts) != 3 or parts[0] in PYTHON:
        return None
    try:
        return getattr(getattr(getattr(torch.ops, parts[0]), parts[1]), parts[2])
    except AttributeError:
        return None


def with_schema():
    """(row, operator) of every row that torch has a schema for."""
    for name, row in rows().items():
        op = overload(name)
        if op is not None:
            yield row, op


# ---- schemas -------------------------------------------------------------------------------------

# enum op_type, as torch names the types in schemas; SymInt and int are one to us.
TYPES = [
    "Tensor", "int", "float", "bool", "str", "number", "ScalarType", "Device", "Layout",
    "MemoryFormat", "Generator", "Storage", "Stream", "graph", "operator", "Any",
]  # fmt: skip


def type_of(p):
    """A parameter of the dump, as torch prints the type of one."""
    text = TYPES[p["type"]]
    if p["items_optional"]:
        text = f"Optional[{text}]"
    for _ in range(p["depth"]):
        text = f"List[{text}]"
    return f"Optional[{text}]" if p["optional"] else text


def torch_type(a):
    text = re.sub(r"__torch__[\w.]+|PyObject|Dict\[.*\]", "Any", str(a.real_type))
    return text.replace("SymInt", "int").replace("SymBool", "bool").replace("complex", "number")


def same_default(p, value):
    text, kind = p["default"], TYPES[p["type"]]
    if kind == "ScalarType" and text != "None":
        numbers = {d["name"]: d["scalar_type"] for d in dump() if d["kind"] == "dtype"}
        return numbers[text] == value
    if kind == "MemoryFormat" and text != "None":
        return ["contiguous_format", "preserve_format", "channels_last"].index(text) == value
    own = ast.literal_eval(text)
    return own == value or [own] * p["list_size"] == value


def alias_marks(schema):
    """What stands in parentheses behind the types of a schema: [(letter, written)] of parameters
    and of results. The objects that torch gives for them lose the marks inside of lists."""
    text = re.sub(r"=\"[^\"]*\"|=\[[^\]]*\]", "", str(schema))
    inner, result = re.fullmatch(r"[\w:.]+\((.*)\) -> (.*)", text).groups()
    if result.startswith("("):
        result = result[1:-1]

    def marks(part):
        found = []
        for piece in re.split(r", (?![^(]*\))", part):
            if piece and piece != "*":
                m = re.search(r"\(([a-z])(!?)(?: -> \*)?\)", piece)
                found.append((m.group(1), bool(m.group(2))) if m else ("", False))
        return found

    return marks(inner), marks(result)


def schema_differences(row, op):
    schema, own = op._schema, row["schema"]
    params, results = own["params"], own["results"]
    if [p["name"] for p in params] != [a.name for a in schema.arguments]:
        return [f"parameters {[a.name for a in schema.arguments]}"]
    if len(results) != len(schema.returns):
        return [f"{len(schema.returns)} results"]
    found = []
    for p, a in zip(params, schema.arguments):
        if type_of(p) != torch_type(a):
            found.append(f"{a.name} is {torch_type(a)}, not {type_of(p)}")
        if p["list_size"] != (a.N or 0):
            found.append(f"{a.name} has list size {a.N}")
        if bool(p["kwarg_only"]) != a.kwarg_only:
            found.append(f"{a.name}: keyword-only is {a.kwarg_only}")
        if (p["default"] is not None) != a.has_default_value():
            found.append(f"{a.name}: default is {a.has_default_value()}")
        elif p["default"] is not None and not same_default(p, a.default_value):
            found.append(f"{a.name}: default is {a.default_value!r}, not {p['default']}")
    for r, a in zip(results, schema.returns):
        if type_of(r) != torch_type(a):
            found.append(f"a result is {torch_type(a)}, not {type_of(r)}")
    own_marks = [[(p["alias"], bool(p["mutated"])) for p in part] for part in (params, results)]
    for own_part, part in zip(own_marks, alias_marks(schema)):
        if own_part != part:
            found.append(f"marks {part}, not {own_part}")
    return found


class Schemas(unittest.TestCase):
    def test_equal(self):
        found = [f"{r['name']}: {d}" for r, op in with_schema() for d in schema_differences(r, op)]
        self.assertEqual(found, [], some(found))
        self.assertGreater(sum(1 for _ in with_schema()), 1500)

    def test_mutable(self):
        """torch's own summary of a schema, to double-check how marks were read."""
        found = []
        for row, op in with_schema():
            written = any(p["mutated"] for p in row["schema"]["params"])
            if written != op._schema.is_mutable:
                found.append(row["name"])
        self.assertEqual(found, [], some(found))

    def test_rows_that_have_none(self):
        register()
        found = []
        for name in rows():
            head, _, tail = name.partition(".")
            if head in PYTHON:
                known = PYTHON[head]
                for part in tail.split("."):
                    known = getattr(known, part, None)
            elif head == "higher_order":
                known = torch._ops._higher_order_ops.get(tail)
            else:
                known = overload(name)
            if (known is None) != (name in ABSENT):
                found.append(name)
        self.assertEqual(found, [], some(found))

    def test_symbols(self):
        """What torch.fx prints as syntax, and how."""
        found = []
        printed = {**torch.fx.graph.magic_methods, **torch.fx.graph.inplace_methods}
        printed = {n.strip("_"): text for n, text in printed.items()}
        self.assertEqual(printed.pop("getitem"), "{}[{}]")
        self.assertEqual(printed.pop("setitem"), "{}[{}] = {}")
        for row in rows().values():
            short = row["name"].removeprefix("operator.").strip("_")
            if not row["name"].startswith("operator.") or short in ("getitem", "setitem"):
                continue
            text = printed.pop(short, None)
            shown = text.replace("{}", "").strip() if text else None
            if shown != row["symbol"]:
                found.append(f"{row['name']} is printed as {text}")
        self.assertEqual(found, [])
        left = [n for n in printed if hasattr(operator, n) or hasattr(operator, n + "_")]
        self.assertEqual(left, [])


class Flags(unittest.TestCase):
    def test_tags(self):
        """Flags that torch has as tags of operators: none is missing."""
        pairs = [
            ("nondeterministic_seeded", "random"), ("needs_contiguous_strides", "contig"),
            ("needs_exact_strides", "exact"), ("needs_fixed_stride_order", "fixed"),
            ("dynamic_output_shape", "datadep"), ("data_dependent_output", "datadep"),
            ("inplace_view", "restrides"),
        ]  # fmt: skip
        found = []
        for row, op in with_schema():
            for tag, flag in pairs:
                if getattr(torch.Tag, tag) in op.tags and flag not in row["flags"]:
                    found.append(f"{row['name']}: {tag}")
        self.assertEqual(found, [], some(found))

    def test_lowered(self):
        """What torch's estimates treat as fusible."""
        from torch._inductor.lowering import fallbacks, lowerings
        from torch.utils.flop_counter import flop_registry

        for kernel in ("mm", "bmm", "conv"):
            importlib.import_module("torch._inductor.kernel." + kernel)
        found = []
        for row, op in with_schema():
            fusible = op in lowerings and op not in fallbacks and op.namespace != "_c10d_functional"
            fusible = fusible and op.overloadpacket not in flop_registry
            if fusible != ("lowered" in row["flags"]):
                found.append(row["name"])
        self.assertEqual(found, [], some(found))

    def test_compute(self):
        """What torch's overlap scheduler takes for compute, and for cheap."""
        from torch.utils.flop_counter import flop_registry

        found = []
        for row, op in with_schema():
            counted = row["flops"] != "none" and "uncounted" not in row["flags"]
            cheap = (row["class"] in ("view", "pointwise")) != ("odd_tags" in row["flags"])
            if counted != (op.overloadpacket in flop_registry):
                found.append(f"{row['name']}: flops")
            if cheap != (op.is_view or torch.Tag.pointwise in op.tags):
                found.append(f"{row['name']}: tags")
        self.assertEqual(found, [], some(found))

    def test_effects(self):
        """What torch keeps although it is unused, Tuck keeps."""
        found = []
        for row, op in with_schema():
            if op in torch.fx.node._side_effectful_functions and "effect" not in row["flags"]:
                found.append(row["name"])
        self.assertEqual(found, [])

    def test_python_effects(self):
        known = {name.rpartition(".")[2]: row for name, row in rows().items()}
        names = {getattr(f, "__name__", "") for f in torch.fx.node._side_effectful_functions}
        for name in ("_set_grad_enabled", "_enter_autocast", "_exit_autocast", "setitem"):
            self.assertIn(name, names)
            self.assertIn("effect", known[name]["flags"], name)


# ---- storage: what calls do ----------------------------------------------------------------------


def tensors(value):
    return [t for t in pytree.tree_leaves(value) if isinstance(t, torch.Tensor)]


def storage(t):
    return t.untyped_storage()._cdata


def storages(value):
    """Only those in use: an empty tensor shares nothing."""
    bare = [s for s in pytree.tree_leaves(value) if isinstance(s, torch.UntypedStorage)]
    return {storage(t) for t in tensors(value) if t.numel()} | {s._cdata for s in bare}


def picture(t):
    """Everything that a call could change about a tensor."""
    data = t.detach().clone() if t.untyped_storage().nbytes() and t.numel() else None
    return t.shape, t.stride(), storage(t), t.untyped_storage().nbytes(), data, t.grad is None


def changed(t, before):
    now = picture(t)
    if now[:4] != before[:4] or now[5] != before[5]:
        return True
    return now[4] is not None and not torch.equal(now[4].nan_to_num(), before[4].nan_to_num())


class Call:
    """One call of an operator: what it wrote, and which operands its results share storage with."""

    def __init__(self, row, op, args, kwargs=None, settle=None):
        params, kwargs = row["schema"]["params"], kwargs or {}
        values = [args[i] if i < len(args) else kwargs.get(p["name"]) for i, p in enumerate(params)]
        before = [[picture(t) for t in tensors(v)] for v in values]
        operands = [storages(v) for v in values]
        self.result = op(*args, **kwargs)
        n = len(row["schema"]["results"])
        results = [self.result] if n == 1 else list(self.result) if n else []
        if settle:
            settle(self.result)
        self.written, self.shared = set(), set()
        for p, v, old, own in zip(params, values, before, operands):
            if any(changed(t, b) for t, b in zip(tensors(v), old)):
                self.written.add(p["name"])
            own = own | storages(v)
            for i, r in enumerate(results):
                inner = [getattr(t, "elem", t) for t in tensors(r)]  # of AsyncCollectiveTensor
                if own & {storage(t) for t in inner}:
                    self.shared.add((p["name"], i))


def told(row, which="truth"):
    """What the table says: written operands, pairs that share storage."""
    sig = row[which]
    written = {p["name"] for p in sig["params"] if p["mutated"]}
    shared = set()
    for i, r in enumerate(sig["results"]):
        shared |= {(p["name"], i) for p in sig["params"] if r["alias"] and p["alias"] == r["alias"]}
    return written, shared


def optional(row, which):
    return {p["name"] for p in row[which]["params"] if p["optional"]}


def tensor(*sizes):
    return torch.arange(1.0, 1.0 + math.prod(sizes)).reshape(sizes)


def running(n=3):
    return {"running_mean": torch.zeros(n), "running_var": torch.ones(n)}


# One call on the CPU for each correction (`lies`) that demonstrates all of it: (operands,
# keywords).
SHOWN = {
    "aten._batch_norm_impl_index.default": lambda: (
        [tensor(2, 3), None, None, *running().values(), True, 0.1, 1e-5, False], {}),
    "aten._unsafe_view.default": lambda: ([tensor(2, 3), [6]], {}),
    "aten.alpha_dropout.default": lambda: ([tensor(3), 0.5, False], {}),
    "aten.atleast_1d.default": lambda: ([tensor()], {}),
    "aten.atleast_2d.default": lambda: ([tensor(3)], {}),
    "aten.atleast_3d.default": lambda: ([tensor(3)], {}),
    "aten.batch_norm.default": lambda: (
        [tensor(2, 3), None, None, *running().values(), True, 0.1, 1e-5, False], {}),
    "aten.batch_norm_update_stats.default": lambda: ([tensor(2, 3), *running().values(), 0.1], {}),
    "aten.broadcast_tensors.default": lambda: ([[tensor(2, 1), tensor(3)]], {}),
    "aten.conj_physical.default": lambda: ([tensor(3)], {}),
    "aten.cov.default": lambda: ([tensor()], {"correction": 0, "aweights": tensor()}),
    "aten.dropout.default": lambda: ([tensor(3), 0.5, False], {}),
    "aten.feature_dropout.default": lambda: ([tensor(3), 0.5, False], {}),
    "aten.instance_norm.default": lambda: (
        [tensor(2, 3, 4), None, None, *running().values(), True, 0.1, 1e-5, False], {}),
    "aten.lift.default": lambda: ([tensor(3)], {}),
    "aten.meshgrid.default": lambda: ([[tensor(2), tensor(3)]], {}),
    "aten.meshgrid.indexing": lambda: ([[tensor(2), tensor(3)]], {"indexing": "xy"}),
    "aten.native_batch_norm.default": lambda: (
        [tensor(2, 3), None, None, *running().values(), True, 0.1, 1e-5], {}),
    "aten.set_.source_Storage": lambda: ([tensor(3), tensor(4).untyped_storage()], {}),
    "aten.set_.source_Storage_storage_offset": lambda: (
        [tensor(3), tensor(4).untyped_storage(), 0, [2], [1]], {}),
    "aten.set_.source_Tensor": lambda: ([tensor(3), tensor(4)], {}),
    "aten.set_.source_Tensor_storage_offset": lambda: ([tensor(3), tensor(4), 0, [2], [1]], {}),
    "aten.sum_to_size.default": lambda: ([tensor(3), [3]], {}),
    "aten.unsafe_chunk.default": lambda: ([tensor(4), 2], {}),
    "aten.unsafe_split.Tensor": lambda: ([tensor(4), 2], {}),
    "aten.unsafe_split_with_sizes.default": lambda: ([tensor(4), [1, 3]], {}),
    "fsdp.all_gather_copy_in.default": lambda: (
        [[tensor(2), tensor(1)], tensor(6), [2, 1], 3, 1], {}),
    "inductor._alloc_from_pool.default": lambda: ([tensor(8), 8, torch.float32, [2], [1]], {}),
    "inductor._reinterpret_tensor.default": lambda: ([tensor(8), [2], [1], 1], {}),
    "inductor.resize_storage_bytes_.default": lambda: ([tensor(8), 0], {}),
    "prims.as_strided.default": lambda: ([tensor(8), [2], [1], 0], {}),
    "prims.device_put.default": lambda: ([tensor(3), torch.device("cpu")], {}),
}  # fmt: skip

# Two ranks are needed; on_ranks() has the calls.
SHOWN_ON_RANKS = {
    "_c10d_functional._wrap_tensor_autograd.default", "_c10d_functional.batch_p2p_ops.default",
    "_c10d_functional.irecv.default", "_c10d_functional.wait_tensor.default",
    "c10d._allgather_base_.default",
    "c10d._reduce_scatter_base_.default", "c10d.allgather_.default",
    "c10d.allgather_coalesced_.default", "c10d.allgather_into_tensor_coalesced_.default",
    "c10d.allreduce_.default", "c10d.allreduce_coalesced_.default", "c10d.alltoall_.default",
    "c10d.alltoall_base_.default", "c10d.broadcast_.default", "c10d.gather_.default",
    "c10d.recv_.default", "c10d.recv_any_source_.default", "c10d.reduce_.default",
    "c10d.reduce_scatter_.default", "c10d.reduce_scatter_tensor_coalesced_.default",
    "c10d.scatter_.default", "c10d_functional.batch_p2p_ops.default",
    "c10d_functional.irecv.default", "c10d_functional.wait_tensor.default",
}  # fmt: skip

# The part that has its own test below.
SHOWN_BY_HAND = {"inductor.accumulate_grad_.default"}

NOT_RUN = {
    "aten.batch_norm_gather_stats.default": "CUDA only",
    "aten.batch_norm_gather_stats_with_counts.default": "CUDA only",
    "aten.cudnn_batch_norm.default": "CUDA only",
    "aten.miopen_batch_norm.default": "ROCm only",
    "_c10d_functional.wait_tensors.default": "not in torch 2.13",
    "fsdp.set_.default": "not in torch 2.13",
}


class Lies(unittest.TestCase):
    def test_each_is_shown(self):
        """Each correction is demonstrated by a run, or there is a reason why not."""
        storage_lies = {n for n, r in rows().items() if r["lies"] and "(" in r["lies"]}
        none_lies = {n for n, r in rows().items() if r["lies"] and "?" in r["lies"]}
        listed = [set(SHOWN), SHOWN_ON_RANKS, SHOWN_BY_HAND, set(NOT_RUN)]
        self.assertEqual(set().union(*listed), storage_lies)
        self.assertEqual(sum(map(len, listed)), len(storage_lies))
        self.assertEqual(none_lies, set(NONES))

    def test_shown(self):
        found = []
        for name, operands in SHOWN.items():
            row, (args, kwargs) = rows()[name], operands()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call = Call(row, overload(name), args, kwargs)
            written, shared = told(row)
            if (call.written, call.shared) != (written, shared):
                found.append(f"{name}: {call.written} {call.shared}, told {written} {shared}")
            if (call.written, call.shared) == told(row, "schema"):
                found.append(f"{name}: the schema says so, too")
        self.assertEqual(found, [], some(found))

    def test_accumulate_grad(self):
        """It writes and returns the gradient of the variable."""
        accumulate = torch.ops.inductor.accumulate_grad_.default
        with torch.no_grad():
            variable = tensor(3).requires_grad_()
            call = Call(rows()["inductor.accumulate_grad_.default"], accumulate,
                        [variable, None, tensor(3)])  # fmt: skip
            self.assertEqual(call.written, {"variable"})
            again = accumulate(variable, variable.grad, tensor(3))
            self.assertTrue(torch.equal(variable.grad, 2 * tensor(3)))
            self.assertEqual(storage(again), storage(variable.grad))

    def test_none_for_a_tensor(self):
        """The schema says Tensor, but None is accepted."""
        from torch._subclasses.fake_tensor import FakeTensorMode

        for name, operands in NONES.items():
            row = rows()[name]
            with FakeTensorMode():
                args = operands()
                overload(name)(*args)
            given = {p["name"] for p, a in zip(row["schema"]["params"], args) if a is None}
            self.assertEqual(given, optional(row, "truth") - optional(row, "schema"), name)

    def test_on_ranks(self):
        found, shown = run_ranks()
        self.assertEqual(found, [], some(found))
        self.assertEqual(shown, SHOWN_ON_RANKS)


def attention(*more):
    q = [torch.empty(1, 2, 8, 16, dtype=torch.bfloat16, device="cuda") for _ in range(5)]
    return [*q, torch.empty(1, 2, 8, device="cuda"), *more]


def seed():
    return torch.empty(2, dtype=torch.uint64, device="cuda")


NONES = {
    "aten._scaled_dot_product_flash_attention_backward.default": lambda: attention(
        None, None, 8, 8, 0.0, True, seed(), seed()),
    "aten._scaled_dot_product_efficient_attention_backward.default": lambda: [
        *attention()[:4], None, *attention()[4:], seed(), seed(), 0.0, [True, True, True, False]],
    "aten._scaled_dot_product_cudnn_attention_backward.default": lambda: attention(
        seed(), seed(), None, None, None, 8, 8, 0.0, True),
}  # fmt: skip


# ---- storage: what two ranks do ------------------------------------------------------------------


class Capture(TorchDispatchMode):
    """Captures the operands that torch.distributed passes on, which Python cannot make."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.args = args
        return func(*args, **(kwargs or {}))


def rank_calls(rank, name, group, add):
    """(operator, operands) in an order in which both ranks can run them."""
    peer = 1 - rank
    fun, old, c = torch.ops._c10d_functional, torch.ops.c10d_functional, torch.ops.c10d

    def zeros(n=4):
        return torch.zeros(n)

    def mine():
        return tensor(4) * (rank + 1)

    for ops in (fun, old):
        for sender in (0, 1):
            yield ops.isend if rank == sender else ops.irecv, [mine(), peer, 0, name]
        yield ops.batch_p2p_ops, [["isend", "irecv"], [peer] * 2, [0, 0], [mine(), zeros()], name]
    # Waited for twice: the first wait is when data arrives.
    yield fun.wait_tensor, [fun.wait_tensor(fun.all_reduce(mine(), "sum", name))]
    yield old.wait_tensor, [old.wait_tensor(old.all_reduce(mine(), "sum", "", [0, 1], 2))]
    yield fun._wrap_tensor_autograd, [mine()]
    yield c._allgather_base_, [zeros(8), mine(), group, False]
    yield c._reduce_scatter_base_, [zeros(2), mine(), group, add, False]
    yield c.allgather_, [[[zeros(), zeros()]], [mine()], group, False]
    yield c.allgather_coalesced_, [[[zeros()], [zeros()]], [mine()], group, False]
    yield c.allgather_into_tensor_coalesced_, [[zeros(8)], [mine()], group, False]
    yield c.allreduce_, [[mine()], group, add, None, False]
    yield c.allreduce_coalesced_, [[mine(), mine()], group, add, False]
    yield c.alltoall_, [[zeros(), zeros()], [mine(), mine()], group, False]
    yield c.alltoall_base_, [zeros(), mine(), group, [], [], False]
    for root in (0, 1):
        yield c.broadcast_, [[mine()], group, root, 0, False]
        gathered = [[zeros(), zeros()]] if rank == root else []
        yield c.gather_, [gathered, [mine()], group, root, False]
        yield c.reduce_, [[mine()], group, add, root, 0, False]
        scattered = [[mine(), mine()]] if rank == root else []
        yield c.scatter_, [[zeros()], scattered, group, root, False]
    yield c.reduce_scatter_, [[zeros()], [[mine(), mine()]], group, add, False]
    yield c.reduce_scatter_tensor_coalesced_, [[zeros(2)], [mine()], group, add, False]
    for receive, source in ((c.recv_, [peer]), (c.recv_any_source_, [])):
        for sender in (0, 1):
            if rank == sender:
                yield c.send, [[mine()], group, peer, 0]
            else:
                yield receive, [[mine()], group, *source, 0]


def finish(result):
    """Waits for a call: until then nothing need have been written."""
    for item in pytree.tree_leaves(result):
        if isinstance(item, torch.Tensor):
            torch.ops._c10d_functional.wait_tensor(item)
        else:
            item.wait()


def on_rank(rank, folder):
    """One of two ranks: runs the calls, records what each did."""
    register()
    store = dist.FileStore(os.path.join(folder, "store"), 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=WAIT)
    with Capture() as capture:
        dist.all_reduce(torch.ones(1))
    group, add = capture.args[1:3]
    table = pickle.loads(open(os.path.join(folder, "rows"), "rb").read())
    done = []
    for packet, args in rank_calls(rank, dist.group.WORLD.group_name, group, add):
        op = packet.default
        row = table[f"{op.namespace}.{op._opname}.default"]

        call = Call(row, op, args, settle=finish)
        done.append((row["name"], call.written, call.shared))
    with open(os.path.join(folder, f"done.{rank}"), "wb") as f:
        pickle.dump(done, f)
    dist.barrier()
    dist.destroy_process_group()


def run_ranks():
    """What two ranks show: contradictions to the table, and the corrections that were fully
    demonstrated."""
    env = dict(os.environ, GLOO_SOCKET_IFNAME="lo", TORCH_CPP_LOG_LEVEL="ERROR")
    with tempfile.TemporaryDirectory(prefix="tuck-ops-") as folder:
        with open(os.path.join(folder, "rows"), "wb") as f:
            pickle.dump(rows(), f)
        command = [sys.executable, "-W", "ignore", __file__, "--rank", folder]
        pipes = {"env": env, "stderr": subprocess.PIPE}
        ranks = [subprocess.Popen(command + [str(r)], **pipes) for r in (0, 1)]
        try:
            said = [r.communicate(timeout=RANK_SECONDS)[1].decode() for r in ranks]
        finally:
            for r in ranks:
                r.kill()
        if any(r.returncode for r in ranks):
            return ["\n".join(said)], set()
        calls = [pickle.load(open(os.path.join(folder, f"done.{r}"), "rb")) for r in (0, 1)]
    found, seen = [], {}
    for name, written, shared in calls[0] + calls[1]:
        told_written, told_shared = told(rows()[name])
        if not (written <= told_written and shared <= told_shared):
            found.append(f"{name}: {written} {shared}")
        all_written, all_shared = seen.setdefault(name, (set(), set()))
        all_written |= written
        all_shared |= shared
    return found, {n for n, s in seen.items() if rows()[n]["lies"] and s == told(rows()[n])}


# ---- storage: random calls -----------------------------------------------------------------------

SIZES = [(4, 4), (2, 3, 4), (1, 2, 4, 4), (5,), (1, 2, 4, 4, 4), (), (6, 4)]
DTYPES = [torch.float32, torch.float32, torch.int64, torch.bool, torch.complex64]
UNFIT = ("aten.record_stream", "aten._print")


class Sampler:
    """Random operands, by type and partly by name. Many calls fail; the others count."""

    def __init__(self, row):
        self.row = row
        self.random = random.Random(row["name"])

    def one(self, p, shape, dtype):
        kind, pick = TYPES[p["type"]], self.random.choice
        if kind == "Tensor":
            if "ind" in p["name"] or p["name"] in ("offsets", "offs", "target"):
                return torch.zeros(shape, dtype=torch.int64)
            if "mask" in p["name"] or p["name"] == "condition" or dtype == torch.bool:
                return torch.rand(shape) > 0.5
            return torch.rand(shape).to(dtype)
        values = {
            "int": [0, 1, 1, 2, -1, 4],
            "float": [0.5, 1e-5],
            "bool": [True, False],
            "str": ["none", "sum", "mean", "rand", "constant"],
            "number": [1, 0.5, 2],
            "ScalarType": [torch.float32, torch.float64, dtype],
            "Device": [torch.device("cpu")],
            "Layout": [torch.strided],
            "MemoryFormat": [torch.contiguous_format],
        }
        return pick(values[kind])

    def value(self, p, shape, dtype):
        if p["optional"] and self.random.random() < 0.5:
            return None
        if not p["depth"]:
            return self.one(p, shape, dtype)
        if TYPES[p["type"]] == "Tensor":
            return [self.one(p, shape, dtype) for _ in range(2)]
        count = p["list_size"] or self.random.choice([1, len(shape) or 1, 2, 3])
        if TYPES[p["type"]] == "int" and not p["list_size"] and self.random.random() < 0.5:
            return list(self.random.choice([shape, range(len(shape))]))
        if TYPES[p["type"]] == "int" and "ize" in p["name"]:
            return list(shape[-count:])
        return [self.one(p, shape, dtype) for _ in range(count)]

    def call(self):
        shape, dtype = self.random.choice(SIZES), self.random.choice(DTYPES)
        args, kwargs, skipped = [], {}, False
        for p in self.row["schema"]["params"]:
            if p["default"] is not None and self.random.random() < 0.6:
                skipped = True
            elif p["kwarg_only"] or skipped:
                kwargs[p["name"]] = self.value(p, shape, dtype)
            else:
                args.append(self.value(p, shape, dtype))
        return args, kwargs


def sample(row, op, tries=60, enough=6):
    """(calls that ran, what they wrote, what they shared)"""
    sampler, ran, written, shared = Sampler(row), 0, set(), set()
    for _ in range(tries):
        try:
            args, kwargs = sampler.call()
            call = Call(row, op, args, kwargs)
        except KeyError:
            break  # a type there are no values for
        except Exception:
            continue
        ran += 1
        written |= call.written
        shared |= call.shared
        if ran == enough:
            break
    return ran, written, shared


def sample_all(work, seconds=300):
    """{name: outcome}. Some operators crash the process when called with odd arguments: they run in
    children, and the next one continues after the operator that crashed."""
    outcome, at, deadline = {}, 0, time.monotonic() + seconds
    while at < len(work) and time.monotonic() < deadline:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                silence = os.open(os.devnull, os.O_WRONLY)
                os.dup2(silence, 1)
                os.dup2(silence, 2)
                torch.set_num_threads(1)
                torch.manual_seed(0)
                with os.fdopen(write, "w") as out:
                    for row, op in work[at:]:
                        ran, written, shared = sample(row, op)
                        line = json.dumps([ran, sorted(written), sorted(shared)])
                        print(line, file=out, flush=True)
                code = 0
            finally:
                os._exit(code)
        os.close(write)
        with os.fdopen(read) as lines:
            for line in lines:
                outcome[work[at][0]["name"]] = json.loads(line)
                at += 1
        os.waitpid(child, 0)
        at += 1  # the one it died in
    return outcome


class Sampled(unittest.TestCase):
    def test_nothing_untold(self):
        """Whatever runs on the CPU writes and shares no more than its row says."""
        work = [
            (row, op)
            for row, op in with_schema()
            if row["name"].split(".")[0] in ("aten", "prims", "inductor")
            and not row["name"].startswith(UNFIT)
        ]
        outcome = sample_all(work)
        found = []
        for name, (ran, written, shared) in outcome.items():
            told_written, told_shared = told(rows()[name])
            more = (set(written) - told_written) | (set(map(tuple, shared)) - told_shared)
            if more:
                found.append(f"{name}: {more}")
        self.assertEqual(found, [], some(found))
        self.assertGreater(sum(1 for ran, _, _ in outcome.values() if ran), 1150)


# ---- dtypes --------------------------------------------------------------------------------------


class Dtypes(unittest.TestCase):
    def setUp(self):
        self.rows = [d for d in dump() if d["kind"] == "dtype"]

    def test_all(self):
        names = {n for n in dir(torch) if isinstance(getattr(torch, n), torch.dtype)}
        ours = [n for d in self.rows for n in [d["name"], *d["aliases"].split()]]
        self.assertEqual(sorted(ours), sorted(names))

    def test_names_and_sizes(self):
        for d in self.rows:
            dtype = getattr(torch, d["name"])
            self.assertEqual(str(dtype), "torch." + d["name"])
            for alias in d["aliases"].split():
                self.assertIs(getattr(torch, alias), dtype)
            self.assertEqual(d["bytes"], dtype.itemsize, d["name"])
            self.assertEqual(bool(d["is_float"]), dtype.is_floating_point, d["name"])
            self.assertEqual(d["category"] == 3, dtype.is_complex, d["name"])

    def test_abbreviations(self):
        from torch.utils._dtype_abbrs import dtype_abbrs

        ours = {getattr(torch, d["name"]): d["abbr"] for d in self.rows if d["abbr"]}
        self.assertEqual(ours, dtype_abbrs)

    def test_scalar_types(self):
        @torch.jit.script
        def number(x: torch.Tensor) -> int:
            return x.dtype

        for d in self.rows:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                x = torch.empty(0, dtype=getattr(torch, d["name"]))
            self.assertEqual(number(x), d["scalar_type"], d["name"])

    def test_index_in_bucketing(self):
        from torch._inductor.fx_passes.bucketing import _ALL_DTYPES

        for d in self.rows:
            self.assertEqual(_ALL_DTYPES.index(getattr(torch, d["name"])), d["index"], d["name"])

    def test_promotion(self):
        found = []
        for a in self.rows:
            for b, own in zip(self.rows, a["promote"]):
                try:
                    both = torch.promote_types(getattr(torch, a["name"]), getattr(torch, b["name"]))
                    both = str(both).removeprefix("torch.")
                except RuntimeError:
                    both = ""
                if both != own:
                    found.append(f"{a['name']} with {b['name']} is {both or 'nothing'}, not {own}")
        self.assertEqual(found, [], some(found))


class Corpus(unittest.TestCase):
    def test_every_operator_is_known(self):
        """Of all graphs under tests/graphs. An operator without overload: any of its overloads."""
        known = set(rows()) | {name.rpartition(".")[0] for name in rows()}
        unknown = {}
        for path in sorted(GRAPHS.rglob("*")):
            if path.suffix not in (".txt", ".py", ".log"):
                continue
            text = re.sub(r"\x1b\[[0-9;]*m", "", path.read_text(encoding="utf-8", errors="replace"))
            for line in text.splitlines():
                code = line.partition("#")[0]
                for name in re.findall(r"torch\.ops\.([a-zA-Z_]\w*(?:\.\w+){1,2})", code):
                    if name not in known and name.split(".")[0] not in FOREIGN:
                        unknown.setdefault(name, path.name)
        self.assertEqual(unknown, {})


if __name__ == "__main__":
    if sys.argv[1] == "--rank":
        on_rank(int(sys.argv[3]), sys.argv[2])
    else:
        unittest.main()

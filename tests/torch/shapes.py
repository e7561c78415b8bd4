"""Shape rules against PyTorch: random calls, run on fake tensors and inferred by Tuck.

A test of a family says how to make operands for the rows of some rules, and `compare()` does the rest:

    def gather(r, row):                      # r: Draw; row: of ops.def
        x = r.tensor(min_dim=1)
        return [x, r.dim(x), r.tensor(size=..., dtype="int64")], {}

    class GatherTest(ShapeTest):
        RULES = {"gather": gather}           # rule of ops.def -> generator of (args, kwargs)
        ROWS = {"aten.take.default": take}   # single rows, before the rule's generator
        REAL = {"aten.narrow.Tensor"}        # torch runs them on tensors with data only, zeros on a cpu

A generator gives one call; operands are what `r` draws, Python numbers, strings, lists, slices, torch.dtype,
torch.device, torch.memory_format, Opaque(function) for anything else. Calls that torch refuses are drawn again, so a generator need not be
careful. What torch gives for the rest must be what Tuck infers: dtype, sizes, strides, device. `by_schema`
is a generator for everything element-wise: it reads the row's signature. Rows that nobody compares fail
test_shapes_cover.py. An answer without strides counts as unknown and fails, but for rows of MAY_BE_UNKNOWN.

  SHAPES_SEED=7   draws other calls (the seed is printed with a failure); SHAPES_CALLS=200 more of them
  SHAPES_ROWS=re  only rows whose name matches
  TEST_INFER=path the program that infers, instead of build/release/tests/unit/test_infer, which is
                  built; TEST_OPS=path the one that knows the table
  SHAPES_KEEP=f   adds the calls to file f; SHAPES_DEBUG=1 prints why torch refuses a call
"""

import contextlib
import functools
import io
import json
import logging
import os
import random
import re
import subprocess
import tempfile
import traceback
import unittest
import zlib

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.fx.graph import dtype_abbrs

from harness import ROOT, some

logging.getLogger("torch._subclasses.fake_tensor").disabled = True  # it reports refused calls

SEED = int(os.environ.get("SHAPES_SEED", "1"))
CALLS = int(os.environ.get("SHAPES_CALLS", "24"))
ONLY = os.environ.get("SHAPES_ROWS", "")
LEAST = 20  # calls of every row that must be compared
BATCH = 500  # graphs in one file
TRIES = 20  # for one call that torch takes, on average
UNIT = ROOT / "build" / "release" / "tests" / "unit"

FLOATS = ("float32", "float32", "float16", "bfloat16", "float64")
INTS = ("int64", "int64", "int32", "int16", "int8", "uint8")
COMPLEX = ("complex64", "complex128")
PYTHON = ("torch", "operator", "math", "builtins")  # not below torch.ops
ANY = FLOATS + FLOATS + INTS + ("bool", "bool") + COMPLEX


# ---- the table -----------------------------------------------------------------------------------


@functools.cache
def program(name):
    """A unit test's program of the release build."""
    path = UNIT / name
    if os.environ.get(name.upper()):
        return os.environ[name.upper()]
    make = ["make", "--no-print-directory", "-s", "V=release", str(path.relative_to(ROOT))]
    done = subprocess.run(make, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{path} does not build\n{done.stderr}")
    return str(path)


@functools.cache
def rows():
    """ops.def: name -> {"name", "shape", "flags", "params": [{"name", "type", ...}], ...}"""
    done = subprocess.run([program("test_ops"), "--dump"], capture_output=True, text=True, check=True)
    found = map(json.loads, done.stdout.splitlines())
    found = (row for row in found if row["kind"] == "op" and not row["name"].startswith("tuck."))  # torch has none
    return {row["name"]: {**row, **row["schema"]} for row in found}


def operator_of(name):
    """torch's function for a row, or None."""
    from test_ops import PYTHON as modules, overload

    parts = name.split(".")
    if parts[0] == "higher_order":
        overload(name)  # registers them
        return getattr(torch.ops.higher_order, parts[1], None)
    if parts[0] not in modules:
        return overload(name)
    try:
        return functools.reduce(getattr, parts[1:], modules[parts[0]])
    except AttributeError:
        return None


# Rows with a shape rule that torch 2.13 cannot run without a GPU, and why; None: it has no such
# operator. test_shapes_instead.py demonstrates that and compares them with something else.
NO_KERNEL = "no kernel for tensors on a cpu, and none for fake ones"
NOT_RUN = {
    **dict.fromkeys(
        """_c10d_functional.wait_tensors.default fsdp.set_.default fsdp.all_gather_copy_in.default_2_6
        bucketing._pre_bucket_all_gather_symm_mem.default
        bucketing._pre_bucket_reduce_scatter_symm_mem.default""".split()
    ),
    **dict.fromkeys(
        """aten._scaled_grouped_mm_v2.default aten.cudnn_convolution.default aten.record_stream.default
        symm_mem._async_input_mm.default symm_mem.memset32_.default
        symm_mem.multimem_all_gather_out.default symm_mem.multimem_all_reduce_.default
        symm_mem.multimem_one_shot_all_reduce.default symm_mem.multimem_one_shot_all_reduce_out.default
        symm_mem.multimem_one_shot_reduce_out.default symm_mem.nccl_put_signal.default
        symm_mem.nccl_put_with_signal.default symm_mem.nccl_wait_for_signal.default
        symm_mem.nccl_wait_signal.default symm_mem.nvshmem_all_to_all.default
        symm_mem.nvshmem_broadcast.default symm_mem.nvshmem_put_with_signal.default
        symm_mem.nvshmem_wait_for_signal.default symm_mem.one_shot_all_reduce_copy_out.default
        symm_mem.one_shot_all_reduce_out.default symm_mem.reduce_scatter_out.default
        symm_mem.stream_write_value32_.default symm_mem.two_shot_all_reduce_.default
        symm_mem.two_shot_all_reduce_out.default""".split(),
        NO_KERNEL,
    ),
    "aten.baddbmm.dtype": "its fake kernel takes the dtype for a factor and raises; there is no other",
    "aten.pin_memory.default": "its fake kernel is not written; memory is pinned for a GPU only",
    "aten.convolution_overrideable.default": "raises, for other libraries to replace",
    "aten.convolution_backward_overrideable.default": "raises, for other libraries to replace",
    "symm_mem._barrier.default": "takes a handle that only symmetric memory of a GPU has",
}


# Rows for which some calls have no answer, and why: the layout is decided by a library that is not
# installed.
CUDNN = "cuDNN, if torch is built with it, follows a channels-last operand"
MAY_BE_UNKNOWN = dict.fromkeys(
    """aten._convolution.default aten.conv1d.default aten.conv1d.padding aten.conv2d.default
    aten.conv2d.padding aten.conv3d.default aten.conv3d.padding aten.conv_transpose1d.default
    aten.conv_transpose2d.input aten.conv_transpose3d.input aten.convolution.default
    aten.convolution_backward.default""".split(),
    CUDNN,
)


# ---- operands ------------------------------------------------------------------------------------


class Tensor:
    """The printed part of a tensor; a fake one is made from it for each run."""

    def __init__(self, dtype, size, stride, device):
        self.dtype, self.size, self.stride, self.device = dtype, list(size), list(stride), device

    def __str__(self):
        return f"{dtype_abbrs[self.dtype]}{self.size}{self.stride}{self.device}"

    def real(self):
        length = 0 if 0 in self.size else 1 + sum((n - 1) * s for n, s in zip(self.size, self.stride))
        return torch.zeros(length, dtype=self.dtype).as_strided(self.size, self.stride)

    def fake(self, mode):
        plain = torch.empty_strided(self.size, self.stride, dtype=self.dtype, device="meta")
        return FakeTensor(mode, plain, torch.device(self.device))


class Opaque:
    """An operand that is not a tensor and cannot be written as text: a stream, a process group, a
    handle."""

    def __init__(self, make):
        self.make = make


class Made:
    """An operand that another operator returns: a line of its own in the graph."""

    def __init__(self, name, *args):
        self.name, self.args = name, args


def dense(size, order=None):
    """Strides without gaps; order: dimensions from the outermost."""
    stride, at = [0] * len(size), 1
    for i in reversed(order or range(len(size))):
        stride[i] = at
        at *= max(size[i], 1)
    return stride


def broadcast(*sizes):
    """The common size, or None."""
    try:
        return list(torch.broadcast_shapes(*sizes))
    except RuntimeError:
        return None


class Draw(random.Random):
    """Random operands of one call. device: "cpu" or "cuda:0", of all tensors of the call."""

    def __init__(self, seed, device):
        super().__init__(seed)
        self.device = device

    def some(self, *weighted):
        """One of (weight, value)."""
        return self.choices([v for _, v in weighted], [w for w, _ in weighted])[0]

    def length(self):
        return self.some((2, 0), (8, 1), (10, 2), (10, 3), (5, 4), (5, 5), (2, 7), (1, 16))

    def size(self, min_dim=0, max_dim=5):
        n = self.choice([d for d in (0, 1, 2, 2, 3, 3, 4, 4, 4, 5) if min_dim <= d <= max_dim])
        return [self.length() for _ in range(n)]

    def shrink(self, size):
        """A size that broadcasts to the given one."""
        out = [1 if self.random() < 0.2 else n for n in size]
        while out and self.random() < 0.15:
            out.pop(0)
        return out

    def grow(self, size):
        """A size that broadcasts with the given one, and may be larger."""
        out = self.shrink(size)
        out = [self.length() if n == 1 and self.random() < 0.3 else n for n in out]
        if len(out) == len(size) and len(out) < 5 and self.random() < 0.1:
            out.insert(0, self.length())
        return out

    def stride(self, size):
        """Strides as views have them: dense, permuted, channels last, sliced, expanded."""
        how = self.some((6, "dense"), (5, "permuted"), (3, "last"), (4, "sliced"), (3, "expanded"),
                        (1, "odd"))  # fmt: skip
        order = list(range(len(size)))
        if how == "last" and len(size) in (4, 5):
            return dense(size, [0, *range(2, len(size)), 1])
        if how == "odd":
            return [self.randrange(9) for _ in size]
        if how in ("permuted", "expanded") or (how == "sliced" and self.random() < 0.5):
            self.shuffle(order)
        whole = list(size)
        if how == "sliced":
            whole = [n + self.some((2, 0), (1, 1), (1, 3)) for n in size]
        if how == "expanded":
            whole = [1 if self.random() < 0.4 else n for n in size]
        stride = dense(whole, order)
        if how == "expanded":
            stride = [0 if n == 1 and m != 1 else s for s, n, m in zip(stride, whole, size)]
        if how == "sliced":
            stride = [s * self.some((4, 1), (1, 2)) for s in stride]
        return [self.randrange(60) if n == 1 and self.random() < 0.15 else s
                for n, s in zip(size, stride)]  # fmt: skip

    def dtype(self, among=ANY):
        return getattr(torch, self.choice(among))

    def tensor(self, size=None, dtype=ANY, min_dim=0, max_dim=5, stride=None, device=None):
        """dtype: a torch.dtype, its name, or names to choose from."""
        if size is None:
            size = self.size(min_dim, max_dim)
        if isinstance(dtype, (str, tuple)):
            dtype = self.dtype((dtype,) if isinstance(dtype, str) else dtype)
        return Tensor(dtype, size, self.stride(size) if stride is None else stride,
                      device or self.device)  # fmt: skip

    def dim(self, x):
        n = max(len(x.size), 1)
        return self.randrange(-n, n)

    def number(self):
        return self.some((4, self.randrange(-2, 4)), (4, self.uniform(-2, 2)), (1, True), (1, False))

    def among(self, *values):
        return self.choice(values)


def by_schema(r, row, dtypes=ANY):
    """Element-wise: tensors that broadcast, often of one dtype; numbers where numbers may stand."""
    if row["params"][0]["name"].startswith("grad_") and r.random() < 0.9:
        dtypes = FLOATS
    size, dtype = r.size(), r.dtype(dtypes)
    same = r.random() < 0.5  # of one size, in one layout
    stride = r.stride(size)
    one_dtype = r.random() < 0.5
    args, kwargs = [], {}
    tensors = 0

    def tensor():
        nonlocal tensors
        tensors += 1
        kind = dtype if one_dtype else r.dtype(dtypes)
        if same:
            return r.tensor(size, kind, stride=stride if r.random() < 0.6 else None)
        if tensors > 1 and r.random() < 0.15:  # a number in a tensor's clothes
            return r.tensor([], r.dtype(dtypes), device=r.choice([r.device, "cpu"]))
        return r.tensor(r.grow(size), kind)

    for p in row["params"]:
        type_, value = TYPES[p["type"]], None
        if p["default"] is not None and r.random() < 0.5:
            if p["kwarg_only"] or p is row["params"][-1]:
                continue
        if p["optional"] and r.random() < 0.3:
            value = None
        elif type_ == "tensor":
            # The Tensor overloads take numbers, too.
            value = r.number() if tensors > 0 and r.random() < 0.1 else tensor()
            if p["depth"]:
                value = [r.tensor(dtype=kind) for kind in r.choices([dtype], k=r.randrange(1, 4))]
        elif type_ in ("int", "float", "bool", "number"):
            value = {"int": lambda: r.randrange(-1, 3), "float": r.random,
                     "bool": lambda: r.random() < 0.5, "number": r.number}[type_]()  # fmt: skip
        elif type_ == "dtype":
            value = r.dtype(dtypes)
        elif type_ == "device":
            value = torch.device(r.device)
        elif p["default"] is None:
            return None
        else:
            continue
        if p["kwarg_only"]:
            kwargs[p["name"]] = value
        else:
            args.append(value)
    return args, kwargs


# enum op_type
TYPES = ["tensor", "int", "float", "bool", "str", "number", "dtype", "device", "layout", "memfmt",
         "generator", "storage", "stream", "graph", "operator", "any"]  # fmt: skip


# ---- calls ---------------------------------------------------------------------------------------


def describe(value):
    """A result, as test_infer prints types."""
    if isinstance(value, torch.Tensor):
        size, stride = list(map(plain, value.size())), list(map(plain, value.stride()))
        text = f"{dtype_abbrs[value.dtype]}{size}{stride}{value.device}"
        return text.replace("'", "")
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(map(describe, value)) + ")"
    if value is None:
        return "None"
    return f"Sym({plain(value)})"


NAMES = {int: "u0", float: "zuf0", bool: "Eq(u0, 1)"}


def plain(n):
    """A size: a number, or the expression of a symbol."""
    return n if isinstance(n, (int, float)) else str(n)


class Call:
    def __init__(self, row, args, kwargs):
        self.row, self.args, self.kwargs = row, args, kwargs
        self.inputs, self.before = {}, []
        pieces = [self.text_of(a) for a in args]
        pieces += [f"{k} = {self.text_of(v)}" for k, v in kwargs.items()]
        name = row["name"]
        target = name if name.split(".")[0] in PYTHON else "torch.ops." + name
        if name.startswith("torch.Tensor."):
            self.text = f"{pieces[0]}.{name.split('.')[2]}({', '.join(pieces[1:])})"
        else:
            self.text = f"{target}({', '.join(pieces)})"

    def text_of(self, value):
        if isinstance(value, (Tensor, Opaque)):
            return self.inputs.setdefault(value, f"x{len(self.inputs)}")
        if isinstance(value, Made):
            pieces = ", ".join(map(self.text_of, value.args))
            self.before.append(f"z{len(self.before)} = torch.ops.{value.name}({pieces})")
            return self.before[-1].split()[0]
        if isinstance(value, dict):
            return "{" + ", ".join(f"{k!r}: {self.text_of(v)}" for k, v in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(map(self.text_of, value)) + "]"
        if isinstance(value, tuple):
            return "(" + ", ".join(map(self.text_of, value)) + ("," * (len(value) == 1)) + ")"
        if isinstance(value, str):
            return repr(value)
        return str(value) if not isinstance(value, torch.device) else repr(value)

    def run(self, op, data=False):
        """What torch gives, described; None if it refuses. data: on tensors that have some."""
        try:
            return self.given(op, data)
        except Exception:  # whatever torch raises
            if os.environ.get("SHAPES_DEBUG"):
                traceback.print_exc()
            return None

    def problem(self, op):
        """What torch raises, or None."""
        try:
            self.given(op, False)
        except Exception as e:
            return e
        return None

    def given(self, op, data):
        mode = FakeTensorMode(shape_env=ShapeEnv() if "datadep" in self.row["flags"] else None)
        made = {x: x.make() if isinstance(x, Opaque) else x.real() if data else x.fake(mode)
                for x in self.inputs}  # fmt: skip
        with contextlib.ExitStack() as stack:
            if not data:
                stack.enter_context(mode)
            stack.enter_context(torch.no_grad())
            stack.enter_context(contextlib.redirect_stdout(io.StringIO()))

            def real(value):
                if isinstance(value, (Tensor, Opaque)):
                    return made[value]
                if isinstance(value, Made):
                    return operator_of(value.name)(*map(real, value.args))
                if isinstance(value, (list, tuple)):
                    return type(value)(map(real, value))
                if isinstance(value, dict):
                    return {k: real(v) for k, v in value.items()}
                return value

            out = op(*map(real, self.args), **{k: real(v) for k, v in self.kwargs.items()})
            if data and "datadep" in self.row["flags"] and isinstance(out, (int, float)):
                return f"Sym({NAMES[type(out)]})"  # a number that only data decides
            return describe(out) if out is not NotImplemented else None

    def graph(self):
        inputs = "".join(
            f", {name}" if isinstance(x, Opaque) else f', {name}: "{x}"' for x, name in self.inputs.items()
        )
        lines = "".join(f"        {line}\n" for line in [*self.before, f"y = {self.text}"])
        return (
            "class GraphModule(torch.nn.Module):\n"
            f"    def forward(self{inputs}):\n"
            f"{lines}"
            "        return (y,)\n\n"
        )

    def __str__(self):
        shown = ", ".join(f"{name}: {x}" for x, name in self.inputs.items())
        return f"{'; '.join([*self.before, self.text])}    {shown}"


def draw_calls(row, make, count=CALLS, data=False, op=None):
    """[(call, torch's result)], as many as requested unless torch refuses most. op: run instead of
    the row's."""
    op, found = op or operator_of(row["name"]), []
    if op is None:
        return found
    if row["name"] in MAY_BE_UNKNOWN:
        count *= 2
    seed = zlib.crc32(row["name"].encode()) + SEED * 1000003
    for i in range(count * TRIES):
        if len(found) == count:
            break
        r = Draw(seed * 100003 + i, "cuda:0" if i % 3 == 2 and not data else "cpu")
        drawn = make(r, row)
        if drawn is None:
            continue
        call = Call(row, *drawn)
        wanted = call.run(op, data)
        if wanted is not None:
            found.append((call, wanted))
    return found


def infer(calls, groups=None):
    """What Tuck infers for each call. groups: name of a process group -> its size."""
    if not calls:
        return []
    if len(calls) > BATCH:
        return infer(calls[:BATCH], groups) + infer(calls[BATCH:], groups)
    text = "".join(call.graph() for call in calls)
    if os.environ.get("SHAPES_KEEP"):
        with open(os.environ["SHAPES_KEEP"], "a") as copy:
            copy.write(text)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "calls.txt")
        with open(path, "w") as file:
            file.write(text)
        with open(os.path.join(folder, "calls.json"), "w") as file:
            json.dump({"groups": {name: {"size": n} for name, n in (groups or {}).items()}}, file)
        done = subprocess.run(
            [program("test_infer"), "--infer", path], capture_output=True, text=True
        )
    if done.returncode:
        raise AssertionError(f"test_infer fails\n{done.stderr}\n{done.stdout[-500:]}")
    got = {}
    for line in done.stdout.splitlines():
        number, name, text = line.split(" ", 2)
        if name == "y":
            got[int(number)] = text
    return [got.get(i, "no answer") for i in range(len(calls))]


def same(got, wanted):
    """Unbacked symbols may have other names, and count as at least 1 in strides."""
    names = {}
    wanted = re.sub(r"Max\(1, (u\d+)\)", r"\1", wanted)

    def rename(m):
        return names.setdefault(m[0], m[0].rstrip("0123456789") + str(len(names)))

    a = re.sub(r"\bz?uf?\d+\b", rename, got)
    names.clear()
    return a == re.sub(r"\bz?uf?\d+\b", rename, wanted)


def is_part(got, wanted):
    """Nothing wrong is stated, but strides are missing, or everything."""
    if got == "?":
        return True
    tensor = r"(\w+\[[^]]*\])(\[[^]]*\])?([\w:]*)"
    ours, theirs = re.findall(tensor, got), re.findall(tensor, wanted)
    missing = got.count("?")
    return missing > 0 or (
        len(ours) == len(theirs)
        and all(a[0] == b[0] and a[1] in ("", b[1]) and a[2] == b[2] for a, b in zip(ours, theirs))
    )


def compare(generators, groups=None, data=()):
    """generators: row name -> generator. Returns ({row: calls}, {row: unknown}, sentences about
    differences)."""
    drawn, complaints, counts, unknown = [], [], {}, {}
    for name, make in generators.items():
        calls = draw_calls(rows()[name], make, data=name in data)
        counts[name] = len(calls)
        drawn += calls
    answers = infer([call for call, _ in drawn], groups)
    wrong = {}
    for (call, wanted), got in zip(drawn, answers):
        name = call.row["name"]
        if not same(got, wanted) and is_part(got, wanted):
            unknown[name] = unknown.get(name, 0) + 1
            if name in MAY_BE_UNKNOWN:
                counts[name] -= 1
                continue
        if not same(got, wanted):
            wrong.setdefault(name, []).append(f"    {call}\n        {got}\n        {wanted}")
    for name, n in counts.items():
        if n < LEAST:
            complaints.append(f"{name}: only {n} calls that torch takes and whose strides are known")
    for name, list_ in wrong.items():
        head = f"{name} ({rows()[name]['shape']}): {len(list_)} of {counts[name]} differ; ours, torch's:"
        complaints.append(head + "\n" + "\n".join(list_[: int(os.environ.get("SHAPES_SHOW", "2"))]))
    return counts, unknown, complaints


class ShapeTest(unittest.TestCase):
    """Subclasses set RULES and ROWS, and SKIP rows and libraries that another class has. Every row
    of theirs is compared."""

    RULES, ROWS, SKIP, GROUPS, REAL = {}, {}, (), {}, ()

    def __init_subclass__(cls):
        cls.test_rows = cls.check  # so that this class itself is no test

    def generators(self):
        found = {}
        for name, row in rows().items():
            make = self.ROWS.get(name) or self.RULES.get(row["shape"])
            if make and not {name, name.split(".")[0]} & {*self.SKIP, *NOT_RUN}:
                found[name] = make
        return found

    @classmethod
    def rows_compared(cls):
        return list(cls("test_rows").generators())

    def check(self):
        only = {name: make for name, make in self.generators().items() if re.search(ONLY, name)}
        counts, unknown, complaints = compare(only, groups=self.GROUPS, data=self.REAL)
        total = f"seed {SEED}: {sum(counts.values())} calls of {len(counts)} rows"
        listed = ", ".join(f"{name} {n}" for name, n in unknown.items())
        print(f"{type(self).__name__}: {total}, {sum(unknown.values())} unknown{': ' if listed else ''}{listed}")
        if complaints:
            self.fail(total + f", {len(complaints)} complaints\n" + some(complaints, 400))

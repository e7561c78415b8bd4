"""Kernels against PyTorch: random calls, run by torch and by Tuck's kernels on the same bytes.

The calls are those of shapes.py's generators, with real data: strided, broadcast, without elements, without
dimensions, with negative numbers, NaNs and infinities. Results of both are compared: exactly for copies, integers, bools and
views, within a tolerance for floats (TOLERANCE).

The calls go to `test_rt_kernels --calls IN OUT`. IN: the number of calls, then each; OUT: for each call, 1 or 0 for
whether it ran, an error text, and the bytes of its tensors. Everything is a 64-bit integer but for bytes.

  call    = name, n_tensors, tensor..., n_args, value..., n_outs, tensor number or -1...
  tensor  = scalar type, n, size..., stride..., offset, bytes of storage, storage
  value   = kind (enum rt_kind), and what belongs to it
"""

import ast
import os
import struct
import subprocess
import tempfile
import zlib

import torch

from shapes import Call, Draw, Made, Opaque, Tensor, operator_of, program

NONE, TENSOR, INT, FLOAT, BOOL, COMPLEX, STR, DTYPE, LIST, OTHER = range(10)

SCALAR_TYPES = {
    torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4, torch.float16: 5,
    torch.float32: 6, torch.float64: 7, torch.complex64: 9, torch.complex128: 10, torch.bool: 11,
    torch.bfloat16: 15, torch.float8_e5m2: 23, torch.float8_e4m3fn: 24, torch.uint16: 27, torch.uint32: 28, torch.uint64: 29,
}  # fmt: skip

# Relative to the largest number near: (of the element, of the largest element of the result).
TOLERANCE = {
    torch.float64: (1e-12, 1e-13), torch.complex128: (1e-12, 1e-13), torch.float32: (2e-6, 1e-6),
    torch.complex64: (2e-6, 1e-6), torch.bfloat16: (1.6e-2, 8e-3), torch.float16: (2e-3, 1e-3),
}  # fmt: skip


# Judged by the narrowest dtype among the operands. Gradients of f32 weights: torch sums them in the dtype of the f16 or bf16
# input. Of operands of several dtypes it computes parts in the narrower one: of bce and kl_div the logarithms, of mish the
# gradient; here all is computed in the wider one.
ROUNDED = {"layer_norm_backward", "batch_norm_backward", "bce_logits_loss", "kl_div_loss", "mish_backward"}


def integer(n):
    return struct.pack("<q", n)


def text(s):
    data = s.encode()
    return integer(len(data)) + data


def storage_of(t):
    """All bytes from the start of the storage."""
    flat = t.untyped_storage()
    return bytes(flat.tolist()) if flat.nbytes() < 64 else bytes(torch.tensor([], dtype=torch.uint8).set_(flat).numpy())


class Encoder:
    """One call as bytes; tensors that share a storage are not supported, but results that are operands."""

    def __init__(self, row):
        self.row, self.tensors, self.bytes = row, [], []

    def tensor(self, t):
        for i, other in enumerate(self.tensors):
            if other is t:
                return i
        self.tensors.append(t)
        return len(self.tensors) - 1

    def value(self, v):
        if v is None:
            return integer(NONE)
        if isinstance(v, torch.Tensor):
            return integer(TENSOR) + integer(self.tensor(v))
        if isinstance(v, bool):
            return integer(BOOL) + integer(v)
        if isinstance(v, int):
            return integer(INT) + integer(v)
        if isinstance(v, float):
            return integer(FLOAT) + struct.pack("<d", v)
        if isinstance(v, complex):
            return integer(COMPLEX) + struct.pack("<dd", v.real, v.imag)
        if isinstance(v, str):
            return integer(STR) + text(v)
        if isinstance(v, torch.dtype):
            return integer(DTYPE) + integer(SCALAR_TYPES.get(v, -1))
        if isinstance(v, (list, tuple)):
            return integer(LIST) + integer(len(v)) + b"".join(map(self.value, v))
        return integer(OTHER)

    def layout(self, t):
        data = storage_of(t)
        return b"".join(
            [integer(SCALAR_TYPES[t.dtype]), integer(t.dim()), *map(integer, t.size()), *map(integer, t.stride()),
             integer(t.storage_offset()), integer(len(data)), data]
        )  # fmt: skip

    def call(self, args, outs):
        values = b"".join(map(self.value, args))
        numbers = [self.tensor(o) if o is not None else -1 for o in outs]
        return b"".join(
            [text(self.row["name"]), integer(len(self.tensors)), *map(self.layout, self.tensors), integer(len(args)),
             values, integer(len(outs)), *map(integer, numbers)]
        )  # fmt: skip


def default_of(param):
    said = param["default"]
    if said is None or said == "None":
        return None
    try:
        return ast.literal_eval(said)
    except (ValueError, SyntaxError):
        return getattr(torch, said, said)


def in_order(row, args, kwargs):
    """The operands as the signature lists them."""
    found = []
    for i, p in enumerate(row["params"]):
        if i < len(args):
            v = args[i]
        else:
            v = kwargs[p["name"]] if p["name"] in kwargs else default_of(p)
        if p["list_size"] and isinstance(v, (int, bool, float)):
            v = [v] * p["list_size"]
        found.append(v)
    return found


SPECIAL = [0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 1e-3, 100.0, 0.5, -2.0, 1e5]


def fill(r, t, plain, indices=False):
    """Data for an operand drawn by a generator."""
    length = 0 if 0 in t.size else 1 + sum((n - 1) * s for n, s in zip(t.size, t.stride))
    g = torch.Generator().manual_seed(r.randrange(1 << 30))
    if t.dtype == torch.bool:
        flat = torch.randint(0, 2, (length,), generator=g).bool()
    elif t.dtype.is_floating_point:
        flat = torch.randn(length, generator=g, dtype=torch.float64) * (1 if plain else r.choice([1, 1, 3, 0.1]))
        if not plain and r.random() < 0.3:
            for i in range(length):
                if r.random() < 0.2:
                    flat[i] = r.choice(SPECIAL)
        flat = flat.to(t.dtype)
    elif t.dtype.is_complex:
        flat = torch.randn(length, generator=g, dtype=torch.complex128).to(t.dtype)
    else:
        if indices:  # that most tensors have
            return torch.randint(-1 if r.random() < 0.3 else 0, 2, (length,), generator=g).to(t.dtype).as_strided(t.size, t.stride)
        low = 0 if t.dtype in (torch.uint8, torch.uint16, torch.uint32, torch.uint64) else -6
        flat = torch.randint(low, 9, (length,), generator=g).to(t.dtype)
    return flat.as_strided(t.size, t.stride)


class Case:
    """A call that torch took: operands before and results after."""

    def __init__(self, row, args, outs, expected, written):
        self.row, self.args, self.outs = row, args, outs
        self.expected = expected  # by result: a tensor or None
        self.written = written  # [(operand, what it must be afterwards)]
        self.encoder = Encoder(row)
        self.data = self.encoder.call(args, outs)


def tensors_in(v):
    if isinstance(v, torch.Tensor):
        return [v]
    if isinstance(v, (list, tuple)):
        return [t for x in v for t in tensors_in(x)]
    return []


def copy_of(v, memo):
    if isinstance(v, torch.Tensor):
        if id(v) not in memo:
            flat = torch.empty(0, dtype=v.dtype).set_(v.untyped_storage().clone(), 0, (v.untyped_storage().nbytes() // v.element_size(),))
            memo[id(v)] = flat.as_strided(v.size(), v.stride(), v.storage_offset())
        return memo[id(v)]
    if isinstance(v, (list, tuple)):
        return type(v)(copy_of(x, memo) for x in v)
    return v


def room_like(t):
    """A result's layout, filled with rubbish."""
    length = 0 if 0 in t.size() else 1 + sum((n - 1) * s for n, s in zip(t.size(), t.stride()))
    flat = torch.full((length * t.element_size(),), 0xA5, dtype=torch.uint8)
    if t.dtype == torch.bool:
        flat = torch.ones(length, dtype=torch.uint8)
    return torch.empty(0, dtype=t.dtype).set_(flat.untyped_storage(), 0, tuple(t.size()), tuple(t.stride()))


def flat_results(out):
    if out is None or isinstance(out, torch.Tensor):
        return [out]
    if isinstance(out, (list, tuple)):
        return [t for x in out for t in flat_results(x)]
    return []


def supported(args):
    return all(t.dtype in SCALAR_TYPES and t.dim() <= 16 for t in tensors_in(args))


def overlaps(t):
    """Is an element of the tensor in one place with another?"""
    dims = sorted((s, n) for s, n in zip(t.stride(), t.size()) if n > 1)
    end = 1
    for step, n in dims:
        if step < end:
            return True
        end = step * (n - 1) + end
    return False


def make_case(row, op, args, kwargs, alter=None):
    """None if torch refuses the call."""
    ordered = in_order(row, args, kwargs)
    if not supported(ordered):
        return None
    if alter is not None:
        alter(ordered)
    if row["kernel"] == "batch_norm_backward" and args[0].numel() == 0:
        return None  # torch 2.13 divides by zero and ends the process
    memo = {}
    run_args = copy_of(args, memo)
    run_kwargs = {k: copy_of(v, memo) for k, v in kwargs.items()}
    before = {id(t): t for t in tensors_in(ordered)}
    try:
        with torch.no_grad():
            results = flat_results(op(*run_args, **run_kwargs))
    except Exception:
        return None
    if any(t is not None and (t.dtype not in SCALAR_TYPES or t.is_conj() or t.is_neg()) for t in results):
        return None
    if any(overlaps(before[i]) for i, m in memo.items() if any(m is t for t in results) and i in before):
        return None  # every order of writing gives another result
    outs, expected = [], []
    written = [(before[i], t) for i, t in memo.items() if i in before]
    if any(overlaps(old) and not torch.equal(old.nan_to_num(), new.nan_to_num()) for old, new in written):
        return None  # the same for operands that are written and not returned
    for t in results:
        same = [before[i] for i, m in memo.items() if m is t]
        outs.append(same[0] if same else room_like(t) if t is not None and t.numel() >= 0 else None)
        expected.append(t)
    return Case(row, ordered, outs, expected, written)


def run_cases(cases):
    """By case: (error or None, {tensor number: storage bytes})."""
    with tempfile.TemporaryDirectory() as folder:
        a, b = os.path.join(folder, "in"), os.path.join(folder, "out")
        with open(a, "wb") as f:
            f.write(integer(len(cases)))
            for case in cases:
                f.write(case.data)
        done = subprocess.run([program("test_rt_kernels"), "--calls", a, b], capture_output=True, text=True)
        with open(b, "rb") as f:
            data = f.read()
    answers, at = [], 0
    for case in cases:
        if at + 16 > len(data):
            raise AssertionError(f"test_rt_kernels stops at call {len(answers)}: {show(case)}\n{done.stderr[-3000:]}")
        ok, n = struct.unpack_from("<qq", data, at)
        at += 16
        error = None if ok else data[at : at + n].decode()
        at += n
        bytes_of = {}
        for i, t in enumerate(case.encoder.tensors):
            size = t.untyped_storage().nbytes()
            bytes_of[i] = data[at : at + size]
            at += size
        answers.append((error, bytes_of))
    if done.returncode:
        raise AssertionError(f"test_rt_kernels fails\n{done.stderr[-3000:]}")
    return answers


def show(case):
    def one(v):
        if isinstance(v, torch.Tensor):
            return f"{v.dtype}{list(v.size())}{list(v.stride())}".replace("torch.", "")
        if isinstance(v, (list, tuple)):
            return "[" + ", ".join(map(one, v)) + "]"
        return repr(v)

    return f"{case.row['name']}({', '.join(map(one, case.args))})"


def difference(got, want, exact, scale=1.0, dtype=None):
    """A sentence, or None."""
    if want.numel() == 0:
        return None
    if exact or want.dtype not in TOLERANCE:
        a, b = got, want
        if want.dtype.is_floating_point or want.dtype.is_complex:
            same = (a == b) | (a.isnan() & b.isnan())
        else:
            same = a == b
        if bool(same.all()):
            return None
        i = int((~same).reshape(-1).nonzero()[0])
        return f"element {i}: {got.reshape(-1)[i].item()} instead of {want.reshape(-1)[i].item()}"
    wide = torch.complex128 if want.is_complex() else torch.float64
    a, b = got.to(wide), want.to(wide)
    if want.is_complex():
        a, b = torch.view_as_real(a.resolve_conj()), torch.view_as_real(b.resolve_conj())
    rel, top = TOLERANCE[dtype or want.dtype]
    finite = b[b.isfinite()].abs()
    largest = float(finite.max()) if finite.numel() else 0.0
    limit = scale * (rel * b.abs() + top * largest) + 1e-37
    bad = ~(((a - b).abs() <= limit) | (a == b) | (a.isnan() & b.isnan()))
    if want.is_complex():  # by 0 or infinity: which part is what is not defined
        bad &= a.isfinite() & b.isfinite()
    if not bool(bad.any()):
        return None
    i = int(bad.reshape(-1).nonzero()[0])
    return f"element {i}: {a.reshape(-1)[i].item()} instead of {b.reshape(-1)[i].item()}"


def as_tensor(t, data):
    flat = torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
    return torch.empty(0, dtype=t.dtype).set_(flat.untyped_storage(), t.storage_offset(), tuple(t.size()), tuple(t.stride()))


# Kernels that take complex numbers; the others refuse them.
COMPLEX_TOO = set("""reciprocal sqrt rsqrt log sin cos tanh sigmoid pow addcmul addcdiv lerp angle isnan prod cumprod addmv addr copy add sub rsub mul true_div neg conj abs square exp eq ne where masked_fill sum mean mm addmm full
    cat copy_from index gather""".split())


def refused(case, error):
    """Complex numbers are computed where models use them."""
    kernel = case.row["kernel"]
    return ("complex" in error and kernel not in COMPLEX_TOO) or ("of bool" in error and kernel == "clamp") or any(
        text in error for text in ("of order", "out of range", "of another size", "dropout", "dimensions", "pools")
    )


def coarsest(case):
    """The dtype with the widest tolerance among operands and results: torch rounds sums to it on the way."""
    dtypes = [t.dtype for t in tensors_in(case.args) if t.dtype in TOLERANCE]
    return max(dtypes, key=lambda d: TOLERANCE[d][0], default=None)


PICKS_ANY = {"topk", "kthvalue", "median_dim"}  # of equal elements, torch gives the place of any


def judge(case, answer, exact, scale):
    """A complaint, or None."""
    error, data = answer
    rounded = coarsest(case) if case.row["kernel"] in ROUNDED else None
    if error is not None and refused(case, error):
        return None
    if error is not None:
        return f"{show(case)}: error: {error}"
    for i, want in enumerate(case.expected):
        rubbish = i == 3 and case.row["kernel"] == "embedding_bag" and case.args[4] != 2  # what torch leaves in the memory
        if want is None or rubbish or (i == 1 and case.row["kernel"] in PICKS_ANY):
            continue
        number = case.encoder.tensor(case.outs[i])
        said = difference(as_tensor(case.outs[i], data[number]), want, exact, scale, rounded)
        if said:
            return f"{show(case)}: result {i}, {said}"
    for t, want in case.written:
        number = case.encoder.tensor(t)
        said = difference(as_tensor(t, data[number]), want, exact, scale, rounded)
        if said:
            return f"{show(case)}: an operand afterwards, {said}"
    return None


def draw(row, make, count, plain=False, indices=False, alter=None):
    """Cases of one operator. make: a generator of shapes.py."""
    op, found = operator_of(row["name"]), []
    if op is None:
        return found
    for i in range(count * 20):
        if len(found) == count:
            break
        r = Draw(zlib.crc32(row["name"].encode()) * 7919 + i, "cpu")
        try:
            drawn = make(r, row)
        except Exception:
            continue
        if drawn is None:
            continue
        args, kwargs = drawn
        memo = {}

        def real(v):
            if isinstance(v, Tensor):
                if id(v) not in memo:
                    memo[id(v)] = fill(r, v, plain, indices)
                return memo[id(v)]
            if isinstance(v, (list, tuple)):
                return type(v)(map(real, v))
            return v

        if any(isinstance(v, (Made, Opaque)) for v in [*args, *kwargs.values()]):
            continue
        case = make_case(row, op, [real(a) for a in args], {k: real(v) for k, v in kwargs.items()}, alter)
        if case is not None:
            found.append(case)
    return found

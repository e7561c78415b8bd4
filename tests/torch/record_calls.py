"""Writes tests/misfits/calls.txt: graphs of one call for every operator that has a kernel, which prop_misfits changes
until they are wrong. The calls are those that the tests of kernels draw.

    build/torch-venv/bin/python tests/torch/record_calls.py
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import torch

import kernels
import test_run_kernels
from harness import ROOT
from shapes import rows

OUT = ROOT / "tests" / "misfits" / "calls.txt"
EACH = 1  # calls of an operator

SHORT = {
    torch.uint8: "u8", torch.int8: "i8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64", torch.float16: "f16",
    torch.float32: "f32", torch.float64: "f64", torch.complex64: "c64", torch.complex128: "c128", torch.bool: "b8",
    torch.bfloat16: "bf16", torch.uint16: "u16", torch.uint32: "u32", torch.uint64: "u64", torch.float8_e4m3fn: "f8e4m3fn",
    torch.float8_e5m2: "f8e5m2",
}  # fmt: skip


def type_of(t):
    return f'"{SHORT[t.dtype]}{list(t.size())}{list(t.stride())}cpu"'


class Text:
    """A call as a graph."""

    def __init__(self, case):
        self.case, self.inputs = case, []

    def value(self, v):
        if isinstance(v, torch.Tensor):
            for name, t in self.inputs:
                if t is v:
                    return name
            self.inputs.append((f"x{len(self.inputs)}", v))
            return self.inputs[-1][0]
        if isinstance(v, (list, tuple)):
            return "[" + ", ".join(map(self.value, v)) + "]"
        return repr(v)

    def lines(self):
        params = self.case.row["params"]
        args = [self.value(v) if i < 64 else None for i, v in enumerate(self.case.args)]
        said, named = [], False
        for p, v, text in zip(params, self.case.args, args):
            if v is None and p["default"] is not None:
                named = True
                continue
            said.append(f"{p['name']} = {text}" if p["kwarg_only"] or named else text)
        if any(t.storage_offset() for _, t in self.inputs):
            return []
        names = {id(t): name for name, t in self.inputs}
        made = [o for o in self.case.outs if o is not None]
        head = ", ".join(f"{name}: {type_of(t)}" for name, t in self.inputs)
        call = f"torch.ops.{self.case.row['name']}({', '.join(said)})"
        lines = ["class GraphModule(torch.nn.Module):", f"    def forward(self{', ' if head else ''}{head}):"]
        if len(self.case.outs) == 1 and made:
            return [*lines, f"        out: {type_of(made[0])} = {call}", "        return (out,)"]
        lines.append(f"        all = {call}" if self.case.outs else f"        none = {call}")
        got = []
        for i, o in enumerate(self.case.outs):
            if o is not None:
                lines.append(f"        out{i}: {type_of(o)} = all[{i}]")
                got.append(f"out{i}")
        back = ", ".join(got + [n for n in names.values()]) if got else ", ".join(names.values())
        return [*lines, f"        return ({back},)"]


def main():
    makers = test_run_kernels.generators()
    text, n = [], 0
    for row in rows().values():
        kernel = row["kernel"]
        make = test_run_kernels.ROWS.get(row["name"]) or makers.get(row["name"])
        if kernel == "none" or make is None:
            continue
        cases = kernels.draw(row, make, 12, plain=True, indices=kernel in test_run_kernels.INDEXED,
                             alter=test_run_kernels.ALTER.get(kernel))  # fmt: skip
        cases.sort(key=lambda c: len(c.data) if all(t.numel() > 1 for t in kernels.tensors_in(c.args)) else 1 << 30)
        for case in cases[:EACH]:
            lines = Text(case).lines()
            if lines and sum(map(len, lines)) < 1500:
                text += ["", *lines]
                n += 1
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text("# Made by tests/torch/record_calls.py: a call of every operator that has a kernel.\n" + "\n".join(text) + "\n")
    print(f"{n} graphs")


if __name__ == "__main__":
    main()

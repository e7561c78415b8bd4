"""Record what torch 2.12.1 makes of small graphs with two passes that 2.13 no longer has.

    python3 -m venv build/venv-2.12.1
    build/venv-2.12.1/bin/pip install torch==2.12.1 numpy safetensors
    build/venv-2.12.1/bin/python tests/torch/record_old_fsdp.py

Only the published wheel with CUDA was at hand, 4.8 GB with what it needs; no GPU is used. The answers go
to old_fsdp.json, which test_fsdp.py compares Tuck with; so nothing of 2.12.1 is needed to run the tests.
"""

import json
import re
import warnings
from pathlib import Path

import torch
import torch._inductor.comms
import torch.distributed as dist
import torch.distributed.fsdp._fully_shard._fsdp_collectives  # registers torch.ops.fsdp
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.distributed.fake_pg import FakeStore

import fxload

HERE = Path(__file__).resolve().parent
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}

EMPTY = (
    'empty: "f32[96][1]cpu" = torch.ops.aten.empty.memory_format([96], dtype = torch.float32, '
    "device = device(type='cpu'), pin_memory = False)"
)
COPY_IN = "copy_in = torch.ops.fsdp.all_gather_copy_in.default([a, b], empty, [16, 32], 48, 0)"
PART, WHOLE = 'part: "f32[48][1]cpu" = copy_in[0]', 'whole: "f32[96][1]cpu" = copy_in[1]'
GATHER = (
    'gather: "f32[96][1]cpu" = '
    "torch.ops._c10d_functional.all_gather_into_tensor.default(part, 2, '0')"
)
WAIT = 'wait: "f32[96][1]cpu" = torch.ops._c10d_functional.wait_tensor.default(gather)'
SHARDS = 'a: "f32[16][1]cpu", b: "f32[32][1]cpu"'


def reinplace_cases():
    again = [
        EMPTY.replace("empty:", "empty_1:"),
        COPY_IN.replace("copy_in =", "copy_in_1 =").replace(" empty,", " empty_1,"),
        PART.replace("part:", "part_1:").replace("copy_in[", "copy_in_1["),
        GATHER.replace("gather:", "gather_1:").replace("(part,", "(part_1,"),
        WAIT.replace("wait:", "wait_1:").replace("(gather)", "(gather_1)"),
    ]
    tail = 'tail: "f32[96][1]cpu" = torch.ops.aten.add.Tensor(whole, 1)'
    twice = 'twice: "f32[48][1]cpu" = torch.ops.aten.mul.Tensor(part, 2)'
    plain = [EMPTY, COPY_IN, PART, GATHER, WAIT]
    yield "plain", graph(SHARDS, plain, "(wait,)")
    yield "unused_getitem_1", graph(SHARDS, [*plain[:3], WHOLE, *plain[3:]], "(wait,)")
    yield "two", graph(SHARDS, plain + again, "(wait, wait_1)")
    yield "getitem_1_used", graph(SHARDS, [*plain, WHOLE, tail], "(wait, tail)")
    before = [EMPTY, COPY_IN, PART, WHOLE, tail, GATHER, WAIT]
    yield "getitem_1_used_before", graph(SHARDS, before, "(wait, tail)")
    given = SHARDS + ', empty: "f32[96][1]cpu"'
    yield "buffer_is_input", graph(given, [COPY_IN, PART, GATHER, WAIT], "(wait,)")
    yield "slice_used_twice", graph(SHARDS, [*plain, twice], "(wait, twice)")


def unshard_case(pattern):
    """F: storage; C: values; D: the same of another dtype; U: a use; L: a use in a list; K: by keyword; V: a view
    is made; W: the view is used; Y: the values are overwritten; M: a mutation; 0: no storage."""
    body, used = [], []
    vector = '"f32[64][1]cpu"'
    for i, c in enumerate(pattern):
        if c in "F0":
            size = 256 if c == "F" else 0
            body.append(f"r{i} = torch.ops.inductor.resize_storage_bytes_.default(p, {size})")
        elif c == "C":
            body.append(f"y{i}: {vector} = torch.ops.aten.mul.Tensor(x, {i + 2})")
            body.append(f"c{i} = torch.ops.fsdp.copy_.default(p, y{i})")
        elif c == "D":
            body.append(f'y{i}: "bf16[64][1]cpu" = torch.ops.aten._to_copy.default(x, dtype = torch.bfloat16)')
            body.append(f"c{i} = torch.ops.fsdp.copy_.default(p, y{i})")
        elif c == "K":
            body.append(f"u{i}: {vector} = torch.ops.aten.clone.default(self = p)")
        elif c == "V":
            body.append('v: "f32[8, 8][8, 1]cpu" = torch.ops.aten.view.default(p, [8, 8])')
        elif c == "W":
            body.append(f'u{i}: "f32[8, 8][8, 1]cpu" = torch.ops.aten.relu.default(v)')
        elif c == "Y":
            body.append(f"o{i}: {vector} = torch.ops.aten.add_.Tensor(y1, 1)")
        elif c == "U":
            body.append(f"u{i}: {vector} = torch.ops.aten.add.Tensor(p, x)")
        elif c == "L":
            body.append(f'u{i}: "f32[2, 64][64, 1]cpu" = torch.ops.aten.stack.default([p, x])')
        elif c == "M":
            body.append(f"m{i}: {vector} = torch.ops.aten.add_.Tensor(p, 1)")
        used += [f"u{i}"] if c in "ULKW" else []
    return graph(f"p: {vector}, x: {vector}", body, f"({', '.join([*used, 'p'])},)")


UNSHARDED = (
    "FCU0",
    "FCU0FCU0",
    "FCUU0FCU0FCU0",
    "FCUCU0",
    "FFCU00",
    "FCU",
    "0FCU",
    "FCU00F",
    "F0",
    "CU",
    "FUCU0",
    "FCL0",
    "FCMU0",
    "FCK0",
    "FCVCW0",
    "FCYU0",
    "FDU0",
)


def graph(inputs, body, returned):
    lines = [f"    def forward(self, {inputs}):", *("        " + line for line in body)]
    return "\n".join(["class step(torch.nn.Module):", *lines, f"        return {returned}", ""])


def with_values(loaded, mode):
    """The graph with meta["val"], as Inductor's passes expect it: what is annotated has one."""
    module = loaded.module()
    for node in module.graph.nodes:
        found = re.match(r"(\w+)\[([\d, ]*)\]", (node.meta.get("annotation") or "").strip("\"'"))
        if found:
            sizes = [int(n) for n in found[2].split(",") if n.strip()]
            with mode:
                node.meta["val"] = torch.empty(sizes, dtype=DTYPES[found[1]])
    return module


def answer(name, text):
    mode = FakeTensorMode()
    module = with_values(fxload.load(text), mode)
    try:
        with V.set_fake_mode(mode):
            getattr(torch._inductor.comms, name)(module.graph)
        module.graph.lint()
    except Exception as error:
        return {"error": type(error).__name__}
    module.recompile()
    return {"after": "class step(torch.nn.Module):\n    " + indented(module.code)}


def indented(code):
    return code.strip().replace("\n", "\n    ").replace("    \n", "\n") + "\n"


def main():
    warnings.simplefilter("ignore")
    dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    cases = [("reinplace_fsdp_all_gather", n, t) for n, t in reinplace_cases()]
    cases += [
        ("remove_fsdp2_unsharded_param_graph_input_usage", p, unshard_case(p)) for p in UNSHARDED
    ]
    found = [
        {"pass": name, "case": case, "before": text, **answer(name, text)}
        for name, case, text in cases
    ]
    version = torch.__version__.split("+")[0]
    text = json.dumps({"torch": version, "cases": found}, indent=1)
    (HERE / "old_fsdp.json").write_text(text + "\n")


if __name__ == "__main__":
    main()

"""Count the kernels that Inductor makes of a graph, beside those of `tuck lower`.

    build/torch-venv/bin/python tests/torch/record_kernels.py >tests/results/kernels.txt

Each graph of tests/graphs/exec is compiled for the CPU with a fake process group; what is generated is not
compiled by a C++ compiler and not run. A kernel is a call of a generated loop or of an external one.
"""

import os
import re
import sys
from pathlib import Path

os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")
sys.path.insert(0, str(Path(__file__).parent))

import torch
from torch._inductor.debug import DebugContext
from torch._inductor.graph import GraphLowering
from torch._inductor.virtualized import V
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

import fakes
import harness


GRAPHS = """mlp_ddp_fw mlp_ddp_bw mlp_fsdp_fw mlp_fsdp_bw gpt2_ddp_fw gpt2_ddp_bw llama_fsdp_fw llama_fsdp_bw
moe_static_fw moe_static_bw resnet_ddp_fw resnet_ddp_bw ring_attention_fw ring_attention_bw""".split()


def calls(code):
    """Calls of kernels in the wrapper that Inductor wrote."""
    body = code[code.index("def call(") :]
    loops = len(re.findall(r"^\s+cpp_fused_\w+\(", body, re.M))
    extern = len(re.findall(r"extern_kernels\.\w+\(|(?<!_c10d_functional)\btorch\.ops\.(?!_c10d_functional)[\w.]+\(", body))
    return loops + extern


def inductor(path):
    text = path.read_text()
    with fakes.groups(path):
        gm, mode = fakes.fake_module(text)
        inputs = [n.meta["val"] for n in gm.graph.nodes if n.op == "placeholder"]
        FakeTensorProp(gm, mode).propagate_dont_convert_inputs(*inputs)
        with V.set_fake_mode(mode), V.set_debug_handler(DebugContext()):
            lowering = GraphLowering(gm, example_inputs=inputs, shape_env=mode.shape_env)
            with V.set_graph_handler(lowering):
                lowering.run(*inputs)
                code, _ = lowering.codegen()
    return calls(code if isinstance(code, str) else code.value)


def main():
    print("# Kernels of a graph: by tuck lower, and by Inductor of PyTorch", torch.__version__.split("+")[0])
    print("# By tests/torch/record_kernels.py")
    for name in GRAPHS:
        path = Path("tests/graphs/exec") / (name + ".txt")
        out = harness.tuck("lower", "--no-cost", "--summary", str(path))
        mine = int(re.search(r"kernels +(\d+)", out)[1])
        print(f"{name:<24} {mine:4} {inductor(path):4}")


main()

"""What Inductor makes of a graph, up to its scheduler: kernels after fusion, before any code is written.

    kernels_of(path)    {"loops": …, "extern": …, "collectives": …, "waits": …}

Graphs on cuda are lowered for cuda, on fake tensors; what Inductor asks the GPU is answered as an H100 would.
Its passes on graphs do not run: the graphs of the corpus have been through them, or not, as their side-cars say.
"""

import collections
from unittest import mock

import torch
from torch._inductor import config, ir, scheduler
from torch._inductor.debug import DebugContext
from torch._inductor.graph import GraphLowering
from torch._inductor.runtime.hints import DeviceProperties
from torch._inductor.virtualized import V

import fakes

H100 = DeviceProperties(
    type="cuda",
    index=0,
    multi_processor_count=132,
    cc=90,
    major=9,
    regs_per_multiprocessor=65536,
    max_threads_per_multi_processor=2048,
    max_threads_per_block=1024,
    warp_size=32,
)
real_properties = DeviceProperties.create


def properties(device):
    return H100 if device.type == "cuda" else real_properties(device)


class Values(torch.fx.Interpreter):
    """Gives nodes, and those of nested graphs, the values of a run; if an operator does not run,
    the annotated one."""

    def __init__(self, module, mode):
        super().__init__(module)
        self.mode = mode

    def run_node(self, node):
        said = node.meta.get("val")
        with self.mode:
            try:
                value = super().run_node(node)
            except Exception:
                if said is None:
                    raise
                value = said
        node.meta["val"] = value
        for at, arg in enumerate(node.args):
            if isinstance(arg, torch.fx.Node) and arg.op == "get_attr":
                inner = self.fetch_attr(arg.target)
                if isinstance(inner, torch.fx.GraphModule):
                    operands = [a.meta.get("val") for a in node.args[at + 1 :] if hasattr(a, "meta")]
                    Values(inner, self.mode).run(*operands)
        return value


def constants(module):
    """Tensors that a graph keeps: zeros, of the annotated type."""
    for node in module.graph.nodes:
        value = node.meta.get("val")
        if node.op == "get_attr" and isinstance(value, torch.Tensor):
            delattr(module, node.target)
            setattr(module, node.target, torch.zeros(value.shape, dtype=value.dtype))


def kind_of(node):
    """loops, extern, collectives, waits, or None: launches nothing."""
    if isinstance(node, scheduler.NopKernelSchedulerNode):
        return None
    if not isinstance(node, scheduler.ExternKernelSchedulerNode):
        return "loops"
    call = node.node
    if isinstance(call, (ir.MultiOutput, ir.AssertScalar)):
        return None
    if isinstance(call, ir._WaitKernel):
        return "waits"
    return "collectives" if isinstance(call, ir._CollectiveKernel) else "extern"


def kernels_of(path):
    with (
        fakes.groups(path),
        mock.patch.object(DeviceProperties, "create", properties),
        mock.patch.object(scheduler, "has_triton", lambda *_: True),
        config.patch({"cpp.threads": 2}),  # large reductions on a cpu are split by it
    ):
        module, mode = fakes.fake_module(path.read_text())
        constants(module)
        inputs = fakes.inputs_of(module)
        Values(module, mode).run(*inputs)
        with V.set_fake_mode(mode), V.set_debug_handler(DebugContext()):
            lowering = GraphLowering(module, example_inputs=inputs, shape_env=mode.shape_env)
            with V.set_graph_handler(lowering):
                lowering.run(*inputs)
                lowering._update_scheduler()
                return collections.Counter(kind_of(n) for n in lowering.scheduler.nodes)

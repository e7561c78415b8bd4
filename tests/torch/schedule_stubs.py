"""PyTorch's schedulers without a compiled graph: stand-ins for scheduler nodes, made from a problem.

`Stubs(problem)` answers what torch/_inductor/comms.py and memory.py ask of nodes, buffers and the graph, and
nothing else; nothing in torch is patched. `random_problem` makes problems (docs/scheduling.md, schema 1).
"""
import dataclasses

import torch._inductor.config
import torch._inductor.config_comms as options
from torch._inductor import comms, ir, memory
from torch._inductor.dependencies import StarDep, WeakDep
from torch._inductor.virtualized import V
from torch.utils._ordered_set import OrderedSet

LIST = ("raise_comms", "sink_waits", "reorder_compute_for_overlap")
REORDER = "reorder_communication_preserving_peak_memory"
SINK = "sink_waits_iterative"
ORDERING = "decide_global_ordering_of_comms"
PEAK = {"lpmf": memory.topological_sort_lpmf, "bfs": memory.topological_sort_bfs,
        "dfs": memory.topological_sort_dfs}


def ir_node(op):
    """Kernels are distinguished by class and by name."""
    cls = {"collective": ir._CollectiveKernel, "wait": ir._WaitKernel}.get(op["kind"])
    node = object.__new__(cls) if cls else type("Kernel", (), {})()
    name = op.get("kernel")
    if op["kind"] == "collective" and not op.get("is_async", True):
        name = "torch.ops._dtensor.shard_dim_alltoall.default"
    if op["kind"] == "gemm" and name is None:
        name = "extern_kernels.mm"
    object.__setattr__(node, "python_kernel_name", name)
    return node


class Buffer:
    def __init__(self, name):
        self.name = name

    def get_name(self):
        return self.name


class Node:
    override_estimated_runtime = None

    def __init__(self, op):
        self.op = op
        self.node = ir_node(op)
        self.outputs = [Buffer(out["name"]) for out in op["outputs"]]
        self.ancestors = OrderedSet(op["ancestors"])
        self.unmet_dependencies = OrderedSet(self.dependence(dep) for dep in op["deps"])
        self.read_writes = type("ReadWrites", (), {})()
        self.read_writes.reads = OrderedSet(self.unmet_dependencies)

    def dependence(self, dep):
        if not dep["weak"]:
            return StarDep(dep["name"])
        return WeakDep(dep["name"], mutating_buf=self.op["name"], is_fake=dep["fake"])

    def get_name(self):
        return self.op["name"]

    def get_nodes(self):
        return [self]

    def get_outputs(self):
        return self.outputs

    def get_buffer_names(self):
        return OrderedSet(out.name for out in self.outputs)

    def get_operation_names(self):
        return OrderedSet(self.op.get("ops") or [self.op["name"]])

    def get_estimated_runtime(self):
        return self.op["runtime"]

    def add_fake_dep(self, dep):
        self.read_writes.reads.add(dep)
        self.unmet_dependencies.add(dep)


class Stubs:
    name = None  # of the graph: the stubs are their own V.graph

    def __init__(self, problem):
        self.outputs = problem["graph_outputs"]
        self.sizes = {x["name"]: x["size_free"] for x in problem["freeable_inputs"]}
        self.graph_inputs = dict.fromkeys(self.sizes)
        self.nodes = [Node(op) for op in problem["snodes"]]
        self.by_name = {node.get_name(): node for node in self.nodes}
        for node in self.nodes:
            for out, buffer in zip(node.op["outputs"], node.outputs):
                buffer.mpi_buffer = memory.MemoryPlanningInfoForBuffer(
                    size_alloc=out["size_alloc"], size_free=out["size_free"],
                    succ_nodes=OrderedSet(self.by_name[x] for x in out["succ"]),
                    succ_nodes_for_ordering=OrderedSet(self.by_name[x] for x in out["succ_ordering"]))
        for x in problem["freeable_inputs"]:
            for user in x["succ"]:
                self.by_name[user].read_writes.reads.add(StarDep(x["name"]))

    def get_output_names(self):
        return self.outputs

    def get_dep_size_hint(self, dep):
        return self.sizes[dep.name]

    def freeable(self):
        return memory.get_freeable_input_buf(self.nodes, OrderedSet(self.graph_inputs))

    def peak(self, nodes):
        return memory.estimate_peak_memory_allocfree(nodes, self.freeable(),
                                                     OrderedSet(self.outputs))[0]

    def peak_order(self, method):
        buffers = {b.name: b for node in self.nodes for b in node.outputs}
        freeable = self.freeable()
        memory.assign_memory_planning_info_for_scheduler_nodes(self.nodes, self.by_name, buffers,
                                                               freeable)
        if method == "lpmf":
            return PEAK[method](self.nodes, freeable, buffers, OrderedSet(self.outputs))
        return PEAK[method](self.nodes)


def run_pass(name, nodes):
    """The order, and what happened to each collective or wait."""
    stats = {}
    if name == REORDER:
        nodes, stats = comms._reorder_communication_preserving_peak_memory_internal(nodes)
    elif name == SINK:
        nodes, stats = comms._sink_waits_iterative_internal(nodes)
    elif name == ORDERING:
        nodes = comms.decide_global_ordering_of_comms(nodes, None, None)
    else:
        nodes = getattr(comms, name)(nodes)
    return nodes, {node.get_name(): dataclasses.asdict(x) for node, x in stats.items()}


def answer(problem, passes, set_options, inductor_options=None):
    """{"order", "peak", "stats", "deps"} from PyTorch."""
    stubs = Stubs(problem)
    nodes, stats = stubs.nodes, {}
    with V.set_graph_handler(stubs), options.patch(set_options), \
            torch._inductor.config.patch({"estimate_op_runtime": "default", **(inductor_options or {})}):
        for name in passes:
            if name in PEAK:
                nodes = stubs.peak_order(name)
            else:
                nodes, stats = run_pass(name, nodes)
        peak = stubs.peak(nodes)
    return {"order": [node.get_name() for node in nodes], "peak": peak, "stats": stats,
            "deps": {node.get_name(): [[d.name, isinstance(d, WeakDep) and d.is_fake]
                                       for d in node.unmet_dependencies] for node in stubs.nodes}}


# ---------------------------------------------------------------- random problems

class Making:
    """A program that grows op by op, each reading recent results."""

    def __init__(self, rng):
        self.rng = rng
        self.ops, self.made, self.real, self.under_way = [], [], {}, []
        self.reach = rng.choice((2, 6, 25))
        self.whole = rng.random() < 0.7  # runtimes that are whole numbers

    def time(self, most):
        return self.rng.randint(0, most) if self.whole else self.rng.random() * most

    def buffer(self, size=None):
        if size is None:
            size = self.rng.choice((0, 2, 8, 32, 100, 512, 3000))
        self.made.append(f"b{len(self.made)}")
        return {"name": self.made[-1], "size_alloc": size, "size_free": size}

    def op(self, kind, runtime, reads, outputs, weak=(), fake=(), is_async=True):
        deps = [{"name": x, "weak": False, "fake": False} for x in reads]
        deps += [{"name": x, "weak": True, "fake": False} for x in weak]
        deps += [{"name": x, "weak": True, "fake": True} for x in fake]
        self.ops.append({"name": f"n{len(self.ops)}", "kind": kind, "runtime": runtime,
                         "is_async": is_async, "deps": deps, "outputs": outputs})

    def recent(self, most):
        pool = self.made[-self.reach:]
        return self.rng.sample(pool, min(len(pool), self.rng.randint(0, most)))

    def compute(self):
        rng, reads = self.rng, self.recent(3)
        weak = [x for x in self.recent(1) if x not in reads] if rng.random() < 0.1 else ()
        outputs = [self.buffer()]
        if rng.random() < 0.15:  # parts of one allocation
            outputs.append(self.buffer())
            outputs[0]["size_alloc"] += outputs[1]["size_alloc"]
            outputs[1]["size_alloc"] = 0
        self.op(rng.choice(("compute", "compute", "gemm")), self.time(9), reads, outputs, weak)

    def collective(self, chain):
        rng = self.rng
        source = rng.choice(self.made[-self.reach:])
        in_place = rng.random() < 0.3
        out = self.buffer(0 if in_place else None)
        if in_place:
            self.real[out["name"]] = source
        before = [x for x in chain[-1:]]
        self.op("collective", self.time(25), [source], [out], fake=before,
                is_async=rng.random() < 0.93)
        chain.append(out["name"])
        self.under_way.append((len(self.ops) + rng.choice((0, 1, 3, 8)), source, out["name"]))

    def wait(self, started):
        self.under_way.remove(started)
        out = self.buffer(0)
        self.real[out["name"]] = started[2]
        reads = [started[2]] + ([started[1]] if self.rng.random() < 0.5 else [])
        self.op("wait", 0, reads, [out])


def link(ops, real):
    """Ancestors and users, from what each op needs; users of an alias keep the real buffer."""
    maker = {out["name"]: op["name"] for op in ops for out in op["outputs"]}
    ancestors, users, followers = {}, {}, {}
    for op in ops:
        above = {}
        for dep in op["deps"]:
            followers.setdefault(dep["name"], {})[op["name"]] = True
            if not dep["fake"]:
                users.setdefault(dep["name"], {})[op["name"]] = True
            above[maker[dep["name"]]] = True
            above.update(ancestors[maker[dep["name"]]])
        ancestors[op["name"]] = above
        op["ancestors"] = list(above)
    for alias in reversed(list(real)):
        for table in users, followers:
            table.setdefault(real[alias], {}).update(table.get(alias, {}))
    for op in ops:
        for out in op["outputs"]:
            out["succ"] = list(users.get(out["name"], {}))
            out["succ_ordering"] = list(followers.get(out["name"], {}))


def random_problem(rng, size=None, share=0.18):
    making, chain = Making(rng), []
    size = size or rng.randint(1, 45)
    while len(making.ops) < size:
        due = [x for x in making.under_way if x[0] <= len(making.ops)]
        if due:
            making.wait(rng.choice(due))
        elif making.made and rng.random() < share:
            making.collective(chain)
        else:
            making.compute()
    for started in list(making.under_way):
        making.wait(started)
    link(making.ops, making.real)
    used = {dep["name"] for op in making.ops for dep in op["deps"]}
    outputs = [x for x in making.made if x not in used or rng.random() < 0.06]
    names = [op["name"] for op in making.ops]
    inputs = [{"name": f"held_{i}", "size_free": rng.choice((4, 64, 900)),
               "succ": sorted(rng.sample(names, min(len(names), rng.randint(1, 4))), key=names.index)}
              for i in range(rng.choice((0, 0, 1, 4)))]
    return {"schema": 1, "snodes": making.ops, "graph_outputs": outputs, "freeable_inputs": inputs,
            "graph_inputs": [x["name"] for x in inputs]}


def random_options(rng):
    flags = ("reorder_iterative_use_runtime_estimations", "sink_iterative_use_runtime_estimations",
             "reorder_iterative_unsafe_collectives_reorder",
             "sink_waits_iterative_unsafe_collectives_reorder",
             "reorder_iterative_group_with_collectives", "sink_waits_iterative_swap_with_collectives")
    chosen = {flag: rng.random() < 0.5 for flag in flags}
    for which in "reorder", "sink":
        chosen[f"{which}_iterative_peak_memory_budget"] = rng.choice((0.0, 0.1, 0.5, 2.0))
        chosen[f"{which}_iterative_extra_comm_comp_overlap"] = rng.choice((0.0, 0.25, 0.5))
    chosen["reorder_sink_runtime_estimations_comm_mult"] = rng.choice((1.0, 1.5, 2.0))
    chosen["reorder_sink_runtime_estimations_non_comm_mult"] = rng.choice((1.0, 1.0, 0.7))
    chosen["reorder_iterative_debug_limit_to_reorder"] = rng.choice((None, None, 3))
    chosen["sink_waits_iterative_debug_limit_to_sink"] = rng.choice((None, None, 3))
    return chosen

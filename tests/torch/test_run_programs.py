"""`tuck run` of small programs (programs.py) on two ranks, as traced and after Inductor's passes, before and after
`tuck optimize`: what it returns and writes is what torch over gloo gives (rtol 1e-4, atol 1e-5; integers exactly)."""

import tempfile
import unittest
from pathlib import Path

import torch
import torch.distributed as dist
from safetensors.torch import load_file, save_file
from torch._inductor.compile_fx import compile_fx
from torch._inductor.fx_passes.post_grad import post_grad_passes
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.testing._internal.distributed.fake_pg import FakeStore

from harness import one_test_each, some, tuck
from launch import run_jobs
from programs import PROGRAMS

WORLD = 2
_outcomes = {}


def traced(name):
    """The graph, and the inputs of each rank in its order."""
    function, inputs, _ = PROGRAMS[name]
    graph = make_fx(function, tracing_mode="fake")(*inputs(0))
    return graph, [inputs(r) for r in range(WORLD)]


def symbolic(name):
    """With symbols for sizes that depend on data; all others have numbers."""
    function, inputs, _ = PROGRAMS[name]
    mode = FakeTensorMode(shape_env=ShapeEnv(allow_dynamic_output_shape_ops=True, allow_scalar_outputs=True))
    with mode:
        fakes = [mode.from_tensor(t, static_shapes=True) for t in inputs(0)]
        graph = make_fx(function)(*fakes)
    return graph, [inputs(r) for r in range(WORLD)]


def post_grad(name):
    """The same after Inductor's decompositions and passes; constants have become inputs."""
    graph, inputs = traced(name)
    made, given = [], []

    def compiled(module, examples, **_):
        with V.set_fake_mode(torch._guards.detect_fake_mode(examples)):
            post_grad_passes(module, True)
        module.recompile()
        made.append(module)

        def run(args):
            given.append([t.clone() for t in args])
            return module(*args)

        run._boxed_call = True
        return run

    with torch.no_grad():
        step = compile_fx(graph, [t.clone() for t in inputs[0]], inner_compile=compiled)
        for own in inputs:
            step(*[t.clone() for t in own])
    return made[0], given[-WORLD:]


def constants(graph):
    named = [n.target for n in graph.graph.nodes if n.op == "get_attr"]
    return {f"constant.{name}": getattr(graph, name).detach().clone() for name in named}


def run(text, inputs, outputs):
    tuck("run", text, "-n", WORLD, "--inputs", inputs, "--outputs", outputs, "--steps", 1, "--warmup", 0, "--no-pin")


def job_of(graph, name, about, folder):
    """A job of exec_worker.py whose stored results are those of `tuck run`."""
    inputs, outputs = folder / f"{name}.in", folder / f"{name}.out"
    run(graph, inputs, outputs)
    stored = []
    for rank in range(WORLD):
        both = {**load_file(f"{inputs}.rank{rank}.safetensors"), **load_file(f"{outputs}.rank{rank}.safetensors")}
        stored.append(str(folder / f"{name}.rank{rank}.safetensors"))
        save_file(both, stored[-1])
    text = folder / f"{name}.py"
    text.write_text(tuck("show", "--exec", graph))
    count = sum(key.startswith("output.") for key in both)
    return {
        "graph": name,
        "texts": [str(text)] * WORLD,
        "tensors": stored,
        "inputs_by_rank": [about] * WORLD,
        "outputs": [{}] * count,
        "groups_by_rank": [{"0": {"size": WORLD, "ranks": list(range(WORLD))}}] * WORLD,
    }


def jobs_of(name, level, folder):
    graph, inputs = globals()[level](name)
    nodes = graph.graph.find_nodes(op="placeholder")
    about = [{"name": n.name, "stride": list(t.stride())} for n, t in zip(nodes, inputs[0])]
    texts = {f"{name}.{level}": folder / f"{name}.{level}.txt", f"{name}.{level}.best": folder / f"{name}.{level}.best.txt"}
    first, best = texts.values()
    first.write_text(graph.print_readable(print_output=False, include_stride=True, include_device=True))
    tuck("optimize", first, "--group", f"0={WORLD}", "-o", best)
    for stem in texts:
        for rank, own in enumerate(inputs):
            named = {f"input.{n.name}": t.contiguous() for n, t in zip(nodes, own)}
            save_file({**named, **constants(graph)}, folder / f"{stem}.in.rank{rank}.safetensors")
    return [job_of(path, stem, about, folder) for stem, path in texts.items()]


def outcomes():
    """Everything in one launch."""
    if not _outcomes:
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=WORLD)
        jobs = []
        with tempfile.TemporaryDirectory(prefix="tuck-programs-") as folder:
            for name, (_, _, levels) in PROGRAMS.items():
                for level in levels:
                    try:
                        jobs += jobs_of(name, level, Path(folder))
                    except Exception as error:
                        _outcomes[f"{name}.{level}"] = [f"{type(error).__name__}: {error}"]
            dist.destroy_process_group()
            _outcomes.update(run_jobs(WORLD, jobs))
    return _outcomes


@one_test_each([f"{name}.{level}" for name, (_, _, levels) in PROGRAMS.items() for level in levels], name=lambda item: "test_" + item.replace(".", "_"))
class RunPrograms(unittest.TestCase):
    def check(self, item):
        found = outcomes()
        problems = [f"{key}: {p}" for key in (item, item + ".best") for p in found.get(key, [] if found.get(item) else ["not run"])]
        self.assertEqual(problems, [], some(problems))


if __name__ == "__main__":
    unittest.main()

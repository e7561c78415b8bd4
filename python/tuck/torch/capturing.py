"""capture(folder): every compiled graph of this rank as text, for the command line.

    with tuck.torch.capture("graphs"):
        train()

    $ tuck explain graphs/0.backward.rank0.txt
    $ tuck simulate graphs/0.backward.rank*.txt        # all ranks together

Forward and backward of one compilation have the same number. Beside each text is a side-car with
what the text does not say: groups, ranks, values of symbolic sizes, torch's estimates.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import fx

from .. import Graph
from . import sequence, spent
from .settings import say


class Capture:
    """Where graphs go, and what was written."""

    def __init__(self, folder: str | Path, summary: bool = True):
        self.folder, self.summary = Path(folder), summary
        self.lock = threading.Lock()
        self.files: list[Path] = []
        self.number = 0

    def __enter__(self) -> Capture:
        start(self)
        return self

    def __exit__(self, *what: Any) -> None:
        self.close()

    def close(self) -> str:
        """Ends capturing. On rank 0 the summary goes to standard error; it is returned anyway."""
        stop(self)
        text = self.text() if self.summary and _rank() == 0 else ""
        if text and spent.seconds()["compiling"]:
            text += f"\ntuck: {spent.text()}"
        if text:
            print(text, file=sys.stderr)
        return text

    def next_number(self) -> int:
        with self.lock:
            self.number += 1
            return self.number - 1

    def take(self, gm: fx.GraphModule, number: int, stage: str) -> None:
        """Writes one graph; trouble with it is a warning."""
        try:
            self.write(gm, number, stage)
        except Exception as e:
            say(f"capture: graph {number}.{stage} was not written: {type(e).__name__}: {e}")

    def write(self, gm: fx.GraphModule, number: int, stage: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{number}.{stage}.rank{_rank()}.txt"
        text = gm.print_readable(print_output=False, include_stride=True, include_device=True)
        known = sidecar(gm)
        known.update(description=f"{stage} of compilation {number}", stage=stage,
                     pair=f"{number}.{_OTHER.get(stage, stage)}.rank{_rank()}.txt")  # fmt: skip
        path.with_suffix(".json").write_text(json.dumps(known, indent=1) + "\n")
        path.write_text(text if text.endswith("\n") else text + "\n")
        with self.lock:
            self.files.append(path)

    def text(self) -> str:
        """How much is exposed in all graphs, and how much less with Tuck."""
        step = exposed = after = 0.0
        graphs = 0
        for path in self.files:
            try:
                graph = Graph.read(path)
                before = graph.simulate().data
                if not before.get("collectives"):
                    continue
                graph.optimize()
                then = graph.simulate().data
            except Exception as e:
                say(f"capture: {path} cannot be simulated: {e}")
                continue
            graphs += 1
            step += before["step_ns"]
            exposed += before["exposed_ns"]
            after += then["exposed_ns"]
        files = f"{len(self.files)} graphs in {self.folder}"
        if not graphs:
            return f"tuck: {files}; none of them communicates"
        return (f"tuck: {files}, {graphs} of them communicate: {_ms(exposed)} of {_ms(step)} exposed; "
                f"Tuck would hide {_ms(max(0.0, exposed - after))} of it")


_OTHER = {"forward": "backward", "backward": "forward"}
_active: list[Capture] = []


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.3f} ms"


def _rank() -> int:
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def start(c: Capture) -> None:
    from . import switch

    switch._hook_inductor()
    if c not in _active:
        _active.append(c)


def stop(c: Capture) -> None:
    if c in _active:
        _active.remove(c)


def active() -> Capture | None:
    return _active[-1] if _active else None


def capture(folder: str | Path, summary: bool = True) -> Capture:
    """Writes every graph that is compiled from now on into a folder, as text with a side-car, until
    close(), or the end of a `with` block. Works with and without install()."""
    c = Capture(folder, summary)
    start(c)
    return c


def sidecar(gm: fx.GraphModule) -> dict[str, Any]:
    """What is known about a graph and not in its text."""
    found = sequence.of_graph(gm)
    groups = {}
    for name in found.groups:
        ranks = sequence.members(name)
        if ranks:
            groups[name] = {"size": len(ranks), "ranks": ranks}
    known: dict[str, Any] = {"printed_on_rank": _rank(), "groups": groups}
    if dist.is_available() and dist.is_initialized():
        known["world_size"] = dist.get_world_size()
    symbols = _symbols(gm)
    if symbols:
        known["symbols"] = symbols
    estimates = _estimates(gm)
    if estimates:
        known["torch_estimates_ms"] = estimates
    return known


def _symbols(gm: fx.GraphModule) -> dict[str, int]:
    """Values of symbolic sizes in this run."""
    from .graph import _hints_of

    for node in gm.graph.nodes:
        val = node.meta.get("val")
        if isinstance(val, (torch.SymInt, torch.Tensor)):
            env = getattr(getattr(val, "node", None), "shape_env", None)
            env = env or getattr(getattr(val, "fake_mode", None), "shape_env", None)
            if env is not None:
                return {str(k): int(v) for k, v in _hints_of(env).items() if int(v) >= 0}
    return {}


def _estimates(gm: fx.GraphModule) -> dict[str, float]:
    """What Inductor thinks a collective takes; it has no estimate for a CPU."""
    if not torch.cuda.is_available():
        return {}
    try:
        from torch._inductor import comm_analysis

        estimate = comm_analysis.estimate_nccl_collective_runtime_from_fx_node
    except (ImportError, AttributeError):
        return {}
    out = {}
    for node in gm.graph.nodes:
        if node.op == "call_function" and sequence._is_collective(node.target):
            try:
                out[node.name] = float(estimate(node))
            except Exception:  # it has no estimate for this one
                continue
    return out

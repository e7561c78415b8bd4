"""tuck.Graph: a graph to look at, simulate, explain and optimize, in a script or a notebook."""

from __future__ import annotations

import html
import json
import os
import sys
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence, Union

from ._lib import Diags, Error, Handle, Settings, lib, make, text_of
from ._run import Passes, Report, run_passes


class Result:
    """An answer of the library. str() is the table of the command line, `data` the JSON as a dict;
    result["step_ns"] is short for result.data["step_ns"]."""

    def __init__(self, handle: Handle, print_function: Any) -> None:
        self._handle = handle
        self._print = print_function
        self._data: Optional[dict[str, Any]] = None

    @property
    def data(self) -> dict[str, Any]:
        if self._data is None:
            settings = Settings(form="json")
            self._data = json.loads(text_of(self._print, self._handle, settings.print))
        return self._data

    def __getitem__(self, key: str) -> Any:
        return self.data[key]

    def __str__(self) -> str:
        return text_of(self._print, self._handle, None)

    def __repr__(self) -> str:
        return str(self)


class Simulation(Result):
    """A simulated step. In a notebook it is shown as its timeline."""

    def html(self, after: Optional["Simulation"] = None, title: str = "") -> str:
        """A page with the timeline, and that of the step afterwards if it is given."""
        other = after._handle if after is not None else None
        return text_of(lib.tuck_simulation_html, self._handle, other, title.encode())

    def _repr_html_(self) -> str:
        return frame(self.html())


def frame(page: str, height: int = 600) -> str:
    """A whole page inside another: what it defines stays inside."""
    return (
        f'<iframe srcdoc="{html.escape(page, quote=True)}" style="width: 100%; border: 0"'
        f' height="{height}"></iframe>'
    )


class Graph:
    """The graph of a training step.

    tuck.Graph(text) reads any text that the command line reads, tuck.Graph.read(path) a file with
    its side-car, tuck.Graph(gm) a live torch.fx.GraphModule or Graph. `cluster`, `profile`,
    `symbols` ({"s0": 8}), `model`, `strict` and `symm_mem` (names of groups with symmetric memory,
    or "*") are the machine of all questions below.
    """

    def __init__(
        self,
        source: Any,
        index: int = 0,
        *,
        cluster: Union[str, os.PathLike, None] = None,
        profile: Union[str, os.PathLike, None] = None,
        symbols: Optional[Mapping[str, int]] = None,
        model: Optional[str] = None,
        strict: bool = False,
        symm_mem: Union[str, Sequence[str], None] = None,
        name: str = "graph",
    ) -> None:
        self._machine = {
            "cluster": cluster,
            "profile": profile,
            "symbols": symbols,
            "model": model,
            "strict": strict,
            "symm_mem": symm_mem,
        }
        self._settings = Settings(**self._machine)
        self._simulation: Optional[Simulation] = None
        if isinstance(source, str):
            self._handle = _read(source, index, name)
        elif isinstance(source, Handle):
            self._handle = source
        else:
            self._handle = _live(source)

    @classmethod
    def read(cls, path: Union[str, os.PathLike], index: int = 0, **options: Any) -> "Graph":
        """Graph number `index` of a file, with what its side-car says."""
        graph = cls(Path(path).read_text(encoding="utf-8"), index, name=os.fspath(path), **options)
        diags = Diags()
        diags.check(
            lib.tuck_graph_read_sidecar(graph._handle, os.fsencode(path), -1, diags)
        )
        return graph

    # ---- what is known ----

    def set_group(self, name: str, size: int, ranks: Optional[Sequence[int]] = None) -> None:
        """How many ranks a process group has, and which."""
        members = None if ranks is None else _int64s(ranks, size)
        diags = Diags()
        diags.check(
            lib.tuck_graph_set_group(self._handle, name.encode(), size, members, diags)
        )
        self._simulation = None

    def set_rank(self, rank: int) -> None:
        """Which global rank runs the graph."""
        diags = Diags()
        diags.check(lib.tuck_graph_set_rank(self._handle, rank, diags))
        self._simulation = None

    @property
    def groups(self) -> dict[str, int]:
        """The process groups and their sizes; 0 is unknown."""
        return {
            lib.tuck_graph_group_name(self._handle, i).decode(): lib.tuck_graph_group_size(
                self._handle, i
            )
            for i in range(lib.tuck_graph_group_count(self._handle))
        }

    @property
    def collectives(self) -> list[dict[str, Any]]:
        """The collectives in the order in which they start, with their times in the simulation."""
        return self.simulate().data["collectives"]

    def dataframe(self) -> Any:
        """The collectives as a pandas.DataFrame."""
        import pandas

        return pandas.DataFrame(self.collectives)

    def __len__(self) -> int:
        return lib.tuck_graph_size(self._handle)

    def __str__(self) -> str:
        return text_of(lib.tuck_graph_print, self._handle, 0, None)

    def __repr__(self) -> str:
        return f"<tuck.Graph: {len(self)} nodes>"

    def _repr_html_(self) -> str:
        try:
            return self.simulate()._repr_html_()
        except Error as error:
            return f"<pre>{html.escape(repr(self))}\n{html.escape(str(error))}</pre>"

    # ---- questions ----

    def simulate(self) -> Simulation:
        """The time and memory of the step."""
        if self._simulation is None:
            diags = Diags()
            copy = self.copy()  # a simulation stays that of the graph at this time
            handle = make(
                lib.tuck_graph_simulate,
                lib.tuck_simulation_free,
                diags,
                copy._handle,
                self._settings.machine,
                diags,
                keep=(copy._handle, self._settings),
            )
            self._simulation = Simulation(handle, lib.tuck_simulation_print)
        return self._simulation

    def explain(self, node: Optional[str] = None) -> Result:
        """Why communication is exposed and what would help; or about one collective."""
        diags = Diags()
        how = Settings(node=node)
        copy = self.copy()
        handle = make(
            lib.tuck_graph_explain,
            lib.tuck_explanation_free,
            diags,
            copy._handle,
            self._settings.machine,
            how.explain,
            diags,
            keep=(copy._handle, self._settings, how),
        )
        return Result(handle, lib.tuck_explanation_print)

    def optimize(
        self,
        passes: Passes = "auto",
        memory: Union[str, int, None] = None,
        keep_order: Union[bool, str] = False,
    ) -> Report:
        """Runs passes on this graph and says what they did. "auto": those that make the step
        fastest within `memory`, a peak ("40GiB") or an increase ("+5%")."""
        diags = Diags()
        options = Settings(
            **self._machine, order=order_rule(keep_order), memory=memory, judge=True
        )
        before = str(self)
        report = run_passes(self._handle, passes, options, diags)
        self._simulation = None
        return Report(report, str(diags), str(self) != before)

    def copy(self) -> "Graph":
        """A graph of its own, on the same machine."""
        diags = Diags()
        other = Graph.__new__(Graph)
        other._machine = self._machine
        other._settings = self._settings
        other._simulation = self._simulation
        other._handle = make(lib.tuck_graph_copy, lib.tuck_graph_free, diags, self._handle)
        return other


def order_rule(keep_order: Union[bool, str]) -> str:
    """False: collectives may change places; "groups": not those of one group; True: none."""
    if isinstance(keep_order, str):
        return keep_order
    return "all" if keep_order else "free"


def _read(text: str, index: int, name: str) -> Handle:
    raw = text.encode()
    diags = Diags()
    document = make(
        lib.tuck_doc_read_text,
        lib.tuck_doc_free,
        diags,
        raw,
        len(raw),
        name.encode(),
        None,
        diags,
    )
    count = lib.tuck_doc_count(document)
    if not 0 <= index < count:
        raise IndexError(f"{name} has {count} graphs, there is no graph {index}")
    return Handle(lib.tuck_doc_graph(document, index), None, document)


def _live(source: Any) -> Handle:
    if "torch" not in sys.modules or isinstance(source, os.PathLike):
        raise TypeError(
            f"wants a text, a GraphModule or a torch.fx.Graph, not {type(source)}: "
            "tuck.Graph.read(path) reads a file"
        )
    from .torch.graph import take

    return take(source)


def _int64s(numbers: Sequence[int], size: int) -> Any:
    import ctypes

    if len(numbers) != size:
        raise ValueError(f"a group of {size} ranks cannot have {len(numbers)} members")
    return (ctypes.c_int64 * size)(*numbers)

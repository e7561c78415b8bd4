"""Pipelines and reports: what every way to run passes shares."""

from __future__ import annotations

import json
from typing import Any, Iterable, Union

from ._lib import Diags, Handle, Settings, lib, make, text_of

Passes = Union[str, Iterable[str]]


def passes() -> dict[str, str]:
    """The passes of the library: name and one line of help."""
    return {
        lib.tuck_pass_name(i).decode(): lib.tuck_pass_help(i).decode()
        for i in range(lib.tuck_pass_count())
    }


def pipeline_text(which: Passes) -> str:
    """"auto", or the passes as the text of a pipeline."""
    return which if isinstance(which, str) else ", ".join(which)


class Report:
    """What passes did. str() is the table of the command line, `data` the JSON as a dict."""

    def __init__(self, handle: Handle, diagnostics: str, changed: bool) -> None:
        self._handle = handle
        self.diagnostics = diagnostics  # warnings
        self.changed = changed

    @property
    def data(self) -> dict[str, Any]:
        settings = Settings(form="json")
        return json.loads(text_of(lib.tuck_report_print, self._handle, settings.print))

    @property
    def brief(self) -> str:
        settings = Settings(form="brief")
        return text_of(lib.tuck_report_print, self._handle, settings.print)

    def __str__(self) -> str:
        return text_of(lib.tuck_report_print, self._handle, None)

    def __repr__(self) -> str:
        return f"<tuck.Report: {'changed' if self.changed else 'unchanged'}>"


def parse(which: Passes, diags: Diags) -> Handle:
    """Passes as a pipeline of the library."""
    raw = pipeline_text(which).encode()
    return make(
        lib.tuck_pipeline_parse,
        lib.tuck_pipeline_free,
        diags,
        raw,
        len(raw),
        b"passes",
        None,
        diags,
    )


def run_passes(graph: Handle, which: Union[Passes, Handle], settings: Settings, diags: Diags) -> Handle:
    """Runs "auto" or passes, or a pipeline of them, on a graph of the library; returns the report."""
    if isinstance(which, Handle):
        pipeline = which
    elif pipeline_text(which).strip() == "auto":
        return make(
            lib.tuck_graph_optimize, lib.tuck_report_free, diags, graph, settings.run, diags, None
        )
    else:
        pipeline = parse(which, diags)
    return make(
        lib.tuck_pipeline_run, lib.tuck_report_free, diags, pipeline, graph, settings.run, diags
    )

"""Passes for torch._inductor.config.reorder_for_compute_comm_overlap_passes.

    torch._inductor.config.reorder_for_compute_comm_overlap = True
    torch._inductor.config.reorder_for_compute_comm_overlap_passes = [tuck.torch.passes.sink_waits]

Each has the name of Inductor's own (a string in that list) that it replaces, or is one of Tuck's.
`passes.sink_waits.set(option=value)` is the same pass with options (docs/passes.md).
"""

from __future__ import annotations

from typing import Any

from .. import __version__
from . import schedule


class Order:
    """A pass on Inductor's schedule. Its members are part of the key of Inductor's cache."""

    def __init__(self, name: str, options: tuple[tuple[str, str], ...] = ()):
        self.name, self.options, self.version = name, options, __version__

    def set(self, **options: Any) -> Order:
        texts = ((k, _text(v)) for k, v in options.items())
        return Order(self.name, tuple(sorted({**dict(self.options), **dict(texts)}.items())))

    def __call__(self, snodes: list[Any]) -> list[Any]:
        return schedule.arrange(snodes, str(self))

    def __str__(self) -> str:
        options = ", ".join(f"{k}={v}" for k, v in self.options)
        return f"{self.name}({options})" if options else self.name

    def __repr__(self) -> str:
        return f"tuck.torch.passes.{self}"


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


graph = Order("graph")  # the order of the graph, which Inductor does not keep by itself
raise_comms = Order("raise_comms")
sink_waits = Order("sink_waits")
reorder_compute_for_overlap = Order("reorder_compute_for_overlap")
reorder_communication_preserving_peak_memory = Order("reorder_communication_preserving_peak_memory")
sink_waits_iterative = Order("sink_waits_iterative")
decide_global_ordering_of_comms = Order("decide_global_ordering_of_comms")
align_runtime_estimations_across_all_distributed_ranks = Order(
    "align_runtime_estimations_across_all_distributed_ranks"
)
reorder_compute_and_comm_for_overlap = Order("reorder_compute_and_comm_for_overlap")
enforce_comm_ordering_for_fsdp = Order("enforce_comm_ordering_for_fsdp")  # of torch before 2.13
reorder_for_peak_memory = Order("reorder_for_peak_memory")
simple_overlap = Order("simple_overlap")
list_overlap = Order("list_overlap")
improve_order = Order("improve_order")
issue_late = Order("issue_late")

"""Tuck: tucks communication under computation.

    import tuck
    graph = tuck.Graph.read("step.txt")
    print(graph.explain())
    report = graph.optimize()

tuck.torch has what needs PyTorch; the rest of the package works without it.
"""

from ._lib import Error
from ._run import Report, passes
from ._version import VERSION as __version__
from .notebook import Graph

__all__ = ["Error", "Graph", "Report", "__version__", "passes"]

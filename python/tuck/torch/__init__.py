"""Tuck inside PyTorch: passes on live graphs.

    report = tuck.torch.optimize(gm)
"""

from .graph import optimize, run

__all__ = ["optimize", "run"]

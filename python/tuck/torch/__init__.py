"""Tuck inside PyTorch: passes on live graphs, and every torch.compile of a job.

    import tuck.torch
    tuck.torch.install()          # on all ranks, after init_process_group()

    model = torch.compile(model, options=tuck.torch.options())    # or one compilation alone
    report = tuck.torch.optimize(gm)                              # or a graph of your own
"""

from . import passes, spent
from .capturing import capture
from .graph import optimize, run
from .job import Disagreement
from .settings import TuckWarning
from .spent import text as summary
from .switch import install, installed, options, uninstall

__all__ = ["Disagreement", "TuckWarning", "capture", "install", "installed", "optimize", "options", "passes",
           "run", "summary", "uninstall"]  # fmt: skip

"""usage: script_worker.py SCRIPT OUT: runs a script that torch wrote (fx_graph_runnable) as a program, and saves what its module gives.

Inductor is left out: instead of compiling the module, it is called with the arguments that load_args makes. Processes of the
script's groups are fake ones, whose gathers write nothing: what is not written is filled, so that runs can be compared.
"""

import sys

import torch
import torch._dynamo.repro.after_aot as after_aot
from torch._dynamo.debug_utils import InputReader


def call(mod, load_args, **options):
    torch.manual_seed(0)
    reader = InputReader(save_dir=None)
    load_args(reader)
    given.extend(mod(*reader.args))


script, out = sys.argv[1:]
sys.argv = [script]
given = []
after_aot.run_repro = call
torch.use_deterministic_algorithms(True)
torch.utils.deterministic.fill_uninitialized_memory = True
with open(script) as f:
    exec(compile(f.read(), script, "exec"), {"__name__": "__main__", "__file__": script})
torch.save(given, out)

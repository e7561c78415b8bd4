"""Runs an example as a script does, then writes what it compiled: cache_worker.py EXAMPLE COUNTS ...

The other arguments are those of the example. COUNTS.RANK.json gets hits and misses of both caches.
"""

import json
import os
import runpy
import sys
from pathlib import Path

from torch._dynamo.utils import counters

example, counts = sys.argv[1:3]
sys.argv[1:3] = []
sys.path.insert(0, str(Path(example).parent))
runpy.run_path(example, run_name="__main__")
found = {name: counters["inductor"][f"fxgraph_cache_{name}"] for name in ("hit", "miss", "bypass")}
found["autograd_hit"] = counters["aot_autograd"]["autograd_cache_hit"]
Path(f"{counts}.{os.environ['RANK']}.json").write_text(json.dumps(found))

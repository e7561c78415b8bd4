"""The scripts of examples/torch train the same with and without Tuck, on 2 and 4 ranks over gloo.

With two ranks a sum has one order only, and everything is equal bit by bit. With four, gloo cuts a
message into pieces whose sums begin at different ranks; merging all-reduces moves those cuts, so
there losses and parameters agree within RTOL; where Tuck merges nothing that is summed, they are
equal, too.
"""

import os
import tempfile
import time
import unittest
from pathlib import Path

import torch
import warm
from harness import ROOT

EXAMPLES = ROOT / "examples" / "torch"
SECONDS = 900  # of a busy machine; most take 10
RTOL, ATOL = 1e-4, 1e-6


def run(name, world, tuck, folder, worker=None, options=(),
        cache=ROOT / "build" / "torch-cache" / "examples"):
    """Losses and parameters of each rank, and what the ranks said. worker: a script and its first
    arguments, instead of the example."""
    os.makedirs(folder, exist_ok=True)
    out = f"{folder}/{name}.{world}.{tuck}"
    env = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(warm.free_port()), "OMP_NUM_THREADS": "1",
           "WORLD_SIZE": str(world), "GLOO_SOCKET_IFNAME": "lo", "TUCK": tuck,
           "PYTHONPATH": str(ROOT / "python"), "TORCHINDUCTOR_CACHE_DIR": str(cache)}  # fmt: skip
    script, *arguments = worker or [EXAMPLES / f"{name}.py"]
    arguments += ["--out", out, *options]
    ranks, end = [], time.monotonic() + SECONDS
    try:
        for r in range(world):
            own = {**env, "RANK": str(r), "LOCAL_RANK": str(r)}
            ranks.append(warm.Process(script, arguments, own, output=f"{out}.{r}.said"))
        codes = [p.wait(max(0, end - time.monotonic())) for p in ranks]
    finally:
        for p in ranks:
            p.stop()
    said = [Path(f"{out}.{r}.said").read_text(errors="replace") for r in range(world)]
    if codes != [0] * world:
        raise AssertionError("\n".join([f"ranks ended with {codes}", *(text[-3000:] for text in said)]))
    return [torch.load(f"{out}.{r}.pt") for r in range(world)], said


class ExampleTest(unittest.TestCase):
    def check(self, name, world, exact):
        with tempfile.TemporaryDirectory() as folder:
            without, _ = run(name, world, "0", folder)
            got, said = run(name, world, "", folder)
        for text in said:
            self.assertNotIn("TuckWarning", text)
        for a, b in zip(without, got):
            self.assertEqual(len(b["losses"]), 20)
            pairs = [*zip(a["parameters"], b["parameters"]),
                     (torch.tensor(a["losses"]), torch.tensor(b["losses"]))]  # fmt: skip
            for x, y in pairs:
                torch.testing.assert_close(y, x, rtol=0 if exact else RTOL, atol=0 if exact else ATOL)


def _add(name, world, exact):
    test = lambda self: self.check(name, world, exact)  # noqa: E731
    setattr(ExampleTest, f"test_{name}_{world}", test)


for name in ("ddp", "sharded", "tensor_parallel"):
    _add(name, 2, True)
    _add(name, 4, name == "tensor_parallel")

if __name__ == "__main__":
    unittest.main()

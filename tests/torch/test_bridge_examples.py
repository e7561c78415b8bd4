"""The scripts of examples/torch train the same with and without Tuck, on 2 and 4 ranks over gloo.

With two ranks a sum has one order only, and everything is equal bit by bit. With four, gloo cuts a
message into pieces whose sums begin at different ranks; merging all-reduces moves those cuts, so
there losses and parameters agree within RTOL; where Tuck merges nothing that is summed, they are
equal, too.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

import torch
from harness import ROOT

EXAMPLES = ROOT / "examples" / "torch"
SECONDS = 900
RTOL, ATOL = 1e-4, 1e-6


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run(name, world, tuck, folder, worker=(), options=(),
        cache=ROOT / "build" / "torch-cache" / "examples"):
    """Losses and parameters of each rank, and what the ranks said."""
    os.makedirs(folder, exist_ok=True)
    out = f"{folder}/{name}.{world}.{tuck}"
    settings = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1",
                "WORLD_SIZE": str(world), "GLOO_SOCKET_IFNAME": "lo", "TUCK": tuck,
                "PYTHONPATH": str(ROOT / "python"),
                "TORCHINDUCTOR_CACHE_DIR": str(cache)}  # fmt: skip
    ranks = []
    try:
        for r in range(world):
            command = [sys.executable, *(worker or [EXAMPLES / f"{name}.py"]), "--out", out, *options]
            env = {**os.environ, **settings, "RANK": str(r), "LOCAL_RANK": str(r)}
            env.pop("TORCHINDUCTOR_FORCE_DISABLE_CACHES", None)  # other tests set it
            ranks.append(subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                          start_new_session=True))  # fmt: skip
        said = [p.communicate(timeout=SECONDS)[0] for p in ranks]
    finally:
        for p in ranks:
            if p.poll() is None:
                os.killpg(p.pid, signal.SIGKILL)
            p.wait()
    if any(p.returncode for p in ranks):
        raise AssertionError("\n".join(text[-3000:] for text in said))
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

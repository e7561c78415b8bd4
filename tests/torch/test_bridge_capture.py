"""capture() writes what the command line reads; DDP and FSDP as people write them are warned about."""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

from bridge import *  # noqa: F403
from harness import tuck as command
from tuck.torch import advice


class CaptureTest(unittest.TestCase):
    def setUp(self):
        start_fake_group()
        use_cache(type(self).__name__)
        forget()
        self.addCleanup(forget)

    def captured(self, folder, install=False, **options):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), tuck.torch.capture(folder):
            if install:
                stand_in()
                tuck.torch.install()
            train(torch.compile(loss_of, **options), (8, 8))
        return sorted(p.name for p in Path(folder).iterdir()), said.getvalue()

    def test_forward_and_backward(self):
        for install in (False, True):
            with self.subTest(install=install), tempfile.TemporaryDirectory() as folder:
                forget()
                files, said = self.captured(folder, install)
                names = [f"0.{s}.rank0.{e}" for s in ("backward", "forward") for e in ("json", "txt")]
                self.assertEqual(files, names)
                self.assertRegex(said, r"tuck: 2 graphs in .*, 1 of them communicate: .* exposed")
                known = json.loads((Path(folder) / "0.backward.rank0.json").read_text())
                self.assertEqual(known["groups"]["0"]["ranks"], [0, 1, 2, 3])
                self.assertEqual((known["stage"], known["pair"]), ("backward", "0.forward.rank0.txt"))
                text = command("explain", "--json", Path(folder) / "0.backward.rank0.txt")
                self.assertEqual(len(json.loads(text)["collectives"]), 3)

    def test_symbols(self):
        with tempfile.TemporaryDirectory() as folder:
            self.captured(folder, dynamic=True)
            command("simulate", "--strict", Path(folder) / "0.backward.rank0.txt")


class AdviceTest(unittest.TestCase):
    def setUp(self):
        start_fake_group()
        use_cache(type(self).__name__)
        forget()
        advice._seen.clear()
        self.addCleanup(advice._seen.clear)
        self.addCleanup(forget)

    def test_ddp(self):
        with caught() as said:
            model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
            tuck.torch.install()
            tuck.torch.install()
        self.assertEqual(len(said), 1, said)
        self.assertIn("python_reducer", said[0])
        del model

    def test_ddp_brought_in(self):
        with caught() as said, torch._dynamo.config.patch(optimize_ddp="python_reducer"):
            model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
            tuck.torch.install()
        self.assertEqual(said, [])
        del model

    def test_fully_shard(self):
        from torch.distributed.fsdp import fully_shard

        with caught() as said:
            tuck.torch.install()
            fully_shard(torch.nn.Linear(4, 4))
            tuck.torch.install()
            with torch._dynamo.compiled_autograd._enable(torch.compile()):
                pass
        self.assertEqual(len(said), 2, said)
        self.assertIn("never part of the graph", said[0])
        self.assertIn("trains wrongly", said[1])


if __name__ == "__main__":
    unittest.main()

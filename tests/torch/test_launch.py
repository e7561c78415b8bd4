"""The launcher itself: a wrong value, a rank that raises and one that never arrives are detected
and distinguished, and the graphs after them still run."""

import json
import tempfile
import unittest
from pathlib import Path

from harness import GRAPHS
from launch import run_jobs
from test_exec_run import make_job

SIDE_CAR = GRAPHS / "exec" / "mlp_ddp_bw.json"  # two ranks, six all-reduces
FIRST = "        mul_1: "  # its first statement
WRONG = "        zeta = torch.no_such_thing(mul)\n"


def job(graph, folder, change=lambda text: text):
    """A job from the stored text, which rank 1 runs changed."""
    about = json.loads(SIDE_CAR.read_text())
    text = "# needs: torch\n# needs: device\n" + SIDE_CAR.with_suffix(".txt").read_text()
    texts = [folder / f"{graph}.{rank}.py" for rank in range(2)]
    texts[0].write_text(text)
    texts[1].write_text(change(text))
    return make_job(graph, SIDE_CAR, about, texts)


class Launch(unittest.TestCase):
    def test_faults_are_found_and_the_rest_runs(self):
        with tempfile.TemporaryDirectory(prefix="tuck-launch-") as folder:
            folder = Path(folder)
            outcome = run_jobs(
                2,
                [
                    job("wrong_value", folder, lambda t: t.replace("(view_6, 2)", "(view_6, 3)")),
                    job("raises", folder, lambda t: t.replace(FIRST, WRONG + FIRST, 1)),
                    job("good", folder),
                    job("stays_away", folder, lambda t: "import time; time.sleep(60)\n" + t),
                    job("other_group", folder, lambda t: t.replace("'sum', '0'", "'sum', '7'")),
                    job("good_again", folder),
                ],
                collective_seconds=15,
            )
        self.maxDiff = None
        text = {graph: "\n".join(problems) for graph, problems in outcome.items()}
        self.assertEqual(text["good"], "")
        self.assertEqual(text["good_again"], "")
        self.assertRegex(text["wrong_value"], "rank 0: output .*not close")
        self.assertRegex(text["wrong_value"], "rank 1: output .*not close")
        self.assertRegex(text["raises"], "rank 1: .*: zeta = torch.*: AttributeError: ")
        self.assertRegex(text["stays_away"], "rank 0: .*wait_tensor.*[Tt]imed? ?out")
        self.assertRegex(text["other_group"], "rank 1: .*all_reduce.*group.*7")

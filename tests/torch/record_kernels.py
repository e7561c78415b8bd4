"""Asks Inductor how many kernels it makes of each graph of tests/results/kernels.txt, and writes that there.

    build/torch-venv/bin/python tests/torch/record_kernels.py [GRAPH...]

A quarter of an hour for all of them. Nothing is compiled and nothing is run.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import harness
import inductor

TABLE = harness.ROOT / "tests" / "results" / "kernels.txt"


def inductors(name):
    """The right side of a graph's line."""
    path = harness.GRAPHS / name
    try:
        found = inductor.kernels_of(path)
    except Exception as error:
        said = (str(error).strip().splitlines() or [""])[0]
        return f"torch raises: {said.split(' {')[0]}"  # a set has no order
    device = "cuda" if "cuda:0" in path.read_text() else "cpu"
    return f"{found['loops'] + found['extern']:7} {found['loops']:5} {found['extern']:6} {device}"


def main():
    asked = sys.argv[1:]
    lines = TABLE.read_text().splitlines()
    for at, line in enumerate(lines):
        name = line.split()[0]
        if line.startswith("#") or (asked and name not in asked):
            continue
        lines[at] = line.split(" | ")[0] + " | " + inductors(name)
        print(lines[at], flush=True)
        TABLE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

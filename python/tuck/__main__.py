"""`tuck` and `python -m tuck`: the command-line tool that comes with the package."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def tool() -> Path | None:
    """In a wheel beside this file, in the source tree where make puts it."""
    here = Path(__file__).resolve().parent
    for path in (here / "tuck-tool", here.parent.parent / "build" / "release" / "tuck"):
        if path.exists():
            return path
    return None


def main() -> None:
    path = tool()
    if path is None:
        sys.exit("tuck: the tool is not there: build it with make")
    os.execv(path, ["tuck", *sys.argv[1:]])


if __name__ == "__main__":
    main()

#!/bin/bash
# usage: tests/python/run.sh [NAME...]
# Tests the Python package with build/release/libtuck.so, without PyTorch. PYTHON=path is the
# interpreter; without one of 3.10 or later nothing is tested.
cd "$(dirname "$0")/../.." || exit 1
python=${PYTHON:-python3}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    echo "ok 1 # SKIP needs Python 3.10"; echo "ok 2 nothing to do"
    exit 0
fi
unset PYTHONPATH PYTHONHOME TUCK_LIBRARY
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/python:$PWD/tests/python
exec "$python" -W error tests/python/run.py "$@"

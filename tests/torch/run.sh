#!/bin/bash
# usage: tests/torch/run.sh [NAME...]
# Compares Tuck with PyTorch: makes an environment in build/torch-venv, builds Tuck, runs the tests
# here whose file.Class.test_name matches one of the regular expressions NAME, or all. TUCK=path
# tests another binary, which is then not built; PYTHON=path is the interpreter of the environment.
# pip's own settings (PIP_EXTRA_INDEX_URL ...) decide where torch comes from; a CPU build is enough.
cd "$(dirname "$0")/../.." || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES V B SAN PYTHONPATH PYTHONHOME
torch=2.13.0
venv=build/torch-venv
python=$venv/bin/python

complain() {
    echo "tests/torch/run.sh: $1" >&2
    exit 1
}

complete() {
    [ -x $python ] && $python - 2>/dev/null <<END
import hta.common.trace, numpy, safetensors.torch, torch
assert torch.__version__.split("+")[0] == "$torch"
END
}

make_environment() {
    if ! { [ -x $python ] && $python -m pip --version; } >/dev/null 2>&1; then
        rm -rf $venv
        "${PYTHON:-python3}" -m venv $venv ||
            complain "cannot make a virtual environment; on Debian: apt install python3-venv"
    fi
    echo "installing torch $torch into $venv, once"
    # Of Holistic Trace Analysis only what its figures need: notebooks are not.
    if ! { $python -m pip install -q --disable-pip-version-check torch==$torch numpy safetensors 'pandas<3' plotly \
        psutil pydot pyyaml && $python -m pip install -q --disable-pip-version-check --no-deps \
        HolisticTraceAnalysis==0.5.0; } >$venv.log 2>&1; then
        tail -n 20 $venv.log >&2
        complain "pip cannot install torch $torch, numpy, safetensors and HolisticTraceAnalysis into $venv"
    fi
    complete || complain "torch $torch does not start in $venv; remove it and try again"
}

mkdir -p build
exec 9>build/torch-venv.lock
flock 9 2>/dev/null
complete || make_environment
exec 9>&-

if [ -z "$TUCK" ]; then
    make --no-print-directory -s -j"$(nproc)" V=release tests || complain "Tuck does not build"
    TUCK=$PWD/build/release/tuck
fi
[ -x "$TUCK" ] || complain "there is no $TUCK"
export TUCK PYTHONDONTWRITEBYTECODE=1

exec timeout -k 10 3600 $python -W ignore tests/torch/runner.py "$@"

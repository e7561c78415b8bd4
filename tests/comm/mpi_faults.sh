#!/bin/bash
# usage: tests/comm/mpi_faults.sh BUILD          (BUILD: build/release)
# One fault at one call of a job of MPI: every rank that can must name the rank to blame and the
# call, and no process, file or segment may be left. TUCK_SOAK: 200 runs, not 5.
# What does not end in 60 s is killed, its ranks too: 5 runs never take longer than 330 s.
cd "$(dirname "$0")/../.." || exit 1
build=$1 passed=0 failed=0
. tests/comm/left.sh
command -v mpirun.openmpi >/dev/null || { echo "skipped: there is no mpirun"; exit 0; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 TUCK_PLUGINS=$PWD/$build
program=$PWD/$build/tests/property/prop_faults
work=$(mktemp -d) || exit 1
trap '[ $BASHPID = $$ ] || exit; kill_left "$program"; rm -rf "$work"' EXIT # see tests/outputs.sh
trap 'exit 130' INT
trap 'exit 143' TERM HUP
faults=(kill stop late other leave)
labels=(weights grad_0 grad_1 tokens seed end)
# Open MPI's own files go here, so that what it leaves can be told from what others have.
export OMPI_MCA_orte_tmpdir_base=$work/tmp OMPI_MCA_btl_vader_backing_directory=$work/shm
mkdir -p "$work/tmp" "$work/shm"

wrong() {
    echo "$1 of rank $2 at call $3 of $4 ranks: $5"
    cat "$work/said"
    return 1
}

run() {
    local fault=$1 who=$2 at=$3 n=$4 status pids on_time=1
    mpirun.openmpi --bind-to none -np "$n" -x TUCK_FAULT_TEST=$$ "$program" "$fault" "$who" "$at" >"$work/said" 2>&1 &
    ended $! "$program" 60 || on_time=
    wait $! 2>/dev/null
    status=$?
    sleep 0.2
    pids=$(left "$program" | tr '\n' ' ')
    kill_left "$program"
    [ -n "$on_time" ] || { wrong "$@" "ranks do not end: $pids"; return; }
    [ $status -ne 0 ] || { wrong "$@" "nobody noticed"; return; }
    # A rank that dies is named by mpirun at least; the others are ended by it.
    grep -q "rank $who" "$work/said" || { wrong "$@" "the rank is not named"; return; }
    [ "$fault" = kill ] || grep "^said: " "$work/said" | grep -q "'${labels[at]}'" ||
        { wrong "$@" "the call is not named"; return; }
    [ -z "$pids" ] || wrong "$@" "processes are left: $pids"
}

runs=5
[ -z "${TUCK_SOAK-}" ] || runs=200
for ((i = 0; i < runs; i++)); do
    n=$((2 + i % 3))
    if run "${faults[i % 5]}" $((i % n)) $(((i % 5 + i / 5) % 6)) $n; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
done
find "$work/shm" -type f | grep . && failed=$((failed + 1))
[ $stuck -eq 0 ] || echo "$stuck times mpirun itself did not end after its ranks"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]

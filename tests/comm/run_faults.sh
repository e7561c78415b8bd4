#!/bin/bash
# usage: tests/comm/run_faults.sh BUILD          (BUILD: build/release)
# `tuck run` of a step with 41 collectives on 4 ranks, over shared memory and over MPI, hit at a
# random moment: a rank is killed, stopped, or stopped and woken again, later or earlier than the
# time-out; the launcher is killed or interrupted. The job must end in time and say which rank and
# which call, or go on; no process, file or segment may be left. TUCK_SOAK: 200 runs, not 12.
cd "$(dirname "$0")/../.." || exit 1
build=$1 passed=0 failed=0
. tests/comm/left.sh
program=$PWD/$build/tuck
work=$(mktemp -d) || exit 1
trap '[ $BASHPID = $$ ] || exit; kill_left "$program"; rm -rf "$work"' EXIT # see tests/outputs.sh
trap 'exit 130' INT
trap 'exit 143' TERM HUP
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 TUCK_PLUGINS=$PWD/$build
export OMPI_MCA_orte_tmpdir_base=$work/tmp OMPI_MCA_btl_vader_backing_directory=$work/shm
export TUCK_FAULT_TEST=$$
mkdir -p "$work/tmp" "$work/shm"
faults=(kill stop wake_late wake_early kill_launcher interrupt)
transports=(shm)
command -v mpirun.openmpi >/dev/null && [ -e "$build/libtuck_mpi.so" ] && transports+=(mpi)
timeout=8 ranks=4

segments() { find /dev/shm -maxdepth 1 -name '*tuck*' && find "$work/shm" "$work/tmp" -type f; }

wrong() {
    echo "$1"
    cat "$work/said"
    return 1
}

# The ranks, in their order: those of the program that are not its launcher.
rank_pids() { left "$program" | grep -vx "$launcher" | sort -n; }

start() {                                       # start TRANSPORT
    local command=("$program" run tests/graphs/exec/llama_fsdp_bw.txt --steps 1000000 --timeout $timeout)
    [ "$1" = shm ] || command=(mpirun.openmpi --bind-to none -x TUCK_FAULT_TEST -np $ranks "${command[@]}")
    "${command[@]}" >"$work/said" 2>&1 &
    launcher=$!
    local tries=0
    until [ "$(rank_pids | wc -l)" -eq $ranks ]; do
        kill -0 $launcher 2>/dev/null && [ $((tries += 1)) -lt 200 ] || return 1
        sleep 0.05
    done
    sleep "0.$((RANDOM % 500 + 500))"           # into the steps
}

hit() {                                         # hit FAULT PID
    case $1 in
    kill) kill -KILL "$2" ;;
    stop) kill -STOP "$2" ;;
    wake_late | wake_early)
        kill -STOP "$2"
        [ "$1" = wake_late ] && sleep $((timeout + 4)) || sleep 0.5
        kill -CONT "$2" 2>/dev/null
        ;;
    kill_launcher) kill -KILL "$launcher" ;;
    interrupt) kill -INT "$launcher" ;;
    esac
}

# named RANK FAULT TRANSPORT: and with it the call. Of a rank that dies under mpirun, that speaks.
named() {
    if [ "$2,$3" = kill,mpi ]; then
        grep -q "rank $1\b" "$work/said"
    else
        grep -qE "rank(s .*\b| )$1\b.*'" "$work/said"
    fi
}

run() {                                         # run FAULT TRANSPORT
    local fault=$1 transport=$2 pids who what="$1, $2" rest
    start "$transport" || { wrong "$what: it did not start"; return; }
    mapfile -t pids < <(rank_pids)
    who=$((RANDOM % ranks))
    hit "$fault" "${pids[who]}"
    if [ "$fault" = wake_early ]; then
        sleep 0.5
        kill -0 "$launcher" 2>/dev/null || { wrong "$what: it ended, though rank $who was in time"; return; }
        kill -INT "$launcher"
    fi
    ended "$launcher" "$program" $((timeout + 15)) || { wrong "$what: it did not end"; return; }
    wait "$launcher" 2>/dev/null && { wrong "$what: nobody noticed"; return; }
    [ "$fault" != kill_launcher ] || rm -rf "$work/shm"/* "$work/tmp"/* # Open MPI's own files
    sleep 0.5
    rest=$(left "$program" | tr '\n' ' ')
    kill_left "$program"
    case $fault in
    kill | stop | wake_late) named $who "$fault" "$transport" || { wrong "$what: rank $who and its call are not named"; return; } ;;
    esac
    [ -z "$rest" ] || { wrong "$what: processes are left: $rest"; return; }
    [ -z "$(segments)" ] || wrong "$what: segments are left: $(segments)"
}

runs=12
[ -z "${TUCK_SOAK-}" ] || runs=200
for ((i = 0; i < runs; i++)); do
    if run "${faults[i % 6]}" "${transports[i / 6 % ${#transports[@]}]}"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
done
[ $stuck -eq 0 ] || echo "$stuck times mpirun itself did not end after its ranks"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]

# Sourced by tests of faults: processes that a test has started are told by a mark in their
# environment, TUCK_FAULT_TEST=PID of the script, and by the program they run.

# left PROGRAM: those that run.
left() {
    local dir
    for dir in $(grep -lsz "^TUCK_FAULT_TEST=$$\$" /proc/[0-9]*/environ | xargs -r dirname); do
        [ "$(readlink "$dir/exe" 2>/dev/null)" = "$1" ] && basename "$dir"
    done
}

kill_left() {
    local pids
    mapfile -t pids < <(left "$1")
    [ ${#pids[@]} -eq 0 ] || kill -KILL "${pids[@]}" 2>/dev/null
}

# ended PID PROGRAM SECONDS: waits for mpirun, or another launcher. False: it was killed when the time had passed and
# ranks still ran. An mpirun whose ranks have all ended is killed after 5 s, and counted in `stuck`: that of Open MPI 4.1
# may lock itself up in PMIx_server_finalize() after a job that failed; nothing of ours runs then. What it leaves is
# removed, as it would have done; its files are in $work.
stuck=0
ended() {
    local seen= gone=0 until=$((SECONDS + $3))
    while [ $SECONDS -lt $until ]; do
        kill -0 "$1" 2>/dev/null || return 0
        if [ -n "$(left "$2" | grep -vx "$1")" ]; then
            seen=1 gone=0
        elif { [ -n "$seen" ] || grep -q "^said: " "$work/said"; } && [ $((gone += 1)) -gt 10 ]; then
            stuck=$((stuck + 1))
            kill -KILL "$1"
            rm -rf "$work/shm"/* "$work/tmp"/*
            return 0
        fi
        sleep 0.5
    done
    kill -KILL "$1" 2>/dev/null
    return 1
}

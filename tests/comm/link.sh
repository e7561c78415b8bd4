#!/bin/bash
# usage: tests/comm/link.sh BUILD
# The collectives over MPI between two "hosts" with a link of 4 Gbit/s; and that nothing of it is
# left, also if the script is interrupted.
cd "$(dirname "$0")/../.." || exit 1
build=$1
export TUCK_PLUGINS=$PWD/$build TUCK_CASES=20
said=$(MPIRUN_ARGS="-x TUCK_PLUGINS -x TUCK_CASES" timeout -k 10 240 tests/comm/two_hosts.sh 4gbit \
    "$PWD/$build/tests/property/prop_comm" 2>&1)
status=$?
[ $status -ne 77 ] || { echo "$said"; exit 0; }
[ $status -eq 0 ] || { echo "$said"; exit 1; }
tests/comm/two_hosts.sh 4gbit sleep 100 >/dev/null 2>&1 &
sleep 3
kill -TERM $!
wait $! 2>/dev/null
if ip netns list | grep "tuck$!"; then
    echo "namespaces are left"
    exit 1
fi
echo "2 passed, 0 failed"

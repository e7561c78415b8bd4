#!/bin/bash
# usage: tests/comm/two_hosts.sh RATE COMMAND...        for instance: 4gbit build/release/tuck run …
#
# Runs COMMAND by mpirun on two ranks in two network namespaces, which are two hosts to MPI, with a
# link of RATE between them (what `tc` accepts: 1gbit, 200mbit). Needs root, ip, tc and Open MPI;
# without them it says "skipped: …" and exits with 77. The namespaces are removed at the end, also
# after Ctrl-C; if the script is killed, the next one removes what is left.
#
#   MPIRUN_ARGS="…"   more arguments for mpirun
set -u
[ $# -ge 2 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }
rate=$1
shift
skip() { echo "skipped: $*"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "network namespaces need root"
for tool in ip tc unshare mpirun.openmpi; do
    command -v $tool >/dev/null || skip "there is no $tool"
done

a=tuck$$a b=tuck$$b net=10.77.$(($$ % 250))
work=$(mktemp -d) || exit 1
clean() {
    trap '' INT TERM HUP
    for ns in $a $b; do
        pids=$(ip netns pids $ns 2>/dev/null)
        [ -z "$pids" ] || kill -KILL $pids 2>/dev/null
        ip netns del $ns 2>/dev/null
    done
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# What a killed run left: namespaces whose script is gone.
for ns in $(ip netns list 2>/dev/null | sed -n 's/^tuck\([0-9]*\)[ab].*/\1/p' | sort -u); do
    [ -d "/proc/$ns" ] && continue
    for left in tuck${ns}a tuck${ns}b; do ip netns del "$left" 2>/dev/null; done
done

{
    ip netns add $a && ip netns add $b &&
        ip link add v$$a netns $a type veth peer name v$$b netns $b &&
        ip -n $a addr add $net.1/24 dev v$$a && ip -n $b addr add $net.2/24 dev v$$b &&
        ip -n $a link set lo up && ip -n $b link set lo up &&
        ip -n $a link set v$$a up && ip -n $b link set v$$b up
} 2>"$work/said" || skip "this machine has no network namespaces: $(head -1 "$work/said")"
{
    ip netns exec $a tc qdisc add dev v$$a root tbf rate "$rate" burst 256kb latency 50ms &&
        ip netns exec $b tc qdisc add dev v$$b root tbf rate "$rate" burst 256kb latency 50ms
} 2>"$work/said" || { echo "two_hosts: tc does not accept $rate: $(head -1 "$work/said")" >&2; exit 1; }

# The agent by which mpirun reaches a "host"; each has its own name.
cat >"$work/agent" <<END
#!/bin/bash
host=\$1
shift
case \$host in $net.1) ns=$a ;; $net.2) ns=$b ;; *) exit 1 ;; esac
exec ip netns exec \$ns unshare --uts sh -c "hostname \$ns; exec sh -c \"\\\$*\"" sh "\$@"
END
chmod +x "$work/agent"

# Both "hosts" have the same cores: ranks pin themselves, mpirun must not.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ip netns exec $a unshare --uts sh -c "hostname $a; exec \"\$@\"" sh \
    mpirun.openmpi -np 2 --host $net.1:1,$net.2:1 --map-by node --bind-to none \
    --mca plm_rsh_agent "$work/agent" --mca plm_rsh_no_tree_spawn 1 \
    --mca btl tcp,self --mca btl_tcp_if_include $net.0/24 --mca oob_tcp_if_include $net.0/24 \
    ${MPIRUN_ARGS-} "$@" &
wait $!

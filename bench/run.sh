#!/bin/bash
# usage: bench/run.sh [-o FILE.json] [-r ROW]        (make bench)
# Generates graphs of growing size, measures the rows of bench.c on them, and Python's ast.parse for
# comparison. Fails if a requirement is missed.
#
#   B=build/release   the build that is measured
#   CC=gcc            for the two programs of this folder
#   SIZES="…"         nodes of the graphs
#   RUNS=3            the best of this many counts
set -eu
cd "$(dirname "$0")/.."
B=${B:-build/release}
CC=${CC:-gcc}
RUNS=${RUNS:-3}
read -r -a sizes <<<"${SIZES:-10000 30000 100000 300000 1000000}"
beside=100000                   # the size that Python parses

# Different models, shardings and dtypes; two with symbolic sizes. Together they have as many
# collectives as the corpus.
models=(fsdp/llama_regather ddp/bert_bf16 tp/llama_sp fsdp/llama_dynamic ddp/resnet
        moe/llama_fsdp_ep tp/llama_loss_parallel ddp/gpt2_dynamic fsdp/llama_hsdp)

[ "${MAKELEVEL:-0}" -gt 0 ] || make -s "B=$B" all       # `make bench` has done it
command -v python3 >/dev/null || { echo "bench: python3 is needed, for ast.parse" >&2; exit 1; }
mkdir -p "$B/bench"
compile() {
    local name=$1
    shift
    "$CC" -std=c17 -O2 -g -Wall -Wextra -D_GNU_SOURCE -Iinclude -Isrc -Itests \
        -o "$B/bench/$name" "bench/$name.c" "$@" "$B/libtuck.a" -ljansson -lyajl -lz -lm
}
compile gen
compile bench
compile bucket
compile passes
compile schedule tests/support/problems.c tests/support/support.c
compile search tests/support/problems.c tests/support/support.c
compile sim tests/support/problems.c tests/support/support.c

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
graphs=()
for n in "${sizes[@]}" "$beside"; do
    [ -f "$work/$n.txt" ] || "$B/bench/gen" "$n" "${models[@]/#/tests/graphs/}" >"$work/$n.txt"
done
for n in "${sizes[@]}"; do
    graphs+=("$work/$n.txt")
done
python3 bench/check_gen.py "${graphs[0]}"
speed=$(python3 bench/ast_parse.py "$work/$beside.txt" "$RUNS")
tool=()
[ ! -x "$B/tuck" ] || tool=(-t "$B/tuck")
status=0
"$B/bench/bench" -a "$speed" -n "$RUNS" "${tool[@]}" "$@" "${graphs[@]}" || status=1

# The schedulers, compared with PyTorch's only if its environment exists (make test-torch makes it).
case " $* " in *" -r "*) exit $status ;; esac
echo
"$B/bench/passes" || status=1
echo
"$B/bench/schedule" || status=1
echo
"$B/bench/search" || status=1
echo
"$B/bench/sim" "$work/step.json"
read -r seconds makespan bare < <(python3 bench/sim_reference.py "$work/step.json")
"$B/bench/sim" "$work/step.json" "$seconds" "$makespan" "$bare" || status=1
# Beside Open MPI, in the same processes.
echo
if command -v mpicc >/dev/null && command -v mpirun.openmpi >/dev/null; then
    mpicc -std=c17 -O2 -g -Wall -Wextra -D_GNU_SOURCE -Iinclude -Isrc -o "$B/bench/allreduce" \
        bench/mpi/allreduce.c "$B/libtuck.a" -ljansson -lm
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        mpirun.openmpi --bind-to none -np 2 "$B/bench/allreduce" 2>"$work/mpi.log" || status=1
else
    echo "no mpicc: all-reduce is not compared with Open MPI's"
fi
torch=build/torch-venv/bin/python
scheduler_seconds=
if [ -x $torch ]; then
    echo
    echo "beside PyTorch's own schedulers, the same problem, --compat torch, CPU seconds"
    while read -r ops need pass; do
        seconds=$($torch -W ignore bench/schedule_torch.py "$ops" "$pass" "$work/problem.json")
        "$B/bench/schedule" -p "$pass" -s "$seconds" -x "$need" "$work/problem.json" || status=1
    done <<'END'
1000 2000 reorder_communication_preserving_peak_memory
10000 1000 reorder_compute_for_overlap
10000 100 sink_waits_iterative
END
    echo
    echo "beside PyTorch's own bucketing: find, merge, sort; CPU seconds"
    while read -r need all graph pass cap; do
        torch_seconds=$($torch -W ignore bench/bucket_torch.py "$graph" "$pass" "$cap" "$work")
        "$B/bench/bucket" -p "$pass(cap_mb=$cap)" -s "$torch_seconds" -x "$need" -y "$all" \
            "$B/tuck" "$work/bucket.txt" || status=1
    done <<'END'
300 20 tests/graphs/big/llama32_fsdp_bw.txt bucket_all_gather 50
300 20 tests/graphs/big/llama32_fsdp_bw.txt bucket_all_gather 2000
300 20 tests/graphs/big/llama32_fsdp_bw.txt bucket_reduce_scatter 50
300 20 tests/graphs/big/llama32_fsdp_bw.txt bucket_reduce_scatter 2000
0 0 500 bucket_all_gather 2000
END
    echo
    echo "beside PyTorch's overlap scheduler on a step of 10,000 nodes; CPU seconds"
    scheduler_seconds=$($torch -W ignore bench/overlap_torch.py 10000 "$work" 2>/dev/null)
    "$B/bench/bucket" -p "overlap_scheduling(compat=torch)" -s "$scheduler_seconds" -x 100 -y 30 \
        "$B/tuck" "$work/overlap.txt" || status=1
    echo
    echo "passes on a live graph of 10,000 nodes, into the library and back; CPU seconds"
    $torch -W ignore bench/bridge_torch.py 10000 || status=1
    echo
    echo "a step of a GPT on one rank, one thread, in turns with PyTorch"
    OMP_NUM_THREADS=1 $torch -W ignore bench/gpt.py --tuck "$B/tuck" || status=1
    echo
    echo "a DDP step on two ranks, one thread each, in turns with PyTorch over gloo"
    OMP_NUM_THREADS=1 $torch -W ignore bench/ddp.py --tuck "$B/tuck" || status=1
fi
echo
PYTHONDONTWRITEBYTECODE=1 python3 bench/optimize.py "$B/tuck" "$work" ${scheduler_seconds:+"$scheduler_seconds"} || status=1
exit $status

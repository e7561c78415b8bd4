#!/bin/bash
# usage: tests/comm/mpi.sh BUILD                 (BUILD: build/release)
# The collectives of the MPI transport against the serial reference, on 1 to 9 ranks. TUCK_CASES:
# how many of each group; TUCK_RANKS: which numbers of ranks.
cd "$(dirname "$0")/../.." || exit 1
build=$1 passed=0 failed=0
command -v mpirun.openmpi >/dev/null || { echo "skipped: there is no mpirun"; exit 0; }
[ -e "$build/libtuck_mpi.so" ] || { echo "there is no $build/libtuck_mpi.so"; exit 1; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 TUCK_PLUGINS=$PWD/$build
limit=300
[ -z "${TUCK_SOAK-}" ] || { limit=7200; export TUCK_CASES=${TUCK_CASES:-20000}; }
for n in ${TUCK_RANKS:-1 2 3 5 9}; do
    if timeout -k 5 $limit mpirun.openmpi --bind-to none -np "$n" "$build/tests/property/prop_comm"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "failed: $n ranks"
    fi
done
# Without -n there are as many ranks as mpirun started.
graph=$(mktemp)
cat >"$graph" <<'END'
class step(torch.nn.Module):
    def forward(self, x: "f32[4][1]cpu"):
        sum_1: "f32[4][1]cpu" = torch.ops._c10d_functional.all_reduce.default(x, 'sum', '0')
        out: "f32[4][1]cpu" = torch.ops._c10d_functional.wait_tensor.default(sum_1)
        return (out,)
END
if timeout -k 5 60 mpirun.openmpi --bind-to none -np 3 "$build/tuck" run "$graph" 2>&1 |
    grep -q "measured on 3 ranks over mpi"; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
    echo "failed: mpirun -np 3 tuck run"
fi
rm -f "$graph"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]

#!/bin/bash
# usage: tools/test.sh [check|soak]
#
# Builds what is tested and runs it: prints a line for each step, the whole output of failed steps,
# and the sum of everything at the end. Logs stay in build/test. JOBS=N limits how much runs at
# once. Time limits are in CPU time, so that a busy machine makes no test fail.
cd "$(dirname "$0")/.." || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES V B SAN
jobs=${JOBS:-$(nproc)}
logs=build/test
passed=0 failed=0 broken=
shopt -s nullglob
rm -rf $logs && mkdir -p $logs

# A sanitizer's report has its own exit status; cmocka's output format is fixed.
export ASAN_OPTIONS=exitcode=99:detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1
export CMOCKA_MESSAGE_OUTPUT=TAP

# ---------------------------------------------------------------- counting

now() { echo "${EPOCHREALTIME/[.,]/}"; }

# count LOG STATUS: "passed failed", from cmocka's TAP lines or from 'N passed, N failed'. A program
# that fails without such a line counts as one failure, and so does one that tests nothing.
count() {
    awk -v status="$2" '
        /^(not )?ok .*# SKIP/ { next }
        /^ok / { p++ }
        /^not ok / { f++ }
        /^[0-9]+ passed, [0-9]+ failed$/ { p += $1; f += $3 }
        END {
            if ((status != 0 && f == 0) || p + f == 0)
                f++
            print p + 0, f + 0
        }' "$1"
}

# report NAME PASSED FAILED SINCE [DETAIL]
report() {
    local tenths=$((($(now) - $4) / 100000)) word="$2 passed"
    [ "$3" -gt 0 ] && word+=", $3 FAILED"
    printf '%-34s %-24s %4d.%d s%s\n' "$1" "$word" $((tenths / 10)) $((tenths % 10)) "${5:+  $5}"
    passed=$((passed + $2)) failed=$((failed + $3))
}

# check NAME COMMAND...: one step that passes or fails.
check() {
    local name=$1 log="$logs/${1//[ ,\/]/_}.log" start detail=
    shift
    start=$(now)
    if "$@" >"$log" 2>&1; then
        detail=$(grep -m 1 '^skipped: ' "$log")
        report "$name" "$([ -n "$detail" ]; echo $?)" 0 "$start" "$detail"
    else
        report "$name" 0 1 "$start"
        cat "$log"
        return 1
    fi
}

# limited SECONDS COMMAND...: limits the CPU time of each process, and of what hangs without using
# any the time; what its process group has left is killed then.
limited() {
    local seconds=$1
    shift
    (
        ulimit -S -t "$seconds" && ulimit -H -t $((seconds + 5))
        exec timeout -k 5 $((seconds + 100)) "$@"
    )
}

# programs NAME COMMAND...: test programs, each COMMAND one string, run in parallel.
programs() {
    local name=$1 start log command status p f sum_p=0 sum_f=0 i=0 wrong=()
    shift
    [ $# -gt 0 ] || return 0
    start=$(now)
    log="$logs/${name//[ ,\/]/_}"
    for command; do
        while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
        {
            limited "${LIMIT:-300}" $command >"$log.$i.log" 2>&1
            echo $? >"$log.$i.status"
        } &
        i=$((i + 1))
    done
    wait
    i=0
    for command; do
        status=$(cat "$log.$i.status")
        read -r p f < <(count "$log.$i.log" "$status")
        [ "$status" = 152 ] && echo "more than ${LIMIT:-300} s of processor time" >>"$log.$i.log"
        case $status in 124 | 137) echo "it did not end" >>"$log.$i.log" ;; esac
        [ "$f" -gt 0 ] && echo "exit status $status: $command" >>"$log.$i.log" && wrong+=("$log.$i.log")
        sum_p=$((sum_p + p)) sum_f=$((sum_f + f)) i=$((i + 1))
    done
    report "$name" $sum_p $sum_f "$start" "$# program$([ $# -eq 1 ] || echo s)"
    [ ${#wrong[@]} -eq 0 ] || cat "${wrong[@]}"
}

# ---------------------------------------------------------------- the steps

# build VARIANT TARGETS...: if a variant does not build, the following steps skip it.
build() {
    local variant=$1
    shift
    check "build $variant" make -j"$jobs" -Otarget -s WERROR=1 V="$variant" "$@" || broken+=" $variant "
}

built() { case $broken in *" $1 "*) return 1 ;; esac; }

test_programs() {                               # test_programs VARIANT
    built "$1" || return
    local dir=build/$1 list=() source name
    for source in tests/unit/*.c; do list+=("$dir/${source%.c}"); done
    programs "unit tests, $1" "${list[@]}"
    list=()
    for source in tests/property/*.c; do list=("$dir/${source%.c}" "${list[@]}"); done  # the longest are late ones
    programs "property tests, $1" "${list[@]}"
}

fuzz_seeds() {                                  # fuzz_seeds VARIANT
    built "$1" || return
    local list=() source seeds
    for source in tests/fuzz/*.c; do
        seeds=$(echo tests/fuzz/seeds/"$(basename "$source" .c)"/ examples/ tests/graphs/)
        list+=("build/$1/${source%.c} $(ls -d $seeds 2>/dev/null | tr '\n' ' ')")
    done
    programs "fuzz seeds, $1" "${list[@]}"
}

golden() {                                      # golden VARIANT, or clang: another compiler gives the same
    built "$1" && built release || return
    local where=(tests/golden docs README.md) there=() path
    for path in "${where[@]}"; do [ -e "$path" ] && there+=("$path"); done
    programs "golden tests, $1" \
        "build/release/tests/golden_run -j $jobs -t build/$1/tuck ${there[*]}"
}

examples() {                                    # examples VARIANT
    built "$1" || return
    local source
    for source in examples/*.c; do
        check "example $(basename "$source" .c), $1" limited 60 "build/$1/${source%.c}" \
            examples/llama_fsdp_bw.txt $logs/study.html
    done
}

all_tests() {
    # stress is asan with tiny blocks and odd first ids: what asan finds, it finds too. `make soak` runs asan.
    build release tests
    build stress tests
    build tsan build/tsan/tests/unit/test_threads build/tsan/tests/unit/test_exec_graphs \
        build/tsan/tests/property/prop_comm
    check "build with clang" make -j"$jobs" -Otarget -s WERROR=1 CC=clang V=dev B=build/clang all || broken+=" clang "
    check "an operator added by the book" limited 800 tests/add_operator.sh
    check "layers" tools/check-layers
    check "the walk in the docs" tools/check-walk
    check "the tool sees public headers only" tools/check-cli
    check "public functions are tested" tools/check-called
    check "benchmarks compile" tools/check-bench
    built release && check "tables of 80 columns" tools/check-width build/release/tuck
    built release && check "options in the manual" tools/check-options build/release/tuck
    built release && check "exported symbols" tools/check-symbols build/release/libtuck.so
    check "words and line lengths" tools/check-words
    check "format" make -s check-format
    test_programs stress
    built tsan && programs "threads, tsan" build/tsan/tests/unit/test_threads \
        "env TUCK_COMM_THREADS=1 build/tsan/tests/unit/test_exec_graphs" \
        "env TUCK_COMM_THREADS=1 build/tsan/tests/property/prop_comm"
    # Side by side: some of them mostly wait.
    built release && programs "MPI, files, shells, Python, pages" "tests/outputs.sh build/release/tuck" \
        "tests/comm/run_faults.sh build/release" "tests/comm/mpi_faults.sh build/release" \
        "tests/comm/mpi.sh build/release" "tests/comm/link.sh build/release" \
        "tests/completion.sh build/release/tuck" tests/python/run.sh "tests/report/run.sh build/release/tuck"
    built release && check "the NCCL plug-in compiles" limited 300 tests/comm/nccl.sh build/release
    fuzz_seeds stress
    golden stress
    golden clang
    golden release
    examples stress
    examples release
    built release && programs "what is cut short in stress" $(grep -l TUCK_STRESS tests/unit/*.c tests/property/*.c |
        sed 's,^,build/release/,; s,\.c$,,')
    built release && check "what is installed, and removed" limited 800 tests/install.sh
}

quick_tests() {
    build release tests
    check "layers" tools/check-layers
    check "the walk in the docs" tools/check-walk
    check "the tool sees public headers only" tools/check-cli
    check "public functions are tested" tools/check-called
    check "benchmarks compile" tools/check-bench
    built release && check "tables of 80 columns" tools/check-width build/release/tuck
    built release && check "options in the manual" tools/check-options build/release/tuck
    built release && check "exported symbols" tools/check-symbols build/release/libtuck.so
    check "words and line lengths" tools/check-words
    check "format" make -s check-format
    built release || return
    local list=() source
    for source in tests/unit/*.c; do list+=("build/release/${source%.c}"); done
    programs "unit tests, release" "${list[@]}"
    golden release
}

soak_tests() {
    local list=() source
    export TUCK_SOAK=1
    build asan tests
    built asan || return
    for source in tests/property/*.c $(grep -l TUCK_SOAK tests/unit/*.c /dev/null); do
        list+=("build/asan/${source%.c}")
    done
    LIMIT=14400 programs "soak, asan" "${list[@]}"
    build release tests
    built release && LIMIT=14400 TUCK_RANKS="1 2 3 4 5 6 7 8 9" programs "soak, MPI" \
        "tests/comm/mpi.sh build/release" "tests/comm/mpi_faults.sh build/release"
    built release && LIMIT=14400 programs "soak, faults" "tests/comm/run_faults.sh build/release"
    built release && [ -x build/torch-venv/bin/python ] && LIMIT=14400 programs \
        "soak, PyTorch" "env TUCK=$PWD/build/release/tuck tests/torch/run.sh test_overlap test_measured"
    check "build fuzz" make -j"$jobs" -Otarget -s V=fuzz fuzzers &&
        FUZZ_SECONDS=${FUZZ_SECONDS:-600} LIMIT=86400 programs "fuzz" tools/fuzz.sh
}

case ${1-} in
check) quick_tests ;;
soak) soak_tests ;;
*) all_tests ;;
esac
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

#!/bin/bash
# Runs the fuzz targets of build/fuzz, each for FUZZ_SECONDS (20). Seeds are tests/fuzz/seeds/NAME,
# the graphs of examples/ and tests/graphs/; tests/fuzz/NAME.dict is used if it exists. The corpus
# stays in build/fuzz/corpus/NAME, findings go to build/fuzz/findings/NAME. FUZZ=NAME runs one
# target.
cd "$(dirname "$0")/.." || exit 1
seconds=${FUZZ_SECONDS:-20}
jobs=${JOBS:-$(nproc)}
shopt -s nullglob

fuzz() {                                        # fuzz NAME
    local name=$1 dir=build/fuzz args=()
    mkdir -p $dir/corpus/"$name" $dir/findings/"$name"
    [ -e tests/fuzz/"$name".dict ] && args+=(-dict=tests/fuzz/"$name".dict)
    for seeds in $dir/corpus/"$name" tests/fuzz/seeds/"$name" examples tests/graphs; do
        [ -d "$seeds" ] && args+=("$seeds")
    done
    # Small inputs mean more inputs: the largest graphs are cut to their first 20,000 bytes.
    $dir/tests/fuzz/"$name" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=4096 -max_len=20000 \
        -print_final_stats=1 -artifact_prefix=$dir/findings/"$name"/ "${args[@]}" \
        >$dir/"$name".log 2>&1
    echo $? >$dir/"$name".status
}

names=()
for source in tests/fuzz/*.c; do
    name=$(basename "$source" .c)
    [ "${FUZZ:-$name}" = "$name" ] && names+=("$name")
done
for name in "${names[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
    fuzz "$name" &
done
wait

passed=0 failed=0
for name in "${names[@]}"; do
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' build/fuzz/"$name".log)
    if [ "$(cat build/fuzz/"$name".status)" = 0 ]; then
        passed=$((passed + 1))
        echo "fuzz $name: ${runs:-0} inputs in $seconds s, no finding"
    else
        failed=$((failed + 1))
        tail -n 60 build/fuzz/"$name".log
        echo "fuzz $name: FAILED, see build/fuzz/$name.log and build/fuzz/findings/$name/"
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

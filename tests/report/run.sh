#!/bin/bash
# usage: tests/report/run.sh TUCK
#
# Tests the page of `tuck optimize --html` in a headless browser: it loads without an error, draws
# every op, zooms, filters, sorts, and shows the numbers of `tuck simulate --json`. Then checks the
# trace, event by event.
cd "$(dirname "$0")/../.." || exit 1
tuck=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
[ -n "$browser" ] || { echo "skipped: there is no chromium"; exit 0; }

page() {                                        # page NAME GRAPH OPTION...
    local name=$1 graph=$2
    shift 2
    "$tuck" optimize "$graph" "$@" -o "$dir/$name.txt" --html "$dir/$name.html" --trace "$dir/$name.json" \
        --report "$dir/$name.report" 2>"$dir/err" || { cat "$dir/err"; failed=$((failed + 1)); return; }
    {
        echo '<script>window.tuckErrors = []; window.onerror = m => { window.tuckErrors.push(String(m)); };</script>'
        cat "$dir/$name.html"
        echo '<script>window.tuckWanted = ['
        "$tuck" simulate --json "$graph" | sed 's/</\\u003c/g'
        echo ,
        "$tuck" simulate --json - <"$dir/$name.txt" | sed 's/</\\u003c/g'
        echo '];</script><script>'
        cat tests/report/check.js
        echo '</script>'
    } >"$dir/check.html"
    timeout -k 5 120 "$browser" --headless --no-sandbox --disable-gpu --window-size=1400,1000 \
        --virtual-time-budget=10000 --dump-dom "file://$dir/check.html" >"$dir/dom" 2>/dev/null
    local result
    result=$(grep -o '<pre id="result">[^<]*' "$dir/dom" | sed 's/.*">//')
    case $result in
    RIGHT*) passed=$((passed + 1)) ;;
    *) failed=$((failed + 1)); echo "$name: ${result:-the page did not answer}" ;;
    esac
}

page fsdp tests/graphs/exec/llama_fsdp_bw.txt
page ddp tests/graphs/exec/gpt2_ddp_bw.txt
page tp tests/graphs/exec/llama_tp_sp_bw.txt
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

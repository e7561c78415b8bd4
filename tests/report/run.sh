#!/bin/bash
# usage: tests/report/run.sh TUCK
#
# Tests pages in a headless browser. That of `tuck optimize --html` loads without an error, draws
# every op, zooms, filters, sorts, searches, leads from a collective to its wait, and shows the
# numbers of `tuck simulate --json`. Those of several graphs have contents and a page for each; that
# of several ranks has rows for each.
cd "$(dirname "$0")/../.." || exit 1
tuck=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
[ -n "$browser" ] || { echo "skipped: there is no chromium"; exit 0; }

# look NAME PAGE WANTED SCRIPT [#HASH]: what the script, with the JSON of WANTED, says of the page
look() {
    {
        echo '<script>window.tuckErrors = []; window.onerror = m => { window.tuckErrors.push(String(m)); };</script>'
        cat "$2"
        echo '<script>window.tuckWanted ='
        sed 's/</\\u003c/g' "$3"
        echo ';</script><script>'
        cat "tests/report/$4"
        echo '</script>'
    } >"$dir/check.html"
    timeout -k 5 120 "$browser" --headless --no-sandbox --disable-gpu --window-size=1400,1000 \
        --virtual-time-budget=10000 --dump-dom "file://$dir/check.html$5" >"$dir/dom" 2>/dev/null
    local result
    result=$(grep -o '<pre id="result">[^<]*' "$dir/dom" | sed 's/.*">//')
    case $result in
    RIGHT*) passed=$((passed + 1)) ;;
    *) failed=$((failed + 1)); echo "$1: ${result:-the page did not answer}" ;;
    esac
}

page() {                                        # page NAME GRAPH OPTION...
    local name=$1 graph=$2
    shift 2
    "$tuck" optimize "$graph" "$@" -o "$dir/$name.txt" --html "$dir/$name.html" --trace "$dir/$name.json" \
        --report "$dir/$name.report" 2>"$dir/err" || { cat "$dir/err"; failed=$((failed + 1)); return; }
    {
        echo '['
        "$tuck" simulate --json "$graph"
        echo ,
        "$tuck" simulate --json - <"$dir/$name.txt"
        echo ']'
    } >"$dir/wanted"
    look "$name" "$dir/$name.html" "$dir/wanted" check.js
}

page fsdp tests/graphs/exec/llama_fsdp_bw.txt
page ddp tests/graphs/exec/gpt2_ddp_bw.txt
page tp tests/graphs/exec/llama_tp_sp_bw.txt

fsdp=tests/graphs/exec/llama_fsdp_bw.txt
cat $fsdp tests/graphs/exec/gpt2_ddp_bw.txt >"$dir/two.txt"
echo null >"$dir/wanted"
"$tuck" simulate "$dir/two.txt" --group 0=8 --html "$dir/two.html" >"$dir/out" 2>&1 || { cat "$dir/out"; exit 1; }
look contents "$dir/two.html" "$dir/wanted" pages.js
look 'one of two' "$dir/two.html" "$dir/wanted" pages.js '#graph=1'
"$tuck" simulate $fsdp --straggler 1=1.3x --html "$dir/ranks.html" --json >"$dir/out" || exit 1
look ranks "$dir/ranks.html" "$dir/out" pages.js
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

#!/usr/bin/env bash
# Adds the operators of docs/operators.md to a copy of the source, exactly as written there, builds
# it and tries them.
set -eu
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp -r include src "$dir"

block() { # the fenced block of that kind
    awk -v kind="\`\`\`$1" '$0 == kind { on = 1; next } /^```/ { on = 0 } on' docs/operators.md
}
block ops.def >"$dir/rows"
block ops.h >"$dir/rule_line"
{ echo '#include "infer/rule.h"'; echo; block rule.c; } >"$dir/src/infer/rule_added.c"
[ -s "$dir/rows" ] && [ -s "$dir/rule_line" ]

# Rows go before the first operator.*, the rule after the first line of the list.
awk -v rows="$dir/rows" '!done && /"operator\./ { while ((getline l < rows) > 0) print l; done = 1 } { print }' \
    src/op/ops.def >"$dir/src/op/ops.def"
awk -v line="$dir/rule_line" '{ print } /^#define OP_SHAPES\(X\)/ { while ((getline l < line) > 0) print l }' \
    src/op/ops.h >"$dir/src/op/ops.h"

tools/embed report_page src/report/page.html >"$dir/src/report/page.c"

cd "$dir"
ls src/*/*.c src/*/*/*.c | xargs -P "$(nproc)" -n 16 ${CC:-cc} -std=c17 -D_GNU_SOURCE -O0 -Wall -Wextra \
    -Werror -Iinclude -Isrc -c
${CC:-cc} ./*.o -o tuck -ljansson -lyajl -lz -lm

cat >"$dir/graph.txt" <<'GRAPH'
class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[6, 4][1, 6]cuda:0", s: "f32[4][1]cuda:0"):
        scale_rows = torch.ops.my.scale_rows.default(x, s);  x = s = None
        pairwise: "f32[6, 6][6, 1]cuda:0" = torch.ops.my.pairwise.default(scale_rows);  scale_rows = None
        return (pairwise,)
GRAPH
"$dir/tuck" ops my.pairwise | grep -q 'n, d. to .n, n'
"$dir/tuck" lint "$dir/graph.txt" | grep -q '0 errors, 0 warnings'
"$dir/tuck" show --json "$dir/graph.txt" >"$dir/out.json"
grep -q '"name": "scale_rows".*"shape": \[6, 4\], "stride": \[1, 6\]' "$dir/out.json"
grep -q '"name": "pairwise".*"shape": \[6, 6\], "stride": \[6, 1\]' "$dir/out.json"
sed 's/\[6, 6\]\[6, 1\]/[6, 7][7, 1]/' "$dir/graph.txt" >"$dir/wrong.txt"
"$dir/tuck" lint "$dir/wrong.txt" 2>&1 | grep -q "'pairwise' is annotated f32\[6, 7\]"
echo "1 passed, 0 failed"

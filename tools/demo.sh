#!/usr/bin/env bash
# What there is to see, on training steps that PyTorch printed. Called by `make demo`.
set -eu
cd "$(dirname "$0")/.."
tuck=${TUCK:-build/release/tuck}

run() {
    printf '\n\033[1m$ tuck %s\033[0m\n' "$*"
    "$tuck" "$@"
}
[ -t 1 ] || run() { printf '\n$ tuck %s\n' "$*"; "$tuck" "$@"; }

echo "A backward pass of Llama, sharded with FSDP, as PyTorch 2.13 printed it: what is in it?"
run show examples/llama_fsdp_bw.txt

echo
echo "Is it sound? Uses, order, collectives and their waits, shapes."
run lint examples/llama_fsdp_bw.txt

echo
echo "It comes out as it went in."
"$tuck" show --text examples/llama_fsdp_bw.txt >build/demo.txt
cmp examples/llama_fsdp_bw.txt build/demo.txt && echo "byte for byte: examples/llama_fsdp_bw.txt, $(wc -c <build/demo.txt) bytes"

echo
echo "What Tuck knows of an operator."
run ops _c10d_functional.all_gather_into_tensor_out.default

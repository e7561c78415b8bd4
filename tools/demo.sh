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
echo "Its collectives, merged into few large ones. The report says which, and why the rest was left alone."
run optimize examples/llama_fsdp_bw.txt -p 'bucket_all_gather(cap_mb=500),bucket_reduce_scatter(cap_mb=1000)' -o build/demo.txt
echo
echo "The gradients of GPT-2 under DDP: one all-reduce a bucket of 25 MiB, a small bucket first, waits as late as can be."
run optimize examples/gpt2_ddp_bw.txt -p fuse_ddp_communication -o build/demo.txt
run lint --group 0=8 build/demo.txt

echo
echo "What nothing was done to comes out as it went in."
"$tuck" show --text examples/llama_fsdp_bw.txt >build/demo.txt
cmp examples/llama_fsdp_bw.txt build/demo.txt && echo "byte for byte: examples/llama_fsdp_bw.txt, $(wc -c <build/demo.txt) bytes"

echo
echo "What Tuck knows of an operator."
run ops _c10d_functional.all_gather_into_tensor_out.default

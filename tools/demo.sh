#!/usr/bin/env bash
# Shows what Tuck does, on training steps that PyTorch printed. Called by `make demo`.
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
echo "Where does it lose time on eight H100s, and what would help?"
run explain examples/llama_fsdp_bw.txt

echo
echo "Then do it. Never slower, never more memory; the text is PyTorch's again."
run optimize --brief examples/llama_fsdp_bw.txt -o build/demo.txt --html build/demo.html --trace build/demo.json
run lint build/demo.txt

echo
echo "By hand: the gradients of GPT-2 under DDP, one all-reduce for each bucket of 25 MiB, waits as late as can be."
run optimize examples/gpt2_ddp_bw.txt -p fuse_ddp_communication -o build/demo2.txt

echo
echo "And if it ran on more machines?"
run simulate build/demo.txt --world 8..256

echo
echo "Now for real, on two processes of this machine: a DDP step of an MLP as it came,"
run run examples/mlp_ddp_step.txt -n 2 --top 3
echo
echo "optimized, with a proof that both give the same,"
run optimize --brief examples/mlp_ddp_step.txt --verify 2 -o build/demo3.txt
echo
echo "and measured again, with its timeline."
run run build/demo3.txt -n 2 --top 3 --html build/measured.html

echo
echo "Look at build/demo.html and build/measured.html in a browser, or open build/demo.json in Perfetto. The tool is $tuck."

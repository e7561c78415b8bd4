#!/bin/bash
# usage: tests/outputs.sh TUCK
#
# What commands write: for every option that names a file, either the old file or the whole new one
# is there afterwards, whatever goes wrong; and every failed write is reported. TUCK_SOAK=1: more
# random moments.
tuck=$(realpath "$1") || exit 2
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d) || exit 2
# Not in a command that was just started and gets a signal before it is one: until then it is a copy of this script.
trap '[ $BASHPID = $$ ] || exit; cd /; umount "$work/full" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 2
passed=0 failed=0
export LC_ALL=C TERM=dumb ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0

ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAILED: $*"; }
want() { if eval "$1"; then ok; else bad "$2: not so: $1"; fi; }

${CC:-cc} -shared -fPIC -D_GNU_SOURCE -o shim.so "$root/tests/outputs/shim.c" -ldl || exit 2

# A graph whose texts and pictures do not fit into one write.
graph() {                                       # graph LAYERS
    local i
    echo 'class step(torch.nn.Module):'
    echo '    def forward(self, x: "f32[64, 64][64, 1]cuda:0"):'
    for ((i = 0; i < $1; i++)); do
        echo "        a$i: \"f32[64, 64][64, 1]cuda:0\" = torch.ops._c10d_functional.all_reduce.default(x, 'sum', '0')"
        echo "        w$i: \"f32[64, 64][64, 1]cuda:0\" = torch.ops._c10d_functional.wait_tensor.default(a$i)"
        echo "        m$i: \"f32[64, 64][64, 1]cuda:0\" = torch.ops.aten.mm.default(w$i, x)"
    done
    echo "        return (m0,)"
}
graph 100 >in.txt
graph 1500 >large.txt
graph 3 >small.txt

# Every option that names a file to write; FILE is that file. DUMP:PART is a folder for --dump, in which a link with
# the name that this part has leads to the file.
outputs=(
    'optimize in.txt --group 0=8 --no-times --passes schedule_comm_wait -o FILE'
    'optimize in.txt --group 0=8 --no-times --passes schedule_comm_wait -o /dev/null --report FILE'
    'optimize in.txt --group 0=8 --no-times --passes schedule_comm_wait -o /dev/null --report FILE --json'
    'optimize in.txt --group 0=8 --no-times --passes schedule_comm_wait -o /dev/null --decision FILE'
    'optimize in.txt --group 0=8 --no-times --passes schedule_comm_wait -o /dev/null --html FILE'
    'optimize in.txt --group 0=8 --no-times --passes schedule_comm_wait -o /dev/null --trace FILE'
    'optimize in.txt --group 0=8 --no-times --passes schedule_comm_wait -o /dev/null --dump DUMP:before.txt'
    'optimize in.txt --group 0=8 --no-times --passes schedule_comm_wait -o /dev/null --dump DUMP:after.txt'
    'optimize in.txt --group 0=8 --no-times --passes schedule_comm_wait -o /dev/null --dump-dot --dump DUMP:before.dot'
    'optimize in.txt --group 0=8 --no-times --passes schedule_comm_wait -o /dev/null --dump-dot --dump DUMP:after.dot'
    'simulate in.txt --group 0=8 --html FILE'
    'simulate in.txt --group 0=8 --trace FILE'
)
prepare() {                                     # prepare COMMAND FILE: `words` of it, and what its messages call the file
    local part path=$2
    words=${1//FILE/$2} named=$2
    [[ $1 == *DUMP:* ]] || return
    part=${1##*DUMP:}
    [[ $path == /* ]] || path=$work/$path
    words=${words/DUMP:*/links} named=links/00.schedule_comm_wait.$part
    rm -rf links && mkdir links && ln -s "$path" "$named"
    case $part in before.*) part=${part/before/after} ;; *) part=${part/after/before} ;; esac
    ln -s /dev/null links/00.schedule_comm_wait.$part
}
run() {                                         # run COMMAND FILE: its exit status, its words in `said`
    local words
    prepare "$1" "$2"
    { timeout -k 5 60 "$tuck" $words >/dev/null 2>&9; } 9>said 2>/dev/null
}
left() { compgen -G "$1/.tuck-*" >/dev/null; }

# old_or_new FILE NEW WHAT
old_or_new() {
    if cmp -s "$1" old || cmp -s "$1" "$2"; then ok; else bad "$3: neither the old file nor the new one"; fi
}

if mkdir full && mount -t tmpfs -o size=8k tmpfs full 2>/dev/null; then disk=full; else disk=; fi

echo 'what was there before' >old
n=0
for command in "${outputs[@]}"; do
    n=$((n + 1))
    new=$work/new$n
    run "$command" "$new" || bad "$command: exit $?"

    # mode, links, nothing beside it
    mkdir d && cp old d/file && chmod 640 d/file && ln -s file d/link && ln -s nothing d/dangling
    run "$command" d/link; want '[ $? = 0 ]' "$command"
    want 'cmp -s d/file "$new" && [ -L d/link ] && [ "$(stat -c %a d/file)" = 640 ]' "$command"
    run "$command" d/dangling; want '[ $? = 0 ] && [ -L d/dangling ] && cmp -s d/nothing "$new"' "$command"
    want '[ "$(stat -c %a d/nothing)" = "$(printf %o $((0666 & ~$(umask))))" ]' "$command"
    mkfifo d/pipe; timeout -k 5 20 cat d/pipe >d/read & run "$command" d/pipe; wait $!
    want '[ -p d/pipe ] && cmp -s d/read "$new"' "$command"
    (run "$command" /dev/fd/3) 3>d/third; want 'cmp -s d/third "$new"' "$command"
    want '! left d' "$command"
    rm -r d

    # where it cannot be written
    run "$command" /dev/full; want '[ $? = 4 ] && grep -q "$named: No space left" said' "$command"
    run "$command" no/such/folder; want '[ $? = 4 ] && grep -q "$named: No such file" said' "$command"
    run "$command" .; want '[ $? = 4 ] && grep -q "Is a directory" said' "$command"
    cp old file
    prepare "$command" file
    text=$(ulimit -f 0; timeout -k 5 60 "$tuck" $words 2>&1 >/dev/null)
    want '[ $? = 4 ] && [[ $text == *"$named: File too large"* ]]' "$command, ulimit"
    want 'cmp -s file old && ! left .' "$command, ulimit"
    if [ -n "$disk" ]; then
        cp old full/file
        dd if=/dev/zero of=full/rest bs=4k 2>/dev/null
        run "$command" full/file; want '[ $? = 4 ] && grep -q "$named: No space left" said' "$command, full disk"
        want 'cmp -s full/file old && ! left full' "$command, full disk"
        rm -f full/*
    fi

    # every call fails once, and every call is the last one
    for ((at = 1; at < 100; at++)); do
        cp old file
        LD_PRELOAD=./shim.so SHIM_AT=$at SHIM_ERRNO=28 run "$command" file; status=$?
        [ $status = 0 ] && break
        want '[ $status = 4 ] && grep -q "$named: No space left" said' "$command, call $at fails"
        want 'cmp -s file old && ! left .' "$command, call $at fails"
    done
    want '[ $at -gt 4 ] && [ $at -lt 100 ]' "$command: the shim sees its calls"
    for signal in 2 15 9 -2 -15 -9; do
        for ((at = 1; at < 100; at++)); do
            cp old file
            LD_PRELOAD=./shim.so SHIM_AT=$at SHIM_SIGNAL=$signal run "$command" file; status=$?
            old_or_new file "$new" "$command, signal $signal at call $at"
            if [ ${signal#-} = 9 ]; then rm -f .tuck-*; fi
            want '! left .' "$command, signal $signal at call $at"
            rm -f .tuck-*
            [ $status = 0 ] && break
        done
    done
done

# The input itself as the output.
for signal in 2 9 -9; do
    for ((at = 1; at < 100; at++)); do
        cp in.txt old; cp old self.txt
        LD_PRELOAD=./shim.so SHIM_AT=$at SHIM_SIGNAL=$signal run 'optimize self.txt --group 0=8 --passes schedule_comm_wait -o FILE' self.txt
        status=$?
        old_or_new self.txt new1 "onto the input, signal $signal at call $at"
        rm -f .tuck-*
        [ $status = 0 ] && break
    done
done

# Random moments of runs that take longer.
echo 'what was there before' >old
for command in "${outputs[@]}"; do
    command=${command//in.txt/large.txt}
    run "$command" new
    for ((i = 0; i < ${TUCK_SOAK:+60} + 4; i++)); do
        for signal in INT KILL; do
            cp old file
            prepare "$command" file
            "$tuck" $words >/dev/null 2>&1 &
            pid=$!
            sleep "0.$((RANDOM % 3))$((RANDOM % 10))$((RANDOM % 10))"
            kill -$signal $pid 2>/dev/null
            wait $pid 2>/dev/null
            old_or_new file new "$command, $signal"
            [ $signal = INT ] && want '! left .' "$command, $signal"
            rm -f .tuck-*
        done
    done
done

# Dumps in a separate folder: each file is either the old one or the new one.
dump='optimize in.txt --group 0=8 --no-times --passes schedule_comm_wait,raise_comms -o /dev/null --dump'
run "$dump new_dumps" -; want '[ $? = 0 ] && [ "$(ls new_dumps | wc -l)" = 4 ] && ! left new_dumps' "dumps"
old_dumps() { rm -rf dumps; mkdir dumps; for name in new_dumps/*; do cp old dumps/"${name##*/}"; done; }
for signal in 2 15 9 -2 -15 -9; do
    for ((at = 1; at < 100; at++)); do
        old_dumps
        LD_PRELOAD=./shim.so SHIM_AT=$at SHIM_SIGNAL=$signal run "$dump dumps" -; status=$?
        for name in new_dumps/*; do old_or_new dumps/"${name##*/}" "$name" "dumps, signal $signal at call $at"; done
        if [ ${signal#-} = 9 ]; then rm -f dumps/.tuck-*; fi
        want '! left dumps' "dumps, signal $signal at call $at"
        [ $status = 0 ] && break
    done
    want '[ $at -gt 16 ] && [ $at -lt 100 ]' "dumps: the shim sees their calls"
done
for ((at = 1; at < 100; at++)); do
    old_dumps
    LD_PRELOAD=./shim.so SHIM_AT=$at SHIM_ERRNO=28 run "$dump dumps" -; status=$?
    [ $status = 0 ] && break
    want '[ $status = 4 ] && grep -q "dumps/0.*: No space left" said && ! left dumps' "dumps, call $at fails"
    for name in new_dumps/*; do old_or_new dumps/"${name##*/}" "$name" "dumps, call $at fails"; done
done
# Tuck's own passes are tried repeatedly: no two tries use the same file.
"$tuck" optimize in.txt --group 0=8 -o /dev/null --dump tries >/dev/null 2>&1
want '[ $? = 0 ] && [ "$(ls tries | cut -d. -f1 | uniq -c | sed "s/ *\([0-9]*\) .*/\1/" | sort -u)" = 2 ]' "dumps of tries"

# Standard output: a full one, a closed one.
"$tuck" lower small.txt --problem >problem.json || bad "no problem to schedule"
"$tuck" lower small.txt >program.txt
stdout=(
    '--help' '--version' 'help' 'help show'
    'show small.txt' 'show -t small.txt' 'show -c small.txt' 'show -x small.txt' 'show -j small.txt' 'show -d small.txt'
    'lint small.txt' 'lint -j small.txt'
    'cost all_reduce 25MB' 'cost all_reduce 25MB -j' 'cost small.txt' 'cost small.txt -j' 'cost small.txt --write-profile'
    'ops' 'ops -j' 'ops aten.mm.default' 'passes' 'passes -j' 'passes --reasons' 'passes schedule_comm_wait'
    'optimize small.txt' 'optimize small.txt -o /dev/null' 'optimize small.txt -o /dev/null -j' 'optimize small.txt -o /dev/null -b'
    'optimize small.txt --report /dev/null'
    'lower small.txt' 'lower small.txt --summary' 'lower small.txt --problem' 'lower small.txt --peak program'
    'lower small.txt --peak fx' 'lower --read program.txt'
    'schedule problem.json' 'schedule problem.json --json' 'schedule problem.json --overlap'
    'schedule problem.json --problem' 'schedule small.txt'
    'simulate small.txt' 'simulate small.txt -j' 'simulate small.txt --timeline' 'simulate small.txt --world 2..4 --group 0=2'
    'simulate small.txt --world 2..4 --group 0=2 -j' 'simulate small.txt --group 0=0,1,2,3 --straggler 1=2x'
    'simulate small.txt --group 0=0,1,2,3 --straggler 1=2x -j'
    'diff small.txt small.txt' 'diff small.txt small.txt -j' 'explain small.txt' 'explain small.txt a0' 'explain small.txt -j'
)
for name in show lint cost ops passes optimize lower schedule simulate diff explain; do
    stdout+=("$name --help" "$name --usage" "help $name")
done
for command in "${stdout[@]}"; do
    timeout -k 5 60 "$tuck" $command >/dev/full 2>said
    want '[ $? = 4 ] && grep -q "standard output: No space left on device" said' "$command >/dev/full"
    timeout -k 5 60 "$tuck" $command >&- 2>said
    want '[ $? = 4 ] && grep -q "standard output: Bad file descriptor" said' "$command >&-"
    (ulimit -f 0; timeout -k 5 60 "$tuck" $command >file 2> >(cat >&3)) 3> >(cat >/dev/null)
    want '[ $? = 4 ]' "$command, ulimit"
done
# A closed descriptor is not the next file's.
"$tuck" optimize in.txt --group 0=8 --no-times --passes schedule_comm_wait -o file >&- 2>/dev/null
want '[ $? = 4 ] && cmp -s file new1' "a closed standard output"
"$tuck" optimize in.txt --group 0=8 --no-times --passes schedule_comm_wait -o file >/dev/null 2>&- <&-
want '[ $? = 0 ] && cmp -s file new1' "closed standard input and error"
"$tuck" optimize in.txt --passes schedule_comm_wait >/dev/null 2>/dev/full; want '[ $? = 4 ]' "a report on a full standard error"

# Two outputs, one file.
apart() { "$tuck" "$@" >/dev/null 2>said; want '[ $? = 2 ] && grep -q "would both write to" said' "$*"; }
touch one; ln one hard; ln -s one soft; ln -s none1 dangling
apart simulate in.txt --html one --trace one
apart simulate in.txt --html one --trace ./one
apart simulate in.txt --html one --trace hard
apart simulate in.txt --html soft --trace one
apart simulate in.txt --html none1 --trace "$work/none1"
apart simulate in.txt --html none1 --trace dangling
apart optimize in.txt -o one --report one
apart optimize in.txt -o one --html hard
apart optimize in.txt -o none --trace none
apart optimize in.txt --report none --trace none
mkdir folder; ln -s ../one folder/00.schedule_comm_wait.after.txt; ln one folder/00.raise_comms.before.txt
ln -s folder way
for option in -o --report --html --trace; do
    extra='-o /dev/null'; [ $option = -o ] && extra=
    dump="optimize in.txt $extra --passes schedule_comm_wait"
    apart $dump $option folder/00.schedule_comm_wait.before.txt --dump folder
    apart $dump $option way/00.schedule_comm_wait.before.txt --dump ./folder
    apart $dump $option nowhere/00.schedule_comm_wait.after.txt --dump nowhere
    apart $dump $option folder/01.raise_comms.after.dot --dump folder --dump-dot
    apart optimize in.txt $extra $option folder/000.deduplicate_wait_tensors.before.txt --dump folder
    apart $dump $option one --dump folder
    apart optimize in.txt $extra --passes raise_comms $option one --dump folder
    want '[ ! -e nowhere ]' "$dump $option: no folder is made"
    "$tuck" $dump $option folder/new.txt --dump folder/more >/dev/null 2>&1; want '[ $? = 0 ]' "$option beside dumps"
done
"$tuck" optimize in.txt --passes raise_comms --dump folder >one 2>said
want '[ $? = 2 ] && grep -q "would both" said' "a dump onto standard output"
"$tuck" simulate in.txt --html one >one 2>said; want '[ $? = 2 ] && grep -q "would both" said' "a page onto standard output"
"$tuck" simulate in.txt --html /dev/null --trace /dev/null >/dev/null 2>&1; want '[ $? = 0 ]' "/dev/null twice"
want '[ ! -s one ] && [ ! -e none ]' "nothing was written"

# A folder as an input: what a job left behind, where a graph is read; else it cannot be opened.
mkdir nothing
for command in 'show nothing' 'lint nothing' 'optimize nothing -o file' 'cost nothing' 'simulate nothing' 'explain nothing' \
    'diff nothing in.txt' 'diff in.txt nothing' 'lower nothing'; do
    "$tuck" $command >/dev/null 2>said; want '[ $? = 3 ] && grep -q "nothing: error: no graph in" said' "$command"
done
for command in 'schedule .' 'lower --read .' 'optimize in.txt --passes-file .' 'simulate in.txt --cluster .' \
    'simulate in.txt --profile .' 'schedule problem.json --align .'; do
    "$tuck" $command >/dev/null 2>said; want '[ $? = 4 ] && grep -q "\.: .*Is a directory" said' "$command"
done

# One core or all: the same decision.
"$tuck" optimize "$root/tests/large/moe16_ep_fsdp_bw.txt" --no-times -o all >report 2>said
taskset -c 0 "$tuck" optimize "$root/tests/large/moe16_ep_fsdp_bw.txt" --no-times -o one >report.one 2>said
want 'cmp -s all one && cmp -s report report.one' "one core or all"

# Ctrl-C during a search: the best so far is written, and what the report says repeats it. In a shell's background
# SIGINT is ignored unless job control is on.
set -m
"$tuck" optimize "$root/tests/large/llama32_2d_bw.txt" --effort 9 --progress --no-times -o stopped >report 2>said &
for ((i = 0; i < 600; i++)); do grep -q "best .* ms, .* % above the bound, .* % done" said && break; sleep 0.1; done
kill -INT $!
wait $!
want '[ $? = 0 ] && grep -q "stopped after [1-9]" report && [ -s stopped ]' "Ctrl-C during a search"
set +m
tries=$(sed -n 's/^stopped after .*: --tries \([0-9]*\) gives the same$/\1/p' report)
"$tuck" optimize "$root/tests/large/llama32_2d_bw.txt" --effort 9 --tries "${tries:-1}" --no-times -o again >report2 2>/dev/null
want '[ $? = 0 ] && cmp -s stopped again && cmp -s report report2' "--tries repeats it"

[ -n "$disk" ] || echo "note: no file system could be mounted; a full disk was only pretended"
echo "$passed passed, $failed failed"
[ $failed = 0 ]

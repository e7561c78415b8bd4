#!/bin/bash
# usage: tests/completion.sh TUCK
#
# Shell completion: bash is asked what it offers, and so are zsh and fish where they are installed.
tuck=$(realpath "$1") || exit 2
cd "$(dirname "$0")/.." || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
for shell in bash zsh fish; do tools/completion $shell "$tuck" >"$work/$shell" 2>>"$work/said" || exit 2; done
. "$work/bash"

check() { if "${@:2}"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1"; fi; }

# offers WORD... : what bash offers for the last word, sorted, in $offer
offers() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _tuck 2>/dev/null
    offer=" ${COMPREPLY[*]} "
}
has() { [[ $offer == *" $1 "* ]]; }
has_not() { [[ $offer != *" $1 "* ]]; }

# An apostrophe in a word in quotes is written as '\'': three quotes.
quotes_are_even() {
    local text quotes
    text=$(<"$1")
    text=${text//"'\\''"/}
    quotes=${text//[^\']/}
    [ $((${#quotes} % 2)) = 0 ]
}

check "made without a word" eval '[ ! -s "$work/said" ]'
check "zsh: texts" grep -qF "'*--straggler=[All ranks together, with one whose kernels take F times as long\: 3=1.3x]:RANK=Fx:'" "$work/zsh"
check "zsh: quotes are even" quotes_are_even "$work/zsh"
check "fish: texts" grep -qF "PyTorch\\'s configuration" "$work/fish"
check "bash knows tuck" eval 'complete -p tuck | grep -q _tuck'
offers tuck sim; check "tuck sim" has simulate
offers tuck ''; check "tuck" has optimize
offers tuck help ex; check "tuck help ex" has explain
offers tuck passes raise; check "tuck passes raise" has raise_comms
offers tuck optimize f.txt --passes raise; check "--passes" has raise_comms
offers tuck simulate --model = ncc; check "--model=" has nccl
offers tuck simulate --model =; check "--model=" has auto
offers tuck --color never show --ja; check "--color before the command" has_not --java
offers tuck lower --peak ''; check "--peak" has fx
offers tuck show --color a; check "--color" has always
offers tuck show READ; check "files" has README.md
offers tuck simulate --html READ; check "--html" has README.md
offers tuck optimize --dump doc; check "--dump" has docs
offers tuck optimize -o READ; check "-o" has README.md
offers tuck simulate --group ''; check "--group: only the user knows" eval '[ "$offer" = "  " ]'

# Every option in a command's help is offered, in all three, and nothing else.
for command in $("$tuck" --help | sed -n '/^Commands:/,/^  help /s/^  \([a-z]*\) .*/\1/p'); do
    [ "$command" = help ] && continue
    offers tuck "$command" --
    for option in $("$tuck" help "$command" | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
        check "bash: $command $option" has "$option"
        check "fish: $command $option" grep -q -- "seen_subcommand_from $command' -l ${option#--} " "$work/fish"
        check "zsh: $command $option" eval 'sed -n "/^    $command) _arguments/,/;;/p" "$work/zsh" | grep -qE -- "\\*$option(=|\\[)"'
    done
done
for shell in bash zsh fish; do
    if command -v $shell >/dev/null; then check "$shell reads its file" $shell -n "$work/$shell"; fi
done

# What the other shells do with a line when TAB is pressed.
mkdir "$work/folder" && cp "$work/zsh" "$work/folder/_tuck" && touch "$work/folder/page.html"
tab() {                                         # tab LINE: what the line becomes
    case $shell in
    zsh) timeout -k 5 60 zsh -f tests/completion.zsh "$work/folder" "$1" | grep -a '^<' | sed 's/^<\(.*\)>$/\1/' ;;
    fish) echo "${1% *} $(fish -c 'source $argv[1]; complete -C $argv[2]' "$work/fish" "$1" 2>&1 | cut -f 1)" ;;
    esac
}
becomes() { local line; line=$(tab "$1"); [ "${line%/}" = "$2" ]; } # zsh removes the last / again
for shell in zsh fish; do
    if ! command -v $shell >/dev/null; then echo "note: $shell is not installed"; continue; fi
    check "$shell: a command" becomes 'tuck sim' 'tuck simulate'
    check "$shell: help" becomes 'tuck help expl' 'tuck help explain'
    check "$shell: an option" becomes 'tuck simulate --timel' 'tuck simulate --timeline'
    check "$shell: of this command only" becomes 'tuck lint --timel' "tuck lint $([ $shell = zsh ] && echo --timel)"
    check "$shell: a pass" becomes 'tuck passes raise' 'tuck passes raise_comms'
    check "$shell: a file" becomes "tuck optimize -o $work/folder/pa" "tuck optimize -o $work/folder/page.html"
    check "$shell: a folder" becomes "tuck optimize --dump $work/fold" "tuck optimize --dump $work/folder"
done
if command -v zsh >/dev/null; then
    shell=zsh
    check "zsh: a value" becomes 'tuck simulate --model=ncc' 'tuck simulate --model=nccl'
fi
if command -v fish >/dev/null; then
    shell=fish
    check "fish: a value" becomes 'tuck simulate --model ncc' 'tuck simulate --model nccl'
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]

# usage: zsh -f tests/completion.zsh FOLDER LINE...
# What each line becomes when TAB is pressed at its end, in a zsh that has the completions of FOLDER: "<LINE>".
zmodload zsh/zpty || exit 3
folder=$1
shift
zpty shell zsh -f -i || exit 3
zpty -w shell "PS1= TERM=dumb; unset zle_bracketed_paste; fpath=($folder \$fpath)"
zpty -w shell "autoload -Uz compinit; compinit -u -D; bindkey -e; bindkey '^I' complete-word"
for line; do
    zpty -w -n shell "$line"$'\t'
    zpty -w shell $'\C-aprint -r -- "<\C-e>"'
done
zpty -w shell "print -r -- THE''END"
zpty -r -m shell all '*THEEND*'
print -r -- ${all//$'\r'/}

#!/bin/bash
# usage: tests/install.sh
# `make install` puts there what it should, and `make uninstall` leaves no file behind.
cd "$(dirname "$0")/.." || exit 1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
make -s install PREFIX=/usr DESTDIR="$dir" >/dev/null || exit 1
for file in bin/tuck include/tuck.h lib/libtuck.a lib/libtuck.so lib/pkgconfig/tuck.pc share/man/man1/tuck.1 \
    share/bash-completion/completions/tuck share/zsh/site-functions/_tuck share/fish/vendor_completions.d/tuck.fish \
    share/doc/tuck/README.md share/doc/tuck/docs/files.md share/doc/tuck/docs/pictures/architecture.svg; do
    [ -s "$dir/usr/$file" ] || { echo "not installed: $file"; exit 1; }
done
# Links of the installed pages lead to installed files.
(cd "$dir/usr/share/doc/tuck" && grep -ohE '\]\((docs/)?[a-z_./-]+\.(md|svg)' README.md docs/*.md | sed 's/^](//' |
    sort -u | while read -r link; do [ -e "$link" ] || [ -e "docs/$link" ] || echo "$link"; done) | grep . && exit 1
make -s uninstall PREFIX=/usr DESTDIR="$dir" >/dev/null || exit 1
left=$(find "$dir" -type f -o -type l)
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }

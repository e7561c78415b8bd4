#!/bin/bash
# usage: tests/install.sh                    (TUCK_BLESS=1: writes what study_log found to
# tests/results)
#
# Checks that `make install` installs what it should; that the examples build against it as C and as
# C++ and run; and that `make uninstall` leaves nothing behind.
cd "$(dirname "$0")/.." || exit 1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
root=$dir/root prefix=$dir/root/usr
make -s install PREFIX=/usr DESTDIR="$root" >/dev/null || exit 1
for file in bin/tuck include/tuck.h include/tuck_experimental.h include/tuck_run.h lib/libtuck.a lib/libtuck.so lib/pkgconfig/tuck.pc share/man/man1/tuck.1 \
    share/bash-completion/completions/tuck share/zsh/site-functions/_tuck share/fish/vendor_completions.d/tuck.fish \
    share/doc/tuck/README.md share/doc/tuck/docs/files.md share/doc/tuck/docs/pictures/architecture.svg \
    share/doc/tuck/examples/torch/ddp.py; do
    [ -s "$prefix/$file" ] || { echo "not installed: $file"; exit 1; }
done
# Links of the installed pages lead to installed files.
(cd "$prefix/share/doc/tuck" && grep -ohE '\]\((docs/)?[a-z_./-]+\.(md|svg)' README.md docs/*.md | sed 's/^](//' |
    sort -u | while read -r link; do [ -e "$link" ] || [ -e "docs/$link" ] || echo "$link"; done) | grep . && exit 1

# ---------------------------------------------------------------- the library, as users have it

if command -v pkg-config >/dev/null 2>&1; then
    export PKG_CONFIG_PATH=$prefix/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
    export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
    flags=$(pkg-config --cflags tuck) libs=$(pkg-config --libs tuck) || exit 1
else
    flags=-I$prefix/include libs="-L$prefix/lib -ltuck"
fi
warnings="-Wall -Wextra -Wpedantic -Werror"
text=$PWD/examples/llama_fsdp_bw.txt

# example COMPILER NAME: builds a copy of the example outside the source tree and runs it.
example() {
    local name=$2 program=$dir/$2
    cp "$prefix/share/doc/tuck/examples/$name.c" "$dir"
    $1 $warnings $flags -o "$program" "$program.c" -x none $libs ||
        { echo "does not build: $1 $name.c"; return 1; }
    (cd "$dir" && LD_LIBRARY_PATH=$prefix/lib "$program" "$text" "$dir/study.html") \
        >"$dir/out" 2>"$dir/said" || { cat "$dir/out" "$dir/said"; echo "does not run: $1 $name.c"; return 1; }
}

for source in examples/*.c; do
    name=$(basename "$source" .c)
    example "${CC:-cc} -std=c17" "$name" || exit 1
    mv "$dir/out" "$dir/out.c" && mv "$dir/said" "$dir/$name.said"
    example "g++ -std=c++17 -x c++" "$name" || exit 1
    cmp "$dir/out.c" "$dir/out" && cmp "$dir/$name.said" "$dir/said" || { echo "$name: C and C++ differ"; exit 1; }
    mv "$dir/out" "$dir/$name.out"
done

# What study_log found, and the time of its graph; its page has the step before and after.
"$prefix/bin/tuck" diff "$text" "$dir/study_log.out" >"$dir/diff" || exit 1
sed '/^$/q' "$dir/diff" | cat "$dir/study_log.said" - >"$dir/found"
[ -z "$TUCK_BLESS" ] || cp "$dir/found" tests/results/study_log.txt
diff tests/results/study_log.txt "$dir/found" || exit 1
grep -q '"before"' "$dir/study.html" && grep -q '"after"' "$dir/study.html" ||
    { echo "study_log: the page is not that of two steps"; exit 1; }
# The experimental part, too, as C and as C++.
for language in "${CC:-cc} -std=c17 -x c" "g++ -std=c++17 -x c++"; do
    printf "#include <%s.h>\n" tuck_experimental tuck_run | $language $warnings $flags -fsyntax-only - || exit 1
done

make -s uninstall PREFIX=/usr DESTDIR="$root" >/dev/null || exit 1
left=$(find "$root" -type f -o -type l)
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }

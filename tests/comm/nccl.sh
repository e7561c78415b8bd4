#!/bin/bash
# usage: tests/comm/nccl.sh BUILD                (BUILD: build/release)
# Does the NCCL plug-in compile against NCCL's headers, and does it say clearly that it needs a GPU?
# The headers are downloaded once, from PyPI, into build/nccl-headers.
cd "$(dirname "$0")/../.." || exit 1
build=$1 headers=build/nccl-headers
if [ ! -e $headers/nccl.h ]; then
    rm -rf $headers.new
    python3 tests/comm/fetch_headers.py $headers.new || { [ $? -eq 77 ] && exit 0; exit 1; }
    rm -rf $headers && mv $headers.new $headers || exit 1
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
make -s B="$build" NCCL_INCLUDE=$headers WERROR=1 "$build/libtuck_nccl.so" || exit 1
mv "$build/libtuck_nccl.so" "$work" || exit 1
cat >"$work/ask.c" <<'END'
#include <stdio.h>
#include "run/comm/launch.h"
static int rank(void *arg, const struct comm_job *job, char *error)
{
    (void)arg;
    struct comm *c = comm_open(job, error);
    comm_close(c);
    return c == NULL;
}
int main(void)
{
    char error[COMM_ERROR_BYTES];
    struct launch_options o = {.transport = transport_find("nccl", error), .world = 1};
    struct launch_result result;
    if (o.transport == NULL)
        return puts(error) < 0 || 2;
    launch(&o, rank, NULL, &result);
    puts(result.error);
    launch_free(&result);
    return 0;
}
END
${CC:-gcc} -std=c17 -D_GNU_SOURCE -Iinclude -Isrc -o "$work/ask" "$work/ask.c" "$build/libtuck.a" -ljansson -lm ||
    exit 1
said=$(TUCK_PLUGINS=$work "$work/ask") || { echo "$said"; exit 1; }
if ! command -v nvidia-smi >/dev/null; then
    case $said in
    *"nccl: this machine has no "*GPU*) ;;
    *) echo "without a GPU it says: $said"; exit 1 ;;
    esac
fi
echo "1 passed, 0 failed"

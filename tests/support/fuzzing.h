/* What fuzz targets have in common. */
#ifndef TUCK_TESTS_SUPPORT_FUZZING_H
#define TUCK_TESTS_SUPPORT_FUZZING_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static inline void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    abort();
}

/* A tuck_write_fn that counts; ctx is a size_t. */
static inline bool drop(void *ctx, const char *text, size_t len)
{
    (void)text;
    *(size_t *)ctx += len;
    return true;
}

#endif

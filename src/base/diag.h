/* Diagnostics: collected here, printed by the caller. */
#ifndef TUCK_BASE_DIAG_H
#define TUCK_BASE_DIAG_H

#include <stdarg.h>

#include "base/arena.h"
#include "base/vec.h"

/* A text being checked, for "file:line:column" and the line with its caret. */
struct diag_source {
    const char *file;
    const char *text; /* NULL: positions only */
    size_t len;
};

/* A position in a text; line 0 means none. `at` is the byte in source->text, if known. */
struct diag_pos {
    const struct diag_source *source;
    const char *at;
    uint32_t line, column, length;
};

struct tuck_diags {
    struct mem mem;
    struct arena arena;
    VEC(tuck_diag) all;
    size_t n_errors;
    bool lost; /* out of memory for diagnostics */
};

/* Both accept d == NULL and never fail. note may be NULL. */
void diag_add(tuck_diags *d, tuck_severity severity, struct diag_pos pos, const char *note,
              const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void diag_vadd(tuck_diags *d, tuck_severity severity, struct diag_pos pos, const char *note,
               const char *fmt, va_list ap) __attribute__((format(printf, 5, 0)));

#define NOWHERE ((struct diag_pos){.line = 0})

#endif

/* The bytes of a trace, in pieces: from a file or from memory, plain or gzip.
 *
 * Two things that are not JSON, but that others write and read, become blanks: a byte order mark at
 * the beginning, and NaN or Infinity, which Python and printf write for such numbers: an empty text
 * takes their place. Nothing changes its position. */
#ifndef TUCK_JOB_TRACE_IN_H
#define TUCK_JOB_TRACE_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <zlib.h>

#include "tuck.h"

enum {
    TRACE_IN_PIECE = 128 * 1024,
    TRACE_IN_WORD = 16, /* bytes; no word that matters is longer */
};

struct trace_in {
    FILE *f;
    const unsigned char *text; /* if there is no file */
    size_t len;
    bool gzip, member; /* inside a gzip member */
    bool end;          /* nothing is left to read */
    z_stream z;
    const char *wrong; /* what is broken about the gzip data; NULL if nothing */
    int error;         /* errno of a failed read */
    bool begun;        /* some piece was returned */
    bool string;       /* the text so far ends inside of a string */
    bool escape;       /* … behind its backslash */
    size_t n_held;     /* the beginning of a word at the end of the last piece */
    unsigned char held[TRACE_IN_WORD];
    /* with room in front for what was held */
    unsigned char raw[TRACE_IN_WORD + TRACE_IN_PIECE];
    unsigned char out[TRACE_IN_WORD + TRACE_IN_PIECE];
};

/* f or text; the caller closes f. TUCK_ENOMEM. */
TUCK_MUST_CHECK tuck_status trace_in_open(struct trace_in *in, FILE *f, const char *text,
                                          size_t len);
void trace_in_close(struct trace_in *in);
/* The next piece; 0 bytes at the end, or if `wrong` or `error` was set. */
size_t trace_in_next(struct trace_in *in, const unsigned char **piece);
/* What a text that is not JSON seems to be, by its first bytes; NULL. */
const char *trace_in_hint(const unsigned char *p, size_t n);

#endif

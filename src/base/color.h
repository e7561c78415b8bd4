/* Color for terminals. A buffer with buf.color set gets escapes around a cell; others get the cell
 * alone. Padding is part of the cell, so that columns are aligned either way. */
#ifndef TUCK_BASE_COLOR_H
#define TUCK_BASE_COLOR_H

#include "base/buf.h"

enum ink {
    INK_PLAIN,
    INK_HEAD,    /* headings, and the most important number */
    INK_BAD,     /* exposed, slower, more */
    INK_GOOD,    /* hidden, faster, less */
    INK_LIMIT,   /* limits, and unknown values */
    INK_DIM,     /* less important text */
    INK_ERROR,   /* the word "error" */
    INK_WARNING, /* the word "warning" */
};

const char *ink_escape(enum ink k); /* "" for INK_PLAIN */
#define INK_OFF "\033[0m"

void ink_printf(struct buf *b, enum ink k, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The last cell of a line. */
void ink_line(struct buf *b, enum ink k, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void ink_str(struct buf *b, enum ink k, const char *s);
/* Around text that is written in several pieces. */
void ink_begin(struct buf *b, enum ink k);
void ink_end(struct buf *b, enum ink k);

/* For a difference that should be below 0. */
static inline enum ink ink_change(double by)
{
    return by < 0 ? INK_GOOD : by > 0 ? INK_BAD : INK_DIM;
}

/* For a time that should be 0. */
static inline enum ink ink_exposed(double time)
{
    return time > 0 ? INK_BAD : INK_GOOD;
}

#endif

/* Text under construction. With a sink it is passed on in pieces, so that printing a graph of a
 * gigabyte does not need a gigabyte. */
#ifndef TUCK_BASE_BUF_H
#define TUCK_BASE_BUF_H

#include <stdarg.h>
#include <string.h>

#include "base/mem.h"

struct buf {
    struct mem *mem;
    char *at;
    size_t len, cap;
    tuck_write_fn sink; /* NULL: keep everything */
    void *sink_ctx;
    bool failed;    /* the sink failed; later text is dropped */
    bool color;     /* whether tables use color: base/color.h */
    bool origins;   /* whether tables say where collectives come from */
    uint32_t width; /* columns of the terminal; 0 means no limit */
    bool hold;      /* a line is being laid out (base/layout.h): do not flush */
    /* of what is printed as JSON; NULL if it is a document by itself */
    const struct json_head *head;
    const char *measured; /* a value of JSON documents; NULL: none */
};

void buf_init(struct buf *b, struct mem *m);
void buf_to(struct buf *b, struct mem *m, tuck_write_fn sink, void *ctx);
void buf_destroy(struct buf *b);

/* The common end of every printing function: fn writes into a buffer that goes to `write`, with its
 * own guard. TUCK_OK, TUCK_ENOMEM, or TUCK_EIO if `write` refused. */
typedef void (*buf_print_fn)(struct buf *b, const void *arg);
tuck_status buf_print(const tuck_allocator *alloc, bool color, tuck_write_fn write, void *ctx,
                      buf_print_fn fn, const void *arg);

void buf_flush(struct buf *b);
void buf_room(struct buf *b, size_t more);

static inline void buf_add(struct buf *b, const char *s, size_t len)
{
    if (len == 0)
        return; /* b->at may still be NULL */
    if (len > b->cap - b->len)
        buf_room(b, len);
    memcpy(b->at + b->len, s, len);
    b->len += len;
}

static inline void buf_chr(struct buf *b, char c)
{
    if (b->len == b->cap)
        buf_room(b, 1);
    b->at[b->len++] = c;
}

static inline void buf_str(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_fill(struct buf *b, char c, size_t n);
void buf_int(struct buf *b, int64_t v);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* A float as Python's repr writes it: the shortest text that reads back the same, "1e-05",
 * "inf". */
void buf_float(struct buf *b, double v);

/* NUL-terminated text; only without a sink. */
const char *buf_text(struct buf *b);

#endif

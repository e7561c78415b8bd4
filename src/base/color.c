#include "base/color.h"

const char *ink_escape(enum ink k)
{
    static const char *const escape[] = {"",         "\033[1m", "\033[31m",   "\033[32m",
                                         "\033[33m", "\033[2m", "\033[1;31m", "\033[1;35m"};

    return escape[k];
}

void ink_begin(struct buf *b, enum ink k)
{
    if (b->color)
        buf_str(b, ink_escape(k));
}

void ink_end(struct buf *b, enum ink k)
{
    if (b->color && k != INK_PLAIN)
        buf_str(b, INK_OFF);
}

static void ink_vprintf(struct buf *b, enum ink k, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

static void ink_vprintf(struct buf *b, enum ink k, const char *fmt, va_list ap)
{
    ink_begin(b, k);
    size_t before = b->len;
    buf_vprintf(b, fmt, ap);
    if (b->len != before)
        ink_end(b, k);
    else if (b->color)
        b->len -= strlen(ink_escape(k)); /* nothing was written between */
}

void ink_printf(struct buf *b, enum ink k, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    ink_vprintf(b, k, fmt, ap);
    va_end(ap);
}

void ink_line(struct buf *b, enum ink k, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    ink_vprintf(b, k, fmt, ap);
    va_end(ap);
    buf_chr(b, '\n');
}

void ink_str(struct buf *b, enum ink k, const char *s)
{
    ink_printf(b, k, "%s", s);
}

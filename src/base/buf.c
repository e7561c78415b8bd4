#include "base/buf.h"
#include "base/check.h"
#include "base/owner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SINK_CHUNK (64 * 1024)

void buf_init(struct buf *b, struct mem *m)
{
    *b = (struct buf){.mem = m};
}

void buf_to(struct buf *b, struct mem *m, tuck_write_fn sink, void *ctx)
{
    *b = (struct buf){.mem = m, .sink = sink, .sink_ctx = ctx};
}

void buf_destroy(struct buf *b)
{
    mem_free(b->mem, b->at, b->cap);
    b->at = NULL;
    b->len = b->cap = 0;
}

void buf_flush(struct buf *b)
{
    if (b->sink != NULL && b->len > 0) {
        if (!b->failed && !b->sink(b->sink_ctx, b->at, b->len))
            b->failed = true;
        b->len = 0;
    }
}

void buf_room(struct buf *b, size_t more)
{
    assert_hot(b->len <= b->cap);
    if (b->sink != NULL && !b->hold && b->len >= SINK_CHUNK / 2)
        buf_flush(b);
    if (more <= b->cap - b->len)
        return;
    if (more > SIZE_MAX / 2 || b->len > SIZE_MAX / 2 - more)
        mem_exhausted(b->mem);
    size_t want = b->len + more;
    size_t cap = b->sink && !b->hold ? SINK_CHUNK : b->cap * 2;

    if (cap < 64)
        cap = 64;
    if (cap < want)
        cap = want;
    b->at = mem_resize(b->mem, b->at, b->cap, cap);
    b->cap = cap;
}

void buf_fill(struct buf *b, char c, size_t n)
{
    if (n == 0)
        return;
    if (n > b->cap - b->len)
        buf_room(b, n);
    memset(b->at + b->len, c, n);
    b->len += n;
}

void buf_int(struct buf *b, int64_t v)
{
    char digits[20];
    size_t n = 0;
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

    do {
        digits[n++] = (char)('0' + u % 10);
        u /= 10;
    } while (u > 0);
    if (v < 0)
        buf_chr(b, '-');
    while (n > 0)
        buf_chr(b, digits[--n]);
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;
    char small[256];

    va_copy(again, ap);
    int n = vsnprintf(small, sizeof(small), fmt, ap);
    if (n >= 0 && (size_t)n < sizeof(small)) {
        buf_add(b, small, (size_t)n);
    } else if (n >= 0) {
        buf_room(b, (size_t)n + 1);
        vsnprintf(b->at + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
}

/* The fewest of 1..17 digits that read back as v, formatted by Python's rule: plain for exponents
 * -4..15, else d.ddde+XX. */
void buf_float(struct buf *b, double v)
{
    char sci[40], digits[20];
    int n = 0, prec = 0;

    if (isnan(v) || isinf(v)) {
        buf_str(b, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
        return;
    }
    do {
        snprintf(sci, sizeof(sci), "%.*e", prec, v);
    } while (strtod(sci, NULL) != v && ++prec < 17);
    const char *p = sci;
    if (*p == '-') {
        buf_chr(b, '-');
        p++;
    }
    for (; *p != 'e'; p++)
        if (*p >= '0' && *p <= '9') /* the decimal point depends on the locale */
            digits[n++] = *p;
    int exp10 = atoi(p + 1);
    if (exp10 < -4 || exp10 >= 16) {
        buf_chr(b, digits[0]);
        if (n > 1) {
            buf_chr(b, '.');
            buf_add(b, digits + 1, (size_t)n - 1);
        }
        buf_printf(b, "e%c%02d", exp10 < 0 ? '-' : '+', abs(exp10));
    } else if (exp10 < 0) {
        buf_str(b, "0.");
        buf_fill(b, '0', (size_t)(-exp10 - 1));
        buf_add(b, digits, (size_t)n);
    } else {
        for (int i = 0; i <= exp10; i++)
            buf_chr(b, i < n ? digits[i] : '0');
        buf_chr(b, '.');
        if (n > exp10 + 1)
            buf_add(b, digits + exp10 + 1, (size_t)(n - exp10 - 1));
        else
            buf_chr(b, '0');
    }
}

const char *buf_text(struct buf *b)
{
    buf_chr(b, '\0');
    b->len--;
    return b->at;
}

struct print_args {
    struct buf b;
    buf_print_fn fn;
    const void *arg;
};

static void do_print(void *p)
{
    struct print_args *x = p;

    x->fn(&x->b, x->arg);
    buf_flush(&x->b);
}

tuck_status buf_print(const tuck_allocator *alloc, bool color, tuck_write_fn write, void *ctx,
                      buf_print_fn fn, const void *arg)
{
    struct print_args x = {.fn = fn, .arg = arg};
    struct owner owner;
    struct mem m;

    owner_init(&owner, alloc);
    tuck_allocator owned = owner_allocator(&owner);
    mem_init(&m, &owned);
    buf_to(&x.b, &m, write, ctx);
    x.b.color = color;
    bool ok = mem_guard(&m, do_print, &x), failed = x.b.failed;
    owner_end(&owner);
    return !ok ? TUCK_ENOMEM : failed ? TUCK_EIO : TUCK_OK;
}

#include "base/diag.h"

#include <stdio.h>

#include "base/color.h"

enum {
    EXCERPT = 100,     /* longer source lines are cut to this */
    MOST_WARNINGS = 50 /* so that a log of a thousand graphs does not drown the first problem */
};

tuck_diags *tuck_diags_new(const tuck_allocator *alloc)
{
    struct mem m;

    mem_init(&m, alloc);
    tuck_diags *d = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*d));
    if (d == NULL)
        return NULL;
    *d = (tuck_diags){.mem = m};
    arena_init(&d->arena, &d->mem);
    return d;
}

void tuck_diags_clear(tuck_diags *d)
{
    arena_destroy(&d->arena);
    d->all.len = 0;
    d->n_errors = 0;
    d->lost = false;
}

void tuck_diags_free(tuck_diags *d)
{
    if (d == NULL)
        return;
    struct mem m = d->mem;

    tuck_diags_clear(d);
    vec_free(&d->mem, &d->all);
    m.alloc.resize(m.alloc.ctx, d, sizeof(*d), 0);
}

size_t tuck_diags_count(const tuck_diags *d)
{
    return d->all.len;
}

size_t tuck_diags_errors(const tuck_diags *d)
{
    return d != NULL ? d->n_errors : 0;
}

const tuck_diag *tuck_diags_at(const tuck_diags *d, size_t i)
{
    return i < d->all.len ? &d->all.at[i] : NULL;
}

/* Copies the line around pos.at into the arena; from a very long line, the part around the
 * caret. */
static void excerpt(struct arena *a, struct diag_pos pos, tuck_diag *out)
{
    const char *text = pos.source->text, *end = text + pos.source->len;
    const char *from = pos.at, *to = pos.at;

    while (from > text && from[-1] != '\n')
        from--;
    while (to < end && *to != '\n' && *to != '\r')
        to++;
    if (to - from > EXCERPT) {
        if (pos.at - from > EXCERPT / 2)
            from = pos.at - EXCERPT / 2;
        if (to - from > EXCERPT)
            to = from + EXCERPT;
        while (from < pos.at && ((unsigned char)*from & 0xC0) == 0x80)
            from++; /* not in the middle of a UTF-8 sequence */
    }
    out->source = arena_str(a, from, (size_t)(to - from));
    out->caret = (uint32_t)(pos.at - from);
    out->length = pos.length ? pos.length : 1;
    if (out->caret + out->length > (size_t)(to - from))
        out->length = to - from > out->caret ? (uint32_t)(to - from) - out->caret : 1;
}

struct copy_args {
    tuck_diags *d;
    tuck_diag diag;
};

static const char *copied(struct arena *a, const char *s)
{
    return s != NULL ? arena_str(a, s, strlen(s)) : NULL;
}

static void do_copy(void *p)
{
    struct copy_args *x = p;
    struct arena *a = &x->d->arena;

    x->diag.file = copied(a, x->diag.file ? x->diag.file : "");
    x->diag.message = copied(a, x->diag.message ? x->diag.message : "");
    x->diag.note = copied(a, x->diag.note);
    x->diag.source = copied(a, x->diag.source);
    vec_push(&x->d->mem, &x->d->all, x->diag);
}

void tuck_diags_append(tuck_diags *d, const tuck_diag *diag)
{
    if (d == NULL || diag == NULL)
        return;
    struct copy_args x = {.d = d, .diag = *diag};

    if (diag->severity == TUCK_ERROR)
        d->n_errors++;
    else if (d->all.len >= d->n_errors + MOST_WARNINGS)
        return;
    if (!mem_guard(&d->mem, do_copy, &x))
        d->lost = true;
}

struct add_args {
    tuck_diags *d;
    struct diag_pos pos;
    tuck_diag diag;
    const char *note, *fmt;
    va_list ap;
};

static void do_add(void *p)
{
    struct add_args *x = p;
    struct arena *a = &x->d->arena;
    va_list ap;

    va_copy(ap, x->ap);
    int n = vsnprintf(NULL, 0, x->fmt, ap);
    va_end(ap);
    size_t size = (size_t)(n < 0 ? 0 : n) + 1;
    char *msg = arena_alloc(a, size);
    vsnprintf(msg, size, x->fmt, x->ap);
    x->diag.message = msg;
    x->diag.file = "";
    if (x->note != NULL)
        x->diag.note = arena_str(a, x->note, strlen(x->note));
    if (x->pos.source != NULL && x->pos.source->file != NULL)
        x->diag.file = arena_str(a, x->pos.source->file, strlen(x->pos.source->file));
    if (x->pos.source != NULL && x->pos.source->text != NULL && x->pos.at != NULL)
        excerpt(a, x->pos, &x->diag);
    vec_push(&x->d->mem, &x->d->all, x->diag);
}

void diag_vadd(tuck_diags *d, tuck_severity severity, struct diag_pos pos, const char *note,
               const char *fmt, va_list ap)
{
    if (d == NULL)
        return;
    struct add_args x = {.d = d, .pos = pos, .note = note, .fmt = fmt};

    if (severity == TUCK_ERROR)
        d->n_errors++;
    else if (d->all.len >= d->n_errors + MOST_WARNINGS)
        return;
    x.diag = (tuck_diag){.severity = severity, .line = pos.line, .column = pos.column};
    va_copy(x.ap, ap);
    if (!mem_guard(&d->mem, do_add, &x))
        d->lost = true;
    va_end(x.ap);
}

void diag_add(tuck_diags *d, tuck_severity severity, struct diag_pos pos, const char *note,
              const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    diag_vadd(d, severity, pos, note, fmt, ap);
    va_end(ap);
}

static void print(struct buf *b, const void *arg)
{
    const tuck_diag *d = arg;
    enum ink tint = d->severity == TUCK_ERROR ? INK_ERROR : INK_WARNING;

    if (*d->file != '\0' && d->line > 0)
        ink_printf(b, INK_HEAD, "%s:%u:%u: ", d->file, d->line, d->column);
    else if (*d->file != '\0')
        ink_printf(b, INK_HEAD, "%s: ", d->file);
    ink_str(b, tint, d->severity == TUCK_ERROR ? "error:" : "warning:");
    buf_printf(b, " %s\n", d->message);
    if (d->source != NULL) {
        buf_printf(b, "%6u | ", d->line);
        for (const char *s = d->source; *s; s++)
            buf_chr(b, *s == '\t' || (unsigned char)*s < ' ' ? ' ' : *s);
        buf_str(b, "\n       | ");
        for (uint32_t i = 0; i < d->caret; i++)
            if (((unsigned char)d->source[i] & 0xC0) != 0x80)
                buf_chr(b, ' ');
        ink_begin(b, tint);
        buf_chr(b, '^');
        for (uint32_t i = 1; i < d->length; i++)
            if (((unsigned char)d->source[d->caret + i] & 0xC0) != 0x80)
                buf_chr(b, '~');
        ink_end(b, tint);
        buf_chr(b, '\n');
    }
    if (d->note != NULL)
        ink_line(b, INK_DIM, "  note: %s", d->note);
}

tuck_status tuck_diag_print(const tuck_diag *d, tuck_color color, tuck_write_fn write, void *ctx)
{
    if (d == NULL || write == NULL)
        return TUCK_EINVAL;
    return buf_print(NULL, color == TUCK_COLORED, write, ctx, print, d);
}

static void print_all(struct buf *b, const void *arg)
{
    const tuck_diags *list = arg;

    for (size_t i = 0; i < tuck_diags_count(list); i++)
        print(b, tuck_diags_at(list, i));
}

tuck_status tuck_diags_print(const tuck_diags *d, tuck_color color, tuck_write_fn write, void *ctx)
{
    if (d == NULL || write == NULL)
        return TUCK_EINVAL;
    return buf_print(NULL, color == TUCK_COLORED, write, ctx, print_all, d);
}

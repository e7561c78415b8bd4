/* -u: rewrites the expected output of a test. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runner/runner.h"

/* A section as written in a test. `separated`: a blank line follows it. */
static void render(buf *b, const char *name, bool bare, span s, bool separated)
{
    bool no_newline = s.n > 0 && s.p[s.n - 1] != '\n', blank = false;
    if (!bare || no_newline || is_blank(s))
        buf_str(b, format("--- %s%s\n", name, no_newline ? " (no newline)" : ""));
    while (s.n > 0) {
        span line = next_line(&s);
        blank = line.n == 0;
        if (needs_escape(line))
            buf_add(b, "\\", 1);
        buf_add(b, line.p, line.n);
        buf_add(b, "\n", 1);
    }
    if (blank && !separated)
        buf_add(b, "\n", 1);
}

void bless(const testfile *t, const testcase *c, const outcome *o, changes *ch)
{
    static const char *const names[] = {[STDOUT] = "stdout", [STDERR] = "stderr"};
    bool bare = t->markdown && c->append_at == c->output_at;
    buf missing = {0};
    for (enum kind k = STDOUT; k <= EXIT; k++) {
        const section *s = find(c, k);
        span actual = k == STDOUT ? o->out : o->err;
        buf b = {0};
        if (k == EXIT && o->status != 0)
            buf_str(&b, format("--- exit %d\n", o->status));
        else if (k != EXIT && actual.n > 0)
            render(&b, names[k], s ? s->bare : k == STDOUT && bare, actual,
                   s ? s->separated : c->separated);
        bool same = s != NULL && (k == EXIT ? s->status == o->status : span_eq(content(s), actual));
        if (s == NULL)
            buf_add(&missing, b.p, b.n);
        else if (!same)
            *PUSH(ch->list, ch->count) = (change){s->from, s->to, b};
    }
    if (missing.n > 0)
        *PUSH(ch->list, ch->count) = (change){c->append_at, c->append_at, missing};
}

static int by_place(const void *a, const void *b)
{
    const change *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

void rewrite(const testfile *t, changes *ch)
{
    buf b = {0};
    size_t at = 0;
    qsort(ch->list, ch->count, sizeof *ch->list, by_place);
    for (size_t i = 0; i < ch->count; i++) {
        const change *c = &ch->list[i];
        buf_add(&b, t->text.p + at, c->from - at);
        buf_add(&b, c->text.p, c->text.n);
        at = c->to;
    }
    buf_add(&b, t->text.p + at, t->text.n - at);
    if (!write_file(t->path, buf_span(&b)))
        die("%s: %s", t->path, strerror(errno));
}

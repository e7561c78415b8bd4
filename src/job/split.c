/* A frame that was split: DDP's optimizer cuts the graph of a frame where its buckets end, and each
 * part is compiled by itself, as a part of one compilation. */
#include <stdlib.h>
#include <string.h>

#include "job/job.h"

/* "Forward graph 12" without its number. */
static size_t stem(const char *title)
{
    size_t n = strlen(title);

    while (n > 0 && title[n - 1] >= '0' && title[n - 1] <= '9')
        n--;
    return n;
}

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_title(const struct piece *x, const struct piece *y)
{
    size_t n = stem(x->title), m = stem(y->title);
    int c = compare(x->role, y->role);

    c = c ? c : strncmp(x->title, y->title, n < m ? n : m);
    return c ? c : compare((int64_t)n, (int64_t)m);
}

/* By attempt of a compilation in one log. */
static int by_attempt(const struct piece *x, const struct piece *y)
{
    int c = compare(x->source, y->source);

    c = c ? c : compare(x->rank, y->rank);
    c = c ? c : compare(x->run, y->run);
    c = c ? c : compare(x->id.autograd, y->id.autograd);
    c = c ? c : compare(x->id.frame, y->id.frame);
    c = c ? c : compare(x->id.compile, y->id.compile);
    return c ? c : compare(x->id.attempt, y->id.attempt);
}

static int by_piece(const void *a, const void *b)
{
    const struct piece *x = *(struct piece *const *)a, *y = *(struct piece *const *)b;
    int c = by_attempt(x, y);

    c = c ? c : by_title(x, y);
    c = c ? c : compare(x->order, y->order);
    return c ? c : compare((int64_t)x->from, (int64_t)y->from);
}

static uint32_t run_length(struct piece **x, uint32_t n)
{
    uint32_t k = 1;

    while (k < n && by_title(x[k], x[0]) == 0)
        k++;
    return k;
}

/* The graphs of one title, of a frame of `parts` parts. Backwards that were compiled after all
 * forwards were compiled when they ran: the last part first. */
static void number_run(struct piece **x, uint32_t n, uint32_t parts, int64_t last_forward)
{
    bool late = x[0]->role == ROLE_BACKWARD && x[0]->order > last_forward;

    for (uint32_t k = 0; k < n; k++) {
        uint32_t part = k < parts ? k : parts - 1;
        x[k]->id.part = (int32_t)(late ? parts - part : part + 1);
    }
}

static void number_attempt(struct piece **x, uint32_t n)
{
    int64_t last_forward = -1;
    uint32_t parts = 1;

    for (uint32_t i = 0, len; i < n; i += len) {
        len = run_length(x + i, n - i);
        if (x[i]->role != ROLE_FORWARD && x[i]->role != ROLE_WHOLE)
            continue;
        parts = len > parts ? len : parts;
        if (x[i + len - 1]->order > last_forward)
            last_forward = x[i + len - 1]->order;
    }
    for (uint32_t i = 0, len; i < n && parts > 1; i += len) {
        len = run_length(x + i, n - i);
        number_run(x + i, len, parts, last_forward);
    }
}

void job_number_parts(struct job *j)
{
    struct piece **x = arena_array(&j->arena, struct piece *, j->pieces.all.len + 1);
    uint32_t n = 0;

    for (uint32_t i = 0; i < j->pieces.all.len; i++) {
        struct piece *p = &j->pieces.all.at[i];
        if (p->form != PIECE_FILE && p->passed == NULL && p->id.frame >= 0)
            x[n++] = p;
    }
    if (n > 0)
        qsort(x, n, sizeof(*x), by_piece);
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && by_attempt(x[end], x[i]) == 0;)
            end++;
        number_attempt(x + i, end - i);
    }
}

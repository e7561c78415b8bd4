/* The collectives of several ranks: the k-th of a group in a step is the same on all of them. What
 * goes from one rank to another is counted by itself: each rank has its own number of those. */
#include <stdlib.h>

#include "job/trace_study.h"

struct item {
    const char *group, *ranks;
    int64_t step;  /* its number; below 0: outside of all steps, or there are none */
    int64_t cycle; /* then the first step of the file: each cycle of a schedule has its own */
    bool p2p;
    int64_t start;
    uint32_t part, coll;
};

static int by_case(const struct item *x, const struct item *y)
{
    int c = strcmp(x->group, y->group);

    if (c == 0)
        c = strcmp(x->ranks, y->ranks);
    if (c == 0)
        c = (x->step > y->step) - (x->step < y->step);
    if (c == 0)
        c = (x->cycle > y->cycle) - (x->cycle < y->cycle);
    return c != 0 ? c : x->p2p - y->p2p;
}

static int by_item(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int c = by_case(x, y);

    if (c == 0)
        c = (x->part > y->part) - (x->part < y->part);
    return c != 0 ? c : (x->start > y->start) - (x->start < y->start);
}

static bool alike(const struct trace_part *part, const struct item *x, const struct item *y)
{
    const struct trace_coll *a = &part[x->part].coll.at[x->coll],
                            *b = &part[y->part].coll.at[y->coll];

    return a->kind == b->kind &&
           (a->bytes == b->bytes || a->kind == TUCK_ALL_TO_ALL || a->kind == TUCK_P2P);
}

/* Are these the files of different ranks, no more of them than the group has? The items of a rank
 * are one after the other, `len` of them. */
static bool are_members(const struct trace_part *part, const struct item *at, uint32_t len,
                        uint32_t ranks)
{
    int64_t p = part[at[0].part].coll.at[at[0].coll].p;

    for (uint32_t i = 0; i < ranks; i++) {
        int64_t rank = part[at[i * len].part].t->rank;
        for (uint32_t k = 0; k < i && rank >= 0; k++)
            if (part[at[k * len].part].t->rank == rank)
                return false;
    }
    return p == 0 || ranks <= p;
}

/* One group in one step: at[0] … at[n - 1], those of a rank one after the other. */
static uint32_t match_case(struct trace_part *part, const struct item *at, uint32_t n)
{
    uint32_t len = 0, ranks = 1;

    while (len < n && at[len].part == at[0].part)
        len++;
    for (uint32_t i = len; i < n; i++)
        ranks += at[i].part != at[i - 1].part;
    bool same = (uint64_t)len * ranks == n;
    for (uint32_t i = 0; i < n && same; i++)
        same = alike(part, &at[i % len], &at[i]) && at[i].part == at[i - i % len].part;
    if (!same || !are_members(part, at, len, ranks))
        return n;
    for (uint32_t k = 0; k < len; k++) {
        int64_t least = INT64_MAX;
        for (uint32_t i = k; i < n; i += len) {
            const struct trace_coll *c = &part[at[i].part].coll.at[at[i].coll];
            least = c->end - c->start < least ? c->end - c->start : least;
        }
        for (uint32_t i = k; i < n; i += len) {
            struct trace_coll *c = &part[at[i].part].coll.at[at[i].coll];
            c->transfer = least;
            c->n_rank = ranks;
        }
    }
    return 0;
}

uint32_t trace_match_ranks(struct trace_part *part, uint32_t n, struct arena *a)
{
    uint32_t total = 0, k = 0, lost = 0;

    for (uint32_t i = 0; i < n; i++)
        total += part[i].coll.len;
    struct item *list = arena_array(a, struct item, total + 1);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < part[i].coll.len; j++) {
            const struct trace_coll *c = &part[i].coll.at[j];
            int64_t step = c->step != TRACE_NONE ? part[i].step.at[c->step].number : -2;
            list[k++] = (struct item){
                .group = trace_str(part[i].t, c->group),
                .ranks = trace_str(part[i].t, c->ranks),
                .step = step,
                .cycle = step < 0 && part[i].step.len > 0 ? part[i].step.at[0].number : 0,
                .p2p = c->kind == TUCK_P2P,
                .start = c->issued,
                .part = i,
                .coll = j};
        }
    qsort(list, total, sizeof(*list), by_item);
    for (uint32_t i = 0, j; i < total; i = j) {
        for (j = i + 1; j < total && by_case(&list[i], &list[j]) == 0;)
            j++;
        lost += match_case(part, &list[i], j - i);
    }
    return lost;
}

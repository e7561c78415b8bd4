#include "job/tie_host.h"

#include <math.h>
#include <stdlib.h>

/* ---- calls ---- */

static int by_bytes(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    return (x->key > y->key) - (x->key < y->key);
}

/* Collectives of one size: the host's time to start one, on average. */
static uint32_t call_points(const struct runs *used, struct arena *a, struct cost_point **out)
{
    items all = {NULL, 0, 0};
    uint32_t n = 0;

    for (uint32_t i = 0; i < used->n; i++) {
        const items *run = &used->at[i]->item[TIE_COLLECTIVES];
        for (uint32_t k = 0; k < run->len; k++) {
            struct item x = run->at[k];
            x.key = tie_coll_bytes(x.key);
            vec_push_in(a, &all, x);
        }
    }
    if (all.len > 0)
        qsort(all.at, all.len, sizeof(*all.at), by_bytes);
    struct cost_point *at = arena_array(a, struct cost_point, all.len + 1);
    for (uint32_t i = 0, k; i < all.len; i = k) {
        double sum = 0;
        for (k = i; k < all.len && all.at[k].key == all.at[i].key; k++)
            sum += (double)all.at[k].call;
        if (all.at[i].key > 0 && sum > 0)
            at[n++] = (struct cost_point){(double)all.at[i].key, sum / (k - i)};
    }
    *out = at;
    return n;
}

/* Calls whose sizes are close to each other do not tell what is the same for all sizes: those of
 * barriers do, which move nothing. The rest is in proportion to the bytes. */
static struct cost_law law_of_calls(const struct trace_part *part, struct tie_steps steps,
                                    const struct runs *used, const struct trace_figures *x,
                                    const struct cost_point *at, uint32_t n)
{
    double least = at[0].us, bytes = 0, calls = 0;

    if (at[n - 1].bytes >= HOLD_APART * at[0].bytes)
        return law_fit(at, n);
    for (uint32_t i = 1; i < n; i++)
        least = at[i].us < least ? at[i].us : least;
    for (uint32_t i = 0; i < used->n; i++) {
        const items *run = &used->at[i]->item[TIE_COLLECTIVES];
        calls += (double)run->len / used->n;
        for (uint32_t k = 0; k < run->len; k++)
            bytes += (double)tie_coll_bytes(run->at[k].key) / used->n;
    }
    double fixed = barrier_call_ps(part, steps), rest;
    fixed = fixed < least ? fixed : least;
    rest = (double)x->calls - fixed * calls;
    return rest > 0 ? (struct cost_law){fixed, 0, bytes / rest} : (struct cost_law){1, 0, INFINITY};
}

int64_t tie_host_time(const struct trace_part *part, struct tie_steps steps, const items *ops,
                      const struct runs *used, const struct trace_figures *x, struct arena *a)
{
    struct cost_point *at;
    uint32_t n = call_points(used, a, &at);
    double graph = 0, ran = 0;

    if (n == 0 || tie_same_sequence(ops, &used->at[0]->item[TIE_COLLECTIVES]))
        return x->idle;
    struct cost_law law = law_of_calls(part, steps, used, x, at, n);
    for (uint32_t i = 0; i < ops->len; i++)
        graph += law_time(&law, (double)tie_coll_bytes(ops->at[i].key));
    for (uint32_t i = 0; i < used->n; i++) {
        const items *run = &used->at[i]->item[TIE_COLLECTIVES];
        for (uint32_t k = 0; k < run->len; k++)
            ran += law_time(&law, (double)tie_coll_bytes(run->at[k].key)) / used->n;
    }
    return x->idle + (int64_t)(ran > 0 ? (graph / ran - 1) * (double)x->calls : 0);
}

/* ---- waits ---- */

/* As in struct window. */
static uint32_t stops_of(const struct program *p)
{
    bool started = false;
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->n_op; i++) {
        if (p->op[i].kind == PROGRAM_COLLECTIVE)
            started = true;
        if (p->op[i].kind != PROGRAM_WAIT)
            continue;
        n += started;
        started = false;
    }
    return n;
}

/* Between two stops each rank is delayed by chance, and delays add up like the steps of a random
 * walk: of n stops each wait is 1 / sqrt(n) as long as that of one, and all of them sqrt(n) as
 * long. But where ranks share cores, one that waits makes others faster: what it does not wait, it
 * loses while it computes. */
int64_t tie_waiting(const struct program *p, const struct runs *used, const struct beside *beside)
{
    double lost = 0, stops = 0, own = stops_of(p);

    for (uint32_t i = 0; i < used->n; i++) {
        lost += (double)used->at[i]->lost / used->n;
        stops += (double)used->at[i]->stops / used->n;
    }
    bool shared = beside->ranks == 0 || beside->ranks >= BESIDE_SHARED;
    return (int64_t)(shared || stops <= 0 || own <= 0 ? lost : lost * sqrt(own / stops));
}

#include "sim/match_p2p.h"

#include <stdlib.h>

#define NONE PROBLEM_NONE

struct p2p {
    uint32_t src, dst, rank, op;
    int64_t tag;
    uint32_t step; /* in the rank's order */
    uint32_t item; /* which part of the op */
};

static int key_order(const struct p2p *x, const struct p2p *y)
{
    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    if (x->dst != y->dst)
        return x->dst < y->dst ? -1 : 1;
    return x->tag < y->tag ? -1 : x->tag > y->tag;
}

static int by_key(const void *a, const void *b)
{
    const struct p2p *x = a, *y = b;
    int order = key_order(x, y);

    if (order != 0)
        return order;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

/* Sorts sends and receives by (source, destination, tag, position): the i-th send matches the i-th
 * receive. */
void sim_meet(const struct sim_job *job, struct arena *a, struct sim_meetings *out)
{
    uint32_t n[2] = {0, 0}, total = 0;
    struct p2p *list[2];

    *out = (struct sim_meetings){.at = NULL};
    for (uint32_t r = 0; r < job->n_rank; r++)
        for (uint32_t op = 0; op < job->rank[r].p->n_op; op++)
            if (problem_is_coll(job->rank[r].p, op))
                total += job->rank[r].call[op].n_part;
    if (total == 0)
        return;
    list[0] = arena_array(a, struct p2p, total);
    list[1] = arena_array(a, struct p2p, total);
    out->with = arena_array(a, struct sim_met, total);
    out->at = arena_array(a, uint32_t *, job->n_rank);
    out->missing = arena_array(a, uint32_t *, job->n_rank);
    total = 0;
    for (uint32_t r = 0; r < job->n_rank; r++) {
        const struct sim_rank *k = &job->rank[r];
        out->at[r] = arena_array(a, uint32_t, k->p->n_op + 1);
        out->missing[r] = arena_zeroed(a, k->p->n_op * sizeof(uint32_t));
        for (uint32_t op = 0; op < k->p->n_op; op++) {
            out->at[r][op] = total;
            if (problem_is_coll(k->p, op))
                total += out->missing[r][op] = k->call[op].n_part;
        }
        out->at[r][k->p->n_op] = total;
        for (uint32_t step = 0; step < k->p->n_op; step++) {
            uint32_t op = k->order ? k->order[step] : step;
            for (uint32_t i = 0; problem_is_coll(k->p, op) && i < k->call[op].n_part; i++) {
                const struct sim_part *x = &k->call[op].part[i];
                list[x->send][n[x->send]++] = (struct p2p){.src = x->send ? r : x->peer,
                                                           .dst = x->send ? x->peer : r,
                                                           .rank = r,
                                                           .op = op,
                                                           .tag = x->tag,
                                                           .step = step,
                                                           .item = i};
                out->with[out->at[r][op] + i] = (struct sim_met){NONE, NONE};
            }
        }
    }
    qsort(list[0], n[0], sizeof(**list), by_key);
    qsort(list[1], n[1], sizeof(**list), by_key);
    for (uint32_t i = 0, j = 0; i < n[0] && j < n[1];) {
        struct p2p *x = &list[0][i], *y = &list[1][j];
        if (key_order(x, y) == 0) {
            out->with[out->at[x->rank][x->op] + x->item] = (struct sim_met){y->rank, y->op};
            out->with[out->at[y->rank][y->op] + y->item] = (struct sim_met){x->rank, x->op};
            i++, j++;
        } else {
            if (key_order(x, y) < 0)
                i++;
            else
                j++;
        }
    }
}

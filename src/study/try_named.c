/* What PyTorch's own passes make of a graph: results to choose from, so that ours is never slower
 * than one of them, and starts for orders where they are not far behind. */
#include "rewrite/bucket/bucket.h"
#include "rewrite/ddp/ddp_passes.h"
#include "schedule/schedule.h"
#include "study/tries.h"

/* What is as PyTorch makes it. */
static tuck_status offer_theirs(struct search *s, const struct stage *x)
{
    bool fits;
    tuck_status st = try_offer(s, x, &fits);

    if (st == TUCK_OK && fits && x->e->time.makespan < s->theirs_ps)
        s->theirs_ps = x->e->time.makespan;
    return st;
}

/* Behind the best, which small changes made faster, but not by more than they may win. */
static bool is_near(const struct search *s, const struct stage *x)
{
    int64_t behind = x->e->time.makespan - s->best.ps;

    return x->e->peak <= s->limit && behind > 0 && behind <= s->best.ps / 50;
}

/* Fused as DDP's passes do it, each with its buckets after the last member and before the first
 * use; then in other orders. */
static tuck_status try_fused(struct search *s, const struct stage *from, const struct pass *pass)
{
    struct stage fused, scheduled = {.from = NULL}, timed[2] = {{.from = NULL}};
    struct stage changed = {.from = NULL};
    bool fits;
    tuck_status st = try_next(s, from, pass, NULL, 0, &fused);

    if (st != TUCK_OK || fused.g->revision == from->g->revision) {
        stage_end(&fused);
        return st;
    }
    st = offer_theirs(s, &fused);
    if (st == TUCK_OK)
        st = try_next(s, &fused, &pass_schedule_comm_wait, NULL, 0, &scheduled);
    if (st == TUCK_OK)
        st = offer_theirs(s, &scheduled);
    if (st == TUCK_OK)
        st = try_timed(s, &scheduled, timed);
    if (st == TUCK_OK && is_near(s, &timed[1]))
        st = try_improve(s, &timed[1], 1, &changed);
    if (st == TUCK_OK && changed.e != NULL)
        st = try_offer(s, &changed, &fits);
    stage_end(&changed);
    stage_end(&timed[1]);
    stage_end(&timed[0]);
    stage_end(&scheduled);
    stage_end(&fused);
    return st;
}

/* Bucketed as PyTorch does it, then collectives first and waits last. */
static tuck_status try_bucketed(struct search *s, const struct stage *first)
{
    static const struct pass *const pass[] = {&pass_bucket_all_gather, &pass_bucket_reduce_scatter,
                                              &pass_reorder_communication_preserving_peak_memory,
                                              &pass_sink_waits_iterative};
    enum { N = sizeof(pass) / sizeof(*pass) };
    struct stage at[N] = {{.from = NULL}};
    tuck_status st = TUCK_OK;

    for (uint32_t i = 0; i < N && st == TUCK_OK; i++) {
        st = try_next(s, i == 0 ? first : &at[i - 1], pass[i], NULL, 0, &at[i]);
        if (st == TUCK_OK && i == 1 && at[1].g->revision == first->g->revision)
            break;
        if (st == TUCK_OK)
            st = offer_theirs(s, &at[i]);
    }
    for (uint32_t i = N; i-- > 0;)
        stage_end(&at[i]);
    return st;
}

/* The order with the least memory, which fits if anything does. */
static tuck_status try_least(struct search *s, const struct stage *from)
{
    struct stage least;
    bool fits;
    tuck_status st = try_next(s, from, &pass_reorder_for_peak_memory, NULL, 0, &least);

    if (st == TUCK_OK)
        st = try_offer(s, &least, &fits);
    stage_end(&least);
    return st;
}

/* Larger graphs get their buckets from try_buckets() alone: each try costs tenths of a second. */
enum { MOST_NODES = 2000 };

tuck_status try_named(struct search *s, const struct stage *first)
{
    tuck_status st = s->less ? try_least(s, first) : TUCK_OK;

    if (st != TUCK_OK || s->o->effort == 0 || s->study->o->keep_order ||
        first->g->n_nodes > MOST_NODES)
        return st;
    st = try_bucketed(s, first);
    if (st == TUCK_OK)
        st = try_fused(s, first, &pass_fuse_ddp_with_concat_op);
    return st == TUCK_OK ? try_fused(s, first, &pass_fuse_ddp_with_coalesced_op) : st;
}

/* The orders that are tried for a graph whose buckets are decided. */
#include <inttypes.h>
#include <stdio.h>

#include "rewrite/loops.h"
#include "schedule/schedule.h"
#include "study/tries.h"

/* Which passes on orders may use memory beyond the current peak. Each may use all the spare memory,
 * so together they may use too much: then fewer of them may. */
enum spend { SPEND_ON_BOTH, SPEND_ON_COLLECTIVES, SPEND_NOTHING };

/* Moves collectives up, waits down, then collectives up again, then compute next to what is
 * exposed. */
enum { N_MOVES = 4 };

static tuck_status run_moves(struct search *s, const struct stage *from, enum spend spend,
                             struct stage at[N_MOVES])
{
    static const struct pass *const move[N_MOVES] = {
        &pass_reorder_communication_preserving_peak_memory, &pass_sink_waits_iterative,
        &pass_reorder_communication_preserving_peak_memory, &pass_simple_overlap};
    tuck_status st = TUCK_OK;

    for (uint32_t i = 0; i < N_MOVES && st == TUCK_OK; i++) {
        const char *option = i == 3                   ? NULL
                             : i != 1                 ? "reorder_iterative_peak_memory_budget"
                             : spend == SPEND_ON_BOTH ? "sink_iterative_peak_memory_budget"
                                                      : NULL;
        if (spend == SPEND_NOTHING)
            option = NULL;
        st = try_next(s, i == 0 ? from : &at[i - 1], move[i], option, s->budget, &at[i]);
    }
    return st;
}

/* All moves, then with fused loops. Fused loops may hold their operands longer: if the result does
 * not fit, the order without fusion is offered. */
static tuck_status try_moves(struct search *s, const struct stage *from, enum spend spend,
                             enum origin origin, bool *fits)
{
    struct stage at[N_MOVES] = {{.from = NULL}}, joined = {.from = NULL};
    tuck_status st = run_moves(s, from, spend, at);

    if (st == TUCK_OK)
        st = try_next(s, &at[N_MOVES - 1], &pass_join_loops, NULL, 0, &joined);
    if (st == TUCK_OK)
        st = try_offer(s, &joined, fits);
    if (st == TUCK_OK)
        st = try_start(s, &joined, origin);
    if (st == TUCK_OK && !*fits)
        st = try_offer(s, &at[N_MOVES - 1], fits);
    stage_end(&joined);
    for (uint32_t i = N_MOVES; i-- > 0;)
        stage_end(&at[i]);
    return st;
}

/* Tries what may fit: the moves with the spare memory, with less of it, or only moving compute. */
static tuck_status try_orders(struct search *s, const struct stage *start, enum origin origin)
{
    struct stage least = {.from = NULL}, overlap = {.from = NULL};
    tuck_status st = TUCK_OK;
    bool fits = false;

    if (s->less)
        st = try_next(s, start, &pass_reorder_for_peak_memory, NULL, 0, &least);
    const struct stage *from = s->less ? &least : start;
    for (int spend = s->budget > 0 ? SPEND_ON_BOTH : SPEND_NOTHING;
         spend <= SPEND_NOTHING && st == TUCK_OK && !fits; spend++)
        st = try_moves(s, from, (enum spend)spend, origin, &fits);
    if (st == TUCK_OK && !fits)
        st = try_next(s, from, &pass_simple_overlap, NULL, 0, &overlap);
    if (st == TUCK_OK && !fits)
        st = try_offer(s, &overlap, &fits);
    stage_end(&overlap);
    stage_end(&least);
    return st;
}

/* May what begins at x still win? Not where it is behind the best by more than one `part`th. */
static bool may_win(const struct search *s, const struct stage *x, int64_t part)
{
    return s->best.g == NULL || x->e->time.makespan - s->best.ps <= s->best.ps / part;
}

static tuck_status offer_timed(struct search *s, const struct stage *x)
{
    bool fits;
    tuck_status st = try_offer(s, x, &fits);

    if (st == TUCK_OK && fits && x->e->time.makespan < s->timed_ps)
        s->timed_ps = x->e->time.makespan;
    return st == TUCK_OK ? try_start(s, x, FROM_LIST) : st;
}

double try_spare(const struct search *s, int64_t peak)
{
    if (peak <= 0 || s->limit <= peak)
        return 0;
    return ((double)s->limit + 0.5) / (double)peak - 1;
}

tuck_status try_improve(struct search *s, const struct stage *from, int64_t part, struct stage *to)
{
    double share = try_spare(s, from->e->peak);
    char text[128] = "";
    int len = 0;

    if (from->e->peak > s->limit) /* whole bytes, as in try_spare() */
        len = snprintf(text, sizeof(text), "shrink=%.15g,allow_more_exposed=True",
                       1 - ((double)s->limit + 0.5) / (double)from->e->peak);
    else if (share > 0)
        len = snprintf(text, sizeof(text), "list_peak_memory_budget=%.15g", share);
    if (s->o->no_exact)
        len += snprintf(text + len, sizeof(text) - (size_t)len, "%sexact=0", len > 0 ? "," : "");
    if (part > 1)
        snprintf(text + len, sizeof(text) - (size_t)len, "%sevaluations=%" PRId64,
                 len > 0 ? "," : "", schedule_evaluations(from->e->problem->n_op) / part);
    return try_next_with(s, from, &pass_improve_order, text, false, to);
}

/* Few ops: searching takes no longer than anything else. */
static tuck_status try_few(struct search *s, const struct stage *from)
{
    enum { FEW_OPS = 24 };
    struct stage improved = {.from = NULL};

    if (s->o->effort == 0 || from->e->problem->n_op > FEW_OPS)
        return TUCK_OK;
    tuck_status st = try_improve(s, from, 1, &improved);
    if (st == TUCK_OK)
        st = offer_timed(s, &improved);
    stage_end(&improved);
    return st;
}

tuck_status try_timed(struct search *s, const struct stage *bucketed, struct stage timed[2])
{
    struct stage joined = {.from = NULL};
    const struct stage *from = bucketed;
    tuck_status st = TUCK_OK;

    timed[0] = timed[1] = (struct stage){.from = NULL};
    s->timed_ps = s->timed_front_ps = INT64_MAX;
    if (bucketed->e->peak > s->limit) {
        st = try_next_with(s, bucketed, &pass_reorder_for_peak_memory, "allow_more_exposed=True",
                           false, &timed[0]);
        from = &timed[0];
    }
    double share = st == TUCK_OK ? try_spare(s, from->e->peak) : 0;
    if (st == TUCK_OK)
        st = try_next(s, from, &pass_list_overlap, share > 0 ? "list_peak_memory_budget" : NULL,
                      share, &timed[1]);
    if (st == TUCK_OK && timed[1].e->peak <= s->limit)
        s->timed_front_ps = timed[1].report->pass.at[0].front_ps;
    bool join = st == TUCK_OK && may_win(s, &timed[1], 20);
    if (join)
        st = try_next(s, &timed[1], &pass_join_loops, NULL, 0, &joined);
    if (join && st == TUCK_OK)
        st = offer_timed(s, &joined);
    if (st == TUCK_OK)
        st = offer_timed(s, &timed[1]);
    if (st == TUCK_OK)
        st = try_few(s, &timed[1]);
    stage_end(&joined);
    return st;
}

/* Where an order begins from: one by time, one by PyTorch's list scheduling, the graph's own. */
tuck_status try_starts(struct search *s, const struct stage *bucketed)
{
    struct stage timed[2], listed = {.from = NULL};
    tuck_status st = try_timed(s, bucketed, timed);
    bool more = st == TUCK_OK && s->o->effort > 0 && may_win(s, &timed[1], 10);

    if (more)
        st = try_orders(s, &timed[1], FROM_LIST);
    stage_end(&timed[1]);
    stage_end(&timed[0]);
    if (st != TUCK_OK || !more)
        return st;
    st = try_next(s, bucketed, &pass_reorder_compute_for_overlap, NULL, 0, &listed);
    more = st == TUCK_OK && may_win(s, &listed, 10);
    if (more)
        st = try_orders(s, &listed, FROM_MOVES);
    bool same = st == TUCK_OK && listed.g->revision == bucketed->g->revision;
    stage_end(&listed);
    return st == TUCK_OK && more && !same ? try_orders(s, bucketed, FROM_MOVES) : st;
}

tuck_status try_rival(struct search *s, const struct stage *rival)
{
    struct stage repeated = {.from = NULL}, joined = {.from = NULL}, gathered = {.from = NULL},
                 again = {.from = NULL};
    const struct stage *base = NULL;
    bool fits;

    if (s->o->effort == 0 || !may_win(s, rival, 10))
        return TUCK_OK;
    tuck_status st = try_constants(s, rival, &repeated, &base);
    if (st == TUCK_OK)
        st = try_next(s, base, &pass_join_loops, NULL, 0, &joined);
    if (st == TUCK_OK)
        st = try_offer(s, &joined, &fits);
    if (st == TUCK_OK)
        st = try_next(s, &joined, &pass_gather_loops, NULL, 0, &gathered);
    if (st == TUCK_OK)
        st = try_next(s, &gathered, &pass_join_loops, NULL, 0, &again);
    if (st == TUCK_OK)
        st = try_starts(s, &again);
    stage_end(&again);
    stage_end(&gathered);
    stage_end(&joined);
    stage_end(&repeated);
    return st;
}

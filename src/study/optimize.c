/* Tuck's own passes: several ways to bucket are tried on copies, each with several orders; each
 * result is lowered and simulated, and the fastest within the memory limit is kept. If none is
 * faster, the graph stays unchanged, and the report says so. */
#include "study/optimize.h"

#include "op/ops.h"
#include "rewrite/bucket/bucket.h"
#include "rewrite/loops.h"
#include "rewrite/waits.h"
#include "schedule/schedule.h"
#include "study/judge.h"
#include "study/rival.h"
#include "study/stage.h"

struct best {
    tuck_graph *g; /* NULL if nothing is better than the original */
    tuck_report *report;
    int64_t ps, peak;
    int64_t least_ps; /* of those that fit: the best may be a little slower with less memory */
};

struct search {
    const struct optimize_options *o;
    const struct machine *machine;
    struct study *study;
    struct runner runner;
    tuck_diags *diags;
    struct best best;
    int64_t limit;    /* for the peak, in bytes */
    double budget;    /* for passes: the share by which the peak may grow; 0 if it may not */
    bool less;        /* the peak must shrink */
    struct gaps gaps; /* of the original graph */
    bool unbacked, communicates;
    struct report_rival rival; /* PyTorch's own */
};

/* The bucket cap in MiB for one kind of collective: the size that keeps the link of the largest
 * group busy. */
static double cap_mb(const struct search *s, const tuck_graph *g, tuck_coll coll, double share)
{
    struct cost_shape shape = {.p = 0};

    for (uint32_t i = 0; i < g->group.len; i++) {
        struct cost_shape own = shape_of_group(s->machine->cluster,
                                               graph_str(g, g->group.at[i].name),
                                               g->group.at[i].size, g->group.at[i].ranks);
        if (own.p > shape.p)
            shape = own;
    }
    if (shape.p < 2)
        return 25;
    double mb = share *
                (double)cost_saturation(s->machine->cluster, shape, coll, 0.9,
                                        &s->machine->cost.collective) /
                1048576;
    return mb < 1 ? 1 : mb > 2000 ? 2000 : mb;
}

/* ---- stages ---- */

static tuck_status next(struct search *s, const struct stage *from, const struct pass *pass,
                        const char *option, double value, struct stage *to)
{
    return stage_next(&s->runner, from, pass, option, value, s->diags, to);
}

static tuck_status next_bucket(struct search *s, const struct stage *from, const struct pass *pass,
                               tuck_coll coll, double share, struct stage *to)
{
    return next(s, from, pass, "cap_mb", cap_mb(s, from->g, coll, share), to);
}

/* A thousandth of the time is not worth more memory. */
static bool is_better(const struct search *s, int64_t ps, int64_t peak)
{
    const struct best *b = &s->best;
    int64_t slack = b->least_ps / 1000;

    if (b->g == NULL || ps + slack < b->ps)
        return ps < b->ps;
    return ps <= b->least_ps + slack && (peak < b->peak || (peak == b->peak && ps < b->ps));
}

static tuck_status take(struct search *s, const struct stage *x)
{
    struct best b = {.ps = x->e->time.makespan, .peak = x->e->peak};

    b.least_ps = s->best.g != NULL && s->best.least_ps < b.ps ? s->best.least_ps : b.ps;
    tuck_status st = stage_report(x, &b.report);
    if (st != TUCK_OK)
        return st;
    b.g = graph_clone(x->g);
    if (b.g == NULL) {
        tuck_report_free(b.report);
        return TUCK_ENOMEM;
    }
    study_best(s->study, x->e);
    graph_free(s->best.g);
    tuck_report_free(s->best.report);
    s->best = b;
    return TUCK_OK;
}

/* Take x if it fits and is the best so far. */
static tuck_status offer(struct search *s, const struct stage *x, bool *fits)
{
    *fits = x->e->peak <= s->limit;
    return *fits && is_better(s, x->e->time.makespan, x->e->peak) ? take(s, x) : TUCK_OK;
}

/* ---- orders ---- */

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
        st = next(s, i == 0 ? from : &at[i - 1], move[i], option, s->budget, &at[i]);
    }
    return st;
}

/* All moves, then with fused loops. Fused loops may hold their operands longer: if the result does
 * not fit, the order without fusion is offered. */
static tuck_status try_moves(struct search *s, const struct stage *from, enum spend spend,
                             bool *fits)
{
    struct stage at[N_MOVES] = {{.from = NULL}}, joined = {.from = NULL};
    tuck_status st = run_moves(s, from, spend, at);

    if (st == TUCK_OK)
        st = next(s, &at[N_MOVES - 1], &pass_join_loops, NULL, 0, &joined);
    if (st == TUCK_OK)
        st = offer(s, &joined, fits);
    if (st == TUCK_OK && !*fits)
        st = offer(s, &at[N_MOVES - 1], fits);
    stage_end(&joined);
    for (uint32_t i = N_MOVES; i-- > 0;)
        stage_end(&at[i]);
    return st;
}

/* Tries what may fit: the moves with the spare memory, with less of it, or only moving compute. */
static tuck_status try_orders(struct search *s, const struct stage *start)
{
    struct stage least = {.from = NULL}, overlap = {.from = NULL};
    tuck_status st = TUCK_OK;
    bool fits = false;

    if (s->less)
        st = next(s, start, &pass_reorder_for_peak_memory, NULL, 0, &least);
    const struct stage *from = s->less ? &least : start;
    for (int spend = s->budget > 0 ? SPEND_ON_BOTH : SPEND_NOTHING;
         spend <= SPEND_NOTHING && st == TUCK_OK && !fits; spend++)
        st = try_moves(s, from, (enum spend)spend, &fits);
    if (st == TUCK_OK && !fits)
        st = next(s, from, &pass_simple_overlap, NULL, 0, &overlap);
    if (st == TUCK_OK && !fits)
        st = offer(s, &overlap, &fits);
    stage_end(&overlap);
    stage_end(&least);
    return st;
}

/* By time, and then with loops joined. */
static tuck_status try_timed(struct search *s, const struct stage *bucketed, struct stage *timed)
{
    struct stage joined = {.from = NULL};
    const char *option = s->budget > 0 ? "list_peak_memory_budget" : NULL;
    tuck_status st = next(s, bucketed, &pass_list_overlap, option, s->budget, timed);
    bool fits = false;

    if (st == TUCK_OK)
        st = next(s, timed, &pass_join_loops, NULL, 0, &joined);
    if (st == TUCK_OK)
        st = offer(s, &joined, &fits);
    if (st == TUCK_OK)
        st = offer(s, timed, &fits);
    stage_end(&joined);
    return st;
}

/* May orders that begin at x still win? Not where x is far behind: they gain little on it. */
static bool may_win(const struct search *s, const struct stage *x)
{
    return s->best.g == NULL || x->e->time.makespan - s->best.ps <= s->best.ps / 10;
}

/* Where an order begins from: one by time, one by PyTorch's list scheduling, the graph's own. */
static tuck_status try_starts(struct search *s, const struct stage *bucketed)
{
    struct stage timed = {.from = NULL}, listed = {.from = NULL};
    tuck_status st = try_timed(s, bucketed, &timed);
    bool more = st == TUCK_OK && may_win(s, &timed);

    if (more)
        st = try_orders(s, &timed);
    stage_end(&timed);
    if (st != TUCK_OK || !more)
        return st;
    st = next(s, bucketed, &pass_reorder_compute_for_overlap, NULL, 0, &listed);
    more = st == TUCK_OK && may_win(s, &listed);
    if (more)
        st = try_orders(s, &listed);
    bool same = st == TUCK_OK && listed.g->revision == bucketed->g->revision;
    stage_end(&listed);
    return st == TUCK_OK && more && !same ? try_orders(s, bucketed) : st;
}

/* ---- buckets ---- */

/* Gathers are bucketed last: their buckets are written in place, and other rewrites leave those
 * alone. */
static tuck_status try_gathers(struct search *s, const struct stage *from, double share)
{
    struct stage x = {.from = NULL};
    tuck_status st = next_bucket(s, from, &pass_bucket_all_gather, TUCK_ALL_GATHER, share, &x);

    if (st == TUCK_OK && x.g->revision != from->g->revision)
        st = try_starts(s, &x);
    stage_end(&x);
    return st;
}

/* Puts reduce-scatters and all-reduces into buckets of that share of the size that keeps the link
 * busy; then the gathers as well. */
static tuck_status try_buckets(struct search *s, const struct stage *from, double share)
{
    struct stage x = {.from = NULL}, y = {.from = NULL};
    tuck_status st = next_bucket(s, from, &pass_bucket_reduce_scatter, TUCK_REDUCE_SCATTER, share,
                                 &x);

    if (st == TUCK_OK)
        st = next_bucket(s, &x, &pass_bucket_all_reduce, TUCK_ALL_REDUCE, share, &y);
    if (st == TUCK_OK)
        st = try_gathers(s, &y, share);
    if (st == TUCK_OK && y.g->revision != from->g->revision)
        st = try_starts(s, &y);
    stage_end(&y);
    stage_end(&x);
    return st;
}

/* FSDP's own alone, of parameters and gradients: others are on the way of the compute. */
static tuck_status try_fsdp_buckets(struct search *s, const struct stage *from, double share)
{
    struct stage x = {.from = NULL}, y = {.from = NULL}, z = {.from = NULL}, timed = {.from = NULL};
    tuck_status st = next_bucket(s, from, &pass_bucket_fsdp_reduce_scatter, TUCK_REDUCE_SCATTER,
                                 share, &x);

    if (st == TUCK_OK)
        st = next_bucket(s, &x, &pass_bucket_fsdp_all_gather, TUCK_ALL_GATHER, share, &y);
    if (st == TUCK_OK && y.g->revision != from->g->revision)
        st = try_timed(s, &y, &timed);
    stage_end(&timed);
    if (st == TUCK_OK)
        st = next_bucket(s, &y, &pass_bucket_all_reduce, TUCK_ALL_REDUCE, share, &z);
    if (st == TUCK_OK && z.g->revision != y.g->revision)
        st = try_timed(s, &z, &timed);
    stage_end(&timed);
    stage_end(&z);
    stage_end(&y);
    stage_end(&x);
    return st;
}

/* ---- the whole ---- */

/* Are there two collectives that could be one? */
static bool has_candidates(const tuck_graph *g)
{
    uint32_t n = 0;

    for_each_node (g, k)
        n += (op_at(node_op(g, k))->flags &
              (OP_F_ALL_GATHER | OP_F_REDUCE_SCATTER | OP_F_ALL_REDUCE)) != 0;
    return n > 1;
}

static void fill_gain(const struct evaluation *e, tuck_gain *out, bool after)
{
    judge_times(e, after ? &out->after : &out->before);
    if (!after)
        judge_bound(e, out);
}

static int64_t limit_of(const struct optimize_options *o, int64_t peak)
{
    double limit = (double)peak * (1 + o->memory_share) + (double)o->memory_more;

    if (o->memory > 0)
        return o->memory;
    return limit < 9e18 ? (int64_t)limit : INT64_MAX;
}

/* Tries every way to bucket with every order. */
static tuck_status try_own(struct search *s, const struct stage *first)
{
    const tuck_graph *g = first->g;
    struct stage x;
    tuck_status st = next(s, first, &pass_deduplicate_wait_tensors, NULL, 0, &x);

    if (st == TUCK_OK)
        st = try_starts(s, &x);
    if (st == TUCK_OK && has_candidates(g))
        st = try_buckets(s, &x, 1);
    if (st == TUCK_OK && has_candidates(g))
        st = try_buckets(s, &x, 0.25);
    for (double share = 0.5; share <= 4 && st == TUCK_OK && has_candidates(g); share *= 2)
        st = try_fsdp_buckets(s, &x, share);
    stage_end(&x);
    return st;
}

/* PyTorch's own, and everything of ours; the best is in s->best. Less memory for a little more time
 * is no reason to be slower than PyTorch. */
static tuck_status try_all(struct search *s, tuck_graph *g, struct evaluation *e)
{
    struct stage first;
    struct rival rival;

    stage_first(&first, g, e);
    tuck_status st = rival_run(&s->runner, &first, &rival);
    rival_report(&rival, s->limit, &s->rival);
    if (st == TUCK_OK)
        st = try_own(s, &first);
    if (st == TUCK_OK && s->rival.fits && s->rival.times.step_ps < s->best.ps)
        st = take(s, &rival.stage);
    rival_end(&rival);
    return st;
}

/* Finds out about the original graph before anything is tried. */
static tuck_status look(struct search *s, tuck_graph *g, struct evaluation *e, tuck_gain *gain)
{
    s->limit = gain->memory_limit = limit_of(s->o, e->peak);
    s->less = s->limit < e->peak;
    /* Whole bytes, whatever a product of doubles is rounded to. */
    s->budget = e->peak > 0 && s->limit > e->peak ? ((double)s->limit + 0.5) / (double)e->peak - 1
                                                  : 0;
    s->best.ps = s->less ? INT64_MAX : e->time.makespan;
    s->gaps = e->gaps;
    s->unbacked = e->program->used_default;
    s->communicates = evaluation_communicates(e);
    tuck_status st = study_bounds(s->study, g, e);
    fill_gain(e, gain, false);
    gain->after = gain->before;
    return st == TUCK_OK ? gaps_tell(e->program, s->machine->strict, s->diags) : st;
}

/* Evaluates the original graph, tries everything, and takes the best. */
static tuck_status search(struct search *s, tuck_graph *g, tuck_gain *gain, tuck_report **report)
{
    struct evaluation *e;
    tuck_status st = study_get(s->study, g, s->diags, &e);

    if (st != TUCK_OK)
        return st;
    st = look(s, g, e, gain);
    if (st == TUCK_OK)
        st = try_all(s, g, e);
    study_give_back(e);
    gain->over_limit = s->less && s->best.g == NULL;
    if (st != TUCK_OK || s->best.g == NULL)
        return st;
    fill_gain(s->study->best, gain, true);
    gain->changed = true;
    graph_swap(g, s->best.g);
    tuck_report_free(*report);
    *report = s->best.report;
    s->best.report = NULL;
    return TUCK_OK;
}

struct remember_args {
    tuck_report *report;
    const struct search *s;
    const tuck_graph *g;
};

static void do_remember(void *arg)
{
    struct remember_args *x = arg;
    tuck_report *t = x->report;

    t->judged = true;
    t->rival = x->s->rival;
    t->ops_unknown = x->s->gaps.n_unknown;
    t->buffers_unknown = x->s->gaps.n_buf;
    t->unbacked = x->s->unbacked;
    t->remark = x->s->communicates ? NULL : evaluation_no_collectives;
    report_assume(t, x->g, x->s->machine->cluster);
}

static tuck_status search_and_report(struct search *s, tuck_graph *g, tuck_gain *gain,
                                     tuck_report **report)
{
    tuck_status st = search(s, g, gain, report);

    tuck_graph_free(s->best.g);
    tuck_report_free(s->best.report);
    struct remember_args about = {*report, s, g};
    if (st == TUCK_OK && !mem_guard(&(*report)->mem, do_remember, &about))
        st = TUCK_ENOMEM;
    (*report)->gain = *gain;
    return st;
}

tuck_status optimize_graph(struct study *study, tuck_graph *g, const struct optimize_options *o,
                           tuck_diags *diags, tuck_gain *gain_out, tuck_report **report_out)
{
    struct search s = {.diags = diags, .o = o, .study = study, .machine = study->o->machine};
    tuck_gain gain = {.changed = false};

    s.runner = (struct runner){.study = study, .observer = o->observer};
    tuck_report *report = report_new(&g->store->mem.alloc); /* of a graph that stays as it is */
    tuck_status st = report ? runner_check_input(g, diags) : TUCK_ENOMEM;
    if (st == TUCK_OK)
        st = search_and_report(&s, g, &gain, &report);
    if (st == TUCK_OK && gain_out != NULL)
        *gain_out = gain;
    if (st == TUCK_OK && report_out != NULL)
        *report_out = report;
    else
        tuck_report_free(report);
    return st;
}

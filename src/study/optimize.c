/* The default pipeline: several pipelines are tried on copies, each result is lowered and
 * simulated, and the fastest that fits the memory limit is kept. If none is faster, the graph stays
 * unchanged, and the report says so. */
#include "rewrite/bucket/bucket.h"
#include "op/ops.h"
#include "rewrite/loops.h"
#include "rewrite/waits.h"
#include "study/judge.h"
#include "study/optimize.h"
#include "study/pass_table.h"
#include "schedule/schedule.h"

/* The orderings that are tried after each way to bucket. The next one is tried if a result
 * needs more memory: fused loops may hold their operands longer, and buckets hold all of theirs
 * at once. */
static const struct pass *const orderings[][5] = {
    {&pass_reorder_communication_preserving_peak_memory, &pass_sink_waits_iterative,
     &pass_reorder_communication_preserving_peak_memory, &pass_simple_overlap, &pass_join_loops},
    {&pass_reorder_communication_preserving_peak_memory, &pass_sink_waits_iterative,
     &pass_reorder_communication_preserving_peak_memory, &pass_simple_overlap},
    {&pass_simple_overlap},
};

enum { N_ORDERINGS = sizeof(orderings) / sizeof(*orderings) };

/* Bucket sizes, as shares of the size that keeps the link busy; 0 means no buckets. */
struct way {
    double gathers, others;
};

static const struct way ways[] = {{0, 0}, {1, 1}, {0.25, 0.25}, {0, 1}, {0, 0.25}};

#define N_WAYS (sizeof(ways) / sizeof(*ways))

struct trial {
    tuck_graph *g;
    tuck_report *report;
    int64_t ps, peak;
};

struct search {
    const struct optimize_options *o;
    const struct machine *machine;
    struct study *study;
    struct runner runner;
    tuck_diags *diags;
    struct trial best;
    tuck_allocator alloc;
    int64_t limit;    /* for the peak, in bytes */
    double budget;    /* for passes: the share by which the peak may grow; 0 if it may not */
    bool less;        /* the peak must shrink */
    struct gaps gaps; /* of the original graph */
    bool unbacked, communicates;
};

static tuck_status judge(struct search *s, tuck_graph *g, int64_t *ps, int64_t *peak)
{
    struct evaluation *e;
    tuck_status st = study_get(s->study, g, s->diags, &e);

    if (st != TUCK_OK)
        return st;
    *ps = e->time.makespan;
    *peak = e->peak;
    study_give_back(e);
    return TUCK_OK;
}

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

/* ---- one trial ---- */

/* Which passes on orders may use memory beyond the current peak. */
enum spend { SPEND_ON_BOTH, SPEND_ON_COLLECTIVES, SPEND_NOTHING };

struct recipe {
    const struct search *s;
    const tuck_graph *g;
    const struct way *way;
    bool list_first; /* list scheduling comes first, see below */
    uint32_t ordering;
    uint32_t spend; /* enum spend */
    struct pipeline p;
};

/* A pass on orders, with its share of the spare memory. */
static void push_order(struct recipe *r, const struct pass *pass)
{
    const char *option = pass == &pass_reorder_communication_preserving_peak_memory
                             ? "reorder_iterative_peak_memory_budget"
                         : pass == &pass_sink_waits_iterative && r->spend == SPEND_ON_BOTH
                             ? "sink_iterative_peak_memory_budget"
                             : NULL;

    if (r->spend == SPEND_NOTHING)
        option = NULL;
    pipeline_push(&r->p, pass, option, r->s->budget);
}

/* All-gathers are bucketed last: their buckets are written in place, and other rewrites leave those
 * alone. List scheduling hides collectives that moving them one by one does not; if it ends in a
 * worse place, the graph's own order may be the better start. */
static void do_write_recipe(void *arg)
{
    struct recipe *r = arg;
    double cap;

    pipeline_push(&r->p, &pass_deduplicate_wait_tensors, NULL, 0);
    if (r->way->others > 0) {
        cap = cap_mb(r->s, r->g, TUCK_REDUCE_SCATTER, r->way->others);
        pipeline_push(&r->p, &pass_bucket_reduce_scatter, "cap_mb", cap);
        cap = cap_mb(r->s, r->g, TUCK_ALL_REDUCE, r->way->others);
        pipeline_push(&r->p, &pass_bucket_all_reduce, "cap_mb", cap);
    }
    if (r->way->gathers > 0) {
        cap = cap_mb(r->s, r->g, TUCK_ALL_GATHER, r->way->gathers);
        pipeline_push(&r->p, &pass_bucket_all_gather, "cap_mb", cap);
    }
    if (r->list_first)
        pipeline_push(&r->p, &pass_reorder_compute_for_overlap, NULL, 0);
    if (r->s->less)
        pipeline_push(&r->p, &pass_reorder_for_peak_memory, NULL, 0);
    for (uint32_t i = 0; i < 5 && orderings[r->ordering][i] != NULL; i++)
        push_order(r, orderings[r->ordering][i]);
}

/* Runs each step and records the time and memory of the graph after it. */
static tuck_status run_steps(struct search *s, const struct pipeline *p, struct trial *t)
{
    const struct runner *r = &s->runner;
    tuck_status st = TUCK_OK;

    for (uint32_t i = 0; i < p->step.len && st == TUCK_OK; i++) {
        const struct pipeline_step *step = &p->step.at[i];

        if (!observe(&r->observer, step->pass->name, i, false, t->g))
            return TUCK_EIO;
        st = runner_step(r, step, t->g, t->report, s->diags);
        if (st == TUCK_OK)
            st = judge(s, t->g, &t->ps, &t->peak);
        if (st != TUCK_OK)
            break;
        struct pass_report *row = &t->report->pass.at[t->report->pass.len - 1];
        row->judged = true;
        row->step_ps = t->ps;
        row->step_peak = t->peak;
        if (!observe(&r->observer, step->pass->name, i, true, t->g))
            return TUCK_EIO;
    }
    return st;
}

/* Runs one recipe on a clone and keeps the result if it is the best so far. Sets *fits if it is
 * within the memory limit. */
static tuck_status try_one(struct search *s, struct recipe *recipe, int64_t peak_limit, bool *fits,
                           int64_t *ps)
{
    struct trial t = {.g = graph_clone(recipe->g), .report = report_new(&s->alloc)};
    tuck_status st = TUCK_ENOMEM;

    pipeline_init(&recipe->p, &all_passes, &s->alloc);
    if (t.g != NULL && t.report != NULL && mem_guard(&recipe->p.mem, do_write_recipe, recipe))
        st = run_steps(s, &recipe->p, &t);
    pipeline_destroy(&recipe->p);
    *ps = t.ps;
    *fits = st == TUCK_OK && t.peak <= peak_limit;
    if (*fits && t.ps < s->best.ps) {
        struct trial old = s->best;
        s->best = t;
        t = old;
    }
    tuck_graph_free(t.g);
    tuck_report_free(t.report);
    return st;
}

/* Sets *ps to the time of the last recipe that was tried. */
static tuck_status try_way(struct search *s, const tuck_graph *g, const struct way *w,
                           bool list_first, int64_t peak_limit, int64_t *ps)
{
    struct recipe r = {.s = s, .g = g, .way = w, .list_first = list_first};
    tuck_status st = TUCK_OK;
    bool fits = false;

    /* Each pass may use all the spare memory, so together they may use too much: then fewer of them
     * may. */
    r.spend = s->budget > 0 ? SPEND_ON_BOTH : SPEND_NOTHING;
    for (; r.spend <= SPEND_NOTHING && st == TUCK_OK && !fits; r.spend++)
        for (r.ordering = 0; r.ordering < N_ORDERINGS && st == TUCK_OK && !fits; r.ordering++)
            st = try_one(s, &r, peak_limit, &fits, ps);
    return st;
}

/* Are there two collectives that could be merged? */
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
    if (after)
        return;
    out->bound_ps = e->any.ps;
    out->bound_kind = bound_name(e->any.kind);
    out->bound_meaning = evaluation_meaning(e);
}

static int64_t limit_of(const struct optimize_options *o, int64_t peak)
{
    double limit = (double)peak * (1 + o->memory_share) + (double)o->memory_more;

    if (o->memory > 0)
        return o->memory;
    return limit < 9e18 ? (int64_t)limit : INT64_MAX;
}

/* Evaluates the original graph, tries every way to bucket with every start that may win, and takes
 * the best. */
static tuck_status search(struct search *s, tuck_graph *g, tuck_gain *gain, tuck_report **report)
{
    struct evaluation *e;
    tuck_status st = study_get(s->study, g, s->diags, &e);

    if (st != TUCK_OK)
        return st;
    int64_t peak_limit = s->limit = limit_of(s->o, e->peak);
    s->less = peak_limit < e->peak;
    /* Half a byte more, so that rounding does not lose a byte. */
    s->budget = e->peak > 0 && peak_limit > e->peak
                    ? ((double)peak_limit + 0.5) / (double)e->peak - 1
                    : 0;
    s->best.ps = s->less ? INT64_MAX : e->time.makespan;
    gain->memory_limit = peak_limit;
    st = study_bounds(s->study, g, e);
    fill_gain(e, gain, false);
    s->gaps = e->gaps;
    s->unbacked = e->program->used_default;
    s->communicates = evaluation_communicates(e);
    if (st == TUCK_OK)
        st = gaps_tell(e->program, s->machine->strict, s->diags);
    study_give_back(e);

    size_t n = has_candidates(g) ? N_WAYS : 1;
    int64_t took[N_WAYS], other;
    for (size_t i = 0; i < n && st == TUCK_OK; i++)
        st = try_way(s, g, &ways[i], true, peak_limit, &took[i]);
    for (size_t i = 0; i < n && st == TUCK_OK; i++)
        if (s->best.g == NULL || took[i] - s->best.ps <= s->best.ps / 10)
            st = try_way(s, g, &ways[i], false, peak_limit, &other);
    gain->after = gain->before;
    gain->over_limit = s->less && s->best.g == NULL;
    if (st != TUCK_OK || s->best.g == NULL)
        return st;
    st = study_get(s->study, s->best.g, s->diags, &e);
    if (st != TUCK_OK)
        return st;
    fill_gain(e, gain, true);
    study_give_back(e);
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

    s.alloc = g->store->mem.alloc;
    s.runner = (struct runner){.study = study, .observer = o->observer};
    tuck_report *report = report_new(&s.alloc); /* for a graph that stays unchanged */
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

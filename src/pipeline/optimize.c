/* The pipeline that Tuck stands behind: several are tried on copies, each result is lowered and simulated, and the
 * fastest that needs no more memory than the graph as it came is kept. Where none is faster, the graph stays as it
 * was, and the report says so. */
#include <stdio.h>

#include "fx/ops.h"
#include "pass/report.h"
#include "pipeline/evaluate.h"
#include "pipeline/hints.h"

/* Behind every way to bucket, and by itself. The next one is tried where the result of one needs more memory: loops
 * that become one may hold their operands longer, and buckets hold theirs together. */
#define BOTH_WAYS                                                                                  \
    "reorder_communication_preserving_peak_memory,sink_waits_iterative,"                           \
    "reorder_communication_preserving_peak_memory,simple_overlap"

static const char *const orderings[] = {BOTH_WAYS ",join_loops", BOTH_WAYS, "simple_overlap"};

/* Before those. List scheduling gives collectives compute to hide behind that moving them one by one does not find;
 * where it ends in a worse place, the order of the graph may be the better start. */
static const char *const starts[] = {"reorder_compute_for_overlap,", ""};

/* Bucket sizes, as shares of the size that keeps the link busy; 0: no buckets. */
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
    const tuck_run_options *run;
    struct evaluate_options eval;
    tuck_diags *diags;
    struct trial best;
    /* Of the trial under way: what the graph took before its first step and after each. */
    VEC(int64_t) ps;
    VEC(int64_t) peak;
    struct mem mem;
    tuck_status status;
};

static tuck_status judge(struct search *s, const tuck_graph *g, int64_t *ps, int64_t *peak)
{
    struct evaluation e;
    tuck_graph *copy; /* lowering infers types, and the graph is only looked at */
    tuck_status st = tuck_graph_copy(g, &copy);

    if (st != TUCK_OK)
        return st;
    struct evaluate_options o = s->eval;
    o.no_bounds = true;
    st = evaluate_graph(copy, &o, s->diags, &e);
    *ps = e.time.makespan;
    *peak = e.peak;
    evaluate_end(&e);
    tuck_graph_free(copy);
    return st;
}

struct push_args {
    struct search *s;
    int64_t ps, peak;
};

static void do_push(void *arg)
{
    struct push_args *x = arg;

    vec_push(&x->s->mem, &x->s->ps, x->ps);
    vec_push(&x->s->mem, &x->s->peak, x->peak);
}

/* After each step: what did it gain? */
static bool after_step(void *ctx, const char *pass, size_t step, bool after, const tuck_graph *g)
{
    struct search *s = ctx;
    struct push_args x = {.s = s};

    if (!after) {
        if (s->run->observe != NULL && !s->run->observe(s->run->ctx, pass, step, after, g))
            return false;
        return true;
    }
    s->status = judge(s, g, &x.ps, &x.peak);
    if (s->status == TUCK_OK && !mem_guard(&s->mem, do_push, &x))
        s->status = TUCK_ENOMEM;
    if (s->status == TUCK_OK && s->run->observe != NULL &&
        !s->run->observe(s->run->ctx, pass, step, after, g))
        s->status = TUCK_EIO;
    return s->status == TUCK_OK;
}

/* The cap in MiB for collectives of a kind: the size that keeps the link of the largest group busy. */
static double cap_mb(const struct search *s, const tuck_graph *g, tuck_coll coll, double share)
{
    struct cost_shape shape = {.p = 0};

    for (uint32_t i = 0; i < g->group.len; i++)
        if (g->group.at[i].size > shape.p)
            shape = shape_of_group(s->eval.cluster, graph_str(g, g->group.at[i].name),
                                   g->group.at[i].size, g->group.at[i].ranks);
    if (shape.p < 2)
        return 25;
    double mb = share *
                (double)cost_saturation(s->eval.cluster, shape, coll, 0.9,
                                        &s->eval.cost.collective) /
                1048576;
    return mb < 1 ? 1 : mb > 2000 ? 2000 : mb;
}

static void describe(const struct search *s, const tuck_graph *g, const struct way *w,
                     const char *start, const char *ordering, char *text, size_t size)
{
    char ag[64] = "", others[160] = "";

    if (w->gathers > 0)
        snprintf(ag, sizeof(ag), "bucket_all_gather(cap_mb=%.4g),",
                 cap_mb(s, g, TUCK_ALL_GATHER, w->gathers));
    if (w->others > 0)
        snprintf(others, sizeof(others),
                 "bucket_reduce_scatter(cap_mb=%.4g),bucket_all_reduce(cap_mb=%.4g),",
                 cap_mb(s, g, TUCK_REDUCE_SCATTER, w->others),
                 cap_mb(s, g, TUCK_ALL_REDUCE, w->others));
    /* All-gathers last: their buckets are written in place, which other rewrites stay away from. */
    snprintf(text, size, "deduplicate_wait_tensors,%s%s%s%s", others, ag, start, ordering);
}

/* Run one pipeline on a copy and keep it, if it is the best so far. *fits: it needs no more memory. */
static tuck_status try_one(struct search *s, const tuck_graph *g, const struct way *w,
                           const char *start, const char *ordering, int64_t peak_limit, bool *fits)
{
    char text[512];
    tuck_pipeline *p = NULL;
    struct trial t = {.g = NULL};
    tuck_run_options run = *s->run;

    describe(s, g, w, start, ordering, text, sizeof(text));
    tuck_status st = tuck_pipeline_parse(text, strlen(text), "default", &s->mem.alloc, s->diags,
                                         &p);
    if (st == TUCK_OK)
        st = tuck_graph_copy(g, &t.g);
    s->ps.len = s->peak.len = 0;
    run.observe = after_step;
    run.ctx = s;
    if (st == TUCK_OK)
        st = tuck_pipeline_run(p, t.g, &run, s->diags, &t.report);
    if (st == TUCK_EIO && s->status != TUCK_OK)
        st = s->status; /* it was judging that went wrong */
    tuck_pipeline_free(p);
    if (st == TUCK_OK) {
        t.ps = s->ps.at[s->ps.len - 1];
        t.peak = s->peak.at[s->peak.len - 1];
        for (uint32_t i = 0; i < t.report->pass.len && i < s->ps.len; i++) {
            t.report->pass.at[i].judged = true;
            t.report->pass.at[i].step_ps = s->ps.at[i];
            t.report->pass.at[i].step_peak = s->peak.at[i];
        }
    }
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

/* *ps: what the last one that was tried takes. */
static tuck_status try_way(struct search *s, const tuck_graph *g, const struct way *w,
                           const char *start, int64_t peak_limit, int64_t *ps)
{
    tuck_status st = TUCK_OK;
    bool fits = false;

    for (size_t i = 0; i < sizeof(orderings) / sizeof(*orderings) && st == TUCK_OK && !fits; i++)
        st = try_one(s, g, w, start, orderings[i], peak_limit, &fits);
    *ps = st == TUCK_OK ? s->ps.at[s->ps.len - 1] : 0;
    return st;
}

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
    tuck_times t = {.step_ns = (double)e->time.makespan / 1e3,
                    .compute_ns = (double)e->time.compute / 1e3,
                    .comm_ns = (double)e->time.comm / 1e3,
                    .exposed_ns = (double)e->time.exposed / 1e3,
                    .peak_bytes = e->peak};

    if (after) {
        out->after = t;
        return;
    }
    out->before = t;
    out->bound_ns = (double)e->any.ps / 1e3;
    out->bound_kind = bound_name(e->any.kind);
    out->bound_meaning = bound_meaning(e->any.kind);
}

static tuck_status search(struct search *s, tuck_graph *g, tuck_gain *gain, tuck_report **report)
{
    struct evaluation e;
    tuck_graph *copy;
    tuck_status st = tuck_graph_copy(g, &copy);

    if (st != TUCK_OK)
        return st;
    st = evaluate_graph(copy, &s->eval, s->diags, &e);
    if (st == TUCK_OK)
        fill_gain(&e, gain, false);
    int64_t peak_limit = e.peak;
    s->best.ps = e.time.makespan;
    evaluate_end(&e);
    tuck_graph_free(copy);
    size_t n = has_candidates(g) ? N_WAYS : 1;
    int64_t took[N_WAYS], other;
    for (size_t i = 0; i < n && st == TUCK_OK; i++)
        st = try_way(s, g, &ways[i], starts[0], peak_limit, &took[i]);
    for (size_t i = 0; i < n && st == TUCK_OK; i++)
        if (took[i] - s->best.ps <= s->best.ps / 10) /* it may still win */
            st = try_way(s, g, &ways[i], starts[1], peak_limit, &other);
    gain->after = gain->before;
    if (st != TUCK_OK || s->best.g == NULL)
        return st;
    st = evaluate_graph(s->best.g, &s->eval, s->diags, &e);
    if (st == TUCK_OK) {
        fill_gain(&e, gain, true);
        gain->changed = true;
        graph_swap(g, s->best.g);
        tuck_report_free(*report);
        *report = s->best.report;
        s->best.report = NULL;
    }
    evaluate_end(&e);
    return st;
}

tuck_status tuck_graph_optimize(tuck_graph *g, const tuck_run_options *options, tuck_diags *diags,
                                tuck_gain *gain_out, tuck_report **report_out)
{
    tuck_run_options run = options ? *options : (tuck_run_options){.n_hints = 0};
    struct search s = {.run = &run, .diags = diags};
    tuck_cluster *own = NULL;
    tuck_gain gain = {.changed = false};

    if (g == NULL)
        return TUCK_EINVAL;
    mem_init(&s.mem, &g->store->mem.alloc);
    tuck_report *report = report_new(&s.mem.alloc); /* of a graph that stays as it is */
    tuck_status st = report ? tuck_graph_infer(g, false, NULL) : TUCK_ENOMEM;
    if (st == TUCK_OK && run.cluster == NULL) {
        st = tuck_cluster_for_graph(g, &s.mem.alloc, diags, &own);
        run.cluster = own;
    }
    evaluate_defaults(&s.eval);
    s.eval.cluster = run.cluster;
    s.eval.cost = cost_options_of(run.cost);
    struct hints hints = {.g = g, .run = &run};
    if (st == TUCK_OK)
        st = hints_intern(&hints);
    if (st == TUCK_OK) {
        s.eval.hint = hints.at;
        s.eval.n_hint = run.n_hints;
        st = search(&s, g, &gain, &report);
    }
    hints_free(&hints);
    tuck_graph_free(s.best.g);
    tuck_report_free(s.best.report);
    vec_free(&s.mem, &s.ps);
    vec_free(&s.mem, &s.peak);
    tuck_cluster_free(own);
    if (report != NULL) {
        report->judged = true;
        report->gain = gain;
    }
    if (st == TUCK_OK && gain_out != NULL)
        *gain_out = gain;
    if (st == TUCK_OK && report_out != NULL)
        *report_out = report;
    else
        tuck_report_free(report);
    return st;
}

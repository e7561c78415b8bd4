#include "study/rival.h"

#include <stdio.h>

#include "rewrite/bucket/bucket.h"
#include "study/judge.h"
#include "study/pass_table.h"

/* ---- is it sound? ---- */

/* What PyTorch does not check before it merges: is its operand or its result written in between,
 * known by another name, or looked at where it lies? */
static bool is_unsound(enum left_reason why)
{
    return why == LEFT_MUTATED || why == LEFT_SHARED || why == LEFT_LAYOUT;
}

static uint32_t wait_of(const tuck_graph *g, uint32_t start)
{
    for (uint32_t u = node_at(g, start)->use_first; u != 0; u = g->use.at[u].next)
        if (comm_is_wait(g, g->use.at[u].user))
            return g->use.at[u].user;
    return 0;
}

static tuck_status check_kind(struct pass_run *r, const tuck_graph *after, tuck_coll kind)
{
    const struct bucket_options o = {.kind = kind, .mode = BUCKET_DEFAULT};
    struct bucket_scan scan;
    struct bucket_cand c;
    enum left_reason why;
    bool scanned = false;

    for_each_node (r->g, n) {
        if (comm_kind(r->g, n) != kind || node_alive(after, n))
            continue;
        if (!scanned)
            bucket_scan(&scan, r, &o);
        scanned = true;
        uint32_t wait = bucket_is_kind(&scan, n) ? wait_of(r->g, n) : 0;
        if (wait != 0 && !bucket_read(&scan, n, wait, &c, &why) && is_unsound(why))
            return pass_fail(r, n, "PyTorch merges '%s', but %s",
                             graph_str(r->g, node_at(r->g, n)->name), left_reason_meaning(why));
    }
    return TUCK_OK;
}

/* Does a collective pass a call of graphs that communicate? Both count as communication. */
static bool passes_nested(struct pass_run *r, const tuck_graph *after)
{
    uint32_t *calls = arena_zeroed(&r->arena, r->g->node.len * sizeof(*calls)), k = 0;

    for_each_node (r->g, n) {
        calls[n] = k;
        k += node_nests_comm(r->g, n, 0);
    }
    k = 0;
    for_each_node (after, n) {
        bool nests = node_nests_comm(after, n, 0);
        if ((nests || comm_communicates(after, n)) && n < r->g->node.len && calls[n] != k)
            return true;
        k += nests;
    }
    return false;
}

/* PyTorch does not see collectives in nested graphs, and moves others over them. */
static tuck_status check_nested(struct pass_run *r, const tuck_graph *after)
{
    uint32_t nested = 0;
    bool erased = false;

    for_each_node (r->g, n) {
        nested = nested == 0 && node_nests_comm(r->g, n, 0) ? n : nested;
        erased |= comm_communicates(r->g, n) && !node_alive(after, n);
    }
    if (nested == 0 || (!erased && !passes_nested(r, after)))
        return TUCK_OK;
    return pass_fail(r, nested,
                     "PyTorch moves communication over '%s', which calls graphs that communicate",
                     graph_str(r->g, node_at(r->g, nested)->name));
}

/* A pass that looks at the original graph and changes nothing; its option is the result. */
static tuck_status check_result(struct pass_run *r, const void *options)
{
    const tuck_graph *after = *(const tuck_graph *const *)options;
    tuck_status st = check_nested(r, after);

    if (st == TUCK_OK)
        st = check_kind(r, after, TUCK_ALL_GATHER);
    if (st == TUCK_OK)
        st = check_kind(r, after, TUCK_REDUCE_SCATTER);
    return st == TUCK_OK ? check_kind(r, after, TUCK_ALL_REDUCE) : st;
}

static const struct pass pass_check_result = {
    .name = "check_result",
    .needs = PASS_TYPES | PASS_PLACES | PASS_NAMES,
    .on_graph = check_result,
};

/* ---- running it ---- */

static tuck_status run_check(const struct runner *r, const struct stage *first,
                             const struct stage *x, tuck_diags *diags)
{
    const tuck_graph *after = x->g;
    const struct pipeline_step step = {.pass = &pass_check_result, .options = &after, .text = ""};
    tuck_report *unread = report_new(&after->store->mem.alloc);
    tuck_status st = unread != NULL ? runner_step(r, &step, first->g, unread, diags) : TUCK_ENOMEM;

    tuck_report_free(unread);
    return st;
}

static tuck_status run_passes(const struct runner *r, struct stage *x, tuck_diags *diags)
{
    struct pipeline p;

    pipeline_init(&p, &all_passes, &x->g->store->mem.alloc);
    tuck_status st = pipeline_add_whole(&p, "schedule_overlap_bucketing", "compat=torch", NULL,
                                        diags);
    for (uint32_t i = 0; i < p.step.len && st == TUCK_OK; i++)
        st = runner_step(r, &p.step.at[i], x->g, x->report, diags);
    pipeline_destroy(&p);
    return st;
}

static tuck_status judge(const struct runner *r, struct stage *x, tuck_diags *diags)
{
    tuck_status st = study_get(r->study, x->g, diags, &x->e);

    if (st != TUCK_OK)
        return st;
    struct pass_report *row = &x->report->pass.at[x->report->pass.len - 1];
    row->judged = true;
    row->step_ps = x->e->time.makespan;
    row->step_peak = x->e->peak;
    return TUCK_OK;
}

static tuck_status run(const struct runner *r, const struct stage *first, struct stage *x,
                       tuck_diags *diags)
{
    const struct runner quiet = {.study = r->study};
    const tuck_allocator *alloc = &first->g->store->mem.alloc;

    *x = (struct stage){.from = first, .depth = first->depth + 1};
    x->g = graph_clone(first->g);
    x->report = report_new(alloc);
    if (x->g == NULL || x->report == NULL)
        return TUCK_ENOMEM;
    tuck_status st = run_passes(&quiet, x, diags);
    if (st == TUCK_OK && x->g->revision != first->g->revision)
        st = run_check(&quiet, first, x, diags);
    return st == TUCK_OK ? judge(&quiet, x, diags) : st;
}

/* The first error, without its position: that is a node of a copy. */
static void explain(struct rival *x, const tuck_diags *diags)
{
    const char *why = "it cannot be judged";

    for (size_t i = tuck_diags_count(diags); i-- > 0;)
        if (tuck_diags_at(diags, i)->severity == TUCK_ERROR)
            why = tuck_diags_at(diags, i)->message;
    snprintf(x->why, sizeof(x->why), "%s", why);
    char *more = strstr(x->why, ": nothing is changed");
    if (more != NULL)
        *more = '\0';
}

tuck_status rival_run(const struct runner *r, const struct stage *first, struct rival *out)
{
    double start = runner_cpu_ms();
    tuck_diags *diags = tuck_diags_new(&first->g->store->mem.alloc);

    *out = (struct rival){.ms = 0};
    tuck_status st = diags != NULL ? run(r, first, &out->stage, diags) : TUCK_ENOMEM;
    if (st != TUCK_OK && st != TUCK_ENOMEM) {
        explain(out, diags);
        stage_end(&out->stage);
        st = TUCK_OK;
    }
    tuck_diags_free(diags);
    out->ms = runner_cpu_ms() - start;
    return st;
}

void rival_end(struct rival *x)
{
    stage_end(&x->stage);
}

void rival_report(const struct rival *x, int64_t memory_limit, struct report_rival *out)
{
    *out = (struct report_rival){.ran = true, .sound = x->stage.e != NULL, .ms = x->ms};
    memcpy(out->why, x->why, sizeof(out->why));
    if (!out->sound)
        return;
    judge_times(x->stage.e, &out->times);
    out->fits = x->stage.e->peak <= memory_limit;
}

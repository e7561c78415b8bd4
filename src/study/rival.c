#include "study/rival.h"

#include <stdio.h>

#include "rewrite/bucket/bucket.h"
#include "rewrite/place.h"
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

/* ---- fences ---- */

struct passing {
    struct pass_run *r;
    const tuck_graph *after;
    const uint32_t *fences; /* by old node: how many were before it */
    uint32_t now;           /* … and before the node that is looked at */
    uint32_t *seen, round;  /* by new node */
    uint32_t *stack;
    const bool *reads_erased; /* by old node: a collective that is gone read it */
};

static bool is_old(const struct passing *x, uint32_t n)
{
    return n < x->r->g->node.len && node_alive(x->r->g, n);
}

/* Did a collective that is gone read this, one from between the same fences? */
static bool was_here(const struct passing *x, uint32_t operand)
{
    const tuck_graph *g = x->r->g;

    for (uint32_t u = node_at(g, operand)->use_first; u != 0; u = g->use.at[u].next) {
        uint32_t n = g->use.at[u].user;
        if (comm_starts(g, n) && !node_alive(x->after, n) && x->fences[n] == x->now)
            return true;
    }
    return false;
}

/* What the merged collective sends, through the copies made for it. */
static bool stays(struct passing *x, uint32_t merged)
{
    const tuck_graph *g = x->after;
    uint32_t n = 0;

    x->stack[n++] = merged;
    x->seen[merged] = ++x->round;
    while (n > 0) {
        uint32_t y = x->stack[--n];
        for (uint32_t i = 0; i < node_at(g, y)->n_vals; i++) {
            const tuck_value *v = &node_at(g, y)->vals[i];
            if (v->kind != TUCK_V_NODE || x->seen[v->a] == x->round)
                continue;
            x->seen[v->a] = x->round;
            if (!is_old(x, v->a))
                x->stack[n++] = v->a;
            else if (x->reads_erased[v->a] && !was_here(x, v->a))
                return false;
        }
    }
    return true;
}

static const bool *find_read(const struct passing *x)
{
    const tuck_graph *g = x->r->g;
    bool *read = arena_zeroed(&x->r->arena, g->node.len * sizeof(*read));

    for_each_node (g, n)
        for (uint32_t i = 0; i < node_at(g, n)->n_vals && comm_starts(g, n); i++) {
            const tuck_value *v = &node_at(g, n)->vals[i];
            if (v->kind == TUCK_V_NODE && !node_alive(x->after, n))
                read[v->a] = true;
        }
    return read;
}

/* Communication that keeps its place among all other: PyTorch knows of none. */
static tuck_status check_fences(struct pass_run *r, const tuck_graph *after)
{
    const struct comm_lines *lines = comm_lines_of(r);
    struct passing x = {.r = r, .after = after, .fences = comm_places(r)->fences};
    uint32_t fence = 0;

    x.seen = arena_zeroed(&r->arena, after->node.len * sizeof(*x.seen));
    x.stack = arena_array(&r->arena, uint32_t, (size_t)after->node.len + 1);
    x.reads_erased = find_read(&x);
    for_each_node (r->g, n)
        fence = fence == 0 && comm_is_fence(r->g, lines, n) ? n : fence;
    if (fence == 0)
        return TUCK_OK;
    for_each_node (after, n) {
        bool old = is_old(&x, n), in_line = old && comm_in_line(lines, n);
        if ((in_line && x.fences[n] != x.now) || (!old && comm_starts(after, n) && !stays(&x, n)))
            return pass_fail(r, fence,
                             "PyTorch moves communication over '%s', which keeps its place",
                             graph_str(r->g, node_at(r->g, fence)->name));
        x.now += in_line && comm_is_fence(r->g, lines, n);
    }
    return TUCK_OK;
}

static str_id device_of(const tuck_graph *g, uint32_t n)
{
    const struct type *t = type_at(&g->store->type, node_type(g, n));

    return t->kind == TYPE_TENSOR ? t->device : 0;
}

/* Is one operand of a new node on another device than the first? Those of copy_ may be. */
static bool mixes_devices(const tuck_graph *g, uint32_t n)
{
    str_id first = 0;

    if (op_at(node_op(g, n))->flags & OP_F_MUTATES)
        return false;
    for (uint32_t i = 0; i < node_at(g, n)->n_vals; i++) {
        const tuck_value *v = &node_at(g, n)->vals[i];
        str_id device = v->kind == TUCK_V_NODE ? device_of(g, v->a) : 0;
        if (first != 0 && device != 0 && device != first)
            return true;
        first = first != 0 ? first : device;
    }
    return false;
}

/* The first operand of a node that was there before that is now on another device, or laid out in
 * another way where that matters; 0 if there is none. */
static uint32_t other_operand(const tuck_graph *before, const bool *strides_matter,
                              const tuck_graph *after, uint32_t n)
{
    const struct fx_node *x = node_at(before, n), *y = node_at(after, n);

    for (uint32_t i = 0; i < x->n_vals && i < y->n_vals; i++) {
        uint32_t a = x->vals[i].a, b = y->vals[i].a;
        if (x->vals[i].kind == TUCK_V_NODE && y->vals[i].kind == TUCK_V_NODE && a != b &&
            node_type(before, a) != node_type(after, b) &&
            (strides_matter[a] || device_of(before, a) != device_of(after, b)))
            return b;
    }
    return 0;
}

/* PyTorch merges collectives of one group, whatever devices their operands are on, and gives back
 * views of the whole where it can. */
static tuck_status check_operands(struct pass_run *r, const tuck_graph *after)
{
    const bool *strides_matter = place_strides_matter(r);

    for_each_node (after, n) {
        bool old = n < r->g->node.len && node_alive(r->g, n);
        if (!old && mixes_devices(after, n))
            return pass_fail(r, 0, "PyTorch merges collectives on different devices, in '%s'",
                             graph_str(after, node_at(after, n)->name));
        uint32_t operand = old ? other_operand(r->g, strides_matter, after, n) : 0;
        if (operand != 0)
            return pass_fail(r, 0,
                             "PyTorch gives '%s' another operand, '%s', which is on another device "
                             "or not dense",
                             graph_str(after, node_at(after, n)->name),
                             graph_str(after, node_at(after, operand)->name));
    }
    return TUCK_OK;
}

/* A pass that looks at a copy of the original graph; its option is the result. */
static tuck_status check_result(struct pass_run *r, const void *options)
{
    const tuck_graph *after = *(const tuck_graph *const *)options;
    tuck_status st = check_nested(r, after);

    if (st == TUCK_OK)
        st = check_fences(r, after);
    if (st == TUCK_OK)
        st = check_operands(r, after);
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
    tuck_graph *copy = graph_clone(first->g); /* reading candidates removes repeated waits */
    tuck_status st = unread != NULL && copy != NULL ? runner_step(r, &step, copy, unread, diags)
                                                    : TUCK_ENOMEM;

    graph_free(copy);
    tuck_report_free(unread);
    return st;
}

static tuck_status run_passes(const struct runner *r, struct stage *x, tuck_diags *diags)
{
    struct pipeline p;

    /* Buckets would be another sequence: with --keep-order it is PyTorch's order alone. */
    pipeline_init(&p, &all_passes, &x->g->store->mem.alloc);
    tuck_status st = pipeline_add_whole(&p, "schedule_overlap_bucketing",
                                        r->study->o->keep_order
                                            ? "compat=torch, pre_bucketing_fsdp_collectives=false"
                                            : "compat=torch",
                                        NULL, diags);
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
    x->owns = true;
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

#include "study/decision.h"

#include <stdio.h>

#include "graph/topo.h"
#include "rewrite/comm_order.h"
#include "study/pass_table.h"

struct tuck_decision *decision_new(const tuck_allocator *alloc)
{
    struct mem m;

    mem_init(&m, alloc);
    struct tuck_decision *d = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*d));
    if (d != NULL) {
        *d = (struct tuck_decision){.mem = m, .machine = "", .step_ps = -1, .peak = -1};
        arena_init(&d->arena, &d->mem);
    }
    return d;
}

void tuck_decision_free(tuck_decision *d)
{
    if (d == NULL)
        return;
    struct mem m = d->mem;
    arena_destroy(&d->arena);
    mem_free(&m, d, sizeof(*d));
}

/* ---- an order, put into a graph ---- */

struct imposing {
    struct pass_run *r;
    const struct decision_step *step;
    uint32_t *old; /* node ids in their old order */
};

/* Every node once; inputs and the return stay where they are. */
static tuck_status check_permutation(const struct imposing *x)
{
    const tuck_graph *g = x->r->g;
    uint32_t n = x->step->n_order;
    bool *seen = arena_zeroed(&x->r->arena, (size_t)n + 1);

    if (n != g->n_nodes)
        return pass_fail(x->r, 0, "the order has %u nodes, the graph has %u", n, g->n_nodes);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t at = x->step->order[k];
        if (at >= n || seen[at])
            return pass_fail(x->r, 0, "the order has node %u %s", at,
                             at >= n ? "of a smaller graph" : "twice");
        seen[at] = true;
        uint8_t kind = node_at(g, x->old[at])->kind;
        bool fixed = kind == TUCK_PLACEHOLDER || kind == TUCK_OUTPUT || kind == TUCK_RESULT;
        if (fixed && at != k)
            return pass_fail(x->r, x->old[at], "the order moves '%s', which stays in its place",
                             graph_str(g, node_at(g, x->old[at])->name));
    }
    return TUCK_OK;
}

/* Operands before their users, and what topo_keep() wants. */
static tuck_status check_order(const struct imposing *x, const struct topo_edges *keep)
{
    const tuck_graph *g = x->r->g;

    for_each_node (g, n)
        for (uint32_t i = 0; i < node_at(g, n)->n_vals; i++) {
            const tuck_value *v = &node_at(g, n)->vals[i];
            if (v->kind == TUCK_V_NODE && node_at(g, v->a)->pos >= node_at(g, n)->pos)
                return pass_fail(x->r, n, "the order has '%s' before its operand '%s'",
                                 graph_str(g, node_at(g, n)->name),
                                 graph_str(g, node_at(g, v->a)->name));
        }
    for (uint32_t i = 0; i < keep->edge.len; i++) {
        const struct topo_edge *e = &keep->edge.at[i];
        if (comm_is_wait(g, e->from) || comm_is_wait(g, e->to))
            continue; /* lint looks at what is in flight, and knows which operands are copied */
        if (node_at(g, e->from)->pos > node_at(g, e->to)->pos)
            return pass_fail(
                x->r, e->to, "the order has '%s' before '%s', over a write or an effect",
                graph_str(g, node_at(g, e->to)->name), graph_str(g, node_at(g, e->from)->name));
    }
    return TUCK_OK;
}

static tuck_status check_fences(const struct imposing *x, const struct comm_places *was)
{
    tuck_graph *g = x->r->g;
    struct comm_lines lines;
    uint32_t fences = 0;

    comm_lines_find(g, comm_groups(x->r), &x->r->arena, &lines);
    for_each_node (g, n) {
        if (!comm_in_line(&lines, n))
            continue;
        if (was->fences[n] != fences)
            return pass_fail(x->r, n,
                             "the order moves '%s' over communication that keeps its place",
                             graph_str(g, node_at(g, n)->name));
        fences += comm_is_fence(g, &lines, n);
    }
    return TUCK_OK;
}

static tuck_status set_apart(const struct imposing *x)
{
    tuck_graph *g = x->r->g;

    for_each_node (g, n)
        node_at(g, n)->apart = false;
    for (uint32_t i = 0; i < x->step->n_apart; i++) {
        uint32_t at = x->step->apart[i];
        if (at >= x->step->n_order)
            return pass_fail(x->r, 0, "there is no node %u to keep apart", at);
        node_at(g, x->old[x->step->order[at]])->apart = true;
    }
    return TUCK_OK;
}

static tuck_status impose(struct pass_run *r, const void *options)
{
    struct imposing x = {.r = r, .step = *(const struct decision_step *const *)options};
    tuck_graph *g = r->g;
    struct topo_edges keep = {0};
    uint32_t k = 0, moved = 0;

    x.old = arena_array(&r->arena, uint32_t, (size_t)g->n_nodes + 1);
    for_each_node (g, n)
        x.old[k++] = n;
    tuck_status st = check_permutation(&x);
    if (st != TUCK_OK)
        return st;
    topo_keep(g, &r->arena, &keep);
    const struct comm_places *was = comm_places(r);
    for (k = 0; k < x.step->n_order; k++) {
        graph_unlink(g, x.old[x.step->order[k]]);
        graph_link_before(g, x.old[x.step->order[k]], 0);
        moved += x.step->order[k] != k;
    }
    graph_reordered(g);
    graph_number(g);
    st = check_order(&x, &keep);
    if (st == TUCK_OK)
        st = check_fences(&x, was);
    if (st == TUCK_OK)
        st = set_apart(&x);
    report_count(r->report, "nodes moved", moved);
    r->changed = true;
    return st;
}

static const struct pass pass_impose = {
    .name = "order",
    .needs = PASS_PLACES,
    .keeps = PASS_TYPES,
    .on_graph = impose,
};

/* ---- recording ---- */

struct recording {
    struct tuck_decision *d;
    const struct runner *runner;
    tuck_graph *work;    /* the graph so far */
    tuck_report *report; /* of the passes as they are repeated */
    struct pipeline pipeline;
    struct program_digest was; /* of the original graph */
    uint32_t *place;           /* by node: its place before the passes on orders */
    uint32_t n_place;          /* 0: no pass on orders since the last step */
    tuck_graph *original;
    uint32_t *at; /* by node of it: its place */
    tuck_diags *diags;
};

static const char *keep_str(struct tuck_decision *d, const char *s)
{
    return arena_str(&d->arena, s, strlen(s));
}

static void begin_order(struct recording *x)
{
    const tuck_graph *g = x->work;
    uint32_t k = 0;

    x->place = arena_zeroed(&x->d->arena, g->node.len * sizeof(*x->place));
    for_each_node (g, n)
        x->place[n] = k++;
    x->n_place = k;
}

static void end_order(struct recording *x)
{
    struct tuck_decision *d = x->d;
    const tuck_graph *g = x->work;
    struct decision_step s = {.n_order = x->n_place};
    uint32_t k = 0;

    if (x->n_place == 0)
        return;
    s.order = arena_array(&d->arena, uint32_t, x->n_place);
    s.apart = arena_array(&d->arena, uint32_t, x->n_place);
    for_each_node (g, n) {
        if (node_at(g, n)->apart)
            s.apart[s.n_apart++] = k;
        s.order[k++] = x->place[n];
    }
    assert(k == x->n_place);
    vec_push_in(&d->arena, &d->step, s);
    x->n_place = 0;
}

struct named { /* what a merged collective consists of */
    const char *name;
    VEC(uint32_t) member;
};

/* Members of a bucket may be buckets themselves, whose members then belong to the new one. */
static void add_member(struct recording *x, struct named *to, const char *name, struct named *made,
                       uint32_t n_made)
{
    struct arena *a = &x->d->arena;
    uint32_t node = tuck_graph_find(x->original, name).id;

    if (node != 0) {
        vec_push_in(a, &to->member, x->at[node]);
        return;
    }
    for (uint32_t k = 0; k < n_made; k++) {
        if (strcmp(made[k].name, name) != 0)
            continue;
        for (uint32_t i = 0; i < made[k].member.len; i++)
            vec_push_in(a, &to->member, made[k].member.at[i]);
        made[k].member.len = 0;
    }
}

static void record_buckets(struct recording *x)
{
    struct arena *a = &x->d->arena;
    VEC(struct named) made = {NULL, 0, 0};

    x->at = arena_zeroed(a, x->original->node.len * sizeof(*x->at));
    for (uint32_t k = 0; k < x->was.n; k++)
        x->at[x->was.node[k]] = k;
    for (uint32_t i = 0; i < x->report->pass.len; i++)
        for (uint32_t q = 0; q < x->report->pass.at[i].bucket.len; q++) {
            const struct report_bucket *from = &x->report->pass.at[i].bucket.at[q];
            struct named b = {.name = from->result};
            for (uint32_t m = 0; m < from->n_member; m++)
                add_member(x, &b, from->member[m], made.at, made.len);
            vec_push_in(a, &made, b);
        }
    for (uint32_t k = 0; k < made.len; k++)
        if (made.at[k].member.len > 0)
            vec_push_in(a, &x->d->bucket,
                        ((struct decision_bucket){made.at[k].member.at, made.at[k].member.len}));
}

static tuck_status repeat(struct recording *x, const struct pass_report *row)
{
    struct pipeline *p = &x->pipeline;
    uint32_t first = p->step.len;
    const struct pass *pass = pass_find(&all_passes, row->name, strlen(row->name));

    if (pass == NULL) {
        diag_add(x->diags, TUCK_ERROR, NOWHERE, NULL,
                 "no decision: '%s' is not a pass of Tuck and cannot be repeated", row->name);
        return TUCK_EINVAL;
    }
    tuck_status st = pipeline_add_whole(p, row->name, row->options, NULL, x->diags);
    for (uint32_t i = first; i < p->step.len && st == TUCK_OK; i++) {
        const struct pipeline_step *s = &p->step.at[i];
        if (s->pass->on_order != NULL && x->n_place == 0)
            begin_order(x);
        else if (s->pass->on_order == NULL)
            end_order(x);
        st = runner_step(x->runner, s, x->work, x->report, x->diags);
        if (st == TUCK_OK && s->pass->on_order == NULL)
            vec_push_in(&x->d->arena, &x->d->step,
                        ((struct decision_step){.pass = keep_str(x->d, s->pass->name),
                                                .options = keep_str(x->d, s->text)}));
    }
    return st;
}

struct record_args {
    struct recording x;
    const tuck_report *report;
    tuck_graph *result;
    tuck_status status;
};

static void do_record(void *arg)
{
    struct record_args *a = arg;
    struct recording *x = &a->x;
    struct tuck_decision *d = x->d;

    for (uint32_t i = 0; i < a->report->pass.len && a->status == TUCK_OK; i++)
        if (a->report->pass.at[i].changed)
            a->status = repeat(x, &a->report->pass.at[i]);
    if (a->status != TUCK_OK)
        return;
    end_order(x);
    record_buckets(x);
    d->program = x->was.all;
    d->n_node = x->was.n;
    d->node = arena_array(&d->arena, uint32_t, d->n_node + 1);
    memcpy(d->node, x->was.hash, d->n_node * sizeof(*d->node));
    d->machine = keep_str(d, tuck_cluster_name(x->runner->study->o->machine->cluster));
    if (a->report->judged) {
        d->step_ps = a->report->gain.after.step_ps;
        d->peak = a->report->gain.after.peak_bytes;
    }
}

static tuck_status sequence_now(const struct runner *r, tuck_graph *g, uint64_t *out)
{
    struct assume symbols = machine_symbols(r->study->o->machine, g->store);
    struct sequence s;
    tuck_status st = tuck_graph_infer(g, TUCK_TRUST_ANNOTATIONS, NULL);

    if (st != TUCK_OK)
        return st;
    st = sequence_of(g, &symbols, &s);
    *out = s.digest;
    sequence_end(&s);
    return st;
}

/* Does repeating the passes give the result? */
static tuck_status same_result(tuck_graph *work, tuck_graph *result, tuck_diags *diags)
{
    struct program_digest a, b;
    tuck_status st = tuck_graph_infer(result, TUCK_TRUST_ANNOTATIONS, NULL);

    if (st != TUCK_OK)
        return st;
    st = program_digest_of(work, &a);
    tuck_status other = program_digest_of(result, &b);
    if (st == TUCK_OK)
        st = other;
    if (st == TUCK_OK && a.all != b.all) {
        diag_add(diags, TUCK_ERROR, NOWHERE, "this is a bug in Tuck: please report it",
                 "no decision: the passes give another result when they are repeated");
        st = TUCK_EINVAL;
    }
    program_digest_end(&a);
    program_digest_end(&b);
    return st;
}

tuck_status decision_record(struct tuck_decision *d, const struct runner *r, tuck_graph *original,
                            const tuck_report *report, tuck_graph *result, tuck_diags *diags)
{
    const struct runner quiet = {.study = r->study};
    struct record_args a = {.x = {.d = d, .runner = &quiet, .original = original, .diags = diags},
                            .report = report,
                            .result = result};
    tuck_status st = tuck_graph_infer(original, TUCK_TRUST_ANNOTATIONS, NULL);

    if (st != TUCK_OK)
        return st;
    st = program_digest_of(original, &a.x.was);
    a.x.work = graph_clone(original);
    a.x.report = report_new(&original->store->mem.alloc);
    pipeline_init(&a.x.pipeline, &all_passes, &original->store->mem.alloc);
    if (a.x.work == NULL || a.x.report == NULL || st != TUCK_OK)
        st = TUCK_ENOMEM;
    else
        st = mem_guard(&d->mem, do_record, &a) ? a.status : TUCK_ENOMEM;
    if (st == TUCK_OK)
        st = same_result(a.x.work, result, diags);
    if (st == TUCK_OK)
        st = sequence_now(&quiet, result, &d->sequence);
    pipeline_destroy(&a.x.pipeline);
    program_digest_end(&a.x.was);
    tuck_report_free(a.x.report);
    graph_free(a.x.work);
    return st;
}

/* ---- applying ---- */

static void tell_difference(const struct tuck_decision *d, const tuck_graph *g,
                            const struct program_digest *is, tuck_diags *diags)
{
    uint32_t k = 0, n = is->n < d->n_node ? is->n : d->n_node;
    char text[200];

    while (k < n && is->hash[k] == d->node[k])
        k++;
    if (k < is->n)
        snprintf(text, sizeof(text),
                 "the decision is for another program: node %u, '%.60s', is not that of the "
                 "decision (%u nodes there, %u here)",
                 k, graph_str(g, node_at(g, is->node[k])->name), d->n_node, is->n);
    else
        snprintf(text, sizeof(text),
                 "the decision is for another program: it has %u nodes, this one has %u", d->n_node,
                 is->n);
    tuck_diags_add(diags, TUCK_ERROR, g, (tuck_node){k < is->n ? is->node[k] : 0}, text);
}

tuck_status decision_check(const struct tuck_decision *d, const tuck_graph *g, tuck_diags *diags)
{
    struct program_digest is;
    tuck_status st = program_digest_of(g, &is);

    if (st == TUCK_OK && is.all != d->program) {
        tell_difference(d, g, &is, diags);
        st = TUCK_EINVAL;
    }
    program_digest_end(&is);
    return st;
}

static tuck_status run_step(const struct decision_step *s, const struct runner *r, tuck_graph *g,
                            tuck_report *report, tuck_diags *diags)
{
    struct pipeline p;

    if (s->pass == NULL) {
        const struct pipeline_step order = {.pass = &pass_impose, .options = &s, .text = ""};
        return runner_step(r, &order, g, report, diags);
    }
    pipeline_init(&p, &all_passes, &g->store->mem.alloc);
    tuck_status st = pipeline_add_whole(&p, s->pass, s->options, NULL, diags);
    for (uint32_t i = 0; i < p.step.len && st == TUCK_OK; i++)
        st = runner_step(r, &p.step.at[i], g, report, diags);
    pipeline_destroy(&p);
    return st;
}

tuck_status decision_run(const struct tuck_decision *d, const struct runner *r, tuck_graph *g,
                         tuck_report *report, tuck_diags *diags)
{
    tuck_status st = TUCK_OK;
    uint64_t sequence = 0;

    for (uint32_t i = 0; i < d->step.len && st == TUCK_OK; i++)
        st = run_step(&d->step.at[i], r, g, report, diags);
    if (st == TUCK_OK)
        st = sequence_now(r, g, &sequence);
    if (st == TUCK_OK && sequence != d->sequence) {
        diag_add(diags, TUCK_ERROR, NOWHERE, "nothing is changed",
                 "the decision has the sequence of communication %016llx, its steps give %016llx",
                 (unsigned long long)d->sequence, (unsigned long long)sequence);
        st = TUCK_EINVAL;
    }
    return st;
}

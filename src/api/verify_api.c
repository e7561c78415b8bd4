/* Two graphs on the same inputs, in the public interface. */
#include <stdio.h>

#include "api/api.h"
#include "api/execute_api.h"
#include "report/run_show.h"

struct tuck_verification {
    tuck_execution *x;
    tuck_compared *row;
    size_t n;
};

/* ---- what must be alike ---- */

static const tuck_value *results_of(const tuck_graph *g, uint32_t *n)
{
    const struct fx_node *out = g->output != 0 ? node_at(g, g->output) : NULL;
    const tuck_value *v = out != NULL && out->n_vals > 0 ? out->vals : NULL;

    *n = v == NULL ? 0 : value_is_container(v) ? v->a : 1;
    return v;
}

static uint32_t next_input(const tuck_graph *g, uint32_t n)
{
    for (n = node_at(g, n)->next; n != 0; n = node_at(g, n)->next)
        if (node_at(g, n)->kind == TUCK_PLACEHOLDER)
            return n;
    return 0;
}

static tuck_status check_alike(const tuck_graph *a, const tuck_graph *b, tuck_diags *diags)
{
    uint32_t x = next_input(a, 0), y = next_input(b, 0), n, m;

    for (; x != 0 && y != 0; x = next_input(a, x), y = next_input(b, y)) {
        const char *p = graph_str(a, node_at(a, x)->name), *q = graph_str(b, node_at(b, y)->name);
        if (strcmp(p, q) != 0) {
            diag_add(diags, TUCK_ERROR, NOWHERE, NULL,
                     "they have different inputs: '%s' before, '%s' after", p, q);
            return TUCK_EINVAL;
        }
    }
    results_of(a, &n);
    results_of(b, &m);
    if (x != 0 || y != 0)
        diag_add(diags, TUCK_ERROR, NOWHERE, NULL, "they have different numbers of inputs");
    else if (n != m)
        diag_add(diags, TUCK_ERROR, NOWHERE, NULL, "they return %u and %u results", n, m);
    else
        return TUCK_OK;
    return TUCK_EINVAL;
}

/* ---- why a result differs ---- */

/* Sums over ranks that the other graph has under that name, too, with as many bytes. */
static bool has_alike(const struct program *p, const struct program *other, uint32_t op)
{
    const char *name = program_str(p, p->op[op].name);

    for (uint32_t i = 0; i < other->n_op; i++)
        if (other->op[i].coll == p->op[op].coll && other->op[i].message == p->op[op].message &&
            strcmp(program_str(other, other->op[i].name), name) == 0)
            return true;
    return false;
}

static bool sums(const struct program_op *op)
{
    return op->coll == TUCK_ALL_REDUCE || op->coll == TUCK_REDUCE_SCATTER;
}

/* The last collective on the way to a result that adds up otherwise than before; PROGRAM_NONE if
 * there is none. */
static uint32_t find_cause(const tuck_execution *x, uint32_t result, bool *reached)
{
    const struct run_rank *before = &x->plan.side[0].rank[0], *after = &x->plan.side[1].rank[0];
    const tuck_graph *g = after->g;
    uint32_t n, op = after->p->n_op;
    const tuck_value *v = results_of(g, &n);

    if (v != NULL && value_is_container(v))
        v = result < n ? value_item(v, result) : NULL;
    memset(reached, 0, g->node.len * sizeof(*reached));
    if (v == NULL || v->kind != TUCK_V_NODE)
        return PROGRAM_NONE;
    reached[v->a] = true;
    for (uint32_t i = node_at(g, 0)->prev; i != 0; i = node_at(g, i)->prev) {
        const struct fx_node *node = node_at(g, i);
        for (uint32_t k = 0; reached[i] && k < node->n_vals; k++)
            if (node->vals[k].kind == TUCK_V_NODE)
                reached[node->vals[k].a] = true;
    }
    while (op-- > 0)
        if (sums(&after->p->op[op]) && reached[after->p->op[op].node] &&
            !has_alike(after->p, before->p, op))
            return op;
    return PROGRAM_NONE;
}

struct causing {
    tuck_verification *v;
};

static const char *name_of(const tuck_execution *x, struct arena *a, uint32_t i)
{
    const tuck_graph *g = x->plan.side[0].rank[0].g;
    uint32_t n;
    const tuck_value *v = results_of(g, &n);
    char text[300];

    if (i >= n) {
        const struct run_rank *r = &x->plan.side[0].rank[0];
        snprintf(text, sizeof(text), "input %s, written",
                 program_str(r->p, r->p->buf[r->written[i - n]].name));
        return arena_str(a, text, strlen(text));
    }
    if (v != NULL && value_is_container(v))
        v = value_item(v, i);
    if (v != NULL && v->kind == TUCK_V_NODE)
        snprintf(text, sizeof(text), "output %u (%s)", i, graph_str(g, node_at(g, v->a)->name));
    else
        snprintf(text, sizeof(text), "output %u", i);
    return arena_str(a, text, strlen(text));
}

static void do_rows(void *arg)
{
    tuck_verification *v = ((struct causing *)arg)->v;
    const tuck_execution *x = v->x;
    struct arena *a = &v->x->plan.arena;
    const struct run_rank *after = &x->plan.side[1].rank[0];
    bool *reached = arena_array(a, bool, (size_t)after->g->node.len + 1);

    v->n = x->plan.note->n_compared;
    v->row = arena_array(a, tuck_compared, v->n + 1);
    for (uint32_t i = 0; i < v->n; i++) {
        const struct run_compared *c = &x->plan.note->compared[i];
        uint32_t op = c->equal ? PROGRAM_NONE : find_cause(x, i, reached);
        char text[400] = "";
        if (op != PROGRAM_NONE)
            snprintf(text, sizeof(text), "%s '%s' adds up other values than before",
                     tuck_coll_name((tuck_coll)after->p->op[op].coll),
                     program_str(after->p, after->p->op[op].name));
        v->row[i] = (tuck_compared){.name = name_of(x, a, i),
                                    .equal = c->equal,
                                    .within = c->within,
                                    .most_ulp = c->ulp,
                                    .most_relative = c->relative,
                                    .most_absolute = c->absolute,
                                    .elements = c->elements,
                                    .different = c->different,
                                    .rank = c->rank,
                                    .cause = arena_str(a, text, strlen(text))};
    }
}

/* ---- running ---- */

tuck_status tuck_ranks_verify(tuck_graph *const *before, tuck_graph *const *after, size_t n,
                              const tuck_exec_options *options, tuck_diags *diags,
                              tuck_verification **out)
{
    tuck_graph *const *const side[] = {before, after};
    tuck_status st = TUCK_OK;

    if (before == NULL || after == NULL || n == 0 || out == NULL)
        return TUCK_EINVAL;
    for (size_t i = 0; i < n && st == TUCK_OK; i++)
        st = check_alike(before[i], after[i], diags);
    if (st != TUCK_OK)
        return st;
    tuck_execution *x = execution_new(before[0]);
    if (x == NULL)
        return TUCK_ENOMEM;
    st = execution_run(x, side, 2, n, options, diags);
    tuck_verification *v = NULL;
    if (st == TUCK_OK) {
        v = x->mem.alloc.resize(x->mem.alloc.ctx, NULL, 0, sizeof(*v));
        st = v != NULL ? TUCK_OK : TUCK_ENOMEM;
    }
    if (st == TUCK_OK) {
        struct causing c = {v};
        *v = (tuck_verification){.x = x};
        st = mem_guard(&x->plan.mem, do_rows, &c) ? TUCK_OK : TUCK_ENOMEM;
    }
    if (st == TUCK_OK) {
        *out = v;
        return st;
    }
    if (v != NULL)
        x->mem.alloc.resize(x->mem.alloc.ctx, v, sizeof(*v), 0);
    tuck_execution_free(x);
    return st;
}

void tuck_verification_free(tuck_verification *v)
{
    if (v == NULL)
        return;
    tuck_execution *x = v->x;
    x->mem.alloc.resize(x->mem.alloc.ctx, v, sizeof(*v), 0);
    tuck_execution_free(x);
}

bool tuck_verification_speaks(const tuck_verification *v)
{
    return v->x->plan.note->speaks;
}

bool tuck_verification_within(const tuck_verification *v)
{
    for (size_t i = 0; i < v->n; i++)
        if (!v->row[i].within)
            return false;
    return true;
}

size_t tuck_verification_count(const tuck_verification *v)
{
    return v->n;
}

bool tuck_verification_at(const tuck_verification *v, size_t i, tuck_compared *out)
{
    if (i >= v->n)
        return false;
    *out = v->row[i];
    return true;
}

static void print(struct buf *b, const tuck_print_options *how, const void *arg)
{
    const tuck_verification *v = arg;

    if (how->form == TUCK_PRINT_JSON)
        verify_json(v->row, v->n, v->x->plan.world, b);
    else
        verify_table(v->row, v->n, v->x->plan.world, b);
}

tuck_status tuck_verification_print(const tuck_verification *v, const tuck_print_options *how,
                                    tuck_write_fn write, void *ctx)
{
    return v != NULL ? api_print(&v->x->mem.alloc, how, write, ctx, print, v) : TUCK_EINVAL;
}

/* Runs the nodes of all ranks' graphs in parallel, and compares the results. */
#include "support/sym_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct input {
    const char *name;
    struct value v;
};

struct sym_result {
    struct ev e;
    struct value *returned; /* [n_ranks] */
    struct input **input;   /* [n_ranks][n_input] */
    size_t n_input;
};

/* ---- inputs ---- */

static uint64_t hash_name(const char *s, uint64_t h)
{
    for (; *s != '\0'; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001B3u;
    return h;
}

static bool input_of(const struct call *c, struct value *out)
{
    const struct sym_world *w = c->e->w;
    const char *text = tuck_node_annotation(c->g, c->n), *name = tuck_node_name(c->g, c->n);
    struct tensor t;
    bool strides;

    *out = (struct value){.kind = V_NONE};
    if (strncmp(text, "Sym(", 4) == 0) {
        out->kind = V_INT;
        return symeval_number(w, text + 4, strlen(text) - 5, &out->i) ||
               call_fail(c, "cannot evaluate %s", text);
    }
    if (!symeval_annotation(w, text, &t, &strides))
        return call_fail(c, "an input of unknown type");
    tensor_new(&c->e->pool, &t);
    uint64_t h = hash_name(name, w->seed + (uint64_t)c->rank * 0x9E3779B97F4A7C15u);
    struct tensor whole = {.st = t.st,
                           .dtype = t.dtype,
                           .n_dim = 1,
                           .size = {t.st->n / tensor_item(&t)},
                           .stride = {1}};
    for (int64_t i = 0; i < whole.size[0]; i++)
        tensor_store(&whole, i, field_hash(h, (uint64_t)i));
    *out = tensor_value(c->e, &t);
    return true;
}

/* ---- annotations ---- */

/* Sizes and dtype must agree with the text; strides if they matter. */
static bool check_annotation(const struct call *c, const struct value *v)
{
    const char *text = tuck_node_annotation(c->g, c->n);
    struct tensor want;
    bool strides, same;
    int64_t number;

    if (*text == '\0')
        return true;
    if (v->kind == V_INT && strncmp(text, "Sym(", 4) == 0) {
        same = symeval_number(c->e->w, text + 4, strlen(text) - 5, &number) && number == v->i;
        return same || call_fail(c, "is %lld, annotated %s", (long long)v->i, text);
    }
    if (v->kind != V_TENSOR || !symeval_annotation(c->e->w, text, &want, &strides))
        return call_fail(c, "is not what its annotation says: %s", text);
    same = want.dtype == v->t->dtype && want.n_dim == v->t->n_dim &&
           (!strides || want.cpu == v->t->cpu);
    for (int d = 0; d < want.n_dim && same; d++)
        same = want.size[d] == v->t->size[d];
    for (int d = 0; d < want.n_dim && same && strides && tensor_numel(v->t) > 0; d++)
        same = want.size[d] <= 1 || want.stride[d] == v->t->stride[d];
    if (same)
        return true;
    char is[160];
    int n = snprintf(is, sizeof(is), "%s[", symeval_dtypes[v->t->dtype].name);
    for (int k = 0; k < 2; k++)
        for (int d = 0; d <= v->t->n_dim; d++)
            n += d == v->t->n_dim
                     ? snprintf(is + n, sizeof(is) - (size_t)n, k ? "]" : "][")
                     : snprintf(is + n, sizeof(is) - (size_t)n, "%s%lld", d ? ", " : "",
                                (long long)(k ? v->t->stride : v->t->size)[d]);
    return call_fail(c, "is %s, annotated %s", is, text);
}

/* ---- running ---- */

static bool run_node(struct sym_result *x, struct call *c);

static tuck_graph *nested(const tuck_graph *g, const char *name)
{
    for (size_t i = 0; i < tuck_graph_child_count(g); i++)
        if (strcmp(tuck_graph_name(tuck_graph_child(g, i)), name) == 0)
            return tuck_graph_child(g, i);
    return NULL;
}

/* The operands of a call of a graph: arguments from `first` on, or the items of a list there. */
static bool passed(const struct call *c, size_t first, struct value *out)
{
    size_t n = tuck_node_arg_count(c->g, c->n);

    if (!operand(c, first, "operands", out) || out->kind == V_LIST)
        return out->kind == V_LIST;
    *out = list_value(c->e, n > first ? n - first : 0);
    for (size_t i = 0; i < out->n; i++)
        if (!operand(c, first + i, "", &out->item[i]))
            return false;
    return true;
}

static void swap_values(struct sym_result *x, struct value **of)
{
    for (int r = 0; r < x->e.w->n_ranks; r++) {
        struct value *other = x->e.rank[r].of;
        x->e.rank[r].of = of[r];
        of[r] = other;
    }
}

/* Runs the nested graph of every rank that argument number `graph` names, on the operands from
 * `first` on. */
static bool run_nested(struct sym_result *x, struct call *c, size_t graph, size_t first,
                       struct value *out)
{
    int n = x->e.w->n_ranks;
    struct call *in = POOL_ARRAY(&x->e.pool, struct call, n);
    struct value **of = POOL_ARRAY(&x->e.pool, struct value *, n);
    struct value *given = POOL_ARRAY(&x->e.pool, struct value, n);
    bool ok = true;

    for (int r = 0; r < n; r++) {
        const tuck_value *v = tuck_node_arg(c[r].g, c[r].n, graph);
        tuck_graph *g = v ? nested(c[r].g, tuck_node_target(c[r].g, tuck_value_node(v))) : NULL;
        if (g == NULL)
            return call_fail(c, "there is no such graph");
        if (!passed(&c[r], first, &given[r]))
            return call_fail(c, "nothing is passed");
        in[r] = (struct call){&x->e, r, g, tuck_graph_first(g), 0};
        of[r] = POOL_ARRAY(&x->e.pool, struct value, tuck_graph_id_end(g));
    }
    for (size_t i = 0; ok && !tuck_is_none(in->n); i++) {
        tuck_kind kind = tuck_node_kind(in->g, in->n);
        if (kind == TUCK_PLACEHOLDER) {
            for (int r = 0; r < n; r++)
                if (i < given[r].n)
                    of[r][in[r].n.id] = given[r].item[i];
        } else {
            swap_values(x, of);
            for (int r = 0; r < n && ok && kind == TUCK_OUTPUT; r++)
                ok = operand(&in[r], 0, "", &out[r]);
            ok = ok && (kind == TUCK_OUTPUT || run_node(x, in));
            swap_values(x, of);
        }
        for (int r = 0; r < n; r++)
            in[r].n = tuck_graph_next(in[r].g, in[r].n);
    }
    return ok;
}

static bool run_operator(struct call *c, const char *target, struct value *out)
{
    const struct sym_op *op = symeval_op_find(target);
    bool ok = true;

    if (op == NULL)
        return call_fail(c, "%s is not known here", target);
    if (op->run_all != NULL)
        return op->run_all(c, out);
    for (int r = 0; r < c->e->w->n_ranks && ok; r++)
        ok = op->run(&c[r], &out[r]);
    return ok;
}

/* with_effects(token, operator, …) returns the token and the operator's results. */
static bool run_effect(struct sym_result *x, struct call *c, struct value *out)
{
    int n = x->e.w->n_ranks;
    struct call *in = POOL_ARRAY(&x->e.pool, struct call, n);
    struct value *got = POOL_ARRAY(&x->e.pool, struct value, n), token;
    const char *target;

    if (!text_operand(c, 1, "", &target) || target == NULL)
        return call_fail(c, "no operator");
    for (int r = 0; r < n; r++) {
        in[r] = c[r];
        in[r].skip = 2;
    }
    if (!run_operator(in, target, got))
        return false;
    for (int r = 0; r < n; r++) {
        if (!operand(&c[r], 0, "", &token))
            return false;
        out[r] = list_value(&x->e, 2);
        out[r].item[0] = token;
        out[r].item[1] = got[r];
    }
    return true;
}

#define HIGHER "torch.ops.higher_order."

static bool run_call(struct sym_result *x, struct call *c, struct value *out)
{
    const char *target = tuck_node_target(c->g, c->n);

    if (strcmp(target, HIGHER "control_deps") == 0)
        return run_nested(x, c, 1, 2, out);
    if (strcmp(target, HIGHER "invoke_subgraph") == 0)
        return run_nested(x, c, 0, 2, out);
    if (strcmp(target, HIGHER "cond") == 0) /* the same branch on all ranks */
        return run_nested(x, c, x->e.w->seed % 2 ? 1 : 2, 3, out);
    if (strcmp(target, HIGHER "with_effects") == 0)
        return run_effect(x, c, out);
    return run_operator(c, target, out);
}

static bool run_node(struct sym_result *x, struct call *c)
{
    int n = x->e.w->n_ranks;
    tuck_kind kind = tuck_node_kind(c->g, c->n);
    struct value *out = POOL_ARRAY(&x->e.pool, struct value, n);
    bool ok = true;

    for (int r = 1; r < n; r++)
        if (tuck_node_kind(c[r].g, c[r].n) != kind ||
            strcmp(tuck_node_target(c[r].g, c[r].n), tuck_node_target(c->g, c->n)) != 0)
            return call_fail(c, "rank %d runs another node here", r);
    if (kind == TUCK_PLACEHOLDER) {
        for (int r = 0; r < n && ok; r++) {
            ok = input_of(&c[r], &out[r]);
            x->input[r][x->n_input] = (struct input){tuck_node_name(c[r].g, c[r].n), out[r]};
        }
        x->n_input++;
    } else if (kind == TUCK_OUTPUT) {
        for (int r = 0; r < n && ok; r++)
            ok = operand(&c[r], 0, "", &x->returned[r]);
        return ok;
    } else if (kind == TUCK_GET_ATTR && nested(c->g, tuck_node_target(c->g, c->n)) != NULL) {
        return true; /* a graph, for calls that use it */
    } else if (kind != TUCK_CALL_FUNCTION) {
        return call_fail(c, "%s is not known here", tuck_node_target(c->g, c->n));
    } else {
        ok = run_call(x, c, out);
    }
    for (int r = 0; r < n && ok; r++) {
        ok = check_annotation(&c[r], &out[r]);
        x->e.rank[r].of[c[r].n.id] = out[r];
    }
    return ok;
}

static bool run_all(struct sym_result *x, tuck_graph *const *g)
{
    int n = x->e.w->n_ranks;
    struct call *c = POOL_ARRAY(&x->e.pool, struct call, n);

    for (int r = 0; r < n; r++) {
        c[r] = (struct call){&x->e, r, g[r], tuck_graph_first(g[r]), 0};
        x->e.rank[r].of = POOL_ARRAY(&x->e.pool, struct value, tuck_graph_id_end(g[r]));
        x->input[r] = POOL_ARRAY(&x->e.pool, struct input, tuck_graph_size(g[r]));
        if (tuck_graph_size(g[r]) != tuck_graph_size(g[0]))
            return call_fail(c, "rank %d runs another number of nodes", r);
    }
    while (!tuck_is_none(c->n)) {
        if (!run_node(x, c))
            return false;
        for (int r = 0; r < n; r++)
            c[r].n = tuck_graph_next(c[r].g, c[r].n);
    }
    symeval_finish_all(&x->e);
    return true;
}

struct sym_result *symeval_run(const struct sym_world *w, tuck_graph *const *g, struct text *why)
{
    struct sym_result *x = calloc(1, sizeof(*x));

    if (x == NULL)
        abort();
    x->e.w = w;
    x->e.why = why;
    x->e.rank = POOL_ARRAY(&x->e.pool, struct rank_state, w->n_ranks);
    x->returned = POOL_ARRAY(&x->e.pool, struct value, w->n_ranks);
    x->input = POOL_ARRAY(&x->e.pool, struct input *, w->n_ranks);
    if (run_all(x, g))
        return x;
    symeval_free(x);
    return NULL;
}

void symeval_free(struct sym_result *r)
{
    if (r == NULL)
        return;
    pool_done(&r->e.pool);
    free(r);
}

const char *symeval_race(const struct sym_result *r)
{
    return r->e.race[0] ? r->e.race : NULL;
}

/* ---- comparing ---- */

struct compare {
    struct text *why;
    int rank;
    const char *what;
};

static bool differ(const struct compare *c, size_t i, const char *how)
{
    char room[200];

    snprintf(room, sizeof(room), "rank %d: %s %zu: %s\n", c->rank, c->what, i, how);
    text_add(c->why, room, strlen(room));
    return false;
}

static bool same_cells(const struct tensor *a, int64_t i, const struct tensor *b, int64_t k)
{
    cell x[8], y[8];

    tensor_take(a, i, x);
    tensor_take(b, k, y);
    for (int p = 0; p < tensor_item(a); p++)
        if (x[p] != CELL_NOTHING && x[p] != y[p]) /* the same number, of whatever bytes? */
            return tensor_load(a, i) == tensor_load(b, k);
    return true;
}

static bool same_values(const struct compare *c, size_t at, const struct value *a,
                        const struct value *b)
{
    if (a->kind != b->kind || a->n != b->n || (a->kind == V_INT && a->i != b->i))
        return differ(c, at, "another kind of value");
    for (size_t i = 0; i < a->n; i++)
        if (!same_values(c, at * 1000 + i, &a->item[i], &b->item[i]))
            return false;
    if (a->kind != V_TENSOR)
        return true;
    if (a->t->dtype != b->t->dtype || a->t->n_dim != b->t->n_dim)
        return differ(c, at, "another dtype or number of dimensions");
    for (int d = 0; d < a->t->n_dim; d++)
        if (a->t->size[d] != b->t->size[d])
            return differ(c, at, "other sizes");
    for (int64_t i = 0; i < tensor_numel(a->t); i++)
        if (!same_cells(a->t, i, b->t, i))
            return differ(c, at, "other elements");
    return true;
}

bool symeval_same(const struct sym_result *a, const struct sym_result *b, struct text *why)
{
    struct compare c = {.why = why};

    for (c.rank = 0; c.rank < a->e.w->n_ranks; c.rank++) {
        const struct value *x = &a->returned[c.rank], *y = &b->returned[c.rank];

        c.what = "result";
        if (x->kind != V_LIST || y->kind != V_LIST || x->n != y->n)
            return differ(&c, 0, "another number of results");
        for (size_t i = 0; i < x->n; i++)
            if (!same_values(&c, i, &x->item[i], &y->item[i]))
                return false;
        c.what = "input";
        if (a->n_input != b->n_input)
            return differ(&c, 0, "another number of inputs");
        for (size_t i = 0; i < a->n_input; i++)
            if (strcmp(a->input[c.rank][i].name, b->input[c.rank][i].name) != 0 ||
                !same_values(&c, i, &a->input[c.rank][i].v, &b->input[c.rank][i].v))
                return differ(&c, i, "is left otherwise");
    }
    return true;
}

/* Floating-point operations of a node, by the flops column of its row. */
#include <math.h>

#include "cost/kernel_cost.h"
#include "infer/infer.h"

struct call {
    struct cost_run *r;
    const struct type *result; /* the first, if there are several */
    const struct op_sig *sig;
    const tuck_value **arg; /* by parameter */
    type_id out;
};

static const struct type *type_of_value(const struct call *c, const tuck_value *v)
{
    if (v == NULL || v->kind != TUCK_V_NODE)
        return NULL;
    const struct type *t = type_at(&c->r->g->store->type, node_type(c->r->g, v->a));
    return t->kind == TYPE_TENSOR ? t : NULL;
}

static const struct type *tensor(const struct call *c, uint32_t p)
{
    return p < c->sig->n_params ? type_of_value(c, c->arg[p]) : NULL;
}

static const struct type *named(const struct call *c, const char *name)
{
    int p = op_param_find(c->sig, name, strlen(name));

    return p >= 0 ? tensor(c, (uint32_t)p) : NULL;
}

static bool flag(const struct call *c, const char *name)
{
    int p = op_param_find(c->sig, name, strlen(name));

    return p >= 0 && c->arg[p] != NULL && c->arg[p]->kind == TUCK_V_BOOL && c->arg[p]->u.i;
}

/* NAN if unknown; everything computed from it is then unknown, too. */
static double size(const struct call *c, const struct type *t, int i)
{
    int64_t v;

    if (t == NULL)
        return NAN;
    if (i < 0)
        i += (int)t->n;
    if (i < 0 || i >= (int)t->n)
        return t->n == 0 ? 1 : NAN;
    return assume_value(c->r->assume, t->size[i], &v) ? (double)v : NAN;
}

static double numel(const struct call *c, const struct type *t)
{
    double n = t ? 1 : NAN;

    for (uint32_t i = 0; t != NULL && i < t->n; i++)
        n *= size(c, t, (int)i);
    return n;
}

/* How many of the first two items of a mask are set; both if it is not a list of literals. */
static double asked(const struct call *c, const char *name)
{
    int p = op_param_find(c->sig, name, strlen(name));
    const tuck_value *v = p >= 0 ? c->arg[p] : NULL;
    double n = 0;

    if (v == NULL || !value_is_container(v) || v->a < 2)
        return 2;
    for (size_t i = 0; i < 2; i++) {
        const tuck_value *item = value_item(v, i);
        n += item->kind != TUCK_V_BOOL || item->u.i;
    }
    return n;
}

static double product(const struct call *c, const struct type *a)
{
    return 2 * numel(c, c->result) * size(c, a, -1);
}

static double grouped(const struct call *c)
{
    const struct type *a = tensor(c, 0), *b = tensor(c, 1);

    if (a != NULL && b != NULL && a->n == 2 && b->n == 2)
        return 2 * numel(c, a) * size(c, b, -1);
    return product(c, a);
}

static double contract(const struct call *c)
{
    double n = numel(c, c->result);
    int met = 0;

    for (uint32_t p = 0; p < c->sig->n_params; p++) {
        const tuck_value *v = c->arg[p], *end = v ? value_next(v) : NULL;
        for (; v != NULL && v < end; v++)
            if (type_of_value(c, v) != NULL && ++met <= 2)
                n *= numel(c, type_of_value(c, v));
    }
    return met == 2 ? 2 * sqrt(n) : 0;
}

static double filter(const struct call *c, const struct type *weight)
{
    return numel(c, weight) / fmax(1, size(c, weight, 0));
}

static double conv(const struct call *c, bool transposed)
{
    const struct type *each = transposed || flag(c, "transposed") ? tensor(c, 0) : c->result;

    return 2 * numel(c, each) * filter(c, tensor(c, 1));
}

static double conv_backward(const struct call *c)
{
    const struct type *input = named(c, "input"), *weight = named(c, "weight");
    const struct type *each = flag(c, "transposed") ? input : tensor(c, 0);

    return 2 * numel(c, each) * filter(c, weight) * asked(c, "output_mask");
}

/* q_times and v_times: the number of products over the width of queries and of values. */
static double attention(const struct call *c, bool heads_last, double q_times, double v_times)
{
    const struct type *q = named(c, "query"), *k = named(c, "key"), *v = named(c, "value");
    double length;

    if (q == NULL || k == NULL || v == NULL)
        return NAN;
    if (heads_last && q->n == 3) {
        /* Sequences packed end to end: the longest key sequence is used for all. */
        int p = op_param_find(c->sig, "max_k", 5);
        if (p < 0)
            p = op_param_find(c->sig, "max_seqlen_k", 12);
        const tuck_value *max = p >= 0 ? c->arg[p] : NULL;
        length = max != NULL && max->kind == TUCK_V_INT ? (double)max->u.i : size(c, k, 0);
    } else {
        length = size(c, k, heads_last ? -3 : -2);
    }
    /* Elements of q without its width: batch, heads and query length. */
    double rows = numel(c, q) / fmax(1, size(c, q, -1));
    return 2 * rows * length * (q_times * size(c, q, -1) + v_times * size(c, v, -1));
}

static double linear_backward(const struct call *c)
{
    return 2 * numel(c, named(c, "grad_output")) * size(c, tensor(c, 0), -1) *
           asked(c, "output_mask");
}

/* All products of the resulting list. */
static double gathered(const struct call *c)
{
    const struct typetab *types = &c->r->g->store->type;
    const struct type *all = type_at(types, c->out), *a = tensor(c, 0);
    double sum = 0;

    if (all->kind != TYPE_LIST || all->n < 2)
        return NAN;
    const struct type *list = type_at(types, all->item[all->n - 1]);
    for (uint32_t i = 0; list->kind == TYPE_LIST && i < list->n; i++) {
        const struct type *t = type_at(types, list->item[i]);
        sum += 2 * numel(c, t->kind == TYPE_TENSOR ? t : NULL) * size(c, a, -1);
    }
    return list->kind == TYPE_LIST ? sum : NAN;
}

static double formula(const struct call *c, enum op_flops rule)
{
    switch (rule) {
    case OP_FLOPS_mm: return product(c, tensor(c, 0));
    case OP_FLOPS_addmm: return product(c, tensor(c, 1));
    case OP_FLOPS_addbmm: return 2 * numel(c, tensor(c, 1)) * size(c, tensor(c, 2), -1);
    case OP_FLOPS_grouped: return grouped(c);
    case OP_FLOPS_contract: return contract(c);
    case OP_FLOPS_linear_backward: return linear_backward(c);
    case OP_FLOPS_mm_plus_mm: return product(c, tensor(c, 0)) + product(c, tensor(c, 2));
    case OP_FLOPS_conv: return conv(c, false);
    case OP_FLOPS_conv_transposed: return conv(c, true);
    case OP_FLOPS_conv_backward: return conv_backward(c);
    case OP_FLOPS_sdpa: return attention(c, false, 1, 1);
    case OP_FLOPS_sdpa_backward: return attention(c, false, 3, 2);
    case OP_FLOPS_flash: return attention(c, true, 1, 1);
    case OP_FLOPS_flash_backward: return attention(c, true, 3, 2);
    case OP_FLOPS_ag_mm: return gathered(c);
    case OP_FLOPS_mm_rs: return 2 * numel(c, tensor(c, 0)) * size(c, tensor(c, 1), -1);
    case OP_FLOPS_none:
    case OP_FLOPS_END: break;
    }
    return 0;
}

/* The dtype of the products: that of the first floating-point operand, else of the first tensor. */
static enum dtype product_dtype(const struct call *c)
{
    enum dtype first = DTYPE_NONE;

    for (uint32_t p = 0; p < c->sig->n_params; p++) {
        const struct type *t = tensor(c, p);
        if (t == NULL)
            continue;
        if (dtype_is_float((enum dtype)t->dtype))
            return (enum dtype)t->dtype;
        if (first == DTYPE_NONE)
            first = (enum dtype)t->dtype;
    }
    return first;
}

bool cost_flops(struct cost_run *r, uint32_t n, const struct op_row *row, double *flops,
                enum dtype *dtype)
{
    const struct fx_node *x = acting_call(r->g, n, &r->arena);
    struct call c = {.r = r, .sig = sigs_get(&r->sigs, acting_op(r->g, n))};
    struct arena_mark mark = arena_mark(&r->arena);
    struct operand o = {.v = NULL};

    *flops = 0;
    *dtype = DTYPE_NONE;
    if (row->flops == OP_FLOPS_none || c.sig == NULL)
        return true;
    c.arg = arena_zeroed(&r->arena, mem_times(r->mem, c.sig->n_params, sizeof(*c.arg)));
    while (operand_next(r->g, x, c.sig, &o))
        if (o.param != NULL && !o.param->rest)
            c.arg[o.param - c.sig->params] = o.v;
    c.out = node_type(r->g, n);
    c.result = type_at(&r->g->store->type, c.out);
    if (c.result->kind == TYPE_LIST)
        c.result = type_at(&r->g->store->type, acting_result(r->g, n) < c.result->n
                                                   ? c.result->item[acting_result(r->g, n)]
                                                   : 0);
    if (c.result->kind != TYPE_TENSOR)
        c.result = NULL;
    *flops = formula(&c, (enum op_flops)row->flops);
    *dtype = product_dtype(&c);
    if (dtype_at(*dtype)->category == DTYPE_IS_COMPLEX)
        *flops *= 4;
    arena_release(&r->arena, mark);
    return isfinite(*flops);
}

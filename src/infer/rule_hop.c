/* Shape rules of operators that take graphs or operators: they return what the inner one
 * returns. */
#include "graph/call.h"
#include "infer/infer_run.h"

static const tuck_value *argument(const struct infer *x, uint32_t i)
{
    return call_operand(x->g, node_at(x->g, x->node), i);
}

type_id passed_type(const tuck_graph *g, uint32_t call, uint32_t k)
{
    const tuck_value *v = passed_value(g, call, k);

    return v != NULL && v->kind == TUCK_V_NODE ? node_type(g, v->a) : 0;
}

static tuck_graph *graph_at(const struct infer *x, uint32_t i)
{
    const tuck_value *v = argument(x, i);

    return v != NULL && v->kind == TUCK_V_NODE ? child_of(x->g, v->a) : NULL;
}

/* ---- translating symbols of the inner graph ---- */

struct rename {
    sym_id *from, *to;
    uint32_t n;
};

static void match_sym(const struct infer *x, struct rename *r, sym_id inner, sym_id outer)
{
    if (inner == outer || !sym_is(x->sym, inner, SYM_SYMBOL))
        return;
    for (uint32_t i = 0; i < r->n; i++)
        if (r->from[i] == inner)
            return;
    r->from[r->n] = inner;
    r->to[r->n++] = outer;
}

static void match_type(const struct infer *x, struct rename *r, type_id inner, type_id outer)
{
    const struct type *a = type_at(x->type, inner), *b = type_at(x->type, outer);

    if (a->kind == TYPE_SYM && b->kind == TYPE_SYM)
        match_sym(x, r, a->sym, b->sym);
    if (a->kind != TYPE_TENSOR || b->kind != TYPE_TENSOR || a->n != b->n)
        return;
    for (uint32_t i = 0; i < a->n; i++) {
        match_sym(x, r, a->size[i], b->size[i]);
        if (a->strided && b->strided)
            match_sym(x, r, a->stride[i], b->stride[i]);
    }
}

static sym_id outer_symbol(void *ctx, sym_id symbol, const char *name)
{
    const struct rename *r = ctx;

    (void)name;
    for (uint32_t i = 0; i < r->n; i++)
        if (r->from[i] == symbol)
            return r->to[i];
    return symbol;
}

/* The type of one value with symbols replaced; lists are handled by the caller. */
static type_id renamed(struct infer *x, struct rename *r, type_id id)
{
    struct type t = *type_at(x->type, id);

    if (t.kind == TYPE_SYM)
        return type_sym(x->type, sym_subst(x->sym, t.sym, outer_symbol, r));
    if (t.kind != TYPE_TENSOR || r->n == 0)
        return id;
    sym_id *size = new_syms(x, t.n), *stride = new_syms(x, t.n);
    for (uint32_t i = 0; i < t.n; i++) {
        size[i] = sym_subst(x->sym, t.size[i], outer_symbol, r);
        stride[i] = t.strided ? sym_subst(x->sym, t.stride[i], outer_symbol, r) : 0;
    }
    return type_tensor(x->type, (enum dtype)t.dtype, t.n, size, t.strided ? stride : NULL,
                       t.device);
}

/* What graph g returns when called with the operands from `first` to `end`. */
static bool result_of(struct infer *x, const tuck_graph *g, const tuck_value *first, uint32_t n)
{
    struct rename r = {.n = 0};
    uint32_t room = 0, k = 0;
    const tuck_value *v = first;

    if (g == NULL || g->result == 0)
        return false;
    for_each_node (g, p)
        if (node_at(g, p)->kind == TUCK_PLACEHOLDER)
            room += 1 + 2 * type_at(x->type, node_type(g, p))->n;
    r.from = new_syms(x, room);
    r.to = new_syms(x, room);
    for_each_node (g, p) {
        if (node_at(g, p)->kind != TUCK_PLACEHOLDER)
            continue;
        if (k++ >= n)
            break;
        if (v->kind == TUCK_V_NODE)
            match_type(x, &r, node_type(g, p), x->types[v->a]);
        v = value_next(v);
    }
    struct type t = *type_at(x->type, g->result);
    if (t.kind != TYPE_LIST)
        return out_type(x, renamed(x, &r, g->result));
    type_id *item = arena_array(x->arena, type_id, t.n);
    for (uint32_t i = 0; i < t.n; i++)
        item[i] = renamed(x, &r, t.item[i]);
    return out_list(x, item, t.n);
}

/* The call's graph is argument `at`; its operands start at `first`. */
static bool result_of_call(struct infer *x, uint32_t at, uint32_t first)
{
    const struct fx_node *node = node_at(x->g, x->node);

    return result_of(x, graph_at(x, at), argument(x, first),
                     node->n_args > first ? node->n_args - first : 0);
}

bool shape_control_deps(struct infer *x)
{
    return result_of_call(x, 1, 2);
}

bool shape_invoke_subgraph(struct infer *x)
{
    return result_of_call(x, 0, first_passed(x->g, node_at(x->g, x->node)));
}

bool shape_cond(struct infer *x)
{
    const tuck_value *v = argument(x, 3);

    if (v == NULL || !value_is_container(v))
        return result_of(x, graph_at(x, 1), NULL, 0);
    return result_of(x, graph_at(x, 1), v + 1, v->a);
}

/* ---- loops ---- */

/* The types of a list of operands, which may contain numbers and None. */
static bool operand_types(struct infer *x, const tuck_value *list, type_id *item)
{
    const tuck_value *v = list + 1;

    for (uint32_t i = 0; i < list->a; i++, v = value_next(v)) {
        item[i] = v->kind == TUCK_V_NODE   ? x->types[v->a]
                  : v->kind == TUCK_V_INT  ? type_sym(x->type, num(x, v->u.i))
                  : v->kind == TUCK_V_NONE ? type_none(x->type)
                                           : 0;
    }
    return true;
}

bool shape_while_loop(struct infer *x)
{
    const tuck_value *carried = argument(x, 2);

    if (carried == NULL || !value_is_container(carried))
        return false;
    type_id *item = arena_array(x->arena, type_id, carried->a);
    return operand_types(x, carried, item) && out_list(x, item, carried->a);
}

/* The body returns the next carry, then one step of every output. */
/* The results of all steps stacked: one more dimension in front. 0 if it is not a tensor. */
static type_id stacked(struct infer *x, type_id step, sym_id steps)
{
    struct type one = *type_at(x->type, step);

    if (one.kind != TYPE_TENSOR)
        return 0;
    sym_id *size = new_syms(x, one.n + 1);
    size[0] = steps;
    for (uint32_t k = 0; k < one.n; k++)
        size[k + 1] = one.size[k];
    return new_tensor(x, (enum dtype)one.dtype, one.n + 1, size,
                      contiguous_strides(x, one.n + 1, size), one.device);
}

/* How many steps a loop over these operands takes. */
static bool steps_over(struct infer *x, const tuck_value *xs, sym_id *steps)
{
    if (xs == NULL || !value_is_container(xs) || xs->a == 0 || xs[1].kind != TUCK_V_NODE)
        return false;
    const struct type *first = type_at(x->type, x->types[xs[1].a]);
    if (first->kind != TYPE_TENSOR || first->n == 0)
        return false;
    *steps = first->size[0];
    return true;
}

bool shape_map_hop(struct infer *x)
{
    const tuck_graph *g = graph_at(x, 0);
    sym_id steps;

    if (g == NULL || !steps_over(x, argument(x, 1), &steps))
        return false;
    struct type t = *type_at(x->type, g->result);
    if (t.kind != TYPE_LIST)
        return false;
    type_id *item = arena_array(x->arena, type_id, t.n);
    for (uint32_t i = 0; i < t.n; i++)
        item[i] = stacked(x, t.item[i], steps);
    return out_list(x, item, t.n);
}

bool shape_scan_hop(struct infer *x)
{
    const tuck_graph *g = graph_at(x, 0);
    const tuck_value *init = argument(x, 1), *xs = argument(x, 2);

    sym_id steps;

    if (g == NULL || init == NULL || !value_is_container(init) || !steps_over(x, xs, &steps))
        return false;
    struct type t = *type_at(x->type, g->result);
    if (t.kind != TYPE_LIST || t.n < init->a)
        return false;
    type_id *item = arena_array(x->arena, type_id, t.n);
    operand_types(x, init, item);
    for (uint32_t i = init->a; i < t.n; i++)
        if ((item[i] = stacked(x, t.item[i], steps)) == 0)
            return false;
    return out_list(x, item, t.n);
}

/* ---- operators as operands ---- */

/* Infers operator `op` on arguments from `first` on and the call's keywords; sets x->result. */
static bool result_of_op(struct infer *x, const tuck_value *op, uint32_t first)
{
    const struct fx_node *node = node_at(x->g, x->node);

    if (op == NULL || op->kind != TUCK_V_OP)
        return false;
    const struct str *name = str_at(&x->store->str, op->a);
    uint32_t row = op_find(name->at, name->len);
    struct op_sig *sig = arena_new(x->arena, struct op_sig);
    if (row == 0 || op_at(row)->cls == OP_HOP || !op_sig_parse(x->arena, op_at(row), sig, NULL))
        return false;
    struct infer y = *x;
    y.row = op_at(row);
    y.sig = sig;
    y.arg = arena_array(x->arena, const tuck_value *, sig->n_params);
    memset(y.arg, 0, sig->n_params * sizeof(*y.arg));
    const tuck_value *v = node->vals;
    for (uint32_t i = 0; i < node->n_args; i++, v = value_next(v))
        if (i >= first && i - first < sig->n_params)
            y.arg[i - first] = v;
    for (uint32_t i = 0; i < node->n_kwargs; i++) {
        const struct str *key = str_at(&x->store->str, v->a);
        int p = op_param_find(sig, key->at, key->len);
        if (p >= 0)
            y.arg[p] = v + 1;
        v = value_next(v + 1);
    }
    if (!rule_at(y.row->shape)(&y))
        return false;
    x->result = y.result;
    x->sig = sig;
    x->arg = y.arg;
    return true;
}

/* A token, then the operator's results: None if there are none, several follow one by one. */
bool shape_with_effects(struct infer *x)
{
    type_id token = in_type(x, 0);
    const tuck_value *op = argument(x, 1);

    if (!result_of_op(x, op, 2))
        return false;
    struct type t = *type_at(x->type, x->result);
    if (t.kind != TYPE_LIST || x->sig->n_results < 2)
        return out_list(x, (type_id[]){token, x->result}, 2);
    type_id *item = arena_array(x->arena, type_id, t.n + 1);
    item[0] = token;
    for (uint32_t i = 0; i < t.n; i++)
        item[i + 1] = t.item[i];
    return out_list(x, item, t.n + 1);
}

static type_id type_of(const struct infer *x, const tuck_value *v)
{
    return v != NULL && v->kind == TUCK_V_NODE ? x->types[v->a] : 0;
}

/* The operator's results, then the operands it would have written: unchanged, in new storage. */
bool shape_auto_functionalized(struct infer *x)
{
    const struct fx_node *node = node_at(x->g, x->node);
    const tuck_value *bases = NULL, *v = node->vals;

    for (uint32_t i = 0; i < node->n_args; i++)
        v = value_next(v);
    for (uint32_t i = 0; i < node->n_kwargs; i++) {
        if (strcmp(str_text(&x->store->str, v->a), "_all_bases") == 0)
            bases = v + 1;
        v = value_next(v + 1);
    }
    if (!result_of_op(x, argument(x, 0), 1))
        return false;
    struct type t = *type_at(x->type, x->result);
    bool several = t.kind == TYPE_LIST && x->sig->n_results > 1;
    uint32_t n_bases = bases != NULL && value_is_container(bases) ? bases->a : 0, n = 0;
    type_id *item = arena_array(x->arena, type_id,
                                (several ? t.n : 1) + n_bases + x->sig->n_params);
    for (uint32_t i = 0; several && i < t.n; i++)
        item[n++] = t.item[i];
    if (!several)
        item[n++] = x->result;
    if (bases != NULL) {
        const tuck_value *b = bases + 1;
        for (uint32_t i = 0; i < n_bases; i++, b = value_next(b))
            item[n++] = type_of(x, b);
    } else {
        for (uint32_t i = 0; i < x->sig->n_params; i++)
            if (op_param_mutated(x->sig, i))
                item[n++] = type_of(x, x->arg[i]);
    }
    return out_list(x, item, n);
}

/* ---- flex attention ---- */

/* The output has the query's order of dimensions; of two with equal strides the later one is
 * inside. */
static type_id in_order_of_4(struct infer *x, const struct type *q, const sym_id *size)
{
    sym_id stride[4], at = num(x, 1);
    uint32_t order[4] = {3, 2, 1, 0};

    for (uint32_t i = 1; i < 4; i++)
        for (uint32_t k = i;
             k > 0 && hint_of(x, q->stride[order[k]]) < hint_of(x, q->stride[order[k - 1]]); k--) {
            uint32_t inner = order[k];
            order[k] = order[k - 1];
            order[k - 1] = inner;
        }
    for (uint32_t i = 0; i < 4; i++) {
        stride[order[i]] = at;
        at = sym_mul(x->sym, at, size[order[i]]);
    }
    return new_tensor(x, (enum dtype)q->dtype, 4, size, stride, q->device);
}

bool shape_flex_attention(struct infer *x)
{
    const struct type *q = in_tensor(x, 0), *v = in_tensor(x, 2);
    sym_id size[4];

    if (q == NULL || v == NULL || q->n != 4 || v->n != 4 || !q->strided)
        return false;
    for (uint32_t i = 0; i < 4; i++)
        size[i] = i == 3 ? v->size[3] : q->size[i];
    type_id out = in_order_of_4(x, q, size);
    type_id lse = new_tensor(x, DTYPE_F32, 3, size, contiguous_strides(x, 3, size), q->device);
    return out_list(x, (type_id[]){out, lse, lse}, 3);
}

/* If keys and values have one batch for all queries, their gradients are summed; the order of that
 * is not modelled. */
bool shape_flex_attention_backward(struct infer *x)
{
    type_id item[4] = {0};
    const struct type *q = in_tensor(x, 0);

    for (int i = 0; i < 3; i++) {
        const struct type *t = in_tensor(x, i);
        if (t == NULL || t->n != 4 || !t->strided)
            return false;
        item[i] = same_size(x, q->size[0], t->size[0])
                      ? in_order_of_4(x, t, t->size)
                      : type_tensor(x->type, (enum dtype)t->dtype, 4, t->size, NULL, t->device);
    }
    return out_list(x, item, 4);
}

/* ---- Triton kernels ---- */

/* The value of a name in {'name': value, …}; NULL if there is none. */
static const tuck_value *named_value(const tuck_value *dict, uint32_t name)
{
    const tuck_value *key = dict + 1;

    for (uint32_t i = 0; i + 1 < dict->a; i += 2) {
        const tuck_value *value = value_next(key);
        if (key->kind == TUCK_V_STR && key->a == name)
            return value;
        key = value_next(value);
    }
    return NULL;
}

/* A list in the order of tensors_to_clone: call_item() maps names to it. */
bool shape_triton_functional(struct infer *x)
{
    const tuck_value *operands = argument(x, TRITON_OPERANDS), *names = argument(x, TRITON_CLONED);

    if (operands == NULL || names == NULL || operands->kind != TUCK_V_DICT ||
        !value_is_container(names))
        return false;
    type_id *item = arena_array(x->arena, type_id, names->a ? names->a : 1);
    const tuck_value *name = names + 1;
    for (uint32_t i = 0; i < names->a; i++, name = value_next(name)) {
        const tuck_value *v = name->kind == TUCK_V_STR ? named_value(operands, name->a) : NULL;
        item[i] = v != NULL && v->kind == TUCK_V_NODE ? x->types[v->a] : 0;
    }
    return out_list(x, item, names->a);
}

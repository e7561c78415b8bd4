#include "graph/call.h"

static uint32_t op_of(const tuck_graph *g, const struct fx_node *x)
{
    return x->kind == TUCK_CALL_METHOD ? method_op(graph_str(g, x->target)) : x->op;
}

const tuck_value *call_operand(const tuck_graph *g, const struct fx_node *x, uint32_t p)
{
    const tuck_value *v = x->vals;

    if (p == 0 && x->n_args > 0)
        return v;
    for (uint32_t i = 0; i < x->n_args; i++, v = value_next(v))
        if (i == p)
            return v;
    if (x->n_kwargs == 0)
        return NULL;
    const struct op_row *row = op_at(op_of(g, x));
    for (uint32_t i = 0; i < x->n_kwargs; i++) {
        const struct str *key = str_at(&g->store->str, v->a);
        if (op_param_is(row, p, key->at, key->len))
            return v + 1;
        v = value_next(v + 1);
    }
    return NULL;
}

bool call_item(const tuck_graph *g, const struct fx_node *x, uint32_t *out)
{
    if (x->n_args != 2 || x->vals[0].kind != TUCK_V_NODE)
        return false;
    const tuck_value *i = &x->vals[1], *name;
    const struct fx_node *from = node_at(g, x->vals[0].a);

    if (i->kind == TUCK_V_INT && i->u.i >= 0 && i->u.i < UINT32_MAX) {
        *out = (uint32_t)i->u.i;
        return true;
    }
    if (i->kind != TUCK_V_STR || from->kind != TUCK_CALL_FUNCTION ||
        op_at(from->op)->shape != OP_SHAPE_triton_functional)
        return false;
    const tuck_value *names = call_operand(g, from, TRITON_CLONED);
    if (names == NULL || !value_is_container(names))
        return false;
    name = names + 1;
    for (uint32_t k = 0; k < names->a; k++, name = value_next(name))
        if (name->kind == TUCK_V_STR && name->a == i->a) {
            *out = k;
            return true;
        }
    return false;
}

/* ---- wrappers ---- */

/* The only call of a graph; 0 if there is none, or more than one. */
static uint32_t only_call(const tuck_graph *child)
{
    uint32_t found = 0;

    for_each_node (child, n) {
        uint8_t kind = node_at(child, n)->kind;
        if (kind == TUCK_PLACEHOLDER || kind == TUCK_OUTPUT)
            continue;
        if (found != 0)
            return 0;
        found = n;
    }
    return found != 0 && node_at(child, found)->kind == TUCK_CALL_FUNCTION ? found : 0;
}

static uint32_t op_of_value(const tuck_graph *g, const tuck_value *v)
{
    if (v == NULL || v->kind != TUCK_V_OP)
        return 0;
    const struct str *s = str_at(&g->store->str, v->a);
    return op_find(s->at, s->len);
}

uint32_t wrapped_op(const tuck_graph *g, const struct fx_node *x)
{
    const tuck_value *what = call_operand(g, x, 1);
    uint32_t op = 0;

    if (op_at(x->op)->shape == OP_SHAPE_with_effects) {
        op = op_of_value(g, what);
    } else if (what != NULL && what->kind == TUCK_V_NODE) {
        const tuck_graph *child = child_of(g, what->a);
        uint32_t call = child != NULL ? only_call(child) : 0;
        op = call != 0 ? node_at(child, call)->op : 0;
    }
    return op_at(op)->cls == OP_HOP ? 0 : op;
}

bool wraps_unknown(const tuck_graph *g, const struct fx_node *x)
{
    const tuck_value *what = call_operand(g, x, 1);

    if (op_at(x->op)->shape == OP_SHAPE_with_effects)
        return op_of_value(g, what) == 0;
    const tuck_graph *child = what != NULL && what->kind == TUCK_V_NODE ? child_of(g, what->a)
                                                                        : NULL;
    uint32_t call = child != NULL ? only_call(child) : 0;
    return call != 0 && node_at(child, call)->op == 0;
}

/* By node of the child: the outer operand it receives. False: one of them is a list, or there are
 * too few. */
static bool bind(const struct fx_node *x, const tuck_value *first, const tuck_graph *child,
                 const tuck_value **of)
{
    uint32_t i = 2;

    for_each_node (child, p) {
        if (node_at(child, p)->kind != TUCK_PLACEHOLDER)
            continue;
        if (i++ >= x->n_args || value_is_container(first))
            return false;
        of[p] = first;
        first = value_next(first);
    }
    return true;
}

/* The call inside a control_deps. */
static const struct fx_node *held_call(const tuck_graph *g, const struct fx_node *x,
                                       struct arena *a)
{
    const tuck_value *sub = x->n_args >= 2 ? value_next(x->vals) : NULL;
    const tuck_graph *child = sub && sub->kind == TUCK_V_NODE ? child_of(g, sub->a) : NULL;
    uint32_t call = child ? only_call(child) : 0;

    if (call == 0)
        return NULL;
    const tuck_value **of = arena_zeroed(a, child->node.len * sizeof(*of));
    if (!bind(x, value_next(sub), child, of))
        return NULL;
    struct fx_node *y = arena_new(a, struct fx_node);
    *y = *node_at(child, call);
    tuck_value *vals = arena_array(a, tuck_value, y->n_vals ? y->n_vals : 1);
    for (uint32_t i = 0; i < y->n_vals; i++) {
        vals[i] = y->vals[i];
        if (vals[i].kind != TUCK_V_NODE)
            continue;
        if (of[vals[i].a] == NULL)
            return NULL;
        vals[i] = *of[vals[i].a];
    }
    y->vals = vals;
    return y;
}

/* The call inside a with_effects: its operands come after the token and the operator. */
static const struct fx_node *effect_call(const struct fx_node *x, uint32_t op, struct arena *a)
{
    if (x->n_args < 2)
        return NULL;
    struct fx_node *y = arena_new(a, struct fx_node);
    *y = *x;
    y->op = (uint16_t)op;
    y->vals = x->vals + (value_next(value_next(x->vals)) - x->vals);
    y->n_vals = x->n_vals - (uint32_t)(y->vals - x->vals);
    y->n_args = x->n_args - 2;
    y->target = value_next(x->vals)->a;
    return y;
}

const struct fx_node *acting_call(const tuck_graph *g, uint32_t n, struct arena *a)
{
    const struct fx_node *x = node_at(g, n), *inside = NULL;
    uint32_t op = call_is_wrapper(x) ? wrapped_op(g, x) : 0;

    if (op != 0 && op_at(x->op)->shape == OP_SHAPE_with_effects)
        inside = effect_call(x, op, a);
    else if (op != 0)
        inside = held_call(g, x, a);
    return inside != NULL ? inside : x;
}

/* ---- calls of graphs ---- */

uint32_t first_passed(const tuck_graph *g, const struct fx_node *node)
{
    const tuck_value *name = call_operand(g, node, 1);

    return name != NULL && (name->kind == TUCK_V_STR || name->kind == TUCK_V_NONE) ? 2 : 1;
}

const tuck_value *passed_value(const tuck_graph *g, uint32_t call, uint32_t k)
{
    const struct fx_node *node = node_at(g, call);
    const tuck_value *v = NULL, *list;

    switch ((enum op_shape)op_at(node->op)->shape) {
    case OP_SHAPE_control_deps: v = call_operand(g, node, 2 + k); break;
    case OP_SHAPE_invoke_subgraph: v = call_operand(g, node, first_passed(g, node) + k); break;
    case OP_SHAPE_cond:
    case OP_SHAPE_while_loop: /* operands; or first the carried values, then the others */
        for (uint32_t i = op_at(node->op)->shape == OP_SHAPE_cond ? 3 : 2;
             v == NULL && (list = call_operand(g, node, i)) != NULL && value_is_container(list);
             i++) {
            if (k < list->a)
                v = value_item(list, k);
            k -= list->a;
        }
        break;
    default: break;
    }
    return v;
}

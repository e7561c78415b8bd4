#include "graph/storage.h"

#include "graph/nested.h"
#include "op/ops.h"

/* ---- union-find ---- */

static uint32_t root_in(uint32_t *up, uint32_t x)
{
    assert_hot(up[x] <= x); /* the smaller number wins, so there are no cycles */
    while (up[x] != x) {
        up[x] = up[up[x]]; /* halve the path */
        x = up[x];
    }
    return x;
}

uint32_t storage_root(const struct storages *s, uint32_t storage)
{
    return root_in(s->kin, storage);
}

uint32_t memory_root(const struct storages *s, uint32_t storage)
{
    return root_in(s->same, storage);
}

struct build {
    struct storages *s;
    const tuck_graph *g;
    struct arena *a;
    uint32_t *items; /* by node: results that are used; NULL: at most the first of each */
    bool reads_attr; /* there is a get_attr that is a tensor */
    VEC(uint32_t) same, kin, pool;
};

static uint32_t fresh(struct build *b)
{
    uint32_t id = b->same.len;

    vec_push_in(b->a, &b->same, id); /* its own root */
    vec_push_in(b->a, &b->kin, id);
    return id;
}

/* The smaller number wins, so that roots do not depend on the order of joins. */
static void unite(uint32_t *up, uint32_t x, uint32_t y)
{
    x = root_in(up, x);
    y = root_in(up, y);
    if (x < y)
        up[y] = x;
    else
        up[x] = y;
}

/* They may be the same memory. */
static void may_share(struct build *b, uint32_t x, uint32_t y)
{
    if (x != 0 && y != 0)
        unite(b->kin.at, x, y);
}

/* They are the same memory. */
static void join(struct build *b, uint32_t x, uint32_t y)
{
    if (x == 0 || y == 0)
        return;
    unite(b->same.at, x, y);
    unite(b->kin.at, x, y);
}

uint32_t storage_of(const struct storages *s, uint32_t node, uint32_t item)
{
    return item < s->count[node] ? storage_root(s, s->of[s->first[node] + item]) : 0;
}

uint32_t memory_of(const struct storages *s, uint32_t node, uint32_t item)
{
    return item < s->count[node] ? memory_root(s, s->of[s->first[node] + item]) : 0;
}

const bool *storages_vague(const struct storages *s, struct arena *a)
{
    bool *several = arena_zeroed(a, (size_t)s->n + 1);

    for (uint32_t i = 1; i <= s->n; i++)
        several[storage_root(s, i)] |= memory_root(s, i) != memory_root(s, storage_root(s, i));
    return several;
}

/* ---- results ---- */

static const struct op_sig *sig_of(struct build *b, uint32_t op)
{
    if (b->s->sig[op] == NULL) {
        struct op_sig *sig = arena_new(b->a, struct op_sig);
        if (!op_sig_parse(b->a, op_at(op), sig, NULL))
            *sig = (struct op_sig){.n_params = 0};
        b->s->sig[op] = sig;
    }
    return b->s->sig[op];
}

static void need_items(struct build *b, uint32_t node, uint32_t n)
{
    if (b->items == NULL)
        b->items = arena_zeroed(b->a, b->g->node.len * sizeof(*b->items));
    if (b->items[node] < n)
        b->items[node] = n;
}

/* Lists that x takes as a whole: x uses all their items. */
static void need_whole_lists(struct build *b, const struct fx_node *x)
{
    const tuck_graph *g = b->g;

    for (uint32_t i = 0; i < x->n_vals; i++) {
        const struct type *t = x->vals[i].kind == TUCK_V_NODE
                                   ? type_at(&g->store->type, node_type(g, x->vals[i].a))
                                   : &type_unknown;

        if (t->kind == TYPE_LIST && t->n > 1 && t->n < 65536)
            need_items(b, x->vals[i].a, t->n);
    }
}

/* Finds b->items: results that need separate storages are those that getitems use, and those of
 * lists that are used as a whole. */
static void find_items(struct build *b)
{
    const tuck_graph *g = b->g;

    for_each_node (g, n) {
        const struct fx_node *x = node_at(g, n);
        uint32_t k;

        if (op_at(x->op)->form != OP_FORM_GETITEM)
            need_whole_lists(b, x);
        else if (x->n_vals > 0 && x->vals[0].kind == TUCK_V_NODE && call_item(g, x, &k) &&
                 k < 65536)
            need_items(b, x->vals[0].a, k + 1);
    }
}

static uint32_t items_of(const struct build *b, uint32_t n)
{
    return b->items != NULL && b->items[n] > 1 ? b->items[n] : 1;
}

static void give(struct build *b, uint32_t node, uint32_t storage)
{
    vec_push_in(b->a, &b->pool, storage);
    b->s->count[node]++;
}

/* Storage number k of an operand: of item k of a list, or of the single tensor. */
static uint32_t operand_storage(const struct build *b, const tuck_value *v, uint32_t k)
{
    if (v == NULL)
        return 0;
    if (v->kind == TUCK_V_NODE) {
        uint32_t n = b->s->count[v->a];
        return n == 0 ? 0 : b->pool.at[b->s->first[v->a] + (k < n ? k : n - 1)];
    }
    if (!value_is_container(v) || v->a == 0)
        return 0;
    const tuck_value *item = value_item(v, k < v->a ? k : v->a - 1);
    return item->kind == TUCK_V_NODE ? operand_storage(b, item, 0) : 0;
}

/* The storage may be that of any result of node d. */
static void may_share_with(struct build *b, uint32_t storage, uint32_t d)
{
    for (uint32_t k = 0; k < b->s->count[d]; k++)
        may_share(b, storage, b->pool.at[b->s->first[d] + k]);
}

/* Nothing is known: the results from number `from` on may share with each other and with everything
 * that the argument list mentions from vals[first] on. */
static void unknown_results(struct build *b, uint32_t n, uint32_t first, uint32_t from)
{
    const struct fx_node *x = node_at(b->g, n);
    uint32_t items = items_of(b, n), one = 0;

    for (uint32_t k = from; k < items; k++) {
        uint32_t own = fresh(b);
        may_share(b, own, one);
        one = own;
        give(b, n, own);
    }
    for (uint32_t i = first; i < x->n_vals && one != 0; i++)
        if (x->vals[i].kind == TUCK_V_NODE)
            may_share_with(b, one, x->vals[i].a);
}

static void fresh_results(struct build *b, uint32_t n, uint32_t items)
{
    for (uint32_t k = 0; k < items; k++)
        give(b, n, fresh(b));
}

/* The number of results of a graph without nested ones, and their storages, numbered separately
 * from ours. 0 if it has nested graphs or no result. If it returns one list, the uses of n
 * decide. */
static uint32_t nested_results(struct build *b, const tuck_graph *child, uint32_t n,
                               struct storages *in)
{
    if (child == NULL || child->child.len > 0 || child->output == 0)
        return 0;
    storages_build(child, b->a, in);
    const tuck_value *v = node_at(child, child->output)->vals;
    return value_is_container(v) ? v->a : items_of(b, n);
}

/* Storage of result k there; 0 if none. Unused results share the last used result's storage. */
static uint32_t nested_storage(const struct storages *in, const tuck_value *out, uint32_t k)
{
    const tuck_value *v = value_is_container(out) ? value_item(out, k) : out;
    uint32_t n = v->kind == TUCK_V_NODE ? in->count[v->a] : 0;

    if (n == 0)
        return 0;
    return in->of[in->first[v->a] + (value_is_container(out) ? 0 : k < n ? k : n - 1)];
}

/* The operand's storage that result k of a nested graph shares. For an operand that is a list: what
 * a getitem takes out of it, or 0 if it is unknown which. */
static uint32_t passed_storage(struct build *b, const tuck_graph *child, uint32_t k,
                               const tuck_value *operand)
{
    const tuck_value *out = node_at(child, child->output)->vals;
    const tuck_value *v = value_is_container(out) ? value_item(out, k) : out;
    const struct fx_node *y = node_at(child, v->a);

    if (operand->kind != TUCK_V_NODE || b->s->count[operand->a] < 2)
        return operand_storage(b, operand, 0);
    if (op_at(y->op)->form == OP_FORM_GETITEM && y->n_args == 2 && y->vals[0].kind == TUCK_V_NODE &&
        node_at(child, y->vals[0].a)->kind == TUCK_PLACEHOLDER && y->vals[1].kind == TUCK_V_INT &&
        y->vals[1].u.i >= 0 && y->vals[1].u.i < b->s->count[operand->a])
        return operand_storage(b, operand, (uint32_t)y->vals[1].u.i);
    return 0;
}

/* Result k of a nested graph, whose storage there is `inner`, given the operands from `operand` on:
 * what is passed for an input that has the same storage there. It may share with all that is
 * passed for inputs with which that storage may share. */
static uint32_t nested_result(struct build *b, const struct fx_node *x, const tuck_graph *child,
                              const struct storages *in, uint32_t inner, uint32_t k,
                              const tuck_value *operand)
{
    uint32_t shared = 0, i = 2, maybe = 0;
    const tuck_value *first = operand;

    for_each_node (child, p) {
        if (node_at(child, p)->kind != TUCK_PLACEHOLDER || i >= x->n_args)
            break;
        if (inner != 0 && memory_of(in, p, 0) == memory_root(in, inner))
            shared = passed_storage(b, child, k, operand);
        maybe += inner != 0 && storage_of(in, p, 0) == storage_root(in, inner);
        operand = value_next(operand);
        i++;
    }
    if (maybe == (shared != 0))
        return shared ? shared : fresh(b);
    if (shared == 0)
        shared = fresh(b);
    i = 2;
    for_each_node (child, p) {
        if (node_at(child, p)->kind != TUCK_PLACEHOLDER || i >= x->n_args)
            break;
        if (storage_of(in, p, 0) == storage_root(in, inner))
            for (const tuck_value *v = first, *end = value_next(first); v < end; v++)
                if (v->kind == TUCK_V_NODE)
                    may_share_with(b, shared, v->a);
        first = value_next(first);
        i++;
    }
    return shared;
}

/* control_deps(deps, graph, operands…) and invoke_subgraph(graph, name, operands…): the operands
 * from argument 2 on are the graph's inputs. */
static void subgraph_results(struct build *b, uint32_t n, const struct fx_node *x)
{
    const tuck_value *first = x->vals, *second = x->n_args >= 2 ? value_next(first) : NULL;
    const tuck_value *sub = second && first->kind == TUCK_V_NODE ? first : second;
    tuck_graph *child = sub && sub->kind == TUCK_V_NODE ? child_of(b->g, sub->a) : NULL;
    struct storages in;
    uint32_t results = nested_results(b, child, n, &in);
    bool apart = b->s->copies != NULL && b->s->copies[n];

    if (results == 0) {
        unknown_results(b, n, 0, 0);
        return;
    }
    const tuck_value *out = node_at(child, child->output)->vals;
    for (uint32_t k = 0; k < results; k++) {
        uint32_t inner = apart ? 0 : nested_storage(&in, out, k);
        give(b, n, nested_result(b, x, child, &in, inner, k, value_next(second)));
    }
}

/* Result k of a batch of sends and receives shares with its operand if it is received. */
static bool is_received(const struct build *b, const struct fx_node *x, uint32_t k)
{
    const tuck_value *kinds = call_operand(b->g, x, 0);

    if (op_at(x->op)->shape != OP_SHAPE_batch_p2p || kinds == NULL || !value_is_container(kinds) ||
        k >= kinds->a)
        return false;
    const tuck_value *v = value_item(kinds, k);
    return v->kind == TUCK_V_STR && strcmp(str_text(&b->g->store->str, v->a), "isend") != 0;
}

/* The results of the call x, `items` of them, for node n. */
static void known_results(struct build *b, uint32_t n, const struct fx_node *x, uint32_t items)
{
    const struct op_sig *sig = sig_of(b, x->op);

    if (sig->n_results == 0)
        return;
    for (uint32_t k = 0; k < items; k++) {
        /* If one result is a list, all items follow its mark. Several results have one each. */
        uint32_t r = sig->n_results == 1 ? 0 : k < sig->n_results ? k : sig->n_results - 1;
        bool apart = b->s->copies != NULL && b->s->copies[n] && !is_received(b, x, k);
        int p = apart ? -1 : op_result_alias_of(sig, r);
        uint32_t shared = 0;

        if (p >= 0) {
            bool aligned = sig->params[p].depth > 0 && sig->results[r].depth > 0;
            shared = operand_storage(b, call_operand(b->g, x, (uint32_t)p), aligned ? k : 0);
        }
        give(b, n, shared ? shared : fresh(b));
    }
}

/* with_effects(token, operator, …) returns a token and the operator's results. For an unknown
 * operator these may be any operand except the token. */
static void effect_results(struct build *b, uint32_t n, const struct fx_node *x)
{
    uint32_t token = operand_storage(b, call_operand(b->g, x, 0), 0), items = items_of(b, n);
    const struct fx_node *call = acting_call(b->g, n, b->a);

    give(b, n, token ? token : fresh(b));
    if (call != x) {
        known_results(b, n, call, items - 1);
        return;
    }
    unknown_results(b, n, 1, 1);
}

static void getitem_result(struct build *b, uint32_t n, const struct fx_node *x)
{
    const tuck_value *v = x->vals;

    if (v->kind != TUCK_V_NODE)
        return;
    uint32_t k = 0;
    call_item(b->g, x, &k); /* otherwise all of it */
    uint32_t s = operand_storage(b, v, k);
    if (s != 0)
        give(b, n, s);
}

static void results_of(struct build *b, uint32_t n)
{
    const struct fx_node *x = node_at(b->g, n);
    const struct op_row *row = op_at(x->op);

    switch (x->kind) {
    case TUCK_GET_ATTR:
        if (child_of(b->g, n) != NULL)
            break; /* a nested graph, not a tensor */
        b->reads_attr = true;
        give(b, n, fresh(b));
        break;
    case TUCK_PLACEHOLDER: give(b, n, fresh(b)); break;
    case TUCK_OUTPUT: break;
    case TUCK_CALL_FUNCTION:
    case TUCK_CALL_METHOD:
        if (row->form == OP_FORM_GETITEM && x->n_args == 2)
            getitem_result(b, n, x);
        else if (row->shape == OP_SHAPE_control_deps || row->shape == OP_SHAPE_invoke_subgraph)
            subgraph_results(b, n, x);
        else if (row->flags & OP_F_FRESH)
            fresh_results(b, n, items_of(b, n));
        else if (row->shape == OP_SHAPE_with_effects)
            effect_results(b, n, x);
        else if (x->op == 0 || row->cls == OP_HOP)
            unknown_results(b, n, 0, 0);
        else if (row->cls != OP_SCALAR && row->cls != OP_ASSERT && row->cls != OP_GROUP)
            known_results(b, n, x, items_of(b, n));
        break;
    default: unknown_results(b, n, 0, 0); break;
    }
}

/* Inputs that share a storage according to a script, and attributes that are read twice. */
static void join_inputs(struct build *b)
{
    const tuck_graph *g = b->g;
    struct arena_mark mark = arena_mark(b->a);
    uint32_t most = 0;

    for (uint32_t i = 0; i < g->param.len; i++)
        if (g->param.at[i].storage > most)
            most = g->param.at[i].storage;
    if (most > 0) {
        uint32_t *seen = arena_zeroed(b->a, ((size_t)most + 1) * sizeof(*seen));
        for (uint32_t i = 0; i < g->param.len; i++) {
            uint32_t k = g->param.at[i].storage, n = g->param.at[i].node;
            if (k == 0 || n == 0 || b->s->count[n] == 0)
                continue;
            if (seen[k] != 0)
                join(b, seen[k], b->pool.at[b->s->first[n]]);
            seen[k] = b->pool.at[b->s->first[n]];
        }
    }
    arena_release(b->a, mark);
    if (!b->reads_attr)
        return;
    uint32_t *by_target = arena_zeroed(b->a, g->store->str.all.len * sizeof(*by_target));
    for_each_node (g, n) {
        const struct fx_node *x = node_at(g, n);
        if (x->kind != TUCK_GET_ATTR || b->s->count[n] == 0)
            continue;
        if (by_target[x->target] != 0)
            join(b, by_target[x->target], b->pool.at[b->s->first[n]]);
        by_target[x->target] = b->pool.at[b->s->first[n]];
    }
}

/* ---- control_deps ---- */

/* The graph of a control_deps and the one call in it; NULL for others, or if there is not exactly
 * one. */
static const struct fx_node *held_call(const tuck_graph *g, const struct fx_node *x,
                                       const tuck_graph **graph)
{
    const tuck_value *sub = x->n_args >= 2 ? value_next(x->vals) : NULL;
    const struct fx_node *found = NULL;
    uint32_t inputs = 2;

    *graph = NULL;
    if (sub == NULL || sub->kind != TUCK_V_NODE || op_at(x->op)->shape != OP_SHAPE_control_deps)
        return NULL;
    *graph = child_of(g, sub->a);
    if (*graph == NULL)
        return NULL;
    for_each_node (*graph, n) {
        const struct fx_node *y = node_at(*graph, n);
        if (y->kind == TUCK_OUTPUT)
            continue;
        /* More inputs than operands, or a second call: not what schedulers produce. */
        if (y->kind == TUCK_PLACEHOLDER ? inputs++ >= x->n_args : found != NULL)
            return NULL;
        if (y->kind != TUCK_PLACEHOLDER)
            found = y;
    }
    return found;
}

/* Is the writing operator known? Otherwise all operands count as written. */
static bool is_plain_call(const struct fx_node *x)
{
    return x->kind == TUCK_CALL_FUNCTION && x->op != 0 && op_at(x->op)->cls != OP_HOP;
}

bool held_may_write(const tuck_graph *g, const struct fx_node *x)
{
    const tuck_graph *graph;

    if (op_at(x->op)->shape == OP_SHAPE_with_effects)
        return wraps_unknown(g, x) || (op_at(wrapped_op(g, x))->flags & OP_F_MUTATES);
    if (op_at(x->op)->shape != OP_SHAPE_control_deps)
        return node_nests_writes(g, x);
    const struct fx_node *call = held_call(g, x, &graph);
    if (call == NULL)
        return graph != NULL;
    return !is_plain_call(call) || (op_at(call->op)->flags & OP_F_MUTATES);
}

static void all_written(const tuck_value *v, const struct fx_node *x, bool *written)
{
    for (const tuck_value *end = value_next(v); v < end; v++)
        written[v - x->vals] = true;
}

static void mark_write(void *ctx, uint32_t storage, enum access how)
{
    bool *written = ctx;

    written[storage] |= how == ACCESS_WRITE;
}

/* Marks what a call passes to a graph that writes it. The graph itself must not call others. */
static void find_nested(struct build *b, uint32_t n, const tuck_graph *child, bool *written)
{
    const struct fx_node *x = node_at(b->g, n);
    struct storages in;
    uint32_t k = 0;

    storages_build(child, b->a, &in);
    bool *touched = arena_zeroed(b->a, (size_t)in.n + 1);
    for_each_node (child, i)
        storage_accesses(&in, i, mark_write, touched);
    for_each_node (child, i) {
        if (node_at(child, i)->kind != TUCK_PLACEHOLDER)
            continue;
        const tuck_value *v = passed_value(b->g, n, k++);
        if (!touched[storage_of(&in, i, 0)])
            continue;
        if (v != NULL)
            all_written(v, x, written);
        else
            memset(written, true, x->n_vals);
    }
}

/* Marks the values of a call of graphs that are written in them. */
static void find_nested_all(struct build *b, uint32_t n, bool *written)
{
    const struct fx_node *x = node_at(b->g, n);

    for (uint32_t i = 0; i < x->n_vals; i++) {
        const tuck_graph *child = x->vals[i].kind == TUCK_V_NODE ? child_of(b->g, x->vals[i].a)
                                                                 : NULL;
        if (child == NULL || !graph_may_write(child))
            continue;
        if (child->child.len > 0)
            memset(written, true, x->n_vals); /* graphs nested in it may write anything */
        else
            find_nested(b, n, child, written);
    }
}

/* Finds which values of the call are written by the graph it takes. */
static void find_held(struct build *b, uint32_t n, const struct fx_node *x)
{
    const tuck_graph *graph;
    const struct fx_node *call = held_call(b->g, x, &graph);
    const tuck_value *first = x->n_args >= 2 ? value_next(value_next(x->vals)) : NULL;
    bool *written = arena_zeroed(b->a, (size_t)x->n_vals + 1);
    uint32_t k = 0, p = 0;

    if (b->s->held == NULL)
        b->s->held = arena_zeroed(b->a, b->g->node.len * sizeof(*b->s->held));
    b->s->held[n] = written;
    if (op_at(x->op)->shape != OP_SHAPE_control_deps) {
        find_nested_all(b, n, written);
        return;
    }
    if (call == NULL || !is_plain_call(call)) {
        for (; first != NULL && first < x->vals + x->n_vals; first++)
            written[first - x->vals] = true;
        return;
    }
    const tuck_value **value = arena_zeroed(b->a, (size_t)x->n_args * sizeof(*value));
    for (uint32_t i = 2; i < x->n_args; i++, first = value_next(first))
        value[i - 2] = first;
    const struct op_sig *sig = sig_of(b, call->op);
    struct arena_mark mark = arena_mark(b->a);
    uint32_t *operand = arena_zeroed(b->a, graph->node.len * sizeof(*operand)); /* and 1 */
    for_each_node (graph, i)
        if (node_at(graph, i)->kind == TUCK_PLACEHOLDER)
            operand[i] = ++k;
    const tuck_value *v = call->vals;
    for (uint32_t i = 0; i < call->n_args + call->n_kwargs; i++) {
        p = i;
        if (i >= call->n_args) {
            const struct str *key = str_at(&b->g->store->str, v->a);
            int found = op_param_find(sig, key->at, key->len);
            p = found >= 0 ? (uint32_t)found : sig->n_params;
            v++;
        }
        for (const tuck_value *end = value_next(v); v < end; v++)
            if (v->kind == TUCK_V_NODE && operand[v->a] != 0 && p < sig->n_params &&
                op_param_mutated(sig, p))
                all_written(value[operand[v->a] - 1], x, written);
    }
    arena_release(b->a, mark);
}

/* The row whose signature says what a node writes. */
static uint32_t writing_op(const tuck_graph *g, uint32_t n)
{
    const struct fx_node *x = node_at(g, n);
    uint32_t op = op_at(x->op)->shape == OP_SHAPE_with_effects ? wrapped_op(g, x) : 0;

    return op != 0 ? op : x->op;
}

static void find_results(struct build *b, uint32_t n)
{
    const struct fx_node *x = node_at(b->g, n);
    const struct op_row *row = op_at(x->op);

    b->s->first[n] = b->pool.len;
    if (node_may_write(b->g, n)) {
        sig_of(b, writing_op(b->g, n));
        if (row->cls == OP_HOP && row->shape != OP_SHAPE_with_effects && held_may_write(b->g, x))
            find_held(b, n, x);
    }
    results_of(b, n);
}

void storages_build(const tuck_graph *g, struct arena *a, struct storages *s)
{
    storages_build_apart(g, a, NULL, s);
}

void storages_build_apart(const tuck_graph *g, struct arena *a, const bool *copies,
                          struct storages *s)
{
    struct build b = {.s = s, .g = g, .a = a};
    size_t some = (size_t)g->n_nodes + g->n_nodes / 8 + 2;

    *s = (struct storages){.g = g, .copies = copies};
    s->first = arena_array(a, uint32_t, g->node.len);
    s->count = arena_zeroed(a, g->node.len * sizeof(*s->count));
    s->sig = arena_zeroed(a, ((size_t)op_count() + 1) * sizeof(*s->sig));
    vec_reserve_in(a, &b.same, some);
    vec_reserve_in(a, &b.kin, some);
    vec_reserve_in(a, &b.pool, some);
    vec_push_in(a, &b.same, 0);
    vec_push_in(a, &b.kin, 0);
    find_items(&b);
    for_each_node (g, n)
        find_results(&b, n);
    join_inputs(&b);
    s->n = b.same.len - 1;
    s->of = b.pool.at;
    s->same = b.same.at;
    s->kin = b.kin.at;
}

/* ---- what is written ---- */

static void note_write(void *ctx, uint32_t storage, enum access how)
{
    bool *written = ctx;

    written[storage] |= how == ACCESS_WRITE;
}

const bool *storages_written(const struct storages *s, struct arena *a)
{
    bool *written = arena_zeroed(a, (size_t)s->n + 1);

    for_each_node (s->g, n)
        if (node_may_write(s->g, n))
            storage_accesses(s, n, note_write, written);
    return written;
}

const bool *storages_touched(const struct storages *s, const bool *written, struct arena *a)
{
    bool *touched = arena_zeroed(a, s->g->node.len);

    for (uint32_t n = 0; n < s->g->node.len; n++)
        for (uint32_t k = 0; k < s->count[n]; k++)
            touched[n] |= written[storage_root(s, s->of[s->first[n] + k])];
    return touched;
}

/* ---- accesses ---- */

void storage_mentions(const struct storages *s, uint32_t n, uint32_t slot, uint32_t *first,
                      uint32_t *end)
{
    const struct fx_node *x = node_at(s->g, n);
    bool picks = op_at(x->op)->form == OP_FORM_GETITEM && x->n_vals == 2 && slot == 0;
    const tuck_value *item = picks ? &x->vals[1] : NULL;

    *first = 0;
    *end = s->count[x->vals[slot].a];
    if (picks && item->kind == TUCK_V_INT && item->u.i >= 0 && item->u.i < *end) {
        *first = (uint32_t)item->u.i;
        *end = *first + 1;
    }
}

/* A view only makes a new name for an existing value. */
static bool touches_nothing(const struct fx_node *x)
{
    const struct op_row *row = op_at(x->op);

    return x->kind == TUCK_PLACEHOLDER || x->kind == TUCK_GET_ATTR || x->kind == TUCK_RESULT ||
           row->form == OP_FORM_GETITEM || row->flags & OP_F_METADATA ||
           (row->cls == OP_VIEW && !(row->flags & (OP_F_MAYBE | OP_F_MUTATES)));
}

/* Does it only read its operands? That is the usual case. */
static bool only_reads(const struct fx_node *x)
{
    const struct op_row *row = op_at(x->op);

    return x->kind == TUCK_OUTPUT ||
           ((x->kind == TUCK_CALL_FUNCTION || x->kind == TUCK_CALL_METHOD) && x->op != 0 &&
            row->cls != OP_HOP && !(row->flags & OP_F_MUTATES));
}

static void find_reads(const struct storages *s, uint32_t *up, const struct fx_node *x,
                       access_fn fn, void *ctx)
{
    for (const tuck_value *v = x->vals, *end = v + x->n_vals; v < end; v++)
        for (uint32_t k = 0; v->kind == TUCK_V_NODE && k < s->count[v->a]; k++)
            fn(ctx, root_in(up, s->of[s->first[v->a] + k]), ACCESS_READ);
}

static void find_accesses(const struct storages *s, uint32_t *up, uint32_t node, access_fn fn,
                          void *ctx)
{
    const tuck_graph *g = s->g;
    const struct fx_node *x = node_at(g, node);

    if (touches_nothing(x) && (s->copies == NULL || !s->copies[node]))
        return;
    if (only_reads(x)) {
        find_reads(s, up, x, fn, ctx);
        return;
    }
    bool barrier = node_is_barrier(g, node);
    const struct op_sig *sig = node_may_write(g, node) ? s->sig[writing_op(g, node)] : NULL;
    uint32_t skipped = sig != NULL && writing_op(g, node) != x->op ? 2 : 0; /* token, operator */
    const tuck_value *v = x->vals;

    for (uint32_t i = 0; i < x->n_args + x->n_kwargs; i++) {
        int p = (int)i - (int)skipped;
        if (i == 0 && x->n_args > 0 && op_at(x->op)->shape == OP_SHAPE_control_deps) {
            v = value_next(v); /* only names nodes to come after; does not read them */
            continue;
        }
        if (i >= x->n_args) {
            const struct str *key = str_at(&g->store->str, v->a);
            p = sig ? op_param_find(sig, key->at, key->len) : -1;
            v++;
        }
        bool written = barrier || (sig != NULL && p >= 0 && (uint32_t)p < sig->n_params &&
                                   op_param_mutated(sig, (uint32_t)p));
        const bool *held = s->held != NULL ? s->held[node] : NULL;
        const tuck_value *end = value_next(v);
        for (; v < end; v++) {
            bool here = written || (held != NULL && held[v - x->vals]);
            for (uint32_t k = 0; v->kind == TUCK_V_NODE && k < s->count[v->a]; k++)
                fn(ctx, root_in(up, s->of[s->first[v->a] + k]), here ? ACCESS_WRITE : ACCESS_READ);
        }
    }
}

void storage_accesses(const struct storages *s, uint32_t node, access_fn fn, void *ctx)
{
    find_accesses(s, s->kin, node, fn, ctx);
}

void memory_accesses(const struct storages *s, uint32_t node, access_fn fn, void *ctx)
{
    find_accesses(s, s->same, node, fn, ctx);
}

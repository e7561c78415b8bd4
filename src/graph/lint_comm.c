/* Collectives and their waits.
 *
 *   start ──> wait ──> anything           the sizes of a start may be read, too;
 *   start ──> [i] ──> wait ──> anything   a list of results is unpacked first
 *
 * Each start must be waited for; until then nothing may read its result, or a buffer that it works
 * on in place. Schedulers hide starts in nested graphs, control_deps((after,), graph,
 * operands): what such a graph returns is a start for the graph around it. What goes into a
 * nested graph is not followed.
 */
#include <stdio.h>

#include "graph/lint.h"

#define NEVER LINT_NEVER

/* ---- what a node is ---- */

/* Does it start something that a wait on its result must end? Operators that return a handle, or
 * nothing, are ended in other ways. */
static bool is_start(struct lint *x, uint32_t n)
{
    const struct fx_node *node = node_at(x->g, n);
    const struct op_row *row = op_at(node->op);

    if (node->kind != TUCK_CALL_FUNCTION || (row->cls != OP_COLLECTIVE && row->cls != OP_P2P))
        return false;
    const struct op_sig *sig = sigs_get(&x->sigs, node->op);
    for (uint32_t i = 0; i < sig->n_results; i++)
        if (sig->results[i].type != OP_T_TENSOR)
            return false;
    return sig->n_results > 0;
}

static bool is_class(const struct lint *x, uint32_t n, enum op_class cls)
{
    const struct fx_node *node = node_at(x->g, n);

    return node->kind == TUCK_CALL_FUNCTION && op_at(node->op)->cls == cls;
}

/* Does it pick an item out of a container? Reading an attribute does not count. */
static bool is_pick(const struct lint *x, uint32_t n)
{
    return is_class(x, n, OP_GETITEM) && !(op_at(node_at(x->g, n)->op)->flags & OP_F_METADATA);
}

static bool is_question(const struct lint *x, uint32_t n)
{
    uint32_t op = node_op(x->g, n);

    return (op_at(op)->flags & OP_F_METADATA) != 0;
}

/* Is it unknown what it does with its operands? */
static bool is_unknown(const struct lint *x, uint32_t n)
{
    uint8_t kind = node_at(x->g, n)->kind;

    return kind == TUCK_OPAQUE || kind == TUCK_RESULT || kind == TUCK_CALL_MODULE ||
           node_op(x->g, n) == 0 || is_class(x, n, OP_HOP);
}

/* The nested graph that a node calls and whose results it returns, or NULL. */
static const struct lint_graph *called_graph(struct lint *x, uint32_t n)
{
    const tuck_graph *g = x->g;
    const struct fx_node *node = node_at(g, n);
    uint16_t shape = op_at(node->op)->shape;
    struct operand o = {.v = NULL};

    if (node->kind != TUCK_CALL_FUNCTION ||
        (shape != OP_SHAPE_control_deps && shape != OP_SHAPE_invoke_subgraph))
        return NULL;
    while (operand_next(g, node, sigs_get(&x->sigs, node->op), &o)) {
        if (o.param == NULL || o.param->type != OP_T_GRAPH || o.v->kind != TUCK_V_NODE)
            continue;
        const struct fx_node *d = node_alive(g, o.v->a) ? node_at(g, o.v->a) : node;
        bool named = d->kind == TUCK_GET_ATTR && g->child.len > 0;
        uint32_t k = named ? x->child.at[d->target] : UINT32_MAX;
        if (k < g->child.len && g->child.at[k]->name == d->target)
            return &x->all.at[x->all.at[x->number - 1].first_child + k];
    }
    return NULL;
}

/* The operator that was started, if the node is its result: by itself, by calling a graph that
 * returns it, or by picking it from what such a call returns. 0 if none. */
static uint16_t start_op(struct lint *x, uint32_t n)
{
    const struct fx_node *node = node_at(x->g, n);
    const struct lint_graph *sub;

    if (is_start(x, n))
        return node->op;
    if ((sub = called_graph(x, n)) != NULL)
        return sub->alone && sub->n_results == 1 ? x->results.at[sub->result] : 0;
    if (!is_pick(x, n) || node->n_args != 2 || node->vals[0].kind != TUCK_V_NODE ||
        !node_alive(x->g, node->vals[0].a) || (sub = called_graph(x, node->vals[0].a)) == NULL ||
        sub->alone)
        return 0;
    const tuck_value *item = value_next(node->vals);
    return item->kind == TUCK_V_INT && item->u.i >= 0 && item->u.i < (int64_t)sub->n_results
               ? x->results.at[sub->result + (uint32_t)item->u.i]
               : 0;
}

/* Does it only have to come after it? */
static bool is_dependency(const struct lint *x, const struct fx_use *use)
{
    const struct fx_node *user = node_at(x->g, use->user);

    return op_at(user->op)->shape == OP_SHAPE_control_deps && value_is_container(user->vals) &&
           use->slot >= 1 && (int64_t)use->slot <= user->vals->u.i;
}

/* ---- one start ---- */

/* What happened to one result. */
struct fate {
    bool waited, returned, picked, escaped;
};

/* Checks one use of `n`, which is the result of a start, an item of it, or a view of that. */
static void check_use(struct lint *x, const struct op_row *row, uint32_t n, uint32_t of,
                      uint32_t user, struct fate *f)
{
    char note[256];

    if (lint_is_view(x, user) || (is_pick(x, user) && n != of)) {
        vec_push(&x->mem, &x->alias, user); /* a view reads no data; its users do */
    } else if (is_pick(x, user)) {
        f->picked = true;
        vec_push(&x->mem, &x->flying, user);
    } else if (user == x->g->output) {
        f->returned = true;
    } else if (is_unknown(x, user)) {
        f->escaped = true;
    } else {
        snprintf(note, sizeof(note), "the result of %s is valid only after a wait", row->name);
        lint_report(x, TUCK_ERROR, user, note, "'%s' reads '%s' without a wait", lint_name(x, user),
                    lint_name(x, of));
        f->escaped = true; /* reported before */
    }
}

/* Checks every use of `n`, the result of `start` or an item of it, and of its views. A result with
 * storage of its own must be read through its wait only, because nothing else keeps the read after
 * it; one that is an operand used in place may be read once the wait is over. */
static struct fate check_result(struct lint *x, const struct op_row *row, uint32_t start,
                                uint32_t n)
{
    const tuck_graph *g = x->g;
    uint32_t wait = lint_wait_after(x, n, x->pos.at[start]);
    uint32_t until = row->flags & OP_F_MUTATES ? wait : NEVER;
    struct fate f = {.waited = wait != NEVER};

    x->alias.len = 0;
    vec_push(&x->mem, &x->alias, n);
    for (uint32_t i = 0; i < x->alias.len; i++) {
        uint32_t of = x->alias.at[i];
        for (uint32_t u = node_at(g, of)->use_first; u != 0; u = g->use.at[u].next) {
            uint32_t user = g->use.at[u].user;
            if (!is_class(x, user, OP_WAIT) && x->pos.at[user] <= until && !is_question(x, user) &&
                !is_dependency(x, &g->use.at[u]))
                check_use(x, row, n, of, user, &f);
        }
    }
    return f;
}

/* The position of the first wait for item `item` of a start (-1: for any item), or NEVER. */
static uint32_t first_wait(const struct lint *x, uint32_t start, int64_t item)
{
    const tuck_graph *g = x->g;
    uint32_t first = NEVER;

    for (uint32_t i = 0; i < x->flying.len; i++) {
        uint32_t n = x->flying.at[i];
        const struct fx_node *node = node_at(g, n);

        if (n != start && item >= 0 && node->n_args == 2) {
            const tuck_value *index = value_next(node->vals);
            if (index->kind == TUCK_V_INT && index->u.i != item)
                continue;
        }
        uint32_t wait = lint_wait_after(x, n, x->pos.at[start]);
        first = wait < first ? wait : first;
        for (uint32_t u = node->use_first; u != 0; u = g->use.at[u].next) {
            uint32_t user = g->use.at[u].user;
            if (is_unknown(x, user) && x->pos.at[user] < first)
                first = x->pos.at[user];
        }
    }
    return first;
}

/* `buffer` is written by `start` until it is waited for: nothing else may use it until then, under
 * any name. */
static bool check_buffer(struct lint *x, uint32_t start, uint32_t buffer, uint32_t until)
{
    const tuck_graph *g = x->g;
    uint32_t from = x->pos.at[start], wait = lint_wait_after(x, buffer, from);
    char note[256];

    until = wait < until ? wait : until;
    x->alias.len = 0;
    vec_push(&x->mem, &x->alias, buffer);
    for (uint32_t i = 0; i < x->alias.len; i++) {
        uint32_t of = x->alias.at[i];
        for (uint32_t u = node_at(g, of)->use_first; u != 0; u = g->use.at[u].next) {
            uint32_t user = g->use.at[u].user, pos = x->pos.at[user];

            if (pos >= until || user == g->output)
                continue;
            if (lint_is_view(x, user) || (is_pick(x, user) && of != buffer))
                vec_push(&x->mem, &x->alias, user); /* also a view made before */
            else if (pos > from && !is_question(x, user) && !is_unknown(x, user) &&
                     !is_class(x, user, OP_WAIT)) {
                snprintf(note, sizeof(note), "wait for '%s' first", lint_name(x, start));
                lint_report(x, TUCK_ERROR, user, note, "'%s' reads '%s' while '%s' writes it",
                            lint_name(x, user), lint_name(x, of), lint_name(x, start));
            }
        }
    }
    return until != NEVER;
}

/* Checks the operands that a start works on in place. True: a wait for one of them ends it. */
static bool check_buffers(struct lint *x, uint32_t start)
{
    const tuck_graph *g = x->g;
    const struct fx_node *node = node_at(g, start);
    const struct op_sig *sig = sigs_get(&x->sigs, node->op);
    struct operand o = {.v = NULL};
    bool waited = false;

    if (!(op_at(node->op)->flags & OP_F_MUTATES))
        return false;
    while (operand_next(g, node, sig, &o)) {
        if (o.param == NULL || !o.param->mutated)
            continue;
        if (o.v->kind == TUCK_V_NODE)
            waited |= check_buffer(x, start, o.v->a, first_wait(x, start, -1));
        else if (value_is_container(o.v)) {
            const tuck_value *v = o.v + 1;
            for (uint32_t i = 0; i < o.v->a; i++, v = value_next(v))
                if (v->kind == TUCK_V_NODE)
                    waited |= check_buffer(x, start, v->a, first_wait(x, start, i));
        }
    }
    return waited;
}

/* Item `item` of a start, or the start itself, is not waited for. */
static void check_end(struct lint *x, const struct op_row *row, uint32_t start, uint32_t item,
                      bool returned)
{
    const char *name = lint_name(x, start), *of = "", *end = "";
    char note[256];

    if (returned && x->nested)
        return;
    if (item != start)
        of = " of '", end = "'";
    else
        name = "";
    snprintf(note, sizeof(note), "%s starts it, a wait ends it", row->name);
    lint_report(x, TUCK_WARNING, item, returned ? "the caller must wait for it" : note,
                "'%s'%s%s%s is %s", lint_name(x, item), of, name, end,
                returned ? "returned without a wait" : "never waited for");
}

static void check_start(struct lint *x, uint32_t start, uint16_t op)
{
    const struct op_row *row = op_at(op);
    struct fate all = {.waited = false};

    x->flying.len = 0;
    vec_push(&x->mem, &x->flying, start);
    for (uint32_t i = 0; i < x->flying.len; i++) {
        uint32_t n = x->flying.at[i];
        struct fate f = check_result(x, row, start, n);

        if (i == 0)
            all = f;
        else if (!f.waited && !f.escaped && !f.picked && !all.waited)
            check_end(x, row, start, n, f.returned);
    }
    bool by_operand = is_start(x, start) && check_buffers(x, start);
    if (!all.waited && !all.escaped && !all.picked && !by_operand)
        check_end(x, row, start, start, all.returned);
}

/* Could this value contain something to wait for? */
static bool may_fly(struct lint *x, uint32_t n)
{
    const tuck_graph *g = x->g;

    for (;;) {
        const struct fx_node *node = node_at(g, n);
        enum op_class cls = (enum op_class)op_at(node->op)->cls;

        if (node->kind != TUCK_CALL_FUNCTION || node->op == 0 || cls == OP_COLLECTIVE ||
            cls == OP_P2P || cls == OP_SYNC_COLLECTIVE || cls == OP_WAIT || cls == OP_HOP)
            return true;
        for (uint32_t u = node->use_first; u != 0; u = g->use.at[u].next)
            if (is_start(x, g->use.at[u].user) &&
                (op_at(node_at(g, g->use.at[u].user)->op)->flags & OP_F_MUTATES))
                return true; /* it is a buffer in use */
        uint32_t from = cls == OP_GETITEM || cls == OP_VIEW ? call_node(g, node, 0) : 0;
        if (from == 0 || x->pos.at[from] >= x->pos.at[n])
            return false;
        n = from;
    }
}

static void check_wait(struct lint *x, uint32_t n)
{
    uint32_t what = call_node(x->g, node_at(x->g, n), 0);

    if (what != 0 && !may_fly(x, what))
        lint_report(x, TUCK_WARNING, n, NULL, "'%s' waits for '%s', which is not a collective",
                    lint_name(x, n), lint_name(x, what));
}

/* ---- graphs ---- */

void lint_enter(struct lint *x, uint32_t graph)
{
    const tuck_graph *g = x->all.at[graph].g;

    x->g = g;
    x->number = graph + 1;
    x->nested = graph > 0;
    for (uint32_t k = 0; k < g->child.len; k++)
        x->child.at[g->child.at[k]->name] = k;
}

/* Is the value, or what it was picked from, a start that the graph itself does not wait for?
 * x->count says which nodes are waited for. */
static uint16_t returned_op(struct lint *x, uint32_t n)
{
    const tuck_graph *g = x->g;

    for (int steps = 0; steps < 8 && node_alive(g, n);
         steps++) { /* lists are not nested that deep */
        const struct fx_node *node = node_at(g, n);
        uint16_t op = start_op(x, n);

        if (x->count.at[n] > 0)
            return 0;
        for (uint32_t i = 0; op != 0 && i < node->n_vals; i++)
            if (node->vals[i].kind == TUCK_V_NODE && node->vals[i].a < g->node.len &&
                x->count.at[node->vals[i].a] > 0)
                return 0; /* in place, and waited for through its operand */
        if (op != 0 || !is_pick(x, n) || node->n_vals == 0 || node->vals[0].kind != TUCK_V_NODE)
            return op;
        n = node->vals[0].a;
    }
    return 0;
}

/* Runs before the checks, so it relies neither on the order of nodes nor on use lists. */
void lint_results(struct lint *x, uint32_t graph)
{
    lint_enter(x, graph);
    const tuck_graph *g = x->g;
    struct lint_graph *self = &x->all.at[graph];

    self->result = x->results.len;
    if (!x->nested || !node_alive(g, g->output) || node_at(g, g->output)->n_vals == 0)
        return;
    x->count.len = 0;
    vec_reserve(&x->mem, &x->count, g->node.len);
    memset(x->count.at, 0, g->node.len * sizeof(*x->count.at));
    for (uint32_t n = FX_FIRST_ID; n < g->node.len; n++) {
        const struct fx_node *node = node_at(g, n);
        uint32_t what = node->kind != 0 && is_class(x, n, OP_WAIT) ? call_node(g, node, 0) : 0;
        if (what != 0 && what < g->node.len)
            x->count.at[what]++;
    }
    const tuck_value *v = node_at(g, g->output)->vals;
    self->alone = v->kind != TUCK_V_LIST && v->kind != TUCK_V_TUPLE;
    self->n_results = self->alone ? 1 : v->a;
    const tuck_value *item = self->alone ? v : v + 1;
    for (uint32_t i = 0; i < self->n_results; i++, item = value_next(item))
        vec_push(&x->mem, &x->results,
                 item->kind == TUCK_V_NODE ? returned_op(x, item->a) : (uint16_t)0);
}

void lint_comm_begin(struct lint *x)
{
    uint32_t ids = x->g->node.len;

    x->comm.len = x->wait.len = x->base.len = 0;
    vec_reserve(&x->mem, &x->base, ids);
    memset(x->base.at, 0, ids * sizeof(*x->base.at));
}

void lint_comm_note(struct lint *x, uint32_t n)
{
    const struct fx_node *node = node_at(x->g, n);
    const struct op_row *row = op_at(node->op);
    bool listed = false;

    if (node->kind != TUCK_CALL_FUNCTION)
        return;
    switch ((enum op_class)row->cls) {
    case OP_COLLECTIVE:
    case OP_P2P: listed = true; break;
    case OP_WAIT:
        listed = true;
        lint_wait(x, n);
        break;
    case OP_GETITEM: /* of what a nested graph returns */
        listed = x->g->child.len > 0;
        lint_view(x, n);
        break;
    case OP_VIEW: lint_view(x, n); break;
    default: break;
    }
    if (listed || row->shape == OP_SHAPE_control_deps || row->shape == OP_SHAPE_invoke_subgraph)
        vec_push(&x->mem, &x->comm, n);
}

void lint_comm(struct lint *x)
{
    lint_waits(x);
    for (uint32_t i = 0; i < x->comm.len; i++) {
        uint32_t n = x->comm.at[i];
        uint16_t op = start_op(x, n);

        if (op != 0)
            check_start(x, n, op);
        else if (is_class(x, n, OP_WAIT))
            check_wait(x, n);
    }
}

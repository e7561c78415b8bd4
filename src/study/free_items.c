#include "study/free_items.h"

#include "graph/effect.h"
#include "graph/nested.h"
#include "lower/lower.h"
#include "op/ops.h"

/* ---- what may go ---- */

static void find_live(struct free_items *x)
{
    uint32_t n = 0, *order = arena_array(x->a, uint32_t, x->g->node.len);

    for_each_node (x->g, k)
        order[n++] = k;
    while (n-- > 0) {
        const struct fx_node *k = node_at(x->g, order[n]);
        if (k->kind == TUCK_OUTPUT || node_has_effect(x->g, order[n]) ||
            node_nests_effect(x->g, order[n]))
            x->live[order[n]] = true;
        for (uint32_t i = 0; x->live[order[n]] && i < k->n_vals; i++)
            if (k->vals[i].kind == TUCK_V_NODE)
                x->live[k->vals[i].a] = true;
    }
}

/* Is `node` the only one that uses n, dead code aside? */
static bool is_only_user(const struct free_items *x, uint32_t node, uint32_t n)
{
    const tuck_graph *g = x->g;

    for (uint32_t u = node_at(g, n)->use_first; u != 0; u = g->use.at[u].next)
        if (g->use.at[u].user != node && x->live[g->use.at[u].user])
            return false;
    return true;
}

/* Is it computed element by element from several results of reduce-scatters that nothing else
 * uses? */
static bool is_sum_of(const struct free_items *x, uint32_t node)
{
    const struct fx_node *k = node_at(x->g, node);
    uint32_t n = 0;

    if (op_at(node_op(x->g, node))->cls != OP_POINTWISE)
        return false;
    for (uint32_t i = 0; i < k->n_vals; i++) {
        if (k->vals[i].kind != TUCK_V_NODE)
            continue;
        if (!x->is_sum[k->vals[i].a] || !is_only_user(x, node, k->vals[i].a))
            return false;
        n++;
    }
    return n > 1;
}

/* The result of a reduce-scatter is a sum of one. */
static void find_sums(struct free_items *x)
{
    for_each_node (x->g, k) {
        const struct fx_node *f = node_at(x->g, k);
        uint32_t from = call_base(x->g, f);

        if (op_at(node_op(x->g, k))->cls == OP_WAIT && from != 0)
            x->is_sum[k] = (op_at(node_op(x->g, from))->flags & OP_F_REDUCE_SCATTER) != 0;
        if (!is_sum_of(x, k))
            continue;
        x->is_sum[k] = true;
        for (uint32_t i = 0; i < f->n_vals; i++) {
            uint32_t wait = f->vals[i].kind == TUCK_V_NODE ? f->vals[i].a : 0;
            if (wait != 0 && op_at(node_op(x->g, wait))->cls == OP_WAIT)
                x->mergeable[call_base(x->g, node_at(x->g, wait))] = true;
        }
    }
}

static bool may_vanish(const struct free_items *x, uint32_t i)
{
    const struct program *p = x->p;
    const struct program_op *op = &p->op[i];
    bool live = false;

    if (op->kind == PROGRAM_FUSED || op->kind == PROGRAM_COPY || (op->flags & PROGRAM_LOOP))
        return true;
    for (uint32_t k = p->node_at[i]; k < p->node_at[i + 1]; k++)
        live |= x->live[p->node_id[k]];
    if (p->node_at[i] == p->node_at[i + 1]) /* the op is only a part of its node */
        live = x->live[op->node];
    if (op->kind == PROGRAM_COLLECTIVE)
        return x->mergeable[op->node];
    enum op_class cls = op_at(node_op(x->g, op->node))->cls;
    return !live || cls == OP_FSDP || cls == OP_COPY || cls == OP_FACTORY || cls == OP_VIEW;
}

/* ---- items ---- */

struct building {
    struct free_items *x;
    uint32_t *op_at, *op; /* by node: its ops */
    uint32_t *item_of_op; /* by op that is not a loop of several nodes */
    uint32_t *met, n_met; /* by item: the last query that met it */
    uint32_t n_edge, n_wait;
};

static void list_ops(struct building *b)
{
    const struct program *p = b->x->p;

    b->op_at = csr_begin(b->x->a, b->x->g->node.len);
    for (int fill = 0; fill < 2; fill++) {
        for (uint32_t i = 0; i < p->n_op; i++) {
            bool fused = p->op[i].kind == PROGRAM_FUSED;
            uint32_t from = fused ? p->node_at[i] : 0, to = fused ? p->node_at[i + 1] : 1;
            for (uint32_t k = from; k < to; k++) {
                uint32_t node = fused ? p->node_id[k] : p->op[i].node;
                if (fill)
                    b->op[csr_place(b->op_at, node)] = i;
                else
                    csr_count(b->op_at, node);
            }
        }
        if (!fill)
            b->op = arena_array(b->x->a, uint32_t, csr_sum(b->op_at, b->x->g->node.len));
    }
}

static uint32_t new_item(struct building *b, uint32_t node, uint32_t op)
{
    struct free_items *x = b->x;
    uint32_t v = x->s.n++;

    x->node[v] = node;
    x->op[v] = op;
    x->s.pred_at[v + 1] = b->n_edge;
    x->s.wait_at[v + 1] = b->n_wait;
    return v;
}

static void new_edge(struct building *b, uint32_t v, uint32_t u, bool join)
{
    b->x->s.pred[b->n_edge++] = sides_edge(u, join);
    b->x->s.pred_at[v + 1] = b->n_edge;
}

/* The items that the operands of a node come from, each once. */
static uint32_t operand_items(struct building *b, uint32_t node, uint32_t *item)
{
    const struct fx_node *k = b->x->call[node];
    uint32_t n = 0;

    b->n_met++;
    for (uint32_t i = 0; i < k->n_vals; i++) {
        uint32_t u = k->vals[i].kind == TUCK_V_NODE ? b->x->item_of[k->vals[i].a] : SIDES_NONE;
        if (u == SIDES_NONE || b->met[u] == b->n_met)
            continue;
        b->met[u] = b->n_met;
        item[n++] = u;
    }
    return n;
}

/* A view has the item of its operand. One with sizes from elsewhere needs an item of its own. */
static void add_view(struct building *b, uint32_t node, const uint32_t *item, uint32_t n)
{
    struct free_items *x = b->x;
    uint32_t of = call_base(x->g, x->call[node]);

    /* An item of several results is none of the others. */
    if (of != 0 &&
        (b->op_at[of] == b->op_at[of + 1] || op_at(node_op(x->g, node))->cls != OP_GETITEM))
        x->shows[node] = x->shows[of];
    if (n <= 1) {
        x->item_of[node] = n == 1 ? item[0] : SIDES_NONE;
        return;
    }
    uint32_t v = new_item(b, node, PROGRAM_NONE);
    for (uint32_t i = 0; i < n; i++) {
        new_edge(b, v, item[i], true);
        x->is_loop[v] |= x->is_loop[item[i]];
    }
    x->item_of[node] = v;
}

/* Does it write into a buffer that others read, and stay? A wait does, even if its result has
 * another name. */
static bool is_writer(const struct free_items *x, uint32_t op, uint32_t buf)
{
    const struct program *p = x->p;
    bool writes = false;

    for (uint32_t i = p->use_at[op]; i < p->use_at[op + 1]; i++)
        writes |= p->use[i].buf == buf && p->use[i].how == PROGRAM_MUTATES;
    return writes && !x->vanishes[op] && p->op[op].kind != PROGRAM_COLLECTIVE;
}

/* Whatever reads a buffer stays before or after what writes into it. Of a loop it is not known
 * which of its nodes reads the buffer. */
static void add_writes(struct building *b, uint32_t v, uint32_t op)
{
    const struct free_items *x = b->x;
    const struct program *p = x->p;

    for (uint32_t i = p->dep_at[op]; i < p->dep_at[op + 1]; i++) {
        const struct program_dep *d = &p->dep[i];
        uint32_t u = b->item_of_op[d->op];
        if ((d->flags & PROGRAM_FAKE) || d->buf == PROGRAM_NONE || u == SIDES_NONE ||
            p->op[d->op].kind == PROGRAM_FUSED || x->s.is_async[u])
            continue;
        if (is_writer(x, d->op, d->buf) ||
            (p->op[op].kind != PROGRAM_WAIT && !x->vanishes[d->op] && is_writer(x, op, d->buf)))
            new_edge(b, v, u, false);
    }
}

static void add_op(struct building *b, uint32_t node, uint32_t op, const uint32_t *item, uint32_t n,
                   uint32_t before)
{
    struct free_items *x = b->x;
    const struct program *p = x->p;
    uint32_t v = new_item(b, node, op);

    x->is_loop[v] = x->vanishes[op] && p->op[op].kind != PROGRAM_COLLECTIVE &&
                    p->op[op].kind != PROGRAM_WAIT;
    for (uint32_t i = 0; i < n; i++)
        new_edge(b, v, item[i], x->is_loop[v] && x->is_loop[item[i]]);
    if (before != SIDES_NONE)
        new_edge(b, v, before, x->is_loop[v] && x->is_loop[before]);
    x->s.is_async[v] = problem_is_async(x->problem, op);
    /* Waits for one result may become one wait. */
    if (p->op[op].kind == PROGRAM_WAIT && call_base(x->g, x->call[node]) != 0)
        x->shows[node] = x->shows[call_base(x->g, x->call[node])];
    if (p->op[op].kind == PROGRAM_COLLECTIVE)
        x->s.channel[v] = p->op[op].group == PROGRAM_NONE ? p->n_group : p->op[op].group;
    b->item_of_op[op] = v;
    if (p->op[op].kind != PROGRAM_FUSED)
        add_writes(b, v, op);
    for (uint32_t i = p->wait_at[op]; i < p->wait_at[op + 1]; i++)
        if (b->item_of_op[p->wait[i]] != SIDES_NONE)
            x->s.wait[b->n_wait++] = b->item_of_op[p->wait[i]];
    x->s.wait_at[v + 1] = b->n_wait;
    x->item_of[node] = v;
}

/* Is it one name for a result of the loop that it was put into? */
static bool is_view_in_loop(const struct free_items *x, uint32_t node, uint32_t op)
{
    return x->p->op[op].kind == PROGRAM_FUSED &&
           (x->p->role == NULL || (x->p->role[node] & ~ROLE_ENDS) != ROLE_FUSIBLE);
}

static void begin(struct building *b)
{
    struct free_items *x = b->x;
    size_t most = (size_t)x->p->n_op, n_val = 0, n_node = x->g->node.len;

    for_each_node (x->g, n) {
        most++;
        n_val += x->call[n]->n_vals;
    }
    for (uint32_t i = 0; i < x->p->n_op; i++)
        most += x->p->node_at[i + 1] - x->p->node_at[i];
    x->s = (struct sides){.n_channel = x->p->n_group + 1};
    x->s.work = arena_zeroed(x->a, most * sizeof(int64_t));
    x->s.transfer = arena_zeroed(x->a, most * sizeof(int64_t));
    x->s.before = arena_zeroed(x->a, most * sizeof(int64_t));
    x->s.channel = arena_array(x->a, uint32_t, most);
    for (size_t i = 0; i < most; i++)
        x->s.channel[i] = SIDES_NONE;
    x->s.is_async = arena_zeroed(x->a, most * sizeof(bool));
    x->s.pred_at = arena_zeroed(x->a, (most + 1) * sizeof(uint32_t));
    x->s.wait_at = arena_zeroed(x->a, (most + 1) * sizeof(uint32_t));
    x->s.pred = arena_array(x->a, uint32_t, most + n_val + x->p->dep_at[x->p->n_op]);
    x->s.wait = arena_array(x->a, uint32_t, x->p->wait_at[x->p->n_op]);
    x->item_of = arena_array(x->a, uint32_t, n_node);
    x->shows = arena_array(x->a, uint32_t, n_node);
    for (uint32_t n = 0; n < n_node; n++) {
        x->item_of[n] = SIDES_NONE;
        x->shows[n] = n;
    }
    x->node = arena_array(x->a, uint32_t, most);
    x->op = arena_array(x->a, uint32_t, most);
    x->is_loop = arena_zeroed(x->a, most * sizeof(bool));
    b->met = arena_zeroed(x->a, most * sizeof(uint32_t));
    b->item_of_op = arena_array(x->a, uint32_t, x->p->n_op);
    for (uint32_t i = 0; i < x->p->n_op; i++)
        b->item_of_op[i] = SIDES_NONE;
}

void free_items_find(struct free_items *x)
{
    struct building b = {.x = x};
    uint32_t n_node = x->g->node.len, most = 0;

    x->live = arena_zeroed(x->a, n_node * sizeof(bool));
    x->is_sum = arena_zeroed(x->a, n_node * sizeof(bool));
    x->mergeable = arena_zeroed(x->a, n_node * sizeof(bool));
    x->vanishes = arena_array(x->a, bool, x->p->n_op);
    x->call = arena_array(x->a, const struct fx_node *, n_node);
    for_each_node (x->g, n)
        x->call[n] = acting_call(x->g, n, x->a);
    find_live(x);
    find_sums(x);
    for (uint32_t i = 0; i < x->p->n_op; i++)
        x->vanishes[i] = may_vanish(x, i);
    begin(&b);
    list_ops(&b);
    for_each_node (x->g, n)
        most = x->call[n]->n_vals > most ? x->call[n]->n_vals : most;
    uint32_t *item = arena_array(x->a, uint32_t, most);
    for_each_node (x->g, n) {
        uint32_t first = b.op_at[n], end = b.op_at[n + 1], before = SIDES_NONE;
        uint32_t n_item = operand_items(&b, n, item);

        if (first == end || is_view_in_loop(x, n, b.op[first])) {
            add_view(&b, n, item, n_item);
            continue;
        }
        for (uint32_t k = first; k < end; k++) {
            add_op(&b, n, b.op[k], item, k == first ? n_item : 0, before);
            before = x->item_of[n];
        }
    }
}

/* Finds what is a view of what, and the waits for it. */
#include "graph/lint.h"

static bool calls(const struct lint *x, uint32_t n, enum op_class cls)
{
    const struct fx_node *node = node_at(x->g, n);

    return node->kind == TUCK_CALL_FUNCTION && op_at(node->op)->cls == cls;
}

/* An operator that may copy is a view if its operand is contiguous, as results of collectives are;
 * a view of those need not be. */
bool lint_is_view(const struct lint *x, uint32_t n)
{
    const struct fx_node *node = node_at(x->g, n);
    uint32_t flags = op_at(node->op)->flags, of = call_base(x->g, node);

    if (!calls(x, n, OP_VIEW) || (flags & OP_F_MUTATES) || of == 0 || !node_alive(x->g, of))
        return false;
    return !(flags & OP_F_MAYBE) || !calls(x, of, OP_VIEW);
}

/* The value that n is a view of, or an item of a list of views; 0 if it is neither. */
static uint32_t viewed(const struct lint *x, uint32_t n)
{
    const struct fx_node *node = node_at(x->g, n);
    uint32_t of = calls(x, n, OP_VIEW) || calls(x, n, OP_GETITEM) ? call_base(x->g, node) : 0;

    if (of == 0 || !node_alive(x->g, of) || x->pos.at[of] >= x->pos.at[n])
        return 0;
    if (calls(x, n, OP_GETITEM))
        return calls(x, of, OP_VIEW) ? of : 0;
    return lint_is_view(x, n) ? of : 0;
}

/* Runs twice: first to count the waits, then to store them. */
static void list_waits(struct lint *x, bool fill)
{
    for_each_node (x->g, n) {
        const struct fx_node *node = node_at(x->g, n);
        if (!calls(x, n, OP_WAIT))
            continue;
        for (uint32_t i = 0; i < node->n_vals; i++) {
            if (node->vals[i].kind != TUCK_V_NODE || !node_alive(x->g, node->vals[i].a))
                continue;
            uint32_t base = x->base.at[node->vals[i].a];
            if (fill)
                x->wait_pos.at[x->wait_at.at[base + 1]++] = x->pos.at[n];
            else
                x->wait_at.at[base + 2]++;
        }
    }
}

void lint_views(struct lint *x)
{
    uint32_t ids = x->g->node.len;

    x->base.len = x->wait_at.len = x->wait_pos.len = 0;
    vec_reserve(&x->mem, &x->base, ids);
    vec_reserve(&x->mem, &x->wait_at, ids + 2);
    memset(x->wait_at.at, 0, ((size_t)ids + 2) * sizeof(*x->wait_at.at));
    for (uint32_t n = 0; n < ids; n++)
        x->base.at[n] = n;
    for_each_node (x->g, n) {
        uint32_t of = viewed(x, n);
        if (of != 0)
            x->base.at[n] = x->base.at[of];
    }
    list_waits(x, false);
    for (uint32_t n = 0; n < ids; n++)
        x->wait_at.at[n + 2] += x->wait_at.at[n + 1];
    vec_reserve(&x->mem, &x->wait_pos, x->wait_at.at[ids + 1]);
    list_waits(x, true);
}

uint32_t lint_wait_after(const struct lint *x, uint32_t n, uint32_t after)
{
    uint32_t base = x->base.at[n], low = x->wait_at.at[base], end = x->wait_at.at[base + 1];

    for (uint32_t high = end; low < high;) {
        uint32_t mid = low + (high - low) / 2;
        if (x->wait_pos.at[mid] > after)
            high = mid;
        else
            low = mid + 1;
    }
    return low < end ? x->wait_pos.at[low] : LINT_NEVER;
}

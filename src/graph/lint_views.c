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

    if (of == 0 || !node_alive(x->g, of) || x->pos.at[of] == 0 || of == n)
        return 0;
    if (calls(x, n, OP_GETITEM))
        return calls(x, of, OP_VIEW) ? of : 0;
    return lint_is_view(x, n) ? of : 0;
}

static uint32_t base_of(const struct lint *x, uint32_t n)
{
    uint32_t base = x->base.at[n];

    return base != 0 ? base : n;
}

void lint_view(struct lint *x, uint32_t n)
{
    uint32_t of = viewed(x, n);

    if (of != 0)
        x->base.at[n] = base_of(x, of);
}

void lint_wait(struct lint *x, uint32_t n)
{
    const struct fx_node *node = node_at(x->g, n);

    for (uint32_t i = 0; i < node->n_vals; i++)
        if (node->vals[i].kind == TUCK_V_NODE && node_alive(x->g, node->vals[i].a))
            vec_push(&x->mem, &x->wait,
                     ((struct lint_wait){base_of(x, node->vals[i].a), x->pos.at[n]}));
}

void lint_waits(struct lint *x)
{
    uint32_t at = 0;

    x->waits_of.len = x->waits.len = x->wait_pos.len = 0;
    if (x->wait.len == 0)
        return;
    vec_reserve(&x->mem, &x->waits_of, x->g->node.len);
    memset(x->waits_of.at, 0, x->g->node.len * sizeof(*x->waits_of.at));
    vec_reserve(&x->mem, &x->wait_pos, x->wait.len);
    for (uint32_t i = 0; i < x->wait.len; i++) {
        uint32_t *of = &x->waits_of.at[x->wait.at[i].base];
        if (*of == 0) {
            vec_push(&x->mem, &x->waits, ((struct lint_waits){.n = 0}));
            *of = x->waits.len;
        }
        x->waits.at[*of - 1].n++;
    }
    for (uint32_t k = 0; k < x->waits.len; k++) {
        struct lint_waits *w = &x->waits.at[k];
        w->at = w->end = at;
        at += w->n;
    }
    for (uint32_t i = 0; i < x->wait.len; i++) {
        struct lint_waits *w = &x->waits.at[x->waits_of.at[x->wait.at[i].base] - 1];
        x->wait_pos.at[w->end++] = x->wait.at[i].pos;
    }
}

uint32_t lint_wait_after(const struct lint *x, uint32_t n, uint32_t after)
{
    uint32_t of = x->wait.len > 0 ? x->waits_of.at[base_of(x, n)] : 0;

    if (of == 0)
        return LINT_NEVER;
    uint32_t low = x->waits.at[of - 1].at, end = x->waits.at[of - 1].end;

    for (uint32_t high = end; low < high;) {
        uint32_t mid = low + (high - low) / 2;
        if (x->wait_pos.at[mid] > after)
            high = mid;
        else
            low = mid + 1;
    }
    return low < end ? x->wait_pos.at[low] : LINT_NEVER;
}

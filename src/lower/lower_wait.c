/* Waits: which collectives they end, and which buffers they keep alive.
 *
 * Everything a collective works on is kept until its first wait; a coalesced collective is a single
 * transfer, so waits for its other results keep only these. A wait for something already done is
 * not an op.
 */
#include "lower/lower.h"

static bool is_transfer(const struct lower *l, uint32_t op)
{
    return op != PROGRAM_NONE && l->op.at[op].kind == PROGRAM_COLLECTIVE &&
           (l->op.at[op].flags & PROGRAM_ASYNC);
}

/* The transfer that a value comes from, or an unfinished one that works on its buffer. */
static uint32_t transfer_of(const struct lower *l, uint32_t value)
{
    uint32_t by = l->made_by[value];

    if (is_transfer(l, by))
        return by;
    for (uint32_t k = 0; k < l->s.count[value]; k++) {
        uint32_t root = memory_of(&l->s, value, k), buf = l->storage[root].buf;
        uint32_t op = buf != PROGRAM_NONE ? l->track.at[buf].works : PROGRAM_NONE;
        if (op == PROGRAM_NONE) /* an unknown operator may have handed it on */
            op = lower_kin_of(l, root)->works;
        if (op != PROGRAM_NONE)
            return op;
    }
    return PROGRAM_NONE;
}

/* The collectives that a wait is for: those of its operands or, if there are none, those that the
 * waits before it ended. Each becomes a row of l->wait. */
static void find_collectives(struct lower *l, uint32_t op, uint32_t node, const struct fx_node *x)
{
    uint32_t from = l->wait.len;

    for (uint32_t i = 0; i < x->n_vals; i++) {
        uint32_t by = x->vals[i].kind == TUCK_V_NODE ? transfer_of(l, x->vals[i].a) : PROGRAM_NONE;
        if (by != PROGRAM_NONE && l->met.at[by] != node) {
            l->met.at[by] = node;
            vec_push_in(&l->scratch, &l->wait, ((struct lower_pair){op, by}));
        }
    }
    if (l->wait.len > from)
        return;
    for (uint32_t i = 0; i < x->n_vals; i++) {
        uint32_t by = x->vals[i].kind == TUCK_V_NODE ? l->made_by[x->vals[i].a] : PROGRAM_NONE;
        if (by == PROGRAM_NONE || l->op.at[by].kind != PROGRAM_WAIT)
            continue;
        for (uint32_t k = l->ended_from.at[by]; k < from && l->wait.at[k].op == by; k++)
            vec_push_in(&l->scratch, &l->wait, ((struct lower_pair){op, l->wait.at[k].what}));
    }
}

/* Is everything it waits for already done? */
static bool is_done(const struct lower *l, const struct fx_node *x)
{
    bool any = false;

    for (uint32_t i = 0; i < x->n_vals; i++) {
        uint32_t by = x->vals[i].kind == TUCK_V_NODE ? l->made_by[x->vals[i].a] : PROGRAM_NONE;
        if (x->vals[i].kind != TUCK_V_NODE)
            continue;
        if (by == PROGRAM_NONE || transfer_of(l, x->vals[i].a) != PROGRAM_NONE)
            return false;
        const struct program_op *op = &l->op.at[by];
        /* A synchronous collective over symmetric memory ends with a copy. */
        if (op->kind != PROGRAM_COLLECTIVE && op->kind != PROGRAM_COPY)
            return false;
        any = true;
    }
    return any;
}

/* The transfer reads and writes until this wait. Results have waits of their own, or are unused;
 * lower_hold_unwaited() keeps the unused ones. */
static void hold_operands(struct lower *l, uint32_t op, uint32_t c)
{
    uint32_t end = c + 1 < l->op.len ? l->use_from.at[c + 1] : l->use.len;

    for (uint32_t k = l->use_from.at[c]; k < end; k++)
        if (l->use.at[k].op == c && l->use.at[k].use.how == PROGRAM_READS)
            lower_uses(l, op, l->use.at[k].use.buf, PROGRAM_READS);
}

void lower_wait(struct lower *l, uint32_t node)
{
    const struct fx_node *x = lower_call(l, node);

    if (is_done(l, x)) {
        for (uint32_t i = 0; i < x->n_vals; i++)
            if (x->vals[i].kind == TUCK_V_NODE)
                l->made_by[node] = l->made_by[x->vals[i].a];
        return;
    }
    uint32_t op = lower_op(l, PROGRAM_WAIT, node, "", lower_kernel_str(l, node));
    lower_joins(l, op, node);
    l->ended_from.at[op] = l->wait.len;
    find_collectives(l, op, node, x);
    for (uint32_t i = 0; i < x->n_vals; i++)
        if (x->vals[i].kind == TUCK_V_NODE)
            for (uint32_t k = 0; k < l->s.count[x->vals[i].a]; k++) {
                uint32_t root = memory_of(&l->s, x->vals[i].a, k), buf = l->storage[root].buf;
                lower_uses(l, op, buf, PROGRAM_MUTATES);
                if (buf != PROGRAM_NONE)
                    l->track.at[buf].works = PROGRAM_NONE;
                lower_kin_of(l, root)->works = PROGRAM_NONE;
            }
    for (uint32_t i = l->ended_from.at[op]; i < l->wait.len; i++) {
        uint32_t c = l->wait.at[i].what;
        lower_depends(l, op, c, 0);
        if (!(l->op.at[c].flags & PROGRAM_ENDED))
            hold_operands(l, op, c);
        l->op.at[c].flags |= PROGRAM_ENDED;
    }
    lower_follows_operands(l, op, node);
    lower_follows_controls(l, op, node);
}

/* If a collective has a wait, results without one of their own are written until that wait. */
void lower_hold_unwaited(struct lower *l)
{
    uint32_t n_op = l->op.len, n_use = l->use.len;
    uint32_t *first = arena_array(&l->scratch, uint32_t, (size_t)n_op + 1); /* by collective */
    uint32_t *last = arena_array(&l->scratch, uint32_t, (size_t)l->buf.len + 1);

    memset(first, 0xFF, n_op * sizeof(*first));
    memset(last, 0xFF, l->buf.len * sizeof(*last));
    for (uint32_t i = l->wait.len; i > 0; i--)
        first[l->wait.at[i - 1].what] = l->wait.at[i - 1].op;
    for (uint32_t i = 0; i < n_use; i++) /* rows are not sorted: loops may add theirs late */
        if (last[l->use.at[i].use.buf] == PROGRAM_NONE ||
            l->use.at[i].op > last[l->use.at[i].use.buf])
            last[l->use.at[i].use.buf] = l->use.at[i].op;
    for (uint32_t i = 0; i < n_use; i++) {
        struct lower_use_row row = l->use.at[i];
        uint32_t wait = first[row.op];
        if (wait == PROGRAM_NONE || row.use.how == PROGRAM_READS || last[row.use.buf] >= wait)
            continue;
        last[row.use.buf] = wait;
        row.op = wait;
        row.use.how = PROGRAM_READS;
        vec_push_in(&l->scratch, &l->use, row);
    }
}

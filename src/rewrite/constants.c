/* repeat_constants: a constant that loops in several places read is made again in each place.
 *
 * A loop computes a constant for nothing if it is part of the loop; otherwise the constant is
 * written once, read from memory by each loop, and held in between. Only constants without
 * operands, and only if nothing may write them or know them by another name.
 */
#include "op/ops.h"
#include "pass/pass_report.h"
#include "rewrite/build.h"
#include "rewrite/loops.h"

static const uint32_t no_loop = OP_F_MUTATES | OP_F_EFFECT | OP_F_RANDOM | OP_F_HOST |
                                OP_F_RESTRIDES;

static const struct op_row *row_of(const tuck_graph *g, uint32_t n)
{
    return op_at(node_op(g, n));
}

static bool is_alias(const struct op_row *row)
{
    return row->moves == OP_MOVES_none || row->moves == OP_MOVES_maybe;
}

static bool is_loop(const struct op_row *row)
{
    return (row->flags & OP_F_LOWERED) && !(row->flags & no_loop) && row->cls != OP_HOP &&
           !is_alias(row);
}

/* Does it only read its operands, and return something else? */
static bool only_reads(const tuck_graph *g, uint32_t n)
{
    const struct op_row *row = row_of(g, n);

    return node_at(g, n)->kind == TUCK_OUTPUT ||
           (node_at(g, n)->kind == TUCK_CALL_FUNCTION && row->cls != OP_CLASS_END &&
            row->cls != OP_HOP && !(row->flags & no_loop) && !is_alias(row));
}

static bool is_constant(const tuck_graph *g, uint32_t n)
{
    const struct fx_node *x = node_at(g, n);
    const struct op_row *row = row_of(g, n);

    if (x->kind != TUCK_CALL_FUNCTION || row->cls != OP_FACTORY || !(row->flags & OP_F_FUSIBLE) ||
        !is_loop(row))
        return false;
    for (uint32_t i = 0; i < x->n_vals; i++)
        if (x->vals[i].kind == TUCK_V_NODE)
            return false;
    for (uint32_t u = x->use_first; u != 0; u = g->use.at[u].next)
        if (!only_reads(g, g->use.at[u].user))
            return false;
    return true;
}

struct repeat {
    struct pass_run *r;
    uint32_t *latest; /* by constant: the node that makes it for the loops of `run`; 0: no such */
    uint32_t *run;
    uint32_t n, now; /* runs of loops are numbered as they come */
    uint64_t n_made;
};

/* Lets a loop read constants that its own run makes. */
static void visit_loop(struct repeat *x, uint32_t n)
{
    for (uint32_t i = 0; i < node_at(x->r->g, n)->n_vals; i++) {
        const tuck_value v = node_at(x->r->g, n)->vals[i];
        uint32_t c = v.kind == TUCK_V_NODE && v.a < x->n ? v.a : 0;

        if (x->latest[c] == 0)
            continue;
        if (x->run[c] != x->now) {
            x->latest[c] = build_copy(x->r, c, n);
            x->run[c] = x->now;
            x->n_made++;
        }
        if (x->latest[c] != c)
            build_replace_in(x->r, n, i, x->latest[c]);
    }
}

static void erase_unused(struct repeat *x)
{
    for (uint32_t c = 1; c < x->n; c++)
        if (x->latest[c] != 0 && x->latest[c] != c && node_at(x->r->g, c)->n_uses == 0 &&
            build_may_erase(x->r, c))
            build_erase(x->r, c);
}

static tuck_status run(struct pass_run *r, const void *options)
{
    struct repeat x = {.r = r, .n = r->g->node.len};

    (void)options;
    x.latest = arena_zeroed(&r->arena, x.n * sizeof(*x.latest));
    x.run = arena_zeroed(&r->arena, x.n * sizeof(*x.run));
    for_each_node (r->g, n) {
        const struct op_row *row = row_of(r->g, n);

        if (is_loop(row)) {
            visit_loop(&x, n);
        } else if (!is_alias(row)) {
            x.now++;
        }
        if (is_constant(r->g, n)) {
            x.latest[n] = n;
            x.run[n] = x.now;
        }
    }
    erase_unused(&x);
    report_count(r->report, "constants repeated", x.n_made);
    return TUCK_OK;
}

const struct pass pass_repeat_constants = {
    .name = "repeat_constants",
    .help = "make a constant again where loops read it: they compute it instead of reading it",
    .needs = PASS_NAMES,
    .on_graph = run,
};

/* Calls of graphs with collectives in them: invoke_subgraph, cond, while_loop and the like.
 *
 *   name.compute   the graph's compute, with everything the call reads and writes
 *   name           a synchronous collective of kind "nested": its communication
 *
 * The ops of a node stay side by side, so a schedule moves the call as a whole. The
 * collective keeps the call's place in its group; of several groups it is of the first, and
 * edges hold it in its place among the collectives of the others. Nothing overlaps inside a
 * call: its time is the sum.
 */
#include "lower/lower.h"

bool lower_nests_comm(const struct lower *l, uint32_t node)
{
    return l->lines.start[node] < l->lines.start[node + 1] && l->role[node] != ROLE_COLLECTIVE;
}

/* Puts the op after the last call of graphs on its groups, and before the next. */
void lower_takes_place(struct lower *l, uint32_t op, uint32_t node)
{
    uint32_t own = l->op.at[op].group; /* collectives of its own group are ordered anyway */
    bool nested = lower_nests_comm(l, node);

    for (uint32_t i = 0, n = comm_line_count(&l->lines, l->g, node); i < n; i++) {
        uint32_t line = comm_line_at(&l->lines, node, i);
        bool kept = own != PROGRAM_NONE && own + 1 == line;
        uint32_t before = nested ? l->last_in_line[line] : l->nested_in_line[line];

        if (before != PROGRAM_NONE && !(kept && l->op.at[before].group == own))
            lower_depends(l, op, before, 0);
        l->last_in_line[line] = op;
        if (nested)
            l->nested_in_line[line] = op;
    }
}

void lower_nested(struct lower *l, uint32_t node)
{
    uint32_t op = lower_op(l, PROGRAM_COMPUTE, node, ".compute", lower_kernel_str(l, node));
    uint32_t first = comm_line_at(&l->lines, node, 0);

    lower_accesses(l, op, node);
    lower_follows_operands(l, op, node);
    lower_follows_effects(l, op, node);
    lower_results(l, op, node);
    lower_follows_controls(l, op, node);
    uint32_t comm = lower_op(l, PROGRAM_COLLECTIVE, node, "", lower_kernel_str(l, node));
    l->op.at[comm].coll = TUCK_NESTED_COLLECTIVES;
    l->op.at[comm].group = first > 0 ? first - 1 : PROGRAM_NONE;
    lower_joins(l, comm, node);
    lower_depends(l, comm, op, 0);
    lower_takes_place(l, comm, node);
}

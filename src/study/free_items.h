/* The graph as no pass can change it: what reads what, node by node. Which nodes run as one loop
 * depends on their order, so every node of a loop is an item of its own (see sim/sides.h), and an
 * edge between two of them is a join. Views are their operand under another name.
 *
 * Edges are data, and writes into buffers by what stays. The order of effects and of communication
 * may differ after a pass, and so may copies and what is computed in place. */
#ifndef TUCK_STUDY_FREE_ITEMS_H
#define TUCK_STUDY_FREE_ITEMS_H

#include "cost/machine.h"
#include "lower/program.h"
#include "plan/problem.h"
#include "sim/sides.h"

struct free_items {
    const tuck_graph *g;
    const struct program *p;
    const struct problem *problem;
    struct arena *a;
    struct cost_run *run;
    const struct fx_node **call; /* by node: it, or what it wraps, without control dependences */
    bool *live;                  /* by node: its result is used, or it has a side effect */
    /* by node: the wait of a reduce-scatter, or computed element by element from such waits only */
    bool *is_sum;
    bool *mergeable; /* by node: a reduce-scatter that may be merged with others */
    bool *vanishes;  /* by op: a pass may remove it, or make it part of another */
    struct sides s;
    uint32_t *item_of; /* by node: the item that makes its result; SIDES_NONE: an input */
    uint32_t *shows;   /* by node: the node whose result it is a view of, or itself */
    uint32_t *node;    /* by item */
    uint32_t *op;      /* by item; PROGRAM_NONE: a view of several results */
    bool *is_loop;     /* by item: edges to and from other such items are joins */
};

/* The rest of `x` is given. Work and transfers are still 0. */
void free_items_find(struct free_items *x);

/* The bytes that the loops of any pass read and write, as work of the items; `ps_per_byte` is the
 * memory's. */
void free_loops_charge(struct free_items *x, double ps_per_byte);

#endif

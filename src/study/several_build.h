/* Finds the ranks of a job and their groups: from one graph, or from one graph per rank. */
#ifndef TUCK_STUDY_SEVERAL_BUILD_H
#define TUCK_STUDY_SEVERAL_BUILD_H

#include "study/rank_input.h"
#include "study/several_ranks.h"

struct ranks_building {
    struct ranks *x;
    const struct ranks_options *o;
    tuck_diags *diags;
    uint32_t n_graph;
    struct sim_rank *rank;
    uint32_t **group;      /* by rank: the array that rank[].group points to */
    struct facts *facts;   /* by graph */
    uint32_t **to_program; /* by graph: maps groups of the problem to groups of the graph */
    tuck_status status;
};

/* One graph for all ranks: every rank has groups laid out like the graph's. */
void ranks_lay_out(struct ranks_building *b);
/* One graph per rank: groups with the same members are the same; sends and receives are matched. */
void ranks_match(struct ranks_building *b);

/* The index of a global rank among the simulated ranks, or PROBLEM_NONE. */
uint32_t ranks_find(const struct ranks *x, int64_t number);
int ranks_by_number(const void *a, const void *b); /* compares int64_t, ascending */

#endif

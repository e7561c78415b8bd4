/* Which ranks there are, and who meets in which group: the two ways to know it. */
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
    uint32_t **group;      /* by rank: what rank[].group points to */
    struct facts *facts;   /* by graph */
    uint32_t **to_program; /* by graph: group of the problem → group of the graph */
    tuck_status status;
};

/* One graph for all: every rank has groups that lie as the graph's. */
void ranks_lay_out(struct ranks_building *b);
/* A graph for each: groups are the same if they have the same members; sends
 * and receives name them. */
void ranks_match(struct ranks_building *b);

/* The place of a global rank among those that are there, PROBLEM_NONE: it is not. */
uint32_t ranks_find(const struct ranks *x, int64_t number);
int ranks_by_number(const void *a, const void *b); /* int64_t, ascending */

#endif

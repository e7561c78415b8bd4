/* Random graphs of a training step on a few ranks: compute, views, conversions, writes, collectives
 * of several groups and their waits, and the patterns of DDP and FSDP. Every graph could have been
 * printed by PyTorch: it lints clean, and no collective races with anything. */
#ifndef TUCK_TESTS_RANDOM_GRAPH_H
#define TUCK_TESTS_RANDOM_GRAPH_H

#include "support/sym_eval.h"

enum { RANDOM_RANKS = 4, RANDOM_GROUPS = 4 };

struct random_graph {
    struct sym_world world; /* points into this struct */
    struct sym_group group[RANDOM_GROUPS];
    int ranks[RANDOM_GROUPS][RANDOM_RANKS * RANDOM_RANKS];
    struct sym_symbol symbol[2];
    tuck_hint hint[2]; /* the ones that a pass gets; a symbol may have none */
    size_t n_hint;
    char *text[RANDOM_RANKS]; /* one per rank; the same if nothing depends on the rank */
    bool alike;               /* nothing in the graph depends on the rank */
};

void random_graph_make(struct rng *rng, struct random_graph *x);
/* Sets the groups of a rank's graph and, if wanted, its rank. */
void random_graph_tell(const struct random_graph *x, int rank, bool knows_rank, tuck_graph *g);
void random_graph_free(struct random_graph *x);

#endif

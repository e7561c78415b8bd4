/* Random graphs of a training step on a few ranks: compute, views, conversions, writes, collectives
 * of several groups and their waits, and the patterns that DDP and FSDP leave behind. Every graph
 * is one that PyTorch could have printed: it lints clean, and no collective races with anything. */
#ifndef TUCK_TESTS_RANDOM_GRAPH_H
#define TUCK_TESTS_RANDOM_GRAPH_H

#include "support/sym_eval.h"

enum { RANDOM_RANKS = 4, RANDOM_GROUPS = 4 };

struct random_graph {
    struct sym_world world; /* points into this struct */
    struct sym_group group[RANDOM_GROUPS];
    int ranks[RANDOM_GROUPS][RANDOM_RANKS * RANDOM_RANKS];
    struct sym_symbol symbol[2];
    tuck_hint hint[2]; /* of these a pass is told; a symbol may have none */
    size_t n_hint;
    char *text[RANDOM_RANKS]; /* one for each rank; the same where nothing depends on it */
    bool alike;               /* … which is so for the whole graph */
};

void random_graph_make(struct rng *rng, struct random_graph *x);
void random_graph_free(struct random_graph *x);

#endif

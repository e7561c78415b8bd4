/* What a rank simulation of the public interface contains. */
#ifndef TUCK_API_RANKS_API_H
#define TUCK_API_RANKS_API_H

#include "study/several_ranks.h"
#include "tuck_experimental.h"

struct tuck_rank_simulation {
    struct mem mem;
    struct ranks x;
    struct ranks_graph *graph;
    size_t n_graph;
    const char *machine; /* its name; of the first simulation */
};

#endif

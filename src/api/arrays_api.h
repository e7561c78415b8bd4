/* Graphs from arrays: what building and reading the edit share. */
#ifndef TUCK_API_ARRAYS_API_H
#define TUCK_API_ARRAYS_API_H

#include "graph/graph.h"
#include "tuck_experimental.h"

/* A value is one word: its kind in the low bits, above them a number. Kind WORD_WIDE is an INT
 * whose number is the next word. */
enum { WORD_SHIFT = 5, WORD_KIND = (1 << WORD_SHIFT) - 1, WORD_WIDE = WORD_KIND };

struct arrays_place { /* where a nested graph is: child `index` of graph `parent` */
    uint32_t parent, index;
};

struct tuck_arrays {
    struct mem mem;
    tuck_doc *doc;      /* one graph, with those nested in it */
    tuck_graph *before; /* a clone of it as it was made */
    struct arrays_place *place;
    uint32_t n_graphs;
    /* the edit */
    VEC(int64_t) word;
    VEC(double) real;
    struct buf text;
    uint32_t n_text;
};

#endif

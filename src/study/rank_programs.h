/* The graphs of several ranks: which of them are the same program, where the others differ, and
 * whether ranks of different programs meet in a group. Ranks of one program can take one decision;
 * if they meet ranks of another, only one that keeps the sequence of communication. */
#ifndef TUCK_STUDY_RANK_PROGRAMS_H
#define TUCK_STUDY_RANK_PROGRAMS_H

#include "base/arena.h"
#include "graph/graph.h"

struct rank_graph {    /* one rank */
    tuck_graph *g;     /* with types */
    int64_t number;    /* global; -1 if unknown */
    uint64_t sequence; /* the digest of its communication */
    bool alone;        /* a program of its own, whatever it looks like */
};

struct rank_program {
    uint32_t first;    /* the first rank that runs it: an index */
    uint32_t n;        /* number of ranks that run it */
    bool meets;        /* its ranks meet those of another program */
    uint32_t other;    /* then: that program */
    const char *group; /* then: the group in which they meet; "" if members are unknown */
    /* Where it differs from the first program: a node of it, and of that one; 0 if it ends there.
     * Both 0: only the bytes of messages differ. */
    uint32_t node, node_there;
};

struct rank_programs {
    struct mem mem;
    struct arena arena;
    uint32_t n_rank, n_program;
    uint32_t *of; /* by rank: its program */
    struct rank_program *program;
};

/* *out must be ended, also after a failure. */
TUCK_MUST_CHECK tuck_status rank_programs_find(const struct rank_graph *rank, uint32_t n,
                                               struct rank_programs *out);
void rank_programs_end(struct rank_programs *x);

#endif

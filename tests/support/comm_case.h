/* Calls of a transport with known operands, and what they must give: a serial reference that shares
 * nothing with the library. Every rank computes the operands of all. */
#ifndef TUCK_TESTS_COMM_CASE_H
#define TUCK_TESTS_COMM_CASE_H

#include "run/comm/transport.h"

enum case_place {
    CASE_PRIVATE,
    CASE_IN_HEAP,
    CASE_OUT_HEAP,
    CASE_HEAP,
    CASE_IN_PLACE,      /* where the kind allows it; private memory */
    CASE_IN_PLACE_HEAP, /* the same in the symmetric heap */
    CASE_MIXED,         /* every rank has another of these */
    CASE_PLACES
};

struct comm_case {
    uint64_t seed;
    uint8_t kind, dtype, reduce, place;
    bool stays;  /* operands are not reused before the next case; set by the caller */
    bool uneven; /* all_to_all: split sizes that differ, some of them 0 */
    int32_t group, root;
    int64_t count;
    uint32_t n_part; /* a coalesced list if more than 1 */
};

struct case_run {
    struct comm_call call;
    struct comm_part *part;
    int64_t *split;
    void **own; /* what was allocated */
    uint32_t n_own;
    comm_req req;
};

/* Memory in the symmetric heap of group 0 for the operands of cases; all ranks call it once. */
struct case_heap {
    char *base;
    size_t bytes, used;
};
bool case_heap(struct comm *c, size_t bytes, struct case_heap *h);

/* Fills the operands and starts the call. */
bool case_start(struct comm *c, const struct comm_case *k, struct case_heap *h,
                struct case_run *run);
/* After the wait: NULL, or what is wrong (static text). Frees what the run has. */
const char *case_check(struct comm *c, const struct comm_case *k, struct case_run *run);

/* What a case is, for messages. */
void case_text(const struct comm_case *k, char *text, size_t size);

/* Number i of all cases for a group of n members; false: there are no more. */
bool case_number(uint64_t i, int32_t group, int32_t n, struct comm_case *k);

#endif

/* What the records of a structured log say about compilations, beside their graphs: the call of the
 * program that a frame was compiled for, and the values that symbols in sizes had then. */
#ifndef TUCK_JOB_RECORD_FACTS_H
#define TUCK_JOB_RECORD_FACTS_H

#include "base/vec.h"
#include "job/piece.h"

struct record_call {
    struct compile_id id;
    uint64_t call; /* a hash of the stack */
};

struct record_symbol {
    struct compile_id id;
    const char *name; /* "s77" */
    int64_t value;
    uint32_t order; /* in the file */
};

struct record_facts {
    VEC(struct record_call) call;
    VEC(struct record_symbol) symbol;
};

/* Takes what the record [s, end) says, if anything. */
void record_facts_take(struct record_facts *f, struct arena *a, const char *s, const char *end);

/* The pieces of the file learn it. */
void record_facts_give(struct record_facts *f, struct arena *a, struct piece *x, uint32_t n);

#endif

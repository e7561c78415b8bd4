/* One inference over a graph and its nested graphs: what infer.c and rule_util.c share. */
#ifndef TUCK_INFER_INFER_RUN_H
#define TUCK_INFER_INFER_RUN_H

#include "infer/infer.h"
#include "infer/rule.h"

struct memo {
    const uint64_t *key; /* NULL = free */
    uint32_t len, hash;
    type_id result;
};

typedef bool (*rule_fn)(struct infer *x);

/* The rule of a row's shape column. */
rule_fn rule_at(uint16_t shape);

/* The type of what a call passes for input number k of the graph it takes; 0 if unknown. */
type_id passed_type(const tuck_graph *g, uint32_t call, uint32_t k);

struct infer_walk { /* a graph being inferred, and its next node */
    tuck_graph *g;
    uint32_t at;
};

struct infer_run {
    struct mem *mem;
    tuck_graph *top;
    const struct infer_options *options;
    tuck_diags *diags;
    struct arena arena;        /* signatures, memo */
    struct arena scratch;      /* for one rule */
    const struct op_sig **sig; /* by operator, parsed when first needed */
    struct memo *memo;
    uint32_t n_memo, memo_used;
    VEC(uint64_t) key;
    VEC(tuck_graph *) order;
    VEC(struct infer_walk) walk;
    struct buf text;
    uint32_t next_fresh;
};

#endif

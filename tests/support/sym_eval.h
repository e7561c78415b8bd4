/* An evaluator for graphs that needs no kernels: every element is a number of a prime field that
 * stands for where it came from. Data moves as it does in PyTorch (views, strides, storages), sums
 * and divisions are exact in the field, whatever is not linear (dtype conversions, relu) is a
 * random function of its operand. Two graphs that give the same numbers for random inputs compute
 * the same, but with a chance of one in 2^50.
 *
 * The ranks of a job run side by side, node by node. A collective takes its operands when it
 * starts, and its result is there from its wait on: what reads it before, or writes an
 * operand in between, is a race.
 *
 * It knows graphs through the public interface only, and operators by a list of its own. */
#ifndef TUCK_TESTS_SYM_EVAL_H
#define TUCK_TESTS_SYM_EVAL_H

#include "support/support.h"

struct sym_group {
    const char *name;
    int size;
    const int *ranks; /* [n_ranks][size]: whom the name means on each rank, in the group's order */
};

struct sym_symbol {
    const char *name;
    int64_t value;
};

struct sym_world {
    int n_ranks;
    const struct sym_group *group;
    size_t n_group;
    const struct sym_symbol *symbol;
    size_t n_symbol;
    uint64_t seed; /* of the inputs: a value for each rank, name and element */
};

struct sym_result;

/* Run the graphs of all ranks (g[r] may be one and the same), which must be alike but
 * for literals. Annotations are checked against what the nodes yield. NULL, and why,
 * where that cannot be done. */
struct sym_result *symeval_run(const struct sym_world *w, tuck_graph *const *g, struct text *why);
void symeval_free(struct sym_result *r);

/* The first race, or NULL. */
const char *symeval_race(const struct sym_result *r);

/* Does b return what a returns, and leave the inputs as a leaves them, on every rank? What is not
 * initialised in a may be anything in b. */
bool symeval_same(const struct sym_result *a, const struct sym_result *b, struct text *why);

#endif

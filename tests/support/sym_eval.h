/* An evaluator for graphs that needs no kernels: every element is a number of a prime field that
 * represents where it came from. Data moves as in PyTorch (views, strides, storages), sums and
 * divisions are exact in the field, and whatever is not linear (dtype conversions, relu) is a
 * random function of its operand. Two graphs that give the same numbers for random inputs compute
 * the same, with an error probability of 2^-50.
 *
 * The ranks of a job run in parallel, node by node. A collective reads its operands when it starts,
 * and its result is available after its wait: reading it before, or writing an operand in between,
 * is a race.
 *
 * It uses graphs only through the public interface, and has its own list of operators.
 */
#ifndef TUCK_TESTS_SYM_EVAL_H
#define TUCK_TESTS_SYM_EVAL_H

#include "support/support.h"

struct sym_group {
    const char *name;
    int size;
    /* [n_ranks][size]: the members that the name means on each rank, in the group's order */
    const int *ranks;
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
    uint64_t seed; /* for the inputs: one value per rank, name and element */
};

struct sym_result;

/* Runs the graphs of all ranks (g[r] may be one and the same), which may differ in literals only.
 * Annotations are compared with the results. NULL, and the reason, if that fails. */
struct sym_result *symeval_run(const struct sym_world *w, tuck_graph *const *g, struct text *why);
void symeval_free(struct sym_result *r);

/* The first race, or NULL. */
const char *symeval_race(const struct sym_result *r);

/* Does b return what a returns, and leave the inputs as a leaves them, on every rank? What is
 * uninitialized in a may be anything in b. */
bool symeval_same(const struct sym_result *a, const struct sym_result *b, struct text *why);

#endif

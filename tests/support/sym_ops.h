/* Internals of the evaluator: values, calls, the list of operators. Not for tests. */
#ifndef TUCK_TESTS_SYM_OPS_H
#define TUCK_TESTS_SYM_OPS_H

#include "support/sym_tensor.h"

struct value {
    enum { V_NONE, V_INT, V_FLOAT, V_TEXT, V_TENSOR, V_LIST } kind;
    int64_t i;
    double f;
    const char *s;
    struct tensor *t;
    struct value *item; /* V_LIST */
    size_t n;
};

/* A result in flight: the cells that a wait will write to `to`. */
struct work {
    struct work *next;
    struct tensor to;
    cell *cells;
    struct sym_storage *from; /* read until then */
    const tuck_graph *g;      /* the call that started it */
    uint32_t start;           /* identifies one of several started by the call */
};

struct rank_state {
    struct value *of; /* by node id */
    struct work *works;
};

struct ev {
    const struct sym_world *w;
    struct pool pool;
    struct rank_state *rank;
    struct text *why;
    char race[160]; /* "" = none yet */
};

struct call {
    struct ev *e;
    int rank;
    const tuck_graph *g;
    tuck_node n;
    size_t skip; /* arguments before the operator's own: for with_effects */
};

/* Returns false and records the reason: "<node>: …". */
bool call_fail(const struct call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void call_race(const struct call *c, const char *what);

/* The operand at that position or with that keyword; V_NONE if there is none. */
bool operand(const struct call *c, size_t pos, const char *name, struct value *out);
bool tensor_operand(const struct call *c, size_t pos, const char *name, struct tensor *out);
bool list_operand(const struct call *c, size_t pos, const char *name,
                  struct value *out); /* of tensors */
bool int_operand(const struct call *c, size_t pos, const char *name, int64_t dflt, int64_t *out);
bool ints_operand(const struct call *c, size_t pos, const char *name, int64_t *out, int *n,
                  int max);
bool text_operand(const struct call *c, size_t pos, const char *name, const char **out);

#define BY_KEYWORD SIZE_MAX /* pos of an operand without a position */
bool dtype_operand(const struct call *c, size_t pos, int dflt, int *out);
bool dim_operand(const struct call *c, size_t pos, const char *name, int n_dim, int64_t dflt,
                 int *out);

/* Call these before a tensor is read or written: they find races. */
void reads(const struct call *c, const struct tensor *t);
void writes(const struct call *c, const struct tensor *t);

struct value tensor_value(struct ev *e, const struct tensor *t);
struct value list_value(struct ev *e, size_t n); /* of n V_NONE */
bool yield_tensor(const struct call *c, const struct tensor *t, struct value *out);
bool packed_copy(const struct call *c, const struct tensor *t, struct tensor *out);
bool operand_to_value(const struct call *c, const tuck_value *v, struct value *out);

/* An operator runs on each rank separately, or on all together: c[r] and out[r] for each rank. */
struct sym_op {
    const char *name; /* without torch.ops. */
    bool (*run)(const struct call *c, struct value *out);
    bool (*run_all)(const struct call *c, struct value *out);
};

void symeval_finish_all(struct ev *e); /* delivers what is still in flight */
const struct sym_op *symeval_op_find(const char *target);
extern const struct sym_op symeval_view_ops[], symeval_comm_ops[]; /* sorted by name */
extern const size_t symeval_n_view_ops, symeval_n_comm_ops;

#endif

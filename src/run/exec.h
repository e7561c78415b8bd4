/* Runs a program on this rank: its ops in order, with the kernels of run/kernel/ and the
 * collectives of run/comm/, in the memory that was planned.
 *
 * Everything is resolved once, by exec_prepare(): every value is an address with sizes and strides,
 * every op a list of steps. exec_step() then runs the steps and allocates nothing. What depends on
 * data (sizes with u0, u1, …) is resolved while a step runs; such values live in memory that grows
 * when a step needs more than all steps before.
 */
#ifndef TUCK_RUN_EXEC_H
#define TUCK_RUN_EXEC_H

#include "lower/program.h"
#include "run/comm/transport.h"
#include "run/kernel/kernel.h"

struct exec;

/* A kernel of the caller's, for an operator that has none or instead of Tuck's own. */
struct exec_kernel {
    const char *op; /* aten.add.Tensor, or any name that graphs call */
    bool (*run)(void *ctx, struct rt_call *c);
    void *ctx;
};

/* A number that an input or a symbol has. */
struct exec_number {
    const char *name;
    struct sym_num value;
};

struct exec_options {
    tuck_graph *g;           /* types inferred; not changed */
    const struct program *p; /* lowered from g, with a plan */
    struct comm *comm;       /* NULL: one rank without others */
    const int32_t *group;    /* by group of the program: its number in comm, -1 if unknown */
    /* Memory for exec_room() bytes, best from the heap of the world, where operands need no copies;
     * NULL: the executor's own. And by group of the program: its symmetric heap, or NULL. */
    void *base;
    size_t base_bytes;
    char *const *heap;
    const struct exec_kernel *kernel;
    size_t n_kernel;
    const struct exec_number *number; /* of symbols and of inputs that are numbers */
    size_t n_number;
    uint64_t seed;  /* what random operators draw from; the same on all ranks */
    bool same_text; /* all ranks run the same graph: names must agree, too */
};

enum { EXEC_ERROR_BYTES = COMM_ERROR_BYTES };

/* A larger buffer is not run: so that the bytes of many can be added up. */
#define EXEC_MOST_BYTES ((int64_t)1 << 46)

/* Bytes for the arena of a program and for the inputs that stay with the caller. */
size_t exec_room(const struct program *p);

/* False: error says why. */
bool exec_prepare(const struct exec_options *o, struct exec **out, char *error);
void exec_end(struct exec *x); /* x may be NULL */

/* The list of what cannot be run, one line each, in text: operators without a kernel, with the
 * first node of each. False: nothing is missing. */
bool exec_missing(const tuck_graph *g, const struct program *p, const struct exec_kernel *kernel,
                  size_t n_kernel, struct buf *text);

/* ---- inputs and results ---- */

struct exec_input {
    uint32_t node; /* a placeholder, or an attribute */
    const char *name;
    const struct rt_tensor *tensor; /* to be filled before each step that follows a change */
    bool attribute;
    bool written; /* the graph writes it, and the caller sees that */
    bool lost;    /* a step overwrites it: fill it again before the next one */
};

uint32_t exec_input_count(const struct exec *x);
const struct exec_input *exec_input_at(const struct exec *x, uint32_t i);

/* What the graph returns: valid after a step, until the next one. */
enum exec_result_kind {
    EXEC_RESULT_NONE,
    EXEC_RESULT_TENSOR,
    EXEC_RESULT_NUMBER,
    EXEC_RESULT_OTHER
};
struct exec_result {
    enum exec_result_kind kind;
    const struct rt_tensor *tensor;
    struct sym_num number;
    uint32_t node; /* 0 if it is a literal */
};

uint32_t exec_result_count(const struct exec *x);
struct exec_result exec_result_at(const struct exec *x, uint32_t i);

/* ---- steps ---- */

/* When an op ran, in nanoseconds of the monotonic clock. */
struct exec_time {
    int64_t begin, end; /* a collective: from its start until it was seen to be done */
    int64_t stood;      /* of that, how long nothing else could run: waits */
};

/* Runs all ops once; time (by op of the program) may be NULL. False: exec_error() says why. */
bool exec_step(struct exec *x, struct exec_time *time);
const char *exec_error(const struct exec *x);

/* One row per collective that comes after each other on a group, for comm_compare(). */
uint32_t exec_planned(const struct exec *x, const struct comm_planned **row);

struct exec_memory {
    int64_t arena, inputs, heaps; /* planned, and allocated before the first step */
    int64_t planned; /* bytes of the arena that some buffer has at some time: all but alignment */
    int64_t scratch; /* of kernels, and of values inside of loops that run in parts */
    int64_t grown;   /* for sizes that depend on data */
    int64_t touched; /* bytes of the arena that steps wrote; -1 if not counted */
    int64_t highest; /* the end of the last of them; -1 if not counted */
    int64_t allocations; /* made while steps ran */
};
void exec_memory(const struct exec *x, struct exec_memory *out);

/* To count which bytes of the arena steps write: begin, fill the inputs, step, end;
 * twice for an exact answer, because a step may write what was there before. */
void exec_count_begin(struct exec *x);
void exec_count_end(struct exec *x);

#endif

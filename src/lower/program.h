/* A program: a graph after it is decided which buffer each value lives in and which kernel
 * makes it. Ops are in a valid order; the schedule problem is filled from it, the memory
 * plan is made on it, `tuck lower` prints it.
 *
 *   buffers   0 … n_buf-1: inputs first, then in the order they are made. Views have none: they
 *             are other ways to read a buffer
 *   ops       0 … n_op-1
 *
 * Lists are in CSR form: those of x are list[list_at[x]] … list[list_at[x + 1] - 1].
 */
#ifndef TUCK_LOWER_PROGRAM_H
#define TUCK_LOWER_PROGRAM_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/units.h"
#include "base/vec.h"
#include "graph/symbol_values.h"
#include "graph/graph.h"
#include "op/collective.h"

#define PROGRAM_NONE UINT32_MAX

/* ---- Buffers
 * ------------------------------------------------------------------------------------ */

enum program_layout {
    PROGRAM_FLEXIBLE, /* memory planning may choose another layout */
    PROGRAM_FIXED,    /* strides are fixed by a collective, the caller or a view */
    PROGRAM_COMM,     /* symmetric memory of a group: the same address on every rank */
};

enum {
    PROGRAM_INPUT = 1,     /* exists before the first op */
    PROGRAM_FREEABLE = 2,  /* an input that the caller gives up */
    PROGRAM_OUTPUT = 4,    /* returned to the caller: never freed */
    PROGRAM_UNKNOWN = 8,   /* size unknown; counts as 0 */
    PROGRAM_UNWAITED = 16, /* used by a collective without a wait: kept to the end */
};

struct program_buf {
    str_id name; /* from the node that made it; unique */
    str_id type; /* "f32[8, 4][4, 1]cuda:0"; 0 if unknown */
    int64_t bytes;
    int64_t offset;    /* in the arena, or in its group's heap; -1 if not planned */
    uint32_t producer; /* op, or PROGRAM_NONE for inputs */
    uint32_t group;    /* for PROGRAM_COMM */
    uint8_t layout;    /* enum program_layout */
    uint8_t flags;
};

/* ---- Ops
 * ---------------------------------------------------------------------------------------- */

enum program_kind {
    PROGRAM_COMPUTE,    /* a kernel */
    PROGRAM_FUSED,      /* a loop over several nodes */
    PROGRAM_GEMM,       /* a library kernel: matrix product, convolution, attention */
    PROGRAM_COPY,       /* inserted by lowering: a clone, or an operand made contiguous */
    PROGRAM_COLLECTIVE, /* starts communication */
    PROGRAM_WAIT,       /* ends communication */
    PROGRAM_KIND_END
};

extern const char *const program_kind_name[PROGRAM_KIND_END];

enum {
    PROGRAM_ASYNC = 1,   /* a collective with a wait */
    PROGRAM_BARRIER = 2, /* unknown operator: assumed to read and write all its operands */
    PROGRAM_ENDED = 4,   /* a collective that some wait of the graph ends */
    PROGRAM_LOOP = 8,    /* a single node that could be part of a loop, or a plain copy */
    PROGRAM_NOP =
        16, /* a view, kept because others must come after it; or an allocation without a kernel */
};

enum program_access { PROGRAM_READS, PROGRAM_WRITES, PROGRAM_MUTATES };

struct program_use {
    uint32_t buf;
    uint8_t how; /* enum program_access; WRITES makes the buffer, MUTATES changes an existing one */
};

/* Why an op comes after another one. */
enum {
    PROGRAM_WEAK = 1, /* it overwrites what the other read or wrote */
    PROGRAM_FAKE = 2, /* only an order: keeps no buffer alive */
};

struct program_dep {
    uint32_t op;
    uint32_t buf; /* the buffer concerned; PROGRAM_NONE for an order only */
    uint8_t flags;
};

struct program_op {
    str_id name; /* unique */
    str_id kernel;
    uint8_t kind, flags;
    uint32_t node;        /* the graph node it is named after; 0 in a program that was read */
    uint32_t group;       /* group number of a collective, or PROGRAM_NONE */
    uint8_t coll;         /* tuck_coll; 0 if not a collective */
    str_id reduce_op;     /* or 0 */
    str_id algorithm;     /* "ring", "library", …; 0 if not chosen */
    str_id origin;        /* of a collective: the comment above its node; 0 if none */
    str_id parameter;     /* and the parameter that it is about, "layers.1.ffn.w1"; 0 if unknown */
    int64_t message;      /* bytes of a collective's full message; -1 if unknown */
    int64_t ps;           /* estimated time; -1: not estimated */
    int64_t flops, moved; /* basis of the estimate: operations, and bytes read and written */
    uint32_t from, item;  /* for a copy: of which node's results, and which one; 0 if unknown */
};

struct program_group {
    str_id name;
    int64_t size, rank; /* unknown: 0 and -1 */
};

struct program {
    struct mem mem;
    struct arena arena;
    struct strtab str;
    str_id name, source;
    uint32_t n_op, n_buf, n_input, n_group;
    bool on_cores; /* collectives take the time of compute, wherever their waits are: estimate.h */
    struct program_op *op;
    struct program_buf *buf;
    struct program_group *group;
    uint32_t *use_at; /* [n_op + 1] */
    struct program_use *use;
    uint32_t *dep_at; /* [n_op + 1] */
    struct program_dep *dep;
    uint32_t *node_at; /* [n_op + 1]: names of the graph's nodes in an op */
    str_id *node;
    uint32_t *node_id; /* the same as node ids of the graph; 0 in a program that was read */
    /* by node of the graph: enum lower_role and ROLE_ENDS; NULL: without loops, or read from
     * text */
    uint8_t *role;
    /* by node of the graph: the buffers of its results are value[value_at[n]] …
     * value[value_at[n + 1] - 1], PROGRAM_NONE for what stays inside a loop or is no tensor;
     * NULL if read from text */
    uint32_t *value_at, *value;
    uint32_t *wait_at; /* [n_op + 1]: the collectives that a wait ends */
    uint32_t *wait;
    /* some unbacked symbol was assumed to be ASSUME_UNBACKED */
    bool used_default;
    uint32_t n_unknown;                  /* buffers of unknown size */
    int64_t peak, arena_bytes, resident; /* -1 if not computed; see plan/ */
    /* most bytes of the arena live at once, aligned: a lower bound for every plan */
    int64_t arena_least;
    int64_t *heap; /* by group: bytes of its symmetric heap */
    /* hash of everything ranks must agree on to share heaps; 0 without comm buffers */
    uint64_t comm_digest;
};

static inline const char *program_str(const struct program *p, str_id s)
{
    return str_text(&p->str, s);
}

/* Does it represent the collectives in graphs that a node calls? */
static inline bool program_is_nested(const struct program_op *op)
{
    return op->coll == TUCK_NESTED_COLLECTIVES;
}

/* Does it launch a kernel? Not if it only communicates, nor for a view kept only for order. */
static inline bool program_is_kernel(const struct program_op *op)
{
    return op->kind != PROGRAM_COLLECTIVE && op->kind != PROGRAM_WAIT && !(op->flags & PROGRAM_NOP);
}

struct program *program_new(const tuck_allocator *alloc); /* empty; NULL if out of memory */
void program_free(struct program *p);                     /* p may be NULL */

/* Fills dep and dep_at from the buffers that ops read and write, and from the given order (CSR; may
 * be NULL). An op depends on another at most once, for the strongest reason. They are in `a`, with
 * all that is needed on the way. When memory runs out, jumps to its guard. */
void program_derive(struct program *p, const uint32_t *order_at, const struct program_dep *order,
                    struct arena *a);

/* Does the sum of all buffer sizes, each rounded up, fit in 64 bits? Returns the first buffer at
 * which it does not, or n_buf. */
uint32_t program_overflow(const struct program_buf *buf, uint32_t n_buf);

/* ---- Lowering
 * ------------------------------------------------------------------------------------ */

struct machine; /* cost/machine.h */

struct lower_options {
    bool no_fuse;     /* one op per node */
    bool keep_clones; /* like torch: always clone the operand of an all-reduce */
    /* As a graph is run: complex conjugates are computed, and no views with a mark; layouts are
     * those that operands give, whatever annotations say. */
    bool to_run;
    /* small all-reduces become one-shot kernels over symmetric memory */
    bool auto_select;
    int64_t one_shot_threshold;    /* bytes */
    const char *const *symm_group; /* groups with symmetric memory; "*" means all */
    size_t n_symm_group;
    const char *const *keep, *const *free; /* inputs that the caller keeps, and that it gives up */
    size_t n_keep, n_free;
    const struct machine *machine; /* for the values of symbols; NULL: none given */
};

void lower_defaults(struct lower_options *o);

/* Infers types if needed. TUCK_EINVAL with a diagnostic: a symbol has no value. */
TUCK_MUST_CHECK tuck_status lower_graph(tuck_graph *g, const struct lower_options *o,
                                        tuck_diags *diags, struct program **out);
/* Does an input of that name belong to the caller? Parameters, states, values from outside: these
 * names are facts that PyTorch puts into the text. */
bool lower_is_callers(const char *input);

/* Reorders the graph that p was lowered from like p's ops: the nodes of an op stay together in
 * their old order; views, items and numbers follow what they come from; inputs are first and the
 * return is last. Lowering the result gives that order again. When memory runs out, jumps to the
 * store's guard. */
void lower_apply(tuck_graph *g, const struct program *p, const uint32_t *order,
                 struct arena *scratch);

/* ---- Text
 * ---------------------------------------------------------------------------------------- */

void program_print(const struct program *p, struct buf *out);
TUCK_MUST_CHECK tuck_status program_read(const char *text, size_t len, const char *name,
                                         const tuck_allocator *alloc, tuck_diags *diags,
                                         struct program **out);
TUCK_MUST_CHECK tuck_status program_read_file(const char *path, const tuck_allocator *alloc,
                                              tuck_diags *diags, struct program **out);

#endif

/* A program: what a graph becomes when it is known which buffer each value lives in, and by which
 * kernel it is made. Ops are in a valid order; the schedule problem is filled from it, the memory
 * plan is made on it, `tuck lower` prints it.
 *
 *   buffers   0 … n_buf-1: inputs first, then in the order they are made. Views have none: they
 *             are another way to read a buffer
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
#include "base/vec.h"
#include "graph/symbol_values.h"
#include "graph/graph.h"
#include "op/collective.h"

#define PROGRAM_NONE UINT32_MAX

/* ---- Buffers
 * ------------------------------------------------------------------------------------ */

enum program_layout {
    PROGRAM_FLEXIBLE, /* not fixed: memory planning may choose another layout */
    PROGRAM_FIXED,    /* a collective, the caller or a view holds it to its strides */
    PROGRAM_COMM,     /* symmetric memory of a group: at the same place on every rank */
};

enum {
    PROGRAM_INPUT = 1,     /* it is there before the first op */
    PROGRAM_FREEABLE = 2,  /* an input that the caller lets go of */
    PROGRAM_OUTPUT = 4,    /* the caller gets it: never freed */
    PROGRAM_UNKNOWN = 8,   /* its size is not known and counts as nothing */
    PROGRAM_UNWAITED = 16, /* a collective without a wait uses it: kept to the end */
};

struct program_buf {
    str_id name; /* of the node that made it; all different */
    str_id type; /* "f32[8, 4][4, 1]cuda:0"; 0: not known */
    int64_t bytes;
    int64_t offset;    /* in the arena, or in the heap of its group; -1: not planned */
    uint32_t producer; /* op, PROGRAM_NONE for inputs */
    uint32_t group;    /* of PROGRAM_COMM */
    uint8_t layout;    /* enum program_layout */
    uint8_t flags;
};

/* ---- Ops
 * ---------------------------------------------------------------------------------------- */

enum program_kind {
    PROGRAM_COMPUTE,    /* a kernel */
    PROGRAM_FUSED,      /* a loop over several nodes */
    PROGRAM_GEMM,       /* a matrix product, a convolution, attention: a library's kernel */
    PROGRAM_COPY,       /* made by the lowering: a clone, or an operand made contiguous */
    PROGRAM_COLLECTIVE, /* starts communication */
    PROGRAM_WAIT,       /* ends it */
    PROGRAM_KIND_END
};

extern const char *const program_kind_name[PROGRAM_KIND_END];

enum {
    PROGRAM_ASYNC = 1,   /* a collective that a wait ends */
    PROGRAM_BARRIER = 2, /* not known what it does: reads and writes everything it mentions */
    PROGRAM_ENDED = 4,   /* a collective that some wait of the graph ends */
    PROGRAM_LOOP = 8,    /* a single node that could be part of a loop, or a mere copy */
    PROGRAM_NOP =
        16, /* a view, kept because others must come after it; or memory without a kernel */
};

enum program_access { PROGRAM_READS, PROGRAM_WRITES, PROGRAM_MUTATES };

struct program_use {
    uint32_t buf;
    uint8_t how; /* enum program_access; WRITES makes it, MUTATES works on what is there */
};

/* Why an op comes after another. */
enum {
    PROGRAM_WEAK = 1, /* it writes over what the other read or wrote */
    PROGRAM_FAKE = 2, /* order alone: lets nothing live longer */
};

struct program_dep {
    uint32_t op;
    uint32_t buf; /* what it is about, PROGRAM_NONE: nothing but order */
    uint8_t flags;
};

struct program_op {
    str_id name; /* all different */
    str_id kernel;
    uint8_t kind, flags;
    uint32_t node;        /* the graph's node that gave it its name; 0 in a program that was read */
    uint32_t group;       /* of a collective: number of the group, or PROGRAM_NONE */
    uint8_t coll;         /* tuck_coll; 0: not a collective */
    str_id reduce_op;     /* or 0 */
    str_id algorithm;     /* "ring", "library", …; 0: not chosen */
    int64_t message;      /* bytes of a collective's full message; -1: not known */
    double ns;            /* estimated time; -1: not estimated */
    int64_t flops, moved; /* what the estimate went by: operations, and bytes read and written */
};

struct program_group {
    str_id name;
    int64_t size, rank; /* 0, -1: not known */
};

struct program {
    struct mem mem;
    struct arena arena;
    struct strtab str;
    str_id name, source;
    uint32_t n_op, n_buf, n_input, n_group;
    struct program_op *op;
    struct program_buf *buf;
    struct program_group *group;
    uint32_t *use_at; /* [n_op + 1] */
    struct program_use *use;
    uint32_t *dep_at; /* [n_op + 1] */
    struct program_dep *dep;
    uint32_t *node_at; /* [n_op + 1]: names of the graph's nodes in an op */
    str_id *node;
    uint32_t *node_id; /* the same as the graph numbers them; 0 in a program that was read */
    uint8_t
        *role; /* by node of the graph: enum lower_role and ROLE_ENDS; NULL: no loops, or read */
    uint32_t *wait_at; /* [n_op + 1]: of a wait, the collectives it ends */
    uint32_t *wait;
    /* some unbacked symbol was assumed to be ASSUME_UNBACKED */
    bool used_default;
    uint32_t n_unknown;                  /* buffers whose size is not known */
    int64_t peak, arena_bytes, resident; /* -1: not computed; see memory/ */
    int64_t arena_least;  /* most of the arena live at once, aligned: no plan needs less */
    int64_t *heap;        /* by group: bytes of its symmetric heap */
    uint64_t comm_digest; /* of what ranks must agree on to share heaps; 0: no comm buffers */
};

static inline const char *program_str(const struct program *p, str_id s)
{
    return str_text(&p->str, s);
}

/* Does it represent the collectives in the graphs that a node calls? */
static inline bool program_is_nested(const struct program_op *op)
{
    return op->coll == TUCK_NESTED_COLLECTIVES;
}

/* Does it launch a kernel? Not where it only communicates, and not for a view that
 * only holds others in order. */
static inline bool program_is_kernel(const struct program_op *op)
{
    return op->kind != PROGRAM_COLLECTIVE && op->kind != PROGRAM_WAIT && !(op->flags & PROGRAM_NOP);
}

struct program *program_new(const tuck_allocator *alloc); /* empty; NULL on no memory */
void program_free(struct program *p);                     /* NULL is fine */

/* Fill dep_at and dep: what follows from who reads and writes which buffer, and the given
 * order besides (CSR; may be NULL). An op depends on another once, by the strongest reason.
 * Leaves through p's guard. */
void program_derive(struct program *p, const uint32_t *order_at, const struct program_dep *order);

/* Do the sizes of all buffers, each rounded up, add up in 64 bits? The first buffer at
 * which they do not, or n_buf. */
uint32_t program_overflow(const struct program_buf *buf, uint32_t n_buf);

/* ---- Lowering
 * ------------------------------------------------------------------------------------ */

struct machine; /* cost/machine.h */

struct lower_options {
    bool no_fuse;               /* one op a node */
    bool keep_clones;           /* as torch lowers: the operand of an all-reduce is always cloned */
    bool auto_select;           /* small all-reduces become one-shot ones over symmetric memory */
    int64_t one_shot_threshold; /* bytes */
    const char *const *symm_group; /* groups with symmetric memory; "*" is all of them */
    size_t n_symm_group;
    const char *const *keep, *const *free; /* inputs that are, and are not, the caller's to keep */
    size_t n_keep, n_free;
    const struct machine *machine; /* for values of symbols; NULL: none is given */
};

void lower_defaults(struct lower_options *o);

/* Types are inferred if they are not known. TUCK_EINVAL with a diagnostic: a
 * symbol without a value. */
TUCK_MUST_CHECK tuck_status lower_graph(tuck_graph *g, const struct lower_options *o,
                                        tuck_diags *diags, struct program **out);

/* Give the graph that p was lowered from the order of p's ops: the nodes of an op together and in
 * their old order, views, items and numbers right after what they come from, inputs first and the
 * return last. Lowered again it has that order. Leaves through the store's guard. */
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

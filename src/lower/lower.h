/* Internals of the lowering that its files share. */
#ifndef TUCK_LOWER_LOWER_H
#define TUCK_LOWER_LOWER_H

#include "graph/call.h"
#include "graph/effect.h"
#include "infer/infer.h"
#include "graph/nested.h"
#include "op/ops.h"
#include "graph/storage.h"
#include "cost/machine.h"
#include "lower/copies.h"
#include "lower/program.h"

/* What a node is lowered to. */
enum lower_role {
    ROLE_NOTHING, /* an input, the return, a nested graph, a number: no op */
    ROLE_VIEW,    /* another name for an existing value */
    ROLE_OP,      /* an op of its own */
    ROLE_FUSIBLE, /* may be fused into a loop */
    ROLE_WAIT,
    ROLE_COLLECTIVE,
};

enum { ROLE_ENDS = 128 }; /* added to a role: no loop continues after this node */

/* State of a storage during the walk over the graph; by memory_root(). */
struct lower_storage {
    uint32_t buf;       /* PROGRAM_NONE if not made yet, or inside a loop */
    uint32_t region;    /* the only region that uses it; 0 if none yet, UINT32_MAX if several */
    bool output, input; /* the graph returns it; it is an input */
};

/* State of all storages that may be the same memory; by storage_root(). */
struct lower_kin {
    uint32_t last_access; /* position of the last node that uses one, including running transfers */
    uint32_t transfer;    /* the last collective that works on one; a node, 0 if none */
    uint32_t claimed;     /* the last collective that reused one; a node, 0 if none */
    bool output, input;   /* the graph returns one; one is an input */
    bool several;         /* there is more than one: no buffer tells the whole order */
    uint32_t written_by;  /* the op that wrote one last, or PROGRAM_NONE */
    uint32_t readers;     /* the ops that read one since then, entry in link; 0 if none */
    uint32_t works;       /* the last collective that writes one until a wait, or PROGRAM_NONE */
};

struct lower_link { /* entry of a linked list; 0 ends it */
    uint32_t op, next;
};

/* By buffer: the last op recorded as reading or writing it. Each op is recorded once. */
struct lower_track {
    uint32_t read_by, written_by;
    uint32_t works; /* the last collective that writes it until a wait, or PROGRAM_NONE */
    bool is_static; /* no symbols in its sizes: the same bytes in every step */
    uint32_t kin;   /* storage_root() of it and of buffers that may share with it; 0 if none do */
};

struct lower_use_row {
    uint32_t op;
    struct program_use use;
};

struct lower_dep_row {
    uint32_t from; /* the op that depends */
    struct program_dep dep;
};

/* What was found out about a type. */
struct lower_known {
    int64_t bytes;
    str_id text; /* 0: nothing yet */
};

struct lower_pair {
    uint32_t op, what;
};

struct lower {
    tuck_graph *g;
    const struct lower_options *o;
    tuck_diags *diags;
    struct program *p;
    struct arena scratch;
    struct assume assume;
    struct storages s;
    struct sigs sigs;
    struct buf text;
    str_id *str, *kernel; /* by string of the store, and by operator: the program's; 0: not yet */
    struct lower_known *known; /* by type, twice: as it is, and contiguous */
    uint32_t n_str, n_known;
    tuck_status status;
    sym_id no_number; /* a size without a value; 0 if all have one */

    /* by node: the call inside a wrapper; NULL if there are no wrappers */
    const struct fx_node **inner;
    const int32_t *group; /* by node: its group in the graph, or -1 */
    /* by node: the groups it communicates on, including nested graphs */
    struct comm_lines lines;
    uint32_t *last_in_line;   /* by line: the last op that communicates there */
    uint32_t *nested_in_line; /* by line: the last call of graphs that communicate there */
    VEC(struct program_group) groups;
    struct copies copies;
    uint8_t *role;       /* by node: enum lower_role */
    uint32_t *place;     /* by node: its position in the order */
    uint32_t *region;    /* by node: the loop it belongs to, from 1; 0 if none */
    uint32_t *region_op; /* by region: its op, or PROGRAM_NONE */
    uint32_t n_region;
    struct lower_storage *storage; /* by memory_root() */
    struct lower_kin *kin;         /* by storage_root() */
    uint32_t *made_by;             /* by node: the op that makes its result, or PROGRAM_NONE */
    uint32_t *more_from;           /* by node: further such ops, entry in link; 0 if none */
    uint32_t *copied;              /* by node: the collective that works on a copy of it */
    VEC(uint32_t) met;             /* by op: the last node found to come from it */
    VEC(uint32_t) followed;        /* by op: the last op put after it */
    VEC(uint32_t) ended_from;      /* by op that is a wait: its first row in wait */

    VEC(struct program_op) op;
    VEC(struct program_buf) buf;
    VEC(struct lower_track) track;
    VEC(struct lower_link) link; /* [0] unused */
    VEC(struct lower_use_row) use;
    VEC(uint32_t) use_from; /* by op: its first row in use */
    VEC(struct lower_dep_row) dep;
    VEC(struct lower_pair) node; /* ops and their nodes */
    VEC(struct lower_pair) wait; /* waits and the collectives they end */
    const str_id *described;     /* by node: the descriptor of an input; NULL if none has one */
    uint32_t last_effect, last_barrier; /* ops, or PROGRAM_NONE */
    VEC(uint32_t) since_barrier;        /* ops that wrote since the last barrier */
};

/* in region.c */
void lower_roles(struct lower *l);
void lower_regions(struct lower *l);

/* in lower_names.c: strings of the program */
void lower_begin_names(struct lower *l);
str_id lower_keep(struct lower *l, const char *s);
str_id lower_str(struct lower *l, str_id s); /* the same for a string of the graph */
const char *lower_kernel(const struct lower *l, uint32_t node);
str_id lower_kernel_str(struct lower *l, uint32_t node);
/* A name that no op or buffer has. */
enum lower_named { NAME_OF_OP = 1, NAME_OF_BUF = 2 };
str_id lower_name(struct lower *l, uint32_t node, const char *suffix, enum lower_named what);

/* in lower_emit.c */
uint32_t lower_op(struct lower *l, enum program_kind kind, uint32_t node, const char *suffix,
                  str_id kernel);
void lower_joins(struct lower *l, uint32_t op, uint32_t node); /* makes the node part of the op */
/* A new buffer of that type, made by op; PROGRAM_NONE if the type is not a tensor. */
uint32_t lower_buf(struct lower *l, uint32_t op, uint32_t node, type_id type, const char *suffix);
/* The same, but always contiguous: for copies. */
uint32_t lower_buf_dense(struct lower *l, uint32_t op, uint32_t node, type_id type,
                         const char *suffix);
/* The storage with that memory_root() is in that buffer. */
void lower_place(struct lower *l, uint32_t root, uint32_t buf);
void lower_uses(struct lower *l, uint32_t op, uint32_t buf, enum program_access how);
/* An order that does not follow from buffers. */
void lower_depends(struct lower *l, uint32_t op, uint32_t on, unsigned flags);
/* Puts the op after those that make the node's operands. */
void lower_follows_operands(struct lower *l, uint32_t op, uint32_t node);
void lower_follows_effects(struct lower *l, uint32_t op, uint32_t node);
/* Calls fn for everything the node reads or writes, like memory_accesses(). */
void lower_touches(struct lower *l, uint32_t node, access_fn fn, void *ctx);
/* Records what the node reads and writes, and adds the buffers of its results, made by op if they
 * are new. */
void lower_accesses(struct lower *l, uint32_t op, uint32_t node);
void lower_results(struct lower *l, uint32_t op, uint32_t node);
/* An op for one node, with all of the above. */
uint32_t lower_plain(struct lower *l, uint32_t node, enum program_kind kind);
bool lower_is_contiguous(const struct lower *l, type_id t);
type_id lower_result_type(const struct lower *l, uint32_t node, uint32_t item);
/* In lower_origin.c: the parameter that a collective gathers, or whose gradient it reduces: from
 * the descriptors of inputs and results; 0 if they do not say. */
void lower_describe(struct lower *l);
str_id lower_parameter(struct lower *l, uint32_t node);

/* in lower_finish.c: what was emitted becomes the program */
void lower_finish(struct lower *l);

/* in lower_collective.c */
void lower_collective(struct lower *l, uint32_t node);

/* in lower_nested.c */
bool lower_nests_comm(const struct lower *l, uint32_t node);
/* A call of graphs with collectives: an op for their compute and one for their communication. */
void lower_nested(struct lower *l, uint32_t node);
/* Keeps a communicating op in its place among such calls. */
void lower_takes_place(struct lower *l, uint32_t op, uint32_t node);

/* in lower_wait.c */
void lower_wait(struct lower *l, uint32_t node);
void lower_hold_unwaited(struct lower *l);

/* in lower_control.c */
void lower_find_inner(struct lower *l);
/* Adds order-only dependences: on the nodes a control_deps names, and on a with_effects token. */
void lower_follows_controls(struct lower *l, uint32_t op, uint32_t node);
void lower_wrapped(struct lower *l, uint32_t node);
uint32_t lower_group_of(struct lower *l, uint32_t node); /* index in l->groups, or PROGRAM_NONE */

/* The call that a node makes: for a wrapper, the call inside it, applied to the outer operands. */
static inline const struct fx_node *lower_call(const struct lower *l, uint32_t node)
{
    return l->inner != NULL && l->inner[node] != NULL ? l->inner[node] : node_at(l->g, node);
}

/* What is known of a storage with that memory_root() and of all that may be the same. */
static inline struct lower_kin *lower_kin_of(const struct lower *l, uint32_t root)
{
    return &l->kin[storage_root(&l->s, root)];
}

static inline bool lower_may_write(const struct lower *l, uint32_t node)
{
    return l->inner != NULL && l->inner[node] != NULL
               ? (op_at(l->inner[node]->op)->flags & OP_F_MUTATES) != 0
               : node_may_write(l->g, node);
}

#endif

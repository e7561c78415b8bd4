/* Between exec*.c. */
#ifndef TUCK_RUN_EXEC_CORE_H
#define TUCK_RUN_EXEC_CORE_H

#include "graph/call.h"
#include "graph/effect.h"
#include "run/exec.h"
#include "run/kernel/loop.h"

/* ---- memory ---- */

enum exec_where {
    WHERE_NOWHERE, /* no bytes */
    WHERE_ARENA,
    WHERE_INPUT, /* stays with the caller */
    WHERE_HEAP,  /* symmetric memory of a group */
    WHERE_LOOP,  /* inside of a loop that runs in parts */
    WHERE_GROWN, /* its size depends on data */
};

/* A buffer of the program, or a value inside of a loop. */
struct exec_place {
    char *base;
    int64_t bytes;
    int64_t inside; /* WHERE_LOOP: bytes from the beginning of that room */
    uint8_t where;  /* enum exec_where */
};

/* ---- values ---- */

enum exec_kind { EXEC_UNSET, EXEC_NOTHING, EXEC_TENSOR, EXEC_NUMBER, EXEC_OTHER };

struct exec_value {
    uint8_t kind; /* enum exec_kind */
    uint32_t place;
    int64_t at; /* bytes from the beginning of the place */
    struct rt_tensor t;
    struct sym_num number;
};

/* ---- steps ---- */

enum exec_what {
    STEP_KERNEL,
    STEP_OWN,     /* a kernel of the caller's */
    STEP_START,   /* a collective */
    STEP_WAIT,    /* for the collectives of an op */
    STEP_RESOLVE, /* a value that depends on data */
    STEP_BIND,    /* reads a number from a tensor */
    STEP_CHECK,   /* a condition */
    STEP_COPY,    /* inserted by lowering */
    STEP_LOOP,    /* several kernels that were fused */
};

struct exec_step {
    uint8_t what; /* enum exec_what */
    bool dynamic; /* operands are resolved when it runs */
    uint32_t op, node;
    struct rt_call call;
    const struct exec_kernel *own;
    uint32_t coll; /* STEP_START: index in x->coll */
    struct loop *loop;
    uint32_t *loop_at; /* the nodes in it, for messages */
};

/* A collective of the program. */
struct exec_coll {
    uint32_t op;
    struct comm_call call;
    struct comm_part *part;
    comm_req req;
    bool running;
    bool waited; /* synchronous, or a wait ends it */
};

struct exec_chunk { /* of memory that grows */
    struct exec_chunk *next;
    char *at;
    size_t size, used;
    size_t kept; /* what was used before the first step, and stays */
};

struct exec {
    struct mem mem;
    struct arena arena;   /* of everything prepared */
    struct arena passing; /* of calls that are resolved while a step runs */
    struct arena_mark passed;
    struct exec_options o;
    const tuck_graph *g;
    const struct program *p;
    struct sigs sigs;
    struct symtab sym;           /* for expressions in operands */
    const struct fx_node **call; /* by node: the call that does the work */
    uint32_t *value_at;          /* by node: its results in value */
    struct exec_value *value;
    bool *dynamic; /* by node: known only while a step runs */
    bool *passive; /* by node: no op of the program makes it */
    VEC(struct exec_place) place;
    VEC(struct exec_number) symbol;
    VEC(struct exec_step) step;
    VEC(struct exec_coll) coll;
    uint32_t *coll_of; /* by op: index in coll + 1; 0 if none */
    VEC(struct exec_input) input;
    VEC(struct comm_planned) planned;
    VEC(uint32_t) flying; /* started collectives that are not done, by index in coll */

    void *base; /* the arena and the inputs */
    size_t base_bytes;
    bool mapped; /* base is ours, not a heap of comm */
    char *arena_base;
    char *loop_base, *scratch;
    size_t loop_bytes, scratch_bytes;
    char *first_scratch; /* what was there before the first step: a larger one lasts one step */
    size_t first_scratch_bytes;
    int64_t *inside; /* by op: bytes of values inside of it */
    struct exec_chunk *chunk;
    struct exec_memory memory;
    int64_t growing;        /* bytes that this step needed so far */
    unsigned char *pattern; /* count_touched: which bytes were written */
    unsigned counted;       /* rounds so far */
    bool preparing;
    bool failed;
    char error[EXEC_ERROR_BYTES];
    uint32_t at_node; /* for messages */
};

/* Records the first error; returns false. */
bool exec_fail(struct exec *x, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same with the node's name before it. */
bool exec_fail_at(struct exec *x, uint32_t node, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* in exec_value.c */
enum exec_known { KNOWN, KNOWN_LATER, KNOWN_NEVER };
/* The number of an expression; KNOWN_LATER if a symbol in it is read from data. */
enum exec_known exec_number_of(struct exec *x, sym_id v, struct sym_num *out);
bool exec_look_up(void *exec, const char *name, struct sym_num *out);
void exec_set_symbol(struct exec *x, const char *name, struct sym_num value);
/* Sizes and strides of a type; data is not set. */
enum exec_known exec_tensor_of(struct exec *x, type_id id, struct rt_tensor *t);
int64_t exec_span(const struct rt_tensor *t); /* bytes up to the last element */
/* Fills the values of node n. Dynamic ones are left for later while preparing. */
bool exec_resolve(struct exec *x, uint32_t n);
uint32_t exec_value_count(const struct exec *x, uint32_t n);
/* A number given for parameter p, its default, or `otherwise`. */
bool exec_int_operand(struct exec *x, const struct fx_node *c, int p, int64_t otherwise,
                      int64_t *out);
struct exec_value *exec_operand(struct exec *x, const tuck_value *v); /* NULL if not a node */
const tuck_value *exec_param(struct exec *x, const struct fx_node *c, const char *name);
uint32_t exec_place_new(struct exec *x, int64_t bytes, enum exec_where where);
/* Sets t.data from the place. */
void exec_locate(struct exec *x, struct exec_value *v);

/* in exec_view.c: a value that is a view; bytes from its base's first element. */
bool exec_view(struct exec *x, uint32_t n, const struct fx_node *c);

/* in exec_call.c */
/* Fills step->call from the call's operands and results, in the arena a. */
bool exec_fill_call(struct exec *x, struct exec_step *s, struct arena *a);
/* The same for a copy that lowering inserted. */
bool exec_fill_copy(struct exec *x, struct exec_step *s, struct arena *a);
bool exec_value_list(struct exec *x, const tuck_value *v, struct arena *a, struct rt_value *out);

/* in exec_comm.c */
bool exec_prepare_coll(struct exec *x, uint32_t op);
bool exec_fill_coll(struct exec *x, struct exec_coll *c, struct arena *a);
bool exec_coll_known(const struct op_row *row);

/* in exec_missing.c: how an operator is run */
enum exec_way {
    WAY_NONE, /* not at all */
    WAY_KERNEL,
    WAY_COLLECTIVE,
    WAY_BIND,    /* reads a number from a tensor */
    WAY_CHECK,   /* a condition that must hold */
    WAY_NOTHING, /* nothing is left to do */
};
enum exec_way exec_way_of(const struct op_row *row);
/* The planned buffer of result k of a node, PROGRAM_NONE if it has none. */
uint32_t exec_planned_buf(const struct program *p, uint32_t n, uint32_t k);
/* Is the node, whose work the call c does, another name for its operand's memory? */
bool exec_is_view(const tuck_graph *g, const struct program *p, uint32_t n,
                  const struct fx_node *c);
const struct exec_kernel *exec_own_kernel(const struct exec_kernel *k, size_t n, const char *op);

/* in exec_steps.c */
bool exec_make_steps(struct exec *x);

/* in exec_memory.c */
void exec_make_places(struct exec *x);  /* one per buffer of the program */
bool exec_make_memory(struct exec *x);  /* everything but scratch of kernels */
bool exec_make_scratch(struct exec *x); /* after the steps are made */
void exec_end_memory(struct exec *x);
char *exec_grow(struct exec *x, size_t bytes);
void exec_shrink(struct exec *x); /* what grew in a step is free for the next one */

/* in exec_guard.c: with AddressSanitizer, what an op and a kernel of it may touch; else nothing. */
void exec_guard(struct exec *x, uint32_t op);
void exec_guard_call(struct exec *x, const struct rt_call *c);
void exec_guard_loop(struct exec *x, const struct loop *l);
void exec_guard_end(struct exec *x); /* of a kernel: all of the scratch may be touched again */
void exec_unguard(struct exec *x);   /* everything may be */

#endif

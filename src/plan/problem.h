/* The schedule problem: what schedulers need to know about a program to order its ops, as plain
 * arrays. It knows nothing about graphs. Lowering or a file (docs/scheduling.md) fills it,
 * schedulers and the simulator read it. It never changes once built; a schedule is an array of all
 * op ids, each once.
 *
 *   ops      0 … n_op-1 in the order in which they were given, which is a valid schedule itself
 *   buffers  0 … n_buf-1: first the inputs, then the outputs of op 0, of op 1, …
 *
 * Lists are in CSR form: those of x are list[list_at[x]] … list[list_at[x + 1] - 1].
 */
#ifndef TUCK_PLAN_PROBLEM_H
#define TUCK_PLAN_PROBLEM_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/units.h"
#include "base/vec.h"

#define PROBLEM_NONE UINT32_MAX

enum problem_kind { PROBLEM_COMPUTE, PROBLEM_GEMM, PROBLEM_COLLECTIVE, PROBLEM_WAIT };

enum {
    PROBLEM_ASYNC = 1, /* a collective with a wait; without this flag the op itself waits */
    PROBLEM_LIKE_GEMM =
        2, /* a GEMM, or a library kernel: too long to be moved along without need */
    PROBLEM_FENCE =
        4, /* a collective that no other may pass: of an unknown group, or coll_is_fence() */
};

/* A dependence orders two ops. A real one means that the buffer is read; a weak one, that the op
 * overwrites the buffer and must come after its readers; a fake one carries no data: it only keeps
 * an order, and keeps no buffer alive. */
enum {
    PROBLEM_WEAK = 1,
    PROBLEM_FAKE = 2,
    PROBLEM_ON_OP = 4, /* the target is an op, not a buffer */
};

enum {
    PROBLEM_INPUT = 1, /* exists before the first op */
    PROBLEM_FREEABLE =
        2, /* an input that the caller gives up: it counts, and is freed after its last use */
    PROBLEM_OUTPUT = 4, /* returned to the caller: never freed */
};

struct problem {
    struct mem mem;
    struct arena arena;
    struct strtab str;
    str_id source;  /* file name, for messages */
    str_id unit;    /* unit of runtimes: "ns", "us", "ms", "s"; 0 if not given, which means ns */
    double unit_ps; /* picoseconds per unit */

    /* ---- ops ---- */
    uint32_t n_op;
    str_id *name;   /* [n_op], unique */
    uint8_t *kind;  /* enum problem_kind */
    uint8_t *flags; /* PROBLEM_ASYNC, PROBLEM_LIKE_GEMM, PROBLEM_FENCE */
    int64_t *ps;    /* time: what simulations, bounds and reports use */
    /* The same in `unit`, finite and not negative, exactly as given: PyTorch's schedulers add and
     * compare such doubles, and to get the same orders ours must use the same sums. Only schedulers
     * and files use it. */
    double *runtime;
    uint32_t *group;   /* process group of a collective, 0 … n_group-1; PROBLEM_NONE if unknown */
    int64_t *bytes;    /* message size of a collective; -1 if unknown */
    uint8_t *coll;     /* tuck_coll; 0 if unknown */
    str_id *coll_name; /* as in the file, "all_reduce"; 0 if unknown */
    str_id *kernel;    /* "extern_kernels.mm"; 0 if none */
    uint32_t *member_at; /* [n_op + 1]: range in `member` */
    str_id *member;      /* names of what was fused into the op; empty: the op itself */
    uint32_t n_group;
    str_id *group_name;
    /* [n_op]: ops lowered from one graph node are adjacent in every order and have consecutive ids;
     * all of them name the same op, which has the node's position. NULL: every op stands alone. */
    uint32_t *anchor;

    /* ---- what an op needs: buffers, or ops where PROBLEM_ON_OP is set; duplicates occur ---- */
    uint32_t *dep_at; /* [n_op + 1] */
    uint32_t *dep;
    uint8_t *dep_flags;

    /* ---- the collectives that a wait ends: those that make what it needs or, if there are none,
     * those of the waits that make it. Empty for other ops, and for a wait for nothing. ---- */
    uint32_t *wait_at; /* [n_op + 1] */
    uint32_t *wait;

    /* ---- buffers ---- */
    uint32_t n_buf, n_input; /* buffers 0 … n_input-1 are the inputs */
    uint32_t *out_at;        /* [n_op + 1]: op i makes buffers out_at[i] … out_at[i + 1]-1 */
    str_id *buf_name;        /* [n_buf], all different */
    uint8_t *buf_flags;
    uint32_t *producer;  /* PROBLEM_NONE for inputs */
    int64_t *size_alloc; /* bytes when allocated; for a freeable input the same as size_free */
    int64_t *size_free;  /* bytes when freed; may differ (parts of one allocation) */
    uint32_t *succ_at;   /* [n_buf + 1]: ops that keep it alive, each once, ascending */
    uint32_t *succ;
    uint32_t
        *order_at; /* [n_buf + 1]: ops that must come after its producer, each once, ascending */
    uint32_t *order;

    /* ---- names that only files need ---- */
    uint32_t n_graph_input, n_graph_output, n_mutation;
    str_id *graph_input;
    str_id *graph_output; /* may contain names that are not buffers */
    str_id *mutation;     /* pairs: a name, and the buffer that it really is */
};

static inline const char *problem_name(const struct problem *p, uint32_t op)
{
    assert_hot(op < p->n_op);
    return str_text(&p->str, p->name[op]);
}

/* Must two collectives keep their order? Yes if they have the same group, or one is a fence.
 * Collectives of different groups may pass each other if all ranks run the same program. */
static inline bool problem_in_sequence(const struct problem *p, uint32_t x, uint32_t y)
{
    assert_hot(x < p->n_op && y < p->n_op);
    return ((p->flags[x] | p->flags[y]) & PROBLEM_FENCE) != 0 || p->group[x] == p->group[y];
}

/* The op that represents x's node: usually x itself. */
static inline uint32_t problem_anchor(const struct problem *p, uint32_t x)
{
    return p->anchor != NULL ? p->anchor[x] : x;
}

/* Is x the only op of its node? Those of one node are next to each other. */
static inline bool problem_is_alone(const struct problem *p, uint32_t x)
{
    return (x == 0 || problem_anchor(p, x - 1) != problem_anchor(p, x)) &&
           (x + 1 >= p->n_op || problem_anchor(p, x + 1) != problem_anchor(p, x));
}

static inline const char *problem_buf_name(const struct problem *p, uint32_t buf)
{
    assert_hot(buf < p->n_buf);
    return str_text(&p->str, p->buf_name[buf]);
}

static inline bool problem_is_coll(const struct problem *p, uint32_t op)
{
    assert_hot(op < p->n_op);
    return p->kind[op] == PROBLEM_COLLECTIVE;
}

static inline bool problem_is_async(const struct problem *p, uint32_t op)
{
    return p->kind[op] == PROBLEM_COLLECTIVE && (p->flags[op] & PROBLEM_ASYNC) != 0;
}

static inline bool problem_is_wait(const struct problem *p, uint32_t op)
{
    assert_hot(op < p->n_op);
    return p->kind[op] == PROBLEM_WAIT;
}

/* The op that dependence d is on, or PROBLEM_NONE for an input. */
static inline uint32_t problem_dep_op(const struct problem *p, uint32_t d)
{
    assert_hot(d < p->dep_at[p->n_op]);
    return p->dep_flags[d] & PROBLEM_ON_OP ? p->dep[d] : p->producer[p->dep[d]];
}

void problem_free(struct problem *p); /* p may be NULL */

/* ---- building ----
 * Inputs first, then ops, each followed by what belongs to it:
 *
 *   struct problem_builder b;
 *   problem_begin(&b, alloc, "llama_fw");
 *   uint32_t x = problem_input(&b, "primals_1", 4096, PROBLEM_FREEABLE);
 *   problem_op(&b, &(struct problem_op){.name = "mm", .kind = PROBLEM_GEMM, .runtime = 20});
 *   problem_reads(&b, x);
 *   uint32_t y = problem_makes(&b, "buf0", 4096, 4096);
 *   …
 *   tuck_status st = problem_finish(&b, diags, &p);
 *
 * The calls between begin and finish allocate and so need a mem_guard() on &b.p->mem around them;
 * finish has its own. problem_abandon() discards a builder. */

struct problem_op {
    const char *name;
    enum problem_kind kind;
    double runtime;
    bool is_async;
    const char *group;  /* NULL if unknown */
    const char *coll;   /* NULL if unknown */
    const char *kernel; /* NULL if none */
    int64_t bytes;      /* of the message; 0 or negative if unknown */
};

struct problem_op_row;
struct problem_buf_row;

struct problem_pair {
    uint32_t buf, op;
};

struct problem_builder {
    struct problem *p; /* NULL if out of memory or finished */
    const char *source;
    uint32_t n_input;
    VEC(struct problem_op_row) op;
    VEC(struct problem_buf_row) buf;
    VEC(uint32_t) dep;
    VEC(uint8_t) dep_flags;
    VEC(str_id) member;
    VEC(str_id) group_name;
    VEC(struct problem_pair) succ, order;
    VEC(str_id) graph_input, graph_output, mutation;
};

/* False: out of memory. `source` is used in messages and must live until building ends. If
 * runtimes are not in ns, set b->p->unit and unit_ps. */
bool problem_begin(struct problem_builder *b, const tuck_allocator *alloc, const char *source);
void problem_abandon(struct problem_builder *b);

/* An input; its bytes count only with PROBLEM_FREEABLE. PROBLEM_OUTPUT: it is also returned. */
uint32_t problem_input(struct problem_builder *b, const char *name, int64_t bytes, unsigned flags);

uint32_t problem_op(struct problem_builder *b, const struct problem_op *op);
/* About the last op: what was fused into it, what it makes, what it needs. */
void problem_fuses(struct problem_builder *b, const char *member);
uint32_t problem_makes(struct problem_builder *b, const char *name, int64_t size_alloc,
                       int64_t size_free);
void problem_needs(struct problem_builder *b, uint32_t buf, unsigned flags);
void problem_needs_op(struct problem_builder *b, uint32_t op, unsigned flags);
/* A real dependence of the last op on buf, which also keeps buf alive until then. */
void problem_reads(struct problem_builder *b, uint32_t buf);

/* The same for names that are strings of the problem already, b->p->str; 0 for none. Of *op the
 * names do not count. */
struct problem_names {
    str_id name, group, coll, kernel;
};
uint32_t problem_input_named(struct problem_builder *b, str_id name, int64_t bytes, unsigned flags);
uint32_t problem_op_named(struct problem_builder *b, const struct problem_op *op,
                          const struct problem_names *names);
void problem_fuses_named(struct problem_builder *b, str_id member);
uint32_t problem_makes_named(struct problem_builder *b, str_id name, int64_t size_alloc,
                             int64_t size_free);
/* Makes room, if it is known how much there will be. */
void problem_expect(struct problem_builder *b, uint32_t n_op, uint32_t n_buf, uint32_t n_dep,
                    uint32_t n_kept);

/* op keeps buf alive: for users of an alias, and for a wait, which keeps its collective's
 * operand. */
void problem_keeps(struct problem_builder *b, uint32_t buf, uint32_t op);
/* op must come after the producer of buf, for the orders that minimize memory; implied by
 * problem_keeps(). */
void problem_follows(struct problem_builder *b, uint32_t buf, uint32_t op);
/* buf is returned to the caller. */
void problem_returns(struct problem_builder *b, uint32_t buf);

/* Checks that the order of ops is a schedule and that sizes do not overflow, and makes the arrays.
 * The builder cannot be used afterwards, even if this fails. TUCK_ELINT with a diagnostic: a
 * duplicate name, or a dependence on a later op. */
TUCK_MUST_CHECK tuck_status problem_finish(struct problem_builder *b, tuck_diags *diags,
                                           struct problem **p_out);

/* What is wrong with what was built so far, for callers that know the place in the source. */
enum problem_fault_kind {
    PROBLEM_FINE,
    PROBLEM_NAME_TWICE, /* op has the same name, or a member with the same name, as op `other` */
    PROBLEM_LATE_INPUT, /* input buf was added after an op */
    PROBLEM_BUF_TWICE,  /* buf has the name of an earlier buffer */
    /* dependence number `item` of op is on something that op `other` makes later */
    PROBLEM_LATE,
    PROBLEM_CYCLE,     /* the same, and `other` in turn needs op */
    PROBLEM_EARLY_USE, /* an op that keeps buf alive comes before its producer */
    PROBLEM_BYTES,     /* the sum of sizes up to buf exceeds 64 bits */
    PROBLEM_TIME,      /* the sum of runtimes up to op exceeds 64 bits of picoseconds */
};
struct problem_fault {
    enum problem_fault_kind kind;
    uint32_t op, buf;
    uint32_t other; /* for faults about a buffer: its producer, or PROBLEM_NONE */
    uint32_t item;  /* for these: the index of the output or input */
    str_id name;    /* PROBLEM_NAME_TWICE: the name */
};
struct problem_fault problem_check(struct problem_builder *b); /* also needs a mem_guard() */
/* The message, without a location. */
void problem_fault_text(const struct problem_builder *b, const struct problem_fault *f,
                        struct buf *out);

/* ---- files ---- */

/* Reads a text of schema 1; `name` is used in diagnostics. TUCK_ESYNTAX: see them. */
TUCK_MUST_CHECK tuck_status problem_read_text(const char *text, size_t len, const char *name,
                                              const tuck_allocator *alloc, tuck_diags *diags,
                                              struct problem **p_out);
TUCK_MUST_CHECK tuck_status problem_read_file(const char *path, const tuck_allocator *alloc,
                                              tuck_diags *diags, struct problem **p_out);

/* Is its name *.json, or does it begin with a brace, which no graph text does? Also true if it
 * cannot be opened: reading it will report why. */
bool problem_is_file(const char *path);

/* Writes the problem with its ops in `order` (NULL: as they are). Reading it gives the same
 * problem. */
void problem_write(const struct problem *p, const uint32_t *order, struct buf *out);

#endif

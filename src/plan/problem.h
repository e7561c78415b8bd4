/* The schedule problem: what must be known of a program to choose the order of its ops, as
 * plain arrays. It knows nothing of graphs. A lowering fills it, a file holds it
 * (docs/scheduling.md), schedulers and the simulator read it. Once built it never changes; a
 * schedule is an array of all op ids, each once.
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
#include "base/vec.h"

#define PROBLEM_NONE UINT32_MAX

enum problem_kind { PROBLEM_COMPUTE, PROBLEM_GEMM, PROBLEM_COLLECTIVE, PROBLEM_WAIT };

enum {
    PROBLEM_ASYNC = 1, /* a collective that a wait ends; without it the op waits inside itself */
    PROBLEM_LIKE_GEMM =
        2, /* a GEMM, or a kernel of a library: too long to be dragged along blindly */
    PROBLEM_FENCE =
        4, /* a collective that no other passes: its group is not known, or it sends or receives */
};

/* A dependence orders two ops. One that is real says that the buffer is read; one that is only
 * weak, that a reader of it must come first (the op writes over it); a fake one carries no data at
 * all: it was added to keep an order, and lets no buffer live longer. */
enum {
    PROBLEM_WEAK = 1,
    PROBLEM_FAKE = 2,
    PROBLEM_ON_OP = 4, /* the target is an op, not a buffer */
};

enum {
    PROBLEM_INPUT = 1, /* it is there before the first op */
    PROBLEM_FREEABLE =
        2, /* an input that the caller lets go of: it counts, and is freed after its last use */
    PROBLEM_OUTPUT = 4, /* the caller gets it: never freed */
};

struct problem {
    struct mem mem;
    struct arena arena;
    struct strtab str;
    str_id source; /* file name, for messages */
    str_id unit;   /* what runtimes are counted in: "ns", "us", "ms", "s"; 0: not said, ns */

    /* ---- ops ---- */
    uint32_t n_op;
    str_id *name;    /* [n_op], all different */
    uint8_t *kind;   /* enum problem_kind */
    uint8_t *flags;  /* PROBLEM_ASYNC, PROBLEM_LIKE_GEMM, PROBLEM_FENCE */
    double *runtime; /* in `unit`, finite and not negative: just as it was given */
    uint32_t *group; /* process group of a collective, 0 … n_group-1, or PROBLEM_NONE: not known */
    int64_t *bytes;  /* of a collective's message, -1: not known */
    uint8_t *coll;   /* tuck_coll; 0: not known */
    str_id *coll_name;   /* as the file has it, "all_reduce"; 0: not known */
    str_id *kernel;      /* "extern_kernels.mm", 0: none */
    uint32_t *member_at; /* [n_op + 1]: what was fused into the op … */
    str_id *member;      /* … by name; none: the op itself */
    uint32_t n_group;
    str_id *group_name;
    /* [n_op]: ops that one node of a graph became are neighbours in every order; all of
     * them name the same op, whose place is the node's. Their ids are consecutive. NULL:
     * every op is on its own. */
    uint32_t *anchor;

    /* ---- what an op needs: buffers, or ops where PROBLEM_ON_OP is set; duplicates occur ---- */
    uint32_t *dep_at; /* [n_op + 1] */
    uint32_t *dep;
    uint8_t *dep_flags;

    /* ---- the collectives a wait ends: those that produce what it needs; only if
     * there are none, those of the waits that do. Empty for ops that are not waits,
     * and for a wait for nothing. ---- */
    uint32_t *wait_at; /* [n_op + 1] */
    uint32_t *wait;

    /* ---- buffers ---- */
    uint32_t n_buf, n_input; /* buffers 0 … n_input-1 are the inputs */
    uint32_t *out_at;        /* [n_op + 1]: op i makes buffers out_at[i] … out_at[i + 1]-1 */
    str_id *buf_name;        /* [n_buf], all different */
    uint8_t *buf_flags;
    uint32_t *producer;  /* PROBLEM_NONE for inputs */
    int64_t *size_alloc; /* bytes when it comes to be; of a freeable input the same as size_free */
    int64_t *size_free;  /* bytes when freed; not always the same (parts of one allocation) */
    uint32_t *succ_at;   /* [n_buf + 1]: ops that keep it alive, each once, ascending */
    uint32_t *succ;
    uint32_t
        *order_at; /* [n_buf + 1]: ops that must come after its producer, each once, ascending */
    uint32_t *order;

    /* ---- names that only files need ---- */
    uint32_t n_graph_input, n_graph_output, n_mutation;
    str_id *graph_input;
    str_id *graph_output; /* may name things that are no buffers */
    str_id *mutation;     /* pairs: a name, and the buffer it really is */
};

static inline const char *problem_name(const struct problem *p, uint32_t op)
{
    assert_hot(op < p->n_op);
    return str_text(&p->str, p->name[op]);
}

/* Two collectives that keep their order: of one group, or one of them a fence. Those of different
 * groups may pass each other, where all ranks run the same program. */
static inline bool problem_in_sequence(const struct problem *p, uint32_t x, uint32_t y)
{
    assert_hot(x < p->n_op && y < p->n_op);
    return ((p->flags[x] | p->flags[y]) & PROBLEM_FENCE) != 0 || p->group[x] == p->group[y];
}

/* The op that represents the node of x: usually x itself. */
static inline uint32_t problem_anchor(const struct problem *p, uint32_t x)
{
    return p->anchor != NULL ? p->anchor[x] : x;
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

/* Nanoseconds of one `unit`. */
double problem_unit_ns(const struct problem *p);

/* An op's runtime in whole picoseconds, which add up to the same on every machine. */
int64_t problem_ps(const struct problem *p, uint32_t op);

void problem_free(struct problem *p); /* NULL is fine */

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
 * finish has its own. A builder is given up with problem_abandon(). */

struct problem_op {
    const char *name;
    enum problem_kind kind;
    double runtime;
    bool is_async;
    const char *group;  /* NULL: not known */
    const char *coll;   /* NULL: not known */
    const char *kernel; /* NULL: none */
    int64_t bytes;      /* of the message; not positive: not known */
};

struct problem_op_row;
struct problem_buf_row;

struct problem_pair {
    uint32_t buf, op;
};

struct problem_builder {
    struct problem *p; /* NULL: no memory even for that, or done with */
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

/* False: no memory. `source` must live until the end of the building; it is used in messages. Where
 * times are not in ns, set b->p->unit. */
bool problem_begin(struct problem_builder *b, const tuck_allocator *alloc, const char *source);
void problem_abandon(struct problem_builder *b);

/* An input; bytes count only with PROBLEM_FREEABLE. PROBLEM_OUTPUT: it is returned as well. */
uint32_t problem_input(struct problem_builder *b, const char *name, int64_t bytes, unsigned flags);

uint32_t problem_op(struct problem_builder *b, const struct problem_op *op);
/* About the last op: what was fused into it, what it makes, what it needs. */
void problem_fuses(struct problem_builder *b, const char *member);
uint32_t problem_makes(struct problem_builder *b, const char *name, int64_t size_alloc,
                       int64_t size_free);
void problem_needs(struct problem_builder *b, uint32_t buf, unsigned flags);
void problem_needs_op(struct problem_builder *b, uint32_t op, unsigned flags);
/* A real dependence of the last op on buf, which it also keeps alive until then. */
void problem_reads(struct problem_builder *b, uint32_t buf);

/* Op keeps buf alive: for users of an alias, and for a wait, which holds
 * its collective's operand. */
void problem_keeps(struct problem_builder *b, uint32_t buf, uint32_t op);
/* Op must come after what makes buf, for the peak-memory orders; problem_keeps() says so too. */
void problem_follows(struct problem_builder *b, uint32_t buf, uint32_t op);
/* The caller gets buf. */
void problem_returns(struct problem_builder *b, uint32_t buf);
bool problem_is_returned(const struct problem_builder *b, uint32_t buf);

/* Checks that the order of ops is a schedule and that sizes add up, and makes the arrays. The
 * builder is done with, also on failure. TUCK_ELINT with a diagnostic: a name twice, a
 * dependence on a later op. */
TUCK_MUST_CHECK tuck_status problem_finish(struct problem_builder *b, tuck_diags *diags,
                                           struct problem **p_out);

/* What is wrong with what was built so far, for callers that know where it was written. */
enum problem_fault_kind {
    PROBLEM_FINE,
    PROBLEM_NAME_TWICE, /* op: its name, or that of a member, is also that of op `other` */
    PROBLEM_LATE_INPUT, /* input buf was given after an op */
    PROBLEM_BUF_TWICE,  /* buf has the name of an earlier buffer */
    PROBLEM_LATE,       /* op needs (its dependence number `item`) what op `other` makes later */
    PROBLEM_CYCLE,      /* … and `other` in turn needs op */
    PROBLEM_EARLY_USE,  /* an op that keeps buf alive comes before what makes it */
    PROBLEM_BYTES,      /* sizes up to buf are more than 64 bits hold */
    PROBLEM_TIME,       /* runtimes up to op are more than 64 bits of picoseconds hold */
};
struct problem_fault {
    enum problem_fault_kind kind;
    uint32_t op, buf;
    uint32_t other; /* of faults about a buffer: its producer, or PROBLEM_NONE */
    uint32_t item;  /* … and which of its outputs, or which input, it is */
    str_id name;    /* PROBLEM_NAME_TWICE: which name */
};
struct problem_fault problem_check(struct problem_builder *b); /* needs a mem_guard() too */
/* The message, without a place. */
void problem_fault_text(const struct problem_builder *b, const struct problem_fault *f,
                        struct buf *out);

/* ---- files ---- */

/* A text of schema 1; `name` is used in diagnostics. TUCK_ESYNTAX: see them. */
TUCK_MUST_CHECK tuck_status problem_read_text(const char *text, size_t len, const char *name,
                                              const tuck_allocator *alloc, tuck_diags *diags,
                                              struct problem **p_out);
TUCK_MUST_CHECK tuck_status problem_read_file(const char *path, const tuck_allocator *alloc,
                                              tuck_diags *diags, struct problem **p_out);

/* Is it called .json, or does it begin with a brace, as no text of a graph does? Yes, too, where it
 * cannot be opened: reading it says why. */
bool problem_is_file(const char *path);

/* The problem with its ops in `order` (NULL: as they are). What is written can
 * be read, and is the same. */
void problem_write(const struct problem *p, const uint32_t *order, struct buf *out);

#endif

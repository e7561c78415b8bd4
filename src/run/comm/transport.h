/* How ranks communicate: one table of functions, filled by every transport. A `struct comm` is one
 * rank's end of it, used by one thread at a time.
 *
 * Nothing here prints or exits. What fails returns false (or NULL, COMM_FAILED, -1), and
 * comm_error() says why: which rank, and which collective by its label. After a failure of start,
 * test, wait, progress or exchange the job is over on all ranks: the others get the same message
 * instead of waiting for the time-out, and only close() is useful then. A call that is refused as
 * invalid (kind, dtype, sizes) is such a failure, too: the other ranks would wait for it.
 *
 * Sums and all other reductions are made in the order of the group: ((x0 + x1) + x2) + …, in float
 * for f16 and bf16 and rounded once; an average is the sum divided by the number of members. So a
 * result is the same, to the bit, on every rank, for every algorithm and transport.
 *
 * Started calls make progress in start(), test(), wait() and progress() of any call. Calls on one
 * group must be started in the same order by all its members, and are done in that order; sends and
 * receives match by peer, group and tag, in the order in which they are started. Waits may come in
 * any order.
 */
#ifndef TUCK_RUN_COMM_TRANSPORT_H
#define TUCK_RUN_COMM_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op/dtype.h"

enum comm_kind {
    COMM_BARRIER,
    COMM_ALL_REDUCE,     /* in: count, out: count; out may be in */
    COMM_ALL_GATHER,     /* in: count, out: count by member; in may be its part of out */
    COMM_REDUCE_SCATTER, /* in: count by member, out: count; out may be its part of in */
    COMM_ALL_TO_ALL,     /* in: in_split[member], out: out_split[member]; or count by member */
    COMM_BROADCAST,      /* in: count, read at the root only; out: count; out may be in */
    COMM_REDUCE,         /* in: count, out: count, written at the root only; out may be in */
    COMM_GATHER,         /* in: count, out: count by member, at the root only */
    COMM_SCATTER,        /* in: count by member, at the root only; out: count */
    COMM_P2P,            /* sends and receives: each part has its own peer and tag */
    COMM_KINDS
};

enum comm_reduce {
    COMM_SUM, /* of bool: or */
    COMM_AVG, /* floating point and complex only */
    COMM_MIN,
    COMM_MAX,
    COMM_PRODUCT,
    COMM_BAND,
    COMM_BOR,
    COMM_BXOR,
    COMM_REDUCES
};

/* One tensor of a call: a coalesced call has several. All are contiguous. */
struct comm_part {
    const void *in;
    void *out;
    int64_t count; /* elements: see comm_kind */
    uint8_t dtype; /* enum dtype */
    /* of a COMM_P2P: */
    bool receive; /* into out; else in is sent */
    int32_t peer; /* a member of the group: 0 … */
    int64_t tag;
};

struct comm_call {
    uint8_t kind;   /* enum comm_kind */
    uint8_t reduce; /* enum comm_reduce, if the kind reduces */
    int32_t group;
    int32_t root; /* a member of the group: 0 … */
    uint32_t n_part;
    const struct comm_part *part; /* may be freed after start() */
    /* COMM_ALL_TO_ALL with one part: elements to and from each member; NULL: count to and from
     * each. */
    const int64_t *in_split, *out_split;
    const char *label; /* for messages: the node's name; must live as long as the call */
    /* A promise that saves time for small operands in the symmetric heap: `in` is not written again
     * before a later call of this group is done (buffers are used in turns). */
    bool in_stays;
};

enum comm_state { COMM_FAILED = -1, COMM_PENDING, COMM_DONE };

typedef uint32_t comm_req; /* valid until test() or wait() said that it is done, or failed */

enum { COMM_ERROR_BYTES = 1024 };

struct transport;
struct comm_shared; /* run/comm/shm.h: what the ranks of one machine share */

/* What a rank must know to join. launch() (run/comm/launch.h) fills it. */
struct comm_job {
    const struct transport *transport;
    int rank, world;            /* mpi: 0, 0; open() finds out */
    double timeout_s;           /* how long wait() waits for others; 0 means 60 */
    struct comm_shared *shared; /* shm only */
    bool own_reductions;        /* mpi: MPI's own reductions, equal within tolerance only */
};

struct comm_group {
    int32_t n;
    int32_t me; /* this rank among the members; -1 if it is none */
    int32_t *member;
};

struct comm {
    const struct transport *transport;
    int rank, world;
    struct comm_group *group; /* [n_group], by the numbers of group() */
    int32_t n_group;
    char error[COMM_ERROR_BYTES];
};

struct transport {
    const char *name, *help;
    bool by_mpirun; /* this process is a rank already; else the launcher makes ranks */
    /* NULL: error (COMM_ERROR_BYTES) says why. All ranks must call it. */
    struct comm *(*open)(const struct comm_job *job, char *error);
    void (*close)(struct comm *c);
    /* Ends the job on all ranks, soon; their calls fail with this reason. */
    void (*abort)(struct comm *c, const char *reason);
    /* A number for these world ranks, in this order; all ranks of the world call it, in the same
     * order, members or not. Group 0 is the world and is always there. -1: failed. */
    int32_t (*group)(struct comm *c, const int32_t *member, int32_t n);
    /* The symmetric heap of a group: every member calls it with the same size, once. Zeroed,
     * aligned to pages, never moves. Operands in it are not copied on the way; the transport
     * finds out by their addresses. NULL: failed. */
    void *(*heap)(struct comm *c, int32_t group, size_t bytes);
    /* The same heap of another member as this rank sees it; NULL if it cannot (mpi). */
    void *(*peer)(struct comm *c, int32_t group, int32_t member);
    bool (*start)(struct comm *c, const struct comm_call *call, comm_req *req);
    enum comm_state (*test)(struct comm *c, comm_req req);
    bool (*wait)(struct comm *c, comm_req req);
    /* Between kernels: moves on whatever can move without waiting. */
    bool (*progress)(struct comm *c);
    /* all[world * bytes] = what each rank of the world passed as mine; bytes the same everywhere.
     * Small things: digests, reports. */
    bool (*exchange)(struct comm *c, const void *mine, size_t bytes, void *all);
};

extern const struct transport transport_shm;

/* The transport of this name, loaded if it is a plug-in; NULL or "auto": mpi if this process was
 * started by mpirun, else shm. NULL: there is none, error (COMM_ERROR_BYTES) says why. */
const struct transport *transport_find(const char *name, char *error);

/* How many ranks mpirun has started; 0 if it did not start this process, or the transport is
 * another one. */
int transport_world(const char *name);

static inline struct comm *comm_open(const struct comm_job *job, char *error)
{
    return job->transport->open(job, error);
}

static inline void comm_close(struct comm *c)
{
    if (c != NULL)
        c->transport->close(c);
}

static inline void comm_abort(struct comm *c, const char *reason)
{
    c->transport->abort(c, reason);
}

static inline int32_t comm_group(struct comm *c, const int32_t *member, int32_t n)
{
    return c->transport->group(c, member, n);
}

static inline void *comm_heap(struct comm *c, int32_t group, size_t bytes)
{
    return c->transport->heap(c, group, bytes);
}

static inline void *comm_peer(struct comm *c, int32_t group, int32_t member)
{
    return c->transport->peer(c, group, member);
}

static inline bool comm_start(struct comm *c, const struct comm_call *call, comm_req *req)
{
    return c->transport->start(c, call, req);
}

static inline enum comm_state comm_test(struct comm *c, comm_req req)
{
    return c->transport->test(c, req);
}

static inline bool comm_wait(struct comm *c, comm_req req)
{
    return c->transport->wait(c, req);
}

static inline bool comm_progress(struct comm *c)
{
    return c->transport->progress(c);
}

static inline bool comm_exchange(struct comm *c, const void *mine, size_t bytes, void *all)
{
    return c->transport->exchange(c, mine, bytes, all);
}

static inline const char *comm_error(const struct comm *c)
{
    return c->error;
}

/* Before step 1: do all ranks make the same calls on the groups they share? One row a call that
 * this rank makes, in its order; `what` is compared, and named if it differs ("all_reduce sum f32
 * 1024 'grad_3'"). Sends and receives are left out by the caller. False: comm_error() names the
 * ranks and the first call that differs. */
struct comm_planned {
    int32_t group;
    const char *what;
};
bool comm_compare(struct comm *c, const struct comm_planned *row, uint32_t n);

/* "all_reduce", "sum"; the reverse returns -1 if there is no such name. */
const char *comm_kind_name(enum comm_kind kind);
const char *comm_reduce_name(enum comm_reduce reduce);
int comm_reduce_by_name(const char *name);

/* Whether a reduction makes sense for a dtype: sums of integers do, averages of them do not. */
bool comm_can_reduce(enum comm_reduce reduce, enum dtype dtype);

#endif

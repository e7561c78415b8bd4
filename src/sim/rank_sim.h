/* The time of several ranks together, each with its own ops, order and speed; and of ops that slow
 * each other down.
 *
 * A single rank is simulated as S0 (sim/sim.h). For several: the i-th collective of a group on each
 * member is one transfer. It starts when the last member has reached it, and ends on all of them at
 * the same time. Sends match receives by source, destination and tag, in order; a batch of them
 * starts when all its partners have arrived.
 *
 * S1, with contention: a transfer is a latency followed by bytes. If m transfers move bytes over
 * one link of a rank, each runs at 1/m of its speed, on all members. A kernel runs at 1/f while a
 * collective runs on its rank; f depends on the class of the kernel and the kind of the collective,
 * and the largest f counts. A transfer runs at 1/f of that while a kernel runs on any of its ranks;
 * f depends on its kind. Speeds are multiples of 2^-20, so times are whole picoseconds here too.
 */
#ifndef TUCK_SIM_RANK_SIM_H
#define TUCK_SIM_RANK_SIM_H

#include "sim/sim.h"

enum { SIM_LINKS = 2 };

#define SIM_SPEED 0x100000u /* full speed */

/* One part of a send, a receive or a batch. */
struct sim_part {
    uint32_t peer; /* index of a rank of the job */
    int64_t tag;
    bool send;
};

/* What members must agree on, and how the call runs. "" and negative bytes mean unknown, and agree
 * with everything. */
struct sim_call {
    uint8_t coll;                  /* tuck_coll; 0 if unknown */
    const char *reduce_op, *dtype; /* never NULL */
    int64_t bytes;
    int64_t latency; /* part of its time, in picoseconds */
    uint8_t link;    /* below SIM_LINKS */
    uint8_t kind;    /* index for sim_job.slow */
    uint32_t n_part; /* more than 0 for sends and receives */
    const struct sim_part *part;
    bool alone; /* no other rank takes part */
};

struct sim_rank {
    const struct problem *p;
    const uint32_t *order; /* NULL means the order of the ops */
    const int64_t *ps;     /* by op */
    /* by group of p: group of the job; PROBLEM_NONE if no other rank is in it */
    const uint32_t *group;
    const struct sim_call *call; /* by op; used for collectives only */
    const uint8_t *cls;          /* by op: class of the kernel, for sim_job.slow; NULL means 0 */
};

struct sim_job {
    uint32_t n_rank;
    const struct sim_rank *rank;
    uint32_t n_group;
    const uint32_t *member_at; /* [n_group + 1] */
    const uint32_t *member;    /* ranks of each group, ascending */
    int64_t launch_ps;
    bool contention;
    uint32_t n_kind;
    /* [class * n_kind + kind]: the kernel's speed meanwhile, 1 … SIM_SPEED; NULL: full speed */
    const uint32_t *slow;
    /* [kind]: a transfer's speed while a kernel runs on one of its ranks; NULL: full speed */
    const uint32_t *slow_comm;
};

struct sim_rank_result {
    struct sim_result time; /* including slowed compute */
    int64_t slowed;         /* compute time that contention added */
    int64_t others;         /* total time that transfers of this rank waited for other ranks */
};

enum sim_fault_kind {
    SIM_FINE,
    SIM_MISMATCH, /* two members call different collectives */
    SIM_DEADLOCK, /* something waits for other ranks and never starts */
    SIM_PEER,     /* a send or receive without a possible partner; found before simulating */
};

/* A transfer that waits for a rank which never arrives. */
struct sim_stuck {
    uint32_t rank, op;
    uint32_t held;        /* the current op of `rank`; PROBLEM_NONE if it has done all its ops */
    uint32_t absent;      /* a missing rank; PROBLEM_NONE if nothing matches */
    uint32_t absent_held; /* its current op; PROBLEM_NONE if it has done all its ops */
    uint32_t part;        /* for sends and receives: the part without a partner, or PROBLEM_NONE */
    int64_t ps;           /* since when */
};

struct sim_fault {
    enum sim_fault_kind kind;
    /* SIM_MISMATCH: what two ranks do differently; `what`: "kind", "bytes", "dtype", "reduce op" */
    const char *what;
    uint32_t rank[2], op[2];
    /* SIM_PEER: about rank[0], op[0]; `what`: "outside", "itself" */
    uint32_t peer; /* as a position in the group */
    /* SIM_DEADLOCK */
    uint32_t n_stuck;
    struct sim_stuck *stuck;
};

/* out: by rank. span: by rank and op, or NULL. Unless the fault is SIM_FINE, out is not filled.
 * Everything is in the arena, which must belong to an armed struct mem. */
void sim_ranks(const struct sim_job *job, struct arena *a, struct sim_rank_result *out,
               struct sim_span *const *span, struct sim_fault *fault);

#endif

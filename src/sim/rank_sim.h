/* The time of several ranks together, each with its own ops, order and speed; and of ops
 * that slow each other down.
 *
 * A rank alone is S0 (sim/sim.h). Together: the i-th collective of a group on each member is
 * one transfer. It starts when the last member has reached it, and ends on all at the same
 * time. A send and a receive meet by source, destination and tag, in order; a batch of them
 * starts when all it meets are there.
 *
 * S1, with contention: a transfer is a latency, then bytes. Where m transfers move bytes
 * over one link of a rank, each runs at 1/m there, and so does its whole. A kernel runs at
 * 1/f while a collective runs on its rank, f by the class of the kernel and the kind of the
 * collective; of several, the largest. Speeds are multiples of 2^-20, so that times are
 * whole picoseconds here too.
 */
#ifndef TUCK_SIM_RANK_SIM_H
#define TUCK_SIM_RANK_SIM_H

#include "sim/sim.h"

enum { SIM_LINKS = 2 };

#define SIM_SPEED 0x100000u /* of what is not slowed */

/* One side of a send or a receive. */
struct sim_part {
    uint32_t peer; /* number of a rank of the job */
    int64_t tag;
    bool send;
};

/* What members must agree on, and how it runs. Words that are "" and bytes below 0 are not
 * known, and agree with all. */
struct sim_call {
    uint8_t coll;                  /* tuck_coll; 0: not known */
    const char *reduce_op, *dtype; /* never NULL */
    int64_t bytes;
    int64_t latency; /* of its time, picoseconds */
    uint8_t link;    /* below SIM_LINKS */
    uint8_t kind;    /* for sim_job.slow */
    uint32_t n_part; /* more than 0: sends and receives */
    const struct sim_part *part;
    bool alone; /* no other rank takes part, whatever its group is */
};

struct sim_rank {
    const struct problem *p;
    const uint32_t *order; /* NULL: as the ops are */
    const int64_t *ps;     /* by op */
    /* by group of p: group of the job; PROBLEM_NONE: no other rank is in it */
    const uint32_t *group;
    const struct sim_call *call; /* by op; read for collectives only */
    const uint8_t *cls;          /* by op: class of the kernel, for sim_job.slow; NULL: 0 */
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
    const uint32_t
        *slow; /* [class * n_kind + kind]: speed beside it, 1 … SIM_SPEED; NULL: no slower */
};

struct sim_rank_result {
    struct sim_result time; /* compute as it was, slowed or not */
    int64_t slowed;         /* of it: what contention added */
    int64_t others;         /* total time that transfers of this rank waited for other ranks */
};

enum sim_fault_kind {
    SIM_FINE,
    SIM_MISMATCH, /* two members do not do the same */
    SIM_DEADLOCK, /* something that others are needed for never starts */
    SIM_PEER,     /* a send or a receive without a possible partner; found before anything runs */
};

/* A transfer that waits for a rank which never arrives. */
struct sim_stuck {
    uint32_t rank, op;
    uint32_t held;        /* the op that `rank` is at, PROBLEM_NONE: it has done all its ops */
    uint32_t absent;      /* a rank that is missing; PROBLEM_NONE: nothing matches it */
    uint32_t absent_held; /* the op that it is at, PROBLEM_NONE: it has done all its ops */
    uint32_t part;        /* of sends and receives: the one without a partner; PROBLEM_NONE: none */
    int64_t ps;           /* since when */
};

struct sim_fault {
    enum sim_fault_kind kind;
    /* SIM_MISMATCH: what one rank does and another does not; `what`: "kind",
     * "bytes", "dtype", "reduce op" */
    const char *what;
    uint32_t rank[2], op[2];
    /* SIM_PEER: of rank[0], op[0]; `what`: "outside", "itself" */
    uint32_t peer; /* as a place in the group */
    /* SIM_DEADLOCK */
    uint32_t n_stuck;
    struct sim_stuck *stuck;
};

/* out: by rank. span: by rank and op, or NULL. Where the fault is not SIM_FINE, out holds nothing.
 * All in the arena, which must belong to an armed struct mem. */
void sim_ranks(const struct sim_job *job, struct arena *a, struct sim_rank_result *out,
               struct sim_span *const *span, struct sim_fault *fault);

#endif

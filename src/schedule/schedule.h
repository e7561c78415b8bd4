/* Orders of a schedule problem. Each pass takes the order in a struct schedule, replaces it by a
 * better one, and adds a report. Options and compatibility are in schedule/schedule_options.h. */
#ifndef TUCK_SCHEDULE_SCHEDULE_H
#define TUCK_SCHEDULE_SCHEDULE_H

#include "plan/problem.h"
#include "schedule/schedule_options.h"
#include "sim/sim.h"
#include "tuck_experimental.h"

/* Why a collective or a wait stopped moving. */
enum schedule_limit {
    LIMIT_END,            /* nothing: it reached the end of the list */
    LIMIT_COVERED,        /* its collective is already hidden */
    LIMIT_ORDER,          /* a collective that it must not pass */
    LIMIT_DEPENDENCY,     /* something it needs, or that needs it, and cannot come along */
    LIMIT_EXPOSES_GROUP,  /* it would expose more of the group than it gains */
    LIMIT_EXPOSES_PASSED, /* it would expose more of what it passes */
    LIMIT_COLLECTIVE,     /* an asynchronous collective, which waits do not pass */
    LIMIT_WAIT,           /* another wait, which simple_overlap does not pass */
    LIMIT_MEMORY,         /* the peak would grow beyond the budget */
    LIMIT_MOVES,          /* reorder_prefetch_limit */
    N_LIMITS
};

const char *schedule_limit_name(enum schedule_limit limit);

/* What happened to one collective or wait. Times are those of the pass: runtimes times
 * multipliers. */
struct schedule_stat {
    uint32_t op;
    uint32_t moves, grouped; /* ops passed; ops taken along */
    double comm_time, comp_time;
    double initial_exposed,
        final_exposed; /* comm_time - comp_time, negative if there is room left */
    enum schedule_limit limit;
    uint32_t limit_op;  /* the op that stopped it, or PROBLEM_NONE */
    int64_t limit_peak; /* LIMIT_MEMORY: the peak it would have caused */
};

struct schedule_report {
    const char *pass;
    uint32_t n_stat;
    const struct schedule_stat *stat; /* in the order of processing */
    int64_t peak_before, peak_after;
    int64_t allowance;                     /* bytes by which its budget lets the peak grow */
    int64_t exposed_before, exposed_after; /* picoseconds, of the whole step: see schedule_time() */
    uint32_t displaced;                    /* ops whose position changed */
    int64_t front_ps;   /* list_overlap: the fastest step from the front alone; else 0 */
    bool saves_compute; /* it is for compute: more communication may be exposed */
    const char *note;   /* why nothing was done, or NULL */
};

/* A dependence that a pass added: `op` must come after the producer of `buf`. */
struct schedule_dep {
    uint32_t op, buf;
};

/* Runtime of an op in the problem's unit; called once per op. */
typedef double (*schedule_estimate_fn)(void *ctx, const struct problem *p, uint32_t op);

struct schedule {
    const struct problem *p;
    struct schedule_options opt;
    struct mem mem;
    struct arena arena;
    uint32_t *order;                 /* [n_op] */
    double *runtime;                 /* [n_op], initially the problem's */
    const tuck_transport *transport; /* to the other ranks, or NULL (schedule/align.h) */
    bool asked;                      /* the other ranks' runtimes were requested */
    /* number of ranks that agreed on runtimes; 0 means own runtimes */
    uint32_t medians_of;
    tuck_status call_status; /* status that the caller's own pass returned */
    bool call_is_order;      /* whether it left a valid order */
    tuck_diags *diags;       /* for that pass while it runs */
    VEC(struct schedule_dep) dep;
    VEC(struct schedule_report) report;
    /* Peak and exposed time of the current order, if known: measured once per order. */
    struct schedule_worth {
        bool known;
        int64_t peak, exposed; /* bytes; picoseconds */
    } worth;
    /* [group] its collectives keep their place among all others: its size is assumed; NULL: none */
    const bool *fixed_group;
    uint32_t n_measured; /* number of simulated orders */
};

/* Starts with the problem's own order. False: out of memory. The problem must outlive the
 * schedule. */
bool schedule_begin(struct schedule *s, const struct problem *p,
                    const struct schedule_options *opt);
void schedule_end(struct schedule *s);
/* Sets the peak and exposed time of the current order, if they were simulated elsewhere. */
void schedule_knows(struct schedule *s, int64_t peak, int64_t exposed);

/* ---- passes ---- */

/* Calls `estimate` for every op's runtime. */
void schedule_estimate_runtimes(struct schedule *s, schedule_estimate_fn estimate, void *ctx);

/* These two keep the order and report the runtimes. */
void schedule_show_runtimes(struct schedule *s);
void schedule_show_alignment(struct schedule *s);

void schedule_decide_global_ordering(struct schedule *s);
void schedule_raise_comms(struct schedule *s);
void schedule_sink_waits(struct schedule *s);
void schedule_reorder_compute(struct schedule *s);
void schedule_list_overlap(struct schedule *s);
/* How many changes improve_order tries where nothing else is said. */
int64_t schedule_evaluations(uint32_t n_op);
void schedule_gather_loops(struct schedule *s);
void schedule_improve(struct schedule *s);
void schedule_issue_late(struct schedule *s);
void schedule_reorder_iterative(struct schedule *s);
void schedule_sink_iterative(struct schedule *s);
void schedule_simple_overlap(struct schedule *s);
void schedule_enforce_fsdp(struct schedule *s);
void schedule_peak_memory(struct schedule *s);
void schedule_call_own(struct schedule *s); /* calls opt.call */

/* Runs one pass and checks that its result is a schedule. Unless PyTorch's rules apply, it also
 * checks that collectives of a group stay in order, the peak stays within the budget and the
 * exposed time does not grow; otherwise it keeps the old order, or the part of the new one that is
 * better, and the report says why. TUCK_ENOMEM or TUCK_OK. */
TUCK_MUST_CHECK tuck_status schedule_run(struct schedule *s, const char *name,
                                         void (*pass)(struct schedule *s));

/* The same for every step of a pipeline, all of which must be passes on schedules; options not
 * given to a step are those of s. */
TUCK_MUST_CHECK tuck_status schedule_steps(struct schedule *s, const struct pipeline *p,
                                           tuck_diags *diags);

/* Adds a step to p: a function of the caller. When memory runs out, jumps to p's guard. */
void schedule_append_call(struct pipeline *p, const char *name, const struct order_call *call);

/* The rows of these passes, for the pass table. */
extern const struct pass pass_estimate_op_runtime,
    pass_align_runtime_estimations_across_all_distributed_ranks,
    pass_decide_global_ordering_of_comms, pass_raise_comms, pass_sink_waits,
    pass_reorder_compute_for_overlap, pass_list_overlap, pass_gather_loops, pass_improve_order,
    pass_issue_late, pass_reorder_communication_preserving_peak_memory, pass_sink_waits_iterative,
    pass_simple_overlap, pass_enforce_comm_ordering_for_fsdp, pass_reorder_for_peak_memory,
    pass_reorder_compute_and_comm_for_overlap;

/* Bytes by which a budget, a share of the peak, lets the peak grow; NaN means any. Whole bytes, so
 * that comparisons are exact beyond 2^53. */
int64_t schedule_allowance(int64_t peak, double budget);

/* ---- the time and memory of an order ---- */

struct schedule_time {
    int64_t makespan, compute, exposed; /* picoseconds; makespan = compute + exposed */
};

/* One compute stream and one channel per process group, each first come, first served; a wait stops
 * the stream until its collectives are done, a synchronous collective until it is done itself. */
struct schedule_time schedule_time(const struct problem *p, const double *runtime,
                                   const uint32_t *order, struct arena *a);

/* A simulator of orders with those runtimes, for several of them; lives in the arena. */
void schedule_sim(struct sim *sim, const struct problem *p, const double *runtime, struct arena *a);

/* The same with all results; span: [op], or NULL. */
struct sim_result schedule_spans(const struct problem *p, const double *runtime,
                                 const uint32_t *order, struct sim_span *span, struct arena *a);

/* Does every op come after what it needs? Fake dependences count if `fake` is set. */
bool schedule_is_valid(const struct problem *p, const uint32_t *order, bool fake, struct arena *a);

/* Are collectives of a group in the order of the problem, and fences between the same ones? With
 * keep_order: are all collectives? */
bool schedule_keeps_comms(const struct problem *p, const uint32_t *order, bool keep_order,
                          struct arena *a);
/* What a collective may pass where all ranks run the same program and the order is free. */
enum schedule_freedom {
    FREE_NOT, /* nothing: a fence, of an unknown kind, nested graphs, a group of assumed size */
    FREE_IN_GROUP, /* all but synchronous ones of its group: it may use their symmetric memory */
    FREE_ALL,
};
static inline bool schedule_is_free(const struct schedule *s)
{
    return !s->opt.keep_order && !s->opt.keep_groups;
}
enum schedule_freedom schedule_freedom(const struct schedule *s, uint32_t coll);
/* Are the collectives in an order that this freedom allows, compared with the problem's own? */
bool schedule_keeps_fences(const struct schedule *s, struct arena *a);
/* Did any collectives change places? That is only correct if all ranks run the same program. */
bool schedule_crosses_groups(const struct problem *p, const uint32_t *order);

#endif

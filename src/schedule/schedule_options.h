/* Options of the schedulers, under PyTorch's names, and the list of what `--compat torch`
 * reproduces. */
#ifndef TUCK_SCHEDULE_SCHEDULE_OPTIONS_H
#define TUCK_SCHEDULE_SCHEDULE_OPTIONS_H

#include "pass/pass.h"

/* Where PyTorch 2.13 behaves differently from its documentation. Each slip has a name and can be
 * switched off. */
enum schedule_slip {
    SLIP_FAKE_DEPS_IGNORED = 1,
    SLIP_STALE_GROUP_PEAK = 2,
    SLIP_FIRST_OP_OWNS_INPUTS = 4,
    SLIP_SINK_LAST_USE_STALE = 8,
    SLIP_SINK_GROUP_RUNTIME = 16,
    SLIP_EXPOSURE_PAST_WAITS = 32,
    SLIP_SKIP_END_OP = 64,
    SLIP_ALL = 127
};

#define SCHEDULE_NO_LIMIT PASS_NO_INT

struct problem;

/* A caller's own pass: it changes `order` in place. */
struct order_call {
    tuck_status (*fn)(void *ctx, const struct problem *p, uint32_t *order, tuck_diags *diags);
    void *ctx;
    const char *name; /* owned by the pipeline */
};

struct schedule_options {
    bool torch;     /* PyTorch's rules: its defaults, a file's fake dependences, no checks */
    unsigned slips; /* enum schedule_slip; all with --compat torch */

    bool reorder_iterative_use_runtime_estimations;
    bool reorder_iterative_unsafe_collectives_reorder;
    bool reorder_iterative_group_with_collectives;
    bool reorder_iterative_debug_memory_recompute;
    double reorder_iterative_peak_memory_budget;
    double reorder_iterative_extra_comm_comp_overlap;
    int64_t reorder_iterative_debug_limit_to_reorder; /* SCHEDULE_NO_LIMIT means None */
    int64_t reorder_prefetch_limit;

    bool sink_iterative_use_runtime_estimations;
    bool sink_waits_iterative_unsafe_collectives_reorder;
    bool sink_waits_iterative_swap_with_collectives;
    double sink_iterative_peak_memory_budget;
    double sink_iterative_extra_comm_comp_overlap;
    int64_t sink_waits_iterative_debug_limit_to_sink;

    double reorder_sink_runtime_estimations_comm_mult;
    double reorder_sink_runtime_estimations_non_comm_mult;
    bool reorder_sink_verbose_logging;

    int64_t size_threshold_for_succ_based_strategy;
    bool runtime_estimations_align_across_all_distributed_ranks;
    bool reorder_for_compute_comm_overlap_broadcast_runtime_estimations;

    double list_peak_memory_budget; /* for the list schedulers; NaN means no limit */
    int64_t evaluations;            /* of improve_order; SCHEDULE_NO_LIMIT: by the number of ops */
    double shrink;                  /* of improve_order: share by which the peak must shrink */
    int64_t exact, seed;            /* of improve_order */
    int64_t islands, threads;       /* of improve_order */
    bool keep_order;                /* no collective may pass another, even of another group */
    bool keep_groups;               /* no collective may pass another of its group */
    bool allow_more_exposed;        /* accept an order even if its exposed time is longer */
    const struct order_call *call;  /* for a step that is the caller's own, else NULL */
};

struct schedule_slip_row {
    const char *name;
    enum schedule_slip slip;
    const char *help;
};

extern const struct schedule_slip_row schedule_slip_table[];
extern const size_t n_schedule_slips;

void schedule_defaults(struct schedule_options *o, bool torch);

/* "torch" or "torch,-stale-group-peak": resets to defaults first. False: `why` says what is
 * wrong. */
bool schedule_compat(struct schedule_options *o, const char *text, char why[160]);

/* NAME=VALUE of --set, with values as in JSON or Python. False: `why` says what is wrong. */
bool schedule_set(struct schedule_options *o, const char *text, char why[160]);

/* Overrides the common options by those of a step: `given` is "name=…,name=…". */
void schedule_overlay(struct schedule_options *o, const struct schedule_options *step,
                      const char *given);

#endif

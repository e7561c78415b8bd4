/* The scheduling passes as table rows, and running a pipeline of them. */
#include <stddef.h>

#include "schedule/align.h"

#define ROW(name, type, own, torch, help)                                                          \
    {#name, type, offsetof(struct schedule_options, name), own, NULL, help},
#define OPTION(for, ...) OPTION_##for (__VA_ARGS__)

/* Options that do not apply to a kind of pass get no row. */
#define NO_ROW(...)

static const struct pass_option any_options[] = {
#define OPTION_ANY ROW
#define OPTION_LIST NO_ROW
#define OPTION_IMPROVE NO_ROW
#define OPTION_REORDER NO_ROW
#define OPTION_SINK NO_ROW
#define OPTION_BOTH NO_ROW
#define OPTION_PEAK NO_ROW
#include "schedule/schedule_options.def"
};

static const struct pass_option list_options[] = {
#undef OPTION_LIST
#define OPTION_LIST ROW
#include "schedule/schedule_options.def"
#undef OPTION_LIST
#define OPTION_LIST NO_ROW
};

static const struct pass_option improve_options[] = {
#undef OPTION_LIST
#undef OPTION_IMPROVE
#define OPTION_LIST ROW
#define OPTION_IMPROVE ROW
#include "schedule/schedule_options.def"
#undef OPTION_LIST
#undef OPTION_IMPROVE
#define OPTION_LIST NO_ROW
#define OPTION_IMPROVE NO_ROW
};

static const struct pass_option peak_options[] = {
#undef OPTION_PEAK
#define OPTION_PEAK ROW
#include "schedule/schedule_options.def"
#undef OPTION_PEAK
#define OPTION_PEAK NO_ROW
};

static const struct pass_option reorder_options[] = {
#undef OPTION_REORDER
#undef OPTION_BOTH
#define OPTION_REORDER ROW
#define OPTION_BOTH ROW
#include "schedule/schedule_options.def"
#undef OPTION_REORDER
#define OPTION_REORDER NO_ROW
};

static const struct pass_option sink_options[] = {
#undef OPTION_SINK
#define OPTION_SINK ROW
#include "schedule/schedule_options.def"
};

/* One configuration for all of them, as in PyTorch: any pass accepts any option. */
static const struct pass_option all_options[] = {
#undef OPTION_LIST
#undef OPTION_IMPROVE
#undef OPTION_REORDER
#undef OPTION_PEAK
#define OPTION_LIST ROW
#define OPTION_IMPROVE ROW
#define OPTION_REORDER ROW
#define OPTION_PEAK ROW
#include "schedule/schedule_options.def"
};

/* options: all options of this step. */
static tuck_status run_with(struct schedule *s, const void *options, tuck_diags *diags,
                            const char *name, void (*pass)(struct schedule *s))
{
    struct schedule_options before = s->opt;

    s->opt = *(const struct schedule_options *)options;
    tuck_status st = TUCK_OK;
    if (s->opt.runtime_estimations_align_across_all_distributed_ranks && s->transport != NULL &&
        !s->asked) {
        st = schedule_align(s, s->transport, diags);
        s->asked = st == TUCK_OK;
    }
    if (st == TUCK_OK)
        st = schedule_run(s, name, pass);
    s->opt = before;
    return st;
}

#define PASS(title, function, table, text)                                                         \
    static tuck_status run_##function(struct schedule *s, const void *options, tuck_diags *diags)  \
    {                                                                                              \
        return run_with(s, options, diags, #title, schedule_##function);                           \
    }                                                                                              \
    ROW_OF(title, function, table, text)
#define ROW_OF(title, function, table, text)                                                       \
    const struct pass pass_##title = {.name = #title,                                              \
                                      .help = text,                                                \
                                      PASS_OPTIONS_OF(table),                                      \
                                      .also = all_options,                                         \
                                      .n_also = sizeof(all_options) / sizeof(*all_options),        \
                                      .options_size = sizeof(struct schedule_options),             \
                                      .on_order = run_##function}
#define PASS_OPTIONS_OF(table)                                                                     \
    .options = (table), .n_options = (uint32_t)(sizeof(table) / sizeof(*(table)))

PASS(estimate_op_runtime, show_runtimes, any_options,
     "show the runtimes that other passes use: the communication to hide, and the compute to hide "
     "it");

static tuck_status run_align(struct schedule *s, const void *options, tuck_diags *diags)
{
    struct schedule_options o = *(const struct schedule_options *)options;

    o.runtime_estimations_align_across_all_distributed_ranks = true;
    return run_with(s, &o, diags, "align_runtime_estimations_across_all_distributed_ranks",
                    schedule_show_alignment);
}
ROW_OF(align_runtime_estimations_across_all_distributed_ranks, align, any_options,
       "use the median of all ranks as the runtime of each op, so that all decide alike");

PASS(decide_global_ordering_of_comms, decide_global_ordering, any_options,
     "give each collective a dependence on the one before it, so that they stay in order");
PASS(raise_comms, raise_comms, list_options,
     "run collectives, and what they need, as early as possible");
PASS(sink_waits, sink_waits, list_options, "run waits, and what needs them, as late as possible");
PASS(reorder_compute_for_overlap, reorder_compute, list_options,
     "both, and after each collective enough compute to hide it");
PASS(list_overlap, list_overlap, list_options,
     "compute and collectives by time: channels stay busy, compute fills the waits");
PASS(gather_loops, gather_loops, any_options,
     "move loops next to those they pass values to, so that join_loops can fuse them");
PASS(improve_order, improve, improve_options,
     "many small changes, each simulated: what makes the step shorter is kept");
PASS(issue_late, issue_late, any_options,
     "begin gathers when they must, not when they could; the step takes as long as before");
PASS(reorder_communication_preserving_peak_memory, reorder_iterative, reorder_options,
     "move collectives one by one to the front, as far as memory and the others allow");
PASS(sink_waits_iterative, sink_iterative, sink_options,
     "move waits one by one to the back, as far as memory and the others allow");
PASS(simple_overlap, simple_overlap, any_options,
     "move collectives to the front and waits to the back by plain swaps, never with more memory");
PASS(enforce_comm_ordering_for_fsdp, enforce_fsdp, any_options,
     "run FSDP's all-gathers and reduce-scatters as consecutive blocks");
PASS(reorder_for_peak_memory, peak_memory, peak_options,
     "the best of four orders for memory: as it is, least peak, breadth or depth first");

/* ---- one name for a list of passes ---- */

struct list_of_passes {
    struct pass_texts passes;
};

static const struct pass_option overlap_options[] = {
    {"passes", PASS_TEXTS, offsetof(struct list_of_passes, passes),
     "reorder_compute_for_overlap:sink_waits:raise_comms", NULL, "names of passes, in order"},
};

/* PyTorch's name for the same option. */
static const struct pass_option overlap_also[] = {
    {"reorder_for_compute_comm_overlap_passes", PASS_TEXTS, offsetof(struct list_of_passes, passes),
     "reorder_compute_for_overlap:sink_waits:raise_comms", NULL, "names of passes, in order"},
};

static tuck_status expand_list(struct pipeline *p, const void *options, struct diag_pos pos,
                               tuck_diags *diags)
{
    const struct list_of_passes *list = options;
    tuck_status st = TUCK_OK;

    for (uint32_t i = 0; st == TUCK_OK && i < list->passes.n; i++)
        st = pipeline_add(p, list->passes.at[i], "", pos, diags);
    return st;
}

const struct pass pass_reorder_compute_and_comm_for_overlap = {
    .name = "reorder_compute_and_comm_for_overlap",
    .help = "several of these passes, by name",
    PASS_OPTIONS_OF(overlap_options),
    .also = overlap_also,
    .n_also = 1,
    .options_size = sizeof(struct list_of_passes),
    .expand = expand_list,
    .expands_to_orders = true,
};

/* ---- pipelines ---- */

tuck_status schedule_steps(struct schedule *s, const struct pipeline *p, tuck_diags *diags)
{
    tuck_status st = TUCK_OK;

    for (uint32_t i = 0; i < p->step.len; i++)
        if (p->step.at[i].pass->on_order == NULL) {
            diag_add(diags, TUCK_ERROR, NOWHERE, NULL, "%s works on graphs, not on schedules",
                     p->step.at[i].pass->name);
            return TUCK_EINVAL;
        }
    for (uint32_t i = 0; st == TUCK_OK && i < p->step.len; i++) {
        const struct pipeline_step *step = &p->step.at[i];
        struct schedule_options o = s->opt;

        o.call = ((const struct schedule_options *)step->options)->call;
        for (uint32_t k = 0; k < p->setting.len; k++)
            schedule_overlay(&o, step->options, p->setting.at[k].key->option);
        schedule_overlay(&o, step->options, step->text);
        st = step->pass->on_order(s, &o, diags);
    }
    return st;
}

#include "schedule/options.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/near.h"

#define ROW(name, type, own, torch, help)                                                          \
    {                                                                                              \
#name, type, offsetof(struct schedule_options, name), own, torch, help                     \
    }
#define NONE SCHEDULE_NO_LIMIT

const struct schedule_option schedule_option_table[] = {
    ROW(reorder_iterative_use_runtime_estimations, OPTION_BOOL, 1, 0,
        "decide by runtimes: stop where a collective is hidden, never expose more than is won"),
    ROW(reorder_iterative_peak_memory_budget, OPTION_FLOAT, 0, 0.2,
        "share by which the peak may grow"),
    ROW(reorder_iterative_extra_comm_comp_overlap, OPTION_FLOAT, 0, 0.5,
        "go on until this share of the collective is hidden twice"),
    ROW(reorder_iterative_unsafe_collectives_reorder, OPTION_BOOL, 0, 1,
        "collectives may pass each other: every rank must then decide alike"),
    ROW(reorder_iterative_group_with_collectives, OPTION_BOOL, 0, 0,
        "a collective may take another one along"),
    ROW(reorder_iterative_debug_limit_to_reorder, OPTION_COUNT, NONE, NONE,
        "look at so many collectives only"),
    ROW(reorder_iterative_debug_memory_recompute, OPTION_BOOL, 0, 0,
        "check the memory kept by differences against a full count after every collective"),
    ROW(reorder_prefetch_limit, OPTION_COUNT, NONE, NONE,
        "a collective passes at most so many ops (PyTorch: no effect)"),
    ROW(sink_iterative_use_runtime_estimations, OPTION_BOOL, 1, 0, "as for reordering"),
    ROW(sink_iterative_peak_memory_budget, OPTION_FLOAT, 0, 0.2,
        "share by which the peak may grow"),
    ROW(sink_iterative_extra_comm_comp_overlap, OPTION_FLOAT, 0, 0.5, "as for reordering"),
    ROW(sink_waits_iterative_unsafe_collectives_reorder, OPTION_BOOL, 0, 1,
        "synchronous collectives may pass each other"),
    ROW(sink_waits_iterative_swap_with_collectives, OPTION_BOOL, 0, 0,
        "a wait may pass asynchronous collectives"),
    ROW(sink_waits_iterative_debug_limit_to_sink, OPTION_COUNT, NONE, NONE,
        "look at so many waits only"),
    ROW(reorder_sink_runtime_estimations_comm_mult, OPTION_FLOAT, 1, 2,
        "runtimes of collectives times this"),
    ROW(reorder_sink_runtime_estimations_non_comm_mult, OPTION_FLOAT, 1, 1,
        "runtimes of the rest times this"),
    ROW(reorder_sink_verbose_logging, OPTION_BOOL, 0, 0, "accepted; reports are always whole"),
    ROW(size_threshold_for_succ_based_strategy, OPTION_COUNT, 0, 0,
        "least-peak-first: where all that is ready is larger, take what is needed first; 0: never"),
    ROW(runtime_estimations_align_across_all_distributed_ranks, OPTION_BOOL, 0, 0,
        "use the median of all ranks, where there is a transport to ask them"),
    ROW(reorder_for_compute_comm_overlap_broadcast_runtime_estimations, OPTION_BOOL, 0, 0,
        "accepted; no effect, as in PyTorch"),
    ROW(list_peak_memory_budget, OPTION_FLOAT, 0, -1,
        "raise_comms, sink_waits, reorder_compute_for_overlap: share by which the peak may grow; "
        "below 0: no limit"),
    ROW(allow_more_exposed, OPTION_BOOL, 0, 1,
        "keep an order even where it exposes more communication than the one before"),
};
const size_t n_schedule_options = sizeof(schedule_option_table) / sizeof(*schedule_option_table);

const struct schedule_slip_row schedule_slip_table[] = {
    {"fake-deps-ignored", SLIP_FAKE_DEPS_IGNORED,
     "the iterative passes do not see dependences that only keep collectives in order"},
    {"stale-group-peak", SLIP_STALE_GROUP_PEAK,
     "the peak of what moves together is that of where each op joined, not of where it is now"},
    {"first-op-owns-inputs", SLIP_FIRST_OP_OWNS_INPUTS,
     "freeable inputs are allocated by the op that came first, wherever it goes"},
    {"sink-last-use-stale", SLIP_SINK_LAST_USE_STALE,
     "sink_waits_iterative forgets that the last user of a buffer changed"},
    {"sink-group-runtime", SLIP_SINK_GROUP_RUNTIME,
     "sink_waits_iterative does not count compute that a wait takes along"},
    {"exposure-past-waits", SLIP_EXPOSURE_PAST_WAITS,
     "compute after the wait of a later collective still counts as hiding an earlier one"},
    {"skip-end-op", SLIP_SKIP_END_OP,
     "a collective that is the last op, and a wait that is the first, are not looked at"},
};
const size_t n_schedule_slips = sizeof(schedule_slip_table) / sizeof(*schedule_slip_table);

static void store(struct schedule_options *o, const struct schedule_option *x, double v)
{
    void *at = (char *)o + x->offset;

    switch (x->type) {
    case OPTION_BOOL: *(bool *)at = v != 0; break;
    case OPTION_FLOAT: *(double *)at = v; break;
    case OPTION_COUNT: *(int64_t *)at = (int64_t)v; break;
    }
}

void schedule_defaults(struct schedule_options *o, bool torch)
{
    *o = (struct schedule_options){.torch = torch, .slips = torch ? SLIP_ALL : 0};
    for (size_t i = 0; i < n_schedule_options; i++)
        store(o, &schedule_option_table[i],
              torch ? schedule_option_table[i].torch : schedule_option_table[i].own);
}

bool schedule_compat(struct schedule_options *o, const char *text, char why[160])
{
    const char *names[sizeof(schedule_slip_table) / sizeof(*schedule_slip_table)];
    unsigned left_out = 0;
    size_t n = strcspn(text, ",");

    if (n != 5 || strncmp(text, "torch", 5) != 0) {
        snprintf(why, 160, "must begin with 'torch', found '%.60s'", text);
        return false;
    }
    for (const char *s = text + n; *s != '\0'; s += n) {
        const struct schedule_slip_row *row = NULL;
        char word[64];

        s++;
        n = strcspn(s, ",");
        snprintf(word, sizeof(word), "%.*s", (int)(n < 60 ? n : 60), s);
        for (size_t i = 0; i < n_schedule_slips; i++) {
            names[i] = schedule_slip_table[i].name;
            if (word[0] == '-' && strcmp(word + 1, names[i]) == 0)
                row = &schedule_slip_table[i];
        }
        if (row == NULL) {
            const char *near = near_word(word + (word[0] == '-'), names, n_schedule_slips);
            snprintf(why, 160, "'%s' is not -NAME of a deviation%s%s%s", word,
                     near ? "; did you mean '-" : "", near ? near : "", near ? "'?" : "");
            return false;
        }
        left_out |= row->slip;
    }
    schedule_defaults(o, true);
    o->slips &= ~left_out;
    return true;
}

const struct schedule_option *schedule_find_option(const char *name, size_t len)
{
    for (size_t i = 0; i < n_schedule_options; i++)
        if (strlen(schedule_option_table[i].name) == len &&
            memcmp(schedule_option_table[i].name, name, len) == 0)
            return &schedule_option_table[i];
    return NULL;
}

static bool is_word(const char *s, size_t len, const char *a, const char *b)
{
    return (strlen(a) == len && memcmp(s, a, len) == 0) ||
           (strlen(b) == len && memcmp(s, b, len) == 0);
}

bool schedule_set(struct schedule_options *o, const struct schedule_option *x, const char *value,
                  size_t len, char why[160])
{
    static const char *const want[] = {"true or false", "a number", "a number from 0 on, or None"};
    char text[64], *end;
    double v = NAN;

    snprintf(text, sizeof(text), "%.*s", (int)(len < 63 ? len : 63), value);
    if (x->type == OPTION_BOOL) {
        v = is_word(value, len, "true", "True")     ? 1
            : is_word(value, len, "false", "False") ? 0
                                                    : NAN;
    } else if (x->type == OPTION_COUNT && is_word(value, len, "null", "None")) {
        v = SCHEDULE_NO_LIMIT;
    } else if (len > 0 && len < sizeof(text) && strspn(text, "0123456789+-.eE") == len) {
        v = strtod(text, &end);
        if (*end != '\0' || !isfinite(v) ||
            (x->type == OPTION_COUNT && (v < 0 || v != floor(v) || v > 9e15)))
            v = NAN;
    }
    if (isnan(v)) {
        snprintf(why, 160, "%s must be %s, found '%s'", x->name, want[x->type], text);
        return false;
    }
    store(o, x, v);
    return true;
}

void schedule_get(const struct schedule_options *o, const struct schedule_option *x, char out[32])
{
    const void *at = (const char *)o + x->offset;

    switch (x->type) {
    case OPTION_BOOL: snprintf(out, 32, "%s", *(const bool *)at ? "true" : "false"); break;
    case OPTION_FLOAT: snprintf(out, 32, "%g", *(const double *)at); break;
    case OPTION_COUNT:
        if (*(const int64_t *)at == SCHEDULE_NO_LIMIT)
            snprintf(out, 32, "none");
        else
            snprintf(out, 32, "%lld", (long long)*(const int64_t *)at);
        break;
    }
}

/* The rows: schedule_overlap_bucketing is FSDP's collectives in buckets that fill a link, then the
 * scheduler with its own buckets; overlap_scheduling is the second part alone. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "overlap/overlap.h"

#include "graph/nested.h"

#define OPTION(field, kind, value, values, text)                                                   \
    {                                                                                              \
        .name = #field, .type = kind, .at = offsetof(struct list_options, field), .dflt = value,   \
        .choices = values, .help = text                                                            \
    }
#define OWN(field, kind, value, values, text)                                                      \
    {                                                                                              \
        .name = #field, .type = kind, .at = offsetof(struct list_options, own.field),              \
        .dflt = value, .choices = values, .help = text                                             \
    }

struct list_options {
    struct overlap_options own; /* first: the options of overlap_scheduling are those alone */
    bool pre_bucketing_fsdp_collectives;
    double pre_bucketing_fsdp_collectives_bucket_cap_mb;
};

/* clang-format off */
#define OWN_OPTIONS                                                                                \
    OWN(max_in_flight_gb, PASS_FLOAT, "5", NULL, "GiB of collectives in flight at once"),          \
    OWN(max_compute_pre_fetch, PASS_INT, "200", NULL,                                              \
        "how many matrix products ahead a collective may start"),                                  \
    OWN(collective_bucketing, PASS_BOOL, "true", NULL, "merge where nothing is hidden less"),      \
    OWN(insert_overlap_deps, PASS_BOOL, "false", NULL,                                             \
        "not here: insert_control_deps ties an order to a graph"),                                 \
    OWN(compute_overlap_multipler, PASS_FLOAT, "1", NULL, "factor on what a kernel can hide"),     \
    OWN(max_coll_distance, PASS_INT, "200", NULL, "candidates that are looked at"),                \
    OWN(max_memory_increase_gb, PASS_FLOAT, "1", NULL, "GiB above the peak as it came, or …"),     \
    OWN(max_memory_increase_ratio, PASS_FLOAT, "0.05", NULL, "… this share, whichever is more"),   \
    OWN(bucket_exposed_first, PASS_CHOICE, "None", "None|False|True",                              \
        "merge those that nothing hides first; None: of groups that gather parameters"),           \
    OWN(enable_fusion_regions, PASS_BOOL, "true", NULL,                                            \
        "kernels that Inductor fuses take what crosses their border, at the speed of memory"),     \
    OWN(bucket_only_internode_comms, PASS_BOOL, "false", NULL,                                     \
        "merge on groups that gather parameters alone"),                                           \
    OWN(prioritize_bucketing_during_scheduling, PASS_BOOL, "true", NULL,                           \
        "start those together that could be merged"),                                              \
    OWN(max_off_bucket_gb, PASS_FLOAT, "0.5", NULL,                                                \
        "GiB of gradients' collectives that start together; None: each when it is ready"),         \
    OWN(bucket_mode, PASS_CHOICE, "default", "default|custom_ops|custom_ops_multidtype|coalesced", \
        "as mode of bucket_all_gather"),                                                           \
    OWN(overlap_scheduling_autofix_cycles, PASS_BOOL, "false", NULL,                               \
        "where buckets contradict the schedule, drop what does instead of failing"),               \
    OWN(latency_ms, PASS_FLOAT, "None", NULL,                                                      \
        "what merging saves a collective; None: the time of an empty message"),                    \
    OWN(compat, PASS_CHOICE, "none", "none|torch",                                                 \
        "torch: its slips as well, see docs/differences.md")
/* clang-format on */

static const struct pass_option own_options[] = {OWN_OPTIONS};

static const struct pass_option list_options[] = {
    OWN_OPTIONS,
    OPTION(pre_bucketing_fsdp_collectives, PASS_BOOL, "true", NULL,
           "pre_bucket_fsdp_collectives first"),
    OPTION(pre_bucketing_fsdp_collectives_bucket_cap_mb, PASS_FLOAT, "None", NULL,
           "its cap_mb; None: what keeps a link of the machine busy"),
};

/* ---- the scheduler ---- */

static void report(struct facts *f, const struct overlap_result *order)
{
    int64_t hidden = 0, partly = 0;

    for (uint32_t c = 0; c < f->n_coll; c++) {
        hidden += !is_exposed(&f->coll[c]);
        partly += is_exposed(&f->coll[c]) && f->coll[c].hider.len > 0;
    }
    report_count(f->r->report, "collectives", f->n_coll);
    report_count(f->r->report, "hidden", hidden);
    report_count(f->r->report, "hidden in part", partly);
    report_count(f->r->report, "bytes at the peak before, as PyTorch counts", order->peak_before);
    report_count(f->r->report, "bytes at the peak after", order->peak_after);
}

static tuck_status check_options(struct pass_run *r, const struct overlap_options *o)
{
    if (o->insert_overlap_deps)
        return pass_fail(r, 0, "insert_overlap_deps: add the pass insert_control_deps instead");
    if (o->collective_bucketing && o->compat == COMPAT_NONE && !r->keep_order)
        return pass_fail(r, 0,
                         "collectives are merged as PyTorch does it, without asking who looks "
                         "at a result's memory: give compat=torch for that, or "
                         "collective_bucketing=false for the order alone");
    if (isnan(o->max_in_flight_gb) || isnan(o->compute_overlap_multipler) ||
        o->max_in_flight_gb < 0 || o->compute_overlap_multipler < 0)
        return pass_fail(
            r, 0, "max_in_flight_gb and compute_overlap_multipler must be numbers, not below 0");
    if (o->max_coll_distance < 1 || o->max_compute_pre_fetch < 0)
        return pass_fail(r, 0,
                         "max_coll_distance must be at least 1, max_compute_pre_fetch not below 0");
    return TUCK_OK;
}

/* Without any torch does nothing; waits for what it does not know are enough for an order. */
static bool has_waits(const tuck_graph *g)
{
    for_each_node (g, n)
        if (op_at(node_op(g, n))->cls == OP_WAIT)
            return true;
    return false;
}

/* --keep-order: no collective may pass another. */
static tuck_status check_sequence(struct facts *f, const struct overlap_result *order)
{
    uint32_t last = 0;

    for (uint32_t k = 0; k < f->n; k++) {
        uint32_t i = order->order[k];
        if (!(f->flag[i] & IS_START))
            continue;
        if (i < last)
            return pass_fail(f->r, f->id.at[i], "'%s' would pass another collective (--keep-order)",
                             graph_str(f->r->g, node_at(f->r->g, f->id.at[i])->name));
        last = i;
    }
    return TUCK_OK;
}

/* PyTorch does not see collectives in nested graphs, and moves others over them. */
static tuck_status check_nested(struct pass_run *r)
{
    for_each_node (r->g, n)
        if (node_nests_comm(r->g, n, 0))
            return pass_fail(r, n, "'%s' calls graphs that communicate: nothing may pass it",
                             graph_str(r->g, node_at(r->g, n)->name));
    return TUCK_OK;
}

static tuck_status run(struct pass_run *r, const void *given)
{
    const struct overlap_options *o = given;
    struct facts f;
    struct overlap_result order = {.raised = NULL};
    struct overlap_buckets buckets = {.extra = NULL};

    tuck_status st = check_options(r, o);
    if (st == TUCK_OK && o->compat == COMPAT_NONE)
        st = check_nested(r);
    if (st == TUCK_OK)
        st = facts_find(&f, r, o);
    if (st != TUCK_OK || (f.n_coll == 0 && (o->compat == COMPAT_NONE || !has_waits(r->g))))
        return st;
    if (o->compat == COMPAT_TORCH && isnan(o->max_memory_increase_gb) &&
        isnan(o->max_memory_increase_ratio))
        return pass_fail(r, 0,
                         "without max_memory_increase_gb and max_memory_increase_ratio PyTorch "
                         "raises AttributeError: give one of them, such as 1000");
    st = overlap_order(&f, &order);
    if (st == TUCK_OK && r->keep_order)
        st = check_sequence(&f, &order);
    if (st != TUCK_OK)
        return st;
    if (o->collective_bucketing && !r->keep_order) /* a bucket passes what is among its members */
        overlap_choose(&f, &order, &buckets);
    report(&f, &order);
    return overlap_write(&f, &order, &buckets);
}

const struct pass pass_overlap_scheduling = {
    .name = "overlap_scheduling",
    .help = "PyTorch's overlap scheduler: an order that hides collectives, and buckets that keep "
            "them hidden",
    .needs = PASS_TYPES | PASS_PLACES | PASS_NAMES | PASS_TIMES,
    .options = PASS_OPTIONS(own_options),
    .options_size = sizeof(struct list_options),
    .on_graph = run,
};

/* ---- the list ---- */

struct text {
    char at[1024];
    size_t n;
};

static void add(struct text *t, const char *name, const char *value)
{
    int n = snprintf(t->at + t->n, sizeof(t->at) - t->n, "%s%s=%s", t->n ? "," : "", name, value);

    t->n += n > 0 ? (size_t)n : 0;
    assert(t->n < sizeof(t->at));
}

static void add_number(struct text *t, const char *name, double v)
{
    char number[40];

    snprintf(number, sizeof(number), "%.17g", v);
    add(t, name, isnan(v) ? "None" : number);
}

static const char *choice(const struct pass_option *o, int v, char *room, size_t n)
{
    const char *c = o->choices;

    for (; v > 0; v--)
        c += strcspn(c, "|") + 1;
    snprintf(room, n, "%.*s", (int)strcspn(c, "|"), c);
    return room;
}

/* The options that differ from their defaults. */
static void add_own(struct text *t, const struct list_options *o)
{
    for (size_t i = 0; i < sizeof(own_options) / sizeof(*own_options); i++) {
        const struct pass_option *p = &own_options[i];
        const void *v = (const char *)o + p->at;
        char room[40];

        switch ((enum pass_type)p->type) {
        case PASS_BOOL: {
            const char *word = *(const bool *)v ? "true" : "false";
            if (strcmp(word, p->dflt) != 0)
                add(t, p->name, word);
            break;
        }
        case PASS_INT:
            snprintf(room, sizeof(room), "%lld", (long long)*(const int64_t *)v);
            if (strcmp(room, p->dflt) != 0)
                add(t, p->name, room);
            break;
        case PASS_FLOAT:
            snprintf(room, sizeof(room), "%g", *(const double *)v);
            if (strcmp(isnan(*(const double *)v) ? "None" : room, p->dflt) != 0)
                add_number(t, p->name, *(const double *)v);
            break;
        default:
            if (strcmp(choice(p, *(const int *)v, room, sizeof(room)), p->dflt) != 0)
                add(t, p->name, room);
        }
    }
}

static tuck_status expand(struct pipeline *p, const void *options, struct diag_pos pos,
                          tuck_diags *diags)
{
    const struct list_options *o = options;
    struct text first = {.n = 0}, second = {.n = 0};
    char room[40];

    if (o->pre_bucketing_fsdp_collectives) {
        if (!isnan(o->pre_bucketing_fsdp_collectives_bucket_cap_mb))
            add_number(&first, "cap_mb", o->pre_bucketing_fsdp_collectives_bucket_cap_mb);
        add(&first, "cluster", "None");
        for (size_t i = 0; i < sizeof(own_options) / sizeof(*own_options); i++)
            if (strcmp(own_options[i].name, "bucket_mode") == 0)
                add(&first, "mode",
                    choice(&own_options[i], o->own.bucket_mode, room, sizeof(room)));
        if (o->own.compat == COMPAT_TORCH)
            add(&first, "compat", "torch");
        tuck_status st = pipeline_add(p, "pre_bucket_fsdp_collectives", first.at, pos, diags);
        if (st != TUCK_OK)
            return st;
    }
    add_own(&second, o);
    return pipeline_add(p, "overlap_scheduling", second.at, pos, diags);
}

const struct pass pass_schedule_overlap_bucketing = {
    .name = "schedule_overlap_bucketing",
    .help =
        "a list of passes, PyTorch's own: FSDP's collectives in buckets, then overlap_scheduling",
    .options = PASS_OPTIONS(list_options),
    .options_size = sizeof(struct list_options),
    .expand = expand,
};

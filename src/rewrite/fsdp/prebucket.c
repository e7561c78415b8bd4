/* pre_bucket_fsdp_collectives: merges FSDP's collectives into buckets that are large enough to keep
 * the links busy, before anything decides on their order. The cap is given, or else it is the size
 * at which a link is well used: PyTorch's estimate for all-gathers of that group on that machine,
 * within limits. */
#include <math.h>
#include <stddef.h>

#include "rewrite/bucket/bucket.h"
#include "cost/machine.h"
#include "rewrite/fsdp/fsdp_passes.h"

static const double mib = 1024 * 1024, efficiency = 0.9;

struct prebucket_options {
    double cap_mb, min_mb, max_mb, multiplier;
    const char *cluster;
    int mode, compat;
};

#define OPTION(field, kind, value, values, text)                                                   \
    {                                                                                              \
        .name = #field, .type = kind, .at = offsetof(struct prebucket_options, field),             \
        .dflt = value, .choices = values, .help = text                                             \
    }

static const struct pass_option options[] = {
    OPTION(cap_mb, PASS_FLOAT, "None", NULL,
           "MiB a bucket may hold; None: what keeps a link busy for 90 % of the time"),
    OPTION(min_mb, PASS_FLOAT, "10", NULL, "lower limit for the cap of None"),
    OPTION(max_mb, PASS_FLOAT, "500", NULL,
           "upper limit for None, and the cap if the group's size is unknown"),
    OPTION(multiplier, PASS_FLOAT, "1", NULL, "factor for the cap of None"),
    OPTION(cluster, PASS_TEXT, "h100x8", NULL,
           "the machine that None is computed for; None: the one that times come from"),
    OPTION(mode, PASS_CHOICE, "default", "default|custom_ops|custom_ops_multidtype|coalesced",
           "as in bucket_all_gather"),
    OPTION(compat, PASS_CHOICE, "none", "none|torch", "as in bucket_all_gather"),
};

enum { NO_COLLECTIVE = -1 };

/* The group size of FSDP's first collective of a kind; 0 if unknown. */
static int64_t group_size(struct pass_run *r, tuck_coll kind)
{
    const tuck_graph *g = r->g;
    const bool *fsdp = bucket_fsdp_waits(r, kind);

    for_each_node (g, n) {
        if (!fsdp[n])
            continue;
        const tuck_value *size = fsdp_operand(r, call_node(g, node_at(g, n), 0), "group_size");
        return size != NULL && size->kind == TUCK_V_INT && size->u.i > 0 ? size->u.i : 0;
    }
    return NO_COLLECTIVE;
}

/* The message size that saturates a link, in MiB. */
static double filling(const tuck_cluster *c, int64_t ranks)
{
    struct cost_shape shape = shape_of_stride(c, ranks, 1);

    return (double)torch_saturation(c, shape, TUCK_ALL_GATHER, efficiency) / mib;
}

static tuck_status saturation(struct pass_run *r, const char *cluster, int64_t ranks, double *out)
{
    tuck_cluster *c;

    if (cluster == NULL && r->machine != NULL && r->machine->cluster != NULL) {
        *out = filling(r->machine->cluster, ranks);
        return TUCK_OK;
    }
    tuck_status st = tuck_cluster_preset(cluster ? cluster : "None", &r->mem->alloc, r->diags, &c);

    if (st == TUCK_ENOMEM)
        mem_exhausted(r->mem);
    if (st != TUCK_OK)
        return st;
    *out = filling(c, ranks);
    tuck_cluster_free(c);
    return TUCK_OK;
}

static tuck_status find_cap(struct pass_run *r, const struct prebucket_options *o, int64_t ranks,
                            double *cap)
{
    *cap = o->cap_mb;
    if (!isnan(o->cap_mb))
        return TUCK_OK;
    if (!(o->min_mb <= o->max_mb) || isnan(o->multiplier))
        return pass_fail(r, 0, "min_mb must not be larger than max_mb, and all three be numbers");
    if (ranks == 0) {
        *cap = o->max_mb;
        report_note(r->report, "cap %g MiB: the size of FSDP's group is not known", *cap);
        return TUCK_OK;
    }
    tuck_status st = saturation(r, o->cluster, ranks, cap);
    if (st != TUCK_OK)
        return st;
    *cap = fmax(o->min_mb, fmin(o->max_mb, *cap * o->multiplier));
    report_note(r->report, "cap %.1f MiB: saturates a link of %s in an all-gather of %lld ranks",
                *cap, o->cluster ? o->cluster : tuck_cluster_name(r->machine->cluster),
                (long long)ranks);
    return TUCK_OK;
}

static tuck_status run(struct pass_run *r, const void *given)
{
    const struct prebucket_options *o = given;
    int64_t ranks = group_size(r, TUCK_ALL_GATHER);
    double cap;

    /* A backward that kept the parameters has only reduce-scatters; torch does not handle it. */
    if (ranks == NO_COLLECTIVE && o->compat != 1)
        ranks = group_size(r, TUCK_REDUCE_SCATTER);
    if (ranks == NO_COLLECTIVE) {
        report_note(r->report, "no collective belongs to FSDP");
        return TUCK_OK;
    }
    tuck_status st = find_cap(r, o, ranks, &cap);
    if (st != TUCK_OK)
        return st;
    return bucket_by_cap(r,
                         1u << TUCK_ALL_GATHER | 1u << TUCK_REDUCE_SCATTER | 1u << TUCK_ALL_REDUCE,
                         BUCKET_FSDP, cap, (enum bucket_mode)o->mode, o->compat == 1);
}

const struct pass pass_pre_bucket_fsdp_collectives = {
    .name = "pre_bucket_fsdp_collectives",
    .help = "merge FSDP's all-gathers, reduce-scatters and all-reduces into buckets that saturate "
            "a link",
    .needs = PASS_TYPES,
    .options = PASS_OPTIONS(options),
    .options_size = sizeof(struct prebucket_options),
    .on_graph = run,
};

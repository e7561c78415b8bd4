/* fuse_ddp_with_concat_op, fuse_ddp_with_coalesced_op, fuse_ddp_communication. */
#include "rewrite/ddp/ddp.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "rewrite/ddp/ddp_passes.h"
#include "infer/infer.h"
#include "rewrite/build.h"
#include "rewrite/comm_order.h"

static bool same_number(const tuck_value *a, const tuck_value *b)
{
    if (a->kind == TUCK_V_NODE || b->kind == TUCK_V_NODE)
        return a->kind == b->kind && a->a == b->a;
    return tuck_value_float(a) == tuck_value_float(b);
}

/* Can the merged gradients be divided by a tensor, as each of them was? Never for a list.
 * Concatenated gradients have one dimension: they can be divided by a scalar or by a row of the
 * same length. */
static bool torch_divides(struct ddp *d, const struct bucket *b, bool concat)
{
    const tuck_graph *g = d->r->g;
    const tuck_value *by = d->cand.at[b->member.at[0]].divisor;
    const struct type *t = by->kind == TUCK_V_NODE ? type_at(&g->store->type, node_type(g, by->a))
                                                   : NULL;
    int64_t all = 0, n, size;

    if (t == NULL || t->kind != TYPE_TENSOR)
        return true;
    if (!concat || t->n > 1)
        return false;
    if (t->n == 0 || !assume_value(&d->r->assume, t->size[0], &size) || size == 1)
        return true;
    for (uint32_t i = 0; i < b->member.len; i++) {
        const struct type *x = type_at(&g->store->type,
                                       node_type(g, d->cand.at[b->member.at[i]].gradient));
        n = 1;
        for (uint32_t k = 0; k < x->n; k++) {
            if (!assume_value(&d->r->assume, x->size[k], &size) || !size_mul(n, size, &n))
                return true;
        }
        all += n;
    }
    return assume_value(&d->r->assume, t->size[0], &size) && (size == all || all == 1);
}

/* What PyTorch 2.13 asserts about a bucket, and what its operators then reject. */
static tuck_status check_as_torch(struct ddp *d, const struct bucket *b, bool concat)
{
    const tuck_graph *g = d->r->g;
    const struct candidate *first = &d->cand.at[b->member.at[0]];
    uint32_t last = 0;

    for (uint32_t i = 0; i < b->member.len; i++) {
        const struct candidate *c = &d->cand.at[b->member.at[i]];
        uint32_t place = node_at(g, c->operand)->pos + 1;

        if (place == last)
            return pass_fail(d->r, c->collective,
                             "compat=torch: PyTorch raises AssertionError, because two members of "
                             "a bucket have the operand '%s'",
                             graph_str(g, node_at(g, c->operand)->name));
        if (place > last)
            last = place;
        if (!same_number(c->divisor, first->divisor))
            return pass_fail(d->r, c->operand,
                             "compat=torch: PyTorch raises AssertionError, because '%s' divides by "
                             "another number than '%s'",
                             graph_str(g, node_at(g, c->operand)->name),
                             graph_str(g, node_at(g, first->operand)->name));
    }
    if (!torch_divides(d, b, concat))
        return pass_fail(d->r, first->operand,
                         "compat=torch: PyTorch raises RuntimeError, because the concatenation of "
                         "'%s' and others cannot be divided by '%s'",
                         graph_str(g, node_at(g, first->gradient)->name),
                         graph_str(g, node_at(g, first->divisor->a)->name));
    return TUCK_OK;
}

static tuck_status merge_all(struct ddp *d, bool concat)
{
    struct pass_run *r = d->r;
    tuck_status st = TUCK_OK;
    bool merged = false;

    for (uint32_t i = 0; i < d->bucket.len && st == TUCK_OK; i++) {
        if (d->bucket.at[i].member.len < 2)
            continue;
        if (d->torch)
            st = check_as_torch(d, &d->bucket.at[i], concat);
        if (st != TUCK_OK)
            return st;
        ddp_merge(d, i, concat);
        merged = true;
    }
    if (!merged)
        return TUCK_OK;
    st = tuck_graph_remove_dead(r->g, NULL);
    if (st == TUCK_ENOMEM)
        mem_exhausted(r->mem);
    return st == TUCK_OK ? ddp_restore_order(d) : st;
}

static bool is_candidate(void *ctx, uint32_t n)
{
    return ((const struct ddp *)ctx)->cand_of[n] != 0;
}

static tuck_status fuse(struct pass_run *r, const struct ddp_options *o, bool concat)
{
    struct ddp d = {.r = r, .o = o, .torch = o->compat == COMPAT_TORCH};

    if (!(o->bucket_size_mb >= 0))
        return pass_fail(r, 0, "bucket_size_mb must be a number that is not negative");
    uint32_t waits = d.torch ? 0 : comm_dedup_waits(r);
    if (waits > 0)
        report_count(r->report, "waits removed", waits);
    graph_number(r->g);
    d.group = comm_groups(r);
    d.lines = *comm_lines_of(r);
    tuck_status st = ddp_find(&d);
    if (st != TUCK_OK)
        return st;
    ddp_note_order(&d);
    if (d.torch)
        ddp_bucket_as_torch(&d);
    else
        ddp_bucket(&d);
    for (uint32_t i = 0; i < d.cand.len; i++)
        if (d.cand.at[i].why != LEFT_END)
            report_left(r->report, r->g, d.cand.at[i].collective, d.cand.at[i].why);
    comm_leave_forms(r, TUCK_ALL_REDUCE, is_candidate, &d);
    comm_leave_hidden(r, TUCK_ALL_REDUCE);
    if (r->assume.used_default)
        report_note(r->report,
                    "sizes that depend on data are assumed to be %d; --assume sets others",
                    ASSUME_UNBACKED);
    return merge_all(&d, concat);
}

static tuck_status fuse_concat(struct pass_run *r, const void *options)
{
    return fuse(r, options, true);
}

static tuck_status fuse_coalesced(struct pass_run *r, const void *options)
{
    return fuse(r, options, false);
}

#define BUCKET_SIZE(holder)                                                                        \
    {                                                                                              \
        .name = "bucket_size_mb", .type = PASS_FLOAT, .at = offsetof(holder, bucket_size_mb),      \
        .dflt = "25", .help = "MiB at which a bucket is closed; the first of each group at 1"      \
    }
#define COMPAT(holder)                                                                             \
    {                                                                                              \
        .name = "compat", .type = PASS_CHOICE, .at = offsetof(holder, compat), .dflt = "none",     \
        .choices = "none|torch",                                                                   \
        .help = "torch: what PyTorch 2.13 does, or an error where it raises one"                   \
    }

static const struct pass_option fuse_options[] = {
    BUCKET_SIZE(struct ddp_options),
    COMPAT(struct ddp_options),
};

const struct pass pass_fuse_ddp_with_concat_op = {
    .name = "fuse_ddp_with_concat_op",
    .help = "merge all-reduces of DDP's gradients into buckets, through one buffer each",
    .needs = PASS_TYPES,
    .options = PASS_OPTIONS(fuse_options),
    .options_size = sizeof(struct ddp_options),
    .on_graph = fuse_concat,
};

const struct pass pass_fuse_ddp_with_coalesced_op = {
    .name = "fuse_ddp_with_coalesced_op",
    .help = "merge all-reduces of DDP's gradients into buckets, as one call on a list each",
    .needs = PASS_TYPES,
    .options = PASS_OPTIONS(fuse_options),
    .options_size = sizeof(struct ddp_options),
    .on_graph = fuse_coalesced,
};

/* ---- a list of passes ---- */

struct list_options {
    struct pass_texts passes;
    double bucket_size_mb;
    int compat;
};

static tuck_status expand(struct pipeline *p, const void *options, struct diag_pos pos,
                          tuck_diags *diags)
{
    const struct list_options *o = options;

    for (uint32_t i = 0; i < o->passes.n; i++) {
        const char *name = o->passes.at[i];
        const struct pass *pass = pass_find(p->table, name, strlen(name));
        char text[96] = "";
        size_t n = 0;

        if (pass != NULL && pass->expand != NULL) {
            diag_add(diags, TUCK_ERROR, pos, NULL, "%s is a list of passes itself", name);
            return TUCK_EINVAL;
        }
        if (pass != NULL && pass_option_find(pass, "bucket_size_mb", 14) &&
            !isnan(o->bucket_size_mb))
            n = (size_t)snprintf(text, sizeof(text), "bucket_size_mb=%.15g", o->bucket_size_mb);
        if (pass != NULL && pass_option_find(pass, "compat", 6) && o->compat == COMPAT_TORCH)
            snprintf(text + n, sizeof(text) - n, "%scompat=torch", n ? "," : "");
        tuck_status st = pipeline_add(p, name, text, pos, diags);
        if (st != TUCK_OK)
            return st;
    }
    return TUCK_OK;
}

static const struct pass_option list_options[] = {
    {.name = "passes",
     .type = PASS_TEXTS,
     .at = offsetof(struct list_options, passes),
     .dflt = "fuse_ddp_with_concat_op:schedule_comm_wait",
     .help = "what to run, in this order"},
    BUCKET_SIZE(struct list_options),
    COMPAT(struct list_options),
};

const struct pass pass_fuse_ddp_communication = {
    .name = "fuse_ddp_communication",
    .help = "a list of passes: merge the all-reduces of gradients, then move waits later",
    .options = PASS_OPTIONS(list_options),
    .options_size = sizeof(struct list_options),
    .expand = expand,
};

/* The bucketing passes: finding only, finding and merging, and merging a given bucket. */
#include <math.h>

#include "rewrite/bucket/torch_order.h"
#include "infer/infer.h"
#include "rewrite/build.h"
#include "rewrite/named.h"

enum { COMPAT_NONE, COMPAT_TORCH };

static const double default_cap = 2000;

struct options {
    struct pass_floats cap_mb;
    double member_mb;
    struct pass_texts begins;
    int mode, compat, filter;
    struct torch_order *order; /* no option: see bucket_options */
    struct bucket_rules rules;
};

#define CAP                                                                                        \
    {                                                                                              \
        .name = "cap_mb", .type = PASS_FLOATS, .at = offsetof(struct options, cap_mb),             \
        .dflt = "2000",                                                                            \
        .help = "MiB a bucket may hold; a list, 50:500, is by the bucket's number in its run"      \
    }
#define MEMBER                                                                                     \
    {                                                                                              \
        .name = "member_mb", .type = PASS_FLOAT, .at = offsetof(struct options, member_mb),        \
        .dflt = "None", .help = "MiB a member may have; larger collectives are left alone"         \
    }
#define BEGINS                                                                                     \
    {                                                                                              \
        .name = "begins", .type = PASS_TEXTS, .at = offsetof(struct options, begins),              \
        .dflt = "None", .help = "a bucket begins at each of these collectives: a:b, or %c2:%c5"    \
    }
#define MODE                                                                                       \
    {                                                                                              \
        .name = "mode", .type = PASS_CHOICE, .at = offsetof(struct options, mode),                 \
        .dflt = "default", .choices = "default|custom_ops|custom_ops_multidtype|coalesced",        \
        .help = "how members are joined: by plain operators, by one of PyTorch's own, or as lists" \
    }
#define COMPAT                                                                                     \
    {                                                                                              \
        .name = "compat", .type = PASS_CHOICE, .at = offsetof(struct options, compat),             \
        .dflt = "none", .choices = "none|torch",                                                   \
        .help = "torch: like PyTorch 2.13, see docs/differences.md"                                \
    }
#define FILTER                                                                                     \
    {                                                                                              \
        .name = "filter", .type = PASS_CHOICE, .at = offsetof(struct options, filter),             \
        .dflt = "none", .choices = "none|fsdp", .help = "fsdp: only those that FSDP makes"         \
    }

static const struct pass_option options[] = {CAP, MEMBER, BEGINS, MODE, FILTER, COMPAT};
static const struct pass_option fsdp_options[] = {CAP, MEMBER, BEGINS, MODE, COMPAT};

/* Waits to consider, by node id; nodes made later are not considered. */
struct marks {
    const bool *at;
    uint32_t n;
};

static struct marks *fsdp_marks(struct pass_run *r, tuck_coll kind)
{
    struct marks *m = arena_new(&r->arena, struct marks);

    *m = (struct marks){bucket_fsdp_waits(r, kind), r->g->node.len};
    return m;
}

tuck_status bucket_check_mode(struct pass_run *r, tuck_coll kind, int mode, bool torch)
{
    if (kind == TUCK_ALL_GATHER || mode != BUCKET_MULTIDTYPE || (torch && kind == TUCK_ALL_REDUCE))
        return TUCK_OK;
    return pass_fail(
        r, 0, "mode custom_ops_multidtype is for all-gathers: %s reduces, so it has one dtype",
        tuck_coll_name(kind));
}

static struct bucket_options settings(tuck_coll kind, const struct options *o, struct marks *marks)
{
    struct bucket_options b = {.kind = kind,
                               .mode = (enum bucket_mode)o->mode,
                               .cap_mb = o->cap_mb,
                               .member_mb = o->member_mb,
                               .torch = o->compat == COMPAT_TORCH,
                               .order = o->order,
                               .rules = o->rules};

    if (b.cap_mb.n == 0)
        b.cap_mb = (struct pass_floats){&default_cap, 1};
    if (marks != NULL) {
        b.marked = marks->at;
        b.n_marked = marks->n;
        if (b.torch && b.mode == BUCKET_MULTIDTYPE) /* torch ignores the mode in its FSDP passes */
            b.mode = BUCKET_CUSTOM;
    }
    return b;
}

static bool is_taken(void *ctx, uint32_t n)
{
    return bucket_is_kind(ctx, n);
}

/* By node: those that the caller names. */
static tuck_status read_begins(struct bucket_scan *s, const struct pass_texts *given,
                               struct bucket_options *set)
{
    struct pass_run *r = s->r;
    bool *begins = given->n > 0 ? arena_zeroed(&r->arena, r->g->node.len) : NULL;

    const uint32_t *node = begins != NULL ? named_nodes(r, given) : NULL;
    set->begins = begins;
    for (uint32_t i = 0; i < given->n; i++) {
        uint32_t n = node[i];
        if (n == 0)
            return pass_fail(r, 0, "begins: there is no node '%s'", given->at[i]);
        if (comm_kind(r->g, n) != set->kind) /* one that is never merged does no harm */
            return pass_fail(r, n, "begins: '%s' is not an %s", given->at[i],
                             tuck_coll_name(set->kind));
        begins[n] = true;
    }
    return TUCK_OK;
}

static tuck_status find(struct pass_run *r, tuck_coll kind, const struct options *o,
                        struct marks *marks, bool merge)
{
    struct bucket_scan s;
    struct buckets b = {0};
    tuck_status st = bucket_check_mode(r, kind, o->mode, o->compat == COMPAT_TORCH);

    if (st != TUCK_OK)
        return st;
    struct bucket_options set = settings(kind, o, marks);
    bucket_scan(&s, r, &set);
    st = read_begins(&s, &o->begins, &set);
    if (st == TUCK_OK)
        st = buckets_find(&s, &b);
    if (st != TUCK_OK)
        return st;
    comm_leave_forms(r, kind, is_taken, &s);
    buckets_check(&s, &b);
    if (merge)
        return buckets_merge(&s, &b);
    buckets_report(&s, &b);
    r->changed = false; /* it only reads; the runner's copy is dropped */
    return TUCK_OK;
}

tuck_status bucket_by_cap(struct pass_run *r, unsigned kinds, enum bucket_filter filter,
                          double cap_mb, enum bucket_mode mode, bool torch)
{
    enum { N_KIND = 3 };
    static const tuck_coll order[N_KIND] = {TUCK_ALL_GATHER, TUCK_REDUCE_SCATTER, TUCK_ALL_REDUCE};
    struct marks *marks[N_KIND];
    struct torch_order list;
    struct options o = {.cap_mb = {&cap_mb, 1},
                        .member_mb = NAN,
                        .compat = torch ? COMPAT_TORCH : COMPAT_NONE,
                        .order = torch ? &list : NULL,
                        .filter = filter};
    struct infer_options refresh = {.n_before = r->g->node.len, .edited = r->g};
    type_id *before = arena_array(&r->arena, type_id, r->g->node.len);
    tuck_status st = TUCK_OK;

    torch_order_begin(&list, r->g, &r->arena);
    memcpy(before, r->g->type.at, r->g->node.len * sizeof(*before));
    refresh.before = before;
    /* FSDP's waits are only recognizable before anything is merged. */
    for (uint32_t i = 0; i < N_KIND; i++)
        marks[i] = filter == BUCKET_FSDP ? fsdp_marks(r, order[i]) : NULL;
    for (uint32_t i = 0; i < N_KIND && st == TUCK_OK; i++) {
        if (!(kinds & 1u << order[i]))
            continue;
        if (r->changed) /* the next kind may use what this one made */
            infer_graph(r->g, &refresh, NULL);
        /* Reductions have a single dtype. */
        o.mode = (int)(order[i] != TUCK_ALL_GATHER && mode == BUCKET_MULTIDTYPE ? BUCKET_CUSTOM
                                                                                : mode);
        st = find(r, order[i], &o, marks[i], true);
    }
    if (st == TUCK_OK)
        torch_order_leave(&list);
    return st;
}

/* ---- table rows ---- */

#define ROW(id, kind, text, table, fn_filter, fn_merge)                                            \
    static tuck_status run_##id(struct pass_run *r, const void *given)                             \
    {                                                                                              \
        struct options o = *(const struct options *)given;                                         \
                                                                                                   \
        bool fsdp = fn_filter || o.filter == BUCKET_FSDP;                                          \
        return find(r, kind, &o, fsdp ? fsdp_marks(r, kind) : NULL, fn_merge);                     \
    }                                                                                              \
    const struct pass pass_##id = {                                                                \
        .name = #id,                                                                               \
        .help = text,                                                                              \
        .needs = PASS_TYPES | PASS_NAMES,                                                          \
        .options = (table),                                                                        \
        .n_options = (uint32_t)(sizeof(table) / sizeof(*(table))),                                 \
        .options_size = sizeof(struct options),                                                    \
        .takes_rules = true,                                                                       \
        .rules_at = offsetof(struct options, rules),                                               \
        .on_graph = run_##id,                                                                      \
    };

ROW(bucket_all_gather, TUCK_ALL_GATHER, "merge all-gathers of one group and dtype up to a cap",
    options, false, true)
ROW(bucket_reduce_scatter, TUCK_REDUCE_SCATTER,
    "merge reduce-scatters of one group, reduction and dtype up to a cap", options, false, true)
ROW(bucket_all_reduce, TUCK_ALL_REDUCE,
    "merge all-reduces of one group, reduction and dtype up to a cap", options, false, true)
ROW(bucket_fsdp_all_gather, TUCK_ALL_GATHER, "bucket_all_gather for FSDP's parameters only",
    fsdp_options, true, true)
ROW(bucket_fsdp_reduce_scatter, TUCK_REDUCE_SCATTER,
    "bucket_reduce_scatter for FSDP's gradients only", fsdp_options, true, true)
ROW(bucket_all_gather_by_mb, TUCK_ALL_GATHER,
    "report which all-gathers bucket_all_gather would merge", options, false, false)
ROW(bucket_reduce_scatter_by_mb, TUCK_REDUCE_SCATTER,
    "report which reduce-scatters bucket_reduce_scatter would merge", options, false, false)
ROW(bucket_all_reduce_by_mb, TUCK_ALL_REDUCE,
    "report which all-reduces bucket_all_reduce would merge", options, false, false)

/* Merges a bucket that the caller chose, at positions the caller chose. */
#include "rewrite/bucket/bucket.h"
#include "rewrite/named.h"

struct options {
    struct pass_texts nodes;
    const char *collective_before, *wait_before;
    int mode, compat;
};

static const struct pass_option table[] = {
    {.name = "nodes",
     .type = PASS_TEXTS,
     .at = offsetof(struct options, nodes),
     .dflt = "None",
     .help = "the collectives, by name, a:b:c, or by their place among them, %c2:%c5"},
    {.name = "collective_before",
     .type = PASS_TEXT,
     .at = offsetof(struct options, collective_before),
     .dflt = "None",
     .help = "the merged collective goes before this node, if its operands do; None: by rule"},
    {.name = "wait_before",
     .type = PASS_TEXT,
     .at = offsetof(struct options, wait_before),
     .dflt = "None",
     .help = "its wait goes before this node; None: by rule"},
    {.name = "mode",
     .type = PASS_CHOICE,
     .at = offsetof(struct options, mode),
     .dflt = "default",
     .choices = "default|custom_ops|custom_ops_multidtype|coalesced",
     .help = "as in bucket_all_gather"},
    {.name = "compat",
     .type = PASS_CHOICE,
     .at = offsetof(struct options, compat),
     .dflt = "none",
     .choices = "none|torch",
     .help = "as in bucket_all_gather"},
};

/* 0 if none is given; sets *st on an error. */
static uint32_t place_named(struct pass_run *r, const char *name, const char *what, tuck_status *st)
{
    uint32_t n = name ? named_node(r, name) : 0;

    if (name != NULL && n == 0 && *st == TUCK_OK)
        *st = pass_fail(r, 0, "merge_bucket: %s: there is no node '%s'", what, name);
    else if (n != 0 && node_at(r->g, n)->kind == TUCK_PLACEHOLDER && *st == TUCK_OK)
        *st = pass_fail(r, n, "merge_bucket: %s: nothing can come before the input '%s'", what,
                        name);
    return n;
}

static uint32_t wait_of(const tuck_graph *g, uint32_t start)
{
    for (uint32_t u = node_at(g, start)->use_first; u != 0; u = g->use.at[u].next)
        if (op_at(node_op(g, g->use.at[u].user))->cls == OP_WAIT)
            return g->use.at[u].user;
    return 0;
}

static tuck_status read_member(struct bucket_scan *s, uint32_t n, struct bucket *b, uint32_t i)
{
    struct pass_run *r = s->r;
    const char *name = graph_str(r->g, node_at(r->g, n)->name);
    enum left_reason why = LEFT_PATTERN;

    if (!bucket_is_kind(s, n))
        return pass_fail(r, n, "merge_bucket: '%s' is not a mergeable %s", name,
                         tuck_coll_name(s->o->kind));
    uint32_t wait = wait_of(r->g, n);
    if (wait == 0)
        return pass_fail(r, n, "merge_bucket: '%s' is never waited for", name);
    if (!bucket_read(s, n, wait, &b->member[i], &why))
        return pass_fail(r, n, "merge_bucket: '%s' cannot be merged: %s", name,
                         left_reason_meaning(why));
    b->bytes += b->member[i].bytes;
    if (!bucket_same_key(&b->member[0].key, &b->member[i].key))
        return pass_fail(r, n,
                         "merge_bucket: '%s' has another group, dtype, device or reduction "
                         "than '%s'",
                         name, graph_str(r->g, node_at(r->g, b->member[0].start)->name));
    return TUCK_OK;
}

static tuck_status run(struct pass_run *r, const void *given)
{
    const struct options *o = given;
    struct bucket_options set = {.mode = (enum bucket_mode)o->mode, .torch = o->compat == 1};
    struct bucket_scan s;
    struct buckets all = {0};
    struct bucket b = {.n = o->nodes.n, .closed_by = CLOSED_END};
    enum left_reason why;
    uint32_t against;
    tuck_status st = TUCK_OK;

    if (b.n < 2)
        return pass_fail(r, 0,
                         "merge_bucket: nodes=a:b names the collectives to merge, at least two");
    uint32_t *node = named_nodes(r, &o->nodes);
    bool *named = arena_zeroed(&r->arena, r->g->node.len);
    for (uint32_t i = 0; i < b.n; i++) {
        if (node[i] == 0)
            return pass_fail(r, 0, "merge_bucket: there is no node '%s'", o->nodes.at[i]);
        if (named[node[i]])
            return pass_fail(r, node[i], "merge_bucket: '%s' is named twice", o->nodes.at[i]);
        named[node[i]] = true;
    }
    set.kind = comm_kind(r->g, node[0]);
    if (set.kind != TUCK_ALL_GATHER && set.kind != TUCK_REDUCE_SCATTER &&
        set.kind != TUCK_ALL_REDUCE)
        return pass_fail(r, node[0],
                         "merge_bucket: '%s' is not an all-gather, reduce-scatter or all-reduce",
                         o->nodes.at[0]);
    if ((st = bucket_check_mode(r, set.kind, o->mode, set.torch)) != TUCK_OK)
        return st;
    bucket_scan(&s, r, &set);
    b.collective_before = place_named(r, o->collective_before, "collective_before", &st);
    b.wait_before = place_named(r, o->wait_before, "wait_before", &st);
    b.member = arena_zeroed(&r->arena, b.n * sizeof(*b.member));
    for (uint32_t i = 0; i < b.n && st == TUCK_OK; i++)
        st = read_member(&s, node[i], &b, i);
    if (st != TUCK_OK)
        return st;
    if (!bucket_possible(&s, &b, &why, &against))
        return pass_fail(r, against, "merge_bucket: '%s' cannot join the others: %s",
                         graph_str(r->g, node_at(r->g, against)->name), left_reason_meaning(why));
    vec_push_in(&r->arena, &all.bucket, b);
    buckets_check(&s, &all);
    return buckets_merge(&s, &all);
}

const struct pass pass_merge_bucket = {
    .name = "merge_bucket",
    .help = "merge the named collectives into one, at given places",
    .needs = PASS_TYPES | PASS_NAMES,
    .options = table,
    .n_options = (uint32_t)(sizeof(table) / sizeof(*table)),
    .options_size = sizeof(struct options),
    .on_graph = run,
};

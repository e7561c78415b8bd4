#include "rewrite/comm_order.h"

#include "graph/groups.h"
#include "op/ops.h"
#include "graph/storage.h"
#include "rewrite/build.h"

const tuck_value *comm_operand(const tuck_graph *g, struct sigs *s, uint32_t n, const char *name)
{
    const struct op_sig *sig = sigs_get(s, node_op(g, n));
    struct operand o = {.v = NULL};

    while (operand_next(g, node_at(g, n), sig, &o))
        if (o.param != NULL && o.param->name[0] == name[0] && strcmp(o.param->name, name) == 0)
            return o.v;
    return NULL;
}

/* What is known about the collectives of r->g at a revision. */
struct comm_known {
    uint64_t at;
    const int32_t *group;
    bool has_lines;
    struct comm_lines lines;
};

static struct comm_known *known(struct pass_run *r)
{
    if (r->comm == NULL)
        r->comm = arena_new(&r->arena, struct comm_known);
    if (r->comm->at != r->g->revision)
        *r->comm = (struct comm_known){.at = r->g->revision,
                                       .group = groups_of_nodes(r->g, &r->arena)};
    return r->comm;
}

const int32_t *comm_groups(struct pass_run *r)
{
    return known(r)->group;
}

const struct comm_lines *comm_lines_of(struct pass_run *r)
{
    struct comm_known *k = known(r);

    if (!k->has_lines)
        comm_lines_find(r->g, k->group, &r->arena, &k->lines);
    k->has_lines = true;
    return &k->lines;
}

void comm_chain(struct pass_run *r, struct topo_edges *e)
{
    comm_chain_by(r, comm_groups(r), e);
}

const struct comm_places *comm_places(struct pass_run *r)
{
    const tuck_graph *g = r->g;

    if (r->places != NULL)
        return r->places;
    struct comm_places *p = arena_new(&r->arena, struct comm_places);
    const struct comm_lines *lines = comm_lines_of(r);
    uint32_t *in_group = arena_zeroed(&r->arena, ((size_t)g->group.len + 1) * sizeof(*in_group));
    uint32_t all = 0, fences = 0;

    p->n = g->node.len;
    p->all = arena_zeroed(&r->arena, p->n * sizeof(*p->all));
    p->own = arena_zeroed(&r->arena, p->n * sizeof(*p->own));
    p->fences = arena_zeroed(&r->arena, p->n * sizeof(*p->fences));
    for (uint32_t i = 0; i < lines->n_node; i++) {
        uint32_t n = lines->node[i];
        bool fence = comm_is_fence(g, lines, n);

        p->all[n] = all++;
        p->own[n] = in_group[fence ? 0 : lines->line[lines->start[n]] + 1]++;
        p->fences[n] = fences;
        fences += fence;
    }
    return r->places = p;
}

bool comm_others_between(const struct comm_places *p, uint32_t x, uint32_t y)
{
    return p->all[x] < p->all[y] ? p->all[y] - p->all[x] != p->own[y] - p->own[x]
                                 : p->all[x] - p->all[y] != p->own[x] - p->own[y];
}

bool comm_crossed(const tuck_graph *before, const tuck_graph *after, struct arena *a)
{
    uint32_t k = 0, latest = 0;

    uint32_t *at = arena_zeroed(a, before->node.len * sizeof(*at));
    for_each_node (before, n)
        if (!node_is_silent(node_at(before, n)) && comm_communicates(before, n))
            at[n] = ++k;
    for_each_node (after, n) {
        if (n >= before->node.len || at[n] == 0)
            continue;
        uint32_t here = comm_communicates(after, n) ? at[n] : 0;
        if (here != 0 && here < latest)
            return true;
        latest = here != 0 ? here : latest;
    }
    return false;
}

void comm_chain_by(struct pass_run *r, const int32_t *group, struct topo_edges *e)
{
    const tuck_graph *g = r->g;
    size_t bytes = (size_t)g->group.len * sizeof(uint32_t);
    /* by group: the last one since the last fence */
    uint32_t *last = arena_zeroed(&r->arena, bytes);
    uint32_t *open = arena_zeroed(&r->arena, bytes), n_open = 0, fence = 0;

    struct comm_lines own;
    const struct comm_lines *lines = &own;

    if (r->comm != NULL && r->comm->at == g->revision && r->comm->group == group)
        lines = comm_lines_of(r);
    else
        comm_lines_find(g, group, &r->arena, &own);
    for (uint32_t i = 0; i < lines->n_node; i++) {
        uint32_t n = lines->node[i];

        if (r->keep_order || comm_is_fence(g, lines, n)) {
            if (n_open == 0 && fence != 0)
                topo_edge_add(&r->arena, e, fence, n);
            for (; n_open > 0; n_open--) {
                topo_edge_add(&r->arena, e, last[open[n_open - 1]], n);
                last[open[n_open - 1]] = 0;
            }
            fence = n;
            continue;
        }
        uint32_t line = (uint32_t)lines->line[lines->start[n]];
        if (last[line] != 0)
            topo_edge_add(&r->arena, e, last[line], n);
        else if (fence != 0)
            topo_edge_add(&r->arena, e, fence, n);
        if (last[line] == 0)
            open[n_open++] = line;
        last[line] = n;
    }
}

void comm_hold(struct pass_run *r, struct topo_edges *e, uint32_t merged, uint32_t first,
               uint32_t last)
{
    if (first == last)
        return;
    topo_edge_add(&r->arena, e, first, merged);
    topo_edge_add(&r->arena, e, merged, last);
    if (r->places != NULL)
        r->crossed |= comm_others_between(r->places, first, last);
}

void comm_leave_hidden(struct pass_run *r, tuck_coll kind)
{
    const tuck_graph *g = r->g;

    for_each_node (g, n) {
        const struct fx_node *x = node_at(g, n);

        if (x->kind != TUCK_CALL_FUNCTION || op_at(x->op)->cls != OP_HOP)
            continue;
        if (call_is_wrapper(x) && comm_kind(g, n) == kind && comm_communicates(g, n))
            report_left(r->report, g, n, LEFT_WRAPPED);
        else if (node_nests_comm(g, n, coll_flag(kind)))
            report_left(r->report, g, n, LEFT_NESTED);
    }
}

void comm_leave_forms(struct pass_run *r, tuck_coll kind, bool (*taken)(void *ctx, uint32_t n),
                      void *ctx)
{
    const tuck_graph *g = r->g;

    for_each_node (g, n)
        if (!node_is_silent(node_at(g, n)) && comm_kind(g, n) == kind &&
            !call_is_wrapper(node_at(g, n)) && !taken(ctx, n))
            report_left(r->report, g, n, LEFT_FORM);
}

static bool is_made_here(const tuck_graph *g, uint32_t n)
{
    return node_at(g, n)->kind == TUCK_CALL_FUNCTION || node_at(g, n)->kind == TUCK_CALL_METHOD;
}

const bool *comm_writes_unseen(struct pass_run *r, uint32_t op)
{
    const tuck_graph *g = r->g;
    struct arena *a = &r->arena;
    uint32_t *first = NULL; /* by storage: the first node that has it */
    bool *unseen = NULL;
    struct storages s;

    for_each_node (g, n) {
        if (node_at(g, n)->op != op)
            continue;
        if (unseen == NULL) {
            unseen = arena_zeroed(a, g->node.len * sizeof(*unseen));
            storages_build(g, a, &s);
            first = arena_zeroed(a, ((size_t)s.n + 1) * sizeof(*first));
            for (uint32_t m = g->node.at[0].prev; m != 0; m = node_at(g, m)->prev)
                for (uint32_t k = 0; k < s.count[m]; k++)
                    first[storage_of(&s, m, k)] = m;
        }
        uint32_t x = call_node(g, node_at(g, n), 0);
        unseen[n] = x != 0 && is_made_here(g, x) && node_at(g, x)->n_uses == 1 &&
                    node_at(g, n)->n_uses == 1 && s.count[x] == 1 &&
                    first[storage_of(&s, x, 0)] == x;
    }
    return unseen;
}

/* The value that a wait is for, looking through other waits. */
static uint32_t waited(const tuck_graph *g, const uint32_t *root, uint32_t wait)
{
    uint32_t v = op_at(node_op(g, wait))->cls == OP_WAIT ? call_node(g, node_at(g, wait), 0) : 0;

    return root[v] ? root[v] : v;
}

/* An in-place collective starts a new transfer, so an earlier wait no longer counts. */
static void forget(const tuck_graph *g, uint32_t n, const uint32_t *root, uint32_t *first)
{
    const struct fx_node *x = node_at(g, n);

    for (uint32_t i = 0; i < x->n_vals; i++) {
        uint32_t v = x->vals[i].kind == TUCK_V_NODE ? x->vals[i].a : 0;
        if (v != 0)
            first[v] = first[root[v]] = 0;
    }
}

uint32_t comm_dedup_waits(struct pass_run *r)
{
    tuck_graph *g = r->g;
    struct arena_mark mark = arena_mark(&r->arena);
    /* by wait: its value */
    uint32_t *root = arena_zeroed(&r->arena, g->node.len * sizeof(*root));
    /* by value: its first wait */
    uint32_t *first = arena_zeroed(&r->arena, g->node.len * sizeof(*first));
    uint32_t removed = 0, next;

    for (uint32_t n = g->node.at[0].next; n != 0; n = next) {
        next = node_at(g, n)->next;
        if (node_is_silent(node_at(g, n)))
            continue;
        if (comm_starts(g, n) && node_may_write(g, n))
            forget(g, n, root, first);
        uint32_t v = comm_is_wait(g, n) ? waited(g, root, n) : 0;
        if (v == 0)
            continue;
        root[n] = v;
        if (first[v] == 0) {
            first[v] = n;
        } else if (build_may_erase(r, n)) {
            build_replace(r, n, first[v]);
            build_erase(r, n);
            removed++;
        }
    }
    arena_release(&r->arena, mark);
    return removed;
}

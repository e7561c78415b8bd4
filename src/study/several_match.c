/* One graph per rank: finds which groups are the same, and which send belongs to which receive. */
#include <stdlib.h>

#include "study/several_build.h"

/* ---- groups ---- */

/* A group of one rank, and its members among the simulated ranks. */
struct named {
    const uint32_t *member;
    uint32_t n;
    uint32_t rank, k;
    const char *name;
    /* which of this rank's groups with the same members it is, in order of their names */
    uint32_t nth;
};

static int by_members(const void *a, const void *b)
{
    const struct named *x = a, *y = b;

    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    for (uint32_t i = 0; i < x->n; i++)
        if (x->member[i] != y->member[i])
            return x->member[i] < y->member[i] ? -1 : 1;
    return 0;
}

/* Ranks number their groups as they create them, so "10" comes after "9". */
static int by_name(const struct named *x, const struct named *y)
{
    size_t n = strlen(x->name), m = strlen(y->name);

    return n != m ? (n < m ? -1 : 1) : strcmp(x->name, y->name);
}

static int by_rank(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = by_members(a, b);

    return order != 0 ? order : x->rank != y->rank ? (x->rank < y->rank ? -1 : 1) : by_name(x, y);
}

static int by_nth(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = by_members(a, b);

    if (order != 0)
        return order;
    if (x->nth != y->nth)
        return x->nth < y->nth ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int by_index(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* The simulated members of a group. If its members are unknown, all simulated ranks. */
static const uint32_t *members_of(struct ranks_building *b, const struct ranks_graph *g,
                                  uint32_t group, uint32_t *n)
{
    struct ranks *x = b->x;
    const int64_t *ranks = facts_ranks(g->g, group);
    size_t most = ranks != NULL ? (size_t)g->e->program->group[group].size : x->n_rank;
    uint32_t *list = arena_array(&x->arena, uint32_t, most ? most : 1);

    *n = 0;
    for (size_t i = 0; i < most; i++) {
        uint32_t r = ranks != NULL ? ranks_find(x, ranks[i]) : (uint32_t)i;
        if (r != PROBLEM_NONE)
            list[(*n)++] = r;
    }
    qsort(list, *n, sizeof(*list), by_index);
    return list;
}

static void place_ranks(struct ranks_building *b)
{
    struct ranks *x = b->x;
    uint32_t n = b->n_graph;

    x->n_rank = n;
    x->number = arena_array(&x->arena, int64_t, n);
    x->of = arena_array(&x->arena, uint32_t, n);
    b->rank = arena_zeroed(&x->arena, n * sizeof(*b->rank));
    b->group = arena_array(&x->arena, uint32_t *, n);
    bool known = true;
    for (uint32_t i = 0; i < n; i++)
        known &= x->graph[i].rank >= 0;
    for (uint32_t i = 0; i < n; i++)
        x->number[i] = known ? x->graph[i].rank : i;
    qsort(x->number, n, sizeof(*x->number), ranks_by_number);
    for (uint32_t i = 1; i < n && b->status == TUCK_OK; i++)
        if (x->number[i] == x->number[i - 1]) {
            diag_add(b->diags, TUCK_ERROR, NOWHERE, NULL, "two files belong to rank %lld",
                     (long long)x->number[i]);
            b->status = TUCK_EINVAL;
        }
    for (uint32_t i = 0; i < n && b->status == TUCK_OK; i++)
        x->of[ranks_find(x, known ? x->graph[i].rank : i)] = i;
}

static void match_groups(struct ranks_building *b)
{
    struct ranks *x = b->x;
    uint32_t total = 0, n = 0;

    for (uint32_t r = 0; r < x->n_rank; r++)
        total += x->graph[x->of[r]].e->problem->n_group;
    struct named *all = arena_array(&x->arena, struct named, total + 1);
    for (uint32_t r = 0; r < x->n_rank; r++) {
        const struct ranks_graph *g = &x->graph[x->of[r]];
        uint32_t n_group = g->e->problem->n_group;
        uint32_t *group = arena_array(&x->arena, uint32_t, n_group + 1);

        b->rank[r].group = b->group[r] = group;
        for (uint32_t k = 0; k < n_group; k++) {
            uint32_t at = b->to_program[x->of[r]][k];
            struct named *m = &all[n];

            group[k] = PROBLEM_NONE;
            if (at == PROGRAM_NONE)
                continue;
            *m = (struct named){.rank = r,
                                .k = k,
                                .name = program_str(g->e->program, g->e->program->group[at].name)};
            m->member = members_of(b, g, at, &m->n);
            bool own = bsearch(&r, m->member, m->n, sizeof(*m->member), by_index) != NULL;
            n += own; /* a group without its own rank is skipped: no other rank can join it */
        }
    }
    qsort(all, n, sizeof(*all), by_rank);
    for (uint32_t i = 1; i < n; i++)
        all[i].nth = by_members(&all[i - 1], &all[i]) == 0 && all[i - 1].rank == all[i].rank
                         ? all[i - 1].nth + 1
                         : 0;
    qsort(all, n, sizeof(*all), by_nth);
    uint32_t *member_at = arena_zeroed(&x->arena, ((size_t)n + 2) * sizeof(*member_at));
    size_t members = 0;
    for (uint32_t i = 0; i < n; i++)
        members += all[i].n;
    uint32_t *member = arena_array(&x->arena, uint32_t, members + 1);
    for (uint32_t i = 0; i < n; i++) {
        bool same = i > 0 && by_members(&all[i - 1], &all[i]) == 0 && all[i - 1].nth == all[i].nth;
        if (!same) {
            uint32_t id = x->job.n_group++;
            memcpy(member + member_at[id], all[i].member, all[i].n * sizeof(*member));
            member_at[id + 1] = member_at[id] + all[i].n;
        }
        b->group[all[i].rank][all[i].k] = x->job.n_group - 1;
    }
    x->job.member = member;
    x->job.member_at = member_at;
}

/* ---- sends and receives ---- */

static void no_peer(struct ranks_building *b, const char *what, uint32_t r, uint32_t op,
                    uint32_t peer)
{
    if (b->x->fault.kind == SIM_FINE)
        b->x->fault = (struct sim_fault){
            .kind = SIM_PEER, .what = what, .rank = {r, r}, .op = {op, op}, .peer = peer};
}

/* For one op: peers are positions in its group. A transfer with ranks that are not simulated runs
 * alone. */
static void match_op(struct ranks_building *b, uint32_t r, uint32_t op)
{
    struct ranks *x = b->x;
    const struct ranks_graph *g = &x->graph[x->of[r]];
    const struct program_op *o = &g->e->program->op[op];
    struct sim_call *c = &b->facts[x->of[r]].call[op];
    const int64_t *ranks = facts_ranks(g->g, o->group);
    int64_t size = g->e->program->group[o->group].size;
    struct sim_part *part;
    uint32_t n = facts_parts(g->g, o->node, &x->arena, &part), kept = 0;

    for (uint32_t k = 0; k < n; k++) {
        uint32_t peer = part[k].peer;
        if (size > 0 && peer >= size) {
            no_peer(b, "outside", r, op, peer);
            return;
        }
        uint32_t other = ranks_find(x, ranks != NULL ? ranks[peer] : peer);
        if (other == r && n == 1) {
            no_peer(b, "itself", r, op, peer); /* in a batch, a rank may send to itself */
            return;
        }
        if (other == PROBLEM_NONE)
            continue;
        part[kept] = part[k];
        part[kept++].peer = other;
    }
    c->part = part;
    c->n_part = kept;
    c->alone = kept == 0;
    c->bytes = n > 1 ? -1 : c->bytes; /* a batch's size is the sum of its parts */
}

static void match_peers(struct ranks_building *b, uint32_t r)
{
    const struct program *p = b->x->graph[b->x->of[r]].e->program;
    const struct sim_call *call = b->facts[b->x->of[r]].call;

    for (uint32_t i = 0; i < p->n_op; i++)
        if (p->op[i].kind == PROGRAM_COLLECTIVE && call[i].alone && p->op[i].group != PROGRAM_NONE)
            match_op(b, r, i);
}

void ranks_match(struct ranks_building *b)
{
    place_ranks(b);
    if (b->status == TUCK_OK)
        match_groups(b);
    for (uint32_t r = 0; b->status == TUCK_OK && r < b->x->n_rank; r++)
        match_peers(b, r);
}

/* One graph for all ranks: where the other ranks' groups are.
 *
 * A graph names the members of its own rank's groups only. If they are evenly spaced, `stride`
 * apart, the other ranks' groups lie next to them. If the global ranks have gaps (0, 1, 8, 9: two
 * ranks on each of two nodes), the same is tried with positions in the list of all ranks that any
 * group names. If the remaining ranks are just enough for one more group, they form it. Everything
 * else must be given: `--group NAME=0,5/1,7` lists every group of that name.
 */
#include <stdlib.h>

#include "study/several_build.h"

enum { WORLD_MAX = 65536 };

/* A group of the graph, and the groups that other ranks have under its name. */
struct layout {
    const char *name;
    int64_t size;
    const int64_t *ranks; /* of the graph's own group; NULL if unknown */
    /* of ranks, or of positions among them; 0 if they are not evenly spaced */
    int64_t stride;
    uint32_t *all;  /* positions, `size` per group; NULL: derived from the stride */
    uint32_t n_all; /* number of groups in `all` */
};

struct world {
    struct ranks_building *b;
    struct layout *at; /* by group of the program */
    uint32_t n_group;
    int64_t *number; /* by position: its global rank; NULL: positions are ranks */
    uint32_t n;
};

/* ---- one group ---- */

/* The distance between members, if the group can be one of a row of such groups; else 0. */
static int64_t stride_of(const int64_t *ranks, int64_t size)
{
    int64_t apart = size < 2 ? 1 : ranks[1] - ranks[0];

    for (int64_t i = 1; i < size; i++)
        if (ranks[i] - ranks[i - 1] != apart)
            return 0;
    return apart > 0 && (apart > WORLD_MAX || size > WORLD_MAX || ranks[0] % (size * apart) < apart)
               ? apart
               : 0;
}

static int64_t stride_by_cluster(const tuck_cluster *c, const char *name)
{
    for (uint32_t i = 0; i < c->group.len; i++)
        if (strcmp(c->group.at[i].name, name) == 0)
            return c->group.at[i].stride;
    return 1;
}

static const struct ranks_instances *instances_of(const struct ranks_options *o, const char *name)
{
    for (size_t i = 0; i < o->n_instances; i++)
        if (strcmp(o->instances[i].name, name) == 0)
            return &o->instances[i];
    return NULL;
}

static void cannot_know(struct world *w, const struct layout *l)
{
    diag_add(
        w->b->diags, TUCK_ERROR, NOWHERE,
        "list all groups of that name, --group NAME=0,5/1,7; or give each rank its own file, with "
        "a side-car that lists its groups",
        "the members of group '%s' are not evenly spaced, so the groups of other ranks are unknown",
        l->name);
    w->b->status = TUCK_EINVAL;
}

static void too_many(struct world *w)
{
    diag_add(w->b->diags, TUCK_ERROR, NOWHERE, NULL,
             "the groups of the graph span more than %d ranks", WORLD_MAX);
    w->b->status = TUCK_EINVAL;
}

/* ---- evenly spaced ---- */

static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* The least number of ranks that every group, repeated, fills without a remainder. */
static void count_ranks(struct world *w)
{
    int64_t world = 1;

    for (uint32_t k = 0; k < w->n_group; k++) {
        const struct layout *l = &w->at[k];
        if (l->size <= 0)
            continue;
        if (l->size <= WORLD_MAX && l->stride <= WORLD_MAX) {
            int64_t span = l->size * l->stride;
            world = span > WORLD_MAX ? WORLD_MAX + 1 : world / gcd(world, span) * span;
        } else {
            world = WORLD_MAX + 1;
        }
        if (world > WORLD_MAX) {
            too_many(w);
            return;
        }
    }
    w->n = (uint32_t)world;
}

/* ---- with gaps ---- */

static uint32_t place_of(const struct world *w, int64_t number)
{
    const int64_t *at = bsearch(&number, w->number, w->n, sizeof(*w->number), ranks_by_number);

    return (uint32_t)(at - w->number); /* it is always found */
}

/* All ranks that any group names. */
static void list_ranks(struct world *w)
{
    const struct ranks_options *o = w->b->o;
    size_t most = 0;

    for (uint32_t k = 0; k < w->n_group; k++)
        most += w->at[k].ranks != NULL ? (size_t)w->at[k].size : 0;
    for (size_t i = 0; i < o->n_instances; i++)
        most += o->instances[i].n * (size_t)o->instances[i].size;
    w->number = arena_array(&w->b->x->arena, int64_t, most);
    size_t n = 0;
    for (uint32_t k = 0; k < w->n_group; k++)
        for (int64_t i = 0; w->at[k].ranks != NULL && i < w->at[k].size; i++)
            w->number[n++] = w->at[k].ranks[i];
    for (size_t k = 0; k < o->n_instances; k++)
        for (size_t i = 0; i < o->instances[k].n * (size_t)o->instances[k].size; i++)
            w->number[n++] = o->instances[k].ranks[i];
    qsort(w->number, n, sizeof(*w->number), ranks_by_number);
    for (size_t i = 0; i < n && w->n <= WORLD_MAX; i++)
        if (i == 0 || w->number[i] != w->number[i - 1])
            w->number[w->n++] = w->number[i];
    if (w->n > WORLD_MAX)
        too_many(w);
}

/* Checks that every rank is in at most one group of this name. */
static void check_apart(struct world *w, const struct layout *l)
{
    bool *seen = arena_zeroed(&w->b->x->arena, w->n);

    for (uint32_t i = 0; i < l->n_all * (uint32_t)l->size && w->b->status == TUCK_OK; i++) {
        if (seen[l->all[i]]) {
            diag_add(w->b->diags, TUCK_ERROR, NOWHERE, NULL,
                     "rank %lld is in two groups '%s', or twice in one",
                     (long long)w->number[l->all[i]], l->name);
            w->b->status = TUCK_EINVAL;
        }
        seen[l->all[i]] = true;
    }
}

static void given_groups(struct world *w, struct layout *l, const struct ranks_instances *given)
{
    size_t n = given->n * (size_t)given->size;

    l->size = given->size;
    l->n_all = (uint32_t)given->n;
    l->all = arena_array(&w->b->x->arena, uint32_t, n);
    for (size_t i = 0; i < n; i++)
        l->all[i] = place_of(w, given->ranks[i]);
    check_apart(w, l);
}

/* The graph's own group, and one group of all other ranks. */
static void own_and_rest(struct world *w, struct layout *l)
{
    struct arena *a = &w->b->x->arena;
    uint32_t size = (uint32_t)l->size, n = size;
    bool *own = arena_zeroed(a, w->n);

    l->all = arena_array(a, uint32_t, w->n);
    for (uint32_t i = 0; i < size; i++) {
        l->all[i] = place_of(w, l->ranks[i]);
        own[l->all[i]] = true;
    }
    l->n_all = 1;
    check_apart(w, l);
    for (uint32_t i = 0; i < w->n && w->b->status == TUCK_OK; i++)
        if (!own[i])
            l->all[n++] = i;
    l->n_all = w->n / size;
}

static void with_gaps(struct world *w, struct layout *l)
{
    const struct ranks_instances *given = instances_of(w->b->o, l->name);

    if (given != NULL) {
        given_groups(w, l, given);
        return;
    }
    if (l->ranks != NULL) {
        int64_t *place = arena_array(&w->b->x->arena, int64_t, (size_t)l->size);
        for (int64_t i = 0; i < l->size; i++)
            place[i] = place_of(w, l->ranks[i]);
        l->stride = stride_of(place, l->size);
    }
    if (l->stride > 0 && l->size <= w->n && l->stride <= w->n && w->n % (l->size * l->stride) == 0)
        return;
    if (l->ranks != NULL && (w->n == l->size || w->n == 2 * l->size))
        own_and_rest(w, l);
    else
        cannot_know(w, l);
}

/* ---- together ---- */

static void learn(struct world *w)
{
    struct ranks_building *b = w->b;
    const struct ranks_graph *g = &b->x->graph[0];
    const struct program *p = g->e->program;
    bool even = b->o->n_instances == 0;

    w->n_group = p->n_group;
    w->at = arena_zeroed(&b->x->arena, (p->n_group + 1) * sizeof(*w->at));
    for (uint32_t k = 0; k < p->n_group; k++) {
        struct layout *l = &w->at[k];
        *l = (struct layout){.name = program_str(p, p->group[k].name),
                             .size = facts_shape(g->g, p, b->o->machine->cluster, k).p,
                             .ranks = p->group[k].size > 0 ? facts_ranks(g->g, k) : NULL};
        l->stride = l->ranks != NULL ? stride_of(l->ranks, l->size)
                                     : stride_by_cluster(b->o->machine->cluster, l->name);
        even &= l->size <= 0 || l->stride > 0;
    }
    if (even) {
        count_ranks(w);
        return;
    }
    list_ranks(w);
    for (uint32_t k = 0; k < w->n_group && b->status == TUCK_OK; k++)
        if (w->at[k].size > 0 || instances_of(b->o, w->at[k].name) != NULL)
            with_gaps(w, &w->at[k]);
}

/* Adds the groups of the job that group k of the problem becomes on the ranks. */
static void add_groups(struct world *w, uint32_t k, const struct layout *l, uint32_t *member,
                       uint32_t *member_at)
{
    struct sim_job *job = &w->b->x->job;
    uint32_t size = (uint32_t)l->size, apart = (uint32_t)l->stride;
    uint32_t n = l->all != NULL ? l->n_all : w->n / size;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t id = job->n_group++, at = member_at[id];
        uint32_t first = l->all ? 0 : i / apart * (size * apart) + i % apart;
        for (uint32_t j = 0; j < size; j++) {
            uint32_t r = l->all ? l->all[i * size + j] : first + j * apart;
            member[at++] = r;
            w->b->group[r][k] = id;
        }
        member_at[id + 1] = at;
    }
}

static int by_place(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

void ranks_lay_out(struct ranks_building *b)
{
    struct ranks *x = b->x;
    const struct problem *p = x->graph[0].e->problem;
    struct world w = {.b = b};

    learn(&w);
    if (b->status != TUCK_OK)
        return;
    x->n_rank = w.n;
    x->number = w.number ? w.number : arena_array(&x->arena, int64_t, w.n);
    x->of = arena_zeroed(&x->arena, w.n * sizeof(*x->of));
    b->rank = arena_zeroed(&x->arena, w.n * sizeof(*b->rank));
    b->group = arena_array(&x->arena, uint32_t *, w.n);
    uint32_t *member = arena_array(&x->arena, uint32_t, (size_t)w.n * p->n_group + 1);
    uint32_t *member_at = arena_zeroed(&x->arena,
                                       ((size_t)w.n * p->n_group + 2) * sizeof(*member_at));
    for (uint32_t r = 0; r < w.n; r++) {
        uint32_t *group = arena_array(&x->arena, uint32_t, p->n_group + 1);
        for (uint32_t k = 0; k < p->n_group; k++)
            group[k] = PROBLEM_NONE;
        if (w.number == NULL)
            x->number[r] = r;
        b->rank[r].group = b->group[r] = group;
    }
    for (uint32_t k = 0; k < p->n_group; k++) {
        uint32_t at = b->to_program[0][k];
        if (at != PROGRAM_NONE && w.at[at].size > 0)
            add_groups(&w, k, &w.at[at], member, member_at);
    }
    for (uint32_t id = 0; id < x->job.n_group; id++)
        qsort(member + member_at[id], member_at[id + 1] - member_at[id], sizeof(*member), by_place);
    x->job.member = member;
    x->job.member_at = member_at;
}

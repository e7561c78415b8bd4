/* Ranks and groups: how many ranks a job has, and which of them are the members of each group. */
#include "run/run.h"

#include "graph/groups.h"

void run_refuse(struct run_plan *plan, const tuck_graph *g, uint32_t node, const char *hint,
                const char *fmt, ...)
{
    struct diag_source source = {.file = graph_str(g, g->source_name)};
    struct diag_pos pos = {.source = &source};
    va_list ap;

    if (node != PROGRAM_NONE) {
        pos.line = node_at(g, node)->line;
        pos.column = node_at(g, node)->column;
    }
    va_start(ap, fmt);
    diag_vadd(plan->diags, TUCK_ERROR, pos, hint, fmt, ap);
    va_end(ap);
    plan->status = TUCK_EINVAL;
}

static int64_t ranks_of(const tuck_graph *g)
{
    int64_t most = 1;

    for (uint32_t i = 0; i < g->group.len; i++) {
        const struct fx_group *x = &g->group.at[i];
        if (x->size > most)
            most = x->size;
        for (int64_t k = 0; x->ranks != NULL && k < x->size; k++)
            if (x->ranks[k] + 1 > most)
                most = x->ranks[k] + 1;
    }
    return most;
}

int run_count_ranks(const struct run_plan *plan, tuck_graph *const *g, size_t n)
{
    int64_t most = (int64_t)n;

    if (plan->o->ranks > 0)
        return (int)plan->o->ranks;
    if (transport_world(plan->o->transport) > 0)
        return transport_world(plan->o->transport);
    for (size_t i = 0; i < n; i++)
        if (ranks_of(g[i]) > most)
            most = ranks_of(g[i]);
    return (int)most;
}

/* The number of a list of members, added if it is new. */
static int32_t set_of(struct run_plan *plan, const int32_t *member, int32_t n)
{
    for (uint32_t i = 0; i < plan->set.len; i++)
        if (plan->set.at[i].n == n &&
            memcmp(plan->set.at[i].member, member, (size_t)n * sizeof(*member)) == 0)
            return (int32_t)i;
    struct run_set s = {arena_array(&plan->arena, int32_t, (size_t)n), n};
    memcpy(s.member, member, (size_t)n * sizeof(*member));
    vec_push_in(&plan->arena, &plan->set, s);
    return (int32_t)plan->set.len - 1;
}

static bool holds(const struct fx_group *x, int64_t rank)
{
    for (int64_t i = 0; i < x->size; i++)
        if (x->ranks[i] == rank)
            return true;
    return false;
}

/* The distance between members, if other ranks' groups can lie next to this one; else 0. */
static int64_t stride_of(const struct fx_group *x)
{
    int64_t apart = x->size < 2 ? 1 : x->ranks[1] - x->ranks[0];

    for (int64_t i = 1; i < x->size; i++)
        if (x->ranks[i] - x->ranks[i - 1] != apart)
            return 0;
    return apart > 0 && x->ranks[0] % (x->size * apart) < apart ? apart : 0;
}

static bool fill_members(struct run_plan *plan, const tuck_graph *g, const struct fx_group *x,
                         int rank, int32_t *member, int64_t n)
{
    const char *name = graph_str(g, x->name);
    int64_t stride = x->ranks != NULL ? stride_of(x) : 1;
    bool own = x->ranks != NULL && holds(x, rank);

    if (!own && x->ranks == NULL && n < plan->world) {
        run_refuse(plan, g, PROGRAM_NONE, "--group NAME=0,1,… gives its members",
                   "the members of group '%s' are not known: it has %lld, the job %d ranks", name,
                   (long long)n, plan->world);
        return false;
    }
    if (!own && stride == 0) {
        run_refuse(plan, g, PROGRAM_NONE,
                   "give each rank its own file, with a side-car that lists its groups",
                   "rank %d is not in group '%s', and its members are not evenly spaced, so the "
                   "groups of other ranks are unknown",
                   rank, name);
        return false;
    }
    int64_t first = rank / (n * stride) * (n * stride) + rank % stride;
    for (int64_t i = 0; i < n; i++) {
        int64_t r = own ? x->ranks[i] : first + i * stride;
        if (r < 0 || r >= plan->world) {
            run_refuse(plan, g, PROGRAM_NONE, "-n gives the number of ranks",
                       "group '%s' has rank %lld, the job has %d ranks", name, (long long)r,
                       plan->world);
            return false;
        }
        member[i] = (int32_t)r;
    }
    return true;
}

bool run_find_groups(struct run_plan *plan, struct run_side *side, int rank)
{
    struct run_rank *r = &side->rank[rank];
    int32_t *member = arena_array(&plan->arena, int32_t, (size_t)plan->world);

    r->set = arena_array(&plan->arena, int32_t, (size_t)r->p->n_group + 1);
    for (uint32_t i = 0; i < r->p->n_group; i++) {
        const struct fx_group *x = i < r->g->group.len ? &r->g->group.at[i] : NULL;
        int64_t n = x != NULL && x->size > 0 ? x->size : plan->world;
        r->set[i] = -1;
        if (x == NULL)
            continue;
        if (n > plan->world) {
            run_refuse(plan, r->g, PROGRAM_NONE,
                       "-n gives the number of ranks; sizes in the text are for this group",
                       "group '%s' has %lld members, the job has %d ranks",
                       graph_str(r->g, x->name), (long long)n, plan->world);
            return false;
        }
        if (!fill_members(plan, r->g, x, rank, member, n))
            return false;
        r->set[i] = set_of(plan, member, (int32_t)n);
    }
    return true;
}

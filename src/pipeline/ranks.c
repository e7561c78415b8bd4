#include "pipeline/ranks.h"

#include <math.h>
#include <stdlib.h>

#include "pipeline/facts.h"

enum { WORLD_MAX = 65536 };

struct building {
    struct ranks *x;
    const struct ranks_options *o;
    tuck_diags *diags;
    uint32_t n_graph;
    struct sim_rank *rank;
    uint32_t **group;      /* by rank: what rank[].group points to */
    struct facts *facts;   /* by graph */
    uint32_t **to_program; /* by graph: group of the problem → group of the graph */
    tuck_status status;
};

/* ---- one graph for all ranks ---- */

/* Members of a group of the graph lie `stride` apart; 0: they lie in no such way. */
static int64_t stride_of(const struct building *b, const int64_t *ranks, int64_t size,
                         const char *name)
{
    const tuck_cluster *c = b->o->eval->cluster;

    for (uint32_t i = 0; ranks == NULL && i < c->group.len; i++)
        if (strcmp(c->group.at[i].name, name) == 0)
            return c->group.at[i].stride;
    if (ranks == NULL || size < 2)
        return 1;
    for (int64_t i = 1; i < size; i++)
        if (ranks[i] - ranks[i - 1] != ranks[1] - ranks[0])
            return 0;
    return ranks[1] - ranks[0];
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* The least number of ranks on which every group, laid out again and again, comes out even. */
static int64_t world_of(struct building *b, int64_t *stride)
{
    const struct program *p = b->x->graph[0].e->program;
    int64_t world = 1;

    for (uint32_t k = 0; k < p->n_group; k++) {
        const struct program_group *x = &p->group[k];
        stride[k] = stride_of(b, facts_ranks(b->x->graph[0].g, k), x->size,
                              program_str(p, x->name));
        if (x->size <= 0)
            continue;
        if (stride[k] <= 0) {
            diag_add(b->diags, TUCK_ERROR, NOWHERE,
                     "give each rank a file of its own, with a side-car that says its groups",
                     "the members of group '%s' are not evenly spaced: where other ranks have "
                     "theirs is not known",
                     program_str(p, x->name));
            b->status = TUCK_EINVAL;
            return 0;
        }
        if (x->size <= WORLD_MAX && stride[k] <= WORLD_MAX) {
            int64_t span = x->size * stride[k];
            world = span > WORLD_MAX ? WORLD_MAX + 1 : world / gcd(world, span) * span;
        } else {
            world = WORLD_MAX + 1;
        }
        if (world > WORLD_MAX) {
            diag_add(b->diags, TUCK_ERROR, NOWHERE, NULL,
                     "the groups of the graph span more than %d ranks", WORLD_MAX);
            b->status = TUCK_EINVAL;
            return 0;
        }
    }
    return world;
}

static void lay_out_world(struct building *b)
{
    struct ranks *x = b->x;
    const struct program *program = x->graph[0].e->program;
    const struct problem *p = x->graph[0].e->problem;
    int64_t *stride = arena_zeroed(&x->arena, (program->n_group + 1) * sizeof(*stride));
    uint32_t world = (uint32_t)world_of(b, stride);
    uint32_t *member, *member_at, n = 0;

    if (b->status != TUCK_OK)
        return;
    x->n_rank = world;
    x->number = arena_array(&x->arena, int64_t, world);
    x->of = arena_zeroed(&x->arena, world * sizeof(*x->of));
    b->rank = arena_zeroed(&x->arena, world * sizeof(*b->rank));
    b->group = arena_array(&x->arena, uint32_t *, world);
    member = arena_array(&x->arena, uint32_t, (size_t)world * p->n_group + 1);
    member_at = arena_zeroed(&x->arena, ((size_t)world * p->n_group + 2) * sizeof(*member_at));
    for (uint32_t r = 0; r < world; r++) {
        uint32_t *group = arena_array(&x->arena, uint32_t, p->n_group + 1);
        for (uint32_t k = 0; k < p->n_group; k++)
            group[k] = PROBLEM_NONE;
        x->number[r] = r;
        b->rank[r].group = b->group[r] = group;
    }
    for (uint32_t k = 0; k < p->n_group; k++) {
        uint32_t at = b->to_program[0][k];
        int64_t size = at == PROGRAM_NONE ? 0 : program->group[at].size;
        if (size <= 0)
            continue;
        uint32_t apart = (uint32_t)stride[at], span = (uint32_t)size * apart;
        for (uint32_t first = 0; first < world; first++) {
            if (first % span >= apart)
                continue;
            uint32_t id = x->job.n_group++;
            for (uint32_t j = 0; j < size; j++) {
                member[n++] = first + j * apart;
                b->group[first + j * apart][k] = id;
            }
            member_at[id + 1] = n;
        }
    }
    x->job.member = member;
    x->job.member_at = member_at;
}

/* ---- a graph for each rank ---- */

/* A group of one rank: its members among the ranks that are there. */
struct named {
    const uint32_t *member;
    uint32_t n;
    uint32_t rank, k;
    const char *name;
    uint32_t nth; /* of this rank's groups with these members, by name */
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

/* Ranks number their groups as they make them, so "10" comes behind "9". */
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

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static uint32_t find_rank(const struct ranks *x, int64_t number)
{
    const int64_t *at = bsearch(&number, x->number, x->n_rank, sizeof(*x->number), by_number);

    return at != NULL ? (uint32_t)(at - x->number) : PROBLEM_NONE;
}

static int by_index(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* Those members of a group that are simulated. Where they are not known, all that are there. */
static const uint32_t *members_of(struct building *b, const struct ranks_graph *g, uint32_t group,
                                  uint32_t *n)
{
    struct ranks *x = b->x;
    const int64_t *ranks = facts_ranks(g->g, group);
    size_t most = ranks != NULL ? (size_t)g->e->program->group[group].size : x->n_rank;
    uint32_t *list = arena_array(&x->arena, uint32_t, most ? most : 1);

    *n = 0;
    for (size_t i = 0; i < most; i++) {
        uint32_t r = ranks != NULL ? find_rank(x, ranks[i]) : (uint32_t)i;
        if (r != PROBLEM_NONE)
            list[(*n)++] = r;
    }
    qsort(list, *n, sizeof(*list), by_index);
    return list;
}

static void place_ranks(struct building *b)
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
    qsort(x->number, n, sizeof(*x->number), by_number);
    for (uint32_t i = 1; i < n && b->status == TUCK_OK; i++)
        if (x->number[i] == x->number[i - 1]) {
            diag_add(b->diags, TUCK_ERROR, NOWHERE, NULL, "two of the files are of rank %lld",
                     (long long)x->number[i]);
            b->status = TUCK_EINVAL;
        }
    for (uint32_t i = 0; i < n && b->status == TUCK_OK; i++)
        x->of[find_rank(x, known ? x->graph[i].rank : i)] = i;
}

static void match_groups(struct building *b)
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
            n += own; /* a rank that is not in its own group: nobody else comes to it */
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

/* Sends and receives among the ranks that are there; what goes to others is done alone. */
static void match_peers(struct building *b, uint32_t r)
{
    struct ranks *x = b->x;
    const struct ranks_graph *g = &x->graph[x->of[r]];
    const struct program *p = g->e->program;

    for (uint32_t i = 0; i < p->n_op; i++) {
        struct sim_call *c = &b->facts[x->of[r]].call[i];
        struct sim_part *part;

        if (p->op[i].kind != PROGRAM_COLLECTIVE || !c->alone || p->op[i].group == PROGRAM_NONE)
            continue;
        const int64_t *ranks = facts_ranks(g->g, p->op[i].group);
        uint32_t n = facts_parts(g->g, p->op[i].node, &x->arena, &part), kept = 0;
        for (uint32_t k = 0; k < n; k++) {
            int64_t peer = part[k].peer;
            if (ranks != NULL)
                peer = peer < p->group[p->op[i].group].size ? ranks[peer] : -1;
            uint32_t other = find_rank(x, peer);
            if (other == PROBLEM_NONE)
                continue;
            part[kept] = part[k];
            part[kept++].peer = other;
        }
        c->part = part;
        c->n_part = kept;
        c->alone = kept == 0;
        c->bytes = n > 1 ? -1 : c->bytes; /* of a batch: what all of it moves */
    }
}

/* ---- together ---- */

static void map_groups(struct building *b)
{
    for (uint32_t i = 0; i < b->n_graph; i++) {
        const struct evaluation *e = b->x->graph[i].e;
        uint32_t n = e->problem->n_group;

        b->to_program[i] = arena_array(&b->x->arena, uint32_t, n + 1);
        for (uint32_t k = 0; k < n; k++)
            b->to_program[i][k] = PROGRAM_NONE;
        for (uint32_t op = 0; op < e->problem->n_op; op++)
            if (e->problem->group[op] != PROBLEM_NONE)
                b->to_program[i][e->problem->group[op]] = e->program->op[op].group;
    }
}

static void slow_down(struct building *b)
{
    struct ranks *x = b->x;

    x->factor = arena_array(&x->arena, double, x->n_rank);
    for (uint32_t r = 0; r < x->n_rank; r++)
        x->factor[r] = 1;
    for (size_t i = 0; i < b->o->n_straggler; i++) {
        uint32_t r = find_rank(x, b->o->straggler[i].rank);
        if (r == PROBLEM_NONE) {
            diag_add(b->diags, TUCK_ERROR, NOWHERE, NULL, "there is no rank %lld: %s %lld to %lld",
                     (long long)b->o->straggler[i].rank,
                     b->n_graph > 1 ? "the files are of ranks" : "the groups of the graph span",
                     (long long)x->number[0], (long long)x->number[x->n_rank - 1]);
            b->status = TUCK_EINVAL;
            return;
        }
        x->factor[r] = b->o->straggler[i].factor;
    }
    int64_t **plain = arena_zeroed(&x->arena, b->n_graph * sizeof(*plain));
    for (uint32_t r = 0; r < x->n_rank; r++) {
        uint32_t at = x->of[r];
        const struct problem *p = x->graph[at].e->problem;
        bool own = x->factor[r] != 1 || plain[at] == NULL;
        int64_t *ps = own ? arena_array(&x->arena, int64_t, p->n_op) : plain[at];

        for (uint32_t op = 0; own && op < p->n_op; op++) {
            double slow = round((double)problem_ps(p, op) * x->factor[r]);
            ps[op] = problem_is_coll(p, op) || x->factor[r] == 1 ? problem_ps(p, op)
                     : slow < 9e18                               ? (int64_t)slow
                                                                 : INT64_MAX;
        }
        if (x->factor[r] == 1)
            plain[at] = ps;
        b->rank[r].p = p;
        b->rank[r].ps = ps;
        b->rank[r].call = b->facts[at].call;
        b->rank[r].cls = b->facts[at].cls;
    }
}

static void do_simulate(void *arg)
{
    struct building *b = arg;
    struct ranks *x = b->x;
    const struct evaluate_options *eval = b->o->eval;

    b->facts = arena_array(&x->arena, struct facts, b->n_graph);
    b->to_program = arena_array(&x->arena, uint32_t *, b->n_graph);
    for (uint32_t i = 0; i < b->n_graph; i++)
        facts_of(x->graph[i].g, x->graph[i].e->program, x->graph[i].e->problem, eval, &x->arena,
                 &b->facts[i]);
    map_groups(b);
    if (b->n_graph == 1) {
        lay_out_world(b);
    } else {
        place_ranks(b);
        if (b->status == TUCK_OK)
            match_groups(b);
        for (uint32_t r = 0; b->status == TUCK_OK && r < x->n_rank; r++)
            match_peers(b, r);
    }
    if (b->status == TUCK_OK)
        slow_down(b);
    if (b->status != TUCK_OK)
        return;
    x->job.n_rank = x->n_rank;
    x->job.rank = b->rank;
    x->job.launch_ps = cost_ps(eval->cluster->launch_us);
    x->job.contention = eval->contention;
    x->job.slow = facts_slow(eval->cluster, &x->arena, &x->job.n_kind);
    x->result = arena_zeroed(&x->arena, x->n_rank * sizeof(*x->result));
    x->span = arena_array(&x->arena, struct sim_span *, x->n_rank);
    for (uint32_t r = 0; r < x->n_rank; r++)
        x->span[r] = arena_zeroed(&x->arena, b->rank[r].p->n_op * sizeof(**x->span));
    sim_ranks(&x->job, &x->arena, x->result, x->span, &x->fault);
    for (uint32_t r = 0; r < x->n_rank; r++)
        if (x->result[r].time.makespan > x->makespan)
            x->makespan = x->result[r].time.makespan;
}

tuck_status ranks_simulate(const struct ranks_graph *graph, uint32_t n,
                           const struct ranks_options *o, tuck_diags *diags, struct ranks *x)
{
    struct building b = {.x = x, .o = o, .diags = diags, .n_graph = n, .status = TUCK_OK};

    *x = (struct ranks){.graph = graph, .n_graph = n};
    mem_init(&x->mem, &graph[0].g->store->mem.alloc);
    arena_init(&x->arena, &x->mem);
    return mem_guard(&x->mem, do_simulate, &b) ? b.status : TUCK_ENOMEM;
}

void ranks_end(struct ranks *x)
{
    arena_destroy(&x->arena);
    *x = (struct ranks){.graph = NULL};
}

#include "study/several_ranks.h"

#include <math.h>
#include <stdlib.h>

#include "study/several_build.h"

int ranks_by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

uint32_t ranks_find(const struct ranks *x, int64_t number)
{
    const int64_t *at = bsearch(&number, x->number, x->n_rank, sizeof(*x->number), ranks_by_number);

    return at != NULL ? (uint32_t)(at - x->number) : PROBLEM_NONE;
}

static void map_groups(struct ranks_building *b)
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

static void slow_down(struct ranks_building *b)
{
    struct ranks *x = b->x;

    x->factor = arena_array(&x->arena, double, x->n_rank);
    for (uint32_t r = 0; r < x->n_rank; r++)
        x->factor[r] = 1;
    for (size_t i = 0; i < b->o->n_straggler; i++) {
        uint32_t r = ranks_find(x, b->o->straggler[i].rank);
        if (r == PROBLEM_NONE) {
            diag_add(b->diags, TUCK_ERROR, NOWHERE, NULL,
                     "there is no rank %lld: %s %u ranks, %lld to %lld",
                     (long long)b->o->straggler[i].rank,
                     b->n_graph > 1 ? "the files belong to" : "the groups of the graph span",
                     x->n_rank, (long long)x->number[0], (long long)x->number[x->n_rank - 1]);
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
            double slow = round((double)p->ps[op] * x->factor[r]);
            ps[op] = problem_is_coll(p, op) || x->factor[r] == 1 ? p->ps[op]
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
    struct ranks_building *b = arg;
    struct ranks *x = b->x;
    const struct machine *m = b->o->machine;

    b->facts = arena_array(&x->arena, struct facts, b->n_graph);
    b->to_program = arena_array(&x->arena, uint32_t *, b->n_graph);
    for (uint32_t i = 0; i < b->n_graph; i++)
        facts_of(x->graph[i].g, x->graph[i].e->program, x->graph[i].e->problem, m, &x->arena,
                 &b->facts[i]);
    map_groups(b);
    if (b->n_graph == 1)
        ranks_lay_out(b);
    else
        ranks_match(b);
    if (b->status == TUCK_OK)
        slow_down(b);
    if (b->status != TUCK_OK)
        return;
    x->job.n_rank = x->n_rank;
    x->job.rank = b->rank;
    x->job.launch_ps = m->cluster->launch_ps;
    x->job.contention = m->contention;
    facts_slow(m->cluster, &x->arena, &x->job);
    x->result = arena_zeroed(&x->arena, x->n_rank * sizeof(*x->result));
    x->span = arena_array(&x->arena, struct sim_span *, x->n_rank);
    for (uint32_t r = 0; r < x->n_rank; r++)
        x->span[r] = arena_zeroed(&x->arena, b->rank[r].p->n_op * sizeof(**x->span));
    if (x->fault.kind != SIM_FINE)
        return; /* the ranks do not match: nothing to simulate */
    sim_ranks(&x->job, &x->arena, x->result, x->span, &x->fault);
    for (uint32_t r = 0; r < x->n_rank; r++)
        if (x->result[r].time.makespan > x->makespan)
            x->makespan = x->result[r].time.makespan;
}

tuck_status ranks_simulate(const struct ranks_graph *graph, uint32_t n,
                           const struct ranks_options *o, tuck_diags *diags, struct ranks *x)
{
    struct ranks_building b = {.x = x, .o = o, .diags = diags, .n_graph = n, .status = TUCK_OK};

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

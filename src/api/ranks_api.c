/* Several ranks in the public interface. */
#include "api/api.h"
#include "api/ranks_api.h"
#include "api/simulate_api.h"
#include "study/judge.h"
#include "study/several_ranks.h"

void tuck_ranks_options_init(tuck_ranks_options *o)
{
    *o = (tuck_ranks_options){.size = sizeof(*o)};
}

struct make_args {
    tuck_rank_simulation *s;
    const tuck_rank *rank;
    const tuck_ranks_options *o;
    struct arena arena;
    struct ranks_options own;
};

static void do_make(void *arg)
{
    struct make_args *a = arg;
    tuck_rank_simulation *s = a->s;

    s->graph = mem_resize(&s->mem, NULL, 0, s->n_graph * sizeof(*s->graph));
    for (size_t i = 0; i < s->n_graph; i++)
        s->graph[i] = (struct ranks_graph){a->rank[i].simulation->g, a->rank[i].simulation->e,
                                           a->rank[i].name ? a->rank[i].name : "",
                                           a->rank[i].number};
    struct ranks_straggler *slow = arena_array(&a->arena, struct ranks_straggler,
                                               a->o->n_stragglers + 1);
    struct ranks_instances *at = arena_array(&a->arena, struct ranks_instances,
                                             a->o->n_instances + 1);
    for (size_t i = 0; i < a->o->n_stragglers; i++)
        slow[i] = (struct ranks_straggler){a->o->stragglers[i].rank, a->o->stragglers[i].factor};
    for (size_t i = 0; i < a->o->n_instances; i++)
        at[i] = (struct ranks_instances){a->o->instances[i].name, a->o->instances[i].n,
                                         a->o->instances[i].size, a->o->instances[i].ranks};
    a->own = (struct ranks_options){.machine = &a->rank[0].simulation->given->machine,
                                    .straggler = slow,
                                    .n_straggler = a->o->n_stragglers,
                                    .instances = at,
                                    .n_instances = a->o->n_instances};
}

static bool makes_sense(const tuck_rank *rank, size_t n, const tuck_ranks_options *o)
{
    bool ok = rank != NULL && n > 0 && n < UINT32_MAX &&
              (o->n_stragglers == 0 || o->stragglers != NULL) &&
              (o->n_instances == 0 || o->instances != NULL);

    for (size_t i = 0; i < n && ok; i++)
        ok = rank[i].simulation != NULL;
    for (size_t i = 0; ok && i < o->n_stragglers; i++)
        ok = o->stragglers[i].factor > 0;
    for (size_t i = 0; ok && i < o->n_instances; i++)
        ok = o->instances[i].name != NULL && o->instances[i].n > 0 && o->instances[i].size > 0 &&
             o->instances[i].ranks != NULL;
    return ok;
}

tuck_status tuck_ranks_simulate(const tuck_rank *rank, size_t n, const tuck_ranks_options *options,
                                tuck_diags *diags, tuck_rank_simulation **out)
{
    tuck_ranks_options o;

    tuck_ranks_options_init(&o);
    if (out == NULL || options_take(&o, sizeof(o), options) != TUCK_OK || !makes_sense(rank, n, &o))
        return TUCK_EINVAL;
    const tuck_allocator *alloc = &rank[0].simulation->mem.alloc;
    tuck_rank_simulation *s = alloc->resize(alloc->ctx, NULL, 0, sizeof(*s));
    if (s == NULL)
        return TUCK_ENOMEM;
    *s = (tuck_rank_simulation){.n_graph = n,
                                .machine = rank[0].simulation->given->machine.cluster->name};
    mem_init(&s->mem, alloc);
    struct make_args a = {.s = s, .rank = rank, .o = &o};
    arena_init(&a.arena, &s->mem);
    tuck_status st = mem_guard(&s->mem, do_make, &a) ? TUCK_OK : TUCK_ENOMEM;
    if (st == TUCK_OK)
        st = ranks_simulate(s->graph, (uint32_t)n, &a.own, diags, &s->x);
    arena_destroy(&a.arena);
    if (st == TUCK_OK)
        *out = s;
    else
        tuck_rank_simulation_free(s);
    return st;
}

void tuck_rank_simulation_free(tuck_rank_simulation *s)
{
    if (s == NULL)
        return;
    struct mem m = s->mem;
    if (s->x.graph != NULL)
        ranks_end(&s->x);
    mem_free(&m, s->graph, s->graph ? s->n_graph * sizeof(*s->graph) : 0);
    mem_free(&m, s, sizeof(*s));
}

size_t tuck_rank_simulation_count(const tuck_rank_simulation *s)
{
    return s->x.n_rank;
}

bool tuck_rank_simulation_at(const tuck_rank_simulation *s, size_t i, tuck_rank_times *out)
{
    const struct ranks *x = &s->x;

    if (out == NULL || i >= x->n_rank || x->fault.kind != SIM_FINE)
        return false;
    const struct sim_rank_result *t = &x->result[i];
    const struct evaluation *e = x->graph[x->of[i]].e;
    *out = (tuck_rank_times){.rank = x->number[i],
                             .factor = x->factor[i],
                             .times = {.step_ps = t->time.makespan,
                                       .compute_ps = t->time.compute,
                                       .comm_ps = t->time.comm,
                                       .exposed_ps = t->time.exposed,
                                       .launch_ps = t->time.launch,
                                       .slowed_ps = t->slowed,
                                       .peak_bytes = e->peak,
                                       .resident_bytes = e->resident},
                             .for_others_ps = t->others};
    return true;
}

int64_t tuck_rank_simulation_step_ps(const tuck_rank_simulation *s)
{
    return s->x.fault.kind == SIM_FINE ? s->x.makespan : -1;
}

const char *tuck_rank_simulation_fault(const tuck_rank_simulation *s)
{
    switch (s->x.fault.kind) {
    case SIM_FINE: return NULL;
    case SIM_MISMATCH: return "mismatch";
    case SIM_DEADLOCK: return "deadlock";
    default: return "peer";
    }
}

static void print(struct buf *b, const tuck_print_options *how, const void *arg)
{
    const tuck_rank_simulation *s = arg;
    bool timeline = (how->detail & TUCK_DETAIL_TIMELINE) != 0;

    if (how->form == TUCK_PRINT_JSON)
        ranks_json(&s->x, timeline, b);
    else
        ranks_table(&s->x, timeline, b);
}

tuck_status tuck_rank_simulation_print(const tuck_rank_simulation *s, const tuck_print_options *how,
                                       tuck_write_fn write, void *ctx)
{
    return s ? api_print(&s->mem.alloc, how, write, ctx, print, s) : TUCK_EINVAL;
}

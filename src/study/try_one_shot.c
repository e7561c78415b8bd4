/* Library or one-shot, for each all-reduce of the best: the compute stands still for a one-shot
 * kernel, and for what of the library's transfer is exposed. What is shorter is chosen, then the
 * order is looked for again. */
#include "op/ops.h"
#include "rewrite/comm_order.h"
#include "rewrite/one_shot.h"
#include "study/rank_input.h"
#include "study/tries.h"

struct choice {
    const struct search *s;
    const struct stage *x;
    bool hidden; /* also those that cost no time now */
    struct buf text;
    struct arena a;
    uint32_t n;
};

/* INT64_MAX: not on this group. */
static int64_t one_shot_ps(const struct choice *c, const struct program_op *op)
{
    const struct machine *m = c->s->machine;
    const struct program *p = c->x->e->program;
    struct cost_choice how = m->cost.collective;
    tuck_collective_cost cost;

    if (op->group == PROGRAM_NONE || op->message < 0 ||
        !machine_has_symm_mem(m, program_str(p, p->group[op->group].name)))
        return INT64_MAX;
    how.only = TUCK_ALGO_ONE_SHOT;
    cost_collective(m->cluster, facts_shape(c->x->g, p, m->cluster, op->group), TUCK_ALL_REDUCE,
                    op->message, &how, &cost);
    return cost.algorithm == TUCK_ALGO_ONE_SHOT ? ps_round((double)cost.ps / m->bandwidth)
                                                : INT64_MAX;
}

static void do_choose(void *arg)
{
    struct choice *c = arg;
    const struct evaluation *e = c->x->e;
    const struct program *p = e->program;
    const tuck_graph *g = c->x->g;
    bool *chosen = arena_zeroed(&c->a, g->node.len);
    uint32_t place = 0;

    for (uint32_t i = 0; i < p->n_op; i++) {
        const struct program_op *op = &p->op[i];
        if (op->kind != PROGRAM_COLLECTIVE || op->coll != TUCK_ALL_REDUCE ||
            !(op->flags & PROGRAM_ASYNC))
            continue;
        int64_t ps = one_shot_ps(c, op);
        chosen[op->node] = ps < (c->hidden ? op->ps : e->span[i].exposed);
    }
    for_each_node (g, v) { /* by place: the same decision must do where names differ */
        if (chosen[v])
            buf_printf(&c->text, "%s%%c%u", c->n++ == 0 ? "nodes=" : ":", place);
        place += comm_communicates(g, v);
    }
    buf_text(&c->text);
}

/* Those that are chosen, in the order there is and in others. */
static tuck_status try_chosen(struct search *s, const struct stage *x, const char *nodes)
{
    struct stage shot, timed[2] = {{.from = NULL}}, improved = {.from = NULL};
    bool fits;
    tuck_status st = try_next_with(s, x, &pass_one_shot_all_reduce, nodes, false, &shot);

    if (st == TUCK_OK && shot.g->revision != x->g->revision) {
        st = try_offer(s, &shot, &fits);
        if (st == TUCK_OK)
            st = try_timed(s, &shot, timed);
        if (st == TUCK_OK && s->o->effort > 0)
            st = try_improve(s, &timed[1], 1, &improved);
        if (st == TUCK_OK && s->o->effort > 0)
            st = try_offer(s, &improved, &fits);
    }
    stage_end(&improved);
    stage_end(&timed[1]);
    stage_end(&timed[0]);
    stage_end(&shot);
    return st;
}

static tuck_status choose_and_try(struct search *s, const struct stage *x, bool hidden, bool *any)
{
    struct mem mem;
    struct choice c = {.s = s, .x = x, .hidden = hidden};
    tuck_status st = TUCK_ENOMEM;

    mem_init(&mem, &s->study->mem.alloc);
    buf_init(&c.text, &mem);
    arena_init(&c.a, &mem);
    if (mem_guard(&mem, do_choose, &c))
        st = c.n > 0 ? try_chosen(s, x, buf_text(&c.text)) : TUCK_OK;
    *any |= c.n > 0;
    arena_destroy(&c.a);
    buf_destroy(&c.text);
    return st;
}

/* From a copy of the best, which stays while the best changes; or from the original. */
static tuck_status try_from_best(struct search *s, const struct stage *first, bool hidden,
                                 bool *any)
{
    struct best own = {.g = NULL};
    struct stage x = *first;
    tuck_status st = TUCK_OK;

    if (s->best.g != NULL) {
        stage_first(&x, s->best.g, s->best.e, s->best.report);
        st = best_take(&own, s->study, &x);
        stage_first(&x, own.g, own.e, own.report);
    }
    if (st == TUCK_OK)
        st = choose_and_try(s, &x, hidden, any);
    best_end(&own);
    return st;
}

tuck_status try_one_shot(struct search *s, const struct stage *first)
{
    enum { ROUNDS = 4 };
    tuck_status st = TUCK_OK;
    bool any = false, better = s->machine->n_symm_group > 0 && !s->study->o->keep_order;

    for (int i = 0; i < ROUNDS && better && st == TUCK_OK; i++) {
        int64_t ps = s->best.ps;
        st = try_from_best(s, first, i % 2 == 1, &any);
        better = s->best.ps < ps || i == 0;
    }
    if (any)
        s->small_ps = INT64_MAX; /* the exact search knows the library only */
    return st;
}

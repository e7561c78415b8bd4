#include "study/study.h"

void study_begin(struct study *s, const struct evaluate_options *o, const tuck_allocator *alloc)
{
    *s = (struct study){.o = o};
    mem_init(&s->mem, alloc);
}

static void unlink_live(struct evaluation *e)
{
    struct evaluation **at = &e->study->live;

    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
}

void study_give_back(struct evaluation *e)
{
    assert(e == NULL || e->refs > 0);
    if (e == NULL || --e->refs > 0)
        return;
    tuck_allocator alloc = e->mem.alloc;
    if (e->study != NULL)
        unlink_live(e);
    evaluate_end(e);
    alloc.resize(alloc.ctx, e, sizeof(*e), 0);
}

struct evaluation *study_keep(struct evaluation *e)
{
    e->refs++;
    return e;
}

static void hold(struct evaluation **place, struct evaluation *e)
{
    struct evaluation *was = *place;

    *place = study_keep(e);
    study_give_back(was);
}

void study_best(struct study *s, struct evaluation *e)
{
    hold(&s->best, e);
}

void study_end(struct study *s)
{
    study_give_back(s->first);
    study_give_back(s->last);
    study_give_back(s->best);
    for (struct evaluation *e = s->live; e != NULL; e = e->next)
        e->study = NULL;
    vec_free(&s->mem, &s->seen);
}

static struct evaluation *find(const struct study *s, uint64_t revision)
{
    struct evaluation *e = s->live;

    while (e != NULL && e->revision != revision)
        e = e->next;
    return e;
}

/* ---- new graphs ---- */

struct see {
    struct study *s;
    uint64_t revision;
};

static void do_see(void *arg)
{
    struct see *x = arg;

    vec_push(&x->s->mem, &x->s->seen, x->revision);
    x->s->work.graphs++;
}

/* Revisions increase, so a new one is usually the largest. */
static tuck_status see(struct study *s, uint64_t revision)
{
    struct see x = {s, revision};

    for (uint32_t i = s->seen.len; i-- > 0;)
        if (s->seen.at[i] == revision)
            return TUCK_OK;
    return mem_guard(&s->mem, do_see, &x) ? TUCK_OK : TUCK_ENOMEM;
}

static tuck_status evaluate(struct study *s, tuck_graph *g, tuck_diags *diags,
                            struct evaluation **out)
{
    struct evaluation *e = s->mem.alloc.resize(s->mem.alloc.ctx, NULL, 0, sizeof(*e));

    if (e == NULL)
        return TUCK_ENOMEM;
    struct evaluate_options o = *s->o;
    o.no_bounds = true;
    tuck_status st = evaluate_graph(g, &o, diags, e);
    assert(st != TUCK_OK || e->problem->n_op == e->program->n_op);
    s->work.lowered++;
    s->work.problems += e->problem != NULL;
    s->work.simulated += st == TUCK_OK;
    e->revision = g->revision;
    e->refs = 1;
    if (st != TUCK_OK) {
        study_give_back(e);
        return st;
    }
    e->study = s;
    e->next = s->live;
    s->live = e;
    *out = e;
    return TUCK_OK;
}

tuck_status study_get(struct study *s, tuck_graph *g, tuck_diags *diags, struct evaluation **out)
{
    struct evaluation *e = find(s, g->revision);

    if (e != NULL) {
        s->work.reused++;
        e->refs++;
    } else {
        tuck_status st = see(s, g->revision);
        if (st == TUCK_OK)
            st = evaluate(s, g, diags, &e);
        if (st != TUCK_OK)
            return st;
    }
    if (s->first == NULL)
        hold(&s->first, e);
    hold(&s->last, e);
    *out = e;
    return TUCK_OK;
}

tuck_status study_bounds(struct study *s, const tuck_graph *g, struct evaluation *e)
{
    return e->has_order ? TUCK_OK : evaluate_bounds(g, s->o, true, e);
}

tuck_status study_bound(struct study *s, const tuck_graph *g, struct evaluation *e)
{
    return e->has_bounds ? TUCK_OK : evaluate_bounds(g, s->o, false, e);
}

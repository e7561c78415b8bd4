#include "study/study.h"

void study_begin(struct study *s, const struct evaluate_options *o, const tuck_allocator *alloc)
{
    *s = (struct study){.o = o, .alloc = *alloc};
}

void study_give_back(struct evaluation *e)
{
    assert(e == NULL || e->refs > 0);
    if (e == NULL || --e->refs > 0)
        return;
    tuck_allocator alloc = e->mem.alloc;
    evaluate_end(e);
    alloc.resize(alloc.ctx, e, sizeof(*e), 0);
}

void study_end(struct study *s)
{
    for (uint32_t i = 0; i < STUDY_KEEPS; i++)
        study_give_back(s->kept[i]);
}

/* Puts e first and drops the least recently used one. */
static void keep(struct study *s, struct evaluation *e, uint32_t from)
{
    for (uint32_t i = from; i > 0; i--)
        s->kept[i] = s->kept[i - 1];
    s->kept[0] = e;
}

tuck_status study_get(struct study *s, tuck_graph *g, tuck_diags *diags, struct evaluation **out)
{
    for (uint32_t i = 0; i < STUDY_KEEPS; i++) {
        struct evaluation *e = s->kept[i];
        if (e == NULL || e->revision != g->revision)
            continue;
        s->counts.reused++;
        keep(s, e, i);
        e->refs++;
        *out = e;
        return TUCK_OK;
    }
    struct evaluation *e = s->alloc.resize(s->alloc.ctx, NULL, 0, sizeof(*e));
    if (e == NULL)
        return TUCK_ENOMEM;
    s->counts.graphs++;
    struct evaluate_options o = *s->o;
    o.no_bounds = true;
    tuck_status st = evaluate_graph(g, &o, diags, e);
    assert(st != TUCK_OK || e->problem->n_op == e->program->n_op);
    e->revision = g->revision;
    e->refs = 1;
    if (st != TUCK_OK) {
        study_give_back(e);
        return st;
    }
    study_give_back(s->kept[STUDY_KEEPS - 1]);
    keep(s, e, STUDY_KEEPS - 1);
    e->refs++;
    *out = e;
    return TUCK_OK;
}

tuck_status study_bounds(struct study *s, const tuck_graph *g, struct evaluation *e)
{
    return e->has_bounds ? TUCK_OK : evaluate_bounds(g, s->o, e);
}

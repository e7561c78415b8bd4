#include "study/runner_up.h"

tuck_status runner_up_offer(struct runner_up *x, const tuck_graph *g, int64_t ps, int64_t peak)
{
    if (x->g != NULL && ps >= x->ps)
        return TUCK_OK;
    tuck_graph *copy = graph_clone(g);
    if (copy == NULL)
        return TUCK_ENOMEM;
    graph_free(x->g);
    *x = (struct runner_up){copy, ps, peak};
    return TUCK_OK;
}

static tuck_status judge(struct study *with, tuck_graph *g, int64_t *ps)
{
    struct evaluation *e = NULL;
    tuck_status st = study_get(with, g, NULL, &e);

    if (st == TUCK_OK)
        *ps = e->time.makespan;
    study_give_back(e);
    return st;
}

tuck_status runner_up_judge(const struct runner_up *x, const struct study *study,
                            tuck_graph *winner, int64_t winner_ps, struct report_contended *out)
{
    struct machine machine = *study->o->machine;
    struct evaluate_options o = *study->o;
    struct study with;

    *out = (struct report_contended){.ps = winner_ps, .next_ps = x->g != NULL ? x->ps : -1};
    if (machine.contention)
        return TUCK_OK;
    machine.contention = true;
    o.machine = &machine;
    study_begin(&with, &o, &study->mem.alloc);
    tuck_status st = judge(&with, winner, &out->with_ps);
    if (st == TUCK_OK && x->g != NULL)
        st = judge(&with, x->g, &out->next_with_ps);
    study_end(&with);
    out->judged = st == TUCK_OK;
    return st == TUCK_ENOMEM ? st : TUCK_OK;
}

void runner_up_end(struct runner_up *x)
{
    graph_free(x->g);
    x->g = NULL;
}

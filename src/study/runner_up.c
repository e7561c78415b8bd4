#include "study/runner_up.h"

tuck_status runner_up_offer(struct runner_up *x, const tuck_graph *g, struct evaluation *e)
{
    if (x->g != NULL && e->time.makespan >= x->e->time.makespan)
        return TUCK_OK;
    tuck_graph *copy = graph_clone(g);
    if (copy == NULL)
        return TUCK_ENOMEM;
    struct evaluation *kept = study_keep(e);
    runner_up_end(x);
    *x = (struct runner_up){copy, kept};
    return TUCK_OK;
}

tuck_status runner_up_judge(const struct runner_up *x, const struct study *study,
                            const tuck_graph *winner, struct evaluation *e,
                            struct report_contended *out)
{
    *out = (struct report_contended){.ps = e->time.makespan,
                                     .next_ps = x->g != NULL ? x->e->time.makespan : -1};
    if (study->o->machine->contention)
        return TUCK_OK;
    tuck_status st = evaluate_contended(winner, study->o, e, &out->with_ps);
    if (st == TUCK_OK && x->g != NULL)
        st = evaluate_contended(x->g, study->o, x->e, &out->next_with_ps);
    out->judged = st == TUCK_OK;
    return st;
}

void runner_up_end(struct runner_up *x)
{
    graph_free(x->g);
    study_give_back(x->e);
    *x = (struct runner_up){.g = NULL};
}

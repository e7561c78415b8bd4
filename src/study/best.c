#include "study/best.h"

#include "study/study.h"

void best_end(struct best *b)
{
    study_give_back(b->e);
    graph_free(b->g);
    tuck_report_free(b->report);
    *b = (struct best){.g = NULL};
}

tuck_status best_take(struct best *b, struct study *study, const struct stage *x)
{
    struct best next = {.ps = x->e->time.makespan, .peak = x->e->peak};
    tuck_status st = stage_report(x, study, &next.report);

    if (st != TUCK_OK)
        return st;
    next.g = graph_clone(x->g);
    if (next.g == NULL) {
        tuck_report_free(next.report);
        return TUCK_ENOMEM;
    }
    next.e = study_keep(x->e);
    best_end(b);
    *b = next;
    return TUCK_OK;
}

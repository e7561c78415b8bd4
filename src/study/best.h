/* The best results of a search so far. */
#ifndef TUCK_STUDY_BEST_H
#define TUCK_STUDY_BEST_H

#include "study/stage.h"

struct best {
    tuck_graph *g; /* NULL if there is none */
    tuck_report *report;
    struct evaluation *e;
    int64_t ps, peak;
};

/* Puts x in its place. If memory runs out, it stays as it was. */
TUCK_MUST_CHECK tuck_status best_take(struct best *b, struct study *study, const struct stage *x);
void best_end(struct best *b);

/* How much slower than the fastest a result may be that has fewer bytes in flight for a shorter
 * time. */
static inline int64_t best_slack(const struct best *fastest)
{
    return fastest->ps / 1000;
}

/* Is the light one to be preferred? */
static inline bool best_is_light(const struct best *fastest, const struct best *light)
{
    return light->g != NULL && fastest->g != NULL &&
           light->ps - fastest->ps <= best_slack(fastest) && light->e->flight < fastest->e->flight;
}

#endif

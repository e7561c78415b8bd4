/* Why a collective is issued where it is: what the step and the peak would be at other places, all
 * else as it is. */
#ifndef TUCK_STUDY_ISSUE_PLACE_H
#define TUCK_STUDY_ISSUE_PLACE_H

#include "study/evaluate.h"

struct place {
    uint32_t before; /* the op that would follow it; the number of ops: the end */
    int64_t step_ps, peak;
};

struct places {
    bool known;               /* it can be moved alone, and nothing slows it down */
    bool others;              /* there is a place with another step or more memory */
    uint32_t same;            /* places with the same step at no more memory, its own included */
    struct place here, next;  /* its own; the best of the others */
    struct place early, late; /* right after what it needs; right before what needs it */
};

/* TUCK_ENOMEM or TUCK_OK. */
TUCK_MUST_CHECK tuck_status places_of(const struct evaluation *e, uint32_t op, bool keep_order,
                                      struct places *out);

#endif

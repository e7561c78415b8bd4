/* All-reduces that may be one kernel over symmetric memory. */
#ifndef TUCK_REWRITE_ONE_SHOT_H
#define TUCK_REWRITE_ONE_SHOT_H

#include "pass/pass.h"

extern const struct pass pass_one_shot_all_reduce;

struct one_shot_scan {
    struct pass_run *r;
    const int32_t *group; /* by node */
    uint32_t op;
    bool by_name; /* groups without symmetric memory, too: somebody vouches for them */
};

void one_shot_scan(struct one_shot_scan *s, struct pass_run *r);
/* Is n an all-reduce that may become one-shot? If it is an all-reduce that may not, *why is set. */
bool one_shot_may(struct one_shot_scan *s, uint32_t n, enum left_reason *why);

#endif

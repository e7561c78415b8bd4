/* Why a collective is in its bucket: the step with that bucket, without it, and with the others of
 * it only, each put in order anew. */
#ifndef TUCK_STUDY_BUCKET_WHY_H
#define TUCK_STUDY_BUCKET_WHY_H

#include "study/decision.h"

struct bucket_time {
    bool fits; /* into the memory of the decision */
    int64_t ps, peak;
};

struct bucket_why {
    uint32_t n;                 /* members; 0: it is in no bucket */
    struct bucket_time whole;   /* all buckets as they were decided */
    struct bucket_time apart;   /* each member of this one alone */
    struct bucket_time without; /* only this collective alone; n > 2 */
};

/* g: the original graph, with types. TUCK_EINVAL: the decision is for another one, or has buckets
 * that are no longer possible. TUCK_EIO: the observer wants to stop. */
TUCK_MUST_CHECK tuck_status bucket_why(const struct tuck_decision *d, const struct runner *r,
                                       const tuck_graph *g, const char *node, tuck_diags *diags,
                                       struct bucket_why *out);

#endif

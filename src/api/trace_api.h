/* The traces of a job, for the functions about them. */
#ifndef TUCK_API_TRACE_API_H
#define TUCK_API_TRACE_API_H

#include "job/trace_study.h"
#include "tuck_experimental.h"

struct tuck_traces {
    struct mem mem;
    struct arena arena;
    VEC(struct trace *) trace;
    struct arena kept;        /* of passed */
    VEC(const char *) passed; /* paths in folders that are no traces */
    struct trace_part *part;  /* NULL: not studied since the last file was added */
    uint32_t n_part, n_lost;
};

/* Fills in `part`. TUCK_EINVAL: there is no trace. */
TUCK_MUST_CHECK tuck_status traces_study(tuck_traces *t);

#endif

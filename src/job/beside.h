/* What kernels and transfers take from each other, by the intervals of a trace: how many times as
 * long each takes while the other is under way. */
#ifndef TUCK_JOB_BESIDE_H
#define TUCK_JOB_BESIDE_H

#include "job/trace_study.h"

/* One rank: when collectives are under way, and when something computes. A collective that waits
 * for other ranks is not: only its transfer counts, the end of it. */
struct beside_covers {
    struct trace_cover comm, compute;
};
void beside_covers(const struct trace_part *p, struct arena *a, struct beside_covers *out);

/* The part of its transfer, or of a kernel, during which the other kind is under way, 0 … 1. */
double beside_share(const struct trace_cover *c, int64_t start, int64_t end);

struct beside {
    double kernel, transfer;       /* how many times as long; 0: not known */
    uint32_t n_kernel, n_transfer; /* measured times that say so */
    double ranks;                  /* the same for kernels while all other ranks compute */
};

/* From this factor on, ranks share cores: three of them on two have 1.5. */
#define BESIDE_SHARED 1.25

/* Kernels of one name and shape, and transfers of one kind, group and size, do the same work; so
 * what they take longer, the more of their time the other is under way, is its doing. Traces of
 * several ranks must be matched. */
void beside_fit(const struct trace_part *part, uint32_t n, struct arena *a, struct beside *out);

/* The time that it would have taken alone, if the other was under way for that share of it. */
static inline double beside_alone(double time, double share, double factor)
{
    return factor > 1 ? time * (1 - (1 - 1 / factor) * share) : time;
}

/* By collective: the share of its time that is its own. Without a device the library has several
 * threads, which move the bytes of several collectives at once, while the simulated group moves one
 * after the other: of n at a time, each has an n-th of the time. */
double *beside_own(const struct trace_part *p, struct arena *a);

#endif

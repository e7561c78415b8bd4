/* What a collective holds up its group, what of that is waiting for other ranks, and laws of the
 * rest for collectives that a trace does not have. */
#ifndef TUCK_JOB_HOLD_H
#define TUCK_JOB_HOLD_H

#include "job/barrier.h"
#include "job/measured_cluster.h"

struct hold {
    int64_t from, end;
    /* Its first part: other ranks had not come yet. With the traces of all ranks only. */
    int64_t wait;
    int64_t lost; /* of that, nothing was done meanwhile */
};

/* By collective of the part. Without a device: from the moment that the host has started it, or
 * that the one before it is done, until the host that waits for it goes on. */
const struct hold *trace_holds(const struct trace_part *p, struct arena *a);

/* The largest of several sizes is this many times the smallest one, or no law of them is made for
 * smaller ones: times of a host vary too much. */
enum { HOLD_APART = 16 };

/* Makes the times of c's collectives what they hold up without waits, where the rank of the first
 * part has them: means over the middle half of its steps. Without a device, barriers tell the
 * latency that messages of about one size do not. */
void hold_laws(const struct trace_part *part, uint32_t n, struct tie_steps steps, struct arena *a,
               struct measured_cluster *c);

#endif

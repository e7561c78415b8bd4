/* Element by element reductions of several arrays, in the order of the group: the one place that
 * defines what a sum over ranks is (see transport.h). Used by all transports. */
#ifndef TUCK_RUN_COMM_REDUCE_H
#define TUCK_RUN_COMM_REDUCE_H

#include "run/comm/transport.h"

struct reduce_job {
    const void *const *src; /* [n_src], in the order of the group */
    int32_t n_src;
    void *const *dst; /* [n_dst], each gets the result; may be equal to a src, but not overlap */
    int32_t n_dst;
    size_t count;
    uint8_t dtype;
    uint8_t reduce;
    bool stream; /* stores that go around the caches: for results larger than those */
};

/* dtype and reduce must be a pair that comm_can_reduce() accepts. */
void reduce_run(const struct reduce_job *j);

/* memcpy, by stores that go around the caches if asked to. */
void copy_run(void *dst, const void *src, size_t bytes, bool stream);

#endif

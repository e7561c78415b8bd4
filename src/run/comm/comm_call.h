/* What all transports do with a call and with groups; plug-ins are linked with it, too. */
#ifndef TUCK_RUN_COMM_COMM_CALL_H
#define TUCK_RUN_COMM_COMM_CALL_H

#include "run/comm/transport.h"

/* Sets the message of a failure, always returns false. */
bool comm_fail(struct comm *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Is the call valid for this group and its members? If not, comm_error() says why. */
bool call_check(struct comm *c, const struct comm_call *call);

/* Elements of a part's in and out at this rank; 0 if they are not used. */
int64_t call_in_count(const struct comm *c, const struct comm_call *call,
                      const struct comm_part *p);
int64_t call_out_count(const struct comm *c, const struct comm_call *call,
                       const struct comm_part *p);

static inline bool kind_reduces(uint8_t kind)
{
    return kind == COMM_ALL_REDUCE || kind == COMM_REDUCE_SCATTER || kind == COMM_REDUCE;
}

/* A call that is kept until it is done: what it points to is copied, the label is not. Zeroed at
 * first; used again, it allocates only if more is needed. */
struct call_keep {
    struct comm_call call;
    struct comm_part *part, one;
    int64_t *split; /* in_split, then out_split */
    uint32_t part_cap, split_cap;
};
/* n: members of the group. A call without parts becomes a barrier: all make it, too. False: out of
 * memory. */
bool call_keep(struct call_keep *k, const struct comm_call *call, int32_t n);
void call_drop(struct call_keep *k);

/* "all_reduce 'grad_3'" into text. */
void call_describe(const struct comm_call *call, char *text, size_t size);

/* Adds a group to the table, or finds it there. -1: invalid members, or out of memory. *added says
 * which. */
int32_t groups_add(struct comm *c, const int32_t *member, int32_t n, bool *added);
void groups_free(struct comm *c);

#endif

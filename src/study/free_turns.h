/* The bound by messages that take turns.
 *
 * Those of one group follow each other on their channel, each with its latency, and nothing of a
 * message is there before all of it is. So whatever goes into one message, a step that takes V
 * leaves each byte until V minus what must come after it, and the channel must have time for all.
 * If bytes may go into any message, the best ones take those first that are due first: bytes of
 * two messages can change places. So the best cut of each kind (study/chain.h) says how much time
 * that is at least. The same holds against time, for what must come before.
 */
#ifndef TUCK_STUDY_FREE_TURNS_H
#define TUCK_STUDY_FREE_TURNS_H

#include "study/free_items.h"
#include "study/free_rates.h"

/* A collective that passes may merge with others of its key: kind, group and reduction. */
struct free_member {
    uint32_t item, group;
    str_id reduce_op;
    uint8_t coll;
    int64_t bytes;
    int64_t together; /* bytes of all that may be in one message with it, and its own */
};

struct free_members {
    struct free_member *at; /* sorted by key, group first */
    uint32_t n;
};

bool free_same_key(const struct free_member *x, const struct free_member *y);

/* After sides_find(). No order and no bucketing has a step under the result; 0: nothing is known,
 * or at least `known` is not exceeded. Sets *group to the group with the most. `most` is a step
 * that is possible. */
int64_t free_turns(const struct free_items *x, const struct free_rates *r,
                   const struct free_members *m, int64_t known, int64_t most, uint32_t *group);

#endif

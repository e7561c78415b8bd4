/* Which collectives of a kind go into one message, by when each is needed.
 *
 * The collectives of a group follow each other on its channel. A larger message has less latency,
 * but nothing of it is there before all of it is. A gather is needed when the compute gets to its
 * wait; a reduction can begin when the compute has made its operand, which is the same seen from
 * the end of the step. So a chain is cut such that nothing is late by more than it must be, and
 * then such that the channel is busy for as short as possible.
 */
#ifndef TUCK_STUDY_CHAIN_H
#define TUCK_STUDY_CHAIN_H

#include "study/evaluate.h"

enum { CHAIN_MOST = 1024 }; /* longer chains are not cut */

/* The least time of a message of at least so many bytes, a hundredth below the model at most. */
struct chain_times {
    int64_t *ps;
    uint32_t n;
};

/* Of up to `most` bytes; fit may be NULL. In the arena. */
void chain_times(struct chain_times *t, const struct machine *m, struct cost_shape shape,
                 tuck_coll coll, const struct cost_fit *fit, int64_t most, struct arena *a);
int64_t chain_ps(const struct chain_times *t, int64_t bytes);

struct chain {
    uint32_t n;           /* messages, at least one and at most CHAIN_MOST */
    const int64_t *bytes; /* sums of them must not overflow; NULL: see `grain` */
    int64_t grain;        /* all have as many bytes, and a bucket may have up to one less */
    const int64_t *due;   /* ps; ascending */
    const struct chain_times *times;
    double share;        /* how much longer each takes, because others are on the channel, too */
    int64_t most;        /* bytes of a bucket that has several members */
    const int64_t *room; /* the same for the bucket that begins at each; NULL: that is all */
    int64_t late; /* to be late by this is as good as not at all; INT64_MIN: less is better */
};

struct chain_cut;

/* In the arena; the arrays of c must live as long. */
struct chain_cut *chain_begin(const struct chain *c, struct arena *a);
/* For bounds: a byte may go into any bucket, and messages come in any sequence. The bytes that are
 * due first come first: as two bytes can change places, nothing is better. They are cut in grains;
 * a cut may be anywhere in one, so that a grain is due with its last byte. */
struct chain_cut *chain_of_bytes(uint32_t n, const int64_t *bytes, const int64_t *due,
                                 const struct chain_times *times, struct arena *a);
/* How late the latest message of the best cut is, in ps: no other cut of this sequence is better.
 * begins[i], if not NULL: a new bucket begins there. */
int64_t chain_best(struct chain_cut *x, bool *begins);
/* For how long the channel is busy at least if no message is later than that; INT64_MAX: one must
 * be. */
int64_t chain_busy(struct chain_cut *x, int64_t late);

#endif

/* A bound by collectives that come late.
 *
 * Let E be some collectives of a channel, and t when the first of them starts. All that this one
 * needs is computed by then. Any other collective of the channel either ran before, so that what it
 * needs is computed by t, too; or it runs later, so that the channel has its time to go after t.
 * Whatever is cheaper for each: no order and no bucketing is done before
 *
 *   the least work before one of E + the transfers of E
 *       + the sum over the others of min(work that only this one needs, its transfer)
 *
 * E are those with the most work before them. Gradients are the case it is made for: that of the
 * first layer comes last, and to compute others after it leaves their transfers for the end.
 */
#ifndef TUCK_SIM_EITHER_H
#define TUCK_SIM_EITHER_H

#include "sim/sides.h"

/* After sides_find(); 0 unless that was exact. Sets *channel to the one with the most. */
int64_t either_bound(const struct sides *s, struct arena *a, uint32_t *channel);

#endif

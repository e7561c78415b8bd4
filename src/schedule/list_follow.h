/* An order that is wanted, followed as far as memory allows. */
#ifndef TUCK_SCHEDULE_LIST_FOLLOW_H
#define TUCK_SCHEDULE_LIST_FOLLOW_H

#include "schedule/list_facts.h"
#include "schedule/remaining_peak.h"

/* Both orders have all ops; `front` are facts from the front. */
void list_follow(const struct op_facts *front, struct rest *rest, const uint32_t *wanted,
                 uint32_t *out);

#endif

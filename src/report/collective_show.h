/* Prints the cost of a collective on a cluster: a table that includes the alternatives, and
 * JSON. */
#ifndef TUCK_REPORT_COLLECTIVE_SHOW_H
#define TUCK_REPORT_COLLECTIVE_SHOW_H

#include "base/buf.h"

struct collective_answer {
    const tuck_cluster *cluster;
    const tuck_collective *q;
    const tuck_collective_cost *x; /* the answer to q */
};

void collective_table(const struct collective_answer *a, struct buf *out);
void collective_json(const struct collective_answer *a, struct buf *out);

#endif

/* The peak of a graph's storages, for descriptions of graphs that were not lowered. */
#ifndef TUCK_PLAN_STORAGE_PEAK_H
#define TUCK_PLAN_STORAGE_PEAK_H

#include "graph/storage.h"

struct storage_peak {
    int64_t peak;   /* bytes live at once if inputs are never freed */
    int64_t inputs; /* the inputs and attributes among them */
    uint32_t node;  /* at which node */
    size_t unknown; /* storages of unknown size, counted as 0 */
};

/* The peak of live storage in the order of the graph. Needs infer_graph(). `size` gives values to
 * sizes with symbols; NULL: those are unknown. */
void storage_peak(const tuck_graph *g, const struct storages *s, struct arena *a,
                  bool (*size)(void *ctx, sym_id v, int64_t *out), void *ctx,
                  struct storage_peak *out);

#endif

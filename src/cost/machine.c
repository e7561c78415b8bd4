#include "cost/machine.h"

void machine_init(struct machine *m, const tuck_cluster *c)
{
    *m = (struct machine){.cluster = c, .bandwidth = 1};
}

struct assume machine_symbols(const struct machine *m, struct fx_store *store)
{
    return (struct assume){.store = store, .given = m->hint, .n_given = m->n_hint};
}

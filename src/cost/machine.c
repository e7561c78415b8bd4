#include "cost/machine.h"

#include <string.h>

void machine_init(struct machine *m, const tuck_cluster *c)
{
    *m = (struct machine){.cluster = c, .bandwidth = 1};
}

bool group_is_listed(const char *const *list, size_t n, const char *group)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], "*") == 0 || strcmp(list[i], group) == 0)
            return true;
    return false;
}

bool machine_has_symm_mem(const struct machine *m, const char *group)
{
    return group_is_listed(m->symm_group, m->n_symm_group, group);
}

struct assume machine_symbols(const struct machine *m, struct fx_store *store)
{
    return (struct assume){.store = store, .given = m->hint, .n_given = m->n_hint};
}

#include "api/on_machine.h"

tuck_status on_machine_begin(struct on_machine *x, tuck_graph *g, const tuck_cluster *cluster,
                             const tuck_cost_options *cost, const tuck_hint *hints, size_t n_hints,
                             tuck_diags *diags)
{
    *x = (struct on_machine){.run = {.size = sizeof(x->run), .hints = hints, .n_hints = n_hints}};
    x->hints = (struct hints){.g = g, .run = &x->run};
    machine_init(&x->machine, cluster);
    tuck_status st = cost_options_take(&x->machine.cost, cost);
    if (st == TUCK_OK)
        st = hints_intern(&x->hints);
    if (st == TUCK_OK && cluster == NULL) {
        st = tuck_cluster_for_graph(g, &g->store->mem.alloc, diags, &x->made);
        x->machine.cluster = x->made;
    }
    x->machine.hint = x->hints.at;
    x->machine.n_hint = n_hints;
    return st;
}

void on_machine_end(struct on_machine *x)
{
    hints_free(&x->hints);
    tuck_cluster_free(x->made);
}

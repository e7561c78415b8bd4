/* Public functions about the cost of a graph. */
#include "base/options_take.h"
#include "cost/kernel_cost.h"
#include "tuck_experimental.h"

struct graph_cost {
    const tuck_graph *g;
    const tuck_cluster *c;
    struct cost_options options;
    struct mem mem;
    struct cost_run run;
    struct assume assume;
    int64_t *ps;
};

static void do_cost(void *p)
{
    struct graph_cost *a = p;

    cost_run_graph(&a->run, a->g);
    for_each_node (a->g, n) {
        struct cost_part part;
        cost_node(&a->run, n, &part);
        a->ps[n] = part.ps;
    }
}

tuck_status tuck_graph_cost(const tuck_graph *g, const tuck_cluster *c,
                            const tuck_cost_options *options, int64_t *ps_out)
{
    struct graph_cost a = {.g = g, .c = c, .ps = ps_out};
    tuck_cost_options o = {.size = sizeof(o)};

    if (g == NULL || c == NULL || ps_out == NULL ||
        options_take(&o, sizeof(o), options) != TUCK_OK || o.model < TUCK_MODEL_AUTO ||
        o.model > TUCK_MODEL_TORCH_OLD)
        return TUCK_EINVAL;
    a.options = (struct cost_options){.collective = {.model = o.model},
                                      .profile = o.profile,
                                      .estimate = o.estimate,
                                      .estimate_ctx = o.estimate_ctx};
    for (uint32_t i = 0; i < tuck_graph_id_end(g); i++)
        ps_out[i] = 0;
    mem_init(&a.mem, &g->store->mem.alloc);
    a.assume = (struct assume){.store = g->store, .own = g->hint.at, .n_own = g->hint.len};
    cost_run_init(&a.run, &a.mem, c, &a.options, &a.assume);
    bool ok = mem_guard(&a.mem, do_cost, &a);
    cost_run_done(&a.run);
    return ok ? TUCK_OK : TUCK_ENOMEM;
}

bool tuck_node_takes_time(const tuck_graph *g, tuck_node n)
{
    return tuck_node_kind(g, n) != 0 && !cost_takes_none(g, n.id);
}

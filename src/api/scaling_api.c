/* Scaling curves: a graph with a growing number of ranks in some of its groups. */
#include "api/api.h"
#include "api/simulate_api.h"
#include "report/scaling_show.h"

/* each point has twice as many ranks as the last */
enum { RANKS_MOST = 1 << 24, POINTS_MOST = 26 };

struct tuck_scaling {
    struct mem mem;
    size_t n;
    tuck_scaling_point point[POINTS_MOST];
};

void tuck_scaling_options_init(tuck_scaling_options *o)
{
    *o = (tuck_scaling_options){.size = sizeof(*o), .from = 1, .to = 1};
}

/* ---- a graph that grows ---- */

static size_t largest_group(const tuck_graph *g)
{
    size_t largest = 0;

    for (size_t k = 1; k < tuck_graph_group_count(g); k++)
        if (tuck_graph_group_size(g, k) > tuck_graph_group_size(g, largest))
            largest = k;
    return largest;
}

static tuck_status check_groups(const tuck_graph *g, const char *const *groups, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool found = false;
        for (size_t k = 0; groups[i] != NULL && k < tuck_graph_group_count(g) && !found; k++)
            found = strcmp(groups[i], tuck_graph_group_name(g, k)) == 0;
        if (!found)
            return TUCK_EINVAL;
    }
    return TUCK_OK;
}

static tuck_status set_sizes(tuck_graph *g, const char *const *groups, size_t n, int64_t ranks)
{
    tuck_status st = TUCK_OK;

    if (groups == NULL && tuck_graph_group_count(g) > 0)
        return tuck_graph_set_group(g, tuck_graph_group_name(g, largest_group(g)), ranks, NULL,
                                    NULL);
    for (size_t i = 0; i < n && st == TUCK_OK; i++)
        st = tuck_graph_set_group(g, groups[i], ranks, NULL, NULL);
    return st;
}

tuck_status tuck_graph_grow(const tuck_graph *g, const char *const *groups, size_t n_groups,
                            int64_t ranks, tuck_graph **out)
{
    tuck_graph *copy = NULL;

    if (g == NULL || out == NULL || (groups == NULL && n_groups > 0) || ranks < 1 ||
        ranks > RANKS_MOST)
        return TUCK_EINVAL;
    tuck_status st = check_groups(g, groups, n_groups);
    if (st == TUCK_OK)
        st = tuck_graph_copy(g, &copy);
    if (st == TUCK_OK)
        st = set_sizes(copy, groups, n_groups, ranks);
    if (st == TUCK_OK)
        *out = copy;
    else
        tuck_graph_free(copy);
    return st;
}

/* ---- the curve ---- */

static tuck_status add_point(tuck_scaling *x, const tuck_graph *original, const tuck_machine *m,
                             const tuck_scaling_options *o, int64_t ranks, tuck_diags *diags)
{
    tuck_scaling_point *p = &x->point[x->n];
    tuck_graph *g = NULL;
    tuck_simulation *s = NULL;
    tuck_bound bound;
    tuck_status st = tuck_graph_grow(original, o->groups, o->n_groups, ranks, &g);

    if (st == TUCK_OK)
        st = tuck_graph_simulate(g, m, diags, &s);
    if (st == TUCK_OK) {
        tuck_simulation_times(s, &p->times);
        tuck_simulation_bound(s, &bound);
        p->ranks = ranks;
        p->bound_ps = bound.any_ps;
        x->n++;
        if (o->point != NULL && !o->point(o->ctx, ranks, s))
            st = TUCK_EIO;
    }
    tuck_simulation_free(s);
    tuck_graph_free(g);
    return st;
}

tuck_status tuck_graph_scale(const tuck_graph *g, const tuck_machine *m,
                             const tuck_scaling_options *options, tuck_diags *diags,
                             tuck_scaling **out)
{
    tuck_scaling_options o;
    tuck_status st = TUCK_OK;

    tuck_scaling_options_init(&o);
    if (g == NULL || out == NULL || options_take(&o, sizeof(o), options) != TUCK_OK || o.from < 1 ||
        o.to < o.from || o.to > RANKS_MOST)
        return TUCK_EINVAL;
    struct mem mem = {.alloc = g->store->mem.alloc};
    tuck_scaling *x = mem.alloc.resize(mem.alloc.ctx, NULL, 0, sizeof(*x));
    if (x == NULL)
        return TUCK_ENOMEM;
    *x = (tuck_scaling){.n = 0};
    mem_init(&x->mem, &mem.alloc);
    for (int64_t ranks = o.from; ranks <= o.to && st == TUCK_OK; ranks *= 2)
        st = add_point(x, g, m, &o, ranks, diags);
    if (st == TUCK_OK)
        *out = x;
    else
        tuck_scaling_free(x);
    return st;
}

void tuck_scaling_free(tuck_scaling *x)
{
    if (x == NULL)
        return;
    struct mem m = x->mem;
    mem_free(&m, x, sizeof(*x));
}

size_t tuck_scaling_count(const tuck_scaling *x)
{
    return x != NULL ? x->n : 0;
}

bool tuck_scaling_at(const tuck_scaling *x, size_t i, tuck_scaling_point *out)
{
    if (i >= tuck_scaling_count(x) || out == NULL)
        return false;
    *out = x->point[i];
    return true;
}

static void print(struct buf *b, const tuck_print_options *how, const void *arg)
{
    const tuck_scaling *x = arg;

    if (how->form == TUCK_PRINT_JSON)
        scaling_json(x->point, x->n, b);
    else
        scaling_table(x->point, x->n, b);
}

tuck_status tuck_scaling_print(const tuck_scaling *x, const tuck_print_options *how,
                               tuck_write_fn write, void *ctx)
{
    return x ? api_print(&x->mem.alloc, how, write, ctx, print, x) : TUCK_EINVAL;
}

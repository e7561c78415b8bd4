#include "api/machine_api.h"

#include "api/api.h"
#include "api/simulate_api.h"
#include "base/json.h"
#include "cost/assumed.h"

void tuck_machine_init(tuck_machine *m)
{
    *m = (tuck_machine){.size = sizeof(*m), .bandwidth = 1};
}

const char *tuck_cluster_contention(const tuck_cluster *c)
{
    for (int k = 0; k < TUCK_OTHER_COLLECTIVE; k++)
        if (c->slowdown.len > 0 && c->transfer_slowdown[k] > 0)
            return "links are shared; kernels and collectives slow each other down by the cluster "
                   "file's factors";
    return c->slowdown.len > 0 ? "links are shared; kernels slow down next to collectives by the "
                                 "cluster file's factors"
           : c->beside > 0
               ? "links are shared; kernels take 1.189 times as long next to a collective "
                 "(assumed, "
                 "from a published mean; \"slowdown\" of a cluster file gives it)"
               : "links are shared; how kernels slow down next to collectives is not known for "
                 "this machine (\"slowdown\" of a cluster file gives it)";
}

/* ---- assumptions ---- */

struct tuck_assumptions {
    struct mem mem;
    struct arena arena;
    struct cost_assumed *row;
    tuck_assumption *at;
    uint32_t n;
};

struct find_args {
    const tuck_graph *g;
    const tuck_cluster *c;
    struct tuck_assumptions *a;
};

static void do_find(void *arg)
{
    struct find_args *x = arg;
    struct tuck_assumptions *a = x->a;

    a->n = cost_assumed_find(x->g, x->c, &a->arena, &a->row);
    a->at = arena_array(&a->arena, tuck_assumption, a->n + 1);
    for (uint32_t i = 0; i < a->n; i++)
        a->at[i] = (tuck_assumption){(tuck_assumed)a->row[i].what, a->row[i].name, a->row[i].n};
}

tuck_status tuck_graph_assumptions(const tuck_graph *g, const tuck_cluster *c,
                                   tuck_assumptions **out)
{
    if (g == NULL || c == NULL || out == NULL)
        return TUCK_EINVAL;
    struct mem m = {.alloc = g->store->mem.alloc};
    tuck_assumptions *a = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*a));
    if (a == NULL)
        return TUCK_ENOMEM;
    *a = (tuck_assumptions){.n = 0};
    mem_init(&a->mem, &m.alloc);
    arena_init(&a->arena, &a->mem);
    struct find_args x = {g, c, a};
    if (!mem_guard(&a->mem, do_find, &x)) {
        tuck_assumptions_free(a);
        return TUCK_ENOMEM;
    }
    *out = a;
    return TUCK_OK;
}

void tuck_assumptions_free(tuck_assumptions *a)
{
    if (a == NULL)
        return;
    struct mem m = a->mem;
    arena_destroy(&a->arena);
    mem_free(&m, a, sizeof(*a));
}

size_t tuck_assumptions_count(const tuck_assumptions *a)
{
    return a ? a->n : 0;
}

const tuck_assumption *tuck_assumptions_at(const tuck_assumptions *a, size_t i)
{
    return i < tuck_assumptions_count(a) ? &a->at[i] : NULL;
}

static void print(struct buf *b, const tuck_print_options *how, const void *arg)
{
    const tuck_assumptions *a = arg;
    struct json_out j;

    if (how->form != TUCK_PRINT_JSON) {
        cost_assumed_table(b, a->row, a->n, false);
        return;
    }
    json_begin(&j, b);
    json_open(&j, NULL, '{');
    json_schema(&j, 1);
    cost_assumed_json(&j, a->row, a->n, false);
    json_close(&j, '}');
    json_end(&j);
}

tuck_status tuck_assumptions_print(const tuck_assumptions *a, const tuck_print_options *how,
                                   tuck_write_fn write, void *ctx)
{
    return a ? api_print(&a->mem.alloc, how, write, ctx, print, a) : TUCK_EINVAL;
}

/* ---- from the public struct ---- */

static bool makes_sense(const tuck_machine *m)
{
    for (size_t i = 0; i < m->n_symm_groups; i++)
        if (m->symm_groups == NULL || m->symm_groups[i] == NULL)
            return false;
    return (m->n_hints == 0 || m->hints != NULL) && m->model >= TUCK_MODEL_AUTO &&
           m->model <= TUCK_MODEL_TORCH_OLD && m->bandwidth >= 0 && m->bandwidth <= 1e6 &&
           (unsigned)m->contention <= TUCK_LINKS_SHARED && (unsigned)m->unknown <= TUCK_REFUSE;
}

struct hint_args {
    struct given_machine *x;
    const tuck_machine *m;
    tuck_graph *g;
};

/* The graph's own values, then the caller's: later ones win. */
static void do_hints(void *arg)
{
    struct hint_args *a = arg;
    struct given_machine *x = a->x;

    size_t own = a->g->hint.len;

    x->hint = mem_resize(x->mem, NULL, 0, (own + a->m->n_hints) * sizeof(*x->hint));
    x->n_hint = own + a->m->n_hints;
    for (size_t i = 0; i < own; i++)
        x->hint[i] = a->g->hint.at[i];
    for (size_t i = own; i < x->n_hint; i++) {
        const tuck_hint *h = &a->m->hints[i - own];
        x->hint[i] = (struct fx_hint){str_intern(&a->g->store->str, h->symbol, strlen(h->symbol)),
                                      h->value};
    }
    x->machine.hint = x->hint;
    x->machine.n_hint = x->n_hint;
}

/* Adds an error for each group and each loop that nothing is known about. */
static tuck_status refuse_assumed(const tuck_graph *g, const tuck_cluster *c, tuck_diags *diags)
{
    tuck_assumptions *a;
    tuck_status st = tuck_graph_assumptions(g, c, &a);

    if (st != TUCK_OK)
        return st;
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->at[i].what == TUCK_ASSUMED_BRANCH)
            continue;
        st = TUCK_EINVAL;
        if (diags == NULL)
            continue;
        if (a->at[i].what == TUCK_ASSUMED_TRIPS)
            diag_add(diags, TUCK_ERROR, NOWHERE, NULL,
                     "how often the loop '%s' runs is unknown, and nothing may be assumed",
                     a->at[i].name);
        else
            diag_add(diags, TUCK_ERROR, NOWHERE, NULL,
                     "the size of group '%s' is unknown, and none may be assumed", a->at[i].name);
    }
    tuck_assumptions_free(a);
    return st;
}

tuck_status machine_need_times(struct given_machine *x, tuck_graph *g, tuck_diags *diags)
{
    tuck_status st = tuck_graph_infer(g, TUCK_TRUST_ANNOTATIONS, diags);

    if (st == TUCK_OK && x->machine.cluster == NULL) {
        st = tuck_cluster_for_graph(g, &x->mem->alloc, diags, &x->cluster);
        x->machine.cluster = x->cluster;
    }
    if (st == TUCK_OK && x->machine.strict)
        st = refuse_assumed(g, x->machine.cluster, diags);
    return st == TUCK_OK ? laws_fit(&x->machine, g) : st;
}

static tuck_status fill(struct given_machine *x, const tuck_machine *m, tuck_graph *g)
{
    struct hint_args h = {x, m, g};

    machine_init(&x->machine, m->cluster);
    x->machine.cost = (struct cost_options){.collective = {.model = m->model},
                                            .profile = m->profile,
                                            .estimate = m->estimate,
                                            .estimate_ctx = m->estimate_ctx};
    if (m->like != NULL)
        x->machine.cost.laws = m->like->given->machine.cost.laws;
    if (m->bandwidth > 0)
        x->machine.bandwidth = m->bandwidth;
    x->machine.contention = m->contention == TUCK_LINKS_SHARED;
    x->machine.strict = m->unknown == TUCK_REFUSE;
    x->machine.symm_group = m->symm_groups;
    x->machine.n_symm_group = m->n_symm_groups;
    return g->hint.len + m->n_hints == 0 || mem_guard(x->mem, do_hints, &h) ? TUCK_OK : TUCK_ENOMEM;
}

tuck_status machine_take(const tuck_machine *given, tuck_graph *g, enum machine_need need,
                         tuck_diags *diags, struct given_machine **out)
{
    struct mem *mem = &g->store->mem;
    tuck_machine m;

    tuck_machine_init(&m);
    if (options_take(&m, sizeof(m), given) != TUCK_OK || !makes_sense(&m))
        return TUCK_EINVAL;
    struct given_machine *x = mem->alloc.resize(mem->alloc.ctx, NULL, 0, sizeof(*x));
    if (x == NULL)
        return TUCK_ENOMEM;
    *x = (struct given_machine){.mem = mem, .refs = 1};
    tuck_status st = fill(x, &m, g);
    if (st == TUCK_OK && need == MACHINE_TIMES)
        st = machine_need_times(x, g, diags);
    if (st == TUCK_OK)
        *out = x;
    else
        machine_drop(x);
    return st;
}

void machine_drop(struct given_machine *x)
{
    if (x == NULL || --x->refs > 0)
        return;
    if (x->hint != NULL)
        mem_free(x->mem, x->hint, x->n_hint * sizeof(*x->hint));
    tuck_cluster_free(x->cluster);
    mem_free(x->mem, x, sizeof(*x));
}

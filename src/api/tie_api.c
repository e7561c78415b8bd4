/* A graph and the trace of its run, in the public interface. */
#include "api/api.h"
#include "api/machine_api.h"
#include "api/trace_api.h"
#include "cost/profile.h"
#include "job/code_order.h"
#include "job/measured_cluster.h"
#include "job/tie_show.h"
#include "op/ops.h"
#include "study/evaluate.h"

struct tuck_tie {
    struct mem mem;
    struct arena arena;
    struct tie x;
    tuck_profile *profile;
    tuck_cluster *cluster; /* NULL: the device is not known */
};

void tuck_tie_options_init(tuck_tie_options *o)
{
    *o = (tuck_tie_options){.size = sizeof(*o)};
}

void tuck_tie_free(tuck_tie *t)
{
    if (t == NULL)
        return;
    struct mem m = t->mem;

    tuck_profile_free(t->profile);
    tuck_cluster_free(t->cluster);
    arena_destroy(&t->arena);
    mem_free(&m, t, sizeof(*t));
}

struct tie_args {
    tuck_tie *tie;
    const tuck_traces *traces;
    const struct program *p;
    const struct machine *machine;
    struct tie_steps steps;
    struct tie_kernel *kernel;
    uint32_t n_kernel;
    bool found, reordered, has_tables;
    struct buf profile, cluster;
};

/* With contention the simulation adds what kernels and transfers take from each other: times are
 * then without it. */
static struct beside beside_of(const struct tie_args *x, const struct measured_cluster *c)
{
    struct beside b = c->beside;

    if (b.kernel == 0) /* what the simulation assumes, if the trace does not say */
        b.kernel = cluster_slowdown(x->machine->cluster, op_class_name(OP_GEMM), TUCK_ALL_REDUCE);
    return b;
}

static void do_tie(void *arg)
{
    struct tie_args *x = arg;
    struct measured_cluster c;
    struct beside beside = {.kernel = 0};

    bool known = measured_cluster(x->traces->part, x->traces->n_part, NULL, 0, &x->tie->arena, &c);
    if (known && x->machine->contention)
        beside = beside_of(x, &c);
    x->found = tie_graph(&x->traces->part[0], x->p, x->steps, x->kernel, x->n_kernel,
                         x->machine->contention ? &beside : NULL, &x->tie->arena, &x->tie->x);
    if (!x->found)
        return;
    x->tie->x.reordered = x->reordered;
    tie_profile(&x->tie->x, x->p, &x->profile);
    if (!known)
        return;
    c.launch_us = (double)x->tie->x.gap / PS_PER_US;
    if (x->tie->x.loop_gbps > 0 && (c.dram_gbps <= 0 || !x->traces->part[0].device))
        c.dram_gbps = x->tie->x.loop_gbps;
    x->has_tables = x->machine->contention && c.n_coll > 0;
    if (x->has_tables)
        hold_laws(x->traces->part, x->traces->n_part, x->steps, &x->tie->arena, &c);
    x->tie->x.one_size = x->has_tables && c.one_size;
    x->tie->x.round_us = c.round_us;
    measured_cluster_write(&c, &x->cluster);
}

static tuck_status make(struct tie_args *x, tuck_diags *diags)
{
    tuck_tie *t = x->tie;
    const tuck_allocator *alloc = &t->mem.alloc;

    buf_init(&x->profile, &t->mem);
    buf_init(&x->cluster, &t->mem);
    tuck_status st = mem_guard(&t->mem, do_tie, x) ? TUCK_OK : TUCK_ENOMEM;
    if (st == TUCK_OK && !x->found) {
        diag_add(diags, TUCK_ERROR, NOWHERE,
                 "the graph must be the one that ran; tuck trace shows what did",
                 "%s: nothing in the trace has the collectives or products of this graph",
                 x->traces->part[0].t->file);
        st = TUCK_EINVAL;
    }
    if (st == TUCK_OK)
        st = tuck_profile_read_text(x->profile.at, x->profile.len, "<measured>", alloc, NULL,
                                    &t->profile);
    if (st == TUCK_OK && x->has_tables)
        profile_leave_laws(t->profile);
    if (st == TUCK_OK && x->cluster.len > 0)
        st = tuck_cluster_read_text(x->cluster.at, x->cluster.len, "<measured>", alloc, NULL,
                                    &t->cluster);
    buf_destroy(&x->profile);
    buf_destroy(&x->cluster);
    return st;
}

static tuck_status new_tie(const tuck_allocator *alloc, tuck_tie **out)
{
    struct mem m;

    mem_init(&m, alloc);
    tuck_tie *t = *out = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*t));
    if (t == NULL)
        return TUCK_ENOMEM;
    *t = (tuck_tie){.mem = m};
    arena_init(&t->arena, &t->mem);
    return TUCK_OK;
}

/* ---- the order of the code ---- */

struct order_args {
    tuck_graph *g;
    const struct program *p;
    const struct tie_args *x;
    struct arena a;
    bool moved;
};

static void do_order(void *arg)
{
    struct order_args *o = arg;
    uint32_t *order = arena_array(&o->a, uint32_t, o->p->n_op + 1);

    o->moved = code_order(o->p, o->x->kernel, o->x->n_kernel, &o->a, order);
    if (o->moved)
        lower_apply(o->g, o->p, order, &o->a);
}

/* The program of the graph; if Inductor's code has another order, of the graph in that order. */
static tuck_status lower_as_run(tuck_graph *g, struct given_machine *given, struct tie_args *x,
                                tuck_diags *diags, struct program **p)
{
    struct lower_options lower;
    struct order_args o = {.g = g, .x = x};

    lower_defaults(&lower);
    lower.machine = &given->machine;
    tuck_status st = evaluate_lower(g, &lower, &given->machine, diags, p);
    if (st != TUCK_OK || x->n_kernel == 0)
        return st;
    o.p = *p;
    arena_init(&o.a, &g->store->mem);
    bool ok = mem_guard(&g->store->mem, do_order, &o);
    arena_destroy(&o.a);
    if (!ok || !o.moved)
        return ok ? TUCK_OK : TUCK_ENOMEM;
    program_free(*p);
    *p = NULL;
    x->reordered = true;
    return evaluate_lower(g, &lower, &given->machine, diags, p);
}

tuck_status tuck_traces_tie(tuck_traces *t, tuck_graph *g, const tuck_machine *m,
                            const tuck_tie_options *options, tuck_diags *diags, tuck_tie **out)
{
    struct tie_args x = {.traces = t};
    tuck_tie_options o;
    struct given_machine *given = NULL;
    struct program *p = NULL;

    if (t == NULL || g == NULL || out == NULL)
        return TUCK_EINVAL;
    tuck_tie_options_init(&o);
    if (options != NULL)
        o = *options;
    tuck_status st = traces_study(t);
    if (st == TUCK_OK)
        st = new_tie(&t->mem.alloc, &x.tie);
    if (st == TUCK_OK && o.provenance != NULL)
        st = tie_read_kernels(o.provenance, &x.tie->arena, diags, &x.kernel, &x.n_kernel);
    if (st == TUCK_OK)
        st = machine_take(m, g, MACHINE_TIMES, diags, &given);
    if (st == TUCK_OK)
        st = lower_as_run(g, given, &x, diags, &p);
    if (st == TUCK_OK) {
        x.p = p;
        x.machine = &given->machine;
        x.steps = (struct tie_steps){o.every, o.rest};
        st = make(&x, diags);
    }
    program_free(p);
    machine_drop(given);
    if (st == TUCK_OK)
        *out = x.tie;
    else
        tuck_tie_free(x.tie);
    return st;
}

tuck_profile *tuck_tie_profile(const tuck_tie *t)
{
    return t->profile;
}

tuck_cluster *tuck_tie_cluster(const tuck_tie *t)
{
    return t->cluster;
}

struct print_args {
    const tuck_tie *t;
    const tuck_times *times;
};

static void print(struct buf *b, const tuck_print_options *how, const void *arg)
{
    const struct print_args *x = arg;

    if (how->form == TUCK_PRINT_JSON)
        tie_json(&x->t->x, x->times, b);
    else
        tie_table(&x->t->x, x->times, b);
}

tuck_status tuck_tie_print(const tuck_tie *t, const tuck_simulation *s,
                           const tuck_print_options *how, tuck_write_fn write, void *ctx)
{
    tuck_times times;
    struct print_args x = {t, s != NULL ? &times : NULL};

    if (t == NULL)
        return TUCK_EINVAL;
    if (s != NULL)
        tuck_simulation_times(s, &times);
    return api_print(&t->mem.alloc, how, write, ctx, print, &x);
}

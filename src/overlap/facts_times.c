/* How long nodes take: what the machine says of each by itself, and what PyTorch says of those
 * that Inductor is going to fuse. */
#include "overlap/overlap.h"

#include <math.h>

#include "cost/machine.h"
#include "op/ops.h"

static const double ps_per_ms = 1e9, ns_per_ms = 1e6;

struct pricing {
    struct facts *f;
    struct machine machine;
    struct mem mem;
    struct cost_run run;
    bool *told;
    uint32_t unknown; /* place of one whose time is needed, and which has none */
};

/* What a message of nothing takes: merging with another saves that much. */
static double latency_ms(struct pricing *p, const struct cost_part *part)
{
    const tuck_graph *g = p->f->r->g;
    tuck_coll kind = coll_modelled(part->coll);

    if (!isnan(p->f->o->latency_ms))
        return p->f->o->latency_ms;
    if (kind == 0 || part->group < 0)
        return 0;
    double us = cost_collective_us(p->run.c, p->run.group[part->group], kind, 0,
                                   &p->run.options.collective);
    const struct cost_fit *fit = laws_find(&p->run.options.laws, kind,
                                           graph_str(g, g->group.at[part->group].name));
    return (fit != NULL ? fit_us(fit, 0, us) : us) / 1000;
}

static void do_price(void *arg)
{
    struct pricing *p = arg;
    struct facts *f = p->f;
    const tuck_graph *g = f->r->g;
    struct cost_part part;

    cost_run_graph(&p->run, g);
    for (uint32_t i = 0; i < f->n; i++) {
        uint32_t n = f->id.at[i];

        f->ms[i] = -1;
        if (node_at(g, n)->kind != TUCK_CALL_FUNCTION || (f->flag[i] & IS_WAIT))
            continue;
        cost_node(&p->run, n, &part);
        p->told[i] = part.bound == BOUND_PROFILE || part.bound == BOUND_CALLER;
        if (part.bound != BOUND_NOTHING && part.ps >= 0)
            f->ms[i] = (double)part.ps / ps_per_ms;
        if ((f->flag[i] & (IS_START | IS_COMPUTE)) && f->ms[i] < 0) {
            f->ms[i] = 0;
            if (part.bound != BOUND_NOTHING)
                p->unknown = i;
        }
        if (f->flag[i] & IS_START) {
            struct coll *c = &f->coll[f->coll_of[i]];
            c->ms = c->exposed = f->ms[i];
            c->latency = latency_ms(p, &part);
        }
    }
}

tuck_status facts_times(struct facts *f)
{
    struct pass_run *r = f->r;
    struct pricing p = {.f = f, .unknown = NO_PLACE};
    enum cost_bound bound;

    if (r->machine == NULL || r->machine->cluster == NULL)
        return pass_fail(r, 0, "no machine: its times decide the order (--cluster)");
    p.machine = *r->machine;
    f->ms = arena_array(f->a, double, f->n);
    p.told = arena_zeroed(f->a, f->n);
    mem_init(&p.mem, &r->mem->alloc);
    tuck_status st = laws_fit(&p.machine, r->g);
    cost_run_init(&p.run, &p.mem, p.machine.cluster, &p.machine.cost, &r->assume);
    if (st == TUCK_OK && !mem_guard(&p.mem, do_price, &p))
        st = TUCK_ENOMEM;
    cost_run_done(&p.run);
    if (st == TUCK_ENOMEM)
        mem_exhausted(r->mem);
    if (st == TUCK_OK && p.unknown != NO_PLACE) {
        uint32_t n = f->id.at[p.unknown];
        return pass_fail(r, n, "the time of '%s' is not known, and it decides the order",
                         graph_str(r->g, node_at(r->g, n)->name));
    }
    if (st == TUCK_OK && f->o->enable_fusion_regions) {
        const double much = 1e12, ps_per_ns = 1e3;
        double ns = (double)cost_kernel_ps(p.machine.cluster, DTYPE_NONE, 0, much, &bound) /
                    ps_per_ns;
        facts_regions(f, much / ns, f->o->compat == COMPAT_TORCH ? NULL : p.told);
    }
    return st;
}

/* ---- regions that Inductor is going to fuse ---- */

enum { CAT_MAX = 8 };

struct regions {
    struct facts *f;
    uint32_t *parent; /* union-find; NO_PLACE: not fused */
    uint32_t *works;  /* by root: nodes that are more than views */
};

static bool is_fused(const struct facts *f, uint32_t i)
{
    const tuck_graph *g = f->r->g;
    const struct fx_node *x = node_at(g, f->id.at[i]);
    const struct op_row *row = op_at(x->op);
    const tuck_value *list = NULL;

    if (x->kind != TUCK_CALL_FUNCTION || x->op == 0 || !(row->flags & OP_F_LOWERED) ||
        row->cls == OP_HOP)
        return false;
    if (row->cls == OP_COPY)
        list = call_operand(g, x, 0);
    return list == NULL || !value_is_container(list) || list->a <= CAT_MAX;
}

static bool is_view(const struct op_row *row)
{
    return row->cls == OP_VIEW && !(row->flags & OP_F_ODD_TAGS);
}

static uint32_t root(struct regions *r, uint32_t i)
{
    while (r->parent[i] != i) {
        r->parent[i] = r->parent[r->parent[i]];
        i = r->parent[i];
    }
    return i;
}

/* A dimension of stride 0 repeats one element, and sizes without a value count as none. */
static double tensor_bytes(struct facts *f, type_id id)
{
    const struct fx_store *store = f->r->g->store;
    const struct type *t = type_at(&store->type, id);

    if (id == 0 || t->kind != TYPE_TENSOR)
        return 0;
    double bytes = dtype_at((enum dtype)t->dtype)->bytes;
    for (uint32_t k = 0; k < t->n; k++) {
        int64_t size, stride;
        if (t->strided && sym_as_int(&store->sym, t->stride[k], &stride) && stride == 0)
            continue;
        bytes *= assume_value(&f->r->assume, t->size[k], &size) ? (double)size : 0;
    }
    return bytes;
}

static double bytes_of(struct facts *f, uint32_t i)
{
    type_id id = node_type(f->r->g, f->id.at[i]);
    const struct type *t = type_at(&f->r->g->store->type, id);
    double sum = tensor_bytes(f, id);

    for (uint32_t k = 0; id != 0 && t->kind == TYPE_LIST && k < t->n; k++)
        sum += tensor_bytes(f, t->item[k]);
    return sum;
}

/* Of a node of a region: what it reads from outside, and what others outside read of it. */
static double crossing(struct regions *r, uint32_t i)
{
    struct facts *f = r->f;
    uint32_t mine = root(r, i);
    double sum = 0;
    bool outside = false;

    for_fan(&f->in, i, k)
    {
        uint32_t from = f->in.to[k];
        if (r->parent[from] == NO_PLACE || root(r, from) != mine)
            sum += bytes_of(f, from);
    }
    for_fan(&f->out, i, k)
        outside |= r->parent[f->out.to[k]] == NO_PLACE || root(r, f->out.to[k]) != mine;
    return sum + (outside ? bytes_of(f, i) : 0);
}

/* By place: equal for what is fused and has nothing else between it, in the list that torch looks
 * at: what merged first has not sorted it yet. */
static uint32_t *number_runs(struct regions *r)
{
    struct facts *f = r->f;
    const tuck_graph *g = f->r->g;
    bool loose = f->o->compat == COMPAT_TORCH && g->loose_at == g->revision && g->loose.len == f->n;
    uint32_t *run_of = arena_array(f->a, uint32_t, f->n), run = 0;

    for (uint32_t k = 0; k < f->n; k++) {
        uint32_t i = loose ? f->place.at[g->loose.at[k]] : k;

        r->parent[i] = is_fused(f, i) ? i : NO_PLACE;
        run += r->parent[i] == NO_PLACE;
        run_of[i] = run;
    }
    return run_of;
}

void facts_regions(struct facts *f, double gbps, const bool *told)
{
    struct regions r = {.f = f};

    r.parent = arena_array(f->a, uint32_t, f->n);
    r.works = arena_zeroed(f->a, f->n * sizeof(*r.works));
    const uint32_t *run_of = number_runs(&r);
    for (uint32_t i = 0; i < f->n; i++)
        for (uint32_t k = f->in.start[i]; r.parent[i] != NO_PLACE && k < f->in.start[i + 1]; k++)
            if (r.parent[f->in.to[k]] != NO_PLACE && run_of[f->in.to[k]] == run_of[i])
                r.parent[root(&r, i)] = root(&r, f->in.to[k]);
    for (uint32_t i = 0; i < f->n; i++)
        if (r.parent[i] != NO_PLACE && !is_view(op_at(node_op(f->r->g, f->id.at[i]))))
            r.works[root(&r, i)]++;
    for (uint32_t i = 0; i < f->n; i++)
        if (r.parent[i] != NO_PLACE && r.works[root(&r, i)] >= 2 && (told == NULL || !told[i]))
            f->ms[i] = crossing(&r, i) / gbps / ns_per_ms; /* in PyTorch's steps, for its bits */
}

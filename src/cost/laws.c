#include "cost/laws.h"

#include <math.h>
#include <stdlib.h>

#include "cost/machine.h"
#include "cost/profile.h"

/* A measured collective. */
struct measured {
    struct cost_point at;
    double modelled; /* us */
    uint8_t coll;
    const char *group;
};

struct fitting {
    struct cost_options *o;
    const tuck_graph *g;
    struct mem mem;
    struct cost_run run;
    struct assume assume;
    VEC(struct measured) m;
    VEC(struct cost_point) point;
};

const struct cost_fit *laws_find(const struct cost_laws *l, int coll, const char *group)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (l->at[i].coll == coll && strcmp(l->at[i].group, group) == 0)
            return &l->at[i];
    return NULL;
}

double fit_us(const struct cost_fit *f, double bytes, double modelled)
{
    return f->factor > 0 ? f->factor * modelled : law_time(&f->law, bytes);
}

static int by_case(const void *a, const void *b)
{
    const struct measured *x = a, *y = b;

    if (x->coll != y->coll)
        return x->coll < y->coll ? -1 : 1;
    int name = strcmp(x->group, y->group);
    if (name != 0)
        return name;
    return (x->at.bytes > y->at.bytes) - (x->at.bytes < y->at.bytes);
}

static void gather(struct fitting *f)
{
    for_each_node (f->g, n) {
        const struct str *name = str_at(&f->g->store->str, node_at(f->g, n)->name);
        struct cost_part part;
        int64_t ps;

        if (cost_coll_of(op_at(node_op(f->g, n))) == 0 ||
            !profile_find(f->o->profile, name->at, name->len, &ps) || ps <= 0)
            continue;
        cost_node(&f->run, n, &part);
        if (part.ps <= 0 || part.group < 0 || part.bytes <= 0)
            continue;
        const char *group = graph_str(f->g, f->g->group.at[part.group].name);
        if (strlen(group) < LAWS_NAME)
            vec_push(&f->mem, &f->m,
                     ((struct measured){.at = {(double)part.bytes, (double)ps / PS_PER_US},
                                        .modelled = (double)part.ps / PS_PER_US,
                                        .coll = part.coll,
                                        .group = group}));
    }
    if (f->m.len > 0)
        qsort(f->m.at, f->m.len, sizeof(*f->m.at), by_case);
}

/* Points of one size are replaced by their mean. */
static void merge_sizes(struct fitting *f, uint32_t from, uint32_t to)
{
    f->point.len = 0;
    for (uint32_t i = from, k; i < to; i = k) {
        double sum = 0;
        for (k = i; k < to && f->m.at[k].at.bytes == f->m.at[i].at.bytes; k++)
            sum += f->m.at[k].at.us;
        vec_push(&f->mem, &f->point,
                 ((struct cost_point){f->m.at[i].at.bytes, sum / (double)(k - i)}));
    }
}

static void fit_case(struct fitting *f, uint32_t from, uint32_t to)
{
    struct cost_laws *l = &f->o->laws;
    const struct measured *first = &f->m.at[from];

    if (l->n == LAWS_MOST)
        return;
    merge_sizes(f, from, to);
    struct cost_fit *x = &l->at[l->n++];
    *x = (struct cost_fit){.coll = first->coll, .n = f->point.len};
    memcpy(x->group, first->group, strlen(first->group) + 1);
    if (f->point.len == 1)
        x->factor = f->point.at[0].us / first->modelled;
    else
        x->law = law_fit(f->point.at, f->point.len);
    for (uint32_t i = from; i < to; i++) {
        double us = fit_us(x, f->m.at[i].at.bytes, f->m.at[i].modelled);
        x->residual = fmax(x->residual, fabs(us / f->m.at[i].at.us - 1));
    }
}

static void do_fit(void *arg)
{
    struct fitting *f = arg;

    cost_run_graph(&f->run, f->g);
    gather(f);
    for (uint32_t i = 0, k; i < f->m.len; i = k) {
        for (k = i + 1; k < f->m.len && f->m.at[k].coll == f->m.at[i].coll &&
                        strcmp(f->m.at[k].group, f->m.at[i].group) == 0;)
            k++;
        fit_case(f, i, k);
    }
}

tuck_status laws_fit(struct machine *m, const tuck_graph *g)
{
    struct cost_options *o = &m->cost;
    struct fitting f = {.o = o, .g = g};
    /* for sizes, and for a single point */
    struct cost_options model = {.collective = o->collective};

    if (o->profile == NULL || o->laws.n > 0 || !profile_has_laws(o->profile))
        return TUCK_OK;
    mem_init(&f.mem, &g->store->mem.alloc);
    f.assume = machine_symbols(m, g->store);
    cost_run_init(&f.run, &f.mem, m->cluster, &model, &f.assume);
    bool ok = mem_guard(&f.mem, do_fit, &f);
    vec_free(&f.mem, &f.m);
    vec_free(&f.mem, &f.point);
    cost_run_done(&f.run);
    return ok ? TUCK_OK : TUCK_ENOMEM;
}

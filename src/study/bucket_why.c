#include "study/bucket_why.h"

#include <stdio.h>

#include "schedule/schedule.h"
#include "study/pass_table.h"
#include "study/stage.h"

static const uint32_t no_bucket = UINT32_MAX;

struct why {
    const struct tuck_decision *d;
    const struct runner *r;
    const tuck_graph *g;
    struct program_digest places;
    tuck_diags *diags;
    int64_t limit;
    uint32_t bucket, member; /* which are asked for */
    uint32_t n_done;
};

static const char *name_at(const struct why *x, uint32_t place)
{
    return graph_str(x->g, node_at(x->g, x->places.node[place])->name);
}

/* ---- the buckets ---- */

struct text {
    const struct why *x;
    struct mem mem;
    struct buf buf;
    const struct decision_bucket *b;
    uint32_t skip; /* this member; no_bucket: none */
};

static void do_text(void *arg)
{
    struct text *t = arg;

    buf_init(&t->buf, &t->mem);
    buf_str(&t->buf, "nodes=");
    for (uint32_t i = 0; i < t->b->n; i++)
        if (i != t->skip)
            buf_printf(&t->buf, "%s%s", t->buf.at[t->buf.len - 1] == '=' ? "" : ":",
                       name_at(t->x, t->b->member[i]));
    buf_chr(&t->buf, '\0');
}

static tuck_status merge(const struct why *x, tuck_graph *g, const struct decision_bucket *b,
                         uint32_t skip, tuck_report *report)
{
    struct text t = {.x = x, .b = b, .skip = skip};
    struct pipeline p;

    mem_init(&t.mem, &g->store->mem.alloc);
    pipeline_init(&p, &all_passes, &g->store->mem.alloc);
    tuck_status st = mem_guard(&t.mem, do_text, &t) ? TUCK_OK : TUCK_ENOMEM;
    if (st == TUCK_OK)
        st = pipeline_add_whole(&p, "merge_bucket", t.buf.at, NULL, x->diags);
    if (st == TUCK_OK)
        st = runner_step(x->r, &p.step.at[0], g, report, x->diags);
    pipeline_destroy(&p);
    buf_destroy(&t.buf);
    return st;
}

/* All buckets of the decision, but for this one (apart) or this member of it (without). */
static tuck_status merge_all(struct why *x, tuck_graph *g, bool apart, bool without)
{
    tuck_report *report = report_new(&g->store->mem.alloc);
    tuck_status st = report != NULL ? TUCK_OK : TUCK_ENOMEM;

    for (uint32_t i = 0; i < x->d->bucket.len && st == TUCK_OK; i++) {
        if (!observe(&x->r->observer, "bucket", x->n_done++, false, g))
            st = TUCK_EIO;
        else if (i != x->bucket || !apart)
            st = merge(x, g, &x->d->bucket.at[i], i == x->bucket && without ? x->member : no_bucket,
                       report);
    }
    tuck_report_free(report);
    return st;
}

/* ---- their order ---- */

static double spare(const struct why *x, const struct stage *at)
{
    return ((double)x->limit + 0.5) / (double)at->e->peak - 1;
}

static tuck_status next(const struct why *x, const struct stage *from, const struct pass *pass,
                        struct stage *to)
{
    double share = from->e->peak < x->limit ? spare(x, from) : 0;

    return stage_next(x->r, from, pass, share > 0 ? "list_peak_memory_budget" : NULL, share,
                      x->diags, to);
}

static tuck_status arrange(const struct why *x, tuck_graph *g, struct bucket_time *out)
{
    struct stage first, least = {.from = NULL}, listed = {.from = NULL}, best = {.from = NULL};
    struct evaluation *e = NULL;
    tuck_status st = study_get(x->r->study, g, x->diags, &e);

    if (st != TUCK_OK)
        return st;
    stage_first(&first, g, e, NULL);
    const struct stage *from = &first;
    if (e->peak > x->limit) {
        st = stage_next_with(x->r, &first, &pass_reorder_for_peak_memory, "allow_more_exposed=True",
                             x->diags, &least);
        from = &least;
    }
    if (st == TUCK_OK)
        st = next(x, from, &pass_list_overlap, &listed);
    if (st == TUCK_OK)
        st = next(x, &listed, &pass_improve_order, &best);
    if (st == TUCK_OK)
        *out = (struct bucket_time){best.e->peak <= x->limit, best.e->time.makespan, best.e->peak};
    stage_end(&best);
    stage_end(&listed);
    stage_end(&least);
    study_give_back(e);
    return st;
}

static tuck_status weigh(struct why *x, bool apart, bool without, struct bucket_time *out)
{
    tuck_graph *g = graph_clone(x->g);

    if (g == NULL)
        return TUCK_ENOMEM;
    tuck_status st = merge_all(x, g, apart, without);
    if (st == TUCK_OK)
        st = arrange(x, g, out);
    graph_free(g);
    return st;
}

/* ---- the whole ---- */

static void find(struct why *x, const char *node)
{
    x->bucket = no_bucket;
    for (uint32_t i = 0; i < x->d->bucket.len; i++)
        for (uint32_t k = 0; k < x->d->bucket.at[i].n; k++)
            if (strcmp(name_at(x, x->d->bucket.at[i].member[k]), node) == 0) {
                x->bucket = i;
                x->member = k;
            }
}

static tuck_status set_limit(struct why *x)
{
    tuck_graph *g = graph_clone(x->g);
    struct evaluation *e = NULL;
    tuck_status st = g != NULL ? study_get(x->r->study, g, x->diags, &e) : TUCK_ENOMEM;

    if (st == TUCK_OK)
        x->limit = e->peak > x->d->peak ? e->peak : x->d->peak;
    study_give_back(e);
    graph_free(g);
    return st;
}

tuck_status bucket_why(const struct tuck_decision *d, const struct runner *r, const tuck_graph *g,
                       const char *node, tuck_diags *diags, struct bucket_why *out)
{
    struct why x = {.d = d, .r = r, .g = g, .diags = diags};
    tuck_status st = decision_check(d, g, diags);

    *out = (struct bucket_why){.n = 0};
    if (st != TUCK_OK)
        return st;
    st = program_digest_of(g, &x.places);
    if (st == TUCK_OK)
        find(&x, node);
    if (st == TUCK_OK && x.bucket != no_bucket) {
        out->n = d->bucket.at[x.bucket].n;
        st = set_limit(&x);
        if (st == TUCK_OK)
            st = weigh(&x, false, false, &out->whole);
        if (st == TUCK_OK)
            st = weigh(&x, true, false, &out->apart);
        if (st == TUCK_OK && out->n > 2)
            st = weigh(&x, false, true, &out->without);
    }
    program_digest_end(&x.places);
    return st;
}

/* Pipelines built step by step in the public interface. */
#include "api/pass_api.h"
#include "api/schedule_api.h"
#include "base/options_take.h"
#include "schedule/schedule.h"
#include "study/pass_table.h"

tuck_status tuck_pipeline_new(const tuck_allocator *alloc, tuck_pipeline **out)
{
    struct mem m;

    if (out == NULL)
        return TUCK_EINVAL;
    mem_init(&m, alloc);
    tuck_pipeline *p = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*p));
    if (p == NULL)
        return TUCK_ENOMEM;
    pipeline_init(&p->p, &all_passes, alloc);
    *out = p;
    return TUCK_OK;
}

tuck_status tuck_pipeline_add(tuck_pipeline *p, const char *pass, const char *options,
                              tuck_diags *diags)
{
    if (p == NULL || pass == NULL)
        return TUCK_EINVAL;
    return pipeline_add_whole(&p->p, pass, options ? options : "", NULL, diags);
}

/* ---- buckets by functions ---- */

tuck_status tuck_pipeline_add_text(tuck_pipeline *p, const char *text, size_t len, const char *name,
                                   tuck_diags *diags)
{
    if (p == NULL || text == NULL)
        return TUCK_EINVAL;
    return pipeline_parse(&p->p, text, len, name ? name : "", diags);
}

void tuck_bucket_options_init(tuck_bucket_options *rules)
{
    *rules = (tuck_bucket_options){.size = sizeof(*rules)};
}

tuck_status tuck_pipeline_add_bucket(tuck_pipeline *p, const char *pass, const char *options,
                                     const tuck_bucket_options *rules, tuck_diags *diags)
{
    tuck_bucket_options own;

    if (p == NULL || pass == NULL)
        return TUCK_EINVAL;
    tuck_bucket_options_init(&own);
    tuck_status st = options_take(&own, sizeof(own), rules);
    if (st != TUCK_OK)
        return st;
    struct bucket_rules kept = {own.cap_mb, own.filter, own.ctx};
    return pipeline_add_whole(&p->p, pass, options ? options : "", &kept, diags);
}

/* ---- functions as steps ---- */

struct append_args {
    tuck_pipeline *p;
    const char *name;
    tuck_pass_fn graph_fn;
    tuck_order_fn order_fn;
    void *ctx;
};

struct order_ctx {
    tuck_order_fn fn;
    void *ctx;
};

static tuck_status call_order(void *ctx, const struct problem *p, uint32_t *order,
                              tuck_diags *diags)
{
    const struct order_ctx *c = ctx;
    tuck_problem shown = problem_shown(p);

    return c->fn(c->ctx, &shown, order, diags);
}

static void do_append(void *arg)
{
    const struct append_args *x = arg;
    struct pipeline *p = &x->p->p;

    if (x->graph_fn != NULL) {
        pipeline_call(p, x->name, x->graph_fn, x->ctx);
        return;
    }
    struct order_ctx *c = arena_new(&p->arena, struct order_ctx);
    *c = (struct order_ctx){x->order_fn, x->ctx};
    schedule_append_call(p, x->name, &(struct order_call){.fn = call_order, .ctx = c});
}

static tuck_status append(struct append_args *x)
{
    bool whole = x->p != NULL && x->name != NULL && *x->name != '\0' &&
                 (x->graph_fn != NULL || x->order_fn != NULL);

    if (!whole)
        return TUCK_EINVAL;
    return mem_guard(&x->p->p.mem, do_append, x) ? TUCK_OK : TUCK_ENOMEM;
}

tuck_status tuck_pipeline_append(tuck_pipeline *p, const char *name, tuck_pass_fn fn, void *ctx)
{
    return append(&(struct append_args){.p = p, .name = name, .graph_fn = fn, .ctx = ctx});
}

tuck_status tuck_pipeline_append_order(tuck_pipeline *p, const char *name, tuck_order_fn fn,
                                       void *ctx)
{
    return append(&(struct append_args){.p = p, .name = name, .order_fn = fn, .ctx = ctx});
}

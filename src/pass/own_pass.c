/* Pipeline steps from the caller: functions of its own, and rules for bucketing. */
#include "pass/pass.h"

struct graph_call {
    tuck_pass_fn fn;
    void *ctx;
};

static bool is_status(tuck_status st)
{
    return st <= TUCK_OK && st >= TUCK_EEXEC;
}

/* The caller's function may leave anything behind, so the result is checked before anything else
 * uses it. */
static tuck_status check_result(struct pass_run *r, const char *name)
{
    tuck_status st = tuck_graph_lint(r->g, NULL);

    if (st != TUCK_ELINT)
        return st;
    st = tuck_graph_lint(r->g, r->diags);
    diag_add(r->diags, TUCK_ERROR, NOWHERE, NULL,
             "pass %s left an invalid graph; its changes are dropped", name);
    return st;
}

static tuck_status run_call(struct pass_run *r, const void *options)
{
    const struct graph_call *c = options;
    const char *name = r->report->name;
    uint64_t revision = r->g->revision;
    size_t errors = tuck_diags_errors(r->diags);
    tuck_status st = c->fn(c->ctx, r->g, r->diags);

    if (!is_status(st))
        st = TUCK_EINVAL;
    r->changed = r->g->revision != revision;
    if (st == TUCK_OK)
        return r->changed ? check_result(r, name) : TUCK_OK;
    if (st != TUCK_ENOMEM && tuck_diags_errors(r->diags) == errors)
        diag_add(r->diags, TUCK_ERROR, NOWHERE, NULL, "pass %s failed: %s", name,
                 tuck_status_text(st));
    return st;
}

void pipeline_call(struct pipeline *p, const char *name, tuck_pass_fn fn, void *ctx)
{
    struct pass *row = arena_new(&p->arena, struct pass);
    struct graph_call *call = arena_new(&p->arena, struct graph_call);

    assert(p->mem.trap != NULL);
    *call = (struct graph_call){fn, ctx};
    *row = (struct pass){.name = arena_str(&p->arena, name, strlen(name)),
                         .help = "a pass of the caller",
                         .needs = PASS_TYPES | PASS_NAMES,
                         .options_size = sizeof(*call),
                         .of_caller = true,
                         .on_graph = run_call};
    vec_push_in(&p->arena, &p->step, ((struct pipeline_step){row, call, ""}));
}

/* ---- steps of the table ---- */

struct add_args {
    struct pipeline *p;
    const char *pass, *options;
    const struct bucket_rules *rules;
    tuck_diags *diags;
    tuck_status status;
};

static void do_add(void *arg)
{
    struct add_args *x = arg;
    uint32_t first = x->p->step.len;

    x->status = pipeline_add(x->p, x->pass, x->options, NOWHERE, x->diags);
    if (x->status != TUCK_OK || x->rules == NULL)
        return;
    for (uint32_t i = first; i < x->p->step.len; i++) {
        struct pipeline_step *s = &x->p->step.at[i];

        if (!s->pass->takes_rules) {
            diag_add(x->diags, TUCK_ERROR, NOWHERE, NULL,
                     "pass %s has no buckets: it takes neither a cap nor a filter", s->pass->name);
            x->status = TUCK_EINVAL;
            return;
        }
        char *options = arena_alloc(&x->p->arena, s->pass->options_size);
        memcpy(options, s->options, s->pass->options_size);
        memcpy(options + s->pass->rules_at, x->rules, sizeof(*x->rules));
        s->options = options;
    }
}

tuck_status pipeline_add_whole(struct pipeline *p, const char *pass, const char *options,
                               const struct bucket_rules *rules, tuck_diags *diags)
{
    struct add_args x = {p, pass, options, rules, diags, TUCK_OK};
    uint32_t n_step = p->step.len;

    if (!mem_guard(&p->mem, do_add, &x))
        x.status = TUCK_ENOMEM;
    if (x.status != TUCK_OK)
        p->step.len = n_step; /* a list of passes may have been added in part */
    return x.status;
}

/* A pipeline step that is a caller's own function on orders. */
#include "schedule/step.h"

void schedule_call_own(struct schedule *s)
{
    const struct order_call *call = s->opt.call;
    size_t bytes = (size_t)s->p->n_op * sizeof(*s->order);
    uint32_t *order = arena_alloc(&s->arena, bytes);

    memcpy(order, s->order, bytes);
    s->call_status = call->fn(call->ctx, s->p, order, s->diags);
    s->call_is_order = schedule_is_valid(s->p, order, false, &s->arena);
    if (s->call_status == TUCK_OK && s->call_is_order)
        memcpy(s->order, order, bytes);
}

static tuck_status explain_failure(struct schedule *s, const char *name, size_t errors,
                                   tuck_diags *diags)
{
    tuck_status st = s->call_status;

    if (st == TUCK_OK && s->call_is_order)
        return TUCK_OK;
    if (st == TUCK_OK) {
        diag_add(diags, TUCK_ERROR, NOWHERE, NULL,
                 "pass %s left an invalid order: each op must occur once, after what it needs",
                 name);
        return TUCK_EINVAL;
    }
    if (st > TUCK_OK || st < TUCK_EEXEC)
        st = TUCK_EINVAL;
    if (st != TUCK_ENOMEM && tuck_diags_errors(diags) == errors)
        diag_add(diags, TUCK_ERROR, NOWHERE, NULL, "pass %s failed: %s", name,
                 tuck_status_text(st));
    return st;
}

static tuck_status run_call(struct schedule *s, const void *options, tuck_diags *diags)
{
    struct schedule_options before = s->opt;
    size_t errors = tuck_diags_errors(diags);

    s->opt = *(const struct schedule_options *)options;
    s->diags = diags;
    tuck_status st = schedule_run(s, s->opt.call->name, schedule_call_own);
    if (st == TUCK_OK)
        st = explain_failure(s, s->opt.call->name, errors, diags);
    s->opt = before;
    s->diags = NULL;
    return st;
}

void schedule_append_call(struct pipeline *p, const char *name, const struct order_call *call)
{
    struct pass *row = arena_new(&p->arena, struct pass);
    struct schedule_options *options = arena_new(&p->arena, struct schedule_options);
    struct order_call *kept = arena_new(&p->arena, struct order_call);

    assert(p->mem.trap != NULL);
    *kept = *call;
    kept->name = arena_str(&p->arena, name, strlen(name));
    schedule_defaults(options, false);
    options->call = kept;
    options->allow_more_exposed = true;
    *row = (struct pass){.name = kept->name,
                         .help = "a pass of the caller",
                         .options_size = sizeof(*options),
                         .of_caller = true,
                         .on_order = run_call};
    vec_push_in(&p->arena, &p->step, ((struct pipeline_step){row, options, ""}));
}

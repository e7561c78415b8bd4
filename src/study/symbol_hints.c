#include "study/symbol_hints.h"

#include "base/options_take.h"

static void do_intern(void *arg)
{
    struct hints *h = arg;
    struct strtab *t = &h->g->store->str;

    for (size_t i = 0; i < h->run->n_hints; i++) {
        const tuck_hint *x = &h->run->hints[i];
        h->at[i] = (struct fx_hint){str_intern(t, x->symbol, strlen(x->symbol)), x->value};
    }
}

tuck_status hints_intern(struct hints *h)
{
    const tuck_allocator *alloc = &h->g->store->mem.alloc;
    size_t bytes = h->run->n_hints * sizeof(*h->at);

    if (bytes == 0)
        return TUCK_OK;
    if (h->run->hints == NULL)
        return TUCK_EINVAL;
    h->at = alloc->resize(alloc->ctx, NULL, 0, bytes);
    if (h->at == NULL || !mem_guard(&h->g->store->mem, do_intern, h))
        return TUCK_ENOMEM;
    return TUCK_OK;
}

void hints_free(struct hints *h)
{
    mem_free(&h->g->store->mem, h->at, h->at ? h->run->n_hints * sizeof(*h->at) : 0);
    h->at = NULL;
}

tuck_status cost_options_take(struct cost_options *own, const tuck_cost_options *given)
{
    tuck_cost_options o = {.size = sizeof(o)};
    tuck_status st = options_take(&o, sizeof(o), given);

    if (st == TUCK_OK)
        *own = (struct cost_options){.collective = {.model = o.model},
                                     .profile = o.profile,
                                     .estimate = o.estimate,
                                     .estimate_ctx = o.estimate_ctx};
    return st;
}

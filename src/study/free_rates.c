#include "study/free_rates.h"

#include <math.h>

#include "study/rank_input.h"

void free_rates_begin(struct free_rates *r, const tuck_graph *g, const struct program *p,
                      const struct machine *m, const struct cost_laws *laws, struct arena *a)
{
    *r = (struct free_rates){.p = p, .m = m, .laws = laws, .g = g, .a = a};
    r->table = arena_zeroed(a, ((size_t)p->n_group + 1) * FREE_KINDS * sizeof(*r->table));
}

bool free_may_be_one_shot(const struct free_rates *r, uint32_t group, tuck_coll coll)
{
    return coll == TUCK_ALL_REDUCE &&
           machine_has_symm_mem(r->m, program_str(r->p, r->p->group[group].name));
}

static double rate_by(struct free_rates *r, struct rate_table **t, uint32_t group, tuck_coll coll,
                      uint8_t only, int64_t from, int64_t to)
{
    struct cost_choice how = r->m->cost.collective;

    if (*t == NULL) {
        how.only = only;
        *t = arena_array(r->a, struct rate_table, 1);
        rate_table_begin(*t, r->m->cluster, facts_shape(r->g, r->p, r->m->cluster, group), coll,
                         &how);
    }
    return cost_best_rate(*t, from, to) / r->m->bandwidth;
}

double free_rate(struct free_rates *r, uint32_t group, tuck_coll coll, int64_t from, int64_t to)
{
    const char *name = program_str(r->p, r->p->group[group].name);
    const struct cost_fit *fit = laws_find(r->laws, (int)coll, name);
    struct rate_table **t = &r->table[(size_t)group * FREE_KINDS]; /* the first: one-shot */
    double rate;

    /* In the fitted model a byte is cheapest in the largest message. */
    if (fit != NULL && !(fit->factor > 0))
        rate = fit_us(fit, (double)to, 0) / (double)to / r->m->bandwidth;
    else
        rate = rate_by(r, &t[coll], group, coll, 0, from, to) * (fit != NULL ? fit->factor : 1);
    if (free_may_be_one_shot(r, group, coll))
        rate = fmin(rate, rate_by(r, t, group, coll, TUCK_ALGO_ONE_SHOT, from, to));
    return rate;
}

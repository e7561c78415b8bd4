#include "study/free_rates.h"

#include "study/rank_input.h"

void free_rates_begin(struct free_rates *r, const tuck_graph *g, const struct program *p,
                      const struct machine *m, const struct cost_laws *laws, struct arena *a)
{
    *r = (struct free_rates){.p = p, .m = m, .laws = laws, .g = g, .a = a};
    r->table = arena_zeroed(a, ((size_t)p->n_group + 1) * FREE_KINDS * sizeof(*r->table));
}

double free_rate(struct free_rates *r, uint32_t group, tuck_coll coll, int64_t from, int64_t to)
{
    const char *name = program_str(r->p, r->p->group[group].name);
    const struct cost_fit *fit = laws_find(r->laws, (int)coll, name);
    struct rate_table **t = &r->table[(size_t)group * FREE_KINDS + (size_t)coll];

    /* In the fitted model a byte is cheapest in the largest message. */
    if (fit != NULL && !(fit->factor > 0))
        return fit_us(fit, (double)to, 0) / (double)to / r->m->bandwidth;
    if (*t == NULL) {
        struct cost_choice how = r->m->cost.collective;
        how.symmetric |= coll == TUCK_ALL_REDUCE; /* it may become one-shot */
        *t = arena_array(r->a, struct rate_table, 1);
        rate_table_begin(*t, r->m->cluster, facts_shape(r->g, r->p, r->m->cluster, group), coll,
                         &how);
    }
    return cost_best_rate(*t, from, to) / r->m->bandwidth * (fit != NULL ? fit->factor : 1);
}

#include "overlap/stable_sort.h"

static void reach(struct stable_sort *s)
{
    struct arena *a = s->f->a;

    while (s->part.len < s->f->id.len) {
        vec_push_in(a, &s->part, 0);
        vec_push_in(a, &s->ready, 0);
        vec_push_in(a, &s->seen, 0);
        vec_push_in(a, &s->first, NO_PLACE);
        vec_push_in(a, &s->last, NO_PLACE);
        vec_push_in(a, &s->next, NO_PLACE);
    }
}

/* The last one that is missing, each counted where it is first mentioned. */
static void look(struct stable_sort *s, uint32_t i, uint32_t *missing)
{
    if (s->seen.at[i] == s->looks)
        return;
    s->seen.at[i] = s->looks;
    if (s->part.at[i] == s->number && s->ready.at[i] != s->number)
        *missing = i;
}

static uint32_t last_missing(struct stable_sort *s, uint32_t i)
{
    const struct fx_node *x = node_at(s->f->r->g, s->f->id.at[i]);
    uint32_t missing = NO_PLACE;

    s->looks++;
    for (uint32_t k = 0; k < x->n_vals; k++)
        if (x->vals[k].kind == TUCK_V_NODE)
            look(s, s->f->place.at[x->vals[k].a], &missing);
    if (s->extra != NULL)
        for_edges(&s->extra->deps, i, k) look(s, s->extra->deps.item.at[k].to, &missing);
    return missing;
}

static void wait_for(struct stable_sort *s, uint32_t i, uint32_t missing)
{
    s->next.at[i] = NO_PLACE;
    if (s->first.at[missing] == NO_PLACE)
        s->first.at[missing] = i;
    else
        s->next.at[s->last.at[missing]] = i;
    s->last.at[missing] = i;
}

/* Those that waited come next, the first to wait first. */
static void wake(struct stable_sort *s, uint32_t i)
{
    uint32_t from = s->stack.len;

    for (uint32_t k = s->first.at[i]; k != NO_PLACE; k = s->next.at[k])
        vec_push_in(s->f->a, &s->stack, k);
    s->first.at[i] = NO_PLACE;
    for (uint32_t a = from, b = s->stack.len; a + 1 < b; a++) {
        uint32_t x = s->stack.at[a];
        s->stack.at[a] = s->stack.at[--b];
        s->stack.at[b] = x;
    }
}

bool stable_sort(struct stable_sort *s, const uint32_t *node, uint32_t n)
{
    reach(s);
    s->number++;
    s->out.len = s->stack.len = 0;
    for (uint32_t k = 0; k < n; k++) {
        s->part.at[node[k]] = s->number;
        s->first.at[node[k]] = NO_PLACE;
    }
    for (uint32_t k = n; k-- > 0;)
        vec_push_in(s->f->a, &s->stack, node[k]);
    while (s->stack.len > 0) {
        uint32_t i = s->stack.at[--s->stack.len], missing = last_missing(s, i);

        if (missing != NO_PLACE) {
            wait_for(s, i, missing);
            continue;
        }
        s->ready.at[i] = s->number;
        vec_push_in(s->f->a, &s->out, i);
        wake(s, i);
    }
    return s->out.len == n;
}

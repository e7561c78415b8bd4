#include "rewrite/stable_sort.h"

#define NOBODY UINT32_MAX

static void reach(struct stable_sort *s, uint32_t n_all)
{
    while (s->part.len < n_all) {
        vec_push_in(s->a, &s->part, 0);
        vec_push_in(s->a, &s->ready, 0);
        vec_push_in(s->a, &s->seen, 0);
        vec_push_in(s->a, &s->first, NOBODY);
        vec_push_in(s->a, &s->last, NOBODY);
        vec_push_in(s->a, &s->next, NOBODY);
    }
}

static uint32_t last_missing(struct stable_sort *s, uint32_t i)
{
    s->looks++;
    s->missing = NOBODY;
    s->operands(s, i);
    return s->missing;
}

static void wait_for(struct stable_sort *s, uint32_t i, uint32_t missing)
{
    s->next.at[i] = NOBODY;
    if (s->first.at[missing] == NOBODY)
        s->first.at[missing] = i;
    else
        s->next.at[s->last.at[missing]] = i;
    s->last.at[missing] = i;
}

/* Those that waited come next, the first to wait first. */
static void wake(struct stable_sort *s, uint32_t i)
{
    uint32_t from = s->stack.len;

    for (uint32_t k = s->first.at[i]; k != NOBODY; k = s->next.at[k])
        vec_push_in(s->a, &s->stack, k);
    s->first.at[i] = NOBODY;
    for (uint32_t a = from, b = s->stack.len; a + 1 < b; a++) {
        uint32_t x = s->stack.at[a];
        s->stack.at[a] = s->stack.at[--b];
        s->stack.at[b] = x;
    }
}

bool stable_sort(struct stable_sort *s, uint32_t n_all, const uint32_t *node, uint32_t n)
{
    reach(s, n_all);
    s->number++;
    s->out.len = s->stack.len = 0;
    for (uint32_t k = 0; k < n; k++) {
        s->part.at[node[k]] = s->number;
        s->first.at[node[k]] = NOBODY;
    }
    for (uint32_t k = n; k-- > 0;)
        vec_push_in(s->a, &s->stack, node[k]);
    while (s->stack.len > 0) {
        uint32_t i = s->stack.at[--s->stack.len], missing = last_missing(s, i);

        if (missing != NOBODY) {
            wait_for(s, i, missing);
            continue;
        }
        s->ready.at[i] = s->number;
        vec_push_in(s->a, &s->out, i);
        wake(s, i);
    }
    return s->out.len == n;
}

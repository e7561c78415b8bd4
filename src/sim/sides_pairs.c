#include <string.h>

#include "sim/sides_core.h"

struct pairs {
    const struct sides *s;
    struct waits waits;
    pair *bits;
    uint64_t *own;
};

static void pairs_begin(struct pairs *p, const struct sides *s, struct arena *a)
{
    *p = (struct pairs){.s = s, .waits = find_waits(s, a)};
    p->bits = arena_zeroed(a, s->n * sizeof(*p->bits));
    p->own = arena_zeroed(a, s->n * sizeof(*p->own));
}

/* Then the bits of every item from the first on say which of the pieces have ended before it. */
static void pairs_find(struct pairs *p, const struct piece *piece, uint32_t n)
{
    const struct sides *s = p->s;

    set_own(s, p->own, &p->waits, piece, n, true);
    memset(p->bits, 0, piece[0].item * sizeof(*p->bits));
    for (uint32_t v = piece[0].item; v < s->n; v++)
        gather(s->pred_at, s->pred, p->bits, p->own, v);
    set_own(s, p->own, &p->waits, piece, n, false);
}

void sides_apart(const struct sides *s, const uint32_t *first, const uint32_t *second, uint32_t n,
                 struct arena *a, bool *apart)
{
    struct pairs p;
    struct arena_mark mark = arena_mark(a);

    memset(apart, 0, n * sizeof(*apart));
    if (s->n > SIDES_EXACT)
        return;
    pairs_begin(&p, s, a);
    for (uint32_t i = 0, end; i < n; i = end) {
        struct piece piece[COLUMNS];
        uint32_t m = 0;

        for (end = i; end < n; end++) {
            if (m > 0 && piece[m - 1].item == first[end])
                continue;
            if (m == COLUMNS)
                break;
            assert_hot(m == 0 || piece[m - 1].item < first[end]);
            piece[m++] = (struct piece){.item = first[end]};
        }
        pairs_find(&p, piece, m);
        for (uint32_t k = i, column = 0; k < end; k++) {
            column += piece[column].item != first[k];
            apart[k] = (p.bits[second[k]][0] >> column & 1) != 0;
        }
    }
    arena_release(a, mark);
}

void sides_weigh_apart(const struct sides *s, const uint32_t *item, const int64_t *weight,
                       uint32_t n, struct arena *a, int64_t *sum)
{
    struct pairs p;
    struct arena_mark mark = arena_mark(a);

    memset(sum, 0, n * sizeof(*sum));
    if (s->n > SIDES_EXACT)
        return;
    pairs_begin(&p, s, a);
    for (uint32_t i = 0; i < n; i += COLUMNS) {
        struct piece piece[COLUMNS];
        uint32_t m = n - i < COLUMNS ? n - i : COLUMNS;

        for (uint32_t k = 0; k < m; k++)
            piece[k] = (struct piece){.item = item[i + k]};
        pairs_find(&p, piece, m);
        for (uint32_t j = i + 1; j < n; j++) {
            uint64_t before = j - i < COLUMNS ? ((uint64_t)1 << (j - i)) - 1 : UINT64_MAX;
            for (uint64_t set = p.bits[item[j]][0] & before; set != 0; set &= set - 1) {
                uint32_t k = i + (uint32_t)__builtin_ctzll(set);
                sum[k] += weight[j];
                sum[j] += weight[k];
            }
        }
    }
    arena_release(a, mark);
}

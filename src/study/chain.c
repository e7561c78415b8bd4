#include "study/chain.h"

#include <math.h>

static inline int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- times ---- */

enum { PER_OCTAVE = 64 };

static uint32_t index_of(int64_t bytes)
{
    return bytes > 1 ? (uint32_t)(log2((double)bytes) * PER_OCTAVE) : 0;
}

/* A time never decreases with the size between powers of two (cost/best_rate.c), so that it is no
 * less than that of the next smaller size of the table. */
void chain_times(struct chain_times *t, const struct machine *m, struct cost_shape shape,
                 tuck_coll coll, const struct cost_fit *fit, int64_t most, struct arena *a)
{
    t->n = index_of(most) + 1;
    t->ps = arena_array(a, int64_t, t->n);
    for (uint32_t i = t->n; i-- > 0;) {
        double bytes = floor(exp2((double)i / PER_OCTAVE));
        double us = cost_collective_us(m->cluster, shape, coll, (int64_t)bytes,
                                       &m->cost.collective);
        us = (fit != NULL ? fit_us(fit, bytes, us) : us) / m->bandwidth;
        t->ps[i] = (int64_t)(us * PS_PER_US);
        if (i + 1 < t->n && t->ps[i + 1] < t->ps[i])
            t->ps[i] = t->ps[i + 1];
    }
}

int64_t chain_ps(const struct chain_times *t, int64_t bytes)
{
    uint32_t i = index_of(bytes);

    return t->ps[i < t->n ? i : t->n - 1];
}

/* ---- one chain ---- */

struct chain_cut {
    struct chain c;
    struct arena *a;
    int64_t *took; /* of a bucket, by its first message and the number of others; see took_from() */
    int64_t *end;  /* [n + 1] when the first i messages can have arrived; INT64_MAX: too late */
    uint32_t *from; /* [n + 1] where the last bucket of them begins */
};

/* By the number of other messages in a bucket that begins at i. */
static int64_t *took_from(const struct chain_cut *x, uint32_t i)
{
    return x->c.bytes == NULL ? x->took : &x->took[(size_t)i * x->c.n];
}

static void find_times(struct chain_cut *x)
{
    const struct chain *c = &x->c;
    uint32_t rows = c->bytes == NULL ? 1 : c->n;

    x->took = arena_array(x->a, int64_t, (size_t)c->n * rows);
    for (uint32_t i = 0; i < rows; i++) {
        int64_t *took = took_from(x, i), sum = 0;
        int64_t most = c->room != NULL && c->room[i] < c->most ? c->room[i] : c->most;
        for (uint32_t k = 0; k < c->n - i; k++) {
            sum += c->bytes == NULL ? k > 0 ? c->grain : 0 : c->bytes[i + k];
            took[k] = k > 0 && sum > most ? INT64_MAX
                                          : (int64_t)((double)chain_ps(c->times, sum) * c->share);
        }
    }
}

/* Can all arrive without any being later than that? A bucket is needed with its first member. With
 * an earlier end nothing gets worse, so that one way for each number of messages is enough. */
static bool is_possible(struct chain_cut *x, int64_t late)
{
    uint32_t n = x->c.n;

    for (uint32_t i = 1; i <= n; i++)
        x->end[i] = INT64_MAX;
    x->end[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        const int64_t *took = took_from(x, i);
        int64_t end = x->end[i], limit = x->c.due[i] + late - end;
        if (end == INT64_MAX)
            continue;
        for (uint32_t k = 0; i + k < n && took[k] <= limit; k++)
            if (end + took[k] < x->end[i + k + 1]) {
                x->end[i + k + 1] = end + took[k];
                x->from[i + k + 1] = i;
            }
    }
    return x->end[n] != INT64_MAX;
}

struct chain_cut *chain_begin(const struct chain *c, struct arena *a)
{
    struct chain_cut *x = arena_new(a, struct chain_cut);

    *x = (struct chain_cut){.c = *c, .a = a};
    x->end = arena_array(a, int64_t, (size_t)c->n + 1);
    x->from = arena_array(a, uint32_t, (size_t)c->n + 1);
    find_times(x);
    return x;
}

struct chain_cut *chain_of_bytes(uint32_t n, const int64_t *bytes, const int64_t *due,
                                 const struct chain_times *times, struct arena *a)
{
    enum { GRAINS = 512 };
    int64_t *last = arena_array(a, int64_t, GRAINS), sum = 0, before = 0;
    uint32_t i = 0;

    for (uint32_t k = 0; k < n; k++)
        sum += bytes[k];
    for (uint32_t k = 0; k < GRAINS; k++) {
        while (i + 1 < n && before + bytes[i] < sum / GRAINS * (k + 1) + sum % GRAINS)
            before += bytes[i++];
        last[k] = due[i];
    }
    struct chain c = {.n = GRAINS,
                      .grain = sum / GRAINS,
                      .due = last,
                      .times = times,
                      .share = 1,
                      .most = INT64_MAX,
                      .late = INT64_MIN};
    return chain_begin(&c, a);
}

int64_t chain_busy(struct chain_cut *x, int64_t late)
{
    is_possible(x, late);
    return x->end[x->c.n];
}

int64_t chain_best(struct chain_cut *x, bool *begins)
{
    const struct chain *c = &x->c;
    int64_t least = c->late, most = -c->due[0];

    for (uint32_t i = 0; i < c->n; i++) {
        int64_t alone = took_from(x, i)[0];
        least = max64(least, alone - c->due[i]);
        most += alone;
    }
    most = max64(most, least);
    while (least < most) {
        int64_t middle = least + (most - least) / 2;
        if (is_possible(x, middle))
            most = middle;
        else
            least = middle + 1;
    }
    bool found = is_possible(x, most);
    assert(found);
    (void)found;
    for (uint32_t at = c->n; begins != NULL && at > 0; at = x->from[at])
        begins[x->from[at]] = true;
    return most;
}

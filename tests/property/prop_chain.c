/* Cutting a chain of messages: as good as the best of all its cuts, and the channel is busy for no
 * longer than it must be. Cutting its bytes is never worse than the best cut of any sequence. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "study/chain.h"
#include "support/problems.h"

enum { MOST = 7, TABLE = 64 * 20 };

static size_t n_failed, n_chains, n_cut, n_near;

struct messages {
    uint32_t n;
    int64_t bytes[MOST], due[MOST];
    struct chain_times times;
    int64_t most;
};

static void wrong(const char *what, int64_t is, int64_t should)
{
    if (n_failed++ < 10)
        printf("%s: %lld, should be %lld\n", what, (long long)is, (long long)should);
}

/* How late the latest is if these messages are sent in this sequence, and a new one begins where
 * the set has a bit. *busy: when the last has arrived. INT64_MAX: a bucket is too large. */
static int64_t late_of(const struct messages *m, const uint32_t *at, uint32_t set, int64_t *busy)
{
    int64_t late = INT64_MIN;

    *busy = 0;
    for (uint32_t i = 0, end; i < m->n; i = end) {
        int64_t sum = m->bytes[at[i]], due = m->due[at[i]];
        for (end = i + 1; end < m->n && !(set >> end & 1); end++) {
            sum += m->bytes[at[end]];
            due = m->due[at[end]] < due ? m->due[at[end]] : due;
        }
        if (end > i + 1 && sum > m->most)
            return INT64_MAX;
        *busy += chain_ps(&m->times, sum);
        late = *busy - due > late ? *busy - due : late;
    }
    return late;
}

struct least {
    int64_t late, busy; /* busy: of those that are no later than `within` */
    int64_t within;
};

static void all_cuts(const struct messages *m, const uint32_t *at, struct least *out)
{
    for (uint32_t set = 0; set < 1u << m->n; set += 2) {
        int64_t busy, late = late_of(m, at, set, &busy);
        out->late = late < out->late ? late : out->late;
        if (late <= out->within && busy < out->busy)
            out->busy = busy;
    }
}

static void all_sequences(const struct messages *m, uint32_t *at, uint32_t k, struct least *out)
{
    if (k == m->n)
        all_cuts(m, at, out);
    for (uint32_t i = k; i < m->n; i++) {
        uint32_t x = at[i];
        at[i] = at[k];
        at[k] = x;
        all_sequences(m, at, k + 1, out);
        at[k] = at[i];
        at[i] = x;
    }
}

static void check(struct rng *g, struct messages *m, struct arena *a)
{
    struct chain c = {.n = m->n,
                      .bytes = m->bytes,
                      .due = m->due,
                      .times = &m->times,
                      .share = 1,
                      .most = m->most,
                      .late = INT64_MIN};
    uint32_t at[MOST], set = 0;
    bool begins[MOST] = {false};
    struct chain_cut *x = chain_begin(&c, a);
    int64_t late = chain_best(x, begins), busy;
    struct least least = {INT64_MAX, INT64_MAX, late + rng_below(g, 200)};

    for (uint32_t i = 0; i < m->n; i++) {
        at[i] = i;
        set |= begins[i] ? 1u << i : 0;
    }
    if (late_of(m, at, set, &busy) != late)
        wrong("the cut that was found", late_of(m, at, set, &busy), late);
    all_cuts(m, at, &least);
    if (late != least.late)
        wrong("the latest", late, least.late);
    if (chain_busy(x, least.within) != least.busy)
        wrong("the channel", chain_busy(x, least.within), least.busy);
    if (chain_busy(x, late - 1) != INT64_MAX)
        wrong("earlier than possible", chain_busy(x, late - 1), INT64_MAX);
    n_chains++;
    n_cut += set != 1;
}

static void check_bytes(struct rng *g, const struct messages *m, struct arena *a)
{
    struct chain_cut *x = chain_of_bytes(m->n, m->bytes, m->due, &m->times, a);
    int64_t late = chain_best(x, NULL);
    struct least least = {INT64_MAX, INT64_MAX, late + rng_below(g, 2000)};
    uint32_t at[MOST];

    for (uint32_t i = 0; i < m->n; i++)
        at[i] = i;
    all_sequences(m, at, 0, &least);
    if (late > least.late)
        wrong("bytes are later than messages", late, least.late);
    if (least.busy != INT64_MAX && chain_busy(x, least.within) > least.busy)
        wrong("bytes keep the channel busy for longer", chain_busy(x, least.within), least.busy);
    n_near += (double)(least.late - late) <= 0.05 * (double)(least.late - m->due[0]);
}

/* Times with latency, sometimes with steps in them. */
static void draw_times(struct rng *g, int64_t *ps)
{
    int64_t now = 1 + rng_below(g, 400), slope = 1 + rng_below(g, 6);

    for (uint32_t i = 0; i < TABLE; i++) {
        ps[i] = now + slope * (int64_t)i * (int64_t)i / 4000;
        now += rng_below(g, 200) == 0 ? rng_below(g, 100) : 0;
    }
}

int main(void)
{
    struct rng g = {seed_of("prop_chain")};
    static int64_t ps[TABLE];
    struct mem mem;
    struct arena a;
    jmp_buf here;
#ifdef __SANITIZE_ADDRESS__ /* several times slower */
    size_t n = rounds(60);
#else
    size_t n = rounds(400);
#endif

    mem_init(&mem, NULL);
    arena_init(&a, &mem);
    mem.trap = &here;
    if (setjmp(here) != 0)
        return 2;
    for (size_t i = 0; i < n; i++) {
        struct messages m = {.n = 1 + rng_below(&g, i % 10 == 0 ? MOST : MOST - 2),
                             .times = {ps, TABLE}};
        struct arena_mark mark = arena_mark(&a);

        draw_times(&g, ps);
        for (uint32_t k = 0; k < m.n; k++) {
            m.bytes[k] = 1 + rng_below(&g, 1u << (1 + rng_below(&g, 16)));
            m.due[k] = (k > 0 ? m.due[k - 1] : -(int64_t)rng_below(&g, 500)) + rng_below(&g, 600);
        }
        m.most = rng_below(&g, 2) ? INT64_MAX : 1 + rng_below(&g, 1u << 16);
        check(&g, &m, &a);
        m.most = INT64_MAX;
        check_bytes(&g, &m, &a);
        arena_release(&a, mark);
    }
    arena_destroy(&a);
    printf("%zu chains, %zu of them cut; by bytes %zu are within 5 %% of the best\n", n_chains,
           n_cut, n_near);
    printf("%zu passed, %zu failed\n", n_chains - n_failed, n_failed);
    return n_failed > 0;
}

/* Bounds and the simulator on random programs. No order is below the bound, checked by trying all
 * orders of programs of up to 10 ops. In random orders of larger ones no op starts before its head
 * or ends after its tail; and heads and tails are no less than what is found one op at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "sim/bound.h"
#include "support/support.h"

/* The stress build checks more, so it need not run as many. */
#ifdef TUCK_STRESS
enum { FEWER = 10 };
#else
enum { FEWER = 1 };
#endif

static uint64_t state;

static uint32_t draw(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % n;
}

enum { MOST = 400 };

struct made {
    struct problem_builder b;
    uint32_t n_op;
    uint32_t reach; /* how far back an op reads */
};

/* Ops that read earlier results; collectives on two groups or none, waits for some of them. */
static void do_make(void *arg)
{
    struct made *m = arg;
    static uint32_t buf[SIDES_EXACT + 1], coll_buf[SIDES_EXACT + 1];
    uint32_t n_buf = 0, n_coll = 0;
    static const char *const groups[] = {NULL, "a", "b"};

    for (uint32_t i = 0; i < m->n_op; i++) {
        char name[16], out[16];
        uint32_t what = draw(10);
        bool wait = what >= 7 && n_coll > 0, coll = what >= 4 && what < 7;
        struct problem_op op = {.name = name,
                                .kind = wait   ? PROBLEM_WAIT
                                        : coll ? PROBLEM_COLLECTIVE
                                               : PROBLEM_COMPUTE,
                                .runtime = draw(20),
                                .is_async = draw(6) != 0,
                                .group = groups[draw(3)],
                                .bytes = 64};

        snprintf(name, sizeof(name), "op%u", i);
        snprintf(out, sizeof(out), "buf%u", i);
        problem_op(&m->b, &op);
        if (wait) {
            uint32_t k = draw(n_coll);
            problem_reads(&m->b, coll_buf[k]);
            coll_buf[k] = coll_buf[--n_coll];
        }
        for (uint32_t k = draw(3); k > 0 && n_buf > 0; k--)
            problem_reads(&m->b, buf[n_buf - 1 - draw(n_buf < m->reach ? n_buf : m->reach)]);
        uint32_t made = problem_makes(&m->b, out, 64, 64);
        if (coll && op.is_async) {
            coll_buf[n_coll++] = made;
        } else {
            buf[n_buf++] = made;
        }
    }
}

static struct problem *make(uint32_t n_op, uint32_t reach)
{
    struct made m = {.n_op = n_op, .reach = reach};
    struct problem *p;

    assert_true(problem_begin(&m.b, NULL, "test"));
    assert_true(mem_guard(&m.b.p->mem, do_make, &m));
    assert_int_equal(problem_finish(&m.b, NULL, &p), TUCK_OK);
    return p;
}

/* ---- every order ---- */

struct search {
    const struct problem *p;
    struct sim sim;
    uint32_t order[16], n;
    bool used[16];
    int64_t best;
    uint64_t orders;
};

static bool is_ready(const struct search *s, uint32_t op)
{
    const struct problem *p = s->p;

    for (uint32_t d = p->dep_at[op]; d < p->dep_at[op + 1]; d++) {
        uint32_t u = problem_dep_op(p, d);
        if (u != PROBLEM_NONE && !s->used[u])
            return false;
    }
    return true;
}

static void try_all(struct search *s)
{
    struct sim_result r;

    if (s->n == s->p->n_op) {
        sim_run(&s->sim, s->order, &r, NULL);
        assert_true(r.makespan == r.compute + r.launch + r.exposed);
        if (r.makespan < s->best)
            s->best = r.makespan;
        s->orders++;
        return;
    }
    for (uint32_t op = 0; op < s->p->n_op; op++)
        if (!s->used[op] && is_ready(s, op)) {
            s->used[op] = true;
            s->order[s->n++] = op;
            try_all(s);
            s->n--;
            s->used[op] = false;
        }
}

static int cmp_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

struct one {
    uint32_t n_op;
    int64_t launch;
    double gap;
    uint64_t seed;
    struct problem *p;
    struct arena arena;
};

static void do_one(void *arg)
{
    struct one *x = arg;
    struct search s = {.p = x->p, .best = INT64_MAX};
    struct sim_options so = {.launch_ps = x->launch};
    struct bound_options bo = {.launch_ps = x->launch};
    struct bound b, weak;

    sim_init(&s.sim, x->p, &so, &x->arena);
    try_all(&s);
    bound_of(x->p, &bo, &x->arena, &b);
    bo.chains_only = true;
    bound_of(x->p, &bo, &x->arena, &weak);
    assert_true(weak.ps <= b.ps && weak.weak && !b.weak);
    if (b.ps > s.best)
        fail_msg("TUCK_SEED=%llu: bound %lld (%s) is over the best order's %lld",
                 (unsigned long long)x->seed, (long long)b.ps, bound_name(b.kind),
                 (long long)s.best);
    x->gap = s.best > 0 ? (double)(s.best - b.ps) / (double)s.best : 0;
}

static void bounds_hold(void **unused)
{
    enum { PROGRAMS = 100000 };
    static double gap[PROGRAMS];
    uint32_t n = getenv("TUCK_SOAK") ? PROGRAMS : 10000 / FEWER;

    uint64_t seed = seed_of("prop_bound");

    (void)unused;
    for (uint32_t i = 0; i < n; i++) {
        struct one x = {.seed = seed + i};

        state = x.seed * 0x9E3779B97F4A7C15u;
        x.n_op = 1 + draw(10);
        x.launch = draw(3) ? 0 : 1000 * draw(4);
        x.p = make(x.n_op, x.n_op);
        arena_init(&x.arena, &x.p->mem);
        assert_true(mem_guard(&x.p->mem, do_one, &x));
        gap[i] = x.gap;
        arena_destroy(&x.arena);
        problem_free(x.p);
    }
    qsort(gap, n, sizeof(*gap), cmp_double);
    print_message("# gap of bound to optimum over %u programs: median %.2f %%, worst %.2f %%\n", n,
                  100 * gap[n / 2], 100 * gap[n - 1]);
}

/* ---- heads and tails of larger programs ---- */

/* Ready ops in random order. */
static void random_order(const struct problem *p, uint32_t *order)
{
    bool done[MOST] = {false};

    for (uint32_t n = 0; n < p->n_op; n++) {
        uint32_t op = draw(p->n_op);
        for (bool ready = false; !ready; op = ready ? op : (op + 1) % p->n_op) {
            ready = !done[op];
            for (uint32_t d = p->dep_at[op]; ready && d < p->dep_at[op + 1]; d++) {
                uint32_t u = problem_dep_op(p, d);
                ready = u == PROBLEM_NONE || done[u];
            }
        }
        done[op] = true;
        order[n] = op;
    }
}

static void check_spans(const struct one *x, const struct bound *b, const struct sim_span *span,
                        int64_t makespan)
{
    const struct problem *p = x->p;

    for (uint32_t v = 0; v < p->n_op; v++) {
        /* `issued` is when the host has issued it. */
        int64_t start = problem_is_coll(p, v) || problem_is_wait(p, v) ? span[v].issued - x->launch
                                                                       : span[v].start - x->launch;
        if (b->head[v] > start || span[v].end + b->tail[v] > makespan ||
            start + b->rest[v] > makespan)
            fail_msg("TUCK_SEED=%llu: op %u of kind %u: head %lld, tail %lld, rest %lld; it ran "
                     "from %lld to %lld of %lld",
                     (unsigned long long)x->seed, v, p->kind[v], (long long)b->head[v],
                     (long long)b->tail[v], (long long)b->rest[v], (long long)start,
                     (long long)span[v].end, (long long)makespan);
    }
}

/* The compute of all ancestors, and of all descendants. */
static void check_sums(const struct one *x, const struct bound *b)
{
    const struct problem *p = x->p;

    for (uint32_t v = 0; v < p->n_op; v++) {
        bool mark[MOST] = {false};
        int64_t before = 0;

        mark[v] = true;
        for (uint32_t u = v + 1; u-- > 0;)
            for (uint32_t d = p->dep_at[u]; mark[u] && d < p->dep_at[u + 1]; d++)
                if (problem_dep_op(p, d) != PROBLEM_NONE)
                    mark[problem_dep_op(p, d)] = true;
        for (uint32_t u = 0; u < v; u++)
            before += !mark[u]
                          ? 0
                          : x->launch +
                                (problem_is_async(p, u) || problem_is_wait(p, u) ? 0 : p->ps[u]);
        if (b->head[v] < before)
            fail_msg("TUCK_SEED=%llu: the head of op %u is %lld, but its ancestors take %lld",
                     (unsigned long long)x->seed, v, (long long)b->head[v], (long long)before);
    }
}

static void do_large(void *arg)
{
    struct one *x = arg;
    struct sim_options so = {.launch_ps = x->launch};
    struct bound_options bo = {.launch_ps = x->launch};
    struct sim sim;
    struct bound b;
    uint32_t order[MOST];
    struct sim_span span[MOST];

    sim_init(&sim, x->p, &so, &x->arena);
    bound_of(x->p, &bo, &x->arena, &b);
    check_sums(x, &b);
    for (int i = 0; i < 10; i++) {
        struct sim_result r;
        random_order(x->p, order);
        sim_run(&sim, order, &r, span);
        check_spans(x, &b, span, r.makespan);
    }
}

static void sides_hold(void **unused)
{
    uint32_t n = (uint32_t)rounds(600) / FEWER;
    uint64_t seed = seed_of("prop_bound");

    (void)unused;
    for (uint32_t i = 0; i < n; i++) {
        struct one x = {.seed = seed + i};

        state = x.seed * 0x9E3779B97F4A7C15u;
        x.n_op = 1 + draw(MOST);
        x.launch = draw(3) ? 0 : 1000 * draw(4);
        x.p = make(x.n_op, 1 + draw(40));
        arena_init(&x.arena, &x.p->mem);
        assert_true(mem_guard(&x.p->mem, do_large, &x));
        arena_destroy(&x.arena);
        problem_free(x.p);
    }
}

/* Too many ops to add up what comes before each: said, and still a bound. */
static void do_huge(void *arg)
{
    struct one *x = arg;
    struct bound_options bo = {.launch_ps = 0};
    struct sim sim;
    struct sim_result r;
    struct bound b;

    sim_init(&sim, x->p, NULL, &x->arena);
    sim_run(&sim, NULL, &r, NULL);
    bound_of(x->p, &bo, &x->arena, &b);
    assert_true(b.weak && b.ps >= r.compute && b.ps <= r.makespan);
}

static void a_huge_one(void **unused)
{
    struct one x = {.p = make(SIDES_EXACT + 1, 40)};

    (void)unused;
    arena_init(&x.arena, &x.p->mem);
    assert_true(mem_guard(&x.p->mem, do_huge, &x));
    arena_destroy(&x.arena);
    problem_free(x.p);
}

/* ---- gradients ---- */

/* Three layers: what leads to the next one, and the gradient of each, computed from it. The last
 * one leads to the largest gradient. */
static void do_gradients(void *arg)
{
    struct problem_builder *b = arg;
    uint32_t chain = PROBLEM_NONE;

    for (uint32_t i = 0; i < 3; i++) {
        char name[3][16];
        static const char *const what[] = {"next%u", "grad%u", "sum%u"};

        for (uint32_t k = 0; k < 3; k++)
            snprintf(name[k], sizeof(name[k]), what[k], i);
        problem_op(b,
                   &(struct problem_op){.name = name[0], .kind = PROBLEM_COMPUTE, .runtime = 10});
        if (chain != PROBLEM_NONE)
            problem_reads(b, chain);
        chain = problem_makes(b, name[0], 64, 64);
        problem_op(b, &(struct problem_op){.name = name[1], .kind = PROBLEM_COMPUTE, .runtime = 5});
        problem_reads(b, chain);
        uint32_t grad = problem_makes(b, name[1], 64, 64);
        problem_op(b, &(struct problem_op){.name = name[2],
                                           .kind = PROBLEM_COLLECTIVE,
                                           .runtime = 6,
                                           .is_async = true,
                                           .group = "a",
                                           .bytes = 64});
        problem_reads(b, grad);
        problem_makes(b, name[2], 64, 64);
    }
    problem_op(b, &(struct problem_op){.name = "sum",
                                       .kind = PROBLEM_COLLECTIVE,
                                       .runtime = 20,
                                       .is_async = true,
                                       .group = "a",
                                       .bytes = 64});
    problem_reads(b, chain);
    problem_makes(b, "sum", 64, 64);
}

static void do_bound(void *arg)
{
    struct one *x = arg;
    struct search s = {.p = x->p, .best = INT64_MAX};
    struct sim_options so = {.launch_ps = 0};
    struct bound b;

    sim_init(&s.sim, x->p, &so, &x->arena);
    try_all(&s);
    bound_of(x->p, &(struct bound_options){.memory = 0}, &x->arena, &b);
    /* 30 of the chain, then 20 and the 6 of the last layer; each of the others adds its work before
     * or its transfer after. */
    assert_int_equal(b.ps, ps_round((30 + 20 + 6 + 2 * 5) * x->p->unit_ps));
    assert_int_equal(b.kind, BOUND_BY_LINK);
    assert_int_equal(s.best, b.ps);
}

static void last_gradient(void **unused)
{
    struct problem_builder b;
    struct one x = {.n_op = 10};

    (void)unused;
    assert_true(problem_begin(&b, NULL, "test"));
    assert_true(mem_guard(&b.p->mem, do_gradients, &b));
    assert_int_equal(problem_finish(&b, NULL, &x.p), TUCK_OK);
    arena_init(&x.arena, &x.p->mem);
    assert_true(mem_guard(&x.p->mem, do_bound, &x));
    arena_destroy(&x.arena);
    problem_free(x.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_hold),
        cmocka_unit_test(last_gradient),
        cmocka_unit_test(sides_hold),
        cmocka_unit_test(a_huge_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

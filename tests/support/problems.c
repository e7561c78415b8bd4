#include "support/problems.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void give_up(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(2);
}

static struct problem *finish(struct problem_builder *b)
{
    tuck_diags *d = tuck_diags_new(NULL);
    struct problem *p = NULL;

    if (problem_finish(b, d, &p) != TUCK_OK)
        give_up(tuck_diags_count(d) ? tuck_diags_at(d, 0)->message : "no memory");
    tuck_diags_free(d);
    return p;
}

/* ---- random ones ---- */

struct making {
    struct problem_builder b;
    struct rng *rng;
    const struct random_problem *how;
    uint32_t layered;
    bool eager;
    const json_t *line;
};

static double some_time(struct making *m, uint32_t most)
{
    double t = rng_below(m->rng, most);

    return m->how->fractions ? t * 0.1 + rng_below(m->rng, 1000) * 1e-7 : t;
}

static void some_outputs(struct making *m, uint32_t op, uint32_t *buf, uint32_t *n_buf)
{
    static const int64_t sizes[] = {0, 4, 16, 64, 256, 4096, 65536};
    uint32_t n = rng_below(m->rng, 10) == 0 ? 2 : rng_below(m->rng, 30) == 0 ? 0 : 1;
    char name[32];

    for (uint32_t i = 0; i < n; i++) {
        int64_t size = sizes[rng_below(m->rng, 7)];
        snprintf(name, sizeof(name), "buf%u_%u", op, i);
        /* Sometimes the parts of one allocation: all bytes are allocated with the first and freed
         * with both. */
        bool parts = n == 2 && rng_below(m->rng, 2) == 0;
        buf[(*n_buf)++] = problem_makes(&m->b, name, parts ? (i ? 0 : 2 * size) : size, size);
    }
}

static void do_random(void *ctx)
{
    struct making *m = ctx;
    struct rng *g = m->rng;
    uint32_t n = m->how->n_op, n_buf = 0, n_open = 0;
    uint32_t *buf = calloc(3 * (size_t)n + 16, sizeof(*buf)), *open = calloc(n, sizeof(*open));
    uint32_t *operand = calloc(n, sizeof(*operand)), n_input = rng_below(g, 5);
    char name[32], group[8];
    static const char *const kinds[] = {"all_gather", "reduce_scatter", "all_reduce", NULL};

    for (uint32_t i = 0; i < n_input; i++) {
        snprintf(name, sizeof(name), "in%u", i);
        buf[n_buf++] = problem_input(&m->b, name, 64 << rng_below(g, 8),
                                     PROBLEM_FREEABLE | (rng_below(g, 6) ? 0 : PROBLEM_OUTPUT));
    }
    uint32_t n_first = n_buf;
    for (uint32_t x = 0; x < n; x++) {
        bool wait = n_open > 0 && (rng_below(g, 100) < 2 * m->how->coll_percent || n - x <= n_open);
        bool coll = !wait && rng_below(g, 100) < m->how->coll_percent;
        bool sync = coll && rng_below(g, 100) < m->how->sync_percent;
        struct problem_op op = {.name = name, .is_async = !sync};

        snprintf(name, sizeof(name), "op%u", x);
        snprintf(group, sizeof(group), "g%u", rng_below(g, m->how->n_group));
        op.kind = wait                   ? PROBLEM_WAIT
                  : coll                 ? PROBLEM_COLLECTIVE
                  : rng_below(g, 4) == 0 ? PROBLEM_GEMM
                                         : PROBLEM_COMPUTE;
        op.runtime = wait ? 0 : some_time(m, coll ? 60 : 20);
        if (coll && m->how->n_group > 1)
            op.group = group;
        op.coll = coll ? kinds[rng_below(g, 4)] : NULL;
        if (coll && m->how->several)
            op.bytes = 512 << rng_below(g, 12);
        problem_op(&m->b, &op);
        if (wait) {
            uint32_t i = rng_below(g, n_open);
            problem_reads(&m->b, open[i]);
            if (operand[i] != PROBLEM_NONE)
                problem_reads(&m->b, operand[i]);
            if (m->how->several && rng_below(g, 3) == 0)
                problem_reads(&m->b, open[rng_below(g, n_open)]);
            if (!m->how->several || n - x <= n_open || rng_below(g, 3) > 0) {
                open[i] = open[--n_open];
                operand[i] = operand[n_open];
            }
        }
        uint32_t reads = n_buf == 0 ? 0 : coll ? 1 : rng_below(g, 4), last = PROBLEM_NONE;
        for (uint32_t i = 0; i < reads; i++) {
            uint32_t window = n_buf < 12 ? n_buf : 12;
            last = rng_below(g, 8) == 0 ? buf[rng_below(g, n_buf)]
                                        : buf[n_buf - 1 - rng_below(g, window)];
            if (m->how->several && rng_below(g, 20) == 0)
                problem_needs(&m->b, last, PROBLEM_FAKE);
            else if (!coll && rng_below(g, 20) == 0)
                problem_needs(&m->b, last, PROBLEM_WEAK);
            else
                problem_reads(&m->b, last);
        }
        if (coll && !sync) {
            snprintf(name, sizeof(name), "comm%u", x);
            operand[n_open] = last;
            open[n_open++] = problem_makes(&m->b, name, 64 << rng_below(g, 8), 0);
        } else {
            some_outputs(m, x, buf, &n_buf);
        }
    }
    for (uint32_t i = n_first; i < n_buf; i++)
        if (rng_below(g, 8) == 0)
            problem_returns(&m->b, buf[i]);
    for (uint32_t i = 0; i < n_first; i++) /* some inputs stay without any user */
        if (rng_below(g, 3) != 0)
            problem_keeps(&m->b, buf[i], rng_below(g, n));
    free(buf);
    free(open);
    free(operand);
}

struct problem *random_problem(struct rng *rng, const struct random_problem *how)
{
    struct making m = {.rng = rng, .how = how};

    if (!problem_begin(&m.b, NULL, "random") || !mem_guard(&m.b.p->mem, do_random, &m))
        give_up("no memory");
    return finish(&m.b);
}

/* ---- layers ---- */

static uint32_t layer_op(struct making *m, const char *what, enum problem_kind kind, double runtime)
{
    static _Thread_local char name[64];

    snprintf(name, sizeof(name), "%s%u", what, m->layered);
    return problem_op(&m->b,
                      &(struct problem_op){.name = name,
                                           .kind = kind,
                                           .runtime = runtime,
                                           .is_async = true,
                                           .group = kind == PROBLEM_COLLECTIVE ? "0" : NULL});
}

static uint32_t layer_makes(struct making *m, const char *what, int64_t bytes)
{
    char name[64];

    snprintf(name, sizeof(name), "b_%s%u", what, m->layered);
    return problem_makes(&m->b, name, bytes, bytes);
}

/* 33 ops a layer, two of them collectives: a gather of weights, compute in two branches, a
 * reduction of gradients whose wait comes two layers later. */
static void do_layers(void *ctx)
{
    struct making *m = ctx;
    uint32_t n_layer = (m->layered + 32) / 33, x = problem_input(&m->b, "x", 1 << 20, 0);
    uint32_t pending[2] = {PROBLEM_NONE, PROBLEM_NONE};
    char what[16];

    for (uint32_t l = 0; l < n_layer; l++) {
        snprintf(what, sizeof(what), "w%u", l);
        problem_input(&m->b, what, 1 << 16, 0);
    }
    for (uint32_t l = 0; l < n_layer; l++) {
        uint32_t w = 1 + l;
        m->layered = l;
        layer_op(m, "cast", PROBLEM_COMPUTE, 2000);
        problem_reads(&m->b, w);
        uint32_t full = w = layer_makes(m, "cast", 1 << 16);
        if (!m->eager) {
            layer_op(m, "gather", PROBLEM_COLLECTIVE, 40000);
            problem_reads(&m->b, w);
            full = layer_makes(m, "gather", 1 << 19);
            layer_op(m, "gather_wait", PROBLEM_WAIT, 0);
            problem_reads(&m->b, full);
            problem_reads(&m->b, w);
            full = layer_makes(m, "gather_wait", 0);
        }
        uint32_t side = x;
        for (uint32_t k = 0; k < 26; k++) {
            snprintf(what, sizeof(what), k % 4 == 0 ? "mm%u_" : "pw%u_", k);
            layer_op(m, what, k % 4 == 0 ? PROBLEM_GEMM : PROBLEM_COMPUTE,
                     k % 4 == 0 ? 9000 + 10 * k : 1500 + k);
            problem_reads(&m->b, k % 3 == 0 ? side : x);
            if (k % 4 == 0)
                problem_reads(&m->b, full);
            uint32_t y = layer_makes(m, what, 1 << (14 + k % 5));
            if (k % 3 == 0)
                side = y;
            else
                x = y;
        }
        layer_op(m, "join", PROBLEM_COMPUTE, 3000);
        problem_reads(&m->b, x);
        problem_reads(&m->b, side);
        x = layer_makes(m, "join", 1 << 18);
        layer_op(m, "reduce", PROBLEM_COLLECTIVE, 60000);
        problem_reads(&m->b, side);
        uint32_t reduced = layer_makes(m, "reduce", 1 << 16);
        uint32_t wait = m->eager ? reduced : pending[l % 2];
        pending[l % 2] = reduced;
        if (wait != PROBLEM_NONE) {
            layer_op(m, "reduce_wait", PROBLEM_WAIT, 0);
            problem_reads(&m->b, wait);
            uint32_t grad = layer_makes(m, "reduce_wait", 0);
            layer_op(m, "update", PROBLEM_COMPUTE, 1000);
            problem_reads(&m->b, grad);
            problem_returns(&m->b, layer_makes(m, "update", 1 << 12));
        }
    }
}

struct problem *layered_problem(uint32_t n_op, bool eager)
{
    struct making m = {.layered = n_op, .eager = eager};

    if (!problem_begin(&m.b, NULL, "layers") || !mem_guard(&m.b.p->mem, do_layers, &m))
        give_up("no memory");
    return finish(&m.b);
}

/* ---- recorded ones ---- */

static void each_user(struct problem_builder *b, const json_t *list, uint32_t buf,
                      void (*add)(struct problem_builder *, uint32_t, uint32_t))
{
    size_t i;
    json_t *v;

    json_array_foreach(list, i, v) add(b, buf, (uint32_t)json_integer_value(v));
}

static void recorded_op(struct problem_builder *b, const json_t *row, uint32_t x, uint32_t *n_buf)
{
    char name[32];
    size_t i;
    json_t *v;

    snprintf(name, sizeof(name), "op%u", x);
    problem_op(
        b, &(struct problem_op){
               .name = name,
               .kind = (enum problem_kind)json_integer_value(json_array_get(row, 0)),
               .is_async = json_integer_value(json_array_get(row, 1)) != 0,
               .kernel = json_integer_value(json_array_get(row, 2)) ? "extern_kernels.mm" : NULL,
               .runtime = json_number_value(json_array_get(row, 3))});
    json_array_foreach(json_array_get(row, 4), i, v)
    {
        const json_t *buf = json_is_array(v) ? json_array_get(v, 0) : v;
        problem_needs(b, (uint32_t)json_integer_value(buf),
                      json_is_array(v) ? (unsigned)json_integer_value(json_array_get(v, 1)) : 0);
    }
    json_array_foreach(json_array_get(row, 5), i, v)
    {
        snprintf(name, sizeof(name), "buf%u", *n_buf);
        problem_makes(b, name, json_integer_value(json_array_get(v, 0)),
                      json_integer_value(json_array_get(v, 1)));
        each_user(b, json_array_get(v, 2), *n_buf, problem_keeps);
        if (json_array_size(v) > 3)
            each_user(b, json_array_get(v, 3), *n_buf, problem_follows);
        ++*n_buf;
    }
}

static void do_recorded(void *ctx)
{
    struct making *m = ctx;
    uint32_t n_buf = 0;
    char name[32];
    size_t i;
    json_t *v;

    json_array_foreach(json_object_get(m->line, "in"), i, v)
    {
        snprintf(name, sizeof(name), "in%u", n_buf);
        problem_input(&m->b, name, json_integer_value(json_array_get(v, 0)), PROBLEM_FREEABLE);
        each_user(&m->b, json_array_get(v, 1), n_buf++, problem_keeps);
    }
    json_array_foreach(json_object_get(m->line, "ops"), i, v)
        recorded_op(&m->b, v, (uint32_t)i, &n_buf);
    json_array_foreach(json_object_get(m->line, "out"), i, v)
        problem_returns(&m->b, (uint32_t)json_integer_value(v));
}

struct problem *recorded_problem(const json_t *line)
{
    struct making m = {.line = line};

    if (!problem_begin(&m.b, NULL, "recorded") || !mem_guard(&m.b.p->mem, do_recorded, &m))
        give_up("no memory");
    return finish(&m.b);
}

/* ---- checks ---- */

int64_t slow_peak(const struct problem *p, const uint32_t *order)
{
    bool *done = calloc((size_t)p->n_op + 1, 1);
    int64_t peak = 0;

    for (uint32_t b = 0; b < p->n_input; b++) /* all are there before the first op */
        peak += p->size_alloc[b];
    for (uint32_t i = 0; i < p->n_op; i++) {
        int64_t live = 0;
        /* What has been made up to this op, minus what neither this op nor later ones use. */
        for (uint32_t b = 0; b < p->n_buf; b++) {
            bool input = p->producer[b] == PROBLEM_NONE, used = false;
            bool made = input || done[p->producer[b]] || p->producer[b] == order[i];
            if (!made)
                continue;
            live += p->size_alloc[b];
            if (p->buf_flags[b] & PROBLEM_OUTPUT)
                continue;
            for (uint32_t k = p->succ_at[b]; k < p->succ_at[b + 1]; k++)
                used |= !done[p->succ[k]];
            used |= !input && p->producer[b] == order[i];
            if (!used)
                live -= p->size_free[b];
        }
        peak = live > peak ? live : peak;
        done[order[i]] = true;
    }
    free(done);
    return peak;
}

int64_t slow_exposed(const struct problem *p, const uint32_t *order)
{
    int64_t *end = calloc((size_t)p->n_op + 1, sizeof(*end)), clock = 0, compute = 0, last = 0;

    for (uint32_t i = 0; i < p->n_op; i++) {
        uint32_t x = order[i];
        int64_t d = p->ps[x], start = clock;

        if (p->kind[x] == PROBLEM_COLLECTIVE) {
            for (uint32_t k = 0; k < i; k++) /* the channel is free when earlier ones are done */
                if (p->kind[order[k]] == PROBLEM_COLLECTIVE && p->group[order[k]] == p->group[x] &&
                    end[order[k]] > start)
                    start = end[order[k]];
            end[x] = start + d;
            last = end[x] > last ? end[x] : last;
            if (!problem_is_async(p, x))
                clock = end[x];
            continue;
        }
        for (uint32_t k = p->wait_at[x]; k < p->wait_at[x + 1]; k++)
            clock = end[p->wait[k]] > clock ? end[p->wait[k]] : clock;
        if (p->kind[x] == PROBLEM_WAIT) /* a wait takes no time, whatever its runtime */
            continue;
        clock += d;
        compute += d;
    }
    free(end);
    return (last > clock ? last : clock) - compute;
}

/* May two collectives change places? */
static bool may_change(const struct problem *p, uint32_t x, uint32_t y, enum order_rule rule)
{
    bool one_group = p->group[x] == p->group[y];
    bool known = p->coll[x] != 0 && p->coll[y] != 0 && p->coll[x] != TUCK_P2P &&
                 p->coll[y] != TUCK_P2P && p->group[x] != PROBLEM_NONE &&
                 p->group[y] != PROBLEM_NONE;

    if (rule == ORDER_IN_GROUPS)
        return !one_group;
    return known && !(one_group && !problem_is_async(p, x) && !problem_is_async(p, y));
}

const char *order_fault(const struct problem *p, const uint32_t *order, enum order_rule rule)
{
    uint32_t *at = calloc((size_t)p->n_op + 1, sizeof(*at));
    const char *why = NULL;

    for (uint32_t i = 0; i < p->n_op && why == NULL; i++) {
        if (order[i] >= p->n_op || at[order[i]] != 0)
            why = "not every op once";
        else
            at[order[i]] = i + 1;
    }
    for (uint32_t x = 0; x < p->n_op && why == NULL; x++)
        for (uint32_t d = p->dep_at[x]; d < p->dep_at[x + 1]; d++) {
            uint32_t y = problem_dep_op(p, d);
            if (y != PROBLEM_NONE && !(p->dep_flags[d] & PROBLEM_FAKE) && at[y] > at[x])
                why = "an op before what it needs";
        }
    for (uint32_t x = 0; x < p->n_op && rule != ORDER_OF_OPS && why == NULL; x++)
        for (uint32_t y = 0; y < x; y++)
            if (p->kind[x] == PROBLEM_COLLECTIVE && p->kind[y] == PROBLEM_COLLECTIVE &&
                at[y] > at[x] && !may_change(p, x, y, rule))
                why = "collectives that must not change places did";
    free(at);
    return why;
}

enum order_rule order_rule_of(const struct pass *pass)
{
    return pass == &pass_list_overlap || pass == &pass_improve_order ? ORDER_OF_FENCES
                                                                     : ORDER_IN_GROUPS;
}

void run_pass(struct schedule *s, const struct problem *p, const struct schedule_options *o,
              const struct pass *pass)
{
    if (!schedule_begin(s, p, o))
        give_up("no memory");
    if (pass->on_order(s, o, NULL) != TUCK_OK)
        give_up("no memory");
}

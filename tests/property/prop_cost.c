/* Over random clusters, groups and sizes: no model gives less time to more bytes, and alpha-beta
 * none to more ranks; the parts of an answer add up; the rate used for bounds is never above a
 * message's.
 *
 * The model torch is exactly PyTorch's, whose time decreases where the bandwidth of a tree rises in
 * a step, at powers of two: it must grow from power to power, and between two of them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cost/best_rate.h"
#include "cost/collective_cost.h"
#include "support/support.h"

static size_t failed;

static void wrong(const char *what, const char *cluster, struct cost_shape s, tuck_coll coll,
                  tuck_cost_model model, int64_t a, int64_t b, double ta, double tb)
{
    if (failed++ < 20)
        printf("%s: %s %s %s, %lld ranks on %lld nodes: %.17g at %lld, %.17g at %lld\n", what,
               cluster, tuck_cost_model_name(model), tuck_coll_name(coll), (long long)s.p,
               (long long)s.nodes, ta, (long long)a, tb, (long long)b);
}

static double uniform(struct rng *r, double low, double high)
{
    return low + (high - low) * ((double)rng_below(r, 1000001) / 1e6);
}

static int64_t random_bytes(struct rng *r)
{
    return (int64_t)exp2(uniform(r, 0, 37));
}

/* A preset, or a file with its own links and a table that rises and falls. */
static tuck_cluster *random_cluster(struct rng *r, char *name, size_t size)
{
    static const char *const device[] = {"v100",  "a100",   "h100",   "b200",        "gb200",
                                         "gb300", "mi300x", "mi350x", "cpu-loopback"};
    const char *d = device[rng_below(r, 9)];
    tuck_cluster *c;
    tuck_status st;

    if (rng_below(r, 3) > 0) {
        snprintf(name, size, "%sx%ux%u", d, 1 + rng_below(r, 16), 1 + rng_below(r, 64));
        st = tuck_cluster_preset(name, NULL, NULL, &c);
    } else {
        size_t n = (size_t)snprintf(
            name, size,
            "{\"schema\": 1, \"device\": \"%s\", \"per_node\": %u, \"nodes\": %u, \"links\": "
            "{\"intra\": {\"gbps\": %g, \"us\": %g, \"kind\": \"%s\"}, \"inter\": {\"gbps\": %g, "
            "\"us\": %g}}, \"tables\": [{\"coll\": \"%s\", \"p\": %u, \"link\": \"%s\", "
            "\"points\": [",
            d, 1 + rng_below(r, 16), 1 + rng_below(r, 64), uniform(r, 1, 900), uniform(r, 0.1, 10),
            rng_below(r, 2) ? "nvlink" : "pcie", uniform(r, 0.5, 200), uniform(r, 0.5, 50),
            tuck_coll_name((tuck_coll)(1 + rng_below(r, 6))), 2 + rng_below(r, 16),
            rng_below(r, 2) ? "intra" : "inter");
        double bytes = uniform(r, 1, 5000);
        unsigned points = 2 + rng_below(r, 20);
        for (unsigned i = 0; i < points && bytes < 1e12; i++, bytes *= uniform(r, 1.01, 8))
            n += (size_t)snprintf(name + n, size - n, "%s[%.0f, %g]", i ? ", " : "", bytes + i,
                                  uniform(r, 1, 1000));
        snprintf(name + n, size - n, "]}]}");
        st = tuck_cluster_read_text(name, strlen(name), "c.json", NULL, NULL, &c);
    }
    if (st != TUCK_OK) {
        printf("no cluster: %s\n", name);
        exit(1);
    }
    return c;
}

static void check_answer(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, int64_t bytes,
                         const struct cost_choice *how)
{
    tuck_collective_cost out;

    cost_collective(c, s, coll, bytes, how, &out);
    int64_t sum = out.latency_ps + out.ramp_ps + out.bytes_ps;
    if (out.latency_ps < 0 || out.ramp_ps < 0 || out.bytes_ps < 0 || sum != out.ps)
        wrong("parts", c->name, s, coll, how->model, bytes, bytes, (double)out.ps, (double)sum);
    for (uint32_t i = 1; i < out.n_alternatives; i++)
        if (out.alternative[i].ps < out.alternative[i - 1].ps)
            wrong("order", c->name, s, coll, how->model, bytes, bytes, (double)out.ps, (double)sum);
}

static void check_one(struct rng *r)
{
    char name[4096];
    tuck_cluster *c = random_cluster(r, name, sizeof(name));

    for (int i = 0; i < 20; i++) {
        int64_t p = 2 + rng_below(r, (uint32_t)(rng_below(r, 2) ? 16 : 300));
        struct cost_shape s = shape_of_stride(c, p, 1 + rng_below(r, 3) * rng_below(r, 9));
        tuck_coll coll = (tuck_coll)(1 + rng_below(r, 7));
        struct cost_choice how = {.model = (tuck_cost_model)rng_below(r, 7),
                                  .symmetric = rng_below(r, 2),
                                  .hierarchical = rng_below(r, 2)};
        int64_t a = random_bytes(r), b = rng_below(r, 2) ? random_bytes(r) : a + rng_below(r, 100);

        if (b < a) {
            int64_t t = a;
            a = b;
            b = t;
        }
        if (how.model == TUCK_MODEL_TORCH) {
            int64_t low = (int64_t)1 << (int)floor(log2((double)a));
            a = rng_below(r, 2) ? low : a;
            b = a == low ? low * 2 : a + rng_below(r, (uint32_t)fmin(4e9, (double)(2 * low - a)));
        }
        double ta = cost_collective_us(c, s, coll, a, &how),
               tb = cost_collective_us(c, s, coll, b, &how);
        if (ta > tb * (1 + 1e-12))
            wrong("bytes", name, s, coll, how.model, a, b, ta, tb);
        check_answer(c, s, coll, b, &how);

        if (how.model == TUCK_MODEL_ALPHA_BETA) {
            struct cost_shape one = shape_of_stride(c, p, 1),
                              more = shape_of_stride(c, p + 1 + rng_below(r, 20), 1);
            ta = cost_collective_us(c, one, coll, a, &how);
            tb = cost_collective_us(c, more, coll, a, &how);
            if (ta > tb * (1 + 1e-12))
                wrong("ranks", name, more, coll, how.model, one.p, more.p, ta, tb);
        }
        if (i == 0) {
            struct rate_table *t = malloc(sizeof(*t));
            if (t == NULL)
                abort();
            rate_table_begin(t, c, s, coll, &how);
            int64_t least = rng_below(r, 2) ? 1 : 1 + (int64_t)uniform(r, 0, (double)(b - 1));
            double rate = cost_best_rate(t, least, b);
            free(t);
            for (int k = 0; k < 20; k++) {
                int64_t n = least + (int64_t)uniform(r, 0, (double)(b - least));
                ta = cost_collective_us(c, s, coll, n, &how);
                if (ta < rate * (double)n * (1 - 1e-12))
                    wrong("rate", name, s, coll, how.model, n, b, ta, rate * (double)n);
            }
        }
    }
    tuck_cluster_free(c);
}

int main(void)
{
    struct rng r = {seed_of("prop_cost")};
    size_t n = rounds(3000);

    for (size_t i = 0; i < n; i++)
        check_one(&r);
    printf("%zu passed, %zu failed\n", n - (failed < n ? failed : n), failed);
    return failed > 0;
}

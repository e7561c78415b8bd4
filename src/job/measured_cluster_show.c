/* What was measured as a cluster file, and as a table. */
#include <math.h>

#include "base/json.h"
#include "base/layout.h"
#include "job/measured_cluster.h"

static const char *const rate_names[N_RATE] = {"f64", "f32", "f16", "f8"};

/* Rounded to what was measured: 0.1 ns. */
static double rounded(double v)
{
    return round(v * 1e4) / 1e4;
}

static void point_json(struct json_out *j, double size, double us)
{
    json_open(j, NULL, '[');
    json_int(j, NULL, (int64_t)size);
    json_float(j, NULL, rounded(us));
    json_close(j, ']');
}

static void points_json(struct json_out *j, const struct measured_point *at, uint32_t n,
                        double fixed)
{
    json_open(j, "points", '[');
    j->flat = true;
    for (uint32_t i = 0; i < n; i++)
        point_json(j, at[i].size, at[i].us);
    if (n == 1) /* a table has two points: the second one is in proportion */
        point_json(j, 2 * at[0].size, 2 * at[0].us - (fixed < at[0].us ? fixed : 0));
    j->flat = false;
    json_close(j, ']');
}

static void coll_json(struct json_out *j, const struct measured_coll *c)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->n; i++)
        n += c->at[i].n;
    json_open(j, NULL, '{');
    json_str(j, "coll", tuck_coll_name(c->kind));
    json_int(j, "p", c->p);
    json_str(j, "link", c->inter ? "inter" : "intra");
    json_null(j, "algo");
    points_json(j, c->at, c->n, c->fixed_us);
    json_int(j, "_measured", n);
    if (c->n > 1) {
        json_open(j, "_law", '{');
        json_float(j, "us", rounded(c->law.a));
        json_float(j, "us_per_sqrt_byte", c->law.c);
        json_float(j, "gbps", c->law.b / 1000);
        json_float(j, "residual", rounded(c->residual));
        json_close(j, '}');
    } else {
        json_str(j, "_assumed", "only one size was measured; the second point is in proportion");
    }
    json_close(j, '}');
}

static void compute_json(struct json_out *j, const struct measured_cluster *c)
{
    bool any = false;

    json_open(j, "compute", '{');
    if (c->dram_gbps > 0) {
        json_float(j, "dram_gbps", rounded(c->dram_gbps));
        json_int(j, "dram_efficiency", 1);
    }
    if (c->kernel_us >= 0)
        json_float(j, "kernel_us", rounded(c->kernel_us));
    for (int i = 0; i < N_RATE; i++)
        any |= c->n_gemm[i] > 0;
    if (any) {
        json_open(j, "gemm", '{');
        for (int i = 0; i < N_RATE; i++) {
            if (c->n_gemm[i] == 0)
                continue;
            json_open(j, rate_names[i], '{');
            points_json(j, c->gemm[i], c->n_gemm[i], 0);
            json_close(j, '}');
        }
        json_close(j, '}');
    }
    json_close(j, '}');
}

/* One factor for all kinds: a job has too few of each to tell them apart. */
static void beside_json(struct json_out *j, const struct measured_cluster *c)
{
    tuck_coll kind[TUCK_OTHER_COLLECTIVE];
    double factor[TUCK_OTHER_COLLECTIVE];
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->n_coll; i++)
        if (n == 0 || kind[n - 1] != c->coll[i].kind) { /* they are in order */
            factor[n] = rounded(c->beside.kernel);
            kind[n++] = c->coll[i].kind;
        }
    if (c->beside.kernel > 0)
        slowdown_json(j, kind, factor, n);
    if (c->beside.transfer > 0) {
        json_open(j, "transfer_slowdown", '{');
        for (uint32_t i = 0; i < n; i++)
            json_float(j, tuck_coll_name(kind[i]), rounded(c->beside.transfer));
        json_close(j, '}');
    }
}

void measured_cluster_write(const struct measured_cluster *c, struct buf *b)
{
    struct json_out j;

    json_begin(&j, b);
    json_open(&j, NULL, '{');
    json_schema(&j, 1);
    json_str(&j, "device", c->device);
    json_int(&j, "per_node", c->per_node);
    json_int(&j, "nodes", c->nodes);
    compute_json(&j, c);
    json_open(&j, "tables", '[');
    for (uint32_t i = 0; i < c->n_coll; i++)
        if (c->coll[i].n > 0)
            coll_json(&j, &c->coll[i]);
    json_close(&j, ']');
    beside_json(&j, c);
    if (c->launch_us >= 0)
        json_float(&j, "launch_us", rounded(c->launch_us));
    json_close(&j, '}');
    json_end(&j);
}

void measured_cluster_table(const struct measured_cluster *c, struct buf *b)
{
    ink_line(b, INK_HEAD, "%s, %lld on each of %lld nodes", c->device, (long long)c->per_node,
             (long long)c->nodes);
    if (c->n_coll > 0)
        ink_line(b, INK_HEAD, "  %-14s %5s %5s %6s %6s %12s %10s %9s", "collective", "ranks",
                 "link", "sizes", "times", "law: us +", "GB/s", "residual");
    for (uint32_t i = 0; i < c->n_coll; i++) {
        const struct measured_coll *x = &c->coll[i];
        uint32_t n = 0;
        for (uint32_t k = 0; k < x->n; k++)
            n += x->at[k].n;
        buf_printf(b, "  %-14s %5lld %5s %6u %6u", tuck_coll_name(x->kind), (long long)x->p,
                   x->inter ? "inter" : "intra", x->n, n);
        if (x->n > 1)
            buf_printf(b, " %12.1f %10.2f %8.1f%%\n", x->law.a, x->law.b / 1000, 100 * x->residual);
        else
            ink_line(b, INK_LIMIT, " one size: no law");
    }
    if (c->n_coll > 0 && (int64_t)c->n_rank < c->per_node * c->nodes)
        wrap_line(b, INK_LIMIT, 2,
                  "traces of %u of %lld ranks: their times may include waiting for the others",
                  c->n_rank, (long long)(c->per_node * c->nodes));
    for (int i = 0; i < N_RATE; i++)
        if (c->n_gemm[i] > 0) {
            const struct measured_point *most = &c->gemm[i][c->n_gemm[i] - 1];
            wrap_line(b, INK_PLAIN, 2, "products in %s: %u sizes, the largest at %.3g TFLOPS",
                      rate_names[i], c->n_gemm[i], most->size / most->us / 1e6);
        }
    if (c->dram_gbps > 0)
        wrap_line(b, INK_PLAIN, 2, "copies and sums of 1 MiB and more: %.1f GB/s", c->dram_gbps);
    if (c->beside.kernel > 0)
        wrap_line(b, INK_PLAIN, 2, "kernels take %.2f times as long beside communication",
                  c->beside.kernel);
    if (c->beside.transfer > 0)
        wrap_line(b, INK_PLAIN, 2, "communication takes %.2f times as long beside kernels",
                  c->beside.transfer);
    if (c->launch_us >= 0)
        wrap_line(b, INK_PLAIN, 2,
                  "%u kernels, the shortest twentieth up to %.2f us; gaps of %.2f us", c->n_kernel,
                  c->kernel_us, c->launch_us);
}

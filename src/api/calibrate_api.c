/* Calibration of this machine, in the public interface. */
#include "api/api.h"
#include "base/json.h"
#include "cost/cluster.h"
#include "base/layout.h"
#include "op/ops.h"
#include "run/calibrate.h"

struct tuck_calibration {
    struct mem mem;
    struct calibration c;
};

tuck_status tuck_calibrate(const tuck_exec_options *options, tuck_diags *diags,
                           tuck_calibration **out)
{
    tuck_exec_options o;
    struct mem m;

    tuck_exec_options_init(&o);
    tuck_status st = out != NULL ? options_take(&o, sizeof(o), options) : TUCK_EINVAL;
    if (st != TUCK_OK)
        return st;
    if (o.ranks == 0)
        o.ranks = transport_world(o.transport) > 0 ? transport_world(o.transport) : 2;
    mem_init(&m, NULL);
    tuck_calibration *x = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*x));
    if (x == NULL)
        return TUCK_ENOMEM;
    *x = (tuck_calibration){.mem = m};
    st = calibrate(&o, diags, &x->c);
    if (st == TUCK_OK)
        *out = x;
    else
        tuck_calibration_free(x);
    return st;
}

void tuck_calibration_free(tuck_calibration *x)
{
    if (x == NULL)
        return;
    struct mem m = x->mem;
    mem_free(&m, x, sizeof(*x));
}

bool tuck_calibration_speaks(const tuck_calibration *x)
{
    return x->c.speaks;
}

/* ---- the cluster file ---- */

static void put_tables(struct json_out *j, const struct calibration *c)
{
    json_open(j, "tables", '[');
    for (int k = 0; k < CAL_COLLS; k++) {
        json_open(j, NULL, '{');
        json_str(j, "coll", tuck_coll_name(calibrate_coll(k)));
        json_int(j, "p", c->world);
        json_str(j, "link", "intra");
        json_null(j, "algo");
        json_open(j, "points", '[');
        for (int s = 0; s < CAL_SIZES; s++) {
            json_open(j, NULL, '[');
            json_int(j, NULL, calibrate_size(s));
            json_float(j, NULL, c->coll_ns[k][s] / 1000);
            json_close(j, ']');
        }
        json_close(j, ']');
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void put_point(struct json_out *j, double amount, double ns)
{
    json_open(j, NULL, '[');
    json_float(j, NULL, amount);
    json_float(j, NULL, ns / 1000);
    json_close(j, ']');
}

/* By size: small products and loops run at other rates than large ones. */
static void put_kernels(struct json_out *j, const struct calibration *c)
{
    if (c->gemm_ns[0] > 0) {
        json_open(j, "gemm", '{');
        json_open(j, "f32", '{');
        json_open(j, "points", '[');
        for (int i = 0; i < CAL_GEMMS; i++)
            put_point(j, calibrate_gemm_flops(i), c->gemm_ns[i]);
        json_close(j, ']');
        json_close(j, '}');
        json_close(j, '}');
    }
    if (c->loop_ns[0] > 0) {
        json_open(j, "loops", '{');
        json_open(j, "points", '[');
        for (int i = 0; i < CAL_LOOPS; i++)
            put_point(j, (double)calibrate_loop_bytes(i), c->loop_ns[i]);
        json_close(j, ']');
        json_close(j, '}');
    }
}

/* Measured beside matrix products, taken for all kernels. */
static void put_slowdown(struct json_out *j, const struct calibration *c)
{
    tuck_coll kind[CAL_COLLS];

    if (c->beside[0] <= 0)
        return;
    for (int k = 0; k < CAL_COLLS; k++)
        kind[k] = calibrate_coll(k);
    slowdown_json(j, kind, c->beside, CAL_COLLS);
    json_open(j, "transfer_slowdown", '{');
    for (int k = 0; k < CAL_COLLS; k++)
        json_float(j, tuck_coll_name(kind[k]), c->held[k] > 1 ? c->held[k] : 1);
    json_close(j, '}');
}

static void write_file(struct buf *b, const tuck_print_options *how, const void *arg)
{
    const struct calibration *c = &((const tuck_calibration *)arg)->c;
    double slower = c->copy_bytes < c->loop_bytes ? c->copy_bytes : c->loop_bytes;
    struct json_out j;

    (void)how;
    json_begin(&j, b);
    json_open(&j, NULL, '{');
    json_schema(&j, 1);
    json_str(&j, "device", "cpu-loopback");
    json_int(&j, "per_node", c->world);
    json_int(&j, "nodes", 1);
    json_open(&j, "compute", '{');
    if (c->gemm_flops > 0 && c->gemm64_flops > 0) {
        json_open(&j, "tflops", '{');
        json_float(&j, "f64", c->gemm64_flops / 1e12);
        json_float(&j, "f32", c->gemm_flops / 1e12);
        json_close(&j, '}');
        json_open(&j, "efficiency", '{');
        json_float(&j, "f64", 1);
        json_float(&j, "f32", 1);
        json_close(&j, '}');
    }
    if (slower > 0) {
        json_float(&j, "dram_gbps", slower / 1e9);
        json_float(&j, "dram_efficiency", 1);
    }
    if (c->kernel_ns > 0)
        json_float(&j, "kernel_us", c->kernel_ns / 1000);
    put_kernels(&j, c);
    json_close(&j, '}');
    put_tables(&j, c);
    put_slowdown(&j, c);
    if (c->on_cores)
        json_bool(&j, "overlap", false);
    json_close(&j, '}');
    json_end(&j);
}

tuck_status tuck_calibration_write(const tuck_calibration *x, tuck_write_fn write, void *ctx)
{
    return x != NULL ? api_print(&x->mem.alloc, NULL, write, ctx, write_file, x) : TUCK_EINVAL;
}

/* ---- the table ---- */

static void print(struct buf *b, const tuck_print_options *how, const void *arg)
{
    const struct calibration *c = &((const tuck_calibration *)arg)->c;

    (void)how;
    ink_line(b, INK_DIM, "measured on %d ranks, all of them at work at once", c->world);
    buf_printf(b, "  %-23s %10.1f GFLOP/s of f32, %.1f of f64\n", "matrix products",
               c->gemm_flops / 1e9, c->gemm64_flops / 1e9);
    buf_printf(b, "  %-23s %10.1f GB/s read and written\n", "copies", c->copy_bytes / 1e9);
    buf_printf(b, "  %-23s %10.1f GB/s\n", "loops", c->loop_bytes / 1e9);
    buf_printf(b, "  %-23s %10.3f us\n\n", "the least of a kernel", c->kernel_ns / 1000);
    buf_printf(b, "  %10s", "us");
    for (int k = 0; k < CAL_COLLS; k++)
        buf_printf(b, " %13s", tuck_coll_name(calibrate_coll(k)));
    buf_chr(b, '\n');
    for (int s = 0; s < CAL_SIZES; s++) {
        buf_printf(b, "  %10lld", (long long)calibrate_size(s));
        for (int k = 0; k < CAL_COLLS; k++)
            buf_printf(b, " %13.2f", c->coll_ns[k][s] / 1000);
        buf_chr(b, '\n');
    }
}

tuck_status tuck_calibration_print(const tuck_calibration *x, const tuck_print_options *how,
                                   tuck_write_fn write, void *ctx)
{
    return x != NULL ? api_print(&x->mem.alloc, how, write, ctx, print, x) : TUCK_EINVAL;
}

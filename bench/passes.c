/* usage: passes [-x EXPONENT] [-r PASS] [NODES...]
 *
 * CPU time of every pass on graphs, with everything the runner does around it: copy, inference,
 * annotations, lint. The graphs are steps of equal layers, made here, 5 % collectives, each pass on
 * one that gives it work; with large caps a few buckets hold thousands. The exit status is 1 if a
 * pass takes longer than NODES ** EXPONENT (1.15), fails, or changes nothing.
 */
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "study/runner.h"
#include "study/pass_table.h"

enum { MAX_SIZES = 8, RUNS = 3, LARGE = 300000 };

/* ---- graphs ---- */

struct text {
    char *at;
    size_t len, cap;
    unsigned nodes;
};

static void add(struct text *t, const char *fmt, ...)
{
    va_list ap;

    if (t->cap - t->len < 4096)
        t->at = realloc(t->at, t->cap = t->cap * 2 + 65536);
    if (t->at == NULL)
        abort();
    va_start(ap, fmt);
    t->len += (size_t)vsnprintf(t->at + t->len, 4096, fmt, ap);
    va_end(ap);
}

static void line(struct text *t, const char *fmt, ...)
{
    char buf[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(buf, sizeof(buf), fmt, ap);
    va_end(ap);
    add(t, "        %s\n", buf);
    t->nodes++;
}

#define V16 "\"f32[16][1]cpu\""
#define V32 "\"f32[32][1]cpu\""

/* n nodes of work on `from`; the result is called w<i>. */
static void work(struct text *t, unsigned i, unsigned n, const char *from)
{
    for (unsigned k = 0; k < n; k++) {
        char last[32];
        snprintf(last, sizeof(last), "v%u_%u", i, k - 1);
        line(t, "%c%u_%u: " V16 " = torch.ops.aten.mul.Tensor(%s, 2)", k + 1 < n ? 'v' : 'w', i, k,
             k == 0 ? from : last);
    }
}

/* Gradients, each divided, reduced and returned; every fourth is copied to the tensor that keeps
 * it. */
static void data_parallel(struct text *t, unsigned nodes)
{
    unsigned layers = nodes / 20;

    add(t, "class step(torch.nn.Module):\n    def forward(self, x: " V16 ", kept: " V16 "):\n");
    for (unsigned i = 0; i < layers; i++) {
        work(t, i, 17, "x");
        line(t, "d%u: " V16 " = torch.ops.aten.div.Tensor(w%u_16, 8)", i, i);
        line(t, "r%u: " V16 " = torch.ops._c10d_functional.all_reduce.default(d%u, 'sum', '0')", i,
             i);
        line(t, "a%u: " V16 " = torch.ops._c10d_functional.wait_tensor.default(r%u)", i, i);
        if (i % 4 == 3)
            line(t, "c%u: " V16 " = torch.ops.aten.copy_.default(kept, a%u)", i, i);
    }
    add(t, "        return (");
    for (unsigned i = 0; i < layers; i++)
        if (i % 4 != 3)
            add(t, "a%u, ", i);
    add(t, ")\n");
}

/* A parameter is converted and gathered before its use, and gradients are scattered: two that are
 * added, one that is returned. */
static void fully_sharded(struct text *t, unsigned nodes)
{
    unsigned layers = nodes / 40;

    add(t, "class step(torch.nn.Module):\n    def forward(self, x: " V32);
    for (unsigned i = 0; i < layers; i++)
        add(t, ", p%u: \"bf16[16][1]cpu\"", i);
    add(t, "):\n");
    for (unsigned i = 0; i < layers; i++) {
        line(t, "q%u: " V16 " = torch.ops.prims.convert_element_type.default(p%u, torch.float32)",
             i, i);
        line(t,
             "g%u: " V32
             " = torch.ops._c10d_functional.all_gather_into_tensor.default(q%u, 2, '0')",
             i, i);
        line(t, "a%u: " V32 " = torch.ops._c10d_functional.wait_tensor.default(g%u)", i, i);
        line(t, "m%u: " V32 " = torch.ops.aten.mul.Tensor(%s%u, a%u)", i, i ? "m" : "x",
             i ? i - 1 : 0, i);
        if (i == 0) /* there is no x0 */
            t->len -= strlen("x0, a0)\n"), add(t, "x, a0)\n");
        work(t, i, 26, "q0");
        for (unsigned k = 0; k < 3; k++) {
            line(t,
                 "s%u_%u: " V16
                 " = torch.ops._c10d_functional.reduce_scatter_tensor.default(m%u, 'sum', 2, '0')",
                 i, k, i);
            line(t, "b%u_%u: " V16 " = torch.ops._c10d_functional.wait_tensor.default(s%u_%u)", i,
                 k, i, k);
        }
        line(t, "z%u: " V16 " = torch.ops.aten.add.Tensor(b%u_0, b%u_1)", i, i, i);
        line(t, "y%u: " V16 " = torch.ops.aten.mul.Tensor(z%u, w%u_25)", i, i, i);
    }
    add(t, "        return (");
    for (unsigned i = 0; i < layers; i++)
        add(t, "y%u, b%u_2, ", i, i);
    add(t, ")\n");
}

/* FSDP2 as traced: parameters without storage, copy-ins, copies into the parameters. */
static void second_generation(struct text *t, unsigned nodes)
{
    unsigned layers = nodes / 40;

    add(t, "class step(torch.nn.Module):\n    def forward(self, x: " V16);
    for (unsigned i = 0; i < layers; i++)
        add(t, ", p%u: " V32, i);
    add(t, "):\n");
    for (unsigned i = 0; i < layers; i++) {
        line(t, "e%u: " V32 " = torch.ops.aten.empty.memory_format([32])", i);
        line(t, "i%u = torch.ops.fsdp.all_gather_copy_in.default([x], e%u, [16], 16, 0)", i, i);
        line(t, "j%u: " V16 " = i%u[0]", i, i);
        line(t,
             "g%u: " V32
             " = torch.ops._c10d_functional.all_gather_into_tensor.default(j%u, 2, '0')",
             i, i);
        line(t, "a%u: " V32 " = torch.ops._c10d_functional.wait_tensor.default(g%u)", i, i);
        line(t, "f%u = torch.ops.inductor.resize_storage_bytes_.default(p%u, 128)", i, i);
        line(t, "c%u = torch.ops.fsdp.copy_.default(p%u, a%u)", i, i, i);
        line(t, "u%u: " V32 " = torch.ops.aten.neg.default(p%u)", i, i);
        line(t, "o%u = torch.ops.inductor.resize_storage_bytes_.default(p%u, 0)", i, i);
        work(t, i, 30, "x");
    }
    add(t, "        return (");
    for (unsigned i = 0; i < layers; i++)
        add(t, "u%u, w%u_29, ", i, i);
    add(t, ")\n");
}

#define M64 "\"f32[64, 64][64, 1]cuda:0\""
#define M8 "\"f32[8, 64][64, 1]cuda:0\""

/* A step with matrix products: a parameter is gathered before each, forward and backward, and its
 * gradient is scattered and returned. */
static void training(struct text *t, unsigned nodes)
{
    unsigned layers = nodes / 18;

    add(t, "class step(torch.nn.Module):\n    def forward(self, x: " M64 ", d: " M64);
    for (unsigned i = 0; i < layers; i++)
        add(t, ", p%u: " M8, i);
    add(t, "):\n");
    for (unsigned i = 0; i < 2 * layers; i++) {
        unsigned k = i < layers ? i : 2 * layers - 1 - i;
        line(t,
             "g%u: " M64
             " = torch.ops._c10d_functional.all_gather_into_tensor.default(p%u, 8, '0')",
             i, k);
        line(t, "a%u: " M64 " = torch.ops._c10d_functional.wait_tensor.default(g%u)", i, i);
        if (i == 0)
            line(t, "m0: " M64 " = torch.ops.aten.mm.default(x, a0)");
        else if (i == layers)
            line(t, "m%u: " M64 " = torch.ops.aten.mm.default(d, a%u)", i, i);
        else
            line(t, "m%u: " M64 " = torch.ops.aten.mm.default(r%u_3, a%u)", i, i - 1, i);
        line(t, "r%u_0: " M64 " = torch.ops.aten.relu.default(m%u)", i, i);
        for (unsigned n = 1; n < 4; n++)
            line(t, "r%u_%u: " M64 " = torch.ops.aten.sin.default(r%u_%u)", i, n, i, n - 1);
        if (i < layers)
            continue;
        line(t, "w%u: " M64 " = torch.ops.aten.mm.default(r%u_3, r%u_3)", i, k, i);
        line(t,
             "s%u: " M8
             " = torch.ops._c10d_functional.reduce_scatter_tensor.default(w%u, 'avg', 8, '0')",
             i, i);
        line(t, "b%u: " M8 " = torch.ops._c10d_functional.wait_tensor.default(s%u)", i, i);
        line(t, "c%u: " M8 " = torch.ops.aten.neg.default(b%u)", i, i);
    }
    add(t, "        return (");
    for (unsigned i = layers; i < 2 * layers; i++)
        add(t, "c%u, ", i);
    add(t, ")\n");
}

static const struct row {
    const char *passes;
    void (*make)(struct text *t, unsigned nodes);
} rows[] = {
    {"deduplicate_wait_tensors", data_parallel},
    {"fuse_ddp_with_concat_op", data_parallel},
    {"fuse_ddp_with_concat_op(bucket_size_mb=0.001)", data_parallel},
    {"fuse_ddp_with_coalesced_op", data_parallel},
    {"fuse_ddp_communication", data_parallel},
    {"schedule_comm_wait", data_parallel},
    {"bucket_all_reduce", data_parallel},
    {"bucket_all_reduce(cap_mb=0.001)", data_parallel},
    {"bucket_all_reduce(mode=coalesced)", data_parallel},
    {"bucket_all_gather", fully_sharded},
    {"bucket_all_gather(cap_mb=0.001)", fully_sharded},
    {"bucket_all_gather(mode=custom_ops)", fully_sharded},
    {"bucket_all_gather(mode=custom_ops_multidtype)", fully_sharded},
    {"bucket_all_gather(mode=coalesced)", fully_sharded},
    {"bucket_reduce_scatter(cap_mb=0.001)", fully_sharded},
    {"bucket_reduce_scatter(mode=custom_ops,cap_mb=0.001)", fully_sharded},
    {"bucket_reduce_scatter(mode=coalesced,cap_mb=0.001)", fully_sharded},
    {"bucket_fsdp_all_gather", fully_sharded},
    {"bucket_fsdp_reduce_scatter", fully_sharded},
    {"pre_bucket_fsdp_collectives(cap_mb=0.01)", fully_sharded},
    {"dedup_fsdp_reduce_scatter", fully_sharded},
    {"insert_control_deps", fully_sharded},
    {"overlap_scheduling(compat=torch)", training},
    {"overlap_scheduling(compat=torch,max_off_bucket_gb=0.001)", training},
    {"reinplace_fsdp_all_gather", second_generation},
    {"remove_fsdp2_unsharded_param_graph_input_usage", second_generation},
};

/* ---- times ---- */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of the passes with everything around them, and of the passes alone. False: they
 * failed. */
static bool run(const tuck_doc *doc, const char *passes, double *all, double *alone, bool *changed)
{
    struct pipeline p;
    struct tuck_report report = {.mem = {.trap = NULL}};
    struct machine machine;
    struct evaluate_options eval;
    struct study study;
    struct runner r = {.study = &study};
    tuck_graph *g = NULL;

    pipeline_init(&p, &all_passes, NULL);
    mem_init(&report.mem, NULL);
    tuck_cluster *cluster = NULL;
    if (tuck_cluster_preset("h100x8", NULL, NULL, &cluster) != TUCK_OK)
        return false;
    machine_init(&machine, cluster);
    evaluate_defaults(&eval, &machine);
    study_begin(&study, &eval, &report.mem.alloc);
    arena_init(&report.arena, &report.mem);
    bool ok = pipeline_parse(&p, passes, strlen(passes), "bench", NULL) == TUCK_OK &&
              tuck_graph_copy(tuck_doc_graph(doc, 0), &g) == TUCK_OK;
    double start = now();
    ok = ok && pipeline_run(&p, g, &r, &report, NULL) == TUCK_OK;
    *all = now() - start;
    *alone = 0;
    for (uint32_t i = 0; i < report.pass.len; i++) {
        *alone += report.pass.at[i].ms / 1e3;
        *changed |= report.pass.at[i].changed;
    }
    tuck_graph_free(g);
    tuck_cluster_free(cluster);
    arena_destroy(&report.arena);
    pipeline_destroy(&p);
    return ok;
}

/* Least squares in logarithms. */
static double exponent(const double *x, const double *y, int n)
{
    double sx = 0, sy = 0, sxx = 0, sxy = 0;

    for (int i = 0; i < n; i++) {
        double a = log(x[i]), b = log(y[i]);
        sx += a, sy += b, sxx += a * a, sxy += a * b;
    }
    return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

static tuck_doc *read_graph(void (*make)(struct text *, unsigned), unsigned nodes)
{
    struct text t = {0};
    tuck_doc *doc = NULL;

    make(&t, nodes);
    tuck_status st = tuck_doc_read_text(t.at, t.len, "bench", NULL, NULL, &doc);
    free(t.at);
    return st == TUCK_OK ? doc : NULL;
}

struct result {
    double all[MAX_SIZES], alone[MAX_SIZES];
    bool ok, changed;
};

/* In a separate process: an earlier run would leave its memory behind, which helps small graphs
 * only. */
static bool run_apart(const tuck_doc *doc, const char *passes, double *all, double *alone,
                      bool *changed)
{
    struct {
        double all, alone;
        bool ok, changed;
    } x = {.ok = false};
    int end[2], status;

    if (pipe(end) != 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        x.ok = run(doc, passes, &x.all, &x.alone, &x.changed);
        _exit(write(end[1], &x, sizeof(x)) != sizeof(x));
    }
    close(end[1]);
    bool ok = child > 0 && read(end[0], &x, sizeof(x)) == sizeof(x) && x.ok;
    close(end[0]);
    if (child > 0)
        waitpid(child, &status, 0);
    *all = x.all;
    *alone = x.alone;
    *changed |= x.changed;
    return ok;
}

static void measure(const struct row *row, const tuck_doc *doc, int runs, int size,
                    struct result *r)
{
    r->all[size] = r->alone[size] = 1e9;
    for (int k = 0; k < runs; k++) {
        double all = 0, alone = 0;
        r->ok &= run_apart(doc, row->passes, &all, &alone, &r->changed);
        r->all[size] = all < r->all[size] ? all : r->all[size];
        r->alone[size] = alone < r->alone[size] ? alone : r->alone[size];
    }
}

int main(int argc, char **argv)
{
    enum { N_ROWS = sizeof(rows) / sizeof(*rows) };
    static struct result result[N_ROWS];
    double size[MAX_SIZES] = {10000, 100000, 1000000}, most = 1.15;
    const char *only = NULL;
    int n = 3, c;
    bool good = true;

    while ((c = getopt(argc, argv, "x:r:")) != -1) {
        switch (c) {
        case 'x': most = strtod(optarg, NULL); break;
        case 'r': only = optarg; break;
        default: return 2;
        }
    }
    if (optind < argc)
        for (n = 0; n < MAX_SIZES && optind < argc; n++)
            size[n] = strtod(argv[optind++], NULL);
    for (int i = 0; i < N_ROWS; i++)
        result[i].ok = true;
    for (int s = 0; s < n; s++) {
        tuck_doc *doc = NULL;
        for (int i = 0; i < N_ROWS; i++) {
            if (only != NULL && strncmp(rows[i].passes, only, strlen(only)) != 0)
                continue;
            if (doc == NULL)
                doc = read_graph(rows[i].make, (unsigned)size[s]);
            if (doc == NULL)
                return 1;
            measure(&rows[i], doc, size[s] < LARGE ? RUNS : 1, s, &result[i]);
            if (i + 1 == N_ROWS || rows[i + 1].make != rows[i].make) {
                tuck_doc_free(doc);
                doc = NULL;
            }
        }
        tuck_doc_free(doc);
    }
    printf("passes on graphs, with copy, inference and lint; in brackets the pass alone; CPU "
           "seconds\n%-52s",
           "nodes");
    for (int s = 0; s < n; s++)
        printf("%18.0f", size[s]);
    printf("  exponent (<= %g)\n", most);
    for (int i = 0; i < N_ROWS; i++) {
        const struct result *r = &result[i];
        if (only != NULL && strncmp(rows[i].passes, only, strlen(only)) != 0)
            continue;
        double e = n > 1 ? exponent(size, r->all, n) : 0;
        bool fine = r->ok && e <= most && (r->changed || i == 0);
        printf("%-52s", rows[i].passes);
        for (int s = 0; s < n; s++)
            printf("  %7.4f (%6.4f)", r->all[s], r->alone[s]);
        printf("  %.2f%s\n", e,
               fine    ? ""
               : r->ok ? r->changed ? "  MISSED" : "  IDLE"
                       : "  FAILED");
        good &= fine;
    }
    return !good;
}

/* The executable graphs of the corpus on real ranks, before and after optimizing: they return the
 * stored results of PyTorch, and write exactly the memory that was planned. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "run/safetensors.h"
#include "support/support.h"
#include "tuck_run.h"

enum { RANKS_MOST = 16 };

static char folder[64];
static bool
    threads; /* ranks are threads, for V=tsan; how graphs are optimized is not its concern */
static int n_run, n_refused;

static int begin(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/tuck-graphs-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int end(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

/* ---- one graph ---- */

struct job {
    char stem[512]; /* tests/graphs/exec/mlp_ddp_bw */
    size_t n_graph;
    bool each; /* there is a text for each rank */
    int world;
    tuck_doc *doc[RANKS_MOST];
    tuck_graph *g[RANKS_MOST];
    tuck_diags *d;
};

static bool there(const char *stem, int rank, const char *ending)
{
    char path[600];

    snprintf(path, sizeof(path), "%s.rank%d%s", stem, rank, ending);
    return access(path, F_OK) == 0;
}

static void open_job(struct job *j)
{
    while (j->world < RANKS_MOST && there(j->stem, j->world, ".safetensors"))
        j->world++;
    bool each = there(j->stem, 0, ".txt");
    /* A graph for each rank, also of one text: gathers in place begin in the slot of their rank. */
    j->each = each;
    j->n_graph = (size_t)j->world;
    for (size_t i = 0; i < j->n_graph; i++) {
        char path[600];
        if (each)
            snprintf(path, sizeof(path), "%s.rank%zu.txt", j->stem, i);
        else
            snprintf(path, sizeof(path), "%s.txt", j->stem);
        assert_int_equal(tuck_doc_read_file(path, NULL, j->d, &j->doc[i]), TUCK_OK);
        j->g[i] = tuck_doc_graph(j->doc[i], 0);
        assert_int_equal(tuck_graph_read_sidecar(j->g[i], path, (int64_t)i, j->d), TUCK_OK);
    }
}

static void close_job(struct job *j)
{
    for (size_t i = 0; i < j->n_graph; i++)
        tuck_doc_free(j->doc[i]);
    tuck_diags_free(j->d);
}

/* ---- results ---- */

static double number_at(const struct st_tensor *t, int64_t i)
{
    const char *at = (const char *)t->data + i * dtype_at(t->dtype)->bytes;
    int64_t v = 0;
    double d;
    float f;

    switch (t->dtype) {
    case DTYPE_F32: memcpy(&f, at, 4); return (double)f;
    case DTYPE_F64: memcpy(&d, at, 8); return d;
    case DTYPE_I64: memcpy(&v, at, 8); return (double)v;
    case DTYPE_BF16: {
        uint32_t w = 0;
        memcpy((char *)&w + 2, at, 2);
        memcpy(&f, &w, 4);
        return (double)f;
    }
    default: return *at;
    }
}

static void compare(const char *graph, int rank, const struct st_tensor *want,
                    const struct st_file *got, const char *when)
{
    const struct st_tensor *t = st_find(got, want->name);
    bool exact = !dtype_is_float(want->dtype);

    if (t == NULL)
        fail_msg("%s %s, rank %d: no %s", graph, when, rank, want->name);
    if (t->dtype != want->dtype || t->n != want->n || t->bytes != want->bytes ||
        memcmp(t->size, want->size, t->n * sizeof(*t->size)) != 0)
        fail_msg("%s %s, rank %d: %s has another type", graph, when, rank, want->name);
    int64_t n = want->bytes / dtype_at(want->dtype)->bytes;
    for (int64_t i = 0; i < n; i++) {
        double a = number_at(want, i), b = number_at(t, i);
        double most = exact ? 0 : 1e-5 + 1e-4 * fabs(a);
        if (!(fabs(a - b) <= most) && !(isnan(a) && isnan(b)))
            fail_msg("%s %s, rank %d: %s[%lld] is %.9g, expected %.9g", graph, when, rank,
                     want->name, (long long)i, b, a);
    }
}

static void compare_all(const struct job *j, const char *when)
{
    const char *name = strrchr(j->stem, '/') + 1;

    for (int r = 0; r < j->world; r++) {
        char stored[600], made[600];
        struct st_file *want, *got;
        snprintf(stored, sizeof(stored), "%s.rank%d.safetensors", j->stem, r);
        snprintf(made, sizeof(made), "%s/out.rank%d.safetensors", folder, r);
        assert_int_equal(st_open(stored, NULL, j->d, &want), TUCK_OK);
        assert_int_equal(st_open(made, NULL, j->d, &got), TUCK_OK);
        for (uint32_t i = 0; i < st_count(want); i++)
            if (strncmp(st_at(want, i)->name, "output.", 7) == 0 ||
                strncmp(st_at(want, i)->name, "changed.", 8) == 0)
                compare(name, r, st_at(want, i), got, when);
        st_close(want);
        st_close(got);
        unlink(made);
    }
}

/* ---- running ---- */

/* False: it has operators without a kernel. */
static bool run(struct job *j, const char *when)
{
    char out[100];
    tuck_exec_options o;
    tuck_execution *x = NULL;
    tuck_exec_memory m;

    snprintf(out, sizeof(out), "%s/out", folder);
    tuck_exec_options_init(&o);
    o.ranks = j->world;
    o.steps = 2; /* the second one finds what the first one left */
    o.warmup = 0;
    o.inputs = j->stem;
    o.outputs = out;
    o.count_memory = true;
    if (threads)
        o.transport = "threads";
    if (tuck_ranks_execute(j->g, j->n_graph, &o, j->d, &x) != TUCK_OK) {
        char *text = diags_text(j->d);
        bool refused = strstr(text, "there is no kernel for") != NULL;
        if (!refused)
            fail_msg("%s %s: %s", j->stem, when, text);
        print_message("skipped %s\n", text);
        free(text);
        return false;
    }
    compare_all(j, when);
    tuck_execution_memory(x, &m);
    if (m.touched_bytes != m.planned_bytes || m.highest_byte > m.arena_bytes)
        fail_msg("%s %s: %lld bytes written, %lld planned", j->stem, when,
                 (long long)m.touched_bytes, (long long)m.planned_bytes);
    if (m.grown_bytes == 0 && m.allocations > 0)
        fail_msg("%s %s: %lld allocations", j->stem, when, (long long)m.allocations);
    tuck_execution_free(x);
    return true;
}

/* Orders of collectives stay: ranks with different texts must agree. */
static void optimize(struct job *j)
{
    for (size_t i = 0; i < j->n_graph; i++) {
        tuck_run_options o;
        tuck_report *report = NULL;
        tuck_machine m; /* any values of symbols do for choosing an order */
        tuck_machine_init(&m);
        m.hints = &(tuck_hint){"*", 6};
        m.n_hints = 1;
        tuck_run_options_init(&o);
        o.machine = &m;
        o.order = j->each ? TUCK_ORDER_OF_ALL : TUCK_ORDER_FREE;
        o.effort = 1;
        if (tuck_graph_optimize(j->g[i], &o, j->d, NULL, &report) != TUCK_OK)
            fail_msg("%s: %s", j->stem, diags_text(j->d));
        tuck_report_free(report);
    }
}

static void test_graphs(void **state)
{
    size_t n;
    char **path = find_paths("tests/graphs/exec", ".json", &n);
    const char *only = getenv("TUCK_ONLY");

    (void)state;
    threads = getenv("TUCK_COMM_THREADS") != NULL;
    for (size_t i = 0; i < n; i++) {
        struct job j = {.d = tuck_diags_new(NULL)};
        if (only != NULL && strstr(path[i], only) == NULL)
            continue;
        snprintf(j.stem, sizeof(j.stem), "%.*s", (int)strlen(path[i]) - 5, path[i]);
        open_job(&j);
        if (run(&j, "as it is")) {
            n_run++;
            if (!threads) {
                optimize(&j);
                run(&j, "optimized");
            }
        } else {
            n_refused++;
        }
        close_job(&j);
    }
    free_paths(path, n);
    print_message("%d graphs ran, %d have operators without a kernel\n", n_run, n_refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_graphs)};

    return cmocka_run_group_tests(tests, begin, end);
}

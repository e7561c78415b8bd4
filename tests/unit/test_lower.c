/* Programs of every graph of the corpus: their text is read back the same, their plan is valid,
 * their peak equals a recount, no operand of a collective is used before its wait, and a shuffled
 * order can be applied to the graph and is found again. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/arena_plan.h"
#include "support/program_check.h"

static struct rng rng = {88172645463325252u};

static struct program *lower(tuck_graph *g, bool fuse)
{
    struct program *p = lower_with_sizes(g, fuse);

    assert_non_null(p);
    return p;
}

/* ---- orders ---- */

static size_t n_orders, n_apart;

static void check(char *why, const char *name)
{
    if (why != NULL)
        fail_msg("%s: %s", name, why);
}

/* Applies a random order to the graph; the graph's text is lowered to that order. */
static void check_order(const tuck_graph *g, const char *path, const char *name, bool fuse)
{
    tuck_graph *copy;

    assert_int_equal(tuck_graph_copy(g, &copy), TUCK_OK);
    struct program *p = lower(copy, fuse), *q;
    uint32_t *order = random_order(p, &rng);

    check(check_apply(copy, p, order), name);
    q = lower(copy, fuse);
    check(check_same_order(p, order, q), name);
    program_free(q);
    char *text = graph_text(copy);
    n_orders++;
    n_apart += strstr(text, FX_APART) != NULL;
    tuck_doc *doc = read_or_die(text);
    assert_int_equal(tuck_graph_read_sidecar(tuck_doc_graph(doc, 0), path, -1, NULL), TUCK_OK);
    q = lower(tuck_doc_graph(doc, 0), fuse);
    check(check_same_order(p, order, q), name);
    program_free(q);
    tuck_doc_free(doc);
    free(text);
    free(order);
    program_free(p);
    tuck_graph_free(copy);
}

/* ---- the corpus ---- */

struct result { /* of one graph */
    char name[160];
    int64_t peak, least, arena;
    uint32_t ops, kernels, buffers;
};

static struct {
    struct result at[1000];
    size_t n;
} results;

static uint32_t kernels_of(const struct program *p)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->n_op; i++)
        n += program_is_kernel(&p->op[i]);
    return n;
}

static void keep(const char *name, const struct program *p)
{
    struct result *r = &results.at[results.n++];

    assert_true(results.n < sizeof(results.at) / sizeof(*results.at));
    *r = (struct result){.peak = p->peak,
                         .least = p->arena_least,
                         .arena = p->arena_bytes,
                         .ops = p->n_op,
                         .kernels = kernels_of(p),
                         .buffers = p->n_buf};
    snprintf(r->name, sizeof(r->name), "%s", name);
}

static void check_graph(tuck_graph *g, const char *path, const char *name, bool big)
{
    for (int fuse = 0; fuse < 2; fuse++) {
        struct program *p = lower(g, fuse);
        check(check_program(p, NULL), name);
        check(check_program_text(p), name);
        if (fuse)
            keep(name, p);
        program_free(p);
        if (!big)
            check_order(g, path, name, fuse);
    }
}

static void check_file(const char *path, bool big)
{
    tuck_doc *doc;
    char name[160];

    if (tuck_doc_read_file(path, NULL, NULL, &doc) != TUCK_OK)
        return; /* not a graph: other tests read those */
    for (size_t i = 0; i < tuck_doc_count(doc); i++) {
        tuck_graph *g = tuck_doc_graph(doc, i);
        assert_int_equal(tuck_graph_read_sidecar(g, path, -1, NULL), TUCK_OK);
        snprintf(name, sizeof(name), "%s", path + strlen("tests/graphs/"));
        if (tuck_doc_count(doc) > 1)
            snprintf(name + strlen(name), sizeof(name) - strlen(name), "#%zu", i);
        check_graph(g, path, name, big);
    }
    tuck_doc_free(doc);
}

static void corpus(void **unused)
{
    static const char *const dirs[] = {"ddp", "fsdp", "tp", "moe", "exec", "forms", "big"};

    (void)unused;
    for (size_t k = 0; k < sizeof(dirs) / sizeof(*dirs); k++) {
        char dir[64];
        size_t n;
        snprintf(dir, sizeof(dir), "tests/graphs/%s", dirs[k]);
        char **path = find_paths(dir, ".txt", &n);
        for (size_t i = 0; i < n; i++)
            check_file(path[i], strcmp(dirs[k], "big") == 0);
        free_paths(path, n);
    }
    assert_true(results.n > 100);
    print_message("# %zu graphs, %zu shuffled orders, %zu with loops to keep apart\n", results.n,
                  n_orders, n_apart);
    assert_true(n_apart > 0);
}

/* ---- numbers that are kept ---- */

static int by_ratio(const void *x, const void *y)
{
    const struct result *a = x, *b = y;
    double ra = a->least ? (double)a->arena / (double)a->least : 1,
           rb = b->least ? (double)b->arena / (double)b->least : 1;

    return ra < rb ? -1 : ra > rb ? 1 : strcmp(a->name, b->name);
}

static double ratio(const struct result *r)
{
    return r->least ? (double)r->arena / (double)r->least : 1;
}

/* Compares with tests/results/memory.txt. TUCK_BLESS=1 rewrites it. */
static void kept_numbers(void **unused)
{
    static const char *const path = "tests/results/memory.txt";
    struct text t = {NULL, 0, 0};
    char line[320];

    (void)unused;
    snprintf(line, sizeof(line),
             "# By tests/unit/test_lower; TUCK_BLESS=1 writes it anew. Columns: graph, peak bytes, "
             "the same aligned,\n"
             "# arena bytes, arena / aligned peak, ops, kernels, buffers\n");
    text_add(&t, line, strlen(line));
    for (size_t i = 0; i < results.n; i++) {
        const struct result *r = &results.at[i];
        snprintf(line, sizeof(line), "%-44s %12lld %12lld %12lld %6.4f %5u %5u %5u\n", r->name,
                 (long long)r->peak, (long long)r->least, (long long)r->arena, ratio(r), r->ops,
                 r->kernels, r->buffers);
        text_add(&t, line, strlen(line));
    }
    qsort(results.at, results.n, sizeof(*results.at), by_ratio);
    const struct result *median = &results.at[results.n / 2], *worst = &results.at[results.n - 1];
    snprintf(line, sizeof(line), "# median %.4f; worst %.4f, %s\n", ratio(median), ratio(worst),
             worst->name);
    text_add(&t, line, strlen(line));
    print_message("%s", line);
    if (getenv("TUCK_BLESS") != NULL) {
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        assert_true(fwrite(t.at, 1, t.len, f) == t.len && fclose(f) == 0);
    }
    struct text want = text_of_file(path);
    assert_string_equal(t.at, want.at);
    assert_true(ratio(median) <= 1.03);
    text_done(&want);
    text_done(&t);
}

/* ---- the public interface ---- */

static const char step_text[] =
    "class step(torch.nn.Module):\n"
    "    def forward(self, a: \"f32[8][1]cuda:0\", s0: \"Sym(s0)\", b: \"f32[s0][1]cuda:0\"):\n"
    "        x: \"f32[8][1]cuda:0\" = torch.ops.aten.neg.default(a)\n"
    "        r: \"f32[8][1]cuda:0\" = torch.ops._c10d_functional.all_reduce.default(x, 'sum', "
    "'0')\n"
    "        y: \"f32[s0][1]cuda:0\" = torch.ops.aten.cos.default(b)\n"
    "        z: \"f32[s0][1]cuda:0\" = torch.ops.aten.sin.default(y)\n"
    "        w: \"f32[8][1]cuda:0\" = torch.ops._c10d_functional.wait_tensor.default(r)\n"
    "        return (w, z)\n";

static const tuck_hint s0 = {"s0", 16};

static tuck_status lower_and_plan(tuck_graph *g, tuck_program **p, tuck_problem **problem)
{
    tuck_machine machine = {.size = sizeof(machine), .hints = &s0, .n_hints = 1};
    tuck_lower_options o = {.size = sizeof(o), .machine = &machine};
    tuck_memory m;
    tuck_status st = tuck_graph_lower(g, &o, NULL, p);

    if (st == TUCK_OK)
        st = tuck_program_plan(*p, NULL, &m);
    if (st == TUCK_OK)
        st = tuck_program_problem(*p, NULL, problem);
    return st;
}

static void public_interface(void **unused)
{
    tuck_diags *d = tuck_diags_new(NULL);
    tuck_doc *doc = read_or_die(step_text);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_program *p = NULL, *q = NULL;
    tuck_problem *problem = NULL;
    tuck_memory m, again;
    struct text t = {NULL, 0, 0};
    const uint32_t order[] = {0, 2, 1, 3}, twice[] = {0, 0, 1, 2}, wrong[] = {0, 3, 1, 2};

    (void)unused;
    assert_int_equal(tuck_graph_lower(g, NULL, d, &p), TUCK_EINVAL); /* s0 */
    assert_string_equal(tuck_diags_at(d, 0)->message, "symbols in sizes have no value: s0");
    assert_int_equal(lower_and_plan(g, &p, &problem), TUCK_OK);
    assert_int_equal(tuck_program_op_count(p), 4);
    assert_string_equal(tuck_program_op_name(p, 1), "r");
    assert_string_equal(tuck_program_op_name(p, 4), "");
    assert_true(tuck_program_op_ps(p, 0) > 0 && tuck_program_op_ps(p, 4) == -1);
    assert_int_equal(tuck_problem_op_count(problem), 4);
    assert_int_equal(tuck_program_plan(p, twice, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_program_plan(p, wrong, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_program_plan(p, order, &m), TUCK_OK);
    assert_true(m.peak == 160 && m.arena == 192 && m.resident == 0 && m.comm_digest == 0);
    assert_int_equal(tuck_program_write(p, text_add, &t), TUCK_OK);
    assert_int_equal(tuck_program_read_text(t.at, t.len, "p", NULL, d, &q), TUCK_OK);
    assert_int_equal(tuck_program_plan(q, order, &again), TUCK_OK);
    assert_memory_equal(&m, &again, sizeof(m));
    assert_int_equal(tuck_program_apply(q, order, g), TUCK_EINVAL); /* it has no graph */
    assert_int_equal(tuck_program_apply(p, wrong, g), TUCK_EINVAL);
    assert_int_equal(tuck_program_apply(p, order, g), TUCK_OK);
    assert_int_equal(tuck_graph_lint(g, NULL), TUCK_OK);
    assert_string_equal(tuck_node_name(g, tuck_graph_prev(g, tuck_graph_output(g))), "w");
    tuck_problem_free(problem);
    tuck_program_free(p);
    tuck_program_free(q);
    text_done(&t);
    tuck_doc_free(doc);
    tuck_diags_free(d);
}

static void every_allocation_fails_once(void **unused)
{
    size_t n = 0;

    (void)unused;
    for (bool failed = true; failed; n++) {
        struct faulty f = {.fail_at = 0};
        tuck_allocator a = faulty_allocator(&f);
        tuck_read_options read = {.size = sizeof(read), .alloc = &a};
        tuck_doc *doc;
        tuck_program *p = NULL;
        tuck_problem *problem = NULL;

        assert_int_equal(
            tuck_doc_read_text(step_text, sizeof(step_text) - 1, "t", &read, NULL, &doc), TUCK_OK);
        f.fail_at = f.calls + n + 1;
        tuck_status st = lower_and_plan(tuck_doc_graph(doc, 0), &p, &problem);
        failed = f.failed;
        assert_int_equal(st, failed ? TUCK_ENOMEM : TUCK_OK);
        tuck_problem_free(problem);
        tuck_program_free(p);
        tuck_doc_free(doc);
        assert_int_equal(f.live, 0);
    }
    print_message("# %zu allocations\n", n);
    assert_true(n > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corpus),
        cmocka_unit_test(kept_numbers),
        cmocka_unit_test(public_interface),
        cmocka_unit_test(every_allocation_fails_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

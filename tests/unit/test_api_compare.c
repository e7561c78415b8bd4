/* Differences and scaling curves through the public interface. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

/* As in tests/golden/diff: two nodes were renamed, wait moved, mm_2 vanished, mm_3 appeared. */
#define T ": \"f32[64, 64][64, 1]cuda:0\""
#define HEAD                                                                                       \
    "class step(torch.nn.Module):\n    def forward(self, x" T ", w" T "):\n"                       \
    "        mm" T " = torch.ops.aten.mm.default(x, w)\n"                                          \
    "        all_reduce" T " = torch.ops._c10d_functional.all_reduce.default(mm, 'sum', '0')\n"
#define REDUCE(out, in)                                                                            \
    "        " out T " = torch.ops._c10d_functional.all_reduce.default(" in ", 'sum', '0')\n"
#define WAIT(out, in) "        " out T " = torch.ops._c10d_functional.wait_tensor.default(" in ")\n"
#define MM(out, a, b) "        " out T " = torch.ops.aten.mm.default(" a ", " b ")\n"

static const char before_text[] = HEAD WAIT("wait", "all_reduce") MM("mm_1", "w", "x")
    REDUCE("all_reduce_1", "mm_1") WAIT("wait_1", "all_reduce_1")
        MM("mm_2", "w", "w") "        return (wait, wait_1, mm_2,)\n";
static const char after_text[] = HEAD MM("other", "w", "x") REDUCE("reduced", "other")
    WAIT("wait", "all_reduce") WAIT("wait_9", "reduced")
        MM("mm_3", "wait", "wait_9") "        return (wait, wait_9, mm_3,)\n";

struct pair {
    tuck_doc *doc[2];
    tuck_graph *g[2];
    tuck_simulation *s[2];
};

static void open_pair(struct pair *p, const char *a, const char *b, const tuck_allocator *alloc)
{
    const char *const text[2] = {a, b};
    tuck_read_options read = {.size = sizeof(read), .alloc = alloc};

    *p = (struct pair){.doc = {NULL}};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tuck_doc_read_text(text[i], strlen(text[i]), "t", &read, NULL, &p->doc[i]),
                         TUCK_OK);
        p->g[i] = tuck_doc_graph(p->doc[i], 0);
        assert_int_equal(tuck_graph_set_group(p->g[i], "0", 4, NULL, NULL), TUCK_OK);
        assert_int_equal(tuck_graph_simulate(p->g[i], NULL, NULL, &p->s[i]), TUCK_OK);
    }
}

static void close_pair(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        tuck_simulation_free(p->s[i]);
        tuck_doc_free(p->doc[i]);
    }
}

static void is_node(const tuck_graph *g, tuck_node n, const char *name)
{
    assert_string_equal(tuck_is_none(n) ? "" : tuck_node_name(g, n), name);
}

static void sides(void **state)
{
    struct pair p;
    tuck_diff *d = NULL;
    tuck_diff_side a, b;
    tuck_times t;
    tuck_bound bound;

    (void)state;
    open_pair(&p, before_text, after_text, NULL);
    assert_int_equal(tuck_simulation_diff(p.s[0], p.s[1], &d), TUCK_OK);
    tuck_diff_before(d, &a);
    tuck_diff_after(d, &b);
    tuck_simulation_times(p.s[0], &t);
    tuck_simulation_bound(p.s[0], &bound);
    assert_int_equal(a.times.step_ps, t.step_ps);
    assert_int_equal(a.times.peak_bytes, t.peak_bytes);
    assert_int_equal(a.bound_ps, bound.any_ps);
    tuck_simulation_times(p.s[1], &t);
    assert_int_equal(b.times.exposed_ps, t.exposed_ps);
    assert_true(b.times.exposed_ps < a.times.exposed_ps);
    assert_int_equal(a.nodes, 7);
    assert_int_equal(b.nodes, 7);
    assert_int_equal(a.collectives, 2);
    assert_int_equal(tuck_diff_same(d), 6);
    tuck_diff_free(d);
    close_pair(&p);
}

static void changes(void **state)
{
    struct pair p;
    tuck_diff *d = NULL;
    tuck_changed c;

    (void)state;
    open_pair(&p, before_text, after_text, NULL);
    assert_int_equal(tuck_simulation_diff(p.s[0], p.s[1], &d), TUCK_OK);
    assert_int_equal(tuck_diff_count(d, TUCK_APPEARED), 1);
    assert_true(tuck_diff_at(d, TUCK_APPEARED, 0, &c));
    is_node(p.g[0], c.before, "");
    is_node(p.g[1], c.after, "mm_3");
    assert_int_equal(tuck_diff_count(d, TUCK_VANISHED), 1);
    assert_true(tuck_diff_at(d, TUCK_VANISHED, 0, &c));
    is_node(p.g[0], c.before, "mm_2");
    is_node(p.g[1], c.after, "");
    assert_int_equal(tuck_diff_count(d, TUCK_MERGED), 0);
    assert_int_equal(tuck_diff_count(d, TUCK_MOVED), 1);
    assert_true(tuck_diff_at(d, TUCK_MOVED, 0, &c));
    is_node(p.g[0], c.before, "wait");
    is_node(p.g[1], c.after, "wait");
    assert_int_equal(c.places, 2);
    assert_int_equal(c.from, 2);
    assert_int_equal(c.to, 4);
    assert_false(tuck_diff_at(d, TUCK_MOVED, 1, &c));
    assert_false(tuck_diff_at(d, (tuck_change)77, 0, &c));
    assert_int_equal(tuck_diff_count(d, (tuck_change)77), 0);
    assert_int_equal(tuck_diff_count(NULL, TUCK_MOVED), 0);

    is_node(p.g[1], tuck_diff_node_after(d, tuck_graph_find(p.g[0], "mm_1")), "other");
    is_node(p.g[0], tuck_diff_node_before(d, tuck_graph_find(p.g[1], "wait_9")), "wait_1");
    is_node(p.g[1], tuck_diff_node_after(d, tuck_graph_find(p.g[0], "mm_2")), "");
    is_node(p.g[1], tuck_diff_node_after(d, (tuck_node){12345678}), "");
    tuck_diff_free(d);
    close_pair(&p);
}

/* Every node of the graph before is in the graph after, or vanished, or was merged. */
static void merged(void **state)
{
    tuck_doc *doc = NULL;
    tuck_graph *copy = NULL;
    tuck_simulation *s[2] = {NULL, NULL};
    tuck_pipeline *p = NULL;
    tuck_report *report = NULL;
    tuck_diff *d = NULL;
    tuck_diff_side a, b;
    tuck_changed c;
    static const char passes[] = "bucket_all_gather";

    (void)state;
    assert_int_equal(tuck_doc_read_file("examples/llama_fsdp_bw.txt", NULL, NULL, &doc), TUCK_OK);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    assert_int_equal(tuck_graph_copy(g, &copy), TUCK_OK);
    assert_int_equal(tuck_pipeline_parse(passes, strlen(passes), "", NULL, NULL, &p), TUCK_OK);
    assert_int_equal(tuck_pipeline_run(p, copy, NULL, NULL, &report), TUCK_OK);
    assert_int_equal(tuck_graph_simulate(g, NULL, NULL, &s[0]), TUCK_OK);
    assert_int_equal(tuck_graph_simulate(copy, NULL, NULL, &s[1]), TUCK_OK);
    assert_int_equal(tuck_simulation_diff(s[0], s[1], &d), TUCK_OK);
    tuck_diff_before(d, &a);
    tuck_diff_after(d, &b);
    assert_true(tuck_diff_count(d, TUCK_MERGED) > 1);
    assert_true(b.collectives < a.collectives);
    for (size_t i = 0; tuck_diff_at(d, TUCK_MERGED, i, &c); i++) {
        assert_true(tuck_node_group(g, c.before) >= 0);
        assert_true(tuck_node_group(copy, c.after) >= 0);
        assert_true(tuck_is_none(tuck_diff_node_before(d, c.after)));
    }
    assert_int_equal(a.nodes, tuck_diff_same(d) + tuck_diff_count(d, TUCK_VANISHED) +
                                  tuck_diff_count(d, TUCK_MERGED));
    assert_int_equal(b.nodes, tuck_diff_same(d) + tuck_diff_count(d, TUCK_APPEARED));
    tuck_diff_free(d);
    tuck_simulation_free(s[0]);
    tuck_simulation_free(s[1]);
    tuck_report_free(report);
    tuck_pipeline_free(p);
    tuck_graph_free(copy);
    tuck_doc_free(doc);
}

static bool drop(void *ctx, const char *s, size_t n)
{
    (void)ctx;
    (void)s;
    (void)n;
    return true;
}

static void diff_without_memory(void **state)
{
    struct faulty f = {.fail_at = 0};
    tuck_allocator alloc = faulty_allocator(&f);
    struct pair p;
    size_t tried = 0;
    bool failed = true;

    (void)state;
    open_pair(&p, before_text, after_text, &alloc);
    for (size_t k = 1; failed; k++, tried++) {
        tuck_diff *d = NULL;

        f.failed = false;
        f.fail_at = f.calls + k;
        tuck_status st = tuck_simulation_diff(p.s[0], p.s[1], &d);
        if (st == TUCK_OK)
            st = tuck_diff_print(d, NULL, drop, NULL);
        failed = f.failed;
        assert_true(st == TUCK_OK || (failed && st == TUCK_ENOMEM)); /* a cache may do without */
        tuck_diff_free(d);
    }
    assert_true(tried > 4);
    f.fail_at = 0;
    close_pair(&p);
    assert_int_equal(f.live, 0);
}

/* ---- scaling ---- */

struct points {
    int64_t ranks[8], step_ps[8];
    size_t n, most;
};

static bool see(void *ctx, int64_t ranks, const tuck_simulation *s)
{
    struct points *p = ctx;
    tuck_times t;

    tuck_simulation_times(s, &t);
    p->ranks[p->n] = ranks;
    p->step_ps[p->n++] = t.step_ps;
    return p->n < p->most;
}

static void scaling(void **state)
{
    tuck_doc *doc = read_or_die(before_text);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    struct points seen = {.most = 8};
    tuck_scaling_options o;
    tuck_scaling *s = NULL;
    tuck_scaling_point p;
    struct text printed = {NULL, 0, 0};
    const char *const groups[] = {"0"}, *const nobody[] = {"tp"};

    (void)state;
    tuck_scaling_options_init(&o);
    o.from = 3;
    o.to = 13;
    o.point = see;
    o.ctx = &seen;
    assert_int_equal(tuck_graph_scale(g, NULL, &o, NULL, &s), TUCK_OK);
    assert_int_equal(tuck_scaling_count(s), 3);
    assert_int_equal(seen.n, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_true(tuck_scaling_at(s, i, &p));
        assert_int_equal(p.ranks, 3 << i);
        assert_int_equal(seen.ranks[i], 3 << i);
        assert_int_equal(p.times.step_ps, seen.step_ps[i]);
        assert_true(p.bound_ps > 0 && p.bound_ps <= p.times.step_ps);
    }
    assert_false(tuck_scaling_at(s, 3, &p));
    assert_int_equal(tuck_graph_group_size(g, 0), 0); /* the graph is as it was */
    assert_int_equal(tuck_scaling_print(s, NULL, text_add, &printed), TUCK_OK);
    assert_non_null(strstr(printed.at, "exposed ms"));
    assert_non_null(strstr(printed.at, "\n      12 "));
    text_clear(&printed);
    tuck_print_options how;
    tuck_print_options_init(&how);
    how.form = TUCK_PRINT_JSON;
    assert_int_equal(tuck_scaling_print(s, &how, text_add, &printed), TUCK_OK);
    assert_non_null(strstr(printed.at, "\"world\": 12"));
    tuck_scaling_free(s);
    text_done(&printed);

    seen = (struct points){.most = 2}; /* the caller has enough */
    assert_int_equal(tuck_graph_scale(g, NULL, &o, NULL, &s), TUCK_EIO);
    assert_int_equal(seen.n, 2);
    o.groups = groups;
    o.n_groups = 1;
    o.point = NULL;
    assert_int_equal(tuck_graph_scale(g, NULL, &o, NULL, &s), TUCK_OK);
    tuck_scaling_free(s);
    o.groups = nobody;
    assert_int_equal(tuck_graph_scale(g, NULL, &o, NULL, &s), TUCK_EINVAL);
    tuck_scaling_options_init(&o);
    o.from = 0;
    assert_int_equal(tuck_graph_scale(g, NULL, &o, NULL, &s), TUCK_EINVAL);
    o.from = 4;
    o.to = 2;
    assert_int_equal(tuck_graph_scale(g, NULL, &o, NULL, &s), TUCK_EINVAL);
    o.to = INT64_MAX;
    assert_int_equal(tuck_graph_scale(g, NULL, &o, NULL, &s), TUCK_EINVAL);
    tuck_doc_free(doc);
}

static void growing(void **state)
{
    tuck_doc *doc = read_or_die(before_text);
    tuck_graph *g = tuck_doc_graph(doc, 0), *more = NULL;
    const char *const none[] = {NULL};

    (void)state;
    assert_int_equal(tuck_graph_grow(g, NULL, 0, 64, &more), TUCK_OK);
    assert_int_equal(tuck_graph_group_size(more, 0), 64);
    tuck_graph_free(more);
    assert_int_equal(tuck_graph_grow(g, none, 0, 64, &more), TUCK_OK); /* no group at all */
    assert_int_equal(tuck_graph_group_size(more, 0), 0);
    tuck_graph_free(more);
    assert_int_equal(tuck_graph_grow(g, none, 1, 64, &more), TUCK_EINVAL);
    assert_int_equal(tuck_graph_grow(g, NULL, 1, 64, &more), TUCK_EINVAL);
    assert_int_equal(tuck_graph_grow(g, NULL, 0, 0, &more), TUCK_EINVAL);
    tuck_doc_free(doc);
}

static void scale_without_memory(void **state)
{
    struct faulty f = {.fail_at = 0};
    tuck_allocator alloc = faulty_allocator(&f);
    tuck_read_options read = {.size = sizeof(read), .alloc = &alloc};
    tuck_scaling_options o;
    size_t tried = 0;
    bool failed = true;

    (void)state;
    tuck_scaling_options_init(&o);
    o.from = o.to = 4;
    for (size_t k = 1; failed; k += k < 40 ? 1 : 7, tried++) {
        tuck_doc *doc = NULL;
        tuck_scaling *s = NULL;

        f = (struct faulty){.fail_at = 0};
        assert_int_equal(
            tuck_doc_read_text(before_text, strlen(before_text), "", &read, NULL, &doc), TUCK_OK);
        f.fail_at = f.calls + k;
        tuck_status st = tuck_graph_scale(tuck_doc_graph(doc, 0), NULL, &o, NULL, &s);
        if (st == TUCK_OK)
            st = tuck_scaling_print(s, NULL, drop, NULL);
        failed = f.failed;
        assert_true(st == TUCK_OK || (failed && st == TUCK_ENOMEM)); /* a cache may do without */
        tuck_scaling_free(s);
        tuck_doc_free(doc);
        assert_int_equal(f.live, 0);
    }
    assert_true(tried > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sides),
        cmocka_unit_test(changes),
        cmocka_unit_test(merged),
        cmocka_unit_test(diff_without_memory),
        cmocka_unit_test(scaling),
        cmocka_unit_test(growing),
        cmocka_unit_test(scale_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

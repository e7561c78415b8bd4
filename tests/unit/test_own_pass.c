/* What callers can put into pipelines: single steps, functions on graphs and on orders, caps and
 * filters as functions; and comm blocks. With functions that fail, that break the graph, and
 * without memory. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/support.h"

#define GATHER(x) "torch.ops._c10d_functional.all_gather_into_tensor.default(" x ", 2, '0')\n"
#define WAIT(x) "torch.ops._c10d_functional.wait_tensor.default(" x ")\n"
#define SMALL "\"f32[256, 256][256, 1]cuda:0\"" /* 256 KiB */
#define LARGE "\"f32[512, 256][256, 1]cuda:0\"" /* 512 KiB */

static const char four[] =
    "class f(torch.nn.Module):\n"
    "    def forward(self, a: " SMALL ", b: " SMALL ", c: " SMALL ", d: " SMALL "):\n"
    "        ga: " LARGE
    " = " GATHER("a") "        gb: " LARGE " = " GATHER("b") "        gc: " LARGE " = " GATHER(
        "c") "        gd: " LARGE
             " = " GATHER("d") "        wa: " LARGE
                               " = " WAIT("ga") "        wb: " LARGE " = " WAIT(
                                   "gb") "        wc: " LARGE
                                         " = " WAIT("gc") "        wd: " LARGE " = " WAIT(
                                             "gd") "        return (wa, wb, wc, wd)\n";

/* The compute that could hide the collective comes before it. */
static const char late[] = "class f(torch.nn.Module):\n"
                           "    def forward(self, a: " SMALL ", b: " SMALL "):\n"
                           "        x: " SMALL " = torch.ops.aten.mm.default(a, b)\n"
                           "        g: " LARGE " = " GATHER("a") "        w: " LARGE " = " WAIT(
                               "g") "        h: " LARGE
                                    " = " GATHER("b") "        v: " LARGE
                                                      " = " WAIT("h") "        return (x, w, v)\n";

static tuck_pipeline *pipeline_or_die(void)
{
    tuck_pipeline *p = NULL;

    assert_int_equal(tuck_pipeline_new(NULL, &p), TUCK_OK);
    return p;
}

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("there is no \"%s\" in\n%s", part, text);
}

static char *report_text(const tuck_report *t)
{
    struct text s = {NULL, 0, 0};

    text_clear(&s);
    tuck_print_options how = {.size = sizeof(how), .form = TUCK_PRINT_JSON};
    assert_int_equal(tuck_report_print(t, &how, text_add, &s), TUCK_OK);
    return s.at;
}

/* The graph after a run that must end with this status; its messages and report, if requested. */
static char *run(const tuck_pipeline *p, const char *text, tuck_status want, char **said,
                 char **report)
{
    tuck_doc *doc = read_or_die(text);
    tuck_diags *d = tuck_diags_new(NULL);
    tuck_report *t = NULL;
    tuck_status st = tuck_pipeline_run(p, tuck_doc_graph(doc, 0), NULL, d, &t);
    char *s = diags_text(d), *after = graph_text(tuck_doc_graph(doc, 0));

    if (st != want)
        fail_msg("%s: %s", tuck_status_text(st), s);
    assert_int_equal(tuck_graph_lint(tuck_doc_graph(doc, 0), NULL), TUCK_OK);
    if (report != NULL)
        *report = report_text(t);
    if (said != NULL)
        *said = s;
    else
        free(s);
    tuck_report_free(t);
    tuck_diags_free(d);
    tuck_doc_free(doc);
    return after;
}

/* ---- steps ---- */

static void test_steps(void **state)
{
    tuck_pipeline *p = pipeline_or_die();
    tuck_diags *d = tuck_diags_new(NULL);
    char *said;

    (void)state;
    assert_int_equal(tuck_pipeline_count(p), 0);
    assert_int_equal(tuck_pipeline_add(p, "deduplicate_wait_tensors", NULL, d), TUCK_OK);
    assert_int_equal(tuck_pipeline_add(p, "bucket_all_gather", "cap_mb=50:500, mode=coalesced", d),
                     TUCK_OK);
    assert_int_equal(tuck_pipeline_add(p, "fuse_ddp_communication", "", d), TUCK_OK);
    assert_int_equal(tuck_pipeline_count(p), 4);
    assert_int_equal(tuck_diags_count(d), 0);
    /* A failed call adds nothing, also for a name of several passes. */
    assert_int_equal(tuck_pipeline_add(p, "bucket_all_gathr", NULL, d), TUCK_EINVAL);
    assert_int_equal(tuck_pipeline_add(p, "bucket_all_gather", "cap=1", d), TUCK_EINVAL);
    assert_int_equal(tuck_pipeline_add(p, "bucket_all_gather", "cap_mb=1) x", d), TUCK_EINVAL);
    assert_int_equal(
        tuck_pipeline_add(p, "fuse_ddp_communication", "passes=[schedule_comm_wait, nothing]", d),
        TUCK_EINVAL);
    assert_int_equal(tuck_pipeline_count(p), 4);
    said = diags_text(d);
    assert_has(said, "unknown pass 'bucket_all_gathr'; did you mean 'bucket_all_gather'?");
    assert_has(said, "unknown option of bucket_all_gather 'cap'; did you mean 'cap_mb'?");
    assert_has(said, "there is no '(' that this would close");
    assert_has(said, "unknown pass 'nothing'");
    free(said);
    char *report, *after = run(p, four, TUCK_OK, NULL, &report);
    assert_has(after, "all_gather_into_tensor_coalesced.default([a, b, c, d], 2, '0')");
    assert_has(report, "cap_mb=50:500,mode=coalesced");
    free(after);
    free(report);
    tuck_diags_free(d);
    tuck_pipeline_free(p);
}

static tuck_status does_nothing(void *ctx, tuck_graph *g, tuck_diags *diags)
{
    (void)ctx;
    (void)g;
    (void)diags;
    return TUCK_OK;
}

static void test_bad_calls(void **state)
{
    tuck_pipeline *p = pipeline_or_die();
    tuck_bucket_options rules;
    tuck_comm_blocks *b = NULL;

    (void)state;
    tuck_bucket_options_init(&rules);
    assert_int_equal(tuck_pipeline_new(NULL, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_pipeline_add(NULL, "raise_comms", NULL, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_pipeline_add(p, NULL, NULL, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_pipeline_append(NULL, "mine", does_nothing, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_pipeline_append(p, NULL, does_nothing, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_pipeline_append(p, "", does_nothing, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_pipeline_append(p, "mine", NULL, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_pipeline_append_order(p, "mine", NULL, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_pipeline_add_bucket(p, "raise_comms", NULL, &rules, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_pipeline_add_bucket(p, "merge_bucket", NULL, &rules, NULL), TUCK_EINVAL);
    rules.size = 0;
    assert_int_equal(tuck_pipeline_add_bucket(p, "bucket_all_gather", NULL, &rules, NULL),
                     TUCK_EINVAL);
    assert_int_equal(tuck_pipeline_count(p), 0);
    tuck_pipeline_free(p);
    assert_int_equal(tuck_graph_comm_blocks(NULL, &b), TUCK_EINVAL);
    assert_int_equal(tuck_comm_blocks_count(NULL), 0);
    tuck_comm_blocks_free(NULL);
    tuck_diags_add(NULL, TUCK_ERROR, NULL, (tuck_node){0}, "nobody listens");
}

/* ---- a function on graphs ---- */

/* relu(n) for the user of every wait. */
static tuck_status add_relus(void *ctx, tuck_graph *g, tuck_diags *diags)
{
    int *calls = ctx;

    (void)diags;
    ++*calls;
    for (tuck_node n = tuck_graph_first(g), next; !tuck_is_none(n); n = next) {
        tuck_node relu = {0};
        int64_t bytes;

        next = tuck_graph_next(g, n);
        if (strstr(tuck_node_target(g, n), "wait_tensor") == NULL)
            continue;
        assert_true(tuck_node_bytes(g, n, &bytes)); /* types are available */
        tuck_args *args = tuck_args_new(g);
        if (args == NULL)
            return TUCK_ENOMEM;
        tuck_args_node(args, n);
        tuck_status st = tuck_graph_add(g, tuck_after(n), TUCK_CALL_FUNCTION,
                                        "torch.ops.aten.relu.default", args, NULL, NULL, &relu);
        tuck_args_free(args);
        if (st == TUCK_OK)
            st = tuck_node_replace_uses(g, n, relu, relu);
        if (st != TUCK_OK)
            return st;
    }
    return TUCK_OK;
}

static void test_pass(void **state)
{
    tuck_pipeline *p = pipeline_or_die();
    int calls = 0;
    char *report;

    (void)state;
    char name[] = "add_relus";
    assert_int_equal(tuck_pipeline_append(p, name, add_relus, &calls), TUCK_OK);
    name[0] = 'X'; /* it was copied */
    assert_int_equal(tuck_pipeline_add(p, "bucket_all_gather", "mode=coalesced", NULL), TUCK_OK);
    assert_int_equal(tuck_pipeline_append(p, "look", does_nothing, NULL), TUCK_OK);
    char *after = run(p, four, TUCK_OK, NULL, &report);
    assert_int_equal(calls, 1);
    assert_has(after,
               "relu_default: " LARGE " = torch.ops.aten.relu.default("); /* typed and annotated */
    assert_has(after, "all_gather_into_tensor_coalesced.default([a, b, c, d], 2, '0')");
    assert_has(report, "\"name\": \"add_relus\"");
    assert_has(report, "\"name\": \"look\"");
    free(after);
    free(report);
    /* The same pipeline may be run again; the report outlives it. */
    tuck_doc *doc = read_or_die(four);
    tuck_report *t = NULL;
    assert_int_equal(tuck_pipeline_run(p, tuck_doc_graph(doc, 0), NULL, NULL, &t), TUCK_OK);
    assert_int_equal(calls, 2);
    tuck_pipeline_free(p);
    report = report_text(t);
    assert_has(report, "\"name\": \"add_relus\"");
    free(report);
    tuck_report_free(t);
    tuck_doc_free(doc);
}

struct failure {
    tuck_status status;
    const char *message; /* NULL: none */
    int calls;
};

/* Changes the graph, and then fails. */
static tuck_status fails(void *ctx, tuck_graph *g, tuck_diags *diags)
{
    const struct failure *f = ctx;
    int calls = 0;
    tuck_status st = add_relus(&calls, g, diags);

    if (st != TUCK_OK)
        return st;
    if (f->message != NULL)
        tuck_diags_add(diags, TUCK_ERROR, g, tuck_graph_find(g, "gb"), f->message);
    return f->status;
}

static void test_failing(void **state)
{
    static const struct {
        struct failure f;
        tuck_status want;
        const char *says;
    } cases[] = {
        {{TUCK_EINVAL, NULL, 0}, TUCK_EINVAL, "error: pass mine failed: "},
        {{TUCK_EIO, NULL, 0}, TUCK_EIO, "error: pass mine failed: "},
        {{TUCK_EEXEC, NULL, 0}, TUCK_EEXEC, "error: pass mine failed: "},
        {{TUCK_ENOMEM, NULL, 0}, TUCK_ENOMEM, ""},
        {{TUCK_EINVAL, "not this one", 0}, TUCK_EINVAL, "t.txt:4:9: error: not this one"},
        {{(tuck_status)17, NULL, 0}, TUCK_EINVAL, "error: pass mine failed: "},
        {{(tuck_status)-77, NULL, 0}, TUCK_EINVAL, "error: pass mine failed: "},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        tuck_pipeline *p = pipeline_or_die();
        struct failure f = cases[i].f;
        char *said, *report;

        assert_int_equal(tuck_pipeline_append(p, "mine", fails, &f), TUCK_OK);
        assert_int_equal(tuck_pipeline_add(p, "bucket_all_gather", NULL, NULL), TUCK_OK);
        char *after = run(p, four, cases[i].want, &said, &report);
        assert_string_equal(after, four); /* unchanged, and the next step was not run */
        assert_has(said, cases[i].says);
        assert_has(report, "\"failed\": true");
        assert_null(strstr(report, "bucket_all_gather"));
        if (f.message != NULL)
            assert_null(strstr(said, "mine failed"));
        free(after);
        free(said);
        free(report);
        tuck_pipeline_free(p);
    }
}

/* A wait before its collective; a collective's result returned; nothing returned at all. */
static tuck_status breaks(void *ctx, tuck_graph *g, tuck_diags *diags)
{
    const int *how = ctx;
    tuck_node gather = tuck_graph_find(g, "ga"), wait = tuck_graph_find(g, "wa");
    tuck_status st = TUCK_EINVAL;

    (void)diags;
    if (*how == 0)
        st = tuck_node_move(g, wait, tuck_before(gather));
    else if (*how == 1)
        st = tuck_node_move(g, gather, tuck_after(wait));
    else if (*how == 2 && tuck_node_set_target(g, wait, "torch.ops.aten.relu.default") == TUCK_OK)
        st = tuck_node_set_annotation(g, wait, "no type at all");
    return st;
}

static void test_breaking(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        tuck_pipeline *p = pipeline_or_die();
        char *said, *report;

        assert_int_equal(tuck_pipeline_append(p, "mine", breaks, &how), TUCK_OK);
        char *after = run(p, four, TUCK_ELINT, &said, &report);
        assert_string_equal(after, four);
        assert_has(said, "pass mine left an invalid graph; its changes are dropped");
        assert_null(strstr(said, "fault of Tuck"));
        assert_has(report, "\"failed\": true");
        free(after);
        free(said);
        free(report);
        tuck_pipeline_free(p);
    }
}

/* A pipeline inside a pass. */
static tuck_status runs_another(void *ctx, tuck_graph *g, tuck_diags *diags)
{
    return tuck_pipeline_run(ctx, g, NULL, diags, NULL);
}

static void test_nested(void **state)
{
    tuck_pipeline *inner = pipeline_or_die(), *p = pipeline_or_die();

    (void)state;
    assert_int_equal(tuck_pipeline_add(inner, "bucket_all_gather", "mode=coalesced", NULL),
                     TUCK_OK);
    assert_int_equal(tuck_pipeline_append(p, "outer", runs_another, inner), TUCK_OK);
    char *after = run(p, four, TUCK_OK, NULL, NULL);
    assert_has(after, "all_gather_into_tensor_coalesced.default([a, b, c, d], 2, '0')");
    free(after);
    tuck_pipeline_free(p);
    tuck_pipeline_free(inner);
}

/* ---- a function on orders ---- */

struct order {
    int how, calls;
};

static uint32_t find_op(const tuck_problem *p, const char *name)
{
    for (uint32_t i = 0; i < tuck_problem_op_count(p); i++)
        if (strcmp(tuck_problem_op_name(p, i), name) == 0)
            return i;
    fail_msg("there is no op %s", name);
    return 0;
}

static void take_to_front(uint32_t *order, uint32_t n, uint32_t op)
{
    uint32_t at = 0;

    while (at < n && order[at] != op)
        at++;
    memmove(order + 1, order, at * sizeof(*order));
    order[0] = op;
}

static tuck_status reorder(void *ctx, const tuck_problem *p, uint32_t *order, tuck_diags *diags)
{
    struct order *o = ctx;
    uint32_t n = tuck_problem_op_count(p);

    (void)diags;
    o->calls++;
    if (o->how == 0)
        take_to_front(order, n, find_op(p, "g"));
    else if (o->how == 1)
        order[0] = order[1]; /* twice */
    else if (o->how == 2)
        order[n - 1] = UINT32_MAX;
    else if (o->how == 3)
        take_to_front(order, n, find_op(p, "v")); /* before what it waits for */
    else if (o->how == 4)
        take_to_front(order, n, find_op(p, "h")); /* before another of its group */
    else
        take_to_front(order, n, find_op(p, "g"));
    return o->how == 5 ? TUCK_EIO : TUCK_OK;
}

static void test_order(void **state)
{
    static const struct {
        tuck_status status;
        const char *says, *reports;
    } want[] = {
        {TUCK_OK, "", "\"ops moved\": 2"},
        {TUCK_EINVAL, "pass mine left an invalid order", "\"failed\": true"},
        {TUCK_EINVAL, "pass mine left an invalid order", "\"failed\": true"},
        {TUCK_EINVAL, "pass mine left an invalid order", "\"failed\": true"},
        {TUCK_OK, "", "kept: collectives of a group would change places"},
        {TUCK_EIO, "pass mine failed", "\"failed\": true"},
    };

    (void)state;
    for (int how = 0; how < 6; how++) {
        tuck_pipeline *p = pipeline_or_die();
        struct order o = {how, 0};
        char *said, *report;

        assert_int_equal(tuck_pipeline_append_order(p, "mine", reorder, &o), TUCK_OK);
        char *after = run(p, late, want[how].status, &said, &report);
        assert_int_equal(o.calls, 1);
        assert_has(said, want[how].says);
        assert_has(report, want[how].reports);
        assert_has(report, "\"name\": \"mine\"");
        if (how == 0)
            assert_true(strstr(after, " g: ") < strstr(after, " x: "));
        else
            assert_string_equal(after, late);
        free(after);
        free(said);
        free(report);
        tuck_pipeline_free(p);
    }
}

/* ---- caps and filters ---- */

struct rule {
    double cap[4];
    size_t asked[8], n_asked;
    const char *not_this;
};

static double cap(void *ctx, size_t bucket)
{
    struct rule *r = ctx;

    r->asked[r->n_asked++ % 8] = bucket;
    return r->cap[bucket < 4 ? bucket : 3];
}

static bool filter(void *ctx, const tuck_graph *g, tuck_node wait)
{
    const struct rule *r = ctx;

    assert_non_null(strstr(tuck_node_target(g, wait), "wait_tensor"));
    return strcmp(tuck_node_name(g, wait), r->not_this) != 0;
}

static void test_cap(void **state)
{
    tuck_pipeline *p = pipeline_or_die();
    struct rule r = {.cap = {0.5, 1.5}}; /* one member, then the rest */
    tuck_bucket_options rules;

    (void)state;
    tuck_bucket_options_init(&rules);
    rules.cap_mb = cap;
    rules.ctx = &r;
    assert_int_equal(
        tuck_pipeline_add_bucket(p, "bucket_all_gather", "mode=coalesced", &rules, NULL), TUCK_OK);
    char *after = run(p, four, TUCK_OK, NULL, NULL);
    assert_has(after, "all_gather_into_tensor_coalesced.default([b, c, d], 2, '0')");
    assert_has(after, "all_gather_into_tensor.default(a, 2, '0')");
    assert_int_equal(r.n_asked, 2);
    assert_int_equal(r.asked[0], 0);
    assert_int_equal(r.asked[1], 1);
    free(after);
    tuck_pipeline_free(p);
}

static void test_bad_cap(void **state)
{
    const double bad[] = {-1, NAN, -INFINITY};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        tuck_pipeline *p = pipeline_or_die();
        struct rule r = {.cap = {0.5, bad[i], bad[i], bad[i]}};
        tuck_bucket_options rules;
        char *said;

        tuck_bucket_options_init(&rules);
        rules.cap_mb = cap;
        rules.ctx = &r;
        assert_int_equal(tuck_pipeline_add_bucket(p, "bucket_all_gather", NULL, &rules, NULL),
                         TUCK_OK);
        char *after = run(p, four, TUCK_EINVAL, &said, NULL);
        assert_string_equal(after, four);
        assert_has(said, "the cap of bucket 1 is not a valid number of MiB");
        free(after);
        free(said);
        tuck_pipeline_free(p);
    }
}

static void test_filter(void **state)
{
    tuck_pipeline *p = pipeline_or_die();
    struct rule r = {.not_this = "wb"};
    tuck_bucket_options rules;
    char *report;

    (void)state;
    tuck_bucket_options_init(&rules);
    rules.filter = filter;
    rules.ctx = &r;
    assert_int_equal(
        tuck_pipeline_add_bucket(p, "bucket_all_gather", "mode=coalesced", &rules, NULL), TUCK_OK);
    char *after = run(p, four, TUCK_OK, NULL, &report);
    assert_has(after, "all_gather_into_tensor_coalesced.default([a, c, d], 2, '0')");
    assert_has(after, "all_gather_into_tensor.default(b, 2, '0')");
    assert_has(report, "\"reason\": \"filtered\"");
    free(after);
    free(report);
    tuck_pipeline_free(p);
}

/* ---- comm blocks ---- */

static const char blocks[] =
    "class f(torch.nn.Module):\n"
    "    def forward(self, a: " SMALL ", b: " SMALL "):\n"
    "        ga: " LARGE " = " GATHER("a") "        wa: " LARGE " = " WAIT(
        "ga") "        v = torch.ops.aten.view.default(wa, [-1])\n"
              "        s = torch.ops.aten.sum.default(v)\n"
              "        many = torch.ops._c10d_functional.all_reduce_coalesced.default([a, b], "
              "'sum', '0')\n"
              "        m0 = many[0]\n"
              "        m1 = many[1]\n"
              "        w0 = " WAIT("m0") "        w1 = " WAIT(
                  "m1") "        lost: " LARGE " = " GATHER("b") "        return (s, w0, w1, wa)\n";

/* The names of nodes, with blanks between. */
static const char *names(const tuck_graph *g, const tuck_node *at, size_t n, char out[200])
{
    out[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        strcat(out, i ? " " : "");
        strcat(out, tuck_node_name(g, at[i]));
    }
    return out;
}

static void test_blocks(void **state)
{
    typedef const tuck_node *get_fn(const tuck_comm_blocks *, size_t, size_t *);
    static get_fn *const get[] = {tuck_comm_block_nodes, tuck_comm_block_waits,
                                  tuck_comm_block_inputs, tuck_comm_block_outputs};
    static const char *const want[2][4] = {
        {"ga wa v", "wa", "a", "wa v"},
        {"many m0 m1 w0 w1", "w0 w1", "a b", "w0 w1"},
    };
    tuck_doc *doc = read_or_die(blocks);
    const tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_comm_blocks *b = NULL;
    char text[200];
    size_t n = 7;

    (void)state;
    assert_int_equal(tuck_graph_comm_blocks(g, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_graph_comm_blocks(g, &b), TUCK_OK);
    assert_int_equal(tuck_comm_blocks_count(b), 2); /* the third has no wait */
    assert_string_equal(tuck_node_name(g, tuck_comm_block_collective(b, 0)), "ga");
    assert_string_equal(tuck_node_name(g, tuck_comm_block_collective(b, 1)), "many");
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 4; k++) {
            const tuck_node *at = get[k](b, i, &n);
            assert_string_equal(names(g, at, n, text), want[i][k]);
        }
    assert_true(tuck_is_none(tuck_comm_block_collective(b, 2)));
    assert_null(tuck_comm_block_nodes(b, 2, &n));
    assert_int_equal(n, 0);
    tuck_comm_blocks_free(b);
    tuck_doc_free(doc);
}

/* ---- no memory ---- */

/* Everything above with request k refused. False: there are fewer requests. */
static bool refuse(size_t k)
{
    struct faulty f = {.fail_at = k, .stay = k % 2 == 0};
    tuck_allocator alloc = faulty_allocator(&f);
    tuck_read_options read = {.size = sizeof(read), .alloc = &alloc};
    struct rule r = {.cap = {1, 1, 1, 1}, .not_this = ""};
    tuck_bucket_options rules;
    struct order o = {0, 0};
    tuck_pipeline *p = NULL;
    tuck_comm_blocks *b = NULL;
    tuck_doc *doc = NULL;
    int calls = 0;

    tuck_bucket_options_init(&rules);
    rules.cap_mb = cap;
    rules.filter = filter;
    rules.ctx = &r;
    tuck_status st = tuck_pipeline_new(&alloc, &p);
    if (st == TUCK_OK)
        st = tuck_pipeline_append_order(p, "order", reorder, &o);
    if (st == TUCK_OK)
        st = tuck_pipeline_add_bucket(p, "bucket_all_gather", "cap_mb=1", &rules, NULL);
    if (st == TUCK_OK)
        st = tuck_pipeline_append(p, "relus", add_relus, &calls);
    if (st == TUCK_OK)
        st = tuck_doc_read_text(late, strlen(late), "t.txt", &read, NULL, &doc);
    if (st == TUCK_OK)
        st = tuck_pipeline_run(p, tuck_doc_graph(doc, 0), NULL, NULL, NULL);
    if (st == TUCK_OK)
        st = tuck_graph_comm_blocks(tuck_doc_graph(doc, 0), &b);
    f.fail_at = 0;
    if (st != (f.failed ? TUCK_ENOMEM : TUCK_OK))
        fail_msg("request %zu: %s", k, tuck_status_text(st));
    if (doc != NULL)
        assert_int_equal(tuck_graph_lint(tuck_doc_graph(doc, 0), NULL), TUCK_OK);
    tuck_comm_blocks_free(b);
    tuck_pipeline_free(p);
    tuck_doc_free(doc);
    if (f.live != 0)
        fail_msg("request %zu: %zu bytes leaked", k, f.live);
    return f.failed;
}

static void test_no_memory(void **state)
{
    size_t k = 1;

    (void)state;
    while (refuse(k))
        assert_true(++k < 20000);
    assert_true(k > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),    cmocka_unit_test(test_bad_calls),
        cmocka_unit_test(test_pass),     cmocka_unit_test(test_failing),
        cmocka_unit_test(test_breaking), cmocka_unit_test(test_nested),
        cmocka_unit_test(test_order),    cmocka_unit_test(test_cap),
        cmocka_unit_test(test_bad_cap),  cmocka_unit_test(test_filter),
        cmocka_unit_test(test_blocks),   cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Programs of every graph of the corpus: their text is read back the same, their plan is valid, their peak is what
 * counting it by hand gives, no operand of a collective is touched before its wait, and their order, shuffled, goes
 * into the graph and comes out again. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lower/program.h"
#include "memory/plan.h"

static uint64_t state = 88172645463325252u;

static uint32_t draw(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % n;
}

/* ---- lowering ---- */

enum { N_HINT = 400 };

struct hints {
    struct fx_store *store;
    struct fx_hint at[N_HINT];
};

static void do_hints(void *arg)
{
    struct hints *h = arg;

    for (uint32_t i = 0; i < N_HINT; i++) {
        char name[16];
        int n = snprintf(name, sizeof(name), "%c%u", "sj"[i & 1], i / 2);
        h->at[i] = (struct fx_hint){str_intern(&h->store->str, name, (size_t)n), 6};
    }
}

static struct program *lower(tuck_graph *g, bool fuse)
{
    struct hints h = {.store = g->store};
    struct lower_options o;
    struct program *p;
    tuck_diags *d = tuck_diags_new(NULL);

    lower_defaults(&o);
    assert_true(mem_guard(&g->store->mem, do_hints, &h));
    o.hint = h.at;
    o.n_hint = N_HINT;
    o.no_fuse = !fuse;
    if (lower_graph(g, &o, d, &p) != TUCK_OK)
        fail_msg("%s", tuck_diags_count(d) ? tuck_diags_at(d, 0)->message : "lowering failed");
    tuck_diags_free(d);
    return p;
}

/* ---- text ---- */

struct text {
    struct mem mem;
    struct buf b;
    const struct program *p;
};

static void do_print(void *arg)
{
    struct text *t = arg;

    program_print(t->p, &t->b);
    buf_text(&t->b);
}

static void print(struct text *t, const struct program *p)
{
    mem_init(&t->mem, NULL);
    buf_init(&t->b, &t->mem);
    t->p = p;
    assert_true(mem_guard(&t->mem, do_print, t));
}

static void check_text(const struct program *p)
{
    struct text a, b;
    struct program *q;
    tuck_diags *d = tuck_diags_new(NULL);

    print(&a, p);
    if (program_read(a.b.at, a.b.len, "text", NULL, d, &q) != TUCK_OK)
        fail_msg("line %u: %s", tuck_diags_at(d, 0)->line, tuck_diags_at(d, 0)->message);
    q->peak = p->peak;
    q->arena_bytes = p->arena_bytes;
    q->resident = p->resident;
    print(&b, q);
    assert_string_equal(a.b.at, b.b.at);
    buf_destroy(&a.b);
    buf_destroy(&b.b);
    program_free(q);
    tuck_diags_free(d);
}

/* ---- memory, by hand ---- */

struct span {
    long from, to; /* steps at which the bytes must be there; -1: before the first */
};

/* From the program alone, not by the code under test. */
static struct span *spans(const struct program *p)
{
    struct span *s = calloc(p->n_buf ? p->n_buf : 1, sizeof(*s));

    for (uint32_t i = 0; i < p->n_buf; i++)
        s[i] = (struct span){p->buf[i].flags & PROGRAM_INPUT ? 0 : -1, -1};
    for (uint32_t op = 0; op < p->n_op; op++)
        for (uint32_t k = p->use_at[op]; k < p->use_at[op + 1]; k++) {
            struct span *x = &s[p->use[k].buf];
            if (x->from < 0)
                x->from = op;
            x->to = op;
        }
    for (uint32_t i = 0; i < p->n_buf; i++) {
        if (p->buf[i].flags & (PROGRAM_OUTPUT | PROGRAM_UNWAITED))
            s[i].to = (long)p->n_op - 1;
        if ((p->buf[i].flags & PROGRAM_INPUT) && s[i].to < 0)
            s[i].to = 0;
    }
    return s;
}

static bool counts(const struct program_buf *b)
{
    return !(b->flags & PROGRAM_INPUT) || (b->flags & PROGRAM_FREEABLE);
}

static void check_peak(const struct program *p, const struct span *s)
{
    int64_t peak = 0;

    for (long op = 0; op < (long)p->n_op; op++) {
        int64_t live = 0;
        for (uint32_t i = 0; i < p->n_buf; i++)
            if (counts(&p->buf[i]) && s[i].from <= op && op <= s[i].to)
                live += p->buf[i].bytes;
        peak = live > peak ? live : peak;
    }
    assert_true(peak == p->peak);
}

static void check_plan(const struct program *p, const struct span *s)
{
    for (uint32_t i = 0; i < p->n_buf; i++) {
        const struct program_buf *a = &p->buf[i];
        if (!counts(a) || s[i].from > s[i].to)
            continue;
        assert_true(a->offset >= 0 && a->offset % MEMORY_ALIGN == 0);
        int64_t end = a->layout == PROGRAM_COMM ? p->heap[a->group] : p->arena_bytes;
        assert_true(a->offset + a->bytes <= end);
        for (uint32_t k = 0; k < i; k++) {
            const struct program_buf *b = &p->buf[k];
            bool together = counts(b) && s[i].from <= s[k].to && s[k].from <= s[i].to;
            bool same = (a->layout == PROGRAM_COMM) == (b->layout == PROGRAM_COMM) &&
                        (a->layout != PROGRAM_COMM || a->group == b->group);
            if (together && same && a->bytes > 0 && b->bytes > 0 &&
                a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes)
                fail_msg("%s and %s lie over each other", program_str(p, a->name),
                         program_str(p, b->name));
        }
    }
}

/* Between a collective and its wait nobody else touches what it works on, and it is not freed. */
static void check_flight(const struct program *p, const struct span *s)
{
    for (uint32_t w = 0; w < p->n_op; w++)
        for (uint32_t k = p->wait_at[w]; k < p->wait_at[w + 1]; k++) {
            uint32_t c = p->wait[k];
            for (uint32_t i = p->use_at[c]; i < p->use_at[c + 1]; i++) {
                uint32_t buf = p->use[i].buf;
                assert_true(s[buf].to >= (long)w);
                for (uint32_t op = c + 1; op < w; op++)
                    for (uint32_t j = p->use_at[op]; j < p->use_at[op + 1]; j++)
                        if (p->use[j].buf == buf && p->op[op].kind != PROGRAM_WAIT &&
                            (p->use[j].how != PROGRAM_READS || p->use[i].how != PROGRAM_READS))
                            fail_msg("%s touches %s of %s before %s",
                                     program_str(p, p->op[op].name),
                                     program_str(p, p->buf[buf].name),
                                     program_str(p, p->op[c].name), program_str(p, p->op[w].name));
            }
        }
}

/* ---- orders ---- */

/* A random order that keeps every dependence. */
static uint32_t *shuffle(const struct program *p)
{
    uint32_t *order = calloc(p->n_op + 1, sizeof(*order));
    uint32_t *missing = calloc(p->n_op + 1, sizeof(*missing));
    uint32_t *ready = calloc(p->n_op + 1, sizeof(*ready)), n_ready = 0, n = 0;

    for (uint32_t i = 0; i < p->n_op; i++)
        missing[i] = p->dep_at[i + 1] - p->dep_at[i];
    for (uint32_t i = 0; i < p->n_op; i++)
        if (missing[i] == 0)
            ready[n_ready++] = i;
    while (n_ready > 0) {
        uint32_t k = draw(n_ready), op = ready[k];
        ready[k] = ready[--n_ready];
        order[n++] = op;
        for (uint32_t i = op + 1; i < p->n_op; i++)
            for (uint32_t d = p->dep_at[i]; d < p->dep_at[i + 1]; d++)
                if (p->dep[d].op == op && --missing[i] == 0)
                    ready[n_ready++] = i;
    }
    assert_int_equal(n, p->n_op);
    free(missing);
    free(ready);
    return order;
}

struct apply_args {
    tuck_graph *g;
    const struct program *p;
    const uint32_t *order;
    struct arena a;
};

static void do_apply(void *arg)
{
    struct apply_args *x = arg;

    lower_apply(x->g, x->p, x->order, &x->a);
}

static void apply(tuck_graph *g, const struct program *p, const uint32_t *order)
{
    struct apply_args x = {g, p, order, {NULL, NULL, NULL, NULL}};

    arena_init(&x.a, &g->store->mem);
    assert_true(mem_guard(&g->store->mem, do_apply, &x));
    arena_destroy(&x.a);
}

static size_t n_orders, n_merged;

/* The ops of q are those of p in that order; loops that became neighbours may be one now. */
static void check_same_order(const struct program *p, const uint32_t *order,
                             const struct program *q)
{
    uint32_t op = 0, at = q->n_op ? q->node_at[0] : 0;

    n_orders++;
    for (uint32_t step = 0; step < p->n_op; step++)
        for (uint32_t i = p->node_at[order[step]]; i < p->node_at[order[step] + 1]; i++) {
            while (op < q->n_op && at == q->node_at[op + 1])
                op++;
            if (op >= q->n_op ||
                strcmp(program_str(p, p->node[i]), program_str(q, q->node[at])) != 0)
                fail_msg("%s stands elsewhere", program_str(p, p->node[i]));
            at++;
        }
    n_merged += q->n_op != p->n_op;
}

static void check_order(const tuck_graph *g, bool fuse)
{
    tuck_graph *copy;
    tuck_diags *d = tuck_diags_new(NULL);

    assert_int_equal(tuck_graph_copy(g, &copy), TUCK_OK);
    struct program *p = lower(copy, fuse);
    uint32_t *order = shuffle(p);
    apply(copy, p, order);
    if (tuck_graph_lint(copy, d) != TUCK_OK)
        fail_msg("%s", tuck_diags_at(d, 0)->message);
    if (!fuse) { /* loops that end up beside each other become one: a node at a time is exact */
        struct program *q = lower(copy, fuse);
        check_same_order(p, order, q);
        program_free(q);
    }
    free(order);
    program_free(p);
    tuck_diags_free(d);
    tuck_graph_free(copy);
}

/* ---- the corpus ---- */

static size_t n_graphs;

static void check_graph(tuck_graph *g, bool big)
{
    for (int fuse = 0; fuse < 2; fuse++) {
        struct program *p = lower(g, fuse);
        assert_int_equal(memory_plan(p, NULL), TUCK_OK);
        check_text(p);
        struct span *s = spans(p);
        check_peak(p, s);
        check_plan(p, s);
        check_flight(p, s);
        free(s);
        program_free(p);
        if (!big)
            check_order(g, fuse);
    }
    n_graphs++;
}

static void check_file(const char *path, bool big)
{
    tuck_doc *doc;

    if (tuck_doc_read_file(path, NULL, NULL, &doc) != TUCK_OK)
        return; /* not a graph: other tests read those */
    for (size_t i = 0; i < tuck_doc_count(doc); i++) {
        tuck_graph *g = tuck_doc_graph(doc, i);
        assert_int_equal(tuck_graph_read_sidecar(g, path, -1, NULL), TUCK_OK);
        check_graph(g, big);
    }
    tuck_doc_free(doc);
}

static void corpus(void **unused)
{
    static const char *const dirs[] = {"ddp", "fsdp", "tp", "moe", "exec", "forms", "big"};

    (void)unused;
    for (size_t k = 0; k < sizeof(dirs) / sizeof(*dirs); k++) {
        char path[512];
        snprintf(path, sizeof(path), "tests/graphs/%s", dirs[k]);
        DIR *dir = opendir(path);
        assert_non_null(dir);
        for (struct dirent *e; (e = readdir(dir)) != NULL;) {
            size_t n = strlen(e->d_name);
            if (n < 4 || strcmp(e->d_name + n - 4, ".txt") != 0)
                continue;
            snprintf(path, sizeof(path), "tests/graphs/%s/%s", dirs[k], e->d_name);
            check_file(path, strcmp(dirs[k], "big") == 0);
        }
        closedir(dir);
    }
    assert_true(n_graphs > 100);
    print_message("# %zu graphs, %zu shuffled orders\n", n_graphs, n_orders);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corpus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Random graphs, lowered with random options: every program and its plan are valid, also in a
 * random order of its ops, by a checker that shares nothing with the library; the schedule problem
 * has the same peak; the text is read back the same; no alias is lost; and all ranks put comm
 * buffers at the same addresses, even if the rest of their programs differs.
 *
 * TUCK_SEED=n repeats a run. TUCK_SOAK=1 makes ten times as many.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cost/machine.h"
#include "plan/arena_plan.h"
#include "plan/from_program.h"
#include "plan/liveness.h"
#include "support/program_check.h"
#include "support/random_graph.h"

enum { GRAPHS = 5000 };

struct sums {
    size_t graphs, ops, fused, collectives, copies, comm, with_heap, otherwise;
};

struct hints {
    struct fx_store *store;
    struct fx_hint at[2];
};

static void do_hints(void *arg)
{
    static const char *const name[] = {"s0", "s1"};
    struct hints *h = arg;

    for (int i = 0; i < 2; i++)
        h->at[i] = (struct fx_hint){str_intern(&h->store->str, name[i], 2), 2 + 2 * i};
}

static const char *const everywhere[] = {"*"};

static struct program *lower(tuck_graph *g, struct lower_options o)
{
    struct hints h = {.store = g->store};
    struct machine machine;
    struct program *p;
    tuck_diags *d = tuck_diags_new(NULL);

    assert_true(mem_guard(&g->store->mem, do_hints, &h));
    machine_init(&machine, NULL);
    machine.hint = h.at;
    machine.n_hint = 2;
    o.machine = &machine;
    if (lower_graph(g, &o, d, &p) != TUCK_OK)
        fail_msg("%s", diags_text(d));
    tuck_diags_free(d);
    return p;
}

static struct lower_options random_options(struct rng *rng)
{
    struct lower_options o;

    lower_defaults(&o);
    o.no_fuse = rng_below(rng, 3) == 0;
    o.keep_clones = rng_below(rng, 4) == 0;
    o.auto_select = rng_below(rng, 2) == 0;
    o.symm_group = everywhere;
    o.n_symm_group = 1;
    if (rng_below(rng, 4) == 0)
        o.one_shot_threshold = 64;
    return o;
}

/* ---- the schedule problem ---- */

struct peak_args {
    struct problem *p;
    const uint32_t *order;
    int64_t peak;
};

static void do_problem_peak(void *arg)
{
    struct peak_args *x = arg;

    struct arena a;
    uint32_t *order;

    arena_init(&a, &x->p->mem);
    order = arena_array(&a, uint32_t, (size_t)x->p->n_op + 1);
    for (uint32_t i = 0; i < x->p->n_op; i++)
        order[i] = x->order ? x->order[i] : i;
    x->peak = live_peak(x->p, order, &a);
    arena_destroy(&a);
}

static char *check_problem(const struct program *p, const uint32_t *order)
{
    struct peak_args x = {.order = order};
    tuck_diags *d = tuck_diags_new(NULL);
    char *why = NULL;

    if (problem_of_program(p, d, &x.p) != TUCK_OK) {
        why = diags_text(d);
    } else if (!mem_guard(&x.p->mem, do_problem_peak, &x)) {
        abort();
    } else if (x.peak != p->peak && asprintf(&why, "the problem's peak is %lld, the program's %lld",
                                             (long long)x.peak, (long long)p->peak) < 0) {
        abort();
    }
    problem_free(x.p);
    tuck_diags_free(d);
    return why;
}

/* ---- one graph ---- */

static void stop(const char *why, const char *text, const struct lower_options *o)
{
    fprintf(
        stderr,
        "tuck lower %s%s%s--symm-mem '*' --one-shot-threshold %lld --assume s0=2 --assume s1=4\n%s",
        o->no_fuse ? "--no-fuse " : "", o->keep_clones ? "--compat torch " : "",
        o->auto_select ? "--auto-select " : "", (long long)o->one_shot_threshold, text);
    fail_msg("%s", why);
}

static void check(char *why, const char *text, const struct lower_options *o)
{
    if (why != NULL)
        stop(why, text, o);
}

static void count(const struct program *p, struct sums *s)
{
    s->graphs++;
    s->ops += p->n_op;
    for (uint32_t i = 0; i < p->n_op; i++) {
        s->fused += p->op[i].kind == PROGRAM_FUSED;
        s->collectives += p->op[i].kind == PROGRAM_COLLECTIVE;
        s->copies += p->op[i].kind == PROGRAM_COPY;
    }
    for (uint32_t i = 0; i < p->n_buf; i++)
        s->comm += p->buf[i].layout == PROGRAM_COMM;
    s->with_heap += p->comm_digest != 0;
}

/* Comm buffers of another rank's program: the same ones at the same addresses. */
static char *check_rank(const struct program *p, const struct program *q)
{
    char *why = NULL;
    bool same = p->comm_digest == q->comm_digest && p->n_group == q->n_group;

    for (uint32_t i = 0; same && i < p->n_group; i++)
        same = p->heap[i] == q->heap[i];
    for (uint32_t i = 0; same && i < p->n_buf; i++) {
        if (p->buf[i].layout != PROGRAM_COMM)
            continue;
        bool found = false;
        for (uint32_t k = 0; k < q->n_buf && !found; k++)
            found = strcmp(program_str(p, p->buf[i].name), program_str(q, q->buf[k].name)) == 0 &&
                    p->buf[i].offset == q->buf[k].offset && p->buf[i].bytes == q->buf[k].bytes;
        same = found;
    }
    if (!same && asprintf(&why, "another heap on another rank") < 0)
        abort();
    return why;
}

/* A number that identifies the set of waits, in any order. */
static uint64_t which_waits(const struct program *p)
{
    uint64_t all = 0;

    for (uint32_t i = 0; i < p->n_op; i++) {
        uint64_t h = 14695981039346656037u;
        for (const char *s = program_str(p, p->op[i].name); *s; s++)
            h = (h ^ (uint8_t)*s) * 1099511628211u;
        all += p->op[i].kind == PROGRAM_WAIT ? h : 0;
    }
    return all;
}

/* The order is applied to the graph, and the graph's text is lowered to the same order. Exception:
 * two groups want one value in their symmetric memory; then the first one gets it, and needs no
 * wait. */
static void check_in_graph(tuck_graph *g, const struct program *p, const uint32_t *order,
                           const char *from, const struct lower_options *o, struct sums *sums)
{
    check(check_apply(g, p, order), from, o);
    char *text = graph_text(g);
    tuck_doc *doc = read_or_die(text);
    struct program *q = lower(tuck_doc_graph(doc, 0), *o);

    if (which_waits(p) != which_waits(q))
        sums->otherwise++;
    else
        check(check_same_order(p, order, q), from, o);
    program_free(q);
    tuck_doc_free(doc);
    free(text);
}

static char *check_one(struct program *p, const uint32_t *order, const char *text)
{
    bool unknown = strstr(text, "torch.ops.mylib.") != NULL;

    return unknown ? check_program_plan(p, order) : check_program(p, order);
}

static void one_graph(struct rng *rng, struct sums *sums)
{
    struct random_graph x;
    struct lower_options o = random_options(rng);

    random_graph_make(rng, &x);
    tuck_doc *doc = read_or_die(x.text[0]);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    struct program *p = lower(g, o);
    check(check_one(p, NULL, x.text[0]), x.text[0], &o);
    check(check_aliases(p, g), x.text[0], &o);
    check(check_problem(p, NULL), x.text[0], &o);
    check(check_program_text(p), x.text[0], &o);
    count(p, sums);
    if (p->comm_digest != 0) {
        struct lower_options other = o;
        other.no_fuse = !o.no_fuse;
        tuck_doc *doc1 = read_or_die(x.text[x.world.n_ranks - 1]);
        struct program *q = lower(tuck_doc_graph(doc1, 0), other);
        check(check_one(q, NULL, x.text[0]), x.text[0], &other);
        check(check_rank(p, q), x.text[0], &o);
        program_free(q);
        tuck_doc_free(doc1);
    }
    uint32_t *order = random_order(p, rng);
    check(check_one(p, order, x.text[0]), x.text[0], &o);
    check(check_problem(p, order), x.text[0], &o);
    check_in_graph(g, p, order, x.text[0], &o, sums);
    free(order);
    program_free(p);
    tuck_doc_free(doc);
    random_graph_free(&x);
}

static void random_programs(void **unused)
{
    struct sums s = {0};
    struct rng rng = {seed_of("prop_lower")};

    (void)unused;
    for (size_t i = rounds(GRAPHS); i > 0; i--) {
        one_graph(&rng, &s);
    }
    print_message(
        "# %zu graphs: %zu ops, %zu loops, %zu collectives, %zu copies; %zu comm buffers in %zu "
        "programs\n",
        s.graphs, s.ops, s.fused, s.collectives, s.copies, s.comm, s.with_heap);
    assert_true(s.otherwise <= s.graphs / 100);
    assert_true(s.fused > 0 && s.comm > 0 && s.copies > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

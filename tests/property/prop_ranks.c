/* Random graphs of several ranks through tuck_ranks_optimize(): ranks that run one program, whatever
 * their nodes are called and whatever depends on the rank, get one decision; they issue the same
 * sequence of communication, and the symbolic evaluator finds the same results. If one rank runs
 * another program, the sequences stay as they were. And --keep-order keeps it for one graph.
 *
 * TUCK_SEED=n repeats a run, TUCK_GRAPHS=n sets the number of graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/random_graph.h"

struct job {
    struct random_graph x;
    uint64_t seed;
    int n;
    tuck_doc *doc[RANDOM_RANKS];
    tuck_graph *before[RANDOM_RANKS];
    tuck_rank_graph rank[RANDOM_RANKS]; /* copies, which are changed */
    tuck_machine machine;
    tuck_run_options o;
    char was[RANDOM_RANKS][TUCK_DIGEST_TEXT];
};

static size_t decided, refused, moved, kept, differed;

static void die(const struct job *j, const char *what)
{
    for (int r = 0; r < j->n; r++) {
        char *s = graph_text(j->rank[r].graph);
        fprintf(stderr, "--- rank %d before\n%s--- after\n%s", r, j->x.text[r], s);
        free(s);
    }
    fail_msg("TUCK_SEED=%llu: %s", (unsigned long long)j->seed, what);
}

static void digest(struct job *j, int r, char out[TUCK_DIGEST_TEXT])
{
    assert_int_equal(tuck_graph_sequence_digest(j->rank[r].graph, &j->machine, out), TUCK_OK);
}

/* Calls get other names on each rank; names of inputs say who frees them. */
static void rename_nodes(tuck_graph *g, int rank)
{
    char name[32];
    int k = 0;

    for (tuck_node n = tuck_graph_first(g); !tuck_is_none(n); n = tuck_graph_next(g, n)) {
        snprintf(name, sizeof(name), "r%d_%d", rank, k++);
        if (tuck_node_kind(g, n) == TUCK_CALL_FUNCTION)
            assert_int_equal(tuck_node_rename(g, n, name), TUCK_OK);
    }
}

static void job_begin(struct job *j, struct rng *rng, uint64_t seed)
{
    *j = (struct job){.seed = seed};
    random_graph_make(rng, &j->x);
    j->n = j->x.world.n_ranks;
    j->machine = (tuck_machine){
        .size = sizeof(j->machine), .hints = j->x.hint, .n_hints = j->x.n_hint};
    tuck_run_options_init(&j->o);
    j->o.machine = &j->machine;
    j->o.effort = rng_below(rng, 3);
    for (int r = 0; r < j->n; r++) {
        j->doc[r] = read_or_die(j->x.text[r]);
        j->before[r] = tuck_doc_graph(j->doc[r], 0);
        j->rank[r].number = r;
        j->rank[r].name = "rank";
        assert_int_equal(tuck_graph_copy(j->before[r], &j->rank[r].graph), TUCK_OK);
        random_graph_tell(&j->x, r, true, j->rank[r].graph);
        rename_nodes(j->rank[r].graph, r);
        assert_int_equal(tuck_graph_sequence_digest(j->rank[r].graph, &j->machine, j->was[r]),
                         TUCK_OK);
    }
}

static void job_end(struct job *j)
{
    for (int r = 0; r < j->n; r++) {
        tuck_graph_free(j->rank[r].graph);
        tuck_doc_free(j->doc[r]);
    }
    random_graph_free(&j->x);
}

static void check_values(struct job *j)
{
    tuck_graph *after[RANDOM_RANKS];
    struct text why = {NULL, 0, 0};

    text_clear(&why);
    for (int r = 0; r < j->n; r++)
        after[r] = j->rank[r].graph;
    struct sym_result *a = symeval_run(&j->x.world, j->before, &why), *b = NULL;
    assert_non_null(a);
    b = symeval_run(&j->x.world, after, &why);
    if (b == NULL || symeval_race(b) != NULL || !symeval_same(a, b, &why))
        die(j, b == NULL ? why.at : symeval_race(b) != NULL ? symeval_race(b) : why.at);
    symeval_free(a);
    symeval_free(b);
    text_done(&why);
}

/* Sizes without a value, and operators whose results have none. */
static bool may_refuse(const struct job *j)
{
    return j->x.n_hint < 2 || strstr(j->x.text[0], "torch.ops.mylib.") != NULL;
}

/* NULL: the graphs are refused, and may be. */
static tuck_ranks_report *run(struct job *j)
{
    tuck_diags *d = tuck_diags_new(NULL);
    tuck_ranks_report *report = NULL;
    tuck_status st = tuck_ranks_optimize(j->rank, (size_t)j->n, &j->o, d, &report);

    if (st != TUCK_OK && !may_refuse(j)) {
        char *said = diags_text(d);
        fprintf(stderr, "%s", said);
        free(said);
        die(j, "the graphs are refused");
    }
    refused += st != TUCK_OK;
    tuck_diags_free(d);
    return report;
}

static void check_alike(struct job *j)
{
    tuck_ranks_report *report = run(j);
    char now[2][TUCK_DIGEST_TEXT];

    if (report == NULL)
        return;
    if (tuck_ranks_report_programs(report) != 1) {
        struct text why = {NULL, 0, 0};
        (void)!tuck_ranks_report_print(report, NULL, text_add, &why);
        fprintf(stderr, "%s", why.at);
        die(j, "ranks that agree are several programs");
    }
    decided++;
    digest(j, 0, now[0]);
    moved += strcmp(now[0], j->was[0]) != 0;
    for (int r = 1; r < j->n; r++) {
        digest(j, r, now[1]);
        if (strcmp(now[0], now[1]) != 0)
            die(j, "ranks have different sequences");
    }
    tuck_ranks_report_free(report);
    check_values(j);
}

/* One rank returns less. */
static bool change_one(struct job *j, int r)
{
    tuck_graph *g = j->rank[r].graph;
    tuck_node out = tuck_graph_output(g);
    const tuck_value *v = tuck_node_arg(g, out, 0);
    size_t n = tuck_value_len(v);
    tuck_args *a = tuck_args_new(g);

    tuck_args_open(a, TUCK_V_TUPLE);
    for (size_t i = 0; i + 1 < n; i++)
        tuck_args_value(a, tuck_value_item(v, i));
    tuck_args_close(a);
    tuck_status st = n > 0 ? tuck_node_set_args(g, out, a) : TUCK_EINVAL;
    tuck_args_free(a);
    return st == TUCK_OK;
}

static void check_different(struct job *j)
{
    tuck_ranks_report *report = NULL;
    char now[TUCK_DIGEST_TEXT];
    int odd = j->n - 1;

    if (odd == 0 || !change_one(j, odd))
        return;
    report = run(j);
    if (report == NULL)
        return;
    if (tuck_ranks_report_programs(report) != 2 || tuck_ranks_report_program(report, 0) != 0 ||
        tuck_ranks_report_program(report, (size_t)odd) != 1)
        die(j, "one rank is another program");
    differed++;
    for (int r = 0; r < j->n; r++) {
        bool keeps = tuck_ranks_report_keeps_order(report,
                                                   tuck_ranks_report_program(report, (size_t)r));
        digest(j, r, now);
        kept += keeps;
        if (keeps && strcmp(now, j->was[r]) != 0)
            die(j, "the sequence is not kept");
    }
    tuck_ranks_report_free(report);
}

static void check_keep_order(struct job *j)
{
    char now[TUCK_DIGEST_TEXT];

    j->o.order = TUCK_ORDER_OF_ALL;
    for (int r = 0; r < j->n; r++) {
        tuck_status st = tuck_graph_optimize(j->rank[r].graph, &j->o, NULL, NULL, NULL);
        if (st != TUCK_OK && !may_refuse(j))
            die(j, "the graph is refused");
        digest(j, r, now);
        if (strcmp(now, j->was[r]) != 0)
            die(j, "--keep-order does not keep the sequence");
        if (j->x.alike)
            break;
    }
}

static void run_many(void (*check)(struct job *j), size_t n)
{
    uint64_t seed = seed_of("ranks");

    decided = refused = moved = kept = differed = 0;
    if (getenv("TUCK_GRAPHS") != NULL)
        n = strtoull(getenv("TUCK_GRAPHS"), NULL, 0);
    for (size_t i = 0; i < n; i++) {
        struct rng rng = {seed + i};
        struct job j;

        job_begin(&j, &rng, seed + i);
        check(&j);
        job_end(&j);
    }
    print_message(
        "# %zu graphs: %zu decided, %zu with another sequence, %zu refused, %zu differed, "
        "%zu ranks kept their order\n",
        n, decided, moved, refused, differed, kept);
}

static void one_program(void **unused)
{
    (void)unused;
    run_many(check_alike, rounds(200));
    assert_true(getenv("TUCK_SEED") != NULL || moved > 20);
}

static void two_programs(void **unused)
{
    (void)unused;
    run_many(check_different, rounds(150));
    assert_true(getenv("TUCK_SEED") != NULL || kept > 20);
}

static void order_kept(void **unused)
{
    (void)unused;
    run_many(check_keep_order, rounds(100));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_program),
        cmocka_unit_test(two_programs),
        cmocka_unit_test(order_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

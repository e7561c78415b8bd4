/* Requests for memory are refused one after the other while ranks are simulated together and graphs
 * are compared: each time the result is TUCK_ENOMEM, and nothing leaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "study/diff.h"
#include "study/explain.h"
#include "study/several_ranks.h"
#include "support/support.h"

static const char text[] = "class step(torch.nn.Module):\n"
                           "    def forward(self, x: \"f32[8, 8][8, 1]cpu\"):\n"
                           "        mm: \"f32[8, 8][8, 1]cpu\" = torch.ops.aten.mm.default(x, x)\n"
                           "        sum_1: \"f32[8, 8][8, 1]cpu\" = "
                           "torch.ops._c10d_functional.all_reduce.default(mm, 'sum', '0')\n"
                           "        wait: \"f32[8, 8][8, 1]cpu\" = "
                           "torch.ops._c10d_functional.wait_tensor.default(sum_1)\n"
                           "        return (wait,)\n";

struct setup {
    struct faulty faulty;
    tuck_doc *doc;
    tuck_graph *g;
    tuck_cluster *cluster;
    struct machine machine;
    struct evaluate_options o;
    struct evaluation e;
    const char *node; /* to be explained, or NULL */
};

static void begin(struct setup *s)
{
    *s = (struct setup){.doc = NULL};
    tuck_allocator a = faulty_allocator(&s->faulty);
    tuck_read_options how = {.size = sizeof(how), .alloc = &a};

    assert_int_equal(tuck_doc_read_text(text, strlen(text), "step.txt", &how, NULL, &s->doc),
                     TUCK_OK);
    s->g = tuck_doc_graph(s->doc, 0);
    assert_int_equal(tuck_graph_set_group(s->g, "0", 4, NULL, NULL), TUCK_OK);
    assert_int_equal(tuck_graph_infer(s->g, false, NULL), TUCK_OK);
    assert_int_equal(tuck_cluster_for_graph(s->g, NULL, NULL, &s->cluster), TUCK_OK);
    machine_init(&s->machine, s->cluster);
    evaluate_defaults(&s->o, &s->machine);
    assert_int_equal(evaluate_graph(s->g, &s->o, NULL, &s->e), TUCK_OK);
    assert_int_not_equal(tuck_graph_find(s->g, "mm").id, 0); /* its table of names is there */
}

static void end(struct setup *s)
{
    evaluate_end(&s->e);
    tuck_cluster_free(s->cluster);
    tuck_doc_free(s->doc);
    assert_int_equal(s->faulty.live, 0);
}

/* Refuse the first request, then the second, … until there are no more. */
static void refuse_all(struct setup *s, tuck_status (*run)(struct setup *s))
{
    size_t live = s->faulty.live, n = 0;
    tuck_status st;

    do {
        s->faulty.fail_at = s->faulty.calls + ++n;
        s->faulty.failed = false;
        st = run(s);
        assert_int_equal(st, s->faulty.failed ? TUCK_ENOMEM : TUCK_OK);
        assert_int_equal(s->faulty.live, live);
    } while (s->faulty.failed);
    s->faulty.fail_at = 0;
    assert_true(n > 1);
}

static tuck_status run_ranks(struct setup *s)
{
    struct ranks_graph graph = {s->g, &s->e, "step.txt", -1};
    struct ranks_straggler slow = {2, 1.5};
    struct ranks_options o = {.machine = &s->machine, .straggler = &slow, .n_straggler = 1};
    struct ranks x;
    tuck_status st = ranks_simulate(&graph, 1, &o, NULL, &x);

    if (st == TUCK_OK)
        assert_int_equal(x.n_rank, 4);
    ranks_end(&x);
    return st;
}

static tuck_status run_diff(struct setup *s)
{
    struct diff d;
    tuck_status st = diff_graphs(s->g, &s->e, s->g, &s->e, &d);

    if (st == TUCK_OK)
        assert_int_equal(d.n_move, 0);
    diff_end(&d);
    return st;
}

static tuck_status run_explain(struct setup *s)
{
    struct study study;
    struct explanation x;

    study_begin(&study, &s->o, &s->g->store->mem.alloc);
    tuck_status st = explain_graph(&study, s->g, &(struct explain_options){.node = s->node}, NULL,
                                   &x);

    if (st == TUCK_OK)
        assert_true(x.n == 1 && (s->node != NULL || x.n_remedy > 0));
    explain_end(&x);
    study_end(&study);
    return st;
}

static void explain_without_memory(void **unused)
{
    struct setup s;

    (void)unused;
    begin(&s);
    refuse_all(&s, run_explain);
    s.node = "sum_1";
    refuse_all(&s, run_explain);
    end(&s);
}

static void ranks_without_memory(void **unused)
{
    struct setup s;

    (void)unused;
    begin(&s);
    refuse_all(&s, run_ranks);
    s.machine.contention = true;
    refuse_all(&s, run_ranks);
    end(&s);
}

static void diff_without_memory(void **unused)
{
    struct setup s;

    (void)unused;
    begin(&s);
    refuse_all(&s, run_diff);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_without_memory),
        cmocka_unit_test(diff_without_memory),
        cmocka_unit_test(explain_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

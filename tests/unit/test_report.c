/* The trace of a step against the trace event format, event by event. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>

#include "study/evaluate.h"
#include "report/report.h"

struct made {
    struct report_run run[2];
    struct mem mem;
    struct buf b;
};

static void do_trace(void *arg)
{
    struct made *m = arg;

    report_trace(&(struct report_graph){"", "", m->run, 2, false}, 1, &m->b);
    buf_text(&m->b);
}

/* The members that every event of a phase must have, with their kinds. */
static void check_members(const json_t *e, const char *ph)
{
    assert_true(json_is_string(json_object_get(e, "name")));
    assert_true(json_is_integer(json_object_get(e, "pid")));
    if (strcmp(ph, "C") == 0) { /* a counter of the process */
        const json_t *bytes = json_object_get(json_object_get(e, "args"), "bytes");
        assert_true(json_is_number(json_object_get(e, "ts")));
        assert_true(json_integer_value(bytes) >= 0 && json_is_integer(bytes));
        return;
    }
    assert_true(json_is_integer(json_object_get(e, "tid")));
    if (strcmp(ph, "M") == 0) {
        const char *name = json_string_value(json_object_get(e, "name"));
        assert_true(strcmp(name, "process_name") == 0 || strcmp(name, "thread_name") == 0);
        assert_true(json_is_string(json_object_get(json_object_get(e, "args"), "name")));
        return;
    }
    assert_true(json_is_number(json_object_get(e, "ts")));
    assert_true(json_number_value(json_object_get(e, "ts")) >= 0);
    assert_true(json_is_string(json_object_get(e, "cat")));
    if (strcmp(ph, "X") == 0) {
        assert_true(json_is_number(json_object_get(e, "dur")));
        assert_true(json_number_value(json_object_get(e, "dur")) >= 0);
        assert_true(json_is_object(json_object_get(e, "args")));
    } else {
        assert_true(strcmp(ph, "s") == 0 || strcmp(ph, "f") == 0);
        assert_true(json_is_integer(json_object_get(e, "id")));
    }
}

enum { MAX_ID = 100000, MAX_LANE = 64 };

/* Complete events of a thread do not overlap; every flow begins once and ends once,
 * and not before it began. */
static void check_events(const json_t *events, size_t n_op)
{
    static double begun[MAX_ID], end[2][MAX_LANE];
    static unsigned char state[MAX_ID];
    size_t complete = 0, i;
    json_t *e;

    memset(state, 0, sizeof(state));
    memset(end, 0, sizeof(end));
    json_array_foreach(events, i, e)
    {
        const char *ph = json_string_value(json_object_get(e, "ph"));
        assert_non_null(ph);
        check_members(e, ph);
        json_int_t pid = json_integer_value(json_object_get(e, "pid"));
        json_int_t tid = json_integer_value(json_object_get(e, "tid"));
        double ts = json_number_value(json_object_get(e, "ts"));
        assert_true(pid >= 0 && pid < 2 && tid >= 0 && tid < MAX_LANE);
        if (strcmp(ph, "X") == 0) {
            complete++;
            assert_true(ts >= end[pid][tid] - 1e-6);
            end[pid][tid] = ts + json_number_value(json_object_get(e, "dur"));
        } else if (strcmp(ph, "M") != 0 && strcmp(ph, "C") != 0) {
            json_int_t id = json_integer_value(json_object_get(e, "id"));
            assert_true(id >= 0 && id < MAX_ID);
            if (strcmp(ph, "s") == 0) {
                assert_int_equal(state[id], 0);
                begun[id] = ts;
                state[id] = 1;
            } else {
                assert_int_equal(state[id], 1);
                assert_true(ts >= begun[id]);
                state[id] = 2;
            }
        }
    }
    for (i = 0; i < MAX_ID; i++)
        assert_true(state[i] == 0 || state[i] == 2);
    assert_int_equal(complete, n_op);
}

static void trace_is_valid(void **unused)
{
    static const char *const files[] = {
        "tests/graphs/exec/llama_fsdp_bw.txt", "tests/graphs/exec/gpt2_ddp_bw.txt",
        "tests/graphs/exec/llama_hsdp_bw.txt", "tests/graphs/exec/llama_tp_sp_fw.txt"};

    (void)unused;
    for (size_t k = 0; k < sizeof(files) / sizeof(*files); k++) {
        tuck_doc *doc;
        tuck_cluster *c;
        struct machine machine;
        struct evaluate_options o;
        struct evaluation e;
        struct made m;

        assert_int_equal(tuck_doc_read_file(files[k], NULL, NULL, &doc), TUCK_OK);
        tuck_graph *g = tuck_doc_graph(doc, 0);
        assert_int_equal(tuck_graph_read_sidecar(g, files[k], -1, NULL), TUCK_OK);
        assert_int_equal(tuck_cluster_preset("h100x8", NULL, NULL, &c), TUCK_OK);
        machine_init(&machine, c);
        evaluate_defaults(&o, &machine);
        assert_int_equal(evaluate_graph(g, &o, NULL, &e), TUCK_OK);
        m.run[0] = (struct report_run){
            .label = "before", .p = e.program, .span = e.span, .time = e.time, .peak = e.peak};
        m.run[1] = m.run[0];
        m.run[1].label = "after";
        mem_init(&m.mem, NULL);
        buf_init(&m.b, &m.mem);
        assert_true(mem_guard(&m.mem, do_trace, &m));
        json_t *root = json_loads(m.b.at, 0, NULL);
        assert_non_null(root);
        assert_true(json_is_array(json_object_get(root, "traceEvents")));
        check_events(json_object_get(root, "traceEvents"), 2 * (size_t)e.program->n_op);
        json_decref(root);
        buf_destroy(&m.b);
        evaluate_end(&e);
        tuck_cluster_free(c);
        tuck_doc_free(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trace_is_valid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* enforce_comm_ordering_for_fsdp against the answers of the last PyTorch that had it,
 * recorded from compiled steps by tests/torch/record_fsdp_order.py: the order, and the
 * dependences that are added. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/problems.h"

static const char *op_name(const struct problem *p, uint32_t op)
{
    return str_text(&p->str, p->name[op]);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "op buffer" for each dependence, sorted. */
static char **sorted_deps(const struct schedule *s, const json_t *want, size_t *n)
{
    char **list, text[512];

    *n = want ? json_array_size(want) : s->dep.len;
    list = calloc(*n + 1, sizeof(*list));
    assert_non_null(list);
    for (size_t i = 0; i < *n; i++) {
        const json_t *row = json_array_get(want, i);
        if (want != NULL)
            snprintf(text, sizeof(text), "%s %s", json_string_value(json_array_get(row, 0)),
                     json_string_value(json_array_get(row, 1)));
        else
            snprintf(text, sizeof(text), "%s %s", op_name(s->p, s->dep.at[i].op),
                     str_text(&s->p->str, s->p->buf_name[s->dep.at[i].buf]));
        list[i] = strdup(text);
    }
    qsort(list, *n, sizeof(*list), by_text);
    return list;
}

static void check_deps(const char *name, const struct schedule *s, const json_t *want)
{
    size_t n, m;
    char **found = sorted_deps(s, NULL, &n), **expected = sorted_deps(s, want, &m);

    if (n != m)
        fail_msg("%s: %zu dependences, not %zu", name, n, m);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(found[i], expected[i]) != 0)
            fail_msg("%s: dependence '%s', not '%s'", name, found[i], expected[i]);
        free(found[i]);
        free(expected[i]);
    }
    free(found);
    free(expected);
}

static void check_case(const char *name, const struct problem *p, const json_t *line)
{
    const json_t *order = json_object_get(line, "order"), *deps = json_object_get(line, "deps");
    struct schedule_options o;
    struct schedule s;

    schedule_defaults(&o, true);
    assert_true(schedule_begin(&s, p, &o));
    assert_int_equal(schedule_run(&s, "enforce_comm_ordering_for_fsdp", schedule_enforce_fsdp),
                     TUCK_OK);
    if (order == NULL) { /* PyTorch raises: whatever comes out must be an order */
        const char *fault = order_fault(p, s.order, ORDER_IN_GROUPS);
        if (fault != NULL)
            fail_msg("%s: %s", name, fault);
        schedule_end(&s);
        return;
    }
    assert_int_equal(json_array_size(order), p->n_op);
    for (uint32_t i = 0; i < p->n_op; i++)
        if (strcmp(op_name(p, s.order[i]), json_string_value(json_array_get(order, i))) != 0)
            fail_msg("%s: %s at place %u, not %s", name, op_name(p, s.order[i]), i,
                     json_string_value(json_array_get(order, i)));
    check_deps(name, &s, deps);
    schedule_end(&s);
}

static void recorded(void **state)
{
    FILE *f = fopen("tests/schedule/fsdp.jsonl", "r");
    char *line = NULL;
    size_t cap = 0, n = 0, blocks = 0;

    (void)state;
    assert_non_null(f);
    while (getline(&line, &cap, f) > 0) {
        json_t *c = json_loads(line, 0, NULL);
        assert_non_null(c);
        const char *name = json_string_value(json_object_get(c, "name"));
        char *text = json_dumps(json_object_get(c, "problem"), JSON_REAL_PRECISION(17));
        tuck_diags *d = tuck_diags_new(NULL);
        struct problem *p = NULL;
        if (problem_read_text(text, strlen(text), name, NULL, d, &p) != TUCK_OK)
            fail_msg("%s: %s", name, tuck_diags_at(d, 0)->message);
        check_case(name, p, c);
        blocks += json_array_size(json_object_get(c, "blocks"));
        n++;
        problem_free(p);
        tuck_diags_free(d);
        free(text);
        json_decref(c);
    }
    assert_int_equal(n, 9);
    assert_int_equal(blocks, 78);
    free(line);
    fclose(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(recorded)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

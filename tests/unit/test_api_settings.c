/* Options by name in the public interface. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "support/support.h"
#include "tuck_experimental.h"

static const char *const good[][2] = {
    {"cluster", "h100x8x4"}, {"model", "nccl"},       {"symbol", "s0=8"},   {"symbol", "s1=9"},
    {"symm_mem", "tp"},      {"symm_mem", "*"},       {"bandwidth", "0.5"}, {"contention", "yes"},
    {"strict", "yes"},       {"order", "groups"},     {"memory", "40GiB"},  {"memory", "+5%"},
    {"judge", "yes"},        {"form", "json"},        {"top", "3"},         {"width", "80"},
    {"color", "yes"},        {"times", "yes"},        {"timeline", "yes"},  {"times", "no"},
    {"node", "mm"},          {"subject", "step.txt"},
};

static void every_setting(void **state)
{
    tuck_settings *s = NULL;

    (void)state;
    assert_int_equal(tuck_settings_new(NULL, &s), TUCK_OK);
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        assert_int_equal(tuck_settings_set(s, good[i][0], good[i][1], NULL), TUCK_OK);
    const tuck_machine *m = tuck_settings_machine(s);
    assert_string_equal(tuck_cluster_name(m->cluster), "h100x8x4");
    assert_int_equal(m->model, TUCK_MODEL_NCCL);
    assert_int_equal(m->n_hints, 2);
    assert_string_equal(m->hints[1].symbol, "s1");
    assert_int_equal(m->n_symm_groups, 2);
    assert_string_equal(m->symm_groups[0], "tp");
    assert_string_equal(m->symm_groups[1], "*");
    assert_int_equal(m->hints[1].value, 9);
    assert_true(m->bandwidth == 0.5 && m->contention == TUCK_LINKS_SHARED);
    assert_int_equal(m->unknown, TUCK_REFUSE);
    const tuck_run_options *r = tuck_settings_run(s);
    assert_ptr_equal(r->machine, m);
    assert_true(r->order == TUCK_ORDER_IN_GROUPS && r->judge == TUCK_JUDGE_RESULT);
    assert_true(r->memory == (int64_t)40 << 30 && r->memory_share == 0.05);
    const tuck_print_options *p = tuck_settings_print(s);
    assert_true(p->form == TUCK_PRINT_JSON && p->top == 3 && p->width == 80);
    assert_int_equal(p->detail, TUCK_DETAIL_TIMELINE);
    assert_string_equal(tuck_settings_explain(s)->node, "mm");
    assert_string_equal(tuck_settings_explain(s)->subject, "step.txt");
    assert_int_equal(tuck_settings_explain(s)->order, TUCK_ORDER_IN_GROUPS);
    tuck_settings_free(s);
    tuck_settings_free(NULL);
}

static const char *const bad[][2] = {
    {"", "1"},
    {"clutser", "h100"},
    {"cluster", "abacus"},
    {"profile", "/nowhere/p.json"},
    {"model", "best"},
    {"model", ""},
    {"symbol", "s0"},
    {"symbol", "=8"},
    {"symbol", "s0=-1"},
    {"symbol", "s0=99999999999999999999"},
    {"bandwidth", "-1"},
    {"bandwidth", "x"},
    {"order", "fre"},
    {"memory", "much"},
    {"memory", "0"},
    {"memory", "+x%"},
    {"top", "1.5"},
    {"top", "-1"},
    {"judge", "maybe"},
};

/* A wrong setting is an error with a sentence and changes nothing. */
static void wrong_settings(void **state)
{
    tuck_settings *s = NULL;

    (void)state;
    assert_int_equal(tuck_settings_new(NULL, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_settings_new(NULL, &s), TUCK_OK);
    tuck_machine m = *tuck_settings_machine(s);
    tuck_run_options r = *tuck_settings_run(s);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        tuck_diags *d = tuck_diags_new(NULL);

        assert_int_not_equal(tuck_settings_set(s, bad[i][0], bad[i][1], d), TUCK_OK);
        assert_int_equal(tuck_diags_errors(d), 1);
        tuck_diags_free(d);
    }
    assert_int_equal(tuck_settings_set(s, NULL, "1", NULL), TUCK_EINVAL);
    assert_int_equal(tuck_settings_set(s, "top", NULL, NULL), TUCK_EINVAL);
    assert_memory_equal(&m, tuck_settings_machine(s), sizeof(m));
    assert_memory_equal(&r, tuck_settings_run(s), sizeof(r));
    tuck_settings_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting),
        cmocka_unit_test(wrong_settings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Clusters, models, profiles and costs of nodes in the public interface, and its functions about
 * groups, ranks and types. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "support/support.h"

static const char step[] = "class step(torch.nn.Module):\n"
                           "    def forward(self, x: \"f32[1024, 1024][1024, 1]cuda:0\"):\n"
                           "        r: \"f32[1024, 1024][1024, 1]cuda:0\" = "
                           "torch.ops._c10d_functional.all_reduce.default(x, 'sum', '7')\n"
                           "        w: \"f32[1024, 1024][1024, 1]cuda:0\" = "
                           "torch.ops._c10d_functional.wait_tensor.default(r)\n"
                           "        y = torch.ops.aten.mm.default(x, w)\n"
                           "        v = torch.ops.aten.t.default(y)\n"
                           "        return (v,)\n";

static tuck_cluster *preset(const char *name)
{
    tuck_cluster *c = NULL;

    assert_int_equal(tuck_cluster_preset(name, NULL, NULL, &c), TUCK_OK);
    return c;
}

/* A file with that text; to be unlinked. */
static void write_file(char *path, const char *text)
{
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* ---- clusters ---- */

static void clusters(void **state)
{
    tuck_cluster *c = preset("h100x8x4"), *one = preset("a100"), *none = NULL;
    tuck_diags *diags = tuck_diags_new(NULL);

    (void)state;
    assert_string_equal(tuck_cluster_name(c), "h100x8x4");
    assert_int_equal(tuck_cluster_per_node(c), 8);
    assert_int_equal(tuck_cluster_ranks(c), 32);
    assert_int_equal(tuck_cluster_ranks(one), tuck_cluster_per_node(one));
    assert_false(tuck_cluster_is_assumed(c));
    assert_non_null(strstr(tuck_cluster_contention(c), "links are shared"));
    assert_int_equal(tuck_cluster_preset("h900", NULL, diags, &none), TUCK_EINVAL);
    assert_int_equal(tuck_diags_errors(diags), 1);
    assert_int_equal(tuck_cluster_preset(NULL, NULL, NULL, &none), TUCK_EINVAL);
    assert_int_equal(tuck_cluster_preset("a100", NULL, NULL, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_cluster_read_file(NULL, NULL, NULL, &none), TUCK_EINVAL);
    tuck_diags_clear(diags);
    assert_int_equal(tuck_cluster_read_file("/no/such/file", NULL, diags, &none), TUCK_EIO);
    assert_int_equal(tuck_diags_errors(diags), 1);
    assert_null(none);
    tuck_cluster_free(c);
    tuck_cluster_free(one);
    tuck_cluster_free(NULL);
    tuck_diags_free(diags);
}

static void cluster_of_a_file(void **state)
{
    static const char good[] =
        "{\"schema\": 1, \"device\": \"a100\", \"per_node\": 4, \"nodes\": 2}";
    char path[] = "/tmp/tuck_cluster_XXXXXX", bad[] = "/tmp/tuck_cluster_XXXXXX";
    tuck_cluster *c = NULL, *none = NULL;
    tuck_diags *diags = tuck_diags_new(NULL);

    (void)state;
    write_file(path, good);
    write_file(bad, "{\"schema\": 1, \"per_node\": -4}");
    assert_int_equal(tuck_cluster_read_file(path, NULL, diags, &c), TUCK_OK);
    assert_int_equal(tuck_cluster_ranks(c), 8);
    assert_int_equal(tuck_cluster_per_node(c), 4);
    assert_int_not_equal(tuck_cluster_read_file(bad, NULL, diags, &none), TUCK_OK);
    assert_true(tuck_diags_errors(diags) > 0);
    assert_string_equal(tuck_diags_at(diags, 0)->file, bad);
    assert_null(none);
    tuck_cluster_free(c);
    tuck_diags_free(diags);
    unlink(path);
    unlink(bad);
}

/* ---- names ---- */

static void names_of_models(void **state)
{
    (void)state;
    for (int i = TUCK_MODEL_AUTO; i <= TUCK_MODEL_TORCH_OLD; i++)
        assert_int_equal(tuck_cost_model_by_name(tuck_cost_model_name((tuck_cost_model)i)), i);
    for (int i = TUCK_ALL_REDUCE; i <= TUCK_NESTED_COLLECTIVES; i++)
        assert_int_equal(tuck_coll_by_name(tuck_coll_name((tuck_coll)i)), i);
    assert_string_equal(tuck_coll_name(TUCK_ALL_GATHER), "all_gather");
    assert_string_equal(tuck_cost_model_name(TUCK_MODEL_ALPHA_BETA), "alpha-beta");
    assert_string_equal(tuck_coll_name((tuck_coll)0), "");
    assert_string_equal(tuck_coll_name((tuck_coll)99), "");
    assert_string_equal(tuck_cost_model_name((tuck_cost_model)99), "");
    assert_int_equal(tuck_cost_model_by_name("none"), -1);
    assert_int_equal(tuck_cost_model_by_name(NULL), -1);
    assert_int_equal(tuck_coll_by_name(NULL), 0);
}

/* ---- a collective ---- */

static void cost_of_a_collective(void **state)
{
    tuck_cluster *c = preset("h100x8");
    tuck_collective q = {.coll = TUCK_ALL_REDUCE, .bytes = 1 << 20, .ranks = 8}, wrong = q;
    tuck_collective_cost x;
    tuck_print_options how;
    struct text out = {0};

    (void)state;
    assert_int_equal(tuck_cost_collective(c, &q, &x), TUCK_OK);
    assert_int_equal(tuck_collective_cost_print(c, &q, &x, NULL, text_add, &out), TUCK_OK);
    assert_non_null(strstr(out.at, "all_reduce"));
    tuck_print_options_init(&how);
    how.form = TUCK_PRINT_JSON;
    text_clear(&out);
    assert_int_equal(tuck_collective_cost_print(c, &q, &x, &how, text_add, &out), TUCK_OK);
    assert_int_equal(strncmp(out.at, "{\n  \"schema\": 1,\n", 17), 0);
    wrong.coll = (tuck_coll)99;
    assert_int_equal(tuck_cost_collective(c, &wrong, &x), TUCK_EINVAL);
    assert_int_equal(tuck_collective_cost_print(c, &wrong, &x, NULL, text_add, &out), TUCK_EINVAL);
    assert_int_equal(tuck_collective_cost_print(NULL, &q, &x, NULL, text_add, &out), TUCK_EINVAL);
    assert_int_equal(tuck_collective_cost_print(c, NULL, &x, NULL, text_add, &out), TUCK_EINVAL);
    assert_int_equal(tuck_collective_cost_print(c, &q, NULL, NULL, text_add, &out), TUCK_EINVAL);
    text_done(&out);
    tuck_cluster_free(c);
}

/* ---- the nodes of a graph ---- */

static void costs_of_nodes(void **state)
{
    tuck_doc *doc = read_or_die(step);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_costs *costs = NULL;
    tuck_node_cost row;
    tuck_print_options how;
    struct text out = {0};
    size_t n = 0;

    (void)state;
    assert_int_equal(tuck_graph_costs(g, NULL, NULL, &costs), TUCK_OK);
    assert_int_equal(tuck_costs_count(costs), tuck_graph_size(g));
    for (tuck_node at = tuck_graph_first(g); tuck_costs_row(costs, n, &row); n++) {
        assert_int_equal(row.node.id, at.id);
        if (strcmp(tuck_node_name(g, at), "r") == 0) {
            assert_int_equal(row.coll, TUCK_ALL_REDUCE);
            assert_int_equal(row.bytes, 1024 * 1024 * 4);
            assert_string_equal(row.bound, "collective");
        }
        if (strcmp(tuck_node_name(g, at), "y") == 0)
            assert_true(row.flops == 2.0 * 1024 * 1024 * 1024 && row.ps > 0 && row.coll == 0);
        if (strcmp(tuck_node_name(g, at), "v") == 0)
            assert_int_equal(row.ps, 0);
        at = tuck_graph_next(g, at);
    }
    assert_int_equal(n, tuck_graph_size(g));
    assert_false(tuck_costs_row(costs, 0, NULL));
    assert_int_equal(tuck_costs_print(costs, NULL, text_add, &out), TUCK_OK);
    assert_non_null(strstr(out.at, "aten.mm"));
    tuck_print_options_init(&how);
    how.top = TUCK_NO_ROWS;
    text_clear(&out);
    assert_int_equal(tuck_costs_print(costs, &how, text_add, &out), TUCK_OK);
    assert_null(strstr(out.at, "aten.mm"));
    assert_int_equal(tuck_costs_print(NULL, NULL, text_add, &out), TUCK_EINVAL);
    assert_int_equal(tuck_costs_write_profile(NULL, NULL, text_add, &out), TUCK_EINVAL);
    assert_int_equal(tuck_costs_write_profile(costs, NULL, NULL, NULL), TUCK_EINVAL);
    tuck_costs_free(costs);
    tuck_costs_free(NULL);
    assert_int_equal(tuck_graph_costs(NULL, NULL, NULL, &costs), TUCK_EINVAL);
    assert_int_equal(tuck_graph_costs(g, NULL, NULL, NULL), TUCK_EINVAL);
    text_done(&out);
    tuck_doc_free(doc);
}

/* A profile that is written and read again gives the same step. */
static void profile_goes_round(void **state)
{
    char path[] = "/tmp/tuck_profile_XXXXXX";
    tuck_doc *doc = read_or_die(step);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_costs *costs = NULL;
    tuck_profile *p = NULL, *none = NULL;
    tuck_simulation *by_model = NULL, *by_profile = NULL;
    tuck_machine m;
    tuck_times a, b;
    struct text out = {0};
    int64_t ps = -1;

    (void)state;
    assert_int_equal(tuck_graph_costs(g, NULL, NULL, &costs), TUCK_OK);
    assert_int_equal(tuck_costs_write_profile(costs, NULL, text_add, &out), TUCK_OK);
    write_file(path, out.at);
    assert_int_equal(tuck_profile_read_file(path, NULL, NULL, &p), TUCK_OK);
    assert_true(tuck_profile_count(p) > 0 && tuck_profile_ps(p, "y", &ps) && ps > 0);
    tuck_machine_init(&m);
    m.profile = p;
    assert_int_equal(tuck_graph_simulate(g, NULL, NULL, &by_model), TUCK_OK);
    assert_int_equal(tuck_graph_simulate(g, &m, NULL, &by_profile), TUCK_OK);
    tuck_simulation_times(by_model, &a);
    tuck_simulation_times(by_profile, &b);
    assert_int_equal(a.step_ps, b.step_ps);
    assert_int_equal(tuck_profile_read_file("/no/such/file", NULL, NULL, &none), TUCK_EIO);
    assert_int_equal(tuck_profile_read_file(NULL, NULL, NULL, &none), TUCK_EINVAL);
    assert_null(none);
    tuck_simulation_free(by_model);
    tuck_simulation_free(by_profile);
    tuck_profile_free(p);
    tuck_costs_free(costs);
    text_done(&out);
    tuck_doc_free(doc);
    unlink(path);
}

static int64_t double_mm(void *ctx, const tuck_graph *g, tuck_node n, int64_t otherwise_ps)
{
    (*(int *)ctx)++;
    return strstr(tuck_node_target(g, n), "mm") ? 2 * otherwise_ps : -1;
}

static void estimates_of_a_caller(void **state)
{
    tuck_doc *doc = read_or_die(step);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_cluster *c = preset("h100x8");
    tuck_cost_options o;
    int asked = 0;

    (void)state;
    assert_int_equal(tuck_graph_infer(g, TUCK_TRUST_ANNOTATIONS, NULL), TUCK_OK);
    size_t n = tuck_graph_id_end(g);
    int64_t *model = calloc(n, sizeof(*model)), *own = calloc(n, sizeof(*own));
    tuck_cost_options_init(&o);
    assert_true(o.size == sizeof(o) && o.model == TUCK_MODEL_AUTO && o.estimate == NULL);
    assert_int_equal(tuck_graph_cost(g, c, NULL, model), TUCK_OK);
    o.estimate = double_mm;
    o.estimate_ctx = &asked;
    assert_int_equal(tuck_graph_cost(g, c, &o, own), TUCK_OK);
    uint32_t y = tuck_graph_find(g, "y").id, r = tuck_graph_find(g, "r").id;
    assert_true(asked > 0 && own[y] == 2 * model[y] && own[r] == model[r]);
    assert_int_equal(tuck_graph_cost(g, NULL, NULL, own), TUCK_EINVAL);
    free(model);
    free(own);
    tuck_cluster_free(c);
    tuck_doc_free(doc);
}

/* ---- groups, ranks, types ---- */

static void groups_and_ranks(void **state)
{
    static const int64_t members[] = {4, 5, 6, 7};
    tuck_doc *doc = read_or_die(step), *other = read_or_die(step);
    tuck_graph *g = tuck_doc_graph(doc, 0), *to = tuck_doc_graph(other, 0);

    (void)state;
    assert_int_equal(tuck_graph_group_count(g), 1);
    assert_int_equal(tuck_node_group(g, tuck_graph_find(g, "r")), 0);
    assert_int_equal(tuck_node_group(g, tuck_graph_find(g, "y")), -1);
    assert_int_equal(tuck_node_group(g, (tuck_node){0}), -1);
    assert_int_equal(tuck_graph_rank(g), -1);
    assert_int_equal(tuck_graph_set_group(g, "7", 4, members, NULL), TUCK_OK);
    assert_int_equal(tuck_graph_set_rank(g, 6, NULL), TUCK_OK);
    assert_int_equal(tuck_graph_rank(g), 6);
    assert_int_equal(tuck_graph_group_rank(g, 0), 2);
    assert_int_equal(tuck_graph_inherit_groups(g, to), TUCK_OK);
    assert_int_equal(tuck_graph_group_size(to, 0), 4);
    assert_memory_equal(tuck_graph_group_ranks(to, 0), members, sizeof(members));
    assert_int_equal(tuck_graph_set_rank(g, -1, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_graph_set_rank(NULL, 0, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_graph_inherit_groups(NULL, to), TUCK_EINVAL);
    assert_int_equal(tuck_graph_inherit_groups(g, NULL), TUCK_EINVAL);
    tuck_doc_free(doc);
    tuck_doc_free(other);
}

static void types(void **state)
{
    tuck_doc *doc = read_or_die(step);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_node y = tuck_graph_find(g, "y");
    struct text out = {0};

    (void)state;
    assert_int_equal(tuck_node_type(g, y, text_add, &out), TUCK_OK);
    assert_string_equal(out.at, "?"); /* nothing is inferred yet */
    assert_int_equal(tuck_graph_infer(g, TUCK_TRUST_ANNOTATIONS, NULL), TUCK_OK);
    text_clear(&out);
    assert_int_equal(tuck_node_type(g, y, text_add, &out), TUCK_OK);
    assert_string_equal(out.at, "f32[1024, 1024][1024, 1]cuda:0");
    assert_int_equal(tuck_node_type(g, (tuck_node){0}, text_add, &out), TUCK_EINVAL);
    assert_int_equal(tuck_node_type(g, y, NULL, NULL), TUCK_EINVAL);
    text_done(&out);
    tuck_doc_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clusters),
        cmocka_unit_test(cluster_of_a_file),
        cmocka_unit_test(names_of_models),
        cmocka_unit_test(cost_of_a_collective),
        cmocka_unit_test(costs_of_nodes),
        cmocka_unit_test(profile_goes_round),
        cmocka_unit_test(estimates_of_a_caller),
        cmocka_unit_test(groups_and_ranks),
        cmocka_unit_test(types),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

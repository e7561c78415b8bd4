/* An operand means the same by position and by name: graphs of the corpus with every operand
 * written as a keyword are lowered, costed, linted and rewritten like those with positional
 * operands. */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/call.h"
#include "graph/graph.h"
#include "graph/groups.h"
#include "tuck_experimental.h"

struct text {
    char *at;
    size_t len;
};

static bool text_add(void *ctx, const char *data, size_t len)
{
    struct text *t = ctx;

    t->at = realloc(t->at, t->len + len + 1);
    assert_non_null(t->at);
    memcpy(t->at + t->len, data, len);
    t->len += len;
    t->at[t->len] = '\0';
    return true;
}

/* ---- by keyword ---- */

static bool all_have_names(const tuck_graph *g, const struct fx_node *x, const struct op_sig *sig)
{
    struct operand o = {.v = NULL};

    while (operand_next(g, x, sig, &o))
        if (o.param == NULL || o.param->rest || o.param->name[0] == '\0')
            return false;
    return true;
}

/* Is it a call of an operator of PyTorch's, which takes keywords? Python's own do not. */
static bool takes_keywords(const struct fx_node *x)
{
    const struct op_row *row = op_at(x->op);

    return x->kind == TUCK_CALL_FUNCTION && x->op != 0 && x->syntax == FX_CALL &&
           row->cls != OP_HOP && row->form == OP_FORM_CALL && row->symbol == NULL &&
           row->cls != OP_SCALAR && row->cls != OP_GETITEM;
}

static size_t turn(tuck_graph *g)
{
    struct sigs sigs;
    size_t turned = 0;

    sigs_init(&sigs, &g->store->mem);
    for (uint32_t n = g->node.at[0].next; n != 0; n = g->node.at[n].next) {
        const struct fx_node *x = node_at(g, n);
        const struct op_sig *sig = takes_keywords(x) ? sigs_get(&sigs, x->op) : NULL;
        struct operand o = {.v = NULL}, all[64];
        size_t n_all = 0;

        if (sig == NULL || !all_have_names(g, x, sig))
            continue;
        while (operand_next(g, x, sig, &o) && n_all < 64)
            all[n_all++] = o;
        tuck_args *a = tuck_args_new(g);
        for (size_t i = 0; i < n_all; i++) {
            tuck_args_key(a, all[i].param->name);
            tuck_args_value(a, all[i].v);
        }
        assert_int_equal(tuck_node_set_args(g, (tuck_node){n}, a), TUCK_OK);
        tuck_args_free(a);
        turned++;
    }
    sigs_destroy(&sigs);
    return turned;
}

static void turn_all(tuck_graph *g)
{
    turn(g);
    for (uint32_t i = 0; i < g->child.len; i++)
        turn(g->child.at[i]); /* one level: deeper ones stay as they are */
}

/* ---- what is made of it ---- */

static const tuck_hint hints[] = {{"s0", 64}};

static struct text lowered(tuck_graph *g, const tuck_cluster *c)
{
    tuck_machine machine = {.size = sizeof(machine), .cluster = c, .hints = hints, .n_hints = 1};
    tuck_lower_options o = {.size = sizeof(o), .machine = &machine};
    struct text t = {NULL, 0};
    tuck_program *p = NULL;
    tuck_status st = tuck_graph_lower(g, &o, NULL, &p);

    if (st == TUCK_OK)
        assert_int_equal(tuck_program_write(p, text_add, &t), TUCK_OK);
    tuck_program_free(p);
    if (t.at == NULL)
        assert_true(text_add(&t, "none\n", 5));
    return t;
}

/* The text after a pipeline; "failed" counts, too. */
static struct text optimized(tuck_graph *g, const char *passes, const tuck_cluster *c)
{
    tuck_pipeline *p = NULL;
    tuck_report *r = NULL;
    tuck_graph *copy = NULL;
    tuck_machine machine = {.size = sizeof(machine), .hints = hints, .n_hints = 1};
    tuck_run_options o = {.size = sizeof(o), .machine = &machine};

    assert_int_equal(tuck_graph_copy(g, &copy), TUCK_OK);
    assert_int_equal(tuck_pipeline_parse(passes, strlen(passes), "p", NULL, NULL, &p), TUCK_OK);
    tuck_status st = tuck_pipeline_run(p, copy, &o, NULL, &r);
    struct text t = {NULL, 0};
    if (st == TUCK_OK)
        t = lowered(copy, c);
    else
        assert_true(text_add(&t, "failed\n", 7));
    tuck_report_free(r);
    tuck_pipeline_free(p);
    tuck_graph_free(copy);
    return t;
}

static void same(struct text a, struct text b, const char *file, const char *what)
{
    if (strcmp(a.at, b.at) != 0) {
        size_t i = 0, line = 0;
        while (a.at[i] != '\0' && a.at[i] == b.at[i]) {
            line = a.at[i] == '\n' ? i + 1 : line;
            i++;
        }
        fail_msg("%s, %s:\n%.*s\n%.*s", file, what, (int)strcspn(a.at + line, "\n"), a.at + line,
                 (int)strcspn(b.at + line, "\n"), b.at + line);
    }
    free(a.at);
    free(b.at);
}

static const char *const pipelines[] = {
    "bucket_all_gather,bucket_reduce_scatter,bucket_all_reduce",
    "bucket_all_gather(mode=coalesced),bucket_reduce_scatter(mode=custom_ops)",
    "fuse_ddp_communication",
    "deduplicate_wait_tensors",
    "insert_control_deps",
};

static tuck_graph *read(const char *file, tuck_doc **doc)
{
    tuck_graph *g = NULL;

    if (tuck_doc_read_file(file, NULL, NULL, doc) == TUCK_OK && (*doc)->entry.len > 0)
        g = tuck_doc_graph(*doc, 0);
    return g;
}

/* As if someone else had written it. */
static tuck_graph *read_again(tuck_graph *g, tuck_doc **doc)
{
    struct text t = {NULL, 0};
    tuck_doc *was = *doc;

    assert_int_equal(tuck_doc_print(was, TUCK_FORM_TEXT, NULL, text_add, &t), TUCK_OK);
    assert_int_equal(tuck_doc_read_text(t.at, t.len, "again", NULL, NULL, doc), TUCK_OK);
    assert_int_equal(groups_inherit(g, tuck_doc_graph(*doc, 0)), TUCK_OK);
    tuck_doc_free(was);
    free(t.at);
    return tuck_doc_graph(*doc, 0);
}

static size_t lint_count(const tuck_graph *g)
{
    tuck_diags *d = tuck_diags_new(NULL);
    tuck_status st = tuck_graph_lint(g, d);
    size_t n = tuck_diags_count(d) + (st != TUCK_OK);

    tuck_diags_free(d);
    return n;
}

static const char *complaint(const tuck_graph *g)
{
    static char text[256];
    tuck_diags *d = tuck_diags_new(NULL);

    if (tuck_graph_lint(g, d) != TUCK_OK || tuck_diags_count(d) > 0)
        snprintf(text, sizeof(text), "%s", tuck_diags_at(d, 0)->message);
    tuck_diags_free(d);
    return text;
}

static bool compare(const char *file, const tuck_cluster *c)
{
    tuck_doc *doc_a = NULL, *doc_b = NULL;
    tuck_graph *a = read(file, &doc_a), *b = read(file, &doc_b);
    bool good = a != NULL && b != NULL && a->n_nodes < 1500 && lint_count(a) == 0;

    if (good) {
        turn_all(b);
        b = read_again(b, &doc_b);
        if (lint_count(b) != 0)
            fail_msg("%s: keywords make lint speak: %s", file, complaint(b));
        same(lowered(a, c), lowered(b, c), file, "lowered");
        for (size_t i = 0; i < sizeof(pipelines) / sizeof(*pipelines); i++)
            same(optimized(a, pipelines[i], c), optimized(b, pipelines[i], c), file, pipelines[i]);
    }
    tuck_doc_free(doc_a);
    tuck_doc_free(doc_b);
    return good;
}

static void keywords_change_nothing(void **state)
{
    static const char *const folders[] = {"ddp", "fsdp", "tp", "moe"};
    tuck_cluster *c = NULL;
    size_t compared = 0;

    (void)state;
    assert_int_equal(tuck_cluster_preset("h100x8", NULL, NULL, &c), TUCK_OK);
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
        char pattern[64];
        glob_t found;

        snprintf(pattern, sizeof(pattern), "tests/graphs/%s/*.txt", folders[i]);
        assert_int_equal(glob(pattern, 0, NULL, &found), 0);
        for (size_t k = 0; k < found.gl_pathc; k++)
            compared += compare(found.gl_pathv[k], c);
        globfree(&found);
    }
    assert_true(compared > 40);
    tuck_cluster_free(c);
}

/* ---- names of parameters, without an arena ---- */

static void names_are_those_of_the_signature(void **state)
{
    tuck_doc *doc = NULL;
    const char *text = "def forward(self, x):\n    return x\n";
    struct sigs sigs;

    (void)state;
    assert_int_equal(tuck_doc_read_text(text, strlen(text), "t", NULL, NULL, &doc), TUCK_OK);
    sigs_init(&sigs, &tuck_doc_graph(doc, 0)->store->mem);
    for (uint32_t op = 1; op < op_count(); op++) {
        const struct op_sig *sig = sigs_get(&sigs, op);
        for (uint32_t p = 0; p < sig->n_params; p++)
            for (uint32_t k = 0; k < sig->n_params; k++) {
                const char *name = sig->params[k].name;
                bool is = op_param_is(op_at(op), p, name, strlen(name));
                if (is != (p == k && name[0] != '\0'))
                    fail_msg("%s: %s as parameter %u", op_at(op)->name, name, p);
            }
    }
    sigs_destroy(&sigs);
    tuck_doc_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_those_of_the_signature),
        cmocka_unit_test(keywords_change_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Every text of tests/graphs can be read, and class texts are printed byte for byte. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tuck.h"

struct text {
    char *at;
    size_t len, cap;
};

static bool append(void *ctx, const char *s, size_t n)
{
    struct text *t = ctx;

    if (n > t->cap - t->len) {
        t->cap = (t->len + n) * 2;
        t->at = realloc(t->at, t->cap);
        assert_non_null(t->at);
    }
    memcpy(t->at + t->len, s, n);
    t->len += n;
    return true;
}

static struct text slurp(const char *path)
{
    struct text t = {NULL, 0, 0};
    char chunk[65536];
    FILE *f = fopen(path, "rb");
    size_t n;

    assert_non_null(f);
    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        append(&t, chunk, n);
    fclose(f);
    return t;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n >= m && strcmp(s + n - m, end) == 0;
}

/* Reads and prints; then makes a harmless change, prints, reads and prints: a fixpoint. */
static void check(const char *path, bool exact)
{
    struct text in = slurp(path), once = {NULL, 0, 0}, twice = {NULL, 0, 0}, third = {NULL, 0, 0};
    tuck_diags *diags = tuck_diags_new(NULL);
    tuck_doc *doc, *again;

    if (tuck_doc_read_file(path, NULL, diags, &doc) != TUCK_OK)
        fail_msg("%s: %s", path, tuck_diags_at(diags, 0)->message);
    assert_int_equal(tuck_doc_print(doc, TUCK_FORM_TEXT, NULL, append, &once), TUCK_OK);
    if (exact && (once.len != in.len || memcmp(once.at, in.at, in.len) != 0))
        fail_msg("%s does not come out as it went in", path);

    /* Even an edit that is undone makes the printer follow the rules. */
    for (size_t i = 0; i < tuck_doc_count(doc); i++) {
        tuck_graph *g = tuck_doc_graph(doc, i);
        tuck_node n = tuck_graph_last(g);
        if (!tuck_is_none(n))
            assert_int_equal(tuck_node_move(g, n, tuck_after(tuck_graph_prev(g, n))), TUCK_OK);
    }
    assert_int_equal(tuck_doc_print(doc, TUCK_FORM_TEXT, NULL, append, &twice), TUCK_OK);
    if (tuck_doc_read_text(twice.at, twice.len, path, NULL, diags, &again) != TUCK_OK)
        fail_msg("%s: after an edit: %s", path,
                 tuck_diags_at(diags, tuck_diags_count(diags) - 1)->message);
    assert_int_equal(tuck_doc_print(again, TUCK_FORM_TEXT, NULL, append, &third), TUCK_OK);
    if (twice.len != third.len || memcmp(twice.at, third.at, third.len) != 0)
        fail_msg("%s: print, read, print is no fixpoint after an edit", path);

    tuck_doc_free(again);
    tuck_doc_free(doc);
    tuck_diags_free(diags);
    free(in.at);
    free(once.at);
    free(twice.at);
    free(third.at);
}

/* Which files must be printed byte for byte. */
static bool is_class_text(const char *folder, const char *name)
{
    if (strcmp(folder, "forms") == 0)
        return ends_with(name, "_bw.txt") || ends_with(name, "_fw.txt") ||
               ends_with(name, ".plain.txt") || ends_with(name, ".expanded.txt") ||
               ends_with(name, ".seq_nr.txt") || ends_with(name, ".code.txt") ||
               ends_with(name, ".runnable.py");
    if (strcmp(folder, "forms213") == 0)
        return ends_with(name, ".readable.txt") || ends_with(name, "several_graphs.txt") ||
               ends_with(name, "code.txt") || ends_with(name, ".py.txt");
    return strcmp(folder, "synthetic") != 0;
}

static size_t check_folder(const char *folder)
{
    char path[512];
    size_t n = 0;

    snprintf(path, sizeof(path), "tests/graphs/%s", folder);
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (!ends_with(e->d_name, ".txt") && !ends_with(e->d_name, ".log") &&
            !ends_with(e->d_name, ".py"))
            continue;
        snprintf(path, sizeof(path), "tests/graphs/%s/%s", folder, e->d_name);
        check(path, is_class_text(folder, e->d_name));
        n++;
    }
    closedir(d);
    return n;
}

#define FOLDER(name, least)                                                                        \
    static void folder_##name(void **state)                                                        \
    {                                                                                              \
        (void)state;                                                                               \
        assert_true(check_folder(#name) >= least);                                                 \
    }
FOLDER(big, 3)
FOLDER(ddp, 25)
FOLDER(fsdp, 20)
FOLDER(tp, 12)
FOLDER(moe, 6)
FOLDER(exec, 30)
FOLDER(forms, 20)
FOLDER(forms213, 20)
FOLDER(synthetic, 13)

/* The same text with a byte order mark in front and CR LF at the end of lines. */
static void check_windows_text(const char *path)
{
    struct text in = slurp(path), dos = {NULL, 0, 0}, out = {NULL, 0, 0};
    tuck_doc *doc;

    append(&dos, "\xEF\xBB\xBF", 3);
    for (size_t i = 0; i < in.len; i++) {
        if (in.at[i] == '\n')
            append(&dos, "\r", 1);
        append(&dos, &in.at[i], 1);
    }
    assert_int_equal(tuck_doc_read_text(dos.at, dos.len, path, NULL, NULL, &doc), TUCK_OK);
    assert_int_equal(tuck_doc_print(doc, TUCK_FORM_TEXT, NULL, append, &out), TUCK_OK);
    if (out.len != dos.len || memcmp(out.at, dos.at, dos.len) != 0)
        fail_msg("%s with CR LF does not come out as it went in", path);
    out.len = 0; /* code is torch's: LF */
    assert_int_equal(tuck_doc_print(doc, TUCK_FORM_CODE, NULL, append, &out), TUCK_OK);
    assert_null(memchr(out.at, '\r', out.len));
    tuck_doc_free(doc);
    free(in.at);
    free(dos.at);
    free(out.at);
}

static void line_ends_come_back(void **state)
{
    (void)state;
    check_windows_text("tests/graphs/ddp/mlp_bw.txt");
    check_windows_text("tests/graphs/forms/moe_routed_fw.code.txt");
    check_windows_text("tests/graphs/forms/mlp_fsdp_bw.expanded.txt");
    check_windows_text("tests/graphs/forms213/comments_meta_then_multiline_meta.readable.txt");
    check_windows_text("tests/graphs/forms213/docstrings_show_meta.readable.txt");
    check_windows_text("tests/graphs/forms213/hop_control_deps.readable.txt");
}

/* A log, a colored text, a runnable script and an exported program print the class they contain. */
static void same_graph_in_other_clothes(void **state)
{
    static const char *const base[] = {"mlp_ddp_bw", "mlp_fsdp_bw", "moe_routed_fw"};
    char path[256];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct text want, got = {NULL, 0, 0};
        tuck_doc *doc;

        snprintf(path, sizeof(path), "tests/graphs/forms/%s.txt", base[i]);
        want = slurp(path);
        snprintf(path, sizeof(path), "tests/graphs/forms/%s.colored.txt", base[i]);
        assert_int_equal(tuck_doc_read_file(path, NULL, NULL, &doc), TUCK_OK);
        assert_int_equal(tuck_doc_print(doc, TUCK_FORM_TEXT, NULL, append, &got), TUCK_OK);
        assert_int_equal(got.len, want.len);
        assert_memory_equal(got.at, want.at, want.len);
        tuck_doc_free(doc);
        free(want.at);

        /* gm.code of the annotated text is the gm.code that PyTorch printed. */
        got.len = 0;
        snprintf(path, sizeof(path), "tests/graphs/forms/%s.code.txt", base[i]);
        want = slurp(path);
        snprintf(path, sizeof(path), "tests/graphs/forms/%s.txt", base[i]);
        assert_int_equal(tuck_doc_read_file(path, NULL, NULL, &doc), TUCK_OK);
        assert_int_equal(tuck_doc_print(doc, TUCK_FORM_CODE, NULL, append, &got), TUCK_OK);
        assert_int_equal(got.len, want.len);
        assert_memory_equal(got.at, want.at, want.len);
        tuck_doc_free(doc);
        free(want.at);
        free(got.at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folder_big),          cmocka_unit_test(folder_ddp),
        cmocka_unit_test(folder_fsdp),         cmocka_unit_test(folder_tp),
        cmocka_unit_test(folder_moe),          cmocka_unit_test(folder_exec),
        cmocka_unit_test(folder_forms),        cmocka_unit_test(folder_forms213),
        cmocka_unit_test(folder_synthetic),    cmocka_unit_test(same_graph_in_other_clothes),
        cmocka_unit_test(line_ends_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* tests/results/kernels.txt: the kernels of the graphs of the corpus here and in
 * Inductor. Each line is
 *
 *   GRAPH NODES OPS KERNELS LOOPS UNFUSED | what Inductor makes of it
 *
 * The part before the bar must be what lowering gives; TUCK_BLESS=1 rewrites it. The part after it
 * is Inductor's; tests/torch/record_kernels.py writes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/program_check.h"

static const char table[] = "tests/results/kernels.txt";
static const char *const dirs[] = {"ddp", "fsdp", "tp", "moe", "exec", "big"};
static const char bar[] = " | ";

struct counts {
    uint32_t ops, kernels, loops;
};

static struct counts count(tuck_graph *g, bool fuse)
{
    struct program *p = lower_with_sizes(g, fuse);
    struct counts c = {0};

    assert_non_null(p);
    c.ops = p->n_op;
    for (uint32_t i = 0; i < p->n_op; i++) {
        bool kernel = program_is_kernel(&p->op[i]);
        c.kernels += kernel;
        c.loops += kernel && p->op[i].kind != PROGRAM_GEMM &&
                   (p->op[i].kind != PROGRAM_COMPUTE || (p->op[i].flags & PROGRAM_LOOP));
    }
    program_free(p);
    return c;
}

/* The rest of a graph's line in the old table, or "?" if it is not recorded yet. */
static const char *inductor_of(const struct text *old, const char *name, size_t *len)
{
    size_t n = strlen(name);

    for (const char *line = old->at; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n'), *right = strstr(line, bar);
        if (end == NULL)
            break;
        if (strncmp(line, name, n) == 0 && line[n] == ' ' && right != NULL && right < end) {
            *len = (size_t)(end - right - strlen(bar));
            return right + strlen(bar);
        }
        line = end + 1;
    }
    *len = 1;
    return "?";
}

static void add_file(struct text *t, const struct text *old, const char *path)
{
    const char *name = path + strlen("tests/graphs/"), *right;
    char line[256];
    tuck_doc *doc;
    size_t len;

    assert_int_equal(tuck_doc_read_file(path, NULL, NULL, &doc), TUCK_OK);
    assert_int_equal(tuck_doc_count(doc), 1);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    assert_int_equal(tuck_graph_read_sidecar(g, path, -1, NULL), TUCK_OK);
    struct counts fused = count(g, true), apart = count(g, false);
    snprintf(line, sizeof(line), "%-38s %5zu %5u %7u %5u %7u%s", name, tuck_graph_size(g),
             fused.ops, fused.kernels, fused.loops, apart.kernels, bar);
    text_add(t, line, strlen(line));
    right = inductor_of(old, name, &len);
    text_add(t, right, len);
    text_add(t, "\n", 1);
    tuck_doc_free(doc);
}

static void corpus(void **unused)
{
    struct text old = text_of_file(table), now = {NULL, 0, 0};

    (void)unused;
    for (const char *line = old.at; line[0] == '#'; line = strchr(line, '\n') + 1)
        text_add(&now, line, (size_t)(strchr(line, '\n') + 1 - line));
    for (size_t k = 0; k < sizeof(dirs) / sizeof(*dirs); k++) {
        char dir[64];
        size_t n;
        snprintf(dir, sizeof(dir), "tests/graphs/%s", dirs[k]);
        char **path = find_paths(dir, ".txt", &n);
        for (size_t i = 0; i < n; i++)
            add_file(&now, &old, path[i]);
        free_paths(path, n);
    }
    if (getenv("TUCK_BLESS") != NULL) {
        FILE *f = fopen(table, "w");
        assert_non_null(f);
        assert_true(fwrite(now.at, 1, now.len, f) == now.len && fclose(f) == 0);
    } else {
        assert_string_equal(now.at, old.at);
    }
    text_done(&old);
    text_done(&now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(corpus)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

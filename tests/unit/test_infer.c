/* Shape inference against what PyTorch printed: with every annotation ignored but those of inputs
 * and attributes, each node's dtype, sizes, strides and device must come out as the text has them.
 *
 *   test_infer            all graphs of tests/graphs, as a test
 *   test_infer -v [FILE…] every difference, and a table by operator
 *   test_infer --infer FILE   what is inferred for every call, one a line: graph number, name, type
 */
#include <dirent.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "infer/infer.h"
#include "op/ops.h"

struct symbol_map { /* data-dependent symbols: ours → the text's */
    sym_id ours, theirs;
};

struct check {
    tuck_graph *top;
    struct symbol_map map[4096];
    size_t n_map;
    size_t nodes, wrong;
    bool verbose;
};

static size_t by_op[4096], by_op_all[4096];

struct lookup {
    const struct check *c;
    const struct symtab *sym;
    uint64_t seed;
};

static bool value_of(void *ctx, const char *name, struct sym_num *out)
{
    const struct lookup *l = ctx;
    const char *real = name;

    for (size_t i = 0; i < l->c->n_map; i++) {
        const struct sym_node *ours = sym_at(l->sym, l->c->map[i].ours);
        if (strcmp(str_text(&l->sym->names, ours->u.name), name) == 0)
            real = str_text(&l->sym->names, sym_at(l->sym, l->c->map[i].theirs)->u.name);
    }
    uint64_t h = l->seed;
    for (; *real; real++)
        h = (h ^ (unsigned char)*real) * 0x100000001B3u;
    *out = (struct sym_num){.kind = SYM_T_INT, .i = 2 + (int64_t)(h >> 40) % 61};
    return true;
}

static bool is_fresh(const struct symtab *t, sym_id id)
{
    const char *name;

    return sym_is(t, id, SYM_SYMBOL) && (name = str_text(&t->names, sym_at(t, id)->u.name)) &&
           name[0] == 'u';
}

/* Equal at five random assignments, data-dependent symbols up to their names. */
static bool same_sym(struct check *c, struct symtab *t, sym_id ours, sym_id theirs)
{
    if (ours == theirs)
        return true;
    if (is_fresh(t, ours) && is_fresh(t, theirs)) {
        for (size_t i = 0; i < c->n_map; i++)
            if (c->map[i].ours == ours || c->map[i].theirs == theirs)
                return c->map[i].ours == ours && c->map[i].theirs == theirs;
        if (c->n_map < 4096)
            c->map[c->n_map++] = (struct symbol_map){ours, theirs};
        return true;
    }
    for (uint64_t k = 1; k <= 5; k++) {
        struct lookup l = {c, t, k * 0x9E3779B97F4A7C15u};
        struct sym_num a, b;
        enum sym_status sa = sym_eval(t, ours, value_of, &l, &a);
        enum sym_status sb = sym_eval(t, theirs, value_of, &l, &b);

        if (sa != SYM_OK || sb != SYM_OK)
            return sa == sb && sa == SYM_UNDEFINED;
        double fa = a.kind == SYM_T_FLOAT ? a.f : (double)a.i;
        double fb = b.kind == SYM_T_FLOAT ? b.f : (double)b.i;
        if (fa != fb)
            return false;
    }
    return true;
}

static bool same_type(struct check *c, struct fx_store *s, type_id ours, type_id theirs)
{
    const struct type *a = type_at(&s->type, ours), *b = type_at(&s->type, theirs);

    if (a->kind != b->kind)
        return false;
    if (a->kind == TYPE_SYM)
        return same_sym(c, &s->sym, a->sym, b->sym);
    if (a->kind != TYPE_TENSOR)
        return true;
    if (a->n != b->n || a->dtype != b->dtype || (b->device != 0 && a->device != b->device))
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (!same_sym(c, &s->sym, a->size[i], b->size[i]) ||
            (b->strided && (!a->strided || !same_sym(c, &s->sym, a->stride[i], b->stride[i]))))
            return false;
    return true;
}

static void each(void *ctx, const tuck_graph *g, uint32_t n, type_id inferred, type_id stated)
{
    struct check *c = ctx;
    const struct fx_node *x = node_at(g, n);

    if (stated == 0)
        return;
    c->nodes++;
    if (x->op < 4096)
        by_op_all[x->op]++;
    if (same_type(c, g->store, inferred, stated))
        return;
    c->wrong++;
    if (x->op < 4096)
        by_op[x->op]++;
    if (c->verbose) {
        struct buf b;
        buf_init(&b, &g->store->mem);
        type_print(g->store, inferred, &b, true, true);
        buf_str(&b, "  instead of  ");
        type_print(g->store, stated, &b, true, true);
        printf("%s:%u: %s = %s: %s\n", graph_str(g, g->source_name), x->line, graph_str(g, x->name),
               graph_str(g, x->target), buf_text(&b));
        buf_destroy(&b);
    }
}

struct run {
    struct check *c;
    const struct infer_options *o;
};

static void do_infer(void *p)
{
    struct run *r = p;

    infer_graph(r->c->top, r->o, NULL);
}

/* The number of nodes that differ; -1 if the file could not be read. */
static long check_file(const char *path, bool verbose, size_t *nodes)
{
    static struct check c;
    tuck_doc *doc;
    long wrong = 0;

    if (tuck_doc_read_file(path, NULL, NULL, &doc) != TUCK_OK)
        return -1;
    for (size_t i = 0; i < tuck_doc_count(doc); i++) {
        tuck_graph *g = tuck_doc_graph(doc, i);
        if (tuck_graph_read_sidecar(g, path, -1, NULL) != TUCK_OK)
            wrong = -1;
        memset(&c, 0, sizeof(c));
        c.top = g;
        c.verbose = verbose;
        struct infer_options o = {.ignore_annotations = true, .each = each, .ctx = &c};
        struct run r = {&c, &o};
        if (!mem_guard(&g->store->mem, do_infer, &r))
            wrong = -1;
        if (wrong < 0)
            break;
        wrong += (long)c.wrong;
        *nodes += c.nodes;
    }
    tuck_doc_free(doc);
    return wrong;
}

static void check_folder(const char *folder, bool verbose, size_t *nodes, long *wrong)
{
    char path[512];
    DIR *d = opendir(folder);
    struct dirent *e;

    assert_non_null(d);
    while ((e = readdir(d)) != NULL) {
        size_t len = strlen(e->d_name);
        if (len < 5 || strcmp(e->d_name + len - 4, ".txt") != 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        long n = check_file(path, verbose, nodes);
        if (n != 0)
            printf("%s: %ld nodes differ\n", path, n);
        *wrong += n < 0 ? 1 : n;
    }
    closedir(d);
}

static void corpus_infers_as_printed(void **state)
{
    static const char *const folders[] = {"ddp", "fsdp", "tp", "moe", "exec", "big"};
    size_t nodes = 0;
    long wrong = 0;
    char path[128];

    (void)state;
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
        snprintf(path, sizeof(path), "tests/graphs/%s", folders[i]);
        check_folder(path, false, &nodes, &wrong);
    }
    printf("%zu annotated nodes, %ld differ\n", nodes, wrong);
    assert_true(nodes > 20000);
    assert_int_equal(wrong, 0);
}

/* The same text as print_readable() prints it by default: "f32[8, 4][4, 1]cuda:0" becomes "f32[8,
 * 4]". */
static char *without_strides(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    size_t size = (size_t)ftell(f), n = 0;
    char *text = malloc(size + 1);
    assert_non_null(text);
    rewind(f);
    assert_int_equal(fread(text, 1, size, f), size);
    fclose(f);
    text[size] = '\0';
    for (char *p = text; *p;) {
        char *shape_end = strstr(p, "][");
        size_t up_to = shape_end ? (size_t)(shape_end - p) + 1 : strlen(p);
        char *quote = shape_end ? strpbrk(shape_end, "\"\n'") : NULL;

        memmove(text + n, p, up_to);
        n += up_to;
        p += up_to;
        if (quote != NULL && *quote == '"')
            p = quote;
    }
    *len = n;
    return text;
}

static void sizes_come_without_strides(void **state)
{
    static const char *const files[] = {
        "tests/graphs/ddp/bert_bf16_bw.txt",     "tests/graphs/ddp/resnet_bw.txt",
        "tests/graphs/exec/moe_static_bw.txt",   "tests/graphs/fsdp/llama_overlap_bw.txt",
        "tests/graphs/fsdp/vit_world4_bw.txt",   "tests/graphs/tp/llama_sp_fw.txt",
        "tests/graphs/tp/ring_attention_bw.txt", "tests/graphs/fsdp/bert_bw.txt"};
    static struct check c;

    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        size_t len;
        char *text = without_strides(files[i], &len);
        tuck_doc *doc;
        assert_int_equal(tuck_doc_read_text(text, len, files[i], NULL, NULL, &doc), TUCK_OK);
        memset(&c, 0, sizeof(c));
        c.top = tuck_doc_graph(doc, 0);
        assert_int_equal(tuck_graph_read_sidecar(c.top, files[i], -1, NULL), TUCK_OK);
        struct infer_options o = {.ignore_annotations = true, .each = each, .ctx = &c};
        struct run r = {&c, &o};
        assert_true(mem_guard(&c.top->store->mem, do_infer, &r));
        assert_true(c.nodes > 10);
        assert_int_equal(c.wrong, 0);
        tuck_doc_free(doc);
        free(text);
    }
}

static int explain(int argc, char **argv)
{
    static const char *const folders[] = {"ddp", "fsdp", "tp", "moe", "exec", "big"};
    size_t nodes = 0;
    long wrong = 0;
    char path[128];

    for (int i = 0; i < argc; i++) {
        long n = check_file(argv[i], true, &nodes);
        wrong += n < 0 ? 1 : n;
    }
    for (size_t i = 0; argc == 0 && i < sizeof(folders) / sizeof(*folders); i++) {
        snprintf(path, sizeof(path), "tests/graphs/%s", folders[i]);
        check_folder(path, true, &nodes, &wrong);
    }
    for (uint32_t op = 0; op <= op_count() && op < 4096; op++)
        if (by_op[op] > 0)
            printf("%6zu of %6zu  %s (%s)\n", by_op[op], by_op_all[op],
                   op ? op_at(op)->name : "unknown operators",
                   op ? op_shape_name((enum op_shape)op_at(op)->shape) : "");
    printf("%zu annotated nodes, %ld differ\n", nodes, wrong);
    return wrong != 0;
}

struct dump {
    size_t graph;
};

static void dump_one(void *ctx, const tuck_graph *g, uint32_t n, type_id inferred, type_id stated)
{
    struct dump *d = ctx;
    struct buf b;

    (void)stated;
    buf_init(&b, &g->store->mem);
    type_print(g->store, inferred, &b, true, true);
    printf("%zu %s %s\n", d->graph, graph_str(g, node_at(g, n)->name), buf_text(&b));
    buf_destroy(&b);
}

static int dump(const char *path)
{
    tuck_diags *diags = tuck_diags_new(NULL);
    tuck_doc *doc;

    if (tuck_doc_read_file(path, NULL, diags, &doc) != TUCK_OK) {
        for (size_t i = 0; i < tuck_diags_count(diags); i++)
            fprintf(stderr, "%u: %s\n", tuck_diags_at(diags, i)->line,
                    tuck_diags_at(diags, i)->message);
        tuck_diags_free(diags);
        return 1;
    }
    for (size_t i = 0; i < tuck_doc_count(doc); i++) {
        static struct check c;
        struct dump d = {i};
        struct infer_options o = {.ignore_annotations = true, .each = dump_one, .ctx = &d};
        c.top = tuck_doc_graph(doc, i);
        struct run r = {&c, &o};
        if (tuck_graph_read_sidecar(c.top, path, -1, NULL) != TUCK_OK)
            return 1;
        if (!mem_guard(&c.top->store->mem, do_infer, &r))
            return 1;
    }
    tuck_doc_free(doc);
    tuck_diags_free(diags);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(corpus_infers_as_printed),
                                       cmocka_unit_test(sizes_come_without_strides)};

    if (argc > 1 && strcmp(argv[1], "-v") == 0)
        return explain(argc - 2, argv + 2);
    if (argc > 2 && strcmp(argv[1], "--infer") == 0)
        return dump(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

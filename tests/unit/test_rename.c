/* Names decide nothing: if every node and every group of a graph is renamed, the digests are the
 * same, and `tuck optimize` gives the same graph. Only the first word of an input's name is a fact:
 * primals_, tangents_ and arg say that the input belongs to the caller. A decision that was written
 * for the one is applied to the other. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/support.h"

/* ---- renaming in a text ---- */

struct pair {
    char from[160], to[160];
};

struct names {
    struct pair *at;
    size_t n, cap;
};

static void add_name(struct names *m, const char *from, const char *to)
{
    if (m->n == m->cap) {
        m->cap = m->cap ? 2 * m->cap : 64;
        m->at = realloc(m->at, m->cap * sizeof(*m->at));
        assert_non_null(m->at);
    }
    struct pair *p = &m->at[m->n++];
    assert_true(strlen(from) < sizeof(p->from) && strlen(to) < sizeof(p->to));
    strcpy(p->from, from);
    strcpy(p->to, to);
}

static int by_from(const void *a, const void *b)
{
    return strcmp(((const struct pair *)a)->from, ((const struct pair *)b)->from);
}

static const char *find_name(const struct names *m, const char *s, size_t len)
{
    struct pair key;

    if (len >= sizeof(key.from))
        return NULL;
    memcpy(key.from, s, len);
    key.from[len] = '\0';
    const struct pair *p = m->n ? bsearch(&key, m->at, m->n, sizeof(key), by_from) : NULL;
    return p != NULL ? p->to : NULL;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Replaces whole words that follow no dot, and whole strings. Comments stay. */
static char *rename_text(const char *s, const struct names *node, const struct names *group)
{
    struct text out = {NULL, 0, 0};
    bool comment = false;

    for (size_t i = 0; s[i] != '\0';) {
        size_t n = 1;
        const char *to = NULL;

        comment = s[i] == '\n' ? false : comment || (s[i] == '#' && strncmp(s + i, "# tuck", 6));
        if (is_word(s[i])) {
            while (is_word(s[i + n]))
                n++;
            if (!comment && (i == 0 || s[i - 1] != '.'))
                to = find_name(node, s + i, n);
        } else if (!comment && (s[i] == '\'' || s[i] == '"')) {
            size_t end = i + 1 + strcspn(s + i + 1, "'\"\n");
            to = s[end] == s[i] ? find_name(group, s + i + 1, end - i - 1) : NULL;
            if (to != NULL) {
                n = end - i;
                text_add(&out, s + i, 1);
            }
        }
        text_add(&out, to ? to : s + i, to ? strlen(to) : n);
        i += n;
    }
    text_add(&out, "", 0);
    return out.at;
}

static void add_graph(struct names *m, const tuck_graph *g, const char *fmt, unsigned scramble)
{
    char to[160];
    unsigned k = 0;

    for (tuck_node n = tuck_graph_first(g); !tuck_is_none(n); n = tuck_graph_next(g, n), k++) {
        tuck_kind kind = tuck_node_kind(g, n);
        if (kind == TUCK_OUTPUT || kind == TUCK_GET_ATTR || kind == TUCK_OPAQUE)
            continue;
        const char *word = tuck_node_name(g, n);
        size_t kept = scramble && kind == TUCK_PLACEHOLDER ? strcspn(word, "0123456789") : 0;
        int len = snprintf(to, sizeof(to), "%.*s", (int)kept, word);
        snprintf(to + len, sizeof(to) - (size_t)len, fmt, scramble ? k * 7919u % 100003u : k);
        add_name(m, tuck_node_name(g, n), to);
    }
    qsort(m->at, m->n, sizeof(*m->at), by_from);
}

/* Their order by name is turned around. */
static void add_groups(struct names *m, const tuck_graph *g, const char *fmt, bool back)
{
    size_t n = tuck_graph_group_count(g);
    char to[32];

    for (size_t k = 0; k < n; k++) {
        snprintf(to, sizeof(to), fmt, (unsigned)(back ? n - 1 - k : k));
        add_name(m, tuck_graph_group_name(g, k), to);
    }
    qsort(m->at, m->n, sizeof(*m->at), by_from);
}

static char *renamed(const char *text, const tuck_graph *g, bool scrambled)
{
    struct names node = {NULL, 0, 0}, group = {NULL, 0, 0};

    add_graph(&node, g, scrambled ? "zz%u_y" : "v%u", scrambled);
    add_groups(&group, g, scrambled ? "grp%u" : "g%u", scrambled);
    char *out = rename_text(text, &node, &group);
    free(node.at);
    free(group.at);
    return out;
}

/* ---- comparing ---- */

struct result {
    char *text; /* with names by place */
    char sequence[TUCK_DIGEST_TEXT], after[TUCK_DIGEST_TEXT], program[TUCK_DIGEST_TEXT];
    tuck_gain gain;
};

static struct result optimized(const char *text, tuck_decision **decision)
{
    struct result r = {.text = NULL};
    tuck_doc *doc = read_or_die(text);
    tuck_graph *g = tuck_doc_graph(doc, 0);

    assert_int_equal(tuck_graph_sequence_digest(g, NULL, r.sequence), TUCK_OK);
    assert_int_equal(tuck_graph_program_digest(g, r.program), TUCK_OK);
    tuck_run_options o;
    tuck_run_options_init(&o);
    o.decision_out = decision;
    assert_int_equal(tuck_graph_optimize(g, &o, NULL, &r.gain, NULL), TUCK_OK);
    assert_int_equal(tuck_graph_sequence_digest(g, NULL, r.after), TUCK_OK);
    char *plain = graph_text(g);
    r.text = renamed(plain, g, false);
    free(plain);
    tuck_doc_free(doc);
    return r;
}

static void same_lines(const char *path, const char *a, const char *b)
{
    for (unsigned line = 1; *a != '\0' || *b != '\0'; line++) {
        size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");
        if (n != m || memcmp(a, b, n) != 0)
            fail_msg("%s, line %u of the result:\n%.*s\n%.*s", path, line, (int)n, a, (int)m, b);
        a += n + (a[n] != '\0');
        b += m + (b[m] != '\0');
    }
}

/* Written and read, it is the same. */
static tuck_decision *again(tuck_decision *d)
{
    struct text a = {NULL, 0, 0}, b = {NULL, 0, 0};
    tuck_decision *read = NULL;

    assert_int_equal(tuck_decision_write(d, text_add, &a), TUCK_OK);
    assert_int_equal(tuck_decision_read_text(a.at, a.len, "d", NULL, NULL, &read), TUCK_OK);
    assert_int_equal(tuck_decision_write(read, text_add, &b), TUCK_OK);
    assert_string_equal(a.at, b.at);
    text_done(&a);
    text_done(&b);
    tuck_decision_free(d);
    return read;
}

static void apply(const char *path, const tuck_decision *d, const char *text,
                  const struct result *want)
{
    tuck_doc *doc = read_or_die(text);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_diags *diags = tuck_diags_new(NULL);
    tuck_report *report = NULL;
    tuck_gain gain;

    tuck_run_options o;
    tuck_run_options_init(&o);
    o.judge = TUCK_JUDGE_RESULT;
    assert_int_equal(tuck_decision_apply(d, g, &o, diags, &report), TUCK_OK);
    assert_int_equal(tuck_diags_count(diags), 0);
    assert_true(tuck_report_gain(report, &gain));
    assert_int_equal(gain.after.step_ps, want->gain.after.step_ps);
    char *plain = graph_text(g), *same = renamed(plain, g, false);
    same_lines(path, want->text, same);
    free(same);
    free(plain);
    tuck_report_free(report);
    tuck_diags_free(diags);
    tuck_doc_free(doc);
}

static void check(const char *path)
{
    tuck_decision *decision = NULL;
    struct text file = text_of_file(path);
    tuck_doc *doc = read_or_die(file.at);
    char *plain = graph_text(tuck_doc_graph(doc, 0));
    char *other = renamed(plain, tuck_doc_graph(doc, 0), true);

    assert_string_not_equal(plain, other);
    struct result a = optimized(plain, &decision), b = optimized(other, NULL);
    assert_string_equal(a.sequence, b.sequence);
    assert_string_equal(a.program, b.program);
    assert_string_equal(a.after, b.after);
    assert_int_equal(a.gain.after.step_ps, b.gain.after.step_ps);
    assert_int_equal(a.gain.after.peak_bytes, b.gain.after.peak_bytes);
    same_lines(path, a.text, b.text);
    decision = again(decision);
    apply(path, decision, plain, &a);
    apply(path, decision, other, &a);
    tuck_decision_free(decision);
    free(a.text);
    free(b.text);
    free(plain);
    free(other);
    tuck_doc_free(doc);
    text_done(&file);
}

static void test_corpus(void **state)
{
    static const char *const name[] = {
        "ddp/gpt2_real_bw",    "ddp/resnet_bw",      "fsdp/llama_fw",         "fsdp/llama_bw",
        "fsdp/llama_hsdp_bw",  "fsdp/vit_world4_bw", "fsdp/llama_overlap_fw", "tp/llama_fsdp_tp_fw",
        "tp/llama_fsdp_tp_bw", "tp/llama_async_bw",  "moe/llama_fsdp_ep_bw",  "tp/llama_sp_bw",
    };
    char path[200];

    (void)state;
    for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++) {
        snprintf(path, sizeof(path), "tests/graphs/%s.txt", name[i]);
        check(path);
    }
}

/* ---- what the digests are ---- */

static const char two[] =
    "class GraphModule(torch.nn.Module):\n"
    "    def forward(self, a: \"f32[8, 4]cuda:0\", b: \"bf16[16]cuda:0\"):\n"
    "        all_reduce: \"f32[8, 4]cuda:0\" = torch.ops._c10d_functional.all_reduce.default(a, "
    "'sum', '7')\n"
    "        all_gather: \"bf16[64]cuda:0\" = "
    "torch.ops._c10d_functional.all_gather_into_tensor.default(b, 4, '3')\n"
    "        wait: \"f32[8, 4]cuda:0\" = "
    "torch.ops._c10d_functional.wait_tensor.default(all_reduce)\n"
    "        wait_1: \"bf16[64]cuda:0\" = "
    "torch.ops._c10d_functional.wait_tensor.default(all_gather)\n"
    "        return (wait, wait_1)\n";

static void digests(const char *text, char sequence[TUCK_DIGEST_TEXT],
                    char program[TUCK_DIGEST_TEXT])
{
    tuck_doc *doc = read_or_die(text);

    assert_int_equal(tuck_graph_sequence_digest(tuck_doc_graph(doc, 0), NULL, sequence), TUCK_OK);
    assert_int_equal(tuck_graph_program_digest(tuck_doc_graph(doc, 0), program), TUCK_OK);
    tuck_doc_free(doc);
}

static uint64_t fnv1a(const char *s)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (; *s != '\0'; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h;
}

/* The text is what docs/simulation.md says, so that others can compute the digest. */
static void test_text(void **state)
{
    static const char want[] = "all_reduce 0 f32 sum 128\nall_gather 1 bf16 - 128\n";
    char digest[TUCK_DIGEST_TEXT], expected[TUCK_DIGEST_TEXT];
    tuck_doc *doc = read_or_die(two);
    struct text t = {NULL, 0, 0};

    (void)state;
    assert_int_equal(tuck_graph_sequence_print(tuck_doc_graph(doc, 0), NULL, text_add, &t),
                     TUCK_OK);
    assert_string_equal(t.at, want);
    assert_int_equal(tuck_graph_sequence_digest(tuck_doc_graph(doc, 0), NULL, digest), TUCK_OK);
    snprintf(expected, sizeof(expected), "%016llx", (unsigned long long)fnv1a(want));
    assert_string_equal(digest, expected);
    assert_int_equal(tuck_graph_sequence_print(tuck_doc_graph(doc, 0), NULL, text_refuse, NULL),
                     TUCK_EIO);
    text_done(&t);
    tuck_doc_free(doc);
}

/* Replaces every `from` of `two`. The result is to be freed. */
static char *with(const char *from, const char *to)
{
    struct text out = {NULL, 0, 0};
    const char *at = two, *next;

    for (; (next = strstr(at, from)) != NULL; at = next + strlen(from)) {
        text_add(&out, at, (size_t)(next - at));
        text_add(&out, to, strlen(to));
    }
    assert_ptr_not_equal(at, two);
    text_add(&out, at, strlen(at));
    return out.at;
}

static void test_what_counts(void **state)
{
    static const struct {
        const char *from, *to;
        bool sequence, program; /* is it still the same? */
    } row[] = {
        {"'7'", "'world'", true, true},
        {"cuda:0", "cuda:5", true, true},
        {"wait_1", "zebra", true, true},
        {"'7'", "'3'", false, false},
        {"'sum'", "'avg'", false, false},
        {"bf16", "f16", false, false},
        {"[8, 4]", "[4, 8]", true, false},
        {"[8, 4]", "[8, 5]", false, false},
        {"(wait, wait_1)", "(wait_1, wait)", true, false},
    };
    char sequence[2][TUCK_DIGEST_TEXT], program[2][TUCK_DIGEST_TEXT];

    (void)state;
    digests(two, sequence[0], program[0]);
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        char *other = with(row[i].from, row[i].to);
        digests(other, sequence[1], program[1]);
        if ((strcmp(sequence[0], sequence[1]) == 0) != row[i].sequence ||
            (strcmp(program[0], program[1]) == 0) != row[i].program)
            fail_msg("%s becomes %s", row[i].from, row[i].to);
        free(other);
    }
    assert_int_equal(tuck_graph_sequence_digest(NULL, NULL, sequence[0]), TUCK_EINVAL);
    assert_int_equal(tuck_graph_program_digest(NULL, program[0]), TUCK_EINVAL);
}

/* A decision for another program is refused, and the graph stays as it is. */
static void test_other_program(void **state)
{
    tuck_decision *d = NULL;
    tuck_diags *diags = tuck_diags_new(NULL);
    tuck_doc *doc = read_or_die(two);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    char *before = graph_text(g);

    (void)state;
    assert_int_equal(tuck_decision_read_file("nowhere.json", NULL, NULL, &d), TUCK_EIO);
    assert_int_equal(tuck_decision_read_file("tests/fuzz/seeds/fuzz_decision/0", NULL, diags, &d),
                     TUCK_OK);
    assert_int_equal(tuck_decision_apply(d, g, NULL, diags, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_diags_count(diags), 1);
    assert_int_equal(tuck_diags_at(diags, 0)->line, 2);
    char *after = graph_text(g);
    assert_string_equal(before, after);
    assert_int_equal(tuck_decision_apply(NULL, g, NULL, diags, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_decision_write(NULL, text_drop, NULL), TUCK_EINVAL);
    free(before);
    free(after);
    tuck_decision_free(d);
    tuck_doc_free(doc);
    tuck_diags_free(diags);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_what_counts),
        cmocka_unit_test(test_other_program),
        cmocka_unit_test(test_corpus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

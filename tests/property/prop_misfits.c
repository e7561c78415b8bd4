/* Graphs whose text was made wrong: sizes, strides, dtypes, numbers and operands of calls that run
 * (tests/misfits) are changed at random, and the result is run, on a rank that is a thread of this
 * process. Whatever comes of it is right, if it ends: an error that says something, or a result.
 * With sanitizers, nothing may be read or written beyond its buffer (src/run/exec_guard.c).
 *
 * TUCK_SEED=n repeats a run; TUCK_GRAPHS=n is how many texts are made of each call; TUCK_ONLY=text
 * takes only calls with that text in them; TUCK_SHOW=1 prints each text before it runs.
 */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tuck_run.h"
#include "support/support.h"

enum { EACH = 3, CHANGES_MOST = 3, RUN_SECONDS = 20 };

struct sums {
    size_t calls, texts, ran, refused, unread;
};

/* Too much memory is an error like others, not a fault. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* ---- changing a text ---- */

/* A piece of the text: `from` up to `to` is replaced by `with`. */
static void replace(struct text *t, size_t from, size_t to, const char *with)
{
    struct text made = {0};

    text_add(&made, t->at, from);
    text_add(&made, with, strlen(with));
    text_add(&made, t->at + to, t->len - to);
    text_done(t);
    *t = made;
}

static bool in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* Where the forward() begins: names of classes stay. */
static size_t body_of(const struct text *t)
{
    const char *at = strstr(t->at, "(self");

    return at != NULL ? (size_t)(at - t->at) + 5 : 0;
}

/* The k-th piece that `is` finds, counted over and over; false if there is none. */
static bool pick(const struct text *t, struct rng *r, size_t (*is)(const char *at, bool first),
                 size_t *from, size_t *to)
{
    size_t n = 0, body = body_of(t);

    for (int turn = 0; turn < 2; turn++) {
        size_t left = turn == 1 ? rng_below(r, (uint32_t)n) : 0;
        for (size_t i = body; i < t->len; i++) {
            size_t len = is(t->at + i, i == 0 || !in_name(t->at[i - 1]));
            if (len == 0)
                continue;
            if (turn == 1 && left-- == 0) {
                *from = i;
                *to = i + len;
                return true;
            }
            n += turn == 0;
            i += len - 1;
        }
        if (n == 0)
            return false;
    }
    return false;
}

static size_t is_number(const char *at, bool first)
{
    size_t n = *at == '-';

    if (!first || !isdigit((unsigned char)at[n]))
        return 0;
    while (isdigit((unsigned char)at[n]))
        n++;
    return in_name(at[n]) ? 0 : n;
}

static const char *const dtypes[] = {"f32", "f64", "bf16", "f16", "i64",  "i32", "i16",
                                     "i8",  "u8",  "u16",  "b8",  "c128", "c64", "f8e4m3fn"};

static size_t is_dtype(const char *at, bool first)
{
    for (size_t i = 0; first && i < sizeof(dtypes) / sizeof(*dtypes); i++)
        if (strncmp(at, dtypes[i], strlen(dtypes[i])) == 0 && at[strlen(dtypes[i])] == '[')
            return strlen(dtypes[i]);
    return 0;
}

/* What stands in a list or is an operand: x0, None, True, [1, 2] */
static size_t is_operand(const char *at, bool first)
{
    size_t n = 0;

    if (!first || (at[-1] != ' ' && at[-1] != '(' && at[-1] != '['))
        return 0;
    if (*at == '[')
        n = strcspn(at, "]") + 1;
    else
        while (in_name(at[n]))
            n++;
    return n > 0 && (at[n] == ',' || at[n] == ')' || at[n] == ']') ? n : 0;
}

static size_t is_type(const char *at, bool first)
{
    (void)first;
    if (*at != '"')
        return 0;
    size_t n = strcspn(at + 1, "\"\n") + 2;
    return at[n - 1] == '"' ? n : 0;
}

static void change_number(struct text *t, struct rng *r, size_t from, size_t to)
{
    static const long long odd[] = {
        0, -1, 1, 2, 3, 7, 12, 16, 33, 9, 1 << 10, 1LL << 40, 1LL << 62, INT64_MAX, INT64_MIN + 1};
    long long old = strtoll(t->at + from, NULL, 10);
    char with[32];

    switch (rng_below(r, 4)) {
    case 0: old = old < INT64_MAX ? old + 1 : 0; break;
    case 1: old = old > INT64_MIN ? old - 1 : 0; break;
    case 2: old = (long long)((unsigned long long)old * 2); break;
    default: old = odd[rng_below(r, sizeof(odd) / sizeof(*odd))];
    }
    snprintf(with, sizeof(with), "%lld", old);
    replace(t, from, to, with);
}

static void change_operand(struct text *t, struct rng *r, size_t from, size_t to)
{
    static const char *const other[] = {"None", "0",   "-1",     "2",         "1.5", "True",
                                        "[]",   "[0]", "[1, 2]", "[3, 1, 1]", "x0",  "x1"};
    size_t a, b;

    if (rng_below(r, 2) == 0 && pick(t, r, is_operand, &a, &b)) {
        char with[200];
        snprintf(with, sizeof(with), "%.*s", (int)(b - a < 199 ? b - a : 199), t->at + a);
        replace(t, from, to, with);
    } else {
        replace(t, from, to, other[rng_below(r, sizeof(other) / sizeof(*other))]);
    }
}

/* A dimension more or less, or another tensor's type. */
static void change_type(struct text *t, struct rng *r, size_t from, size_t to)
{
    size_t a, b;
    char with[300];

    if (rng_below(r, 2) == 0 && pick(t, r, is_type, &a, &b) && b - a < sizeof(with)) {
        snprintf(with, sizeof(with), "%.*s", (int)(b - a), t->at + a);
        replace(t, from, to, with);
        return;
    }
    char *open = memchr(t->at + from, '[', to - from);
    if (open == NULL)
        return;
    size_t at = (size_t)(open - t->at) + 1, size = strcspn(open + 1, ",]");
    if (rng_below(r, 2) == 0 && open[1 + size] == ',')
        replace(t, at, at + size + 2, "");
    else
        replace(t, at, at, open[1] == ']' ? "2" : "2, ");
}

static void change(struct text *t, struct rng *r)
{
    size_t from, to;

    switch (rng_below(r, 8)) {
    case 0:
        if (pick(t, r, is_dtype, &from, &to))
            replace(t, from, to, dtypes[rng_below(r, sizeof(dtypes) / sizeof(*dtypes))]);
        break;
    case 1:
    case 2:
        if (pick(t, r, is_operand, &from, &to))
            change_operand(t, r, from, to);
        break;
    case 3:
        if (pick(t, r, is_type, &from, &to))
            change_type(t, r, from, to);
        break;
    default:
        if (pick(t, r, is_number, &from, &to))
            change_number(t, r, from, to);
    }
}

/* ---- running ---- */

static tuck_status run(tuck_doc *doc, tuck_diags *d)
{
    tuck_exec_options o;
    tuck_execution *x = NULL;
    tuck_graph *g = tuck_doc_graph(doc, 0);

    tuck_exec_options_init(&o);
    o.ranks = 1;
    o.steps = 2; /* the second one finds what the first one left */
    o.warmup = 0;
    o.no_pin = true;
    o.timeout_s = RUN_SECONDS;
    o.transport = "threads";
    o.hints = &(tuck_hint){"s0", 3};
    o.n_hints = 1;
    tuck_status s = tuck_ranks_execute(&g, 1, &o, d, &x);
    if (s == TUCK_OK)
        tuck_execution_free(x);
    return s;
}

/* Runs a text; what it says must be more than nothing. */
static bool run_text(const struct text *t, struct sums *sums)
{
    tuck_doc *doc = read_or_null(t->at, NULL);
    tuck_diags *d = tuck_diags_new(NULL);

    if (getenv("TUCK_SHOW") != NULL)
        fprintf(stderr, "%s\n", t->at);
    sums->texts++;
    if (doc == NULL || tuck_doc_count(doc) == 0) {
        sums->unread++;
    } else if (run(doc, d) == TUCK_OK) {
        sums->ran++;
    } else {
        sums->refused++;
        if (tuck_diags_count(d) == 0 || tuck_diags_at(d, 0)->message[0] == '\0')
            fail_msg("refused without a word:\n%s", t->at);
    }
    bool ok = doc != NULL && tuck_diags_count(d) == 0;
    if (getenv("TUCK_SHOW") != NULL && !ok && tuck_diags_count(d) > 0)
        fprintf(stderr, "# %s\n", tuck_diags_at(d, 0)->message);
    tuck_doc_free(doc);
    tuck_diags_free(d);
    return ok;
}

static void change_call(const char *from, size_t len, struct rng *r, size_t each, struct sums *sums)
{
    struct text plain = {0};

    text_add(&plain, from, len);
    sums->calls++;
    bool ran = run_text(&plain, sums);
    if (!ran && getenv("TUCK_SHOW") != NULL)
        fprintf(stderr, "# does not run as it is\n");
    for (size_t i = 0; i < each; i++) {
        struct text t = {0};
        text_add(&t, plain.at, plain.len);
        for (uint32_t k = 1 + rng_below(r, CHANGES_MOST); k > 0; k--)
            change(&t, r);
        run_text(&t, sums);
        text_done(&t);
    }
    text_done(&plain);
}

/* Every `step`-th call of a file, from call `at` on. */
static void change_file(const char *path, struct rng *r, size_t each, size_t at, size_t step,
                        struct sums *sums)
{
    struct text all = text_of_file(path);
    const char *only = getenv("TUCK_ONLY");
    size_t n = 0;

    for (const char *p = strstr(all.at, "class "); p != NULL; n++) {
        const char *next = strstr(p + 1, "\nclass ");
        size_t len = next != NULL ? (size_t)(next - p) + 1 : strlen(p);
        const char *hit = only != NULL ? strstr(p, only) : NULL;
        if (only != NULL ? hit != NULL && hit < p + len : n % step == at)
            change_call(p, len, r, each, sums);
        p = next != NULL ? next + 1 : NULL;
    }
    text_done(&all);
}

static void test_misfits(void **state)
{
    struct rng r = {seed_of("prop_misfits")};
    const char *said = getenv("TUCK_GRAPHS");
    size_t each = said != NULL ? strtoul(said, NULL, 10) : EACH;
    bool all = said != NULL || getenv("TUCK_SOAK") != NULL;
    struct sums sums = {0};

    (void)state;
    if (getenv("TUCK_SOAK") != NULL)
        each *= 20;
    size_t step = all ? 1 : 4;
    change_file("tests/misfits/steps.txt", &r, 8 * each, 0, 1, &sums);
    change_file("tests/misfits/calls.txt", &r, each, rng_below(&r, (uint32_t)step), step, &sums);
    print_message(
        "prop_misfits: %zu calls, %zu texts: %zu ran, %zu refused, %zu could not be read\n",
        sums.calls, sums.texts, sums.ran, sums.refused, sums.unread);
    assert_true(sums.ran > 0 && sums.refused > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_misfits)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Random graphs through random pipelines of all passes of the table, with random options, on every
 * rank of a small job. The result lints clean, is the same when made again and, except for rank
 * literals, on every rank; collectives of a group keep their order; every candidate is in a bucket
 * or left with a reason; and the symbolic evaluator finds the same results and the same final
 * inputs as before.
 *
 * TUCK_SEED=n repeats a run: the graph that failed is the first one of the run whose seed is
 * printed. TUCK_GRAPHS=n sets the number of graphs; TUCK_SOAK=1 makes ten times as many.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "pass/pass_report.h"
#include "study/pass_table.h"
#include "support/random_graph.h"
#include "support/random_plan.h"

struct sums {
    size_t graphs, changed, refused, buckets, members, left, races;
};

static void add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *t, const char *fmt, ...)
{
    va_list ap;
    char *s = NULL;

    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) < 0)
        abort();
    va_end(ap);
    text_add(t, s, strlen(s));
    free(s);
}

/* ---- what a step found and what it left, in the order of nodes ---- */

struct comm {
    char *name;         /* of one in a nested graph: call/graph.name */
    char *call;         /* the node of the outer graph that reports name */
    const char *target; /* lives as long as the graph */
    int group;
};

struct order {
    struct comm *at;
    size_t n, cap;
};

struct seen { /* before and after each step */
    struct order *order;
    size_t n, cap;
};

#define C10D "torch.ops._c10d_functional."
#define SYMM "torch.ops.symm_mem."

static bool communicates(const char *target)
{
    return (strncmp(target, C10D, sizeof(C10D) - 1) == 0 &&
            strstr(target, "wait_tensor") == NULL) ||
           strncmp(target, SYMM, sizeof(SYMM) - 1) == 0;
}

/* The group among the operands: its first letter. */
static int group_named(const tuck_graph *g, tuck_node n)
{
    size_t args = tuck_node_arg_count(g, n), all = args + tuck_node_kwarg_count(g, n);
    int group = -1;

    for (size_t i = 0; i < all; i++) {
        const tuck_value *v = i < args ? tuck_node_arg(g, n, i) : tuck_node_kwarg(g, n, i - args);
        const char *s = tuck_value_kind_of(v) == TUCK_V_STR ? tuck_value_text(g, v) : "";
        if (strcmp(s, "solo") == 0 || (*s >= '0' && *s <= '9'))
            group = *s;
    }
    return group;
}

static void note_comm(struct order *o, const char *name, const char *call, const char *target,
                      int group)
{
    if (o->n == o->cap) {
        o->cap = 2 * o->cap + 8;
        o->at = realloc(o->at, o->cap * sizeof(*o->at));
        assert_non_null(o->at);
    }
    o->at[o->n++] = (struct comm){strdup(name), strdup(call), target, group};
}

static const tuck_graph *graph_operand(const tuck_graph *g, tuck_node n, size_t i)
{
    const tuck_value *v = tuck_node_arg(g, n, i);
    tuck_node at = tuck_value_kind_of(v) == TUCK_V_NODE ? tuck_value_node(v) : (tuck_node){0};

    for (size_t k = 0; !tuck_is_none(at) && k < tuck_graph_child_count(g); k++)
        if (tuck_node_kind(g, at) == TUCK_GET_ATTR &&
            strcmp(tuck_graph_name(tuck_graph_child(g, k)), tuck_node_target(g, at)) == 0)
            return tuck_graph_child(g, k);
    return NULL;
}

/* What a node starts itself or through what it calls. */
static void note_node(struct order *o, const tuck_graph *g, tuck_node n)
{
    const char *name = tuck_node_name(g, n), *target = tuck_node_target(g, n);
    bool wraps = strstr(target, "control_deps") != NULL;

    if (tuck_node_kind(g, n) != TUCK_CALL_FUNCTION)
        return;
    if (strstr(target, "with_effects") != NULL)
        target = tuck_value_text(g, tuck_node_arg(g, n, 1));
    if (strncmp(target, "torch.ops.", 10) != 0
            ? strncmp(target, C10D + 10, 17) == 0 && strstr(target, "wait_tensor") == NULL
            : communicates(target))
        note_comm(o, name, name, target, group_named(g, n));
    for (size_t i = 0; i < tuck_node_arg_count(g, n); i++) {
        const tuck_graph *child = graph_operand(g, n, i);
        if (child == NULL)
            continue;
        for (tuck_node k = tuck_graph_first(child); !tuck_is_none(k);
             k = tuck_graph_next(child, k)) {
            char path[200];
            if (!communicates(tuck_node_target(child, k)))
                continue;
            snprintf(path, sizeof(path), "%s/%s.%s", name, tuck_graph_name(child),
                     tuck_node_name(child, k));
            note_comm(o, wraps ? name : path, name, tuck_node_target(child, k),
                      group_named(child, k));
        }
    }
}

static bool observe(void *ctx, const char *pass, size_t step, bool after, const tuck_graph *g)
{
    struct seen *s = ctx;

    (void)pass;
    assert_int_equal(s->n, 2 * step + after);
    if (s->n == s->cap) {
        s->cap = 2 * s->cap + 8;
        s->order = realloc(s->order, s->cap * sizeof(*s->order));
        assert_non_null(s->order);
    }
    struct order *o = &s->order[s->n++];
    *o = (struct order){NULL, 0, 0};
    for (tuck_node n = tuck_graph_first(g); !tuck_is_none(n); n = tuck_graph_next(g, n))
        note_node(o, g, n);
    return true;
}

static void seen_done(struct seen *s)
{
    for (size_t i = 0; i < s->n; i++) {
        for (size_t k = 0; k < s->order[i].n; k++)
            free(s->order[i].at[k].name), free(s->order[i].at[k].call);
        free(s->order[i].at);
    }
    free(s->order);
    *s = (struct seen){NULL, 0, 0};
}

static long place_of(const struct order *o, const char *name)
{
    for (size_t i = 0; i < o->n; i++)
        if (strcmp(o->at[i].name, name) == 0)
            return (long)i;
    return -1;
}

/* ---- the order of collectives ---- */

/* The positions, before the step, of the first and the last collective that it replaces. */
struct span {
    long first, last;
};

/* One node may replace another, at its position, in a pass that merges nothing. */
static bool replaced(const struct order *before, const struct order *after, size_t at,
                     const struct pass_report *p)
{
    return p->bucket.len == 0 && p->count.len > 0 && before->n == after->n &&
           place_of(after, before->at[at].name) < 0 && place_of(before, after->at[at].name) < 0;
}

static struct span span_of(const struct order *before, const struct order *after, size_t i_after,
                           const struct pass_report *p)
{
    const char *name = after->at[i_after].name;
    long at = replaced(before, after, i_after, p) ? (long)i_after : place_of(before, name);
    struct span s = {at, at};

    for (uint32_t i = 0; i < p->bucket.len && at < 0; i++) {
        const struct report_bucket *b = &p->bucket.at[i];
        if (strcmp(b->result, name) != 0)
            continue;
        for (uint32_t k = 0; k < b->n_member; k++) {
            long m = place_of(before, b->member[k]);
            s.first = m >= 0 && (s.first < 0 || m < s.first) ? m : s.first;
            s.last = m > s.last ? m : s.last;
        }
    }
    return s;
}

static bool is_symmetric(const struct comm *x)
{
    return strstr(x->target, SYMM) != NULL;
}

/* Is it a collective that may pass others where their order is free? Not what a nested graph starts.
 */
static bool is_plain(const struct comm *x)
{
    return strcmp(x->name, x->call) == 0 && x->group >= 0 &&
           (strstr(x->target, C10D) != NULL || is_symmetric(x));
}

/* May y, which came after all or a part of x, now be before it? Those of different groups may,
 * unless the whole sequence must be kept; then merged ones must have nothing of another group
 * between them, either. */
static bool may_pass(const struct comm *x, struct span at_x, const struct comm *y, struct span at_y,
                     bool keep_order, bool is_free)
{
    /* Those over symmetric memory keep their order among themselves. */
    if (is_free && is_plain(x) && is_plain(y) && !(is_symmetric(x) && is_symmetric(y)))
        return true;
    return x->group == y->group ? at_y.first <= at_x.last : !keep_order || at_y.last < at_x.first;
}

static bool check_order(const struct order *before, const struct order *after,
                        const struct pass_report *p, bool keep_order, struct text *why)
{
    /* the user chose the position */
    bool placed = strstr(p->options, "collective_before=") != NULL;
    bool is_free = (strcmp(p->name, "list_overlap") == 0 || strcmp(p->name, "improve_order") == 0 ||
                    strcmp(p->name, "overlap_scheduling") == 0) &&
                   !keep_order && strstr(p->options, "keep_groups=true") == NULL;

    for (size_t i = 0; i < after->n; i++) {
        struct span a = span_of(before, after, i, p);
        if (a.first < 0) {
            add(why, "order: %s: %s comes from nowhere\n", p->name, after->at[i].name);
            return false;
        }
        if (after->at[i].group != before->at[a.first].group) {
            add(why, "order: %s: %s has another group\n", p->name, after->at[i].name);
            return false;
        }
        for (size_t k = 0; k < i; k++) {
            struct span b = span_of(before, after, k, p);
            if (!placed && !may_pass(&after->at[i], a, &after->at[k], b, keep_order, is_free)) {
                add(why, "order: %s: %s stands before %s\n", p->name, after->at[k].name,
                    after->at[i].name);
                return false;
            }
        }
    }
    return true;
}

/* ---- reports ---- */

static unsigned times_reported(const struct pass_report *p, const char *name)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < p->bucket.len; i++)
        for (uint32_t k = 0; k < p->bucket.at[i].n_member; k++)
            n += strcmp(p->bucket.at[i].member[k], name) == 0;
    for (uint32_t i = 0; i < p->left.len; i++)
        n += strcmp(p->left.at[i].node, name) == 0;
    return n;
}

/* The beginning of the operators that a pass must account for, in any form; NULL if none. */
static const char *candidates(const char *pass)
{
    if (strncmp(pass, "fuse_ddp_with", 13) == 0)
        return "c10d_functional.all_reduce";
    if (strncmp(pass, "bucket_", 7) != 0)
        return NULL;
    return strstr(pass, "all_gather") != NULL       ? "c10d_functional.all_gather"
           : strstr(pass, "reduce_scatter") != NULL ? "c10d_functional.reduce_scatter"
           : strstr(pass, "all_reduce") != NULL     ? "c10d_functional.all_reduce"
                                                    : NULL;
}

static bool check_report(const struct order *before, const struct order *after,
                         const struct pass_report *p, struct text *why)
{
    for (size_t i = 0; i < before->n; i++) {
        unsigned n = times_reported(p, before->at[i].call);
        const char *kind = candidates(p->name);
        bool wanted = kind != NULL && strstr(before->at[i].target, kind) != NULL;
        if (n > 1 || (wanted && n == 0)) {
            add(why, "report: %s: %s is mentioned %u times\n", p->name, before->at[i].name, n);
            return false;
        }
        if (n == 0 && place_of(after, before->at[i].name) < 0 && !replaced(before, after, i, p)) {
            add(why, "report: %s: %s is gone without a word\n", p->name, before->at[i].name);
            return false;
        }
    }
    for (uint32_t i = 0; i < p->bucket.len; i++) {
        const struct report_bucket *b = &p->bucket.at[i];
        for (uint32_t k = 0; k < b->n_member; k++) {
            long at = place_of(before, b->member[k]), first = place_of(before, b->member[0]);
            if (at < 0 || before->at[at].group != before->at[first].group) {
                add(why, "report: %s: member %s of no group, or another\n", p->name, b->member[k]);
                return false;
            }
        }
        if (*b->result != '\0' && place_of(after, b->result) < 0) {
            add(why, "report: %s: there is no %s\n", p->name, b->result);
            return false;
        }
    }
    return true;
}

static bool check_steps(const struct seen *s, const tuck_report *t, bool keep_order,
                        struct sums *sums, struct text *why)
{
    for (uint32_t i = 0; i < t->pass.len; i++) {
        const struct pass_report *p = &t->pass.at[i];
        if (p->failed)
            break;
        if (2 * i + 1 >= s->n) {
            add(why, "report: %s was not shown to the observer\n", p->name);
            return false;
        }
        const struct order *before = &s->order[2 * i], *after = &s->order[2 * i + 1];
        if (!check_report(before, after, p, why) || !check_order(before, after, p, keep_order, why))
            return false;
        sums->changed += p->changed;
        sums->buckets += p->bucket.len;
        sums->left += p->left.len;
        for (uint32_t k = 0; k < p->bucket.len; k++)
            sums->members += p->bucket.at[k].n_member;
    }
    return true;
}

/* ---- one rank ---- */

struct rank_run {
    tuck_doc *doc;              /* NULL if `before` belongs to another run */
    tuck_graph *before, *after; /* `after` is a copy that the passes changed */
    tuck_status status;
    char *diags;
    tuck_report *report;
    char *text;
};

static void rank_done(struct rank_run *r)
{
    tuck_graph_free(r->after);
    tuck_doc_free(r->doc);
    tuck_report_free(r->report);
    free(r->diags);
    free(r->text);
    *r = (struct rank_run){.doc = NULL};
}

/* `before`: this rank's graph, too, or NULL. */
static void run_rank(const struct random_graph *x, char *const *text, const struct plan *p,
                     const tuck_pipeline *pipe, int rank, tuck_graph *before, struct seen *seen,
                     struct rank_run *r)
{
    static const char *const everywhere[] = {"*"};
    tuck_machine machine = {.size = sizeof(machine),
                            .hints = x->hint,
                            .n_hints = x->n_hint,
                            .symm_groups = everywhere,
                            .n_symm_groups = 1};
    tuck_run_options o = {.size = sizeof(o),
                          .machine = &machine,
                          .order = p->keep_order ? TUCK_ORDER_OF_ALL : TUCK_ORDER_FREE};
    tuck_diags *d = tuck_diags_new(NULL);

    *r = (struct rank_run){.doc = NULL};
    if (before == NULL) {
        r->doc = read_or_die(text[rank]);
        before = tuck_doc_graph(r->doc, 0);
    }
    r->before = before;
    assert_int_equal(tuck_graph_copy(r->before, &r->after), TUCK_OK);
    random_graph_tell(x, rank, p->knows_rank, r->after);
    if (seen != NULL) {
        o.observe = observe;
        o.ctx = seen;
    }
    r->status = tuck_pipeline_run(pipe, r->after, &o, d, &r->report);
    r->diags = diags_text(d);
    r->text = graph_text(r->after);
    tuck_diags_free(d);
}

/* ---- texts of two ranks ---- */

static bool may_name_rank(const char *line, size_t n)
{
    static const char *const ops[] = {"aten.slice.Tensor(", "aten.as_strided.default(",
                                      "bucketing._pre_bucket_all_gather.default(",
                                      "fsdp.all_gather_copy_in.default("};

    for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
        if (memmem(line, n, ops[i], strlen(ops[i])) != NULL)
            return true;
    return false;
}

/* The same characters, or different numbers. */
static bool same_but_numbers(const char *x, const char *x_end, const char *y, const char *y_end)
{
    while (x < x_end && y < y_end) {
        if (*x >= '0' && *x <= '9' && *y >= '0' && *y <= '9') {
            x += strspn(x, "0123456789");
            y += strspn(y, "0123456789");
        } else if (*x++ != *y++) {
            return false;
        }
    }
    return x == x_end && y == y_end;
}

/* Arithmetic on sizes: x: "Sym(4*s0)" = y * 2 */
static bool is_size(const char *line, size_t n)
{
    return memmem(line, n, ": \"Sym(", 7) != NULL ||
           (memmem(line, n, " * ", 3) != NULL && memmem(line, n, "torch.ops.", 10) == NULL);
}

/* The name and, for a tensor, the type are the same; other numbers may depend on the rank. */
static bool same_line(const char *a, size_t n, const char *b, size_t m)
{
    const char *call_a = memmem(a, n, " = ", 3), *call_b = memmem(b, m, " = ", 3);
    bool sizes = is_size(a, n) && is_size(b, m);

    if (n == m && memcmp(a, b, n) == 0)
        return true;
    if (call_a == NULL || call_b == NULL ||
        !(sizes || (may_name_rank(a, n) && may_name_rank(b, m))))
        return false;
    size_t head = sizes ? strcspn(a, ":=") : (size_t)(call_a - a);
    return (sizes || head == (size_t)(call_b - b)) && head <= m && memcmp(a, b, head) == 0 &&
           same_but_numbers(call_a, a + n, call_b, b + m);
}

static bool same_on_ranks(const char *a, const char *b)
{
    while (*a != '\0' && *b != '\0') {
        size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");

        if (!same_line(a, n, b, m))
            return false;
        a += n + (a[n] != '\0');
        b += m + (b[m] != '\0');
    }
    return *a == *b;
}

/* ---- one graph ---- */

static bool check_values(const struct random_graph *x, struct rank_run *r, struct sums *sums,
                         struct text *why)
{
    tuck_graph *before[RANDOM_RANKS], *after[RANDOM_RANKS];

    for (int i = 0; i < x->world.n_ranks; i++) {
        before[i] = r[i].before;
        after[i] = r[i].after;
    }
    struct sym_result *a = symeval_run(&x->world, before, why), *b = NULL;
    bool ok = a != NULL;
    if (ok && symeval_race(a) != NULL) {
        add(why, "generator: a race: %s\n", symeval_race(a));
        ok = false;
    }
    if (!ok)
        add(why, "generator: no graph to start from\n");
    if (ok) {
        b = symeval_run(&x->world, after, why);
        ok = b != NULL;
    }
    if (ok && symeval_race(b) != NULL) {
        add(why, "race: %s\n", symeval_race(b));
        sums->races++;
        ok = false;
    }
    ok = ok && symeval_same(a, b, why);
    symeval_free(a);
    symeval_free(b);
    return ok;
}

/* The options do not make sense for any graph, or not for this one. Whatever else a pass cannot do,
 * it must leave alone. */
static bool check_status(const struct rank_run *r, const char *graph, const char *steps,
                         struct text *why)
{
    static const char *const refusals[] = {
        "error: merge_bucket: ",          "error: begins: ",
        "error: one_shot_all_reduce: ",   "error: mode custom_ops_multidtype is for all-gathers",
        "symbols in sizes have no value", /* schedules need to know all sizes */
    };
    /* Results that nobody takes out any more have no sizes. */
    static const char *const unknown[] = {"Tuck does not know what these operators return"};

    if (r->status == TUCK_OK)
        return true;
    /* PyTorch's overlap scheduler refuses what would break something, but never by a broken graph. */
    if (r->status == TUCK_EINVAL && strstr(steps, "overlap_") != NULL)
        return true;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++)
        if (r->status == TUCK_EINVAL && strstr(r->diags, refusals[i]) != NULL)
            return true;
    for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++)
        if (r->status == TUCK_EINVAL && strstr(r->diags, unknown[i]) != NULL &&
            strstr(graph, "torch.ops.mylib.") != NULL)
            return true;
    add(why, "status: %s\n%s", tuck_status_text(r->status), r->diags);
    return false;
}

/* True: no error. */
static bool check_graph(const struct random_graph *x, char *const *text, const struct plan *p,
                        struct sums *sums, struct text *why)
{
    struct rank_run r[RANDOM_RANKS] = {{.doc = NULL}}, again = {.doc = NULL};
    struct seen seen = {NULL, 0, 0};
    char *steps = plan_text(p);
    tuck_pipeline *pipe = NULL;
    bool ok = true;

    assert_int_equal(tuck_pipeline_parse(steps, strlen(steps), "plan", NULL, NULL, &pipe), TUCK_OK);
    for (int i = 0; i < x->world.n_ranks && ok; i++) {
        if (i > 0 && x->alike && !p->knows_rank) { /* nothing that could differ */
            r[i] = (struct rank_run){.before = r[0].before, .after = r[0].after};
            continue;
        }
        run_rank(x, text, p, pipe, i, x->alike && i > 0 ? r[0].before : NULL, i == 0 ? &seen : NULL,
                 &r[i]);
        tuck_diags *d = tuck_diags_new(NULL);
        if (i == 0 && tuck_graph_lint(r[i].before, d) != TUCK_OK) {
            char *s = diags_text(d);
            add(why, "generator: lint: %s", s);
            free(s);
            ok = false;
        }
        tuck_diags_free(d);
        ok = ok && (check_status(&r[i], text[i], steps, why) || p->torch);
        if (ok && r[i].status != r[0].status) {
            add(why, "ranks: %s on rank %d\n", tuck_status_text(r[i].status), i);
            ok = p->torch;
        }
        if (ok && i > 0 && !p->torch && !same_on_ranks(r[0].text, r[i].text)) {
            add(why, "ranks: another graph on rank %d\n%s", i, r[i].text);
            ok = false;
        }
    }
    sums->refused += r[0].status != TUCK_OK;
    if (ok && p->twice) {
        run_rank(x, text, p, pipe, 0, NULL, NULL, &again);
        ok = again.status == r[0].status && strcmp(again.text, r[0].text) == 0;
        if (!ok)
            add(why, "twice: another graph the second time\n%s", again.text);
        rank_done(&again);
        char *wrong = ok ? check_fixpoint(r[0].after) : NULL;
        if (wrong != NULL)
            add(why, "text: %s", wrong);
        ok = ok && wrong == NULL;
        free(wrong);
    }
    if (!p->torch)
        ok = ok && check_steps(&seen, r[0].report, p->keep_order, sums, why) &&
             check_values(x, r, sums, why);
    if (!ok && r[0].text != NULL)
        add(why, "--- after\n%s", r[0].text);
    for (int i = x->world.n_ranks - 1; i >= 0; i--)
        if (i == 0 || r[i].after != r[0].after)
            rank_done(&r[i]);
    seen_done(&seen);
    tuck_pipeline_free(pipe);
    free(steps);
    return ok;
}

/* ---- shrinking a failure ---- */

struct failure {
    struct random_graph *x;
    struct plan plan;
    char *text[RANDOM_RANKS];
    struct text why;
};

/* Does it still fail in the same way? Then these texts become the failure. Takes ownership of the
 * texts. */
static bool still_fails(struct failure *f, char **text, const struct plan *plan)
{
    struct sums sums = {0};
    struct text why = {NULL, 0, 0};
    size_t same = strcspn(f->why.at, ":");

    text_clear(&why);
    bool fails = !check_graph(f->x, text, plan, &sums, &why) &&
                 strncmp(why.at, f->why.at, same) == 0;
    for (int i = 0; i < RANDOM_RANKS && text != f->text; i++) {
        if (fails) {
            free(f->text[i]);
            f->text[i] = text[i];
        } else {
            free(text[i]);
        }
    }
    if (fails) {
        f->plan = *plan;
        text_done(&f->why);
        f->why = why;
    } else {
        text_done(&why);
    }
    return fails;
}

/* Stops returning value number `item`. */
static bool return_less(tuck_graph *g, size_t item)
{
    tuck_node out = tuck_graph_output(g);
    const tuck_value *v = tuck_node_arg(g, out, 0);
    tuck_args *a = tuck_args_new(g);

    if (item >= tuck_value_len(v)) {
        tuck_args_free(a);
        return false;
    }
    tuck_args_open(a, TUCK_V_TUPLE);
    for (size_t i = 0; i < tuck_value_len(v); i++)
        if (i != item)
            tuck_args_value(a, tuck_value_item(v, i));
    tuck_args_close(a);
    tuck_status st = tuck_node_set_args(g, out, a);
    tuck_args_free(a);
    return st == TUCK_OK;
}

static bool erase_nth(tuck_graph *g, size_t nth)
{
    tuck_node n = tuck_graph_last(g);

    while (nth-- > 0 && !tuck_is_none(n))
        n = tuck_graph_prev(g, n);
    return !tuck_is_none(n) && tuck_node_kind(g, n) != TUCK_OUTPUT &&
           tuck_node_use_count(g, n) == 0 && tuck_node_erase(g, n) == TUCK_OK;
}

static bool try_edit(struct failure *f, bool (*edit)(tuck_graph *g, size_t i), size_t at)
{
    char *text[RANDOM_RANKS] = {NULL};
    bool done = true;

    for (int i = 0; i < f->x->world.n_ranks && done; i++) {
        tuck_doc *doc = read_or_die(f->text[i]);
        done = edit(tuck_doc_graph(doc, 0), at);
        text[i] = graph_text(tuck_doc_graph(doc, 0));
        tuck_doc_free(doc);
    }
    if (done)
        return still_fails(f, text, &f->plan);
    for (int i = 0; i < RANDOM_RANKS; i++)
        free(text[i]);
    return false;
}

static bool drop_steps(struct failure *f)
{
    bool dropped = false;

    for (int i = f->plan.n - 1; i >= 0 && f->plan.n > 1; i--) {
        struct plan p = f->plan;
        memmove(p.step[i], p.step[i + 1], sizeof(p.step[0]) * (size_t)(p.n - i - 1));
        p.n--;
        dropped |= still_fails(f, f->text, &p);
    }
    return dropped;
}

static void shrink(struct failure *f)
{
    bool smaller = true;

    while (smaller) {
        smaller = drop_steps(f);
        tuck_doc *doc = read_or_die(f->text[0]);
        size_t nodes = tuck_graph_size(tuck_doc_graph(doc, 0));
        tuck_doc_free(doc);
        for (size_t i = nodes; i-- > 0;)
            smaller |= try_edit(f, return_less, i);
        for (size_t i = 0; i < nodes; i++)
            while (try_edit(f, erase_nth, i))
                smaller = true;
    }
}

static void check_or_fail(struct random_graph *x, const struct plan *p, uint64_t seed,
                          struct sums *sums)
{
    struct failure f = {.x = x, .plan = *p};

    text_clear(&f.why);
    if (check_graph(x, x->text, p, sums, &f.why)) {
        text_done(&f.why);
        return;
    }
    for (int i = 0; i < x->world.n_ranks; i++)
        f.text[i] = strdup(x->text[i]);
    if (strncmp(f.why.at, "generator", 9) != 0) /* removing things also makes invalid graphs */
        shrink(&f);
    char *steps = plan_text(&f.plan);
    fprintf(stderr,
            "TUCK_SEED=%llu: %d ranks, s0 = %lld, s1 = %lld, hints %zu, rank %s\n--passes '%s'\n"
            "--- before\n%s--- %s\n",
            (unsigned long long)seed, x->world.n_ranks, (long long)x->symbol[0].value,
            (long long)x->symbol[1].value, x->n_hint, f.plan.knows_rank ? "known" : "unknown",
            steps, f.text[0], f.why.at);
    free(steps);
    text_done(&f.why);
    for (int i = 0; i < x->world.n_ranks; i++)
        free(f.text[i]);
    random_graph_free(x);
    fail_msg("a pass broke a graph: TUCK_SEED=%llu", (unsigned long long)seed);
}

static void run_many(const char *name, bool schedules, size_t n)
{
    uint64_t seed = seed_of(name);
    struct sums sums = {0};

    if (getenv("TUCK_GRAPHS") != NULL)
        n = strtoull(getenv("TUCK_GRAPHS"), NULL, 0);
    for (; sums.graphs < n; sums.graphs++) {
        struct rng rng = {seed + sums.graphs};
        struct random_graph x;
        struct plan p;

        random_graph_make(&rng, &x);
        random_plan(&rng, x.text[0], schedules, &p);
        check_or_fail(&x, &p, seed + sums.graphs, &sums);
        random_graph_free(&x);
    }
    printf("# %zu graphs, %zu steps changed one, %zu runs refused, %zu buckets of %zu members, %zu "
           "left\n",
           sums.graphs, sums.changed, sums.refused, sums.buckets, sums.members, sums.left);
}

static void on_graphs(void **state)
{
    (void)state;
    run_many("passes on graphs", false, rounds(5000));
}

/* The order of a program is applied to its graph: views, copies and waits must find their
 * positions. */
static void on_schedules(void **state)
{
    (void)state;
    run_many("passes on schedules", true, rounds(1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(on_graphs), cmocka_unit_test(on_schedules)};

    return cmocka_run_group_tests_name("passes", tests, NULL, NULL);
}

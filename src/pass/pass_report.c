#include "pass/pass_report.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/layout.h"
#include "base/units.h"
#include "tuck_experimental.h"

static const char *const reason_name[] = {
#define X(id, name, meaning) name,
    LEFT_REASONS(X)
#undef X
};

static const char *const reason_meaning[] = {
#define X(id, name, meaning) meaning,
    LEFT_REASONS(X)
#undef X
};

const char report_crossed[] =
    "collectives changed places: all ranks must run this graph, or use --keep-order";

static const char report_merged[] = "this assumes that every rank runs the same program and makes "
                                    "the same choice: collectives are merged";
static const char report_moved[] =
    "this assumes that every rank runs the same program and makes the same choice: the order of "
    "communication is changed (--keep-order keeps it)";

static const char *const closed_name[] = {"cap", "key", "dependence", "order", "end", "choice"};

const char *left_reason_name(enum left_reason why)
{
    return reason_name[why];
}

const char *left_reason_meaning(enum left_reason why)
{
    return reason_meaning[why];
}

struct tuck_report *report_new(const tuck_allocator *alloc)
{
    struct mem m;

    mem_init(&m, alloc);
    struct tuck_report *t = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*t));
    if (t != NULL) {
        *t = (struct tuck_report){.mem = m};
        arena_init(&t->arena, &t->mem);
    }
    return t;
}

void tuck_report_free(tuck_report *t)
{
    if (t == NULL)
        return;
    struct mem m = t->mem;
    arena_destroy(&t->arena);
    mem_free(&m, t, sizeof(*t));
}

void report_assume(struct tuck_report *t, const tuck_graph *g, const tuck_cluster *c)
{
    struct cost_assumed *at;
    uint32_t n = cost_assumed_find(g, c, &t->arena, &at);

    t->assumed.len = 0;
    for (uint32_t i = 0; i < n; i++) {
        at[i].name = arena_str(&t->arena, at[i].name, strlen(at[i].name));
        vec_push_in(&t->arena, &t->assumed, at[i]);
    }
}

static const char *keep(struct pass_report *p, const char *s)
{
    return arena_str(&p->all->arena, s ? s : "", s ? strlen(s) : 0);
}

const char *report_name(struct pass_report *p, const tuck_graph *g, uint32_t node)
{
    return keep(p, graph_str(g, node_at(g, node)->name));
}

void report_bucket(struct pass_report *p, const struct report_bucket *b)
{
    struct report_bucket c = *b;

    c.kind = keep(p, b->kind);
    c.group = keep(p, b->group);
    c.key = keep(p, b->key);
    c.result = keep(p, b->result);
    c.member = arena_array(&p->all->arena, const char *, b->n_member);
    for (uint32_t i = 0; i < b->n_member; i++)
        c.member[i] = keep(p, b->member[i]);
    vec_push_in(&p->all->arena, &p->bucket, c);
}

void report_left(struct pass_report *p, const tuck_graph *g, uint32_t node, enum left_reason why)
{
    struct report_left l = {report_name(p, g, node), why};

    vec_push_in(&p->all->arena, &p->left, l);
}

void report_count(struct pass_report *p, const char *what, int64_t n)
{
    struct report_count c = {keep(p, what), n};

    vec_push_in(&p->all->arena, &p->count, c);
}

void report_move(struct pass_report *p, const struct report_move *m)
{
    struct report_move c = *m;

    c.node = keep(p, m->node);
    c.limit = keep(p, m->limit);
    c.limit_node = keep(p, m->limit_node);
    vec_push_in(&p->all->arena, &p->move, c);
}

void report_note(struct pass_report *p, const char *fmt, ...)
{
    va_list ap;
    char room[256]; /* one sentence; longer ones are cut */

    va_start(ap, fmt);
    vsnprintf(room, sizeof(room), fmt, ap);
    va_end(ap);
    p->note = keep(p, room);
}

void report_append(struct tuck_report *t, const struct pass_report *row)
{
    struct pass_report copy = *row;

    copy.all = t;
    copy.name = keep(&copy, row->name);
    copy.options = keep(&copy, row->options);
    copy.note = row->note ? keep(&copy, row->note) : NULL;
    memset(&copy.bucket, 0, sizeof(copy.bucket));
    memset(&copy.left, 0, sizeof(copy.left));
    memset(&copy.count, 0, sizeof(copy.count));
    memset(&copy.move, 0, sizeof(copy.move));
    for (uint32_t i = 0; i < row->bucket.len; i++)
        report_bucket(&copy, &row->bucket.at[i]);
    for (uint32_t i = 0; i < row->left.len; i++) {
        struct report_left l = {keep(&copy, row->left.at[i].node), row->left.at[i].why};
        vec_push_in(&t->arena, &copy.left, l);
    }
    for (uint32_t i = 0; i < row->count.len; i++)
        report_count(&copy, row->count.at[i].what, row->count.at[i].n);
    for (uint32_t i = 0; i < row->move.len; i++)
        report_move(&copy, &row->move.at[i]);
    vec_push_in(&t->arena, &t->pass, copy);
}

/* ---- JSON ---- */

static void bucket_json(struct json_out *j, const struct report_bucket *b)
{
    json_open(j, NULL, '{');
    json_str(j, "kind", b->kind);
    json_str(j, "group", b->group);
    json_str(j, "key", b->key);
    json_open(j, "members", '[');
    for (uint32_t i = 0; i < b->n_member; i++)
        json_str(j, NULL, b->member[i]);
    json_close(j, ']');
    json_int(j, "bytes", b->bytes);
    json_str(j, "closed_by", closed_name[b->closed_by]);
    json_str(j, "result", b->result);
    json_close(j, '}');
}

static void move_json(struct json_out *j, const struct report_move *m)
{
    json_open(j, NULL, '{');
    json_str(j, "node", m->node);
    json_int(j, "moves", m->moves);
    json_int(j, "grouped", m->grouped);
    json_float(j, "comm_ns", ns_of_ps(m->comm_ps));
    json_float(j, "comp_ns", ns_of_ps(m->comp_ps));
    json_float(j, "exposed_before_ns", ns_of_ps(m->exposed_before_ps));
    json_float(j, "exposed_after_ns", ns_of_ps(m->exposed_after_ps));
    json_str(j, "limit", m->limit);
    json_str(j, "limit_node", m->limit_node);
    json_close(j, '}');
}

static void pass_json(struct json_out *j, const struct pass_report *p, bool times)
{
    json_open(j, NULL, '{');
    json_str(j, "name", p->name);
    json_str(j, "options", p->options);
    if (times)
        json_float(j, "ms", p->ms);
    json_bool(j, "changed", p->changed);
    if (p->failed)
        json_bool(j, "failed", true);
    json_int(j, "nodes_before", p->before);
    json_int(j, "nodes_after", p->after);
    if (p->scheduled) {
        json_float(j, "exposed_before_ns", ns_of_ps(p->exposed_before));
        json_float(j, "exposed_after_ns", ns_of_ps(p->exposed_after));
        json_int(j, "peak_before_bytes", p->peak_before);
        json_int(j, "peak_after_bytes", p->peak_after);
    }
    if (p->judged) {
        json_float(j, "step_ns", ns_of_ps(p->step_ps));
        json_int(j, "peak_bytes", p->step_peak);
    }
    if (p->note != NULL)
        json_str(j, "note", p->note);
    if (p->count.len > 0) {
        json_open(j, "counts", '{');
        for (uint32_t i = 0; i < p->count.len; i++)
            json_int(j, p->count.at[i].what, p->count.at[i].n);
        json_close(j, '}');
    }
    json_open(j, "buckets", '[');
    for (uint32_t i = 0; i < p->bucket.len; i++)
        bucket_json(j, &p->bucket.at[i]);
    json_close(j, ']');
    json_open(j, "left", '[');
    for (uint32_t i = 0; i < p->left.len; i++) {
        json_open(j, NULL, '{');
        json_str(j, "node", p->left.at[i].node);
        json_str(j, "reason", reason_name[p->left.at[i].why]);
        json_close(j, '}');
    }
    json_close(j, ']');
    if (p->move.len > 0) {
        json_open(j, "moves", '[');
        for (uint32_t i = 0; i < p->move.len; i++)
            move_json(j, &p->move.at[i]);
        json_close(j, ']');
    }
    json_close(j, '}');
}

static void times_fields(struct json_out *j, const tuck_times *t)
{
    json_float(j, "step_ns", ns_of_ps(t->step_ps));
    json_float(j, "compute_ns", ns_of_ps(t->compute_ps));
    json_float(j, "comm_ns", ns_of_ps(t->comm_ps));
    json_float(j, "exposed_ns", ns_of_ps(t->exposed_ps));
    json_int(j, "peak_bytes", t->peak_bytes);
}

static void times_json(struct json_out *j, const char *key, const tuck_times *t)
{
    json_open(j, key, '{');
    times_fields(j, t);
    json_close(j, '}');
}

static void rival_json(struct json_out *j, const struct report_rival *r)
{
    json_open(j, "pytorch", '{');
    if (r->sound) {
        times_fields(j, &r->times);
        json_bool(j, "fits", r->fits);
    } else {
        json_str(j, "refused", r->why);
    }
    json_close(j, '}');
}

static bool crosses(const struct tuck_report *t)
{
    for (uint32_t i = 0; i < t->pass.len; i++)
        if (t->pass.at[i].crossed)
            return true;
    return false;
}

/* Does it rest on ranks that nobody looked at? */
static bool assumes_alike(const struct tuck_report *t)
{
    return (crosses(t) || t->resequenced) && !t->compared;
}

static void json_digest(struct json_out *j, const char *key, uint64_t digest)
{
    char text[TUCK_DIGEST_TEXT];

    snprintf(text, sizeof(text), "%016llx", (unsigned long long)digest);
    json_str(j, key, text);
}

static void contended_json(struct json_out *j, const struct report_contended *c)
{
    if (!c->judged)
        return;
    json_open(j, "with_contention", '{');
    json_float(j, "step_ns", ns_of_ps(c->with_ps));
    if (c->next_ps >= 0) {
        json_float(j, "second_ns", ns_of_ps(c->next_with_ps));
        json_float(j, "second_without_ns", ns_of_ps(c->next_ps));
        json_bool(j, "changes_the_choice", c->next_with_ps < c->with_ps);
    }
    json_close(j, '}');
}

static void work_json(struct json_out *j, const struct tuck_report *t, bool times)
{
    const struct report_work *w = &t->work;

    json_open(j, "stats", '{');
    json_int(j, "graphs", w->graphs);
    json_int(j, "lowered", w->lowered);
    json_int(j, "problems", w->problems);
    json_int(j, "simulated", w->simulated);
    json_int(j, "reused", w->reused);
    json_int(j, "orders_simulated", w->orders);
    if (times && t->rival.ran)
        json_float(j, "pytorch_ms", t->rival.ms);
    json_close(j, '}');
}

void report_json_in(const struct tuck_report *t, const struct report_form *how, struct json_out *j)
{
    if (assumes_alike(t))
        json_bool(j, "assumes_same_graph_on_all_ranks", true);
    if (t->has_sequence)
        json_digest(j, "sequence", t->sequence);
    if (t->judged) {
        json_bool(j, "changed", t->gain.changed);
        if (t->gain.memory_limit > 0)
            json_int(j, "memory_limit_bytes", t->gain.memory_limit);
        if (t->gain.over_limit)
            json_bool(j, "over_limit", true);
        times_json(j, "before", &t->gain.before);
        if (t->rival.ran)
            rival_json(j, &t->rival);
        times_json(j, "after", &t->gain.after);
        cost_assumed_json(j, t->assumed.at, t->assumed.len, t->unbacked);
        json_int(j, "ops_unknown", t->ops_unknown);
        json_int(j, "buffers_unknown", t->buffers_unknown);
        if (t->ops_unknown == 0) {
            json_float(j, "bound_ns", ns_of_ps(t->gain.bound_ps));
            json_str(j, "bound_by", t->gain.bound_kind);
        }
    } else if (t->assumed.len > 0) {
        cost_assumed_json(j, t->assumed.at, t->assumed.len, t->unbacked);
    }
    contended_json(j, &t->contended);
    if (t->optimal)
        json_bool(j, "optimal", true);
    if (t->stopped)
        json_int(j, "stopped_after_tries", t->tries);
    if (t->contention != NULL)
        json_str(j, "contention", t->contention);
    json_open(j, "passes", '[');
    for (uint32_t i = 0; i < t->pass.len; i++)
        pass_json(j, &t->pass.at[i], how->times);
    json_close(j, ']');
    if (how->work)
        work_json(j, t, how->times);
}

void report_json(const struct tuck_report *t, const struct report_form *how, struct buf *b)
{
    struct json_out j;

    json_begin(&j, b);
    json_open(&j, NULL, '{');
    json_schema(&j, 1);
    report_json_in(t, how, &j);
    json_close(&j, '}');
    json_end(&j);
}

/* ---- tables ---- */

static void put_bytes(struct buf *b, int64_t bytes)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    char text[32];
    double v = (double)bytes;
    int u = 0;

    for (; v >= 1024 && u < 4; u++)
        v /= 1024;
    snprintf(text, sizeof(text), u == 0 ? "%.0f %s" : "%.1f %s", v, unit[u]);
    buf_printf(b, "%11s", text);
}

static void put_names(struct buf *b, const char *const *name, uint32_t n)
{
    enum { SHOWN = 4 };

    for (uint32_t i = 0; i < n; i++) {
        if (n > SHOWN && i == SHOWN - 1) {
            buf_printf(b, " … %s", name[n - 1]);
            break;
        }
        buf_printf(b, "%s%s", i ? " " : "", name[i]);
    }
}

static void put_buckets(struct buf *b, const struct pass_report *p)
{
    if (p->bucket.len == 0)
        return;
    size_t long_group = 0, long_key = 0;

    for (uint32_t i = 0; i < p->bucket.len; i++) {
        long_group = name_longer(long_group, p->bucket.at[i].group);
        long_key = name_longer(long_key, p->bucket.at[i].key);
    }
    int key = name_column(b, long_key, 8, 60), group = name_column(b, long_group, 10, 50 + key);
    ink_line(b, INK_HEAD, "  %-14s %-*s %-*s %7s %11s  %s", "kind", group, "group", key, "key",
             "members", "bytes", "closed by");
    for (uint32_t i = 0; i < p->bucket.len; i++) {
        const struct report_bucket *k = &p->bucket.at[i];

        buf_printf(b, "  %-14s ", k->kind);
        put_name(b, k->group, group);
        buf_chr(b, ' ');
        put_name(b, k->key, key);
        buf_printf(b, " %7u ", k->n_member);
        put_bytes(b, k->bytes);
        buf_printf(b, "  %s\n", closed_name[k->closed_by]);
        size_t from = wrap_begin(b);
        buf_printf(b, "      %s%s", k->result, *k->result ? " = " : "");
        put_names(b, k->member, k->n_member);
        wrap_end(b, from, 10);
        buf_chr(b, '\n');
    }
}

/* Many are left for the same reason: one line per reason. */
static void put_left(struct buf *b, const struct pass_report *p)
{
    for (int why = 0; why < LEFT_END; why++) {
        const char *name[4] = {NULL};
        uint32_t n = 0;

        for (uint32_t i = 0; i < p->left.len; i++)
            if ((int)p->left.at[i].why == why) {
                if (n < 3)
                    name[n] = p->left.at[i].node;
                n++;
            }
        if (n == 0)
            continue;
        size_t from = wrap_begin(b);
        ink_printf(b, INK_LIMIT, "  left %u, %s: ", n, reason_name[why]);
        put_names(b, name, n < 3 ? n : 3);
        buf_str(b, n > 3 ? " …" : "");
        wrap_end(b, from, LAYOUT_SAY);
        buf_chr(b, '\n');
        wrap_line(b, INK_DIM, LAYOUT_SAY, "(%s)", reason_meaning[why]);
    }
}

static int by_exposed(const void *x, const void *y)
{
    const struct report_move *a = *(const struct report_move *const *)x,
                             *b = *(const struct report_move *const *)y;

    return a->exposed_after_ps != b->exposed_after_ps
               ? (a->exposed_after_ps > b->exposed_after_ps ? -1 : 1)
           : a < b ? -1
                   : a > b;
}

/* The collectives that are still exposed the most. */
static void put_moves(struct buf *b, const struct pass_report *p)
{
    enum { SHOWN = 5 };
    const struct report_move *top[SHOWN] = {NULL};
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->move.len; i++) {
        const struct report_move *m = &p->move.at[i];
        if (m->exposed_after_ps <= 0 || (n == SHOWN && by_exposed(&m, &top[SHOWN - 1]) > 0))
            continue;
        n -= n == SHOWN;
        top[n++] = m;
        qsort(top, n, sizeof(*top), by_exposed);
    }
    size_t longest = 0;
    for (uint32_t i = 0; i < n; i++)
        longest = name_longer(longest, top[i]->node);
    int wide = name_column(b, longest, 20, 42);
    if (n > 0)
        ink_line(b, INK_HEAD, "  %-*s %6s %10s %10s %10s", wide, "most exposed of them", "moves",
                 "comm us", "exposed us", "before us");
    for (uint32_t i = 0; i < n; i++) {
        buf_str(b, "  ");
        put_name(b, top[i]->node, wide);
        buf_printf(b, " %6u %10.1f ", top[i]->moves, (double)top[i]->comm_ps / PS_PER_US);
        ink_printf(b, INK_BAD, "%10.1f", (double)top[i]->exposed_after_ps / PS_PER_US);
        buf_printf(b, " %10.1f\n", (double)top[i]->exposed_before_ps / PS_PER_US);
        wrap_line(b, INK_LIMIT, LAYOUT_SAY, "limit: %s%s%s", top[i]->limit,
                  *top[i]->limit_node ? ", " : "", top[i]->limit_node);
    }
}

/* One row of the table: before, PyTorch's own unless it was not run, after. The last number is
 * better if it is smaller. */
struct row {
    double before, rival, after;
    int digits;
};

static void put_row(struct buf *b, const struct report_rival *r, const char *what, struct row x)
{
    buf_printf(b, "%-22s %12.*f ", what, x.digits, x.before);
    if (r->sound)
        buf_printf(b, "%13.*f ", x.digits, x.rival);
    else if (r->ran)
        buf_printf(b, "%13s ", "-");
    ink_printf(b, x.after == x.before ? INK_PLAIN : ink_change(x.after - x.before), "%12.*f",
               x.digits, x.after);
}

static double ms_of(int64_t ps)
{
    return ns_of_ps(ps) / 1e6;
}

static double mib_of(int64_t bytes)
{
    return (double)bytes / 1048576;
}

/* How far it is above the bound, in percent. */
static double gap_of(const tuck_gain *g, const tuck_times *t)
{
    return g->bound_ps > 0 ? 100 * (ns_of_ps(t->step_ps) / ns_of_ps(g->bound_ps) - 1) : 0;
}

static void put_times(struct buf *b, const struct tuck_report *t)
{
    const tuck_gain *g = &t->gain;
    const tuck_times *x = &g->before, *y = &g->after, *p = &t->rival.times;
    const struct report_rival *r = &t->rival;

    ink_line(b, INK_HEAD, "%-22s %12s %s%12s", "", "before", r->ran ? "PyTorch's own " : "",
             t->chosen ? "after" : "Tuck");
    put_row(b, r, "step ms",
            (struct row){ms_of(x->step_ps), ms_of(p->step_ps), ms_of(y->step_ps), 3});
    ink_line(b, ink_change(ns_of_ps(y->step_ps) - ns_of_ps(x->step_ps)), "  %+.1f %%",
             x->step_ps > 0 ? 100 * (ns_of_ps(y->step_ps) / ns_of_ps(x->step_ps) - 1) : 0);
    put_row(b, r, "compute ms",
            (struct row){ms_of(x->compute_ps), ms_of(p->compute_ps), ms_of(y->compute_ps), 3});
    buf_chr(b, '\n');
    put_row(b, r, "communication ms",
            (struct row){ms_of(x->comm_ps), ms_of(p->comm_ps), ms_of(y->comm_ps), 3});
    buf_chr(b, '\n');
    put_row(b, r, "exposed ms",
            (struct row){ms_of(x->exposed_ps), ms_of(p->exposed_ps), ms_of(y->exposed_ps), 3});
    buf_chr(b, '\n');
    put_row(b, r, "peak memory MiB",
            (struct row){mib_of(x->peak_bytes), mib_of(p->peak_bytes), mib_of(y->peak_bytes), 2});
    if (g->memory_limit > 0 && g->memory_limit != x->peak_bytes)
        ink_printf(b, INK_DIM, "  within %.2f", mib_of(g->memory_limit));
    buf_chr(b, '\n');
}

static void put_bound(struct buf *b, const struct tuck_report *t)
{
    const tuck_gain *g = &t->gain;

    if (t->ops_unknown > 0) {
        ink_line(b, INK_LIMIT, "the time of %u op%s is not known: there is no bound",
                 t->ops_unknown, t->ops_unknown == 1 ? "" : "s");
        return;
    }
    put_row(
        b, &t->rival, "gap %",
        (struct row){gap_of(g, &g->before), gap_of(g, &t->rival.times), gap_of(g, &g->after), 1});
    ink_line(b, INK_DIM, "  above the bound");
    wrap_hang(b, INK_LIMIT, 0, "the bound of %.3f ms: %s", ms_of(g->bound_ps), g->bound_meaning);
}

/* Why PyTorch's own is not there, or could not be used. */
static void put_rival(struct buf *b, const struct tuck_report *t)
{
    const struct report_rival *r = &t->rival;

    if (r->ran && !r->sound)
        wrap_hang(b, INK_LIMIT, 2, "no result of PyTorch's own: %s", r->why);
    else if (r->ran && !r->fits)
        wrap_hang(b, INK_LIMIT, 2, "PyTorch's own needs %.2f MiB, more than the limit of %.2f",
                  mib_of(r->times.peak_bytes), mib_of(t->gain.memory_limit));
}

/* Would the second best be the best, by more than a thousandth, if collectives and kernels slowed
 * each other down? */
static bool contention_decides(const struct report_contended *c)
{
    return c->judged && c->next_ps >= 0 && c->next_with_ps < c->with_ps - c->with_ps / 1000;
}

static void put_contended(struct buf *b, const struct report_contended *c)
{
    if (!c->judged || (c->with_ps == c->ps && !contention_decides(c)))
        return;
    if (contention_decides(c))
        wrap_hang(b, INK_LIMIT, 0,
                  "contention changes the choice: with it this takes %.3f ms, and the second best, "
                  "%.3f ms without it, takes %.3f ms (--contention decides by that)",
                  ms_of(c->with_ps), ms_of(c->next_ps), ms_of(c->next_with_ps));
    else if (c->next_ps >= 0)
        wrap_hang(b, INK_DIM, 0, "with contention %.3f ms, and %.3f ms the second best",
                  ms_of(c->with_ps), ms_of(c->next_with_ps));
    else
        wrap_hang(b, INK_DIM, 0, "with contention %.3f ms", ms_of(c->with_ps));
}

static void put_gain(struct buf *b, const struct tuck_report *t, bool part)
{
    const tuck_gain *g = &t->gain;
    bool unsized = t->buffers_unknown > 0 || t->ops_unknown > 0;

    put_times(b, t);
    if (unsized)
        ink_line(b, INK_LIMIT, "    without what is of unknown size");
    put_bound(b, t);
    if (t->optimal)
        wrap_hang(
            b, INK_LIMIT, 0,
            "optimal: of all orders and all plain buckets of these ops within the memory, none "
            "is faster");
    put_rival(b, t);
    if (t->has_sequence)
        ink_line(b, INK_DIM, "sequence of communication: %016llx", (unsigned long long)t->sequence);
    cost_assumed_table(b, t->assumed.at, t->assumed.len, t->unbacked);
    put_contended(b, &t->contended);
    if (t->stopped)
        ink_line(b, INK_LIMIT, "stopped after %u tries: --tries %u gives the same", t->tries,
                 t->tries);
    if (t->contention != NULL)
        wrap_hang(b, INK_DIM, 2, "contention: %s", t->contention);
    if (t->remark != NULL && !part)
        wrap_hang(b, INK_LIMIT, 0, "%s", t->remark);
    if (g->over_limit)
        ink_line(b, INK_BAD, "nothing that was tried fits into %.2f MiB: nothing is written",
                 mib_of(g->memory_limit));
    else if (t->chosen)
        return;
    else if (!g->changed && !unsized)
        wrap_hang(
            b, INK_PLAIN, 0,
            "nothing that was tried is faster without needing more memory: the graph is unchanged");
    else if (!g->changed)
        buf_str(b, "nothing that was tried is faster: the graph is unchanged\n");
}

/* Options that are too long for the line go below. */
static void put_options(struct buf *b, const struct pass_report *p)
{
    if (*p->options && strlen(p->name) + strlen(p->options) + 3 <= LAYOUT_COLUMNS)
        buf_printf(b, "(%s)", p->options);
}

static void put_pass(struct buf *b, const struct pass_report *p, bool times)
{
    size_t from = wrap_begin(b);

    ink_str(b, INK_HEAD, p->name);
    put_options(b, p);
    buf_str(b, ": ");
    if (p->failed)
        ink_str(b, INK_ERROR, "failed");
    else if (p->changed)
        buf_printf(b, "%u → %u nodes", p->before, p->after);
    else
        ink_str(b, INK_DIM, "nothing changed");
    for (uint32_t k = 0; k < p->count.len; k++)
        buf_printf(b, ", %lld %s", (long long)p->count.at[k].n, p->count.at[k].what);
    if (times)
        ink_printf(b, INK_DIM, ", %.2f ms", p->ms);
    wrap_end(b, from, 4);
    buf_chr(b, '\n');
    if (*p->options && strlen(p->name) + strlen(p->options) + 3 > LAYOUT_COLUMNS)
        wrap_list(b, INK_PLAIN, 4, p->options);
    if (p->scheduled) {
        buf_printf(b, "    exposed %.3f → ", (double)p->exposed_before / 1e9);
        ink_printf(b, ink_change((double)(p->exposed_after - p->exposed_before)), "%.3f ms",
                   (double)p->exposed_after / 1e9);
        buf_printf(b, ", peak %.1f → %.1f MiB\n", (double)p->peak_before / 1048576,
                   (double)p->peak_after / 1048576);
    }
    if (p->judged)
        buf_printf(b, "    then a step takes %.3f ms and %.1f MiB\n", (double)p->step_ps / 1e9,
                   (double)p->step_peak / 1048576);
}

static void put_work(struct buf *b, const struct tuck_report *t, bool times)
{
    const struct report_work *w = &t->work;

    if (times && t->rival.ran)
        wrap_line(b, INK_DIM, 0, "stats: PyTorch's own took %.2f ms of CPU time", t->rival.ms);
    wrap_line(b, INK_DIM, 0,
              "stats: graphs %u, lowered %u, problems %u, simulated %u, reused %u, orders %u",
              w->graphs, w->lowered, w->problems, w->simulated, w->reused, w->orders);
}

void report_table(const struct tuck_report *t, const struct report_form *how, struct buf *b)
{
    if (t->judged) {
        if (assumes_alike(t))
            wrap_hang(b, INK_LIMIT, 0, "%s", crosses(t) ? report_moved : report_merged);
        put_gain(b, t, how->part);
        if (t->pass.len > 0)
            buf_chr(b, '\n');
    } else {
        cost_assumed_table(b, t->assumed.at, t->assumed.len, t->unbacked);
    }
    for (uint32_t i = 0; i < t->pass.len; i++) {
        const struct pass_report *p = &t->pass.at[i];
        put_pass(b, p, how->times);
        if (how->brief)
            continue;
        if (p->note != NULL)
            wrap_hang(b, INK_DIM, 2, "%s", p->note);
        put_buckets(b, p);
        put_left(b, p);
        put_moves(b, p);
    }
    if (crosses(t) && !t->judged)
        wrap_line(b, INK_DIM, 0, "%s", report_crossed);
    if (how->work)
        put_work(b, t, how->times);
}

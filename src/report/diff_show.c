/* Differences of two graphs as JSON and as tables. */
#include "base/layout.h"
#include "base/json.h"
#include "rewrite/comm_order.h"
#include "study/diff.h"
#include "cost/assumed.h"

static const char *name(const struct diff_side *s, uint32_t n)
{
    return graph_str(s->g, node_at(s->g, n)->name);
}

static bool talks(const struct diff_side *s, uint32_t n)
{
    return comm_communicates(s->g, n) || comm_is_wait(s->g, n);
}

/* ---- JSON ---- */

static void side_json(struct json_out *j, const char *key, const struct evaluation *e)
{
    json_open(j, key, '{');
    json_float(j, "step_ns", ns_of_ps(e->time.makespan));
    json_float(j, "compute_ns", ns_of_ps(e->time.compute));
    json_float(j, "comm_ns", ns_of_ps(e->time.comm));
    json_float(j, "exposed_ns", ns_of_ps(e->time.exposed));
    json_int(j, "peak_bytes", e->peak);
    cost_assumed_json(j, e->assumed, e->n_assumed, e->program->used_default);
    json_int(j, "ops_unknown", e->gaps.n_unknown);
    if (evaluation_is_bounded(e))
        json_float(j, "bound_ns", ns_of_ps(e->any.ps));
    json_close(j, '}');
}

static void names_json(struct json_out *j, const char *key, const struct diff_side *s)
{
    json_open(j, key, '[');
    for (uint32_t i = 0; i < s->n; i++)
        if (s->match[s->node[i]] == 0 && s->became[s->node[i]] == 0)
            json_str(j, NULL, name(s, s->node[i]));
    json_close(j, ']');
}

void diff_json(const struct diff *d, struct buf *out)
{
    struct json_out j;
    uint32_t same = 0;

    for (uint32_t i = 0; i < d->b.n; i++)
        same += d->b.match[d->b.node[i]] != 0;
    json_begin(&j, out);
    json_open(&j, NULL, '{');
    json_schema(&j, 1);
    side_json(&j, "before", d->a.e);
    side_json(&j, "after", d->b.e);
    json_int(&j, "same", same);
    json_open(&j, "merged", '[');
    for (uint32_t i = 0; i < d->a.n; i++)
        if (d->a.became[d->a.node[i]] != 0) {
            json_open(&j, NULL, '{');
            json_str(&j, "node", name(&d->a, d->a.node[i]));
            json_str(&j, "into", name(&d->b, d->a.became[d->a.node[i]]));
            json_close(&j, '}');
        }
    json_close(&j, ']');
    names_json(&j, "vanished", &d->a);
    names_json(&j, "appeared", &d->b);
    json_open(&j, "moved", '[');
    for (uint32_t i = 0; i < d->n_move; i++) {
        json_open(&j, NULL, '{');
        json_str(&j, "node", name(&d->b, d->move[i].node));
        json_int(&j, "from", d->move[i].from);
        json_int(&j, "to", d->move[i].to);
        json_int(&j, "places", d->move[i].places);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}

/* ---- tables ---- */

static void row(struct buf *b, const char *what, double before, double after, bool share)
{
    buf_printf(b, "  %-20s %12.3f %12.3f", what, before, after);
    if (share && before > 0)
        ink_printf(b, ink_change(after - before), " %+9.1f %%", 100 * (after / before - 1));
    buf_chr(b, '\n');
}

static uint32_t collectives(const struct diff_side *s)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n; i++)
        n += comm_communicates(s->g, s->node[i]);
    return n;
}

static void put_heading(struct buf *b, const char *what)
{
    buf_str(b, "\n  ");
    ink_str(b, INK_HEAD, what);
    buf_chr(b, '\n');
}

/* How many there are besides those that are listed. */
static void put_rest(struct buf *b, uint32_t shown, uint32_t more, const char *what,
                     uint32_t others)
{
    if (more > 0 && shown > 0)
        ink_line(b, INK_DIM, "    … and %u more%s", more, what);
    else if (more > 0)
        ink_line(b, INK_DIM, "    %u%s", more, what);
    if (others > 0)
        ink_line(b, INK_DIM, "    %u other node%s", others, others == 1 ? "" : "s");
}

/* New collectives, each with those that were merged into it. */
static void put_merged(const struct diff *d, uint32_t most, struct buf *b)
{
    uint32_t shown = 0, more = 0;

    for (uint32_t i = 0; i < d->b.n; i++) {
        uint32_t to = d->b.node[i], named = 0;
        if (d->first_part[to] == 0)
            continue;
        if (shown + more == 0)
            put_heading(b, "merged");
        if (shown >= most) {
            more++;
            continue;
        }
        shown++;
        size_t from = wrap_begin(b);
        buf_str(b, "    ");
        for (uint32_t k = d->first_part[to]; k != 0; k = d->next_part[k], named++)
            if (named < 4)
                buf_printf(b, "%s%s", named ? ", " : "", name(&d->a, k));
        if (named > 4)
            buf_printf(b, " and %u more", named - 4);
        buf_printf(b, " → %s", name(&d->b, to));
        wrap_end(b, from, 8);
        buf_chr(b, '\n');
    }
    put_rest(b, shown, more, shown > 0 ? "" : more == 1 ? " bucket" : " buckets", 0);
}

/* Collectives and waits by name, the others as a number. */
static void put_names(const struct diff_side *s, const char *what, uint32_t most, struct buf *b)
{
    uint32_t shown = 0, more = 0, others = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t k = s->node[i];
        if (s->match[k] != 0 || s->became[k] != 0)
            continue;
        if (shown + more + others == 0)
            put_heading(b, what);
        if (!talks(s, k))
            others++;
        else if (shown < most)
            shown++, wrap_line(b, INK_PLAIN, 4, "%s", name(s, k));
        else
            more++;
    }
    put_rest(b, shown, more, " collectives and waits", others);
}

static size_t longest_moved(const struct diff *d, uint32_t most)
{
    size_t longest = 0;

    for (uint32_t i = 0, shown = 0; i < d->n_move && shown < most; i++)
        if (talks(&d->b, d->move[i].node))
            shown++, longest = name_longer(longest, name(&d->b, d->move[i].node));
    return longest;
}

static void put_move(struct buf *b, const char *node, int wide, int64_t by)
{
    int64_t places = by < 0 ? -by : by;

    buf_str(b, "    ");
    put_name(b, node, wide);
    buf_printf(b, " %lld place%s %s\n", (long long)places, places == 1 ? "" : "s",
               by > 0 ? "later" : "earlier");
}

static void put_moves(const struct diff *d, uint32_t most, struct buf *b)
{
    uint32_t shown = 0, more = 0, others = 0;

    if (d->n_move > 0)
        put_heading(b, "moved");
    int wide = name_column(b, longest_moved(d, most), 28, 30);
    for (uint32_t i = 0; i < d->n_move; i++) {
        const struct diff_move *m = &d->move[i];
        if (!talks(&d->b, m->node))
            others++;
        else if (shown >= most)
            more++;
        else
            shown++, put_move(b, name(&d->b, m->node), wide, m->places);
    }
    put_rest(b, shown, more, " collectives and waits", others);
}

void diff_table(const struct diff *d, uint32_t most, struct buf *b)
{
    const struct evaluation *x = d->a.e, *y = d->b.e;
    uint32_t same = 0;

    for (uint32_t i = 0; i < d->b.n; i++)
        same += d->b.match[d->b.node[i]] != 0;
    cost_assumed_table(b, NULL, 0, x->program->used_default || y->program->used_default);
    ink_line(b, INK_HEAD, "  %-20s %12s %12s", "", "before", "after");
    row(b, "step ms", (double)x->time.makespan / 1e9, (double)y->time.makespan / 1e9, true);
    row(b, "compute ms", (double)x->time.compute / 1e9, (double)y->time.compute / 1e9, true);
    row(b, "communication ms", (double)x->time.comm / 1e9, (double)y->time.comm / 1e9, true);
    row(b, "exposed ms", (double)x->time.exposed / 1e9, (double)y->time.exposed / 1e9, true);
    row(b, "peak memory MiB", (double)x->peak / 1048576, (double)y->peak / 1048576, true);
    if (x->gaps.n_buf + y->gaps.n_buf > 0)
        wrap_line(b, INK_LIMIT, LAYOUT_SAY, "at least: buffers of unknown size are left out");
    if (evaluation_is_bounded(x) && evaluation_is_bounded(y))
        row(b, "bound ms", (double)x->any.ps / 1e9, (double)y->any.ps / 1e9, false);
    buf_printf(b, "  %-20s %12u %12u\n", "collectives", collectives(&d->a), collectives(&d->b));
    buf_printf(b, "  %-20s %12u %12u\n", "nodes", d->a.n, d->b.n);
    wrap_line(b, INK_DIM, LAYOUT_SAY, "%u in both, %u of them moved", same, d->n_move);
    put_merged(d, most, b);
    put_names(&d->a, "vanished", most, b);
    put_names(&d->b, "appeared", most, b);
    put_moves(d, most, b);
}

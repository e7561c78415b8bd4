/* Explanations as tables and as JSON. */
#include "base/layout.h"
#include "base/json.h"
#include "study/explain.h"
#include "report/origin_show.h"

static const char *op_name(const struct program *p, uint32_t op)
{
    return op == PROGRAM_NONE ? "" : program_str(p, p->op[op].name);
}

static double us(int64_t ps)
{
    return (double)ps / PS_PER_US;
}

static double ms(int64_t ps)
{
    return (double)ps / 1e9;
}

static void put_limit(struct buf *b, const struct program *p, const struct explained *r)
{
    const char *op = op_name(p, r->limit_op);
    enum ink k = r->limit == EXPLAIN_HIDDEN        ? INK_GOOD
                 : r->limit == EXPLAIN_ORDER_HELPS ? INK_PLAIN
                                                   : INK_LIMIT;

    ink_begin(b, k);
    switch (r->limit) {
    case EXPLAIN_HIDDEN: buf_str(b, "hidden"); break;
    case EXPLAIN_ORDER_HELPS:
        buf_printf(b, "its position: another order hides %sit", r->in_part ? "part of " : "");
        break;
    case EXPLAIN_DEPENDENCY: buf_printf(b, "dependency: it needs %s right before it", op); break;
    case EXPLAIN_MEMORY:
        buf_printf(b, "memory: before %s it would take %.1f %s more", op,
                   (double)r->more / (r->more < 1048576 ? 1024 : 1048576),
                   r->more < 1048576 ? "KiB" : "MiB");
        break;
    case EXPLAIN_ORDER: buf_printf(b, "order: it must stay after %s", op); break;
    case EXPLAIN_CHANNEL:
        buf_printf(b, "channel busy: it waits %.1f us for its turn", (double)r->queued / 1e6);
        break;
    case EXPLAIN_HOLDS_UP: buf_printf(b, "in the way: %s waits for it to finish", op); break;
    default: buf_str(b, "no compute left to hide it"); break;
    }
    ink_end(b, k);
}

static void put_rows(const struct explanation *x, uint32_t most, struct buf *b)
{
    const struct program *p = x->e->program;

    if (x->n == 0)
        return;
    size_t longest = 0;
    for (uint32_t i = 0; i < x->n && i < most; i++)
        longest = name_longer(longest, op_name(p, x->row[i].op));
    int wide = name_column(b, longest, 18, 52);
    buf_chr(b, '\n');
    ink_line(b, INK_HEAD, "  collectives, most exposed first, and what limits each");
    ink_line(b, INK_HEAD, "  %-*s %-14s %8s %9s %9s %5s", wide, "node", "kind", "MiB", "us",
             "exposed", "under");
    for (uint32_t i = 0; i < x->n && i < most; i++) {
        const struct explained *r = &x->row[i];
        const struct program_op *op = &p->op[r->op];

        buf_str(b, "  ");
        put_name(b, program_str(p, op->name), wide);
        buf_printf(b, " %-14s %8.2f %9.1f", tuck_coll_name((tuck_coll)op->coll),
                   (double)op->message / 1048576, (double)r->ps / 1e6);
        ink_printf(b, ink_exposed((double)r->exposed), " %9.1f", (double)r->exposed / 1e6);
        buf_printf(b, " %5u\n", r->n_under);
        size_t from = wrap_begin(b);
        buf_fill(b, ' ', LAYOUT_SAY);
        put_limit(b, p, r);
        wrap_end(b, from, LAYOUT_SAY);
        buf_chr(b, '\n');
        origin_say(b, p, op);
    }
    if (x->n > most)
        ink_line(b, INK_DIM, "  … and %u more", x->n - most);
}

/* Is there a remedy that hides this one? */
static bool hides(const struct explanation *x, const struct explained *r)
{
    for (uint32_t i = 0; i < x->n_remedy; i++)
        if (x->remedy[i].own >= 0 && x->remedy[i].own * 100 <= r->ps)
            return true;
    return false;
}

static void put_command(const struct explanation *x, const struct remedy *r, struct buf *b)
{
    buf_printf(b, "tuck optimize %s%s%s", x->subject ? x->subject : "FILE", *r->options ? " " : "",
               r->options);
}

/* The command that applies it, or why there is none. */
static void put_way(const struct explanation *x, const struct remedy *r, struct buf *b)
{
    if (r->no_command != NULL) {
        wrap_line(b, INK_DIM, LAYOUT_SAY, "%s", r->no_command);
        return;
    }
    size_t from = wrap_begin(b);
    put_command(x, r, b);
    wrap_command(b, from, INK_DIM, LAYOUT_SAY);
}

/* one: the collective they are for; NULL: the step. */
static void put_remedies(const struct explanation *x, const struct explained *one, struct buf *b)
{
    if (x->n_remedy == 0)
        return;
    buf_chr(b, '\n');
    ink_line(b, INK_HEAD, "  what would help, simulated");
    for (uint32_t i = 0; i < x->n_remedy; i++) {
        const struct remedy *r = &x->remedy[i];
        double gain = ms(r->ps) - ms(x->e->time.makespan);

        size_t from = wrap_begin(b);
        ink_printf(b, ink_change(gain), "  %+9.3f ms", gain);
        buf_printf(b, "  %s", r->what);
        if (r->own >= 0)
            buf_printf(b, ", %.1f us of it exposed", (double)r->own / 1e6);
        if (r->hidden > 0)
            buf_printf(b, ", hides %u more", r->hidden);
        if (r->peak != x->e->peak &&
            (r->kind != REMEDY_MEMORY || (int64_t)r->parameter != r->peak - x->e->peak))
            ink_printf(b, INK_LIMIT, ", %+.1f MiB", (double)(r->peak - x->e->peak) / 1048576);
        wrap_end(b, from, 16);
        buf_chr(b, '\n');
        put_way(x, r, b);
    }
    if (one != NULL && !hides(x, one))
        wrap_line(b, INK_DIM, 2, "none of it hides the collective, nor do links %d times as fast",
                  EXPLAIN_LINKS_MOST);
}

void explain_table(const struct explanation *x, uint32_t most, struct buf *b)
{
    evaluation_table(x->e, 0, false, b);
    put_rows(x, most, b);
    put_remedies(x, NULL, b);
    if (x->crosses)
        wrap_line(b, INK_DIM, 0, "%s", report_crossed);
}

static const char *before_name(const struct program *p, uint32_t op)
{
    return op < p->n_op ? op_name(p, op) : "the end";
}

static void place_json(struct json_out *j, const struct program *p, const char *key,
                       const struct place *o)
{
    json_open(j, key, '{');
    json_str(j, "before", before_name(p, o->before));
    json_float(j, "step_ns", ns_of_ps(o->step_ps));
    json_int(j, "peak_bytes", o->peak);
    json_close(j, '}');
}

static void places_json(struct json_out *j, const struct explanation *x)
{
    const struct places *o = &x->place;

    if (!o->known)
        return;
    json_open(j, "place", '{');
    json_str(j, "before", before_name(x->e->program, o->here.before));
    json_int(j, "same", o->same);
    if (o->others)
        place_json(j, x->e->program, "next", &o->next);
    place_json(j, x->e->program, "early", &o->early);
    place_json(j, x->e->program, "late", &o->late);
    json_close(j, '}');
}

static void bucket_time_json(struct json_out *j, const char *key, const struct bucket_time *t)
{
    json_open(j, key, '{');
    json_float(j, "step_ns", ns_of_ps(t->ps));
    json_int(j, "peak_bytes", t->peak);
    json_bool(j, "fits", t->fits);
    json_close(j, '}');
}

static void bucket_json(struct json_out *j, const struct bucket_why *w)
{
    if (w->n == 0)
        return;
    json_open(j, "bucket", '{');
    json_int(j, "members", w->n);
    bucket_time_json(j, "whole", &w->whole);
    bucket_time_json(j, "apart", &w->apart);
    if (w->n > 2)
        bucket_time_json(j, "without", &w->without);
    json_close(j, '}');
}

void explain_json(const struct explanation *x, const char *node, struct buf *out)
{
    uint32_t only = node != NULL ? explain_op(x, node) : PROGRAM_NONE;
    const struct program *p = x->e->program;
    struct json_out j;

    json_begin(&j, out);
    json_open(&j, NULL, '{');
    json_schema(&j, 1);
    json_float(&j, "step_ns", ns_of_ps(x->e->time.makespan));
    json_float(&j, "exposed_ns", ns_of_ps(x->e->time.exposed));
    cost_assumed_json(&j, x->e->assumed, x->e->n_assumed, p->used_default);
    json_int(&j, "ops_unknown", x->e->gaps.n_unknown);
    json_int(&j, "buffers_unknown", x->e->gaps.n_buf);
    if (evaluation_is_bounded(x->e)) {
        json_float(&j, "bound_ns", ns_of_ps(x->e->any.ps));
        json_float(&j, "bound_order_ns", ns_of_ps(x->e->order.ps));
        json_str(&j, "bound_by", bound_name(x->e->any.kind));
    }
    json_int(&j, "peak_bytes", x->e->peak);
    if (x->crosses)
        json_bool(&j, "assumes_same_graph_on_all_ranks", true);
    json_open(&j, "collectives", '[');
    for (uint32_t i = 0; i < x->n; i++) {
        const struct explained *r = &x->row[i];

        if (node != NULL && r->op != only && r->wait != only)
            continue;
        json_open(&j, NULL, '{');
        json_str(&j, "node", op_name(p, r->op));
        json_str(&j, "wait", op_name(p, r->wait));
        json_int(&j, "bytes", p->op[r->op].message);
        json_float(&j, "ns", ns_of_ps(r->ps));
        json_float(&j, "exposed_ns", ns_of_ps(r->exposed));
        json_float(&j, "queued_ns", ns_of_ps(r->queued));
        json_int(&j, "ops_under", r->n_under);
        json_str(&j, "limit", explain_limit_name(r->limit));
        json_str(&j, "limit_op", op_name(p, r->limit_op));
        origin_json(&j, p, &p->op[r->op]);
        if (node != NULL) {
            places_json(&j, x);
            bucket_json(&j, &x->bucket);
        }
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_open(&j, "remedies", '[');
    for (uint32_t i = 0; i < x->n_remedy; i++) {
        static const char *const kind[] = {"optimize", "memory", "buckets",
                                           "group",    "links",  "order"};
        json_open(&j, NULL, '{');
        json_str(&j, "kind", kind[x->remedy[i].kind]);
        json_str(&j, "what", x->remedy[i].what);
        if (x->remedy[i].kind == REMEDY_MEMORY || x->remedy[i].kind == REMEDY_BUCKETS)
            json_int(&j, "bytes", (int64_t)x->remedy[i].parameter);
        if (x->remedy[i].kind == REMEDY_LINKS)
            json_float(&j, "factor", x->remedy[i].parameter);
        if (x->remedy[i].no_command == NULL) {
            struct buf text;
            buf_init(&text, out->mem);
            put_command(x, &x->remedy[i], &text);
            json_str(&j, "command", buf_text(&text));
            buf_destroy(&text);
        }
        json_float(&j, "step_ns", ns_of_ps(x->remedy[i].ps));
        json_int(&j, "peak_bytes", x->remedy[i].peak);
        json_int(&j, "hides", x->remedy[i].hidden);
        if (x->remedy[i].own >= 0)
            json_float(&j, "own_exposed_ns", ns_of_ps(x->remedy[i].own));
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}

/* ---- one node ---- */

static void put_cost(const struct explanation *x, const struct machine *m, uint32_t op,
                     struct buf *b)
{
    const struct program *p = x->e->program;
    const struct program_op *c = &p->op[op];
    tuck_coll coll = coll_modelled(c->coll);
    tuck_collective_cost cost;

    if (coll == 0 || c->group == PROGRAM_NONE || c->message < 0)
        return;
    struct cost_shape shape = shape_of_group(m->cluster, program_str(p, p->group[c->group].name),
                                             p->group[c->group].size, NULL);
    cost_collective(m->cluster, shape, coll, c->message, &m->cost.collective, &cost);
    size_t from = wrap_begin(b);
    buf_printf(b, "  cost        %.1f us = %.1f us for any size + %.1f us for %.2f MiB (%s, %s)",
               us(cost.ps), us(cost.latency_ps), us(cost.ramp_ps + cost.bytes_ps),
               (double)c->message / 1048576, tuck_algorithm_name(cost.algorithm), cost.source);
    wrap_end(b, from, 14);
    buf_chr(b, '\n');
    for (uint32_t i = 0; i < cost.n_alternatives; i++)
        buf_printf(b, "              %s%s: %.1f us\n",
                   tuck_algorithm_name(cost.alternative[i].algorithm),
                   cost.alternative[i].symmetric ? " over symmetric memory" : "",
                   us(cost.alternative[i].ps));
}

static void put_other(struct buf *b, const struct explanation *x, const char *what,
                      const struct place *o)
{
    const struct place *here = &x->place.here;

    if (o->before == here->before)
        return;
    wrap_fact(b, 11, "", "%s, before %s: %+.3f ms, %+.2f MiB", what,
              before_name(x->e->program, o->before), ms(o->step_ps - here->step_ps),
              (double)(o->peak - here->peak) / 1048576);
}

/* Why it is issued where it is. */
static void put_places(struct buf *b, const struct explanation *x)
{
    const struct places *o = &x->place;

    if (!o->known)
        return;
    wrap_fact(b, 11, "place", "before %s; %u place%s give%s this step at no more memory",
              before_name(x->e->program, o->here.before), o->same, o->same == 1 ? "" : "s",
              o->same == 1 ? "s" : "");
    if (o->others)
        put_other(b, x, "best other place", &o->next);
    put_other(b, x, "as early as it can", &o->early);
    put_other(b, x, "as late as it can", &o->late);
}

static void put_bucket_time(struct buf *b, const struct bucket_why *w, const char *what,
                            const struct bucket_time *t)
{
    wrap_fact(b, 11, "", "%s %+.3f ms, %+.2f MiB%s", what, ms(t->ps - w->whole.ps),
              (double)(t->peak - w->whole.peak) / 1048576,
              t->fits ? "" : ", more than the memory allows");
}

/* Why it is in its bucket. */
static void put_bucket(struct buf *b, const struct bucket_why *w)
{
    if (w->n == 0)
        return;
    wrap_fact(b, 11, "bucket", "one of %u; all buckets put in order anew: %.3f ms, %.2f MiB", w->n,
              ms(w->whole.ps), (double)w->whole.peak / 1048576);
    put_bucket_time(b, w, w->n > 2 ? "all of it apart:" : "both apart:", &w->apart);
    if (w->n > 2)
        put_bucket_time(b, w, "only this one apart:", &w->without);
}

void explain_node(const struct explanation *x, const struct machine *m, const char *node,
                  struct buf *b)
{
    const struct program *p = x->e->program;
    uint32_t op = explain_op(x, node);

    if (op == PROGRAM_NONE)
        return;
    const struct sim_span *s = &x->e->span[op];
    const struct explained *one = NULL;
    wrap_hang(b, INK_PLAIN, 0, "%s: %s, %s", program_str(p, p->op[op].name),
              program_kind_name[p->op[op].kind], program_str(p, p->op[op].kernel));
    buf_printf(b, "  runs        %.3f … %.3f ms of %.3f ms\n", ms(s->start), ms(s->end),
               ms(x->e->time.makespan));
    for (uint32_t i = 0; i < x->n; i++) {
        const struct explained *r = &x->row[i];
        if (r->op != op && r->wait != op)
            continue;
        one = one ? one : r;
        if (r->wait == op)
            wrap_fact(b, 11, "ends", "%s", op_name(p, r->op));
        put_cost(x, m, r->op, b);
        wrap_fact(b, 11, "exposed", "%.1f of %.1f us; %u compute ops run under it, until %s",
                  (double)r->exposed / 1e6, (double)r->ps / 1e6, r->n_under,
                  r->wait == PROGRAM_NONE ? "the end" : op_name(p, r->wait));
        size_t from = wrap_begin(b);
        buf_str(b, "  limit       ");
        put_limit(b, p, r);
        wrap_end(b, from, 14);
        buf_chr(b, '\n');
        put_places(b, x);
        put_bucket(b, &x->bucket);
    }
    size_t from = wrap_begin(b);
    buf_str(b, "  needs      ");
    for (uint32_t i = p->dep_at[op]; i < p->dep_at[op + 1]; i++)
        buf_printf(b, " %s%s", op_name(p, p->dep[i].op),
                   p->dep[i].flags & PROGRAM_FAKE   ? " (order)"
                   : p->dep[i].flags & PROGRAM_WEAK ? " (overwrites what it read)"
                                                    : "");
    wrap_end(b, from, 14);
    buf_chr(b, '\n');
    put_remedies(x, one, b);
}

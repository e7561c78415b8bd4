/* Prints several ranks as JSON and as tables, and what kept them from finishing. */
#include <stdio.h>

#include "base/layout.h"
#include "base/json.h"
#include "study/several_ranks.h"

static double ms(int64_t ps)
{
    return (double)ps / 1e9;
}

static const struct evaluation *of(const struct ranks *x, uint32_t r)
{
    return x->graph[x->of[r]].e;
}

static const char *op_name(const struct ranks *x, uint32_t r, uint32_t op)
{
    return program_str(of(x, r)->program, of(x, r)->program->op[op].name);
}

static const char *group_name(const struct ranks *x, uint32_t r, uint32_t op)
{
    const struct program *p = of(x, r)->program;

    return p->op[op].group == PROGRAM_NONE ? "" : program_str(p, p->group[p->op[op].group].name);
}

static int64_t bound(const struct ranks *x)
{
    int64_t most = 0;

    for (uint32_t i = 0; i < x->n_graph; i++)
        if (x->graph[i].e->any.ps > most)
            most = x->graph[i].e->any.ps;
    return most;
}

/* ---- JSON ---- */

static void one_side(const struct ranks *x, struct json_out *j, uint32_t r, uint32_t op)
{
    const struct sim_call *c = &x->job.rank[r].call[op];

    json_open(j, NULL, '{');
    json_int(j, "rank", x->number[r]);
    json_str(j, "node", op_name(x, r, op));
    json_str(j, "coll", tuck_coll_name((tuck_coll)c->coll));
    json_int(j, "bytes", c->bytes);
    json_str(j, "dtype", c->dtype);
    json_str(j, "reduce_op", c->reduce_op);
    json_close(j, '}');
}

static void fault_json(const struct ranks *x, struct json_out *j)
{
    const struct sim_fault *f = &x->fault;

    json_open(j, "fault", '{');
    json_str(j, "kind",
             f->kind == SIM_MISMATCH   ? "mismatch"
             : f->kind == SIM_DEADLOCK ? "deadlock"
                                       : "peer");
    if (f->kind == SIM_PEER) {
        json_int(j, "rank", x->number[f->rank[0]]);
        json_str(j, "node", op_name(x, f->rank[0], f->op[0]));
        json_str(j, "group", group_name(x, f->rank[0], f->op[0]));
        json_str(j, "names", f->what);
        json_int(j, "peer", f->peer);
    } else if (f->kind == SIM_MISMATCH) {
        json_str(j, "differs", f->what);
        json_open(j, "sides", '[');
        one_side(x, j, f->rank[0], f->op[0]);
        one_side(x, j, f->rank[1], f->op[1]);
        json_close(j, ']');
    } else {
        json_open(j, "stuck", '[');
        for (uint32_t i = 0; i < f->n_stuck; i++) {
            const struct sim_stuck *s = &f->stuck[i];
            json_open(j, NULL, '{');
            json_int(j, "rank", x->number[s->rank]);
            json_str(j, "node", op_name(x, s->rank, s->op));
            json_float(j, "since_ns", ns_of_ps(s->ps));
            if (s->held != PROBLEM_NONE)
                json_str(j, "stands_at", op_name(x, s->rank, s->held));
            if (s->absent != PROBLEM_NONE)
                json_int(j, "missing_rank", x->number[s->absent]);
            if (s->absent_held != PROBLEM_NONE)
                json_str(j, "missing_stands_at", op_name(x, s->absent, s->absent_held));
            if (s->part != PROBLEM_NONE) {
                const struct sim_part *part = &x->job.rank[s->rank].call[s->op].part[s->part];
                json_str(j, "does", part->send ? "send" : "receive");
                json_int(j, "peer_rank", x->number[part->peer]);
                json_int(j, "tag", part->tag);
            }
            json_close(j, '}');
        }
        json_close(j, ']');
    }
    json_close(j, '}');
}

static void timeline_json(const struct ranks *x, struct json_out *j, uint32_t r)
{
    const struct program *p = of(x, r)->program;

    json_open(j, "timeline", '[');
    for (uint32_t i = 0; i < p->n_op; i++) {
        const struct sim_span *s = &x->span[r][i];
        json_open(j, NULL, '{');
        json_str(j, "name", op_name(x, r, i));
        json_str(j, "kind", program_kind_name[p->op[i].kind]);
        json_str(j, "stream",
                 p->op[i].kind == PROGRAM_COLLECTIVE ? group_name(x, r, i) : "compute");
        json_float(j, "start_ns", ns_of_ps(s->start));
        json_float(j, "end_ns", ns_of_ps(s->end));
        json_close(j, '}');
    }
    json_close(j, ']');
}

void ranks_json(const struct ranks *x, bool timeline, struct buf *out)
{
    struct json_out j;

    json_begin(&j, out);
    json_open(&j, NULL, '{');
    json_schema(&j, 1);
    if (x->fault.kind != SIM_FINE) {
        fault_json(x, &j);
    } else {
        json_float(&j, "step_ns", ns_of_ps(x->makespan));
        json_float(&j, "bound_ns", ns_of_ps(bound(x)));
        json_open(&j, "ranks", '[');
        for (uint32_t r = 0; r < x->n_rank; r++) {
            const struct sim_rank_result *t = &x->result[r];
            json_open(&j, NULL, '{');
            json_int(&j, "rank", x->number[r]);
            json_str(&j, "graph", x->graph[x->of[r]].name);
            json_float(&j, "slower", x->factor[r]);
            json_float(&j, "step_ns", ns_of_ps(t->time.makespan));
            json_float(&j, "compute_ns", ns_of_ps(t->time.compute));
            json_float(&j, "comm_ns", ns_of_ps(t->time.comm));
            json_float(&j, "launch_ns", ns_of_ps(t->time.launch));
            json_float(&j, "exposed_ns", ns_of_ps(t->time.exposed));
            json_float(&j, "for_others_ns", ns_of_ps(t->others));
            json_float(&j, "slowed_ns", ns_of_ps(t->slowed));
            json_int(&j, "peak_bytes", of(x, r)->peak);
            if (timeline)
                timeline_json(x, &j, r);
            json_close(&j, '}');
        }
        json_close(&j, ']');
    }
    json_close(&j, '}');
    json_end(&j);
}

/* ---- tables ---- */

static void put_call(const struct ranks *x, uint32_t r, uint32_t op, struct buf *b)
{
    const struct sim_call *c = &x->job.rank[r].call[op];

    size_t from = wrap_begin(b);

    buf_printf(b, "  rank %-5lld %s: %s", (long long)x->number[r], op_name(x, r, op),
               tuck_coll_name((tuck_coll)c->coll));
    if (*c->reduce_op)
        buf_printf(b, " (%s)", c->reduce_op);
    if (c->bytes >= 0)
        buf_printf(b, ", %lld bytes", (long long)c->bytes);
    if (*c->dtype)
        buf_printf(b, ", %s", c->dtype);
    if (*group_name(x, r, op))
        buf_printf(b, ", group %s", group_name(x, r, op));
    wrap_end(b, from, 13);
    buf_chr(b, '\n');
}

/* The op of a peer in the other direction, perhaps with another tag; PROBLEM_NONE if none. */
static uint32_t other_side(const struct ranks *x, uint32_t rank, const struct sim_part *part,
                           const struct sim_part **found)
{
    const struct sim_rank *peer = &x->job.rank[part->peer];

    for (uint32_t op = 0; op < peer->p->n_op; op++)
        for (uint32_t i = 0; problem_is_coll(peer->p, op) && i < peer->call[op].n_part; i++) {
            *found = &peer->call[op].part[i];
            if ((*found)->peer == rank && (*found)->send != part->send &&
                (*found)->tag != part->tag)
                return op;
        }
    return PROBLEM_NONE;
}

/* A send without its receive, or the reverse. */
static void put_unmet(const struct ranks *x, const struct sim_stuck *s, struct buf *b)
{
    const struct sim_part *part = &x->job.rank[s->rank].call[s->op].part[s->part], *other;
    uint32_t op = other_side(x, s->rank, part, &other);
    long long peer = (long long)x->number[part->peer];

    buf_printf(b, "%s rank %lld with tag %lld, which has no %s left for it",
               part->send ? "sends to" : "receives from", peer, (long long)part->tag,
               part->send ? "receive" : "send");
    if (op != PROBLEM_NONE)
        buf_printf(b, " (its %s has tag %lld)", op_name(x, part->peer, op), (long long)other->tag);
}

static void put_stuck(const struct ranks *x, const struct sim_stuck *s, struct buf *b)
{
    size_t from = wrap_begin(b);

    buf_printf(b, "  rank %-5lld %s, from %.3f ms on, ", (long long)x->number[s->rank],
               op_name(x, s->rank, s->op), ms(s->ps));
    if (s->part != PROBLEM_NONE && s->absent == PROBLEM_NONE)
        put_unmet(x, s, b);
    else if (s->absent == PROBLEM_NONE)
        buf_printf(b, "has no counterpart on another rank");
    else if (s->absent_held == PROBLEM_NONE)
        buf_printf(b, "waits for rank %lld, which has done all its ops",
                   (long long)x->number[s->absent]);
    else
        buf_printf(b, "waits for rank %lld, which is at %s", (long long)x->number[s->absent],
                   op_name(x, s->absent, s->absent_held));
    if (s->held != PROBLEM_NONE && s->held != s->op)
        buf_printf(b, "; the rank itself is at %s", op_name(x, s->rank, s->held));
    wrap_end(b, from, 13);
    buf_chr(b, '\n');
}

static void put_fault(const struct ranks *x, struct buf *b)
{
    enum { MOST = 20 };
    const struct sim_fault *f = &x->fault;

    if (f->kind == SIM_PEER) {
        const struct program *p = of(x, f->rank[0])->program;
        size_t from = wrap_begin(b);
        ink_str(b, INK_ERROR, "peer:");
        buf_printf(b, " %s of rank %lld names member %u of group %s",
                   op_name(x, f->rank[0], f->op[0]), (long long)x->number[f->rank[0]], f->peer,
                   group_name(x, f->rank[0], f->op[0]));
        if (strcmp(f->what, "itself") == 0)
            buf_str(b, ", which is the rank itself");
        else
            buf_printf(b, ", which has %lld", (long long)p->group[p->op[f->op[0]].group].size);
        wrap_end(b, from, LAYOUT_SAY);
        buf_chr(b, '\n');
        return;
    }
    if (f->kind == SIM_MISMATCH) {
        ink_str(b, INK_ERROR, "mismatch:");
        buf_printf(b, " ranks disagree on the %s\n",
                   strcmp(f->what, "bytes") == 0 ? "message size" : f->what);
        put_call(x, f->rank[0], f->op[0], b);
        put_call(x, f->rank[1], f->op[1], b);
        return;
    }
    ink_str(b, INK_ERROR, "deadlock:");
    buf_str(b, " these calls never get all the ranks they need\n");
    for (uint32_t i = 0; i < f->n_stuck && i < MOST; i++)
        put_stuck(x, &f->stuck[i], b);
    if (f->n_stuck > MOST)
        ink_line(b, INK_DIM, "  … and %u more", f->n_stuck - MOST);
}

/* Do two consecutive ranks do the same at the same times? */
static bool alike(const struct ranks *x, uint32_t a, uint32_t b)
{
    return x->of[a] == x->of[b] && x->factor[a] == x->factor[b] &&
           x->number[a] + (int64_t)(b - a) == x->number[b] &&
           memcmp(&x->result[a], &x->result[b], sizeof(*x->result)) == 0;
}

void ranks_table(const struct ranks *x, bool timeline, struct buf *b)
{
    if (x->fault.kind != SIM_FINE) {
        put_fault(x, b);
        return;
    }
    int64_t least = bound(x);
    buf_printf(b, "  %-23s ", "step");
    ink_printf(b, INK_HEAD, "%10.3f ms", ms(x->makespan));
    buf_printf(b, ", of the slowest of %u ranks\n  %-23s ", x->n_rank, "bound");
    ink_printf(b, INK_LIMIT, "%10.3f ms", ms(least));
    buf_printf(b, ", %.1f %% under the step\n\n",
               x->makespan ? 100 - 100 * (double)least / (double)x->makespan : 0);
    ink_line(b, INK_HEAD, "  %-11s %7s %10s %10s %10s %10s %13s", "ranks", "slower", "step ms",
             "compute ms", "comm ms", "exposed ms", "for others ms");
    for (uint32_t r = 0, last; r < x->n_rank; r = last + 1) {
        const struct sim_rank_result *t = &x->result[r];
        char range[48];

        for (last = r; last + 1 < x->n_rank && alike(x, r, last + 1);)
            last++;
        if (last == r)
            snprintf(range, sizeof(range), "%lld", (long long)x->number[r]);
        else
            snprintf(range, sizeof(range), "%lld-%lld", (long long)x->number[r],
                     (long long)x->number[last]);
        buf_printf(b, "  %-11s ", range);
        ink_printf(b, x->factor[r] > 1 ? INK_LIMIT : INK_PLAIN, "%6.2fx", x->factor[r]);
        buf_printf(b, " %10.3f %10.3f %10.3f", ms(t->time.makespan), ms(t->time.compute),
                   ms(t->time.comm));
        ink_printf(b, ink_exposed((double)t->time.exposed), " %10.3f", ms(t->time.exposed));
        ink_line(b, t->others > 0 ? INK_LIMIT : INK_DIM, " %13.3f", ms(t->others));
        if (x->n_graph > 1 && *x->graph[x->of[r]].name != 0)
            wrap_line(b, INK_DIM, LAYOUT_SAY, "graph %s", x->graph[x->of[r]].name);
    }
    for (uint32_t r = 0, last; timeline && r < x->n_rank; r = last + 1) {
        for (last = r; last + 1 < x->n_rank && alike(x, r, last + 1);)
            last++;
        buf_printf(b, "\n  rank %lld%s\n", (long long)x->number[r],
                   last > r ? ", and the next ones that do the same" : "");
        evaluation_timeline(of(x, r), x->span[r], b);
    }
}

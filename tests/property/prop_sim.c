/* The simulators against slow ones that follow the rules literally, on random programs, to the
 * picosecond: S0 on random orders of one rank, none of them below its bound; several ranks with
 * sends and receives, missing and differing collectives; contention.
 *
 * TUCK_SEED=n repeats one program. TUCK_SOAK=1 makes ten times as many.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/bound.h"
#include "sim/rank_sim.h"
#include "support/support.h"

/* The stress build checks more, so it need not run as many. */
#ifdef TUCK_STRESS
enum { FEWER = 10 };
#else
enum { FEWER = 1 };
#endif

enum { RANKS = 4, GROUPS = 3, OPS = 64, KINDS = 3, CLASSES = 2, PARTS = 4 };

/* ---- random programs ---- */

struct maker {
    struct rng *rng;
    struct problem_builder b;
    uint32_t n_op;
    uint32_t flying[OPS], n_flying; /* buffers of collectives that have no wait yet */
    struct sim_call call[OPS];
    struct sim_part part[OPS][PARTS];
    uint8_t cls[OPS];
};

/* What all ranks do, before each one varies it. */
enum what { COMPUTE, COLLECTIVE, P2P, WAIT };

struct step {
    enum what what;
    uint32_t group, kind, rank, other;
    int64_t bytes, tag;
    uint32_t ns;
    bool sync;
};

struct world {
    struct rng rng;
    uint32_t n_rank, n_group, n_step;
    uint32_t member_at[GROUPS + 1], member[GROUPS * RANKS];
    struct step step[OPS];
    bool broken; /* some rank may skip a step, or do it differently */
    struct maker make[RANKS];
    struct problem *p[RANKS];
    int64_t ps[RANKS][OPS];
    uint32_t group[RANKS][GROUPS];
    struct sim_rank rank[RANKS];
    struct sim_job job;
    uint32_t slow[CLASSES * KINDS], slow_comm[KINDS];
};

static const char *const group_names[] = {"a", "b", "c"};
static const uint8_t colls[] = {TUCK_ALL_GATHER, TUCK_ALL_REDUCE, TUCK_REDUCE_SCATTER};

static bool is_member(const struct world *w, uint32_t group, uint32_t r)
{
    for (uint32_t i = w->member_at[group]; i < w->member_at[group + 1]; i++)
        if (w->member[i] == r)
            return true;
    return false;
}

static uint32_t new_op(struct maker *m, enum problem_kind kind, const char *group, double ns,
                       bool async)
{
    char name[16], out[16];
    struct problem_op op = {
        .name = name, .kind = kind, .runtime = ns, .is_async = async, .group = group, .bytes = 64};

    snprintf(name, sizeof(name), "op%u", m->n_op);
    snprintf(out, sizeof(out), "buf%u", m->n_op);
    problem_op(&m->b, &op);
    m->call[m->n_op] = (struct sim_call){.reduce_op = "", .dtype = "", .bytes = -1};
    m->cls[m->n_op] = (uint8_t)rng_below(m->rng, CLASSES);
    m->n_op++;
    return problem_makes(&m->b, out, 64, 64);
}

static void wait_some(struct maker *m, uint32_t most)
{
    if (m->n_flying == 0 || most == 0)
        return;
    new_op(m, PROBLEM_WAIT, NULL, 0, false);
    for (uint32_t n = 1 + rng_below(m->rng, most); n > 0 && m->n_flying > 0; n--) {
        uint32_t k = rng_below(m->rng, m->n_flying);
        problem_reads(&m->b, m->flying[k]);
        if (rng_below(m->rng, 8) != 0) /* otherwise it is waited for again */
            m->flying[k] = m->flying[--m->n_flying];
    }
}

static void add_collective(struct world *w, struct maker *m, uint32_t r, const struct step *s)
{
    uint32_t op = m->n_op;
    bool async = !s->sync;
    struct sim_call *c = &m->call[op];
    int64_t latency = rng_below(m->rng, 3) ? (int64_t)rng_below(m->rng, 6000) : 0;

    /* Without any groups: a single rank. */
    uint32_t made = new_op(m, PROBLEM_COLLECTIVE,
                           w->n_rank == 1 && s->tag == 0 ? NULL : group_names[s->group], s->ns,
                           async);
    *c = (struct sim_call){.coll = colls[s->kind],
                           .reduce_op = s->kind ? "sum" : "",
                           .dtype = "f32",
                           .bytes = s->bytes,
                           .latency = latency,
                           .kind = (uint8_t)s->kind,
                           .link = (uint8_t)(s->group == 2)};
    if (w->broken && rng_below(m->rng, 40) == 0)
        c->bytes += 8;
    if (s->what == P2P) {
        c->part = m->part[op];
        c->coll = TUCK_P2P;
        bool both = s->bytes % 2 != 0; /* a batch: each sends and receives */
        uint32_t peer = r == s->rank ? s->other : s->rank;
        m->part[op][c->n_part++] = (struct sim_part){peer, s->tag, r == s->rank};
        if (both)
            m->part[op][c->n_part++] = (struct sim_part){peer, s->tag, r != s->rank};
    }
    if (async)
        m->flying[m->n_flying++] = made;
}

struct make_args {
    struct world *w;
    uint32_t r;
};

static void do_make(void *arg)
{
    struct world *w = ((struct make_args *)arg)->w;
    uint32_t r = ((struct make_args *)arg)->r;
    struct maker *m = &w->make[r];

    for (uint32_t i = 0; i < w->n_step; i++) {
        const struct step *s = &w->step[i];
        bool mine = s->what == COMPUTE      ? rng_below(m->rng, 3) != 0
                    : s->what == COLLECTIVE ? is_member(w, s->group, r)
                    : s->what == P2P        ? s->rank == r || s->other == r
                                            : true;

        if (!mine || m->n_op >= OPS - 2 || (w->broken && rng_below(m->rng, 60) == 0))
            continue;
        if (s->what == COMPUTE)
            new_op(m, PROBLEM_COMPUTE, NULL, rng_below(m->rng, 30), false);
        else if (s->what == WAIT)
            wait_some(m, rng_below(m->rng, 3));
        else
            add_collective(w, m, r, s);
    }
    if (rng_below(m->rng, 2))
        wait_some(m, 64);
}

static void make_world(struct world *w, uint64_t seed, uint32_t n_rank, bool contention)
{
    memset(w, 0, sizeof(*w));
    w->rng.state = seed;
    w->n_rank = n_rank;
    w->n_group = GROUPS;
    w->broken = rng_below(&w->rng, 5) == 0;
    for (uint32_t g = 0; g < GROUPS; g++) {
        uint32_t n = w->member_at[g];
        for (uint32_t r = 0; r < n_rank; r++)
            if (g == 0 || rng_below(&w->rng, 3) != 0)
                w->member[n++] = r;
        if (n == w->member_at[g])
            w->member[n++] = rng_below(&w->rng, n_rank);
        w->member_at[g + 1] = n;
    }
    w->n_step = 1 + rng_below(&w->rng, 40);
    for (uint32_t i = 0; i < w->n_step; i++) {
        struct step *s = &w->step[i];
        uint32_t what = rng_below(&w->rng, 12);
        *s = (struct step){.what = what < 5                 ? COMPUTE
                                   : what < 8               ? COLLECTIVE
                                   : what < 9 && n_rank > 1 ? P2P
                                                            : WAIT,
                           .group = rng_below(&w->rng, GROUPS),
                           .kind = rng_below(&w->rng, KINDS),
                           .bytes = 64 + (int64_t)rng_below(&w->rng, 4),
                           .tag = rng_below(&w->rng, 2),
                           .ns = rng_below(&w->rng, 25),
                           .sync = rng_below(&w->rng, 6) == 0,
                           .rank = rng_below(&w->rng, n_rank)};
        s->other = n_rank > 1 ? (s->rank + 1 + rng_below(&w->rng, n_rank - 1)) % n_rank : 0;
    }
    w->job = (struct sim_job){.n_rank = n_rank,
                              .rank = w->rank,
                              .n_group = w->n_group,
                              .member_at = w->member_at,
                              .member = w->member,
                              .launch_ps = rng_below(&w->rng, 3) ? 0 : rng_below(&w->rng, 3000),
                              .contention = contention,
                              .n_kind = KINDS,
                              .slow = w->slow,
                              .slow_comm = w->slow_comm};
    for (uint32_t i = 0; i < CLASSES * KINDS; i++)
        w->slow[i] = rng_below(&w->rng, 2) ? SIM_SPEED : 1 + rng_below(&w->rng, SIM_SPEED);
    for (uint32_t i = 0; i < KINDS; i++)
        w->slow_comm[i] = rng_below(&w->rng, 2) ? SIM_SPEED : 1 + rng_below(&w->rng, SIM_SPEED);
    for (uint32_t r = 0; r < n_rank; r++) {
        struct maker *m = &w->make[r];
        struct make_args x = {w, r};

        m->rng = &w->rng;
        assert_true(problem_begin(&m->b, NULL, "test"));
        assert_true(mem_guard(&m->b.p->mem, do_make, &x));
        assert_int_equal(problem_finish(&m->b, NULL, &w->p[r]), TUCK_OK);
        for (uint32_t op = 0; op < w->p[r]->n_op; op++)
            w->ps[r][op] = w->p[r]->ps[op];
        for (uint32_t k = 0; k < w->p[r]->n_group; k++)
            w->group[r][k] = (uint32_t)(*str_text(&w->p[r]->str, w->p[r]->group_name[k]) - 'a');
        w->rank[r] = (struct sim_rank){
            .p = w->p[r], .ps = w->ps[r], .group = w->group[r], .call = m->call, .cls = m->cls};
    }
}

static void free_world(struct world *w)
{
    for (uint32_t r = 0; r < w->n_rank; r++)
        problem_free(w->p[r]);
}

/* ---- one rank, slowly ---- */

/* The stream stalls from `from` until c ends: every collective of its channel that runs in that
 * time is charged for as long as it runs. `of`: ops in order, n of them. */
static void slow_charge(const struct problem *p, const uint32_t *order, uint32_t n, uint32_t c,
                        int64_t from, struct sim_span *span)
{
    int64_t to = span[c].end;

    for (uint32_t k = 0; k < n; k++) {
        struct sim_span *x = &span[order[k]];
        if (!problem_is_coll(p, order[k]) || p->group[order[k]] != p->group[c])
            continue;
        int64_t a = x->start > from ? x->start : from, b = x->end < to ? x->end : to;
        if (b <= a)
            continue;
        x->exposed += b - a;
        if (order[k] != c)
            x->held = c;
    }
}

/* Keeps no state but the clock: what a channel is busy with is searched from the start. */
static void slow_s0(const struct problem *p, const uint32_t *order, int64_t launch,
                    struct sim_result *out, struct sim_span *span)
{
    int64_t clk = 0, last = 0;
    uint32_t last_op = PROBLEM_NONE;

    memset(out, 0, sizeof(*out));
    for (uint32_t i = 0; i < p->n_op; i++) {
        uint32_t op = order[i];
        int64_t d = p->ps[op], stood = 0;

        clk += launch;
        out->launch += launch;
        span[op] = (struct sim_span){.start = clk, .end = clk, .issued = clk, .held = PROBLEM_NONE};
        if (p->kind[op] == PROBLEM_COMPUTE) {
            clk += d;
            out->compute += d;
            span[op].end = clk;
        } else if (p->kind[op] == PROBLEM_COLLECTIVE) {
            for (uint32_t k = 0; k < i; k++)
                if (problem_is_coll(p, order[k]) && p->group[order[k]] == p->group[op] &&
                    span[order[k]].end > span[op].start)
                    span[op].start = span[order[k]].end;
            span[op].end = span[op].start + d;
            out->comm += d;
            if (!problem_is_async(p, op)) {
                stood = span[op].end - clk;
                span[op].stood = stood;
                slow_charge(p, order, i + 1, op, clk, span);
            }
        } else {
            uint32_t c = PROBLEM_NONE;
            for (uint32_t k = p->wait_at[op]; k < p->wait_at[op + 1]; k++)
                if (c == PROBLEM_NONE || span[p->wait[k]].end > span[c].end)
                    c = p->wait[k];
            if (c != PROBLEM_NONE && span[c].end > clk) {
                stood = span[c].end - clk;
                slow_charge(p, order, i, c, clk, span);
            }
            span[op].stood = stood;
            span[op].end = clk + stood;
        }
        out->exposed += stood;
        clk += stood;
    }
    for (uint32_t i = 0; i < p->n_op; i++)
        if (problem_is_coll(p, order[i]) && span[order[i]].end > last) {
            last = span[order[i]].end;
            last_op = order[i];
        }
    out->makespan = clk > last ? clk : last;
    out->tail = out->makespan - clk;
    out->exposed += out->tail;
    if (out->tail > 0)
        slow_charge(p, order, p->n_op, last_op, clk, span);
}

/* A random order in which every op comes after what it needs. */
static void random_order(struct rng *rng, const struct problem *p, uint32_t *order)
{
    bool used[OPS] = {false};

    for (uint32_t n = 0; n < p->n_op; n++) {
        uint32_t can[OPS], n_can = 0;
        for (uint32_t op = 0; op < p->n_op; op++) {
            bool ready = !used[op];
            for (uint32_t d = p->dep_at[op]; d < p->dep_at[op + 1]; d++)
                ready &= problem_dep_op(p, d) == PROBLEM_NONE || used[problem_dep_op(p, d)];
            if (ready)
                can[n_can++] = op;
        }
        order[n] = can[rng_below(rng, n_can)];
        used[order[n]] = true;
    }
}

/* ---- several ranks, slowly ---- */

__extension__ typedef unsigned __int128 work;

/* Everything that runs, recomputed at each step of time. */
struct slow {
    const struct sim_job *job;
    int64_t now;
    uint32_t pos[RANKS];
    bool launching[RANKS], launched[RANKS], computing[RANKS], issued[RANKS][OPS];
    work kernel[RANKS]; /* left of what the compute stream does */
    bool running[RANKS][OPS], moving[RANKS][OPS];
    work left[RANKS][OPS], bytes[RANKS][OPS]; /* of transfers */
    int64_t head_at[RANKS][OPS], start[RANKS][OPS], end[RANKS][OPS];
    int64_t compute[RANKS], exposed[RANKS], comm[RANKS], others[RANKS], clk[RANKS], since[RANKS];
    bool mismatch;
};

static uint32_t slow_op(const struct slow *s, uint32_t r)
{
    return s->pos[r] < s->job->rank[r].p->n_op ? s->pos[r] : PROBLEM_NONE;
}

static bool same_channel(const struct problem *p, uint32_t a, uint32_t b)
{
    return problem_is_coll(p, a) && problem_is_coll(p, b) && p->group[a] == p->group[b];
}

/* Is op the next of its channel: issued, with all before it ended? */
static bool at_head(const struct slow *s, uint32_t r, uint32_t op)
{
    const struct problem *p = s->job->rank[r].p;

    if (!s->issued[r][op] || s->end[r][op] >= 0)
        return false;
    for (uint32_t k = 0; k < op; k++)
        if (same_channel(p, k, op) && s->end[r][k] < 0)
            return false;
    return true;
}

static bool is_p2p(const struct slow *s, uint32_t r, uint32_t op)
{
    return s->job->rank[r].call[op].n_part > 0;
}

static uint32_t job_group(const struct slow *s, uint32_t r, uint32_t op)
{
    uint32_t k = s->job->rank[r].p->group[op];

    return k == PROBLEM_NONE ? PROBLEM_NONE : s->job->rank[r].group[k];
}

/* The counterpart of part i of op: the same (source, destination, tag), and as many of them before
 * it. */
static bool other_side(const struct slow *s, uint32_t r, uint32_t op, uint32_t i, uint32_t *r2,
                       uint32_t *op2)
{
    const struct sim_part *x = &s->job->rank[r].call[op].part[i];
    const struct sim_rank *k = &s->job->rank[r];
    uint32_t before = 0;

    for (uint32_t o = 0; o <= op; o++)
        for (uint32_t j = 0; problem_is_coll(k->p, o) && j < k->call[o].n_part; j++) {
            const struct sim_part *y = &k->call[o].part[j];
            if ((o < op || j < i) && y->peer == x->peer && y->tag == x->tag && y->send == x->send)
                before++;
        }
    *r2 = x->peer;
    k = &s->job->rank[*r2];
    for (uint32_t o = 0; o < k->p->n_op; o++)
        for (uint32_t j = 0; problem_is_coll(k->p, o) && j < k->call[o].n_part; j++) {
            const struct sim_part *y = &k->call[o].part[j];
            if (y->peer == r && y->tag == x->tag && y->send != x->send && before-- == 0) {
                *op2 = o;
                return true;
            }
        }
    return false;
}

/* Everything that takes part in op's transfer and has arrived; true if all have. */
static bool party(struct slow *s, uint32_t r, uint32_t op, uint32_t with[RANKS][2], uint32_t *n)
{
    const struct sim_job *job = s->job;
    uint32_t g = job_group(s, r, op);

    *n = 0;
    with[0][0] = r;
    with[0][1] = op;
    if (is_p2p(s, r, op)) {
        *n = 1;
        for (uint32_t i = 0; i < job->rank[r].call[op].n_part; i++) {
            uint32_t r2, op2;
            if (!other_side(s, r, op, i, &r2, &op2) || s->head_at[r2][op2] < 0)
                return false;
            const struct sim_call *a = &job->rank[r].call[op], *b = &job->rank[r2].call[op2];
            s->mismatch |= a->n_part == 1 && b->n_part == 1 && a->bytes != b->bytes;
        }
        return true;
    }
    if (g == PROBLEM_NONE) {
        *n = 1;
        return true;
    }
    bool complete = true;
    for (uint32_t i = job->member_at[g]; i < job->member_at[g + 1]; i++) {
        uint32_t m = job->member[i], at = PROBLEM_NONE;
        for (uint32_t o = 0; o < job->rank[m].p->n_op; o++)
            if (problem_is_coll(job->rank[m].p, o) && job_group(s, m, o) == g && at_head(s, m, o) &&
                !is_p2p(s, m, o))
                at = o;
        if (at == PROBLEM_NONE) {
            complete = false;
            continue;
        }
        with[*n][0] = m;
        with[(*n)++][1] = at;
    }
    for (uint32_t i = 1; i < *n; i++) {
        const struct sim_call *a = &job->rank[with[0][0]].call[with[0][1]],
                              *b = &job->rank[with[i][0]].call[with[i][1]];
        s->mismatch |= a->bytes != b->bytes || a->coll != b->coll;
    }
    return complete;
}

static void slow_start(struct slow *s, const uint32_t with[RANKS][2], uint32_t n)
{
    int64_t ps = 0, latency;

    for (uint32_t i = 0; i < n; i++)
        if (s->job->rank[with[i][0]].ps[with[i][1]] > ps)
            ps = s->job->rank[with[i][0]].ps[with[i][1]];
    latency = s->job->rank[with[0][0]].call[with[0][1]].latency;
    if (latency > ps || !s->job->contention)
        latency = ps;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t r = with[i][0], op = with[i][1];
        s->running[r][op] = true;
        s->start[r][op] = s->now;
        s->left[r][op] = (work)latency * SIM_SPEED;
        s->bytes[r][op] = (work)(ps - latency) * SIM_SPEED;
        s->others[r] += s->now - s->head_at[r][op];
    }
}

/* What happens without time passing. */
static bool slow_zero(struct slow *s)
{
    const struct sim_job *job = s->job;
    bool changed = false;

    for (uint32_t r = 0; r < job->n_rank; r++) {
        uint32_t op = slow_op(s, r);
        const struct problem *p = job->rank[r].p;

        if (op == PROBLEM_NONE || s->launching[r] || s->computing[r])
            continue;
        if (job->launch_ps > 0 && !s->launched[r]) {
            s->launching[r] = changed = true;
            s->kernel[r] = (work)job->launch_ps * SIM_SPEED;
            continue;
        }
        if (p->kind[op] == PROBLEM_COMPUTE) {
            s->computing[r] = changed = true;
            s->since[r] = s->now;
            s->kernel[r] = (work)job->rank[r].ps[op] * SIM_SPEED;
            continue;
        }
        bool over = true;
        if (!s->issued[r][op]) {
            s->issued[r][op] = changed = true;
            s->since[r] = s->now;
        }
        if (p->kind[op] == PROBLEM_COLLECTIVE)
            over = problem_is_async(p, op) || s->end[r][op] >= 0;
        for (uint32_t k = p->wait_at[op]; k < p->wait_at[op + 1]; k++)
            over &= s->end[r][p->wait[k]] >= 0;
        if (over) {
            s->exposed[r] += s->now - s->since[r];
            s->pos[r]++;
            s->launched[r] = false;
            changed = true;
            if (slow_op(s, r) == PROBLEM_NONE)
                s->clk[r] = s->now;
        }
    }
    for (uint32_t r = 0; r < job->n_rank; r++)
        for (uint32_t op = 0; op < job->rank[r].p->n_op; op++)
            if (problem_is_coll(job->rank[r].p, op) && at_head(s, r, op) && s->head_at[r][op] < 0) {
                s->head_at[r][op] = s->now;
                changed = true;
            }
    return changed;
}

static bool slow_starts(struct slow *s)
{
    const struct sim_job *job = s->job;
    static uint32_t with[RANKS * OPS][RANKS][2], n[RANKS * OPS];
    uint32_t n_party = 0;

    /* Starts everything that can start, so that a send and its receive see each other waiting. */
    for (uint32_t r = 0; r < job->n_rank; r++)
        for (uint32_t op = 0; op < job->rank[r].p->n_op; op++)
            if (problem_is_coll(job->rank[r].p, op) && at_head(s, r, op) && !s->running[r][op] &&
                party(s, r, op, with[n_party], &n[n_party]) && with[n_party][0][0] == r)
                n_party++;
    for (uint32_t i = 0; i < n_party && !s->mismatch; i++)
        slow_start(s, (const uint32_t(*)[2])with[i], n[i]);
    return n_party > 0;
}

static uint32_t transfer_speed(struct slow *s, uint32_t r, uint32_t op)
{
    const struct sim_job *job = s->job;
    uint32_t with[RANKS][2], n, most = 1;
    bool computing = false;

    party(s, r, op, with, &n);
    for (uint32_t i = 0; i < n; i++)
        computing |= s->computing[with[i][0]];
    uint64_t beside = computing && job->contention ? job->slow_comm[job->rank[r].call[op].kind]
                                                   : SIM_SPEED;
    if (!s->moving[r][op])
        return (uint32_t)beside;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t m = with[i][0], same = 0;
        for (uint32_t o = 0; o < job->rank[m].p->n_op; o++)
            same += s->moving[m][o] && job->rank[m].call[o].link == job->rank[r].call[op].link;
        most = same > most ? same : most;
    }
    beside = SIM_SPEED / most * beside / SIM_SPEED;
    return beside > 0 ? (uint32_t)beside : 1;
}

static uint32_t slow_kernel_speed(const struct slow *s, uint32_t r)
{
    const struct sim_job *job = s->job;
    uint32_t speed = SIM_SPEED;

    if (!s->computing[r] || !job->contention)
        return SIM_SPEED;
    for (uint32_t op = 0; op < job->rank[r].p->n_op; op++)
        if (s->running[r][op]) {
            uint32_t f = job->slow[job->rank[r].cls[slow_op(s, r)] * job->n_kind +
                                   job->rank[r].call[op].kind];
            speed = f < speed ? f : speed;
        }
    return speed;
}

/* Lets time pass until something ends; false if nothing runs. */
static bool slow_time(struct slow *s)
{
    const struct sim_job *job = s->job;
    static uint32_t speed[RANKS][OPS];
    uint32_t kernel[RANKS];
    work dt = 0;
    bool any = false;

    for (uint32_t r = 0; r < job->n_rank; r++) {
        kernel[r] = slow_kernel_speed(s, r);
        if (s->launching[r] || s->computing[r]) {
            work t = (s->kernel[r] + kernel[r] - 1) / kernel[r];
            dt = !any || t < dt ? t : dt;
            any = true;
        }
        for (uint32_t op = 0; op < job->rank[r].p->n_op; op++)
            if (s->running[r][op]) {
                speed[r][op] = transfer_speed(s, r, op);
                work t = (s->left[r][op] + speed[r][op] - 1) / speed[r][op];
                dt = !any || t < dt ? t : dt;
                any = true;
            }
    }
    s->now += (int64_t)dt;
    for (uint32_t r = 0; r < job->n_rank && any; r++) {
        work done = dt * kernel[r];
        s->kernel[r] = done < s->kernel[r] ? s->kernel[r] - done : 0;
        if (s->kernel[r] == 0 && s->launching[r]) {
            s->launching[r] = false;
            s->launched[r] = true;
        } else if (s->kernel[r] == 0 && s->computing[r]) {
            s->computing[r] = s->launched[r] = false;
            s->compute[r] += s->now - s->since[r];
            s->pos[r]++;
            if (slow_op(s, r) == PROBLEM_NONE)
                s->clk[r] = s->now;
        }
        for (uint32_t op = 0; op < job->rank[r].p->n_op; op++) {
            if (!s->running[r][op])
                continue;
            done = dt * speed[r][op];
            s->left[r][op] = done < s->left[r][op] ? s->left[r][op] - done : 0;
            if (s->left[r][op] > 0)
                continue;
            if (s->bytes[r][op] > 0) {
                s->left[r][op] = s->bytes[r][op];
                s->bytes[r][op] = 0;
                s->moving[r][op] = true;
                continue;
            }
            s->running[r][op] = s->moving[r][op] = false;
            s->end[r][op] = s->now;
            s->comm[r] += s->now - s->start[r][op];
        }
    }
    return any;
}

static void slow_run(struct slow *s, const struct sim_job *job)
{
    memset(s, 0, sizeof(*s));
    s->job = job;
    memset(s->end, -1, sizeof(s->end));
    memset(s->head_at, -1, sizeof(s->head_at));
    do {
        while (!s->mismatch && (slow_zero(s) || slow_starts(s)))
            ;
    } while (!s->mismatch && slow_time(s));
}

static bool slow_stuck(const struct slow *s)
{
    for (uint32_t r = 0; r < s->job->n_rank; r++) {
        if (slow_op(s, r) != PROBLEM_NONE)
            return true;
        for (uint32_t op = 0; op < s->job->rank[r].p->n_op; op++)
            if (s->issued[r][op] && problem_is_coll(s->job->rank[r].p, op) && s->end[r][op] < 0)
                return true;
    }
    return false;
}

/* ---- the tests ---- */

struct one {
    struct world *w;
    uint64_t seed;
    struct arena arena;
    size_t deadlocks, mismatches, fine;
};

#define CHECK(what, a, b)                                                                          \
    do {                                                                                           \
        if ((a) != (b))                                                                            \
            fail_msg("TUCK_SEED=%llu: %s: %lld, but slowly %lld", (unsigned long long)x->seed,     \
                     what, (long long)(a), (long long)(b));                                        \
    } while (0)

static void do_one_rank(void *arg)
{
    struct one *x = arg;
    struct world *w = x->w;
    const struct problem *p = w->p[0];
    uint32_t order[OPS];
    struct sim_options so = {.launch_ps = w->job.launch_ps};
    struct sim_span span[OPS], slow_span[OPS];
    int64_t charged = 0;
    struct sim_result fast, slow;
    struct sim sim;

    random_order(&w->rng, p, order);
    sim_init(&sim, p, &so, &x->arena);
    for (int twice = 0; twice < 2; twice++) { /* arrays are used again */
        sim_run(&sim, order, &fast, twice ? span : NULL);
        slow_s0(p, order, w->job.launch_ps, &slow, slow_span);
        CHECK("makespan", fast.makespan, slow.makespan);
        CHECK("compute", fast.compute, slow.compute);
        CHECK("communication", fast.comm, slow.comm);
        CHECK("launch", fast.launch, slow.launch);
        CHECK("exposed", fast.exposed, slow.exposed);
        CHECK("tail", fast.tail, slow.tail);
        CHECK("the sum", fast.makespan, fast.compute + fast.launch + fast.exposed);
        for (uint32_t op = 0; twice && op < p->n_op; op++)
            charged += span[op].exposed;
    }
    CHECK("what collectives are charged", charged, fast.exposed);
    for (uint32_t op = 0; op < p->n_op; op++) {
        CHECK("start", span[op].start, slow_span[op].start);
        CHECK("end", span[op].end, slow_span[op].end);
        CHECK("issued", span[op].issued, slow_span[op].issued);
        CHECK("exposed of an op", span[op].exposed, slow_span[op].exposed);
        CHECK("held by an op", span[op].held, slow_span[op].held);
        CHECK("exposed for longer than it runs", span[op].exposed > span[op].end - span[op].start,
              0);
        CHECK("stood", span[op].stood, slow_span[op].stood);
    }
    struct bound_options bo = {.launch_ps = w->job.launch_ps};
    struct bound bound;
    bound_of(p, &bo, &x->arena, &bound);
    if (fast.makespan < bound.ps)
        fail_msg("TUCK_SEED=%llu: %lld is under the bound, %lld (%s)", (unsigned long long)x->seed,
                 (long long)fast.makespan, (long long)bound.ps, bound_name(bound.kind));
    /* The engine for several ranks gives the same for one rank, without contention. */
    struct sim_rank_result out;
    struct sim_span again[OPS], *spans[1] = {again};
    struct sim_fault fault;
    struct sim_rank alone = w->rank[0];
    struct sim_job job = w->job;
    alone.order = order;
    alone.group = NULL;
    job.rank = &alone;
    job.n_group = 0;
    job.contention = false;
    sim_ranks(&job, &x->arena, &out, spans, &fault);
    CHECK("fault", (int)fault.kind, (int)SIM_FINE);
    bool same = memcmp(&out.time, &fast, sizeof(fast)) == 0;
    for (uint32_t op = 0; op < p->n_op; op++)
        same &= again[op].start == span[op].start && again[op].end == span[op].end &&
                again[op].issued == span[op].issued && again[op].exposed == span[op].exposed &&
                again[op].stood == span[op].stood && again[op].held == span[op].held;
    if (!same)
        fail_msg("TUCK_SEED=%llu: a rank alone is not what S0 says", (unsigned long long)x->seed);
}

static void do_ranks(void *arg)
{
    struct one *x = arg;
    const struct sim_job *job = &x->w->job;
    struct sim_rank_result out[RANKS];
    static struct slow slow;
    struct sim_span buf[RANKS][OPS], *span[RANKS] = {buf[0], buf[1], buf[2], buf[3]};
    struct sim_fault fault;

    sim_ranks(job, &x->arena, out, span, &fault);
    slow_run(&slow, job);
    int expected = slow.mismatch ? SIM_MISMATCH : slow_stuck(&slow) ? SIM_DEADLOCK : SIM_FINE;
    CHECK("fault", (int)fault.kind, expected);
    x->mismatches += fault.kind == SIM_MISMATCH;
    x->deadlocks += fault.kind == SIM_DEADLOCK;
    x->fine += fault.kind == SIM_FINE;
    if (fault.kind == SIM_DEADLOCK)
        for (uint32_t i = 0; i < fault.n_stuck; i++) {
            const struct sim_stuck *k = &fault.stuck[i];
            CHECK("stuck", at_head(&slow, k->rank, k->op), true);
            CHECK("held", k->held, slow_op(&slow, k->rank));
        }
    if (fault.kind != SIM_FINE)
        return;
    for (uint32_t r = 0; r < job->n_rank; r++) {
        const struct problem *p = job->rank[r].p;
        int64_t makespan = slow.clk[r];
        for (uint32_t op = 0; op < p->n_op; op++)
            if (problem_is_coll(p, op)) {
                CHECK("start", span[r][op].start, slow.start[r][op]);
                CHECK("end", span[r][op].end, slow.end[r][op]);
                makespan = slow.end[r][op] > makespan ? slow.end[r][op] : makespan;
            }
        const struct sim_result *t = &out[r].time;
        int64_t charged = 0;
        for (uint32_t op = 0; op < p->n_op; op++)
            charged += span[r][op].exposed;
        CHECK("what collectives are charged", charged, t->exposed);
        CHECK("makespan", t->makespan, makespan);
        CHECK("compute", t->compute, slow.compute[r]);
        CHECK("exposed", t->exposed, slow.exposed[r] + makespan - slow.clk[r]);
        CHECK("communication", t->comm, slow.comm[r]);
        CHECK("for others", out[r].others, slow.others[r]);
        CHECK("the sum", t->makespan, t->compute + t->launch + t->exposed);
    }
}

static void run(const char *name, size_t n, uint32_t most_ranks, bool contention,
                void (*test)(void *))
{
    const char *given = getenv("TUCK_SEED");
    static struct world w;
    struct one x = {.w = &w};

    uint64_t first = seed_of(name);

    n = given ? 1 : rounds(n) / FEWER;
    for (size_t i = 0; i < n; i++) {
        x.seed = first + i;
        uint64_t seed = x.seed * 0x9E3779B97F4A7C15u;
        make_world(&w, seed, most_ranks == 1 ? 1 : 1 + (uint32_t)(x.seed % most_ranks), contention);
        arena_init(&x.arena, &w.p[0]->mem);
        assert_true(mem_guard(&w.p[0]->mem, test, &x));
        arena_destroy(&x.arena);
        free_world(&w);
    }
    if (most_ranks > 1)
        print_message("# %s: %zu jobs run through, %zu with a mismatch, %zu with a deadlock\n",
                      name, x.fine, x.mismatches, x.deadlocks);
}

static void one_rank(void **unused)
{
    (void)unused;
    run("one rank", 10000, 1, false, do_one_rank);
}

static void several_ranks(void **unused)
{
    (void)unused;
    run("several ranks", 10000, RANKS, false, do_ranks);
}

static void contention_alone(void **unused)
{
    (void)unused;
    run("contention", 10000, 1, true, do_ranks);
}

static void contention_of_ranks(void **unused)
{
    (void)unused;
    run("several ranks with contention", 10000, RANKS, true, do_ranks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank),
        cmocka_unit_test(several_ranks),
        cmocka_unit_test(contention_alone),
        cmocka_unit_test(contention_of_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

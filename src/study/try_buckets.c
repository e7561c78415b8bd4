/* The ways to bucket that are tried.
 *
 * A plan says for each kind of collective which of them are bucketed and up to which size. Plans
 * are judged by their order by time. First come sizes for all kinds together, from a fraction to a
 * multiple of the size that keeps the links busy. Then, from the best of these, each kind is
 * changed alone as long as that helps: its size, which of them, none, or the small ones only, which
 * are most of the latency and next to nothing to copy. The best plan gets more orders.
 *
 * A bucket is one buffer, into which its members are copied, or one collective on a list, without
 * copies. Reductions begin with lists, unless they are small; gathers with buffers, where copies
 * convert, too.
 */
#include <stdio.h>

#include "op/ops.h"
#include "rewrite/bucket/bucket.h"
#include "study/bucket_plan.h"
#include "study/cut.h"
#include "study/tries.h"

enum { TRIED_MAX = 192 };

/* Below and above these, more and fewer plans are tried. */
enum { FEW_NODES = 2048, MANY_NODES = 8192 };

/* Of the memory that is free at a bucket. */
#define ROOM_SHARE 0.5

struct tried {
    struct plan plan;
    uint64_t revision; /* of the bucketed graph */
    int64_t ps;        /* the best time that fits; INT64_MAX if none does */
    int64_t front_ps;  /* the same for orders from the front alone */
};

struct plans {
    struct search *s;
    const struct stage *from;
    double busy_mb[N_KINDS]; /* the size that keeps the links busy, or fits */
    double least_mb;
    struct plan built; /* of the stages; where it begins with the same, they are used again */
    struct stage stage[N_KINDS];
    uint32_t n_built;
    bool small;              /* all orders are tried for each plan */
    bool none[N_KINDS];      /* there are no collectives of this kind */
    bool alike[N_KINDS];     /* all of this kind are FSDP's */
    uint32_t n_tried, n_max; /* plans so far, and how many may be tried */
    struct tried tried[TRIED_MAX];
};

static const tuck_coll coll_of[N_KINDS] = {TUCK_REDUCE_SCATTER, TUCK_ALL_REDUCE, TUCK_ALL_GATHER};

static const struct pass *pass_of(uint32_t kind, enum which which)
{
    switch (kind) {
    case SCATTERS:
        return which != ALL ? &pass_bucket_fsdp_reduce_scatter : &pass_bucket_reduce_scatter;
    case REDUCES: return &pass_bucket_all_reduce;
    default: return which != ALL ? &pass_bucket_fsdp_all_gather : &pass_bucket_all_gather;
    }
}

/* In MiB, for the largest group. */
static double find_busy_mb(const struct search *s, const tuck_graph *g, tuck_coll coll)
{
    const struct machine *m = s->machine;
    struct cost_shape shape = {.p = 0};

    for (uint32_t i = 0; i < g->group.len; i++) {
        struct cost_shape own = shape_of_group(m->cluster, graph_str(g, g->group.at[i].name),
                                               g->group.at[i].size, g->group.at[i].ranks);
        if (own.p > shape.p)
            shape = own;
    }
    double most = (double)s->limit / 1048576 / 4; /* larger ones would hardly fit */
    double mb = 25;
    if (shape.p >= 2)
        mb = (double)cost_saturation(m->cluster, shape, coll, 0.9, &m->cost.collective) / 1048576;
    return mb < most ? mb : most;
}

static double cap_mb(const struct plans *x, const struct plan *p, uint32_t kind)
{
    double mb = x->busy_mb[kind];

    int size = p->kind[kind].size;

    if (size % 2 != 0)
        mb *= 1.5; /* not the root of 2: the same on every machine */
    for (int i = 0; i < (size - (size & 1)) / 2; i++)
        mb *= 2;
    for (int i = 0; i > (size - (size & 1)) / 2; i--)
        mb /= 2;
    return mb < x->least_mb ? x->least_mb : mb > 8000 ? 8000 : mb;
}

/* ---- building a plan ---- */

static void forget(struct plans *x, uint32_t n)
{
    while (x->n_built > n)
        stage_end(&x->stage[--x->n_built]);
}

/* The stage after the first n kinds. */
static const struct stage *stage_after(const struct plans *x, uint32_t n)
{
    while (n > 0 && x->built.kind[n - 1].which == LEAVE)
        n--;
    return n > 0 ? &x->stage[n - 1] : x->from;
}

/* Its time and memory, if nobody asked for them before. */
static tuck_status judge_after(struct plans *x, uint32_t n)
{
    const struct stage *at = stage_after(x, n);

    for (uint32_t i = 0; i < x->n_built; i++)
        if (&x->stage[i] == at)
            return stage_judge(&x->s->runner, &x->stage[i], x->s->diags);
    return TUCK_OK;
}

/* What a pass says of the collectives of its kind. */
static void learn(struct plans *x, uint32_t kind)
{
    const struct tuck_report *t = x->stage[kind].report;
    const struct pass_report *row = &t->pass.at[t->pass.len - 1];
    bool filtered = false;

    for (uint32_t i = 0; i < row->left.len; i++)
        filtered |= row->left.at[i].why == LEFT_FILTERED;
    x->none[kind] = row->bucket.len == 0 && row->left.len == 0;
    x->alike[kind] |= x->built.kind[kind].which == OF_FSDP && !filtered;
}

/* The same plan in its simplest form, so that it is recognized. */
static void settle(const struct plans *x, struct plan *p)
{
    for (uint32_t k = 0; k < N_KINDS; k++) {
        p->kind[k].lists &= !x->s->small; /* there, all plain buckets are tried */
        if (x->none[k])
            p->kind[k].which = LEAVE;
        else if (x->alike[k] && p->kind[k].which == ALL)
            p->kind[k].which = OF_FSDP;
    }
}

struct cut {
    const struct plans *x;
    const struct plan *p;
    uint32_t kind;
    double mb;
    const char *mode;
    struct buf text;
    struct arena a;
};

static void do_cut(void *arg)
{
    struct cut *c = arg;
    const struct stage *from = stage_after(c->x, c->kind);
    uint32_t n = 0, place = 0;

    struct cut_how how = {.m = c->x->s->machine,
                          .coll = coll_of[c->kind],
                          .by_time = c->p->kind[c->kind].which == CHAIN,
                          .most = (int64_t)(c->mb * 1048576),
                          .limit = c->x->s->limit,
                          .share = c->p->kind[c->kind].room ? ROOM_SHARE : 0};
    bool *begins = cut_graph(from->g, from->e, &how, &c->a);
    buf_printf(&c->text, "cap_mb=%.4g%s", c->mb, c->mode);
    for_each_node (from->g, v) { /* by place: the same decision must do where names differ */
        if (begins != NULL && begins[v])
            buf_printf(&c->text, "%s%%c%u", n++ == 0 ? ",begins=" : ":", place);
        place += comm_communicates(from->g, v);
    }
    buf_text(&c->text);
}

static tuck_status run_plain(struct search *s, const struct stage *from, const struct pass *pass,
                             double mb, const char *mode, struct stage *to)
{
    char text[64];

    snprintf(text, sizeof(text), "cap_mb=%.4g%s", mb, mode);
    return try_next_with(s, from, pass, text, false, to);
}

/* The buckets that are due when they are needed, or fit where they are. */
static tuck_status run_cut(struct plans *x, const struct plan *p, uint32_t kind, double mb,
                           const char *mode)
{
    struct mem mem;
    const struct stage *from = stage_after(x, kind);
    const struct pass *pass = pass_of(kind, (enum which)p->kind[kind].which);
    struct cut c = {.x = x, .p = p, .kind = kind, .mb = mb, .mode = mode};
    tuck_status st = judge_after(x, kind);

    if (st != TUCK_OK)
        return st;
    st = TUCK_ENOMEM;
    mem_init(&mem, &x->s->study->mem.alloc);
    buf_init(&c.text, &mem);
    arena_init(&c.a, &mem);
    if (mem_guard(&mem, do_cut, &c))
        st = try_next_with(x->s, from, pass, buf_text(&c.text), true, &x->stage[kind]);
    if (st == TUCK_EINVAL) { /* not all collectives of a kind can be named */
        stage_end(&x->stage[kind]);
        st = run_plain(x->s, from, pass, mb, mode, &x->stage[kind]);
    }
    arena_destroy(&c.a);
    buf_destroy(&c.text);
    return st;
}

static tuck_status run_kind(struct plans *x, const struct plan *p, uint32_t kind)
{
    enum { OF_CAP = 8 }; /* a small member fits so often into a bucket */
    enum which which = (enum which)p->kind[kind].which;
    const struct stage *from = stage_after(x, kind);
    double mb = cap_mb(x, p, kind);
    const char *mode = p->kind[kind].lists ? ",mode=coalesced" : "";
    char text[96];

    if (which == CHAIN || (p->kind[kind].room && which != SMALL))
        return run_cut(x, p, kind, mb, mode);
    if (which != SMALL)
        return run_plain(x->s, from, pass_of(kind, which), mb, mode, &x->stage[kind]);
    snprintf(text, sizeof(text), "cap_mb=%.4g,member_mb=%.4g%s", mb, mb / OF_CAP, mode);
    return try_next_with(x->s, from, pass_of(kind, which), text, false, &x->stage[kind]);
}

static tuck_status build(struct plans *x, const struct plan *p)
{
    tuck_status st = TUCK_OK;
    uint32_t n = 0;

    while (n < x->n_built && plan_same(&x->built, p, n))
        n++;
    forget(x, n);
    for (; n < N_KINDS && st == TUCK_OK; n++) {
        x->built.kind[n] = p->kind[n];
        x->n_built = n + 1;
        enum which which = (enum which)p->kind[n].which;
        if (which == LEAVE)
            continue;
        x->s->runner.judge_later = true; /* another kind may follow */
        st = run_kind(x, p, n);
        x->s->runner.judge_later = false;
        if (st == TUCK_OK)
            learn(x, n);
    }
    return st == TUCK_OK ? judge_after(x, N_KINDS) : st;
}

/* ---- judging it ---- */

static const struct tried *find_plan(const struct plans *x, const struct plan *p)
{
    for (uint32_t i = 0; i < x->n_tried; i++) {
        const struct plan *q = &x->tried[i].plan;
        if (plan_same(p, q, SCATTERS) && plan_same(p, q, REDUCES) && plan_same(p, q, GATHERS))
            return &x->tried[i];
    }
    return NULL;
}

static const struct tried *find_graph(const struct plans *x, uint64_t revision)
{
    for (uint32_t i = 0; i < x->n_tried; i++)
        if (x->tried[i].revision == revision)
            return &x->tried[i];
    return NULL;
}

/* Tries a plan that is new, unless enough were tried. */
static tuck_status try_plan(struct plans *x, const struct plan *given)
{
    struct plan settled = *given, *p = &settled;
    struct stage timed[2];

    settle(x, &settled);
    if (x->n_tried == x->n_max || find_plan(x, p) != NULL)
        return TUCK_OK;
    tuck_status st = build(x, p);
    if (st != TUCK_OK)
        return st;
    const struct stage *top = stage_after(x, N_KINDS);
    const struct tried *known = find_graph(x, top->g->revision);
    struct tried now = {*p, top->g->revision, known != NULL ? known->ps : INT64_MAX, INT64_MAX};
    if (known == NULL) {
        st = try_timed(x->s, top, timed);
        now.ps = x->s->timed_ps;
        now.front_ps = x->s->timed_front_ps;
        stage_end(&timed[1]);
        stage_end(&timed[0]);
    }
    x->tried[x->n_tried++] = now;
    if (st != TUCK_OK || top->e->peak <= x->s->limit || plan_has_room(p))
        return st;
    for (uint32_t k = 0; k < N_KINDS; k++)
        settled.kind[k].room = settled.kind[k].which != SMALL;
    return try_plan(x, &settled);
}

/* The fastest so far; of equals the first. */
static struct tried *best_of(struct plans *x)
{
    struct tried *best = &x->tried[0];

    for (uint32_t i = 1; i < x->n_tried; i++)
        if (x->tried[i].ps < best->ps)
            best = &x->tried[i];
    return best;
}

/* ---- which plans ---- */

static int64_t time_of(const struct plans *x, struct plan p)
{
    settle(x, &p);
    const struct tried *t = find_plan(x, &p);
    return t != NULL ? t->ps : INT64_MAX;
}

/* For large graphs, a size that is far only if the one on the way to it was better than the middle.
 */
static tuck_status try_sizes(struct plans *x)
{
    static const int8_t sizes[] = {0, 2, -2, 4, -4};
    tuck_status st = TUCK_OK;

    for (uint32_t i = 0; i < sizeof(sizes) && st == TUCK_OK; i++)
        for (uint32_t k = 0; k < N_FIRST_PLANS && st == TUCK_OK; k++) {
            struct plan p = plan_first(k, sizes[i]);
            bool far = (sizes[i] < -2 || sizes[i] > 2) && x->from->g->n_nodes >= FEW_NODES;
            if (!far || time_of(x, plan_first(k, sizes[i] / 2)) < time_of(x, plan_first(k, 0)))
                st = try_plan(x, &p);
        }
    return st;
}

/* Changes one kind as long as that helps. */
static tuck_status descend(struct plans *x, bool *better)
{
    tuck_status st = TUCK_OK;

    *better = false;
    for (uint32_t i = 0; i < N_KINDS * N_CHANGES && st == TUCK_OK;) {
        struct tried from = *best_of(x);
        struct plan p = from.plan;

        if (plan_change(&p, i % N_KINDS, (enum change)(i / N_KINDS)))
            st = try_plan(x, &p);
        bool won = best_of(x)->ps < from.ps;
        *better |= won;
        i += !won;
    }
    return st;
}

/* Are there two collectives that could be one? */
static bool has_candidates(const tuck_graph *g)
{
    uint32_t n = 0;

    for_each_node (g, k)
        n += (op_at(node_op(g, k))->flags &
              (OP_F_ALL_GATHER | OP_F_REDUCE_SCATTER | OP_F_ALL_REDUCE)) != 0;
    return n > 1;
}

/* How many plans an effort allows; fewer for large graphs. */
static uint32_t plans_of(const struct search *s, const tuck_graph *g)
{
    static const uint8_t by_effort[] = {2, 5, 9, 14, 21, 30, 48, 74, 114, TRIED_MAX};
    uint64_t n = by_effort[s->o->effort];

    if (g->n_nodes > MANY_NODES)
        n = n * MANY_NODES / g->n_nodes;
    else if (g->n_nodes < FEW_NODES && s->o->effort > 0 && 2 * n <= TRIED_MAX)
        n *= 2;
    uint32_t least = s->o->effort == 0 ? 1 : 2;
    return n > least ? (uint32_t)n : least;
}

static tuck_status try_plans(struct plans *x)
{
    tuck_status st = try_sizes(x);
    bool better = st == TUCK_OK;

    while (better && x->n_tried < x->n_max && st == TUCK_OK)
        st = descend(x, &better);
    return st;
}

/* All orders for a plan; if `apart` differs, it is also tried there: with loops apart, compute may
 * fit better under communication. */
static tuck_status try_well(struct plans *x, const struct plan *p, const struct stage *apart)
{
    const struct stage *from = x->from;
    tuck_status st = build(x, p);

    if (st == TUCK_OK)
        st = try_starts(x->s, stage_after(x, N_KINDS));
    if (st != TUCK_OK || apart == from)
        return st;
    forget(x, 0);
    x->from = apart;
    st = build(x, p);
    if (st == TUCK_OK)
        st = try_starts(x->s, stage_after(x, N_KINDS));
    forget(x, 0);
    x->from = from;
    return st;
}

/* The best plan by orders from the front alone, if it is another one than `best`: other moves often
 * lead further from there. */
static tuck_status try_best_from_front(struct plans *x, uint64_t best)
{
    const struct tried *front = &x->tried[0];

    for (uint32_t i = 1; i < x->n_tried; i++)
        if (x->tried[i].front_ps < front->front_ps)
            front = &x->tried[i];
    if (front->front_ps == INT64_MAX || front->revision == best)
        return TUCK_OK;
    tuck_status st = build(x, &front->plan);
    return st == TUCK_OK ? try_starts(x->s, stage_after(x, N_KINDS)) : st;
}

/* The best plans that differ, one for large graphs. */
static tuck_status try_finalists(struct plans *x, const struct stage *apart)
{
    enum { FINALISTS = 2 };
    uint32_t n = x->from->g->n_nodes <= 1000 ? FINALISTS : 1;
    uint64_t first = best_of(x)->revision;
    tuck_status st = TUCK_OK;

    for (uint32_t i = 0; i < n && st == TUCK_OK; i++) {
        struct tried *best = best_of(x);
        uint64_t revision = best->revision;

        if (best->ps == INT64_MAX && i > 0)
            break;
        st = try_well(x, &best->plan, apart);
        for (uint32_t k = 0; k < x->n_tried; k++)
            if (x->tried[k].revision == revision)
                x->tried[k].ps = INT64_MAX;
    }
    return st == TUCK_OK ? try_best_from_front(x, first) : st;
}

tuck_status try_buckets(struct search *s, const struct stage *from, const struct stage *apart)
{
    struct plans x = {.s = s, .from = from, .n_max = plans_of(s, from->g)};

    if (!has_candidates(from->g))
        return TUCK_OK;
    double share = (double)s->limit / 1048576 / 128;
    x.least_mb = share < 1 ? share : 1;
    for (uint32_t i = 0; i < N_KINDS; i++)
        x.busy_mb[i] = find_busy_mb(s, from->g, coll_of[i]);
    tuck_status st = try_plans(&x);
    if (st == TUCK_OK && s->o->effort > 0)
        st = try_finalists(&x, apart);
    forget(&x, 0);
    return st;
}

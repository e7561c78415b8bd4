#include "study/cut.h"

#include "base/csr.h"
#include "plan/liveness.h"
#include "study/chain.h"
#include "study/rank_input.h"

struct chains {
    const tuck_graph *g;
    const struct evaluation *e;
    const struct cut_how *how;
    struct arena *a;
    int64_t *room;   /* [op] bytes that are free there, of which a bucket may have a share */
    int64_t *clock;  /* [op] compute before it */
    uint32_t *first; /* [op] of a collective: its first wait */
    int64_t compute;
    bool *begins; /* by node */
};

static void find_clocks(struct chains *c)
{
    const struct problem *p = c->e->problem;

    c->clock = arena_array(c->a, int64_t, p->n_op);
    c->first = arena_array(c->a, uint32_t, p->n_op);
    for (uint32_t i = 0; i < p->n_op; i++) {
        c->clock[i] = c->compute;
        c->first[i] = PROBLEM_NONE;
        for (uint32_t k = p->wait_at[i]; k < p->wait_at[i + 1]; k++)
            if (c->first[p->wait[k]] == PROBLEM_NONE)
                c->first[p->wait[k]] = i;
        if (!problem_is_coll(p, i) && !problem_is_wait(p, i))
            c->compute += p->ps[i];
    }
}

static bool is_member(const struct chains *c, uint32_t op)
{
    const struct program_op *o = &c->e->program->op[op];

    return o->kind == PROGRAM_COLLECTIVE && o->group != PROGRAM_NONE && o->coll == c->how->coll &&
           o->message > 0 && o->message < INT64_MAX >> 16 && problem_is_async(c->e->problem, op) &&
           c->first[op] != PROBLEM_NONE && !program_is_nested(o);
}

/* By group: its members, in the order of their waits, as buckets are filled. */
static uint32_t *list_members(const struct chains *c, uint32_t **at)
{
    const struct problem *p = c->e->problem;
    uint32_t *op = NULL;

    *at = csr_begin(c->a, c->e->program->n_group);
    for (int fill = 0; fill < 2; fill++) {
        for (uint32_t i = 0; i < p->n_op; i++)
            for (uint32_t k = p->wait_at[i]; k < p->wait_at[i + 1]; k++) {
                uint32_t x = p->wait[k], group = c->e->program->op[x].group;
                if (c->first[x] != i || !is_member(c, x))
                    continue;
                if (fill)
                    op[csr_place(*at, group)] = x;
                else
                    csr_count(*at, group);
            }
        if (!fill)
            op = arena_array(c->a, uint32_t, csr_sum(*at, c->e->program->n_group));
    }
    return op;
}

/* By group: the bytes of all that runs on its channel. */
static double *list_loads(const struct chains *c)
{
    const struct program *p = c->e->program;
    double *load = arena_zeroed(c->a, ((size_t)p->n_group + 1) * sizeof(*load));

    for (uint32_t i = 0; i < p->n_op; i++)
        if (p->op[i].kind == PROGRAM_COLLECTIVE && p->op[i].group != PROGRAM_NONE &&
            p->op[i].message > 0)
            load[p->op[i].group] += (double)p->op[i].message;
    return load;
}

/* ---- memory ---- */

static void find_room(struct chains *c)
{
    const struct problem *p = c->e->problem;
    struct live live;
    uint32_t *order = arena_array(c->a, uint32_t, p->n_op);

    for (uint32_t i = 0; i < p->n_op; i++)
        order[i] = i;
    live_of(p, order, c->a, &live);
    c->room = live.post_alloc;
    for (uint32_t i = 0; i < p->n_op; i++) {
        int64_t room = c->how->limit - c->room[i];
        c->room[i] = room > 0 ? (int64_t)((double)room * c->how->share) : 0;
    }
}

/* Where a member needs its memory at the latest: a gather when it is used, others when they begin.
 */
static uint32_t place_of(const struct chains *c, uint32_t op)
{
    return c->how->coll == TUCK_ALL_GATHER ? c->first[op] : op;
}

/* The least room from the place of one member to that of another. */
static int64_t least_room(const struct chains *c, uint32_t x, uint32_t y, int64_t least)
{
    uint32_t from = place_of(c, x), to = place_of(c, y);

    if (from > to) {
        uint32_t k = from;
        from = to;
        to = k;
    }
    for (uint32_t i = from; i <= to; i++)
        least = c->room[i] < least ? c->room[i] : least;
    return least;
}

/* How many of the n members op[0], op[step], … fit into one bucket, and their bytes. */
static uint32_t fill(const struct chains *c, const uint32_t *op, int step, uint32_t n, int64_t *sum)
{
    const struct program *p = c->e->program;
    int64_t least = c->how->most;
    uint32_t k = 1;

    *sum = p->op[op[0]].message;
    for (; k < n; k++) {
        uint32_t x = op[(int64_t)k * step], before = op[(int64_t)(k - 1) * step];
        least = c->room != NULL ? least_room(c, before, x, least) : least;
        if (*sum + p->op[x].message > least)
            break;
        *sum += p->op[x].message;
    }
    return k;
}

/* ---- one group ---- */

/* Each bucket as large as it can be. */
static void cut_by_room(struct chains *c, const uint32_t *op, uint32_t n)
{
    int64_t sum;

    for (uint32_t i = 0; i < n;) {
        if (i > 0)
            c->begins[c->e->program->op[op[i]].node] = true;
        i += fill(c, op + i, 1, n - i, &sum);
    }
}

static void cut_by_time(struct chains *c, uint32_t group, const uint32_t *op, uint32_t n,
                        double load)
{
    const struct program *p = c->e->program;
    struct cost_shape shape = facts_shape(c->g, p, c->how->m->cluster, group);
    bool back = c->how->coll != TUCK_ALL_GATHER; /* the end of the step is what is due */
    int64_t sum = 0;

    if (n < 2 || n > CHAIN_MOST || shape.p < 2)
        return;
    struct arena_mark mark = arena_mark(c->a);
    struct chain_times times;
    int64_t *bytes = arena_array(c->a, int64_t, n), *due = arena_array(c->a, int64_t, n);
    int64_t *room = arena_array(c->a, int64_t, n);
    bool *begins = arena_zeroed(c->a, ((size_t)n + 1) * sizeof(*begins));
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t *x = &op[back ? n - 1 - i : i];
        sum += bytes[i] = p->op[*x].message;
        due[i] = back ? c->compute - c->clock[*x] : c->clock[c->first[*x]];
        due[i] = i > 0 && due[i] < due[i - 1] ? due[i - 1] : due[i];
        if (c->room != NULL)
            fill(c, x, back ? -1 : 1, n - i, &room[i]);
    }
    chain_times(&times, c->how->m, shape, c->how->coll,
                laws_find(&c->e->laws, (int)c->how->coll, program_str(p, p->group[group].name)),
                sum, c->a);
    struct chain chain = {.n = n,
                          .bytes = bytes,
                          .due = due,
                          .times = &times,
                          .share = load / (double)sum,
                          .most = c->how->most,
                          .room = c->room != NULL ? room : NULL};
    chain_best(chain_begin(&chain, c->a), begins);
    /* From the back, a bucket ends where the next one begins. */
    for (uint32_t i = 1; i < n; i++)
        if (begins[back ? n - i : i])
            c->begins[p->op[op[i]].node] = true;
    arena_release(c->a, mark);
}

/* ---- all ---- */

bool *cut_graph(const tuck_graph *g, const struct evaluation *e, const struct cut_how *how,
                struct arena *a)
{
    struct chains c = {.g = g, .e = e, .how = how, .a = a};
    uint32_t n = 0, *at = NULL;

    c.begins = arena_zeroed(a, g->node.len * sizeof(bool));
    find_clocks(&c);
    if (how->share > 0)
        find_room(&c);
    const uint32_t *op = list_members(&c, &at);
    const double *load = list_loads(&c);
    for (uint32_t k = 0; k < e->program->n_group; k++)
        if (how->by_time)
            cut_by_time(&c, k, op + at[k], at[k + 1] - at[k], load[k]);
        else
            cut_by_room(&c, op + at[k], at[k + 1] - at[k]);
    for_each_node (g, v)
        n += c.begins[v];
    return n > 0 ? c.begins : NULL;
}

#include "schedule/list_facts.h"

#include "base/heap.h"
#include "base/units.h"

/* ---- from the front: as the problem says ---- */

static void roles_from_front(struct op_facts *f)
{
    const struct problem *p = f->p;

    for (uint32_t x = 0; x < f->n; x++) {
        if (problem_is_wait(p, x))
            f->role[x] = ROLE_END;
        else if (problem_is_coll(p, x))
            f->role[x] = problem_is_async(p, x) ? ROLE_START : ROLE_SYNC;
        else
            f->role[x] = ROLE_COMPUTE;
        f->channel[x] = p->group[x] == PROBLEM_NONE ? f->n_channel - 1 : p->group[x];
        f->ps[x] = f->role[x] == ROLE_END ? 0 : ps_round(f->s->runtime[x] * p->unit_ps);
    }
    f->start_at = p->wait_at;
    f->start = p->wait;
}

/* ---- from the back: waits start, collectives end ---- */

/* The wait of each collective: its first in the order, as transfers must have ended by then. */
static uint32_t *first_waits(const struct op_facts *f)
{
    const struct problem *p = f->p;
    uint32_t *wait_of = arena_array(f->a, uint32_t, f->n);

    for (uint32_t x = 0; x < f->n; x++)
        wait_of[x] = PROBLEM_NONE;
    for (uint32_t i = f->n; i-- > 0;) {
        uint32_t w = f->order[i]; /* mirrored: from the first op on */
        for (uint32_t k = p->wait_at[w]; k < p->wait_at[w + 1]; k++)
            if (problem_is_async(p, p->wait[k]) && wait_of[p->wait[k]] == PROBLEM_NONE)
                wait_of[p->wait[k]] = w;
    }
    return wait_of;
}

/* A wait that ends several transfers starts one as long as all of them. Other waits of a collective
 * take no time, nor does a collective that nothing waits for. */
static void roles_from_back(struct op_facts *f)
{
    const struct problem *p = f->p;
    const uint32_t *wait_of = first_waits(f);

    f->start_at = arena_array(f->a, uint32_t, (size_t)f->n + 1);
    f->start = arena_array(f->a, uint32_t, f->n);
    f->start_at[0] = 0;
    for (uint32_t x = 0; x < f->n; x++) {
        uint32_t w = wait_of[x], end = f->start_at[x];
        if (w != PROBLEM_NONE)
            f->start[end++] = w;
        f->start_at[x + 1] = end;
    }
    uint32_t *channel = f->channel;
    int64_t *ps = arena_zeroed(f->a, f->n * sizeof(*ps));
    for (uint32_t x = 0; x < f->n; x++) {
        uint32_t w = wait_of[x];
        if (w != PROBLEM_NONE) {
            f->role[x] = ROLE_END;
            f->role[w] = ROLE_START;
            channel[w] = channel[x];
            ps[w] += f->ps[x];
        } else if (f->role[x] == ROLE_COMPUTE || f->role[x] == ROLE_SYNC) {
            ps[x] = f->ps[x];
        }
    }
    for (uint32_t x = 0; x < f->n; x++) /* neither end of a transfer that counts */
        if ((problem_is_wait(p, x) && f->role[x] != ROLE_START) ||
            (problem_is_async(p, x) && f->role[x] != ROLE_END))
            f->role[x] = ROLE_COMPUTE;
    f->ps = ps;
}

static void mirror(struct op_facts *f)
{
    struct edges e = f->e;

    f->e = (struct edges){
        .need_at = e.user_at, .need = e.user, .user_at = e.need_at, .user = e.need};
    roles_from_back(f);
}

/* ---- the same for both ---- */

/* Does it start a gather of a parameter? From the back: a transfer of what the step gives back. */
static bool is_gather_like(const struct op_facts *f, uint32_t x)
{
    return f->role[x] == ROLE_START && (f->from_back || f->p->coll[x] == TUCK_ALL_GATHER);
}

/* Walks from the last op to the first: what comes after each op. */
static void look_back(struct op_facts *f)
{
    const struct problem *p = f->p;

    for (uint32_t i = f->n; i-- > 0;) {
        uint32_t x = f->order[i];
        bool starts = f->role[x] == ROLE_START;
        bool for_gathers = p->kind[x] == PROBLEM_COMPUTE && !(p->flags[x] & PROBLEM_LIKE_GEMM);
        int64_t after = 0;

        f->needed[x] = f->n;
        for (uint32_t k = f->e.user_at[x]; k < f->e.user_at[x + 1]; k++) {
            uint32_t y = f->e.user[k];
            bool ends = starts && f->role[y] == ROLE_END;
            int64_t tail = f->tail[y] + (ends ? f->ps[x] : 0);
            bool uses = f->role[y] == ROLE_COMPUTE && f->ps[y] > 0 && !f->feeder[y];
            uint32_t first = uses ? f->at[y] : f->needed[y];
            if (tail > after)
                after = tail;
            if (first < f->needed[x])
                f->needed[x] = first;
            for_gathers &= f->feeder[y] || is_gather_like(f, y);
        }
        f->tail[x] = after + (starts ? 0 : f->ps[x]);
        f->feeder[x] = for_gathers && f->e.user_at[x] < f->e.user_at[x + 1];
    }
}

/* Walks from the first op to the last: what comes before each op. */
static void look_ahead(struct op_facts *f)
{
    int64_t work = 0;

    for (uint32_t i = 0; i < f->n; i++) {
        uint32_t x = f->order[i];
        bool from_inputs = true;

        for (uint32_t k = f->e.need_at[x]; k < f->e.need_at[x + 1]; k++)
            from_inputs &= f->feeder[f->e.need[k]];
        f->feeder[x] &= from_inputs;
        f->gather[x] = f->role[x] == ROLE_START && from_inputs && f->needed[x] < f->n;
        f->work[i] = work;
        if (f->role[x] == ROLE_COMPUTE && !f->feeder[x])
            work += f->ps[x];
    }
    f->work[f->n] = work;
}

int list_by_needed(const void *facts, uint32_t x, uint32_t y)
{
    const struct op_facts *f = facts;

    if (f->needed[x] != f->needed[y])
        return f->needed[x] < f->needed[y] ? -1 : 1;
    return f->at[x] < f->at[y] ? -1 : f->at[x] > f->at[y];
}

/* When the gathers of a channel must begin at the latest so that each is there when it is needed:
 * from the last to the first, one after the other. */
static void find_due(struct op_facts *f)
{
    int64_t *next = arena_array(f->a, int64_t, f->n_channel);
    struct heap h;
    uint32_t n = 0, *sorted = arena_array(f->a, uint32_t, f->n);

    heap_begin(&h, f->a, f->n, list_by_needed, f);
    for (uint32_t x = 0; x < f->n; x++)
        if (f->gather[x])
            heap_push(&h, x);
    while (h.n > 0)
        sorted[n++] = heap_pop(&h);
    for (uint32_t c = 0; c < f->n_channel; c++)
        next[c] = INT64_MAX;
    while (n-- > 0) {
        uint32_t x = sorted[n], c = f->channel[x];
        int64_t end = f->work[f->needed[x]];
        if (next[c] < end)
            end = next[c];
        f->due[x] = next[c] = end - f->ps[x];
    }
}

void list_facts(struct op_facts *f, struct schedule *s, bool from_back, struct arena *a)
{
    uint32_t n = s->p->n_op;

    *f = (struct op_facts){.s = s, .p = s->p, .a = a, .n = n, .n_channel = s->p->n_group + 1};
    f->from_back = from_back;
    edges_build(s, EDGE_REAL | EDGE_ADDED | (schedule_is_free(s) ? EDGE_FENCES : EDGE_CHAIN), a,
                &f->e);
    f->order = arena_array(a, uint32_t, n);
    f->at = arena_array(a, uint32_t, n);
    f->role = arena_zeroed(a, n);
    f->channel = arena_array(a, uint32_t, n);
    f->ps = arena_array(a, int64_t, n);
    f->tail = arena_array(a, int64_t, n);
    f->work = arena_array(a, int64_t, (size_t)n + 1);
    f->feeder = arena_zeroed(a, n);
    f->gather = arena_zeroed(a, n);
    f->needed = arena_array(a, uint32_t, n);
    f->due = arena_zeroed(a, n * sizeof(*f->due));
    for (uint32_t i = 0; i < n; i++) {
        f->order[i] = s->order[from_back ? n - 1 - i : i];
        f->at[f->order[i]] = i;
    }
    roles_from_front(f);
    if (from_back)
        mirror(f);
    look_back(f);
    look_ahead(f);
    find_due(f);
}

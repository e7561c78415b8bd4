#include "base/csr.h"
#include "schedule/iter.h"

#include <math.h>

/* ---- begin and end ---- */

static uint32_t *numbers(struct iter *it, size_t n)
{
    return arena_zeroed(it->a, n * sizeof(uint32_t));
}

/* Which buffers an op keeps alive, among those that are ever freed. */
static void find_uses(struct iter *it)
{
    const struct problem *p = it->p;
    uint32_t *at = csr_begin(it->a, p->n_op), most = 0;

    for (uint32_t b = 0; b < p->n_buf; b++)
        for (uint32_t i = p->succ_at[b]; it->live.last[b] != PROBLEM_NONE && i < p->succ_at[b + 1];
             i++)
            csr_count(at, p->succ[i]);
    it->use = arena_array(it->a, uint32_t, csr_sum(at, p->n_op));
    for (uint32_t b = 0; b < p->n_buf; b++)
        for (uint32_t i = p->succ_at[b]; it->live.last[b] != PROBLEM_NONE && i < p->succ_at[b + 1];
             i++)
            it->use[csr_place(at, p->succ[i])] = b;
    it->use_at = at;
    for (uint32_t x = 0; x < p->n_op; x++)
        most = at[x + 1] - at[x] > most ? at[x + 1] - at[x] : most;
    it->change = arena_array(it->a, uint32_t, most);
}

/* Whole numbers that stay below 2^53 add up exactly. */
static bool sums_are_exact(const struct iter *it)
{
    double total = 0;

    for (uint32_t x = 0; x < it->p->n_op; x++) {
        if (it->rt[x] != floor(it->rt[x]))
            return false;
        total += it->rt[x];
    }
    return total < 9007199254740992.0;
}

void iter_begin(struct iter *it, struct schedule *s, struct arena *a)
{
    const struct problem *p = s->p;
    const struct schedule_options *o = &s->opt;
    uint32_t n = p->n_op;
    bool ignore = (o->slips & SLIP_FAKE_DEPS_IGNORED) != 0;

    *it = (struct iter){.s = s, .p = p, .a = a, .slips = o->slips, .torch = o->torch};
    it->prev = numbers(it, n);
    it->next = numbers(it, n);
    it->head = n > 0 ? s->order[0] : PROBLEM_NONE;
    it->rt = arena_array(a, double, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = s->order[i];
        it->prev[x] = i > 0 ? s->order[i - 1] : PROBLEM_NONE;
        it->next[x] = i + 1 < n ? s->order[i + 1] : PROBLEM_NONE;
        it->rt[x] = s->runtime[x] * (problem_is_coll(p, x)
                                         ? o->reorder_sink_runtime_estimations_comm_mult
                                         : o->reorder_sink_runtime_estimations_non_comm_mult);
    }
    it->exact_sums = sums_are_exact(it);
    edges_build(s, EDGE_REAL, a, &it->real);
    edges_build(s, ignore ? 0 : edges_fake(s), a, &it->fake);
    live_of(p, s->order, a, &it->live);
    if ((it->slips & SLIP_FIRST_OP_OWNS_INPUTS) && n > 0)
        it->live.alloc[it->head] += it->live.start;
    find_uses(it);
    it->member_of = numbers(it, n);
    it->index = numbers(it, n);
    it->touches = numbers(it, n);
    it->group = numbers(it, n);
    it->group_alloc = arena_array(a, int64_t, n);
    it->group_free = arena_array(a, int64_t, n);
    it->change_bytes = arena_zeroed(a, (size_t)n * sizeof(int64_t));
    it->stat = arena_array(a, struct schedule_stat, n);
    expose_begin(it);
}

void iter_end(struct iter *it, struct schedule_report *r)
{
    uint32_t i = 0;

    for (uint32_t x = it->head; x != PROBLEM_NONE; x = it->next[x])
        it->s->order[i++] = x;
    struct schedule_stat *stat = arena_array(&it->s->arena, struct schedule_stat, it->n_stat);
    if (it->n_stat > 0)
        memcpy(stat, it->stat, it->n_stat * sizeof(*stat));
    r->stat = stat;
    r->n_stat = it->n_stat;
}

/* ---- the group ---- */

static void touch(struct iter *it, uint32_t x, const struct edges *e, bool towards_front)
{
    const uint32_t *at = towards_front ? e->need_at : e->user_at,
                   *list = towards_front ? e->need : e->user;

    for (uint32_t i = at[x]; i < at[x + 1]; i++)
        it->touches[list[i]] = it->serial;
}

void iter_join(struct iter *it, uint32_t x, bool towards_front)
{
    uint32_t i = it->n_group++;

    it->group[i] = x;
    it->index[x] = i;
    it->member_of[x] = it->serial;
    it->group_alloc[i] = it->live.post_alloc[x] - it->shift;
    it->group_free[i] = it->live.post_free[x] - it->shift;
    if (i == 0 || it->group_alloc[i] > it->group_peak)
        it->group_peak = it->group_alloc[i];
    if (i == 0 || it->live.post_alloc[x] > it->stale_peak)
        it->stale_peak = it->live.post_alloc[x];
    touch(it, x, &it->real, towards_front);
    touch(it, x, &it->fake, towards_front);
}

void iter_group(struct iter *it, uint32_t op, bool towards_front)
{
    it->serial++;
    it->n_group = 0;
    it->shift = 0;
    it->passed = 0;
    it->first_passed = PROBLEM_NONE;
    iter_join(it, op, towards_front);
}

void iter_settle(struct iter *it, bool towards_front)
{
    for (uint32_t i = 0; i < it->n_group; i++) {
        it->live.post_alloc[it->group[i]] = it->group_alloc[i] + it->shift;
        it->live.post_free[it->group[i]] = it->group_free[i] + it->shift;
    }
    if (it->passed > 0)
        expose_moved(it, towards_front ? it->group[it->n_group - 1] : it->first_passed,
                     it->n_group + it->passed);
#ifdef TUCK_STRESS
    if (expose_is_wrong(it))
        abort();
#endif
}

/* ---- memory ---- */

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t present_peak(const struct iter *it)
{
    return it->slips & SLIP_STALE_GROUP_PEAK ? it->stale_peak : it->group_peak + it->shift;
}

static void note_change(struct iter *it, uint32_t buf, uint32_t index)
{
    it->change[it->n_change++] = buf;
    it->change_bytes[index] += it->p->size_free[buf];
    it->changed += it->p->size_free[buf];
    if (index >= it->change_end)
        it->change_end = index + 1;
}

void iter_stay(struct iter *it)
{
    for (uint32_t i = 0; i < it->change_end; i++)
        it->change_bytes[i] = 0;
    it->n_change = it->change_end = 0;
    it->changed = 0;
}

/* [x][group] → [group][x]: x becomes the last user of what both use and the group used last. Member
 * 0 is at the end of the group. */
int64_t iter_peak_front(struct iter *it, uint32_t x)
{
    const struct live *l = &it->live;
    int64_t delta = l->alloc[x] - l->freed[x], at_x = it->group_free[0] + it->shift - delta;

    for (uint32_t i = it->use_at[x]; i < it->use_at[x + 1]; i++) {
        uint32_t last = l->last[it->use[i]];
        if (iter_in_group(it, last))
            note_change(it, it->use[i], it->index[last]);
    }
    at_x += it->changed + l->alloc[x];
    if (it->n_change == 0)
        return most(present_peak(it) - delta, at_x);
    int64_t peak = at_x, more = it->shift - delta;
    for (uint32_t i = it->n_group; i > it->change_end; i--)
        peak = most(peak, it->group_alloc[i - 1] + more);
    for (uint32_t i = it->change_end; i > 0; i--) {
        peak = most(peak, it->group_alloc[i - 1] + more);
        more += it->change_bytes[i - 1];
    }
    return peak;
}

static int64_t largest(const int64_t *v, uint32_t n)
{
    int64_t m = v[0];

    for (uint32_t i = 1; i < n; i++)
        m = most(m, v[i]);
    return m;
}

static void link_ops(struct iter *it, uint32_t x, uint32_t y)
{
    if (x == PROBLEM_NONE)
        it->head = y;
    else
        it->next[x] = y;
    if (y != PROBLEM_NONE)
        it->prev[y] = x;
}

void iter_pass_front(struct iter *it, uint32_t x)
{
    struct live *l = &it->live;
    uint32_t first = it->group[it->n_group - 1], last = it->group[0];
    uint32_t before = it->prev[x], behind = it->next[last];
    int64_t more = 0;

    it->shift -= l->alloc[x] - l->freed[x];
    for (uint32_t i = it->change_end; i > 0; i--) {
        int64_t bytes = it->change_bytes[i - 1];
        it->group_alloc[i - 1] += more;
        it->group_free[i - 1] += more + bytes;
        l->freed[it->group[i - 1]] -= bytes;
        more += bytes;
    }
    for (uint32_t i = 0; i < it->n_change; i++)
        l->last[it->change[i]] = x;
    if (it->n_change > 0)
        it->group_peak = largest(it->group_alloc, it->n_group);
    l->freed[x] += it->changed;
    l->post_alloc[x] = it->group_free[0] + it->shift + l->alloc[x];
    l->post_free[x] = l->post_alloc[x] - l->freed[x];
    link_ops(it, before, first);
    link_ops(it, last, x);
    link_ops(it, x, behind);
    iter_stay(it);
    if (it->passed++ == 0)
        it->first_passed = x;
}

/* [group][x] → [x][group]: of what x used last and the group uses too, the last such member becomes
 * the last user. Member 0 is at the front of the group. */
int64_t iter_peak_back(struct iter *it, uint32_t x)
{
    const struct problem *p = it->p;
    const struct live *l = &it->live;
    int64_t delta = l->alloc[x] - l->freed[x];
    int64_t at_x = it->group_alloc[0] + it->shift - l->alloc[it->group[0]] + l->alloc[x];

    for (uint32_t i = it->use_at[x]; i < it->use_at[x + 1]; i++) {
        uint32_t b = it->use[i], last = PROBLEM_NONE;
        if (l->last[b] != x)
            continue;
        for (uint32_t k = p->succ_at[b]; k < p->succ_at[b + 1]; k++)
            if (iter_in_group(it, p->succ[k]) &&
                (last == PROBLEM_NONE || it->index[p->succ[k]] > last))
                last = it->index[p->succ[k]];
        if (last != PROBLEM_NONE)
            note_change(it, b, last);
    }
    if (it->n_change == 0)
        return most(present_peak(it) + delta, at_x);
    int64_t peak = at_x, more = it->shift + delta + it->changed;
    for (uint32_t i = 0; i < it->n_group; i++) {
        peak = most(peak, it->group_alloc[i] + more);
        more -= it->change_bytes[i];
    }
    return peak;
}

void iter_pass_back(struct iter *it, uint32_t x)
{
    const struct problem *p = it->p;
    struct live *l = &it->live;
    uint32_t first = it->group[0], last = it->group[it->n_group - 1];
    uint32_t before = it->prev[first], behind = it->next[x];
    int64_t more = it->changed;

    l->post_alloc[x] = it->group_alloc[0] + it->shift - l->alloc[first] + l->alloc[x];
    it->shift += l->alloc[x] - l->freed[x];
    for (uint32_t i = 0; i < it->change_end; i++) {
        int64_t bytes = it->change_bytes[i];
        it->group_alloc[i] += more;
        it->group_free[i] += more - bytes;
        l->freed[it->group[i]] += bytes;
        more -= bytes;
    }
    for (uint32_t i = 0; i < it->n_change && !(it->slips & SLIP_SINK_LAST_USE_STALE); i++) {
        uint32_t b = it->change[i], user = first;
        for (uint32_t k = p->succ_at[b]; k < p->succ_at[b + 1]; k++)
            if (iter_in_group(it, p->succ[k]) && it->index[p->succ[k]] > it->index[user])
                user = p->succ[k];
        l->last[b] = user;
    }
    if (it->n_change > 0)
        it->group_peak = largest(it->group_alloc, it->n_group);
    l->freed[x] -= it->changed;
    l->post_free[x] = l->post_alloc[x] - l->freed[x];
    link_ops(it, before, x);
    link_ops(it, x, first);
    link_ops(it, last, behind);
    iter_stay(it);
    if (it->passed++ == 0)
        it->first_passed = x;
}

/* ---- checks ---- */

static const char *wrong_memory(struct iter *it, const uint32_t *order)
{
    struct live l;

    live_of(it->p, order, it->a, &l);
    for (uint32_t b = 0; b < it->p->n_buf; b++)
        if (l.last[b] != it->live.last[b])
            return "the last user of a buffer";
    for (uint32_t x = 0; x < it->p->n_op; x++) {
        int64_t a = it->live.post_alloc[x], f = it->live.post_free[x];
        if (iter_in_group(it, x)) {
            a = it->group_alloc[it->index[x]] + it->shift;
            f = it->group_free[it->index[x]] + it->shift;
        }
        if (l.post_alloc[x] != a || l.post_free[x] != f)
            return "the memory of an op";
    }
    return NULL;
}

const char *iter_wrong(struct iter *it)
{
    struct arena_mark mark = arena_mark(it->a);
    uint32_t *order = arena_array(it->a, uint32_t, it->p->n_op), n = 0;
    const char *what = NULL;

    for (uint32_t x = it->head; x != PROBLEM_NONE && n < it->p->n_op; x = it->next[x])
        order[n++] = x;
    if (n != it->p->n_op)
        what = "the list of ops";
    else if (!(it->slips & (SLIP_FIRST_OP_OWNS_INPUTS | SLIP_SINK_LAST_USE_STALE)))
        what = wrong_memory(it, order);
    arena_release(it->a, mark);
    return what;
}

/* Schedules, and the checks around each pass. */
#include <math.h>
#include <stdio.h>

#include "plan/liveness.h"
#include "schedule/step.h"

const char *schedule_limit_name(enum schedule_limit limit)
{
    static const char *const names[N_LIMITS] = {
        [LIMIT_END] = "end",
        [LIMIT_COVERED] = "covered",
        [LIMIT_ORDER] = "order",
        [LIMIT_DEPENDENCY] = "dependency",
        [LIMIT_EXPOSES_GROUP] = "exposes_group",
        [LIMIT_EXPOSES_PASSED] = "exposes_passed",
        [LIMIT_COLLECTIVE] = "collective",
        [LIMIT_WAIT] = "wait",
        [LIMIT_MEMORY] = "memory",
        [LIMIT_MOVES] = "moves",
    };
    return names[limit];
}

/* ---- begin and end ---- */

static void do_begin(void *ctx)
{
    struct schedule *s = ctx;
    uint32_t n = s->p->n_op;

    s->order = arena_array(&s->arena, uint32_t, n);
    s->runtime = arena_array(&s->arena, double, n);
    for (uint32_t i = 0; i < n; i++) {
        s->order[i] = i;
        s->runtime[i] = s->p->runtime[i];
    }
}

bool schedule_begin(struct schedule *s, const struct problem *p, const struct schedule_options *opt)
{
    *s = (struct schedule){.p = p, .opt = *opt};
    mem_init(&s->mem, &p->mem.alloc);
    arena_init(&s->arena, &s->mem);
    if (mem_guard(&s->mem, do_begin, s))
        return true;
    schedule_end(s);
    return false;
}

void schedule_end(struct schedule *s)
{
    vec_free(&s->mem, &s->dep);
    vec_free(&s->mem, &s->report);
    arena_destroy(&s->arena);
}

/* ---- small passes ---- */

void schedule_estimate_runtimes(struct schedule *s, schedule_estimate_fn estimate, void *ctx)
{
    for (uint32_t x = 0; x < s->p->n_op; x++)
        s->runtime[x] = estimate(ctx, s->p, x);
    s->worth.known = false;
}

void schedule_show_runtimes(struct schedule *s)
{
    double compute = 0, comm = 0; /* in the problem's unit */
    char *note = arena_array(&s->arena, char, 96);

    for (uint32_t x = 0; x < s->p->n_op; x++) {
        if (problem_is_coll(s->p, x))
            comm += s->runtime[x];
        else if (!problem_is_wait(s->p, x))
            compute += s->runtime[x];
    }
    double us = s->p->unit_ps / PS_PER_US;
    snprintf(note, 96, "%.6g us of compute, %.6g us of communication", compute * us, comm * us);
    step_note(s, note);
}

void schedule_show_alignment(struct schedule *s)
{
    char *note = arena_array(&s->arena, char, 96);

    if (s->transport == NULL)
        snprintf(note, 96, "there is no other rank to ask");
    else if (s->medians_of == 0)
        snprintf(note, 96, "runtimes are this rank's own: ranks have different numbers of ops");
    else
        snprintf(note, 96, "runtimes are the medians of %u ranks", s->medians_of);
    step_note(s, note);
}

void schedule_decide_global_ordering(struct schedule *s)
{
    const struct problem *p = s->p;
    uint32_t previous = PROBLEM_NONE;

    for (uint32_t i = 0; i < p->n_op; i++) {
        uint32_t x = s->order[i];
        if (!problem_is_coll(p, x))
            continue;
        if (previous != PROBLEM_NONE)
            for (uint32_t b = p->out_at[previous]; b < p->out_at[previous + 1]; b++)
                vec_push(&s->mem, &s->dep, ((struct schedule_dep){x, b}));
        previous = x;
    }
}

/* ---- running one pass ---- */

struct run {
    struct schedule *s;
    const char *name;
    void (*pass)(struct schedule *s);
    uint32_t *before;
    uint32_t n_dep, n_report;
};

static double budget_of(const struct schedule *s, void (*pass)(struct schedule *s))
{
    const struct schedule_options *o = &s->opt;

    if (pass == schedule_reorder_iterative)
        return o->reorder_iterative_peak_memory_budget;
    if (pass == schedule_sink_iterative)
        return o->sink_iterative_peak_memory_budget;
    if (pass == schedule_raise_comms || pass == schedule_sink_waits ||
        pass == schedule_reorder_compute || pass == schedule_list_overlap ||
        pass == schedule_improve)
        return pass == schedule_improve && o->shrink > 0 ? -o->shrink : o->list_peak_memory_budget;
    return pass == schedule_call_own ? (double)NAN : 0; /* a caller's own pass has no limit */
}

int64_t schedule_allowance(int64_t peak, double budget)
{
    double most = 0x1p60, bytes = floor((double)peak * budget);

    if (isnan(bytes) || bytes > most)
        return (int64_t)most;
    return (int64_t)fmax(bytes, -most);
}

static const char more_exposed[] = "kept: more communication would be exposed";
static const char more_memory[] = "kept: the peak would grow beyond the budget";

/* Do the collectives keep the order that the pass must keep? */
static bool keeps_comms(const struct run *r)
{
    struct schedule *s = r->s;

    if (r->pass == schedule_reorder_iterative &&
        s->opt.reorder_iterative_unsafe_collectives_reorder)
        return true;
    if ((r->pass == schedule_list_overlap || r->pass == schedule_improve) && schedule_is_free(s))
        return schedule_keeps_fences(s, &s->arena);
    return schedule_keeps_comms(s->p, s->order, s->opt.keep_order, &s->arena) ||
           !schedule_keeps_comms(s->p, r->before, s->opt.keep_order, &s->arena);
}

/* Why an order is rejected, or NULL. */
static const char *objection(const struct run *r, struct schedule_report *report)
{
    struct schedule *s = r->s;

    if (!schedule_is_valid(s->p, s->order, false, &s->arena))
        return "kept: the order found was invalid";
    if (s->opt.torch)
        return NULL;
    if (!keeps_comms(r))
        return s->opt.keep_order ? "kept: collectives would change places"
                                 : "kept: collectives of a group would change places";
    if (report->peak_after - report->peak_before > report->allowance)
        return more_memory;
    if (!s->opt.allow_more_exposed && !report->saves_compute &&
        report->exposed_after > report->exposed_before)
        return more_exposed;
    return NULL;
}

static void measure(struct schedule *s, int64_t *peak, int64_t *exposed)
{
    *peak = live_peak(s->p, s->order, &s->arena);
    *exposed = schedule_time(s->p, s->runtime, s->order, &s->arena).exposed;
    s->n_measured++;
}

void schedule_knows(struct schedule *s, int64_t peak, int64_t exposed)
{
    s->worth = (struct schedule_worth){true, peak, exposed};
}

/* Makes ops of one node adjacent again, whatever a pass did: a text cannot have anything between
 * them. What must come before one of them must come before all, so this breaks no dependence. */
static void join_anchored(struct schedule *s)
{
    const struct problem *p = s->p;
    uint32_t n = 0;

    if (p->anchor == NULL || s->opt.torch)
        return;
    struct arena_mark mark = arena_mark(&s->arena);
    uint32_t *old = arena_array(&s->arena, uint32_t, p->n_op);
    memcpy(old, s->order, p->n_op * sizeof(*old));
    for (uint32_t i = 0; i < p->n_op; i++) {
        uint32_t x = old[i], first = x;
        if (p->anchor[x] != x)
            continue;
        while (first > 0 && p->anchor[first - 1] == x)
            first--;
        for (; first < p->n_op && p->anchor[first] == x; first++)
            s->order[n++] = first;
    }
    arena_release(&s->arena, mark);
}

/* ---- a part of an order ----
 * If the whole result of a pass is worse, a part of it may be better: the beginning of one order
 * followed by the remaining ops in the other. In both orders every op comes after what it needs, so
 * it does in the mix. */

enum { PARTS = 8 };

static void splice(uint32_t n, const uint32_t *head, uint32_t n_head, const uint32_t *rest,
                   bool *taken, uint32_t *out)
{
    assert(n_head <= n);
    memset(taken, 0, n);
    for (uint32_t i = 0; i < n_head; i++)
        taken[out[i] = head[i]] = true;
    for (uint32_t i = 0, k = n_head; i < n; i++)
        if (!taken[rest[i]])
            out[k++] = rest[i];
}

/* The goal of the pass counts first. */
static bool better(const struct run *r, const struct schedule_report *a,
                   const struct schedule_report *b)
{
    if (r->pass == schedule_peak_memory || a->exposed_after == b->exposed_after)
        return a->peak_after < b->peak_after;
    return a->exposed_after < b->exposed_after;
}

/* Replaces s->order by the best valid part of it. False: none is better than r->before. */
static bool take_part(const struct run *r, struct schedule_report *report)
{
    struct schedule *s = r->s;
    uint32_t n = s->p->n_op;
    uint32_t *found = arena_array(&s->arena, uint32_t, n),
             *best = arena_array(&s->arena, uint32_t, n);
    bool *taken = arena_array(&s->arena, bool, n), any = false;
    struct schedule_report as_it_is = *report, x = *report;

    as_it_is.peak_after = report->peak_before;
    as_it_is.exposed_after = report->exposed_before;
    *report = as_it_is;
    memcpy(found, s->order, n * sizeof(*found));
    for (uint32_t i = 0; i < 2 * (PARTS - 1); i++) {
        uint32_t n_head = (uint32_t)((uint64_t)n * (i / 2 + 1) / PARTS);
        bool old_first = i % 2;

        splice(n, old_first ? r->before : found, n_head, old_first ? found : r->before, taken,
               s->order);
        join_anchored(s);
        measure(s, &x.peak_after, &x.exposed_after);
        if (better(r, &x, report) && objection(r, &x) == NULL) {
            memcpy(best, s->order, n * sizeof(*best));
            *report = x;
            any = true;
        }
    }
    memcpy(s->order, any ? best : found, n * sizeof(*best));
    return any;
}

static void do_run(void *ctx)
{
    struct run *r = ctx;
    struct schedule *s = r->s;
    uint32_t n = s->p->n_op, n_dep = s->dep.len;

    r->before = arena_array(&s->arena, uint32_t, n);
    memcpy(r->before, s->order, n * sizeof(*r->before));
    vec_push(&s->mem, &s->report, ((struct schedule_report){.pass = r->name}));
    if (!s->worth.known) {
        measure(s, &s->worth.peak, &s->worth.exposed);
        s->worth.known = true;
    }
    step_report(s)->peak_before = s->worth.peak;
    step_report(s)->exposed_before = s->worth.exposed;
    double budget = budget_of(s, r->pass);
    if (budget < 0 && r->pass != schedule_improve) /* only this one can make it shrink */
        budget = 0;
    step_report(s)->allowance = schedule_allowance(step_report(s)->peak_before, budget);
    r->pass(s);
    join_anchored(s);

    struct schedule_report *report = step_report(s);
    if (memcmp(s->order, r->before, n * sizeof(*r->before)) != 0) {
        measure(s, &report->peak_after, &report->exposed_after);
    } else {
        report->peak_after = report->peak_before;
        report->exposed_after = report->exposed_before;
    }
    const char *why = objection(r, report);
    bool may_part = why == more_exposed || (why == more_memory && s->p->anchor != NULL);
    if (may_part && s->dep.len == n_dep && take_part(r, report)) {
        report->note = why == more_exposed
                           ? "taken in part: the whole would expose more communication"
                           : "taken in part: the whole would need more memory";
    } else if (why != NULL) {
        memcpy(s->order, r->before, n * sizeof(*r->before));
        s->dep.len = n_dep;
        report->note = why;
        report->peak_after = report->peak_before;
        report->exposed_after = report->exposed_before;
    }
    assert_hot(schedule_is_valid(s->p, s->order, false, &s->arena) ||
               !schedule_is_valid(s->p, r->before, false, &s->arena));
    for (uint32_t i = 0; i < n; i++)
        report->displaced += s->order[i] != r->before[i];
    schedule_knows(s, report->peak_after, report->exposed_after);
}

tuck_status schedule_run(struct schedule *s, const char *name, void (*pass)(struct schedule *s))
{
    struct run r = {s, name, pass, NULL, s->dep.len, s->report.len};
    uint32_t *order = s->order;

    if (mem_guard(&s->mem, do_run, &r))
        return TUCK_OK;
    /* Everything as before, except for memory, which is freed with the schedule. */
    s->dep.len = r.n_dep;
    s->report.len = r.n_report;
    if (r.before != NULL)
        memcpy(order, r.before, s->p->n_op * sizeof(*order));
    return TUCK_ENOMEM;
}

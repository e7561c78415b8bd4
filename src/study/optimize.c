/* Tuck's own passes: several ways to bucket are tried on copies, each with several orders; each
 * result is lowered and simulated, and the fastest within the memory limit is kept. If none is
 * faster, the graph stays unchanged, and the report says so. */
#include "study/optimize.h"

#include "rewrite/loops.h"
#include "rewrite/waits.h"
#include "schedule/schedule.h"
#include "search/exact.h"
#include "study/judge.h"
#include "study/rival.h"
#include "study/tries.h"

/* ---- stages ---- */

/* Asks the caller; one try is always made. About how many tries there will be depends on the effort
 * only. */
static bool go_on(const struct search *s)
{
    static const uint32_t expected[] = {12, 40, 55, 70, 80, 100, 150, 220, 340, 600};
    const struct optimize_options *o = s->o;
    double done = (double)s->tries / expected[o->effort];
    tuck_progress now = {.step_ps = s->best.ps == INT64_MAX ? -1 : s->best.ps,
                         .bound_ps = s->bound_ps,
                         .done = done < 0.95 ? done : 0.95,
                         .tries = s->tries};

    bool more = o->progress == NULL || o->progress(o->progress_ctx, &now);
    return s->tries == 0 || (more && (o->tries == 0 || s->tries < o->tries));
}

tuck_status try_next(struct search *s, const struct stage *from, const struct pass *pass,
                     const char *option, double value, struct stage *to)
{
    *to = (struct stage){.from = NULL};
    s->stopped = s->stopped || !go_on(s);
    if (s->stopped)
        return TUCK_EIO;
    s->tries++;
    return stage_next(&s->runner, from, pass, option, value, s->diags, to);
}

tuck_status try_next_with(struct search *s, const struct stage *from, const struct pass *pass,
                          const char *options, bool may_fail, struct stage *to)
{
    *to = (struct stage){.from = NULL};
    s->stopped = s->stopped || !go_on(s);
    if (s->stopped)
        return TUCK_EIO;
    s->tries++;
    return stage_next_with(&s->runner, from, pass, options, may_fail ? NULL : s->diags, to);
}

/* What was found until the search was stopped is its result. */
static tuck_status or_stopped(const struct search *s, tuck_status st)
{
    return st == TUCK_EIO && s->stopped ? TUCK_OK : st;
}

static bool is_faster(const struct search *s, const struct evaluation *e)
{
    const struct best *b = &s->best;
    int64_t ps = e->time.makespan;

    return ps < b->ps || (b->g != NULL && ps == b->ps && e->flight < b->e->flight);
}

/* A thousandth of the time is not worth more bytes in flight, unless the fastest of all is looked
 * for. */
static bool is_light(const struct search *s, const struct evaluation *e)
{
    const struct best *b = &s->best, *light = &s->light;

    return !s->small && b->g != NULL && e->time.makespan - b->ps <= best_slack(b) &&
           e->flight < b->e->flight && (!best_is_light(b, light) || e->flight < light->e->flight);
}

/* What was the best is the second now, if it is another decision, and may be the light one. */
static tuck_status take(struct search *s, const struct stage *x, bool other)
{
    struct best was = s->best;
    tuck_status st = TUCK_OK;

    s->best = (struct best){.g = NULL};
    st = best_take(&s->best, s->study, x);
    if (st != TUCK_OK) {
        s->best = was;
        return st;
    }
    if (other && was.g != NULL)
        st = runner_up_offer(&s->second, was.g, was.e);
    if (st == TUCK_OK && other && was.g != NULL && is_light(s, was.e)) {
        best_end(&s->light);
        s->light = was;
        return TUCK_OK;
    }
    best_end(&was);
    return st;
}

tuck_status try_offer(struct search *s, const struct stage *x, bool *fits)
{
    *fits = x->e->peak <= s->limit;
    if (!*fits)
        return TUCK_OK;
    if (is_faster(s, x->e))
        return take(s, x, true);
    if (is_light(s, x->e)) {
        tuck_status st = best_take(&s->light, s->study, x);
        if (st != TUCK_OK)
            return st;
    }
    bool other = s->best.g == NULL || s->best.e->revision != x->g->revision;
    return other ? runner_up_offer(&s->second, x->g, x->e) : TUCK_OK;
}

tuck_status try_start(struct search *s, const struct stage *x, enum origin origin)
{
    enum { NEAR = 20 };
    const struct best *was = &s->start[origin];
    int64_t ps = x->e->time.makespan;
    bool near = s->best.g == NULL || ps - s->best.ps <= s->best.ps / NEAR;

    if (s->o->effort == 0 || s->small || x->e->peak > s->limit || !near ||
        (was->g != NULL && was->ps <= ps))
        return TUCK_OK;
    return best_take(&s->start[origin], s->study, x);
}

/* The light one is the best now, unless a tenth of the lead over PyTorch's own is lost with it. */
static tuck_status choose_light(struct search *s)
{
    enum { PART_OF_LEAD = 10 };
    int64_t lead = s->theirs_ps != INT64_MAX ? s->theirs_ps - s->best.ps : INT64_MAX;

    if (!best_is_light(&s->best, &s->light) || s->light.ps - s->best.ps > lead / PART_OF_LEAD)
        return TUCK_OK;
    struct best was = s->best;
    s->best = s->light;
    s->light = was;
    return runner_up_offer(&s->second, was.g, was.e);
}

/* ---- the whole ---- */

static void fill_gain(const struct evaluation *e, tuck_gain *out, bool after)
{
    judge_times(e, after ? &out->after : &out->before);
    if (!after)
        judge_bound(e, out);
}

static int64_t limit_of(const struct optimize_options *o, int64_t peak)
{
    double limit = (double)peak * (1 + o->memory_share) + (double)o->memory_more;

    if (o->memory > 0)
        return o->memory;
    return limit < 9e18 ? (int64_t)limit : INT64_MAX;
}

/* Moves loops together and fuses them. *base is the result if that saves compute and fits. */
static tuck_status try_loops(struct search *s, const struct stage *from, struct stage at[2],
                             const struct stage **base)
{
    tuck_status st = try_next(s, from, &pass_gather_loops, NULL, 0, &at[0]);

    *base = from;
    if (st == TUCK_OK)
        st = try_next(s, &at[0], &pass_join_loops, NULL, 0, &at[1]);
    if (st == TUCK_OK && at[1].e->time.compute < from->e->time.compute &&
        (at[1].e->peak <= s->limit || at[1].e->peak <= from->e->peak))
        *base = &at[1];
    return st;
}

tuck_status try_constants(struct search *s, const struct stage *from, struct stage *to,
                          const struct stage **base)
{
    tuck_status st = try_next(s, from, &pass_repeat_constants, NULL, 0, to);

    *base = st == TUCK_OK && to->g->revision != from->g->revision ? to : from;
    return st;
}

/* Tries every way to bucket with every order. */
static tuck_status try_own(struct search *s, const struct stage *first)
{
    struct stage x, repeated = {.from = NULL}, joined[2] = {{.from = NULL}};
    const struct stage *apart = NULL, *base = NULL;

    tuck_status st = try_next(s, first, &pass_deduplicate_wait_tensors, NULL, 0, &x);
    if (st == TUCK_OK)
        st = try_constants(s, &x, &repeated, &apart);
    if (st == TUCK_OK)
        st = try_loops(s, apart, joined, &base);
    if (st == TUCK_OK)
        st = try_starts(s, base);
    if (st == TUCK_OK && base != apart && s->o->effort > 0)
        st = try_starts(s, apart);
    if (st == TUCK_OK && !s->study->o->keep_order) /* a bucket would be another sequence */
        st = try_buckets(s, base, apart);
    if (st == TUCK_OK && s->o->effort > 0)
        st = try_small(s, apart);
    if (st == TUCK_OK && base != apart && s->o->effort > 0 &&
        (!s->small || s->small_ps != INT64_MAX))
        st = try_small(s, base);
    stage_end(&joined[1]);
    stage_end(&joined[0]);
    stage_end(&repeated);
    stage_end(&x);
    return st;
}

/* Small changes to the order of one of the best. */
static tuck_status try_changes(struct search *s, const struct best *from, int64_t part)
{
    struct stage first, changed = {.from = NULL}, joined = {.from = NULL};
    bool fits;

    stage_first(&first, from->g, from->e, from->report);
    tuck_status st = try_improve(s, &first, part, &changed);
    if (st == TUCK_OK)
        st = try_next(s, &changed, &pass_join_loops, NULL, 0, &joined);
    const struct stage *best = st == TUCK_OK && joined.e->peak <= s->limit &&
                                       joined.e->time.makespan < changed.e->time.makespan
                                   ? &joined
                                   : &changed;
    if (st == TUCK_OK)
        st = try_offer(s, best, &fits);
    stage_end(&joined);
    stage_end(&changed);
    return st;
}

static bool is_near(const struct search *s, const struct best *x, int64_t part)
{
    return x->g != NULL && x->ps - s->best.ps <= s->best.ps / part;
}

/* A few small changes to each start that is near the best, then many to the best of all. */
static tuck_status try_all_changes(struct search *s)
{
    enum { NEAR = 50, FEW = 4 };
    tuck_status st = TUCK_OK;
    uint32_t n = 0;

    for (uint32_t i = 0; i < N_ORIGINS; i++)
        n += is_near(s, &s->start[i], NEAR);
    for (uint32_t i = 0; i < N_ORIGINS && n > 1 && st == TUCK_OK; i++)
        if (is_near(s, &s->start[i], NEAR))
            st = try_changes(s, &s->start[i], FEW);
    return st == TUCK_OK ? try_changes(s, &s->best, 1) : st;
}

/* The best with something later, in the same time: gathers that begin when they must, waits for
 * what may take longer than it was measured alone. */
static tuck_status try_late(struct search *s, const struct pass *pass)
{
    struct stage first, late = {.from = NULL};

    stage_first(&first, s->best.g, s->best.e, s->best.report);
    tuck_status st = try_next(s, &first, pass, NULL, 0, &late);
    if (st == TUCK_OK && late.g->revision != first.g->revision && late.e->peak <= s->limit &&
        late.e->time.makespan <= s->best.ps)
        st = take(s, &late, false); /* the same decision */
    stage_end(&late);
    return st;
}

/* PyTorch's own, and everything of ours; the best is in s->best. */
static tuck_status try_all(struct search *s, tuck_graph *g, struct evaluation *e)
{
    struct stage first;
    struct rival rival;

    stage_first(&first, g, e, NULL);
    tuck_status st = rival_run(&s->runner, &first, &rival);
    rival_report(&rival, s->limit, &s->rival);
    if (!s->rival.fits && s->o->effort == 0)
        rival_end(&rival); /* nothing begins there */
    if (st == TUCK_OK)
        st = try_own(s, &first);
    if (st == TUCK_OK && rival.stage.g != NULL)
        st = try_rival(s, &rival.stage);
    st = or_stopped(s, st);
    if (st == TUCK_OK && s->rival.fits)
        s->theirs_ps = s->rival.times.step_ps;
    if (st == TUCK_OK && s->rival.fits && s->rival.times.step_ps < s->best.ps)
        st = take(s, &rival.stage, true);
    rival_end(&rival);
    if (st == TUCK_OK && s->best.g != NULL && s->o->effort > 0)
        st = or_stopped(s, try_all_changes(s));
    const tuck_graph *was = s->best.g;
    if (st == TUCK_OK)
        st = or_stopped(s, try_named(s, &first));
    if (st == TUCK_OK && s->best.g != was && s->o->effort > 0)
        st = or_stopped(s, try_changes(s, &s->best, 1));
    if (st == TUCK_OK)
        st = or_stopped(s, try_one_shot(s, &first));
    if (st == TUCK_OK)
        st = choose_light(s);
    if (st == TUCK_OK && s->best.g != NULL && s->o->effort > 0)
        st = or_stopped(s, try_late(s, &pass_issue_late));
    if (st == TUCK_OK && s->best.g != NULL && s->o->effort > 0 && s->machine->contention)
        st = or_stopped(s, try_late(s, &pass_sink_waits));
    return st;
}

/* Finds out about the original graph before anything is tried. */
static tuck_status look(struct search *s, tuck_graph *g, struct evaluation *e, tuck_gain *gain)
{
    s->limit = gain->memory_limit = limit_of(s->o, e->peak);
    s->less = s->limit < e->peak;
    /* Whole bytes, whatever a product of doubles is rounded to. */
    s->budget = e->peak > 0 && s->limit > e->peak ? ((double)s->limit + 0.5) / (double)e->peak - 1
                                                  : 0;
    s->best.ps = s->less ? INT64_MAX : e->time.makespan;
    s->small = e->problem->n_op <= EXACT_MOST_OPS && !s->o->no_exact && s->o->effort > 0;
    s->gaps = e->gaps;
    s->unbacked = e->program->used_default;
    s->communicates = evaluation_communicates(e);
    tuck_status st = study_bound(s->study, g, e);
    s->bound_ps = evaluation_is_bounded(e) ? e->any.ps : -1;
    fill_gain(e, gain, false);
    gain->after = gain->before;
    return st == TUCK_OK ? gaps_tell(e->program, s->machine->strict, s->diags) : st;
}

/* Evaluates the original graph, tries everything, and takes the best. */
static tuck_status search(struct search *s, tuck_graph *g, tuck_gain *gain, tuck_report **report)
{
    struct evaluation *e;
    tuck_status st = study_get(s->study, g, s->diags, &e);

    if (st != TUCK_OK)
        return st;
    st = look(s, g, e, gain);
    if (st == TUCK_OK)
        st = try_all(s, g, e);
    study_give_back(e);
    gain->over_limit = s->less && s->best.g == NULL;
    if (st != TUCK_OK || s->best.g == NULL)
        return st;
    study_best(s->study, s->best.e);
    fill_gain(s->best.e, gain, true);
    gain->changed = true;
    graph_swap(g, s->best.g);
    tuck_report_free(*report);
    *report = s->best.report;
    s->best.report = NULL;
    return runner_up_judge(&s->second, s->study, g, s->best.e, &(*report)->contended);
}

struct remember_args {
    tuck_report *report;
    const struct search *s;
    const tuck_graph *g;
};

static void do_remember(void *arg)
{
    struct remember_args *x = arg;
    tuck_report *t = x->report;

    t->judged = true;
    t->rival = x->s->rival;
    t->optimal = x->s->small_ps != INT64_MAX && x->s->best.ps <= x->s->small_ps && !x->s->stopped &&
                 x->s->gaps.n_unknown == 0;
    t->ops_unknown = x->s->gaps.n_unknown;
    t->buffers_unknown = x->s->gaps.n_buf;
    t->unbacked = x->s->unbacked;
    t->remark = x->s->communicates ? NULL : evaluation_no_collectives;
    report_assume(t, x->g, x->s->machine->cluster);
}

static tuck_status search_and_report(struct search *s, tuck_graph *g, tuck_gain *gain,
                                     tuck_report **report)
{
    tuck_status st = search(s, g, gain, report);

    runner_up_end(&s->second);
    (*report)->tries = s->tries;
    (*report)->stopped = s->stopped;
    struct remember_args about = {*report, s, g};
    if (st == TUCK_OK && !mem_guard(&(*report)->mem, do_remember, &about))
        st = TUCK_ENOMEM;
    (*report)->gain = *gain;
    best_end(&s->best);
    best_end(&s->light);
    for (uint32_t i = 0; i < N_ORIGINS; i++)
        best_end(&s->start[i]);
    return st;
}

tuck_status optimize_graph(struct study *study, tuck_graph *g, const struct optimize_options *o,
                           tuck_diags *diags, tuck_gain *gain_out, tuck_report **report_out)
{
    struct search s = {.diags = diags,
                       .o = o,
                       .study = study,
                       .machine = study->o->machine,
                       .small_ps = INT64_MAX,
                       .theirs_ps = INT64_MAX};
    tuck_gain gain = {.changed = false};

    s.runner = (struct runner){.study = study, .observer = o->observer};
    tuck_report *report = report_new(&g->store->mem.alloc); /* of a graph that stays as it is */
    tuck_status st = report ? runner_check_input(g, diags) : TUCK_ENOMEM;
    if (st == TUCK_OK)
        st = search_and_report(&s, g, &gain, &report);
    if (st == TUCK_OK && gain_out != NULL)
        *gain_out = gain;
    if (st == TUCK_OK && report_out != NULL)
        *report_out = report;
    else
        tuck_report_free(report);
    return st;
}

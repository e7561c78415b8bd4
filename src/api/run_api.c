/* Running passes in the public interface: a pipeline's, or Tuck's own. */
#include "api/api.h"
#include "api/pass_api.h"
#include "api/simulate_api.h"
#include "study/decision.h"
#include "study/digest.h"
#include "study/judge.h"
#include "study/optimize.h"

/* What both have in common: the machine, the study on it, and the original graph. */
struct run {
    tuck_run_options o;
    tuck_graph *g, *before; /* before: a clone, if requested; or NULL */
    tuck_diags *diags;
    struct given_machine *given;
    struct evaluate_options eval;
    struct study study;
    uint64_t sequence; /* digest of the graph before; study/digest.h */
    bool has_sequence;
};

static tuck_status run_begin(struct run *r, const tuck_run_options *options, enum machine_need need)
{
    const tuck_allocator *alloc = &r->g->store->mem.alloc;

    tuck_run_options_init(&r->o);
    if (options_take(&r->o, sizeof(r->o), options) != TUCK_OK ||
        (unsigned)r->o.order > TUCK_ORDER_OF_ALL || r->o.effort > OPTIMIZE_EFFORT_MAX)
        return TUCK_EINVAL;
    tuck_status st = machine_take(r->o.machine, r->g, need, r->diags, &r->given);
    if (st != TUCK_OK)
        return st;
    evaluate_defaults(&r->eval, &r->given->machine);
    r->eval.keep_order = r->o.order == TUCK_ORDER_OF_ALL;
    r->eval.keep_groups = r->o.order != TUCK_ORDER_FREE;
    study_begin(&r->study, &r->eval, alloc);
    if (r->o.judge == TUCK_JUDGE_NOTHING && r->o.before_out == NULL && r->o.after_out == NULL &&
        r->o.decision_out == NULL)
        return TUCK_OK;
    r->before = graph_clone(r->g);
    return r->before != NULL ? TUCK_OK : TUCK_ENOMEM;
}

static void run_end(struct run *r)
{
    if (r->given != NULL)
        study_end(&r->study);
    machine_drop(r->given);
    graph_free(r->before);
}

/* What cannot be simulated is skipped. */
static tuck_status or_left_out(tuck_status st)
{
    return st == TUCK_ENOMEM ? st : TUCK_OK;
}

/* out: the caller gets the simulation, with all bounds. */
static tuck_status evaluate(struct run *r, tuck_graph *g, bool out, struct evaluation **e)
{
    tuck_status st = study_get(&r->study, g, NULL, e);

    if (st == TUCK_OK && g == r->before)
        st = study_bound(&r->study, g, *e);
    return st == TUCK_OK && out ? study_bounds(&r->study, g, *e) : st;
}

static tuck_status give_out(struct run *r, struct evaluation *before, struct evaluation *after)
{
    tuck_simulation *s = NULL;
    tuck_status st = TUCK_OK;

    if (r->o.after_out != NULL) {
        st = simulation_of(r->given, r->g, after, &s);
        if (st == TUCK_OK)
            s->keep_order = r->eval.keep_order;
        *r->o.after_out = s;
        s = NULL;
    }
    if (st != TUCK_OK || r->o.before_out == NULL)
        return st;
    st = simulation_of(r->given, r->before, before, &s);
    if (st == TUCK_OK) {
        s->own = r->before;
        s->keep_order = r->eval.keep_order;
        r->before = NULL;
        *r->o.before_out = s;
    } else if (r->o.after_out != NULL) { /* both or neither */
        tuck_simulation_free(*r->o.after_out);
        *r->o.after_out = NULL;
    }
    return st;
}

/* Compares the original graph with the result, for the report and for the caller if requested. */
static tuck_status compare(struct run *r, bool judge, tuck_report *report)
{
    struct evaluation *before = NULL, *after = NULL;

    if (r->before == NULL)
        return TUCK_OK;
    if (r->o.before_out != NULL)
        *r->o.before_out = NULL;
    if (r->o.after_out != NULL)
        *r->o.after_out = NULL;
    tuck_status st = machine_need_times(r->given, r->before, NULL);
    if (st == TUCK_OK)
        st = tuck_graph_infer(r->g, TUCK_TRUST_ANNOTATIONS, NULL);
    if (st == TUCK_OK)
        st = evaluate(r, r->before, r->o.before_out != NULL, &before);
    if (st == TUCK_OK)
        st = evaluate(r, r->g, r->o.after_out != NULL, &after);
    if (st == TUCK_OK && judge)
        st = judge_report(r->before, r->given->machine.cluster, before, after, report);
    if (st == TUCK_OK)
        st = give_out(r, before, after);
    study_give_back(before);
    study_give_back(after);
    return or_left_out(st);
}

/* The digest of g's sequence; *known: false if there is none, or types cannot be inferred. */
static tuck_status find_sequence(const struct run *r, tuck_graph *g, bool *known, uint64_t *out)
{
    struct assume symbols = machine_symbols(&r->given->machine, g->store);
    struct sequence s;
    tuck_status st = tuck_graph_infer(g, TUCK_TRUST_ANNOTATIONS, NULL);

    *known = false;
    if (st != TUCK_OK)
        return or_left_out(st);
    st = sequence_of(g, &symbols, &s);
    *known = st == TUCK_OK && s.text.len > 0;
    *out = s.digest;
    sequence_end(&s);
    return st;
}

static tuck_status note_sequence(const struct run *r, tuck_report *t)
{
    tuck_status st = find_sequence(r, r->g, &t->has_sequence, &t->sequence);

    t->resequenced = t->has_sequence && r->has_sequence && t->sequence != r->sequence;
    return st;
}

/* What was done, if requested; *out is NULL otherwise, and after a failure. */
static tuck_status decide(struct run *r, const tuck_report *report, tuck_decision **out)
{
    const struct runner runner = {.study = &r->study};

    *out = NULL;
    if (r->o.decision_out == NULL)
        return TUCK_OK;
    tuck_status st = machine_need_times(r->given, r->before, r->diags);
    if (st != TUCK_OK)
        return st;
    tuck_decision *d = decision_new(&r->g->store->mem.alloc);
    if (d == NULL)
        return TUCK_ENOMEM;
    st = decision_record(d, &runner, r->before, report, r->g, r->diags);
    if (st == TUCK_OK)
        *out = d;
    else
        tuck_decision_free(d);
    return st;
}

/* A pipeline is judged after it was recorded. */
static void promise(tuck_decision *d, const tuck_report *report)
{
    if (d == NULL || !report->judged)
        return;
    d->step_ps = report->gain.after.step_ps;
    d->peak = report->gain.after.peak_bytes;
}

/* Hands it out on success. */
static void give_decision(const struct run *r, tuck_status st, tuck_decision *d)
{
    if (st == TUCK_OK && d != NULL)
        *r->o.decision_out = d;
    else
        tuck_decision_free(d);
}

/* ---- a pipeline ---- */

static bool needs_times(const struct pipeline *p)
{
    for (uint32_t i = 0; i < p->step.len; i++)
        if (p->step.at[i].pass->on_order != NULL || (p->step.at[i].pass->needs & PASS_TIMES))
            return true;
    return false;
}

bool tuck_pipeline_is_timed(const tuck_pipeline *p)
{
    return p != NULL && needs_times(&p->p);
}

struct assumed_args {
    const struct run *r;
    tuck_report *report;
};

static void do_note_assumed(void *arg)
{
    struct assumed_args *x = arg;

    report_assume(x->report, x->r->g, x->r->given->machine.cluster);
}

/* Passes on orders report times, even if the step's times were not requested. */
static tuck_status note_assumed(struct run *r, tuck_report *report)
{
    struct assumed_args x = {r, report};

    return mem_guard(&report->mem, do_note_assumed, &x) ? TUCK_OK : TUCK_ENOMEM;
}

static void note_contention(const struct run *r, tuck_report *report)
{
    const struct machine *m = &r->given->machine;

    if (m->contention && report->judged)
        report->contention = tuck_cluster_contention(m->cluster);
}

tuck_status tuck_pipeline_run(const tuck_pipeline *p, tuck_graph *g,
                              const tuck_run_options *options, tuck_diags *diags,
                              tuck_report **report_out)
{
    struct run r = {.g = g, .diags = diags};

    if (p == NULL || g == NULL)
        return TUCK_EINVAL;
    tuck_status st = run_begin(&r, options, needs_times(&p->p) ? MACHINE_TIMES : MACHINE_SYMBOLS);
    tuck_report *report = st == TUCK_OK ? report_new(&g->store->mem.alloc) : NULL;
    if (st == TUCK_OK && report == NULL)
        st = TUCK_ENOMEM;
    if (st == TUCK_OK) {
        struct runner runner = {.study = &r.study, .observer = {r.o.observe, r.o.ctx}};
        bool judge = r.o.judge == TUCK_JUDGE_RESULT;
        if (needs_times(&p->p))
            st = note_assumed(&r, report);
        if (st == TUCK_OK && judge)
            st = find_sequence(&r, g, &r.has_sequence, &r.sequence);
        if (st == TUCK_OK)
            st = pipeline_run(&p->p, g, &runner, report, diags);
        if (st == TUCK_OK)
            st = judge ? note_sequence(&r, report) : TUCK_OK;
        tuck_decision *decision = NULL;
        if (st == TUCK_OK)
            st = decide(&r, report, &decision);
        if (st == TUCK_OK)
            st = compare(&r, judge, report);
        promise(decision, report);
        give_decision(&r, st, decision);
        note_contention(&r, report);
        report->work = r.study.work;
    }
    run_end(&r);
    if (report_out != NULL && report != NULL)
        *report_out = report; /* also after a failure: what was done until then */
    else
        tuck_report_free(report);
    return st;
}

/* ---- Tuck's own passes ---- */

tuck_status tuck_graph_optimize(tuck_graph *g, const tuck_run_options *options, tuck_diags *diags,
                                tuck_gain *gain_out, tuck_report **report_out)
{
    struct run r = {.g = g, .diags = diags};
    tuck_report *report = NULL;
    tuck_decision *decision = NULL;

    if (g == NULL)
        return TUCK_EINVAL;
    tuck_status st = run_begin(&r, options, MACHINE_TIMES);
    if (st == TUCK_OK) {
        struct optimize_options o = {.observer = {r.o.observe, r.o.ctx},
                                     .memory = r.o.memory,
                                     .memory_more = r.o.memory_more,
                                     .memory_share = r.o.memory_share,
                                     .effort = r.o.effort,
                                     .progress = r.o.progress,
                                     .progress_ctx = r.o.progress_ctx,
                                     .tries = r.o.tries};
        st = find_sequence(&r, g, &r.has_sequence, &r.sequence);
        if (st == TUCK_OK)
            st = optimize_graph(&r.study, g, &o, diags, gain_out, &report);
    }
    if (st == TUCK_OK)
        st = note_sequence(&r, report);
    if (st == TUCK_OK)
        st = decide(&r, report, &decision);
    if (st == TUCK_OK)
        st = compare(&r, false, report);
    give_decision(&r, st, decision);
    if (report != NULL) {
        report->work = r.study.work;
        note_contention(&r, report);
    }
    run_end(&r);
    if (st == TUCK_OK && report_out != NULL)
        *report_out = report;
    else
        tuck_report_free(report);
    return st;
}

/* ---- a decision ---- */

static void compare_promise(const tuck_decision *d, const tuck_report *t, tuck_diags *diags)
{
    const tuck_times *is = &t->gain.after;

    if (!t->judged || d->step_ps < 0 || (is->step_ps == d->step_ps && is->peak_bytes == d->peak))
        return;
    diag_add(diags, TUCK_WARNING, NOWHERE, "another machine, or another version of Tuck",
             "the decision promises %.3f ms and %.2f MiB on %s, and it takes %.3f ms and %.2f MiB "
             "here",
             (double)d->step_ps / 1e9, (double)d->peak / 1048576, d->machine,
             (double)is->step_ps / 1e9, (double)is->peak_bytes / 1048576);
}

/* On a copy, which becomes the graph if everything is as it should be; *was is the old one. */
static tuck_status apply(struct run *r, const tuck_decision *d, tuck_report *report,
                         tuck_graph **was)
{
    const struct runner runner = {.study = &r->study, .observer = {r->o.observe, r->o.ctx}};
    tuck_status st = runner_check_input(r->g, r->diags);

    if (st == TUCK_OK)
        st = tuck_graph_infer(r->g, TUCK_TRUST_ANNOTATIONS, r->diags);
    if (st == TUCK_OK)
        st = decision_check(d, r->g, r->diags);
    tuck_graph *work = st == TUCK_OK ? graph_clone(r->g) : NULL;
    if (st == TUCK_OK && work == NULL)
        st = TUCK_ENOMEM;
    if (st == TUCK_OK)
        st = decision_run(d, &runner, work, report, r->diags);
    if (st == TUCK_OK) {
        graph_swap(r->g, work);
        *was = work;
    } else {
        graph_free(work);
    }
    return st;
}

tuck_status tuck_decision_apply(const tuck_decision *d, tuck_graph *g,
                                const tuck_run_options *options, tuck_diags *diags,
                                tuck_report **report_out)
{
    struct run r = {.g = g, .diags = diags};
    tuck_report *report = NULL;
    tuck_graph *was = NULL;

    if (d == NULL || g == NULL)
        return TUCK_EINVAL;
    tuck_status st = run_begin(&r, options, MACHINE_TIMES);
    if (st == TUCK_OK) {
        report = report_new(&g->store->mem.alloc);
        st = report != NULL ? find_sequence(&r, g, &r.has_sequence, &r.sequence) : TUCK_ENOMEM;
    }
    if (st == TUCK_OK)
        st = apply(&r, d, report, &was);
    if (st == TUCK_OK)
        st = note_sequence(&r, report);
    if (st == TUCK_OK)
        st = compare(&r, r.o.judge == TUCK_JUDGE_RESULT, report);
    if (st == TUCK_OK) {
        compare_promise(d, report, diags);
        note_contention(&r, report);
        report->work = r.study.work;
    } else if (was != NULL) {
        graph_swap(g, was);
    }
    graph_free(was);
    run_end(&r);
    if (st == TUCK_OK && report_out != NULL)
        *report_out = report;
    else
        tuck_report_free(report);
    return st;
}

#include "study/judge.h"

void judge_times(const struct evaluation *e, tuck_times *out)
{
    *out = (tuck_times){.step_ps = e->time.makespan,
                        .compute_ps = e->time.compute,
                        .comm_ps = e->time.comm,
                        .exposed_ps = e->time.exposed,
                        .launch_ps = e->time.launch,
                        .slowed_ps = e->slowed,
                        .peak_bytes = e->peak,
                        .resident_bytes = e->resident};
}

void judge_bound(const struct evaluation *e, tuck_gain *out)
{
    bool bounded = evaluation_is_bounded(e);

    out->bound_ps = bounded ? e->any.ps : -1;
    out->bound_kind = bounded ? bound_name(e->any.kind) : NULL;
    out->bound_meaning = bounded ? evaluation_meaning(e) : NULL;
}

struct judged {
    const tuck_graph *g;
    const tuck_cluster *c;
    const struct evaluation *before, *after;
    tuck_report *t;
};

static void do_judge(void *arg)
{
    const struct judged *x = arg;
    const struct evaluation *e = x->before;
    tuck_report *t = x->t;

    judge_times(e, &t->gain.before);
    judge_times(x->after, &t->gain.after);
    judge_bound(e, &t->gain);
    for (uint32_t i = 0; i < t->pass.len; i++)
        t->gain.changed |= t->pass.at[i].changed;
    t->judged = t->chosen = true;
    t->ops_unknown = e->gaps.n_unknown;
    t->buffers_unknown = e->gaps.n_buf;
    t->unbacked = e->program->used_default;
    t->remark = evaluation_communicates(e) ? NULL : evaluation_no_collectives;
    report_assume(t, x->g, x->c);
}

tuck_status judge_report(const tuck_graph *g, const tuck_cluster *c,
                         const struct evaluation *before, const struct evaluation *after,
                         tuck_report *t)
{
    struct judged x = {g, c, before, after, t};

    return mem_guard(&t->mem, do_judge, &x) ? TUCK_OK : TUCK_ENOMEM;
}

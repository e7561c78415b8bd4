#include "study/judge.h"

void judge_times(const struct evaluation *e, tuck_times *out)
{
    *out = (tuck_times){.step_ns = (double)e->time.makespan / 1e3,
                        .compute_ns = (double)e->time.compute / 1e3,
                        .comm_ns = (double)e->time.comm / 1e3,
                        .exposed_ns = (double)e->time.exposed / 1e3,
                        .peak_bytes = e->peak};
}

struct judged {
    const tuck_graph *g;
    const struct evaluate_options *o;
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
    t->gain.bound_ns = (double)e->any.ps / 1e3;
    t->gain.bound_kind = bound_name(e->any.kind);
    t->gain.bound_meaning = evaluation_meaning(e);
    for (uint32_t i = 0; i < t->pass.len; i++)
        t->gain.changed |= t->pass.at[i].changed;
    t->judged = t->chosen = true;
    t->ops_unknown = e->gaps.n_unknown;
    t->buffers_unknown = e->gaps.n_buf;
    t->unbacked = e->program->used_default;
    t->remark = evaluation_communicates(e) ? NULL : evaluation_no_collectives;
    report_assume(t, x->g, x->o->machine->cluster);
}

tuck_status judge_report(tuck_graph *before, tuck_graph *after, const struct evaluate_options *o,
                         tuck_report *t)
{
    struct evaluation a = {.program = NULL}, b = {.program = NULL};
    tuck_status st = evaluate_graph(before, o, NULL, &a);

    if (st == TUCK_OK) {
        st = evaluate_graph(after, o, NULL, &b);
        struct judged x = {before, o, &a, &b, t};
        if (st == TUCK_OK && !mem_guard(&t->mem, do_judge, &x))
            st = TUCK_ENOMEM;
        evaluate_end(&b);
    }
    evaluate_end(&a);
    return st;
}

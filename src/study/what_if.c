#include "study/what_if.h"

#include "study/rank_input.h"
#include "plan/liveness.h"
#include "schedule/schedule.h"

struct trying {
    const tuck_graph *g;
    const struct evaluation *e;
    const struct evaluate_options *o;
    const struct trial *t;
    const struct problem *p; /* perhaps with other groups */
    struct arena *a;
    struct tried *out;
    struct schedule s;
    int64_t peak; /* of its order */
};

static bool is_faster(const struct trying *x, uint32_t op)
{
    return problem_is_coll(x->p, op) && x->t->faster > 0 &&
           (x->t->alone == PROBLEM_NONE || x->t->alone == op);
}

static void do_peak(void *arg)
{
    struct trying *x = arg;
    struct arena_mark mark = arena_mark(x->a);

    x->peak = live_peak(x->p, x->s.order, x->a);
    arena_release(x->a, mark);
}

/* Each pass has a budget that is a share of the peak it finds; together they must stay within the
 * limit. */
static tuck_status find_order(struct trying *x)
{
    static const struct {
        const char *name;
        void (*pass)(struct schedule *s);
    } passes[] = {
        {"reorder_communication_preserving_peak_memory", schedule_reorder_iterative},
        {"sink_waits_iterative", schedule_sink_iterative},
        {"reorder_communication_preserving_peak_memory", schedule_reorder_iterative},
    };
    tuck_status st = TUCK_OK;

    for (size_t i = 0; i < sizeof(passes) / sizeof(*passes) && st == TUCK_OK; i++) {
        if (!mem_guard(x->a->mem, do_peak, x))
            return TUCK_ENOMEM;
        double budget = x->t->limit == 0         ? 1e6
                        : x->t->limit <= x->peak ? 0
                                                 : (double)x->t->limit / (double)x->peak - 1;
        x->s.opt.reorder_iterative_peak_memory_budget = budget;
        x->s.opt.sink_iterative_peak_memory_budget = budget;
        st = schedule_run(&x->s, passes[i].name, passes[i].pass);
    }
    return st;
}

static void simulate(struct trying *x, const int64_t *ps, struct sim_span *span)
{
    const struct problem *p = x->p;
    int64_t launch = x->o->machine->cluster->launch_ps;
    struct sim_result r;

    if (x->t->group == NULL && !x->o->machine->contention) {
        struct sim sim;
        sim_init(&sim, p, &(struct sim_options){.ps = ps, .launch_ps = launch}, x->a);
        sim_run(&sim, x->out->order, &r, span);
    } else {
        struct facts facts;
        struct sim_rank_result result;
        struct sim_fault fault;
        facts_of(x->g, x->e->program, p, x->o->machine, x->a, &facts);
        struct sim_rank rank = {.p = p, .order = x->out->order, .ps = ps, .call = facts.call};
        struct sim_job job = {.n_rank = 1, .rank = &rank, .launch_ps = launch, .contention = true};
        facts_slow(x->o->machine->cluster, x->a, &job);
        if (x->o->machine->contention) {
            rank.cls = facts.cls;
        } else { /* nothing slows down */
            job.slow = NULL;
            job.slow_comm = NULL;
        }
        /* there is no other rank, so nothing can hang */
        sim_ranks(&job, x->a, &result, &span, &fault);
        r = result.time;
    }
    x->out->ps = r.makespan;
    x->out->exposed = r.exposed;
}

static void do_judge(void *arg)
{
    struct trying *x = arg;
    const struct problem *p = x->p;
    int64_t *ps = arena_array(x->a, int64_t, p->n_op);
    struct sim_span *span = arena_zeroed(x->a, p->n_op * sizeof(*span));

    for (uint32_t i = 0; i < p->n_op; i++)
        ps[i] = is_faster(x, i) ? (int64_t)((double)p->ps[i] / x->t->faster) : p->ps[i];
    x->out->order = arena_array(x->a, uint32_t, p->n_op);
    memcpy(x->out->order, x->s.order, p->n_op * sizeof(*x->s.order));
    simulate(x, ps, span);
    x->out->by_op = arena_array(x->a, int64_t, p->n_op);
    x->out->n_exposed = 0;
    for (uint32_t i = 0; i < p->n_op; i++) {
        x->out->by_op[i] = span[i].exposed;
        x->out->n_exposed += problem_is_coll(p, i) && span[i].exposed > 0;
    }
    do_peak(x);
    x->out->peak = x->peak;
}

tuck_status trial_run(const tuck_graph *g, const struct evaluation *e,
                      const struct evaluate_options *o, const struct trial *t, struct arena *a,
                      struct tried *out)
{
    struct problem other = *e->problem;
    struct trying x = {.g = g, .e = e, .o = o, .t = t, .p = &other, .a = a, .out = out};
    struct schedule_options so;

    if (t->group != NULL) {
        /* Only read: a problem never changes once it is built. */
        other.group = (uint32_t *)(uintptr_t)t->group;
        other.n_group = t->n_group;
    }
    schedule_defaults(&so, false);
    so.keep_order = o->keep_order;
    if (!schedule_begin(&x.s, x.p, &so))
        return TUCK_ENOMEM;
    for (uint32_t i = 0; i < other.n_op; i++)
        if (is_faster(&x, i))
            x.s.runtime[i] /= t->faster;
    tuck_status st = find_order(&x);
    if (st == TUCK_OK && !mem_guard(a->mem, do_judge, &x))
        st = TUCK_ENOMEM;
    schedule_end(&x.s);
    return st;
}

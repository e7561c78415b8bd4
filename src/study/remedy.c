#include "study/remedy.h"

#include <math.h>
#include <stdio.h>

#include "op/ops.h"
#include "study/optimize.h"
#include "study/pass_table.h"
#include "study/rank_input.h"
#include "study/what_if.h"

#define NONE PROGRAM_NONE

enum {
    BISECTIONS = 7,     /* precise to a hundredth of the range */
    LINK_GRAIN = 20,    /* link factors are multiples of 1/20 */
    LINKS_MOST = 64,    /* largest link factor */
    GROUPS_TRIED = 3,   /* kinds of collectives tried, the most exposed first */
    KINDS = 32,         /* more than tuck_coll has */
    LEAST = 1024 * 1024 /* bytes: smaller differences are not worth a search */
};

static const char links_command[] = "no command: other links, or less to move";
static const char group_command[] = "no command: the program must make the group, new_group()";
/* The passes that trial_run() runs. */
static const char order_passes[] =
    "reorder_communication_preserving_peak_memory,sink_waits_iterative,"
    "reorder_communication_preserving_peak_memory";

struct search {
    struct explanation *x;
    const tuck_graph *g;
    struct study *study;
    const struct evaluate_options *o; /* the study's */
    const struct observer *watch;
    const struct explained *one; /* only this collective counts; NULL: the whole step */
    struct mem mem;
    struct arena arena; /* for the current trial */
    uint32_t *kept;     /* the best order so far */
    uint32_t *channel;  /* by op: its group, if changed */
    /* in a search for one collective: how much of it is exposed in the kept order */
    int64_t kept_own;
    int64_t peak; /* of the program in its current order */
    size_t n_tried;
};

/* ---- one trial ---- */

/* Reports progress: what is being tried. */
static tuck_status tell(struct search *s, const char *what)
{
    return observe(s->watch, what, s->n_tried++, false, s->g) ? TUCK_OK : TUCK_EIO;
}

static tuck_status attempt(struct search *s, const char *what, const struct trial *t,
                           struct tried *out)
{
    tuck_status st = tell(s, what);

    arena_destroy(&s->arena); /* frees what the previous trial left */
    return st == TUCK_OK ? trial_run(s->g, s->x->e, s->o, t, &s->arena, out) : st;
}

/* Copies a trial's order and figures, because the next trial reuses their memory. */
static struct tried keep(struct search *s, const struct tried *t)
{
    struct tried figures = *t;

    memcpy(s->kept, t->order, s->x->e->problem->n_op * sizeof(*s->kept));
    s->kept_own = s->one ? t->by_op[s->one->op] : -1;
    figures.by_op = NULL;
    figures.order = NULL;
    return figures;
}

/* The time to minimize: the collective's exposed time, or the step. */
static int64_t score(const struct search *s, const struct tried *t)
{
    return s->one ? t->by_op[s->one->op] : t->ps;
}

static bool is_hidden(const struct search *s, const struct tried *t)
{
    return s->one ? t->by_op[s->one->op] * 100 <= s->one->ps : t->exposed * 100 <= t->ps;
}

/* ---- what is reported ---- */

static uint32_t count_exposed(const struct evaluation *e)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < e->program->n_op; i++)
        n += e->program->op[i].kind == PROGRAM_COLLECTIVE && e->span[i].exposed > 0;
    return n;
}

/* Not worth reporting: no gain, less than a thousandth, or no more than a new order, which is
 * free. */
static bool is_gain(const struct search *s, const struct remedy *r)
{
    const struct explanation *x = s->x;
    int64_t step = x->e->time.makespan;

    if (s->one != NULL)
        return step - r->ps > step / 1000 ||
               (r->own >= 0 && s->one->exposed - r->own > s->one->exposed / 100);
    for (uint32_t i = 0; i < x->n_remedy; i++) {
        enum remedy_kind k = x->remedy[i].kind;
        bool less = k == REMEDY_ORDER || k == r->kind;
        if (less && (r->kind == REMEDY_MEMORY || r->kind == REMEDY_GROUP) &&
            r->ps >= x->remedy[i].ps)
            return false;
    }
    return step - r->ps > step / 1000;
}

static void report(struct search *s, struct remedy r, uint32_t n_exposed)
{
    struct explanation *x = s->x;
    uint32_t before = count_exposed(x->e);

    r.hidden = before > n_exposed ? before - n_exposed : 0;
    if (x->n_remedy < REMEDIES_MAX && is_gain(s, &r))
        x->remedy[x->n_remedy++] = r;
}

static int64_t exposed_of(const struct evaluation *e, const struct search *s)
{
    str_id name = s->x->e->program->op[s->one->op].name;
    const char *text = program_str(s->x->e->program, name);
    str_id id = str_find(&e->program->str, text, strlen(text));

    for (uint32_t i = 0; id != 0 && i < e->program->n_op; i++)
        if (e->program->op[i].name == id)
            return e->span[i].exposed;
    return -1;
}

static void report_evaluation(struct search *s, struct remedy r, const struct evaluation *e)
{
    r.ps = e->time.makespan;
    r.peak = e->peak;
    r.own = s->one ? exposed_of(e, s) : -1;
    report(s, r, count_exposed(e));
}

struct apply_args {
    const uint32_t *order;
    tuck_graph *g;
    const struct program *p;
    struct arena scratch;
};

static void do_apply(void *arg)
{
    struct apply_args *x = arg;

    lower_apply(x->g, x->p, x->order, &x->scratch);
}

static tuck_status apply(tuck_graph *g, const struct program *p, const uint32_t *order)
{
    struct apply_args x = {.order = order, .g = g, .p = p};

    arena_init(&x.scratch, &g->store->mem);
    bool ok = mem_guard(&g->store->mem, do_apply, &x);
    arena_destroy(&x.scratch);
    return ok ? TUCK_OK : TUCK_ENOMEM;
}

/* Evaluates a graph on faster links. */
static tuck_status report_links(struct search *s, struct remedy r, tuck_graph *g, double faster)
{
    struct machine machine = *s->o->machine;
    struct evaluate_options o = *s->o;
    struct evaluation e;

    machine.bandwidth *= faster;
    o.machine = &machine;
    o.no_bounds = true;
    tuck_status st = evaluate_graph(g, &o, NULL, &e);
    if (st == TUCK_OK)
        report_evaluation(s, r, &e);
    evaluate_end(&e);
    return st;
}

/* Applies an order to the graph, lowers it again and simulates it. */
static tuck_status report_kept(struct search *s, struct remedy r, const uint32_t *order,
                               double faster)
{
    s->x->crosses |= schedule_crosses_groups(s->x->e->problem, order);
    tuck_graph *clone = graph_clone(s->g);

    if (clone == NULL)
        return TUCK_ENOMEM;
    tuck_status st = apply(clone, s->x->e->program, order);
    if (st == TUCK_OK)
        st = report_links(s, r, clone, faster);
    graph_free(clone);
    return st;
}

/* ---- memory ---- */

/* The least memory with which the score is at most `target`. `found` reaches it already; it stays
 * the result if no order with less memory does. */
static tuck_status least_memory(struct search *s, int64_t target, struct tried *found)
{
    int64_t low = s->peak, high = found->peak;
    tuck_status st = TUCK_OK;

    for (int i = 0; i < BISECTIONS && st == TUCK_OK && high - low > LEAST; i++) {
        struct trial t = {.limit = low + (high - low) / 2, .alone = NONE};
        struct tried now;
        st = attempt(s, "how much more memory helps", &t, &now);
        if (st != TUCK_OK || score(s, &now) > target) {
            low = t.limit;
            continue;
        }
        *found = keep(s, &now);
        high = now.peak < t.limit ? now.peak : t.limit;
    }
    return st;
}

static tuck_status try_optimizing(struct search *s, int64_t more_memory, struct evaluation **e);
static tuck_status or_left_out(tuck_status st);

/* The report shows what the printed command really achieves. */
static tuck_status report_memory_command(struct search *s, struct remedy r, int64_t more)
{
    struct evaluation *e = NULL;
    tuck_status st = try_optimizing(s, more, &e);

    if (st == TUCK_OK)
        report_evaluation(s, r, e);
    study_give_back(e);
    return or_left_out(st);
}

static tuck_status report_memory(struct search *s, int64_t peak)
{
    struct remedy r = {.kind = REMEDY_MEMORY, .parameter = (double)(peak - s->peak)};
    bool small = r.parameter < 1048576;

    snprintf(r.what, sizeof(r.what), "%.1f %s more memory, and the order that it allows",
             r.parameter / (small ? 1024 : 1048576), small ? "KiB" : "MiB");
    double unit = r.parameter < 16 * 1048576 ? 1024 : 1048576, n = ceil(r.parameter / unit);
    snprintf(r.options, sizeof(r.options), "--memory +%.0f%s", n, unit == 1024 ? "KiB" : "MiB");
    return report_memory_command(s, r, (int64_t)(n * unit));
}

/* All the memory that is of use; before it, the least memory that gives half of that gain. */
static tuck_status try_memory(struct search *s, int64_t base)
{
    struct tried all;
    tuck_status st = attempt(s, "what more memory would do", &(struct trial){.alone = NONE}, &all);

    if (st != TUCK_OK)
        return st;
    int64_t gain = base - score(s, &all);
    if (gain * 1000 < base || all.peak - s->peak < LEAST)
        return TUCK_OK;
    struct tried most = keep(s, &all), half;
    st = least_memory(s, base - gain + gain / 100, &most);
    half = most;
    if (st == TUCK_OK && s->one == NULL)
        st = least_memory(s, base - gain / 2, &half);
    if (st == TUCK_OK && (half.peak - s->peak) * 10 < (most.peak - s->peak) * 9)
        st = report_memory(s, half.peak);
    return st == TUCK_OK ? report_memory(s, most.peak) : st;
}

/* ---- faster links ---- */

/* The least link factor that hides the collective (or the step's), and its trial; 0 if none is
 * found. */
static tuck_status least_factor(struct search *s, uint32_t alone, struct tried *found,
                                double *factor)
{
    int low = LINK_GRAIN, high = 0;
    tuck_status st = TUCK_OK;

    while (st == TUCK_OK &&
           (high == 0 ? low < EXPLAIN_LINKS_MOST * LINK_GRAIN : high - low > 1 + high / 40)) {
        int f = high == 0 ? low * 2 : low + (high - low) / 2;
        struct trial t = {.limit = s->peak, .faster = (double)f / LINK_GRAIN, .alone = alone};
        struct tried now;

        st = attempt(s, "how fast links must be", &t, &now);
        if (st == TUCK_OK && is_hidden(s, &now)) {
            *found = keep(s, &now);
            high = f;
        } else {
            low = f;
        }
    }
    *factor = (double)high / LINK_GRAIN;
    return st;
}

static tuck_status try_links(struct search *s)
{
    struct remedy r = {.kind = REMEDY_LINKS, .parameter = 2, .no_command = links_command};
    struct tried t;
    double factor;
    tuck_graph *clone = graph_clone(s->g);

    if (clone == NULL)
        return TUCK_ENOMEM;
    snprintf(r.what, sizeof(r.what), "links twice as fast, nothing else changed");
    tuck_status st = report_links(s, r, clone, 2);
    graph_free(clone);
    if (st == TUCK_OK)
        st = least_factor(s, NONE, &t, &factor);
    if (st != TUCK_OK || factor == 0)
        return st;
    r.parameter = factor;
    snprintf(r.what, sizeof(r.what), "links %.4gx as fast, in another order: under 1 %% exposed",
             factor);
    return report_kept(s, r, s->kept, factor);
}

/* ---- larger collectives ---- */

/* Runs Tuck's own passes on the graph. Release the evaluation with study_give_back(). */
static tuck_status try_optimizing(struct search *s, int64_t more_memory, struct evaluation **e)
{
    struct optimize_options o = {.observer = *s->watch, .memory_more = more_memory, .effort = 1};
    tuck_graph *clone = graph_clone(s->g);

    if (clone == NULL)
        return TUCK_ENOMEM;
    tuck_status st = optimize_graph(s->study, clone, &o, NULL, NULL, NULL);
    if (st == TUCK_OK)
        st = study_get(s->study, clone, NULL, e);
    graph_free(clone);
    return st;
}

static tuck_status run_passes(struct search *s, const char *text, tuck_graph *g)
{
    struct runner r = {.study = s->study, .observer = *s->watch};
    struct pipeline p;
    tuck_report *report = report_new(&s->mem.alloc);

    if (report == NULL)
        return TUCK_ENOMEM;
    pipeline_init(&p, &all_passes, &s->mem.alloc);
    tuck_status st = pipeline_parse(&p, text, strlen(text), "remedy", NULL);
    if (st == TUCK_OK)
        st = pipeline_run(&p, g, &r, report, NULL);
    pipeline_destroy(&p);
    tuck_report_free(report);
    return st;
}

/* Runs passes on the graph. Release the evaluation with study_give_back(). */
static tuck_status try_passes(struct search *s, const char *text, struct evaluation **e)
{
    tuck_graph *clone = graph_clone(s->g);

    if (clone == NULL)
        return TUCK_ENOMEM;
    tuck_status st = run_passes(s, text, clone);
    if (st == TUCK_OK)
        st = study_get(s->study, clone, NULL, e);
    graph_free(clone);
    return st;
}

/* What cannot be tried is skipped. */
static tuck_status or_left_out(tuck_status st)
{
    return st == TUCK_ENOMEM || st == TUCK_EIO ? st : TUCK_OK;
}

/* Tries sizes around the one that keeps the link of the most exposed collective busy. */
static tuck_status try_buckets(struct search *s)
{
    static const double share[] = {0.25, 0.5, 1, 2, 4};
    const struct program *p = s->x->e->program;
    const struct program_op *op = &p->op[s->x->row[0].op];
    tuck_coll coll = coll_modelled(op->coll);
    struct remedy best = {.ps = s->x->e->time.makespan};
    uint32_t best_exposed = 0;
    tuck_status st = TUCK_OK;

    if (s->x->n < 2 || coll == 0 || op->group == NONE ||
        facts_shape(s->g, p, s->o->machine->cluster, op->group).p < 2)
        return TUCK_OK;
    double full = (double)cost_saturation(s->o->machine->cluster,
                                          facts_shape(s->g, p, s->o->machine->cluster, op->group),
                                          coll, 0.9, &s->o->machine->cost.collective) /
                  1048576;
    for (size_t i = 0; i < sizeof(share) / sizeof(*share) && st == TUCK_OK; i++) {
        double mb = fmin(fmax(full * share[i], 1), 2000);
        char text[256];
        struct evaluation *e = NULL;

        if (i > 0 && mb == fmin(fmax(full * share[i - 1], 1), 2000))
            continue;
        snprintf(text, sizeof(text),
                 "bucket_reduce_scatter(cap_mb=%.4g),bucket_all_reduce(cap_mb=%.4g),"
                 "bucket_all_gather(cap_mb=%.4g)",
                 mb, mb, mb);
        st = try_passes(s, text, &e);
        if (st == TUCK_OK && e->time.makespan < best.ps) {
            best = (struct remedy){.kind = REMEDY_BUCKETS,
                                   .ps = e->time.makespan,
                                   .peak = e->peak,
                                   .own = -1,
                                   .parameter = mb * 1048576};
            best_exposed = count_exposed(e);
            snprintf(best.options, sizeof(best.options), "--passes '%s'", text);
            snprintf(best.what, sizeof(best.what), "fewer, larger collectives: buckets of %.4g MiB",
                     mb);
        }
        study_give_back(e);
        st = or_left_out(st);
    }
    if (st == TUCK_OK && best.parameter > 0)
        report(s, best, best_exposed);
    return st;
}

static tuck_status try_optimize(struct search *s)
{
    struct remedy r = {.kind = REMEDY_OPTIMIZE};
    struct evaluation *e = NULL;
    tuck_status st = try_optimizing(s, 0, &e);

    snprintf(r.what, sizeof(r.what), "tuck optimize, at the same memory");
    if (st == TUCK_OK)
        report_evaluation(s, r, e);
    study_give_back(e);
    return or_left_out(st);
}

/* ---- a group of their own ---- */

/* The exposed time of one kind of collective on one group. */
struct kind_of_group {
    uint32_t group, coll;
    int64_t exposed;
};

/* The most exposed kinds on groups that also run other kinds; at most GROUPS_TRIED of them. */
static uint32_t crowded_kinds(struct search *s, struct kind_of_group out[GROUPS_TRIED])
{
    const struct problem *p = s->x->e->problem;
    int64_t(*exposed)[KINDS] = arena_zeroed(&s->arena, p->n_group * sizeof(*exposed));
    /* one bit per kind */
    uint32_t *kinds = arena_zeroed(&s->arena, p->n_group * sizeof(*kinds)), n = 0;

    for (uint32_t i = 0; i < p->n_op; i++)
        if (problem_is_coll(p, i) && p->group[i] != PROBLEM_NONE) {
            uint32_t k = (uint32_t)coll_modelled(p->coll[i]);
            exposed[p->group[i]][k] += s->x->e->span[i].exposed;
            kinds[p->group[i]] |= 1u << k;
        }
    for (uint32_t g = 0; g < p->n_group; g++)
        for (uint32_t k = 1; k < KINDS && (kinds[g] & (kinds[g] - 1)) != 0; k++) {
            struct kind_of_group x = {g, k, exposed[g][k]};
            for (uint32_t i = 0; i < GROUPS_TRIED && x.exposed > 0; i++)
                if (i >= n || x.exposed > out[i].exposed) {
                    struct kind_of_group other = out[i];
                    out[i] = x;
                    x = i < n ? other : (struct kind_of_group){.exposed = 0};
                    n += i >= n;
                }
        }
    return n;
}

struct crowd_args {
    struct search *s;
    struct kind_of_group kind[GROUPS_TRIED];
    uint32_t n;
};

static void do_crowds(void *arg)
{
    struct crowd_args *x = arg;

    x->n = crowded_kinds(x->s, x->kind);
}

static tuck_status try_channel(struct search *s, int64_t base, struct remedy r)
{
    struct trial t = {.limit = s->peak,
                      .alone = NONE,
                      .group = s->channel,
                      .n_group = s->x->e->problem->n_group + 1};
    struct tried now;
    tuck_status st = attempt(s, "what other groups would do", &t, &now);

    if (st != TUCK_OK || score(s, &now) >= base)
        return st;
    r.ps = now.ps;
    r.peak = s->x->e->peak + now.peak - s->peak;
    r.own = s->one ? now.by_op[s->one->op] : -1;
    report(s, r, now.n_exposed);
    return TUCK_OK;
}

static tuck_status try_groups(struct search *s, int64_t base)
{
    const struct problem *p = s->x->e->problem;
    struct crowd_args c = {.s = s};
    tuck_status st = mem_guard(&s->mem, do_crowds, &c) ? TUCK_OK : TUCK_ENOMEM;

    for (uint32_t i = 0; i < c.n && st == TUCK_OK; i++) {
        struct remedy r = {.kind = REMEDY_GROUP, .no_command = group_command};
        for (uint32_t op = 0; op < p->n_op; op++) {
            bool of_kind = problem_is_coll(p, op) && p->group[op] == c.kind[i].group &&
                           (uint32_t)coll_modelled(p->coll[op]) == c.kind[i].coll;
            s->channel[op] = of_kind ? p->n_group : p->group[op];
        }
        snprintf(r.what, sizeof(r.what), "each %s of group %.40s on another group of these ranks",
                 tuck_coll_name((tuck_coll)c.kind[i].coll),
                 str_text(&p->str, p->group_name[c.kind[i].group]));
        st = try_channel(s, base, r);
    }
    return st;
}

/* ---- together ---- */

static void do_prepare(void *arg)
{
    struct search *s = arg;
    struct arena *a = &s->x->e->arena;
    uint32_t n = s->x->e->problem->n_op;

    s->kept = arena_array(a, uint32_t, n);
    s->channel = arena_array(a, uint32_t, n);
}

static tuck_status begin(struct search *s)
{
    mem_init(&s->mem, &s->g->store->mem.alloc);
    arena_init(&s->arena, &s->mem);
    return mem_guard(&s->x->e->mem, do_prepare, s) ? TUCK_OK : TUCK_ENOMEM;
}

/* The best order without more memory, which other remedies must beat. */
static tuck_status try_order(struct search *s, int64_t *base)
{
    struct remedy r = {.kind = REMEDY_ORDER, .what = "another order of the same ops"};
    struct trial t = {.limit = s->peak, .alone = NONE};
    struct tried now;
    tuck_status st = attempt(s, "what another order would do", &t, &now);

    if (st != TUCK_OK)
        return st;
    *base = score(s, &now);
    struct evaluation *e = NULL;
    snprintf(r.options, sizeof(r.options), "--passes %s", order_passes);
    st = try_passes(s, order_passes, &e);
    if (st == TUCK_OK)
        report_evaluation(s, r, e);
    study_give_back(e);
    return or_left_out(st);
}

tuck_status remedies_of_step(struct explanation *x, const tuck_graph *g, struct study *study,
                             const struct observer *watch)
{
    struct search s = {.x = x, .g = g, .study = study, .o = study->o, .watch = watch};
    int64_t base = 0;
    tuck_status st = begin(&s);

    s.peak = x->e->peak;
    if (st == TUCK_OK)
        st = try_optimize(&s);
    if (st == TUCK_OK)
        st = try_order(&s, &base);
    if (st == TUCK_OK)
        st = try_memory(&s, base);
    if (st == TUCK_OK)
        st = try_buckets(&s);
    if (st == TUCK_OK)
        st = try_groups(&s, base - base / 1000);
    if (st == TUCK_OK)
        st = try_links(&s);
    arena_destroy(&s.arena);
    return st;
}

tuck_status remedies_of_collective(struct explanation *x, const tuck_graph *g, struct study *study,
                                   const struct observer *watch, const struct explained *one)
{
    struct search s = {.x = x,
                       .g = g,
                       .study = study,
                       .o = study->o,
                       .watch = watch,
                       .one = one,
                       .peak = x->e->peak};
    const struct problem *p = x->e->problem;
    struct remedy r = {.kind = REMEDY_GROUP,
                       .what = "on another group of these ranks",
                       .no_command = group_command};
    int64_t base = 0;
    double factor = 0;
    struct tried t;
    tuck_status st = begin(&s);

    if (st == TUCK_OK)
        st = try_order(&s, &base);
    bool hidden = base * 100 <= one->ps;
    if (st == TUCK_OK && !hidden && one->limit == EXPLAIN_MEMORY)
        st = try_memory(&s, base);
    if (st == TUCK_OK && !hidden &&
        (one->limit == EXPLAIN_ORDER || one->limit == EXPLAIN_CHANNEL)) {
        for (uint32_t op = 0; op < p->n_op; op++)
            s.channel[op] = op == one->op ? p->n_group : p->group[op];
        st = try_channel(&s, base, r);
    }
    if (st == TUCK_OK && !hidden)
        st = least_factor(&s, one->op, &t, &factor);
    if (st == TUCK_OK && factor > 0) {
        r = (struct remedy){.kind = REMEDY_LINKS,
                            .no_command = links_command,
                            .ps = t.ps,
                            .peak = x->e->peak,
                            .own = s.kept_own,
                            .parameter = factor};
        snprintf(r.what, sizeof(r.what), "a link %.4gx as fast, or that much less to move", factor);
        report(&s, r, t.n_exposed);
    }
    arena_destroy(&s.arena);
    return st;
}

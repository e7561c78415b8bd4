/* Schedule problems and their orders in the public interface. */
#include "api/schedule_api.h"
#include "api/pass_api.h"

#include "api/api.h"
#include "study/pass_table.h"
#include "plan/liveness.h"
#include "report/schedule_show.h"

struct tuck_schedule {
    struct schedule s;
    tuck_transport others; /* a transport to problems instead of ranks */
    tuck_estimates *row;   /* by rank; this one is first */
};

/* ---- problems ---- */

tuck_status problem_wrap(struct problem *p, tuck_problem **out)
{
    tuck_problem *w = p->mem.alloc.resize(p->mem.alloc.ctx, NULL, 0, sizeof(*w));
    if (w == NULL) {
        problem_free(p);
        return TUCK_ENOMEM;
    }
    *w = (tuck_problem){.p = p, .own = p};
    *out = w;
    return TUCK_OK;
}

tuck_status tuck_problem_read_text(const char *text, size_t len, const char *name,
                                   const tuck_allocator *alloc, tuck_diags *diags,
                                   tuck_problem **out)
{
    struct problem *p = NULL;

    if (text == NULL || out == NULL)
        return TUCK_EINVAL;
    tuck_status st = problem_read_text(text, len, name ? name : "", alloc, diags, &p);
    return st == TUCK_OK ? problem_wrap(p, out) : st;
}

tuck_status tuck_problem_read_file(const char *path, const tuck_allocator *alloc, tuck_diags *diags,
                                   tuck_problem **out)
{
    struct problem *p = NULL;

    if (path == NULL || out == NULL)
        return TUCK_EINVAL;
    tuck_status st = problem_read_file(path, alloc, diags, &p);
    return st == TUCK_OK ? problem_wrap(p, out) : st;
}

void tuck_problem_free(tuck_problem *p)
{
    if (p == NULL)
        return;
    tuck_allocator alloc = p->p->mem.alloc;
    problem_free(p->own);
    alloc.resize(alloc.ctx, p, sizeof(*p), 0);
}

bool tuck_problem_is_file(const char *path)
{
    return path != NULL && problem_is_file(path);
}

uint32_t tuck_problem_op_count(const tuck_problem *p)
{
    return p->p->n_op;
}

const char *tuck_problem_op_name(const tuck_problem *p, uint32_t op)
{
    return op < p->p->n_op ? problem_name(p->p, op) : "";
}

struct writing {
    const struct problem *p;
    const uint32_t *order;
};

static void write_problem(struct buf *b, const void *arg)
{
    const struct writing *x = arg;

    problem_write(x->p, x->order, b);
}

tuck_status tuck_problem_write(const tuck_problem *p, const uint32_t *order, tuck_write_fn write,
                               void *ctx)
{
    if (p == NULL || write == NULL)
        return TUCK_EINVAL;
    struct writing x = {p->p, order};
    return buf_print(&p->p->mem.alloc, false, write, ctx, write_problem, &x);
}

/* ---- schedules ---- */

struct asked {
    const tuck_schedule_options *o;
};

static double ask(void *ctx, const struct problem *p, uint32_t op)
{
    const struct asked *a = ctx;
    double t = a->o->estimate(a->o->ctx, op);

    return t >= 0 && t <= 1e18 ? t : p->runtime[op]; /* an invalid answer is ignored */
}

static tuck_status get_options(struct schedule_options *own, const tuck_schedule_options *o,
                               tuck_diags *diags)
{
    char why[160];

    schedule_defaults(own, false);
    if (o->compat != NULL && !schedule_compat(own, o->compat, why)) {
        diag_add(diags, TUCK_ERROR, NOWHERE, NULL, "compat %s", why);
        return TUCK_EINVAL;
    }
    own->runtime_estimations_align_across_all_distributed_ranks |= o->n_others > 0;
    own->keep_order = o->keep_order;
    for (size_t i = 0; i < o->n_set; i++)
        if (!schedule_set(own, o->set[i], why)) {
            diag_add(diags, TUCK_ERROR, NOWHERE, NULL, "%s", why);
            return TUCK_EINVAL;
        }
    return TUCK_OK;
}

/* ---- the other ranks, as problems ---- */

static const tuck_estimates *gather(void *ctx, uint32_t rank, const double *mine, uint32_t n)
{
    tuck_schedule *s = ctx;

    s->row[rank] = (tuck_estimates){mine, n};
    return s->row;
}

struct ranks {
    tuck_schedule *s;
    const tuck_problem *const *at;
    size_t n;
};

/* Their runtimes, in the unit of this rank's problem. */
static void do_others(void *arg)
{
    struct ranks *x = arg;
    struct schedule *s = &x->s->s;

    x->s->row = arena_array(&s->arena, tuck_estimates, x->n + 1);
    for (size_t i = 0; i < x->n; i++) {
        const struct problem *p = x->at[i]->p;
        double scale = p->unit_ps / s->p->unit_ps;
        double *runtime = arena_array(&s->arena, double, p->n_op);

        for (uint32_t op = 0; op < p->n_op; op++)
            runtime[op] = p->runtime[op] * scale;
        x->s->row[i + 1] = (tuck_estimates){runtime, p->n_op};
    }
}

static bool ask_others(tuck_schedule *s, const tuck_schedule_options *o)
{
    struct ranks x = {s, o->others, o->n_others};

    s->others = (tuck_transport){.ctx = s, .n_rank = (uint32_t)o->n_others + 1, .gather = gather};
    s->s.transport = &s->others;
    return mem_guard(&s->s.mem, do_others, &x);
}

tuck_status tuck_schedule_new(const tuck_problem *p, const tuck_schedule_options *options,
                              tuck_diags *diags, tuck_schedule **out)
{
    tuck_schedule_options o = {.size = sizeof(o)};
    struct schedule_options own;

    if (p == NULL || out == NULL || options_take(&o, sizeof(o), options) != TUCK_OK ||
        (o.n_others > 0 && (o.others == NULL || o.transport != NULL)))
        return TUCK_EINVAL;
    tuck_status st = get_options(&own, &o, diags);
    if (st != TUCK_OK)
        return st;
    const tuck_allocator *alloc = &p->p->mem.alloc;
    tuck_schedule *s = alloc->resize(alloc->ctx, NULL, 0, sizeof(*s));
    if (s == NULL || !schedule_begin(&s->s, p->p, &own)) {
        if (s != NULL)
            alloc->resize(alloc->ctx, s, sizeof(*s), 0);
        return TUCK_ENOMEM;
    }
    if (o.estimate != NULL)
        schedule_estimate_runtimes(&s->s, ask, &(struct asked){&o});
    s->s.transport = o.transport;
    if (o.n_others > 0 && !ask_others(s, &o)) {
        tuck_schedule_free(s);
        return TUCK_ENOMEM;
    }
    *out = s;
    return TUCK_OK;
}

void tuck_schedule_free(tuck_schedule *s)
{
    if (s == NULL)
        return;
    tuck_allocator alloc = s->s.mem.alloc;
    schedule_end(&s->s);
    alloc.resize(alloc.ctx, s, sizeof(*s), 0);
}

tuck_status tuck_schedule_run(tuck_schedule *s, const char *passes, tuck_diags *diags)
{
    struct pipeline steps;

    if (s == NULL || passes == NULL)
        return TUCK_EINVAL;
    pipeline_init(&steps, &all_passes, &s->s.mem.alloc);
    tuck_status st = pipeline_parse(&steps, passes, strlen(passes), "passes", diags);
    if (st == TUCK_OK)
        st = schedule_steps(&s->s, &steps, diags);
    pipeline_destroy(&steps);
    return st;
}

tuck_status tuck_schedule_run_pipeline(tuck_schedule *s, const tuck_pipeline *p, tuck_diags *diags)
{
    if (s == NULL || p == NULL)
        return TUCK_EINVAL;
    return schedule_steps(&s->s, &p->p, diags);
}

struct call {
    struct schedule *s;
    void (*fn)(void *ctx, uint32_t *order, uint32_t n);
    void *ctx;
    bool fine;
};

static void do_call(void *ctx)
{
    struct call *c = ctx;
    struct schedule *s = c->s;
    size_t bytes = (size_t)s->p->n_op * sizeof(*s->order);
    struct arena_mark mark = arena_mark(&s->arena);
    uint32_t *order = arena_alloc(&s->arena, bytes);

    memcpy(order, s->order, bytes);
    c->fn(c->ctx, order, s->p->n_op);
    c->fine = schedule_is_valid(s->p, order, false, &s->arena);
    if (c->fine) {
        memcpy(s->order, order, bytes);
        s->worth.known = false;
    }
    arena_release(&s->arena, mark);
}

tuck_status tuck_schedule_call(tuck_schedule *s, void (*fn)(void *, uint32_t *, uint32_t),
                               void *ctx)
{
    struct call c = {.s = s ? &s->s : NULL, .fn = fn, .ctx = ctx};

    if (s == NULL || fn == NULL)
        return TUCK_EINVAL;
    if (!mem_guard(&s->s.mem, do_call, &c))
        return TUCK_ENOMEM;
    return c.fine ? TUCK_OK : TUCK_EINVAL;
}

const uint32_t *tuck_schedule_order(const tuck_schedule *s)
{
    return s->s.order;
}

struct worth {
    const struct schedule *s;
    struct arena arena;
    int64_t peak, exposed;
};

static void do_worth(void *ctx)
{
    struct worth *w = ctx;

    w->peak = live_peak(w->s->p, w->s->order, &w->arena);
    w->exposed = schedule_time(w->s->p, w->s->runtime, w->s->order, &w->arena).exposed;
}

/* -1: out of memory. */
static struct worth worth_of(const tuck_schedule *s)
{
    struct worth w = {.s = &s->s, .peak = -1, .exposed = -1};
    struct mem m;

    mem_init(&m, &s->s.mem.alloc);
    arena_init(&w.arena, &m);
    bool ok = mem_guard(&m, do_worth, &w);
    arena_destroy(&w.arena);
    if (!ok)
        w.peak = w.exposed = -1;
    return w;
}

int64_t tuck_schedule_peak(const tuck_schedule *s)
{
    return worth_of(s).peak;
}

int64_t tuck_schedule_exposed_ps(const tuck_schedule *s)
{
    return worth_of(s).exposed;
}

/* ---- printing ---- */

static void print(struct buf *b, const tuck_print_options *how, const void *arg)
{
    if (how->form == TUCK_PRINT_JSON)
        schedule_json(arg, b);
    else
        schedule_table(arg, b);
}

tuck_status tuck_schedule_print(const tuck_schedule *s, const tuck_print_options *how,
                                tuck_write_fn write, void *ctx)
{
    return s ? api_print(&s->s.mem.alloc, how, write, ctx, print, &s->s) : TUCK_EINVAL;
}

static void print_overlap(struct buf *b, const tuck_print_options *how, const void *arg)
{
    (void)how;
    schedule_overlap(arg, b);
}

tuck_status tuck_schedule_print_overlap(const tuck_schedule *s, const tuck_print_options *how,
                                        tuck_write_fn write, void *ctx)
{
    return s ? api_print(&s->s.mem.alloc, how, write, ctx, print_overlap, &s->s) : TUCK_EINVAL;
}

tuck_status tuck_schedule_write_problem(const tuck_schedule *s, tuck_write_fn write, void *ctx)
{
    if (s == NULL || write == NULL)
        return TUCK_EINVAL;
    struct problem p = *s->s.p;
    struct writing x = {&p, s->s.order};

    p.runtime = s->s.runtime;
    return buf_print(&s->s.mem.alloc, false, write, ctx, write_problem, &x);
}

/* ---- PyTorch's slips ---- */

size_t tuck_compat_count(void)
{
    return n_schedule_slips;
}

const char *tuck_compat_name(size_t i)
{
    return i < n_schedule_slips ? schedule_slip_table[i].name : NULL;
}

const char *tuck_compat_help(size_t i)
{
    return i < n_schedule_slips ? schedule_slip_table[i].help : NULL;
}

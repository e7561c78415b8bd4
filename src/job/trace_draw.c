/* A measured step as the program and spans that report/ draws. */
#include <stdio.h>
#include <stdlib.h>

#include "job/trace_show.h"

/* ---- the step ---- */

static int by_time(const void *a, const void *b)
{
    const struct trace_step_figures *const *x = a, *const *y = b;

    if ((*x)->x.step != (*y)->x.step)
        return (*x)->x.step < (*y)->x.step ? -1 : 1;
    return (*x)->start < (*y)->start ? -1 : 1;
}

/* Index of the step with that number, or of the one in the middle. */
static uint32_t choose(const struct trace_part *p, int64_t number, struct arena *a)
{
    const struct trace_step_figures **list = arena_array(a, const struct trace_step_figures *,
                                                         p->step.len + 1);

    if (number >= 0) {
        for (uint32_t i = 0; i < p->step.len; i++)
            if (p->step.at[i].number == number)
                return i;
        return TRACE_NONE;
    }
    for (uint32_t i = 0; i < p->step.len; i++)
        list[i] = &p->step.at[i];
    qsort(list, p->step.len, sizeof(*list), by_time);
    return p->step.len > 0 ? (uint32_t)(list[p->step.len / 2] - p->step.at) : TRACE_NONE;
}

/* ---- names ---- */

/* "void at::native::copy_kernel<float>(float*)" is copy_kernel; what is drawn must have a name of
 * its own. */
static str_id short_name(struct program *p, const char *full, uint32_t i)
{
    char text[80];
    const char *from;
    size_t n = trace_short_name(full, &from);
    int len = snprintf(text, sizeof(text), "%.*s#%u", (int)(n < 60 ? n : 60), from, i);

    return str_intern(&p->str, text, (size_t)len);
}

static str_id intern(struct program *p, const char *s)
{
    return str_intern(&p->str, s, strlen(s));
}

/* ---- one part ---- */

struct drawing {
    const struct trace_part *part;
    struct program *p;
    struct arena *a;
    struct sim_span *span;
    uint32_t *lane;
    VEC(const char *) lane_name;
    VEC(struct program_group) group;
    bool several; /* devices */
};

static uint32_t lane_of(struct drawing *d, const char *name)
{
    for (uint32_t i = 0; i < d->lane_name.len; i++)
        if (strcmp(d->lane_name.at[i], name) == 0)
            return i;
    vec_push_in(d->a, &d->lane_name, arena_str(d->a, name, strlen(name)));
    return d->lane_name.len - 1;
}

static uint32_t group_of(struct drawing *d, const struct trace_coll *c)
{
    const char *name = trace_str(d->part->t, c->group);
    str_id id = intern(d->p, *name ? name : "?");

    for (uint32_t i = 0; i < d->group.len; i++)
        if (d->group.at[i].name == id)
            return i;
    vec_push_in(d->a, &d->group, ((struct program_group){id, c->p, -1}));
    return d->group.len - 1;
}

/* Collectives are sorted by start. */
static const struct trace_coll *coll_of(const struct trace_part *p, const struct trace_span *s)
{
    uint32_t low = 0, high = p->coll.len;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (p->coll.at[mid].start < s->start)
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < p->coll.len && p->coll.at[low].start == s->start; low++)
        if (p->coll.at[low].event == s->event)
            return &p->coll.at[low];
    return NULL;
}

static void draw_op(struct drawing *d, uint32_t i, const struct trace_span *s, int64_t from)
{
    const struct trace *t = d->part->t;
    const struct trace_event *e = d->part->device ? &t->gpu.at[s->event] : &t->cpu.at[s->event];
    const char *name = trace_str(t, e->name);
    char lane[48];

    if (d->part->device && !t->ours && d->several)
        snprintf(lane, sizeof(lane), "stream %.12s:%d", trace_str(t, e->pid), trace_stream(t, e));
    else if (d->part->device && !t->ours)
        snprintf(lane, sizeof(lane), "stream %d", trace_stream(t, e));
    else
        snprintf(lane, sizeof(lane), "%s", s->cls == TRACE_COMM ? "library" : "host");
    d->lane[i] = lane_of(d, lane);
    d->p->op[i] = (struct program_op){.name = short_name(d->p, name, i),
                                      .kernel = intern(d->p, name),
                                      .kind = s->cls == TRACE_COMM     ? PROGRAM_COLLECTIVE
                                              : s->cls == TRACE_WAIT   ? PROGRAM_WAIT
                                              : s->cls == TRACE_MEMORY ? PROGRAM_COPY
                                              : trace_is_product(name) ? PROGRAM_GEMM
                                                                       : PROGRAM_COMPUTE,
                                      .group = PROGRAM_NONE,
                                      .message = -1};
    d->span[i] = (struct sim_span){
        .start = s->start - from, .end = s->end - from, .issued = s->start - from};
    if (s->cls != TRACE_COMM)
        return;
    const struct trace_coll *c = coll_of(d->part, s);
    d->p->op[i].coll = TUCK_OTHER_COLLECTIVE;
    if (c == NULL)
        return;
    d->p->op[i].coll = (uint8_t)c->kind;
    d->p->op[i].message = c->bytes;
    d->p->op[i].group = group_of(d, c);
    d->span[i].exposed = c->exposed;
}

/* The spans of the step to draw: of operators inside of one another, the outermost. */
static uint32_t pick(const struct trace_part *p, uint32_t step, struct arena *a,
                     const struct trace_span ***out)
{
    const struct trace_span **list = arena_array(a, const struct trace_span *, p->span.len + 1);
    int64_t host = INT64_MIN;
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->span.len; i++) {
        const struct trace_span *s = &p->span.at[i];
        if (s->step != step)
            continue;
        if (!p->device && s->cls != TRACE_COMM) {
            if (s->end <= host)
                continue;
            host = s->end;
        }
        list[n++] = s;
    }
    *out = list;
    return n;
}

static struct report_run draw(const struct trace_part *part, uint32_t step, struct program *p,
                              struct arena *a)
{
    struct drawing d = {.part = part, .p = p, .a = a};
    const struct trace_figures *x = &part->step.at[step].x;
    const struct trace_span **list;
    uint32_t n = pick(part, step, a, &list);
    int64_t from = part->step.at[step].start;

    for (uint32_t i = 0; i < n; i++) {
        from = list[i]->start < from || (part->device && i == 0) ? list[i]->start : from;
        d.several |= part->device &&
                     part->t->gpu.at[list[i]->event].pid != part->t->gpu.at[list[0]->event].pid;
    }
    p->n_op = n;
    p->op = arena_array(a, struct program_op, n + 1);
    p->use_at = arena_zeroed(a, (n + 1) * sizeof(uint32_t));
    p->dep_at = p->node_at = p->wait_at = p->use_at;
    d.span = arena_array(a, struct sim_span, n + 1);
    d.lane = arena_array(a, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        draw_op(&d, i, list[i], from);
    p->group = d.group.at;
    p->n_group = d.group.len;
    return (struct report_run){.label = part->label,
                               .p = p,
                               .span = d.span,
                               .lane = d.lane,
                               .lane_name = d.lane_name.at,
                               .n_lane = d.lane_name.len,
                               .time = {.makespan = part->device ? x->span : x->step,
                                        .compute = x->compute,
                                        .comm = x->comm,
                                        .exposed = x->exposed},
                               .measured_ps = x->step,
                               .bound_says = ""};
}

static const char *base_name(const struct trace *t)
{
    const char *slash = strrchr(t->file, '/');

    return slash != NULL ? slash + 1 : t->file;
}

/* Has another file of this rank the step? Each cycle of a schedule has its own. */
static bool elsewhere(const struct trace_set *s, uint32_t i, int64_t step, struct arena *a)
{
    int64_t rank = s->part[i].t->rank;

    for (uint32_t k = 0; k < s->n && rank >= 0 && step >= 0 && !s->part[i].t->ours; k++)
        if (k != i && s->part[k].t->rank == rank && choose(&s->part[k], step, a) != TRACE_NONE)
            return true;
    return false;
}

bool trace_pictures(const struct trace_set *s, int64_t step, struct program **program,
                    struct arena *a, struct report_graph *out)
{
    struct report_run *run = arena_array(a, struct report_run, s->n);
    bool asked = step >= 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        const struct trace_part *p = &s->part[i];
        uint32_t any = choose(p, step, a), k = any != TRACE_NONE || asked ? any : choose(p, -1, a);
        char *title = arena_array(a, char, 128), *label = arena_array(a, char, 128);

        if (any == TRACE_NONE && elsewhere(s, i, step, a))
            continue;
        if (k == TRACE_NONE)
            return false;
        if (step < 0 && s->n > 1)
            step = p->step.at[k].number; /* all ranks show the same step, if they have it */
        run[n] = draw(p, k, program[i], a);
        if (p->t->rank >= 0)
            snprintf(title, 128, "rank %lld", (long long)p->t->rank);
        else
            snprintf(title, 128, "%.120s", *p->label || p->t->ours ? p->label : base_name(p->t));
        if (p->step.at[k].number >= 0)
            snprintf(label, 128, "%.100s, step %lld", title, (long long)p->step.at[k].number);
        else
            snprintf(label, 128, "%.120s", title);
        run[n++].label = label;
    }
    const struct trace *t = s->part[0].t;
    *out = (struct report_graph){.title = "",
                                 .where = t->device != 0 ? trace_str(t, t->device)
                                                         : "the machine of the trace",
                                 .run = run,
                                 .n_run = n,
                                 .ranks = n > 1};
    return true;
}

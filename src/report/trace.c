#include "base/json.h"
#include "plan/arena_plan.h"
#include "report/report.h"

/* Threads: 0 is the compute stream, 1 + group a channel, the last one is for collectives without a
 * group; or the run says it. */
static uint32_t thread_of(const struct report_run *r, uint32_t op)
{
    const struct program *p = r->p;

    if (r->lane != NULL)
        return r->lane[op];
    if (p->op[op].kind != PROGRAM_COLLECTIVE)
        return 0;
    return p->op[op].group == PROGRAM_NONE ? 1 + p->n_group : 1 + p->op[op].group;
}

static void name_event(struct json_out *j, const char *what, uint32_t pid, uint32_t tid,
                       const char *name)
{
    json_open(j, NULL, '{');
    json_str(j, "name", what);
    json_str(j, "ph", "M");
    json_int(j, "pid", pid);
    json_int(j, "tid", tid);
    json_open(j, "args", '{');
    json_str(j, "name", name);
    json_close(j, '}');
    json_close(j, '}');
}

static void op_event(struct json_out *j, const struct report_run *r, uint32_t pid, uint32_t i)
{
    const struct program *p = r->p;
    const struct program_op *op = &p->op[i];

    json_open(j, NULL, '{');
    json_str(j, "name", program_str(p, op->name));
    json_str(j, "cat", program_kind_name[op->kind]);
    json_str(j, "ph", "X");
    json_float(j, "ts", (double)r->span[i].start / 1e6);
    json_float(j, "dur", (double)(r->span[i].end - r->span[i].start) / 1e6);
    json_int(j, "pid", pid);
    json_int(j, "tid", thread_of(r, i));
    json_open(j, "args", '{');
    json_str(j, "kernel", program_str(p, op->kernel));
    if (op->kind == PROGRAM_COLLECTIVE) {
        json_str(j, "coll", tuck_coll_name((tuck_coll)op->coll));
        if (op->group != PROGRAM_NONE) {
            json_str(j, "group", program_str(p, p->group[op->group].name));
            json_int(j, "ranks", p->group[op->group].size);
        }
        json_int(j, "bytes", op->message);
        json_str(j, "algorithm", program_str(p, op->algorithm));
        json_float(j, "exposed_us", (double)r->span[i].exposed / 1e6);
    }
    json_close(j, '}');
    json_close(j, '}');
}

/* An arrow from a collective to the wait that ends it. */
static void flow_event(struct json_out *j, const struct report_run *r, uint32_t pid, uint32_t op,
                       uint32_t id, bool end)
{
    json_open(j, NULL, '{');
    json_str(j, "name", "wait");
    json_str(j, "cat", "flow");
    json_str(j, "ph", end ? "f" : "s");
    if (end)
        json_str(j, "bp", "e");
    json_int(j, "id", id);
    json_float(j, "ts", (double)(end ? r->span[op].end : r->span[op].start) / 1e6);
    json_int(j, "pid", pid);
    json_int(j, "tid", thread_of(r, op));
    json_close(j, '}');
}

static void thread_names(struct json_out *j, const struct report_run *r, uint32_t pid)
{
    const struct program *p = r->p;
    bool loose = false;

    for (uint32_t k = 0; r->lane != NULL && k < r->n_lane; k++)
        name_event(j, "thread_name", pid, k, r->lane_name[k]);
    if (r->lane != NULL)
        return;
    name_event(j, "thread_name", pid, 0, "compute");
    for (uint32_t k = 0; k < p->n_group; k++)
        name_event(j, "thread_name", pid, 1 + k, program_str(p, p->group[k].name));
    for (uint32_t i = 0; i < p->n_op; i++)
        loose |= p->op[i].kind == PROGRAM_COLLECTIVE && p->op[i].group == PROGRAM_NONE;
    if (loose)
        name_event(j, "thread_name", pid, 1 + p->n_group, "no group");
}

/* Live bytes from the start of each op, as a counter. */
static void memory_events(struct json_out *j, const struct report_run *r, uint32_t pid)
{
    struct arena a;

    if (r->p->n_buf == 0)
        return;
    arena_init(&a, j->b->mem);
    struct life *life = arena_array(&a, struct life, r->p->n_buf);
    struct memory_peak peak;
    memory_lives(r->p, NULL, life);
    memory_peak(r->p, NULL, life, &a, &peak);
    for (uint32_t i = 0; i < r->p->n_op; i++) {
        if (i > 0 && peak.live[i] == peak.live[i - 1])
            continue;
        json_open(j, NULL, '{');
        json_str(j, "name", "memory");
        json_str(j, "ph", "C");
        json_float(j, "ts", (double)r->span[i].issued / 1e6);
        json_int(j, "pid", pid);
        json_open(j, "args", '{');
        json_int(j, "bytes", peak.live[i]);
        json_close(j, '}');
        json_close(j, '}');
    }
    arena_destroy(&a);
}

static void run_events(struct json_out *j, const struct report_run *r, uint32_t pid, uint32_t *flow)
{
    const struct program *p = r->p;

    name_event(j, "process_name", pid, 0, r->label);
    thread_names(j, r, pid);
    for (uint32_t i = 0; i < p->n_op; i++)
        op_event(j, r, pid, i);
    memory_events(j, r, pid);
    for (uint32_t i = 0; i < p->n_op; i++)
        for (uint32_t k = p->wait_at[i]; k < p->wait_at[i + 1]; k++) {
            flow_event(j, r, pid, p->wait[k], ++*flow, false);
            flow_event(j, r, pid, i, *flow, true);
        }
}

void report_trace(const struct report_graph *graph, uint32_t n, struct buf *out)
{
    struct json_out j;
    uint32_t flow = 0, pid = 0;

    json_begin(&j, out);
    json_open(&j, NULL, '{');
    json_str(&j, "displayTimeUnit", "ns");
    json_open(&j, "traceEvents", '[');
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < graph[i].n_run; k++)
            run_events(&j, &graph[i].run[k], pid++, &flow);
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}

#include <inttypes.h>

#include "base/json.h"
#include "cost/assumed.h"
#include "plan/arena_plan.h"
#include "report/report.h"
#include "report/origin_show.h"

extern const unsigned char report_page[]; /* page.html, converted to C by the Makefile */

static const char *group_name(const struct program *p, uint32_t group)
{
    return group == PROGRAM_NONE ? "" : program_str(p, p->group[group].name);
}

static void op_json(struct json_out *j, const struct report_run *r, uint32_t i)
{
    const struct program *p = r->p;
    const struct program_op *op = &p->op[i];
    uint32_t limit_op = r->limit_op ? r->limit_op[i] : PROGRAM_NONE;

    json_open(j, NULL, '{');
    json_str(j, "name", program_str(p, op->name));
    json_str(j, "kind", program_kind_name[op->kind]);
    json_str(j, "kernel", program_str(p, op->kernel));
    json_int(j, "start", r->span[i].start);
    json_int(j, "end", r->span[i].end);
    json_int(j, "exposed", r->span[i].exposed);
    json_int(j, "stood", r->span[i].stood);
    if (r->lane != NULL)
        json_str(j, "lane", r->lane_name[r->lane[i]]);
    if (op->kind == PROGRAM_COLLECTIVE) {
        json_int(j, "issued", r->span[i].issued);
        json_str(j, "coll", tuck_coll_name((tuck_coll)op->coll));
        json_str(j, "group", group_name(p, op->group));
        json_int(j, "bytes", op->message > 0 ? op->message : 0);
        json_str(j, "algorithm", program_str(p, op->algorithm));
        origin_json(j, p, op);
        json_str(j, "limit", r->limit && r->limit[i] ? r->limit[i] : "");
        json_str(j, "limit_op",
                 limit_op != PROGRAM_NONE ? program_str(p, p->op[limit_op].name) : "");
    }
    json_open(j, "nodes", '[');
    for (uint32_t k = p->node_at[i]; k < p->node_at[i + 1]; k++)
        json_str(j, NULL, program_str(p, p->node[k]));
    json_close(j, ']');
    if (p->wait_at[i] < p->wait_at[i + 1]) {
        json_open(j, "waits", '[');
        for (uint32_t k = p->wait_at[i]; k < p->wait_at[i + 1]; k++)
            json_str(j, NULL, program_str(p, p->op[p->wait[k]].name));
        json_close(j, ']');
    }
    json_open(j, "deps", '[');
    for (uint32_t k = p->dep_at[i]; k < p->dep_at[i + 1]; k++)
        json_str(j, NULL, program_str(p, p->op[p->dep[k].op].name));
    json_close(j, ']');
    json_close(j, '}');
}

/* Live bytes from the start of each op. */
static const int64_t *live_bytes(const struct program *p, struct arena *a)
{
    struct life *life = arena_array(a, struct life, p->n_buf);
    struct memory_peak peak;

    memory_lives(p, NULL, life);
    memory_peak(p, NULL, life, a, &peak);
    return peak.live;
}

static void run_json(struct json_out *j, const struct report_run *r)
{
    struct arena a;

    arena_init(&a, j->b->mem);
    const int64_t *live = live_bytes(r->p, &a);
    json_open(j, NULL, '{');
    json_str(j, "label", r->label);
    json_int(j, "step_ps", r->measured_ps > 0 ? r->measured_ps : r->time.makespan);
    json_int(j, "span_ps", r->time.makespan);
    json_bool(j, "measured", r->measured_ps > 0);
    json_int(j, "compute_ps", r->time.compute);
    json_int(j, "comm_ps", r->time.comm);
    json_int(j, "exposed_ps", r->time.exposed);
    json_int(j, "others_ps", r->others_ps);
    json_int(j, "peak", r->peak);
    json_int(j, "bound_ps", r->bound_ps);
    json_str(j, "bound_says", r->bound_says);
    cost_assumed_json(j, r->assumed, r->n_assumed, r->p->used_default);
    json_open(j, "ops", '[');
    for (uint32_t i = 0; i < r->p->n_op; i++)
        op_json(j, r, i);
    json_close(j, ']');
    json_open(j, "memory", '[');
    for (uint32_t i = 0; i < r->p->n_op; i++) {
        json_open(j, NULL, '[');
        json_int(j, NULL, r->span[i].issued); /* a queued collective already holds its memory */
        json_int(j, NULL, live[i]);
        json_close(j, ']');
    }
    json_close(j, ']');
    json_close(j, '}');
    arena_destroy(&a);
}

/* JSON inside a page: "</" would end the script. */
static void put_safely(struct buf *out, const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (s[i] == '<')
            buf_str(out, "\\u003c");
        else
            buf_chr(out, s[i]);
    }
}

void report_html(const char *title, const struct report_graph *graph, uint32_t n, struct buf *out)
{
    static const char mark[] = "@DATA@";
    const char *page = (const char *)report_page, *at = strstr(page, mark);
    struct buf data;
    struct json_out j;

    buf_init(&data, out->mem);
    json_begin(&j, &data);
    json_open(&j, NULL, '{');
    json_str(&j, "title", title);
    json_open(&j, "graphs", '[');
    for (uint32_t i = 0; i < n; i++) {
        json_open(&j, NULL, '{');
        json_str(&j, "title", graph[i].title);
        json_str(&j, "where", graph[i].where);
        json_bool(&j, "ranks", graph[i].ranks);
        json_open(&j, "runs", '[');
        for (uint32_t k = 0; k < graph[i].n_run; k++)
            run_json(&j, &graph[i].run[k]);
        json_close(&j, ']');
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
    buf_add(out, page, (size_t)(at - page));
    put_safely(out, data.at, data.len);
    buf_str(out, at + sizeof(mark) - 1);
    buf_destroy(&data);
}

#include "job/tie_show.h"

#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/json_in.h"
#include "base/layout.h"

void tie_profile(const struct tie *t, const struct program *p, struct buf *b)
{
    struct json_out j;

    json_begin(&j, b);
    json_open(&j, NULL, '{');
    json_int(&j, "schema", 1);
    json_str(&j, "unit", "ns");
    json_open(&j, "nodes", '{');
    for (uint32_t i = 0; i < t->n_op; i++) {
        bool first = true;
        if (t->ps[i] < 0)
            continue;
        for (uint32_t k = p->node_at[i]; k < p->node_at[i + 1]; k++) {
            bool own = p->node_id[k] == p->op[i].node;
            first &= !own;
            json_float(&j, program_str(p, p->node[k]), own ? ns_of_ps(t->ps[i]) : 0);
        }
        if (first && p->node_at[i] == p->node_at[i + 1])
            json_float(&j, program_str(p, p->op[i].name), ns_of_ps(t->ps[i]));
    }
    json_close(&j, '}');
    json_close(&j, '}');
    json_end(&j);
}

static void beside(const char *what, int64_t measured, int64_t simulated, int64_t step,
                   struct buf *b)
{
    double by = step > 0 ? 100 * (double)(simulated - measured) / (double)step : 0;

    buf_printf(b, "  %-22s %12.3f %12.3f", what, (double)measured / 1e9, (double)simulated / 1e9);
    ink_line(b, INK_DIM, " %+9.1f %%", by);
}

static void latency_line(const struct tie *t, struct buf *b)
{
    const struct tie_count *x = &t->count[TIE_COLLECTIVES];

    if (!t->one_size || x->tied == x->n)
        return;
    if (t->round_us > 0)
        wrap_line(b, INK_DIM, LAYOUT_SAY,
                  "latency of messages: %.1f us for each of their rounds, from barriers",
                  t->round_us);
    else
        wrap_line(b, INK_LIMIT, LAYOUT_SAY,
                  "messages of about one size do not tell the latency of others: record a job with "
                  "small ones, too, or with a barrier in each step");
}

static void waiting_lines(const struct tie *t, struct buf *b)
{
    if (t->lost == 0)
        return;
    if (t->beside.ranks >= BESIDE_SHARED)
        wrap_line(b, INK_DIM, LAYOUT_SAY,
                  "ranks share cores: kernels take %.2f times as long while all other ranks "
                  "compute, and waiting is the same for any number of collectives",
                  t->beside.ranks);
    wrap_line(b, INK_DIM, LAYOUT_SAY,
              "waiting for other ranks, %.3f ms, is spread over all ops: as if this rank were as "
              "slow as they are",
              (double)t->lost / 1e9);
}

void tie_table(const struct tie *t, const tuck_times *times, struct buf *b)
{
    static const char *const name[TIE_CLASS_END] = {"collectives", "products", "other kernels"};
    const struct trace_figures *m = &t->measured;

    if (t->n_window < t->n_run)
        wrap_line(b, INK_HEAD, 2,
                  "measured: %u of its runs in the trace, the middle half of %u by time%s",
                  t->n_window, t->n_run, t->others ? "; beside it the mean of the others" : "");
    else
        wrap_line(b, INK_HEAD, 2, "measured: %u of its runs in the trace%s", t->n_window,
                  t->others ? "; beside it the mean of the others" : "");
    if (t->reordered)
        wrap_line(b, INK_DIM, LAYOUT_SAY, "the graph is in the order of Inductor's code");
    if (t->alone && t->beside.kernel > 0)
        wrap_line(b, INK_DIM, LAYOUT_SAY,
                  "kernels as if alone: %.2f times as long beside communication", t->beside.kernel);
    if (t->alone && t->beside.transfer > 0)
        wrap_line(b, INK_DIM, LAYOUT_SAY,
                  "communication as if alone: %.2f times as long beside kernels",
                  t->beside.transfer);
    else if (t->alone && t->count[TIE_COLLECTIVES].n > 0)
        wrap_line(b, INK_LIMIT, LAYOUT_SAY,
                  "how much longer communication takes beside kernels is not known: none of it ran "
                  "with and without them");
    waiting_lines(t, b);
    latency_line(t, b);
    for (int c = 0; c < TIE_CLASS_END; c++) {
        const struct tie_count *x = &t->count[c];
        if (x->n == 0)
            continue;
        buf_printf(b, "    %-14s %5u of %5u tied, %.3f ms", name[c], x->tied, x->n,
                   (double)x->ps / 1e9);
        if (x->ambiguous > 0)
            ink_printf(b, INK_LIMIT, "; %u ambiguous", x->ambiguous);
        if (x->tied < x->n)
            ink_printf(b, INK_LIMIT, "; the rest is modeled");
        buf_chr(b, '\n');
    }
    if (times == NULL)
        return;
    ink_line(b, INK_HEAD, "  %-22s %12s %12s %11s", t->others ? "ms (other runs)" : "ms",
             "measured", "simulated", "of the step");
    beside("step", m->step, times->step_ps, m->step, b);
    beside("compute", m->compute, times->compute_ps, m->step, b);
    beside("communication", m->comm, times->comm_ps, m->step, b);
    beside("exposed", m->exposed, times->exposed_ps, m->step, b);
    beside("gaps and launches", m->idle, times->step_ps - times->compute_ps - times->exposed_ps,
           m->step, b);
}

static void beside_json(struct json_out *j, const char *key, int64_t measured, int64_t simulated,
                        int64_t step)
{
    json_open(j, key, '{');
    json_float(j, "measured_ns", ns_of_ps(measured));
    json_float(j, "simulated_ns", ns_of_ps(simulated));
    json_float(j, "error_of_step",
               step > 0 ? (double)(simulated - measured) / (double)step : (double)NAN);
    json_close(j, '}');
}

void tie_json(const struct tie *t, const tuck_times *times, struct buf *b)
{
    static const char *const name[TIE_CLASS_END] = {"collectives", "products", "kernels"};
    const struct trace_figures *m = &t->measured;
    struct json_out j;

    json_begin(&j, b);
    j.flat = true;
    json_open(&j, NULL, '{');
    json_int(&j, "runs", t->n_run);
    json_int(&j, "runs_used", t->n_window);
    json_bool(&j, "judged_by_others", t->others);
    json_int(&j, "runs_judged", t->n_judged);
    json_bool(&j, "order_of_code", t->reordered);
    if (t->alone && t->beside.kernel > 0)
        json_float(&j, "kernels_beside", t->beside.kernel);
    if (t->alone && t->beside.transfer > 0)
        json_float(&j, "transfers_beside", t->beside.transfer);
    if (t->alone)
        json_float(&j, "waiting_ns", ns_of_ps(t->lost));
    if (t->alone && t->beside.ranks > 0)
        json_float(&j, "ranks_beside", t->beside.ranks);
    if (t->one_size && t->round_us > 0)
        json_float(&j, "round_us", t->round_us);
    for (int c = 0; c < TIE_CLASS_END; c++) {
        json_open(&j, name[c], '{');
        json_int(&j, "ops", t->count[c].n);
        json_int(&j, "tied", t->count[c].tied);
        json_int(&j, "ambiguous", t->count[c].ambiguous);
        json_float(&j, "ns", ns_of_ps(t->count[c].ps));
        json_close(&j, '}');
    }
    json_open(&j, "ambiguous", '[');
    for (uint32_t i = 0; i < t->count[TIE_COLLECTIVES].ambiguous; i++)
        json_str(&j, NULL, t->ambiguous[i]);
    json_close(&j, ']');
    if (times != NULL) {
        beside_json(&j, "step", m->step, times->step_ps, m->step);
        beside_json(&j, "compute", m->compute, times->compute_ps, m->step);
        beside_json(&j, "comm", m->comm, times->comm_ps, m->step);
        beside_json(&j, "exposed", m->exposed, times->exposed_ps, m->step);
        beside_json(&j, "gaps", m->idle, times->step_ps - times->compute_ps - times->exposed_ps,
                    m->step);
    }
    json_close(&j, '}');
}

/* ---- Inductor's mapping ---- */

struct reading {
    struct arena *a;
    struct tie_kernel **out;
    uint32_t *n;
    struct jin in;
};

static void read_kernel(struct reading *r, const struct jin_at *at, struct tie_kernel *k)
{
    const char *colon = strrchr(at->key, ':');
    size_t len = colon != NULL ? (size_t)(colon - at->key) : strlen(at->key);

    k->name = arena_str(r->a, at->key, len);
    k->number = colon != NULL ? strtoll(colon + 1, NULL, 10) : 0;
    k->node = arena_array(r->a, const char *, jin_len(at) + 1);
    k->n = 0;
    for (size_t i = 0; i < jin_len(at); i++) {
        struct jin_at item = jin_item(at, i);
        const char *word;
        if (jin_want_str(&r->in, &item, &word))
            k->node[k->n++] = arena_str(r->a, word, strlen(word));
    }
}

static void do_read(void *arg)
{
    struct reading *r = arg;
    struct jin_at root = jin_root(&r->in), map = jin_member(&root, "cppCodeToPost");

    if (!jin_want_object(&r->in, &root) || !jin_want_object(&r->in, &map))
        return;
    *r->out = arena_array(r->a, struct tie_kernel, jin_len(&map) + 1);
    for (void *i = jin_first(&map); i != NULL; i = jin_next(&map, i)) {
        struct jin_at at = jin_at_iter(&map, i);
        if (jin_want_list(&r->in, &at))
            read_kernel(r, &at, &(*r->out)[(*r->n)++]);
    }
}

static tuck_status from_text(const char *text, size_t len, const char *name,
                             const tuck_allocator *alloc, tuck_diags *diags, void *out)
{
    struct reading *r = out;
    tuck_status st = jin_text(&r->in, text, len, name, diags);

    (void)alloc;
    if (st == TUCK_OK && !mem_guard(r->a->mem, do_read, r))
        st = TUCK_ENOMEM;
    if (st == TUCK_OK && r->in.bad)
        st = TUCK_ESYNTAX;
    jin_done(&r->in);
    return st;
}

tuck_status tie_read_kernels(const char *path, struct arena *a, tuck_diags *diags,
                             struct tie_kernel **out, uint32_t *n)
{
    struct reading r = {.a = a, .out = out, .n = n};

    *n = 0;
    return file_read(path, &a->mem->alloc, diags, from_text, &r);
}

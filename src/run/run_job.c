/* The ranks of a job: each prepares, runs its steps and notes what it measured. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "run/run.h"

/* ---- notes ---- */

static size_t rounded(size_t n)
{
    return (n + 63) & ~(size_t)63;
}

static uint32_t results_of(const tuck_graph *g)
{
    const struct fx_node *out = g->output != 0 ? node_at(g, g->output) : NULL;

    if (out == NULL || out->n_vals == 0)
        return 0;
    return value_is_container(out->vals) ? out->vals->a : 1;
}

/* What is compared: what the graph returns, and then inputs that it writes. */
static uint32_t compared_of(const struct run_rank *r)
{
    return results_of(r->g) + r->n_written;
}

/* All arrays are in the one mapping, so that processes that are forked later see them. */
static struct run_note *note_new(const struct run_plan *plan)
{
    size_t steps = plan->o->steps, n = compared_of(&plan->side[0].rank[0]);
    size_t bytes = rounded(sizeof(struct run_note)) +
                   rounded((n + 1) * sizeof(struct run_compared));

    for (uint32_t s = 0; s < plan->n_side; s++)
        bytes += rounded((steps + 1) * sizeof(int64_t)) +
                 rounded(((size_t)plan->side[s].rank[0].p->n_op + 1) * sizeof(struct exec_time));
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    struct run_note *note = (struct run_note *)at;
    note->bytes = bytes;
    at += rounded(sizeof(*note));
    note->compared = (struct run_compared *)at;
    note->n_compared = (uint32_t)n;
    at += rounded((n + 1) * sizeof(struct run_compared));
    for (uint32_t s = 0; s < plan->n_side; s++) {
        note->side[s].step_ns = (int64_t *)at;
        at += rounded((steps + 1) * sizeof(int64_t));
        note->side[s].time = (struct exec_time *)at;
        at += rounded(((size_t)plan->side[s].rank[0].p->n_op + 1) * sizeof(struct exec_time));
    }
    return note;
}

void run_note_free(struct run_note *n)
{
    if (n != NULL)
        munmap(n, n->bytes);
}

/* ---- one rank ---- */

struct rank {
    const struct run_plan *plan;
    struct comm *comm;
    int number;
    struct mem mem;
    struct arena a; /* of the whole job on this rank */
    int32_t *id;    /* by set */
    char **heap;    /* by set: its symmetric heap */
    void *base;
    size_t base_bytes;
    struct exec *x;
    struct saved *result[RUN_SIDES];
    char *error; /* EXEC_ERROR_BYTES */
    bool ok;
};

struct saved { /* what a graph returned */
    enum exec_result_kind kind;
    struct rt_tensor t;
    struct sym_num number;
};

static bool fail(struct rank *k, const char *why)
{
    if (k->error[0] == '\0')
        snprintf(k->error, EXEC_ERROR_BYTES, "%s", why);
    return false;
}

static bool comm_failed(struct rank *k)
{
    return fail(k, comm_error(k->comm));
}

static int64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- groups and memory ---- */

static bool is_world(const struct rank *k, const struct run_set *s)
{
    for (int32_t i = 0; i < s->n; i++)
        if (s->member[i] != i)
            return false;
    return s->n == k->plan->world;
}

static bool make_groups(struct rank *k)
{
    const struct run_plan *plan = k->plan;

    k->id = arena_array(&k->a, int32_t, (size_t)plan->set.len + 1);
    for (uint32_t i = 0; i < plan->set.len; i++) {
        const struct run_set *s = &plan->set.at[i];
        k->id[i] = is_world(k, s) ? 0 : comm_group(k->comm, s->member, s->n);
        if (k->id[i] < 0)
            return comm_failed(k);
    }
    return true;
}

/* The largest symmetric heap that any side plans for a set, on any rank. */
static int64_t heap_of_set(const struct run_plan *plan, uint32_t set)
{
    int64_t most = 0;

    for (uint32_t s = 0; s < plan->n_side; s++)
        for (int r = 0; r < plan->world; r++) {
            const struct run_rank *x = &plan->side[s].rank[r];
            for (uint32_t i = 0; i < x->p->n_group; i++)
                if (x->set[i] == (int32_t)set && x->p->heap[i] > most)
                    most = x->p->heap[i];
        }
    return most;
}

static bool is_member(const struct rank *k, const struct run_set *s)
{
    for (int32_t i = 0; i < s->n; i++)
        if (s->member[i] == k->number)
            return true;
    return false;
}

/* The heap of the world has the symmetric heap of the group that is the world, and then this rank's
 * arena and inputs: collectives need no copies from and to there. */
static bool make_memory(struct rank *k)
{
    const struct run_plan *plan = k->plan;
    size_t first = 0, room = 1;

    k->heap = arena_zeroed(&k->a, ((size_t)plan->set.len + 1) * sizeof(*k->heap));
    for (uint32_t i = 0; i < plan->set.len; i++) {
        size_t bytes = rounded((size_t)heap_of_set(plan, i));
        if (k->id[i] == 0) {
            first = bytes;
        } else if (bytes > 0 && is_member(k, &plan->set.at[i])) {
            k->heap[i] = comm_heap(k->comm, k->id[i], bytes);
            if (k->heap[i] == NULL)
                return comm_failed(k);
        }
    }
    for (uint32_t s = 0; s < plan->n_side; s++)
        for (int r = 0; r < plan->world; r++) {
            size_t need = exec_room(plan->side[s].rank[r].p);
            room = need > room ? need : room;
        }
    char *heap = comm_heap(k->comm, 0, first + room);
    if (heap == NULL)
        return comm_failed(k);
    for (uint32_t i = 0; i < plan->set.len; i++)
        if (k->id[i] == 0)
            k->heap[i] = heap;
    k->base = heap + first;
    k->base_bytes = room;
    return true;
}

/* ---- inputs ---- */

struct pristine { /* an input that steps overwrite */
    const struct exec_input *in;
    void *bytes;
    size_t n;
};

struct inputs {
    VEC(struct pristine) p;
};

static size_t span_of(const struct rt_tensor *t)
{
    int64_t last = 0;

    for (uint32_t i = 0; i < t->n; i++) {
        if (t->size[i] == 0)
            return 0;
        last += (t->size[i] - 1) * t->stride[i];
    }
    return (size_t)(last + 1) * dtype_at((enum dtype)t->dtype)->bytes;
}

static bool fill_inputs(struct rank *k, uint32_t side, struct inputs *all)
{
    const struct run_rank *r = &k->plan->side[side].rank[k->number];
    char why[EXEC_ERROR_BYTES];

    for (uint32_t i = 0; i < exec_input_count(k->x); i++) {
        const struct exec_input *in = exec_input_at(k->x, i);
        if (!run_fill(k->plan, r, k->number, in, why))
            return fail(k, why);
        if (!in->lost)
            continue;
        struct pristine p = {in, NULL, span_of(in->tensor)};
        p.bytes = arena_alloc(&k->a, p.n + 1);
        memcpy(p.bytes, in->tensor->data, p.n);
        vec_push_in(&k->a, &all->p, p);
    }
    return true;
}

static void refill(const struct inputs *all)
{
    for (uint32_t i = 0; i < all->p.len; i++)
        memcpy(all->p.at[i].in->tensor->data, all->p.at[i].bytes, all->p.at[i].n);
}

/* ---- steps ---- */

static bool meet(struct rank *k)
{
    struct comm_call c = {.kind = COMM_BARRIER, .label = "the beginning of the step"};
    comm_req req;

    return (comm_start(k->comm, &c, &req) && comm_wait(k->comm, req)) || comm_failed(k);
}

static bool one_step(struct rank *k, const struct inputs *in, struct exec_time *time,
                     int64_t *began, int64_t *ns)
{
    refill(in);
    if (!meet(k))
        return false;
    *began = now();
    if (!exec_step(k->x, time))
        return fail(k, exec_error(k->x));
    *ns = now() - *began;
    return true;
}

static int by_value(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

    return (a > b) - (a < b);
}

/* The measured step whose time is the median. */
static uint32_t median_step(struct rank *k, const int64_t *ns, uint32_t n)
{
    int64_t *sorted = arena_array(&k->a, int64_t, (size_t)n + 1);

    memcpy(sorted, ns, n * sizeof(*ns));
    qsort(sorted, n, sizeof(*sorted), by_value);
    for (uint32_t i = 0; i < n; i++)
        if (ns[i] == sorted[n / 2])
            return i;
    return 0;
}

/* Rank 0 notes times: of the slowest rank for each step, and its own timeline of one step. */
static bool note_times(struct rank *k, uint32_t side, const int64_t *ns, const int64_t *began,
                       const struct exec_time *time)
{
    const struct run_plan *plan = k->plan;
    uint32_t steps = plan->o->steps, n_op = plan->side[side].rank[0].p->n_op;
    int64_t *all = arena_array(&k->a, int64_t, (size_t)steps * (size_t)plan->world + 1);
    struct run_note *note = plan->note;

    if (!comm_exchange(k->comm, ns, steps * sizeof(*ns), all))
        return comm_failed(k);
    if (k->number != 0)
        return true;
    for (uint32_t i = 0; i < steps; i++)
        for (int r = 0; r < plan->world; r++) {
            int64_t v = all[(size_t)r * steps + i];
            note->side[side].step_ns[i] = v > note->side[side].step_ns[i]
                                              ? v
                                              : note->side[side].step_ns[i];
        }
    uint32_t middle = median_step(k, note->side[side].step_ns, steps);
    memcpy(note->side[side].time, time + (size_t)middle * n_op, n_op * sizeof(*time));
    note->side[side].began = began[middle];
    return true;
}

static bool count_memory(struct rank *k, const struct inputs *in)
{
    for (int round = 0; round < 2; round++) {
        exec_count_begin(k->x);
        refill(in);
        if (!meet(k))
            return false;
        if (!exec_step(k->x, NULL))
            return fail(k, exec_error(k->x));
        exec_count_end(k->x);
    }
    return true;
}

static bool run_steps(struct rank *k, uint32_t side, const struct inputs *in)
{
    const tuck_exec_options *o = k->plan->o;
    uint32_t n_op = k->plan->side[side].rank[k->number].p->n_op;
    int64_t *ns = arena_zeroed(&k->a, ((size_t)o->steps + 1) * sizeof(*ns));
    int64_t *began = arena_zeroed(&k->a, ((size_t)o->steps + 1) * sizeof(*began));
    struct exec_time *time = k->number == 0
                                 ? arena_array(&k->a, struct exec_time,
                                               ((size_t)o->steps + 1) * ((size_t)n_op + 1))
                                 : arena_array(&k->a, struct exec_time, (size_t)n_op + 1);

    for (uint32_t i = 0; i < o->warmup + o->steps; i++) {
        uint32_t at = i < o->warmup ? 0 : i - o->warmup;
        if (k->number == 0 && o->progress != NULL)
            o->progress(o->ctx, i, o->warmup + o->steps);
        if (!one_step(k, in, time + (k->number == 0 ? (size_t)at * n_op : 0), &began[at], &ns[at]))
            return false;
    }
    return (!o->count_memory || count_memory(k, in)) && note_times(k, side, ns, began, time);
}

/* ---- a side ---- */

static bool save_tensor(struct rank *k, const struct rt_tensor *t, struct saved *s)
{
    size_t bytes = (size_t)rt_numel(t) * dtype_at((enum dtype)t->dtype)->bytes;
    char why[EXEC_ERROR_BYTES];

    s->kind = EXEC_RESULT_TENSOR;
    s->t = *t;
    s->t.data = arena_alloc(&k->a, bytes + 1);
    return run_copy_dense(t, s->t.data, why) || fail(k, why);
}

static bool save_results(struct rank *k, uint32_t side)
{
    uint32_t n = exec_result_count(k->x), most = k->plan->note->n_compared;
    struct saved *s = arena_zeroed(&k->a, ((size_t)n + most + 1) * sizeof(*s));

    for (uint32_t i = 0; i < n; i++) {
        struct exec_result r = exec_result_at(k->x, i);
        s[i].kind = r.kind;
        s[i].number = r.number;
        if (r.kind == EXEC_RESULT_TENSOR && !save_tensor(k, r.tensor, &s[i]))
            return false;
    }
    for (uint32_t i = 0; i < exec_input_count(k->x) && n < most; i++)
        if (exec_input_at(k->x, i)->written &&
            !save_tensor(k, exec_input_at(k->x, i)->tensor, &s[n++]))
            return false;
    k->result[side] = s;
    return true;
}

static bool prepare(struct rank *k, uint32_t side)
{
    const struct run_plan *plan = k->plan;
    const struct run_rank *r = &plan->side[side].rank[k->number];
    int32_t *group = arena_array(&k->a, int32_t, (size_t)r->p->n_group + 1);
    char **heap = arena_zeroed(&k->a, ((size_t)r->p->n_group + 1) * sizeof(*heap));
    const struct comm_planned *row;
    char why[EXEC_ERROR_BYTES];

    for (uint32_t i = 0; i < r->p->n_group; i++) {
        group[i] = r->set[i] >= 0 ? k->id[r->set[i]] : -1;
        heap[i] = r->set[i] >= 0 ? k->heap[r->set[i]] : NULL;
    }
    struct exec_options o = {.g = r->g,
                             .p = r->p,
                             .comm = k->comm,
                             .group = group,
                             .base = k->base,
                             .base_bytes = k->base_bytes,
                             .heap = heap,
                             .kernel = plan->kernel,
                             .n_kernel = plan->o->n_kernels,
                             .number = r->number,
                             .n_number = r->n_number,
                             .seed = plan->o->seed,
                             .same_text = plan->side[side].same_text};
    if (!exec_prepare(&o, &k->x, why))
        return fail(k, why);
    uint32_t n = exec_planned(k->x, &row);
    return comm_compare(k->comm, row, n) || comm_failed(k);
}

static bool run_side(struct rank *k, uint32_t side)
{
    const struct run_plan *plan = k->plan;
    struct inputs in = {{NULL, 0, 0}};
    char why[EXEC_ERROR_BYTES];

    if (!prepare(k, side) || !fill_inputs(k, side, &in) || !run_steps(k, side, &in))
        return false;
    if (k->number == 0)
        exec_memory(k->x, &plan->note->side[side].memory);
    if (plan->n_side > 1 && !save_results(k, side))
        return false;
    if (plan->o->outputs != NULL && side == 0 && !run_write(plan, k->number, k->x, why))
        return fail(k, why);
    exec_end(k->x);
    k->x = NULL;
    return true;
}

/* ---- comparing ---- */

static void compare_saved(const struct saved *a, const struct saved *b, struct run_compared *out)
{
    *out = (struct run_compared){.equal = true, .within = true, .elements = 1};
    bool same = a->kind == b->kind;
    if (same && a->kind == EXEC_RESULT_NUMBER)
        same = a->number.kind == b->number.kind && a->number.i == b->number.i &&
               (a->number.kind != SYM_T_FLOAT || a->number.f == b->number.f);
    if (same && a->kind == EXEC_RESULT_TENSOR)
        same = a->t.dtype == b->t.dtype && a->t.n == b->t.n &&
               memcmp(a->t.size, b->t.size, a->t.n * sizeof(*a->t.size)) == 0;
    if (same && a->kind == EXEC_RESULT_TENSOR)
        run_compare(&a->t, &b->t, out);
    else if (!same)
        *out = (struct run_compared){.elements = 1, .different = 1};
}

static bool is_worse(const struct run_compared *a, const struct run_compared *b)
{
    if (a->within != b->within)
        return !a->within;
    if (a->equal != b->equal)
        return !a->equal;
    return a->ulp > b->ulp;
}

static bool compare_sides(struct rank *k)
{
    const struct run_plan *plan = k->plan;
    struct run_note *note = plan->note;
    struct run_compared *all = arena_array(&k->a, struct run_compared, (size_t)plan->world);

    for (uint32_t i = 0; i < note->n_compared; i++) {
        struct run_compared own;
        compare_saved(&k->result[0][i], &k->result[1][i], &own);
        own.rank = k->number;
        if (!comm_exchange(k->comm, &own, sizeof(own), all))
            return comm_failed(k);
        for (int r = 1; r < plan->world; r++)
            if (is_worse(&all[r], &all[0]))
                all[0] = all[r];
        if (k->number == 0)
            note->compared[i] = all[0];
    }
    return true;
}

/* ---- the whole ---- */

static bool whole(struct rank *k)
{
    const struct run_plan *plan = k->plan;
    char text[128];

    if (k->comm->world != plan->world) {
        snprintf(text, sizeof(text), "the job has %d ranks, the graph is for %d", k->comm->world,
                 plan->world);
        return fail(k, text);
    }
    k->number = k->comm->rank;
    if (!make_groups(k) || !make_memory(k))
        return false;
    for (uint32_t s = 0; s < plan->n_side; s++)
        if (!run_side(k, s))
            return false;
    if (plan->n_side > 1 && !compare_sides(k))
        return false;
    if (k->number == 0)
        plan->note->speaks = true;
    return meet(k);
}

static void do_rank(void *arg)
{
    struct rank *k = arg;

    k->ok = whole(k);
}

static int rank_main(void *arg, const struct comm_job *job, char *error)
{
    struct rank k = {.plan = arg, .error = error};

    error[0] = '\0';
    k.comm = comm_open(job, error);
    if (k.comm == NULL)
        return 1;
    mem_init(&k.mem, NULL);
    arena_init(&k.a, &k.mem);
    if (!mem_guard(&k.mem, do_rank, &k))
        fail(&k, "out of memory");
    exec_end(k.x);
    arena_destroy(&k.a);
    if (!k.ok)
        comm_abort(k.comm, error);
    comm_close(k.comm);
    return k.ok ? 0 : 1;
}

static tuck_status report_failure(struct run_plan *plan, const struct launch_result *r)
{
    const char *why = r->first >= 0 && r->first < r->n ? r->rank[r->first].error : "";

    if (strncmp(why, "rank ", 5) == 0) /* transports say which */
        diag_add(plan->diags, TUCK_ERROR, NOWHERE, NULL, "%s", why);
    else if (why[0] != '\0')
        diag_add(plan->diags, TUCK_ERROR, NOWHERE, NULL, "rank %d: %s", r->first, why);
    else
        diag_add(plan->diags, TUCK_ERROR, NOWHERE, NULL, "%s",
                 r->error[0] != '\0' ? r->error : "a rank failed");
    return TUCK_EINVAL;
}

tuck_status run_go(struct run_plan *plan)
{
    const tuck_exec_options *o = plan->o;
    bool threads = o->transport != NULL && strcmp(o->transport, "threads") == 0;
    char error[COMM_ERROR_BYTES];
    struct launch_options lo = {.world = plan->world,
                                .threads = threads,
                                .pin = !o->no_pin,
                                .timeout_s = o->timeout_s,
                                .transport = transport_find(threads ? "shm" : o->transport, error)};
    struct launch_result result;

    if (lo.transport == NULL) {
        diag_add(plan->diags, TUCK_ERROR, NOWHERE, NULL, "%s", error);
        return TUCK_EINVAL;
    }
    plan->transport = lo.transport->name;
    plan->note = note_new(plan);
    if (plan->note == NULL)
        return TUCK_ENOMEM;
    bool ok = launch(&lo, rank_main, plan, &result);
    tuck_status st = ok ? TUCK_OK : report_failure(plan, &result);
    launch_free(&result);
    return st;
}

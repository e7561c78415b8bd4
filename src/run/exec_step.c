/* Runs the steps. */
#include <stdio.h>
#include <time.h>

#include "run/exec_core.h"

static int64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct stepping {
    struct exec *x;
    struct exec_time *time;
    bool ok;
};

/* ---- kernels ---- */

/* The kernel wrote why; the node's name goes before it. */
static bool kernel_failed(struct exec *x, uint32_t node)
{
    char why[EXEC_ERROR_BYTES];

    memcpy(why, x->error, sizeof(why));
    why[sizeof(why) - 1] = '\0';
    return exec_fail_at(x, node, "%s", *why ? why : "its kernel failed");
}

static bool need_scratch(struct exec *x, struct exec_step *s)
{
    size_t need = s->what == STEP_KERNEL ? kernel_scratch(&s->call) : 0;

    if (need >= (size_t)KERNEL_MOST_BYTES)
        return exec_fail_at(x, s->node, "needs more memory than can be had");
    if (need > x->scratch_bytes) {
        x->scratch = exec_grow(x, need);
        x->scratch_bytes = need;
    }
    s->call.scratch = x->scratch;
    return true;
}

/* A symbol that is the size of a result, and depends on data. */
static const char *size_symbol(const struct exec *x, uint32_t node)
{
    const struct type *t = type_at(&x->g->store->type, node_type(x->g, node));
    const struct symtab *sym = &x->g->store->sym;

    for (uint32_t d = 0; t->kind == TYPE_TENSOR && d < t->n; d++)
        if (sym_at(sym, t->size[d])->op == SYM_SYMBOL) {
            const char *name = str_text(&sym->names, sym_at(sym, t->size[d])->u.name);

            if (assume_is_unbacked(name))
                return name;
        }
    return NULL;
}

/* If the operands' data decide how large the result is, the symbol of that size gets its value. */
static bool count(struct exec *x, struct exec_step *s)
{
    const char *name = size_symbol(x, s->node);
    int64_t n;

    if (s->what != STEP_KERNEL || s->call.kernel->count == NULL || name == NULL)
        return true;
    if (!exec_fill_call(x, s, &x->passing))
        return false;
    if (kernel_count(&s->call, &n))
        exec_set_symbol(x, name, (struct sym_num){.kind = SYM_T_INT, .i = n});
    return true;
}

static bool compute(struct exec *x, struct exec_step *s)
{
    if (s->dynamic && (!count(x, s) || !exec_resolve(x, s->node) ||
                       !exec_fill_call(x, s, &x->passing) || !need_scratch(x, s)))
        return false;
    x->error[0] = '\0';
    if (s->what == STEP_KERNEL)
        exec_guard_call(x, &s->call);
    bool ok = s->what == STEP_OWN ? s->own->run(s->own->ctx, &s->call) : kernel_run(&s->call);
    exec_guard_end(x);
    return ok || kernel_failed(x, s->node);
}

/* The first of several copies for one collective resolves it. */
static bool is_first(const struct exec *x, const struct exec_step *s)
{
    return s->op == 0 || x->p->op[s->op - 1].node != s->node;
}

static bool copy(struct exec *x, struct exec_step *s)
{
    if (s->dynamic &&
        ((is_first(x, s) && !exec_resolve(x, s->node)) || !exec_fill_copy(x, s, &x->passing)))
        return false;
    x->error[0] = '\0';
    return kernel_run(&s->call) || kernel_failed(x, s->node);
}

static bool run_loop(struct exec *x, const struct exec_step *s)
{
    uint32_t at = 0;

    x->error[0] = '\0';
    exec_guard_loop(x, s->loop);
    bool ok = loop_run(s->loop, x->scratch, x->error, sizeof(x->error), &at);
    exec_guard_end(x);
    return ok || kernel_failed(x, s->loop_at[at]);
}

/* ---- numbers from data ---- */

static bool bind(struct exec *x, const struct exec_step *s)
{
    const struct fx_node *c = x->call[s->node];
    const struct exec_value *from = exec_operand(x, call_operand(x->g, c, 0));
    const struct type *t = type_at(&x->g->store->type, node_type(x->g, s->node));
    struct exec_value *to = &x->value[x->value_at[s->node]];

    if (from == NULL || from->kind != EXEC_TENSOR || rt_numel(&from->t) != 1)
        return exec_fail_at(x, s->node, "is not read from a tensor of one element");
    struct rt_value v = rt_item(&from->t);
    struct sym_num n = {.kind = v.kind == RT_FLOAT  ? SYM_T_FLOAT
                                : v.kind == RT_BOOL ? SYM_T_BOOL
                                                    : SYM_T_INT,
                        .i = v.kind == RT_BOOL  ? v.b
                             : v.kind == RT_INT ? v.i
                                                : 0,
                        .f = v.kind == RT_FLOAT ? v.f : 0};
    if (t->kind == TYPE_SYM && sym_at(&x->g->store->sym, t->sym)->op == SYM_SYMBOL)
        exec_set_symbol(
            x, str_text(&x->g->store->sym.names, sym_at(&x->g->store->sym, t->sym)->u.name), n);
    to->kind = EXEC_NUMBER;
    to->number = n;
    return true;
}

static bool is_true(const struct exec_value *v)
{
    if (v->kind == EXEC_NUMBER)
        return v->number.kind == SYM_T_FLOAT ? v->number.f != 0 : v->number.i != 0;
    if (v->kind != EXEC_TENSOR || rt_numel(&v->t) != 1)
        return true;
    struct rt_value i = rt_item(&v->t);
    return i.kind == RT_BOOL ? i.b : i.kind == RT_FLOAT ? i.f != 0 : i.i != 0;
}

static bool check(struct exec *x, const struct exec_step *s)
{
    const struct fx_node *c = x->call[s->node];
    const struct exec_value *v = exec_operand(x, call_operand(x->g, c, 0));
    const tuck_value *why = call_operand(x->g, c, 1);

    if (v == NULL || is_true(v))
        return true;
    return exec_fail_at(x, s->node, "%s",
                        why != NULL && why->kind == TUCK_V_STR ? graph_str(x->g, why->a)
                                                               : "a condition does not hold");
}

/* ---- collectives ---- */

static void landed(struct stepping *st, struct exec_coll *c)
{
    c->running = false;
    if (st->time != NULL)
        st->time[c->op].end = now();
}

/* Between kernels: whatever can move moves, and what is done is noted. */
static bool progress(struct stepping *st)
{
    struct exec *x = st->x;
    uint32_t kept = 0;

    if (x->flying.len == 0)
        return true;
    for (uint32_t i = 0; i < x->flying.len; i++) {
        struct exec_coll *c = &x->coll.at[x->flying.at[i]];
        if (!c->running)
            continue;
        switch (comm_test(x->o.comm, c->req)) {
        case COMM_DONE: landed(st, c); break;
        case COMM_PENDING: x->flying.at[kept++] = x->flying.at[i]; break;
        default: return exec_fail(x, "%s", comm_error(x->o.comm));
        }
    }
    x->flying.len = kept;
    return true;
}

static bool wait_for(struct stepping *st, struct exec_coll *c)
{
    struct exec *x = st->x;

    if (!c->running)
        return true;
    if (!comm_wait(x->o.comm, c->req))
        return exec_fail(x, "%s", comm_error(x->o.comm));
    landed(st, c);
    return true;
}

static bool start(struct stepping *st, const struct exec_step *s)
{
    struct exec *x = st->x;
    struct exec_coll *c = &x->coll.at[s->coll];

    if (s->dynamic) {
        /* If there are copies, they have resolved it already. */
        bool copied = s->op > 0 && x->p->op[s->op - 1].kind == PROGRAM_COPY &&
                      x->p->op[s->op - 1].node == s->node;
        if ((!copied && !exec_resolve(x, s->node)) || !exec_fill_coll(x, c, &x->passing))
            return false;
    }
    if (!comm_start(x->o.comm, &c->call, &c->req))
        return exec_fail(x, "%s", comm_error(x->o.comm));
    c->running = true;
    if (x->p->op[s->op].flags & PROGRAM_ASYNC) {
        x->flying.at[x->flying.len++] = s->coll;
        return true;
    }
    int64_t since = st->time != NULL ? now() : 0;
    if (!wait_for(st, c))
        return false;
    if (st->time != NULL)
        st->time[s->op].stood = st->time[s->op].end - since;
    return true;
}

static bool wait_op(struct stepping *st, const struct exec_step *s)
{
    const struct program *p = st->x->p;
    int64_t since = st->time != NULL ? now() : 0;

    for (uint32_t k = p->wait_at[s->op]; k < p->wait_at[s->op + 1]; k++) {
        uint32_t c = st->x->coll_of[p->wait[k]];
        if (c != 0 && !wait_for(st, &st->x->coll.at[c - 1]))
            return false;
    }
    if (st->time != NULL)
        st->time[s->op].stood = now() - since;
    return true;
}

/* ---- the step ---- */

static bool run(struct stepping *st, struct exec_step *s)
{
    struct exec *x = st->x;

    switch ((enum exec_what)s->what) {
    case STEP_KERNEL:
    case STEP_OWN: return compute(x, s);
    case STEP_COPY: return copy(x, s);
    case STEP_LOOP: return run_loop(x, s);
    case STEP_START: return start(st, s);
    case STEP_WAIT: return wait_op(st, s);
    case STEP_RESOLVE: return exec_resolve(x, s->node);
    case STEP_BIND: return bind(x, s);
    case STEP_CHECK: return (!s->dynamic || exec_resolve(x, s->node)) && check(x, s);
    }
    return false;
}

static bool run_op(struct stepping *st, uint32_t from, uint32_t to)
{
    struct exec *x = st->x;
    uint32_t op = x->step.at[from].op;
    bool waits = x->p->op[op].kind == PROGRAM_WAIT || x->p->op[op].kind == PROGRAM_COLLECTIVE;

    exec_guard(x, op);
    if (st->time != NULL)
        st->time[op].begin = now();
    for (uint32_t i = from; i < to; i++)
        if (!run(st, &x->step.at[i]))
            return false;
    if (st->time != NULL && x->p->op[op].kind != PROGRAM_COLLECTIVE)
        st->time[op].end = now();
    return waits || progress(st);
}

static void do_step(void *arg)
{
    struct stepping *st = arg;
    struct exec *x = st->x;

    for (uint32_t i = 0, to; i < x->step.len; i = to) {
        for (to = i + 1; to < x->step.len && x->step.at[to].op == x->step.at[i].op;)
            to++;
        if (!run_op(st, i, to))
            return;
    }
    for (uint32_t i = 0; i < x->coll.len; i++)
        if (!wait_for(st, &x->coll.at[i]))
            return;
    st->ok = true;
}

bool exec_step(struct exec *x, struct exec_time *time)
{
    struct stepping st = {.x = x, .time = time};

    if (x->failed)
        return false;
    x->flying.len = 0;
    exec_shrink(x);
    arena_release(&x->passing, x->passed);
    if (time != NULL)
        memset(time, 0, x->p->n_op * sizeof(*time));
    bool guarded = mem_guard(&x->mem, do_step, &st);
    exec_unguard(x);
    return guarded ? st.ok : exec_fail(x, "out of memory");
}

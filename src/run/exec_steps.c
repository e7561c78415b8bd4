/* From a program to steps. */
#include <stdio.h>

#include "lower/lower.h"
#include "run/exec_core.h"
#include "run/kernel/kernel_check.h"

/* ---- values ---- */

/* The call of each node that does its work: of a method, with the operator it is. */
static void find_calls(struct exec *x)
{
    const tuck_graph *g = x->g;

    x->call = arena_zeroed(&x->arena, g->node.len * sizeof(*x->call));
    for_each_node (g, n) {
        const struct fx_node *c = acting_call(g, n, &x->arena);
        if (c == node_at(g, n) && c->kind == TUCK_CALL_METHOD) {
            struct fx_node *own = arena_new(&x->arena, struct fx_node);
            *own = *c;
            own->op = (uint16_t)node_op(g, n);
            c = own;
        }
        x->call[n] = c;
    }
}

static void number_values(struct exec *x)
{
    const tuck_graph *g = x->g;
    uint32_t at = 0;

    x->value_at = arena_zeroed(&x->arena, ((size_t)g->node.len + 1) * sizeof(*x->value_at));
    for (uint32_t n = 0; n < g->node.len; n++) {
        const struct type *t = type_at(&g->store->type, node_type(g, n));
        x->value_at[n] = at;
        if (node_alive(g, n))
            at += t->kind == TYPE_LIST ? t->n : 1;
    }
    x->value_at[g->node.len] = at;
    x->value = arena_zeroed(&x->arena, ((size_t)at + 1) * sizeof(*x->value));
    for (uint32_t i = 0; i < at; i++)
        x->value[i].place = PROGRAM_NONE;
}

/* Inputs that are numbers give symbols their values. */
static void bind_inputs(struct exec *x)
{
    const tuck_graph *g = x->g;

    for (size_t i = 0; i < x->o.n_number; i++)
        exec_set_symbol(x, x->o.number[i].name, x->o.number[i].value);
    for_each_node (g, n) {
        const struct type *t = type_at(&g->store->type, node_type(g, n));
        struct sym_num v;
        if (node_at(g, n)->kind != TUCK_PLACEHOLDER || t->kind != TYPE_SYM)
            continue;
        const struct sym_node *s = sym_at(&g->store->sym, t->sym);
        const char *name = graph_str(g, node_at(g, n)->name);
        for (size_t i = 0; i < x->o.n_number; i++)
            if (strcmp(x->o.number[i].name, name) == 0 && s->op == SYM_SYMBOL) {
                v = x->o.number[i].value;
                exec_set_symbol(x, str_text(&g->store->sym.names, s->u.name), v);
            }
    }
}

static void mark_passive(struct exec *x)
{
    const struct program *p = x->p;

    x->passive = arena_alloc(&x->arena, x->g->node.len * sizeof(*x->passive));
    memset(x->passive, true, x->g->node.len * sizeof(*x->passive));
    for (uint32_t i = 0; i < p->node_at[p->n_op]; i++)
        x->passive[p->node_id[i]] = false;
}

/* Room inside of loops begins anew with each op. */
static void lay_inside(struct exec *x, uint32_t from, int64_t *used)
{
    for (uint32_t i = from; i < x->place.len; i++) {
        struct exec_place *at = &x->place.at[i];
        if (at->where != WHERE_LOOP)
            continue;
        at->inside = *used;
        *used += (at->bytes + RT_ALIGN - 1) & ~(int64_t)(RT_ALIGN - 1);
        if ((size_t)*used > x->loop_bytes)
            x->loop_bytes = (size_t)*used;
    }
}

static uint32_t *ops_of_nodes(struct exec *x)
{
    const struct program *p = x->p;
    uint32_t *op = arena_alloc(&x->arena, x->g->node.len * sizeof(*op));

    memset(op, 0xFF, x->g->node.len * sizeof(*op));
    for (uint32_t i = 0; i < p->n_op; i++)
        for (uint32_t k = p->node_at[i]; k < p->node_at[i + 1]; k++)
            op[p->node_id[k]] = i;
    return op;
}

static bool resolve_all(struct exec *x)
{
    const uint32_t *op = ops_of_nodes(x);

    /* by op: nodes of several ops may stand between each other in the graph */
    x->inside = arena_zeroed(&x->arena, ((size_t)x->p->n_op + 1) * sizeof(*x->inside));
    x->dynamic = arena_zeroed(&x->arena, x->g->node.len * sizeof(*x->dynamic));
    for_each_node (x->g, n) {
        uint32_t from = x->place.len;
        if (!exec_resolve(x, n))
            return false;
        lay_inside(x, from, &x->inside[op[n] != PROGRAM_NONE ? op[n] : x->p->n_op]);
    }
    return true;
}

/* ---- steps ---- */

static void add_step(struct exec *x, struct exec_step s)
{
    vec_push_in(&x->arena, &x->step, s);
}

static bool copy_step(struct exec *x, uint32_t op)
{
    const struct program_op *o = &x->p->op[op];
    struct exec_step s = {.what = STEP_COPY, .op = op, .node = o->node};

    s.dynamic = x->dynamic[o->node] || (o->from != 0 && x->dynamic[o->from]);
    if (o->from == 0)
        return exec_fail(x, "%s: what it copies is not known", program_str(x->p, o->name));
    if (!s.dynamic && !exec_fill_copy(x, &s, &x->arena))
        return false;
    add_step(x, s);
    return true;
}

static bool kernel_step(struct exec *x, uint32_t op, uint32_t n)
{
    const struct fx_node *c = x->call[n];
    const struct op_row *row = op_at(c->op);
    const char *name = c->op != 0 ? row->name : graph_str(x->g, c->target);
    struct exec_step s = {.what = STEP_KERNEL, .op = op, .node = n, .dynamic = x->dynamic[n]};

    s.own = exec_own_kernel(x->o.kernel, x->o.n_kernel, name);
    s.call.kernel = kernel_at((enum op_kernel)row->kernel);
    if (s.own != NULL)
        s.what = STEP_OWN;
    else if (s.call.kernel == NULL && row->cls == OP_FACTORY && row->moves == OP_MOVES_none)
        return true; /* memory without contents */
    else if (s.call.kernel == NULL)
        return exec_fail_at(x, n, "%s has no kernel", name);
    if (!s.dynamic && !exec_fill_call(x, &s, &x->arena))
        return false;
    add_step(x, s);
    return true;
}

static bool node_step(struct exec *x, uint32_t op, uint32_t n)
{
    const struct op_row *row = op_at(x->call[n]->op);
    struct exec_step s = {.op = op, .node = n, .dynamic = x->dynamic[n]};
    enum exec_way way = exec_way_of(row);

    if (exec_own_kernel(x->o.kernel, x->o.n_kernel, row->name) != NULL)
        return kernel_step(x, op, n);
    switch (way) {
    case WAY_BIND: s.what = STEP_BIND; break;
    case WAY_CHECK: s.what = STEP_CHECK; break;
    case WAY_NOTHING:
        if (!s.dynamic)
            return true;
        s.what = STEP_RESOLVE;
        break;
    default:
        if (exec_is_view(x->g, x->p, n, x->call[n])) {
            s.what = STEP_RESOLVE;
            if (s.dynamic)
                break;
            return true;
        }
        return kernel_step(x, op, n);
    }
    add_step(x, s);
    return true;
}

/* Which results of a node only the loop itself reads. */
static uint64_t inside_of(const struct exec *x, uint32_t n)
{
    uint64_t bits = 0;
    uint32_t out = 0, first = acting_result(x->g, n);

    for (uint32_t k = first; k < exec_value_count(x, n); k++) {
        const struct exec_value *v = &x->value[x->value_at[n] + k];
        if (v->kind != EXEC_TENSOR && exec_value_count(x, n) == 1)
            continue;
        if (v->kind == EXEC_TENSOR && x->place.at[v->place].where == WHERE_LOOP && out < 64)
            bits |= (uint64_t)1 << out;
        out++;
    }
    return bits;
}

/* Makes one step of the kernels of a fused op, from step `from` on. */
static void fuse(struct exec *x, uint32_t op, uint32_t from)
{
    uint32_t n = x->step.len - from;

    for (uint32_t i = from; i < x->step.len; i++)
        if (x->step.at[i].what != STEP_KERNEL || x->step.at[i].dynamic)
            return;
    if (n < 2)
        return;
    for (uint32_t i = from; i < x->step.len; i++)
        if (!kernel_check(&x->step.at[i].call))
            return; /* its kernel will say so */
    struct loop_node *node = arena_zeroed(&x->arena, n * sizeof(*node));
    for (uint32_t i = 0; i < n; i++)
        node[i] = (struct loop_node){x->step.at[from + i].call,
                                     inside_of(x, x->step.at[from + i].node)};
    struct exec_step s = {.what = STEP_LOOP,
                          .op = op,
                          .node = x->step.at[from].node,
                          .loop = loop_build(&x->arena, node, n),
                          .loop_at = arena_array(&x->arena, uint32_t, n)};
    for (uint32_t i = 0; i < n; i++)
        s.loop_at[i] = x->step.at[from + i].node;
    x->step.len = from;
    add_step(x, s);
}

static bool coll_step(struct exec *x, uint32_t op)
{
    const struct program_op *o = &x->p->op[op];
    struct exec_step s = {.what = STEP_START, .op = op, .node = o->node};

    if (program_is_nested(o))
        return exec_fail_at(x, o->node, "graphs inside of a graph are not run");
    if (!exec_prepare_coll(x, op))
        return false;
    s.dynamic = x->dynamic[o->node];
    s.coll = x->coll.len - 1;
    add_step(x, s);
    return true;
}

/* ---- values that depend on data and that no op makes: views, items, numbers ----
 *
 * Each is resolved as soon as what it is made from is there. The order of the graph does not tell:
 * an op of several nodes may run before others that stand between them. */

struct passing {
    uint32_t *made; /* by node: the how-many-th that ops make; of values like these, the last that
                       it is made from; 0 before all */
    uint32_t *first, *next; /* by that number: such values, in the order of the graph; 0 ends it */
    uint32_t n, at;         /* how many nodes ops make, and have made */
};

static bool is_passing(const struct exec *x, uint32_t n)
{
    return x->passive[n] && x->dynamic[n];
}

static void number_made(const struct exec *x, struct passing *w)
{
    const struct program *p = x->p;

    for (uint32_t i = 0; i < p->n_op; i++) {
        if (p->op[i].kind == PROGRAM_WAIT)
            w->made[p->op[i].node] = ++w->n;
        for (uint32_t k = p->node_at[i]; p->op[i].kind != PROGRAM_WAIT && k < p->node_at[i + 1];
             k++)
            w->made[p->node_id[k]] = ++w->n;
    }
}

/* A number that was read from data may be in any size. */
static bool reads_number(const struct exec *x, uint32_t n)
{
    return !x->passive[n] && exec_way_of(op_at(x->call[n]->op)) == WAY_BIND;
}

static struct passing find_passing(struct exec *x)
{
    struct passing w = {.made = arena_zeroed(&x->arena, x->g->node.len * sizeof(*w.made)),
                        .next = arena_zeroed(&x->arena, x->g->node.len * sizeof(*w.next))};
    uint32_t number = 0, *last;

    number_made(x, &w);
    w.first = arena_zeroed(&x->arena, ((size_t)w.n + 1) * sizeof(*w.first));
    last = arena_zeroed(&x->arena, ((size_t)w.n + 1) * sizeof(*last));
    for_each_node (x->g, n) {
        const struct fx_node *node = node_at(x->g, n);
        if (reads_number(x, n) && w.made[n] > number)
            number = w.made[n];
        if (!is_passing(x, n))
            continue;
        w.made[n] = number;
        for (uint32_t i = 0; i < node->n_vals; i++)
            if (node->vals[i].kind == TUCK_V_NODE && w.made[node->vals[i].a] > w.made[n])
                w.made[n] = w.made[node->vals[i].a];
        uint32_t *at = last[w.made[n]] != 0 ? &w.next[last[w.made[n]]] : &w.first[w.made[n]];
        *at = last[w.made[n]] = n;
    }
    return w;
}

/* One more node has been made, or none yet. */
static void pass_on(struct exec *x, struct passing *w, uint32_t op)
{
    for (uint32_t n = w->first[w->at]; n != 0; n = w->next[n])
        add_step(x, (struct exec_step){.what = STEP_RESOLVE, .op = op, .node = n});
    w->at++;
}

static bool op_steps(struct exec *x, uint32_t op, struct passing *w)
{
    const struct program *p = x->p;
    const struct program_op *o = &p->op[op];
    uint32_t from = x->step.len;

    for (uint32_t k = p->node_at[op]; k < p->node_at[op + 1]; k++) {
        bool first = k == p->node_at[op];
        if (o->kind != PROGRAM_COLLECTIVE ? !node_step(x, op, p->node_id[k])
                                          : first && !coll_step(x, op))
            return false;
        pass_on(x, w, op);
    }
    if (o->kind == PROGRAM_FUSED)
        fuse(x, op, from);
    return true;
}

bool exec_make_steps(struct exec *x)
{
    const struct program *p = x->p;
    struct passing w = find_passing(x);

    x->coll_of = arena_zeroed(&x->arena, ((size_t)p->n_op + 1) * sizeof(*x->coll_of));
    if (p->n_op > 0)
        pass_on(x, &w, 0);
    for (uint32_t i = 0; i < p->n_op; i++) {
        const struct program_op *o = &p->op[i];
        if (o->kind == PROGRAM_WAIT) {
            if (x->dynamic[o->node])
                add_step(x, (struct exec_step){.what = STEP_RESOLVE, .op = i, .node = o->node});
            add_step(x, (struct exec_step){.what = STEP_WAIT, .op = i, .node = o->node});
            pass_on(x, &w, i);
        } else if (o->kind == PROGRAM_COPY ? !copy_step(x, i) : !op_steps(x, i, &w)) {
            return false;
        }
    }
    return true;
}

/* ---- inputs ---- */

static void find_inputs(struct exec *x)
{
    const struct program *p = x->p;
    bool *written = arena_zeroed(&x->arena, ((size_t)p->n_buf + 1) * sizeof(*written));

    for (uint32_t i = 0; i < p->use_at[p->n_op]; i++)
        written[p->use[i].buf] |= p->use[i].how == PROGRAM_MUTATES;
    for_each_node (x->g, n) {
        const struct fx_node *node = node_at(x->g, n);
        struct exec_value *v = &x->value[x->value_at[n]];
        bool attribute = node->kind == TUCK_GET_ATTR;
        if ((node->kind != TUCK_PLACEHOLDER && !attribute) || v->kind != EXEC_TENSOR)
            continue;
        bool kept = x->place.at[v->place].where == WHERE_INPUT;
        struct exec_input in = {.node = n,
                                .name = graph_str(x->g, attribute ? node->target : node->name),
                                .tensor = &v->t,
                                .attribute = attribute,
                                .written = kept && written[v->place],
                                .lost = !kept || written[v->place]};
        vec_push_in(&x->arena, &x->input, in);
    }
}

uint32_t exec_input_count(const struct exec *x)
{
    return x->input.len;
}

const struct exec_input *exec_input_at(const struct exec *x, uint32_t i)
{
    return &x->input.at[i];
}

/* ---- results ---- */

static const tuck_value *returned(const struct exec *x)
{
    return x->g->output != 0 && node_at(x->g, x->g->output)->n_vals > 0
               ? node_at(x->g, x->g->output)->vals
               : NULL;
}

uint32_t exec_result_count(const struct exec *x)
{
    const tuck_value *v = returned(x);

    return v == NULL ? 0 : value_is_container(v) ? v->a : 1;
}

static struct sym_num literal(const tuck_value *v)
{
    switch (v->kind) {
    case TUCK_V_FLOAT: return (struct sym_num){.kind = SYM_T_FLOAT, .f = v->u.f};
    case TUCK_V_BOOL: return (struct sym_num){.kind = SYM_T_BOOL, .i = v->u.i};
    default: return (struct sym_num){.kind = SYM_T_INT, .i = v->u.i};
    }
}

struct exec_result exec_result_at(const struct exec *x, uint32_t i)
{
    const tuck_value *v = returned(x);
    struct exec_result r = {.kind = EXEC_RESULT_OTHER};

    if (value_is_container(v))
        v = value_item(v, i);
    if (v->kind == TUCK_V_NONE)
        r.kind = EXEC_RESULT_NONE;
    if (v->kind == TUCK_V_INT || v->kind == TUCK_V_FLOAT || v->kind == TUCK_V_BOOL)
        return (struct exec_result){.kind = EXEC_RESULT_NUMBER, .number = literal(v)};
    if (v->kind != TUCK_V_NODE)
        return r;
    const struct exec_value *from = &x->value[x->value_at[v->a]];
    r.node = v->a;
    switch ((enum exec_kind)from->kind) {
    case EXEC_TENSOR:
        r.kind = EXEC_RESULT_TENSOR;
        r.tensor = &from->t;
        break;
    case EXEC_NUMBER:
        r.kind = EXEC_RESULT_NUMBER;
        r.number = from->number;
        break;
    case EXEC_NOTHING: r.kind = EXEC_RESULT_NONE; break;
    default: break;
    }
    return r;
}

/* ---- the whole ---- */

static void locate_all(struct exec *x)
{
    for (uint32_t i = 0; i < x->value_at[x->g->node.len]; i++)
        if (x->value[i].kind == EXEC_TENSOR)
            exec_locate(x, &x->value[i]);
}

static void do_prepare(void *arg)
{
    struct exec *x = arg;

    x->preparing = true;
    find_calls(x);
    number_values(x);
    bind_inputs(x);
    mark_passive(x);
    exec_make_places(x);
    if (!resolve_all(x) || !exec_make_memory(x))
        return;
    locate_all(x);
    find_inputs(x);
    if (!exec_make_steps(x) || !exec_make_scratch(x))
        return;
    arena_alloc(&x->passing, 1); /* its first block stays */
    x->passed = arena_mark(&x->passing);
    vec_reserve_in(&x->arena, &x->flying, (size_t)x->coll.len + 1);
    x->preparing = false;
}

bool exec_prepare(const struct exec_options *o, struct exec **out, char *error)
{
    struct mem m;

    mem_init(&m, NULL);
    struct exec *x = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*x));
    if (x == NULL) {
        snprintf(error, EXEC_ERROR_BYTES, "out of memory");
        return false;
    }
    *x = (struct exec){.o = *o, .g = o->g, .p = o->p};
    mem_init(&x->mem, NULL);
    arena_init(&x->arena, &x->mem);
    arena_init(&x->passing, &x->mem);
    sigs_init(&x->sigs, &x->mem);
    symtab_init(&x->sym, &x->mem);
    x->memory.touched = x->memory.highest = -1;
    if (!mem_guard(&x->mem, do_prepare, x))
        exec_fail(x, "out of memory");
    if (!x->failed) {
        *out = x;
        return true;
    }
    snprintf(error, EXEC_ERROR_BYTES, "%s", x->error);
    exec_end(x);
    return false;
}

void exec_end(struct exec *x)
{
    if (x == NULL)
        return;
    struct mem m = x->mem;
    exec_end_memory(x);
    symtab_destroy(&x->sym);
    sigs_destroy(&x->sigs);
    arena_destroy(&x->passing);
    arena_destroy(&x->arena);
    mem_free(&m, x, sizeof(*x));
}

const char *exec_error(const struct exec *x)
{
    return x->error;
}

uint32_t exec_planned(const struct exec *x, const struct comm_planned **row)
{
    *row = x->planned.at;
    return x->planned.len;
}

void exec_memory(const struct exec *x, struct exec_memory *out)
{
    *out = x->memory;
}

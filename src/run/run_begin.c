/* Before ranks start: programs, groups and inputs of all of them, so that what cannot be run is
 * refused at once. */
#include "cost/machine.h"
#include "infer/infer.h"
#include "plan/arena_plan.h"
#include "run/kernel/point.h"
#include "run/run.h"

enum { RANKS_MOST = 1024 };

/* ---- kernels ---- */

static void take_kernels(struct run_plan *plan)
{
    const tuck_exec_options *o = plan->o;

    plan->kernel = arena_array(&plan->arena, struct exec_kernel, o->n_kernels + 1);
    for (size_t i = 0; i < o->n_kernels; i++)
        plan->kernel[i] = (struct exec_kernel){o->kernels[i].op, run_own_kernel,
                                               (void *)(uintptr_t)&o->kernels[i]};
}

static void refuse_missing(struct run_plan *plan, const struct run_rank *r)
{
    struct buf text;

    buf_init(&text, &plan->mem);
    if (exec_missing(r->g, r->p, plan->kernel, plan->o->n_kernels, &text)) {
        run_refuse(plan, r->g, PROGRAM_NONE,
                   "a kernel of your own can be given in C: docs/running.md",
                   "it cannot be run, there is no kernel for:\n%.*s", (int)text.len - 1, text.at);
    }
    buf_destroy(&text);
}

/* ---- programs ---- */

struct unbacked {
    struct run_rank *r;
    struct run_plan *plan;
    VEC(struct fx_hint) hint;
    struct fx_store *store;
};

static bool is_known(const struct run_rank *r, const char *name)
{
    for (uint32_t i = 0; i < r->n_number; i++)
        if (strcmp(r->number[i].name, name) == 0)
            return true;
    return false;
}

/* Sizes that depend on data have no room in the plan. */
static void meet(void *ctx, sym_id symbol, const char *name)
{
    struct unbacked *u = ctx;

    (void)symbol;
    if (!assume_is_unbacked(name) || is_known(u->r, name))
        return;
    str_id id = str_intern(&u->store->str, name, strlen(name));
    for (uint32_t i = 0; i < u->hint.len; i++)
        if (u->hint.at[i].symbol == id)
            return;
    vec_push_in(&u->plan->arena, &u->hint, ((struct fx_hint){id, 1}));
}

static void meet_type(struct unbacked *u, type_id id)
{
    const struct type *t = type_at(&u->store->type, id);

    for (uint32_t i = 0; t->kind == TYPE_TENSOR && i < t->n; i++) {
        sym_symbols(&u->store->sym, t->size[i], meet, u);
        if (t->strided)
            sym_symbols(&u->store->sym, t->stride[i], meet, u);
    }
}

static void find_hints(struct unbacked *u)
{
    const tuck_graph *g = u->r->g;

    for (uint32_t i = 0; i < u->r->n_number; i++)
        if (u->r->number[i].value.kind != SYM_T_FLOAT) {
            const char *name = u->r->number[i].name;
            struct fx_hint h = {str_intern(&u->store->str, name, strlen(name)),
                                u->r->number[i].value.i};
            vec_push_in(&u->plan->arena, &u->hint, h);
        }
    for_each_node (g, n) {
        const struct type *t = type_at(&u->store->type, node_type(g, n));
        meet_type(u, node_type(g, n));
        for (uint32_t i = 0; t->kind == TYPE_LIST && i < t->n; i++)
            meet_type(u, t->item[i]);
    }
}

/* Inputs that the graph writes are seen by the caller, so they stay with it: the names of those
 * that would not. */
static const char **written_inputs(struct run_plan *plan, struct run_rank *r, size_t *n)
{
    const struct program *p = r->p;
    const char **name = arena_array(&plan->arena, const char *, (size_t)p->n_input + 1);
    bool *written = arena_zeroed(&plan->arena, (size_t)p->n_buf + 1);

    *n = 0;
    r->n_written = 0;
    r->written = arena_array(&plan->arena, uint32_t, (size_t)p->n_input + 1);
    for (uint32_t i = 0; i < p->use_at[p->n_op]; i++)
        written[p->use[i].buf] |= p->use[i].how == PROGRAM_MUTATES;
    for (uint32_t i = 0; i < p->n_input; i++)
        if (written[i])
            r->written[r->n_written++] = i;
    for (uint32_t i = 0; i < p->n_input; i++)
        if (written[i] && (p->buf[i].flags & PROGRAM_FREEABLE))
            name[(*n)++] = arena_str(&plan->arena, program_str(p, p->buf[i].name),
                                     strlen(program_str(p, p->buf[i].name)));
    return name;
}

static void do_hints(void *arg)
{
    find_hints(arg);
}

/* ---- operands that go together ---- */

struct misfit {
    tuck_graph *g;
    uint32_t node; /* the first one whose result does not follow from its operands; PROGRAM_NONE */
};

/* The first operand whose type nothing says; PROGRAM_NONE. */
static uint32_t unknown_operand(const tuck_graph *g, uint32_t n)
{
    const struct fx_node *x = node_at(g, n);

    for (uint32_t i = 0; i < x->n_vals; i++)
        if (x->vals[i].kind == TUCK_V_NODE && node_type(g, x->vals[i].a) == 0)
            return x->vals[i].a;
    return PROGRAM_NONE;
}

/* Loops read as many elements as the types say. Other kernels look for themselves, and what has
 * none, or a result of unknown size, is refused for that. */
static void meet_call(void *ctx, const tuck_graph *g, uint32_t n, type_id inferred, type_id stated)
{
    struct misfit *x = ctx;
    const struct op_row *row = op_at(node_op(g, n));

    if (x->node != PROGRAM_NONE || g != x->g || inferred != 0 || stated == 0 ||
        row->cls != OP_POINTWISE || point_operands(row->kernel) == 0)
        return;
    uint32_t unknown = unknown_operand(g, n);
    if (unknown == PROGRAM_NONE || node_at(g, unknown)->kind == TUCK_PLACEHOLDER)
        x->node = n;
}

static void do_infer(void *arg)
{
    struct misfit *x = arg;
    struct infer_options o = {
        .views_follow = true, .dense_inputs = true, .each = meet_call, .ctx = x};

    infer_graph(x->g, &o, NULL);
}

/* The first node of the op that makes a buffer; PROGRAM_NONE for inputs. */
static uint32_t maker(const struct program *p, uint32_t buf)
{
    uint32_t op = p->buf[buf].producer;

    return op != PROGRAM_NONE && p->node_at[op] < p->node_at[op + 1] ? p->node_id[p->node_at[op]]
                                                                     : PROGRAM_NONE;
}

/* gm.code and str(gm.graph) have no types. A mesh or a group has none in any text. */
static const char *hint_of_sizes(const tuck_graph *g)
{
    for_each_node (g, n)
        if (node_at(g, n)->kind == TUCK_PLACEHOLDER && node_type(g, n) != 0)
            return NULL;
    return "the text does not say what its inputs are; print_readable() of the same graph does";
}

static bool lower_rank(struct run_plan *plan, struct run_rank *r)
{
    struct unbacked u = {.r = r, .plan = plan, .store = r->g->store};
    struct lower_options o;
    struct machine m;
    size_t n = 0;

    if (!mem_guard_two(&plan->mem, &u.store->mem, do_hints, &u)) {
        plan->status = TUCK_ENOMEM;
        return false;
    }
    machine_init(&m, NULL);
    m.hint = u.hint.at;
    m.n_hint = u.hint.len;
    lower_defaults(&o);
    o.machine = &m;
    o.to_run = true;
    r->hint = u.hint.at;
    r->n_hint = u.hint.len;
    plan->status = lower_graph(r->g, &o, plan->diags, &r->p);
    if (plan->status == TUCK_OK) {
        o.keep = r->keep = written_inputs(plan, r, &n);
        o.n_keep = r->n_keep = n;
    }
    if (plan->status == TUCK_OK && n > 0) {
        program_free(r->p);
        r->p = NULL;
        plan->status = lower_graph(r->g, &o, plan->diags, &r->p);
    }
    if (plan->status == TUCK_OK)
        refuse_missing(plan, r);
    /* Inputs of unknown type are meshes and groups, which are passed on at most. */
    for (uint32_t i = r->p != NULL ? r->p->n_input : 0; plan->status == TUCK_OK && i < r->p->n_buf;
         i++)
        if (r->p->buf[i].flags & PROGRAM_UNKNOWN)
            run_refuse(plan, r->g, maker(r->p, i), hint_of_sizes(r->g),
                       "it cannot be run: the size of '%s' is not known",
                       program_str(r->p, r->p->buf[i].name));
    for (uint32_t i = 0; plan->status == TUCK_OK && i < r->p->n_buf; i++)
        if (r->p->buf[i].bytes > EXEC_MOST_BYTES)
            run_refuse(plan, r->g, maker(r->p, i), NULL,
                       "it cannot be run: '%s' needs more memory than can be had",
                       program_str(r->p, r->p->buf[i].name));
    if (plan->status == TUCK_OK)
        plan->status = memory_plan(r->p, NULL);
    return plan->status == TUCK_OK;
}

static bool same_numbers(const struct run_rank *a, const struct run_rank *b)
{
    if (a->n_number != b->n_number)
        return false;
    for (uint32_t i = 0; i < a->n_number; i++)
        if (strcmp(a->number[i].name, b->number[i].name) != 0 ||
            a->number[i].value.kind != b->number[i].value.kind ||
            a->number[i].value.i != b->number[i].value.i)
            return false;
    return true;
}

static bool make_rank(struct run_plan *plan, struct run_side *side, int rank)
{
    struct run_rank *r = &side->rank[rank], *first = &side->rank[0];
    struct misfit x = {r->g, PROGRAM_NONE};

    if (!mem_guard(&r->g->store->mem, do_infer, &x)) {
        plan->status = TUCK_ENOMEM;
        return false;
    }
    if (x.node != PROGRAM_NONE) {
        uint32_t unknown = unknown_operand(r->g, x.node);
        run_refuse(
            plan, r->g, x.node, unknown != PROGRAM_NONE ? hint_of_sizes(r->g) : NULL,
            unknown != PROGRAM_NONE ? "it cannot be run: the size of '%s' is not known"
                                    : "it cannot be run: the operands of '%s' do not go together",
            graph_str(r->g, node_at(r->g, unknown != PROGRAM_NONE ? unknown : x.node)->name));
        return false;
    }
    if (!run_learn(plan, r, rank))
        return false;
    if (rank > 0 && r->g == first->g && same_numbers(r, first)) {
        r->p = first->p;
        r->shared = true;
        r->written = first->written;
        r->n_written = first->n_written;
    } else if (!lower_rank(plan, r)) {
        return false;
    }
    return plan->status == TUCK_OK && run_find_groups(plan, side, rank);
}

/* ---- the whole ---- */

struct beginning {
    struct run_plan *plan;
    tuck_graph *const *const *side;
    uint32_t n_side;
    size_t n;
};

static void refuse(struct run_plan *plan, const char *hint, const char *what, long long n)
{
    diag_add(plan->diags, TUCK_ERROR, NOWHERE, hint, "%s: %lld", what, n);
    plan->status = TUCK_EINVAL;
}

static void do_begin(void *arg)
{
    struct beginning *b = arg;
    struct run_plan *plan = b->plan;

    plan->world = run_count_ranks(plan, b->side[0], b->n);
    if (plan->world < 1 || plan->world > RANKS_MOST) {
        refuse(plan, NULL, "the number of ranks must be 1 to 1024, found", plan->world);
        return;
    }
    if (b->n > 1 && b->n != (size_t)plan->world) {
        refuse(plan, "one file for all ranks, or one for each",
               "the number of graphs is not that of the ranks", (long long)b->n);
        return;
    }
    take_kernels(plan);
    if (!run_open_inputs(plan))
        return;
    for (uint32_t s = 0; s < b->n_side; s++) {
        struct run_side *side = &plan->side[s];
        side->same_text = b->n == 1;
        side->rank = arena_zeroed(&plan->arena, (size_t)plan->world * sizeof(*side->rank));
        plan->n_side = s + 1;
        for (int r = 0; r < plan->world; r++) {
            side->rank[r].g = b->side[s][b->n == 1 ? 0 : r];
            if (!make_rank(plan, side, r))
                return;
        }
    }
}

tuck_status run_begin(struct run_plan *plan, tuck_graph *const *const side[], uint32_t n_side,
                      size_t n, const tuck_exec_options *o, tuck_diags *diags)
{
    struct beginning b = {plan, side, n_side, n};

    *plan = (struct run_plan){.o = o, .diags = diags};
    mem_init(&plan->mem, &side[0][0]->store->mem.alloc);
    arena_init(&plan->arena, &plan->mem);
    if (!mem_guard(&plan->mem, do_begin, &b))
        plan->status = TUCK_ENOMEM;
    return plan->status;
}

void run_end(struct run_plan *plan)
{
    for (uint32_t s = 0; s < plan->n_side; s++)
        for (int r = 0; r < plan->world; r++)
            if (!plan->side[s].rank[r].shared)
                program_free(plan->side[s].rank[r].p);
    for (int r = 0; plan->file != NULL && r < plan->world; r++)
        if (r == 0 || plan->file[r] != plan->file[0])
            st_close(plan->file[r]);
    run_note_free(plan->note);
    arena_destroy(&plan->arena);
}

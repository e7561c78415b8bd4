/* Graph to program: one walk in the order of the graph. */
#include "graph/groups.h"
#include "lower/lower.h"
#include "lower/verify.h"

void lower_defaults(struct lower_options *o)
{
    *o = (struct lower_options){.one_shot_threshold = 128 * 1024};
}

/* ---- storages ---- */

struct mark {
    struct lower *l;
    uint32_t node;
};

static void mark_access(void *ctx, uint32_t root, enum access how)
{
    const struct mark *m = ctx;
    struct lower_storage *s = &m->l->storage[root];
    uint32_t region = m->l->region[m->node];

    (void)how;
    lower_kin_of(m->l, root)->last_access = m->l->place[m->node];
    if (region == 0 || (s->region != 0 && s->region != region))
        s->region = UINT32_MAX;
    else
        s->region = region;
}

static void mark_results(struct lower *l, uint32_t n)
{
    struct mark m = {l, n};

    for (uint32_t k = 0; k < l->s.count[n]; k++)
        mark_access(&m, memory_of(&l->s, n, k), ACCESS_WRITE);
}

/* ---- running transfers: their operands are in use until the first wait ---- */

static void begin_transfer(void *ctx, uint32_t root, enum access how)
{
    const struct mark *m = ctx;

    if (how == ACCESS_WRITE)
        lower_kin_of(m->l, root)->transfer = m->node;
}

static void mark_transfer(struct lower *l, uint32_t n, bool *unwaited)
{
    struct mark m = {l, n};

    if (op_at(lower_call(l, n)->op)->cls == OP_SYNC_COLLECTIVE)
        return;
    unwaited[n] = true;
    lower_touches(l, n, begin_transfer, &m);
    for (uint32_t k = 0; k < l->s.count[n]; k++)
        begin_transfer(&m, memory_of(&l->s, n, k), ACCESS_WRITE);
}

struct late {
    struct lower *l;
    uint32_t place;
};

static void late_access(void *ctx, uint32_t root, enum access how)
{
    const struct late *x = ctx;

    (void)how;
    lower_kin_of(x->l, root)->last_access = x->place;
}

/* Operands that are cloned, or would be, are no longer used once the transfer is running. */
static bool works_on_clones(const struct op_row *row)
{
    return row->cls == OP_COLLECTIVE && (row->flags & (OP_F_ALL_REDUCE | OP_F_BROADCAST)) &&
           !(row->flags & OP_F_MUTATES);
}

static void end_transfer(struct lower *l, uint32_t n, uint32_t place)
{
    struct late x = {l, place};

    if (!works_on_clones(op_at(lower_call(l, n)->op)))
        lower_touches(l, n, late_access, &x);
    for (uint32_t k = 0; k < l->s.count[n]; k++)
        late_access(&x, memory_of(&l->s, n, k), ACCESS_WRITE);
}

static void mark_wait(struct lower *l, uint32_t n, bool *unwaited)
{
    const struct fx_node *x = lower_call(l, n);

    for (uint32_t i = 0; i < x->n_vals; i++)
        for (uint32_t k = 0; x->vals[i].kind == TUCK_V_NODE && k < l->s.count[x->vals[i].a]; k++) {
            uint32_t c = l->kin[storage_of(&l->s, x->vals[i].a, k)].transfer;
            if (!unwaited[c])
                continue;
            unwaited[c] = false;
            end_transfer(l, c, l->place[n]);
        }
}

static void begin_storages(struct lower *l)
{
    size_t n = (size_t)l->s.n + 1;

    l->storage = arena_zeroed(&l->scratch, n * sizeof(*l->storage));
    l->kin = arena_zeroed(&l->scratch, n * sizeof(*l->kin));
    for (uint32_t i = 0; i <= l->s.n; i++) {
        l->storage[i].buf = PROGRAM_NONE;
        l->kin[i].written_by = l->kin[i].works = PROGRAM_NONE;
    }
    for (uint32_t i = 1; i <= l->s.n; i++)
        if (memory_root(&l->s, i) == i && storage_root(&l->s, i) != i)
            lower_kin_of(l, i)->several = true;
}

static void mark_output(struct lower *l, uint32_t value)
{
    for (uint32_t k = 0; k < l->s.count[value]; k++) {
        uint32_t root = memory_of(&l->s, value, k);
        l->storage[root].output = lower_kin_of(l, root)->output = true;
    }
}

static void mark_input(struct lower *l, uint32_t value)
{
    for (uint32_t k = 0; k < l->s.count[value]; k++) {
        uint32_t root = memory_of(&l->s, value, k);
        l->storage[root].input = lower_kin_of(l, root)->input = true;
    }
}

static void prepare_storages(struct lower *l)
{
    const tuck_graph *g = l->g;

    bool *unwaited = arena_zeroed(&l->scratch, g->node.len * sizeof(*unwaited));

    begin_storages(l);
    for_each_node (g, n) {
        struct mark m = {l, n};
        uint8_t kind = node_at(g, n)->kind;

        if (kind == TUCK_PLACEHOLDER || kind == TUCK_GET_ATTR) {
            mark_input(l, n);
        } else if (kind == TUCK_OUTPUT) {
            const struct fx_node *x = node_at(g, n);
            for (uint32_t i = 0; i < x->n_vals; i++)
                if (x->vals[i].kind == TUCK_V_NODE)
                    mark_output(l, x->vals[i].a);
        } else if (l->role[n] != ROLE_VIEW) {
            lower_touches(l, n, mark_access, &m);
            if (l->role[n] != ROLE_NOTHING)
                mark_results(l, n);
            if (l->role[n] == ROLE_COLLECTIVE)
                mark_transfer(l, n, unwaited);
            else if (l->role[n] == ROLE_WAIT)
                mark_wait(l, n, unwaited);
        }
    }
    for_each_node (g, n)
        if (unwaited[n])
            end_transfer(l, n, UINT32_MAX);
}

/* ---- inputs ---- */

static bool listed(const char *const *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

bool lower_is_callers(const char *input)
{
    static const char *const kept[] = {"primals_", "arg", "tangents", "fwd_rng_state",
                                       "bwd_rng_state"};

    for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
        if (strncmp(input, kept[i], strlen(kept[i])) == 0)
            return true;
    return false;
}

static bool is_freeable(const struct lower *l, uint32_t node)
{
    const char *name = graph_str(l->g, node_at(l->g, node)->name);

    if (node_at(l->g, node)->kind != TUCK_PLACEHOLDER || listed(l->o->keep, l->o->n_keep, name))
        return false;
    if (listed(l->o->free, l->o->n_free, name))
        return true;
    return !lower_is_callers(name);
}

static void lower_input(struct lower *l, uint32_t node)
{
    for (uint32_t k = 0; k < l->s.count[node]; k++) {
        uint32_t root = memory_of(&l->s, node, k);
        struct lower_storage *s = &l->storage[root];
        bool touched = lower_kin_of(l, root)->last_access > 0;
        type_id type = lower_result_type(l, node, k);

        if (type == 0 && !touched && !s->output)
            continue; /* a number or a group: its type does not matter */
        if (s->buf == PROGRAM_NONE)
            lower_place(l, root, lower_buf(l, PROGRAM_NONE, node, type, ""));
        if (s->buf == PROGRAM_NONE)
            continue;
        struct program_buf *b = &l->buf.at[s->buf];
        /* Unused inputs stay with the caller. */
        bool ours = (touched || s->output) && is_freeable(l, node);
        b->flags |= PROGRAM_INPUT | (ours ? PROGRAM_FREEABLE : 0) |
                    (s->output ? PROGRAM_OUTPUT : 0);
        b->layout = PROGRAM_FIXED;
    }
}

/* ---- nodes ---- */

/* A view, a number, an item: it comes from wherever its operands come from. */
static void lower_nothing(struct lower *l, uint32_t n)
{
    const struct fx_node *x = node_at(l->g, n);

    for (uint32_t i = 0; i < x->n_vals; i++) {
        if (x->vals[i].kind != TUCK_V_NODE)
            continue;
        uint32_t a = x->vals[i].a, by = l->made_by[a], k = l->more_from[a];
        for (;;) {
            if (by != PROGRAM_NONE && l->met.at[by] != n) {
                l->met.at[by] = n;
                if (l->made_by[n] == PROGRAM_NONE) {
                    l->made_by[n] = by;
                } else {
                    vec_push_in(&l->scratch, &l->link, ((struct lower_link){by, l->more_from[n]}));
                    l->more_from[n] = l->link.len - 1;
                }
            }
            if (k == 0)
                break;
            by = l->link.at[k].op;
            k = l->link.at[k].next;
        }
    }
}

static void lower_fused(struct lower *l, uint32_t n)
{
    uint32_t *op = &l->region_op[l->region[n]];

    if (*op == PROGRAM_NONE)
        *op = lower_op(l, PROGRAM_FUSED, n, ".fused", lower_keep(l, "fused"));
    lower_joins(l, *op, n);
    lower_accesses(l, *op, n);
    lower_follows_operands(l, *op, n);
    lower_results(l, *op, n);
}

static bool is_gemm(uint8_t cls)
{
    return cls == OP_GEMM || cls == OP_CONV || cls == OP_ATTENTION;
}

static void lower_single(struct lower *l, uint32_t n)
{
    uint32_t op = lower_plain(l, n, PROGRAM_COMPUTE);

    l->op.at[op].flags |= PROGRAM_LOOP;
}

/* Copies and allocations count as loops, because passes add and remove them. */
static void lower_other(struct lower *l, uint32_t n, const struct op_row *row)
{
    uint32_t op = lower_plain(l, n, is_gemm(row->cls) ? PROGRAM_GEMM : PROGRAM_COMPUTE);

    if (row->cls == OP_COPY || row->cls == OP_FSDP || row->cls == OP_FACTORY ||
        row->cls == OP_FOREACH)
        l->op.at[op].flags |= PROGRAM_LOOP;
    if (row->cls == OP_FACTORY && row->moves == OP_MOVES_none)
        l->op.at[op].flags |= PROGRAM_NOP; /* allocates memory without filling it */
}

static void lower_node(struct lower *l, uint32_t n)
{
    const struct op_row *row = op_at(node_op(l->g, n));

    switch ((enum lower_role)l->role[n]) {
    case ROLE_NOTHING:
        if (node_at(l->g, n)->kind == TUCK_PLACEHOLDER || node_at(l->g, n)->kind == TUCK_GET_ATTR)
            return; /* inputs and attributes were handled first */
        lower_nothing(l, n);
        break;
    case ROLE_VIEW: lower_nothing(l, n); break;
    case ROLE_WAIT: lower_wait(l, n); break;
    case ROLE_COLLECTIVE: lower_collective(l, n); break;
    case ROLE_FUSIBLE:
        if (l->region[n] != 0) {
            lower_fused(l, n);
            break;
        }
        lower_single(l, n);
        break;
    case ROLE_OP:
        if (lower_nests_comm(l, n))
            lower_nested(l, n);
        else if (row->shape == OP_SHAPE_control_deps || lower_call(l, n) != node_at(l->g, n))
            lower_wrapped(l, n);
        else
            lower_other(l, n, row);
        break;
    }
}

/* ---- the arrays ---- */

static void begin_groups(struct lower *l)
{
    const tuck_graph *g = l->g;

    l->group = groups_of_nodes(g, &l->scratch);
    for (uint32_t i = 0; i < g->group.len; i++) {
        struct program_group x = {lower_str(l, g->group.at[i].name), g->group.at[i].size,
                                  g->group.at[i].rank};
        vec_push_in(&l->scratch, &l->groups, x);
    }
}

static void begin_lines(struct lower *l)
{
    size_t lines = (size_t)l->g->group.len + 1, bytes = lines * sizeof(*l->last_in_line);

    comm_lines_find(l->g, l->group, &l->scratch, &l->lines);
    l->last_in_line = arena_array(&l->scratch, uint32_t, lines);
    l->nested_in_line = arena_array(&l->scratch, uint32_t, lines);
    memset(l->last_in_line, 0xFF, bytes);
    memset(l->nested_in_line, 0xFF, bytes);
}

/* Ops stay on their side of a wall. `first`: the first op of node n; `wall`: the last wall before
 * it. Returns the last wall. */
static uint32_t stay_behind(struct lower *l, uint32_t n, uint32_t first, uint32_t wall)
{
    for (uint32_t i = first; i < l->op.len && wall != PROGRAM_NONE; i++)
        lower_depends(l, i, wall, 0);
    if (!(op_at(node_at(l->g, n)->op)->flags & OP_F_WALL) || l->op.len == first)
        return wall;
    for (uint32_t i = wall == PROGRAM_NONE ? 0 : wall + 1; i < first; i++)
        lower_depends(l, first, i, 0);
    return first;
}

/* Room for what a graph usually becomes, so that the lists do not grow step by step. */
static void expect(struct lower *l)
{
    struct arena *a = &l->scratch;
    uint32_t n = l->g->n_nodes;

    vec_reserve_in(a, &l->op, n);
    vec_reserve_in(a, &l->buf, n);
    vec_reserve_in(a, &l->track, n);
    vec_reserve_in(a, &l->use, 3 * (size_t)n);
    vec_reserve_in(a, &l->dep, 3 * (size_t)n);
    vec_reserve_in(a, &l->node, n);
    vec_reserve_in(a, &l->use_from, n);
    vec_reserve_in(a, &l->followed, n);
    vec_reserve_in(a, &l->ended_from, n);
    vec_reserve_in(a, &l->met, n);
}

static void do_lower(void *arg)
{
    struct lower *l = arg;
    tuck_graph *g = l->g;

    if (l->o->to_run)
        infer_graph(g, &(struct infer_options){.views_follow = true, .dense_inputs = true}, NULL);
    else
        infer_need(g);
    lower_begin_names(l);
    l->p->name = lower_keep(l, *graph_str(g, g->name) ? graph_str(g, g->name) : "forward");
    l->p->source = lower_keep(l, graph_str(g, g->source_name));
    begin_groups(l);
    lower_find_inner(l);
    begin_lines(l);
    l->copies = (struct copies){
        .g = g, .assume = &l->assume, .sigs = &l->sigs, .conjugates = l->o->to_run};
    copies_find(&l->copies, &l->scratch);
    storages_build_apart(g, &l->scratch, l->copies.copies, &l->s);
    lower_describe(l);
    lower_roles(l);
    lower_regions(l);
    prepare_storages(l);
    l->region_op = arena_array(&l->scratch, uint32_t, (size_t)l->n_region + 1);
    memset(l->region_op, 0xFF, ((size_t)l->n_region + 1) * sizeof(*l->region_op));
    l->made_by = arena_array(&l->scratch, uint32_t, g->node.len);
    memset(l->made_by, 0xFF, g->node.len * sizeof(*l->made_by));
    l->more_from = arena_zeroed(&l->scratch, g->node.len * sizeof(*l->more_from));
    l->copied = arena_zeroed(&l->scratch, g->node.len * sizeof(*l->copied));
    vec_push_in(&l->scratch, &l->link, ((struct lower_link){0, 0}));
    expect(l);
    for_each_node (g, n)
        if (node_at(g, n)->kind == TUCK_PLACEHOLDER || node_at(g, n)->kind == TUCK_GET_ATTR)
            lower_input(l, n);
    l->p->n_input = l->buf.len;
    for (uint32_t wall = PROGRAM_NONE, n = g->node.at[0].next; n != 0; n = g->node.at[n].next) {
        uint32_t first = l->op.len;
        lower_node(l, n);
        wall = stay_behind(l, n, first, wall);
    }
    lower_hold_unwaited(l);
    lower_finish(l);
}

tuck_status lower_graph(tuck_graph *g, const struct lower_options *o, tuck_diags *diags,
                        struct program **out)
{
    struct lower l = {.g = g,
                      .o = o,
                      .diags = diags,
                      .last_effect = PROGRAM_NONE,
                      .last_barrier = PROGRAM_NONE,
                      .p = program_new(&g->store->mem.alloc)};

    if (l.p == NULL)
        return TUCK_ENOMEM;
    l.assume = o->machine ? machine_symbols(o->machine, g->store)
                          : (struct assume){.store = g->store};
    arena_init(&l.scratch, &g->store->mem);
    sigs_init(&l.sigs, &g->store->mem);
    buf_init(&l.text, &g->store->mem);
    bool ok = mem_guard_two(&l.p->mem, &g->store->mem, do_lower, &l);
    buf_destroy(&l.text);
    sigs_destroy(&l.sigs);
    arena_destroy(&l.scratch);
    tuck_status st = ok ? l.status : TUCK_ENOMEM;
    if (st != TUCK_OK) {
        program_free(l.p);
        return st;
    }
    program_verify(l.p);
    *out = l.p;
    return TUCK_OK;
}

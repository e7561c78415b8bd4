/* Collectives and waits: in place or not, with the copies they need, over symmetric memory or not.
 *
 *   all_reduce, broadcast, coalesced too   a clone of the operand, then in place; no clone where the operand is ours
 *                                          and nobody looks at it any more
 *   all_reduce_, out=, …                   in place: the signature says what is written
 *   the others                             out of place
 *   a small all_reduce, if it may          one synchronous one-shot kernel over a comm buffer; its wait is dropped
 */
#include <stdio.h>

#include "fx/groups.h"
#include "lower/lower.h"

struct coll {
    struct lower *l;
    uint32_t node, op;
    const struct op_row *row;
    const struct op_sig *sig;
    int64_t in, out; /* bytes */
};

static uint32_t buf_of_value(const struct lower *l, uint32_t node)
{
    uint32_t root = storage_of(&l->s, node, 0);

    return root ? l->storage[root].buf : PROGRAM_NONE;
}

static int64_t bytes_of(struct lower *l, type_id t)
{
    int64_t bytes;

    return assume_bytes(&l->assume, t, &bytes) ? bytes : 0;
}

static void fix(struct lower *l, uint32_t buf)
{
    if (buf != PROGRAM_NONE && l->buf.at[buf].layout == PROGRAM_FLEXIBLE)
        l->buf.at[buf].layout = PROGRAM_FIXED;
}

/* ---- copies ---- */

/* A copy of the value of `from`, right before the collective. */
static uint32_t copy_of(struct coll *c, uint32_t from, const char *suffix, const char *kernel)
{
    struct lower *l = c->l;
    uint32_t op = lower_op(l, PROGRAM_COPY, c->node, suffix, kernel);

    lower_uses(l, op, buf_of_value(l, from), PROGRAM_READS);
    lower_depends(l, op, l->made_by[from], 0);
    uint32_t buf = lower_buf(l, op, c->node, node_type(l->g, from), suffix);
    fix(l, buf);
    return buf;
}

/* Nobody looks at the operand after this node, it is ours as a whole, and laid out as it must be. */
static bool may_reuse(const struct coll *c, uint32_t from)
{
    const struct lower *l = c->l;
    uint32_t root = storage_of(&l->s, from, 0);

    if (root == 0 || l->o->keep_clones)
        return false;
    const struct lower_storage *s = &l->storage[root];
    return s->buf != PROGRAM_NONE && !s->input && !s->output &&
           s->last_access <= l->place[c->node] && lower_is_contiguous(l, node_type(l->g, from)) &&
           l->buf.at[s->buf].layout != PROGRAM_COMM;
}

/* ---- symmetric memory ---- */

static bool has_symm_mem(const struct lower *l, uint32_t group)
{
    const char *name = program_str(l->p, l->p->group[group].name);

    for (size_t i = 0; i < l->o->n_symm_group; i++)
        if (strcmp(l->o->symm_group[i], "*") == 0 || strcmp(l->o->symm_group[i], name) == 0)
            return true;
    return false;
}

/* No symbol in any size: the same bytes in every iteration. */
static bool is_static(const struct lower *l, type_id id)
{
    const struct type *t = type_at(&l->g->store->type, id);
    int64_t v;

    for (uint32_t i = 0; i < t->n; i++)
        if (!sym_as_int(&l->g->store->sym, t->size[i], &v))
            return false;
    return t->kind == TYPE_TENSOR;
}

/* Can the operand live in symmetric memory? Its allocation must be ours and of a fixed size. */
static bool may_be_comm(const struct coll *c, uint32_t from, uint32_t group)
{
    const struct lower *l = c->l;
    uint32_t root = storage_of(&l->s, from, 0), buf = root ? l->storage[root].buf : PROGRAM_NONE;

    if (buf == PROGRAM_NONE || l->storage[root].input || l->storage[root].output)
        return false;
    if (l->buf.at[buf].layout == PROGRAM_COMM)
        return l->buf.at[buf].group == group;
    return is_static(l, node_type(l->g, from)) && !(l->buf.at[buf].flags & PROGRAM_UNKNOWN);
}

static void make_comm(struct lower *l, uint32_t buf, uint32_t group)
{
    l->buf.at[buf].layout = PROGRAM_COMM;
    l->buf.at[buf].group = group;
}

/* The operand in symmetric memory: itself, or a copy. */
static uint32_t comm_buffer(struct coll *c, uint32_t from, uint32_t group)
{
    uint32_t buf;

    if (may_be_comm(c, from, group))
        buf = buf_of_value(c->l, from);
    else
        buf = copy_of(c, from, ".symm", "copy");
    if (buf != PROGRAM_NONE && group != PROGRAM_NONE)
        make_comm(c->l, buf, group);
    return buf;
}

/* ---- what a collective is ---- */

static const tuck_value *operand(const struct coll *c, const char *name)
{
    struct operand o = {.v = NULL};

    while (operand_next(c->l->g, node_at(c->l->g, c->node), c->sig, &o))
        if (o.param != NULL && strcmp(o.param->name, name) == 0)
            return o.v;
    return NULL;
}

static const char *coll_name(const struct op_row *row)
{
    return row->flags & OP_F_ALL_REDUCE       ? "all_reduce"
           : row->flags & OP_F_ALL_GATHER     ? "all_gather"
           : row->flags & OP_F_REDUCE_SCATTER ? "reduce_scatter"
           : row->flags & OP_F_ALL_TO_ALL     ? "all_to_all"
           : row->flags & OP_F_BROADCAST      ? "broadcast"
           : row->cls == OP_P2P               ? "p2p"
                                              : "collective";
}

static const char *text_of(const struct coll *c, const tuck_value *v)
{
    return v != NULL && v->kind == TUCK_V_STR ? graph_str(c->l->g, v->a) : NULL;
}

static void describe(struct coll *c)
{
    struct lower *l = c->l;
    struct program_op *op = &l->op.at[c->op];
    int group = group_of(l->g, c->node);

    op->coll = lower_keep(l, coll_name(c->row));
    op->reduce_op = lower_keep(l, text_of(c, operand(c, "reduce_op")));
    op->group = group >= 0 ? (uint32_t)group : PROGRAM_NONE;
    op->message = c->in > c->out ? c->in : c->out;
    if (c->row->cls != OP_SYNC_COLLECTIVE)
        op->flags |= PROGRAM_ASYNC;
}

/* Bytes of everything that goes in, and of everything that comes out. */
static void measure(struct coll *c)
{
    struct lower *l = c->l;
    const struct fx_node *x = node_at(l->g, c->node);
    const struct type *t = type_at(&l->g->store->type, node_type(l->g, c->node));

    for (uint32_t i = 0; i < x->n_vals; i++)
        if (x->vals[i].kind == TUCK_V_NODE &&
            type_at(&l->g->store->type, node_type(l->g, x->vals[i].a))->kind == TYPE_TENSOR)
            c->in += bytes_of(l, node_type(l->g, x->vals[i].a));
    const tuck_value *out = operand(c, "out");
    if (out != NULL && out->kind == TUCK_V_NODE)
        c->in -= bytes_of(l, node_type(l->g, out->a)); /* it is what comes out */
    if (t->kind == TYPE_LIST)
        for (uint32_t i = 0; i < t->n; i++)
            c->out += bytes_of(l, type_at(&l->g->store->type, node_type(l->g, c->node))->item[i]);
    else
        c->out = bytes_of(l, node_type(l->g, c->node));
}

/* The nodes of a list operand, or the one node. */
static uint32_t first_operands(const struct coll *c, const tuck_value **at)
{
    const tuck_value *v = node_at(c->l->g, c->node)->vals;

    if (node_at(c->l->g, c->node)->n_vals == 0)
        return 0;
    *at = value_is_container(v) ? v + 1 : v;
    return value_is_container(v) ? v->a : 1;
}

/* ---- the forms ---- */

/* The results become the buffers that the collective works on. */
static void in_place(struct coll *c)
{
    struct lower *l = c->l;
    const tuck_value *v;
    uint32_t n = first_operands(c, &v);
    uint32_t *buf = arena_array(&l->scratch, uint32_t, n ? n : 1);

    for (uint32_t i = 0; i < n; i++) {
        bool node = v[i].kind == TUCK_V_NODE;
        char suffix[32];

        snprintf(suffix, sizeof(suffix), i ? ".clone.%u" : ".clone", i);
        buf[i] = !node                  ? PROGRAM_NONE
                 : may_reuse(c, v[i].a) ? buf_of_value(l, v[i].a)
                                        : copy_of(c, v[i].a, suffix, "clone");
    }
    c->op = lower_op(l, PROGRAM_COLLECTIVE, c->node, "", lower_kernel(l, c->node));
    lower_joins(l, c->op, c->node);
    for (uint32_t i = 0; i < n; i++) {
        lower_uses(l, c->op, buf[i], PROGRAM_MUTATES);
        fix(l, buf[i]);
        uint32_t root = storage_of(&l->s, c->node, i);
        if (root != 0 && l->storage[root].buf == PROGRAM_NONE) {
            l->storage[root].buf = buf[i];
            if (l->storage[root].output && buf[i] != PROGRAM_NONE)
                l->buf.at[buf[i]].flags |= PROGRAM_OUTPUT;
        }
    }
    lower_follows_operands(l, c->op, c->node);
}

/* What the signature says of each operand, but for those that were copied: their copies are read. */
static void use_operands(struct coll *c)
{
    struct lower *l = c->l;
    struct operand o = {.v = NULL};

    while (operand_next(l->g, node_at(l->g, c->node), c->sig, &o)) {
        bool written = o.param != NULL && o.param->mutated;
        const tuck_value *end = value_next(o.v);
        for (const tuck_value *v = o.v; v < end; v++) {
            if (v->kind != TUCK_V_NODE || l->copied[v->a] == c->node)
                continue;
            uint32_t buf = buf_of_value(l, v->a);
            lower_uses(l, c->op, buf, written ? PROGRAM_MUTATES : PROGRAM_READS);
            fix(l, buf);
        }
    }
}

static void finish(struct coll *c)
{
    struct lower *l = c->l;

    use_operands(c);
    lower_follows_operands(l, c->op, c->node);
    lower_follows_effects(l, c->op, c->node);
    lower_results(l, c->op, c->node);
    for (uint32_t k = 0; k < l->s.count[c->node]; k++)
        fix(l, l->storage[storage_of(&l->s, c->node, k)].buf);
}

/* Operands that must be contiguous and are not are copied first. */
static void as_written(struct coll *c)
{
    struct lower *l = c->l;
    VEC(uint32_t) made = {NULL, 0, 0};
    struct operand o = {.v = NULL};

    while ((c->row->flags & OP_F_CONTIG) &&
           operand_next(l->g, node_at(l->g, c->node), c->sig, &o)) {
        const tuck_value *end = value_next(o.v);
        for (const tuck_value *v = o.v; o.param != NULL && !o.param->mutated && v < end; v++) {
            if (v->kind != TUCK_V_NODE || l->copied[v->a] == c->node ||
                lower_is_contiguous(l, node_type(l->g, v->a)))
                continue;
            char suffix[40];
            snprintf(suffix, sizeof(suffix), made.len ? ".contiguous.%u" : ".contiguous", made.len);
            uint32_t copy = copy_of(c, v->a, suffix, "contiguous");
            vec_push_in(&l->scratch, &made, copy);
            l->copied[v->a] = c->node;
        }
    }
    c->op = lower_op(l, PROGRAM_COLLECTIVE, c->node, "", lower_kernel(l, c->node));
    lower_joins(l, c->op, c->node);
    for (uint32_t i = 0; i < made.len; i++)
        lower_uses(l, c->op, made.at[i], PROGRAM_READS);
    finish(c);
}

/* An operator of symmetric memory: its first operand must live there. */
static void symmetric(struct coll *c, uint32_t group)
{
    struct lower *l = c->l;
    const tuck_value *v;
    uint32_t n = first_operands(c, &v);
    uint32_t from = n > 0 && v->kind == TUCK_V_NODE ? v->a : 0;
    uint32_t buf = from != 0 ? comm_buffer(c, from, group) : PROGRAM_NONE;
    bool copied = buf != PROGRAM_NONE && buf != buf_of_value(l, from);

    c->op = lower_op(l, PROGRAM_COLLECTIVE, c->node, "", lower_kernel(l, c->node));
    lower_joins(l, c->op, c->node);
    if (copied) {
        lower_uses(l, c->op, buf, PROGRAM_READS);
        l->copied[from] = c->node;
    }
    finish(c);
}

/* May this all-reduce be one synchronous one-shot kernel? */
static bool is_one_shot(const struct coll *c, uint32_t group)
{
    const struct lower *l = c->l;
    const tuck_value *v;
    const char *how = text_of(c, operand(c, "reduce_op"));

    return l->o->auto_select && (c->row->flags & OP_F_ALL_REDUCE) && c->row->cls == OP_COLLECTIVE &&
           group != PROGRAM_NONE && has_symm_mem(l, group) && how != NULL &&
           strcmp(how, "sum") == 0 && first_operands(c, &v) == 1 &&
           v == node_at(l->g, c->node)->vals && v->kind == TUCK_V_NODE &&
           c->in <= l->o->one_shot_threshold && may_be_comm(c, v->a, group);
}

static void one_shot(struct coll *c, uint32_t group)
{
    struct lower *l = c->l;
    uint32_t from = node_at(l->g, c->node)->vals[0].a, root = storage_of(&l->s, c->node, 0);
    uint32_t source = comm_buffer(c, from, group);
    bool back = (c->row->flags & OP_F_MUTATES) != 0;

    c->op = lower_op(l, PROGRAM_COLLECTIVE, c->node, "", "symm_mem.one_shot_all_reduce.default");
    lower_joins(l, c->op, c->node);
    lower_uses(l, c->op, source, PROGRAM_READS);
    lower_follows_operands(l, c->op, c->node);
    if (!back) {
        lower_results(l, c->op, c->node);
    } else {
        uint32_t sum = lower_buf(l, c->op, c->node, node_type(l->g, from), ".sum");
        uint32_t copy = lower_op(l, PROGRAM_COPY, c->node, ".back", "copy_");
        lower_uses(l, copy, sum, PROGRAM_READS);
        lower_uses(l, copy, l->storage[root].buf, PROGRAM_MUTATES);
        l->made_by[c->node] = copy;
    }
}

void lower_collective(struct lower *l, uint32_t node)
{
    uint32_t id = node_op(l->g, node);
    struct coll c = {.l = l, .node = node, .row = op_at(id), .sig = sigs_get(&l->sigs, id)};
    const uint32_t cloned = OP_F_ALL_REDUCE | OP_F_BROADCAST;
    int index = group_of(l->g, node);
    uint32_t group = index >= 0 ? (uint32_t)index : PROGRAM_NONE;

    measure(&c);
    bool quick = is_one_shot(&c, group);
    if (quick)
        one_shot(&c, group);
    else if (c.row->flags & OP_F_SYMMETRIC)
        symmetric(&c, group);
    else if (c.row->cls == OP_COLLECTIVE && (c.row->flags & cloned) &&
             !(c.row->flags & OP_F_MUTATES))
        in_place(&c);
    else
        as_written(&c);
    describe(&c);
    if (quick) {
        l->op.at[c.op].flags &= (uint8_t)~PROGRAM_ASYNC;
        l->op.at[c.op].algorithm = lower_keep(l, "one_shot");
    }
}

/* ---- waits ---- */

/* The collectives that made what a wait is for: those of its operands; only if there are none, those that the
 * waits before it ended. Each is a row of l->wait. */
static void find_collectives(struct lower *l, uint32_t op, uint32_t node)
{
    const struct fx_node *x = node_at(l->g, node);
    uint32_t from = l->wait.len;

    for (uint32_t i = 0; i < x->n_vals; i++) {
        uint32_t by = x->vals[i].kind == TUCK_V_NODE ? l->made_by[x->vals[i].a] : PROGRAM_NONE;
        if (by != PROGRAM_NONE && l->op.at[by].kind == PROGRAM_COLLECTIVE &&
            l->met.at[by] != node) {
            l->met.at[by] = node;
            vec_push_in(&l->scratch, &l->wait, ((struct lower_pair){op, by}));
        }
    }
    if (l->wait.len > from)
        return;
    for (uint32_t i = 0; i < x->n_vals; i++) {
        uint32_t by = x->vals[i].kind == TUCK_V_NODE ? l->made_by[x->vals[i].a] : PROGRAM_NONE;
        if (by == PROGRAM_NONE || l->op.at[by].kind != PROGRAM_WAIT)
            continue;
        for (uint32_t k = l->ended_from.at[by]; k < from && l->wait.at[k].op == by; k++)
            vec_push_in(&l->scratch, &l->wait, ((struct lower_pair){op, l->wait.at[k].what}));
    }
}

/* What it waits for is done already: no op. */
static bool is_done(const struct lower *l, uint32_t node)
{
    const struct fx_node *x = node_at(l->g, node);
    bool any = false;

    for (uint32_t i = 0; i < x->n_vals; i++) {
        uint32_t by = x->vals[i].kind == TUCK_V_NODE ? l->made_by[x->vals[i].a] : PROGRAM_NONE;
        if (by == PROGRAM_NONE)
            return false;
        const struct program_op *op = &l->op.at[by];
        bool direct = op->kind == PROGRAM_COLLECTIVE && !(op->flags & PROGRAM_ASYNC);
        bool copied = op->kind == PROGRAM_COPY; /* the copy back of a one-shot all-reduce */
        if (!direct && !copied)
            return false;
        any = true;
    }
    return any;
}

void lower_wait(struct lower *l, uint32_t node)
{
    const struct fx_node *x = node_at(l->g, node);

    if (is_done(l, node)) {
        for (uint32_t i = 0; i < x->n_vals; i++)
            if (x->vals[i].kind == TUCK_V_NODE)
                l->made_by[node] = l->made_by[x->vals[i].a];
        return;
    }
    uint32_t op = lower_op(l, PROGRAM_WAIT, node, "", lower_kernel(l, node));
    lower_joins(l, op, node);
    l->ended_from.at[op] = l->wait.len;
    find_collectives(l, op, node);
    for (uint32_t i = l->ended_from.at[op]; i < l->wait.len; i++) {
        uint32_t c = l->wait.at[i].what;
        l->op.at[c].flags |= PROGRAM_ENDED;
        lower_depends(l, op, c, 0);
        /* The transfer reads its operands until the end. */
        uint32_t end = c + 1 < l->op.len ? l->use_from.at[c + 1] : l->use.len;
        for (uint32_t k = l->use_from.at[c]; k < end; k++)
            if (l->use.at[k].op == c && l->use.at[k].use.how == PROGRAM_READS)
                lower_uses(l, op, l->use.at[k].use.buf, PROGRAM_READS);
    }
    for (uint32_t i = 0; i < x->n_vals; i++)
        if (x->vals[i].kind == TUCK_V_NODE)
            for (uint32_t k = 0; k < l->s.count[x->vals[i].a]; k++)
                lower_uses(l, op, l->storage[storage_of(&l->s, x->vals[i].a, k)].buf,
                           PROGRAM_MUTATES);
    lower_follows_operands(l, op, node);
}

/* Collectives: in place or not, with the copies they need, over symmetric memory or not.
 *
 *   all_reduce, broadcast, coalesced too   a clone of the operand, then in place; no clone if the
 *                                          operand is ours and not used afterwards
 *   all_reduce_, out=, …                   in place: the signature says what is written
 *   the others                             out of place
 *   a small all_reduce, if allowed         one synchronous one-shot kernel over a comm buffer; its
 *                                          wait is dropped
 */
#include <stdio.h>

#include "graph/groups.h"
#include "graph/message.h"
#include "lower/lower.h"

struct coll {
    struct lower *l;
    uint32_t node, op;
    const struct fx_node *x; /* the call */
    const struct op_row *row;
    const struct op_sig *sig;
    int64_t message; /* bytes; -1 if unknown */
    uint32_t first;  /* index of the collective's first result among the node's */
};

static uint32_t buf_of_item(const struct lower *l, uint32_t node, uint32_t item)
{
    uint32_t root = memory_of(&l->s, node, item);

    return root ? l->storage[root].buf : PROGRAM_NONE;
}

static uint32_t buf_of_value(const struct lower *l, uint32_t node)
{
    return buf_of_item(l, node, 0);
}

static void fix(struct lower *l, uint32_t buf)
{
    if (buf != PROGRAM_NONE && l->buf.at[buf].layout == PROGRAM_FLEXIBLE)
        l->buf.at[buf].layout = PROGRAM_FIXED;
}

/* ---- copies ---- */

/* A copy of an item of `from`, made right before the collective. */
static uint32_t copy_of_item(struct coll *c, uint32_t from, uint32_t item, const char *suffix,
                             const char *kernel)
{
    struct lower *l = c->l;
    uint32_t op = lower_op(l, PROGRAM_COPY, c->node, suffix, lower_keep(l, kernel));

    lower_uses(l, op, buf_of_item(l, from, item), PROGRAM_READS);
    lower_depends(l, op, l->made_by[from], 0);
    l->op.at[op].from = from;
    l->op.at[op].item = item;
    uint32_t buf = lower_buf_dense(l, op, c->node, lower_result_type(l, from, item), suffix);
    fix(l, buf);
    return buf;
}

static uint32_t copy_of(struct coll *c, uint32_t from, const char *suffix, const char *kernel)
{
    return copy_of_item(c, from, 0, suffix, kernel);
}

/* The name of the in-place version of the operator. */
static const char *in_place_kernel(struct coll *c)
{
    struct lower *l = c->l;
    const char *name = lower_kernel(l, c->node), *dot = strrchr(name, '.');

    l->text.len = 0;
    buf_printf(&l->text, "%.*s_%s", dot ? (int)(dot - name) : (int)strlen(name), name,
               dot ? dot : "");
    uint32_t id = op_find(l->text.at, l->text.len);
    return id != 0 ? op_at(id)->name : name;
}

/* Copies the result back from a copy. */
static void copy_back(struct coll *c, uint32_t node, uint32_t from, uint32_t to)
{
    struct lower *l = c->l;
    uint32_t op = lower_op(l, PROGRAM_COPY, c->node, ".back", lower_keep(l, "copy_"));

    l->op.at[op].from = node;
    lower_uses(l, op, from, PROGRAM_READS);
    lower_uses(l, op, to, PROGRAM_MUTATES);
    lower_depends(l, op, c->op, 0);
    l->made_by[c->node] = op;
}

/* May the operand's memory be reused? Nothing may read it once this node begins, including other
 * transfers; it must be ours, with the right layout, and not be listed twice. Earlier readers get a
 * weak edge. A later reader keeps the clone, even if it could be moved: lowering keeps the given
 * order. */
static bool may_reuse(const struct coll *c, uint32_t from, uint32_t item)
{
    const struct lower *l = c->l;
    uint32_t root = memory_of(&l->s, from, item);

    if (root == 0 || l->o->keep_clones)
        return false;
    const struct lower_storage *s = &l->storage[root];
    struct lower_kin *kin = lower_kin_of(l, root);
    if (s->buf == PROGRAM_NONE || kin->input || kin->output || kin->claimed == c->node ||
        kin->last_access > l->place[c->node] ||
        !lower_is_contiguous(l, lower_result_type(l, from, item)) ||
        l->buf.at[s->buf].layout == PROGRAM_COMM)
        return false;
    kin->claimed = c->node;
    return true;
}

/* ---- symmetric memory ---- */

static bool has_symm_mem(const struct lower *l, uint32_t group)
{
    return group_is_listed(l->o->symm_group, l->o->n_symm_group,
                           program_str(l->p, l->groups.at[group].name));
}

/* Can the operand live in symmetric memory? It must be allocated by us, with a size that is the
 * same in every step, and not be returned to the caller, who would see the next step overwrite
 * it. */
static bool may_be_comm(const struct coll *c, uint32_t from, uint32_t group)
{
    const struct lower *l = c->l;
    uint32_t root = memory_of(&l->s, from, 0), buf = root ? l->storage[root].buf : PROGRAM_NONE;

    if (buf == PROGRAM_NONE || lower_kin_of(l, root)->input || lower_kin_of(l, root)->output)
        return false;
    if (l->buf.at[buf].layout == PROGRAM_COMM)
        return l->buf.at[buf].group == group;
    return l->track.at[buf].is_static && !(l->buf.at[buf].flags & PROGRAM_UNKNOWN);
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

    while (operand_next(c->l->g, c->x, c->sig, &o))
        if (o.param != NULL && strcmp(o.param->name, name) == 0)
            return o.v;
    return NULL;
}

static const char *text_of(const struct coll *c, const tuck_value *v)
{
    return v != NULL && v->kind == TUCK_V_STR ? graph_str(c->l->g, v->a) : NULL;
}

static void describe(struct coll *c, uint32_t group)
{
    struct lower *l = c->l;
    struct program_op *op = &l->op.at[c->op];

    op->coll = (uint8_t)op_coll(c->row);
    op->reduce_op = lower_keep(l, text_of(c, operand(c, "reduce_op")));
    op->group = group;
    op->message = c->message;
    if (c->row->cls != OP_SYNC_COLLECTIVE)
        op->flags |= PROGRAM_ASYNC;
}

struct tensor {
    uint32_t node, item; /* node 0: none */
};

typedef VEC(struct tensor) tensor_list;

/* A tensor, or all items of a list that one node returns. */
static void add_tensors(struct coll *c, const tuck_value *v, tensor_list *to)
{
    struct lower *l = c->l;
    uint32_t node = v->kind == TUCK_V_NODE ? v->a : 0, n = node != 0 ? l->s.count[node] : 0;

    for (uint32_t i = 0; i < (n > 1 ? n : 1); i++)
        vec_push_in(&l->scratch, to, ((struct tensor){node, i}));
}

/* The tensors of a list operand, or the single one. */
static tensor_list first_operands(struct coll *c)
{
    const tuck_value *v = call_operand(c->l->g, c->x, 0);
    tensor_list all = {NULL, 0, 0};

    for (uint32_t i = 0; v != NULL && i < (value_is_container(v) ? v->a : 1); i++)
        add_tensors(c, value_is_container(v) ? v + 1 + i : v, &all);
    return all;
}

/* ---- the forms ---- */

/* The results are the buffers that the collective works on. */
static void in_place(struct coll *c)
{
    struct lower *l = c->l;
    tensor_list all = first_operands(c);
    uint32_t n = all.len, *buf = arena_array(&l->scratch, uint32_t, n ? n : 1);

    for (uint32_t i = 0; i < n; i++) {
        struct tensor t = all.at[i];
        char suffix[32];

        snprintf(suffix, sizeof(suffix), i ? ".clone.%u" : ".clone", i);
        buf[i] = t.node == 0                    ? PROGRAM_NONE
                 : may_reuse(c, t.node, t.item) ? buf_of_item(l, t.node, t.item)
                                                : copy_of_item(c, t.node, t.item, suffix, "clone");
    }
    c->op = lower_op(l, PROGRAM_COLLECTIVE, c->node, "", lower_keep(l, in_place_kernel(c)));
    lower_joins(l, c->op, c->node);
    for (uint32_t i = 0; i < n; i++) {
        lower_uses(l, c->op, buf[i], PROGRAM_MUTATES);
        fix(l, buf[i]);
        uint32_t root = memory_of(&l->s, c->node, c->first + i);
        if (root != 0 && l->storage[root].buf == PROGRAM_NONE) {
            lower_place(l, root, buf[i]);
            if (l->storage[root].output && buf[i] != PROGRAM_NONE)
                l->buf.at[buf[i]].flags |= PROGRAM_OUTPUT;
        }
    }
    lower_follows_operands(l, c->op, c->node);
    lower_follows_effects(l, c->op, c->node);
}

/* Is operand v written? In a batch of sends and receives, only what is received. */
static bool is_written(const struct coll *c, const struct operand *o, const tuck_value *v)
{
    if (o->param == NULL || !o->param->mutated)
        return false;
    const tuck_value *kinds = c->row->cls == OP_P2P ? operand(c, "op_list") : NULL;
    if (kinds == NULL || !value_is_container(o->v) || !value_is_container(kinds))
        return true;
    uint32_t i = (uint32_t)(v - o->v) - 1; /* each tensor is one value, so value i is item i */
    const char *kind = i < kinds->a ? text_of(c, value_item(kinds, i)) : NULL;
    return kind == NULL || strcmp(kind, "isend") != 0;
}

/* Records how each operand is accessed by its signature. For copied operands the copy is read
 * instead. */
static void use_operands(struct coll *c)
{
    struct lower *l = c->l;
    struct operand o = {.v = NULL};

    while (operand_next(l->g, c->x, c->sig, &o)) {
        const tuck_value *end = value_next(o.v);
        for (const tuck_value *v = o.v; v < end; v++) {
            if (v->kind != TUCK_V_NODE || l->copied[v->a] == c->node)
                continue;
            uint32_t n = l->s.count[v->a];
            for (uint32_t k = 0; k < (n > 1 ? n : 1); k++) {
                uint32_t buf = buf_of_item(l, v->a, k);
                lower_uses(l, c->op, buf, is_written(c, &o, v) ? PROGRAM_MUTATES : PROGRAM_READS);
                fix(l, buf);
            }
        }
    }
}

/* Unused results need buffers, too. */
static void unasked_results(struct coll *c)
{
    struct lower *l = c->l;
    type_id id = node_type(l->g, c->node);
    const struct type *t = type_at(&l->g->store->type, id);

    if (t->kind != TYPE_LIST || (c->row->flags & OP_F_MUTATES))
        return;
    for (uint32_t k = l->s.count[c->node], n = t->n; k < n; k++) {
        char suffix[16];
        snprintf(suffix, sizeof(suffix), ".%u", k);
        fix(l, lower_buf(l, c->op, c->node, lower_result_type(l, c->node, k), suffix));
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
        fix(l, l->storage[memory_of(&l->s, c->node, k)].buf);
    unasked_results(c);
}

/* Is the tensor, or each item of a list that one node returns, contiguous? */
static bool is_contiguous(const struct lower *l, uint32_t node)
{
    for (uint32_t k = 0; k < (l->s.count[node] > 1 ? l->s.count[node] : 1); k++)
        if (!lower_is_contiguous(l, lower_result_type(l, node, k)))
            return false;
    return true;
}

/* Operands that must be contiguous and are not are copied first. */
static void as_written(struct coll *c)
{
    struct lower *l = c->l;
    VEC(uint32_t) made = {NULL, 0, 0};
    struct operand o = {.v = NULL};

    while ((c->row->flags & OP_F_CONTIG) && operand_next(l->g, c->x, c->sig, &o)) {
        const tuck_value *end = value_next(o.v);
        for (const tuck_value *v = o.v; v < end; v++) {
            if (v->kind != TUCK_V_NODE || l->copied[v->a] == c->node || is_written(c, &o, v) ||
                is_contiguous(l, v->a))
                continue;
            for (uint32_t k = 0; k < (l->s.count[v->a] > 1 ? l->s.count[v->a] : 1); k++) {
                char suffix[40];
                snprintf(suffix, sizeof(suffix), made.len ? ".contiguous.%u" : ".contiguous",
                         made.len);
                uint32_t copy = copy_of_item(c, v->a, k, suffix, "contiguous");
                vec_push_in(&l->scratch, &made, copy);
            }
            l->copied[v->a] = c->node;
        }
    }
    c->op = lower_op(l, PROGRAM_COLLECTIVE, c->node, "", lower_kernel_str(l, c->node));
    lower_joins(l, c->op, c->node);
    for (uint32_t i = 0; i < made.len; i++)
        lower_uses(l, c->op, made.at[i], PROGRAM_READS);
    finish(c);
}

struct symm_copy { /* the copy of an operand that cannot itself live in symmetric memory */
    uint32_t from, buf;
    bool written;
};

struct symm {
    struct coll *c;
    uint32_t group;
    VEC(struct symm_copy) copy;
};

/* Puts one operand into symmetric memory: itself, or a copy. */
static void make_symmetric(struct symm *s, uint32_t from, bool written)
{
    struct lower *l = s->c->l;

    if (l->copied[from] == s->c->node)
        return; /* the same operand twice */
    uint32_t buf = comm_buffer(s->c, from, s->group);
    if (buf == PROGRAM_NONE || buf == buf_of_value(l, from))
        return;
    l->copied[from] = s->c->node;
    vec_push_in(&l->scratch, &s->copy, ((struct symm_copy){from, buf, written}));
}

/* Puts the operands there that must be: the first one (a whole list), and what is written if the
 * operator's row says so. */
static void symmetric_operands(struct symm *s)
{
    struct coll *c = s->c;
    bool out = (c->row->flags & OP_F_SYMM_OUT) != 0;
    struct operand o = {.v = NULL};

    while (operand_next(c->l->g, c->x, c->sig, &o)) {
        bool first = operand_is(&o, c->sig, 0), written = o.param != NULL && o.param->mutated;
        if (!first && !(out && written))
            continue;
        out &= first;
        for (const tuck_value *v = o.v, *end = value_next(o.v); v < end; v++)
            if (v->kind == TUCK_V_NODE)
                make_symmetric(s, v->a, written);
    }
}

/* An operator on symmetric memory. What it writes into a copy is copied back. */
static void symmetric(struct coll *c, uint32_t group)
{
    struct lower *l = c->l;
    struct symm s = {.c = c, .group = group};

    symmetric_operands(&s);
    c->op = lower_op(l, PROGRAM_COLLECTIVE, c->node, "", lower_kernel_str(l, c->node));
    lower_joins(l, c->op, c->node);
    for (uint32_t i = 0; i < s.copy.len; i++)
        lower_uses(l, c->op, s.copy.at[i].buf,
                   s.copy.at[i].written ? PROGRAM_MUTATES : PROGRAM_READS);
    finish(c);
    for (uint32_t i = 0; i < s.copy.len; i++)
        if (s.copy.at[i].written)
            copy_back(c, s.copy.at[i].from, s.copy.at[i].buf, buf_of_value(l, s.copy.at[i].from));
}

/* Can this all-reduce be one synchronous one-shot kernel? */
static bool is_one_shot(const struct coll *c, uint32_t group)
{
    const struct lower *l = c->l;
    const tuck_value *v = call_operand(l->g, c->x, 0);
    const char *how = text_of(c, operand(c, "reduce_op"));

    return l->o->auto_select && (c->row->flags & OP_F_ALL_REDUCE) && c->row->cls == OP_COLLECTIVE &&
           group != PROGRAM_NONE && has_symm_mem(l, group) && how != NULL &&
           strcmp(how, "sum") == 0 && v != NULL && v->kind == TUCK_V_NODE &&
           l->s.count[v->a] <= 1 && c->message >= 0 && c->message <= l->o->one_shot_threshold &&
           may_be_comm(c, v->a, group);
}

static void one_shot(struct coll *c, uint32_t group)
{
    struct lower *l = c->l;
    uint32_t from = call_node(l->g, c->x, 0), root = memory_of(&l->s, c->node, c->first);
    uint32_t source = comm_buffer(c, from, group);
    bool back = (c->row->flags & OP_F_MUTATES) != 0;

    c->op = lower_op(l, PROGRAM_COLLECTIVE, c->node, "",
                     lower_keep(l, "symm_mem.one_shot_all_reduce.default"));
    lower_joins(l, c->op, c->node);
    lower_uses(l, c->op, source, PROGRAM_READS);
    lower_follows_operands(l, c->op, c->node);
    lower_follows_effects(l, c->op, c->node);
    if (!back) {
        lower_results(l, c->op, c->node);
    } else {
        uint32_t sum = lower_buf(l, c->op, c->node, node_type(l->g, from), ".sum");
        copy_back(c, from, sum, l->storage[root].buf);
    }
}

/* A wait may name the buffer instead of the result. */
static void works_in(struct lower *l, uint32_t op)
{
    for (uint32_t k = l->use_from.at[op]; k < l->use.len; k++) {
        struct lower_track *t = &l->track.at[l->use.at[k].use.buf];

        if (l->use.at[k].op != op || l->use.at[k].use.how == PROGRAM_READS)
            continue;
        t->works = op;
        if (t->kin != 0)
            l->kin[t->kin].works = op;
    }
}

void lower_collective(struct lower *l, uint32_t node)
{
    const struct fx_node *x = lower_call(l, node);
    uint32_t id = x == node_at(l->g, node) ? node_op(l->g, node) : x->op;
    struct coll c = {.l = l,
                     .node = node,
                     .x = x,
                     .row = op_at(id),
                     .sig = sigs_get(&l->sigs, id),
                     .first = acting_result(l->g, node)};
    const uint32_t cloned = OP_F_ALL_REDUCE | OP_F_BROADCAST;
    uint32_t group = lower_group_of(l, node);

    int64_t ranks = group < l->groups.len ? l->groups.at[group].size : 0;
    c.message = message_bytes(l->g, node, ranks, &l->sigs, &l->assume, &l->scratch);
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
    describe(&c, group);
    if (quick) {
        l->op.at[c.op].flags &= (uint8_t)~PROGRAM_ASYNC;
        l->op.at[c.op].algorithm = lower_keep(l, "one_shot");
    }
    lower_follows_controls(l, c.op, node);
    lower_takes_place(l, c.op, node);
    if (l->op.at[c.op].flags & PROGRAM_ASYNC)
        works_in(l, c.op);
}

/* Emits ops and buffers one after the other, with the uses that connect them. */
#include <stdio.h>

#include "lower/lower.h"

/* ---- ops ---- */

uint32_t lower_op(struct lower *l, enum program_kind kind, uint32_t node, const char *suffix,
                  str_id kernel)
{
    struct arena *a = &l->scratch;
    uint32_t id = l->op.len;
    struct program_op op = {.name = lower_name(l, node, suffix, NAME_OF_OP),
                            .kernel = kernel,
                            .kind = (uint8_t)kind,
                            .node = node,
                            .group = PROGRAM_NONE,
                            .message = -1,
                            .ps = -1};

    if (kind == PROGRAM_COLLECTIVE) {
        if (node_at(l->g, node)->comment != 0)
            op.origin = lower_str(l, node_at(l->g, node)->comment);
        op.parameter = lower_parameter(l, node);
    }
    vec_push_in(a, &l->op, op);
    vec_push_in(a, &l->use_from, l->use.len);
    vec_push_in(a, &l->followed, PROGRAM_NONE);
    vec_push_in(a, &l->ended_from, 0);
    vec_push_in(a, &l->met, 0);
    return id;
}

void lower_joins(struct lower *l, uint32_t op, uint32_t node)
{
    vec_push_in(&l->scratch, &l->node, ((struct lower_pair){op, node}));
    l->made_by[node] = op;
}

void lower_depends(struct lower *l, uint32_t op, uint32_t on, unsigned flags)
{
    if (on == PROGRAM_NONE || on == op || l->followed.at[on] == op)
        return;
    assert_hot(op < l->op.len && on < l->op.len);
    struct lower_dep_row row = {op, {on, PROGRAM_NONE, (uint8_t)flags}};

    vec_push_in(&l->scratch, &l->dep, row);
    if (flags == 0)
        l->followed.at[on] = op;
}

/* ---- buffers ---- */

type_id lower_result_type(const struct lower *l, uint32_t node, uint32_t item)
{
    type_id id = node_type(l->g, node);
    const struct type *t = type_at(&l->g->store->type, id);

    if (t->kind != TYPE_LIST)
        return id;
    id = item < t->n ? t->item[item] : 0;
    /* An item may itself be a list; if it has one tensor, its type is that tensor's. */
    while ((t = type_at(&l->g->store->type, id))->kind == TYPE_LIST && t->n == 1)
        id = t->item[0];
    return id;
}

/* Sizes are numbers here: a program is for given values of the symbols. */
static bool number(struct lower *l, sym_id v, int64_t *out)
{
    if (assume_value(&l->assume, v, out))
        return true;
    if (l->no_number == 0)
        l->no_number = v; /* reported at the end, together with all other symbols without a value */
    return false;
}

/* The stride of dimension i in a contiguous layout. */
static bool dense_stride(struct lower *l, const struct type *t, uint32_t i, int64_t *out)
{
    int64_t size, stride = 1;

    for (uint32_t k = t->n; k > i + 1; k--)
        if (!number(l, t->size[k - 1], &size) || !size_mul(stride, size > 1 ? size : 1, &stride))
            return false;
    *out = stride;
    return true;
}

static str_id type_text(struct lower *l, const struct type *t, bool dense)
{
    const struct dtype_row *d = dtype_at((enum dtype)t->dtype);
    struct buf *b = &l->text;
    int64_t v;

    b->len = 0;
    buf_str(b, *d->abbr ? d->abbr : d->name);
    for (int part = 0; part < (t->strided ? 2 : 1); part++) {
        buf_chr(b, '[');
        for (uint32_t i = 0; i < t->n; i++) {
            bool known = part && dense ? dense_stride(l, t, i, &v)
                                       : number(l, part ? t->stride[i] : t->size[i], &v);
            if (!known)
                return 0;
            if (i > 0)
                buf_str(b, ", ");
            buf_int(b, v);
        }
        buf_chr(b, ']');
    }
    if (t->device != 0)
        buf_str(b, graph_str(l->g, t->device));
    return str_intern(&l->p->str, b->at, b->len);
}

static bool size_of(void *ctx, sym_id v, int64_t *out)
{
    return number(ctx, v, out);
}

static bool has_static_sizes(const struct lower *l, type_id id)
{
    const struct type *t = type_at(&l->g->store->type, id);
    int64_t v;

    for (uint32_t i = 0; i < t->n && t->kind == TYPE_TENSOR; i++)
        if (!sym_as_int(&l->g->store->sym, t->size[i], &v))
            return false;
    return t->kind == TYPE_TENSOR;
}

/* Tensors of a list that is itself an item of a list: side by side in one buffer of bytes. */
static bool list_bytes(struct lower *l, type_id list, struct program_buf *b)
{
    const struct typetab *types = &l->g->store->type;
    str_id device = 0;

    b->bytes = 0;
    for (uint32_t i = 0; i < type_at(types, list)->n; i++) {
        type_id id = type_at(types, list)->item[i];
        int64_t bytes;
        if (!storage_bytes(l->g, id, size_of, l, &bytes) || !size_add(b->bytes, bytes, &b->bytes))
            return false;
        device = type_at(types, id)->device;
    }
    l->text.len = 0;
    buf_str(&l->text, "u8[");
    buf_int(&l->text, b->bytes);
    buf_str(&l->text, "][1]");
    if (device != 0)
        buf_str(&l->text, graph_str(l->g, device));
    b->type = str_intern(&l->p->str, l->text.at, l->text.len);
    return true;
}

/* The text and the bytes of a type; each is found once. False: they have no value. */
static bool describe(struct lower *l, type_id type, bool dense, struct program_buf *b)
{
    const struct type *t = type_at(&l->g->store->type, type);
    struct lower_known *known = type < l->n_known ? &l->known[2 * (size_t)type + dense] : NULL;
    bool sized;

    if (known != NULL && known->text != 0) {
        b->type = known->text;
        b->bytes = known->bytes;
        return true;
    }
    if (t->kind == TYPE_TENSOR) {
        struct type copy = *t; /* copied because printing may add sizes to the table */
        b->type = type_text(l, &copy, dense);
    }
    if (t->kind == TYPE_LIST)
        sized = list_bytes(l, type, b);
    else
        sized = dense ? assume_bytes(&l->assume, type, &b->bytes)
                      : storage_bytes(l->g, type, size_of, l, &b->bytes);
    sized = sized && b->bytes >= 0; /* a text may say -1 */
    if (known != NULL && sized && b->type != 0)
        *known = (struct lower_known){b->bytes, b->type};
    return sized && b->type != 0;
}

static uint32_t new_buf(struct lower *l, uint32_t op, uint32_t node, type_id type,
                        const char *suffix, bool dense)
{
    const struct type *t = type_at(&l->g->store->type, type);
    struct program_buf b = {.producer = op, .offset = -1, .group = PROGRAM_NONE};
    uint32_t id = l->buf.len;

    if (t->kind != TYPE_TENSOR && t->kind != TYPE_UNKNOWN && !(t->kind == TYPE_LIST && t->n > 0))
        return PROGRAM_NONE;
    if (!describe(l, type, dense, &b)) {
        b.bytes = 0;
        b.flags |= PROGRAM_UNKNOWN;
        l->p->n_unknown++;
    }
    b.name = lower_name(l, node, suffix, NAME_OF_BUF);
    vec_push_in(&l->scratch, &l->buf, b);
    vec_push_in(&l->scratch, &l->track,
                ((struct lower_track){PROGRAM_NONE, PROGRAM_NONE, PROGRAM_NONE,
                                      has_static_sizes(l, type), 0}));
    if (op != PROGRAM_NONE)
        lower_uses(l, op, id, PROGRAM_WRITES);
    return id;
}

uint32_t lower_buf(struct lower *l, uint32_t op, uint32_t node, type_id type, const char *suffix)
{
    return new_buf(l, op, node, type, suffix, false);
}

/* A copy of a tensor that is not contiguous gets contiguous strides. */
uint32_t lower_buf_dense(struct lower *l, uint32_t op, uint32_t node, type_id type,
                         const char *suffix)
{
    return new_buf(l, op, node, type, suffix, !lower_is_contiguous(l, type));
}

void lower_place(struct lower *l, uint32_t root, uint32_t buf)
{
    uint32_t kin = storage_root(&l->s, root);

    l->storage[root].buf = buf;
    if (buf != PROGRAM_NONE)
        l->track.at[buf].kin = l->kin[kin].several ? kin : 0;
}

/* What is read or written may be in another buffer, too: the order among those that use any of
 * them is stated. Making a buffer is no write of the others. */
static void meet_kin(struct lower *l, uint32_t op, struct lower_kin *k, enum program_access how)
{
    lower_depends(l, op, k->written_by, 0);
    if (how == PROGRAM_READS) {
        vec_push_in(&l->scratch, &l->link, ((struct lower_link){op, k->readers}));
        k->readers = l->link.len - 1;
        return;
    }
    for (uint32_t i = k->readers; i != 0; i = l->link.at[i].next)
        lower_depends(l, op, l->link.at[i].op, PROGRAM_WEAK);
    k->written_by = op;
    k->readers = 0;
}

void lower_uses(struct lower *l, uint32_t op, uint32_t buf, enum program_access how)
{
    if (buf == PROGRAM_NONE)
        return;
    struct lower_track *t = &l->track.at[buf];

    if (t->written_by == op || (how == PROGRAM_READS && t->read_by == op))
        return;
    if (t->kin != 0 && how != PROGRAM_WRITES)
        meet_kin(l, op, &l->kin[t->kin], how);
    struct lower_use_row row = {op, {buf, (uint8_t)how}};
    vec_push_in(&l->scratch, &l->use, row);
    if (how == PROGRAM_READS)
        t->read_by = op;
    else
        t->written_by = op;
}

/* ---- what a node reads and writes ---- */

struct access_args {
    struct lower *l;
    uint32_t op;
};

static void touch(void *ctx, uint32_t root, enum access how)
{
    struct access_args *a = ctx;

    lower_uses(a->l, a->op, a->l->storage[root].buf,
               how == ACCESS_WRITE ? PROGRAM_MUTATES : PROGRAM_READS);
}

void lower_touches(struct lower *l, uint32_t node, access_fn fn, void *ctx)
{
    const struct fx_node *x = lower_call(l, node);
    struct operand o = {.v = NULL};

    if (x == node_at(l->g, node)) {
        memory_accesses(&l->s, node, fn, ctx);
        return;
    }
    const struct op_sig *sig = sigs_get(&l->sigs, x->op);
    while (operand_next(l->g, x, sig, &o)) {
        bool written = o.param != NULL && o.param->mutated;
        for (const tuck_value *v = o.v, *end = value_next(o.v); v < end; v++)
            for (uint32_t k = 0; v->kind == TUCK_V_NODE && k < l->s.count[v->a]; k++)
                fn(ctx, memory_of(&l->s, v->a, k), written ? ACCESS_WRITE : ACCESS_READ);
    }
}

void lower_accesses(struct lower *l, uint32_t op, uint32_t node)
{
    struct access_args a = {l, op};

    lower_touches(l, node, touch, &a);
}

/* Used only by the loop that makes it: it needs no buffer. */
static bool is_inside(const struct lower *l, uint32_t root, uint32_t node)
{
    const struct lower_storage *s = &l->storage[root];

    return l->region[node] != 0 && s->region == l->region[node] && !s->output && !s->input;
}

void lower_results(struct lower *l, uint32_t op, uint32_t node)
{
    if (op_at(lower_call(l, node)->op)->cls == OP_CONTEXT) /* a handle is no memory */
        return;
    for (uint32_t k = 0; k < l->s.count[node]; k++) {
        uint32_t root = memory_of(&l->s, node, k);
        struct lower_storage *s = &l->storage[root];
        char suffix[16] = "";

        if (s->buf != PROGRAM_NONE || is_inside(l, root, node))
            continue;
        if (k > 0)
            snprintf(suffix, sizeof(suffix), ".%u", k);
        lower_place(l, root, lower_buf(l, op, node, lower_result_type(l, node, k), suffix));
        if (s->buf != PROGRAM_NONE && s->output) {
            l->buf.at[s->buf].flags |= PROGRAM_OUTPUT;
            l->buf.at[s->buf].layout = PROGRAM_FIXED;
        }
    }
}

/* ---- orders that do not follow from buffers ---- */

void lower_follows_operands(struct lower *l, uint32_t op, uint32_t node)
{
    const struct fx_node *x = lower_call(l, node);

    for (uint32_t i = 0; i < x->n_vals; i++) {
        if (x->vals[i].kind != TUCK_V_NODE)
            continue;
        lower_depends(l, op, l->made_by[x->vals[i].a], 0);
        for (uint32_t k = l->more_from[x->vals[i].a]; k != 0; k = l->link.at[k].next)
            lower_depends(l, op, l->link.at[k].op, 0);
    }
}

/* Nodes with effects keep their order among each other; so do writes and barriers, and
 * communication and barriers. */
void lower_follows_effects(struct lower *l, uint32_t op, uint32_t node)
{
    const tuck_graph *g = l->g;
    const struct fx_node *x = lower_call(l, node);
    bool nested = x != node_at(g, node);
    bool barrier = !nested && node_is_barrier(g, node), writes = lower_may_write(l, node);
    bool comm = l->role[node] == ROLE_COLLECTIVE || l->role[node] == ROLE_WAIT;
    /* What is not known may communicate, too. */
    bool held = writes || l->role[node] == ROLE_COLLECTIVE || lower_nests_comm(l, node);
    bool effect = nested ? (op_at(x->op)->flags & (OP_F_EFFECT | OP_F_RANDOM)) != 0
                         : node_has_effect(g, node) || node_nests_order(g, node);

    if (barrier) {
        l->op.at[op].flags |= PROGRAM_BARRIER;
        for (uint32_t i = 0; i < l->since_barrier.len; i++)
            lower_depends(l, op, l->since_barrier.at[i], 0);
        l->since_barrier.len = 0;
    }
    if (barrier || held)
        lower_depends(l, op, l->last_barrier, 0);
    if (held && !barrier)
        vec_push_in(&l->scratch, &l->since_barrier, op);
    if (barrier)
        l->last_barrier = op;
    if (effect && !writes && !comm) {
        lower_depends(l, op, l->last_effect, 0);
        l->last_effect = op;
    }
}

uint32_t lower_plain(struct lower *l, uint32_t node, enum program_kind kind)
{
    uint32_t op = lower_op(l, kind, node, "", lower_kernel_str(l, node));

    lower_joins(l, op, node);
    lower_accesses(l, op, node);
    lower_follows_operands(l, op, node);
    lower_follows_effects(l, op, node);
    lower_results(l, op, node);
    return op;
}

bool lower_is_contiguous(const struct lower *l, type_id id)
{
    const struct fx_store *st = l->g->store;
    const struct type *t = type_at(&st->type, id);
    int64_t expect = 1, size, stride;
    struct assume a = l->assume;

    if (t->kind != TYPE_TENSOR || !t->strided)
        return true; /* unknown counts as contiguous */
    for (uint32_t i = t->n; i > 0; i--) {
        if (!assume_value(&a, t->size[i - 1], &size) ||
            !assume_value(&a, t->stride[i - 1], &stride))
            return true;
        if (size == 0)
            return true;
        if (size != 1 && stride != expect)
            return false;
        if (!size_mul(expect, size, &expect))
            return true;
    }
    return true;
}

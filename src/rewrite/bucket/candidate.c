/* Finds which collectives could be merged, and reads what merging needs to know about each. */
#include "rewrite/bucket/bucket.h"
#include "graph/groups.h"
#include "infer/infer.h"
#include "op/ops.h"
#include "graph/storage.h"
#include "rewrite/build.h"
#include "rewrite/place.h"

/* ---- the scan ---- */

static const char *op_of(tuck_coll kind)
{
    switch (kind) {
    case TUCK_ALL_GATHER: return "_c10d_functional.all_gather_into_tensor.default";
    case TUCK_REDUCE_SCATTER: return "_c10d_functional.reduce_scatter_tensor.default";
    default: return "_c10d_functional.all_reduce.default";
    }
}

static const char op_gather_out[] = "_c10d_functional.all_gather_into_tensor_out.default";

static const char op_reduce_in_place[] = "_c10d_functional.all_reduce_.default";

static void mark_written(void *ctx, uint32_t storage, enum access how)
{
    bool *written = ctx;

    written[storage] |= how == ACCESS_WRITE;
}

/* Finds s->written and s->vague, which stay NULL if nothing is written at all. */
static void find_written(struct bucket_scan *s)
{
    struct arena *a = &s->r->arena;
    const tuck_graph *g = s->r->g;
    struct storages st;
    bool any = false;

    for_each_node (g, n)
        if ((any = node_may_write(g, n)))
            break;
    if (!any)
        return;
    bool *of_node = arena_zeroed(a, g->node.len * sizeof(*of_node));
    bool *vague = arena_zeroed(a, g->node.len * sizeof(*vague));
    storages_build(g, a, &st);
    const bool *several = storages_vague(&st, a);
    bool *written = arena_zeroed(a, (size_t)st.n + 1);
    for_each_node (g, n)
        if (s->unseen == NULL || !s->unseen[n]) /* an unseen write is over after the wait */
            storage_accesses(&st, n, mark_written, written);
    for_each_node (g, n) {
        uint32_t storage = storage_of(&st, n, 0);
        of_node[n] = written[storage];
        vague[n] = written[storage] && several[storage];
    }
    s->written = of_node;
    s->vague = vague;
}

void bucket_scan(struct bucket_scan *s, struct pass_run *r, const struct bucket_options *o)
{
    const char *op = op_of(o->kind);

    *s = (struct bucket_scan){.r = r, .o = o};
    if (!o->torch) {
        uint32_t removed = comm_dedup_waits(r);
        if (removed > 0)
            report_count(r->report, "duplicate waits removed", removed);
    }
    tuck_graph *g = r->g;
    struct arena *a = &r->arena;
    s->op = op_find(op, strlen(op));
    if (o->torch && o->kind == TUCK_ALL_GATHER)
        s->op_out = op_find(op_gather_out, strlen(op_gather_out));
    if (!o->torch && o->kind == TUCK_ALL_REDUCE)
        s->op_in_place = op_find(op_reduce_in_place, strlen(op_reduce_in_place));
    op_sig_parse(a, op_at(s->op), &s->sig, NULL);
    s->group = comm_groups(r);
    s->lines = *comm_lines_of(r);
    r->places = NULL; /* computed from the graph as it is now */
    comm_places(r);
    graph_number(g);
    s->at = arena_zeroed(a, ((size_t)g->n_nodes + 2) * sizeof(*s->at));
    for_each_node (g, n)
        s->at[node_at(g, n)->pos] = n;
    topo_keep(g, a, &s->keep);
    s->keep_from = topo_fan_out(g, a, &s->keep);
    s->bound = arena_array(a, uint32_t, g->node.len);
    for (uint32_t n = 0; n < g->node.len; n++)
        s->bound[n] = UINT32_MAX;
    for (uint32_t i = 0; i < s->keep.edge.len; i++) {
        const struct topo_edge *e = &s->keep.edge.at[i];
        uint32_t place = node_at(g, e->to)->pos;
        if (place < s->bound[e->from])
            s->bound[e->from] = place;
    }
    if (s->op_in_place != 0)
        s->unseen = comm_writes_unseen(r, s->op_in_place);
    find_written(s);
    s->watched = o->torch ? NULL : place_watched(r);
}

bool bucket_is_kind(const struct bucket_scan *s, uint32_t n)
{
    const struct fx_node *x = node_at(s->r->g, n);

    return x->kind == TUCK_CALL_FUNCTION && x->op != 0 &&
           (x->op == s->op || x->op == s->op_out || x->op == s->op_in_place);
}

/* ---- one candidate ---- */

static const tuck_value *operand(const struct bucket_scan *s, uint32_t n, const char *name)
{
    const tuck_graph *g = s->r->g;
    struct operand o = {.v = NULL};

    while (operand_next(g, node_at(g, n), &s->sig, &o))
        if (o.param != NULL && strcmp(o.param->name, name) == 0)
            return o.v;
    return NULL;
}

static const struct type *tensor_type(const tuck_graph *g, type_id id)
{
    const struct type *t = type_at(&g->store->type, id);

    return id != 0 && t->kind == TYPE_TENSOR ? t : NULL;
}

/* Does only the dtype change: _to_copy with just a tensor and a dtype? */
static bool is_dtype_only(const struct bucket_scan *s, const struct fx_node *x)
{
    const struct op_sig *sig = sigs_get(&s->r->sigs, x->op);
    struct operand o = {.v = NULL};

    while (operand_next(s->r->g, x, sig, &o))
        if (o.param == NULL || (o.param != &sig->params[0] && strcmp(o.param->name, "dtype") != 0 &&
                                o.v->kind != TUCK_V_NONE))
            return false;
    return true;
}

static bool is_conversion(const struct bucket_scan *s, uint32_t n)
{
    const tuck_graph *g = s->r->g;
    const struct fx_node *x = node_at(g, n);
    uint8_t shape = op_at(x->op)->shape;

    if (x->kind != TUCK_CALL_FUNCTION || op_at(x->op)->cls != OP_COPY || call_node(g, x, 0) == 0)
        return false;
    return shape == OP_SHAPE_convert ||
           (shape == OP_SHAPE_to_copy && (s->o->torch || is_dtype_only(s, x)));
}

/* The copy into the bucket converts, so a conversion without other users can be removed, if the
 * layout of its operand is known and nothing writes the operand before the wait. */
static void fold_conversion(struct bucket_scan *s, struct bucket_cand *c)
{
    struct pass_run *r = s->r;
    const tuck_graph *g = r->g;
    const struct fx_node *x = node_at(g, c->input);

    if (s->o->kind != TUCK_ALL_GATHER || (s->o->mode == BUCKET_COALESCED && !s->o->torch) ||
        !is_conversion(s, c->input) || x->n_uses != 1)
        return;
    const struct type *from = tensor_type(g, node_type(g, call_node(g, x, 0)));
    bool written = s->bound[c->input] < node_at(g, c->wait)->pos; /* torch does not check */
    if (from == NULL || !from->strided || (written && !s->o->torch) ||
        !build_may_erase(r, c->input))
        return;
    c->cvt = c->input;
    c->input = call_node(g, x, 0);
}

/* Bytes from known or assumed sizes; false for a size that depends on data. */
static bool count_bytes(struct pass_run *r, type_id t, int64_t *out)
{
    r->assume.used_default = false;
    return assume_bytes(&r->assume, t, out) && !r->assume.used_default;
}

static bool is_contiguous(const tuck_graph *g, const struct type *t)
{
    struct symtab *st = &g->store->sym;
    sym_id want = sym_int(st, 1);
    int64_t one;

    for (uint32_t i = t->n; t->strided && i-- > 0;) {
        if (sym_as_int(st, t->size[i], &one) && one == 1)
            continue;
        if (t->stride[i] != want)
            return false;
        want = sym_mul(st, want, t->size[i]);
    }
    return t->strided;
}

/* May the result be a contiguous piece of a larger buffer? Results of all-gathers are copied out of
 * it, and in a list each has its own buffer. */
static bool may_lie_elsewhere(struct bucket_scan *s, const struct bucket_cand *c)
{
    bool cut = s->o->kind != TUCK_ALL_GATHER && s->o->mode != BUCKET_COALESCED;

    if (cut && s->watched != NULL && s->watched[c->wait])
        return false;
    if (s->o->kind != TUCK_ALL_REDUCE || is_contiguous(s->r->g, tensor_type(s->r->g, c->out)))
        return true;
    if (s->strides_matter == NULL)
        s->strides_matter = place_strides_matter(s->r);
    return !s->strides_matter[c->wait];
}

static bool read_key(const struct bucket_scan *s, struct bucket_cand *c)
{
    const tuck_graph *g = s->r->g;
    const struct type *t = tensor_type(g, c->out);
    const tuck_value *op = operand(s, c->start, "reduce_op");
    bool several = s->o->kind == TUCK_ALL_GATHER && s->o->mode == BUCKET_MULTIDTYPE;

    if (t == NULL)
        return false;
    c->key = (struct bucket_key){.group = s->group[c->start],
                                 .reduce_op = op && op->kind == TUCK_V_STR ? op->a : 0,
                                 .dtype = several ? 0 : t->dtype,
                                 .device = s->o->torch ? 0 : t->device};
    return true;
}

bool bucket_same_key(const struct bucket_key *a, const struct bucket_key *b)
{
    bool device = a->device == b->device || a->device == 0 || b->device == 0;

    return a->group == b->group && a->reduce_op == b->reduce_op && a->dtype == b->dtype &&
           a->group_size == b->group_size && device;
}

bool bucket_read(struct bucket_scan *s, uint32_t start, uint32_t wait, struct bucket_cand *c,
                 enum left_reason *why)
{
    struct pass_run *r = s->r;
    const tuck_graph *g = r->g;
    const tuck_value *input = operand(s, start, "input"), *size = operand(s, start, "group_size"),
                     *group = operand(s, start, "group_name");
    int64_t in_bytes, out_bytes;

    *c = (struct bucket_cand){.start = start, .wait = wait, .out = node_type(g, start)};
    *why = LEFT_PATTERN;
    if (input == NULL || input->kind != TUCK_V_NODE || group == NULL)
        return false;
    c->input = input->a;
    c->in = node_type(g, c->input);
    c->group_node = group->kind == TUCK_V_NODE ? group->a : 0;
    *why = LEFT_UNKNOWN_TYPE;
    if (!read_key(s, c) || tensor_type(g, c->in) == NULL)
        return false;
    *why = LEFT_UNKNOWN_GROUP;
    if (c->key.group < 0)
        return false;
    *why = LEFT_PATTERN;
    if (s->o->kind != TUCK_ALL_REDUCE) {
        if (size == NULL || size->kind != TUCK_V_INT || size->u.i < 1 ||
            tensor_type(g, c->in)->n == 0)
            return false;
        c->key.group_size = size->u.i;
    }
    if (s->o->kind != TUCK_ALL_GATHER && c->key.reduce_op == 0)
        return false;
    if (!build_may_erase(r, start) || !build_may_erase(r, wait))
        return false;
    *why = LEFT_WAITS;
    if (node_at(g, start)->n_uses != 1 && !s->o->torch)
        return false;
    *why = LEFT_UNHINTED;
    if (!count_bytes(r, c->in, &in_bytes) || !count_bytes(r, c->out, &out_bytes))
        return false;
    c->bytes = in_bytes > out_bytes ? in_bytes : out_bytes;
    if (!s->o->torch) {
        const struct fx_group *q = &g->group.at[c->key.group];
        *why = LEFT_GROUP_OF_ONE;
        if (c->key.group_size == 1 || q->size == 1)
            return false;
        *why = LEFT_MUTATED;
        if (s->bound[start] < node_at(g, wait)->pos)
            return false;
        *why = LEFT_SHARED;
        c->in_place = s->op_in_place != 0 && node_at(g, start)->op == s->op_in_place;
        if (c->in_place && !s->unseen[start])
            return false;
        if (s->vague != NULL && (s->vague[start] || s->vague[wait]))
            return false;
        *why = LEFT_LAYOUT;
        if (!may_lie_elsewhere(s, c))
            return false;
    }
    fold_conversion(s, c);
    return true;
}

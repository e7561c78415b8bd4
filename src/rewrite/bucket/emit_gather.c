/* Merged all-gathers.
 *
 *   empty of all ranks' parts ── slice of this rank's ── copy operands into it ── gather in place
 *   ── wait ── [group, -1] ── cut into members' columns ── copy each into its own shape
 *
 * If this rank's position in the group is unknown, the operands are concatenated into a buffer
 * of their own.
 */
#include "rewrite/bucket/bucket_emit.h"

#include <stdio.h>

#include "infer/infer.h"

static enum dtype source_dtype(const struct emit *e, uint32_t i)
{
    const tuck_graph *g = e->s->r->g;

    return (enum dtype)type_at(&g->store->type, node_type(g, e->b->member[i].input))->dtype;
}

static enum dtype result_dtype(const struct emit *e, uint32_t i)
{
    const tuck_graph *g = e->s->r->g;

    return (enum dtype)type_at(&g->store->type, e->b->member[i].out)->dtype;
}

/* Members by descending element size, so that all are aligned; torch keeps their order. */
static uint32_t *lay_out(struct emit *e)
{
    struct arena *a = &e->s->r->arena;
    uint32_t *order = arena_array(a, uint32_t, e->b->n), n = 0;
    enum { LARGEST = 16 };

    for (uint32_t bytes = LARGEST; bytes > 0; bytes--)
        for (uint32_t i = 0; i < e->b->n; i++)
            if (dtype_at(result_dtype(e, i))->bytes == bytes)
                order[n++] = i;
    for (uint32_t i = 0; e->o->torch && i < e->b->n; i++)
        order[i] = i;
    return order;
}

/* The common dtype of several: the one with the smallest elements. Bytes of other dtypes must not
 * pass through one that has fewer values than bit patterns, such as bool; torch allows it. */
static bool pick_dtype(struct emit *e)
{
    bool several = false;

    for (uint32_t i = 0; i < e->b->n; i++) {
        enum dtype d = result_dtype(e, i);
        if (dtype_at(d)->bytes < dtype_at(e->dtype)->bytes)
            e->dtype = d;
        several |= d != result_dtype(e, 0);
    }
    if (several && !e->o->torch && dtype_at(e->dtype)->bytes == 1)
        e->dtype = DTYPE_U8;
    return several;
}

/* Elements of the bucket's dtype that member i needs. */
static struct num width(struct emit *e, uint32_t i)
{
    int64_t own = dtype_at(result_dtype(e, i))->bytes, unit = dtype_at(e->dtype)->bytes;

    return num_times(&e->in, e->count[i], own / unit);
}

/* "cuda:0" becomes device(type='cuda', index=0). */
static void build_device(struct build *b, const char *device)
{
    const char *colon = strchr(device, ':');
    size_t len = colon ? (size_t)(colon - device) : strlen(device);
    char text[128];

    if (colon != NULL)
        snprintf(text, sizeof(text), "device(type='%.*s', index=%s)", (int)len, device, colon + 1);
    else
        snprintf(text, sizeof(text), "device(type='%.*s')", (int)len, device);
    build_text(b, text);
}

/* The buffer for all ranks' parts, on the operands' device. */
static uint32_t emit_room(struct emit *e, struct num size)
{
    struct build *b = &e->in;
    const tuck_graph *g = e->s->r->g;
    str_id device = type_at(&g->store->type, e->b->member[0].out)->device;

    build_call(b, device ? "aten.empty.memory_format" : "aten.new_empty.default");
    if (device == 0)
        build_node(b, e->b->member[0].input);
    build_open(b);
    build_num(b, size);
    build_close(b);
    build_key(b, "dtype");
    build_dtype(b, e->dtype);
    if (device != 0) {
        build_key(b, "device");
        build_device(b, graph_str(g, device));
    }
    build_key(b, "pin_memory");
    build_text(b, "False");
    return build_end(b, device ? "empty" : "new_empty");
}

static uint32_t emit_slice(struct emit *e, uint32_t room, struct num total)
{
    struct build *b = &e->in;
    /* Every rank makes the same nodes; only the number differs. */
    struct num from = total.node ? num_scaled(b, total, e->rank) : num_of(total.v * e->rank);
    struct num to = num_add(b, from, total);

    build_call(b, "aten.slice.Tensor");
    build_node(b, room);
    build_int(b, 0);
    build_num(b, from);
    build_num(b, to);
    return build_end(b, "slice");
}

static uint32_t emit_cat(struct emit *e, const uint32_t *order, bool bytes)
{
    struct build *b = &e->in;
    uint32_t *part = arena_array(&e->s->r->arena, uint32_t, e->b->n);

    for (uint32_t k = 0; k < e->b->n; k++) {
        uint32_t i = order[k];
        part[k] = emit_flat(e, i, 0);
        if (!bytes || source_dtype(e, i) == e->dtype)
            continue;
        build_call(b, "aten.view.dtype");
        build_node(b, part[k]);
        build_dtype(b, e->dtype);
        part[k] = build_end(b, "view");
    }
    build_call(b, "aten.cat.default");
    build_open(b);
    for (uint32_t k = 0; k < e->b->n; k++)
        build_node(b, part[k]);
    build_close(b);
    uint32_t all = build_end(b, "cat");
    for (uint32_t i = 0; i < e->b->n; i++)
        if (e->reader[i] == 0)
            e->reader[i] = all;
    return all;
}

/* ---- bucketing._pre_bucket_all_gather ---- */

static bool same_copy(struct emit *e, uint32_t i, uint32_t k)
{
    const tuck_graph *g = e->s->r->g;
    const struct type *a = type_at(&g->store->type, e->b->member[i].in),
                      *b = type_at(&g->store->type, e->b->member[k].in);

    if (source_dtype(e, i) != source_dtype(e, k) || result_dtype(e, i) != result_dtype(e, k) ||
        a->n != b->n)
        return false;
    for (uint32_t d = 0; d < a->n; d++) {
        int64_t x, y; /* by the hints: this only decides what is copied together */
        if (a->size[d] != b->size[d] && (!assume_value(&e->s->r->assume, a->size[d], &x) ||
                                         !assume_value(&e->s->r->assume, b->size[d], &y) || x != y))
            return false;
    }
    return true;
}

static uint32_t copy_hash(struct emit *e, uint32_t i)
{
    const tuck_graph *g = e->s->r->g;
    const struct type *t = type_at(&g->store->type, e->b->member[i].in);
    uint64_t h = (uint64_t)source_dtype(e, i) * 64 + result_dtype(e, i);

    for (uint32_t d = 0; d < t->n; d++) {
        int64_t v = 0;
        assume_value(&e->s->r->assume, t->size[d], &v);
        h = hash_u64(h ^ (uint64_t)v) + h * 31;
    }
    return hash_u64(h);
}

/* Members with the same dtypes and shape are copied together: writes their numbers group by group,
 * in order of first appearance, with -1 in between; nothing if there is only one group. */
static void build_foreach_groups(struct emit *e, struct build *b, const uint32_t *order)
{
    struct arena *a = &e->s->r->arena;
    uint32_t n = e->b->n, slots = 2, n_group = 0;
    while (slots < 2 * n)
        slots *= 2;
    uint32_t *slot = arena_zeroed(
        a, slots * sizeof(*slot)); /* by hash: position in `order` + 1 of a group's first member */
    uint32_t *next = arena_zeroed(a, n * sizeof(*next)), *last = arena_zeroed(a, n * sizeof(*last));
    uint32_t *first = arena_array(a, uint32_t, n);

    for (uint32_t k = 0; k < n; k++) {
        uint32_t at = copy_hash(e, order[k]) & (slots - 1);
        while (slot[at] != 0 && !same_copy(e, order[slot[at] - 1], order[k]))
            at = (at + 1) & (slots - 1);
        if (slot[at] == 0) {
            slot[at] = k + 1;
            first[n_group++] = k;
        } else {
            next[last[slot[at] - 1]] = k + 1;
        }
        last[slot[at] - 1] = k;
    }
    if (n_group == 1) {
        build_none(b);
        return;
    }
    build_open(b);
    for (uint32_t q = 0; q < n_group; q++) {
        if (q > 0)
            build_int(b, -1);
        for (uint32_t k = first[q] + 1; k != 0; k = next[k - 1])
            build_int(b, k - 1);
    }
    build_close(b);
}

/* The buffer, with the operands copied into this rank's part. */
static uint32_t emit_pre_bucket(struct emit *e, const uint32_t *order)
{
    struct build *b = &e->in;

    build_call(b, "bucketing._pre_bucket_all_gather.default");
    build_open(b);
    for (uint32_t k = 0; k < e->b->n; k++)
        build_node(b, e->b->member[order[k]].input);
    build_close(b);
    build_int(b, e->size);
    build_dtype(b, e->dtype);
    build_open(b);
    for (uint32_t k = 0; k < e->b->n; k++)
        build_int(b, dtype_at(result_dtype(e, order[k]))->index_2_13);
    build_close(b);
    build_int(b, e->rank);
    build_foreach_groups(e, b, order);
    uint32_t room = build_end(b, "_pre_bucket_all_gather");
    for (uint32_t i = 0; i < e->b->n; i++)
        e->reader[i] = room;
    return room;
}

/* ---- all together ---- */

static uint32_t emit_gather(struct emit *e, uint32_t from, uint32_t room)
{
    struct build *b = &e->in;

    build_call(b, room ? "_c10d_functional.all_gather_into_tensor_out.default"
                       : "_c10d_functional.all_gather_into_tensor.default");
    build_node(b, from);
    build_int(b, e->size);
    build_group(e, b);
    if (room != 0) {
        build_key(b, "out");
        build_node(b, room);
    }
    return build_end(b, room ? "all_gather_into_tensor_out" : "all_gather_into_tensor");
}

static uint32_t emit_copy_(struct emit *e, uint32_t to, uint32_t from)
{
    struct build *b = &e->in;

    build_call(b, "aten.copy_.default");
    build_node(b, to);
    build_node(b, from);
    return build_end(b, "copy_");
}

/* With one row per rank no copy is needed, and torch makes none. Here it gets one all the same,
 * because users may rely on it being contiguous. */
static bool is_row(const struct emit *e, uint32_t i)
{
    const tuck_graph *g = e->s->r->g;
    const struct type *t = type_at(&g->store->type, e->b->member[i].in);
    int64_t rows;

    return e->o->torch &&
           (e->size == 1 || (sym_as_int(&g->store->sym, t->size[0], &rows) && rows == 1));
}

static void copy_out(struct emit *e, const uint32_t *order, const struct num *part, bool retyped)
{
    struct build *b = &e->out;
    uint32_t wait = emit_wait(b, e->collective);
    struct num rows[2] = {num_of(e->size), num_of(-1)};
    uint32_t split = emit_split(b, emit_view(b, wait, rows, 2), part, e->b->n, 1);

    for (uint32_t k = 0; k < e->b->n; k++) {
        e->wait[order[k]] = wait;
        if (emit_is_wanted(e, order[k]))
            e->piece[order[k]] = build_getitem(b, split, k);
    }
    for (uint32_t k = 0; k < e->b->n; k++) {
        uint32_t i = order[k];
        if (e->piece[i] == 0)
            continue;
        if (retyped) {
            build_call(b, "aten.view.dtype");
            build_node(b, e->piece[i]);
            build_dtype(b, result_dtype(e, i));
            e->piece[i] = build_end(b, "view");
        }
        e->piece[i] = (is_row(e, i) ? emit_view : emit_copy)(b, e->piece[i], e->shape[i],
                                                             emit_dims(e, i));
    }
}

void emit_all_gather(struct emit *e)
{
    struct build *b = &e->in;
    uint32_t *order = lay_out(e), from, room = 0;
    struct num *part = arena_array(&e->s->r->arena, struct num, e->b->n), total = num_of(0);
    bool custom = e->o->mode == BUCKET_CUSTOM || e->o->mode == BUCKET_MULTIDTYPE;
    bool retyped = pick_dtype(e);

    for (uint32_t k = 0; k < e->b->n; k++) {
        part[k] = width(e, order[k]);
        total = num_add(b, total, part[k]);
    }
    if (e->rank < 0) {
        from = emit_cat(e, order, true);
    } else if (custom) {
        room = emit_pre_bucket(e, order);
        from = emit_slice(e, room, total);
        retyped = true;
    } else {
        room = emit_room(e, num_times(b, total, e->size));
        uint32_t mine = emit_slice(e, room, total);
        from = emit_copy_(e, mine, emit_cat(e, order, false));
    }
    e->collective = emit_gather(e, from, room);
    copy_out(e, order, part, retyped);
}

/* Merged reduce-scatters and all-reduces: operands are placed side by side in one buffer, and
 * results are cut out of one buffer.
 *
 * A reduce-scatter sends chunk k of its operand to rank k. Each operand is viewed as [group, -1]
 * and these are placed side by side, so that row k holds chunk k of every member.
 */
#include "rewrite/bucket/bucket_emit.h"

static uint32_t emit_cat(struct emit *e, const uint32_t *part, int64_t dim)
{
    struct build *b = &e->in;

    build_call(b, "aten.cat.default");
    build_open(b);
    for (uint32_t i = 0; i < e->b->n; i++)
        build_node(b, part[i]);
    build_close(b);
    if (dim != 0)
        build_int(b, dim);
    return build_end(b, "cat");
}

/* Copies everything into one buffer of one dimension, and records which nodes fill it. */
static uint32_t copy_in(struct emit *e)
{
    struct build *b = &e->in;
    bool scatter = e->o->kind == TUCK_REDUCE_SCATTER;
    uint32_t *part = arena_array(&e->s->r->arena, uint32_t, e->b->n), all;

    if (scatter && (e->o->mode == BUCKET_CUSTOM || e->o->mode == BUCKET_MULTIDTYPE)) {
        build_call(b, "bucketing._pre_bucket_reduce_scatter.default");
        build_open(b);
        for (uint32_t i = 0; i < e->b->n; i++)
            build_node(b, e->b->member[i].input);
        build_close(b);
        build_int(b, e->size);
        all = build_end(b, "_pre_bucket_reduce_scatter");
        for (uint32_t i = 0; i < e->b->n; i++)
            e->reader[i] = all;
        return all;
    }
    for (uint32_t i = 0; i < e->b->n; i++)
        part[i] = emit_flat(e, i, scatter ? e->size : 0);
    all = emit_cat(e, part, scatter ? 1 : 0);
    for (uint32_t i = 0; i < e->b->n; i++)
        if (e->reader[i] == 0)
            e->reader[i] = all;
    if (!scatter)
        return all;
    struct num total = num_of(0);
    for (uint32_t i = 0; i < e->b->n; i++)
        total = num_add(b, total, e->count[i]);
    return emit_view(b, all, &total, 1);
}

void emit_reduction(struct emit *e)
{
    struct build *b = &e->in;
    bool scatter = e->o->kind == TUCK_REDUCE_SCATTER;
    const tuck_graph *g = e->s->r->g;
    uint32_t all = copy_in(e);
    struct num *part = arena_array(&e->s->r->arena, struct num, e->b->n);

    for (uint32_t i = 0; i < e->b->n; i++)
        part[i] = scatter ? num_over(b, e->count[i], e->size) : e->count[i];
    bool in_place = emit_in_place(e);
    build_call(b, scatter    ? "_c10d_functional.reduce_scatter_tensor.default"
                  : in_place ? "_c10d_functional.all_reduce_.default"
                             : "_c10d_functional.all_reduce.default");
    build_node(b, all);
    build_str(b, graph_str(g, e->b->member[0].key.reduce_op));
    if (scatter)
        build_int(b, e->size);
    build_group(e, b);
    e->collective = build_end(b, scatter    ? "reduce_scatter_tensor"
                                 : in_place ? "all_reduce_"
                                            : "all_reduce");

    uint32_t wait = emit_wait(&e->out, e->collective);
    uint32_t split = emit_split(&e->out, wait, part, e->b->n, 0);
    for (uint32_t i = 0; i < e->b->n; i++) {
        e->wait[i] = wait;
        if (emit_is_wanted(e, i))
            e->piece[i] = build_getitem(&e->out, split, i);
    }
    for (uint32_t i = 0; i < e->b->n; i++) {
        if (e->piece[i] == 0)
            continue;
        /* Results that are written later get memory of their own. */
        bool written = !e->o->torch && e->s->written != NULL && e->s->written[e->b->member[i].wait];
        e->piece[i] = (written ? emit_copy : emit_view)(&e->out, e->piece[i], e->shape[i],
                                                        emit_dims(e, i));
    }
}

/* Restores the order after DDP fusion: reads stay between the same writes, and collectives of a
 * group in sequence. */
#include "rewrite/ddp/ddp.h"
#include "rewrite/comm_order.h"

void ddp_note_order(struct ddp *d)
{
    topo_keep(d->r->g, &d->r->arena, &d->keep);
    comm_places(d->r);
    if (!d->torch)
        comm_chain(d->r, &d->more);
}

struct ends { /* what replaces one end of an edge */
    VEC(uint32_t) node;
};

struct reorder {
    struct ddp *d;
    uint32_t *reader_of; /* by node: the merged candidates whose gradient it read, from 1 */
    struct ends from, to;
};

static void list_readers(struct reorder *o, uint32_t ids)
{
    struct ddp *d = o->d;

    o->reader_of = arena_zeroed(&d->r->arena, ids * sizeof(*o->reader_of));
    for (uint32_t i = 0; i < d->cand.len; i++) {
        struct candidate *c = &d->cand.at[i];
        if (c->merged == 0)
            continue;
        c->next_of_reader = o->reader_of[c->reader];
        o->reader_of[c->reader] = i + 1;
    }
}

/* An existing node is its own end. For a gradient it is the node that reads it now, for a merged
 * collective the new one. An erased wait is dropped. */
static void find_ends(struct reorder *o, uint32_t n, bool begin, struct ends *out)
{
    struct ddp *d = o->d;
    struct arena *a = &d->r->arena;
    uint32_t index = d->cand_of[n];

    out->node.len = 0;
    if (node_alive(d->r->g, n))
        vec_push_in(a, &out->node, n);
    for (uint32_t i = o->reader_of[n]; i != 0; i = d->cand.at[i - 1].next_of_reader) {
        const struct candidate *c = &d->cand.at[i - 1];
        vec_push_in(a, &out->node, begin ? c->merged_done : c->merged_reader);
    }
    if (index != 0 && d->cand.at[index - 1].merged != 0)
        vec_push_in(a, &out->node, d->cand.at[index - 1].merged);
}

static void map_edges(struct reorder *o)
{
    struct ddp *d = o->d;

    for (uint32_t i = 0; i < d->keep.edge.len; i++) {
        find_ends(o, d->keep.edge.at[i].from, true, &o->from);
        find_ends(o, d->keep.edge.at[i].to, false, &o->to);
        for (uint32_t k = 0; k < o->from.node.len; k++)
            for (uint32_t j = 0; j < o->to.node.len; j++)
                topo_edge_add(&d->r->arena, &d->more, o->from.node.at[k], o->to.node.at[j]);
    }
}

tuck_status ddp_restore_order(struct ddp *d)
{
    struct pass_run *r = d->r;
    struct reorder o = {.d = d};

    if (!d->out_of_order && d->keep.edge.len == 0)
        return TUCK_OK;
    list_readers(&o, r->g->node.len);
    map_edges(&o);
    if (topo_sort_with(r->g, &r->arena, &d->more))
        return TUCK_OK;
    return pass_fail(r, 0, "the merged collectives cannot be put in order: one depends on another");
}

/* Collectives and their waits. */
#include "support/random_gen.h"

#define C10D "_c10d_functional."

static const char *const reduce_name[] = {"sum", "avg", "max"};

/* ---- collectives ---- */

int gen_any_group(struct gen *g)
{
    return gen_one_in(g, 5) ? (int)gen_below(g, (uint32_t)g->x->world.n_group) : g->group;
}

int gen_group_size(const struct gen *g, int group)
{
    return g->x->group[group].size;
}

const char *gen_any_reduce(struct gen *g)
{
    return gen_one_in(g, 5) ? reduce_name[gen_below(g, 3)] : g->reduce;
}

int gen_fly(struct gen *g, int result, int from)
{
    struct flight *f = &g->flight[g->n_flight];

    *f = (struct flight){.result = result,
                         .from = g->val[from].storage,
                         .to = g->val[result].storage,
                         .buffer = g->val[from].storage == g->val[result].storage ? from : -1,
                         .sink = SINK_FREE};
    g->val[result].flying = true;
    g->storage[f->to].writes++;
    if (f->from != f->to)
        g->storage[f->from].reads++;
    return g->n_flight++;
}

static struct val result_like(struct gen *g, int v)
{
    struct val f = gen_fresh(g, v);

    gen_pack(&f);
    return f;
}

int gen_all_reduce(struct gen *g, int v, const char *reduce, int group)
{
    bool inside = gen_one_in(g, 4) && gen_writable(g, v) && g->val[v].layout == PACKED;
    int out = gen_begin(g, inside ? gen_view_of(g, v) : result_like(g, v), "all_reduce");

    gen_call(g, inside ? C10D "all_reduce_.default" : C10D "all_reduce.default",
             "input = %s; reduce_op = '%s'; group_name = '%s'", g->val[v].name, reduce,
             g->x->group[group].name);
    int n = gen_fly(g, out, v);
    struct flight *f = &g->flight[n];
    if (!inside && gen_one_in(g, 2)) { /* it made a copy: the operand may be written again */
        g->storage[f->from].reads--;
        f->from = f->to;
    }
    return n;
}

int gen_empty_like(struct gen *g, const struct val *like)
{
    struct val f = *like;

    f.storage = gen_new_storage(g);
    f.flying = f.taken = false;
    f.changes = f.begins = true;
    gen_pack(&f);
    int v = gen_begin(g, f, "empty");
    gen_put(&g->body, "aten.empty.memory_format(%s", gen_one_in(g, 8) ? "size = " : "");
    gen_put_dims(&g->body, f.size, f.n_dim);
    gen_put(&g->body, ", dtype = %s, device = %s, pin_memory = False)\n", gen_dtype_python[f.dtype],
            gen_device_python[f.device]);
    g->val[v].taken = true; /* until something is written into it */
    return v;
}

void gen_put_gather(struct gen *g, int v, int buffer, int group)
{
    int size = gen_group_size(g, group);
    const char *name = g->x->group[group].name;

    if (buffer < 0)
        gen_call(g, C10D "all_gather_into_tensor.default",
                 "input = %s; group_size = %d; group_name = '%s'", g->val[v].name, size, name);
    else
        gen_call(g, C10D "all_gather_into_tensor_out.default",
                 "input = %s; group_size = %d; group_name = '%s'; *out = %s", g->val[v].name, size,
                 name, g->val[buffer].name);
}

int gen_all_gather(struct gen *g, int v, int group)
{
    struct val f = result_like(g, v);
    int buffer = -1, out;

    f.size[0].k *= gen_group_size(g, group);
    gen_pack(&f);
    if (gen_one_in(g, 10) && !gen_is_symbolic(&f)) {
        buffer = gen_empty_like(g, &f);
        f.storage = g->val[buffer].storage;
    }
    out = gen_begin(g, f, "all_gather_into_tensor");
    gen_put_gather(g, v, buffer, group);
    return gen_fly(g, out, v);
}

bool gen_scatters(const struct gen *g, int v, int group)
{
    const struct val *x = &g->val[v];

    return x->layout == PACKED && x->size[0].sym == 0 &&
           x->size[0].k % gen_group_size(g, group) == 0;
}

int gen_reduce_scatter(struct gen *g, int v, const char *reduce, int group)
{
    struct val f = result_like(g, v);

    f.size[0].k /= gen_group_size(g, group);
    gen_pack(&f);
    int out = gen_begin(g, f, "reduce_scatter_tensor");
    gen_call(g, C10D "reduce_scatter_tensor.default",
             "input = %s; reduce_op = '%s'; group_size = %d; group_name = '%s'", g->val[v].name,
             reduce, gen_group_size(g, group), g->x->group[group].name);
    return gen_fly(g, out, v);
}

static void broadcast(struct gen *g, int v, const char *name)
{
    bool inside = gen_one_in(g, 2) && gen_writable(g, v) && g->val[v].layout == PACKED;
    int out = gen_begin(g, inside ? gen_view_of(g, v) : result_like(g, v), "broadcast");

    gen_call(g, inside ? C10D "broadcast_.default" : C10D "broadcast.default",
             "input = %s; src = 0; group_name = '%s'", g->val[v].name, name);
    gen_fly(g, out, v);
}

static void all_reduce_list(struct gen *g, int v, const char *name)
{
    int w = gen_pick_like(g, v), list = g->n_name++;
    bool inside = gen_one_in(g, 2) && g->val[v].storage != g->val[w].storage &&
                  gen_writable(g, v) && gen_writable(g, w);

    gen_put(&g->body, "        coalesced_%d = torch.ops.", list);
    gen_call(g, inside ? C10D "all_reduce_coalesced_.default" : C10D "all_reduce_coalesced.default",
             "inputs = [%s, %s]; reduce_op = '%s'; group_name = '%s'", g->val[v].name,
             g->val[w].name, g->reduce, name);
    for (int i = 0; i < 2; i++) {
        int x = i ? w : v;
        gen_fly(g,
                gen_item(g, inside ? gen_view_of(g, x) : result_like(g, x), "coalesced", list, i),
                x);
    }
}

/* The list that an operator on lists returns is passed on whole; some of its items are used, too. */
static void all_reduce_whole_list(struct gen *g, int v, const char *name)
{
    int of[2] = {v, gen_pick_like(g, v)}, item[2] = {-1, -1}, quotients = g->n_name++;
    bool inside = gen_one_in(g, 3);

    gen_put(&g->body, "        foreach_div_%d = torch.ops.", quotients);
    gen_call(g, "aten._foreach_div.Scalar", "self = [%s, %s]; scalar = 2", g->val[of[0]].name,
             g->val[of[1]].name);
    for (int i = 0; i < 2; i++)
        if (inside || gen_one_in(g, 4))
            item[i] = gen_item(g, result_like(g, of[i]), "foreach_div", quotients, i);
    int list = g->n_name++;
    gen_put(&g->body, "        coalesced_%d = torch.ops.", list);
    gen_call(g, inside ? C10D "all_reduce_coalesced_.default" : C10D "all_reduce_coalesced.default",
             "inputs = foreach_div_%d; reduce_op = '%s'; group_name = '%s'", quotients, g->reduce,
             name);
    for (int i = 0; i < 2; i++) {
        struct val f = inside ? gen_view_of(g, item[i]) : result_like(g, of[i]);
        int out = gen_item(g, f, "coalesced", list, i);
        gen_fly(g, out, item[i] >= 0 ? item[i] : out);
    }
}

static void reduce_scatter_into(struct gen *g, int v, int group)
{
    struct val f = result_like(g, v);

    f.size[0].k /= gen_group_size(g, group);
    gen_pack(&f);
    if (!gen_scatters(g, v, group) || gen_is_symbolic(&f))
        return;
    int buffer = gen_empty_like(g, &f);
    f.storage = g->val[buffer].storage;
    int out = gen_begin(g, f, "reduce_scatter_out");
    gen_call(g, C10D "reduce_scatter_tensor_out.default",
             "input = %s; reduce_op = '%s'; group_size = %d; group_name = '%s'; *out = %s",
             g->val[v].name, g->reduce, gen_group_size(g, group), g->x->group[group].name,
             g->val[buffer].name);
    gen_fly(g, out, v);
}

/* Kinds that nothing merges, and merged ones as an earlier pass may have left them. */
void gen_other_collective(struct gen *g, int v, int group)
{
    const char *name = g->x->group[group].name;

    switch (gen_below(g, 4)) {
    case 0: broadcast(g, v, name); break;
    case 1: all_reduce_list(g, v, name); break;
    case 2: all_reduce_whole_list(g, v, name); break;
    default: reduce_scatter_into(g, v, group); break;
    }
}

/* ---- waits ---- */

int gen_put_wait(struct gen *g, int v)
{
    struct val f = gen_view_of(g, v);

    f.flying = false;
    int out = gen_begin(g, f, "wait_tensor");
    gen_call(g, C10D "wait_tensor.default", "tensor = %s", g->val[v].name);
    return out;
}

void gen_give_back(struct gen *g, int v)
{
    g->returned[g->n_returned++] = v;
    g->val[v].taken = true;
}

int gen_land(struct gen *g, struct flight *f)
{
    /* A wait names the result, or the buffer used in place. */
    int w = gen_put_wait(g, f->buffer >= 0 && gen_one_in(g, 3) ? f->buffer : f->result);

    f->landed = true;
    g->storage[f->to].writes--;
    if (f->from != f->to)
        g->storage[f->from].reads--;
    if (f->sink == SINK_RETURN) {
        gen_give_back(g, w);
    } else if (f->sink == SINK_CONVERT) {
        gen_convert_to(g, w, g->dtype);
    } else if (f->sink == SINK_COPY && gen_writable(g, f->into)) {
        gen_begin(g, gen_view_of(g, f->into), "copy_");
        gen_call(g, "aten.copy_.default", "self = %s; src = %s", g->val[f->into].name,
                 g->val[w].name);
        g->val[w].taken = true;
    } else if (gen_one_in(g, 3)) {
        gen_reinterpret(g, w);
    }
    while (gen_one_in(g, 10)) /* another wait of the same, or of the wait */
        gen_put_wait(g, gen_one_in(g, 2) ? f->result : w);
    return w;
}

void gen_land_some(struct gen *g, uint32_t leave)
{
    for (int i = 0; i < g->n_flight; i++)
        if (!g->flight[i].landed && !gen_one_in(g, leave))
            gen_land(g, &g->flight[i]);
}

void gen_land_one(struct gen *g)
{
    int at = (int)gen_below(g, (uint32_t)g->n_flight);

    for (int i = 0; i < g->n_flight; i++, at = (at + 1) % g->n_flight)
        if (!g->flight[at].landed) {
            gen_land(g, &g->flight[at]);
            return;
        }
}

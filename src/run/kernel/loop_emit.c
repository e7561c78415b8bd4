/* Loops: the program of a part. */
#include "run/kernel/kernels.h"
#include "run/kernel/loop_core.h"
#include "run/kernel/point.h"

struct emit {
    const struct loop *l;
    const struct part *p;
    struct prog *prog;
    uint16_t *value; /* by node of the part, two each: what its results are */
};

/* The value of a result that a node of this part has made; PROG_NO_VALUE: it comes from memory. */
static uint16_t value_of(const struct emit *e, const struct rt_tensor *t)
{
    const struct made *made = map_made(e->l, t);

    if (made == NULL || &e->l->part[e->l->part_of[made->node]] != e->p)
        return PROG_NO_VALUE;
    for (uint32_t i = 0; i < e->p->n; i++)
        if (e->p->at[i] == made->node)
            return e->value[2 * i + made->out];
    return PROG_NO_VALUE;
}

static bool find_source(const struct emit *e, uint32_t node, uint32_t i, struct source *from)
{
    from->value = value_of(e, e->l->node[node].call.arg[i].tensor);
    from->is_value = from->value != PROG_NO_VALUE;
    return from->is_value || map_operand(e->l, e->p, node, i, &from->mem);
}

/* Is a value that goes on in a register what would come back from memory? */
static uint16_t as_stored(struct prog *p, uint16_t v, enum dtype d)
{
    bool narrow = dtype_at(d)->bytes < kind_bytes[kind_of(d)];

    return narrow ? prog_round(p, v, d) : v;
}

/* Does somebody outside of the part read the result? */
static bool is_wanted(const struct emit *e, uint32_t node, uint32_t out)
{
    return !(e->l->node[node].inside >> out & 1) || (e->l->needed[node] >> out & 1);
}

/* Result `out`: into memory, if it is wanted. */
static bool finish(const struct emit *e, uint32_t i, uint32_t out, uint16_t v)
{
    uint32_t node = e->p->at[i];
    const struct rt_tensor *t = &e->l->node[node].call.out[out];
    struct prog_mem m;

    v = as_stored(e->prog, prog_convert(e->prog, v, kind_of(t->dtype)), t->dtype);
    e->value[2 * i + out] = v;
    if (!is_wanted(e, node, out))
        return true;
    if (!map_result(e->l, e->p, node, out, &m))
        return false;
    prog_store(e->prog, v, &m);
    return true;
}

static bool emit_point(const struct emit *e, uint32_t i)
{
    uint32_t node = e->p->at[i];
    const struct rt_call *c = &e->l->node[node].call;
    struct source from[PROG_IN] = {0};
    enum dtype common;

    for (uint32_t k = 0; k < part_operands(c); k++)
        if (c->arg[k].kind == RT_TENSOR && !find_source(e, node, k, &from[k]))
            return false;
    uint16_t v = point_emit(e->prog, c, from, e->l->level[node] == LEVEL_ROW, &common);
    return v != PROG_NO_VALUE && finish(e, i, 0, v);
}

static bool emit_fold(const struct emit *e, uint32_t i)
{
    uint32_t node = e->p->at[i];
    const struct rt_call *c = &e->l->node[node].call;
    struct source from;
    struct folding f;
    struct prog_mem m;

    if (!part_folding(c, &f) || !find_source(e, node, 0, &from))
        return false;
    uint16_t in = from.is_value ? from.value : prog_load(e->prog, &from.mem), mean;
    in = prog_spread(e->prog, prog_convert(e->prog, in, f.kind));
    if (e->l->level[node] == LEVEL_COLUMN) {
        if (!is_wanted(e, node, 0))
            return true;
        if (!map_result(e->l, e->p, node, 0, &m))
            return false;
        prog_column(e->prog, f.op, in, f.divide, &m);
        return true;
    }
    if (!f.variance)
        return finish(e, i, 0, prog_reduce(e->prog, f.op, in, f.divide));
    uint16_t variance = prog_var(e->prog, in, f.divide, &mean);
    return finish(e, i, 0, variance) && (c->n_out == 1 || finish(e, i, 1, mean));
}

/* What a node adds at most: four operands loaded, converted, rounded and spread, the function, and
 * its result, or two of a variance of one operand, converted, rounded and stored. */
enum { NODE_STEPS = 20, NODE_MEMS = 5 };

static struct prog *new_prog(const struct part *p, struct arena *a)
{
    struct prog *g = arena_new(a, struct prog);
    uint32_t steps = p->n * NODE_STEPS, mems = p->n * NODE_MEMS;

    g->max_step = g->max_value = (uint16_t)(steps < PART_VALUES ? steps : PART_VALUES);
    g->max_mem = (uint16_t)(mems < PART_MEMS ? mems : PART_MEMS);
    g->step = arena_array(a, struct step, g->max_step);
    g->mem = arena_array(a, struct prog_mem, g->max_mem);
    g->value = arena_array(a, struct prog_value, g->max_value);
    prog_begin(g);
    g->n = p->dims;
    g->inner = p->inner;
    memcpy(g->size, p->size, (size_t)p->dims * sizeof(*p->size));
    return g;
}

struct prog *emit_part(const struct loop *l, const struct part *p, struct arena *a)
{
    uint16_t value[2 * PART_NODES];
    bool ok = true;

    if (p->alone || p->n < 2)
        return NULL;
    struct emit e = {l, p, new_prog(p, a), value};
    for (uint32_t i = 0; ok && i < p->n; i++)
        ok = point_operands(l->node[p->at[i]].call.kernel->id) > 0 ? emit_point(&e, i)
                                                                   : emit_fold(&e, i);
    return ok && prog_finish(e.prog) ? e.prog : NULL;
}

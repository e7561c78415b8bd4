/* Inputs from a seed.
 *
 * Element i of an input is a function of the seed, the input's name, the rank and i, so it is the
 * same on every machine and in every order:
 *
 *   key   = the seed and the rank, mixed with a hash of the name
 *   bits  = splitmix64(key + (i + 1) * 0x9E3779B97F4A7C15)
 *   float   24 bits as a number in [-0.5, 0.5), or in [0.5, 1.5) where the input is a square, a
 *           variance or the like (a root or a logarithm of it is taken)
 *   integer bits modulo what the graph indexes with it, or modulo 8
 *   bool    one bit
 */
#include "graph/call.h"
#include "run/kernel/draw.h"
#include "run/run.h"

#include <math.h>

static uint64_t key_of(uint64_t seed, int rank, const char *name)
{
    return draw_key(draw_mix(seed + 1) + draw_mix((uint64_t)rank + 0x10001), name);
}

/* ---- what the values must be ---- */

struct wanted {
    int64_t below; /* for integers */
    bool positive; /* for floats */
};

struct following {
    const struct run_rank *r;
    struct wanted *w;
};

/* The size of a dimension of the tensor that a node is; 0 if it is not known. */
static int64_t size_of(const tuck_graph *g, uint32_t node, int64_t dim)
{
    const struct type *t = type_at(&g->store->type, node_type(g, node));
    int64_t v;

    if (t->kind != TYPE_TENSOR || t->n == 0)
        return 0;
    if (dim < 0)
        dim += t->n;
    return dim >= 0 && dim < t->n && sym_as_int(&g->store->sym, t->size[dim], &v) ? v : 0;
}

static void below(struct following *f, int64_t n)
{
    if (n > 0 && (f->w->below == 0 || n < f->w->below))
        f->w->below = n;
}

static int64_t int_at(const tuck_graph *g, const struct fx_node *x, uint32_t p, int64_t otherwise)
{
    const tuck_value *v = call_operand(g, x, p);

    return v != NULL && v->kind == TUCK_V_INT ? v->u.i : otherwise;
}

/* What one use of the value says about it. */
static void learn_from(struct following *f, uint32_t user, uint32_t slot)
{
    const tuck_graph *g = f->r->g;
    const struct fx_node *x = node_at(g, user);
    const char *name = op_at(x->op)->name;

    if (strncmp(name, "aten.embedding.", 15) == 0 && call_mentions(g, x, 1, slot))
        below(f, size_of(g, call_node(g, x, 0), 0));
    else if (strncmp(name, "aten.embedding_dense_backward.", 30) == 0)
        below(f, int_at(g, x, 2, 0));
    else if (strncmp(name, "aten.nll_loss_forward.", 22) == 0 ||
             strncmp(name, "aten.nll_loss.", 14) == 0)
        below(f, size_of(g, call_node(g, x, 0), -1));
    else if (strncmp(name, "aten.nll_loss_backward.", 23) == 0)
        below(f, size_of(g, call_node(g, x, 1), -1));
    else if ((strncmp(name, "aten.gather.", 12) == 0 || strncmp(name, "aten.scatter", 12) == 0 ||
              strncmp(name, "aten.index_select.", 18) == 0) &&
             call_mentions(g, x, 2, slot))
        below(f, size_of(g, call_node(g, x, 0), int_at(g, x, 1, 0)));
    else if ((strncmp(name, "aten.index.", 11) == 0 || strncmp(name, "aten.index_put", 14) == 0 ||
              strncmp(name, "aten._unsafe_index", 18) == 0) &&
             call_mentions(g, x, 1, slot)) {
        const tuck_value *list = call_operand(g, x, 1);
        below(f, size_of(g, call_node(g, x, 0), (int64_t)(&x->vals[slot] - list) - 1));
    } else if (strncmp(name, "aten.sqrt.", 10) == 0 || strncmp(name, "aten.rsqrt.", 11) == 0 ||
               strncmp(name, "aten.log.", 9) == 0)
        f->w->positive = true;
}

/* Does it only pass elements on? */
static bool passes_on(const struct op_row *row)
{
    return row->cls == OP_VIEW || row->cls == OP_COPY ||
           strncmp(row->name, "aten.where.", 11) == 0 || strncmp(row->name, "aten.clamp", 10) == 0;
}

enum { FOLLOW_MOST = 64 };

static void follow(struct following *f, uint32_t node)
{
    const tuck_graph *g = f->r->g;
    uint32_t list[FOLLOW_MOST], n = 0, at = 0;

    for (list[n++] = node; at < n; at++)
        for (uint32_t u = node_at(g, list[at])->use_first; u != 0; u = g->use.at[u].next) {
            uint32_t user = g->use.at[u].user;
            learn_from(f, user, g->use.at[u].slot);
            if (node_at(g, user)->kind == TUCK_CALL_FUNCTION &&
                passes_on(op_at(node_at(g, user)->op)) && n < FOLLOW_MOST)
                list[n++] = user;
        }
}

/* ---- elements ---- */

static void put_float(void *at, enum dtype d, double v)
{
    float f = (float)v;
    uint32_t bits;

    switch (d) {
    case DTYPE_F64: memcpy(at, &v, 8); break;
    case DTYPE_F32: memcpy(at, &f, 4); break;
    case DTYPE_BF16: /* exact: the drawn numbers have 7 bits */
        memcpy(&bits, &f, 4);
        bits >>= 16;
        memcpy(at, &bits, 2);
        break;
    case DTYPE_F16: {
        int e;
        float m = frexpf(fabsf(f), &e); /* in [0.5, 1) */
        uint16_t h = f == 0 ? 0
                            : (uint16_t)((uint32_t)(e + 14) << 10 | ((uint32_t)(m * 2048) & 1023));
        h |= signbit(f) ? 0x8000 : 0;
        memcpy(at, &h, 2);
        break;
    }
    default: break;
    }
}

static void put_int(void *at, uint8_t bytes, int64_t v)
{
    memcpy(at, &v, bytes); /* little-endian, and never negative */
}

/* 16-bit floats get numbers that they can hold exactly. */
static double float_of(uint64_t bits, enum dtype d, bool positive)
{
    bool small = d == DTYPE_BF16 || d == DTYPE_F16;
    double v = small ? (double)(bits >> 57) / 128 : (double)(bits >> 40) / 16777216;

    return positive ? v + 0.5 : v - 0.5;
}

static void put_element(char *at, enum dtype d, uint64_t bits, const struct wanted *w)
{
    const struct dtype_row *row = dtype_at(d);

    switch ((enum dtype_category)row->category) {
    case DTYPE_IS_FLOAT: put_float(at, d, float_of(bits, d, w->positive)); break;
    case DTYPE_IS_COMPLEX:
        put_float(at, dtype_real_of(d), float_of(bits, DTYPE_F32, false));
        put_float(at + row->bytes / 2, dtype_real_of(d),
                  float_of(draw_mix(bits), DTYPE_F32, false));
        break;
    case DTYPE_IS_BOOL: *at = (char)(bits >> 63); break;
    case DTYPE_IS_INT:
    case DTYPE_IS_UINT:
        put_int(at, row->bytes,
                (int64_t)(bits >> 1) % (w->below > 0 ? w->below : 8) %
                    (row->bytes == 1 ? 128 : INT64_MAX));
        break;
    default: *at = 0; break;
    }
}

void run_draw(uint64_t seed, const struct run_rank *r, int rank, const struct exec_input *in)
{
    const struct rt_tensor *t = in->tensor;
    uint64_t key = key_of(seed, rank, in->name);
    struct wanted w = {0, false};
    struct following f = {r, &w};
    int64_t index[RT_DIMS] = {0}, n = rt_numel(t), elem = dtype_at((enum dtype)t->dtype)->bytes;
    char *at = t->data;

    follow(&f, in->node);
    for (int64_t i = 0; i < n; i++) {
        put_element(at, (enum dtype)t->dtype, draw_bits(key, i), &w);
        for (uint32_t d = t->n; d > 0; d--) { /* the next one, in the order of indices */
            at += t->stride[d - 1] * elem;
            if (++index[d - 1] < t->size[d - 1])
                break;
            at -= t->size[d - 1] * t->stride[d - 1] * elem;
            index[d - 1] = 0;
        }
    }
}

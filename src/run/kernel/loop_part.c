/* Loops: which nodes run together.
 *
 * Nodes are taken in order. Each joins the part of the last node that it reads from, or a later
 * one, if it fits into its space and what it reads from that part is there as it is computed;
 * otherwise it begins a new part. Parts run in the order in which they were begun.
 */
#include "run/kernel/kernels.h"
#include "run/kernel/loop_core.h"
#include "run/kernel/point.h"
#include "run/kernel/reduction.h"

enum { LATER_PARTS = 4 }; /* how many later parts are tried */

/* ---- reductions ---- */

bool part_folding(const struct rt_call *c, struct folding *f)
{
    const struct rt_tensor *in = arg_tensor(c, 0);
    bool reduced[RT_DIMS];

    if (in == NULL || c->n_out == 0 || c->out[0].dtype == DTYPE_NONE)
        return false;
    *f = (struct folding){.op = REDUCE_SUM, .kind = kind_of(c->out[0].dtype)};
    switch ((enum op_kernel)c->kernel->id) {
    case OP_KERNEL_sum: break;
    case OP_KERNEL_mean: f->divide = 1; break;
    case OP_KERNEL_amax: f->op = REDUCE_MAX, f->kind = kind_of(in->dtype); break;
    case OP_KERNEL_amin: f->op = REDUCE_MIN, f->kind = kind_of(in->dtype); break;
    case OP_KERNEL_var:
    case OP_KERNEL_var_mean: f->variance = true; break;
    default: return false;
    }
    bool integer = f->kind == K_I64 && !f->variance && f->divide == 0;
    if ((f->kind != K_F32 && f->kind != K_F64 && !integer) || kind_of(in->dtype) >= K_C64)
        return false;
    const struct rt_value *dims = arg_at(c, 1);
    if (dims->kind != RT_LIST && dims->kind != RT_INT)
        return false;
    int64_t count = reduction_dims(c, in, 1, reduced);
    if (f->variance)
        f->divide = (double)count - arg_float(c, 2, 1);
    else if (f->divide != 0)
        f->divide = (double)count;
    return count > 1 && (!f->variance || f->divide > 0);
}

/* The operand lies in a row, so that the sums are made in the order of a reduction alone. */
bool part_reduced(const struct rt_call *c, int *last, int *first)
{
    const struct rt_tensor *in = c->arg[0].tensor;
    bool reduced[RT_DIMS], now = false;
    int changes = 0, n = 0;

    reduction_dims(c, in, 1, reduced);
    if (!rt_contiguous(in))
        return false;
    *last = *first = 0;
    for (int d = 0; d < in->n; d++) {
        if (in->size[d] == 1)
            continue;
        changes += n > 0 && reduced[d] != now;
        now = reduced[d];
        n++;
        if (changes == 0)
            *first += now;
        else
            *last += now;
    }
    if (changes == 0 && now) { /* all of them: one row */
        *last = n;
        *first = 0;
    }
    return changes <= 1 && *last + *first > 0;
}

/* ---- does a node fit into a part? ---- */

uint32_t part_operands(const struct rt_call *c)
{
    uint32_t n = (uint32_t)point_operands(c->kernel->id);

    n = n > 0 ? n : 1;
    return n < c->n_arg ? n : c->n_arg;
}

static int64_t points(const int64_t *size, int n)
{
    int64_t count = 1;

    for (int d = 0; d < n; d++)
        count *= size[d];
    return count;
}

/* What it reads from nodes of the part must be what they have computed at the same point. */
static bool reads_fit(const struct loop *l, const struct part *p, uint32_t node)
{
    const struct rt_call *c = &l->node[node].call;

    for (uint32_t i = 0; i < part_operands(c); i++) {
        struct prog_mem m, from;

        if (c->arg[i].kind != RT_TENSOR)
            continue;
        if (!map_operand(l, p, node, i, &m))
            return false;
        const struct made *made = map_made(l, c->arg[i].tensor);
        if (made != NULL && made->node >= node)
            return false;
        if (made == NULL || &l->part[l->part_of[made->node]] != p)
            continue;
        if (l->level[made->node] == LEVEL_COLUMN ||
            !map_result(l, p, made->node, made->out, &from) || !map_same(p, &m, &from))
            return false;
    }
    return true;
}

/* How many of the last dimensions of the space does a tensor's last `last` ones cover? */
static int covered(const struct part *p, const struct rt_tensor *t, int last)
{
    int64_t count = 1, have = 1;
    int n = 0;

    for (int d = t->n - 1; d >= 0 && last > 0; d--)
        if (t->size[d] != 1) {
            count *= t->size[d];
            last--;
        }
    while (n < p->dims && have < count)
        have *= p->size[n++];
    return have == count ? n : -1;
}

static int wide_dims(const struct rt_tensor *t)
{
    int n = 0;

    for (int d = 0; d < t->n; d++)
        n += t->size[d] != 1;
    return n;
}

static bool fold_fits(struct loop *l, struct part *p, uint32_t node)
{
    const struct rt_call *c = &l->node[node].call;
    const struct rt_tensor *in = c->arg[0].tensor;
    struct folding f;
    struct prog_mem m;
    int last, first, before = p->inner;

    if (!part_folding(c, &f) || !part_reduced(c, &last, &first) ||
        rt_numel(in) != points(p->size, p->dims))
        return false;
    bool column = last == 0;
    int inner = covered(p, in, column ? wide_dims(in) - first : last);
    if (inner <= 0 || points(p->size, inner) > PART_WIDTH || (before != 0 && before != inner) ||
        (column && f.variance) ||
        (column && (inner == p->dims || kind_of(c->out->dtype) != f.kind)))
        return false;
    p->inner = inner;
    l->level[node] = column ? LEVEL_COLUMN : LEVEL_ROW;
    bool fits = reads_fit(l, p, node);
    for (uint32_t k = 0; fits && k < c->n_out; k++)
        fits = map_result(l, p, node, k, &m);
    if (!fits)
        p->inner = before;
    return fits;
}

static bool point_fits(struct loop *l, struct part *p, uint32_t node)
{
    const struct rt_call *c = &l->node[node].call;
    int64_t n = rt_numel(c->out);
    struct prog_mem m;

    if (n == points(p->size, p->dims))
        l->level[node] = LEVEL_FULL;
    else if (p->inner > 0 && n == points(p->size + p->inner, p->dims - p->inner))
        l->level[node] = LEVEL_ROW;
    else
        return false;
    return map_result(l, p, node, 0, &m) && reads_fit(l, p, node);
}

static bool is_element(const struct rt_value *v)
{
    return v->kind == RT_TENSOR || v->kind == RT_INT || v->kind == RT_FLOAT || v->kind == RT_BOOL ||
           v->kind == RT_COMPLEX;
}

static bool is_point(const struct rt_call *c)
{
    uint32_t n = (uint32_t)point_operands(c->kernel->id);

    if (n == 0 || n > c->n_arg || c->n_out != 1 || kind_of(c->out->dtype) == K_END)
        return false;
    for (uint32_t i = 0; i < c->n_arg; i++)
        if (i < n ? !is_element(&c->arg[i]) : c->arg[i].kind == RT_TENSOR)
            return false;
    return true;
}

static bool fits(struct loop *l, struct part *p, uint32_t node)
{
    if (p->alone || p->n == PART_NODES)
        return false;
    return is_point(&l->node[node].call) ? point_fits(l, p, node) : fold_fits(l, p, node);
}

/* ---- parts ---- */

/* The space of a node: that of its result, or of what it reduces. */
static void begin_part(struct loop *l, struct arena *a, uint32_t node)
{
    const struct rt_call *c = &l->node[node].call;
    struct part *p = &l->part[l->n_part++];
    struct folding f;
    bool point = is_point(c);

    *p = (struct part){.at = arena_array(a, uint32_t, PART_NODES), .alone = true};
    if (point || part_folding(c, &f)) {
        const struct rt_tensor *t = point ? c->out : c->arg[0].tensor;

        for (int d = t->n - 1; d >= 0; d--)
            if (t->size[d] != 1)
                p->size[p->dims++] = t->size[d];
        p->alone = rt_numel(t) == 0 || p->dims == 0;
        if (!fits(l, p, node))
            p->alone = true;
    }
    p->at[p->n++] = node;
    l->part_of[node] = l->n_part - 1;
}

/* The first part that may run the node: no part before it makes anything that the node reads. A
 * call that is not of a loop's form may read any of its operands, through lists, too. */
static uint32_t first_part(const struct loop *l, uint32_t node)
{
    const struct rt_call *c = &l->node[node].call;
    uint32_t first = 0;

    for (uint32_t i = 0; i < part_operands(c); i++) {
        const struct made *made = c->arg[i].kind == RT_TENSOR ? map_made(l, c->arg[i].tensor)
                                                              : NULL;
        if (made != NULL && made->node < node && l->part_of[made->node] > first)
            first = l->part_of[made->node];
    }
    return first;
}

static void join(struct loop *l, struct arena *a, uint32_t node)
{
    struct folding f;
    uint32_t first = first_part(l, node);

    if (is_point(&l->node[node].call) || part_folding(&l->node[node].call, &f))
        for (uint32_t k = 0; k <= LATER_PARTS; k++) {
            uint32_t i = k == 0 ? first : l->n_part - k;

            if (i >= l->n_part || i < first || !fits(l, &l->part[i], node))
                continue;
            l->part[i].at[l->part[i].n++] = node;
            l->part_of[node] = i;
            return;
        }
    begin_part(l, a, node);
}

/* ---- results that other parts read ---- */

static void need(struct loop *l, const struct rt_value *v, uint32_t node)
{
    for (uint32_t i = 0; v->kind == RT_LIST && i < v->n; i++)
        if (v->item[i].kind == RT_TENSOR || v->item[i].kind == RT_LIST)
            need(l, &v->item[i], node); /* lists are at most four deep */
    const struct made *made = v->kind == RT_TENSOR ? map_made(l, v->tensor) : NULL;
    if (made != NULL && l->part_of[made->node] != l->part_of[node] && made->out < 64)
        l->needed[made->node] |= (uint64_t)1 << made->out;
}

void part_all(struct loop *l, struct arena *a)
{
    l->part = arena_array(a, struct part, l->n);
    l->part_of = arena_zeroed(a, l->n * sizeof(*l->part_of));
    l->level = arena_zeroed(a, l->n);
    l->needed = arena_zeroed(a, l->n * sizeof(*l->needed));
    for (uint32_t i = 0; i < l->n; i++)
        l->part_of[i] = UINT32_MAX;
    for (uint32_t i = 0; i < l->n; i++)
        join(l, a, i);
    for (uint32_t i = 0; i < l->n; i++)
        for (uint32_t k = 0; k < l->node[i].call.n_arg; k++)
            need(l, &l->node[i].call.arg[k], i);
}

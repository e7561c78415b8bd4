/* Views: the same memory with other sizes and strides, which inference knows; here is where a view
 * begins. */
#include "run/exec_core.h"

/* Dimension number `dim`, counted from the end if negative. */
static bool wrap(int64_t dim, const struct rt_tensor *t, uint32_t *out)
{
    int64_t n = t->n > 0 ? t->n : 1;

    if (dim < 0)
        dim += n;
    *out = (uint32_t)dim;
    return dim >= 0 && dim < n;
}

static bool strange(struct exec *x, uint32_t n)
{
    return exec_fail_at(x, n, "operands of this view cannot be understood");
}

/* The sizes and strides of a view: these must be known, they need not be contiguous. */
static bool layout(struct exec *x, uint32_t n, type_id id, struct rt_tensor *t)
{
    if (type_at(&x->g->store->type, id)->kind == TYPE_TENSOR &&
        !type_at(&x->g->store->type, id)->strided)
        return exec_fail_at(x, n,
                            "the strides of this view are not known; inputs whose text has none "
                            "are taken as contiguous");
    return exec_tensor_of(x, id, t) == KNOWN || strange(x, n);
}

/* Elements from the base's first one to the view's; false: an operand is not known. */
static bool selected(struct exec *x, const struct fx_node *c, const struct rt_tensor *t,
                     int64_t *at)
{
    int64_t dim, i;
    uint32_t d;

    if (!exec_int_operand(x, c, 1, 0, &dim) || !exec_int_operand(x, c, 2, 0, &i) ||
        !wrap(dim, t, &d))
        return false;
    if (i < 0)
        i += t->size[d];
    if (t->n == 0 || i < 0 || i >= t->size[d])
        return false;
    *at = i * t->stride[d];
    return true;
}

static bool sliced(struct exec *x, const struct fx_node *c, const struct rt_tensor *t, int64_t *at)
{
    int64_t dim, i;
    uint32_t d;

    if (!exec_int_operand(x, c, 1, 0, &dim) || !exec_int_operand(x, c, 2, 0, &i) ||
        !wrap(dim, t, &d) || t->n == 0)
        return false;
    if (i < 0)
        i += t->size[d];
    i = i < 0 ? 0 : i > t->size[d] ? t->size[d] : i;
    *at = i * t->stride[d];
    return true;
}

static bool on_diagonal(struct exec *x, const struct fx_node *c, const struct rt_tensor *t,
                        int64_t *at)
{
    int64_t offset, first, second;
    uint32_t a, b;

    if (!exec_int_operand(x, c, 1, 0, &offset) || !exec_int_operand(x, c, 2, 0, &first) ||
        !exec_int_operand(x, c, 3, 1, &second) || !wrap(first, t, &a) || !wrap(second, t, &b) ||
        t->n < 2 || offset > t->size[b] || offset < -t->size[a])
        return false;
    *at = offset >= 0 ? offset * t->stride[b] : -offset * t->stride[a];
    return true;
}

/* The dimension along which a list of parts is cut. */
static bool cut_along(struct exec *x, const struct fx_node *c, const struct rt_tensor *t,
                      uint32_t *d)
{
    const struct op_sig *sig = sigs_get(&x->sigs, c->op);
    int64_t dim;

    switch (op_at(c->op)->shape) {
    case OP_SHAPE_hsplit: *d = t->n > 1; return true;
    case OP_SHAPE_vsplit: *d = 0; return true;
    case OP_SHAPE_dsplit: *d = 2; return true;
    default:
        return exec_int_operand(x, c, op_param_find(sig, "dim", 3), 0, &dim) && wrap(dim, t, d);
    }
}

static bool parts(struct exec *x, uint32_t n, const struct fx_node *c, const struct exec_value *of)
{
    bool unbound = op_at(c->op)->shape == OP_SHAPE_unbind;
    struct exec_value *v = &x->value[x->value_at[n]];
    int64_t at = 0, taken = 0, elem = dtype_at((enum dtype)of->t.dtype)->bytes;
    const struct type *t = type_at(&x->g->store->type, node_type(x->g, n));
    uint32_t d;

    if (!cut_along(x, c, &of->t, &d) || d >= of->t.n || t->kind != TYPE_LIST)
        return strange(x, n);
    for (uint32_t k = 0; k < t->n; k++) {
        v[k] = *of;
        if (!layout(x, n, t->item[k], &v[k].t))
            return false;
        v[k].at = of->at + at * elem;
        int64_t size = unbound ? 1 : d < v[k].t.n ? v[k].t.size[d] : -1;
        if (size < 0 || size > of->t.size[d] - taken)
            return strange(x, n);
        taken += size;
        at += size * of->t.stride[d];
    }
    return true;
}

/* Where as_strided and its kin begin: counted from the beginning of the storage if it is given. */
static bool strided(struct exec *x, const struct fx_node *c, const struct exec_value *of,
                    int64_t *at)
{
    const struct op_row *row = op_at(c->op);
    int64_t elem = dtype_at((enum dtype)of->t.dtype)->bytes, i;

    if (!exec_int_operand(x, c, 3, INT64_MIN, &i))
        return false;
    if (i != INT64_MIN && (i < 0 || i > INT64_MAX / 32 - of->at))
        return false;
    if (strcmp(row->name, "inductor._reinterpret_tensor.default") == 0)
        *at = of->at + i * elem;
    else
        *at = i == INT64_MIN ? of->at : i * elem;
    return true;
}

static bool begin(struct exec *x, const struct fx_node *c, const struct exec_value *of, int64_t *at)
{
    const struct op_row *row = op_at(c->op);
    int64_t elem = dtype_at((enum dtype)of->t.dtype)->bytes, i = 0;

    switch (row->shape) {
    case OP_SHAPE_select:
        if (!selected(x, c, &of->t, &i))
            return false;
        break;
    case OP_SHAPE_slice:
    case OP_SHAPE_narrow:
        if (!sliced(x, c, &of->t, &i))
            return false;
        break;
    case OP_SHAPE_diagonal:
        if (!on_diagonal(x, c, &of->t, &i))
            return false;
        break;
    case OP_SHAPE_as_strided: return strided(x, c, of, at);
    case OP_SHAPE_real:
        *at = of->at + (strcmp(row->name, "aten.imag.default") == 0 ? elem / 2 : 0);
        return true;
    case OP_SHAPE_all_gather_copy_in: /* the part of this rank */
        if (!exec_int_operand(x, c, 3, 0, &i) || !exec_int_operand(x, c, 4, 0, at) || i < 0 ||
            *at < 0 || !size_mul(i, *at, &i) || i > INT64_MAX / 32 - of->at)
            return false;
        break;
    default: break;
    }
    *at = of->at + i * elem;
    return true;
}

static bool one(struct exec *x, uint32_t n, const struct fx_node *c, const struct exec_value *of)
{
    struct exec_value *v = &x->value[x->value_at[n] + acting_result(x->g, n)];
    struct exec_value made = *of;
    const struct type *t = type_at(&x->g->store->type, node_type(x->g, n));
    type_id id = t->kind == TYPE_LIST ? t->item[acting_result(x->g, n)] : node_type(x->g, n);

    if (!layout(x, n, id, &made.t))
        return false;
    if (!begin(x, c, of, &made.at))
        return strange(x, n);
    *v = made;
    return true;
}

/* A list of operands, each with the sizes of all. */
static bool each(struct exec *x, uint32_t n, const tuck_value *list)
{
    const struct type *t = type_at(&x->g->store->type, node_type(x->g, n));

    if (t->kind != TYPE_LIST || t->n > list->a)
        return strange(x, n);
    for (uint32_t k = 0; k < t->n; k++) {
        const struct exec_value *of = exec_operand(x, value_item(list, k));
        struct exec_value *v = &x->value[x->value_at[n] + k];
        if (of == NULL || of->kind != EXEC_TENSOR)
            return strange(x, n);
        *v = *of;
        if (!layout(x, n, t->item[k], &v->t))
            return false;
    }
    return true;
}

bool exec_view(struct exec *x, uint32_t n, const struct fx_node *c)
{
    const struct op_row *row = op_at(c->op);
    const tuck_value *v = call_operand(x->g, c, row->shape == OP_SHAPE_all_gather_copy_in ? 1 : 0);
    const struct exec_value *of = exec_operand(x, v);

    if (x->preparing && x->dynamic[n])
        return true;
    if (v != NULL && value_is_container(v))
        return each(x, n, v);
    if (of == NULL || of->kind != EXEC_TENSOR)
        return strange(x, n);
    switch (row->shape) {
    case OP_SHAPE_split:
    case OP_SHAPE_chunk:
    case OP_SHAPE_hsplit:
    case OP_SHAPE_vsplit:
    case OP_SHAPE_dsplit:
    case OP_SHAPE_unbind: return parts(x, n, c, of);
    default: return one(x, n, c, of);
    }
}

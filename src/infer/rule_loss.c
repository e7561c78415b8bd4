/* Shape rules of losses. */
#include "infer/rule.h"

enum { REDUCTION_NONE };

struct loss {
    const struct type *in, *target;
    bool reduced;
    enum dtype dtype;
};

static bool read_loss(struct infer *x, struct loss *l)
{
    int64_t reduction;
    struct promotion p = {0};

    l->in = in_tensor(x, 0);
    l->target = in_tensor(x, 1);
    if (l->in == NULL || l->target == NULL || !in_int(x, in_param(x, "reduction"), &reduction))
        return false;
    promote_tensor(&p, l->in);
    promote_tensor(&p, l->target);
    l->dtype = promoted(&p);
    l->reduced = reduction != REDUCTION_NONE;
    return l->dtype != DTYPE_NONE;
}

/* t is the value before the reduction. */
static bool out_loss(struct infer *x, const struct loss *l, const struct type *t)
{
    if (l->reduced)
        return out_tensor(x, l->dtype, 0, NULL, NULL, t->device);
    return out_type(x, as_item(x, t, l->dtype));
}

/* Several steps, some of them in place: the layout is known if the operands have the same. */
static const struct type *shared_layout(struct infer *x, const struct loss *l)
{
    const struct type *t = step_two(x, l->in, l->target);
    bool same = t->strided && l->in->n == t->n && l->target->n == t->n && is_dense(x, l->in) &&
                is_tidy(x, l->in);

    for (uint32_t i = 0; same && i < t->n; i++)
        same = l->in->stride[i] == l->target->stride[i] &&
               same_size(x, l->in->size[i], l->target->size[i]);
    return same ? t : tidy_only(x, t, (const struct type *[]){&(struct type){0}}, 1);
}

bool shape_loss_steps(struct infer *x)
{
    struct loss l;

    return read_loss(x, &l) && out_loss(x, &l, shared_layout(x, &l));
}

/* Computed in place of the target. */
bool shape_loss_logits(struct infer *x)
{
    struct loss l;

    if (!read_loss(x, &l))
        return false;
    l.dtype = (enum dtype)l.target->dtype;
    return out_loss(x, &l, shared_layout(x, &l));
}

bool shape_nll_loss(struct infer *x)
{
    struct loss l;

    if (!read_loss(x, &l))
        return false;
    enum dtype dtype = (enum dtype)l.in->dtype;
    type_id total = new_tensor(x, dtype, 0, NULL, NULL, l.in->device);
    type_id loss = total;
    if (!l.reduced && l.in->n > 1) { /* selected by the target unless that is ignored */
        const struct type *chosen = step_plain(x, l.in, l.target->n, l.target->size);
        chosen = step_two(x, step_one(x, l.target), chosen);
        loss = as_item(x, tidy_only(x, chosen, &l.target, 1), dtype);
    }
    return out_list(x, (type_id[]){loss, total}, 2);
}

bool shape_nll_loss2d_backward(struct infer *x)
{
    const struct type *of[] = {in_tensor(x, 0), in_tensor(x, 1), in_tensor(x, 2)}, *t = of[1];

    if (t == NULL)
        return false;
    const struct type *out = tidy_only(x, step_plain(x, t, t->n, t->size), of, 3);
    return out_type(x, as_item(x, out, (enum dtype)t->dtype));
}

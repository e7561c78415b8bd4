/* Masks: where elements are not 0. */
#include "run/kernel/index_mask.h"

/* Of the elements along the last dimension, from index `at` on: which are not 0. Returns how many
 * were looked at. */
static int64_t look(const struct rt_tensor *t, const int64_t *at, uint8_t *is)
{
    _Alignas(16) char reg[ELEM_BLOCK * 16];
    int64_t n = 1, from = 0, step = 1;

    for (int d = 0; d < t->n; d++)
        from += at[d] * t->stride[d];
    if (t->n > 0) {
        n = t->size[t->n - 1] - at[t->n - 1];
        step = t->stride[t->n - 1];
    }
    n = n < ELEM_BLOCK ? n : ELEM_BLOCK;
    elem_load(reg, (const char *)t->data + from * dtype_at(t->dtype)->bytes, t->dtype, step, n);
    elem_convert(is, K_BOOL, reg, kind_of(t->dtype), n);
    return n;
}

/* The index that comes n elements later in the last dimension; false after the last one. */
static bool go_on(const struct rt_tensor *t, int64_t *at, int64_t n)
{
    for (int d = t->n - 1; d >= 0; d--) {
        at[d] += d == t->n - 1 ? n : 1;
        if (at[d] < t->size[d])
            return true;
        at[d] = 0;
    }
    return false;
}

int64_t mask_places(const struct rt_tensor *t, int64_t *to, int64_t room)
{
    int64_t at[RT_DIMS] = {0}, count = 0, n;
    uint8_t is[ELEM_BLOCK];

    if (rt_numel(t) == 0)
        return 0;
    do {
        n = look(t, at, is);
        for (int64_t i = 0; i < n; i++) {
            for (int d = 0; d < t->n && is[i] && to != NULL; d++)
                to[d * room + count] = at[d] + (d == t->n - 1 ? i : 0);
            count += is[i];
        }
    } while (go_on(t, at, n));
    return count;
}

static const struct rt_tensor *mask_at(const struct rt_value *list, uint32_t i)
{
    const struct rt_tensor *t = list->item[i].kind == RT_TENSOR ? list->item[i].tensor : NULL;

    return t != NULL && (t->dtype == DTYPE_B8 || t->dtype == DTYPE_U8) ? t : NULL;
}

size_t mask_bytes(const struct rt_value *list)
{
    size_t sum = 0;

    for (uint32_t i = 0; i < list->n; i++)
        if (mask_at(list, i) != NULL)
            sum += kernel_bytes(rt_numel(mask_at(list, i)), mask_at(list, i)->n + 1, 8) + RT_ALIGN;
    return sum;
}

int64_t mask_count(const struct rt_value *list)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (mask_at(list, i) != NULL)
            return mask_places(mask_at(list, i), NULL, 0);
    return -1;
}

/* One mask, whose dimensions are those of self from `dim` on. */
static bool expand_one(struct rt_call *c, struct plain *s, const struct rt_tensor *self,
                       const struct rt_tensor *mask, struct unmasked *u)
{
    uint32_t dim = u->list.n;
    int64_t count = rt_numel(mask), *at = NULL;

    for (int d = 0; d < mask->n; d++)
        if (dim + (uint32_t)d >= self->n || mask->size[d] != self->size[dim + (uint32_t)d])
            return kernel_error(c, "a mask is not of the size that it is for");
    if (s != NULL) {
        int64_t room = count;

        at = plain_room(s, (size_t)room * (size_t)mask->n * sizeof(int64_t));
        count = mask_places(mask, at, room);
    }
    for (int d = 0; d < mask->n; d++) {
        struct rt_tensor *t = &u->index[dim + (uint32_t)d];

        *t = (struct rt_tensor){.dtype = DTYPE_I64, .n = 1, .size = {count}, .stride = {1}};
        t->data = at != NULL ? at + d * rt_numel(mask) : NULL;
        u->item[u->list.n++] = (struct rt_value){.kind = RT_TENSOR, .tensor = t};
    }
    return true;
}

bool mask_expand(struct rt_call *c, struct plain *s, const struct rt_tensor *self,
                 const struct rt_value *list, struct unmasked *u)
{
    u->list = (struct rt_value){.kind = RT_LIST, .item = u->item};
    for (uint32_t i = 0; i < list->n; i++) {
        const struct rt_tensor *mask = mask_at(list, i);

        if (mask != NULL && mask->n > 0) {
            if (!expand_one(c, s, self, mask, u))
                return false;
        } else if (u->list.n >= self->n) {
            return kernel_error(c, "more indices than the %d dimensions", self->n);
        } else if (mask != NULL) {
            return kernel_error(c, "a mask without dimensions");
        } else {
            u->item[u->list.n++] = list->item[i];
        }
    }
    return true;
}

/* Copies, with another dtype or layout. */
#include "run/kernel/elem.h"
#include "run/kernel/kernels.h"
#include "run/kernel/walk.h"

/* Rows of two matrices of which one lies across: in tiles, so that what is read stays in the cache.
 */
static void transpose(struct walk *w, size_t bytes)
{
    enum { TILE = 32 };
    int64_t to0 = w->step[0][0] / (int64_t)bytes, from0 = w->step[1][0] / (int64_t)bytes;

    for (int64_t j = 0; j < w->size[0]; j += TILE) {
        int64_t width = w->size[0] - j < TILE ? w->size[0] - j : TILE;

        for (int64_t i = 0; i < w->size[1]; i++)
            elem_move(w->p[0] + j * w->step[0][0] + i * w->step[0][1], to0,
                      w->p[1] + j * w->step[1][0] + i * w->step[1][1], from0, bytes, width);
    }
}

static void move(struct walk *w, size_t bytes)
{
    int64_t to0 = w->step[0][0] / (int64_t)bytes, from0 = w->step[1][0] / (int64_t)bytes;

    if (w->n > 1 && to0 == 1 && from0 > 1 && w->step[1][1] == (int64_t)bytes) {
        do
            transpose(w, bytes);
        while (walk_next(w, 2));
        return;
    }
    do
        elem_move(w->p[0], to0, w->p[1], from0, bytes, w->size[0]);
    while (walk_next(w, 1));
}

static void convert_row(const struct walk *w, const struct rt_tensor *to,
                        const struct rt_tensor *from)
{
    enum kind a = kind_of(from->dtype), b = kind_of(to->dtype);
    int64_t to0 = w->step[0][0] / dtype_at(to->dtype)->bytes,
            from0 = w->step[1][0] / dtype_at(from->dtype)->bytes;
    _Alignas(RT_ALIGN) char x[ELEM_BLOCK * 16], y[ELEM_BLOCK * 16];

    for (int64_t i = 0; i < w->size[0]; i += ELEM_BLOCK) {
        int64_t n = w->size[0] - i < ELEM_BLOCK ? w->size[0] - i : ELEM_BLOCK;

        elem_load(x, w->p[1] + i * w->step[1][0], from->dtype, from0, n);
        if (a != b)
            elem_convert(y, b, x, a, n);
        elem_store(w->p[0] + i * w->step[0][0], a != b ? y : x, to->dtype, to0, n);
    }
}

bool copy_tensor(struct rt_call *c, const struct rt_tensor *to, const struct rt_tensor *from)
{
    const struct rt_tensor *t[] = {to, from};
    struct walk w;

    if (to->dtype != from->dtype && (kind_of(to->dtype) == K_END || kind_of(from->dtype) == K_END))
        return kernel_error(c, "no kernel converts %s to %s", dtype_at(from->dtype)->name,
                            dtype_at(to->dtype)->name);
    if (!kernel_broadcasts(c, from, to))
        return false;
    if (!walk_begin(&w, t, 2, 0))
        return true;
    if (to->dtype == from->dtype) {
        move(&w, dtype_at(to->dtype)->bytes);
        return true;
    }
    do
        convert_row(&w, to, from);
    while (walk_next(&w, 1));
    return true;
}

bool kernel_copy(struct rt_call *c)
{
    const struct rt_tensor *from = arg_tensor(c, 0);
    struct rt_tensor *to = out_at(c, 0);

    return from == NULL || to == NULL || copy_tensor(c, to, from);
}

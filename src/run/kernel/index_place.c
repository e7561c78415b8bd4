#include "run/kernel/index_place.h"

#include "run/kernel/hot.h"

int64_t index_position(int64_t i, int64_t size)
{
    i = i < 0 ? i + size : i;
    return i >= 0 && i < size ? i : -1;
}

bool index_out_of_range(struct rt_call *c, int64_t i, int64_t size)
{
    return kernel_error(c, "index %lld is out of range for %lld elements", (long long)i,
                        (long long)size);
}

void index_add_element(char *to, const char *from, enum dtype d)
{
    _Alignas(16) char a[16], b[16];
    enum kind k = kind_of(d);

    elem_load(a, to, d, 1, 1);
    elem_load(b, from, d, 1, 1);
    hot_get()->column[k == K_BOOL ? REDUCE_MAX : REDUCE_SUM][k](a, b, 1);
    elem_store(to, a, d, 1, 1);
}

void index_add_run(char *to, const char *from, enum dtype d, int64_t n)
{
    int64_t bytes = dtype_at(d)->bytes;

    if (d == DTYPE_F32 || d == DTYPE_F64 || d == DTYPE_I64) {
        hot_get()->column[REDUCE_SUM][kind_of(d)](to, from, n);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        index_add_element(to + i * bytes, from + i * bytes, d);
}

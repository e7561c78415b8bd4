#include "base/vec.h"

void *vec_room(struct mem *m, void *at, uint32_t len, uint32_t *cap, size_t elem, size_t more)
{
    size_t want = (size_t)len + more;

    if (want <= *cap)
        return at;
    if (want > UINT32_MAX)
        mem_exhausted(m);
    size_t grow = *cap ? (size_t)*cap * 2 : VEC_MIN;
    if (grow > UINT32_MAX)
        grow = UINT32_MAX;
    if (grow < want)
        grow = want;
    at = mem_resize(m, at, *cap * elem, mem_times(m, grow, elem));
    *cap = (uint32_t)grow;
    return at;
}

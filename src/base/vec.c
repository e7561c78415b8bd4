#include "base/vec.h"
#include "base/check.h"

#include "base/arena.h"

/* How many elements to have room for: at least `want`, and twice as many as before. */
static size_t grown(struct mem *m, uint32_t cap, size_t want)
{
    if (want > UINT32_MAX)
        mem_exhausted(m);
    size_t grow = cap ? (size_t)cap * 2 : VEC_MIN;
    if (grow > UINT32_MAX)
        grow = UINT32_MAX;
    return grow < want ? want : grow;
}

void *vec_room(struct mem *m, void *at, uint32_t len, uint32_t *cap, size_t elem, size_t more)
{
    size_t want = (size_t)len + more;

    assert_hot(len <= *cap && (at != NULL || len == 0));
    if (want <= *cap)
        return at;
    size_t grow = grown(m, *cap, want);
    at = mem_resize(m, at, *cap * elem, mem_times(m, grow, elem));
    *cap = (uint32_t)grow;
    return at;
}

void *vec_room_in(struct arena *a, void *at, uint32_t len, uint32_t *cap, size_t elem, size_t more)
{
    size_t want = (size_t)len + more;

    assert_hot(len <= *cap && (at != NULL || len == 0));
    if (want <= *cap)
        return at;
    size_t grow = grown(a->mem, *cap, want);
    void *now = arena_alloc(a, mem_times(a->mem, grow, elem));
    if (len > 0)
        memcpy(now, at, len * elem);
    *cap = (uint32_t)grow;
    return now;
}

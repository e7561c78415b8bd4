/* Bump allocation with marks: everything after a mark is freed at once. Objects
 * are aligned for any type. */
#ifndef TUCK_BASE_ARENA_H
#define TUCK_BASE_ARENA_H

#include <stddef.h>
#include <string.h>

#include "base/mem.h"

#ifdef TUCK_STRESS /* every few objects open a new block */
#define ARENA_BLOCK 64
#else
#define ARENA_BLOCK (64 * 1024)
#endif

struct arena_block {
    /* so that what follows the header is aligned, too */
    _Alignas(max_align_t) struct arena_block *prev;
    size_t size; /* bytes that follow this header */
};

struct arena {
    struct mem *mem;
    struct arena_block *top; /* the block being filled; it links to older ones */
    char *at, *end;          /* free room in it */
};

struct arena_mark {
    struct arena_block *top;
    char *at;
};

void arena_init(struct arena *a, struct mem *m);
void arena_destroy(struct arena *a);
void *arena_alloc_slow(struct arena *a, size_t size);

static inline size_t arena_round(size_t size)
{
    return (size + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
}

static inline void *arena_alloc(struct arena *a, size_t size)
{
    size_t need = arena_round(size);

    if (need < size || a->at == NULL || need > (size_t)(a->end - a->at))
        return arena_alloc_slow(a, size);
    void *p = a->at;
    a->at += need;
    return p;
}

static inline void *arena_zeroed(struct arena *a, size_t size)
{
    return memset(arena_alloc(a, size), 0, size);
}

#define arena_array(a, T, n) ((T *)arena_alloc((a), mem_times((a)->mem, (n), sizeof(T))))
#define arena_new(a, T) ((T *)arena_zeroed((a), sizeof(T)))

/* A NUL-terminated copy of s. */
char *arena_str(struct arena *a, const char *s, size_t len);

struct arena_mark arena_mark(const struct arena *a);
void arena_release(struct arena *a, struct arena_mark m);

#endif

#include "base/arena.h"

#include <assert.h>

void arena_init(struct arena *a, struct mem *m)
{
    *a = (struct arena){.mem = m};
}

static void drop_to(struct arena *a, const struct arena_block *keep)
{
    while (a->top != keep) {
        struct arena_block *b = a->top;

        assert(b != NULL); /* the mark belongs to this arena, and nothing before it was released */
        a->top = b->prev;
        mem_free(a->mem, b, sizeof(*b) + b->size);
    }
}

void arena_destroy(struct arena *a)
{
    drop_to(a, NULL);
    a->at = a->end = NULL;
}

/* Blocks double up to 1 MiB, so that a small graph uses little and a large one needs few calls. */
static size_t next_block_size(const struct arena *a)
{
    size_t size = a->top ? a->top->size * 2 : ARENA_BLOCK / 16;

    return size < ARENA_BLOCK * 16 ? size : ARENA_BLOCK * 16;
}

void *arena_alloc_slow(struct arena *a, size_t size)
{
    if (size > SIZE_MAX / 2)
        mem_exhausted(a->mem);
    size_t need = arena_round(size);
    size_t room = next_block_size(a);

    if (room < need)
        room = need;
    struct arena_block *b = mem_resize(a->mem, NULL, 0, sizeof(*b) + room);
    b->prev = a->top;
    b->size = room;
    a->top = b;
    a->at = (char *)(b + 1) + need;
    a->end = (char *)(b + 1) + room;
    return b + 1;
}

char *arena_str(struct arena *a, const char *s, size_t len)
{
    char *p = arena_alloc(a, len + 1);

    if (len > 0)
        memcpy(p, s, len);
    p[len] = '\0';
    return p;
}

struct arena_mark arena_mark(const struct arena *a)
{
    return (struct arena_mark){.top = a->top, .at = a->at};
}

void arena_release(struct arena *a, struct arena_mark m)
{
    drop_to(a, m.top);
    a->at = m.at;
    a->end = m.top ? (char *)(m.top + 1) + m.top->size : NULL;
    assert(a->at <= a->end && (m.top == NULL || a->at >= (char *)(m.top + 1)));
#ifdef TUCK_STRESS
    if (a->at != a->end)
        memset(a->at, 0xA5, (size_t)(a->end - a->at)); /* a stale pointer reads garbage at once */
#endif
}

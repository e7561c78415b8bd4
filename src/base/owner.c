#include "base/owner.h"

#include <stdalign.h>

struct owned { /* header of each block */
    struct owned *next, *prev;
    size_t size; /* including this header */
};

enum { HEADER = (sizeof(struct owned) + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1) };

void owner_init(struct owner *o, const tuck_allocator *alloc)
{
    *o = (struct owner){.first = NULL};
    mem_init(&o->from, alloc);
}

static void enter(struct owner *o, struct owned *x)
{
    x->prev = NULL;
    x->next = o->first;
    if (x->next != NULL)
        x->next->prev = x;
    o->first = x;
}

static void leave(struct owner *o, struct owned *x)
{
    if (x->prev != NULL)
        x->prev->next = x->next;
    else
        o->first = x->next;
    if (x->next != NULL)
        x->next->prev = x->prev;
}

static void *resize(void *ctx, void *p, size_t old_size, size_t new_size)
{
    struct owner *o = ctx;
    tuck_allocator *from = &o->from.alloc;
    struct owned *x = p ? (struct owned *)((char *)p - HEADER) : NULL;
    size_t size = new_size > 0 ? new_size + HEADER : 0;

    (void)old_size;
    if (new_size > SIZE_MAX - HEADER)
        return NULL;
    if (x != NULL)
        leave(o, x);
    struct owned *y = from->resize(from->ctx, x, x ? x->size : 0, size);
    if (y != NULL) {
        y->size = size;
        enter(o, y);
        return (char *)y + HEADER;
    }
    if (x != NULL && size > 0)
        enter(o, x); /* it could not be moved, and still exists */
    return NULL;
}

tuck_allocator owner_allocator(struct owner *o)
{
    return (tuck_allocator){o, resize};
}

void owner_end(struct owner *o)
{
    for (struct owned *x = o->first, *next; x != NULL; x = next) {
        next = x->next;
        mem_free(&o->from, x, x->size);
    }
    o->first = NULL;
}

/* An allocator that remembers what it handed out. Work that may end anywhere when memory runs out
 * allocates from it and needs no guard: whatever is left is freed with the owner. */
#ifndef TUCK_BASE_OWNER_H
#define TUCK_BASE_OWNER_H

#include "base/mem.h"

struct owner {
    struct mem from;
    struct owned *first;
};

void owner_init(struct owner *o, const tuck_allocator *alloc); /* NULL: malloc */
tuck_allocator owner_allocator(struct owner *o);
/* Frees everything that is left. */
void owner_end(struct owner *o);

#endif

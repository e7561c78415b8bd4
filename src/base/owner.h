/* An allocator that remembers what it handed out. Work that may end anywhere, for want of memory,
 * allocates from it and needs no guard of its own: what is left goes with the owner. */
#ifndef TUCK_BASE_OWNER_H
#define TUCK_BASE_OWNER_H

#include "base/mem.h"

struct owner {
    struct mem from;
    struct owned *first;
};

void owner_init(struct owner *o, const tuck_allocator *alloc); /* NULL: malloc */
tuck_allocator owner_allocator(struct owner *o);
/* Frees everything that is still there. */
void owner_end(struct owner *o);

#endif

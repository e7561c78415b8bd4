/* All memory of the library, and what happens when there is none left.
 *
 * A `struct mem` wraps the caller's allocator. Functions below never return NULL: when the
 * allocator fails, they jump (longjmp) to the innermost mem_guard(). Everything allocated meanwhile
 * belongs to an arena or a vector of the object being built, so the function that set the guard
 * only has to destroy that object. Code between the two needs no checks.
 */
#ifndef TUCK_BASE_MEM_H
#define TUCK_BASE_MEM_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tuck.h"

struct mem {
    tuck_allocator alloc;
    jmp_buf *trap; /* the innermost guard; NULL if there is none */
};

void mem_init(struct mem *m, const tuck_allocator *alloc);

void *mem_resize(struct mem *m, void *p, size_t old_size, size_t new_size);
void mem_free(struct mem *m, void *p, size_t size);

/* Runs fn(arg) so that a failed allocation ends it. False: that happened. Guards nest. */
bool mem_guard(struct mem *m, void (*fn)(void *), void *arg);
/* The same if fn allocates from both: whichever fails, both guards are removed. */
bool mem_guard_two(struct mem *a, struct mem *b, void (*fn)(void *), void *arg);

/* Jumps to the guard as if an allocation had failed: for sizes no machine can hold. */
_Noreturn void mem_exhausted(struct mem *m);

/* a * b; jumps to the guard if it does not fit. */
size_t mem_times(struct mem *m, size_t a, size_t b);

/* Sizes of tensors and byte counts: false on overflow, *out untouched. */
bool size_add(int64_t a, int64_t b, int64_t *out);
bool size_mul(int64_t a, int64_t b, int64_t *out);

#endif

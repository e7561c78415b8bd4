/* Growable typed arrays: VEC(T) declares one, vec_push() appends. Indices stay valid, pointers do
 * not. */
#ifndef TUCK_BASE_VEC_H
#define TUCK_BASE_VEC_H

#include "base/mem.h"

struct arena;

#ifdef TUCK_STRESS
#define VEC_MIN 1
#else
#define VEC_MIN 16
#endif

#define VEC(T)                                                                                     \
    struct {                                                                                       \
        T *at;                                                                                     \
        uint32_t len, cap;                                                                         \
    }

/* Room for `more` elements after len; returns the (possibly moved) array. */
void *vec_room(struct mem *m, void *at, uint32_t len, uint32_t *cap, size_t elem, size_t more);
void *vec_room_in(struct arena *a, void *at, uint32_t len, uint32_t *cap, size_t elem, size_t more);

#define vec_reserve(m, v, more)                                                                    \
    ((v)->at = vec_room((m), (v)->at, (v)->len, &(v)->cap, sizeof(*(v)->at), (more)))
#define vec_push(m, v, x)                                                                          \
    ((void)((v)->len < (v)->cap || (vec_reserve((m), (v), 1), 1)), (v)->at[(v)->len++] = (x))
/* The same in an arena: nothing to free; the old array stays in the arena. */
#define vec_reserve_in(a, v, more)                                                                 \
    ((v)->at = vec_room_in((a), (v)->at, (v)->len, &(v)->cap, sizeof(*(v)->at), (more)))
#define vec_push_in(a, v, x)                                                                       \
    ((void)((v)->len < (v)->cap || (vec_reserve_in((a), (v), 1), 1)), (v)->at[(v)->len++] = (x))
#define vec_free(m, v)                                                                             \
    (mem_free((m), (v)->at, (size_t)(v)->cap * sizeof(*(v)->at)), (v)->at = NULL,                  \
     (v)->len = (v)->cap = 0)

#endif

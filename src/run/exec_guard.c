/* With AddressSanitizer: while an op runs, only the buffers that the program says it uses can be
 * touched, and of the scratch only what its kernel asked for. */
#include "run/exec_core.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GUARDED
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define GUARDED
#endif

#ifdef GUARDED
#include <sanitizer/asan_interface.h>

/* Others may be reading what is here; and while collectives are under way, they move it. */
static bool is_shared(const struct exec *x)
{
    return (x->o.comm != NULL && x->o.comm->world > 1) || x->flying.len > 0;
}

void exec_guard(struct exec *x, uint32_t op)
{
    const struct program *p = x->p;

    __asan_unpoison_memory_region(x->arena_base, exec_room(p));
    if (is_shared(x))
        return;
    __asan_poison_memory_region(x->arena_base, exec_room(p));
    for (uint32_t k = p->use_at[op]; k < p->use_at[op + 1]; k++) {
        const struct exec_place *at = &x->place.at[p->use[k].buf];
        if (at->base != NULL && (at->where == WHERE_ARENA || at->where == WHERE_INPUT))
            __asan_unpoison_memory_region(at->base, (size_t)at->bytes);
    }
}

static void guard_scratch(struct exec *x, size_t bytes)
{
    if (x->scratch == NULL)
        return;
    __asan_unpoison_memory_region(x->scratch, x->scratch_bytes);
    if (bytes < x->scratch_bytes)
        __asan_poison_memory_region(x->scratch + bytes, x->scratch_bytes - bytes);
}

void exec_guard_call(struct exec *x, const struct rt_call *c)
{
    guard_scratch(x, kernel_scratch(c));
}

void exec_guard_loop(struct exec *x, const struct loop *l)
{
    guard_scratch(x, loop_scratch(l));
}

void exec_guard_end(struct exec *x)
{
    if (x->scratch != NULL)
        __asan_unpoison_memory_region(x->scratch, x->scratch_bytes);
}

void exec_unguard(struct exec *x)
{
    if (x->arena_base != NULL)
        __asan_unpoison_memory_region(x->arena_base, exec_room(x->p));
}

#else

void exec_guard(struct exec *x, uint32_t op)
{
    (void)x;
    (void)op;
}

void exec_guard_call(struct exec *x, const struct rt_call *c)
{
    (void)x;
    (void)c;
}

void exec_guard_loop(struct exec *x, const struct loop *l)
{
    (void)x;
    (void)l;
}

void exec_guard_end(struct exec *x)
{
    (void)x;
}

void exec_unguard(struct exec *x)
{
    (void)x;
}

#endif

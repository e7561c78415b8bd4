#include "base/mem.h"
#include "base/check.h"

#include <stdlib.h>

static void *default_resize(void *ctx, void *p, size_t old_size, size_t new_size)
{
    (void)ctx;
    (void)old_size;
    if (new_size == 0) {
        free(p);
        return NULL;
    }
    return realloc(p, new_size);
}

void mem_init(struct mem *m, const tuck_allocator *alloc)
{
    m->alloc = alloc ? *alloc : (tuck_allocator){.ctx = NULL, .resize = default_resize};
    m->trap = NULL;
}

void mem_exhausted(struct mem *m)
{
    if (m->trap == NULL)
        abort(); /* an entry point without a guard: our bug, not the caller's */
    longjmp(*m->trap, 1);
}

void *mem_resize(struct mem *m, void *p, size_t old_size, size_t new_size)
{
    assert_hot((p == NULL) == (old_size == 0) || new_size == 0);
    void *q = m->alloc.resize(m->alloc.ctx, p, old_size, new_size);

    if (q == NULL && new_size != 0)
        mem_exhausted(m);
    return q;
}

void mem_free(struct mem *m, void *p, size_t size)
{
    if (p != NULL)
        m->alloc.resize(m->alloc.ctx, p, size, 0);
}

bool mem_guard(struct mem *m, void (*fn)(void *), void *arg)
{
    jmp_buf here;
    jmp_buf *volatile outer = m->trap;
    volatile bool done = false;

    if (setjmp(here) == 0) {
        m->trap = &here;
        fn(arg);
        assert(m->trap == &here); /* inner guards were removed in order */
        done = true;
    }
    m->trap = outer;
    return done;
}

struct second {
    struct mem *m;
    void (*fn)(void *);
    void *arg;
    bool done;
};

static void do_second(void *p)
{
    struct second *s = p;

    s->done = mem_guard(s->m, s->fn, s->arg);
}

bool mem_guard_two(struct mem *a, struct mem *b, void (*fn)(void *), void *arg)
{
    struct second s = {b, fn, arg, false};
    jmp_buf *outer = b->trap;
    bool done = mem_guard(a, do_second, &s);

    b->trap = outer; /* if a failed, b's guard was skipped */
    return done && s.done;
}

size_t mem_times(struct mem *m, size_t a, size_t b)
{
    size_t r;

    if (__builtin_mul_overflow(a, b, &r))
        mem_exhausted(m);
    return r;
}

bool size_add(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;

    if (__builtin_add_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

bool size_mul(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;

    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

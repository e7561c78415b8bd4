/* The memory of an executor: the planned arena, inputs, heaps, scratch, and what grows. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "plan/arena_plan.h"
#include "run/exec_core.h"

void exec_make_places(struct exec *x)
{
    const struct program *p = x->p;

    for (uint32_t i = 0; i < p->n_buf; i++) {
        const struct program_buf *b = &p->buf[i];
        bool kept = (b->flags & PROGRAM_INPUT) && !(b->flags & PROGRAM_FREEABLE);
        exec_place_new(x, b->bytes,
                       b->layout == PROGRAM_COMM ? WHERE_HEAP
                       : kept                    ? WHERE_INPUT
                                                 : WHERE_ARENA);
    }
}

static size_t aligned(int64_t bytes)
{
    return ((size_t)bytes + RT_ALIGN - 1) & ~(size_t)(RT_ALIGN - 1);
}

/* ---- what grows ---- */

enum { CHUNK_LEAST = 1 << 20 };

char *exec_grow(struct exec *x, size_t bytes)
{
    struct exec_chunk *c = x->chunk;
    size_t need = aligned((int64_t)(bytes > 0 ? bytes : 1));

    while (c != NULL && c->size - c->used < need)
        c = c->next;
    if (c == NULL) {
        size_t size = need > CHUNK_LEAST ? need : CHUNK_LEAST;
        c = mem_resize(&x->mem, NULL, 0, sizeof(*c) + size + RT_ALIGN);
        char *at = (char *)(c + 1);
        *c = (struct exec_chunk){x->chunk, at + (RT_ALIGN - (uintptr_t)at % RT_ALIGN) % RT_ALIGN,
                                 size, 0, 0};
        x->chunk = c;
        x->memory.allocations += !x->preparing;
    }
    char *at = c->at + c->used;
    c->used += need;
    if (x->preparing)
        x->memory.scratch += (int64_t)need;
    else
        x->growing += (int64_t)need;
    if (x->growing > x->memory.grown)
        x->memory.grown = x->growing;
    return at;
}

void exec_shrink(struct exec *x)
{
    for (struct exec_chunk *c = x->chunk; c != NULL; c = c->next)
        c->used = c->kept;
    x->growing = 0;
    x->scratch = x->first_scratch;
    x->scratch_bytes = x->first_scratch_bytes;
}

static void free_chunks(struct exec *x)
{
    while (x->chunk != NULL) {
        struct exec_chunk *c = x->chunk;
        x->chunk = c->next;
        mem_free(&x->mem, c, sizeof(*c) + c->size + RT_ALIGN);
    }
}

/* ---- the arena and inputs ---- */

size_t exec_room(const struct program *p)
{
    size_t n = aligned(p->arena_bytes);

    for (uint32_t i = 0; i < p->n_input; i++)
        if (!(p->buf[i].flags & PROGRAM_FREEABLE) && p->buf[i].layout != PROGRAM_COMM)
            n += aligned(p->buf[i].bytes);
    return n;
}

static bool get_base(struct exec *x)
{
    size_t need = exec_room(x->p);

    x->base = x->o.base;
    x->base_bytes = x->o.base_bytes;
    if (x->base == NULL) {
        x->base_bytes = need > 0 ? need : 1;
        x->base = mmap(NULL, x->base_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                       0);
        if (x->base == MAP_FAILED) {
            x->base = NULL;
            return exec_fail(x, "%zu bytes of memory could not be had", need);
        }
        x->mapped = true;
    }
    return need <= x->base_bytes ||
           exec_fail(x, "%zu bytes are needed, %zu are there", need, x->base_bytes);
}

static void place_buffers(struct exec *x, char *inputs)
{
    const struct program *p = x->p;

    for (uint32_t i = 0; i < p->n_buf; i++) {
        struct exec_place *at = &x->place.at[i];
        const struct program_buf *b = &p->buf[i];
        if (at->where == WHERE_ARENA && b->offset >= 0) {
            at->base = x->arena_base + b->offset;
        } else if (at->where == WHERE_HEAP) {
            at->base = x->o.heap[b->group] + b->offset;
            x->memory.heaps += at->bytes;
        } else if (at->where == WHERE_INPUT) {
            at->base = inputs;
            inputs += aligned(at->bytes);
            x->memory.inputs += at->bytes;
        }
    }
}

/* Values inside of a loop that runs in parts: those of one op follow each other, and the next op
 * begins anew. The places were made in the order of the ops. */
static bool place_inside(struct exec *x)
{
    if (x->loop_bytes > 0)
        x->loop_base = exec_grow(x, x->loop_bytes);
    for (uint32_t i = x->p->n_buf; i < x->place.len; i++) {
        struct exec_place *at = &x->place.at[i];
        if (at->where == WHERE_LOOP)
            at->base = x->loop_base + at->inside;
        else if (at->where == WHERE_GROWN && at->bytes > 0)
            at->base = exec_grow(x, (size_t)at->bytes);
    }
    return true;
}

static int by_offset(const void *x, const void *y)
{
    const struct program_buf *const *a = x, *const *b = y;

    return ((*a)->offset > (*b)->offset) - ((*a)->offset < (*b)->offset);
}

/* Bytes of the arena that belong to some buffer at some time: the rest is lost to alignment. */
static int64_t planned_bytes(struct exec *x)
{
    const struct program *p = x->p;
    const struct program_buf **list = arena_array(&x->arena, const struct program_buf *,
                                                  (size_t)p->n_buf + 1);
    int64_t sum = 0, end = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->n_buf; i++)
        if (x->place.at[i].where == WHERE_ARENA && p->buf[i].offset >= 0)
            list[n++] = &p->buf[i];
    qsort(list, n, sizeof(const struct program_buf *), by_offset);
    for (uint32_t i = 0; i < n; i++) {
        int64_t from = list[i]->offset > end ? list[i]->offset : end;
        int64_t to = list[i]->offset + list[i]->bytes;
        sum += to > from ? to - from : 0;
        end = to > end ? to : end;
    }
    return sum;
}

bool exec_make_memory(struct exec *x)
{
    if (!get_base(x))
        return false;
    x->arena_base = x->base;
    memset(x->arena_base, 0, exec_room(x->p)); /* all pages are there before the first step */
    for (uint32_t i = 0; i < x->p->n_buf; i++)
        if (x->place.at[i].where == WHERE_HEAP &&
            (x->o.heap == NULL || x->o.heap[x->p->buf[i].group] == NULL))
            return exec_fail(x, "there is no symmetric memory for '%s'",
                             program_str(x->p, x->p->buf[i].name));
    x->memory.arena = x->p->arena_bytes;
    x->memory.planned = planned_bytes(x);
    place_buffers(x, x->arena_base + aligned(x->p->arena_bytes));
    return place_inside(x);
}

/* Of the room for values inside of loops, what some op writes: the rest stays untouched. */
static int64_t inside_bytes(const struct exec *x)
{
    int64_t most = 0;

    for (uint32_t i = 0; i < x->step.len; i++) {
        const struct exec_step *s = &x->step.at[i];
        int64_t bytes = s->what == STEP_LOOP ? (int64_t)loop_room(s->loop) : x->inside[s->op];
        most = bytes > most ? bytes : most;
    }
    return most;
}

bool exec_make_scratch(struct exec *x)
{
    size_t most = 0;

    x->memory.scratch += inside_bytes(x) - (int64_t)aligned((int64_t)x->loop_bytes);

    for (uint32_t i = 0; i < x->step.len; i++) {
        const struct exec_step *s = &x->step.at[i];
        size_t need = s->what == STEP_LOOP                    ? loop_scratch(s->loop)
                      : s->what == STEP_KERNEL && !s->dynamic ? kernel_scratch(&s->call)
                                                              : 0;
        most = need > most ? need : most;
    }
    if (most >= (size_t)KERNEL_MOST_BYTES)
        return exec_fail(x, "an operator needs more memory than can be had");
    if (most > 0)
        x->scratch = exec_grow(x, most);
    x->scratch_bytes = most;
    x->first_scratch = x->scratch;
    x->first_scratch_bytes = most;
    for (uint32_t i = 0; i < x->step.len; i++)
        x->step.at[i].call.scratch = x->scratch;
    for (struct exec_chunk *c = x->chunk; c != NULL; c = c->next)
        c->kept = c->used;
    return true;
}

void exec_end_memory(struct exec *x)
{
    free_chunks(x);
    if (x->mapped)
        munmap(x->base, x->base_bytes);
}

/* ---- which bytes a step writes ---- */

/* The arena is filled with one pattern, then with another: a byte that differs from both was
 * written. Inputs in the arena are filled by the caller in between, and count as written. */
static unsigned char pattern_of(unsigned round)
{
    return round == 0 ? 0xA5 : 0x5A;
}

void exec_count_begin(struct exec *x)
{
    if (x->pattern == NULL)
        x->pattern = arena_zeroed(&x->arena, (size_t)x->p->arena_bytes + 1);
    memset(x->arena_base, pattern_of(x->counted & 1), (size_t)x->p->arena_bytes);
}

void exec_count_end(struct exec *x)
{
    const unsigned char *at = (const unsigned char *)x->arena_base;
    int64_t n = x->p->arena_bytes;

    x->memory.touched = x->memory.highest = 0;
    for (int64_t i = 0; i < n; i++) {
        x->pattern[i] |= at[i] != pattern_of(x->counted & 1);
        x->memory.touched += x->pattern[i];
        if (x->pattern[i])
            x->memory.highest = i + 1;
    }
    x->counted++;
}

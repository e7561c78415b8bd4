#include "plan/arena_plan.h"
#include "plan/liveness.h"

static bool to_the_end(const struct program_buf *b)
{
    return (b->flags & (PROGRAM_OUTPUT | PROGRAM_UNWAITED)) != 0;
}

void memory_lives(const struct program *p, const uint32_t *order, struct memory_life *life)
{
    for (uint32_t i = 0; i < p->n_buf; i++)
        life[i] = p->buf[i].flags & PROGRAM_INPUT ? (struct memory_life){0, 0}
                                                  : (struct memory_life){1, 0};
    for (uint32_t step = 0; step < p->n_op; step++) {
        uint32_t op = order ? order[step] : step;

        for (uint32_t i = p->use_at[op]; i < p->use_at[op + 1]; i++) {
            struct memory_life *l = &life[p->use[i].buf];
            if (p->use[i].how == PROGRAM_WRITES)
                l->from = step;
            l->to = step;
        }
    }
    for (uint32_t i = 0; i < p->n_buf && p->n_op > 0; i++)
        if (to_the_end(&p->buf[i]))
            life[i].to = p->n_op - 1;
}

/* Does it count towards the peak? */
static bool counts(const struct program_buf *b)
{
    return !(b->flags & PROGRAM_INPUT) || (b->flags & PROGRAM_FREEABLE);
}

void memory_peak(const struct program *p, const uint32_t *order, const struct memory_life *life,
                 struct arena *scratch, struct memory_peak *out)
{
    size_t bytes = ((size_t)p->n_op + 1) * sizeof(int64_t);
    int64_t *alloc = arena_zeroed(scratch, bytes), *freed = arena_zeroed(scratch, bytes);
    struct live_walk w = {.order = order, .n = p->n_op, .alloc = alloc, .freed = freed};

    *out = (struct memory_peak){.live = arena_zeroed(scratch, bytes)};
    for (uint32_t i = 0; i < p->n_buf; i++) {
        const struct program_buf *b = &p->buf[i];

        if (!counts(b)) {
            out->resident += b->bytes;
            continue;
        }
        if (b->flags & PROGRAM_INPUT)
            w.input += b->bytes;
        if (life[i].from > life[i].to || p->n_op == 0)
            continue;
        if (!(b->flags & PROGRAM_INPUT))
            alloc[order ? order[life[i].from] : life[i].from] += b->bytes;
        freed[order ? order[life[i].to] : life[i].to] += b->bytes;
    }
    w.post_alloc = out->live;
    out->peak = live_walk(&w).bytes;
}

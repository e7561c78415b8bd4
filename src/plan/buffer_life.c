#include "plan/arena_plan.h"

static bool to_the_end(const struct program_buf *b)
{
    return (b->flags & (PROGRAM_OUTPUT | PROGRAM_UNWAITED)) != 0;
}

void memory_lives(const struct program *p, const uint32_t *order, struct life *life)
{
    for (uint32_t i = 0; i < p->n_buf; i++)
        life[i] = life_begin(p->buf[i].flags & PROGRAM_INPUT ? LIFE_START : LIFE_END);
    for (uint32_t step = 0; step < p->n_op; step++) {
        uint32_t op = order ? order[step] : step;

        for (uint32_t i = p->use_at[op]; i < p->use_at[op + 1]; i++) {
            struct life *l = &life[p->use[i].buf];
            if (p->use[i].how == PROGRAM_WRITES)
                *l = life_begin(step + 1);
            life_use(l, step + 1);
        }
    }
    for (uint32_t i = 0; i < p->n_buf; i++)
        if (to_the_end(&p->buf[i]))
            life_keep(&life[i]);
}

/* Does it count towards the peak? */
static bool counts(const struct program_buf *b)
{
    return !(b->flags & PROGRAM_INPUT) || (b->flags & PROGRAM_FREEABLE);
}

void memory_peak(const struct program *p, const uint32_t *order, const struct life *life,
                 struct arena *scratch, struct memory_peak *out)
{
    size_t bytes = ((size_t)p->n_op + 1) * sizeof(int64_t);
    int64_t *alloc = arena_zeroed(scratch, bytes), *freed = arena_zeroed(scratch, bytes);
    struct live_walk w = {.order = order, .n = p->n_op, .alloc = alloc, .freed = freed};

    *out = (struct memory_peak){.live = arena_zeroed(scratch, bytes)};
    for (uint32_t i = 0; i < p->n_buf; i++) {
        const struct program_buf *b = &p->buf[i];

        if (counts(b))
            live_enter(&w, life[i], b->bytes, b->bytes);
        else
            out->resident += b->bytes;
    }
    w.post_alloc = out->live;
    out->peak = live_walk(&w).bytes;
}

#include "plan/arena_plan.h"

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
    int64_t *delta = arena_zeroed(scratch, ((size_t)p->n_op + 1) * sizeof(*delta)), live = 0;

    *out = (struct memory_peak){.op = PROGRAM_NONE};
    for (uint32_t i = 0; i < p->n_buf; i++) {
        if (!counts(&p->buf[i])) {
            out->resident += p->buf[i].bytes;
            continue;
        }
        if (p->buf[i].flags & PROGRAM_INPUT)
            out->peak += p->buf[i].bytes; /* live before the first op */
        if (life[i].from <= life[i].to) {
            delta[life[i].from] += p->buf[i].bytes;
            delta[life[i].to + 1] -= p->buf[i].bytes;
        }
    }
    for (uint32_t step = 0; step < p->n_op; step++) {
        live += delta[step];
        if (live > out->peak || (step == 0 && live == out->peak)) {
            out->peak = live;
            out->op = order ? order[step] : step;
        }
    }
}

/* Numbers and times the comm buffers of a program so that every rank gets the same heap.
 *
 * Ranks must place a comm buffer at the same address, even if the rest of their programs differs.
 * So only the group's own collectives count as a clock: step 2k+1 is its k-th collective, step 2k
 * is what happens between that and the one before. Buffers are ordered by the first collective that
 * uses them, not by where they are made.
 */
#include "plan/symmetric_heap.h"

static void meet(struct memory_comm *c, uint32_t buf)
{
    if (c->met[buf])
        return;
    c->met[buf] = true;
    c->buf[c->n++] = buf;
}

static bool is_comm(const struct program_buf *b)
{
    return b->layout == PROGRAM_COMM && b->group != PROGRAM_NONE;
}

static void touch(const struct program *p, struct memory_comm *c, const struct program_op *op,
                  struct program_use u)
{
    const struct program_buf *b = &p->buf[u.buf];

    if (!is_comm(b))
        return;
    bool own = op->kind == PROGRAM_COLLECTIVE && op->group == b->group;
    uint32_t step = 2 * c->n_coll[b->group] + (own ? 1 : 0);
    if (own)
        meet(c, u.buf);
    if (u.how == PROGRAM_WRITES)
        c->life[u.buf] = life_begin(step);
    life_use(&c->life[u.buf], step);
}

void memory_comm_find(const struct program *p, const uint32_t *order, struct arena *a,
                      struct memory_comm *c)
{
    *c = (struct memory_comm){.n = 0};
    c->n_coll = arena_zeroed(a, ((size_t)p->n_group + 1) * sizeof(*c->n_coll));
    c->met = arena_zeroed(a, ((size_t)p->n_buf + 1) * sizeof(*c->met));
    c->buf = arena_array(a, uint32_t, (size_t)p->n_buf + 1);
    c->life = arena_zeroed(a, ((size_t)p->n_buf + 1) * sizeof(*c->life));
    for (uint32_t step = 0; step < p->n_op; step++) {
        const struct program_op *op = &p->op[order ? order[step] : step];
        uint32_t id = (uint32_t)(op - p->op);
        for (uint32_t i = p->use_at[id]; i < p->use_at[id + 1]; i++)
            touch(p, c, op, p->use[i]);
        if (op->kind == PROGRAM_COLLECTIVE && op->group != PROGRAM_NONE)
            c->n_coll[op->group]++;
    }
    for (uint32_t i = 0; i < p->n_buf; i++) {
        const struct program_buf *b = &p->buf[i];
        if (!is_comm(b))
            continue;
        meet(c, i); /* no collective uses it */
        if (b->flags & (PROGRAM_OUTPUT | PROGRAM_UNWAITED))
            life_keep(&c->life[i]);
    }
}

/* ---- the digest that ranks compare ---- */

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
}

static uint64_t mix_text(uint64_t h, const char *s)
{
    return mix(h, hash_bytes(s, strlen(s)));
}

uint64_t memory_comm_digest(const struct program *p, const struct memory_comm *c)
{
    uint64_t h = 1;

    for (uint32_t g = 0; g < p->n_group; g++)
        if (p->heap[g] > 0)
            h = mix(mix_text(h, program_str(p, p->group[g].name)), (uint64_t)p->heap[g]);
    for (uint32_t i = 0; i < c->n; i++) {
        const struct program_buf *b = &p->buf[c->buf[i]];
        h = mix_text(h, program_str(p, p->group[b->group].name));
        h = mix(mix(h, (uint64_t)b->offset), (uint64_t)b->bytes);
        h = mix_text(h, program_str(p, b->type));
    }
    return h;
}

/* Creating and freeing programs, and the dependences that follow from the uses of buffers. */
#include "lower/program.h"

const char *const program_kind_name[PROGRAM_KIND_END] = {"compute", "fused",      "gemm",
                                                         "copy",    "collective", "wait"};

struct program *program_new(const tuck_allocator *alloc)
{
    struct mem m;

    mem_init(&m, alloc);
    struct program *p = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*p));
    if (p == NULL)
        return NULL;
    *p = (struct program){.mem = m, .peak = -1, .arena_bytes = -1, .resident = -1};
    arena_init(&p->arena, &p->mem);
    strtab_init(&p->str, &p->mem);
    return p;
}

void program_free(struct program *p)
{
    if (p == NULL)
        return;
    struct mem m = p->mem;
    strtab_destroy(&p->str);
    arena_destroy(&p->arena);
    mem_free(&m, p, sizeof(*p));
}

uint32_t program_overflow(const struct program_buf *buf, uint32_t n_buf)
{
    const int64_t most = INT64_MAX / 4; /* leaves room for rounding and for gaps between buffers */
    int64_t sum = 0;
    uint32_t i = 0;

    while (i < n_buf && buf[i].bytes <= most - sum - 4096) {
        sum += buf[i].bytes + 64;
        i++;
    }
    return i;
}

/* ---- dependences ---- */

struct reader {
    uint32_t op, next; /* next: entry of the same buffer, 0 ends the list */
};

struct derive {
    struct arena *a;
    uint32_t *writer;          /* by buffer: the op that wrote it last, or PROGRAM_NONE */
    uint32_t *readers;         /* by buffer: entry of the ops that read it since; 0 if none */
    uint32_t *slot, *slot_of;  /* by op: where the current op's dependence on it is stored */
    VEC(struct reader) reader; /* [0] unused */
    VEC(struct program_dep) dep;
    uint32_t op;
};

/* Read after write is stronger than write after read, which is stronger than order alone. */
static void depend(struct derive *d, uint32_t on, uint32_t buf, unsigned flags)
{
    if (on == PROGRAM_NONE || on == d->op)
        return;
    if (d->slot_of[on] != d->op) {
        d->slot_of[on] = d->op;
        d->slot[on] = d->dep.len;
        vec_push_in(d->a, &d->dep, ((struct program_dep){on, buf, (uint8_t)flags}));
        return;
    }
    struct program_dep *old = &d->dep.at[d->slot[on]];
    if (flags < old->flags) {
        old->flags = (uint8_t)flags;
        old->buf = buf;
    }
}

static void use_buffer(struct derive *d, struct program_use u)
{
    if (u.how == PROGRAM_READS) {
        depend(d, d->writer[u.buf], u.buf, 0);
        vec_push_in(d->a, &d->reader, ((struct reader){d->op, d->readers[u.buf]}));
        d->readers[u.buf] = d->reader.len - 1;
        return;
    }
    for (uint32_t i = d->readers[u.buf]; i != 0; i = d->reader.at[i].next)
        depend(d, d->reader.at[i].op, u.buf, PROGRAM_WEAK);
    depend(d, d->writer[u.buf], u.buf, u.how == PROGRAM_MUTATES ? 0 : PROGRAM_WEAK);
    d->writer[u.buf] = d->op;
    d->readers[u.buf] = 0;
}

void program_derive(struct program *p, const uint32_t *order_at, const struct program_dep *order,
                    struct arena *a)
{
    struct derive d = {.a = a};

    d.writer = arena_array(a, uint32_t, p->n_buf);
    memset(d.writer, 0xFF, p->n_buf * sizeof(*d.writer));
    d.readers = arena_zeroed(a, p->n_buf * sizeof(*d.readers));
    d.slot = arena_array(a, uint32_t, p->n_op);
    d.slot_of = arena_array(a, uint32_t, p->n_op);
    memset(d.slot_of, 0xFF, p->n_op * sizeof(*d.slot_of));
    vec_reserve_in(a, &d.dep, (size_t)p->use_at[p->n_op] + (order ? order_at[p->n_op] : 0) / 2);
    vec_reserve_in(a, &d.reader, (size_t)p->use_at[p->n_op] + 1);
    vec_push_in(a, &d.reader, ((struct reader){0, 0}));
    p->dep_at = arena_array(a, uint32_t, (size_t)p->n_op + 1);
    for (d.op = 0; d.op < p->n_op; d.op++) {
        p->dep_at[d.op] = d.dep.len;
        for (uint32_t i = p->use_at[d.op]; i < p->use_at[d.op + 1]; i++)
            use_buffer(&d, p->use[i]);
        for (uint32_t i = order ? order_at[d.op] : 0; order && i < order_at[d.op + 1]; i++)
            depend(&d, order[i].op, order[i].buf, order[i].flags);
    }
    p->dep_at[p->n_op] = d.dep.len;
    p->dep = d.dep.at;
}

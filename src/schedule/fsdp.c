/* enforce_comm_ordering_for_fsdp: what belongs to one all-gather of parameters, or to one reduce-scatter of
 * gradients, runs as one block, and its wait with what follows from it as another; the wait of one comes
 * before the start of the next. Fewer of them are then in flight at once. */
#include <stdlib.h>

#include "schedule/edges.h"
#include "schedule/step.h"

enum role { OTHER, COPY_IN, COPY_OUT, CHUNK_CAT };

struct block {
    uint32_t first, wait, end; /* members [first, wait) start it, [wait, end) end it */
    bool reduce;
};

struct fsdp {
    struct schedule *s;
    const struct problem *p;
    struct arena *a;
    struct edges e;
    uint32_t *at;
    uint8_t *role;
    bool *fed;       /* [op] a copy-in is among what it needs, however far */
    uint32_t *owner; /* [op] 1 + the half block it belongs to: 2 * block, or + 1 for its wait */
    uint32_t *seen, serial;
    uint32_t *stack, *found, n_found;
    VEC(uint32_t) member;
    VEC(struct block) block;
    uint32_t skipped;
};

static bool says(const struct fsdp *f, uint32_t x, const char *word)
{
    return f->p->kernel[x] != 0 && strstr(str_text(&f->p->str, f->p->kernel[x]), word) != NULL;
}

static bool gathers(const struct fsdp *f, uint32_t x)
{
    return problem_is_coll(f->p, x) &&
           (says(f, x, "all_gather_into_tensor") ||
            strcmp(str_text(&f->p->str, f->p->coll[x]), "all_gather") == 0);
}

static void find_roles(struct fsdp *f)
{
    for (uint32_t i = 0; i < f->p->n_op; i++) {
        uint32_t x = f->s->order[i];
        f->role[x] = says(f, x, "all_gather_copy_in")      ? COPY_IN
                     : says(f, x, "split_with_sizes_copy") ? COPY_OUT
                     : says(f, x, "chunk_cat")             ? CHUNK_CAT
                                                           : OTHER;
        f->fed[x] = f->role[x] == COPY_IN;
        for (uint32_t k = f->e.need_at[x]; k < f->e.need_at[x + 1]; k++)
            f->fed[x] |= f->fed[f->e.need[k]];
    }
}

/* Everything that x needs, or everything that needs it; the latter only through waits, copies and what
 * costs nothing, for a gather. */
static void collect(struct fsdp *f, uint32_t x, bool users, bool all)
{
    uint32_t depth = 0;

    f->stack[depth++] = x;
    if (f->seen[x] != f->serial) {
        f->seen[x] = f->serial;
        f->found[f->n_found++] = x;
    }
    while (depth > 0) {
        uint32_t y = f->stack[--depth];
        const uint32_t *at = users ? f->e.user_at : f->e.need_at,
                       *list = users ? f->e.user : f->e.need;
        for (uint32_t i = at[y]; i < at[y + 1]; i++) {
            uint32_t z = list[i];
            bool through = all || problem_is_wait(f->p, z) || gathers(f, z) ||
                           f->role[z] == COPY_OUT || f->s->runtime[z] == 0;
            if (f->seen[z] == f->serial || !through)
                continue;
            f->seen[z] = f->serial;
            f->found[f->n_found++] = z;
            f->stack[depth++] = z;
        }
    }
}

struct placed {
    uint32_t at, op;
};

static int by_place(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;

    return x->at < y->at ? -1 : x->at > y->at;
}

/* The ops found, in order, cut where the next block begins, and split at the wait. */
static void make_block(struct fsdp *f, bool reduce)
{
    struct arena_mark mark = arena_mark(f->a);
    struct placed *row = arena_array(f->a, struct placed, f->n_found);
    uint32_t n = f->n_found, wait = PROBLEM_NONE, copies = 0;
    bool free = true;

    for (uint32_t i = 0; i < n; i++)
        row[i] = (struct placed){f->at[f->found[i]], f->found[i]};
    qsort(row, n, sizeof(*row), by_place);
    for (uint32_t i = 0; i < n; i++) {
        copies += f->role[row[i].op] == (reduce ? CHUNK_CAT : COPY_OUT);
        if (copies > 1) {
            n = i;
            break;
        }
    }
    for (uint32_t i = 1; i < n && wait == PROBLEM_NONE; i++)
        if (problem_is_wait(f->p, row[i].op))
            wait = i;
    for (uint32_t i = 0; i < n; i++)
        free &= f->owner[row[i].op] == 0;
    if (wait == PROBLEM_NONE || !free) {
        f->skipped++;
    } else {
        struct block b = {f->member.len, f->member.len + wait, f->member.len + n, reduce};
        for (uint32_t i = 0; i < n; i++) {
            vec_push(&f->s->mem, &f->member, row[i].op);
            f->owner[row[i].op] = 2 * f->block.len + (i >= wait) + 1;
        }
        vec_push(&f->s->mem, &f->block, b);
    }
    arena_release(f->a, mark);
}

static void find_blocks(struct fsdp *f)
{
    for (uint32_t i = 0; i < f->p->n_op; i++) {
        uint32_t x = f->s->order[i];
        bool gather = gathers(f, x) && f->fed[x];

        if (!gather && f->role[x] != CHUNK_CAT)
            continue;
        f->serial++;
        f->n_found = 0;
        if (gather)
            collect(f, x, false, true);
        collect(f, x, true, !gather);
        make_block(f, !gather);
    }
}

/* A dependence of the first op of each start on all that the wait before it makes. */
static void chain(struct fsdp *f)
{
    for (int reduce = 0; reduce < 2; reduce++) {
        const struct block *previous = NULL;
        for (uint32_t i = 0; i < f->block.len; i++) {
            const struct block *b = &f->block.at[i];
            if (b->reduce != (bool)reduce)
                continue;
            for (uint32_t m = previous ? previous->wait : 0; previous && m < previous->end; m++) {
                uint32_t x = f->member.at[m];
                for (uint32_t o = f->p->out_at[x]; o < f->p->out_at[x + 1]; o++)
                    vec_push(&f->s->mem, &f->s->dep,
                             ((struct schedule_dep){f->member.at[b->first], o}));
            }
            previous = b;
        }
    }
}

/* Each half block where its first op stands. */
static void lay_out(struct fsdp *f, uint32_t *out)
{
    bool *laid = arena_zeroed(f->a, 2 * (size_t)f->block.len);
    uint32_t n = 0;

    for (uint32_t i = 0; i < f->p->n_op; i++) {
        uint32_t x = f->s->order[i], half = f->owner[x];
        if (half == 0) {
            out[n++] = x;
            continue;
        }
        const struct block *b = &f->block.at[(half - 1) / 2];
        bool ends = (half - 1) & 1;
        for (uint32_t m = ends ? b->wait : b->first;
             !laid[half - 1] && m < (ends ? b->end : b->wait); m++)
            out[n++] = f->member.at[m];
        laid[half - 1] = true;
    }
}

static void do_blocks(void *ctx)
{
    struct fsdp *f = ctx;
    uint32_t n = f->p->n_op;
    size_t bytes = (size_t)n * sizeof(uint32_t);

    edges_build(f->s, EDGE_REAL, f->a, &f->e);
    f->at = arena_alloc(f->a, bytes);
    f->role = arena_zeroed(f->a, n);
    f->fed = arena_zeroed(f->a, n);
    f->owner = arena_zeroed(f->a, bytes);
    f->seen = arena_zeroed(f->a, bytes);
    f->stack = arena_alloc(f->a, bytes);
    f->found = arena_alloc(f->a, bytes);
    for (uint32_t i = 0; i < n; i++)
        f->at[f->s->order[i]] = i;
    find_roles(f);
    find_blocks(f);
    if (f->block.len == 0) {
        step_note(f->s, "no all-gather with a copy-in, and no chunk_cat");
        return;
    }
    uint32_t *out = arena_alloc(f->a, bytes);
    lay_out(f, out);
    if (!schedule_is_valid(f->p, out, false, f->a)) {
        step_note(f->s, "kept: blocks that run as one would need each other");
        return;
    }
    chain(f);
    memcpy(f->s->order, out, bytes);
    if (f->skipped > 0)
        step_note(f->s, "some were left as they are: no wait, or shared with another block");
}

void schedule_enforce_fsdp(struct schedule *s)
{
    struct fsdp f = {.s = s, .p = s->p, .a = &s->arena};
    bool ok = mem_guard(&s->mem, do_blocks, &f);

    vec_free(&s->mem, &f.member);
    vec_free(&s->mem, &f.block);
    if (!ok)
        mem_exhausted(&s->mem);
}

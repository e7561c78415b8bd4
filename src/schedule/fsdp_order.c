/* enforce_comm_ordering_for_fsdp: what belongs to one all-gather of parameters, or to one
 * reduce-scatter of gradients, runs as one block, and its wait with what follows as another; the
 * wait of one comes before the start of the next. This keeps fewer of them in flight at once. */
#include <stdlib.h>

#include "schedule/edges.h"
#include "schedule/step.h"

enum role { OTHER, COPY_IN, COPY_OUT, CHUNK_CAT };

struct block {
    uint32_t first, wait, end; /* members [first, wait) start it, [wait, end) end it */
    uint32_t previous;         /* 1 + the block of the same kind that must have ended; 0 if none */
    uint32_t added, n_added;   /* the added dependences for that */
};

struct fsdp {
    struct schedule *s;
    const struct problem *p;
    struct arena *a;
    struct edges e;
    uint32_t *at;
    uint8_t *role;
    bool *fed;       /* [op] it needs a copy-in, directly or indirectly */
    uint32_t *owner; /* [op] 1 + the half block it belongs to: 2 * block, plus 1 for its wait */
    uint32_t *seen, serial;
    uint32_t *stack, *found, n_found;
    bool shared;      /* an op that was found belongs to another block */
    uint32_t last[2]; /* 1 + the last block of gathers and of reductions */
    VEC(uint32_t) member;
    VEC(struct block) block;
    uint32_t skipped;
};

static bool says(const struct fsdp *f, uint32_t x, const char *word)
{
    return f->p->kernel[x] != 0 && strstr(str_text(&f->p->str, f->p->kernel[x]), word) != NULL;
}

/* PyTorch only looks for those that write into the buffer of their copy-in. */
static bool gathers(const struct fsdp *f, uint32_t x)
{
    if (!problem_is_coll(f->p, x))
        return false;
    if (f->s->opt.torch)
        return says(f, x, "all_gather_into_tensor_out");
    return says(f, x, "all_gather_into_tensor") || f->p->coll[x] == TUCK_ALL_GATHER;
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

/* Collects everything that x needs, or everything that needs it; for a gather only through waits,
 * copies and ops that cost nothing. Stops if it reaches another block. */
static void collect(struct fsdp *f, uint32_t x, bool users, bool all)
{
    uint32_t depth = 0;

    f->stack[depth++] = x;
    if (f->seen[x] != f->serial) {
        f->seen[x] = f->serial;
        f->found[f->n_found++] = x;
    }
    while (depth > 0 && !f->shared) {
        uint32_t y = f->stack[--depth];
        const uint32_t *at = users ? f->e.user_at : f->e.need_at,
                       *list = users ? f->e.user : f->e.need;
        for (uint32_t i = at[y]; i < at[y + 1]; i++) {
            uint32_t z = list[i];
            bool through = all || problem_is_wait(f->p, z) || gathers(f, z) ||
                           f->role[z] == COPY_OUT || f->s->runtime[z] == 0;
            if (f->seen[z] == f->serial || !through)
                continue;
            f->shared |= f->owner[z] != 0;
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

/* Sorts the ops that were found, cuts them where the next block begins, and splits them at the
 * wait. */
static void make_block(struct fsdp *f, bool reduce)
{
    struct arena_mark mark = arena_mark(f->a);
    struct placed *row = arena_array(f->a, struct placed, f->n_found);
    uint32_t n = f->n_found, wait = PROBLEM_NONE, copies = 0;

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
    if (wait == PROBLEM_NONE) {
        f->skipped++;
    } else {
        struct block b = {.first = f->member.len,
                          .wait = f->member.len + wait,
                          .end = f->member.len + n,
                          .previous = f->last[reduce]};
        for (uint32_t i = 0; i < n; i++) {
            vec_push(&f->s->mem, &f->member, row[i].op);
            f->owner[row[i].op] = 2 * f->block.len + (i >= wait) + 1;
        }
        vec_push(&f->s->mem, &f->block, b);
        f->last[reduce] = f->block.len;
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
        f->shared = f->owner[x] != 0;
        if (gather)
            collect(f, x, false, true);
        collect(f, x, true, !gather);
        if (f->shared)
            f->skipped++;
        else
            make_block(f, !gather);
    }
}

/* Makes the first op of each start depend on everything that the previous wait makes. */
static void chain(struct fsdp *f)
{
    for (uint32_t i = 0; i < f->block.len; i++) {
        struct block *b = &f->block.at[i];
        const struct block *previous = b->previous ? &f->block.at[b->previous - 1] : NULL;

        b->added = f->s->dep.len;
        for (uint32_t m = previous ? previous->wait : 0; previous && m < previous->end; m++) {
            uint32_t x = f->member.at[m];
            for (uint32_t o = f->p->out_at[x]; o < f->p->out_at[x + 1]; o++)
                vec_push(&f->s->mem, &f->s->dep,
                         ((struct schedule_dep){f->member.at[b->first], o}));
        }
        b->n_added = f->s->dep.len - b->added;
    }
}

/* ---- the order: units, which are half blocks or single ops, each after the units it needs ---- */

struct need {
    uint32_t unit, at;
    const char *name; /* of the buffer, or of the op itself */
};

struct visit {
    uint32_t unit, next, n;
    const struct need *need;
};

/* Units are numbered: first single ops, then half blocks. */
static uint32_t unit_of(const struct fsdp *f, uint32_t x)
{
    return f->owner[x] ? f->p->n_op + f->owner[x] - 1 : x;
}

static const struct block *block_of(const struct fsdp *f, uint32_t unit)
{
    return unit < f->p->n_op ? NULL : &f->block.at[(unit - f->p->n_op) / 2];
}

static bool ends_block(const struct fsdp *f, uint32_t unit)
{
    return (unit - f->p->n_op) & 1;
}

/* The ops of a half block, or the single op. */
static void members_of(const struct fsdp *f, uint32_t unit, const uint32_t **first, uint32_t *n)
{
    const struct block *b = block_of(f, unit);
    bool ends = ends_block(f, unit);

    if (b == NULL)
        return;
    *first = &f->member.at[ends ? b->wait : b->first];
    *n = ends ? b->end - b->wait : b->wait - b->first;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct need *)a)->name, ((const struct need *)b)->name);
}

static int by_old_place(const void *a, const void *b)
{
    const struct need *x = a, *y = b;

    return x->at < y->at ? -1 : x->at > y->at;
}

/* What a unit needs, in the order in which it is visited: PyTorch sorts by name. */
static struct visit visit_of(struct fsdp *f, uint32_t unit)
{
    const struct problem *p = f->p;
    const uint32_t *member = &unit;
    const struct block *b = block_of(f, unit);
    bool starts = b != NULL && !ends_block(f, unit);
    struct visit v = {.unit = unit};
    uint32_t n = 1, room = starts ? b->n_added : 0;

    members_of(f, unit, &member, &n);
    for (uint32_t i = 0; i < n; i++)
        room += p->dep_at[member[i] + 1] - p->dep_at[member[i]];
    struct need *need = arena_array(f->a, struct need, room);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = member[i];
        for (uint32_t d = p->dep_at[x]; d < p->dep_at[x + 1]; d++) {
            uint32_t y = problem_dep_op(p, d);
            bool on_op = p->dep_flags[d] & PROBLEM_ON_OP;
            if ((p->dep_flags[d] & PROBLEM_FAKE) || y == PROBLEM_NONE || unit_of(f, y) == unit)
                continue;
            need[v.n++] = (struct need){unit_of(f, y), f->at[y],
                                        on_op ? problem_name(p, y)
                                              : problem_buf_name(p, p->dep[d])};
        }
    }
    for (uint32_t d = 0; starts && d < b->n_added; d++) {
        uint32_t buf = f->s->dep.at[b->added + d].buf, y = p->producer[buf];
        need[v.n++] = (struct need){unit_of(f, y), f->at[y], problem_buf_name(p, buf)};
    }
    qsort(need, v.n, sizeof(*need), f->s->opt.torch ? by_name : by_old_place);
    v.need = need;
    return v;
}

/* Depth first, in the order of the list. False: units need each other. */
static bool lay_out(struct fsdp *f, uint32_t *out)
{
    enum { NEW, OPEN, DONE };
    uint32_t n_unit = f->p->n_op + 2 * f->block.len, n = 0, depth = 0;
    uint8_t *state = arena_zeroed(f->a, n_unit);
    struct visit *stack = arena_array(f->a, struct visit, n_unit);

    for (uint32_t i = 0; i < f->p->n_op; i++) {
        uint32_t unit = unit_of(f, f->s->order[i]);
        if (state[unit] != NEW)
            continue;
        state[unit] = OPEN;
        stack[depth++] = visit_of(f, unit);
        while (depth > 0) {
            struct visit *v = &stack[depth - 1];
            if (v->next == v->n) {
                const uint32_t *member = &v->unit;
                uint32_t k = 1;
                members_of(f, v->unit, &member, &k);
                memcpy(out + n, member, k * sizeof(*out));
                n += k;
                state[v->unit] = DONE;
                depth--;
                continue;
            }
            unit = v->need[v->next++].unit;
            if (state[unit] == OPEN)
                return false;
            if (state[unit] == NEW) {
                state[unit] = OPEN;
                stack[depth++] = visit_of(f, unit);
            }
        }
    }
    return true;
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
    uint32_t n_dep = f->s->dep.len;
    chain(f);
    if (!lay_out(f, out)) {
        f->s->dep.len = n_dep;
        step_note(f->s, "kept: blocks that run as one would need each other");
        return;
    }
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

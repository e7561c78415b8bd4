/* Turns what a caller says about ops and buffers into the arrays of a problem. */
#include <stdlib.h>

#include "plan/problem_rows.h"

/* Sums of sizes and runtimes stay below this, so that differences and budgets fit, too. */
#define LARGEST (INT64_MAX / 8)

/* ---- the builder ---- */

bool problem_begin(struct problem_builder *b, const tuck_allocator *alloc, const char *source)
{
    struct mem m;

    *b = (struct problem_builder){.p = NULL};
    mem_init(&m, alloc);
    struct problem *p = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*p));
    if (p == NULL)
        return false;
    *p = (struct problem){.mem = m, .unit_ps = PS_PER_NS};
    arena_init(&p->arena, &p->mem);
    strtab_init(&p->str, &p->mem);
    b->p = p;
    b->source = source;
    return true;
}

static void drop_rows(struct problem_builder *b)
{
    struct mem *m = &b->p->mem;

    vec_free(m, &b->op);
    vec_free(m, &b->buf);
    vec_free(m, &b->dep);
    vec_free(m, &b->dep_flags);
    vec_free(m, &b->member);
    vec_free(m, &b->group_name);
    vec_free(m, &b->succ);
    vec_free(m, &b->order);
    vec_free(m, &b->graph_input);
    vec_free(m, &b->graph_output);
    vec_free(m, &b->mutation);
}

void problem_abandon(struct problem_builder *b)
{
    if (b->p == NULL)
        return;
    drop_rows(b);
    problem_free(b->p);
    b->p = NULL;
}

void problem_free(struct problem *p)
{
    if (p == NULL)
        return;
    strtab_destroy(&p->str);
    arena_destroy(&p->arena);
    struct mem m = p->mem;
    mem_free(&m, p, sizeof(*p));
}

static str_id intern(struct problem_builder *b, const char *s)
{
    return s ? str_intern(&b->p->str, s, strlen(s)) : 0;
}

void problem_expect(struct problem_builder *b, uint32_t n_op, uint32_t n_buf, uint32_t n_dep,
                    uint32_t n_kept)
{
    struct mem *m = &b->p->mem;

    vec_reserve(m, &b->op, n_op);
    vec_reserve(m, &b->buf, n_buf);
    vec_reserve(m, &b->dep, n_dep);
    vec_reserve(m, &b->dep_flags, n_dep);
    vec_reserve(m, &b->succ, n_kept);
}

static uint32_t add_buf(struct problem_builder *b, str_id name, int64_t size_alloc,
                        int64_t size_free, uint32_t producer, unsigned flags)
{
    vec_push(&b->p->mem, &b->buf,
             ((struct problem_buf_row){name, size_alloc, size_free, producer, (uint8_t)flags}));
    return b->buf.len - 1;
}

uint32_t problem_input(struct problem_builder *b, const char *name, int64_t bytes, unsigned flags)
{
    return problem_input_named(b, intern(b, name), bytes, flags);
}

uint32_t problem_input_named(struct problem_builder *b, str_id name, int64_t bytes, unsigned flags)
{
    int64_t size = flags & PROBLEM_FREEABLE ? bytes : 0;

    b->n_input++;
    return add_buf(b, name, size, size, PROBLEM_NONE, PROBLEM_INPUT | flags);
}

/* A linear search is enough: groups are few. */
static uint32_t group_id(struct problem_builder *b, str_id id)
{
    if (id == 0)
        return PROBLEM_NONE;
    struct str *s = &b->p->str.all.at[id];
    if (s->tag == 0) {
        vec_push(&b->p->mem, &b->group_name, id);
        s->tag = b->group_name.len;
    }
    return s->tag - 1;
}

uint32_t problem_op(struct problem_builder *b, const struct problem_op *op)
{
    struct problem_names names = {.name = intern(b, op->name),
                                  .group = intern(b, op->group),
                                  .coll = intern(b, op->coll),
                                  .kernel = intern(b, op->kernel)};

    return problem_op_named(b, op, &names);
}

uint32_t problem_op_named(struct problem_builder *b, const struct problem_op *op,
                          const struct problem_names *names)
{
    struct problem_op_row row = {
        .name = names->name,
        .coll = names->coll,
        .kernel = names->kernel,
        .runtime = op->runtime,
        .bytes = op->bytes > 0 ? op->bytes : -1,
        .group = group_id(b, names->group),
        .dep = b->dep.len,
        .member = b->member.len,
        .out = b->buf.len - b->n_input,
        .kind = (uint8_t)op->kind,
        .is_async = op->is_async,
    };

    vec_push(&b->p->mem, &b->op, row);
    return b->op.len - 1;
}

void problem_fuses(struct problem_builder *b, const char *member)
{
    problem_fuses_named(b, intern(b, member));
}

void problem_fuses_named(struct problem_builder *b, str_id member)
{
    vec_push(&b->p->mem, &b->member, member);
}

uint32_t problem_makes(struct problem_builder *b, const char *name, int64_t size_alloc,
                       int64_t size_free)
{
    return problem_makes_named(b, intern(b, name), size_alloc, size_free);
}

uint32_t problem_makes_named(struct problem_builder *b, str_id name, int64_t size_alloc,
                             int64_t size_free)
{
    return add_buf(b, name, size_alloc, size_free, b->op.len - 1, 0);
}

static void needs(struct problem_builder *b, uint32_t target, unsigned flags)
{
    vec_push(&b->p->mem, &b->dep, target);
    vec_push(&b->p->mem, &b->dep_flags, (uint8_t)flags);
}

void problem_needs(struct problem_builder *b, uint32_t buf, unsigned flags)
{
    needs(b, buf, flags & ~(unsigned)PROBLEM_ON_OP);
}

void problem_needs_op(struct problem_builder *b, uint32_t op, unsigned flags)
{
    needs(b, op, flags | PROBLEM_ON_OP);
}

void problem_reads(struct problem_builder *b, uint32_t buf)
{
    needs(b, buf, 0);
    problem_keeps(b, buf, b->op.len - 1);
}

void problem_keeps(struct problem_builder *b, uint32_t buf, uint32_t op)
{
    vec_push(&b->p->mem, &b->succ, ((struct problem_pair){buf, op}));
}

void problem_follows(struct problem_builder *b, uint32_t buf, uint32_t op)
{
    vec_push(&b->p->mem, &b->order, ((struct problem_pair){buf, op}));
}

void problem_returns(struct problem_builder *b, uint32_t buf)
{
    b->buf.at[buf].flags |= PROBLEM_OUTPUT;
}

/* ---- checks ---- */

static uint32_t target_op(const struct problem_builder *b, uint32_t d)
{
    return b->dep_flags.at[d] & PROBLEM_ON_OP ? b->dep.at[d] : b->buf.at[b->dep.at[d]].producer;
}

static uint32_t dep_end(const struct problem_builder *b, uint32_t op)
{
    return op + 1 < b->op.len ? b->op.at[op + 1].dep : b->dep.len;
}

static uint32_t member_end(const struct problem_builder *b, uint32_t op)
{
    return op + 1 < b->op.len ? b->op.at[op + 1].member : b->member.len;
}

/* Does `from` need `to`, directly or indirectly? */
static bool needs_indirectly(struct problem_builder *b, uint32_t from, uint32_t to)
{
    VEC(uint32_t) todo = {0};
    struct arena_mark mark = arena_mark(&b->p->arena);
    bool *seen = arena_zeroed(&b->p->arena, b->op.len), found = false;

    /* In the arena rather than a vector: nothing to free if memory runs out. */
    todo.at = arena_array(&b->p->arena, uint32_t, b->op.len);
    todo.at[todo.len++] = from;
    seen[from] = true;
    while (todo.len > 0 && !found) {
        uint32_t x = todo.at[--todo.len];
        for (uint32_t d = b->op.at[x].dep; d < dep_end(b, x); d++) {
            uint32_t y = target_op(b, d);
            found |= y == to;
            if (y != PROBLEM_NONE && !seen[y]) {
                seen[y] = true;
                todo.at[todo.len++] = y;
            }
        }
    }
    arena_release(&b->p->arena, mark);
    return found;
}

/* Names are marked in the string table, so that finding a duplicate is a lookup. */
static bool take_op_name(struct problem_builder *b, str_id name, uint32_t op,
                         struct problem_fault *f)
{
    struct str *s = &b->p->str.all.at[name];

    if (s->owner != 0 && s->owner != op + 1) {
        *f = (struct problem_fault){
            .kind = PROBLEM_NAME_TWICE, .op = op, .other = s->owner - 1, .name = name};
        return false;
    }
    s->owner = op + 1;
    return true;
}

static struct problem_fault at_buf(const struct problem_builder *b, enum problem_fault_kind kind,
                                   uint32_t buf)
{
    uint32_t op = b->buf.at[buf].producer;

    return (struct problem_fault){.kind = kind,
                                  .buf = buf,
                                  .other = op,
                                  .item = op == PROBLEM_NONE ? buf
                                                             : buf - b->n_input - b->op.at[op].out};
}

static struct problem_fault check_names(struct problem_builder *b)
{
    struct problem_fault f = {.kind = PROBLEM_FINE};

    for (uint32_t i = 0; i < b->op.len; i++)
        if (!take_op_name(b, b->op.at[i].name, i, &f))
            return f;
    for (uint32_t i = 0; i < b->op.len; i++)
        for (uint32_t k = b->op.at[i].member; k < member_end(b, i); k++)
            if (!take_op_name(b, b->member.at[k], i, &f))
                return f;
    for (uint32_t i = 0; i < b->buf.len; i++) {
        struct str *s = &b->p->str.all.at[b->buf.at[i].name];
        if (i >= b->n_input && b->buf.at[i].producer == PROBLEM_NONE)
            return (struct problem_fault){.kind = PROBLEM_LATE_INPUT, .buf = i};
        if (s->node != 0 && s->node != i + 1)
            return at_buf(b, PROBLEM_BUF_TWICE, i);
        s->node = i + 1;
    }
    return f;
}

static struct problem_fault check_order(struct problem_builder *b)
{
    for (uint32_t i = 0; i < b->op.len; i++)
        for (uint32_t d = b->op.at[i].dep; d < dep_end(b, i); d++) {
            uint32_t x = target_op(b, d);
            if (x == PROBLEM_NONE || x < i)
                continue;
            bool cycle = x == i || needs_indirectly(b, x, i);
            return (struct problem_fault){.kind = cycle ? PROBLEM_CYCLE : PROBLEM_LATE,
                                          .op = i,
                                          .other = x,
                                          .item = d - b->op.at[i].dep};
        }
    for (uint32_t i = 0; i < b->succ.len; i++) {
        uint32_t op = b->succ.at[i].op, buf = b->succ.at[i].buf, producer = b->buf.at[buf].producer;
        if (producer != PROBLEM_NONE && op < producer)
            return at_buf(b, PROBLEM_EARLY_USE, buf);
    }
    return (struct problem_fault){.kind = PROBLEM_FINE};
}

static struct problem_fault check_sums(struct problem_builder *b)
{
    int64_t alloc = 0, freed = 0;
    double ps = 0;

    for (uint32_t i = 0; i < b->buf.len; i++)
        if (!size_add(alloc, b->buf.at[i].size_alloc, &alloc) || alloc > LARGEST ||
            !size_add(freed, b->buf.at[i].size_free, &freed) || freed > LARGEST)
            return at_buf(b, PROBLEM_BYTES, i);
    for (uint32_t i = 0; i < b->op.len; i++) {
        ps += b->op.at[i].runtime * b->p->unit_ps + 1;
        if (!(ps < (double)LARGEST))
            return (struct problem_fault){.kind = PROBLEM_TIME, .op = i};
    }
    return (struct problem_fault){.kind = PROBLEM_FINE};
}

struct problem_fault problem_check(struct problem_builder *b)
{
    struct problem_fault f = check_names(b);

    if (f.kind == PROBLEM_FINE)
        f = check_order(b);
    return f.kind == PROBLEM_FINE ? check_sums(b) : f;
}

void problem_fault_text(const struct problem_builder *b, const struct problem_fault *f,
                        struct buf *out)
{
    const struct strtab *t = &b->p->str;
    const char *op = f->op < b->op.len ? str_text(t, b->op.at[f->op].name) : "";
    const char *buf = f->buf < b->buf.len ? str_text(t, b->buf.at[f->buf].name) : "";
    const char *other = f->other < b->op.len ? str_text(t, b->op.at[f->other].name) : "";

    switch (f->kind) {
    case PROBLEM_FINE: break;
    case PROBLEM_NAME_TWICE:
        buf_printf(out, "'%s' is a name of op number %u already", str_text(t, f->name), f->other);
        break;
    case PROBLEM_LATE_INPUT: buf_printf(out, "input '%s' was given after an op", buf); break;
    case PROBLEM_BUF_TWICE: buf_printf(out, "two buffers are called '%s'", buf); break;
    case PROBLEM_LATE:
        buf_printf(out, "op '%s' uses a result of op '%s', which comes after it", op, other);
        break;
    case PROBLEM_CYCLE:
        if (f->op == f->other)
            buf_printf(out, "op '%s' depends on itself", op);
        else
            buf_printf(out, "op '%s' depends on op '%s', which depends on op '%s'", op, other, op);
        break;
    case PROBLEM_EARLY_USE:
        buf_printf(out, "buffer '%s' is used by an op before '%s', which makes it", buf, other);
        break;
    case PROBLEM_BYTES:
        buf_printf(out, "the sizes up to buffer '%s' add up to more than %lld bytes", buf,
                   (long long)LARGEST);
        break;
    case PROBLEM_TIME:
        buf_printf(out, "the runtimes up to op '%s' add up to more than %.0f days", op,
                   (double)LARGEST / 1e12 / 86400);
        break;
    }
}

/* ---- finishing ---- */

struct finish_args {
    struct problem_builder *b;
    tuck_diags *diags;
    struct buf text;
    bool fine;
};

static void do_finish(void *ctx)
{
    struct finish_args *f = ctx;
    struct problem_builder *b = f->b;
    struct problem_fault fault = problem_check(b);
    struct diag_source src = {.file = b->source};

    if (b->source != NULL)
        b->p->source = intern(b, b->source);
    f->fine = fault.kind == PROBLEM_FINE;
    if (!f->fine) {
        problem_fault_text(b, &fault, &f->text);
        diag_add(f->diags, TUCK_ERROR, (struct diag_pos){.source = &src}, NULL, "%s",
                 buf_text(&f->text));
        return;
    }
    problem_fill(b);
}

tuck_status problem_finish(struct problem_builder *b, tuck_diags *diags, struct problem **p_out)
{
    struct finish_args f = {.b = b, .diags = diags};

    buf_init(&f.text, &b->p->mem);
    bool ok = mem_guard(&b->p->mem, do_finish, &f);
    buf_destroy(&f.text);
    if (!ok || !f.fine) {
        problem_abandon(b);
        return ok ? TUCK_ELINT : TUCK_ENOMEM;
    }
    drop_rows(b);
    *p_out = b->p;
    b->p = NULL;
    return TUCK_OK;
}

#include "plan/from_program.h"

struct fill {
    const struct program *p;
    struct problem_builder b;
    uint32_t *buf; /* by buffer of the program: its number in the problem */
    str_id *str;   /* by string of the program: that of the problem; 0: not yet */
    struct arena scratch;
};

/* A string of the problem; 0 stays 0. */
static str_id name_of(struct fill *f, str_id s)
{
    if (s != 0 && f->str[s] == 0) {
        const struct str *x = str_at(&f->p->str, s);
        f->str[s] = str_intern(&f->b.p->str, x->at, x->len);
    }
    return f->str[s];
}

static str_id coll_of(struct fill *f, uint8_t coll)
{
    const char *name = tuck_coll_name((tuck_coll)coll);

    return str_intern(&f->b.p->str, name, strlen(name));
}

static enum problem_kind kind_of(uint8_t kind)
{
    switch ((enum program_kind)kind) {
    case PROGRAM_GEMM: return PROBLEM_GEMM;
    case PROGRAM_COLLECTIVE: return PROBLEM_COLLECTIVE;
    case PROGRAM_WAIT: return PROBLEM_WAIT;
    default: return PROBLEM_COMPUTE;
    }
}

static void add_inputs(struct fill *f)
{
    const struct program *p = f->p;

    for (uint32_t i = 0; i < p->n_input; i++) {
        const struct program_buf *b = &p->buf[i];
        unsigned flags = (b->flags & PROGRAM_FREEABLE ? PROBLEM_FREEABLE : 0) |
                         (b->flags & (PROGRAM_OUTPUT | PROGRAM_UNWAITED) ? PROBLEM_OUTPUT : 0);

        f->buf[i] = problem_input_named(&f->b, name_of(f, b->name), b->bytes, flags);
    }
}

/* What the op makes, and what it keeps alive. */
static void add_uses(struct fill *f, uint32_t op)
{
    const struct program *p = f->p;

    for (uint32_t i = p->use_at[op]; i < p->use_at[op + 1]; i++) {
        uint32_t k = p->use[i].buf;
        const struct program_buf *b = &p->buf[k];

        if (p->use[i].how != PROGRAM_WRITES) {
            problem_keeps(&f->b, f->buf[k], op);
            if (b->flags & PROGRAM_INPUT)
                problem_needs(&f->b, f->buf[k], 0);
            continue;
        }
        f->buf[k] = problem_makes_named(&f->b, name_of(f, b->name), b->bytes, b->bytes);
        if (b->flags & (PROGRAM_OUTPUT | PROGRAM_UNWAITED))
            problem_returns(&f->b, f->buf[k]);
    }
}

/* On the buffer if the dependence is on its producer, else on the op: one that overwrote it, or
 * must simply come first. */
static void add_deps(struct fill *f, uint32_t op)
{
    const struct program *p = f->p;

    for (uint32_t i = p->dep_at[op]; i < p->dep_at[op + 1]; i++) {
        const struct program_dep *d = &p->dep[i];
        /* An order that the graph itself states (control_deps) is real for a scheduler: the text
         * would be wrong in another order. It is a dependence on an op, so it keeps no buffer
         * alive. */
        unsigned flags = d->flags & PROGRAM_WEAK ? PROBLEM_WEAK : 0;

        if (d->buf != PROGRAM_NONE && p->buf[d->buf].producer == d->op)
            problem_needs(&f->b, f->buf[d->buf], flags);
        else
            problem_needs_op(&f->b, d->op, flags);
    }
}

/* Ops that come from one node: its main op, and the copies around it. */
static void add_anchors(struct fill *f)
{
    const struct program *p = f->p;
    uint32_t *anchor = arena_array(&f->b.p->arena, uint32_t, p->n_op), end;
    bool any = false;

    for (uint32_t i = 0; i < p->n_op; i = end) {
        uint32_t at = i;
        for (end = i + 1; end < p->n_op && p->op[i].node != 0 && p->op[end].node == p->op[i].node;)
            end++;
        for (uint32_t k = i; k < end; k++)
            at = p->node_at[k] < p->node_at[k + 1] ? k : at;
        for (uint32_t k = i; k < end; k++)
            anchor[k] = at;
        any |= end > i + 1;
    }
    f->b.p->anchor = any ? anchor : NULL;
}

static void do_fill(void *arg)
{
    struct fill *f = arg;
    const struct program *p = f->p;

    f->buf = arena_array(&f->scratch, uint32_t, p->n_buf);
    f->str = arena_zeroed(&f->scratch, ((size_t)p->str.all.len + 1) * sizeof(*f->str));
    strtab_reserve(&f->b.p->str, p->str.all.len);
    problem_expect(&f->b, p->n_op, p->n_buf, p->dep_at[p->n_op] + p->use_at[p->n_op],
                   p->use_at[p->n_op]);
    add_inputs(f);
    add_anchors(f);
    for (uint32_t i = 0; i < p->n_op; i++) {
        const struct program_op *o = &p->op[i];
        struct problem_op op = {.kind = kind_of(o->kind),
                                .runtime = o->ps > 0 ? ns_of_ps(o->ps)
                                                     : 0, /* gaps.h says which are unknown */
                                .is_async = (o->flags & PROGRAM_ASYNC) != 0 && !p->on_cores,
                                .bytes = o->message};
        struct problem_names names = {
            .name = name_of(f, o->name),
            .group = o->group != PROGRAM_NONE ? name_of(f, p->group[o->group].name) : 0,
            .coll = o->coll != 0 ? coll_of(f, o->coll) : 0,
            .kernel = name_of(f, o->kernel)};

        problem_op_named(&f->b, &op, &names);
        if (o->kind == PROGRAM_FUSED)
            for (uint32_t k = p->node_at[i]; k < p->node_at[i + 1]; k++)
                problem_fuses_named(&f->b, name_of(f, p->node[k]));
        add_uses(f, i);
        add_deps(f, i);
    }
}

tuck_status problem_of_program(const struct program *p, tuck_diags *diags, struct problem **out)
{
    struct fill f = {.p = p};

    if (!problem_begin(&f.b, &p->mem.alloc, program_str(p, p->source)))
        return TUCK_ENOMEM;
    arena_init(&f.scratch, &f.b.p->mem);
    bool ok = mem_guard(&f.b.p->mem, do_fill, &f);
    arena_destroy(&f.scratch);
    if (ok)
        return problem_finish(&f.b, diags, out);
    problem_abandon(&f.b);
    return TUCK_ENOMEM;
}

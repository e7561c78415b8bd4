/* The arrays of a program, from what was emitted one after the other. */
#include "lower/gaps.h"
#include "lower/lower.h"
#include "lower/program_rows.h"

/* Groups of nested graphs were added in the meantime. */
static void finish_groups(struct lower *l)
{
    struct program *p = l->p;

    p->n_group = l->groups.len;
    p->group = arena_array(&p->arena, struct program_group, p->n_group);
    p->heap = arena_zeroed(&p->arena, p->n_group * sizeof(*p->heap));
    for (uint32_t i = 0; i < p->n_group; i++)
        p->group[i] = l->groups.at[i];
}

/* The ops of a node are adjacent in the graph's order, so nothing may have to go between them. What
 * one of them must follow, the first must follow; what must follow one of them must follow the
 * last. */
static void keep_together(struct lower *l)
{
    const struct program *p = l->p;
    uint32_t *first = arena_array(&l->scratch, uint32_t, p->n_op);
    uint32_t *last = arena_array(&l->scratch, uint32_t, p->n_op);

    for (uint32_t i = 0; i < p->n_op; i++)
        first[i] = i > 0 && p->op[i].node == p->op[i - 1].node ? first[i - 1] : i;
    for (uint32_t i = p->n_op; i > 0; i--)
        last[i - 1] = i < p->n_op && first[i] == first[i - 1] ? last[i] : i - 1;
    for (uint32_t i = 0; i < p->n_op; i++)
        for (uint32_t k = p->dep_at[i]; k < p->dep_at[i + 1]; k++) {
            const struct program_dep *d = &p->dep[k];
            uint32_t on = last[d->op];

            if (first[d->op] != first[i] && (first[i] != i || on != d->op))
                lower_depends(l, first[i], on, PROGRAM_WEAK | d->flags);
        }
}

static void derive(struct lower *l)
{
    struct program *p = l->p;
    uint32_t *order_at;

    ROW_STARTS(&l->scratch, p, l->dep, from, order_at);
    struct program_dep *order = arena_array(&l->scratch, struct program_dep, l->dep.len);
    for (uint32_t i = 0; i < l->dep.len; i++)
        order[csr_place(order_at, l->dep.at[i].from)] = l->dep.at[i].dep;
    program_derive(p, order_at, order, &l->scratch);
}

/* Out of the scratch memory. */
static void keep_deps(struct program *p)
{
    uint32_t n = p->dep_at[p->n_op];
    uint32_t *at = arena_array(&p->arena, uint32_t, (size_t)p->n_op + 1);
    struct program_dep *dep = arena_array(&p->arena, struct program_dep, n);

    p->dep_at = memcpy(at, p->dep_at, ((size_t)p->n_op + 1) * sizeof(*at));
    p->dep = n > 0 ? memcpy(dep, p->dep, n * sizeof(*dep)) : dep;
}

static void finish_lists(struct lower *l)
{
    struct program *p = l->p;

    ROW_STARTS(&p->arena, p, l->use, op, p->use_at);
    p->use = arena_array(&p->arena, struct program_use, l->use.len);
    for (uint32_t i = 0; i < l->use.len; i++)
        p->use[csr_place(p->use_at, l->use.at[i].op)] = l->use.at[i].use;
    ROW_STARTS(&p->arena, p, l->node, op, p->node_at);
    p->node = arena_array(&p->arena, str_id, l->node.len);
    p->node_id = arena_array(&p->arena, uint32_t, l->node.len);
    for (uint32_t i = 0; i < l->node.len; i++) {
        uint32_t at = csr_place(p->node_at, l->node.at[i].op), n = l->node.at[i].what;
        p->node_id[at] = n;
        p->node[at] = lower_str(l, node_at(l->g, n)->name);
    }
    ROW_STARTS(&p->arena, p, l->wait, op, p->wait_at);
    p->wait = arena_array(&p->arena, uint32_t, l->wait.len);
    for (uint32_t i = 0; i < l->wait.len; i++)
        p->wait[csr_place(p->wait_at, l->wait.at[i].op)] = l->wait.at[i].what;
    derive(l);
    uint32_t known = l->dep.len;
    keep_together(l);
    if (l->dep.len > known)
        derive(l);
    keep_deps(p);
}

/* Which buffer each value is in, for what runs the program. */
static void finish_values(struct lower *l)
{
    struct program *p = l->p;
    uint32_t n = l->g->node.len, at = 0;

    p->value_at = arena_zeroed(&p->arena, ((size_t)n + 1) * sizeof(*p->value_at));
    for_each_node (l->g, i)
        p->value_at[i] = l->s.count[i];
    for (uint32_t i = 0; i <= n; i++) {
        uint32_t count = p->value_at[i];
        p->value_at[i] = at;
        at += count;
    }
    p->value = arena_array(&p->arena, uint32_t, (size_t)at + 1);
    for_each_node (l->g, i)
        for (uint32_t k = 0; k < l->s.count[i]; k++)
            p->value[p->value_at[i] + k] = l->storage[memory_of(&l->s, i, k)].buf;
}

/* Sizes without a value: one message names every symbol that lacks one, and the file. */
static void complain_of_sizes(struct lower *l)
{
    struct diag_source source = {.file = program_str(l->p, l->p->source)};
    struct diag_pos at = {.source = &source};

    l->status = TUCK_EINVAL;
    l->text.len = 0;
    if (l->assume.n_missing > 0) {
        assume_meet_all(&l->assume, l->g);
        assume_list_missing(&l->assume, &l->text);
        diag_add(l->diags, TUCK_ERROR, at, gaps_how_symbols, "symbols in sizes have no value: %s",
                 buf_text(&l->text));
        return;
    }
    sym_print(&l->g->store->sym, l->no_number, &l->text);
    diag_add(l->diags, TUCK_ERROR, at, "--assume SYMBOL=N gives symbols other values",
             "the size %s has no value", buf_text(&l->text));
}

void lower_finish(struct lower *l)
{
    struct program *p = l->p;

    finish_groups(l);
    p->n_op = l->op.len;
    p->n_buf = l->buf.len;
    p->op = arena_array(&p->arena, struct program_op, p->n_op);
    p->buf = arena_array(&p->arena, struct program_buf, p->n_buf);
    if (p->n_op > 0)
        memcpy(p->op, l->op.at, p->n_op * sizeof(*p->op));
    if (p->n_buf > 0)
        memcpy(p->buf, l->buf.at, p->n_buf * sizeof(*p->buf));
    uint32_t over = program_overflow(p->buf, p->n_buf);
    if (over < p->n_buf && l->status == TUCK_OK) {
        l->status = TUCK_EINVAL;
        diag_add(l->diags, TUCK_ERROR, NOWHERE, NULL,
                 "the sizes of all buffers up to '%s' add up to more than 64 bits can hold",
                 program_str(p, p->buf[over].name));
    }
    if (l->no_number != 0 && l->status == TUCK_OK)
        complain_of_sizes(l);
    finish_lists(l);
    finish_values(l);
    p->used_default = l->assume.used_default;
    p->peak = p->arena_bytes = p->resident = -1;
    /* A collective without a wait may still read or write at the end. */
    for (uint32_t i = 0; i < p->n_op; i++) {
        const struct program_op *op = &p->op[i];
        if (op->kind != PROGRAM_COLLECTIVE ||
            (op->flags & (PROGRAM_ASYNC | PROGRAM_ENDED)) != PROGRAM_ASYNC)
            continue;
        for (uint32_t k = p->use_at[i]; k < p->use_at[i + 1]; k++)
            p->buf[p->use[k].buf].flags |= PROGRAM_UNWAITED;
    }
}

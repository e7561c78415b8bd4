/* The strings of a program: names of ops and buffers, kernels, types. What a graph says again and
 * again is looked up once: by the number of its string, its operator or its type. */
#include "lower/lower.h"

void lower_begin_names(struct lower *l)
{
    const struct fx_store *st = l->g->store;
    struct arena *a = &l->scratch;

    l->n_str = st->str.all.len;
    l->str = arena_zeroed(a, l->n_str * sizeof(*l->str));
    l->kernel = arena_zeroed(a, ((size_t)op_count() + 1) * sizeof(*l->kernel));
    l->n_known = st->type.all.len;
    l->known = arena_zeroed(a, 2 * (size_t)l->n_known * sizeof(*l->known));
    strtab_reserve(&l->p->str, l->g->n_nodes);
}

str_id lower_keep(struct lower *l, const char *s)
{
    return s ? str_intern(&l->p->str, s, strlen(s)) : 0;
}

str_id lower_str(struct lower *l, str_id s)
{
    const struct str *x = str_at(&l->g->store->str, s);

    if (s >= l->n_str)
        return str_intern(&l->p->str, x->at, x->len);
    if (l->str[s] == 0)
        l->str[s] = str_intern(&l->p->str, x->at, x->len);
    return l->str[s];
}

static uint32_t kernel_op(const struct lower *l, uint32_t node, const struct fx_node **call)
{
    *call = lower_call(l, node);
    return *call == node_at(l->g, node) ? node_op(l->g, node) : (*call)->op;
}

const char *lower_kernel(const struct lower *l, uint32_t node)
{
    const struct fx_node *x;
    uint32_t op = kernel_op(l, node, &x);

    return op != 0 ? op_at(op)->name : graph_str(l->g, x->target);
}

str_id lower_kernel_str(struct lower *l, uint32_t node)
{
    const struct fx_node *x;
    uint32_t op = kernel_op(l, node, &x);

    if (op == 0)
        return lower_str(l, x->target);
    if (l->kernel[op] == 0)
        l->kernel[op] = lower_keep(l, op_at(op)->name);
    return l->kernel[op];
}

/* str.owner marks names that are taken. */
str_id lower_name(struct lower *l, uint32_t node, const char *suffix, enum lower_named what)
{
    struct strtab *t = &l->p->str;
    str_id own = node_at(l->g, node)->name, id;
    const char *base = graph_str(l->g, own);

    if (*base != '\0' && *suffix == '\0') {
        id = lower_str(l, own);
        if (!(t->all.at[id].owner & what)) {
            t->all.at[id].owner |= what;
            return id;
        }
    }
    l->text.len = 0;
    buf_str(&l->text, *base ? base : "op");
    buf_str(&l->text, suffix);
    size_t len = l->text.len;
    id = str_intern(t, l->text.at, len);
    for (unsigned k = 1; t->all.at[id].owner & what; k++) {
        l->text.len = len;
        buf_printf(&l->text, "#%u", k);
        id = str_intern(t, l->text.at, l->text.len);
    }
    t->all.at[id].owner |= what;
    return id;
}

/* Building an argument list piece by piece. The first error sticks until the
 * list is used or cleared. */
#include "graph/args.h"

#include "base/utf8.h"

tuck_args *tuck_args_new(tuck_graph *g)
{
    if (g == NULL)
        return NULL;
    struct mem *m = &g->store->mem;
    tuck_args *a = m->alloc.resize(m->alloc.ctx, NULL, 0, sizeof(*a));

    if (a != NULL) {
        *a = (tuck_args){.g = g, .store = g->store};
        a->store->refs++;
    }
    return a;
}

void tuck_args_free(tuck_args *a)
{
    if (a == NULL)
        return;
    struct fx_store *s = a->store;

    values_free(&s->mem, &a->list);
    mem_free(&s->mem, a, sizeof(*a));
    store_release(s);
}

void tuck_args_clear(tuck_args *a)
{
    values_clear(&a->list);
    a->n_args = a->n_kwargs = 0;
    a->keyed = false;
    a->error = TUCK_OK;
}

static bool usable(const tuck_graph *g, uint32_t n)
{
    return node_alive(g, n) && g->node.at[n].kind != TUCK_OUTPUT && g->node.at[n].name != 0;
}

tuck_status args_check(const tuck_args *a, const tuck_graph *g)
{
    if (a == NULL)
        return TUCK_OK;
    if (a->error != TUCK_OK)
        return a->error;
    if (a->g != g || a->list.open.len > 0 || a->keyed)
        return TUCK_EINVAL;
    for (uint32_t i = 0; i < a->list.v.len; i++)
        if (a->list.v.at[i].kind == TUCK_V_NODE && !usable(g, a->list.v.at[i].a))
            return TUCK_EINVAL; /* it was erased */
    return TUCK_OK;
}

void args_fail(tuck_args *a, tuck_status why)
{
    if (a->error == TUCK_OK)
        a->error = why;
}

/* A value comes next: is that allowed, and what does it count as? */
static bool count_value(tuck_args *a)
{
    if (a->error != TUCK_OK)
        return false;
    if (a->list.open.len > 0)
        return true;
    if (a->keyed) {
        a->keyed = false;
    } else if (a->n_kwargs > 0) {
        args_fail(a, TUCK_EINVAL); /* a positional argument after a keyword */
        return false;
    } else {
        a->n_args++;
    }
    return true;
}

struct push {
    tuck_args *a;
    tuck_value v;
    const char *text; /* stored as v.a if not NULL */
    bool open;        /* v is a container whose items come next */
};

static void do_push(void *p)
{
    struct push *x = p;
    struct fx_store *s = x->a->store;

    if (x->text != NULL)
        x->v.a = str_intern(&s->str, x->text, strlen(x->text));
    if (x->open)
        values_open(&s->mem, &x->a->list, (tuck_value_kind)x->v.kind);
    else
        values_push(&s->mem, &x->a->list, x->v);
}

static void push(tuck_args *a, struct push x)
{
    if (!mem_guard(&a->store->mem, do_push, &x))
        args_fail(a, TUCK_ENOMEM);
}

static void push_value(tuck_args *a, tuck_value v, const char *text)
{
    if (count_value(a))
        push(a, (struct push){.a = a, .v = v, .text = text});
}

void tuck_args_none(tuck_args *a)
{
    push_value(a, (tuck_value){.kind = TUCK_V_NONE}, NULL);
}

void tuck_args_bool(tuck_args *a, bool v)
{
    push_value(a, (tuck_value){.kind = TUCK_V_BOOL, .u.i = v}, NULL);
}

void tuck_args_int(tuck_args *a, int64_t v)
{
    push_value(a, (tuck_value){.kind = TUCK_V_INT, .u.i = v}, NULL);
}

void tuck_args_float(tuck_args *a, double v)
{
    push_value(a, (tuck_value){.kind = TUCK_V_FLOAT, .u.f = v}, NULL);
}

void tuck_args_str(tuck_args *a, const char *v)
{
    if (v == NULL)
        args_fail(a, TUCK_EINVAL);
    else
        push_value(a, (tuck_value){.kind = TUCK_V_STR}, v);
}

void tuck_args_node(tuck_args *a, tuck_node n)
{
    if (!usable(a->g, n.id))
        args_fail(a, TUCK_EINVAL);
    else
        push_value(a, (tuck_value){.kind = TUCK_V_NODE, .a = n.id}, NULL);
}

void tuck_args_open(tuck_args *a, tuck_value_kind container)
{
    if (container < TUCK_V_LIST || container > TUCK_V_SLICE)
        args_fail(a, TUCK_EINVAL);
    else if (count_value(a))
        push(a, (struct push){.a = a, .v.kind = (uint8_t)container, .open = true});
}

void tuck_args_close(tuck_args *a)
{
    struct value_list *l = &a->list;

    if (a->error != TUCK_OK)
        return;
    if (l->open.len == 0) {
        args_fail(a, TUCK_EINVAL);
        return;
    }
    const tuck_value *v = &l->v.at[l->open.at[l->open.len - 1]];
    if ((v->kind == TUCK_V_DICT && v->a % 2 != 0) || (v->kind == TUCK_V_SLICE && v->a != 3) ||
        (v->kind == TUCK_V_SET && v->a == 0)) /* {} is a dict */
        args_fail(a, TUCK_EINVAL);
    else
        values_close(l);
}

static bool has_key(const tuck_args *a, const char *name)
{
    const tuck_value *v = a->list.v.at;

    for (uint32_t i = 0; i < a->n_args; i++)
        v = value_next(v);
    for (uint32_t i = 0; i < a->n_kwargs; i++, v = value_next(v + 1))
        if (strcmp(str_text(&a->store->str, v->a), name) == 0)
            return true;
    return false;
}

void tuck_args_key(tuck_args *a, const char *name)
{
    if (a->error != TUCK_OK)
        return;
    if (name == NULL || !is_identifier(name) || utf8_check(name, strlen(name)) < strlen(name) ||
        a->keyed || a->list.open.len > 0 || has_key(a, name)) {
        args_fail(a, TUCK_EINVAL);
        return;
    }
    push(a, (struct push){.a = a, .v.kind = TUCK_V_KEY, .text = name});
    a->n_kwargs++;
    a->keyed = true;
}

/* ---- whole values ---- */

struct append {
    tuck_args *a;
    const tuck_value *v;
    size_t n;
};

static void do_append(void *p)
{
    struct append *x = p;
    struct mem *m = &x->a->store->mem;
    struct value_list *l = &x->a->list;

    vec_reserve(m, &l->v, x->n);
    values_push(m, l, x->v[0]);
    for (size_t i = 1; i < x->n; i++)
        l->v.at[l->v.len++] = x->v[i];
}

void args_append(tuck_args *a, const tuck_value *v)
{
    struct append x = {.a = a, .v = v, .n = (size_t)(value_next(v) - v)};

    if (count_value(a) && !mem_guard(&a->store->mem, do_append, &x))
        args_fail(a, TUCK_ENOMEM);
}

void tuck_args_value(tuck_args *a, const tuck_value *v)
{
    if (v == NULL || v->kind < TUCK_V_NONE || v->kind > TUCK_V_RAW || v->kind == TUCK_V_KEY ||
        v->kind == TUCK_V_TEXT)
        args_fail(a, TUCK_EINVAL);
    else
        args_append(a, v);
}

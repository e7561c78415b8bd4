/* Writes the line above a graph, with facts that its text would not contain. */
#include "base/json.h"
#include "graph/groups.h"
#include "text/known.h"

struct remembering {
    tuck_graph *g;
    const struct fx_hint *hint;
    size_t n_hint;
    struct buf line;
    struct json_out j;
    struct arena arena;
    VEC(tuck_graph *) todo;
    VEC(str_id) done; /* names of groups and symbols that are written or given elsewhere */
    bool groups;      /* there are any groups */
};

static bool is_done(struct remembering *x, str_id name)
{
    for (uint32_t i = 0; i < x->done.len; i++)
        if (x->done.at[i] == name)
            return true;
    vec_push(&x->g->store->mem, &x->done, name);
    return false;
}

/* Is the script around it printed with the graph? Then its facts need not be repeated. */
static bool has_script(const struct remembering *x)
{
    return x->g->script.is;
}

static void open_once(struct remembering *x, const char *key, bool *open)
{
    if (!*open)
        json_open(&x->j, key, '{');
    *open = true;
}

/* A group whose members, position or size would not be known from the text alone. */
static void remember_group(struct remembering *x, const struct fx_group *q, int64_t said,
                           bool *open)
{
    bool scripted = q->from == GROUP_SCRIPT && has_script(x);
    bool place = q->rank >= 0 && (q->ranks == NULL || x->g->rank < 0) && !scripted;
    const char *name = graph_str(x->g, q->name);

    if (q->size <= 0 || (q->ranks == NULL && !place && (said == q->size || scripted)) ||
        strncmp(name, "ranks ", 6) == 0 || is_done(x, q->name))
        return;
    open_once(x, "groups", open);
    json_open(&x->j, name, '{');
    json_int(&x->j, "size", q->size);
    if (q->ranks != NULL) {
        json_open(&x->j, "ranks", '[');
        for (int64_t i = 0; i < q->size; i++)
            json_int(&x->j, NULL, q->ranks[i]);
        json_close(&x->j, ']');
    }
    if (place)
        json_int(&x->j, "rank", q->rank);
    json_close(&x->j, '}');
}

static void remember_groups(struct remembering *x)
{
    struct mem *m = &x->g->store->mem;
    bool open = false;

    vec_push(m, &x->todo, x->g);
    while (x->todo.len > 0) {
        tuck_graph *g = x->todo.at[--x->todo.len];
        int64_t *said = arena_array(&x->arena, int64_t, g->group.len + (size_t)1);

        groups_said(g, said);
        x->groups |= g->group.len > 0;
        for (uint32_t i = 0; i < g->group.len; i++)
            remember_group(x, &g->group.at[i], said[i], &open);
        for (uint32_t i = 0; i < g->child.len; i++)
            vec_push(m, &x->todo, g->child.at[i]);
    }
    if (open)
        json_close(&x->j, '}');
}

/* If a symbol has several values, the last counts. */
static const struct fx_hint *last_value(const struct fx_hint *hint, size_t n, str_id symbol)
{
    for (size_t i = n; i > 0; i--)
        if (hint[i - 1].symbol == symbol)
            return &hint[i - 1];
    return NULL;
}

static void remember_symbols(struct remembering *x)
{
    const tuck_graph *g = x->g;
    size_t n = g->hint.len + x->n_hint;
    struct fx_hint *all = arena_array(&x->arena, struct fx_hint, n + 1);
    uint32_t scripted = has_script(x) ? g->n_script_hint : 0;
    bool open = false;

    for (size_t i = 0; i < n; i++)
        all[i] = i < g->hint.len ? g->hint.at[i] : x->hint[i - g->hint.len];
    x->done.len = 0;
    for (size_t i = 0; i < n; i++) {
        const struct fx_hint *now = last_value(all, n, all[i].symbol);
        const struct fx_hint *said = last_value(all, scripted, all[i].symbol);

        if ((said != NULL && said->value == now->value) || is_done(x, now->symbol))
            continue;
        open_once(x, "symbols", &open);
        json_int(&x->j, graph_str(g, now->symbol), now->value);
    }
    if (open)
        json_close(&x->j, '}');
}

static void do_remember(void *p)
{
    struct remembering *x = p;
    struct fx_store *s = x->g->store;

    buf_str(&x->line, FX_KNOWN);
    x->line.len--; /* the bracket belongs to the object */
    size_t empty = x->line.len + 2;
    json_begin(&x->j, &x->line);
    x->j.flat = true;
    json_open(&x->j, NULL, '{');
    remember_groups(x);
    if (x->groups && x->g->rank >= 0)
        json_int(&x->j, "printed_on_rank", x->g->rank);
    remember_symbols(x);
    json_close(&x->j, '}');
    x->g->known = x->line.len > empty ? str_intern(&s->str, x->line.at, x->line.len) : 0;
}

tuck_status known_remember(tuck_graph *g, const struct fx_hint *hint, size_t n)
{
    struct remembering x = {.g = g, .hint = hint, .n_hint = n};
    struct mem *m = &g->store->mem;

    buf_init(&x.line, m);
    arena_init(&x.arena, m);
    bool ok = mem_guard(m, do_remember, &x);
    vec_free(m, &x.todo);
    vec_free(m, &x.done);
    arena_destroy(&x.arena);
    buf_destroy(&x.line);
    return ok ? TUCK_OK : TUCK_ENOMEM;
}

tuck_status tuck_graph_remember(tuck_graph *g)
{
    return g == NULL ? TUCK_EINVAL : known_remember(g, NULL, 0);
}

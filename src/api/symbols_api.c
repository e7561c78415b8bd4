/* The symbols of a graph, and what is known about them. */
#include "graph/symbol_values.h"

/* ---- what is known ---- */

size_t tuck_graph_hint_count(const tuck_graph *g)
{
    return g != NULL ? g->hint.len : 0;
}

bool tuck_graph_hint(const tuck_graph *g, size_t i, tuck_hint *out)
{
    if (i >= tuck_graph_hint_count(g) || out == NULL)
        return false;
    *out = (tuck_hint){graph_str(g, g->hint.at[i].symbol), g->hint.at[i].value};
    return true;
}

struct set_args {
    tuck_graph *g;
    const char *symbol;
    int64_t value;
};

static void do_set(void *arg)
{
    struct set_args *x = arg;
    struct fx_store *s = x->g->store;
    struct fx_hint h = {str_intern(&s->str, x->symbol, strlen(x->symbol)), x->value};

    for (uint32_t i = x->g->hint.len; i > 0; i--)
        if (x->g->hint.at[i - 1].symbol == h.symbol) {
            if (x->g->hint.at[i - 1].value == h.value)
                return;
            break;
        }
    vec_push(&s->mem, &x->g->hint, h);
    graph_changed(x->g);
}

tuck_status tuck_graph_set_symbol(tuck_graph *g, const char *symbol, int64_t value)
{
    struct set_args x = {g, symbol, value};

    if (g == NULL || symbol == NULL || *symbol == '\0' || value < 0)
        return TUCK_EINVAL;
    return mem_guard(&g->store->mem, do_set, &x) ? TUCK_OK : TUCK_ENOMEM;
}

/* ---- all of them ---- */

struct tuck_symbols {
    struct mem mem;
    struct strtab name; /* number i belongs to row i - 1 */
    VEC(tuck_symbol) row;
};

struct list_args {
    const tuck_graph *g;
    tuck_symbols *out;
    struct arena arena; /* scratch while the list is made */
    VEC(type_id) todo;
    uint8_t *seen; /* by type */
};

static tuck_symbol *row_of(tuck_symbols *s, const char *name)
{
    str_id id = str_intern(&s->name, name, strlen(name));

    if (id > s->row.len) {
        tuck_symbol new = {.name = str_text(&s->name, id), .state = TUCK_SYMBOL_MISSING};
        vec_push(&s->mem, &s->row, new);
    }
    return &s->row.at[id - 1];
}

static void meet_symbol(void *ctx, sym_id symbol, const char *name)
{
    (void)symbol;
    row_of(ctx, name)->in_sizes = true;
}

static void meet_type(struct list_args *x, const struct type *t)
{
    struct symtab *sym = &x->g->store->sym;

    for (uint32_t i = 0; t->kind == TYPE_TENSOR && i < t->n; i++) {
        sym_symbols(sym, t->size[i], meet_symbol, x->out);
        if (t->strided)
            sym_symbols(sym, t->stride[i], meet_symbol, x->out);
    }
    for (uint32_t i = 0; t->kind == TYPE_LIST && i < t->n; i++)
        vec_push_in(&x->arena, &x->todo, t->item[i]);
}

/* Equal types have one id: each is visited once. */
static void meet_types(struct list_args *x)
{
    const struct typetab *types = &x->g->store->type;

    x->seen = arena_zeroed(&x->arena, types->all.len + (size_t)1);
    for_each_node (x->g, n) {
        vec_push_in(&x->arena, &x->todo, node_type(x->g, n));
        while (x->todo.len > 0) {
            type_id id = x->todo.at[--x->todo.len];
            if (id == 0 || x->seen[id])
                continue;
            x->seen[id] = 1;
            meet_type(x, type_at(types, id));
        }
    }
}

/* Symbols without a name of their own have the value of "*", or the default of data-dependent
 * sizes. */
static void fill_in(tuck_symbols *s)
{
    str_id star = str_find(&s->name, "*", 1);

    for (uint32_t i = 0; i < s->row.len; i++) {
        tuck_symbol *x = &s->row.at[i];
        if (x->state != TUCK_SYMBOL_MISSING)
            continue;
        if (star != 0) {
            x->state = TUCK_SYMBOL_KNOWN;
            x->value = s->row.at[star - 1].value;
        } else if (assume_is_unbacked(x->name)) {
            x->state = TUCK_SYMBOL_ASSUMED;
            x->value = ASSUME_UNBACKED;
        }
    }
}

static void do_list(void *arg)
{
    struct list_args *x = arg;
    tuck_hint h;

    for (size_t i = 0; tuck_graph_hint(x->g, i, &h); i++) {
        tuck_symbol *row = row_of(x->out, h.symbol);
        row->state = TUCK_SYMBOL_KNOWN;
        row->value = h.value;
    }
    meet_types(x);
    fill_in(x->out);
}

tuck_status tuck_graph_symbols(const tuck_graph *g, tuck_symbols **out)
{
    if (g == NULL || out == NULL)
        return TUCK_EINVAL;
    const tuck_allocator *alloc = &g->store->mem.alloc;
    tuck_symbols *s = alloc->resize(alloc->ctx, NULL, 0, sizeof(*s));
    if (s == NULL)
        return TUCK_ENOMEM;
    *s = (tuck_symbols){.row = {NULL, 0, 0}};
    mem_init(&s->mem, alloc);
    strtab_init(&s->name, &s->mem);
    struct list_args x = {.g = g, .out = s};
    arena_init(&x.arena, &s->mem);
    bool ok = mem_guard(&s->mem, do_list, &x);
    arena_destroy(&x.arena);
    if (!ok) {
        tuck_symbols_free(s);
        return TUCK_ENOMEM;
    }
    *out = s;
    return TUCK_OK;
}

void tuck_symbols_free(tuck_symbols *s)
{
    if (s == NULL)
        return;
    struct mem m = s->mem;
    vec_free(&s->mem, &s->row);
    strtab_destroy(&s->name);
    mem_free(&m, s, sizeof(*s));
}

size_t tuck_symbols_count(const tuck_symbols *s)
{
    return s != NULL ? s->row.len : 0;
}

const tuck_symbol *tuck_symbols_at(const tuck_symbols *s, size_t i)
{
    return i < tuck_symbols_count(s) ? &s->row.at[i] : NULL;
}

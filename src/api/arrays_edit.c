/* What passes did to a graph that was made from arrays, as arrays again. */
#include "api/api.h"
#include "api/arrays_api.h"

struct added { /* a nested graph that passes made */
    const tuck_graph *g;
    uint32_t parent; /* by number */
};

struct edit {
    tuck_arrays *a;
    const tuck_graph *was, *is;
    uint32_t *text; /* the number of a string in the texts of the edit + 1; by str_id */
    uint32_t *type; /* the same for types */
    struct arena arena;
    VEC(uint32_t) found; /* nodes of one kind of change */
    VEC(struct added) added;
};

static void put(struct edit *e, int64_t word)
{
    vec_push(&e->a->mem, &e->a->word, word);
}

static uint32_t text_number(struct edit *e, str_id s)
{
    if (e->text[s] == 0) {
        const struct str *t = str_at(&e->is->store->str, s);
        buf_add(&e->a->text, t->len > 0 ? t->at : "", t->len);
        buf_chr(&e->a->text, '\0');
        e->text[s] = ++e->a->n_text;
    }
    return e->text[s] - 1;
}

/* The number of a type's text; that of "" if the type is unknown. */
static uint32_t type_number(struct edit *e, type_id t)
{
    if (t == 0)
        return text_number(e, e->is->store->word.empty);
    if (e->type[t] == 0) {
        type_print(e->is->store, t, &e->a->text, true, true);
        buf_chr(&e->a->text, '\0');
        e->type[t] = ++e->a->n_text;
    }
    return e->type[t] - 1;
}

/* ---- values ---- */

static void put_value(struct edit *e, const tuck_value *v)
{
    int64_t number;

    switch (v->kind) {
    case TUCK_V_NONE: number = 0; break;
    case TUCK_V_BOOL: number = v->u.i; break;
    case TUCK_V_INT:
        number = v->u.i;
        if (number >= INT64_MAX >> WORD_SHIFT || number <= INT64_MIN >> WORD_SHIFT) {
            put(e, WORD_WIDE);
            put(e, number);
            return;
        }
        break;
    case TUCK_V_FLOAT:
        number = e->a->real.len;
        vec_push(&e->a->mem, &e->a->real, v->u.f);
        break;
    case TUCK_V_NODE: number = (int64_t)v->a - FX_FIRST_ID; break;
    default: number = value_is_container(v) ? v->a : text_number(e, v->a);
    }
    put(e, number * (1 << WORD_SHIFT) | v->kind);
}

static void put_call(struct edit *e, uint32_t n)
{
    const struct fx_node *x = node_at(e->is, n);

    put(e, (int64_t)n - FX_FIRST_ID);
    put(e, x->kind);
    put(e, text_number(e, x->target));
    put(e, text_number(e, x->name));
    put(e, type_number(e, node_type(e->is, n)));
    put(e, x->n_args);
    put(e, x->n_kwargs);
    uint32_t count = e->a->word.len;
    put(e, 0);
    for (uint32_t i = 0; i < x->n_vals; i++)
        put_value(e, &x->vals[i]);
    e->a->word.at[count] = e->a->word.len - count - 1;
}

/* ---- comparing ---- */

static bool is_new(const struct edit *e, uint32_t n)
{
    return n >= e->was->node.len;
}

static bool same_value(const tuck_value *a, const tuck_value *b)
{
    if (a->kind != b->kind || a->a != b->a)
        return false;
    return a->kind == TUCK_V_NODE || a->u.w == b->u.w;
}

enum change { SAME, USES_CHANGED, CALL_CHANGED };

static enum change compare(const struct edit *e, uint32_t n)
{
    const struct fx_node *a = node_at(e->was, n), *b = node_at(e->is, n);
    enum change found = SAME;

    if (a->n_vals != b->n_vals || a->n_args != b->n_args || a->n_kwargs != b->n_kwargs ||
        a->target != b->target)
        return CALL_CHANGED;
    if (a->vals == b->vals)
        return SAME;
    for (uint32_t i = 0; i < a->n_vals; i++) {
        if (same_value(&a->vals[i], &b->vals[i]))
            continue;
        if (a->vals[i].kind != TUCK_V_NODE || b->vals[i].kind != TUCK_V_NODE)
            return CALL_CHANGED;
        found = USES_CHANGED;
    }
    return found;
}

/* ---- the order ---- */

/* Marks the most old nodes that are in the same order before and after: the longest rising
 * sequence of their ids. */
static bool *find_unmoved(struct edit *e)
{
    const tuck_graph *g = e->is;
    uint32_t *last = arena_array(&e->arena, uint32_t, g->n_nodes + 1), n = 0;
    uint32_t *before = arena_array(&e->arena, uint32_t, g->node.len);
    bool *unmoved = arena_zeroed(&e->arena, g->node.len);

    for_each_node (g, id) {
        uint32_t low = 0, high = n;

        if (is_new(e, id))
            continue;
        if (n > 0 && last[n - 1] < id)
            low = n;
        while (low < high) {
            uint32_t mid = low + (high - low) / 2;
            if (last[mid] < id)
                low = mid + 1;
            else
                high = mid;
        }
        before[id] = low > 0 ? last[low - 1] : 0;
        last[low] = id;
        n += low == n;
    }
    for (uint32_t id = n > 0 ? last[n - 1] : 0; id != 0; id = before[id])
        unmoved[id] = true;
    return unmoved;
}

static void put_moves(struct edit *e)
{
    const tuck_graph *g = e->is;
    const bool *unmoved = find_unmoved(e);
    uint32_t at = e->a->word.len, n = 0;

    put(e, 0);
    for_each_node (g, id)
        if (!unmoved[id]) {
            put(e, (int64_t)id - FX_FIRST_ID);
            uint32_t prev = node_at(g, id)->prev;
            put(e, prev != 0 ? (int64_t)prev - FX_FIRST_ID : -1);
            n++;
        }
    e->a->word.at[at] = n;
}

/* ---- the script of one graph ---- */

static void put_new(struct edit *e)
{
    e->found.len = 0;
    for_each_node (e->is, n)
        if (is_new(e, n))
            vec_push(&e->a->mem, &e->found, n);
    put(e, e->found.len);
    for (uint32_t i = 0; i < e->found.len; i++)
        put_call(e, e->found.at[i]);
}

static void put_uses(struct edit *e, const uint8_t *change)
{
    uint32_t at = e->a->word.len, n = 0;

    put(e, 0);
    for_each_node (e->is, id) {
        const struct fx_node *x = node_at(e->is, id);

        if (is_new(e, id) || change[id] != USES_CHANGED)
            continue;
        n++;
        put(e, (int64_t)id - FX_FIRST_ID);
        uint32_t count = e->a->word.len;
        put(e, 0);
        for (uint32_t i = 0; i < x->n_vals; i++)
            if (x->vals[i].kind == TUCK_V_NODE)
                put(e, (int64_t)x->vals[i].a - FX_FIRST_ID);
        e->a->word.at[count] = e->a->word.len - count - 1;
    }
    e->a->word.at[at] = n;
}

static void put_graph(struct edit *e)
{
    const tuck_graph *was = e->was, *is = e->is;
    uint8_t *change = arena_zeroed(&e->arena, was->node.len);
    uint32_t calls = 0, retyped = 0, erased = 0;

    for (uint32_t n = FX_FIRST_ID; n < was->node.len; n++) {
        if (!node_alive(is, n)) {
            erased += node_alive(was, n);
            continue;
        }
        change[n] = (uint8_t)compare(e, n);
        calls += change[n] == CALL_CHANGED;
        retyped += node_at(was, n)->ann != node_at(is, n)->ann;
    }
    put_new(e);
    put_uses(e, change);
    put(e, calls);
    for_each_node (is, n)
        if (!is_new(e, n) && change[n] == CALL_CHANGED)
            put_call(e, n);
    put(e, retyped);
    for_each_node (is, n)
        if (!is_new(e, n) && node_at(was, n)->ann != node_at(is, n)->ann)
            put(e, (int64_t)n - FX_FIRST_ID);
    put_moves(e);
    put(e, erased);
    for (uint32_t n = FX_FIRST_ID; n < was->node.len; n++)
        if (node_alive(was, n) && !node_alive(is, n))
            put(e, (int64_t)n - FX_FIRST_ID);
}

/* ---- new nested graphs ---- */

static void find_added(struct edit *e, const tuck_graph *g, uint32_t from, uint32_t number)
{
    for (uint32_t i = from; i < g->child.len; i++)
        vec_push(&e->a->mem, &e->added, ((struct added){g->child.at[i], number}));
}

static void put_added(struct edit *e)
{
    uint32_t at = e->a->word.len;

    put(e, 0);
    for (uint32_t k = 0; k < e->added.len; k++) { /* grows: they can have nested graphs, too */
        const tuck_graph *g = e->is = e->added.at[k].g;

        find_added(e, g, 0, e->a->n_graphs + k);
        put(e, e->added.at[k].parent);
        put(e, text_number(e, g->name));
        put(e, g->n_nodes);
        for_each_node (g, n)
            put_call(e, n);
    }
    e->a->word.at[at] = e->added.len;
}

static void do_edit(void *arg)
{
    struct edit *e = arg;
    tuck_arrays *a = e->a;
    const tuck_graph **was = arena_array(&e->arena, const tuck_graph *, a->n_graphs);
    const tuck_graph **is = arena_array(&e->arena, const tuck_graph *, a->n_graphs);

    e->is = tuck_arrays_graph(a);
    e->text = arena_zeroed(&e->arena, e->is->store->str.all.len * sizeof(*e->text));
    e->type = arena_zeroed(&e->arena, (e->is->store->type.all.len + 1) * sizeof(*e->type));
    for (uint32_t k = 0; k < a->n_graphs; k++) {
        const struct arrays_place *p = &a->place[k];

        was[k] = k == 0 ? a->before : was[p->parent]->child.at[p->index];
        is[k] = k == 0 ? tuck_arrays_graph(a) : is[p->parent]->child.at[p->index];
        e->was = was[k];
        e->is = is[k];
        put(e, k);
        put_graph(e);
        find_added(e, is[k], was[k]->child.len, k);
    }
    put_added(e);
}

tuck_status tuck_arrays_edit(tuck_arrays *a)
{
    struct edit e = {.a = a};

    if (a == NULL)
        return TUCK_EINVAL;
    a->word.len = a->real.len = 0;
    a->text.len = 0;
    a->n_text = 0;
    arena_init(&e.arena, &a->mem);
    bool enough = mem_guard(&a->mem, do_edit, &e);
    vec_free(&a->mem, &e.found);
    vec_free(&a->mem, &e.added);
    arena_destroy(&e.arena);
    return enough ? TUCK_OK : TUCK_ENOMEM;
}

const int64_t *tuck_arrays_words(const tuck_arrays *a, size_t *n_out)
{
    *n_out = a->word.len;
    return a->word.at;
}

const double *tuck_arrays_floats(const tuck_arrays *a, size_t *n_out)
{
    *n_out = a->real.len;
    return a->real.at;
}

const char *tuck_arrays_texts(const tuck_arrays *a, size_t *len_out)
{
    *len_out = a->text.len;
    return a->text.at;
}

/* Makes a graph from arrays of numbers and texts. */
#include "api/arrays_api.h"

#include "api/api.h"
#include "graph/edit.h"
#include "graph/groups.h"
#include "op/ops.h"

struct input {
    tuck_arrays *a;
    struct fx_store *store;
    const int64_t *word, *end; /* the words that are left */
    const double *real;
    size_t n_real;
    const char *text;
    size_t text_len;
    str_id *str; /* by number of the text */
    uint32_t *ann;
    uint32_t n_str;
    tuck_graph *g, **graph; /* the graph being made; all of them */
    struct arena arena;
    struct value_list vals;
    const char *wrong; /* what is wrong with the arrays, or NULL */
};

static bool refuse(struct input *in, const char *why)
{
    if (in->wrong == NULL)
        in->wrong = why;
    return false;
}

static int64_t next(struct input *in)
{
    if (in->word == in->end) {
        refuse(in, "the words end in the middle of a graph");
        return 0;
    }
    return *in->word++;
}

/* The next word, which must be less than `end`. */
static uint32_t next_below(struct input *in, uint32_t end, const char *what)
{
    int64_t v = next(in);

    if (v >= 0 && v < end)
        return (uint32_t)v;
    refuse(in, what);
    return 0;
}

/* ---- texts ---- */

/* A target that a text could not contain is still a target: of an unknown operator. */
static void number_texts(struct input *in)
{
    const char *p = in->text, *end = in->text + in->text_len;

    for (; p < end; p += strlen(p) + 1)
        in->n_str++;
    in->str = arena_array(&in->arena, str_id, in->n_str);
    in->ann = arena_zeroed(&in->arena, in->n_str * sizeof(*in->ann));
    in->n_str = 0;
    for (p = in->text; p < end; p += strlen(p) + 1)
        in->str[in->n_str++] = str_intern(&in->store->str, p, strlen(p));
}

static uint32_t annotation(struct input *in, uint32_t text)
{
    const struct str *s = str_at(&in->store->str, in->str[text]);

    if (s->len == 0)
        return 0;
    if (in->ann[text] == 0)
        in->ann[text] = ann_from_inner(in->store, s->at, s->len);
    return in->ann[text];
}

/* ---- values ---- */

static bool atom(struct input *in, uint8_t kind, int64_t number, tuck_value *v)
{
    *v = (tuck_value){.kind = kind};
    switch (kind) {
    case TUCK_V_NONE: return true;
    case TUCK_V_BOOL: v->u.i = number != 0; return true;
    case TUCK_V_INT: v->u.i = number; return true;
    case TUCK_V_FLOAT:
        if (number < 0 || (uint64_t)number >= in->n_real)
            return refuse(in, "there is no such float");
        v->u.f = in->real[number];
        return true;
    case TUCK_V_NODE:
        if (number < 0 || number >= in->g->n_nodes)
            return refuse(in, "a node uses one that does not come before it");
        v->a = FX_FIRST_ID + (uint32_t)number;
        return true;
    default:
        if (kind == 0 || kind >= TUCK_V_LIST)
            return refuse(in, "there is no such kind of value");
        if (number < 0 || number >= in->n_str)
            return refuse(in, "there is no such text");
        v->a = in->str[number];
        return true;
    }
}

/* Closes every container that has all its items; the numbers of items are in `left`. */
static void close_full(struct input *in, uint32_t *left, uint32_t *depth)
{
    while (*depth > 0 && left[*depth - 1] == 0) {
        values_close(&in->vals);
        if (--*depth > 0)
            left[*depth - 1]--;
    }
}

static bool read_vals(struct input *in, uint32_t n)
{
    uint32_t *left = arena_array(&in->arena, uint32_t, n + 1), depth = 0;

    values_clear(&in->vals);
    for (uint32_t i = 0; i < n && in->wrong == NULL; i++) {
        int64_t word = next(in), number = word >> WORD_SHIFT;
        uint8_t kind = (uint8_t)(word & WORD_KIND);
        tuck_value v;

        if (kind == WORD_WIDE) {
            if (++i == n)
                return refuse(in, "a wide int has no second word");
            kind = TUCK_V_INT;
            number = next(in);
        }
        if (kind >= TUCK_V_LIST && kind <= TUCK_V_RAW) {
            if (number < 0 || number > n - i - 1)
                return refuse(in, "a container has more items than values follow");
            values_open(&in->store->mem, &in->vals, (tuck_value_kind)kind);
            left[depth++] = (uint32_t)number;
        } else {
            if (!atom(in, kind, number, &v))
                return false;
            values_push(&in->store->mem, &in->vals, v);
            if (depth > 0)
                left[depth - 1]--;
        }
        close_full(in, left, &depth);
    }
    return depth == 0 || refuse(in, "a container is not complete");
}

/* Are these n_args values and n_kwargs keys with values, each container well-formed? */
static bool check_vals(struct input *in, uint32_t n_args, uint32_t n_kwargs)
{
    const tuck_value *v = in->vals.v.at, *end = v + in->vals.v.len;

    for (const tuck_value *c = v; c < end; c++)
        if ((c->kind == TUCK_V_DICT && c->a % 2 != 0) || (c->kind == TUCK_V_SLICE && c->a != 3) ||
            (c->kind == TUCK_V_CALL && (c->a == 0 || c[1].kind != TUCK_V_NAME)))
            return refuse(in, "a container has a wrong number of items");
    for (uint64_t i = 0; i < (uint64_t)n_args + 2 * (uint64_t)n_kwargs; i++) {
        bool key = i >= n_args && (i - n_args) % 2 == 0;

        if (v >= end || (v->kind == TUCK_V_KEY) != key)
            return refuse(in, "the values do not match the numbers of arguments");
        v = value_next(v);
    }
    return v == end || refuse(in, "there are more values than arguments");
}

/* ---- nodes ---- */

static bool args_fit(uint8_t kind, const struct value_list *l, uint32_t n_args, uint32_t n_kwargs)
{
    switch (kind) {
    case TUCK_PLACEHOLDER:
    case TUCK_GET_ATTR: return n_args + n_kwargs == 0;
    case TUCK_OUTPUT: return n_args == 1 && n_kwargs == 0;
    case TUCK_CALL_METHOD: return n_args > 0 && l->v.at[0].kind == TUCK_V_NODE;
    default: return true;
    }
}

static void set_callee(tuck_graph *g, struct fx_node *x, const tuck_value *v, uint32_t n_args,
                       uint32_t n_kwargs)
{
    const struct str *s = str_at(&g->store->str, x->target);
    uint32_t op = op_find(s->at, s->len);

    x->op = (uint16_t)op;
    x->syntax = edit_spelling(g, op, v, n_args, n_kwargs);
    if (x->syntax == FX_OPERATOR || x->syntax == FX_ATTRIBUTE) {
        const char *name = x->syntax == FX_OPERATOR ? op_at(op)->name : "getattr";
        x->target = str_intern(&g->store->str, name, strlen(name));
    }
}

/* kind, target, name, annotation, n_args, n_kwargs, n_words, the words of its values */
static bool read_node(struct input *in)
{
    tuck_graph *g = in->g;
    struct fx_node x = {.kind = (uint8_t)next_below(in, TUCK_OUTPUT + 1, "no such kind of node")};
    uint32_t target = next_below(in, in->n_str, "there is no such text");
    uint32_t name = next_below(in, in->n_str, "there is no such text");
    uint32_t type = next_below(in, in->n_str, "there is no such text");
    uint32_t n_args = next_below(in, UINT32_MAX, "a wrong number of arguments");
    uint32_t n_kwargs = next_below(in, UINT32_MAX, "a wrong number of arguments");
    int64_t n_words = next(in);

    if (in->wrong != NULL)
        return false;
    if (x.kind == 0 || g->output != 0 || n_words < 0 || n_words > in->end - in->word)
        return refuse(in, x.kind == 0 ? "no such kind of node" : "a node comes after the output");
    if (x.kind == TUCK_PLACEHOLDER && g->n_nodes != g->param.len)
        return refuse(in, "a placeholder comes after another node");
    if (!read_vals(in, (uint32_t)n_words) || !check_vals(in, n_args, n_kwargs))
        return false;
    if (!args_fit(x.kind, &in->vals, n_args, n_kwargs))
        return refuse(in, "a node has other arguments than its kind needs");
    x.target = in->str[target];
    x.name = in->str[name];
    x.ann = annotation(in, type);
    if (x.kind == TUCK_CALL_FUNCTION)
        set_callee(g, &x, in->vals.v.at, n_args, n_kwargs);
    uint32_t n = graph_add_node(g, 0, x);
    graph_set_vals(g, n, in->vals.v.at, in->vals.v.len, n_args, n_kwargs);
    if (x.kind == TUCK_PLACEHOLDER)
        vec_push(&in->store->mem, &g->param,
                 ((struct fx_param){
                     .text = x.target, .node = n, .ann = x.ann, .aliased = x.target != x.name}));
    if (x.kind == TUCK_OUTPUT)
        g->output = n;
    return true;
}

static tuck_graph *begin(struct input *in, uint32_t k, uint32_t parent)
{
    struct mem *m = &in->store->mem;
    tuck_doc *doc = in->a->doc;

    if (k == 0)
        vec_reserve(m, &doc->entry, 1);
    else
        vec_reserve(m, &in->graph[parent]->child, 1);
    tuck_graph *g = graph_new(in->store);
    if (k == 0)
        doc->entry.at[doc->entry.len++] = (struct fx_entry){.graph = g, .rank = -1, .line = 1};
    else
        in->graph[parent]->child.at[in->graph[parent]->child.len++] = g;
    g->style = (struct fx_style){.form = FX_CLASS,
                                 .frees = FX_FREES_FULL,
                                 .annotated = true,
                                 .strides = true,
                                 .devices = true};
    g->fresh = true;
    in->graph[k] = in->g = g;
    return g;
}

/* parent (of a nested graph), name, number of nodes, the nodes */
static bool read_graph(struct input *in, uint32_t k)
{
    uint32_t parent = next_below(in, k > 0 ? k : 1, "a nested graph comes before its parent");
    uint32_t name = next_below(in, in->n_str, "there is no such text");
    uint32_t n = next_below(in, UINT32_MAX, "a wrong number of nodes");

    if (in->wrong != NULL)
        return false;
    tuck_graph *g = begin(in, k, parent);
    g->name = in->str[name];
    if (k > 0) {
        in->a->place[k] = (struct arrays_place){parent, in->graph[parent]->child.len - 1};
        if (graph_child_named(in->graph[parent], g->name) != NULL)
            return refuse(in, "two nested graphs have one name");
        graph_enter_child(in->graph[parent], in->a->place[k].index);
    }
    for (uint32_t i = 0; i < n; i++)
        if (!read_node(in))
            return false;
    return true;
}

static void do_read(void *arg)
{
    struct input *in = arg;
    struct mem *m = &in->store->mem;
    tuck_arrays *a = in->a;

    a->doc = mem_resize(m, NULL, 0, sizeof(*a->doc));
    *a->doc = (tuck_doc){.store = in->store};
    in->store->refs++;
    if (in->text_len > 0 && in->text[in->text_len - 1] != '\0') {
        refuse(in, "the texts do not end with NUL");
        return;
    }
    number_texts(in);
    int64_t n = next(in);
    if (n < 1 || n > in->end - in->word) {
        refuse(in, "a wrong number of graphs");
        return;
    }
    in->graph = arena_array(&in->arena, tuck_graph *, n);
    a->place = mem_resize(&a->mem, NULL, 0, (size_t)n * sizeof(*a->place));
    a->n_graphs = (uint32_t)n;
    for (uint32_t k = 0; k < n; k++)
        if (!read_graph(in, k))
            return;
    if (in->word != in->end)
        refuse(in, "words follow the last graph");
    else
        groups_collect(a->doc, NULL, 0, NULL);
}

/* ---- the object ---- */

tuck_graph *tuck_arrays_graph(const tuck_arrays *a)
{
    return a->doc->entry.at[0].graph;
}

void tuck_arrays_free(tuck_arrays *a)
{
    if (a == NULL)
        return;
    struct mem m = a->mem;

    graph_free(a->before);
    if (a->doc != NULL)
        tuck_doc_free(a->doc);
    mem_free(&a->mem, a->place, a->n_graphs * sizeof(*a->place));
    vec_free(&a->mem, &a->word);
    vec_free(&a->mem, &a->real);
    buf_destroy(&a->text);
    mem_free(&m, a, sizeof(*a));
}

static tuck_status fill(struct input *in, tuck_diags *diags)
{
    bool enough = mem_guard_two(&in->store->mem, &in->a->mem, do_read, in);

    values_free(&in->store->mem, &in->vals);
    arena_destroy(&in->arena);
    if (!enough)
        return TUCK_ENOMEM;
    if (in->wrong != NULL) {
        diag_add(diags, TUCK_ERROR, NOWHERE, NULL, "these arrays are not a graph: %s", in->wrong);
        return TUCK_EINVAL;
    }
    in->a->before = graph_clone(tuck_arrays_graph(in->a));
    return in->a->before != NULL ? TUCK_OK : TUCK_ENOMEM;
}

tuck_status tuck_arrays_read(const int64_t *words, size_t n_words, const char *texts,
                             size_t texts_len, const double *floats, size_t n_floats,
                             const tuck_allocator *alloc, tuck_diags *diags, tuck_arrays **out)
{
    struct mem m;

    if (words == NULL || texts == NULL || (floats == NULL && n_floats > 0) || out == NULL)
        return TUCK_EINVAL;
    mem_init(&m, alloc);
    tuck_arrays *a = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*a));
    if (a == NULL)
        return TUCK_ENOMEM;
    *a = (tuck_arrays){.mem = m};
    buf_init(&a->text, &a->mem);
    struct input in = {.a = a,
                       .store = store_new(alloc),
                       .word = words,
                       .end = words + n_words,
                       .real = floats,
                       .n_real = n_floats,
                       .text = texts,
                       .text_len = texts_len};
    tuck_status st = TUCK_ENOMEM;
    if (in.store != NULL) {
        arena_init(&in.arena, &in.store->mem);
        st = fill(&in, diags);
        store_release(in.store); /* the document has a reference of its own */
    }
    if (st == TUCK_OK)
        *out = a;
    else
        tuck_arrays_free(a);
    return st;
}

#include "fx/groups.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "fx/ops.h"

/* ---- which group a collective names ---- */

/* Places of the parameters that matter here, per operator; found out once per walk. */
struct places {
    int8_t group, size, ranks, tag, splits;
    bool known;
};

struct walk {
    struct mem *mem;
    struct fx_store *store;
    struct arena arena;
    struct places *place;
    VEC(uint32_t) seen_serial; /* by name: the graph in whose list … */
    VEC(uint32_t) seen_index;  /* … it is known at this index */
    VEC(tuck_graph *) todo;
    struct buf name;
    tuck_diags *diags;
    tuck_doc *doc;
    const struct fx_group *script;
    uint32_t n_script;
};

static const struct places *places_of(struct walk *w, uint32_t op)
{
    struct places *x = &w->place[op];
    struct op_sig sig;

    if (x->known)
        return x;
    struct arena_mark mark = arena_mark(&w->arena);
    *x = (struct places){-1, -1, -1, -1, -1, true};
    if (op_sig_parse(&w->arena, op_at(op), &sig, NULL)) {
        x->group = (int8_t)op_param_find(&sig, "group_name", 10);
        x->size = (int8_t)op_param_find(&sig, "group_size", 10);
        x->ranks = (int8_t)op_param_find(&sig, "ranks", 5);
        x->tag = (int8_t)op_param_find(&sig, "tag", 3);
        x->splits = (int8_t)op_param_find(&sig, "output_split_sizes", 18);
    }
    arena_release(&w->arena, mark);
    return x;
}

/* Argument number i, by place or by the name of the parameter. */
static const tuck_value *argument(const tuck_graph *g, const struct fx_node *x, int i,
                                  const char *name)
{
    const tuck_value *v = x->vals;

    if (i < 0)
        return NULL;
    for (uint32_t k = 0; k < x->n_args; k++, v = value_next(v))
        if (k == (uint32_t)i)
            return v;
    for (uint32_t k = 0; k < x->n_kwargs; k++) {
        if (strcmp(graph_str(g, v->a), name) == 0)
            return v + 1;
        v = value_next(v + 1);
    }
    return NULL;
}

/* What a group is called. One that is a value goes by its definition, so that two calls which yield the
 * same group are the same: "self._opaque_obj0", "mesh_get_process_group(arg0_1, 1)". */
static bool name_value(struct buf *b, const tuck_graph *g, const tuck_value *v)
{
    b->len = 0;
    if (v->kind == TUCK_V_STR) {
        const struct str *s = str_at(&g->store->str, v->a);
        buf_add(b, s->at, s->len);
        return true;
    }
    if (v->kind != TUCK_V_NODE)
        return false;
    const struct fx_node *x = node_at(g, v->a);
    if (x->kind == TUCK_GET_ATTR) {
        buf_printf(b, "self.%s", graph_str(g, x->target));
        return true;
    }
    if (x->kind == TUCK_CALL_FUNCTION && op_at(x->op)->cls == OP_GROUP && x->n_args == 2 &&
        x->vals[0].kind == TUCK_V_NODE && x->vals[1].kind == TUCK_V_INT) {
        buf_printf(b, "mesh_get_process_group(%s, %" PRId64 ")",
                   graph_str(g, node_at(g, x->vals[0].a)->name), x->vals[1].u.i);
        return true;
    }
    buf_str(b, graph_str(g, x->name));
    return true;
}

static void copy_ranks(tuck_graph *g, struct fx_group *to, const int64_t *ranks, int64_t n)
{
    int64_t *copy = arena_array(&g->arena, int64_t, (size_t)n);

    memcpy(copy, ranks, (size_t)n * sizeof(*copy));
    to->ranks = copy;
}

static struct diag_pos whole_graph(const tuck_graph *g, struct diag_source *src)
{
    *src = (struct diag_source){.file = graph_str(g, g->source_name)};
    return (struct diag_pos){.source = src};
}

static const char *source_name(enum group_source s)
{
    static const char *const name[] = {"nowhere", "the collectives", "the script", "the side-car",
                                       "the command line"};
    return name[s];
}

/* Put what one source says into a group; a later one wins, a contradiction is worth a warning. */
static void merge(tuck_graph *g, struct fx_group *to, int64_t size, const int64_t *ranks,
                  int64_t rank, enum group_source from, tuck_diags *diags)
{
    struct diag_source src;

    if (size > 0 && to->size > 0 && to->size != size)
        diag_add(diags, TUCK_WARNING, whole_graph(g, &src), NULL,
                 "group '%s' has %" PRId64 " ranks by %s and %" PRId64 " by %s; using %" PRId64,
                 graph_str(g, to->name), to->size, source_name(to->from), size, source_name(from),
                 size);
    if (size > 0) {
        if (to->ranks != NULL && to->size != size && ranks == NULL)
            to->ranks = NULL;
        to->size = size;
        to->from = (uint8_t)from;
    }
    if (ranks != NULL)
        copy_ranks(g, to, ranks, size);
    if (rank >= 0)
        to->rank = rank;
    graph_changed(g); /* what collectives cost depends on it */
}

static struct fx_group *find_group(tuck_graph *g, str_id name)
{
    for (uint32_t i = 0; i < g->group.len; i++)
        if (g->group.at[i].name == name)
            return &g->group.at[i];
    return NULL;
}

static struct fx_group *meet_group(struct walk *w, tuck_graph *g, str_id name, uint32_t node)
{
    while (w->seen_serial.len <= name) {
        vec_push(w->mem, &w->seen_serial, 0);
        vec_push(w->mem, &w->seen_index, 0);
    }
    if (w->seen_serial.at[name] != g->serial) {
        vec_push(w->mem, &g->group, ((struct fx_group){.name = name, .node = node, .rank = -1}));
        w->seen_serial.at[name] = g->serial;
        w->seen_index.at[name] = g->group.len - 1;
    }
    return &g->group.at[w->seen_index.at[name]];
}

static bool communicates(const struct fx_node *x)
{
    uint8_t cls = op_at(x->op)->cls;

    return x->kind == TUCK_CALL_FUNCTION &&
           (cls == OP_COLLECTIVE || cls == OP_SYNC_COLLECTIVE || cls == OP_P2P);
}

/* Old c10d_functional: the ranks themselves are printed. */
static void visit_ranks(struct walk *w, tuck_graph *g, const struct fx_node *x,
                        const struct places *at)
{
    const tuck_value *ranks = argument(g, x, at->ranks, "ranks");
    int64_t n = ranks != NULL && ranks->kind == TUCK_V_LIST ? ranks->a : 0;

    if (n == 0)
        return;
    struct arena_mark mark = arena_mark(&w->arena);
    int64_t *list = arena_array(&w->arena, int64_t, (size_t)n);
    w->name.len = 0;
    buf_str(&w->name, "ranks ");
    for (int64_t i = 0; i < n; i++) {
        const tuck_value *v = value_item(ranks, (size_t)i);
        list[i] = v->kind == TUCK_V_INT ? v->u.i : -1;
        buf_printf(&w->name, "%s%" PRId64, i ? "," : "", list[i]);
    }
    str_id name = str_intern(&w->store->str, w->name.at, w->name.len);
    merge(g, meet_group(w, g, name, 0), n, list, -1, GROUP_TEXT, w->diags);
    arena_release(&w->arena, mark);
}

static void visit(struct walk *w, tuck_graph *g, uint32_t n)
{
    const struct fx_node *x = node_at(g, n);
    const struct places *at = places_of(w, x->op);
    const tuck_value *v = argument(g, x, at->group, "group_name");

    if (at->group < 0 && at->ranks >= 0)
        visit_ranks(w, g, x, at);
    if (v == NULL || !name_value(&w->name, g, v))
        return;
    str_id name = str_intern(&w->store->str, w->name.len ? w->name.at : "", w->name.len);
    struct fx_group *group = meet_group(w, g, name, v->kind == TUCK_V_NODE ? v->a : 0);
    int64_t size = 0;
    const tuck_value *s = argument(g, x, at->size, "group_size");
    if (s != NULL && s->kind == TUCK_V_INT)
        size = s->u.i;
    s = argument(g, x, at->splits, "output_split_sizes");
    if (s != NULL && s->kind == TUCK_V_LIST)
        size = s->a;
    if (size > 0 && group->size != size)
        merge(g, group, size, NULL, -1, GROUP_TEXT, w->diags);
}

static void do_collect(void *p)
{
    struct walk *w = p;
    size_t bytes = (op_count() + 1) * sizeof(*w->place);

    w->place = arena_zeroed(&w->arena, bytes);
    for (uint32_t i = 0; i < w->doc->entry.len; i++)
        vec_push(w->mem, &w->todo, w->doc->entry.at[i].graph);
    while (w->todo.len > 0) {
        tuck_graph *g = w->todo.at[--w->todo.len];

        for_each_node (g, n)
            if (communicates(node_at(g, n)))
                visit(w, g, n);
        for (uint32_t i = 0; i < w->n_script; i++) {
            struct fx_group *to = find_group(g, w->script[i].name);
            if (to != NULL)
                merge(g, to, w->script[i].size, NULL, w->script[i].rank, GROUP_SCRIPT, w->diags);
        }
        for (uint32_t i = 0; i < g->child.len; i++)
            vec_push(w->mem, &w->todo, g->child.at[i]);
    }
}

void groups_collect(tuck_doc *doc, const struct fx_group *script, uint32_t n_script,
                    tuck_diags *diags)
{
    struct walk w = {.mem = &doc->store->mem,
                     .store = doc->store,
                     .diags = diags,
                     .doc = doc,
                     .script = script,
                     .n_script = n_script};

    arena_init(&w.arena, w.mem);
    buf_init(&w.name, w.mem);
    bool ok = mem_guard(w.mem, do_collect, &w);
    vec_free(w.mem, &w.seen_serial);
    vec_free(w.mem, &w.seen_index);
    vec_free(w.mem, &w.todo);
    buf_destroy(&w.name);
    arena_destroy(&w.arena);
    if (!ok)
        mem_exhausted(w.mem);
}

/* A group of that name: index into g->group, or -1. */
static int index_of(const tuck_graph *g, str_id name)
{
    for (uint32_t i = 0; i < g->group.len; i++)
        if (g->group.at[i].name == name)
            return (int)i;
    return -1;
}

static str_id group_name(const tuck_graph *g, const tuck_value *v, struct buf *b)
{
    if (v->kind == TUCK_V_STR)
        return v->a;
    return name_value(b, g, v) ? str_find(&g->store->str, b->at ? b->at : "", b->len) : 0;
}

/* The group whose members are printed. */
static int group_of_ranks(const tuck_graph *g, const tuck_value *v)
{
    int out = -1;

    for (uint32_t i = 0; v != NULL && v->kind == TUCK_V_LIST && i < g->group.len; i++) {
        const struct fx_group *q = &g->group.at[i];
        bool same = q->ranks != NULL && q->size == (int64_t)v->a;
        for (uint32_t k = 0; same && k < v->a; k++)
            same = value_item(v, k)->u.i == q->ranks[k];
        if (same)
            out = (int)i;
    }
    return out;
}

struct of_args {
    const tuck_graph *g;
    uint32_t node;
    struct mem mem;
    struct arena arena;
    struct buf name;
    int out;
};

static void do_group_of(void *p)
{
    struct of_args *a = p;
    const struct fx_node *x = node_at(a->g, a->node);
    struct op_sig sig;

    if (!communicates(x) || !op_sig_parse(&a->arena, op_at(x->op), &sig, NULL))
        return;
    const tuck_value *v = argument(a->g, x, op_param_find(&sig, "group_name", 10), "group_name");
    if (v != NULL)
        a->out = index_of(a->g, group_name(a->g, v, &a->name));
    else
        a->out = group_of_ranks(a->g, argument(a->g, x, op_param_find(&sig, "ranks", 5), "ranks"));
}

int group_of(const tuck_graph *g, uint32_t node)
{
    struct of_args a = {.g = g, .node = node, .out = -1};

    mem_init(&a.mem, &g->store->mem.alloc);
    arena_init(&a.arena, &a.mem);
    buf_init(&a.name, &a.mem);
    if (!mem_guard(&a.mem, do_group_of, &a))
        a.out = -1;
    buf_destroy(&a.name);
    arena_destroy(&a.arena);
    return a.out;
}

struct all_of {
    const tuck_graph *g;
    struct walk w;
    int32_t *of, *by_name;
};

static void do_groups_of(void *p)
{
    struct all_of *x = p;
    const tuck_graph *g = x->g;

    x->w.place = arena_zeroed(&x->w.arena, (op_count() + 1) * sizeof(*x->w.place));
    x->by_name = arena_zeroed(&x->w.arena, g->store->str.all.len * sizeof(*x->by_name));
    for (uint32_t i = 0; i < g->group.len; i++) /* 0 = no such group */
        x->by_name[g->group.at[i].name] = (int32_t)i + 1;
    for_each_node (g, n) {
        const struct fx_node *node = node_at(g, n);

        if (!communicates(node))
            continue;
        const struct places *at = places_of(&x->w, node->op);
        const tuck_value *v = argument(g, node, at->group, "group_name");
        if (v != NULL)
            x->of[n] = x->by_name[group_name(g, v, &x->w.name)] - 1;
        else
            x->of[n] = group_of_ranks(g, argument(g, node, at->ranks, "ranks"));
    }
}

const int32_t *groups_of_nodes(const tuck_graph *g, struct arena *a)
{
    struct all_of x = {.g = g, .w = {.mem = a->mem, .store = g->store}};

    x.of = arena_array(a, int32_t, g->node.len);
    for (uint32_t n = 0; n < g->node.len; n++)
        x.of[n] = -1;
    arena_init(&x.w.arena, a->mem);
    buf_init(&x.w.name, a->mem);
    bool ok = mem_guard(a->mem, do_groups_of, &x);
    buf_destroy(&x.w.name);
    arena_destroy(&x.w.arena);
    if (!ok)
        mem_exhausted(a->mem);
    return x.of;
}

/* ---- later sources ---- */

struct learn_args {
    tuck_graph *g;
    const char *name;
    int64_t size, rank;
    const int64_t *ranks;
    enum group_source from;
    tuck_diags *diags;
    VEC(tuck_graph *) todo;
    bool met;
};

static void do_learn(void *p)
{
    struct learn_args *a = p;
    struct mem *m = &a->g->store->mem;
    str_id name = str_find(&a->g->store->str, a->name, strlen(a->name));

    vec_push(m, &a->todo, a->g);
    while (name != 0 && a->todo.len > 0) {
        tuck_graph *g = a->todo.at[--a->todo.len];
        struct fx_group *to = find_group(g, name);

        if (to != NULL) {
            merge(g, to, a->size, a->ranks, a->rank, a->from, a->met ? NULL : a->diags);
            a->met = true;
        }
        for (uint32_t i = 0; i < g->child.len; i++)
            vec_push(m, &a->todo, g->child.at[i]);
    }
}

static bool learn(struct learn_args *a)
{
    struct mem *m = &a->g->store->mem;
    bool ok = mem_guard(m, do_learn, a);

    vec_free(m, &a->todo);
    return ok;
}

tuck_status tuck_graph_set_group(tuck_graph *g, const char *name, int64_t size,
                                 const int64_t *ranks, tuck_diags *diags)
{
    struct learn_args a = {.g = g,
                           .name = name,
                           .size = size,
                           .ranks = ranks,
                           .rank = -1,
                           .from = GROUP_USER,
                           .diags = diags};

    if (name == NULL || size <= 0)
        return TUCK_EINVAL;
    if (!learn(&a))
        return TUCK_ENOMEM;
    return a.met ? TUCK_OK : TUCK_EINVAL;
}

struct inherit_args {
    const tuck_graph *from;
    tuck_graph *to;
    VEC(uint32_t) known; /* by name in the store of `to`: a group of `from`, from 1 on */
    VEC(tuck_graph *) todo;
};

static void inherit(tuck_graph *g, const struct inherit_args *a)
{
    for (uint32_t i = 0; i < g->group.len; i++) {
        struct fx_group *to = &g->group.at[i];
        uint32_t known = to->name < a->known.len ? a->known.at[to->name] : 0;
        const struct fx_group *from = known ? &a->from->group.at[known - 1] : NULL;

        if (from != NULL && to->ranks == NULL && (to->size == 0 || to->size == from->size))
            merge(g, to, from->size, from->ranks, -1, GROUP_USER, NULL);
    }
}

static void do_inherit(void *p)
{
    struct inherit_args *a = p;
    struct mem *m = &a->to->store->mem;

    for (uint32_t i = 0; i < a->from->group.len; i++) {
        const struct fx_group *x = &a->from->group.at[i];
        const struct str *s = str_at(&a->from->store->str, x->name);
        str_id name = str_find(&a->to->store->str, s->at, s->len);
        if (name == 0 || x->size <= 0)
            continue;
        while (a->known.len <= name)
            vec_push(m, &a->known, 0);
        a->known.at[name] = i + 1;
    }
    vec_push(m, &a->todo, a->to);
    while (a->todo.len > 0) {
        tuck_graph *g = a->todo.at[--a->todo.len];
        inherit(g, a);
        for (uint32_t i = 0; i < g->child.len; i++)
            vec_push(m, &a->todo, g->child.at[i]);
    }
}

tuck_status groups_inherit(const tuck_graph *from, tuck_graph *to)
{
    struct inherit_args a = {.from = from, .to = to};
    struct mem *m = &to->store->mem;
    bool ok = mem_guard(m, do_inherit, &a);

    vec_free(m, &a.known);
    vec_free(m, &a.todo);
    return ok ? TUCK_OK : TUCK_ENOMEM;
}

static void set_rank(tuck_graph *g, int64_t rank, tuck_diags *diags)
{
    for (uint32_t i = 0; i < g->group.len; i++) {
        struct fx_group *q = &g->group.at[i];
        struct diag_source src;
        int64_t at = -1;

        if (q->ranks == NULL)
            continue;
        for (int64_t k = 0; k < q->size; k++)
            if (q->ranks[k] == rank)
                at = k;
        if (at < 0)
            diag_add(diags, TUCK_WARNING, whole_graph(g, &src), NULL,
                     "rank %" PRId64 " is no member of group '%s'", rank, graph_str(g, q->name));
        q->rank = at;
    }
}

struct rank_args {
    tuck_graph *g;
    int64_t rank;
    tuck_diags *diags;
    VEC(tuck_graph *) todo;
};

static void do_set_rank(void *p)
{
    struct rank_args *a = p;
    struct mem *m = &a->g->store->mem;

    vec_push(m, &a->todo, a->g);
    while (a->todo.len > 0) {
        tuck_graph *g = a->todo.at[--a->todo.len];

        set_rank(g, a->rank, a->diags);
        for (uint32_t i = 0; i < g->child.len; i++)
            vec_push(m, &a->todo, g->child.at[i]);
    }
}

tuck_status tuck_graph_set_rank(tuck_graph *g, int64_t rank, tuck_diags *diags)
{
    struct rank_args a = {.g = g, .rank = rank, .diags = diags};
    struct mem *m = &g->store->mem;

    if (rank < 0)
        return TUCK_EINVAL;
    bool ok = mem_guard(m, do_set_rank, &a);
    vec_free(m, &a.todo);
    return ok ? TUCK_OK : TUCK_ENOMEM;
}

/* ---- side-car ---- */

struct sidecar {
    tuck_graph *g;
    const char *path; /* of the json */
    tuck_diags *diags;
    bool bad, no_memory;
};

static void complain(struct sidecar *s, const char *member, const char *what)
{
    struct diag_source src = {.file = s->path};

    diag_add(s->diags, TUCK_ERROR, (struct diag_pos){.source = &src}, NULL, "%s: %s", member, what);
    s->bad = true;
}

static void learn_one(struct sidecar *s, const char *name, const json_t *v)
{
    const json_t *size = json_object_get(v, "size"), *list = json_object_get(v, "ranks");
    int64_t *ranks = NULL;
    size_t n = json_array_size(list);
    struct learn_args a = {
        .g = s->g, .name = name, .rank = -1, .from = GROUP_SIDECAR, .diags = s->diags};

    if (size != NULL && (!json_is_integer(size) || json_integer_value(size) <= 0)) {
        complain(s, "groups", "a group's size must be a positive integer");
        return;
    }
    if (list != NULL && !json_is_array(list)) {
        complain(s, "groups", "a group's ranks must be a list of integers");
        return;
    }
    a.size = size ? json_integer_value(size) : (int64_t)n;
    if (n > 0 && a.size == (int64_t)n) {
        ranks = malloc(n * sizeof(*ranks));
        if (ranks == NULL) {
            s->no_memory = true;
            return;
        }
        for (size_t i = 0; i < n; i++) {
            const json_t *r = json_array_get(list, i);
            if (!json_is_integer(r) || json_integer_value(r) < 0) {
                complain(s, "groups", "a group's ranks must be a list of integers");
                free(ranks);
                return;
            }
            ranks[i] = json_integer_value(r);
        }
        a.ranks = ranks;
    } else if (n > 0) {
        complain(s, "groups", "a group's size is not the number of its ranks");
        return;
    }
    if (a.size > 0 && !learn(&a))
        s->no_memory = true;
    free(ranks);
}

/* "x.rank3.txt" → 3, and where ".rank3" begins; -1 = the name says nothing. */
static int64_t rank_in_name(const char *path, size_t *stem)
{
    const char *dot = strrchr(path, '.');
    const char *slash = strrchr(path, '/');

    if (dot == NULL || (slash != NULL && dot < slash))
        dot = path + strlen(path);
    *stem = (size_t)(dot - path);
    const char *p = dot;
    while (p > path && p[-1] >= '0' && p[-1] <= '9')
        p--;
    if (p == dot || p - path < 5 || strncmp(p - 5, ".rank", 5) != 0 || dot - p > 9)
        return -1;
    *stem = (size_t)(p - 5 - path);
    return atoll(p);
}

static json_t *load(struct sidecar *s, bool *there)
{
    json_error_t error;
    FILE *f = fopen(s->path, "rb");

    *there = f != NULL;
    if (f == NULL)
        return NULL;
    json_t *root = json_loadf(f, 0, &error);
    fclose(f);
    if (root == NULL) {
        struct diag_source src = {.file = s->path};
        struct diag_pos pos = {.source = &src,
                               .line = (uint32_t)(error.line > 0 ? error.line : 1),
                               .column = (uint32_t)(error.column > 0 ? error.column : 1)};
        diag_add(s->diags, TUCK_ERROR, pos, NULL, "not JSON: %s", error.text);
        s->bad = true;
    }
    return root;
}

static void take(struct sidecar *s, json_t *root, int64_t file_rank, int64_t *rank)
{
    const json_t *groups = json_object_get(root, "groups");
    const json_t *by_rank = json_object_get(root, "groups_by_rank");
    const json_t *printed = json_object_get(root, "printed_on_rank");
    const char *name;
    json_t *v;

    if (!json_is_object(root)) {
        complain(s, "side-car", "must be an object");
        return;
    }
    if (file_rank >= 0 && by_rank != NULL) {
        groups = json_array_get(by_rank, (size_t)file_rank);
        if (groups == NULL) {
            complain(s, "groups_by_rank", "has no entry for the rank of this file");
            return;
        }
    }
    if (groups != NULL && !json_is_object(groups)) {
        complain(s, "groups", "must be an object");
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)groups, name, v)
    {
        if (!s->bad)
            learn_one(s, name, v);
    }
    if (*rank < 0)
        *rank = file_rank >= 0             ? file_rank
                : json_is_integer(printed) ? json_integer_value(printed)
                                           : -1;
}

tuck_status tuck_graph_read_sidecar(tuck_graph *g, const char *graph_path, int64_t rank,
                                    tuck_diags *diags)
{
    size_t stem, len = strlen(graph_path);
    int64_t file_rank = rank_in_name(graph_path, &stem);
    const char *dot = strrchr(graph_path, '.'), *slash = strrchr(graph_path, '/');
    size_t ext = dot && (!slash || dot > slash) ? (size_t)(dot - graph_path) : len;
    char *path = malloc(len + 6);
    bool there = false;

    if (path == NULL)
        return TUCK_ENOMEM;
    struct sidecar s = {.g = g, .path = path, .diags = diags};
    memcpy(path, graph_path, ext);
    strcpy(path + ext, ".json");
    json_t *root = load(&s, &there);
    bool own = there;
    if (!there && file_rank >= 0) {
        memcpy(path, graph_path, stem);
        strcpy(path + stem, ".json");
        root = load(&s, &there);
    }
    if (root != NULL)
        take(&s, root, own ? -1 : file_rank, &rank);
    if (rank < 0)
        rank = file_rank;
    json_decref(root);
    tuck_status st = s.no_memory ? TUCK_ENOMEM : s.bad ? TUCK_ESYNTAX : TUCK_OK;
    if (st == TUCK_OK && rank >= 0)
        st = tuck_graph_set_rank(g, rank, diags);
    free(path);
    return st;
}

size_t tuck_graph_group_count(const tuck_graph *g)
{
    return g->group.len;
}

const char *tuck_graph_group_name(const tuck_graph *g, size_t i)
{
    return i < g->group.len ? graph_str(g, g->group.at[i].name) : "";
}

int64_t tuck_graph_group_size(const tuck_graph *g, size_t i)
{
    return i < g->group.len ? g->group.at[i].size : 0;
}

int64_t tuck_graph_group_rank(const tuck_graph *g, size_t i)
{
    return i < g->group.len ? g->group.at[i].rank : -1;
}

const int64_t *tuck_graph_group_ranks(const tuck_graph *g, size_t i)
{
    return i < g->group.len ? g->group.at[i].ranks : NULL;
}

int tuck_node_group(const tuck_graph *g, tuck_node n)
{
    return node_alive(g, n.id) ? group_of(g, n.id) : -1;
}

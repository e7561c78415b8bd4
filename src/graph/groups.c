#include "graph/groups.h"

#include <inttypes.h>

#include "graph/call.h"
#include "op/ops.h"

/* ---- which group a collective names ---- */

/* Positions of the parameters that matter here, per operator; looked up once per walk. */
struct places {
    int8_t group, size, ranks, tag, splits;
    bool known;
};

struct walk {
    struct mem *mem;
    struct fx_store *store;
    struct arena arena;
    struct places *place;
    VEC(uint32_t) seen_serial; /* by name: the graph in whose list it is */
    VEC(uint32_t) seen_index;  /* by name: its index there */
    VEC(tuck_graph *) todo, outer;
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

static const tuck_value *argument(const tuck_graph *g, const struct fx_node *x, int i)
{
    return i < 0 ? NULL : call_operand(g, x, (uint32_t)i);
}

/* The name of a group. A group that is a value is named by its definition, so that two calls that
 * yield the same group are equal: "self._opaque_obj0", "mesh_get_process_group(arg0_1, 1)". */
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
    static const char *const name[] = {"nowhere",      "the collectives",
                                       "the script",   "the line above the graph",
                                       "the side-car", "the command line"};
    return name[s];
}

/* The position of a global rank among the known members; -1 if absent. */
static int64_t place_of(const struct fx_group *q, int64_t rank)
{
    int64_t at = -1;

    for (int64_t k = 0; k < q->size; k++)
        if (q->ranks[k] == rank)
            at = k;
    return at;
}

/* Adds one source's facts to a group; later sources win, contradictions get a warning. */
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
    else if (ranks != NULL && g->rank >= 0)
        to->rank = place_of(to, g->rank);
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

/* Old c10d_functional prints the ranks themselves. */
static void visit_ranks(struct walk *w, tuck_graph *g, const struct fx_node *x,
                        const struct places *at)
{
    const tuck_value *ranks = argument(g, x, at->ranks);
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

/* A call that communicates. */
static void visit(struct walk *w, tuck_graph *g, const struct fx_node *x)
{
    const struct places *at = places_of(w, x->op);
    const tuck_value *v = argument(g, x, at->group);

    if (at->group < 0 && at->ranks >= 0)
        visit_ranks(w, g, x, at);
    if (v == NULL || !name_value(&w->name, g, v))
        return;
    str_id name = str_intern(&w->store->str, w->name.len ? w->name.at : "", w->name.len);
    struct fx_group *group = meet_group(w, g, name, v->kind == TUCK_V_NODE ? v->a : 0);
    int64_t size = 0;
    const tuck_value *s = argument(g, x, at->size);
    if (s != NULL && s->kind == TUCK_V_INT)
        size = s->u.i;
    s = argument(g, x, at->splits);
    if (s != NULL && s->kind == TUCK_V_LIST)
        size = s->a;
    if (size > 0 && group->size != size)
        merge(g, group, size, NULL, -1, GROUP_TEXT, w->diags);
}

/* A graph also knows the groups of the graphs in it, unless they are values there. */
static void know_groups_of(struct walk *w, tuck_graph *g, const tuck_graph *child)
{
    for (uint32_t i = 0; i < child->group.len; i++) {
        struct fx_group q = child->group.at[i];
        struct fx_group *to = q.node == 0 ? find_group(g, q.name) : NULL;

        if (q.node != 0)
            continue;
        if (to == NULL)
            vec_push(w->mem, &g->group, q);
        else if (to->size == 0 && q.size > 0)
            merge(g, to, q.size, q.ranks, q.rank, (enum group_source)q.from, w->diags);
    }
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

        for_each_node (g, n) {
            const struct fx_node *x = acting_call(g, n, &w->arena);
            if (communicates(x))
                visit(w, g, x);
        }
        for (uint32_t i = 0; i < w->n_script; i++) {
            struct fx_group *to = find_group(g, w->script[i].name);
            if (to != NULL)
                merge(g, to, w->script[i].size, NULL, w->script[i].rank, GROUP_SCRIPT, w->diags);
        }
        for (uint32_t i = 0; i < g->child.len; i++)
            vec_push(w->mem, &w->todo, g->child.at[i]);
        if (g->child.len > 0)
            vec_push(w->mem, &w->outer, g);
    }
    while (w->outer.len > 0) { /* parents before children */
        tuck_graph *g = w->outer.at[--w->outer.len];
        for (uint32_t i = 0; i < g->child.len; i++)
            know_groups_of(w, g, g->child.at[i]);
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
    vec_free(w.mem, &w.outer);
    buf_destroy(&w.name);
    arena_destroy(&w.arena);
    if (!ok)
        mem_exhausted(w.mem);
}

struct said_args {
    struct walk w;
    tuck_graph *g;
};

static void do_said(void *p)
{
    struct said_args *a = p;
    tuck_graph *g = a->g;

    a->w.place = arena_zeroed(&a->w.arena, (op_count() + 1) * sizeof(*a->w.place));
    for_each_node (g, n) {
        const struct fx_node *x = acting_call(g, n, &a->w.arena);
        if (communicates(x))
            visit(&a->w, g, x);
    }
}

void groups_said(tuck_graph *g, int64_t *size)
{
    struct said_args a = {.g = g, .w = {.mem = &g->store->mem, .store = g->store}};
    tuck_graph as_known = *g; /* its list of groups: the walk makes a new one */

    memset(&g->group, 0, sizeof(g->group));
    arena_init(&a.w.arena, a.w.mem);
    buf_init(&a.w.name, a.w.mem);
    bool ok = mem_guard(a.w.mem, do_said, &a);
    for (uint32_t i = 0; ok && i < as_known.group.len; i++) {
        const struct fx_group *said = find_group(g, as_known.group.at[i].name);
        size[i] = said ? said->size : 0;
    }
    vec_free(a.w.mem, &g->group);
    g->group = as_known.group;
    vec_free(a.w.mem, &a.w.seen_serial);
    vec_free(a.w.mem, &a.w.seen_index);
    buf_destroy(&a.w.name);
    arena_destroy(&a.w.arena);
    if (!ok)
        mem_exhausted(a.w.mem);
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
    const struct fx_node *x = acting_call(a->g, a->node, &a->arena);
    struct op_sig sig;

    if (!communicates(x) || !op_sig_parse(&a->arena, op_at(x->op), &sig, NULL))
        return;
    const tuck_value *v = argument(a->g, x, op_param_find(&sig, "group_name", 10));
    if (v != NULL)
        a->out = index_of(a->g, group_name(a->g, v, &a->name));
    else
        a->out = group_of_ranks(a->g, argument(a->g, x, op_param_find(&sig, "ranks", 5)));
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
    int32_t *of;
    int32_t *by_name; /* its group and 1; NULL if there are few */
};

enum { FEW = 8 };

static int32_t group_named(const struct all_of *x, str_id name)
{
    return x->by_name != NULL ? x->by_name[name] - 1 : index_of(x->g, name);
}

static void do_groups_of(void *p)
{
    struct all_of *x = p;
    const tuck_graph *g = x->g;

    x->w.place = arena_zeroed(&x->w.arena, (op_count() + 1) * sizeof(*x->w.place));
    if (g->group.len > FEW) {
        x->by_name = arena_zeroed(&x->w.arena, g->store->str.all.len * sizeof(*x->by_name));
        for (uint32_t i = 0; i < g->group.len; i++) /* 0 = no such group */
            x->by_name[g->group.at[i].name] = (int32_t)i + 1;
    }
    for_each_node (g, n) {
        if (node_is_silent(node_at(g, n)))
            continue;
        const struct fx_node *node = acting_call(g, n, &x->w.arena);
        if (!communicates(node))
            continue;
        const struct places *at = places_of(&x->w, node->op);
        const tuck_value *v = argument(g, node, at->group);
        if (v != NULL)
            x->of[n] = group_named(x, group_name(g, v, &x->w.name));
        else
            x->of[n] = group_of_ranks(g, argument(g, node, at->ranks));
    }
}

const int32_t *groups_of_nodes(const tuck_graph *g, struct arena *a)
{
    struct all_of x = {.g = g, .w = {.mem = a->mem, .store = g->store}};

    x.of = arena_array(a, int32_t, g->node.len);
    memset(x.of, -1, g->node.len * sizeof(*x.of));
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

tuck_status group_learn(tuck_graph *g, const char *name, const struct fx_group *what,
                        tuck_diags *diags)
{
    struct learn_args a = {.g = g,
                           .name = name,
                           .size = what->size,
                           .ranks = what->ranks,
                           .rank = what->rank,
                           .from = (enum group_source)what->from,
                           .diags = diags};

    return learn(&a) ? TUCK_OK : TUCK_ENOMEM;
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
    g->rank = rank;
    for (uint32_t i = 0; i < g->group.len; i++) {
        struct fx_group *q = &g->group.at[i];
        struct diag_source src;

        if (q->ranks == NULL)
            continue;
        q->rank = place_of(q, rank);
        if (q->rank < 0)
            diag_add(diags, TUCK_WARNING, whole_graph(g, &src), NULL,
                     "rank %" PRId64 " is no member of group '%s'", rank, graph_str(g, q->name));
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

    if (g == NULL || rank < 0)
        return TUCK_EINVAL;
    struct mem *m = &g->store->mem;
    bool ok = mem_guard(m, do_set_rank, &a);
    vec_free(m, &a.todo);
    return ok ? TUCK_OK : TUCK_ENOMEM;
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

int64_t tuck_graph_rank(const tuck_graph *g)
{
    return g->rank;
}

int tuck_node_group(const tuck_graph *g, tuck_node n)
{
    return node_alive(g, n.id) ? group_of(g, n.id) : -1;
}

tuck_status tuck_graph_inherit_groups(const tuck_graph *from, tuck_graph *to)
{
    return from == NULL || to == NULL ? TUCK_EINVAL : groups_inherit(from, to);
}

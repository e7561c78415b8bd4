/* Changes a graph. Every function checks first, then allocates all the memory it may need, and
 * changes the graph last: a failed edit leaves nothing behind but a few bytes in an arena. */
#include "graph/edit.h"

#include "base/utf8.h"
#include "op/ops.h"
#include "graph/storage.h"

/* ---- new graphs ---- */

struct new_args {
    struct fx_store *store;
    const char *name;
    tuck_graph *g;
};

static void do_new(void *p)
{
    struct new_args *x = p;

    str_id name = str_intern(&x->store->str, x->name, strlen(x->name));
    tuck_graph *g = graph_new(x->store);
    g->name = name;
    g->style = (struct fx_style){.form = FX_CLASS,
                                 .frees = FX_FREES_FULL,
                                 .annotated = true,
                                 .strides = true,
                                 .devices = true,
                                 .pass_body = true};
    g->fresh = g->edited = true;
    x->g = g;
}

tuck_status tuck_graph_new(const char *name, const tuck_allocator *alloc, tuck_graph **g_out)
{
    struct new_args x = {.name = name ? name : "GraphModule"};

    if (g_out == NULL || !edit_plain_text(x.name) || strpbrk(x.name, " (#") != NULL)
        return TUCK_EINVAL;
    x.store = store_new(alloc);
    if (x.store == NULL)
        return TUCK_ENOMEM;
    bool ok = mem_guard(&x.store->mem, do_new, &x);
    store_release(x.store); /* the graph has a reference of its own */
    if (!ok)
        return TUCK_ENOMEM;
    *g_out = x.g;
    return TUCK_OK;
}

/* ---- new nodes ---- */

struct edit {
    tuck_graph *g;
    uint32_t n; /* the node being edited */
    tuck_kind kind;
    uint32_t before;
    const char *target, *name, *annotation;
    const tuck_args *args;
    struct buf b;
    tuck_status status;
};

static uint32_t n_vals(const tuck_args *a)
{
    return a ? a->list.v.len : 0;
}

/* Are there as many arguments as this kind of node must have? */
static bool args_fit(tuck_kind kind, const tuck_args *a)
{
    uint32_t n_args = a ? a->n_args : 0, n_kwargs = a ? a->n_kwargs : 0;

    switch (kind) {
    case TUCK_PLACEHOLDER:
    case TUCK_GET_ATTR: return n_args + n_kwargs == 0;
    case TUCK_OUTPUT: return n_args == 1 && n_kwargs == 0;
    case TUCK_CALL_METHOD: return n_args > 0 && a->list.v.at[0].kind == TUCK_V_NODE;
    case TUCK_CALL_FUNCTION:
    case TUCK_CALL_MODULE: return true;
    default: return false; /* opaque statements cannot be edited */
    }
}

static bool target_fits(tuck_kind kind, const char *target)
{
    switch (kind) {
    case TUCK_PLACEHOLDER: return edit_param_name(target) != NULL;
    case TUCK_GET_ATTR:
    case TUCK_CALL_MODULE: return edit_is_path(target);
    case TUCK_CALL_METHOD: return edit_plain_text(target) && is_identifier(target);
    case TUCK_CALL_FUNCTION: return edit_is_dotted(target);
    default: return false;
    }
}

/* Would a parameter of that name clash with another one, a node or a global? */
static bool param_taken(tuck_graph *g, const char *target, uint32_t self)
{
    const char *name = edit_param_name(target);
    str_id id = str_find(&g->store->str, name, strlen(name));

    if (id == 0)
        return false;
    uint32_t node = name_lookup(g, id);
    return (node != 0 && node != self) || edit_is_param(g, id, self) ||
           (name_flags(g, id) & (NAME_INNER | NAME_WORD)) != 0;
}

/* Sets operator, spelling and target of a call, and records words that the text then uses as
 * globals. False: one of them is the name of a node. */
static bool set_callee(tuck_graph *g, struct fx_node *x, const char *target, const tuck_value *v,
                       uint32_t n_args, uint32_t n_kwargs)
{
    uint32_t op = op_find(target, strlen(target));

    x->op = (uint16_t)op;
    x->syntax = edit_spelling(g, op, v, n_args, n_kwargs);
    if (x->syntax == FX_OPERATOR)
        target = op_at(op)->name;
    else if (x->syntax == FX_ATTRIBUTE)
        target = "getattr";
    else if (edit_words_taken(g, target))
        return false;
    else
        names_add_words(g, target);
    x->target = str_intern(&g->store->str, target, strlen(target));
    return true;
}

/* A copy of the arguments that the node can keep, and room for its uses. */
static tuck_value *copy_vals(tuck_graph *g, const tuck_args *a)
{
    uint32_t n = n_vals(a);
    tuck_value *v = arena_array(&g->arena, tuck_value, n);

    vec_reserve(&g->store->mem, &g->use, n);
    if (n > 0)
        memcpy(v, a->list.v.at, n * sizeof(*v));
    return v;
}

static str_id intern(tuck_graph *g, const char *s)
{
    return str_intern(&g->store->str, s, strlen(s));
}

/* The name of a new node and, for a placeholder, its parameter. */
static bool name_new(struct edit *x, struct fx_node *init, struct fx_param *q)
{
    tuck_graph *g = x->g;
    const char *target = x->target;

    x->b.len = 0;
    if (x->name != NULL)
        buf_str(&x->b, x->name);
    else
        edit_candidate(&x->b, x->kind, target);
    if (x->kind == TUCK_PLACEHOLDER && edit_has_params(g) && target != NULL &&
        param_taken(g, target, 0))
        return false;
    init->name = name_create(g, x->b.at ? x->b.at : "", x->b.len);
    if (x->kind == TUCK_PLACEHOLDER) {
        if (target == NULL || !edit_has_params(g))
            target = graph_str(g, init->name);
        init->target = q->text = intern(g, target);
        q->aliased = strcmp(edit_raw_name(g, q), graph_str(g, init->name)) != 0;
        names_add_param(g, q->text);
    }
    return true;
}

static void do_add(void *p)
{
    struct edit *x = p;
    tuck_graph *g = x->g;
    struct mem *m = &g->store->mem;
    struct fx_node init = {.kind = (uint8_t)x->kind};
    struct fx_param q = {.text = 0};
    uint32_t n_args = x->args ? x->args->n_args : 0, n_kwargs = x->args ? x->args->n_kwargs : 0;
    uint32_t at = 0;
    bool ok;

    x->status = TUCK_EINVAL;
    init.ann = q.ann = edit_annotation(&x->b, g, x->annotation, &ok);
    tuck_value *v = copy_vals(g, x->args);
    if (!ok || !edit_enter_words(g, x->args))
        return;
    if (x->kind == TUCK_CALL_FUNCTION) {
        if (!set_callee(g, &init, x->target, v, n_args, n_kwargs))
            return;
    } else if (x->target != NULL) {
        init.target = intern(g, x->target);
    }
    if (!name_new(x, &init, &q))
        return;
    bool param = x->kind == TUCK_PLACEHOLDER && edit_has_params(g);
    if (param) {
        uint32_t prev = g->node.at[x->before].prev;
        at = prev != 0 ? edit_param_of(g, prev) + 1 : 0;
        if (!edit_param_fits(g, &q, at))
            return;
        vec_reserve(m, &g->param, 1);
    }
    vec_reserve(m, &g->node, 1);

    /* From here on nothing can fail. */
    edit_note_annotation(g, init.ann);
    x->n = graph_add_node(g, x->before, init);
    graph_take_vals(g, x->n, v, n_vals(x->args), n_args, n_kwargs);
    name_enter(g, init.name, x->n);
    if (param) {
        q.node = x->n;
        edit_insert_param(g, at, q);
    }
    if (x->kind == TUCK_OUTPUT) {
        g->output = x->n;
        if (g->style.ret == FX_RETURN_MISSING)
            g->style.ret = FX_RETURN_PLAIN;
    }
    g->style.pass_body = false;
    graph_edited(g, true);
    x->status = TUCK_OK;
}

static tuck_status run(struct edit *x, void (*fn)(void *))
{
    struct mem *m = &x->g->store->mem;

    if (!graph_begin_edit(x->g))
        return TUCK_ENOMEM;

    buf_init(&x->b, m);
    bool enough = mem_guard(m, fn, x);
    buf_destroy(&x->b);
    return enough ? x->status : TUCK_ENOMEM;
}

tuck_status tuck_graph_add(tuck_graph *g, tuck_where where, tuck_kind kind, const char *target,
                           const tuck_args *args, const char *name, const char *annotation,
                           tuck_node *n_out)
{
    struct edit x = {.g = g,
                     .kind = kind,
                     .target = target,
                     .name = name,
                     .annotation = annotation,
                     .args = args};

    if (g == NULL)
        return TUCK_EINVAL;
    tuck_status st = args_check(args, g);
    if (st != TUCK_OK)
        return st;
    if (!args_fit(kind, args) || !edit_place(g, where, (uint8_t)kind, 0, &x.before))
        return TUCK_EINVAL;
    if (kind == TUCK_OUTPUT) {
        if (g->output != 0 || annotation != NULL)
            return TUCK_EINVAL;
        x.target = "output";
        x.name = "output";
    } else if (kind == TUCK_PLACEHOLDER && target == NULL) {
        if (name == NULL || edit_inputs_fixed(g))
            return TUCK_EINVAL;
    } else if (target == NULL || !target_fits(kind, target)) {
        return TUCK_EINVAL;
    }
    if (kind == TUCK_PLACEHOLDER && edit_inputs_fixed(g))
        return TUCK_EINVAL;
    st = run(&x, do_add);
    if (st == TUCK_OK && n_out != NULL)
        n_out->id = x.n;
    return st;
}

/* ---- changing a node ---- */

/* Comments after returned values are kept only while the number of values is the same. */
static void keep_descriptors(tuck_graph *g, const tuck_value *old, const tuck_value *now)
{
    bool same = old != NULL && old->kind == now->kind &&
                (!value_is_container(now) || old->a == now->a);

    if (!same) {
        g->out_descriptor.len = 0;
        g->style.ret_expanded = false;
    }
}

static void do_set_args(void *p)
{
    struct edit *x = p;
    tuck_graph *g = x->g;
    uint32_t n_args = x->args ? x->args->n_args : 0, n_kwargs = x->args ? x->args->n_kwargs : 0;
    struct fx_node now = *node_at(g, x->n);

    x->status = TUCK_EINVAL;
    tuck_value *v = copy_vals(g, x->args);
    if (!edit_enter_words(g, x->args))
        return;
    if (now.kind == TUCK_CALL_FUNCTION &&
        !set_callee(g, &now, graph_str(g, now.target), v, n_args, n_kwargs))
        return;
    if (now.kind == TUCK_OUTPUT)
        keep_descriptors(g, now.vals, v);
    graph_drop_vals(g, x->n);
    graph_take_vals(g, x->n, v, n_vals(x->args), n_args, n_kwargs);
    node_at(g, x->n)->syntax = now.syntax;
    node_at(g, x->n)->target = now.target;
    graph_edited(g, false);
    x->status = TUCK_OK;
}

tuck_status tuck_node_set_args(tuck_graph *g, tuck_node n, const tuck_args *args)
{
    struct edit x = {.g = g, .n = n.id, .args = args};

    if (g == NULL || !node_alive(g, n.id))
        return TUCK_EINVAL;
    tuck_status st = args_check(args, g);
    if (st != TUCK_OK)
        return st;
    if (!args_fit((tuck_kind)node_at(g, n.id)->kind, args))
        return TUCK_EINVAL;
    for (uint32_t i = 0; i < n_vals(args); i++)
        if (args->list.v.at[i].kind == TUCK_V_NODE && args->list.v.at[i].a == n.id)
            return TUCK_EINVAL; /* its own result */
    return run(&x, do_set_args);
}

static void do_set_target(void *p)
{
    struct edit *x = p;
    tuck_graph *g = x->g;
    struct fx_node now = *node_at(g, x->n);
    uint32_t at = NO_PARAM;
    struct fx_param q = {.text = 0};

    x->status = TUCK_EINVAL;
    if (now.kind == TUCK_CALL_FUNCTION) {
        if (!set_callee(g, &now, x->target, now.vals, now.n_args, now.n_kwargs))
            return;
    } else {
        now.target = intern(g, x->target);
    }
    if (now.kind == TUCK_PLACEHOLDER) {
        at = edit_param_of(g, x->n);
        if (at == NO_PARAM || param_taken(g, x->target, x->n))
            return;
        q = g->param.at[at];
        q.text = now.target;
        q.aliased = strcmp(edit_raw_name(g, &q), graph_str(g, now.name)) != 0;
        names_add_param(g, q.text);
        struct fx_param old = edit_remove_param(g, at); /* it must fit between its neighbors */
        bool fits = edit_param_fits(g, &q, at);
        edit_insert_param(g, at, fits ? q : old);
        if (!fits)
            return;
    }
    struct fx_node *node = node_at(g, x->n);
    node->target = now.target;
    node->op = now.op;
    node->syntax = now.syntax;
    graph_edited(g, false);
    x->status = TUCK_OK;
}

tuck_status tuck_node_set_target(tuck_graph *g, tuck_node n, const char *target)
{
    struct edit x = {.g = g, .n = n.id, .target = target};

    if (g == NULL || !node_alive(g, n.id) || target == NULL)
        return TUCK_EINVAL;
    tuck_kind kind = (tuck_kind)node_at(g, n.id)->kind;
    if (!target_fits(kind, target) || (kind == TUCK_PLACEHOLDER && !edit_has_params(g)))
        return TUCK_EINVAL;
    return run(&x, do_set_target);
}

static void do_set_annotation(void *p)
{
    struct edit *x = p;
    tuck_graph *g = x->g;
    bool ok;
    uint32_t ann = edit_annotation(&x->b, g, x->annotation, &ok);

    x->status = ok ? TUCK_OK : TUCK_EINVAL;
    if (!ok)
        return;
    edit_note_annotation(g, ann);
    node_at(g, x->n)->ann = ann;
    uint32_t at = node_at(g, x->n)->kind == TUCK_PLACEHOLDER ? edit_param_of(g, x->n) : NO_PARAM;
    if (at != NO_PARAM)
        g->param.at[at].ann = ann;
    graph_edited(g, false);
}

tuck_status tuck_node_set_annotation(tuck_graph *g, tuck_node n, const char *annotation)
{
    struct edit x = {.g = g, .n = n.id, .annotation = annotation};

    if (g == NULL || !node_alive(g, n.id))
        return TUCK_EINVAL;
    uint8_t kind = node_at(g, n.id)->kind;
    if (kind == TUCK_OUTPUT || kind == TUCK_OPAQUE || kind == TUCK_RESULT)
        return TUCK_EINVAL;
    return run(&x, do_set_annotation);
}

static void do_rename(void *p)
{
    struct edit *x = p;
    tuck_graph *g = x->g;
    str_id old = node_at(g, x->n)->name, now = 0;
    uint32_t at = node_at(g, x->n)->kind == TUCK_PLACEHOLDER ? edit_param_of(g, x->n) : NO_PARAM;

    x->status = TUCK_EINVAL;
    names_need(g);
    if (name_flags(g, old) & NAME_INNER)
        return; /* a nested graph refers to this node by that name */
    if (at != NO_PARAM && strcmp(edit_raw_name(g, &g->param.at[at]), x->name) == 0 &&
        !name_is_reserved(x->name, strlen(x->name)))
        now = intern(g, x->name); /* back to the parameter's name */
    if (now == 0 || name_lookup(g, now) != 0)
        now = name_create(g, x->name, strlen(x->name));
    name_enter(g, now, x->n);
    name_forget(g, old);
    node_at(g, x->n)->name = now;
    if (at != NO_PARAM)
        g->param.at[at].aliased = strcmp(edit_raw_name(g, &g->param.at[at]), graph_str(g, now)) !=
                                  0;
    else if (node_at(g, x->n)->kind == TUCK_PLACEHOLDER)
        node_at(g, x->n)->target = now;
    graph_edited(g, false);
    x->status = TUCK_OK;
}

tuck_status tuck_node_rename(tuck_graph *g, tuck_node n, const char *name)
{
    struct edit x = {.g = g, .n = n.id, .name = name};

    if (g == NULL || !node_alive(g, n.id) || name == NULL)
        return TUCK_EINVAL;
    uint8_t kind = node_at(g, n.id)->kind;
    if (kind == TUCK_OUTPUT || kind == TUCK_OPAQUE || kind == TUCK_RESULT)
        return TUCK_EINVAL;
    if (strcmp(name, graph_str(g, node_at(g, n.id)->name)) == 0)
        return TUCK_OK;
    return run(&x, do_rename);
}

/* ---- order ---- */

tuck_status tuck_node_move(tuck_graph *g, tuck_node n, tuck_where where)
{
    uint32_t before;

    if (g == NULL || !node_alive(g, n.id))
        return TUCK_EINVAL;
    struct fx_node *x = node_at(g, n.id);
    if (x->kind == TUCK_RESULT || !edit_place(g, where, x->kind, n.id, &before))
        return TUCK_EINVAL;
    uint32_t next = edit_skip_results(g, x->next);
    if (before == next)
        return TUCK_OK; /* already there */
    if (!graph_begin_edit(g))
        return TUCK_ENOMEM;
    if (x->kind == TUCK_PLACEHOLDER) {
        if (edit_inputs_fixed(g))
            return TUCK_EINVAL;
        uint32_t prev = node_at(g, before)->prev;
        uint32_t from = edit_param_of(g, n.id);
        if (from != NO_PARAM) {
            struct fx_param q = edit_remove_param(g, from);
            uint32_t to = prev != 0 ? edit_param_of(g, prev) + 1 : 0;
            bool fits = edit_param_fits(g, &q, to);
            edit_insert_param(g, fits ? to : from, q);
            if (!fits)
                return TUCK_EINVAL;
        }
    }
    for (uint32_t k = n.id; k != next;) { /* with the names that an opaque statement assigns */
        uint32_t after = node_at(g, k)->next;
        graph_unlink(g, k);
        graph_link_before(g, k, before);
        k = after;
    }
    graph_edited(g, true);
    return TUCK_OK;
}

/* ---- erasing, replacing ---- */

static void do_erase(void *p)
{
    struct edit *x = p;
    tuck_graph *g = x->g;
    struct fx_node *node = node_at(g, x->n);

    x->status = TUCK_EINVAL;
    names_need(g);
    if (node->name != 0 && node->kind != TUCK_OUTPUT && (name_flags(g, node->name) & NAME_INNER))
        return;
    if (node->kind == TUCK_PLACEHOLDER && edit_param_of(g, x->n) != NO_PARAM)
        edit_remove_param(g, edit_param_of(g, x->n));
    if (node->kind == TUCK_OUTPUT)
        keep_descriptors(g, NULL, NULL);
    for (uint32_t k = node->next;
         node->kind == TUCK_OPAQUE && node_at(g, k)->kind == TUCK_RESULT;) {
        uint32_t after = node_at(g, k)->next;
        graph_erase(g, k);
        k = after;
    }
    graph_erase(g, x->n);
    g->style.pass_body = g->n_nodes == 0;
    graph_edited(g, true);
    x->status = TUCK_OK;
}

/* Nothing mentions it except its own further names. */
static bool unused(const tuck_graph *g, uint32_t n)
{
    const struct fx_node *x = node_at(g, n);
    uint32_t own = 0;

    if (x->kind == TUCK_OPAQUE)
        for (uint32_t k = x->next; node_at(g, k)->kind == TUCK_RESULT; k = node_at(g, k)->next) {
            if (node_at(g, k)->n_uses > 0)
                return false;
            own++;
        }
    return x->n_uses == own;
}

tuck_status tuck_node_erase(tuck_graph *g, tuck_node n)
{
    struct edit x = {.g = g, .n = n.id};

    if (g == NULL || !node_alive(g, n.id) || node_at(g, n.id)->kind == TUCK_RESULT ||
        !unused(g, n.id) || (node_at(g, n.id)->kind == TUCK_PLACEHOLDER && edit_inputs_fixed(g)))
        return TUCK_EINVAL;
    return run(&x, do_erase);
}

tuck_status tuck_node_replace_uses(tuck_graph *g, tuck_node old, tuck_node with, tuck_node except)
{
    if (g == NULL || !node_alive(g, old.id) || !node_alive(g, with.id) ||
        (!tuck_is_none(except) && !node_alive(g, except.id)))
        return TUCK_EINVAL;
    const struct fx_node *w = node_at(g, with.id);
    if (w->kind == TUCK_OUTPUT || w->name == 0)
        return TUCK_EINVAL;
    if (old.id == with.id)
        return TUCK_OK;
    if (with.id != except.id)
        for (uint32_t u = node_at(g, old.id)->use_first; u != 0; u = g->use.at[u].next)
            if (g->use.at[u].user == with.id)
                return TUCK_EINVAL; /* it would use itself */
    if (!graph_begin_edit(g))
        return TUCK_ENOMEM;
    bool any = false;
    for (uint32_t u = node_at(g, old.id)->use_first, next; u != 0; u = next) {
        uint32_t user = g->use.at[u].user;

        next = g->use.at[u].next;
        if (user == except.id || node_at(g, user)->kind == TUCK_RESULT)
            continue;
        graph_redirect_use(g, u, with.id);
        any = true;
    }
    if (any)
        graph_edited(g, false);
    return TUCK_OK;
}

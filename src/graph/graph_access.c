/* The public functions that read a graph. They accept any node id: an erased or invalid one has no
 * kind, name or arguments. */
#include "graph/graph.h"

const char *tuck_status_text(tuck_status status)
{
    switch (status) {
    case TUCK_OK: return "no error";
    case TUCK_ENOMEM: return "out of memory";
    case TUCK_EINVAL: return "bad argument";
    case TUCK_ESYNTAX: return "the text is not a graph";
    case TUCK_EIO: return "input or output failed";
    case TUCK_ELINT: return "the graph is invalid";
    case TUCK_EEXEC: return "the graph cannot be executed";
    }
    return "unknown status";
}

/* ---- graphs ---- */

void tuck_graph_free(tuck_graph *g)
{
    graph_free(g);
}

const char *tuck_graph_name(const tuck_graph *g)
{
    return graph_str(g, g->name);
}

size_t tuck_graph_size(const tuck_graph *g)
{
    return g->n_nodes;
}

tuck_node tuck_graph_first(const tuck_graph *g)
{
    return (tuck_node){g->node.at[0].next};
}

tuck_node tuck_graph_last(const tuck_graph *g)
{
    return (tuck_node){g->node.at[0].prev};
}

tuck_node tuck_graph_next(const tuck_graph *g, tuck_node n)
{
    return (tuck_node){node_alive(g, n.id) ? g->node.at[n.id].next : 0};
}

tuck_node tuck_graph_prev(const tuck_graph *g, tuck_node n)
{
    return (tuck_node){node_alive(g, n.id) ? g->node.at[n.id].prev : 0};
}

tuck_node tuck_graph_output(const tuck_graph *g)
{
    return (tuck_node){g->output};
}

uint32_t tuck_graph_id_end(const tuck_graph *g)
{
    return g->node.len;
}

size_t tuck_graph_child_count(const tuck_graph *g)
{
    return g->child.len;
}

tuck_graph *tuck_graph_child(const tuck_graph *g, size_t i)
{
    return i < g->child.len ? g->child.at[i] : NULL;
}

struct find_args {
    tuck_graph *g;
    str_id name;
    uint32_t out;
};

static void do_find(void *p)
{
    struct find_args *x = p;

    x->out = name_lookup(x->g, x->name);
}

tuck_node tuck_graph_find(tuck_graph *g, const char *name)
{
    struct find_args x = {.g = g};

    if (name == NULL)
        return (tuck_node){0};
    x.name = str_find(&g->store->str, name, strlen(name));
    if (x.name == 0)
        return (tuck_node){0};
    if (!mem_guard(&g->store->mem, do_find, &x)) { /* no memory for the table: search all nodes */
        for_each_node (g, n)
            if (g->node.at[n].name == x.name && (x.out == 0 || n != g->output))
                x.out = n;
    }
    return (tuck_node){x.out};
}

/* ---- nodes ---- */

static const struct fx_node *look(const tuck_graph *g, tuck_node n)
{
    static const struct fx_node nobody;

    return node_alive(g, n.id) ? &g->node.at[n.id] : &nobody;
}

tuck_kind tuck_node_kind(const tuck_graph *g, tuck_node n)
{
    return (tuck_kind)look(g, n)->kind;
}

const char *tuck_node_name(const tuck_graph *g, tuck_node n)
{
    return graph_str(g, look(g, n)->name);
}

const char *tuck_node_target(const tuck_graph *g, tuck_node n)
{
    return graph_str(g, look(g, n)->target);
}

const char *tuck_node_annotation(const tuck_graph *g, tuck_node n)
{
    uint32_t ann = look(g, n)->ann;

    return ann ? graph_str(g, ann_at(g->store, ann)->inner) : "";
}

uint32_t tuck_node_line(const tuck_graph *g, tuck_node n)
{
    return look(g, n)->line;
}

size_t tuck_node_arg_count(const tuck_graph *g, tuck_node n)
{
    return look(g, n)->n_args;
}

const tuck_value *tuck_node_arg(const tuck_graph *g, tuck_node n, size_t i)
{
    const struct fx_node *x = look(g, n);
    const tuck_value *v = x->vals;

    if (i >= x->n_args)
        return NULL;
    while (i-- > 0)
        v = value_next(v);
    return v;
}

size_t tuck_node_kwarg_count(const tuck_graph *g, tuck_node n)
{
    return look(g, n)->n_kwargs;
}

/* The i-th keyword; its value follows. */
static const tuck_value *keyword(const tuck_graph *g, tuck_node n, size_t i)
{
    const struct fx_node *x = look(g, n);
    const tuck_value *v = x->vals;

    if (i >= x->n_kwargs)
        return NULL;
    for (size_t k = 0; k < x->n_args; k++)
        v = value_next(v);
    while (i-- > 0)
        v = value_next(v + 1);
    return v;
}

const char *tuck_node_kwarg_name(const tuck_graph *g, tuck_node n, size_t i)
{
    const tuck_value *v = keyword(g, n, i);

    return v ? graph_str(g, v->a) : "";
}

const tuck_value *tuck_node_kwarg(const tuck_graph *g, tuck_node n, size_t i)
{
    const tuck_value *v = keyword(g, n, i);

    return v ? v + 1 : NULL;
}

/* ---- values ---- */

bool tuck_value_is_container(const tuck_value *v)
{
    return value_is_container(v);
}

size_t tuck_value_len(const tuck_value *v)
{
    return value_is_container(v) ? v->a : 0;
}

const tuck_value *tuck_value_item(const tuck_value *v, size_t i)
{
    return value_item(v, i);
}

const tuck_value *tuck_value_next(const tuck_value *v)
{
    return value_next(v);
}

int64_t tuck_value_int(const tuck_value *v)
{
    return v->kind == TUCK_V_INT || v->kind == TUCK_V_BOOL ? v->u.i : 0;
}

double tuck_value_float(const tuck_value *v)
{
    return v->kind == TUCK_V_FLOAT ? v->u.f : (double)tuck_value_int(v);
}

tuck_node tuck_value_node(const tuck_value *v)
{
    return (tuck_node){v->kind == TUCK_V_NODE ? v->a : 0};
}

const char *tuck_value_text(const tuck_graph *g, const tuck_value *v)
{
    switch (v->kind) {
    case TUCK_V_FLOAT:
    case TUCK_V_NUMBER:
    case TUCK_V_STR:
    case TUCK_V_BYTES:
    case TUCK_V_DTYPE:
    case TUCK_V_LAYOUT:
    case TUCK_V_FORMAT:
    case TUCK_V_DEVICE:
    case TUCK_V_NAME:
    case TUCK_V_OP:
    case TUCK_V_SYM:
    case TUCK_V_TEXT:
    case TUCK_V_KEY: return graph_str(g, v->a);
    default: return "";
    }
}

/* ---- uses ---- */

size_t tuck_node_use_count(const tuck_graph *g, tuck_node n)
{
    return look(g, n)->n_uses;
}

tuck_use tuck_node_uses(const tuck_graph *g, tuck_node n)
{
    return (tuck_use){look(g, n)->use_first};
}

tuck_use tuck_use_next(const tuck_graph *g, tuck_use u)
{
    return (tuck_use){u.id != 0 && u.id < g->use.len ? g->use.at[u.id].next : 0};
}

tuck_node tuck_use_user(const tuck_graph *g, tuck_use u)
{
    return (tuck_node){u.id != 0 && u.id < g->use.len ? g->use.at[u.id].user : 0};
}

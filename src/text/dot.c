/* Prints a graph for Graphviz: nodes as boxes, uses as arrows, nested graphs as clusters. */
#include "graph/effect.h"

struct dot_open {
    const tuck_graph *g;
    uint32_t next; /* next child */
    uint32_t number;
};

struct dot {
    struct mem mem;
    struct buf b;
    const tuck_graph *root;
    VEC(struct dot_open) open; /* clusters not closed yet */
    uint32_t n_graphs;
};

/* Between double quotes: escapes quotes and backslashes, and writes line ends as \n. */
static void put_escaped(struct buf *b, const char *s)
{
    for (; *s != '\0'; s++) {
        if (*s == '"' || *s == '\\')
            buf_chr(b, '\\');
        if (*s == '\n')
            buf_str(b, "\\n");
        else
            buf_chr(b, *s);
    }
}

static const char *color(const tuck_graph *g, const struct fx_node *x)
{
    (void)g;
    switch (x->kind) {
    case TUCK_PLACEHOLDER: return "lightblue";
    case TUCK_GET_ATTR: return "lightcyan";
    case TUCK_OUTPUT: return "palegreen";
    case TUCK_OPAQUE:
    case TUCK_RESULT: return "lightgrey";
    default: break;
    }
    switch (op_at(x->op)->cls) {
    case OP_COLLECTIVE:
    case OP_P2P:
    case OP_SYNC_COLLECTIVE: return "orange";
    case OP_WAIT: return "gold";
    default: return "white";
    }
}

/* What a node is, in a few words: aten.mm.default, self.w, input. */
static void put_what(struct buf *b, const tuck_graph *g, const struct fx_node *x)
{
    const char *target = graph_str(g, x->target);

    switch (x->kind) {
    case TUCK_PLACEHOLDER: buf_str(b, "input"); break;
    case TUCK_OUTPUT: buf_str(b, "output"); break;
    case TUCK_OPAQUE: buf_str(b, "statement"); break;
    case TUCK_RESULT: buf_str(b, "result"); break;
    case TUCK_GET_ATTR:
        buf_str(b, "self.");
        put_escaped(b, target);
        break;
    case TUCK_CALL_METHOD:
        buf_chr(b, '.');
        put_escaped(b, target);
        break;
    case TUCK_CALL_MODULE:
        buf_str(b, "self.");
        put_escaped(b, target);
        buf_str(b, "()");
        break;
    default: put_escaped(b, strncmp(target, "torch.ops.", 10) == 0 ? target + 10 : target); break;
    }
}

static void put_indent(struct dot *x)
{
    buf_fill(&x->b, ' ', 4 * (size_t)x->open.len);
}

static void put_nodes(struct dot *x, const tuck_graph *g, uint32_t number)
{
    struct buf *b = &x->b;

    for_each_node (g, n) {
        const struct fx_node *node = node_at(g, n);

        put_indent(x);
        buf_printf(b, "g%u_%u [label=\"", number, n);
        if (node->kind != TUCK_OUTPUT && node->name != 0) {
            put_escaped(b, graph_str(g, node->name));
            buf_str(b, "\\n");
        }
        put_what(b, g, node);
        if (node->ann != 0) {
            buf_str(b, "\\n");
            put_escaped(b, graph_str(g, ann_at(g->store, node->ann)->inner));
        }
        buf_printf(b, "\", fillcolor=%s];\n", color(g, node));
    }
    for_each_node (g, n) {
        const struct fx_node *node = node_at(g, n);
        for (uint32_t i = 0; i < node->n_vals; i++)
            if (node->vals[i].kind == TUCK_V_NODE) {
                put_indent(x);
                buf_printf(b, "g%u_%u -> g%u_%u;\n", number, node->vals[i].a, number, n);
            }
    }
}

static void open_graph(struct dot *x, const tuck_graph *g)
{
    uint32_t number = x->n_graphs++;

    if (number > 0) {
        put_indent(x);
        buf_printf(&x->b, "subgraph cluster_%u {\n", number);
    }
    vec_push(&x->mem, &x->open, ((struct dot_open){g, 0, number}));
    if (number > 0) {
        put_indent(x);
        buf_str(&x->b, "label=\"");
        put_escaped(&x->b, graph_str(g, g->name));
        buf_str(&x->b, "\";\n");
    }
    put_nodes(x, g, number);
}

static void do_dot(void *p)
{
    struct dot *x = p;

    buf_str(&x->b, "digraph \"");
    put_escaped(&x->b, graph_str(x->root, x->root->name));
    buf_str(&x->b,
            "\" {\n    node [shape=box, style=filled, fillcolor=white, fontname=monospace];\n");
    open_graph(x, x->root);
    while (x->open.len > 0) {
        struct dot_open *o = &x->open.at[x->open.len - 1];

        if (o->next < o->g->child.len) {
            open_graph(x, o->g->child.at[o->next++]);
        } else {
            x->open.len--;
            put_indent(x);
            buf_str(&x->b, "}\n");
        }
    }
    buf_flush(&x->b);
}

tuck_status tuck_graph_dot(const tuck_graph *g, tuck_write_fn write, void *ctx)
{
    if (g == NULL || write == NULL)
        return TUCK_EINVAL;
    struct dot x = {.root = g};

    mem_init(&x.mem, &g->store->mem.alloc);
    buf_to(&x.b, &x.mem, write, ctx);
    bool enough = mem_guard(&x.mem, do_dot, &x);
    bool failed = x.b.failed;
    buf_destroy(&x.b);
    vec_free(&x.mem, &x.open);
    return !enough ? TUCK_ENOMEM : failed ? TUCK_EIO : TUCK_OK;
}

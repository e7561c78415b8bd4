/* What a text for exec() needs, and what makes it impossible. */
#include "text/print.h"

struct needs {
    struct printer *p;
    struct strtab seen; /* names of globals, in order of appearance */
    tuck_diags *diags;
    const tuck_graph *g;
    bool ok;
};

/* Python's builtins, and names that generated code gets: torch, device, inf … */
static bool is_builtin(const char *s, size_t len)
{
    static const char *const ours[] = {"torch",    "device",    "inf",    "nan",
                                       "NoneType", "fx_pytree", "pytree", NULL};

    for (const char *const *p = ours; *p; p++)
        if (strlen(*p) == len && memcmp(*p, s, len) == 0)
            return false;
    return name_is_reserved(s, len);
}

static void need(struct needs *x, const char *s)
{
    size_t len = strcspn(s, ".([ ");

    if (len > 0 && !is_builtin(s, len))
        str_intern(&x->seen, s, len);
}

static void refuse(struct needs *x, const struct fx_node *n, const char *what)
{
    struct diag_source src = {.file = graph_str(x->g, x->g->source_name)};

    diag_add(x->diags, TUCK_ERROR,
             (struct diag_pos){.source = &src, .line = n->line, .column = n->column},
             "Python cannot evaluate it, so there is no text that exec() would accept",
             "'%s' has an operand that cannot be executed: %s", graph_str(x->g, n->name), what);
    x->ok = false;
}

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Records the identifiers of an expression. */
static void need_words(struct needs *x, const char *s)
{
    while (*s) {
        size_t n = 0;
        while (is_word_char(s[n]))
            n++;
        if (n == 0) {
            s++;
            continue;
        }
        if (!(*s >= '0' && *s <= '9') && !is_builtin(s, n))
            str_intern(&x->seen, s, n);
        s += n;
        while (*s == '.' && is_word_char(s[1])) {
            s++;
            while (is_word_char(*s))
                s++;
        }
    }
}

static void check_value(struct needs *x, const struct fx_node *n, const tuck_value *v)
{
    bool text = v->kind != TUCK_V_NODE && !value_is_container(v);
    const char *s = text ? graph_str(x->g, v->a) : "";

    switch (v->kind) {
    case TUCK_V_TEXT:
        if (n->kind != TUCK_OPAQUE)
            refuse(x, n, s);
        break;
    case TUCK_V_NAME:
        if (strstr(s, ".None") != NULL || strchr(s, '|') != NULL || strcmp(s, "torch.Tensor") == 0)
            refuse(x, n, s);
        else
            need(x, s);
        break;
    case TUCK_V_NUMBER:
        if (strstr(s, "nanj") != NULL || strstr(s, "infj") != NULL)
            refuse(x, n, s);
        break;
    case TUCK_V_FLOAT:
        if (v->a != 0 && strpbrk(s, "in") != NULL)
            need(x, *s == '-' ? s + 1 : s);
        else if (v->a == 0 && !(v->u.f - v->u.f == 0))
            need(x, v->u.f != v->u.f ? "nan" : "inf");
        break;
    case TUCK_V_DEVICE:
    case TUCK_V_OP:
    case TUCK_V_DTYPE:
    case TUCK_V_LAYOUT:
    case TUCK_V_FORMAT: need(x, s); break;
    case TUCK_V_SIZE: need(x, "torch"); break;
    case TUCK_V_SYM: need_words(x, s); break;
    default: break;
    }
}

static void check_graph(struct needs *x, const tuck_graph *g)
{
    x->g = g;
    need(x, "torch");
    if (g->style.prologue == FX_PYTREE)
        need(x, "fx_pytree");
    if (g->style.ret == FX_RETURN_PYTREE)
        need(x, "pytree");
    for_each_node (g, n) {
        const struct fx_node *node = &g->node.at[n];

        if (node->kind == TUCK_CALL_FUNCTION && node->syntax == FX_CALL)
            need(x, graph_str(g, node->target));
        for (uint32_t i = 0; i < node->n_vals; i++)
            check_value(x, node, &node->vals[i]);
    }
    for (uint32_t i = 0; i < g->param.len; i++)
        if (g->param.at[i].dflt != 0)
            need_words(x, graph_str(g, g->param.at[i].dflt));
}

struct header_args {
    struct needs *x;
    const tuck_graph *const *graphs;
    size_t n;
};

static void do_header(void *arg)
{
    struct header_args *h = arg;
    struct needs *x = h->x;
    struct printer *p = x->p;

    for (size_t i = 0; i < h->n; i++) {
        vec_push(p->mem, &p->todo, h->graphs[i]);
        while (p->todo.len > 0) {
            const tuck_graph *g = p->todo.at[--p->todo.len];
            check_graph(x, g);
            for (uint32_t k = 0; k < g->child.len; k++)
                vec_push(p->mem, &p->todo, g->child.at[k]);
        }
    }
    if (!x->ok)
        return;
    buf_str(p->b, "# The globals this needs:\n");
    for (uint32_t i = 1; i < x->seen.all.len; i++)
        buf_printf(p->b, "# needs: %s\n", x->seen.all.at[i].at);
}

bool exec_header(struct printer *p, const tuck_graph *const *graphs, size_t n, tuck_diags *diags)
{
    struct needs x = {.p = p, .diags = diags, .ok = true};
    struct header_args h = {&x, graphs, n};

    strtab_init(&x.seen, p->mem);
    bool enough = mem_guard(p->mem, do_header, &h);
    strtab_destroy(&x.seen);
    if (!enough)
        mem_exhausted(p->mem);
    return x.ok;
}

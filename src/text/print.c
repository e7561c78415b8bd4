/* Prints a graph as text. What was read and not changed is printed byte for byte: the raw lines
 * between statements were kept, everything else follows PyTorch's rules. After an edit only the
 * rules apply: one comment per change of comment, frees after the last use. */
#include "text/print.h"

#include "base/utf8.h"
#include "op/ops.h"

static void put(struct printer *p, const tuck_graph *g, str_id s)
{
    const struct str *x = str_at(&g->store->str, s);

    buf_add(p->b, x->at, x->len);
}

/* ---- values ---- */

static void print_atom(struct printer *p, const tuck_graph *g, const tuck_value *v)
{
    switch (v->kind) {
    case TUCK_V_NONE: buf_add(p->b, "None", 4); break;
    case TUCK_V_BOOL: buf_str(p->b, v->u.i ? "True" : "False"); break;
    case TUCK_V_INT: buf_int(p->b, v->u.i); break;
    case TUCK_V_FLOAT:
        if (v->a != 0)
            put(p, g, v->a);
        else
            buf_float(p->b, v->u.f);
        break;
    case TUCK_V_STR:
        if (v->u.i != 0) {
            put(p, g, (str_id)v->u.i);
        } else {
            const struct str *s = str_at(&g->store->str, v->a);
            value_str_repr(p->b, s->at, s->len);
        }
        break;
    case TUCK_V_NODE: put(p, g, g->node.at[v->a].name); break;
    case TUCK_V_KEY:
        put(p, g, v->a);
        buf_chr(p->b, '=');
        break;
    default: put(p, g, v->a); break;
    }
}

static const char *opening(uint8_t kind)
{
    switch (kind) {
    case TUCK_V_LIST: return "[";
    case TUCK_V_TUPLE: return "(";
    case TUCK_V_SIZE: return "torch.Size([";
    case TUCK_V_DICT:
    case TUCK_V_SET: return "{";
    case TUCK_V_SLICE: return "slice(";
    default: return "";
    }
}

static const char *closing(const struct open_value *o)
{
    switch (o->kind) {
    case TUCK_V_LIST: return "]";
    case TUCK_V_TUPLE: return o->n == 1 ? ",)" : ")";
    case TUCK_V_SIZE: return "])";
    case TUCK_V_DICT:
    case TUCK_V_SET: return "}";
    case TUCK_V_SLICE: return ")";
    case TUCK_V_CALL: return o->n == 1 ? "()" : ")";
    default: return "";
    }
}

/* What precedes the next item of the innermost container. */
static void separate(struct printer *p, struct open_value *o)
{
    if (o->kind == TUCK_V_RAW || o->keyed)
        return;
    if (o->kind == TUCK_V_CALL)
        buf_str(p->b, o->n == 0 ? "" : o->n == 1 ? "(" : ", ");
    else if (o->kind == TUCK_V_DICT && o->n % 2 == 1)
        buf_add(p->b, ": ", 2);
    else if (o->n > 0)
        buf_add(p->b, ", ", 2);
}

void print_value(struct printer *p, const tuck_graph *g, const tuck_value *v)
{
    if (!value_is_container(v)) {
        print_atom(p, g, v);
        return;
    }
    const tuck_value *end = value_next(v);
    uint32_t base = p->open.len;

    while (v < end || p->open.len > base) {
        struct open_value *o = p->open.len > base ? &p->open.at[p->open.len - 1] : NULL;

        if (o != NULL && v == o->end) {
            buf_str(p->b, closing(o));
            p->open.len--;
            continue;
        }
        if (o != NULL) {
            separate(p, o);
            o->n++;
            o->keyed = v->kind == TUCK_V_KEY;
        }
        if (value_is_container(v)) {
            buf_str(p->b, opening(v->kind));
            vec_push(p->mem, &p->open,
                     ((struct open_value){.end = value_next(v), .kind = v->kind}));
        } else {
            print_atom(p, g, v);
        }
        v++;
    }
}

/* ---- statements ---- */

static void print_args(struct printer *p, const tuck_graph *g, const struct fx_node *x,
                       uint32_t from)
{
    const tuck_value *v = x->vals;

    buf_chr(p->b, '(');
    for (uint32_t i = 0; i < x->n_args + x->n_kwargs; i++) {
        if (i > from)
            buf_add(p->b, ", ", 2);
        if (i >= x->n_args) {
            put(p, g, v->a);
            buf_add(p->b, " = ", 3);
            v++;
        }
        if (i >= from)
            print_value(p, g, v);
        v = value_next(v);
    }
    buf_chr(p->b, ')');
}

/* base.a.b, with getattr(base.a, "0") around parts that are not identifiers. */
static void print_path(struct printer *p, const char *base, const char *path)
{
    size_t wraps = 0;
    const char *s = path;

    for (const char *e; *s; s = *e ? e + 1 : e) {
        e = strchrnul(s, '.');
        char first = *s;
        bool word = e > s && !(first >= '0' && first <= '9');
        for (const char *c = s; c < e && word; c++) {
            char one[2] = {*c, '\0'};
            word = (*c >= '0' && *c <= '9') || is_identifier(one);
        }
        wraps += !word;
    }
    for (size_t i = 0; i < wraps; i++)
        buf_str(p->b, "getattr(");
    buf_str(p->b, base);
    s = path;
    for (const char *e; *s; s = *e ? e + 1 : e) {
        e = strchrnul(s, '.');
        bool word = e > s && !(*s >= '0' && *s <= '9');
        for (const char *c = s; c < e && word; c++) {
            char one[2] = {*c, '\0'};
            word = (*c >= '0' && *c <= '9') || is_identifier(one);
        }
        if (word) {
            buf_chr(p->b, '.');
            buf_add(p->b, s, (size_t)(e - s));
            continue;
        }
        buf_str(p->b, ", \"");
        for (const char *c = s; c < e; c++) {
            if (p->form == TUCK_FORM_EXEC && (*c == '"' || *c == '\\'))
                buf_chr(p->b, '\\');
            buf_chr(p->b, *c);
        }
        buf_str(p->b, "\")");
    }
}

static void print_annotation(struct printer *p, const tuck_graph *g, uint32_t ann)
{
    if (ann == 0)
        return;
    const struct fx_ann *a = ann_at(g->store, ann);

    if (p->form == TUCK_FORM_CODE && a->form != ANN_TYPE)
        return;
    if (p->form == TUCK_FORM_EXEC && a->form != ANN_QUOTED) { /* Python would evaluate it */
        buf_str(p->b, ": ");
        const struct str *s = str_at(&g->store->str, a->inner);
        if (memchr(s->at, '"', s->len) || memchr(s->at, '\'', s->len))
            value_str_repr(p->b, s->at, s->len);
        else
            buf_printf(p->b, "\"%s\"", s->at);
        return;
    }
    put(p, g, a->text);
}

/* What the script around a graph says about its inputs is not repeated in the graph. */
static bool hide_inputs(const struct printer *p, const tuck_graph *g)
{
    return g->style.silent_inputs && (p->around || p->form == TUCK_FORM_EXEC);
}

static bool negative(const tuck_value *v)
{
    return (v->kind == TUCK_V_INT && v->u.i < 0) || (v->kind == TUCK_V_FLOAT && v->u.f < 0);
}

static void print_operator(struct printer *p, const tuck_graph *g, const struct fx_node *x)
{
    const struct op_row *op = op_at(x->op);
    const tuck_value *a = x->vals, *b = x->n_args > 1 ? value_next(a) : NULL;
    /* FX writes pow(-2, x) as -2 ** x, which Python reads as -(2 ** x). */
    bool paren = p->form == TUCK_FORM_EXEC && strcmp(op->symbol, "**") == 0 && negative(a);

    switch (op->form) {
    case OP_FORM_UNARY:
        buf_str(p->b, op->symbol);
        print_value(p, g, a);
        break;
    case OP_FORM_GETITEM:
        print_value(p, g, a);
        buf_chr(p->b, '[');
        print_value(p, g, b);
        buf_chr(p->b, ']');
        break;
    case OP_FORM_BINARY:
        if (paren)
            buf_chr(p->b, '(');
        print_value(p, g, a);
        if (paren)
            buf_chr(p->b, ')');
        buf_printf(p->b, " %s ", op->symbol);
        print_value(p, g, b);
        break;
    default: /* in place: the second half names the result */
        print_value(p, g, a);
        if (op->form == OP_FORM_SETITEM) {
            buf_chr(p->b, '[');
            print_value(p, g, b);
            buf_str(p->b, "] = ");
            print_value(p, g, value_next(b));
        } else {
            buf_printf(p->b, " %s ", op->symbol);
            print_value(p, g, b);
        }
        buf_str(p->b, ";  ");
        put(p, g, x->name);
        print_annotation(p, g, x->ann);
        buf_str(p->b, " = ");
        print_value(p, g, a);
        break;
    }
}

static bool is_inplace(const struct fx_node *x)
{
    uint8_t form = op_at(x->op)->form;

    return x->syntax == FX_OPERATOR && (form == OP_FORM_AUGMENTED || form == OP_FORM_SETITEM);
}

static void print_node(struct printer *p, const tuck_graph *g, const struct fx_node *x)
{
    if (x->kind == TUCK_OPAQUE) {
        print_value(p, g, x->vals);
        return;
    }
    if (!is_inplace(x)) {
        put(p, g, x->name);
        if (x->kind != TUCK_GET_ATTR || !hide_inputs(p, g))
            print_annotation(p, g, x->ann);
        buf_add(p->b, " = ", 3);
    }
    switch (x->kind) {
    case TUCK_GET_ATTR: print_path(p, "self", graph_str(g, x->target)); break;
    case TUCK_CALL_MODULE:
        print_path(p, "self", graph_str(g, x->target));
        print_args(p, g, x, 0);
        break;
    case TUCK_CALL_METHOD: {
        const char *name = graph_str(g, x->target);
        if (is_identifier(name) && x->vals[0].kind != TUCK_V_NODE) {
            print_value(p, g, x->vals);
            buf_chr(p->b, '.');
            buf_str(p->b, name);
        } else {
            print_path(p, graph_str(g, g->node.at[x->vals[0].a].name), name);
        }
        print_args(p, g, x, 1);
        break;
    }
    default:
        if (x->syntax == FX_OPERATOR) {
            print_operator(p, g, x);
        } else if (x->syntax == FX_ATTRIBUTE) {
            print_value(p, g, x->vals);
            buf_chr(p->b, '.');
            put(p, g, value_next(x->vals)->a);
        } else {
            put(p, g, x->target);
            print_args(p, g, x, 0);
        }
        break;
    }
}

/* ---- frees ---- */

static void find_last_uses(struct printer *p, const tuck_graph *g)
{
    p->last.len = 0;
    vec_reserve(p->mem, &p->last, g->node.len);
    memset(p->last.at, 0, g->node.len * sizeof(*p->last.at));
    for_each_node (g, n) {
        const struct fx_node *x = &g->node.at[n];
        for (uint32_t i = 0; i < x->n_vals; i++)
            if (x->vals[i].kind == TUCK_V_NODE)
                p->last.at[x->vals[i].a] = n;
    }
}

static void print_freed(struct printer *p, const tuck_graph *g, uint32_t n, bool *any)
{
    if (!*any)
        buf_add(p->b, ";  ", 3);
    *any = true;
    put(p, g, g->node.at[n].name);
    buf_add(p->b, " = ", 3);
}

static void print_frees(struct printer *p, const tuck_graph *g, uint32_t n)
{
    const struct fx_node *x = &g->node.at[n];
    bool any = false;

    if (g->frees_verbatim) {
        if (n + 1 < g->frees_at.len)
            for (uint32_t i = g->frees_at.at[n]; i < frees_end(g, n); i++)
                print_freed(p, g, g->frees.at[i], &any);
    } else if (g->style.frees != FX_FREES_NONE) {
        for (uint32_t i = 0; i < x->n_vals; i++) {
            uint32_t d = x->vals[i].kind == TUCK_V_NODE ? x->vals[i].a : 0;
            if (d != 0 && p->last.at[d] == n) {
                p->last.at[d] = 0; /* a second mention frees nothing */
                print_freed(p, g, d, &any);
            }
        }
        if (x->n_uses == 0 && x->name != 0 && g->style.frees == FX_FREES_FULL)
            print_freed(p, g, n, &any);
    }
    if (any)
        buf_add(p->b, "None", 4);
}

/* ---- lines around statements ---- */

/* The docstring lines of a raw lead. */
static void print_docstring(struct printer *p, const char *s)
{
    const char *from = strstr(s, "\"\"\"");
    const char *to = NULL;

    for (const char *q = from; q != NULL; q = strstr(q + 3, "\"\"\""))
        to = q + 3;
    if (from == NULL)
        return;
    while (from > s && from[-1] != '\n')
        from--;
    buf_add(p->b, from, (size_t)(to - from));
    buf_chr(p->b, '\n');
}

/* The text between the previous statement and x. *comment is the current comment. */
static void print_lead(struct printer *p, const tuck_graph *g, const struct fx_node *x,
                       size_t indent, bool first, str_id *comment)
{
    if (p->form != TUCK_FORM_TEXT)
        return;
    if (!g->edited) {
        if (x->lead != 0)
            put(p, g, x->lead);
        return;
    }
    if (x->kind == TUCK_OUTPUT)
        return;
    if (x->comment != *comment && x->comment != 0) {
        if (!first) {
            if (g->style.blank_indented)
                buf_fill(p->b, ' ', indent);
            buf_chr(p->b, '\n');
        }
        for (const char *s = graph_str(g, x->comment); *s;) {
            size_t n = strcspn(s, "\n");
            buf_fill(p->b, ' ', indent);
            buf_add(p->b, s, n);
            buf_chr(p->b, '\n');
            s += n + (s[n] == '\n');
        }
    }
    if (x->comment != 0)
        *comment = x->comment;
    if (x->lead != 0)
        print_docstring(p, graph_str(g, x->lead));
}

/* ---- signature, prologue, return ---- */

static void print_param(struct printer *p, const tuck_graph *g, const struct fx_param *q)
{
    uint32_t ann = q->node ? g->node.at[q->node].ann : q->ann;

    put(p, g, q->text);
    if (!hide_inputs(p, g))
        print_annotation(p, g, ann);
    if (q->dflt != 0) {
        buf_str(p->b, " = ");
        put(p, g, q->dflt);
    }
}

static void print_signature(struct printer *p, const tuck_graph *g, size_t indent)
{
    bool expanded = g->style.expanded && p->form == TUCK_FORM_TEXT;

    buf_fill(p->b, ' ', indent);
    buf_str(p->b, "def forward(");
    if (expanded) {
        buf_chr(p->b, '\n');
        buf_fill(p->b, ' ', indent + 4);
        buf_str(p->b, "self,\n");
    } else {
        buf_str(p->b, "self");
    }
    for (uint32_t i = 0; i < g->param.len; i++) {
        const struct fx_param *q = &g->param.at[i];

        if (expanded)
            buf_fill(p->b, ' ', indent + 4);
        else
            buf_str(p->b, ", ");
        print_param(p, g, q);
        if (expanded) {
            buf_chr(p->b, ',');
            if (q->descriptor != 0) {
                buf_str(p->b, "  # ");
                put(p, g, q->descriptor);
            }
            buf_chr(p->b, '\n');
        }
    }
    if (expanded)
        buf_fill(p->b, ' ', indent);
    buf_chr(p->b, ')');
    if (g->style.ret_type != 0) {
        buf_str(p->b, " -> ");
        put(p, g, g->style.ret_type);
    }
    buf_str(p->b, ":\n");
}

/* The annotations before a pytree prologue. */
static void print_flat_annotations(struct printer *p, const tuck_graph *g, size_t indent)
{
    bool any = false, lines = g->style.expanded && p->form == TUCK_FORM_TEXT;
    uint32_t next = 0; /* notes are in the order of the placeholders */

    for_each_node (g, n) {
        const struct fx_node *x = &g->node.at[n];
        if (x->kind != TUCK_PLACEHOLDER || x->ann == 0 || hide_inputs(p, g))
            continue;
        if (p->form == TUCK_FORM_CODE && ann_at(g->store, x->ann)->form != ANN_TYPE)
            continue;
        if (lines || !any)
            buf_fill(p->b, ' ', indent);
        any = true;
        put(p, g, x->name);
        print_annotation(p, g, x->ann);
        if (!lines) {
            buf_str(p->b, "; ");
            continue;
        }
        while (next < g->note.len && !node_alive(g, g->note.at[next].node))
            next++;
        if (next < g->note.len && g->note.at[next].node == n) {
            buf_str(p->b, "  # ");
            put(p, g, g->note.at[next++].descriptor);
        }
        buf_chr(p->b, '\n');
    }
    if (any && !lines)
        buf_chr(p->b, '\n');
    if (g->style.flat_lead != 0 && p->form == TUCK_FORM_TEXT) {
        put(p, g, g->style.flat_lead);
    } else if (any && !lines) {
        if (g->style.blank_indented)
            buf_fill(p->b, ' ', indent);
        buf_chr(p->b, '\n');
    }
}

/* `a, b, = `: the flattened inputs. */
static void print_flat_names(struct printer *p, const tuck_graph *g)
{
    for_each_node (g, n) {
        const struct fx_node *x = &g->node.at[n];
        if (x->kind != TUCK_PLACEHOLDER)
            continue;
        put(p, g, x->name);
        if (x->ann != 0 && ann_at(g->store, x->ann)->form == ANN_TYPE && p->form != TUCK_FORM_EXEC)
            buf_chr(p->b, ' '); /* FX cuts `e : torch.Tensor` at the colon and keeps the blank */
        buf_str(p->b, ", ");
    }
    buf_str(p->b, "= ");
}

static void print_prologue(struct printer *p, const tuck_graph *g, size_t indent)
{
    if (g->style.prologue != FX_PYTREE && g->style.flat_lead != 0 && p->form == TUCK_FORM_TEXT)
        put(p, g, g->style.flat_lead);
    switch (g->style.prologue) {
    case FX_BOXED:
        buf_fill(p->b, ' ', indent);
        buf_str(p->b, "args_iter = iter(args_list)\n");
        for_each_node (g, n) {
            if (g->node.at[n].kind != TUCK_PLACEHOLDER)
                continue;
            buf_fill(p->b, ' ', indent);
            put(p, g, g->node.at[n].name);
            buf_str(p->b, " = next(args_iter)\n");
        }
        buf_fill(p->b, ' ', indent);
        buf_str(p->b, "args_list.clear()\n");
        break;
    case FX_PYTREE:
        print_flat_annotations(p, g, indent);
        buf_fill(p->b, ' ', indent);
        print_flat_names(p, g);
        buf_str(p->b, "fx_pytree.tree_flatten_spec(");
        put(p, g, g->style.flat_call);
        buf_str(p->b, ")\n");
        break;
    case FX_BYTECODE:
        buf_fill(p->b, ' ', indent);
        buf_str(p->b, "_fn_args = ");
        put(p, g, g->style.flat_call);
        buf_chr(p->b, '\n');
        buf_fill(p->b, ' ', indent);
        print_flat_names(p, g);
        buf_str(p->b, "self._dynamo_bytecode_flatten(*_fn_args)\n");
        break;
    default: break;
    }
}

static bool print_aliases(struct printer *p, const tuck_graph *g, size_t indent)
{
    bool any = false;

    for (uint32_t i = 0; i < g->param.len; i++) {
        const struct fx_param *q = &g->param.at[i];
        if (!q->aliased)
            continue;
        const char *text = graph_str(g, q->text);
        buf_fill(p->b, ' ', indent);
        put(p, g, g->node.at[q->node].name);
        buf_printf(p->b, " = %s\n", text + strspn(text, "*"));
        any = true;
    }
    return any;
}

/* One returned item per line, with its descriptor. */
static void print_expanded(struct printer *p, const tuck_graph *g, const tuck_value *v,
                           size_t indent)
{
    const tuck_value *item = v + 1;

    buf_str(p->b, v->kind == TUCK_V_LIST ? "[\n" : "(\n");
    for (uint32_t i = 0; i < v->a; i++, item = value_next(item)) {
        buf_fill(p->b, ' ', indent + 4);
        print_value(p, g, item);
        buf_chr(p->b, ',');
        if (i < g->out_descriptor.len && g->out_descriptor.at[i] != 0) {
            buf_str(p->b, "  # ");
            put(p, g, g->out_descriptor.at[i]);
        }
        buf_chr(p->b, '\n');
    }
    buf_fill(p->b, ' ', indent);
    buf_chr(p->b, v->kind == TUCK_V_LIST ? ']' : ')');
}

static void print_return(struct printer *p, const tuck_graph *g, size_t indent)
{
    const tuck_value *v = g->node.at[g->output].vals;
    bool container = v->kind == TUCK_V_LIST || v->kind == TUCK_V_TUPLE;

    buf_str(p->b, "return ");
    if (g->style.ret == FX_RETURN_PYTREE)
        buf_str(p->b, "pytree.tree_unflatten(");
    if (g->style.ret == FX_RETURN_BYTECODE)
        buf_str(p->b, "self._dynamo_bytecode_unflatten(");
    if (g->style.ret_expanded && p->form == TUCK_FORM_TEXT && container) {
        print_expanded(p, g, v, indent);
    } else if (g->style.ret == FX_RETURN_BYTECODE && v->kind == TUCK_V_TUPLE) {
        const tuck_value *item = v + 1;
        buf_chr(p->b, '('); /* always with a comma at the end */
        for (uint32_t i = 0; i < v->a; i++, item = value_next(item)) {
            print_value(p, g, item);
            buf_str(p->b, i + 1 < v->a ? ", " : ",");
        }
        buf_chr(p->b, ')');
    } else {
        print_value(p, g, v);
    }
    if (g->style.ret == FX_RETURN_PYTREE)
        buf_str(p->b, ", self._out_spec)");
    if (g->style.ret == FX_RETURN_BYTECODE)
        buf_str(p->b, ", _fn_args)");
}

/* ---- graphs ---- */

/* Everything from the class line to the end of the return, without the newline after it. */
static void print_one(struct printer *p, const tuck_graph *g, uint32_t depth)
{
    bool class_form = g->style.form == FX_CLASS && p->form != TUCK_FORM_CODE;
    size_t indent = class_form ? 4 * (size_t)depth + 4 : 0;
    bool first = true;
    str_id comment = 0;
    uint32_t remark = p->form == TUCK_FORM_TEXT && !g->edited ? 0 : g->remark.len;

    if (class_form) {
        const char *name = graph_str(g, g->name);
        buf_fill(p->b, ' ', indent - 4);
        buf_printf(p->b, "class %s(torch.nn.Module):\n",
                   p->form == TUCK_FORM_EXEC && !is_identifier(name) ? "GraphModule" : name);
        if (p->around && g->script.inside != 0)
            put(p, g, g->script.inside);
    } else if (g->style.head != 0) {
        put(p, g, g->style.head);
    }
    print_signature(p, g, indent);
    indent += 4;
    find_last_uses(p, g);
    print_prologue(p, g, indent);
    if (print_aliases(p, g, indent))
        first = false;
    if (g->style.prologue != FX_PLAIN && g->style.prologue != FX_PYTREE)
        first = true;
    for_each_node (g, n) {
        const struct fx_node *x = &g->node.at[n];

        if (x->kind == TUCK_PLACEHOLDER || x->kind == TUCK_RESULT)
            continue;
        print_lead(p, g, x, indent, first, &comment);
        first = false;
        buf_fill(p->b, ' ', indent);
        if (n == g->output) {
            print_return(p, g, indent);
            return;
        }
        print_node(p, g, x);
        print_frees(p, g, n);
        for (; remark < g->remark.len && g->remark.at[remark].node <= n; remark++)
            put(p, g, g->remark.at[remark].text);
        if (x->apart && g->edited && p->form == TUCK_FORM_TEXT)
            buf_str(p->b, "  " FX_APART);
        buf_chr(p->b, '\n');
    }
    if (g->style.pass_body || p->form == TUCK_FORM_EXEC) {
        buf_fill(p->b, ' ', indent);
        buf_str(p->b, "pass");
    }
}

/* Prints g and its nested graphs, in the order of the text. */
static void print_tree(struct printer *p, const tuck_graph *g)
{
    p->todo.len = p->todo_depth.len = 0;
    vec_push(p->mem, &p->todo, g);
    vec_push(p->mem, &p->todo_depth, 0);
    while (p->todo.len > 0) {
        const tuck_graph *one = p->todo.at[--p->todo.len];
        uint32_t depth = p->todo_depth.at[--p->todo_depth.len];

        if (one != g && p->form == TUCK_FORM_TEXT && !one->fresh)
            put(p, one, one->gap);
        else if (one != g)
            buf_str(p->b, "\n\n");
        print_one(p, one, depth);
        if (p->form == TUCK_FORM_CODE)
            continue;
        for (uint32_t i = one->child.len; i > 0; i--) {
            vec_push(p->mem, &p->todo, one->child.at[i - 1]);
            vec_push(p->mem, &p->todo_depth, depth + 1);
        }
    }
}

struct print_args {
    struct printer *p;
    const tuck_graph *const *graphs;
    size_t n;
    const tuck_doc *doc; /* NULL: only the graphs */
    tuck_diags *diags;
    bool ok;
};

static void do_print(void *arg)
{
    struct print_args *x = arg;
    struct printer *p = x->p;
    const tuck_graph *one = x->graphs[0];

    p->around = p->form == TUCK_FORM_TEXT && one->script.is &&
                (x->doc != NULL || one->script.tail != 0);
    x->ok = p->form != TUCK_FORM_EXEC || exec_header(p, x->graphs, x->n, x->diags);
    if (!x->ok)
        return;
    for (size_t i = 0; i < x->n; i++) {
        const tuck_graph *g = x->graphs[i];

        if (p->form == TUCK_FORM_CODE) { /* like gm.code: three empty lines, a line of blanks */
            if (i > 0)
                buf_chr(p->b, '\n');
            buf_chr(p->b, '\n');
            if (g->style.head == 0)
                buf_str(p->b, "\n\n");
            print_tree(p, g);
            buf_str(p->b, "\n    "); /* gm.code has no final newline */
            continue;
        }
        if (p->form == TUCK_FORM_TEXT && x->doc != NULL)
            put(p, g, g->gap);
        else if (p->around)
            put(p, g, g->script.head);
        else if (i > 0)
            buf_chr(p->b, '\n');
        if (p->form == TUCK_FORM_TEXT && g->known != 0) {
            put(p, g, g->known);
            buf_chr(p->b, '\n');
        }
        print_tree(p, g);
        if (p->around && x->doc == NULL)
            put(p, g, g->script.tail);
        else if (p->form != TUCK_FORM_TEXT || x->doc == NULL)
            buf_chr(p->b, '\n');
    }
    if (p->form == TUCK_FORM_TEXT && x->doc != NULL)
        put(p, x->graphs[0], x->doc->tail);
    buf_flush(p->b);
}

static tuck_status print(struct print_args *x, struct mem *m, tuck_form form, tuck_write_fn write,
                         void *ctx)
{
    struct mem own; /* its own guard: printing does not change the graph */
    struct buf b;

    mem_init(&own, &m->alloc);
    buf_to(&b, &own, write, ctx);
    struct printer p = {.mem = &own, .b = &b, .form = form};
    x->p = &p;
    bool enough = mem_guard(&own, do_print, x);
    bool failed = b.failed;
    vec_free(&own, &p.open);
    vec_free(&own, &p.last);
    vec_free(&own, &p.todo);
    vec_free(&own, &p.todo_depth);
    buf_destroy(&b);
    return !enough ? TUCK_ENOMEM : !x->ok ? TUCK_EEXEC : failed ? TUCK_EIO : TUCK_OK;
}

tuck_status tuck_graph_print(const tuck_graph *g, tuck_form form, tuck_diags *diags,
                             tuck_write_fn write, void *ctx)
{
    struct print_args x = {.graphs = &g, .n = 1, .diags = diags};

    return print(&x, &g->store->mem, form, write, ctx);
}

struct crlf_out {
    tuck_write_fn write;
    void *ctx;
};

static bool write_crlf(void *ctx, const char *s, size_t n)
{
    const struct crlf_out *out = ctx;

    while (n > 0) {
        const char *nl = memchr(s, '\n', n);
        size_t k = nl ? (size_t)(nl - s) : n;

        if ((k > 0 && !out->write(out->ctx, s, k)) ||
            (nl != NULL && !out->write(out->ctx, "\r\n", 2)))
            return false;
        k += nl != NULL;
        s += k;
        n -= k;
    }
    return true;
}

tuck_status tuck_doc_print(const tuck_doc *doc, tuck_form form, tuck_diags *diags,
                           tuck_write_fn write, void *ctx)
{
    struct mem *m = &doc->store->mem;
    size_t n = doc->entry.len, size = n * sizeof(tuck_graph *);
    const tuck_graph **graphs = m->alloc.resize(m->alloc.ctx, NULL, 0, size);

    if (graphs == NULL)
        return TUCK_ENOMEM;
    for (size_t i = 0; i < n; i++)
        graphs[i] = doc->entry.at[i].graph;
    struct print_args x = {.graphs = graphs, .n = n, .doc = doc, .diags = diags};
    bool as_read = form == TUCK_FORM_TEXT;
    struct crlf_out crlf = {write, ctx};
    tuck_status st = TUCK_EIO;
    if (!as_read || !doc->bom || write(ctx, "\xEF\xBB\xBF", 3))
        st = as_read && doc->crlf ? print(&x, m, form, write_crlf, &crlf)
                                  : print(&x, m, form, write, ctx);
    m->alloc.resize(m->alloc.ctx, graphs, size, 0);
    return st;
}

/* Reads one statement of a body: the kind of node, its arguments, what it frees. */
#include "op/ops.h"
#include "text/read.h"

static bool at_end(const char *s)
{
    return *s == '\n' || *s == '\0' || *s == ';' || *s == '#';
}

/* ---- annotations ---- */

/* After a name: `: "f32[4]"`, ` : torch.Tensor`. Ends before a '=' or one of stop_at
 * outside brackets and strings. */
bool read_annotation(struct reader *r, const char *stop_at, uint32_t *ann_out)
{
    const char *s = r->p, *e = after_blanks(s);
    int depth = 0;

    if (*e != ':')
        return false;
    e++;
    if (e[0] == ' ' && e[1] == '"') { /* the usual: one string */
        e += 2 + strcspn(e + 2, "\"\n");
        if (*e != '"')
            return false;
        e++;
    } else {
        for (; *e != '\n' && *e != '\0'; e++) {
            if (*e == '"' || *e == '\'') {
                char q = *e;
                e += 1 + strcspn(e + 1, q == '"' ? "\"\n" : "'\n");
                if (*e != q)
                    return false;
            } else if (strchr("([{", *e) != NULL) {
                depth++;
            } else if (depth > 0 && strchr(")]}", *e) != NULL) {
                depth--;
            } else if (depth == 0 && (strchr(stop_at, *e) != NULL || *e == '=')) {
                break;
            }
        }
        if (depth != 0)
            return false; /* a type does not continue on the next line */
        while (e > s && e[-1] == ' ')
            e--;
    }
    *ann_out = ann_intern(r->store, s, (size_t)(e - s));
    r->p = e;
    return true;
}

/* ---- frees ---- */

/* `a = b = None`, the cursor on a. Black may have put parentheses around any part. */
static bool read_frees(struct reader *r)
{
    const char *s = r->p, *bol = r->bol;
    uint32_t line = r->line, had = r->freed.len;

    for (;;) {
        bool paren = *r->p == '(';
        r->p += paren;
        if (paren)
            read_space(r);
        size_t n = ident_len(r->p);
        if (n == 0)
            break;
        const char *name = r->p;
        r->p += n;
        if (paren) {
            read_space(r);
            if (*r->p++ != ')')
                break;
        }
        read_blanks(r);
        if (n == 4 && starts_with(name, "None") && at_end(r->p))
            return true;
        if (*r->p != '=' || r->p[1] == '=')
            break;
        r->p++;
        read_blanks(r);
        str_id id = str_find(&r->store->str, name, n);
        uint32_t node = id ? read_lookup(r, id) : 0;
        if (node == 0)
            break;
        vec_push(r->mem, &r->freed, node);
    }
    r->freed.len = had;
    r->p = s;
    r->bol = bol;
    r->line = line;
    return false;
}

/* Records what the statement of the newest node frees; nodes come in the order of their ids. */
static void note_frees(struct reader *r)
{
    tuck_graph *g = r->g;

    while (g->frees_at.len < g->node.len)
        vec_push(r->mem, &g->frees_at, g->frees.len);
    for (uint32_t i = 0; i < r->freed.len; i++)
        vec_push(r->mem, &g->frees, r->freed.at[i]);
    r->freed.len = 0;
}

/* ---- right-hand sides ---- */

struct rhs {
    tuck_kind kind;
    uint8_t syntax;
    str_id target;
    uint32_t n_args, n_kwargs;
};

static void push_node(struct reader *r, uint32_t node)
{
    values_push(r->mem, &r->vals, (tuck_value){.kind = TUCK_V_NODE, .a = node});
}

static bool finish_call(struct reader *r, struct rhs *x, uint32_t before)
{
    r->p++;
    if (!read_arguments(r, &x->n_args, &x->n_kwargs))
        return false;
    x->n_args += before;
    return true;
}

/* A path: `self.a.b`, `x.T`, `getattr(getattr(self.a, "0"), "1").b`. Writes its elements to r->tmp,
 * with dots between; *base is the first identifier. False: it is something else. */
static bool read_path(struct reader *r, const char **base, size_t *base_len)
{
    const char *s = r->p;
    size_t wrapped = 0, n;

    while (starts_with(s, "getattr(")) {
        wrapped++;
        s += 8;
    }
    n = ident_len(s);
    if (n == 0)
        return false;
    *base = s;
    *base_len = n;
    s += n;
    r->tmp.len = 0;
    for (;;) {
        if (*s == '.' && (n = ident_len(s + 1)) > 0) {
            buf_str(&r->tmp, r->tmp.len > 0 ? "." : "");
            buf_add(&r->tmp, s + 1, n);
            s += 1 + n;
        } else if (wrapped > 0 && starts_with(s, ", \"")) {
            s += 3;
            n = strcspn(s, "\n"); /* a quote inside is not escaped: the element ends at `")` */
            const char *e = s;
            while (e < s + n && !(e[0] == '"' && e[1] == ')'))
                e++;
            if (e == s + n || e == s || memchr(s, '.', (size_t)(e - s)) != NULL)
                return false; /* FX prints one getattr per element, and no empty one */
            buf_str(&r->tmp, r->tmp.len > 0 ? "." : "");
            buf_add(&r->tmp, s, (size_t)(e - s));
            s = e + 2;
            wrapped--;
        } else {
            break;
        }
    }
    if (wrapped > 0)
        return false;
    r->p = s;
    return true;
}

/* self.a.b or self.a.b(..). */
static bool read_self(struct reader *r, struct rhs *x)
{
    x->target = read_intern(r, r->tmp.at ? r->tmp.at : "", r->tmp.len);
    if (r->tmp.len == 0)
        return false;
    if (*r->p == '(') {
        x->kind = TUCK_CALL_MODULE;
        return finish_call(r, x, 0);
    }
    x->kind = TUCK_GET_ATTR;
    return true;
}

/* x.size(0), x.shape: the path is in r->tmp. Only the last element may be called. */
static bool read_member(struct reader *r, struct rhs *x, uint32_t node)
{
    push_node(r, node);
    if (*r->p == '(') {
        x->kind = TUCK_CALL_METHOD;
        x->target = read_intern(r, r->tmp.at, r->tmp.len);
        return finish_call(r, x, 1);
    }
    x->kind = TUCK_CALL_FUNCTION;
    x->syntax = FX_ATTRIBUTE;
    x->target = read_intern(r, "getattr", 7);
    x->n_args = 2;
    str_id name = read_intern(r, r->tmp.at, r->tmp.len);
    values_push(r->mem, &r->vals, (tuck_value){.kind = TUCK_V_STR, .a = name});
    return true;
}

static void set_operator(struct reader *r, struct rhs *x, uint32_t op, uint32_t n_args)
{
    const char *name = op_at(op)->name;

    x->kind = TUCK_CALL_FUNCTION;
    x->syntax = FX_OPERATOR;
    x->target = read_intern(r, name, strlen(name));
    x->n_args = n_args;
}

/* The operator whose symbol is at s, the longest match, and its length; 0 if none. */
static uint32_t operator_at(enum op_form form, const char *s, size_t *len)
{
    for (*len = strnlen(s, 3); *len > 0; --*len) {
        uint32_t op = op_by_symbol(form, s, *len);
        if (op != 0)
            return op;
    }
    return 0;
}

/* After the first operand: ` + b`, or the end of the statement. */
static bool read_binary(struct reader *r, struct rhs *x)
{
    size_t len;

    read_blanks(r);
    uint32_t op = operator_at(OP_FORM_BINARY, r->p, &len);
    if (op == 0)
        return false;
    r->p += len;
    set_operator(r, x, op, 2);
    return read_operand(r, false);
}

/* A statement that begins with a node: x[i], x.m(..), x.a, x + y. */
static bool read_from_node(struct reader *r, struct rhs *x, uint32_t node, size_t len)
{
    const char *base, *s = r->p;

    if (s[len] == '.') {
        size_t base_len;
        return read_path(r, &base, &base_len) && read_member(r, x, node);
    }
    push_node(r, node);
    r->p += len;
    if (*r->p != '[')
        return read_binary(r, x);
    r->p++;
    r->brackets++;
    if (!read_operand(r, true))
        return false;
    r->brackets--;
    read_space(r);
    if (*r->p != ']')
        return false;
    r->p++;
    set_operator(r, x, op_by_symbol(OP_FORM_GETITEM, "[]", 2), 2);
    return true;
}

static bool read_rhs(struct reader *r, struct rhs *x)
{
    const char *s = r->p, *base;
    size_t n = ident_len(s), base_len;
    uint32_t node = 0;

    *x = (struct rhs){.kind = TUCK_CALL_FUNCTION};
    if (n == 0) {
        size_t len;
        uint32_t op = operator_at(OP_FORM_UNARY, s, &len);
        bool number = s[0] != '\0' && s[1] >= '0' && s[1] <= '9';

        if (op != 0 && !number && !starts_with(s, "-inf")) {
            r->p += len;
            set_operator(r, x, op, 1);
            return read_operand(r, false);
        }
        return read_operand(r, false) && read_binary(r, x);
    }
    if (starts_with(s, "torch.")) {
        node = 0; /* torch is reserved: no node has this name */
    } else {
        str_id id = str_find(&r->store->str, s, n);
        node = id ? read_lookup(r, id) : 0;
    }
    if (node != 0)
        return read_from_node(r, x, node, n);
    if ((n == 4 && starts_with(s, "self.")) || (n == 7 && starts_with(s, "getattr("))) {
        if (read_path(r, &base, &base_len) && r->p > base + base_len) {
            str_id id = str_find(&r->store->str, base, base_len);
            node = id ? read_lookup(r, id) : 0;
            if (base_len == 4 && starts_with(base, "self"))
                return read_self(r, x);
            if (node != 0 && *r->p == '(')
                return read_member(r, x, node);
        }
        r->p = s;
        if (n == 4)
            return false;
    }
    n = path_len(s, n);
    if (s[n] != '(')
        return read_operand(r, false) && read_binary(r, x);
    x->target = read_intern(r, s, n);
    r->p += n;
    if (!finish_call(r, x, 0))
        return false;
    const char *end = r->p + strspn(r->p, " ");
    if (at_end(end) || *end == ')' || *end == '\n')
        return true;
    /* `device(type='cpu') == x`: a value that looks like a call, and an operator. */
    values_clear(&r->vals);
    r->p = s;
    return read_operand(r, false) && read_binary(r, x);
}

/* ---- nodes ---- */

static uint16_t op_of(struct reader *r, str_id target)
{
    struct str *s = &r->store->str.all.at[target];

    if (s->tag == 0) {
        uint32_t op = op_find(s->at, s->len);
        s->tag = op + 1;
    }
    return (uint16_t)(s->tag - 1);
}

static bool make_node(struct reader *r, const struct rhs *x, str_id name, const char *at,
                      uint32_t ann, str_id lead)
{
    struct fx_node init = {.kind = (uint8_t)x->kind,
                           .syntax = x->syntax,
                           .target = x->target,
                           .ann = ann,
                           .comment = r->comment,
                           .lead = lead};

    if (x->kind == TUCK_CALL_FUNCTION)
        init.op = op_of(r, x->target);
    /* Arguments first: a statement that uses its own name uses it before its definition. */
    uint32_t n = read_define(r, name, at, init);
    if (n == 0)
        return false;
    graph_set_vals(r->g, n, r->vals.v.at, r->vals.v.len, x->n_args, x->n_kwargs);
    if (ann != 0) {
        const struct fx_meta *m = ann_tensor(r->store, ann);
        r->g->style.annotated = true;
        r->g->style.bare |= ann_at(r->store, ann)->form == ANN_BARE;
        if (m != NULL) {
            r->g->style.strides |= m->has_strides;
            r->g->style.devices |= m->device != 0;
        }
    }
    return true;
}

/* After a node's right-hand side: its frees. The cursor ends at the end of the statement, or on
 * another statement of the same line. */
static void read_tail(struct reader *r)
{
    read_blanks(r);
    while (*r->p == ';') {
        r->p++;
        read_blanks(r);
        if (!at_end(r->p) && !read_frees(r))
            break;
    }
    note_frees(r);
}

/* A statement that cannot be read otherwise: kept verbatim. */
static enum stmt read_opaque(struct reader *r, const char *start, str_id lead)
{
    read_again(r);
    const char *bol = r->bol;
    if (!read_balanced(r))
        return STMT_ERROR;
    const char *e = r->p;
    while (e > start && e[-1] == ' ')
        e--;

    /* The names it assigns: `a, b = …`, `a: T = …`. */
    r->names.len = 0;
    for (const char *s = start;;) {
        size_t n = ident_len(s);
        if (n == 0)
            break;
        vec_push(r->mem, &r->names, read_intern(r, s, n));
        s = after_blanks(s + n);
        if (*s == ',') {
            s = after_blanks(s + 1);
            if (*s != '=')
                continue;
        }
        if (*s == ':' && r->names.len == 1) {
            s += strcspn(s, "=\n");
        }
        if (s[0] != '=' || s[1] == '=' || s > e)
            r->names.len = 0;
        break;
    }
    read_warn(r, start, (size_t)(e - start), "kept verbatim; nothing is moved across it",
              "statement not understood");
    bool again = r->names.len == 1 && read_lookup(r, r->names.at[0]) != 0;
    uint32_t indent = (uint32_t)(start - bol);
    if (r->body_indent != 0 && indent > r->body_indent && start[-1] == ' ' &&
        strspn(bol, " ") == indent) {
        /* An inner block: keep its indent. */
        start = bol + r->body_indent;
    }
    read_raw(r, start, e);
    struct fx_node init = {.kind = TUCK_OPAQUE, .comment = r->comment, .lead = lead};
    uint32_t n = read_define(r, r->names.len > 0 && !again ? r->names.at[0] : 0, start, init);
    if (n == 0)
        return STMT_ERROR;
    graph_set_vals(r->g, n, r->vals.v.at, r->vals.v.len, 1, 0);
    for (uint32_t i = 1; i < r->names.len; i++) {
        struct fx_node more = {.kind = TUCK_RESULT, .comment = r->comment};
        uint32_t k = read_define(r, r->names.at[i], start, more);
        if (k == 0)
            return STMT_ERROR;
        tuck_value v = {.kind = TUCK_V_NODE, .a = n};
        graph_set_vals(r->g, k, &v, 1, 1, 0);
    }
    note_frees(r);
    if (*r->p == ';')
        r->p++;
    return STMT_NODE;
}

/* `x += y;  iadd = x` and `x[i] = v;  setitem = x`, the cursor after x. */
static bool read_inplace(struct reader *r, uint32_t node, const char *object, size_t len,
                         str_id lead)
{
    struct rhs x = {.kind = TUCK_CALL_FUNCTION};
    uint32_t ann = 0;

    push_node(r, node);
    if (*r->p == '[') {
        r->p++;
        r->brackets++;
        if (!read_operand(r, true))
            return false;
        r->brackets--;
        read_space(r);
        if (*r->p++ != ']')
            return false;
        read_blanks(r);
        if (*r->p++ != '=')
            return false;
        set_operator(r, &x, op_by_symbol(OP_FORM_SETITEM, "[]=", 3), 3);
    } else {
        read_blanks(r);
        size_t symbol;
        uint32_t op = operator_at(OP_FORM_AUGMENTED, r->p, &symbol);
        if (op == 0)
            return false;
        r->p += symbol;
        set_operator(r, &x, op, 2);
    }
    if (!read_operand(r, false))
        return false;
    read_blanks(r);
    if (*r->p++ != ';')
        return false;
    read_blanks(r);
    const char *name = r->p;
    size_t n = ident_len(name);
    if (n == 0)
        return false;
    r->p += n;
    read_annotation(r, ";#", &ann);
    read_blanks(r);
    if (*r->p++ != '=')
        return false;
    read_blanks(r);
    if (ident_len(r->p) != len || strncmp(r->p, object, len) != 0)
        return false;
    r->p += len;
    const char *e = after_blanks(r->p);
    if (!at_end(e) || !make_node(r, &x, read_intern(r, name, n), name, ann, lead))
        return false;
    read_tail(r);
    return true;
}

/* The name of a parameter whose placeholder has a different one. */
static const uint32_t FORMER_PARAMETER = UINT32_MAX;

static bool is_former_parameter(const struct reader *r, str_id name)
{
    const struct str *s = str_at(&r->store->str, name);

    return s->owner == ~r->g->serial && s->node == FORMER_PARAMETER;
}

/* `l_x_ = L_x_`: the placeholder of parameter L_x_ has another name. */
static bool read_alias(struct reader *r, str_id name, uint32_t node)
{
    struct fx_node *x = node_at(r->g, node);

    if (x->kind != TUCK_PLACEHOLDER || x->n_uses > 0)
        return false;
    if (is_former_parameter(r, name))
        /* aliases are printed in the order of the parameters: this one would come too early */
        return false;
    for (uint32_t i = 0; i < r->g->param.len; i++) {
        struct fx_param *q = &r->g->param.at[i];
        if (q->node != node)
            continue;
        if (q->aliased)
            return false;
        q->aliased = true;
        r->indent_known = true;
        struct str *old = &r->store->str.all.at[x->name];
        old->owner = ~r->g->serial;
        old->node = FORMER_PARAMETER;
        x->name = name;
        x->line = r->line + 1;
        struct str *now = &r->store->str.all.at[name];
        now->owner = r->g->serial;
        now->node = node;
        return true;
    }
    return false;
}

static enum stmt read_return(struct reader *r, str_id lead)
{
    struct fx_style *st = &r->g->style;

    r->p += 6;
    read_blanks(r);
    st->ret = FX_RETURN_PLAIN;
    if (starts_with(r->p, "pytree.tree_unflatten(")) {
        st->ret = FX_RETURN_PYTREE;
        r->p += 22;
    } else if (starts_with(r->p, "self._dynamo_bytecode_unflatten(")) {
        st->ret = FX_RETURN_BYTECODE;
        r->p += 32;
    }
    r->brackets = st->ret != FX_RETURN_PLAIN;
    size_t after = (*r->p == '(' || *r->p == '[') ? 1 + strspn(r->p + 1, " ") : 0;
    st->ret_expanded = r->want_descriptors = after > 0 && r->p[after] == '\n';
    bool ok = true;
    if (at_end(r->p) && st->ret == FX_RETURN_PLAIN)
        values_push(r->mem, &r->vals, (tuck_value){.kind = TUCK_V_NONE});
    else
        ok = read_operand(r, true);
    r->want_descriptors = false;
    if (r->failed)
        return STMT_ERROR;
    if (ok && st->ret != FX_RETURN_PLAIN) {
        read_space(r);
        const char *rest = st->ret == FX_RETURN_PYTREE ? ", self._out_spec)" : ", _fn_args)";
        ok = starts_with(r->p, rest);
        r->p += ok ? strlen(rest) : 0;
    }
    r->brackets = 0;
    read_blanks(r);
    if (!ok || !at_end(r->p)) {
        const char *at = r->p;
        read_again(r);
        if (!read_balanced(r))
            return STMT_ERROR;
        read_error(r, at, 1, NULL, "this value cannot be returned");
        return STMT_ERROR;
    }
    struct fx_node init = {.kind = TUCK_OUTPUT, .comment = r->comment, .lead = lead};
    str_id name = read_intern(r, "output", 6);
    struct diag_pos pos = read_pos(r, r->stmt, 6);
    init.name = name;
    init.line = pos.line;
    init.column = pos.column;
    uint32_t n = graph_add_node(r->g, 0, init);
    graph_set_vals(r->g, n, r->vals.v.at, r->vals.v.len, 1, 0);
    r->g->output = n;
    note_frees(r);
    return STMT_RETURN;
}

/* The annotation of a flattened input, before the pytree prologue. */
static void add_pending(struct reader *r, str_id name, uint32_t ann)
{
    str_id descriptor = 0;

    read_blanks(r);
    if (*r->p == '#') {
        r->p += 1 + (r->p[1] == ' ');
        size_t n = strcspn(r->p, "\n");
        descriptor = read_intern(r, r->p, n);
        r->p += n;
    }
    struct str *mark = &r->store->str.all.at[name]; /* found again when the name comes */
    mark->owner = ~r->g->serial;
    mark->node = r->pending.len;
    vec_push(r->mem, &r->pending, ((struct pending_ann){name, ann, descriptor}));
    if (*r->p == ';')
        r->p++;
    read_blanks(r);
}

static enum stmt read_one(struct reader *r, str_id lead)
{
    const char *start = r->p;
    size_t n = ident_len(start);
    uint32_t ann = 0;
    struct rhs x;

    r->stmt = start;
    r->stmt_bol = r->bol;
    r->stmt_line = r->line;
    read_again(r);
    if (n == 6 && starts_with(start, "return"))
        return read_return(r, lead);
    if (n == 0)
        return read_opaque(r, start, lead);
    r->p += n;
    if (*r->p == ':' || (*r->p == ' ' && r->p[1] == ':')) {
        if (!read_annotation(r, ";#", &ann))
            return read_opaque(r, start, lead);
        const char *s = after_blanks(r->p);
        if (at_end(s) && r->g->style.prologue == FX_PLAIN && r->g->n_nodes == 0) {
            add_pending(r, read_intern(r, start, n), ann);
            return STMT_SKIP;
        }
    }
    read_blanks(r);
    if (*r->p == '=' && r->p[1] != '=') {
        str_id name = read_intern(r, start, n);
        uint32_t known = read_lookup(r, name);

        r->p++;
        read_blanks(r);
        if (known != 0 && ann == 0) { /* a second assignment must be a free */
            r->p = start;
            if (read_frees(r)) {
                if (node_at(r->g, r->g->node.len - 1)->kind == TUCK_PLACEHOLDER)
                    return read_opaque(r, start, lead); /* no statement yet that could free it */
                note_frees(r);
                return STMT_SKIP;
            }
            read_again(r);
            if (read_balanced(r))
                read_define(r, name, start, (struct fx_node){.kind = 0}); /* reports the error */
            return STMT_ERROR;
        }
        size_t m = ident_len(r->p);
        if (m > 0 && at_end(after_blanks(r->p + m)) && ann == 0) {
            str_id other = str_find(&r->store->str, r->p, m);
            uint32_t node = other ? read_lookup(r, other) : 0;
            if (node != 0 && read_alias(r, name, node)) {
                r->p += m;
                read_blanks(r);
                return STMT_SKIP;
            }
        }
        bool wrapped = *r->p == '(' && *after_blanks(r->p + 1) == '\n';
        if (wrapped) { /* black: a whole right-hand side in parentheses */
            r->p++;
            r->brackets = 1;
            read_space(r);
        }
        bool ok = read_rhs(r, &x);
        if (ok && wrapped) {
            read_space(r);
            ok = *r->p == ')';
            r->p += ok;
            r->brackets = 0;
        }
        if (r->failed)
            return STMT_ERROR;
        const char *e = after_blanks(r->p);
        if (ok && at_end(e)) {
            if (!make_node(r, &x, name, start, ann, lead))
                return STMT_ERROR;
            read_tail(r);
            return STMT_NODE;
        }
        return read_opaque(r, start, lead);
    }
    str_id id = str_find(&r->store->str, start, n);
    uint32_t node = id ? read_lookup(r, id) : 0;
    if (node != 0 && ann == 0) {
        if (read_inplace(r, node, start, n, lead))
            return STMT_NODE;
        if (r->failed)
            return STMT_ERROR;
    }
    return read_opaque(r, start, lead);
}

enum stmt read_statement(struct reader *r, str_id lead)
{
    enum stmt what = read_one(r, lead);

    r->indent_known |= what == STMT_NODE;
    return what;
}

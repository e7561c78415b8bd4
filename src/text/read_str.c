/* The str(graph) form:
 *
 *   graph():
 *       %x : [num_users=1] = placeholder[target=x](default=None)
 *       %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%x, 1))
 *       return add
 *
 * Strings have no quotes here, so '0' and 0 look the same; the operator's signature decides. This
 * form is only read, never written: such a graph is printed as a class.
 */
#include "op/ops.h"
#include "text/read.h"

/* Converts an argument list of this form into the usual one in r->tmp: removes % and quotes
 * strings. What is not a number, a node's name or a container is a string, unless the signature
 * wants something else. */
struct coerce {
    const struct op_sig *sig;
    uint32_t param; /* of the current argument, at depth 1 */
};

static bool wants_type(const struct coerce *c, enum op_type type)
{
    return c->sig != NULL && c->param < c->sig->n_params && c->sig->params[c->param].type == type;
}

static bool wants_string(const struct coerce *c)
{
    if (c->sig == NULL || c->param >= c->sig->n_params)
        return false;
    const struct op_param *q = &c->sig->params[c->param];
    return q->type == OP_T_STR || (q->type == OP_T_ANY && strcmp(q->name, "group_name") == 0);
}

static bool is_number(const char *s, size_t len)
{
    size_t i = len > 0 && (*s == '-' || *s == '+');
    bool digit = false;

    for (; i < len; i++) {
        if (s[i] >= '0' && s[i] <= '9')
            digit = true;
        else if (strchr(".eE+-", s[i]) == NULL)
            return false;
    }
    return digit;
}

static bool is_one_of(const char *s, size_t len, const char *const *list)
{
    for (; *list; list++)
        if (strlen(*list) == len && memcmp(*list, s, len) == 0)
            return true;
    return false;
}

/* One unquoted word of an argument list. */
static void put_word(struct reader *r, const struct coerce *c, const char *s, size_t len)
{
    static const char *const plain[] = {"None", "True", "False",    "inf",
                                        "-inf", "nan",  "Ellipsis", NULL};

    while (len > 0 && s[len - 1] == ' ')
        len--;
    bool none = len == 4 && memcmp(s, "None", 4) == 0;
    if (wants_type(c, OP_T_DEVICE) && !none && memchr(s, '(', len) == NULL) {
        const char *colon = memchr(s, ':', len); /* cuda:0 */
        size_t n = colon ? (size_t)(colon - s) : len;
        buf_str(&r->tmp, "device(type='");
        buf_add(&r->tmp, s, n);
        buf_str(&r->tmp, colon ? "', index=" : "'");
        if (colon)
            buf_add(&r->tmp, colon + 1, len - n - 1);
        buf_chr(&r->tmp, ')');
    } else if (wants_string(c) && !none) {
        value_str_repr(&r->tmp, s, len);
    } else if (is_number(s, len) || is_one_of(s, len, plain) || memchr(s, '(', len) != NULL) {
        buf_add(&r->tmp, s, len);
    } else if (len > 6 && memcmp(s, "torch.", 6) == 0) {
        buf_add(&r->tmp, s, len);
    } else if (len > 5 && (memcmp(s, "aten.", 5) == 0 || memcmp(s, "prims", 5) == 0)) {
        buf_str(&r->tmp, "torch.ops."); /* an operator as a value */
        buf_add(&r->tmp, s, len);
    } else {
        value_str_repr(&r->tmp, s, len);
    }
}

/* After the bracket that closes the one at s, on this line, or NULL. */
static const char *matching(const char *s)
{
    int depth = 0;

    for (; *s != '\n' && *s != '\0'; s++) {
        depth += strchr("([{", *s) != NULL;
        depth -= strchr(")]}", *s) != NULL;
        if (depth == 0)
            return s + 1;
    }
    return NULL;
}

/* Rewrites s..end, the inside of `args = (…)` or `kwargs = {…}`. */
static void put_list(struct reader *r, struct coerce *c, const char *s, const char *end, bool keyed)
{
    int depth = 0;
    bool key = keyed;

    while (s < end) {
        if (*s == '%') {
            s++;
            size_t n = ident_len(s);
            buf_add(&r->tmp, s, n);
            s += n;
        } else if (*s == ' ' || strchr("([{", *s) != NULL) {
            depth += *s != ' ';
            buf_chr(&r->tmp, *s++);
        } else if (strchr(")]}", *s) != NULL) {
            depth--;
            buf_chr(&r->tmp, *s++);
        } else if (*s == ',') {
            if (depth == 0) {
                c->param++;
                key = keyed;
            }
            buf_chr(&r->tmp, *s++);
        } else if (key && depth == 0) {
            size_t n = strcspn(s, ":");
            if (s + n >= end)
                n = (size_t)(end - s);
            buf_add(&r->tmp, s, n);
            buf_str(&r->tmp, " = ");
            int i = c->sig ? op_param_find(c->sig, s, n) : -1;
            c->param = i < 0 ? UINT32_MAX : (uint32_t)i;
            s += n + (s + n < end);
            key = false;
        } else {
            const char *e = s; /* a word runs to the next separator; calls keep their brackets */
            while (e < end && *e != ',' && strchr(")]}", *e) == NULL) {
                const char *close = *e == '(' ? matching(e) : NULL;
                if (*e == ':' && depth > 0 && e[1] == ' ')
                    break;
                e = close && close <= end ? close : e + 1;
            }
            put_word(r, c, s, (size_t)(e - s));
            s = e;
            if (s < end && *s == ':') {
                buf_chr(&r->tmp, ':');
                s++;
            }
        }
    }
}

/* `[target=…]`; returns the end, or NULL. */
static const char *target_of(const char *s, const char **from, size_t *len)
{
    if (!starts_with(s, "[target="))
        return NULL;
    s += 8;
    size_t n = strcspn(s, "]\n");
    if (s[n] != ']')
        return NULL;
    *from = s;
    *len = n;
    return s + n + 1;
}

/* The rewritten argument list in r->tmp becomes r->vals. */
static bool parse_arguments(struct reader *r, uint32_t *n_args, uint32_t *n_kwargs)
{
    const char *p = r->p, *bol = r->bol, *end = r->end;
    uint32_t line = r->line;

    buf_chr(&r->tmp, ')');
    buf_text(&r->tmp);
    size_t len = r->tmp.len;
    char *text = arena_str(&r->g->arena, r->tmp.at, len); /* r->tmp is used by what follows */
    r->p = text;
    r->pin = p;
    bool ok = read_arguments(r, n_args, n_kwargs) && *r->p == '\0';
    r->pin = NULL;
    r->p = p;
    r->bol = bol;
    r->line = line;
    r->end = end;
    return ok;
}

/* Can s..s+len be in a signature or an annotation? Brackets and quotes must be balanced, and
 * nothing may end it. */
static bool is_contained(const char *s, size_t len, const char *never)
{
    int depth = 0;

    for (size_t i = 0; i < len; i++) {
        if (s[i] == '\'' || s[i] == '"') {
            char q = s[i];
            for (i++; i < len && s[i] != q; i++)
                if (s[i] == '\\')
                    return false;
            if (i >= len)
                return false;
        }
        depth += strchr("([{", s[i]) != NULL;
        depth -= strchr(")]}", s[i]) != NULL;
        if (depth < 0 || (depth == 0 && strchr(never, s[i]) != NULL))
            return false;
    }
    return depth == 0 && len > 0;
}

/* Identifiers with dots between. */
static bool is_path(const char *s)
{
    size_t n;

    while ((n = ident_len(s)) > 0) {
        s += n;
        if (*s == '\0')
            return true;
        if (*s++ != '.')
            break;
    }
    return false;
}

/* Can this be called, read, or be the name of a parameter, in code? */
static bool is_target(tuck_kind kind, const char *s, size_t len)
{
    size_t stars = kind == TUCK_PLACEHOLDER ? strspn(s, "*") : 0;

    if (kind == TUCK_PLACEHOLDER)
        return stars < len && stars <= 2 && ident_len(s + stars) == len - stars;
    for (size_t i = 0; i < len; i++)
        if (s[i] == '"' || s[i] == '\\' || (unsigned char)s[i] < ' ' ||
            (s[i] == '.' && (i == 0 || s[i - 1] == '.')))
            return false;
    return len > 0 && s[len - 1] != '.';
}

static bool bad_line(struct reader *r, const char *at)
{
    if (!r->failed)
        read_error(r, at, 1, NULL, "this is not a line of str(graph)");
    return false;
}

/* `(args = (…), kwargs = {…})` at s. */
static bool read_call(struct reader *r, const char *s, tuck_kind kind, const char *target,
                      size_t target_len, struct fx_node *x, uint32_t *n_args, uint32_t *n_kwargs)
{
    struct op_sig sig;
    struct coerce c = {.sig = NULL};
    struct arena_mark mark = arena_mark(&r->g->arena);

    if (kind == TUCK_CALL_FUNCTION) {
        if (target_len > 9 && memcmp(target, "builtins.", 9) == 0 &&
            memchr(target + 9, '.', target_len - 9) == NULL) {
            target += 9;
            target_len -= 9;
        }
        x->op = (uint16_t)op_find(target, target_len);
        if (x->op != 0 && op_sig_parse(&r->g->arena, op_at(x->op), &sig, NULL))
            c.sig = &sig;
        if (op_at(x->op)->form != OP_FORM_CALL)
            x->syntax = FX_OPERATOR;
    }
    if (!starts_with(s, "(args = ("))
        return bad_line(r, s);
    const char *args = s + 8, *args_end = matching(args);
    if (args_end == NULL || !starts_with(args_end, ", kwargs = {"))
        return bad_line(r, s);
    const char *kwargs = args_end + 11, *kwargs_end = matching(kwargs);
    if (kwargs_end == NULL)
        return bad_line(r, kwargs);
    r->tmp.len = 0;
    put_list(r, &c, args + 1, args_end - 1, false);
    if (kwargs_end - kwargs > 2) {
        if (r->tmp.len > 0) /* a tuple of one has its comma already */
            buf_str(&r->tmp, r->tmp.at[r->tmp.len - 1] == ',' ? " " : ", ");
        c.param = 0;
        put_list(r, &c, kwargs + 1, kwargs_end - 1, true);
    }
    arena_release(&r->g->arena, mark);
    r->p = s;
    if (!parse_arguments(r, n_args, n_kwargs))
        return bad_line(r, s);
    /* Outside torch, a global has a mangled name: math.sqrt is math_sqrt in code. */
    char *mangled = arena_str(&r->g->arena, target, target_len);
    if (kind == TUCK_CALL_FUNCTION && x->syntax == FX_CALL &&
        !(starts_with(mangled, "torch.") && is_path(mangled))) {
        for (char *m = mangled; *m; m++)
            if (ident_len(m) == 0 && !(*m >= '0' && *m <= '9'))
                *m = '_';
        if (*mangled >= '0' && *mangled <= '9')
            return bad_line(r, s);
    }
    x->target = read_intern(r, mangled, target_len);
    /* builtin getattr of two arguments is printed as x.attr if possible */
    const tuck_value *v = r->vals.v.at;
    if (kind == TUCK_CALL_FUNCTION && target_len == 7 && memcmp(target, "getattr", 7) == 0 &&
        *n_args == 2 && *n_kwargs == 0 && value_next(v)->kind == TUCK_V_STR) {
        const struct str *name = str_at(&r->store->str, value_next(v)->a);
        if (name->len > 0 && ident_len(name->at) == name->len)
            x->syntax = FX_ATTRIBUTE;
    }
    if (x->syntax == FX_OPERATOR) {
        uint32_t want = op_at(x->op)->form == OP_FORM_UNARY     ? 1
                        : op_at(x->op)->form == OP_FORM_SETITEM ? 3
                                                                : 2;
        bool inplace = op_at(x->op)->form == OP_FORM_AUGMENTED ||
                       op_at(x->op)->form == OP_FORM_SETITEM;
        if (*n_args != want || *n_kwargs != 0 || (inplace && v->kind != TUCK_V_NODE))
            x->syntax = FX_CALL;
    }
    if (kind == TUCK_CALL_METHOD && (*n_args == 0 || v->kind != TUCK_V_NODE))
        return bad_line(r, s);
    return true;
}

/* Parameters have names of their own, which must also be unique. A name that belongs to no node is
 * marked. */
static bool note_parameter(struct reader *r, str_id target)
{
    struct str *s = &r->store->str.all.at[target];
    uint32_t node = read_lookup(r, target);

    if (node != 0)
        return node_at(r->g, node)->kind != TUCK_PLACEHOLDER ||
               node_at(r->g, node)->target != target;
    if (s->owner == ~r->g->serial)
        return false;
    s->owner = ~r->g->serial;
    return true;
}

/* One `%name : … = …` line. */
static bool read_line(struct reader *r)
{
    const char *at = r->p + 1, *s, *target;
    size_t n = ident_len(at), target_len;
    struct fx_node x = {.kind = 0};
    uint32_t n_args = 0, n_kwargs = 0;

    values_clear(&r->vals);
    r->open_at_text.len = 0;
    r->brackets = 0;
    r->lenient = 0;
    s = at + n;
    if (n == 0 || !starts_with(s, " : "))
        return bad_line(r, at);
    s += 3;
    if (starts_with(s, "Tensor \"")) {
        const char *inner = s + 8;
        size_t m = strcspn(inner, "\"\n");
        x.ann = ann_from_inner(r->store, inner, m);
        s = inner + m + (inner[m] == '"');
    } else if (*s != '[') {
        size_t m = strcspn(s, "[\n");
        const char *e = s + m;
        while (e > s && e[-1] == ' ')
            e--;
        if (!is_contained(s, (size_t)(e - s), ",=:;#\"'"))
            return bad_line(r, s);
        r->tmp.len = 0;
        buf_str(&r->tmp, " : ");
        buf_add(&r->tmp, s, (size_t)(e - s));
        x.ann = ann_intern(r->store, r->tmp.at, r->tmp.len);
        s += m;
    }
    if (!starts_with(s, "[num_users=") && !starts_with(s, "[#users="))
        return bad_line(r, s);
    s += strcspn(s, "]\n");
    if (!starts_with(s, "] = "))
        return bad_line(r, s);
    s += 4;
    static const struct {
        const char *word;
        tuck_kind kind;
    } kinds[] = {{"placeholder", TUCK_PLACEHOLDER}, {"PlaceHolder", TUCK_PLACEHOLDER},
                 {"get_attr", TUCK_GET_ATTR},       {"call_function", TUCK_CALL_FUNCTION},
                 {"call_method", TUCK_CALL_METHOD}, {"call_module", TUCK_CALL_MODULE}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (starts_with(s, kinds[i].word) && s[strlen(kinds[i].word)] == '[') {
            x.kind = (uint8_t)kinds[i].kind;
            s += strlen(kinds[i].word);
            break;
        }
    const char *after = x.kind ? target_of(s, &target, &target_len) : NULL;
    if (after == NULL || !is_target((tuck_kind)x.kind, target, target_len))
        return bad_line(r, s);
    x.target = read_intern(r, target, target_len);
    if (x.kind >= TUCK_CALL_FUNCTION && x.kind <= TUCK_CALL_MODULE &&
        !read_call(r, after, (tuck_kind)x.kind, target, target_len, &x, &n_args, &n_kwargs))
        return false;
    r->p = at;
    if (x.kind == TUCK_PLACEHOLDER && !note_parameter(r, x.target))
        return read_error(r, target, target_len, NULL, "parameter '%.*s' is listed twice",
                          (int)target_len, target);
    str_id name = read_intern(r, at, n);
    uint32_t node = read_define(r, name, at, x);
    if (node == 0)
        return false;
    graph_set_vals(r->g, node, r->vals.v.at, r->vals.v.len, n_args, n_kwargs);
    if (x.ann != 0) {
        r->g->style.annotated = true;
        r->g->style.strides = r->g->style.devices = true;
    }
    if (x.kind == TUCK_PLACEHOLDER) {
        size_t stars = strspn(target, "*");
        struct fx_param q = {.text = x.target, .node = node, .ann = x.ann};
        q.aliased = target_len - stars != n || memcmp(target + stars, at, n) != 0;
        if (starts_with(after, "(default=")) {
            const char *d = after + 9;
            size_t m = strcspn(d, "\n");
            while (m > 0 && d[m - 1] != ')')
                m--;
            if (m < 2 || !is_contained(d, m - 1, ",=:;#"))
                return bad_line(r, after);
            q.dflt = read_intern(r, d, m - 1);
        }
        vec_push(r->mem, &r->g->param, q);
    }
    return true;
}

/* Names in this form may not be allowed in Python, such as %None, or be needed by the code for a
 * global. */
static void rename_reserved(tuck_graph *g)
{
    for_each_node (g, n) {
        struct fx_node *x = node_at(g, n);
        const struct str *s = str_at(&g->store->str, x->name);

        if (x->kind != TUCK_OUTPUT &&
            (name_is_reserved(s->at, s->len) || (name_flags(g, x->name) & NAME_WORD) != 0)) {
            str_id name = name_create(g, s->at, s->len);
            name_forget(g, x->name);
            node_at(g, n)->name = name;
            name_enter(g, name, n);
            for (uint32_t i = 0; x->kind == TUCK_PLACEHOLDER && i < g->param.len; i++)
                g->param.at[i].aliased |= g->param.at[i].node == n;
        }
    }
}

bool read_strgraph(struct reader *r)
{
    tuck_graph *g = r->g;

    g->name = read_intern(r, "GraphModule", 11);
    g->style = (struct fx_style){.form = FX_CLASS, .frees = FX_FREES_FULL};
    r->comment = 0;
    r->nested = false;
    while (*r->p != '\0') {
        r->p = r->bol + strspn(r->bol, " ");
        if (*r->p == '%') {
            if (!read_line(r))
                return false;
        } else if (starts_with(r->p, "return") && ident_len(r->p) == 6) {
            const char *at = r->p;
            if (read_statement(r, 0) != STMT_RETURN)
                return bad_line(r, at);
            vec_free(r->mem, &g->frees_at);
            rename_reserved(g);
            return true;
        } else if (*r->p != '\n') {
            break;
        }
        read_skip_line(r);
    }
    r->cut = g->n_nodes > 0;
    if (r->cut)
        return read_error(r, r->bol, 1, "a graph ends with return: was the text cut off?",
                          "the graph that begins in line %u has no return", g->first_line);
    g->style.pass_body = true;
    return true;
}

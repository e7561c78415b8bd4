/* Reads the inputs of a graph: its signature, and the prologues that unpack it. */
#include "text/read.h"

/* ---- signature ---- */

/* One parameter; the cursor ends on ',' or ')'. */
static bool read_param(struct reader *r)
{
    struct fx_param q = {.text = 0};
    const char *s = r->p;

    r->p += strspn(r->p, "*");
    size_t n = ident_len(r->p);
    if (n == 0)
        return read_error(r, r->p, 1, NULL, "expected the name of a parameter");
    q.line = read_file_line(r, r->line);
    q.column = (uint32_t)(s - r->bol) + 1;
    r->p += n;
    q.text = read_intern(r, s, (size_t)(r->p - s));
    const char *before = r->p;
    if (*r->p == ':' || (*r->p == ' ' && r->p[1 + strspn(r->p + 1, " ")] == ':')) {
        if (!read_annotation(r, ",)", &q.ann))
            return read_error(r, before, 1, NULL, "this annotation is never closed");
    }
    read_space(r);
    if (*r->p == '=') {
        r->p++;
        read_space(r);
        const char *from = r->p;
        int depth = 0;
        for (; *r->p != '\0' && *r->p != '\n' && *r->p != '#'; r->p++) {
            if (*r->p == '\'' || *r->p == '"') {
                char c = *r->p;
                r->p += 1 + strcspn(r->p + 1, c == '"' ? "\"\n" : "'\n");
                if (*r->p != c)
                    return read_error(r, from, 1, NULL, "string is never closed");
            } else if (strchr("([{", *r->p)) {
                depth++;
            } else if (depth == 0 && strchr(",)", *r->p)) {
                break;
            } else if (strchr(")]}", *r->p) && --depth < 0) {
                break;
            }
        }
        if (depth != 0)
            return read_error(r, from, 1, NULL, "the brackets of this default are not balanced");
        const char *e = r->p;
        while (e > from && e[-1] == ' ')
            e--;
        q.dflt = read_intern(r, from, (size_t)(e - from));
        read_space(r);
    }
    if (*r->p != ',' && *r->p != ')')
        return read_error(r, r->p, 1, NULL, "expected ',' or ')' after parameter '%s'",
                          str_text(&r->store->str, q.text));
    if (*r->p == ',') { /* a descriptor follows the comma, on the same line */
        const char *d = r->p + 1 + strspn(r->p + 1, " ");
        if (*d == '#') {
            d += 1 + (d[1] == ' ');
            q.descriptor = read_intern(r, d, strcspn(d, "\n"));
        }
    }
    vec_push(r->mem, &r->g->param, q);
    return true;
}

bool read_signature(struct reader *r)
{
    const char *open = r->p - 1;
    bool first = true;

    r->g->style.expanded = r->p[strspn(r->p, " ")] == '\n';
    for (;;) {
        read_space(r);
        if (*r->p == ')')
            break;
        if (*r->p == '\0')
            return read_error(r, open, 1, NULL, "'(' is never closed");
        size_t n = ident_len(r->p);
        if (first && n == 4 && starts_with(r->p, "self")) {
            r->p += n;
            read_space(r);
        } else if (!read_param(r)) {
            return false;
        }
        first = false;
        if (*r->p == ',')
            r->p++;
        else if (*r->p != ')')
            return read_error(r, r->p, 1, NULL, "expected ',' or ')' in the signature");
    }
    r->p++;
    read_blanks(r);
    if (starts_with(r->p, "->")) {
        r->p += 2;
        read_blanks(r);
        const char *s = r->p;
        int depth = 0;
        while (*r->p != '\n' && *r->p != '\0' && !(*r->p == ':' && depth == 0)) {
            depth += *r->p == '[' || *r->p == '(';
            depth -= *r->p == ']' || *r->p == ')';
            r->p++;
        }
        const char *e = r->p;
        while (e > s && e[-1] == ' ')
            e--;
        r->g->style.ret_type = read_intern(r, s, (size_t)(e - s));
    }
    if (*r->p != ':')
        return read_error(r, r->p, 1, NULL, "expected ':' after the signature");
    r->p++;
    read_blanks(r);
    if (*r->p == '#')
        r->p += strcspn(r->p, "\n");
    if (*r->p != '\n' && *r->p != '\0')
        return read_error(r, r->p, 1, NULL, "the body must begin on a line of its own");
    read_skip_line(r);
    return true;
}

/* ---- prologues ---- */

static void style_of_ann(struct reader *r, uint32_t ann)
{
    const struct fx_meta *m = ann_tensor(r->store, ann);

    r->g->style.inputs_annotated |= ann != 0;
    if (m != NULL) {
        r->g->style.strides |= m->has_strides;
        r->g->style.devices |= m->device != 0;
    }
}

static uint32_t add_placeholder(struct reader *r, str_id name, str_id target, uint32_t ann,
                                const char *at)
{
    struct fx_node init = {.kind = TUCK_PLACEHOLDER, .target = target, .ann = ann};

    style_of_ann(r, ann);
    return read_define(r, name, at, init);
}

bool read_params_to_nodes(struct reader *r)
{
    for (uint32_t i = 0; i < r->g->param.len; i++) {
        struct fx_param *q = &r->g->param.at[i];
        const char *text = str_text(&r->store->str, q->text);
        size_t stars = strspn(text, "*");
        str_id name = stars ? read_intern(r, text + stars, strlen(text + stars)) : q->text;
        style_of_ann(r, q->ann);
        struct fx_node init = {.kind = TUCK_PLACEHOLDER,
                               .target = q->text,
                               .ann = q->ann,
                               .line = q->line,
                               .column = q->column};
        uint32_t n = read_define(r, name, r->p, init);

        if (n == 0)
            return false;
        r->g->param.at[i].node = n;
    }
    return true;
}

/* What is known about a flattened input: its entry of r->pending, marked in the string; NULL if
 * none. */
static const struct pending_ann *pending_of(const struct reader *r, str_id name)
{
    const struct str *s = str_at(&r->store->str, name);

    return s->owner == ~r->g->serial ? &r->pending.at[s->node] : NULL;
}

/* `a, b, = CALL(` at the cursor: the names become placeholders. The cursor ends after "CALL(". */
static bool read_flattened(struct reader *r, const char *call)
{
    const char *s = r->p;

    for (;;) {
        size_t n = ident_len(r->p);
        if (n == 0)
            break;
        r->p += n;
        read_blanks(r);
        if (*r->p != ',')
            return false;
        r->p++;
        read_blanks(r);
    }
    if (*r->p != '=')
        return false;
    r->p++;
    read_blanks(r);
    if (!starts_with(r->p, call))
        return false;
    const char *after = r->p + strlen(call);
    /* Parameters are not nodes here, and a flattened input may have the name of one. */
    for (r->p = s; *r->p != '=';) {
        size_t n = ident_len(r->p);
        str_id name = read_intern(r, r->p, n);
        const struct pending_ann *said = pending_of(r, name);
        uint32_t ann = said ? said->ann : 0;
        str_id descriptor = said ? said->descriptor : 0;
        uint32_t node = add_placeholder(r, name, name, ann, r->p);
        if (node == 0)
            return false;
        if (descriptor != 0)
            vec_push(r->mem, &r->g->note, ((struct fx_placeholder_note){node, descriptor}));
        r->p += n;
        r->p += strspn(r->p, " \t,");
    }
    r->p = after;
    return true;
}

/* `primals_1: "f32[4]"` without a value: found before a pytree prologue. */
bool read_at_bare_annotation(struct reader *r)
{
    const char *s = r->p;
    uint32_t ann;

    r->p += ident_len(s);
    bool yes = r->p > s && read_annotation(r, ";#", &ann);
    read_blanks(r);
    yes = yes && (*r->p == ';' || *r->p == '\n' || *r->p == '#');
    r->p = s;
    return yes;
}

/* ` = VALUE` and nothing else on the line? */
static bool is_set_to(const char *s, const char *value)
{
    s += strspn(s, " ");
    if (*s++ != '=')
        return false;
    s += strspn(s, " ");
    if (!starts_with(s, value))
        return false;
    s += strlen(value);
    s += strspn(s, " ");
    return *s == '\n' || *s == '\0';
}

bool read_prologue(struct reader *r, bool *done)
{
    struct fx_style *st = &r->g->style;
    const char *s = r->p;

    *done = true;
    if (ident_len(s) == 9 && starts_with(s, "args_iter") && is_set_to(s + 9, "iter(args_list)")) {
        st->prologue = FX_BOXED;
        st->flat_lead = r->lead;
        read_skip_line(r);
        for (;;) {
            read_blanks(r);
            size_t n = ident_len(r->p);
            if (n == 0 || !is_set_to(r->p + n, "next(args_iter)"))
                break;
            str_id name = read_intern(r, r->p, n);
            if (add_placeholder(r, name, name, 0, r->p) == 0)
                return false;
            read_skip_line(r);
        }
        if (starts_with(r->p, "args_list.clear()"))
            read_skip_line(r);
        else
            r->p = r->bol;
        return true;
    }
    if (starts_with(s, "_fn_args = (")) {
        uint32_t line = r->line;
        const char *bol = r->bol;
        const char *text = r->p + 11;
        size_t len = strcspn(text, "\n");
        read_skip_line(r);
        read_blanks(r);
        if (read_flattened(r, "self._dynamo_bytecode_flatten(*_fn_args)")) {
            st->prologue = FX_BYTECODE;
            st->flat_lead = r->lead;
            st->flat_call = read_intern(r, text, len);
            read_skip_line(r);
            return true;
        }
        if (r->failed)
            return false;
        read_go_to(r, s, bol, line);
    }
    if (read_flattened(r, "fx_pytree.tree_flatten_spec(")) {
        const char *from = r->p;
        size_t len = strcspn(from, "\n");
        while (len > 0 && !starts_with(from + len - 1, ")"))
            len--;
        if (len > 0)
            len--;
        st->prologue = FX_PYTREE;
        st->flat_lead = r->lead;
        st->flat_call = read_intern(r, from, len);
        read_skip_line(r);
        return true;
    }
    if (r->failed)
        return false;
    r->p = s;
    *done = false;
    return true;
}

/* The statements of a body, and the lines between them. */
#include "text/read.h"

/* ---- the lines between statements ---- */

/* `# note: two` + `lines # File: …`: metadata with a newline continues on the next line. Returns
 * for how many lines the comment at s continues. */
static uint32_t spilled_lines(const char *s)
{
    const char *colon = s + strspn(s, "# ");
    size_t n = ident_len(colon);
    const char *eol = s + strcspn(s, "\n");

    if (n == 0 || colon[n] != ':' || starts_with(colon, "File:") ||
        starts_with(colon, "Annotation:") || starts_with(colon, "recompute:") ||
        starts_with(colon, "ac_graph_id:"))
        return 0;
    for (const char *p = colon; p + 1 < eol; p++)
        if (p[0] == ' ' && p[1] == '#')
            return 0;
    for (uint32_t k = 1; k < 64 && *eol == '\n'; k++) {
        const char *line = eol + 1;
        if (line[strspn(line, " ")] == '\n' || line[strspn(line, " ")] == '\0')
            return 0;
        eol = line + strcspn(line, "\n");
        for (const char *p = line; p + 2 < eol; p++)
            if (p[0] == ' ' && p[1] == '#' &&
                (starts_with(p + 2, " File:") || starts_with(p + 2, " No stacktrace") ||
                 starts_with(p + 2, " Annotation:") || starts_with(p + 2, " recompute:") ||
                 starts_with(p + 2, " ac_graph_id:")))
                return k;
    }
    return 0;
}

bool read_is_profiler(const char *s)
{
    size_t n = ident_len(s);

    if (!starts_with(s, "_rf"))
        return false;
    return starts_with(s + n, " = torch._C._profiler._RecordFunctionFast(") ||
           starts_with(s + n, ".__exit__(");
}

bool read_is_wrap(const char *s)
{
    size_t n = 0;

    while (ident_len(s + n) > 0) {
        n += ident_len(s + n);
        if (s[n] != '.')
            break;
        n++;
    }
    if (n < 4 || strncmp(s + n - 4, "wrap", 4) != 0 || s[n] != '(' ||
        (s[n + 1] != '"' && s[n + 1] != '\''))
        return false;
    size_t len = strcspn(s, "\n"); /* nothing after the call */
    return len > n + 3 && s[len - 1] == ')' && s[len - 2] == s[n + 1];
}

/* The comment of a lead: its '#' lines, each with its indent relative to the body. */
static str_id comment_of(struct reader *r, str_id lead)
{
    struct str *e = &r->store->str.all.at[lead];

    if (e->tag != 0)
        return e->node;
    const char *s = e->at, *end = s + e->len;
    bool doc = false, spill = false;

    r->tmp.len = 0;
    while (s < end) {
        size_t n = strcspn(s, "\n"), indent = strspn(s, " ");
        bool quotes = starts_with(s + indent, "\"\"\"");

        if (doc || quotes) {
            doc ^= quotes;
        } else if (s[indent] == '#' || (spill && indent < n)) {
            size_t body = indent < r->body_indent ? indent : r->body_indent;
            if (r->tmp.len > 0)
                buf_chr(&r->tmp, '\n');
            buf_add(&r->tmp, s + body, n - body);
            spill = true;
        } else {
            spill = false;
        }
        s += n + 1;
    }
    str_id comment = r->tmp.len ? read_intern(r, r->tmp.at, r->tmp.len) : 0;
    e = &r->store->str.all.at[lead];
    e->tag = 1;
    e->node = comment;
    return comment;
}

/* Skips blank lines, comments, docstrings. Returns their raw text, 0 if none. The cursor ends on
 * the first character of a statement, or at the end of the text. */
static str_id read_lead(struct reader *r)
{
    const char *from = r->bol;
    bool text = false;

    for (;;) {
        size_t indent = strspn(r->bol, " \t");
        const char *s = r->bol + indent;

        if (*s == '\0') {
            r->p = s;
            break;
        }
        if (*s == '\n') {
            r->p = s;
            read_newline(r);
        } else if (*s == '#') {
            text = true;
            for (uint32_t k = spilled_lines(s) + 1; k > 0; k--)
                read_skip_line(r);
        } else if (starts_with(s, "\"\"\"")) {
            text = true;
            const char *close = strstr(s + 3, "\"\"\"");
            if (close == NULL) {
                r->p = s;
                break; /* an unclosed string: the statement reader reports it */
            }
            while (r->bol <= close && *r->p != '\0')
                read_skip_line(r);
        } else if (read_is_profiler(s)) {
            text = true;
            read_skip_line(r);
        } else {
            r->p = s;
            break;
        }
        if (*r->p == '\0')
            break;
    }
    if (r->bol == from)
        return 0;
    str_id lead = read_intern(r, from, (size_t)(r->bol - from));
    if (text) {
        str_id c = comment_of(r, lead);
        if (c != 0)
            r->comment = c;
    }
    if (*from == ' ' && from[strspn(from, " ")] == '\n')
        r->g->style.blank_indented = true;
    return lead;
}

/* ---- bodies ---- */

/* Frees carry no information: keep them only if they differ from the rule. */
static void check_frees(struct reader *r)
{
    tuck_graph *g = r->g;
    bool full = true, not_self = true, none = g->frees.len == 0;
    struct arena_mark mark = arena_mark(&g->arena);
    uint32_t *last = arena_array(&g->arena, uint32_t, g->node.len);

    memset(last, 0, g->node.len * sizeof(*last));
    vec_push(r->mem, &g->frees_at, g->frees.len);
    for_each_node (g, n)
        for (uint32_t i = 0; i < g->node.at[n].n_vals; i++)
            if (g->node.at[n].vals[i].kind == TUCK_V_NODE)
                last[g->node.at[n].vals[i].a] = n;
    for_each_node (g, n) {
        const struct fx_node *x = &g->node.at[n];
        if (x->kind == TUCK_PLACEHOLDER || x->kind == TUCK_OUTPUT || x->kind == TUCK_RESULT)
            continue;
        uint32_t n_read = frees_end(g, n) - g->frees_at.at[n], k = 0;
        const uint32_t *f = n_read ? g->frees.at + g->frees_at.at[n] : NULL;
        bool same = true;

        for (uint32_t i = 0; i < x->n_vals; i++) {
            uint32_t d = x->vals[i].kind == TUCK_V_NODE ? x->vals[i].a : 0;
            if (d != 0 && last[d] == n) {
                last[d] = 0; /* once only */
                same &= k < n_read && f[k] == d;
                k++;
                none &= n_read == 0;
            }
        }
        bool own = x->n_uses == 0 && x->name != 0;
        full &= same && n_read == k + own && (!own || f[k] == n);
        not_self &= same && n_read == k;
        if (!full && !not_self && !none)
            break;
    }
    g->style.frees = full ? FX_FREES_FULL : not_self ? FX_FREES_NOT_SELF : FX_FREES_NONE;
    arena_release(&g->arena, mark);
    if (full || not_self || none) {
        vec_free(r->mem, &g->frees);
        vec_free(r->mem, &g->frees_at);
    } else {
        g->style.frees = FX_FREES_FULL;
        g->frees_verbatim = true;
    }
}

const char *read_class_line(const char *s)
{
    const char *eol = s + strcspn(s, "\n");

    for (const char *p = s; p < eol; p++)
        if (*p == '(')
            return starts_with(p, "(torch.nn.Module):") && p > s ? p : NULL;
    return NULL;
}

static bool at_class(const char *s)
{
    return starts_with(s, "class ") && read_class_line(s + 6) != NULL;
}

/* Is the `pass` at s the whole body? */
static bool is_whole_body(const char *s, size_t def_indent)
{
    s = after_blanks(s + 4);
    if (*s != '\n' && *s != '\0' && *s != '#')
        return false;
    for (;;) {
        s += strcspn(s, "\n");
        if (*s == '\0')
            return true;
        size_t indent = strspn(++s, " \t");
        if (s[indent] != '\n' && s[indent] != '#')
            return indent <= def_indent || at_class(s + indent);
    }
}

/* The body ends at the cursor without a return. */
static bool no_return(struct reader *r, const char *header)
{
    r->cut = true;
    return read_error(r, *r->p ? r->p : r->bol, 1,
                      "a graph ends with return: was the text cut off?",
                      "the body that begins in line %u has no return", read_pos(r, header, 1).line);
}

/* Appends comments between the lines of from..to to r->tmp: the statement is printed on one line,
 * with them after it. */
static void inner_comments(struct reader *r, const char *from, const char *to)
{
    char quote = 0;

    for (const char *s = from; s < to; s++) {
        if (quote != 0) {
            if (*s == '\\')
                s++;
            else if (*s == quote)
                quote = 0;
        } else if (*s == '\'' || *s == '"') {
            quote = *s;
        } else if (*s == '#') {
            size_t n = strcspn(s, "\n"), len = n;
            while (s[len - 1] == ' ')
                len--;
            buf_str(&r->tmp, "  ");
            buf_add(&r->tmp, s, len);
            s += n - 1;
        }
    }
}

/* `x = f(y)  # why`: comments after the statements of a line and inside their brackets. The
 * statements began at `from`, and the newest node is one of them. */
static void read_remark(struct reader *r, const char *from)
{
    uint32_t n = r->g->node.len - 1;

    while (node_at(r->g, n)->kind == TUCK_RESULT)
        n--;
    r->tmp.len = 0;
    if (from < r->bol && node_at(r->g, n)->kind != TUCK_OPAQUE) /* several lines become one */
        inner_comments(r, from, r->p);
    if (*r->p == '#') {
        const char *at = r->p, *end = r->p + strcspn(r->p, "\n");
        if ((size_t)(end - at) == strlen(FX_APART) && memcmp(at, FX_APART, strlen(FX_APART)) == 0)
            node_at(r->g, n)->apart = true;
        while (at > r->bol && at[-1] == ' ')
            at--;
        buf_add(&r->tmp, at, (size_t)(end - at));
    }
    if (r->tmp.len > 0) {
        str_id text = read_intern(r, r->tmp.at, r->tmp.len);
        vec_push(r->mem, &r->g->remark, ((struct fx_remark){n, text}));
    }
}

/* Before a statement: the parameters are the inputs, unless annotations announce a prologue. */
static bool read_parameters(struct reader *r, bool *inputs)
{
    *inputs = !read_at_bare_annotation(r);
    return !*inputs || read_params_to_nodes(r);
}

bool read_body(struct reader *r, size_t def_indent)
{
    struct fx_style *st = &r->g->style;
    bool inputs = false, any = false;
    const char *header = r->bol;

    r->comment = 0;
    r->body_indent = 0;
    r->indent_known = false;
    r->pending.len = 0;
    st->ret = FX_RETURN_MISSING;
    for (;;) {
        const char *bol = r->bol;
        uint32_t line = r->line;
        size_t peek = strspn(r->bol, " ");

        if (!any && r->body_indent == 0) { /* comments are measured against the first line */
            const char *s = r->bol;
            while (s[peek] == '\n') {
                s += peek + 1;
                peek = strspn(s, " ");
            }
            r->body_indent = (uint32_t)peek;
        }
        str_id lead = r->lead = read_lead(r);
        size_t indent = (size_t)(r->p - r->bol);

        if (*r->p == '\0' || indent < def_indent ||
            (indent == def_indent && def_indent < r->body_indent) ||
            ((starts_with(r->p, "def ") || read_is_wrap(r->p)) && indent <= def_indent) ||
            at_class(r->p)) {
            /* The body ends without a return: allowed only if it is empty. */
            if (any || r->comment != 0)
                return no_return(r, header);
            read_go_to(r, bol, bol, line);
            break;
        }
        if (!any && starts_with(r->p, "pass") && ident_len(r->p) == 4 &&
            is_whole_body(r->p, def_indent)) {
            st->pass_body = true;
            r->p += 4;
            break;
        }
        if (!r->indent_known)
            r->body_indent = (uint32_t)indent;
        if (!inputs) {
            if (!read_prologue(r, &inputs))
                return false;
            r->indent_known = inputs;
            if (inputs)
                continue;
        }
        any = true;
        if (!inputs && !read_parameters(r, &inputs))
            return false;
        uint32_t had = r->g->node.len;
        const char *from = r->p;
        bool prologue = false;
        enum stmt what = read_statement(r, lead);
        if (what == STMT_ERROR)
            return false;
        if (what == STMT_RETURN)
            break;
        while (*r->p != '\n' && *r->p != '\0' && *r->p != '#') { /* more on this line */
            read_blanks(r);
            if (*r->p == ';') {
                r->p++;
                continue;
            }
            if (*r->p == '\n' || *r->p == '\0' || *r->p == '#')
                break;
            if (at_class(r->p))
                return no_return(r, header);
            r->lead = 0;
            if (!inputs && !read_prologue(r, &prologue))
                return false;
            if (prologue)
                break;
            if (!inputs && !read_parameters(r, &inputs))
                return false;
            what = read_statement(r, 0);
            if (what == STMT_ERROR)
                return false;
            if (what == STMT_RETURN)
                break;
        }
        if (what == STMT_RETURN)
            break;
        if (prologue) { /* after annotations, on their line; the cursor is on the next one */
            inputs = r->indent_known = true;
            continue;
        }
        if (r->g->node.len > had)
            read_remark(r, from);
        read_skip_line(r);
    }
    if (!inputs && !read_params_to_nodes(r))
        return false;
    check_frees(r);
    return true;
}

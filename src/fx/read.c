/* Finding graphs in a text and reading what stands around their statements. */
#include "fx/read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "fx/groups.h"
#include "fx/ops.h"

/* ---- positions, errors, small steps ---- */

bool starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

static uint32_t file_line(const struct reader *r, uint32_t line)
{
    return line < r->text->line.len ? r->text->line.at[line] : r->text->line0 + line + 1;
}

/* `at` is in the cursor's line or, where an operand ran on, in one above it. */
struct diag_pos read_pos(struct reader *r, const char *at, size_t len)
{
    const char *bol = r->bol;
    uint32_t line = r->line;

    if (r->pin != NULL) {
        at = r->pin;
        len = 1;
    }
    while (at < bol) {
        bol--;
        while (bol > r->text->at && bol[-1] != '\n')
            bol--;
        line--;
    }
    for (const char *s = bol; s < at; s++)
        if (*s == '\n') {
            bol = s + 1;
            line++;
        }
    uint32_t cut = line < r->text->column.len ? r->text->column.at[line] : 0;
    return (struct diag_pos){.source = &r->source,
                             .at = at,
                             .line = file_line(r, line),
                             .column = (uint32_t)(at - bol) + cut + 1,
                             .length = (uint32_t)(len < 200 ? len : 200)};
}

bool read_error(struct reader *r, const char *at, size_t len, const char *note, const char *fmt,
                ...)
{
    va_list ap;

    va_start(ap, fmt);
    diag_vadd(r->diags, TUCK_ERROR, read_pos(r, at, len), note, fmt, ap);
    va_end(ap);
    r->failed = true;
    return false;
}

void read_warn(struct reader *r, const char *at, size_t len, const char *note, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    diag_vadd(r->diags, TUCK_WARNING, read_pos(r, at, len), note, fmt, ap);
    va_end(ap);
}

void read_again(struct reader *r)
{
    r->p = r->stmt;
    r->bol = r->stmt_bol;
    r->line = r->stmt_line;
    values_clear(&r->vals);
    r->open_at_text.len = 0;
    r->brackets = 0;
    r->lenient = 0;
    r->freed.len = 0;
}

void read_newline(struct reader *r)
{
    r->p++;
    r->line++;
    r->bol = r->p;
}

void read_blanks(struct reader *r)
{
    while (*r->p == ' ' || *r->p == '\t')
        r->p++;
}

void read_space(struct reader *r)
{
    for (;;) {
        if (*r->p == ' ' || *r->p == '\t')
            r->p++;
        else if (*r->p == '\n')
            read_newline(r);
        else if (*r->p == '#')
            r->p += strcspn(r->p, "\n");
        else if (*r->p == '\\' && r->p[1] == '\n')
            r->p++;
        else
            break;
    }
}

static void skip_line(struct reader *r)
{
    r->p += strcspn(r->p, "\n");
    if (*r->p == '\n')
        read_newline(r);
}

static void go_to(struct reader *r, const char *p, const char *bol, uint32_t line)
{
    r->p = p;
    r->bol = bol;
    r->line = line;
}

uint32_t read_lookup(struct reader *r, str_id name)
{
    const struct str *s = str_at(&r->store->str, name);

    if (r->by_name)
        return name_lookup(r->g, name);
    return s->owner == r->g->serial ? s->node : 0;
}

uint32_t read_define(struct reader *r, str_id name, const char *at, struct fx_node init)
{
    struct diag_pos pos = {.line = 0};

    if (name != 0) {
        uint32_t known = read_lookup(r, name);
        if (known != 0) {
            char note[64];
            const char *text = str_text(&r->store->str, name);
            uint32_t line = node_at(r->g, known)->line;
            snprintf(note, sizeof(note), "first defined in line %u", line);
            if (init.line != 0) /* a parameter, of a line above */
                diag_add(r->diags, TUCK_ERROR,
                         (struct diag_pos){
                             .source = &r->source, .line = init.line, .column = init.column},
                         line ? note : NULL, "name '%s' is defined twice", text);
            else
                read_error(r, at, strlen(text), line ? note : NULL, "name '%s' is defined twice",
                           text);
            r->failed = true;
            return 0;
        }
        init.name = name;
    }
    if (init.line != 0) {
        /* the caller knows */
    } else if (at != NULL && at >= r->bol &&
               r->pin == NULL) { /* the usual: no need to look for the line */
        init.line = file_line(r, r->line);
        init.column = (uint32_t)(at - r->bol) + 1;
    } else if (at != NULL) {
        pos = read_pos(r, at, 1);
        init.line = pos.line;
        init.column = pos.column;
    }
    uint32_t n = graph_add_node(r->g, 0, init);
    if (name != 0) {
        struct str *s = &r->store->str.all.at[name];
        s->owner = r->g->serial;
        s->node = n;
    }
    return n;
}

bool read_balanced(struct reader *r)
{
    static const char pairs[] = "()[]{}";
    uint32_t base = r->open_at_text.len;

    for (;;) {
        char c = *r->p;
        const char *open = c ? strchr(pairs, c) : NULL;

        if (c == '\0' || (c == '\n' && r->open_at_text.len == base)) {
            if (r->open_at_text.len > base) {
                const char *at = r->open_at_text.at[r->open_at_text.len - 1];
                return read_error(r, at, 1, NULL, "'%c' is never closed", *at);
            }
            return true;
        }
        if (c == '\n') {
            read_newline(r);
        } else if (c == '#') {
            r->p += strcspn(r->p, "\n");
        } else if (c == '\'' || c == '"') {
            const char *s = r->p;
            bool three = s[1] == c && s[2] == c;
            for (s += three ? 3 : 1;; s++) {
                if (*s == '\0' || (*s == '\n' && !three))
                    return read_error(r, r->p, 1, NULL, "string is never closed");
                if (*s == '\\' && s[1] != '\0')
                    s++;
                else if (*s == c && (!three || (s[1] == c && s[2] == c)))
                    break;
            }
            s += three ? 3 : 1;
            for (; r->p < s; r->p++)
                if (*r->p == '\n') {
                    r->line++;
                    r->bol = r->p + 1;
                }
        } else if (open != NULL && (open - pairs) % 2 == 0) {
            vec_push(r->mem, &r->open_at_text, r->p);
            r->p++;
        } else if (open != NULL) {
            if (r->open_at_text.len == base)
                return read_error(r, r->p, 1, NULL, "'%c' closes nothing", c);
            const char *at = r->open_at_text.at[--r->open_at_text.len];
            if (*at != open[-1])
                return read_error(r, r->p, 1, NULL, "'%c' does not close the '%c' before it", c,
                                  *at);
            r->p++;
        } else if (c == ';' && r->open_at_text.len == base) {
            return true;
        } else {
            r->p++;
        }
    }
}

/* ---- signature ---- */

static str_id intern(struct reader *r, const char *s, size_t len)
{
    return str_intern(&r->store->str, s, len);
}

/* One parameter; the cursor ends on ',' or ')'. */
static bool read_param(struct reader *r)
{
    struct fx_param q = {.text = 0};
    const char *s = r->p;

    r->p += strspn(r->p, "*");
    size_t n = ident_len(r->p);
    if (n == 0)
        return read_error(r, r->p, 1, NULL, "expected the name of a parameter");
    q.line = file_line(r, r->line);
    q.column = (uint32_t)(s - r->bol) + 1;
    r->p += n;
    q.text = intern(r, s, (size_t)(r->p - s));
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
        for (; *r->p != '\0' && *r->p != '\n'; r->p++) {
            if (*r->p == '\'' || *r->p == '"') {
                char c = *r->p;
                r->p += 1 + strcspn(r->p + 1, c == '"' ? "\"\n" : "'\n");
                if (*r->p != c)
                    return read_error(r, from, 1, NULL, "string is never closed");
            } else if (strchr("([{", *r->p)) {
                depth++;
            } else if (depth == 0 && strchr(",)", *r->p)) {
                break;
            } else if (strchr(")]}", *r->p)) {
                depth--;
            }
        }
        q.dflt = intern(r, from, (size_t)(r->p - from));
        read_space(r);
    }
    if (*r->p != ',' && *r->p != ')')
        return read_error(r, r->p, 1, NULL, "expected ',' or ')' after parameter '%s'",
                          str_text(&r->store->str, q.text));
    if (*r->p == ',') { /* a descriptor stands behind the comma, in the same line */
        const char *d = r->p + 1 + strspn(r->p + 1, " ");
        if (*d == '#') {
            d += 1 + (d[1] == ' ');
            q.descriptor = intern(r, d, strcspn(d, "\n"));
        }
    }
    vec_push(r->mem, &r->g->param, q);
    return true;
}

/* From behind "def forward(" to the newline behind the colon. */
static bool read_signature(struct reader *r)
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
        r->g->style.ret_type = intern(r, s, (size_t)(e - s));
    }
    if (*r->p != ':')
        return read_error(r, r->p, 1, NULL, "expected ':' after the signature");
    r->p++;
    read_blanks(r);
    if (*r->p == '#')
        r->p += strcspn(r->p, "\n");
    if (*r->p != '\n' && *r->p != '\0')
        return read_error(r, r->p, 1, NULL, "the body must begin on a line of its own");
    if (*r->p == '\n')
        read_newline(r);
    return true;
}

/* ---- prologues: how the inputs come in ---- */

static void style_of_ann(struct reader *r, uint32_t ann)
{
    const struct fx_meta *m = ann_tensor(r->store, ann);

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

/* The parameters are the placeholders. */
static bool params_to_nodes(struct reader *r)
{
    for (uint32_t i = 0; i < r->g->param.len; i++) {
        struct fx_param *q = &r->g->param.at[i];
        const char *text = str_text(&r->store->str, q->text);
        size_t stars = strspn(text, "*");
        str_id name = stars ? intern(r, text + stars, strlen(text + stars)) : q->text;
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

static uint32_t pending_ann(struct reader *r, str_id name, str_id *descriptor)
{
    for (uint32_t i = 0; i < r->pending.len; i++)
        if (r->pending.at[i].name == name) {
            *descriptor = r->pending.at[i].descriptor;
            return r->pending.at[i].ann;
        }
    *descriptor = 0;
    return 0;
}

/* `a, b, = CALL(` at the cursor: the names become placeholders. The cursor ends behind "CALL(". */
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
    /* Parameters are no nodes here, and a flattened input may be called like one. Pending names are in
     * the order of the list, so one walk serves both. */
    uint32_t next = 0;
    for (r->p = s; *r->p != '=';) {
        size_t n = ident_len(r->p);
        str_id name = intern(r, r->p, n), descriptor = 0;
        uint32_t ann;

        if (next < r->pending.len && r->pending.at[next].name == name) {
            ann = r->pending.at[next].ann;
            descriptor = r->pending.at[next++].descriptor;
        } else if (next < r->pending.len) {
            ann = pending_ann(r, name, &descriptor);
        } else {
            ann = 0;
        }
        uint32_t node = add_placeholder(r, name, name, ann, r->p);
        if (node == 0)
            return false;
        if (descriptor != 0)
            vec_push(r->mem, &r->g->note, ((struct fx_placeholder_note){node, descriptor}));
        r->p += n;
        r->p += strspn(r->p, " ,");
    }
    r->p = after;
    return true;
}

/* `primals_1: "f32[4]"` without a value: what stands before a pytree prologue. */
static bool at_bare_annotation(struct reader *r)
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

/* Is there a prologue at the cursor, the first statement of the body? *done: the inputs are known. */
static bool read_prologue(struct reader *r, bool *done)
{
    struct fx_style *st = &r->g->style;
    const char *s = r->p;

    *done = true;
    if (starts_with(s, "args_iter = iter(args_list)")) {
        st->prologue = FX_BOXED;
        skip_line(r);
        for (;;) {
            read_blanks(r);
            size_t n = ident_len(r->p);
            if (!starts_with(r->p + n, " = next(args_iter)"))
                break;
            str_id name = intern(r, r->p, n);
            if (add_placeholder(r, name, name, 0, r->p) == 0)
                return false;
            skip_line(r);
        }
        if (starts_with(r->p, "args_list.clear()"))
            skip_line(r);
        else
            r->p = r->bol;
        return true;
    }
    if (starts_with(s, "_fn_args = (")) {
        uint32_t line = r->line;
        const char *bol = r->bol;
        const char *text = r->p + 11;
        size_t len = strcspn(text, "\n");
        skip_line(r);
        read_blanks(r);
        if (read_flattened(r, "self._dynamo_bytecode_flatten(*_fn_args)")) {
            st->prologue = FX_BYTECODE;
            st->flat_call = intern(r, text, len);
            skip_line(r);
            return true;
        }
        if (r->failed)
            return false;
        go_to(r, s, bol, line);
    }
    if (read_flattened(r, "fx_pytree.tree_flatten_spec(")) {
        const char *from = r->p;
        size_t len = strcspn(from, "\n");
        while (len > 0 && !starts_with(from + len - 1, ")"))
            len--;
        if (len > 0)
            len--;
        st->prologue = FX_PYTREE;
        st->flat_call = intern(r, from, len);
        skip_line(r);
        return true;
    }
    if (r->failed)
        return false;
    r->p = s;
    *done = false;
    return true;
}

/* ---- the lines between statements ---- */

/* `# note: two` + `lines # File: …`: metadata with a newline in it spills over. How many lines the
 * comment at s goes on for. */
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

/* Is this a line that gm.code adds when it records every call? */
static bool is_profiler(const char *s)
{
    size_t n = ident_len(s);

    if (!starts_with(s, "_rf"))
        return false;
    return starts_with(s + n, " = torch._C._profiler._RecordFunctionFast(") ||
           starts_with(s + n, ".__exit__(");
}

/* The comment of a lead: its '#' lines, each as far right of the body as it stands. */
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
    str_id comment = r->tmp.len ? intern(r, r->tmp.at, r->tmp.len) : 0;
    e = &r->store->str.all.at[lead];
    e->tag = 1;
    e->node = comment;
    return comment;
}

/* Step over blank lines, comments, docstrings. The raw text of them, 0 = none. The cursor ends on the
 * first character of a statement, or at the end of the text. */
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
                skip_line(r);
        } else if (starts_with(s, "\"\"\"")) {
            text = true;
            const char *close = strstr(s + 3, "\"\"\"");
            if (close == NULL) {
                r->p = s;
                break; /* an unclosed string: the statement reader says so */
            }
            while (r->bol <= close && *r->p != '\0')
                skip_line(r);
        } else if (is_profiler(s)) {
            text = true;
            skip_line(r);
        } else {
            r->p = s;
            break;
        }
        if (*r->p == '\0')
            break;
    }
    if (r->bol == from)
        return 0;
    str_id lead = intern(r, from, (size_t)(r->bol - from));
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

/* Frees say nothing new: keep them only where they are not what the rule gives. */
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
        uint32_t n_read = g->frees_at.at[n + 1] - g->frees_at.at[n], k = 0;
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

/* "GraphModule(torch.nn.Module):" at s, or NULL: a class line, and where its name ends. */
static const char *class_line(const char *s)
{
    const char *eol = s + strcspn(s, "\n");

    for (const char *p = s; p < eol; p++)
        if (*p == '(')
            return starts_with(p, "(torch.nn.Module):") && p > s ? p : NULL;
    return NULL;
}

/* The statements of a body, up to and with its return. */
static bool read_body(struct reader *r, size_t def_indent)
{
    struct fx_style *st = &r->g->style;
    bool inputs = false, any = false;
    const char *header = r->bol;

    r->comment = 0;
    r->body_indent = 0;
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
        str_id lead = read_lead(r);
        size_t indent = (size_t)(r->p - r->bol);

        if (*r->p == '\0' || indent < def_indent ||
            (indent == def_indent && def_indent < r->body_indent) ||
            (starts_with(r->p, "def ") && indent <= def_indent) ||
            (starts_with(r->p, "class ") && class_line(r->p + 6) != NULL)) {
            /* The body is over without a return: fine only where there is nothing in it. */
            if (any || r->comment != 0)
                return read_error(r, *r->p ? r->p : r->bol, 1,
                                  "a graph ends with return: was the text cut off?",
                                  "the body that begins in line %u has no return",
                                  file_line(r, r->line) ? read_pos(r, header, 1).line : 0);
            go_to(r, bol, bol, line);
            break;
        }
        if (!inputs && r->pending.len == 0 && starts_with(r->p, "pass") && ident_len(r->p) == 4) {
            st->pass_body = true;
            r->p += 4;
            break;
        }
        if (!inputs) {
            r->body_indent = (uint32_t)indent;
            if (!read_prologue(r, &inputs))
                return false;
            if (inputs)
                continue;
        }
        if (!inputs && !at_bare_annotation(r)) {
            if (!params_to_nodes(r))
                return false;
            inputs = true;
        }
        any = true;
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
            what = read_statement(r, 0);
            if (what == STMT_ERROR)
                return false;
            if (what == STMT_RETURN)
                break;
        }
        if (what == STMT_RETURN)
            break;
        r->p += strcspn(r->p, "\n");
        if (*r->p == '\n')
            read_newline(r);
        else
            r->bol = r->p; /* the text ends here: do not read this line again */
    }
    if (!inputs && !params_to_nodes(r))
        return false;
    check_frees(r);
    return true;
}

/* ---- classes and what is between them ---- */

/* Only empty lines, comments and what the profiler adds, which mean nothing to the graph? */
static bool harmless(const char *s, const char *end)
{
    while (s < end) {
        size_t n = strspn(s, " \t");
        if (s + n < end && s[n] != '\n' && s[n] != '#' && !is_profiler(s + n))
            return false;
        s += strcspn(s, "\n");
        s += s < end;
    }
    return true;
}

/* Start a graph under `parent` (NULL: in the document); memory is reachable from the document. */
static void begin_graph(struct reader *r, tuck_graph *parent)
{
    if (parent != NULL)
        vec_reserve(r->mem, &parent->child, 1);
    else
        vec_reserve(r->mem, &r->doc->entry, 1);
    tuck_graph *g = graph_new(r->store);

    if (parent != NULL)
        parent->child.at[parent->child.len++] = g;
    else
        r->doc->entry.at[r->doc->entry.len++] = (struct fx_entry){
            .graph = g, .rank = r->text->rank, .line = file_line(r, r->line)};
    r->g = g;
    g->source_name = intern(r, r->file, strlen(r->file));
    g->first_line = file_line(r, r->line);
    r->nested = parent != NULL;
}

/* "def forward(" of the class at the cursor's line; other methods are stepped over. */
static bool find_forward(struct reader *r, const char *class_name, size_t class_indent,
                         size_t *def_indent)
{
    for (;;) {
        size_t indent = strspn(r->bol, " ");
        const char *s = r->bol + indent;

        if (starts_with(s, "def forward(")) {
            r->p = s + 12;
            *def_indent = indent;
            return true;
        }
        if (*s == '\0' || (*s != '\n' && *s != '#' && indent <= class_indent &&
                           r->text->at + r->text->len > s && class_line(s) != NULL))
            return read_error(r, class_name, 1, NULL, "class without a method forward");
        read_script_line(r);
        skip_line(r);
        if (*r->p == '\0') /* a last line without a newline leaves the cursor in it */
            return read_error(r, class_name, 1, NULL, "class without a method forward");
    }
}

/* What a script's __init__ said of the attributes that the graph reads. */
static void annotate_attributes(struct reader *r)
{
    if (r->attribute.len == 0)
        return;
    for_each_node (r->g, n) {
        struct fx_node *x = node_at(r->g, n);
        for (uint32_t i = 0; x->kind == TUCK_GET_ATTR && i < r->attribute.len; i++)
            if (r->attribute.at[i].name == x->target && x->ann == 0)
                x->ann = r->attribute.at[i].ann;
    }
    if (!r->g->style.annotated)
        r->g->style.silent_inputs = true;
}

/* The class whose keyword is at s in the cursor's line. */
static bool read_class(struct reader *r, const char *s, size_t indent)
{
    const char *name = s + 6;
    const char *open = class_line(name);
    size_t def_indent = 0;

    while (r->open_graph.len > 0 && r->open_graph.at[r->open_graph.len - 1] >= indent) {
        r->open_graph.len--;
        r->open_at.len--;
    }
    tuck_graph *parent = r->open_at.len ? r->open_at.at[r->open_at.len - 1] : NULL;
    vec_reserve(r->mem, &r->open_graph, 1);
    vec_reserve(r->mem, &r->open_at, 1);
    begin_graph(r, parent);
    r->g->name = intern(r, name, (size_t)(open - name));
    r->g->style.form = FX_CLASS;
    r->open_graph.at[r->open_graph.len++] = (uint32_t)indent;
    r->open_at.at[r->open_at.len++] = r->g;
    r->p = open;
    skip_line(r);
    r->attribute.len = 0;
    if (!find_forward(r, name, indent, &def_indent) || !read_signature(r) ||
        !read_body(r, def_indent))
        return false;
    annotate_attributes(r);
    return true;
}

/* ` ===== Forward graph 0 =====`, behind any prefix: what the graph below is called; 0 = no banner. */
static str_id banner_title(struct reader *r, const char *s, const char *eol)
{
    while (s < eol && !starts_with(s, "====="))
        s++;
    const char *e = eol;
    while (e > s && (e[-1] == ' ' || e[-1] == '='))
        e--;
    s += strspn(s, "= ");
    return e > s && e + 6 <= eol ? intern(r, s, (size_t)(e - s)) : 0;
}

/* wrap lines that gm.code puts before a bare def. */
static bool is_wrap(const char *s)
{
    size_t n = 0;

    while (ident_len(s + n) > 0) {
        n += ident_len(s + n);
        if (s[n] != '.')
            break;
        n++;
    }
    return n >= 4 && strncmp(s + n - 4, "wrap", 4) == 0 && s[n] == '(' &&
           (s[n + 1] == '"' || s[n + 1] == '\'');
}

struct scan {
    const char *gap;  /* where the text between graphs began */
    const char *head; /* first wrap line of what may become a bare def */
    str_id title;
    bool first;
    bool noise; /* something but graphs and empty lines was seen since the last graph */
};

static void end_of_graph(struct reader *r, struct scan *x)
{
    x->gap = r->p;
    x->head = NULL;
    x->title = 0;
    x->noise = false;
    x->first = false;
}

/* Text before the graph that was just begun: kept where it is only empty lines and comments. */
static void set_gap(struct reader *r, const struct scan *x, const char *to, tuck_graph *g)
{
    bool keep = !r->text->log && !x->noise && harmless(x->gap, to);

    if (keep)
        g->gap = intern(r, x->gap, (size_t)(to - x->gap));
    else
        g->gap = x->first ? r->store->word.empty : intern(r, "\n\n", 2);
}

static bool read_class_here(struct reader *r, struct scan *x, const char *s, size_t indent)
{
    const char *before = r->bol;
    str_id title = x->title;
    bool banner = before[strspn(before, " ")] != 'c' ||
                  !starts_with(before + strspn(before, " "), "class ");
    bool top = banner || indent == 0 || r->open_graph.len == 0 || r->open_graph.at[0] >= indent;

    if (banner)
        x->noise = true;
    struct scan at = *x;
    if (top) {
        r->open_graph.len = 0;
        r->open_at.len = 0;
    }
    size_t entries = r->doc->entry.len;
    if (!read_class(r, s, banner ? 0 : indent))
        return false;
    set_gap(r, &at, before, r->g);
    if (r->doc->entry.len > entries)
        r->doc->entry.at[entries].title = title;
    end_of_graph(r, x);
    return true;
}

static bool read_def_here(struct reader *r, struct scan *x, size_t indent)
{
    const char *before = x->head ? x->head : r->bol;
    const char *bol = r->bol;

    r->open_graph.len = 0;
    r->open_at.len = 0;
    begin_graph(r, NULL);
    r->g->style.form = FX_DEF;
    set_gap(r, x, before, r->g);
    if (x->head)
        r->g->style.head = intern(r, x->head, (size_t)(bol - x->head));
    r->doc->entry.at[r->doc->entry.len - 1].title = x->title;
    r->p = r->bol + indent + 12;
    if (!read_signature(r) || !read_body(r, indent))
        return false;
    end_of_graph(r, x);
    return true;
}

static bool read_text(struct reader *r, const struct fx_text *t, bool first);

/* A class whose lines have something in front that is not ours: an indent, an unknown log prefix. Take
 * it off and read what is left; *done if that is what it was. */
static bool read_prefixed(struct reader *r, struct scan *x, const char *class_at, bool *done)
{
    const char *bol = r->bol, *eol = bol + strcspn(bol, "\n");
    const char *next = *eol == '\n' ? eol + 1 : eol;
    const char *def = strstr(next, "def forward(");
    size_t cut = (size_t)(class_at - bol);
    bool blank = strspn(bol, " ") == cut;

    *done = false;
    if (r->region.own != NULL || r->open_graph.len > 0)
        return true; /* one level of this is enough; a nested class is indented by right */
    if (blank && cut == 0)
        return true;
    if (!blank) { /* a banner, or a prefix on every line: the next line tells */
        if (def == NULL || memchr(next, '\n', (size_t)(def - next)) != NULL)
            return true;
        size_t blanks = strspn(next, " ");
        if (next + blanks == def)
            return true;
        cut = (size_t)(def - next);
        for (int i = 0; i < 4 && cut > 0 && next[cut - 1] == ' '; i++)
            cut--;
        if (text_match_prefix(bol, eol, next, cut) == 0)
            return true;
    }
    const struct fx_text *outer = r->text;
    uint32_t line = r->line, end_line;
    const char *prefix = blank ? bol : next;
    size_t to = text_unprefix(r->mem, outer, (size_t)(bol - outer->at), line, prefix, cut,
                              &r->region, &end_line);
    str_id title = x->title;
    size_t entries = r->doc->entry.len;
    bool ok = read_text(r, &r->region, x->first);
    if (ok && r->doc->entry.len > entries && r->doc->entry.at[entries].title == 0)
        r->doc->entry.at[entries].title = title;
    text_free(r->mem, &r->region);
    r->region = (struct fx_text){.at = NULL};
    r->text = outer;
    r->source.text = outer->at;
    r->source.len = outer->len;
    r->end = outer->at + outer->len;
    go_to(r, outer->at + to, outer->at + to, end_line);
    r->open_graph.len = 0;
    r->open_at.len = 0;
    end_of_graph(r, x);
    x->noise = true;
    *done = true;
    return ok;
}

/* All graphs of one text. */
static bool read_text(struct reader *r, const struct fx_text *t, bool first)
{
    struct scan x = {.gap = t->at, .first = first};
    size_t entries = r->doc->entry.len;

    r->text = t;
    r->source = (struct diag_source){.file = r->file, .text = t->at, .len = t->len};
    r->end = t->at + t->len;
    go_to(r, t->at, t->at, 0);
    r->open_graph.len = 0;
    r->open_at.len = 0;
    while (*r->p != '\0') {
        size_t indent = strspn(r->bol, " \t");
        const char *s = r->bol + indent, *eol = s + strcspn(s, "\n");
        const char *kw = starts_with(s, "class ") ? s : NULL;
        bool done;

        if (r->p != r->bol) { /* what a graph left of its last line */
            skip_line(r);
            continue;
        }
        if (kw == NULL && eol - s > 24) /* a banner: the class stands behind a file name */
            for (const char *p = eol - 18; p > s && kw == NULL; p--)
                if (starts_with(p, " class ") && class_line(p + 7) != NULL)
                    kw = p + 1;
        if (kw != NULL && class_line(kw + 6) != NULL) {
            if (!read_prefixed(r, &x, kw, &done))
                return false;
            if (!done && !read_class_here(r, &x, kw, indent))
                return false;
        } else if (starts_with(s, "def forward(")) {
            if (!read_def_here(r, &x, indent))
                return false;
        } else if (starts_with(s, "graph():")) {
            begin_graph(r, NULL);
            r->doc->entry.at[r->doc->entry.len - 1].title = x.title;
            r->g->gap = r->doc->entry.len > 1 ? intern(r, "\n\n", 2) : r->store->word.empty;
            skip_line(r);
            if (!read_strgraph(r))
                return false;
            end_of_graph(r, &x);
            x.noise = true;
        } else {
            str_id title = banner_title(r, s, eol);
            if (title != 0)
                x.title = title;
            if (is_wrap(s)) {
                if (x.head == NULL)
                    x.head = r->bol;
            } else if (s < eol && *s != '#' && !is_profiler(s)) {
                x.noise = true;
                x.head = NULL;
                read_script_line(r);
            }
            if (s < eol && indent == 0)
                r->open_graph.len = r->open_at.len = 0;
            skip_line(r);
        }
    }
    if (r->doc->entry.len > entries) {
        bool keep = !t->log && !x.noise && harmless(x.gap, r->end);
        r->doc->tail = keep ? intern(r, x.gap, (size_t)(r->end - x.gap)) : intern(r, "\n", 1);
    }
    return true;
}

static int by_line(const void *a, const void *b)
{
    const struct fx_entry *x = a, *y = b;

    return (x->line > y->line) - (x->line < y->line);
}

struct read_args {
    struct reader *r;
    const char *text;
    size_t len;
    bool ok;
};

static void do_read(void *p)
{
    struct read_args *x = p;
    struct reader *r = x->r;
    size_t bad = utf8_check(x->text, x->len);

    if (bad < x->len) {
        struct diag_source src = {.file = r->file, .text = NULL};
        struct diag_pos pos = {.source = &src, .line = 1, .column = 1};
        for (size_t i = 0; i < bad; i++) {
            pos.column++;
            if (x->text[i] == '\n') {
                pos.line++;
                pos.column = 1;
            }
        }
        diag_add(r->diags, TUCK_ERROR, pos, "graphs are text in UTF-8",
                 x->text[bad] == '\0' ? "NUL byte in the text" : "byte 0x%02X is not UTF-8",
                 (unsigned char)x->text[bad]);
        return;
    }
    texts_split(r->mem, x->text, x->len, &r->texts);
    for (uint32_t i = 0; i < r->texts.all.len; i++)
        if (!read_text(r, &r->texts.all.at[i], r->doc->entry.len == 0))
            return;
    if (r->doc->entry.len == 0) {
        struct diag_source src = {.file = r->file, .text = NULL};
        diag_add(r->diags, TUCK_ERROR, (struct diag_pos){.source = &src},
                 "looked for `class …(torch.nn.Module):`, `def forward(` and `graph():`",
                 "no graph in this text");
        return;
    }
    if (r->texts.all.len > 1) {
        qsort(r->doc->entry.at, r->doc->entry.len, sizeof(*r->doc->entry.at), by_line);
        r->doc->entry.at[0].graph->gap = r->store->word.empty;
        for (uint32_t i = 1; i < r->doc->entry.len; i++)
            r->doc->entry.at[i].graph->gap = intern(r, "\n\n", 2);
    }
    groups_collect(r->doc, r->group.at, r->group.len, r->diags);
    x->ok = true;
}

/* text[len] must be NUL. */
static tuck_status read_document(const char *text, size_t len, const char *name,
                                 const tuck_read_options *options, tuck_diags *diags,
                                 tuck_doc **doc_out)
{
    struct fx_store *s = store_new(options ? options->alloc : NULL);
    if (s == NULL)
        return TUCK_ENOMEM;
    tuck_doc *doc = s->mem.alloc.resize(s->mem.alloc.ctx, NULL, 0, sizeof(*doc));
    if (doc == NULL) {
        store_release(s);
        return TUCK_ENOMEM;
    }
    *doc = (tuck_doc){.store = s};
    struct reader r = {.store = s, .mem = &s->mem, .diags = diags, .doc = doc, .file = name};
    struct read_args x = {.r = &r, .text = text, .len = len};

    buf_init(&r.tmp, r.mem);
    bool enough = mem_guard(r.mem, do_read, &x);
    values_free(r.mem, &r.vals);
    vec_free(r.mem, &r.open_at_text);
    vec_free(r.mem, &r.freed);
    vec_free(r.mem, &r.pending);
    vec_free(r.mem, &r.attribute);
    vec_free(r.mem, &r.storage);
    vec_free(r.mem, &r.group);
    vec_free(r.mem, &r.names);
    vec_free(r.mem, &r.open_graph);
    vec_free(r.mem, &r.open_at);
    buf_destroy(&r.tmp);
    text_free(r.mem, &r.region);
    texts_free(r.mem, &r.texts);
    if (!enough || !x.ok) {
        tuck_doc_free(doc);
        return enough ? TUCK_ESYNTAX : TUCK_ENOMEM;
    }
    *doc_out = doc;
    return TUCK_OK;
}

tuck_status tuck_doc_read_text(const char *text, size_t len, const char *name,
                               const tuck_read_options *options, tuck_diags *diags,
                               tuck_doc **doc_out)
{
    struct mem m;

    mem_init(&m, options ? options->alloc : NULL);
    char *copy = len < SIZE_MAX ? m.alloc.resize(m.alloc.ctx, NULL, 0, len + 1) : NULL;
    if (copy == NULL)
        return TUCK_ENOMEM;
    if (len > 0)
        memcpy(copy, text, len);
    copy[len] = '\0';
    tuck_status st = read_document(copy, len, name ? name : "", options, diags, doc_out);
    mem_free(&m, copy, len + 1);
    return st;
}

/* All of a file, NUL behind it. Pipes have no size, so it grows as it comes. */
static tuck_status slurp(struct mem *m, FILE *f, char **text, size_t *len, size_t *cap)
{
    for (;;) {
        if (*cap - *len < 2) {
            size_t more = *cap ? *cap * 2 : 1 << 16;
            char *p = m->alloc.resize(m->alloc.ctx, *text, *cap, more);
            if (p == NULL)
                return TUCK_ENOMEM;
            *text = p;
            *cap = more;
        }
        size_t n = fread(*text + *len, 1, *cap - *len - 1, f);
        *len += n;
        if (n == 0)
            break;
    }
    (*text)[*len] = '\0';
    return ferror(f) ? TUCK_EIO : TUCK_OK;
}

tuck_status tuck_doc_read_file(const char *path, const tuck_read_options *options,
                               tuck_diags *diags, tuck_doc **doc_out)
{
    bool std = strcmp(path, "-") == 0;
    struct diag_source src = {.file = std ? "<stdin>" : path};
    FILE *f = std ? stdin : fopen(path, "rb");
    char *text = NULL;
    size_t len = 0, cap = 0;
    struct mem m;

    if (f == NULL) {
        diag_add(diags, TUCK_ERROR, (struct diag_pos){.source = &src}, NULL, "cannot open: %s",
                 strerror(errno));
        return TUCK_EIO;
    }
    mem_init(&m, options ? options->alloc : NULL);
    /* A regular file has a size: one allocation instead of doubling over its end. */
    if (!std && fseek(f, 0, SEEK_END) == 0) {
        long size = ftell(f);
        rewind(f);
        if (size > 0) {
            text = m.alloc.resize(m.alloc.ctx, NULL, 0, (size_t)size + 2);
            cap = text ? (size_t)size + 2 : 0;
        }
    }
    tuck_status st = slurp(&m, f, &text, &len, &cap);
    int error = errno;
    if (!std)
        fclose(f);
    if (st == TUCK_EIO)
        diag_add(diags, TUCK_ERROR, (struct diag_pos){.source = &src}, NULL, "cannot read: %s",
                 strerror(error));
    if (st == TUCK_OK)
        st = read_document(text, len, src.file, options, diags, doc_out);
    mem_free(&m, text, cap);
    return st;
}

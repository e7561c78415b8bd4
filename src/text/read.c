/* Finds graphs in a text: classes, functions, and the text around them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file_open.h"
#include "base/options_take.h"
#include "base/utf8.h"
#include "graph/groups.h"
#include "text/known.h"
#include "text/given_text.h"
#include "text/read.h"

/* Only empty lines, comments and profiler lines, which do not matter for the graph? */
static bool harmless(const char *s, const char *end)
{
    while (s < end) {
        size_t n = strspn(s, " \t");
        if (s + n < end && s[n] != '\n' && s[n] != '#' && !read_is_profiler(s + n))
            return false;
        s += strcspn(s, "\n");
        s += s < end;
    }
    return true;
}

/* Starts a graph under `parent` (NULL: in the document); its memory is reachable from the
 * document. */
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
            .graph = g, .rank = r->text->rank, .line = read_file_line(r, r->line)};
    r->g = g;
    g->source_name = read_intern(r, r->file, strlen(r->file));
    g->first_line = read_file_line(r, r->line);
    r->nested = parent != NULL;
}

/* Finds "def forward(" of the class at the cursor's line; skips other methods. */
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
                           r->text->at + r->text->len > s && read_class_line(s) != NULL))
            return read_error(r, class_name, 1, NULL, "class without a method forward");
        read_script_line(r);
        read_skip_line(r);
        if (*r->p == '\0') /* a last line without a newline leaves the cursor in it */
            return read_error(r, class_name, 1, NULL, "class without a method forward");
    }
}

/* Uses what a script's __init__ says about the attributes that the graph reads. */
static void annotate_attributes(struct reader *r)
{
    if (r->attribute.len == 0)
        return;
    struct arena_mark mark = arena_mark(&r->g->arena);
    uint32_t *ann = arena_array(&r->g->arena, uint32_t, r->store->str.all.len); /* by name */

    memset(ann, 0, r->store->str.all.len * sizeof(*ann));
    for (uint32_t i = r->attribute.len; i > 0; i--) /* if there are two, the first counts */
        ann[r->attribute.at[i - 1].name] = r->attribute.at[i - 1].ann;
    for_each_node (r->g, n) {
        struct fx_node *x = node_at(r->g, n);
        if (x->kind == TUCK_GET_ATTR && x->ann == 0)
            x->ann = ann[x->target];
    }
    arena_release(&r->g->arena, mark);
    if (!r->g->style.annotated)
        r->g->style.silent_inputs = true;
}

/* Reads the class whose keyword is at s in the cursor's line. */
static bool read_class(struct reader *r, const char *s, size_t indent)
{
    const char *name = s + 6;
    const char *open = read_class_line(name);
    size_t def_indent = 0;

    while (r->open_graph.len > 0 && r->open_graph.at[r->open_graph.len - 1] >= indent) {
        r->open_graph.len--;
        r->open_at.len--;
    }
    tuck_graph *parent = r->open_at.len ? r->open_at.at[r->open_at.len - 1] : NULL;
    vec_reserve(r->mem, &r->open_graph, 1);
    vec_reserve(r->mem, &r->open_at, 1);
    begin_graph(r, parent);
    r->g->name = read_intern(r, name, (size_t)(open - name));
    if (parent != NULL)
        graph_enter_child(parent, parent->child.len - 1);
    r->g->style.form = FX_CLASS;
    r->open_graph.at[r->open_graph.len++] = (uint32_t)indent;
    r->open_at.at[r->open_at.len++] = r->g;
    r->p = open;
    read_skip_line(r);
    r->attribute.len = 0;
    const char *inside = r->bol;
    if (!find_forward(r, name, indent, &def_indent))
        return false;
    if (r->bol > inside && !r->text->log)
        r->g->script.inside = read_intern(r, inside, (size_t)(r->bol - inside));
    if (!read_signature(r) || !read_body(r, def_indent))
        return false;
    annotate_attributes(r);
    return true;
}

/* `{"aot_forward_graph": {…}, …, "has_payload": …}` of a structured log: its first key is the title
 * of the graph below; for named dumps, `{"graph_dump": {"name": "before_pass"}, …`, that name. */
static str_id record_title(struct reader *r, const char *s, const char *eol)
{
    static const char name[] = "{\"name\": \"";
    const char *e = memchr(s, '"', (size_t)(eol - s));

    if (e == NULL || memmem(e, (size_t)(eol - e), "\"has_payload\"", 13) == NULL)
        return 0;
    const char *inner = e + 1 + strspn(e + 1, ": ");
    if (starts_with(inner, name)) {
        s = inner + sizeof(name) - 1;
        e = s + strcspn(s, "\"\n");
    }
    return e > s ? read_intern(r, s, (size_t)(e - s)) : 0;
}

/* ` ===== Forward graph 0 =====`, after any prefix: the title of the graph below; 0 if it is not a
 * banner. */
static str_id banner_title(struct reader *r, const char *s, const char *eol)
{
    if (starts_with(s, "{\""))
        return record_title(r, s + 2, eol);
    while (s < eol && !starts_with(s, "====="))
        s++;
    const char *e = eol;
    while (e > s && (e[-1] == ' ' || e[-1] == '='))
        e--;
    s += strspn(s, "= ");
    return e > s && e + 6 <= eol ? read_intern(r, s, (size_t)(e - s)) : 0;
}

struct scan {
    const char *gap;     /* where the text between graphs began */
    const char *head;    /* first wrap line before a possible bare def */
    const char *known;   /* a line with known facts about the graph below */
    uint32_t known_line; /* its number */
    str_id title;
    uint32_t entries; /* graphs of the texts before this one */
    bool first;
    bool noise; /* something other than graphs and empty lines came since the last graph */
};

/* After a return: older versions end a body with a line of blanks, which belongs to the class. */
static str_id end_of_body(struct reader *r, const char *s)
{
    if (*s != '\n')
        return 0;
    size_t blanks = strspn(s + 1, " ");
    bool alone = s[1 + blanks] == '\n' || s[1 + blanks] == '\0';

    return blanks > 0 && alone ? read_intern(r, s, 1 + blanks) : 0;
}

static void end_of_graph(struct reader *r, struct scan *x)
{
    x->gap = r->p;
    while (x->gap > r->bol && x->gap[-1] == ' ') /* of `return x  # comment` */
        x->gap--;
    if (r->doc->entry.len > 0 && r->p > r->bol)
        r->doc->entry.at[r->doc->entry.len - 1].end = end_of_body(r, r->p);
    x->head = x->known = NULL;
    x->title = 0;
    x->noise = false;
    x->first = false;
}

/* What follows the first n entries, and `more`. */
static str_id after_entries(struct reader *r, uint32_t n, const char *more)
{
    r->tmp.len = 0;
    if (n > 0 && r->doc->entry.at[n - 1].end != 0)
        buf_str(&r->tmp, str_text(&r->store->str, r->doc->entry.at[n - 1].end));
    buf_str(&r->tmp, more);
    return read_intern(r, r->tmp.at, r->tmp.len);
}

/* Stores the line with known facts about entry n in its graph. */
static void set_known(struct reader *r, const struct scan *x, uint32_t n)
{
    if (x->known == NULL || n >= r->doc->entry.len)
        return;
    struct fx_entry *e = &r->doc->entry.at[n];
    const char *s = x->known + strspn(x->known, " \t");

    e->graph->known = read_intern(r, s, strcspn(s, "\n"));
    e->known_line = read_file_line(r, x->known_line);
    e->known_column = (uint32_t)(s - x->known) + 1;
}

/* Text before the graph that was just begun: kept if it is only empty lines and comments. n: number
 * of entries before it. */
static void set_gap(struct reader *r, const struct scan *x, const char *to, uint32_t n)
{
    bool nested = n == r->doc->entry.len; /* text between nested graphs belongs to the graph */

    if (x->known != NULL && !nested)
        to = x->known;
    set_known(r, x, n);
    if (!nested)
        vec_push(r->mem, &r->before, ((struct text_range){x->gap, to}));
    bool keep = (!r->text->log || nested) && !x->noise && harmless(x->gap, to);

    if (keep)
        r->g->gap = read_intern(r, x->gap, (size_t)(to - x->gap));
    else if (nested)
        r->g->gap = read_intern(r, "\n\n", 2);
    else
        r->g->gap = x->first ? r->store->word.empty : after_entries(r, n, "\n\n");
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
    if (!top)
        at.known = NULL;
    if (top) {
        r->open_graph.len = 0;
        r->open_at.len = 0;
    }
    uint32_t entries = r->doc->entry.len;
    if (!read_class(r, s, banner ? 0 : indent))
        return false;
    set_gap(r, &at, before, entries);
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
    vec_reserve(r->mem, &r->open_graph, 1);
    vec_reserve(r->mem, &r->open_at, 1);
    begin_graph(r, NULL);
    r->g->style.form = FX_DEF;
    /* Passes that make nested graphs print them after it, further indented, as after a class. */
    r->open_graph.at[r->open_graph.len++] = (uint32_t)indent;
    r->open_at.at[r->open_at.len++] = r->g;
    set_gap(r, x, before, r->doc->entry.len - 1);
    if (x->head)
        r->g->style.head = read_intern(r, x->head, (size_t)(bol - x->head));
    r->doc->entry.at[r->doc->entry.len - 1].title = x->title;
    r->p = r->bol + indent + 12;
    if (!read_signature(r) || !read_body(r, indent))
        return false;
    end_of_graph(r, x);
    return true;
}

static bool read_text(struct reader *r, const struct fx_text *t, bool first);

/* A class whose lines have something unknown in front: an indent, a log prefix. Removes it and
 * reads the rest; sets *done if that worked. */
static bool read_prefixed(struct reader *r, struct scan *x, const char *class_at, bool *done)
{
    const char *bol = r->bol, *eol = bol + strcspn(bol, "\n");
    const char *next = *eol == '\n' ? eol + 1 : eol;
    size_t cut = (size_t)(class_at - bol);
    bool blank = strspn(bol, " ") == cut;

    *done = false;
    if (r->region.own != NULL || r->open_graph.len > 0)
        return true; /* one level of this is enough; nested classes are always indented */
    if (blank && cut == 0)
        return true;
    if (!blank) { /* a banner, or a prefix on every line: the next line decides */
        const char *def = memmem(next, strcspn(next, "\n"), "def forward(", 12);
        if (def == NULL)
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
    uint32_t entries = r->doc->entry.len;
    bool ok = read_text(r, &r->region, x->first);
    r->script = NO_SCRIPT;
    if (ok && r->doc->entry.len > entries && r->doc->entry.at[entries].title == 0)
        r->doc->entry.at[entries].title = title;
    text_free(r->mem, &r->region);
    r->region = (struct fx_text){.at = NULL};
    r->text = outer;
    r->source.text = outer->at;
    r->source.len = outer->len;
    r->end = outer->at + outer->len;
    set_known(r, x, entries);
    read_go_to(r, outer->at + to, outer->at + to, end_line);
    r->open_graph.len = 0;
    r->open_at.len = 0;
    end_of_graph(r, x);
    x->noise = true;
    *done = true;
    return ok;
}

/* A line of Python outside graphs: does it show that this is a script? */
static void look_for_script(struct reader *r, const char *s, bool indented)
{
    bool import = !indented &&
                  (starts_with(s, "import ") ||
                   (starts_with(s, "from ") && memmem(s, strcspn(s, "\n"), " import ", 8) != NULL));
    bool known = read_script_line(r);

    if (r->script == MAYBE_SCRIPT && !r->text->log && (known || import))
        r->script = IS_SCRIPT;
}

static void mark_script(tuck_graph *top, struct reader *r)
{
    r->open_at.len = 0;
    vec_push(r->mem, &r->open_at, top);
    while (r->open_at.len > 0) {
        tuck_graph *g = r->open_at.at[--r->open_at.len];

        g->script.is = true;
        for (uint32_t i = 0; i < g->child.len; i++)
            vec_push(r->mem, &r->open_at, g->child.at[i]);
    }
}

/* A script is printed completely, even if its graphs change: the text around them is kept. */
static void keep_script(struct reader *r, uint32_t entries, const struct scan *x)
{
    uint32_t n = r->doc->entry.len - entries;

    r->doc->tail = read_intern(r, x->gap, (size_t)(r->end - x->gap));
    for (uint32_t i = 0; i < n; i++) {
        const struct text_range *q = &r->before.at[i];
        tuck_graph *g = r->doc->entry.at[entries + i].graph;

        g->gap = read_intern(r, q->from, (size_t)(q->to - q->from));
        mark_script(g, r);
        if (n == 1) {
            g->script.head = g->gap;
            g->script.tail = r->doc->tail;
        }
    }
}

/* `# tuck: {…}` directly above a graph has known facts about it. */
static void note_known(struct reader *r, struct scan *x, const char *s, const char *eol)
{
    const char *next = *eol == '\n' ? eol + 1 : eol;
    const char *end = next + strcspn(next, "\n"), *t = next + strspn(next, " \t");

    if (starts_with(t, "def forward(") || starts_with(t, "graph():") || read_is_wrap(t) ||
        memmem(t, (size_t)(end - t), "class ", 6) != NULL) {
        x->known = r->bol;
        x->known_line = r->line;
    } else {
        read_warn(r, s, (size_t)(eol - s), "such a line must be directly above its graph",
                  "this line belongs to no graph and is ignored");
    }
}

/* Only blanks follow the cursor's line, and that line is not a complete return. */
static bool at_the_end(const struct reader *r)
{
    const char *s = r->bol + strspn(r->bol, " \t"), *eol = r->p + strcspn(r->p, "\n");
    int open = 0;

    if (eol[strspn(eol, " \t\r\n")] != '\0')
        return false;
    for (const char *p = s; p < eol; p++)
        open += (*p == '(') - (*p == ')');
    return open > 0 || !(starts_with(s, "return") || *s == ')');
}

/* After an error: nothing of the graph that failed is left. */
static void forget(struct reader *r)
{
    r->failed = r->cut = r->by_name = r->nested = false;
    r->brackets = 0;
    r->lenient = 0;
    values_clear(&r->vals);
    r->open_at_text.len = r->freed.len = r->pending.len = r->names.len = 0;
    r->open_graph.len = r->open_at.len = 0;
}

static const char left_out_note[] =
    "the text is cut off here: this graph is skipped, the others are read";

/* After an error: was the graph cut off, by the end of the text or by the next graph? Then it is
 * skipped with a warning, and reading continues with the next graph, if there is one. */
static bool leave_out(struct reader *r, struct scan *x)
{
    bool end = at_the_end(r);

    if ((!end && !r->cut) || r->doc->entry.len <= x->entries || r->pin != NULL)
        return false;
    tuck_diag *d = r->diags != NULL && r->diags->all.len > 0
                       ? &r->diags->all.at[r->diags->all.len - 1]
                       : NULL;
    if (d != NULL && d->severity == TUCK_ERROR) {
        vec_push(r->mem, &r->cut_note, d->note);
        d->severity = TUCK_WARNING;
        d->note = left_out_note;
        r->diags->n_errors--;
    }
    graph_free(r->doc->entry.at[--r->doc->entry.len].graph);
    r->g = NULL;
    r->script = NO_SCRIPT; /* the remaining script would not run */
    if (r->before.len > r->doc->entry.len - x->entries)
        r->before.len = r->doc->entry.len - x->entries;
    forget(r);
    while (end && *r->p != '\0')
        read_skip_line(r);
    x->gap = r->p;
    x->head = x->known = NULL;
    x->title = 0;
    x->noise = true;
    return true;
}

/* Reads all graphs of one text. */
static bool read_text(struct reader *r, const struct fx_text *t, bool first)
{
    uint32_t entries = r->doc->entry.len;
    struct scan x = {.gap = t->at, .first = first, .entries = entries};

    r->text = t;
    r->script = MAYBE_SCRIPT;
    r->before.len = 0;
    r->source = (struct diag_source){.file = r->file, .text = t->at, .len = t->len};
    r->end = t->at + t->len;
    read_go_to(r, t->at, t->at, 0);
    r->open_graph.len = 0;
    r->open_at.len = 0;
    while (*r->p != '\0') {
        size_t indent = strspn(r->bol, " \t");
        const char *s = r->bol + indent, *eol = s + strcspn(s, "\n");
        const char *kw = starts_with(s, "class ") ? s : NULL;
        bool done;

        if (r->p != r->bol) { /* the rest of a graph's last line */
            read_skip_line(r);
            continue;
        }
        if (kw == NULL && eol - s > 24) /* a banner: the class follows a file name */
            for (const char *p = eol - 18; p > s && kw == NULL; p--)
                if (starts_with(p, " class ") && read_class_line(p + 7) != NULL)
                    kw = p + 1;
        if (kw != NULL && read_class_line(kw + 6) != NULL) {
            if (!read_prefixed(r, &x, kw, &done))
                return false;
            if (!done && !read_class_here(r, &x, kw, indent) && !leave_out(r, &x))
                return false;
        } else if (starts_with(s, "def forward(")) {
            if (!read_def_here(r, &x, indent) && !leave_out(r, &x))
                return false;
        } else if (starts_with(s, "graph():")) {
            begin_graph(r, NULL);
            r->doc->entry.at[r->doc->entry.len - 1].title = x.title;
            set_known(r, &x, r->doc->entry.len - 1);
            r->script = NO_SCRIPT; /* it is printed as a class */
            r->g->gap = r->doc->entry.len > 1 ? after_entries(r, r->doc->entry.len - 1, "\n\n")
                                              : r->store->word.empty;
            read_skip_line(r);
            if (!read_strgraph(r)) {
                if (!leave_out(r, &x))
                    return false;
                continue;
            }
            end_of_graph(r, &x);
            r->doc->entry.at[r->doc->entry.len - 1].end = 0;
            x.noise = true;
        } else {
            str_id title = banner_title(r, s, eol);
            if (title != 0)
                x.title = title;
            if (indent == 0 && read_is_wrap(s)) {
                if (x.head == NULL)
                    x.head = r->bol;
            } else if (s < eol && *s != '#' && !read_is_profiler(s)) {
                x.noise = true;
                x.head = NULL;
                look_for_script(r, s, indent > 0);
            } else if (starts_with(s, FX_KNOWN)) {
                note_known(r, &x, s, eol);
            }
            if (s < eol && indent == 0)
                r->open_graph.len = r->open_at.len = 0;
            read_skip_line(r);
        }
    }
    if (r->doc->entry.len > entries) {
        bool keep = !t->log && !x.noise && harmless(x.gap, r->end);
        if (r->script == IS_SCRIPT && r->texts.all.len == 1 && !t->log) {
            keep_script(r, entries, &x);
            return true;
        }
        r->doc->tail = keep ? read_intern(r, x.gap, (size_t)(r->end - x.gap))
                            : after_entries(r, r->doc->entry.len, "\n");
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
    struct given_text *given; /* instead of `text`: texts that were cut out before */
    size_t n_given;
    bool ok;
};

/* There is no other graph, so a graph that is cut off is an error. */
static void all_cut(struct reader *r)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < r->diags->all.len && n < r->cut_note.len; i++) {
        tuck_diag *d = &r->diags->all.at[i];

        if (d->note == left_out_note) {
            d->severity = TUCK_ERROR;
            d->note = r->cut_note.at[n++];
            r->diags->n_errors++;
        }
    }
}

static bool check_bytes(struct reader *r, const char *text, size_t len)
{
    size_t bad = utf8_check(text, len);

    if (bad >= len)
        return true;
    struct diag_source src = {.file = r->file, .text = NULL};
    struct diag_pos pos = {.source = &src, .line = 1, .column = 1};
    for (size_t i = 0; i < bad; i++) {
        pos.column++;
        if (text[i] == '\n') {
            pos.line++;
            pos.column = 1;
        }
    }
    diag_add(r->diags, TUCK_ERROR, pos, "graphs are text in UTF-8",
             text[bad] == '\0' ? "NUL byte in the text" : "byte 0x%02X is not UTF-8",
             (unsigned char)text[bad]);
    return false;
}

/* What follows the last graph is read: groups, values of symbols, known facts. */
static void finish(struct reader *r)
{
    groups_collect(r->doc, r->group.at, r->group.len, r->diags);
    for (uint32_t i = 0; i < r->doc->entry.len; i++) {
        tuck_graph *g = r->doc->entry.at[i].graph;

        for (uint32_t k = 0; k < r->doc->hint.len; k++)
            vec_push(r->mem, &g->hint, r->doc->hint.at[k]);
        g->n_script_hint = g->hint.len;
        known_take(&r->doc->entry.at[i], r->diags);
    }
}

/* One text of several: if it cannot be read, its errors are warnings, and the others are read. */
static void read_given(struct reader *r, struct given_text *t)
{
    uint32_t entries = r->doc->entry.len;
    uint32_t said = r->diags != NULL ? r->diags->all.len : 0;

    r->file = t->file;
    t->first = entries;
    t->ok = check_bytes(r, t->text.at, t->text.len) && read_text(r, &t->text, entries == 0);
    if (!t->ok) {
        while (r->doc->entry.len > entries)
            graph_free(r->doc->entry.at[--r->doc->entry.len].graph);
        r->g = NULL;
        forget(r);
    }
    for (uint32_t i = said; r->diags != NULL && !t->ok && i < r->diags->all.len; i++)
        if (r->diags->all.at[i].severity == TUCK_ERROR) {
            r->diags->all.at[i].severity = TUCK_WARNING;
            r->diags->all.at[i].note = "this graph is passed over";
            r->diags->n_errors--;
        }
    t->count = r->doc->entry.len - entries;
    t->ok &= t->count > 0;
}

static void do_read(void *p)
{
    struct read_args *x = p;
    struct reader *r = x->r;

    if (x->given != NULL) {
        for (size_t i = 0; i < x->n_given; i++)
            read_given(r, &x->given[i]);
        finish(r);
        x->ok = true;
        return;
    }
    if (!check_bytes(r, x->text, x->len))
        return;
    texts_split(r->mem, x->text, x->len, &r->texts);
    for (uint32_t i = 0; i < r->texts.all.len; i++)
        if (!read_text(r, &r->texts.all.at[i], r->doc->entry.len == 0))
            return;
    if (r->doc->entry.len == 0 && r->cut_note.len > 0) {
        all_cut(r);
        return;
    }
    if (r->doc->entry.len == 0) {
        struct diag_source src = {.file = r->file, .text = NULL};
        diag_add(r->diags, TUCK_ERROR, (struct diag_pos){.source = &src},
                 "looked for `class …(torch.nn.Module):`, `def forward(` and `graph():`",
                 "no graph in this text");
        return;
    }
    const struct fx_text *only = r->texts.all.len == 1 ? &r->texts.all.at[0] : NULL;
    if (only != NULL && !only->log) {
        r->doc->crlf = only->crlf;
        r->doc->bom = only->bom;
    }
    if (r->texts.all.len > 1) {
        qsort(r->doc->entry.at, r->doc->entry.len, sizeof(*r->doc->entry.at), by_line);
        r->doc->entry.at[0].graph->gap = r->store->word.empty;
        for (uint32_t i = 1; i < r->doc->entry.len; i++)
            r->doc->entry.at[i].graph->gap = after_entries(r, i, "\n\n");
        r->doc->tail = after_entries(r, r->doc->entry.len, "\n");
    }
    finish(r);
    x->ok = true;
}

static tuck_status read_all(struct read_args *x, const char *name, const tuck_read_options *o,
                            tuck_diags *diags, tuck_doc **doc_out)
{
    struct fx_store *s = store_new(o->alloc);
    if (s == NULL)
        return TUCK_ENOMEM;
    tuck_doc *doc = s->mem.alloc.resize(s->mem.alloc.ctx, NULL, 0, sizeof(*doc));
    if (doc == NULL) {
        store_release(s);
        return TUCK_ENOMEM;
    }
    *doc = (tuck_doc){.store = s};
    struct reader r = {.store = s, .mem = &s->mem, .diags = diags, .doc = doc, .file = name};

    x->r = &r;
    buf_init(&r.tmp, r.mem);
    bool enough = mem_guard(r.mem, do_read, x);
    values_free(r.mem, &r.vals);
    vec_free(r.mem, &r.open_at_text);
    vec_free(r.mem, &r.freed);
    vec_free(r.mem, &r.pending);
    vec_free(r.mem, &r.attribute);
    vec_free(r.mem, &r.storage);
    vec_free(r.mem, &r.storage_of);
    vec_free(r.mem, &r.group);
    vec_free(r.mem, &r.names);
    vec_free(r.mem, &r.open_graph);
    vec_free(r.mem, &r.cut_note);
    vec_free(r.mem, &r.open_at);
    vec_free(r.mem, &r.before);
    buf_destroy(&r.tmp);
    text_free(r.mem, &r.region);
    texts_free(r.mem, &r.texts);
    if (!enough || !x->ok) {
        tuck_doc_free(doc);
        return enough ? TUCK_ESYNTAX : TUCK_ENOMEM;
    }
    *doc_out = doc;
    return TUCK_OK;
}

/* text[len] must be NUL. */
static tuck_status read_document(const char *text, size_t len, const char *name,
                                 const tuck_read_options *o, tuck_diags *diags, tuck_doc **doc_out)
{
    struct read_args x = {.text = text, .len = len};

    return read_all(&x, name, o, diags, doc_out);
}

tuck_status read_given_texts(struct given_text *text, size_t n, const tuck_allocator *alloc,
                             tuck_diags *diags, tuck_doc **doc_out)
{
    struct read_args x = {.given = text, .n_given = n};
    tuck_read_options o = {.size = sizeof(o), .alloc = alloc};

    return read_all(&x, "", &o, diags, doc_out);
}

tuck_status tuck_doc_read_text(const char *text, size_t len, const char *name,
                               const tuck_read_options *options, tuck_diags *diags,
                               tuck_doc **doc_out)
{
    tuck_read_options o = {.size = sizeof(o)};
    tuck_status st = options_take(&o, sizeof(o), options);
    struct mem m;

    if (st != TUCK_OK)
        return st;
    mem_init(&m, o.alloc);
    char *copy = len < SIZE_MAX ? m.alloc.resize(m.alloc.ctx, NULL, 0, len + 1) : NULL;
    if (copy == NULL)
        return TUCK_ENOMEM;
    if (len > 0)
        memcpy(copy, text, len);
    copy[len] = '\0';
    st = read_document(copy, len, name ? name : "", &o, diags, doc_out);
    mem_free(&m, copy, len + 1);
    return st;
}

/* Reads a whole file, NUL-terminated. Pipes have no size, so the buffer grows. */
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
    tuck_read_options o = {.size = sizeof(o)};
    tuck_status st = options_take(&o, sizeof(o), options);
    if (st != TUCK_OK)
        return st;
    bool std = strcmp(path, "-") == 0;
    struct diag_source src = {.file = std ? "<stdin>" : path};
    FILE *f = std ? stdin : file_open(path);
    char *text = NULL;
    size_t len = 0, cap = 0;
    struct mem m;

    if (f == NULL) {
        diag_add(diags, TUCK_ERROR, (struct diag_pos){.source = &src}, NULL, "cannot open: %s",
                 strerror(errno));
        return TUCK_EIO;
    }
    mem_init(&m, o.alloc);
    /* A regular file has a size: one allocation instead of growing. */
    if (!std && fseek(f, 0, SEEK_END) == 0) {
        long size = ftell(f);
        rewind(f);
        if (size > 0) {
            text = m.alloc.resize(m.alloc.ctx, NULL, 0, (size_t)size + 2);
            cap = text ? (size_t)size + 2 : 0;
        }
    }
    st = slurp(&m, f, &text, &len, &cap);
    int error = errno;
    if (!std)
        fclose(f);
    if (st == TUCK_EIO)
        diag_add(diags, TUCK_ERROR, (struct diag_pos){.source = &src}, NULL, "cannot read: %s",
                 strerror(error));
    if (st == TUCK_OK)
        st = read_document(text, len, src.file, &o, diags, doc_out);
    mem_free(&m, text, cap);
    return st;
}

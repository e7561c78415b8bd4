#include "job/piece.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "job/piece_path.h"
#include "job/record.h"
#include "job/record_facts.h"

/* ---- stages ---- */

struct stage_row {
    const char *title; /* a part of it */
    uint8_t stage, role;
};

/* The first row that fits counts. */
static const struct stage_row stages[] = {
    {"compiled_autograd_graph", STAGE_TRACED, ROLE_AUTOGRAD},
    {"Compiled autograd graph", STAGE_TRACED, ROLE_AUTOGRAD},
    {"aot_forward_graph", STAGE_AOT, ROLE_FORWARD},
    {"Forward graph", STAGE_AOT, ROLE_FORWARD},
    {"aot_backward_graph", STAGE_AOT, ROLE_BACKWARD},
    {"Backward graph", STAGE_AOT, ROLE_BACKWARD},
    {"aot_inference_graph", STAGE_AOT, ROLE_WHOLE},
    {"Inference graph", STAGE_AOT, ROLE_WHOLE},
    {"joint_graph", STAGE_JOINT, ROLE_JOINT},
    {"Joint graph", STAGE_JOINT, ROLE_JOINT},
    {"dynamo_output_graph", STAGE_TRACED, ROLE_NONE},
    {"pre_grad_graph", STAGE_TRACED, ROLE_NONE},
    {"PRE GRAD", STAGE_TRACED, ROLE_NONE},
    {"__compiled_fn", STAGE_TRACED, ROLE_NONE},
    {"before_post_grad_graph", STAGE_READABLE, ROLE_NONE},
    {"BEFORE POST GRAD", STAGE_READABLE, ROLE_NONE},
    {"post_grad_graph", STAGE_POST_GRAD, ROLE_NONE},
    {"POST GRAD", STAGE_POST_GRAD, ROLE_NONE},
    {"fx_graph_transformed", STAGE_POST_GRAD, ROLE_NONE},
    {"fx_graph_runnable", STAGE_READABLE, ROLE_NONE},
    {"fx_graph_readable", STAGE_READABLE, ROLE_NONE},
};

static const struct stage_row *stage_of(const char *title)
{
    for (size_t i = 0; i < sizeof(stages) / sizeof(*stages); i++)
        if (strstr(title, stages[i].title) != NULL)
            return &stages[i];
    return NULL;
}

const char *role_name(enum job_role role)
{
    switch (role) {
    case ROLE_FORWARD: return "forward";
    case ROLE_BACKWARD: return "backward";
    case ROLE_WHOLE: return "whole";
    case ROLE_JOINT: return "joint";
    case ROLE_AUTOGRAD: return "autograd";
    case ROLE_NONE: break;
    }
    return "-";
}

/* The role from the names of the inputs: torch calls a backward's gradients tangents_1, …, and
 * what autograd differentiates primals_1, … */
static uint8_t role_by_inputs(const char *s, const char *end, uint8_t stage)
{
    const char *def = memmem(s, (size_t)(end - s), "def forward(", 12);

    if (def == NULL)
        return ROLE_NONE;
    const char *stop = memmem(def, (size_t)(end - def), "):", 2);
    size_t n = (size_t)((stop ? stop : end) - def);
    bool tangents = memmem(def, n, "tangents_", 9) != NULL;
    bool primals = memmem(def, n, "primals_", 8) != NULL;

    if (tangents)
        return stage == STAGE_JOINT ? ROLE_JOINT : ROLE_BACKWARD;
    if (primals)
        return ROLE_FORWARD;
    return memmem(def, n, "arg0_1", 6) != NULL || stage >= STAGE_AOT ? ROLE_WHOLE : ROLE_NONE;
}

/* ---- finding ---- */

struct finder {
    struct pieces *p;
    uint32_t source;
    const char *text, *end;
    struct path_facts path;
    int64_t order;
    uint32_t first; /* of its pieces */
    struct record_facts facts;
};

static struct piece blank(const struct finder *f)
{
    return (struct piece){.source = f->source,
                          .rank = f->path.rank,
                          .id = f->path.id,
                          .title = "",
                          .known = f->path.known,
                          .line = 1};
}

static void add(struct finder *f, struct piece x)
{
    const struct stage_row *row = stage_of(x.title);

    if (row != NULL) {
        x.stage = row->stage;
        x.role = row->role;
    }
    if (x.role == ROLE_NONE && f->path.role != ROLE_NONE)
        x.role = f->path.role;
    if (x.role == ROLE_NONE && x.stage != STAGE_TRACED)
        x.role = role_by_inputs(f->text + x.from, f->text + x.to, x.stage);
    if (x.role == ROLE_FORWARD && strncmp(x.title, "Forward graph", 13) == 0 &&
        role_by_inputs(f->text + x.from, f->text + x.to, x.stage) == ROLE_WHOLE)
        x.role = ROLE_WHOLE; /* terminal logs call inference graphs so, too */
    if (x.role == ROLE_WHOLE && x.id.autograd >= 0)
        x.role = ROLE_BACKWARD; /* compiled autograd runs backwards only */
    int64_t place = x.form == PIECE_FILE ? facts_place(x.known) : -1;
    if (place >= 0)
        x.stage = STAGE_POST_GRAD; /* in the order in which it ran */
    x.order = place >= 0 ? place : f->path.order >= 0 ? f->path.order : f->order++;
    vec_push(f->p->mem, &f->p->all, x);
}

static uint32_t count_lines(const char *from, const char *to)
{
    uint32_t n = 0;

    while ((from = memchr(from, '\n', (size_t)(to - from))) != NULL) {
        n++;
        from++;
    }
    return n;
}

static bool has_graph(const char *s, size_t len)
{
    return memmem(s, len, "def forward(", 12) != NULL || memmem(s, len, "graph():", 8) != NULL;
}

/* "V0521 … {"aot_forward_graph": …}" and the lines with a TAB after it. */
static void find_payloads(struct finder *f)
{
    const char *s = f->text;
    uint32_t line = 1;

    while (s < f->end) {
        const char *nl = memchr(s, '\n', (size_t)(f->end - s));
        const char *eol = nl ? nl : f->end;
        struct log_prefix pre = *s == '\t' ? (struct log_prefix){.body = s} : log_prefix_of(s, eol);
        struct record r;

        line++;
        if (pre.record)
            record_facts_take(&f->facts, f->p->arena, pre.body, eol);
        if (pre.record && *pre.body == '{' && record_parse(pre.body, eol, f->p->arena, &r)) {
            const char *to = eol < f->end ? eol + 1 : f->end;
            const char *begin = to;
            while (to < f->end && (*to == '\t' || *to == '\n')) {
                const char *next = memchr(to, '\n', (size_t)(f->end - to));
                to = next ? next + 1 : f->end;
            }
            struct piece x = blank(f);
            x.form = PIECE_PAYLOAD;
            x.from = (size_t)(begin - f->text);
            x.to = (size_t)(to - f->text);
            x.line = line;
            x.title = r.title;
            x.rank = r.rank >= 0 ? r.rank : x.rank;
            x.when = pre.when;
            x.run = f->source;
            x.id = r.id;
            if (has_graph(begin, (size_t)(to - begin)))
                add(f, x);
            line += count_lines(begin, to);
            eol = to - 1;
        }
        s = eol + 1;
    }
}

/* ---- messages of TORCH_LOGS ---- */

struct message {
    const char *from, *to;
    const char *prefix;
    size_t prefix_len;
    struct log_prefix pre;
    uint32_t line;
    const char *banner;
    bool graph; /* there is one in it */
};

struct writers {
    struct strtab keys; /* tag: the number of the message + 1 */
    VEC(struct message) open;
};

static const char *banner_in(struct arena *a, const char *s, const char *eol)
{
    const char *at = memmem(s, (size_t)(eol - s), "===== ", 6);

    if (at == NULL)
        return NULL;
    at += 6;
    const char *e = memmem(at, (size_t)(eol - at), "=====", 5); /* colors may follow */
    e = e != NULL ? e : eol;
    while (e > at && (e[-1] == '=' || e[-1] == ' ' || e[-1] == '\r'))
        e--;
    return e > at ? arena_str(a, at, (size_t)(e - at)) : NULL;
}

static void close_message(struct finder *f, struct message *m)
{
    if (m->from == NULL)
        return;
    struct piece x = blank(f);
    x.form = PIECE_LINES;
    x.from = (size_t)(m->from - f->text);
    x.to = (size_t)(m->to - f->text);
    x.line = m->line;
    x.prefix = m->prefix;
    x.prefix_len = m->prefix_len;
    x.rank = m->pre.rank >= 0 ? m->pre.rank : x.rank;
    x.when = m->pre.when;
    x.run = strtoll(m->pre.pid, NULL, 10);
    x.title = m->banner != NULL ? m->banner : "";
    if (m->pre.tag[0] != NULL && compile_id_parse(m->pre.tag[0], m->pre.tag_len[0], &x.id) &&
        m->graph)
        add(f, x);
    m->from = NULL;
}

static struct message *message_of(struct finder *f, struct writers *w, const struct log_prefix *p,
                                  const char *s)
{
    struct arena_mark mark = arena_mark(f->p->arena);
    size_t n = p->key_len + p->pid_len;
    char *key = arena_array(f->p->arena, char, n + 1);

    memcpy(key, p->key, p->key_len);
    memcpy(key + p->key_len, p->pid, p->pid_len);
    str_id id = str_intern(&w->keys, key, n);
    arena_release(f->p->arena, mark);
    if (w->keys.all.at[id].tag == 0) {
        vec_push(f->p->mem, &w->open, (struct message){.from = NULL});
        w->keys.all.at[id].tag = w->open.len;
    }
    struct message *m = &w->open.at[w->keys.all.at[id].tag - 1];
    size_t len = (size_t)(p->body - p->key);
    if (m->from != NULL && (m->prefix_len != len || memcmp(m->prefix, p->key, len) != 0))
        close_message(f, m);
    if (m->from == NULL)
        *m = (struct message){.from = s, .prefix = p->key, .prefix_len = len, .pre = *p};
    return m;
}

static void add_to(struct finder *f, struct message *m, const char *body, const char *eol,
                   uint32_t line)
{
    if (m->line == 0)
        m->line = line;
    const char *banner = banner_in(f->p->arena, body, eol);
    if (banner != NULL && m->graph) { /* another graph in the same message */
        struct message next = *m;
        close_message(f, m);
        *m = next;
        m->from = body - next.prefix_len;
        m->line = line;
        m->graph = false;
    }
    if (banner != NULL)
        m->banner = banner;
    else if (m->banner == NULL && memmem(body, (size_t)(eol - body), "Compiled autograd graph", 23))
        m->banner = "Compiled autograd graph";
    m->graph |= memmem(body, (size_t)(eol - body), "def forward(", 12) != NULL;
    m->to = eol;
}

struct lines_args {
    struct finder *f;
    struct writers w;
};

static void do_find_lines(void *p)
{
    struct lines_args *x = p;
    struct finder *f = x->f;
    uint32_t line = 0;

    for (const char *s = f->text; s < f->end;) {
        const char *nl = memchr(s, '\n', (size_t)(f->end - s));
        const char *eol = nl ? nl : f->end;
        struct log_prefix pre = log_prefix_of(s, eol);

        line++;
        if (pre.record)
            add_to(f, message_of(f, &x->w, &pre, s), pre.body, eol, line);
        s = eol + 1;
    }
    for (uint32_t i = 0; i < x->w.open.len; i++)
        close_message(f, &x->w.open.at[i]);
}

static void find_lines(struct finder *f)
{
    struct lines_args x = {.f = f};

    strtab_init(&x.w.keys, f->p->mem);
    bool ok = mem_guard(f->p->mem, do_find_lines, &x);
    strtab_destroy(&x.w.keys);
    vec_free(f->p->mem, &x.w.open);
    if (!ok)
        mem_exhausted(f->p->mem);
}

/* ---- other files ---- */

/* Each class at the beginning of a line is a graph; so is the file if there is none. */
/* `# tuck: {…}` directly above a graph has facts about it. */
static const char *facts_in(struct finder *f, const char *s, const char *eol)
{
    static const char mark[] = "# tuck: ";
    size_t n = sizeof(mark) - 1, len = (size_t)(eol - s);

    return len > n && memcmp(s, mark, n) == 0 ? arena_str(f->p->arena, s + n, len - n) : NULL;
}

static void find_classes(struct finder *f)
{
    struct piece x = blank(f);
    const char *title = f->path.title != NULL ? f->path.title : "", *known = NULL;
    uint32_t line = 0;
    bool open = false;

    x.title = title;
    for (const char *s = f->text; s < f->end;) {
        const char *nl = memchr(s, '\n', (size_t)(f->end - s));
        const char *eol = nl ? nl : f->end;
        const char *banner = banner_in(f->p->arena, s, eol);
        size_t len = (size_t)(eol - s);
        bool begins = len > 6 && memcmp(s, "class ", 6) == 0 &&
                      memmem(s, len, "torch.nn.Module)", 16) != NULL;

        line++;
        if (open && (begins || banner != NULL)) {
            x.to = (size_t)(s - f->text);
            add(f, x);
            open = false;
        }
        if (banner != NULL)
            title = banner;
        if (begins) {
            x = blank(f);
            x.from = (size_t)(s - f->text);
            x.line = line;
            x.title = title;
            x.known = known != NULL ? known : x.known;
            open = true;
        }
        known = facts_in(f, s, eol);
        s = eol + 1;
    }
    x.to = (size_t)(f->end - f->text);
    if (open || (x.from == 0 && x.to > 0 && has_graph(f->text, x.to) && f->p->all.len == 0))
        add(f, x);
}

enum kind { KIND_PLAIN, KIND_RECORDS, KIND_LOG };

/* What kind of file it is: decided by the first log headers, of which a structured log has a JSON
 * object on every one. */
static enum kind kind_of(const struct finder *f)
{
    for (const char *s = f->text; s < f->end;) {
        const char *nl = memchr(s, '\n', (size_t)(f->end - s));
        const char *eol = nl ? nl : f->end;
        struct log_prefix pre = log_prefix_of(s, eol);

        if (pre.record && pre.body < eol && *pre.body == '{')
            return KIND_RECORDS;
        if (pre.record && pre.tag[0] != NULL)
            return KIND_LOG;
        s = eol + 1;
    }
    return KIND_PLAIN;
}

static bool is_json(const char *path)
{
    size_t n = strlen(path);

    return n > 5 && strcmp(path + n - 5, ".json") == 0;
}

void pieces_find(struct pieces *p)
{
    for (uint32_t i = 0; i < p->sources->all.len; i++) {
        const struct source *s = &p->sources->all.at[i];
        struct finder f = {
            .p = p, .source = i, .text = s->text, .end = s->text + s->len, .first = p->all.len};

        if (is_json(s->path) || !has_graph(s->text, s->len))
            continue;
        path_facts(p, i, &f.path);
        switch (kind_of(&f)) {
        case KIND_RECORDS:
            find_payloads(&f);
            if (p->all.len > f.first)
                record_facts_give(&f.facts, p->arena, &p->all.at[f.first], p->all.len - f.first);
            break;
        case KIND_LOG: find_lines(&f); break;
        case KIND_PLAIN: find_classes(&f); break;
        }
    }
}

/* ---- texts ---- */

struct text_args {
    const struct pieces *p;
    const struct piece *x;
    struct fx_text text;
    struct buf buf;
};

static void do_text(void *arg)
{
    struct text_args *a = arg;
    const struct piece *x = a->x;
    const char *base = a->p->sources->all.at[x->source].text;
    uint32_t line = x->line;

    if (x->known != NULL) {
        buf_str(&a->buf, "# tuck: ");
        buf_str(&a->buf, x->known);
        buf_chr(&a->buf, '\n');
        vec_push(a->p->mem, &a->text.line, line);
        vec_push(a->p->mem, &a->text.column, 0);
    }
    bool begun = x->known == NULL; /* nothing may be between that line and the graph */
    for (const char *s = base + x->from, *end = base + x->to; s < end; line++) {
        const char *nl = memchr(s, '\n', (size_t)(end - s));
        const char *eol = nl ? nl : end, *body = s;
        bool own = true;

        if (x->form == PIECE_PAYLOAD && *s == '\t')
            body = s + 1;
        if (x->form == PIECE_LINES) {
            const char *key = log_prefix_of(s, eol).key;
            own = (size_t)(eol - key) >= x->prefix_len &&
                  memcmp(key, x->prefix, x->prefix_len) == 0;
            body = key + x->prefix_len;
        }
        size_t n = own ? (size_t)(eol - body) : 0;
        begun |= own && (memmem(body, n, "class ", 6) != NULL ||
                         memmem(body, n, "def forward(", 12) != NULL);
        if (own && begun)
            text_add_line(a->p->mem, &a->text, &a->buf, body, eol, line, (uint32_t)(body - s));
        s = eol + 1;
    }
    buf_text(&a->buf);
}

void piece_text(const struct pieces *p, const struct piece *x, struct fx_text *out)
{
    struct text_args a = {.p = p, .x = x};

    buf_init(&a.buf, p->mem);
    if (!mem_guard(p->mem, do_text, &a)) {
        buf_destroy(&a.buf);
        text_free(p->mem, &a.text);
        mem_exhausted(p->mem);
    }
    *out = a.text;
    out->at = out->own = a.buf.at;
    out->len = a.buf.len;
    out->own_size = a.buf.cap;
    out->rank = x->rank;
    out->log = true;
}

/* Reads what program_print() writes. Every error names the line and the word. */
#include <errno.h>
#include <stdlib.h>

#include "base/json_in.h"
#include "base/suggest.h"
#include "lower/program.h"
#include "lower/program_rows.h"

struct word {
    const char *at;
    uint32_t len;
    bool quoted;
};

struct reader {
    struct program *p;
    struct diag_source source;
    tuck_diags *diags;
    tuck_status status;
    const char *line_start, *at, *end; /* of the current line */
    uint32_t line;
    struct word word; /* the current word */
    bool headed;      /* "program" was read */
    struct arena *a;
    VEC(struct program_op) op;
    VEC(struct program_buf) buf;
    VEC(struct program_group) group;
    VEC(int64_t) heap;
    VEC(struct read_use) use;
    VEC(struct read_dep) dep;
    VEC(struct read_pair) node, wait;
};

struct read_use {
    uint32_t op;
    struct program_use use;
};

struct read_dep {
    uint32_t op;
    struct program_dep dep;
};

struct read_pair {
    uint32_t op, what;
};

/* The meaning of a name is kept in the string table: `owner` says which kinds, `node` and `tag`
 * hold the numbers. */
enum { IS_OP = 1, IS_BUF = 2, IS_GROUP = 4 };

/* ---- words ---- */

static void fail(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void fail(struct reader *r, const char *fmt, ...)
{
    const char *at = r->word.at ? r->word.at : r->line_start;
    struct diag_pos pos = {.source = &r->source,
                           .at = at,
                           .line = r->line,
                           .column = (uint32_t)(at - r->line_start) + 1,
                           .length = r->word.len ? r->word.len : 1};
    va_list ap;

    if (r->status != TUCK_OK)
        return;
    r->status = TUCK_ESYNTAX;
    va_start(ap, fmt);
    diag_vadd(r->diags, TUCK_ERROR, pos, NULL, fmt, ap);
    va_end(ap);
}

static bool is_clean(struct reader *r)
{
    for (uint32_t i = 0; i < r->word.len; i++)
        if ((unsigned char)r->word.at[i] < ' ') {
            fail(r, "a control character");
            return false;
        }
    if (memchr(r->word.at, '"', r->word.len) != NULL) {
        fail(r, "a quote inside a word");
        return false;
    }
    return true;
}

/* The next word of the line; false at its end. */
static bool next_word(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r'))
        r->at++;
    r->word = (struct word){r->at, 0, false};
    if (r->at >= r->end || *r->at == '#' || r->status != TUCK_OK)
        return false;
    if (*r->at == '"') {
        const char *close = memchr(r->at + 1, '"', (size_t)(r->end - r->at - 1));
        if (close == NULL) {
            fail(r, "the quote is never closed");
            return false;
        }
        r->word = (struct word){r->at + 1, (uint32_t)(close - r->at - 1), true};
        r->at = close + 1;
        return is_clean(r);
    }
    while (r->at < r->end && *r->at != ' ' && *r->at != '\t' && *r->at != '\r')
        r->at++;
    r->word.len = (uint32_t)(r->at - r->word.at);
    return is_clean(r);
}

static bool is(const struct reader *r, const char *text)
{
    return !r->word.quoted && strlen(text) == r->word.len &&
           memcmp(text, r->word.at, r->word.len) == 0;
}

static str_id intern(struct reader *r)
{
    return str_intern(&r->p->str, r->word.at, r->word.len);
}

/* The word after a keyword, possibly in quotes. */
static bool need_text(struct reader *r, const char *what)
{
    if (next_word(r))
        return true;
    fail(r, "%s is missing", what);
    return false;
}

/* A word without quotes. */
static bool need_word(struct reader *r, const char *what)
{
    if (!need_text(r, what))
        return false;
    if (r->word.quoted)
        fail(r, "%s must not be in quotes", what);
    return !r->word.quoted;
}

static int64_t need_number(struct reader *r, const char *what)
{
    char text[32], *end;

    if (!need_word(r, what))
        return 0;
    if (r->word.len >= sizeof(text)) {
        fail(r, "%s must be a whole number from 0 on", what);
        return 0;
    }
    memcpy(text, r->word.at, r->word.len);
    text[r->word.len] = '\0';
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (*end != '\0' || end == text || errno != 0 || v < 0)
        fail(r, "%s must be a whole number from 0 on, found '%s'", what, text);
    return r->status == TUCK_OK ? v : 0;
}

static int64_t need_time(struct reader *r)
{
    char text[64], *end;

    if (!need_word(r, "the time"))
        return 0;
    if (r->word.len >= sizeof(text)) {
        fail(r, "a time must be a number of ns from 0 on");
        return 0;
    }
    memcpy(text, r->word.at, r->word.len);
    text[r->word.len] = '\0';
    double v = strtod(text, &end);
    if (*end != '\0' || end == text || !(v >= 0) || v > 9e15)
        fail(r, "a time must be a number of ns from 0 on, found '%s'", text);
    return r->status == TUCK_OK ? ps_round(v * PS_PER_NS) : 0;
}

/* A name that must be new. */
static str_id new_name(struct reader *r, unsigned kind, uint32_t number, const char *what)
{
    if (kind == IS_GROUP ? !need_text(r, what) : !need_word(r, what))
        return 0;
    if (kind != IS_GROUP && memchr(r->word.at, ',', r->word.len) != NULL)
        fail(r, "a name must not have a comma in it");
    str_id id = intern(r);
    struct str *s = &r->p->str.all.at[id];
    if (s->owner & kind)
        fail(r, "%s '%s' already exists", what, s->at);
    s->owner |= kind;
    if (kind == IS_OP)
        s->node = number;
    else if (kind == IS_BUF)
        s->tag = number;
    return id;
}

static uint32_t group_named(struct reader *r)
{
    if (!need_text(r, "the group"))
        return PROGRAM_NONE;
    str_id id = intern(r);
    for (uint32_t i = 0; i < r->group.len; i++)
        if (r->group.at[i].name == id)
            return i;
    fail(r, "there is no group '%s'", str_text(&r->p->str, id));
    return PROGRAM_NONE;
}

static uint8_t need_kind(struct reader *r)
{
    if (!need_word(r, "the kind of collective"))
        return 0;
    const char *name = str_text(&r->p->str, intern(r));
    tuck_coll kind = tuck_coll_by_name(name);
    if (kind == 0)
        fail(r, "there is no kind of collective '%s'", name);
    return (uint8_t)kind;
}

/* ---- lists of names ---- */

/* Iterates over the names of the comma-separated word r->word; false at the end. */
struct names {
    const char *at, *end;
};

static struct names need_names(struct reader *r, const char *what)
{
    if (!need_word(r, what))
        return (struct names){NULL, NULL};
    return (struct names){r->word.at, r->word.at + r->word.len};
}

static bool next_name(struct reader *r, struct names *n)
{
    if (n->at == NULL || n->at > n->end || r->status != TUCK_OK)
        return false;
    const char *comma = memchr(n->at, ',', (size_t)(n->end - n->at));
    const char *stop = comma ? comma : n->end;
    r->word = (struct word){n->at, (uint32_t)(stop - n->at), false};
    n->at = comma ? comma + 1 : n->end + 1;
    if (r->word.len == 0)
        fail(r, "a name is missing in the list");
    return r->word.len > 0;
}

static uint32_t named(struct reader *r, unsigned kind, const char *what)
{
    str_id id = str_find(&r->p->str, r->word.at, r->word.len);
    const struct str *s = id ? str_at(&r->p->str, id) : NULL;

    if (s != NULL && (s->owner & kind))
        return kind == IS_OP ? s->node : s->tag;
    fail(r, "there is no %s '%.*s' before this line", what, (int)r->word.len, r->word.at);
    return PROGRAM_NONE;
}

static void read_uses(struct reader *r, uint32_t op, enum program_access how)
{
    struct names n = need_names(r, "a list of buffers");

    while (next_name(r, &n)) {
        uint32_t buf = named(r, IS_BUF, "buffer");
        if (r->status != TUCK_OK)
            return;
        if (how == PROGRAM_WRITES) {
            if ((r->buf.at[buf].flags & PROGRAM_INPUT) || r->buf.at[buf].producer != PROGRAM_NONE) {
                fail(r, "buffer '%.*s' is made twice", (int)r->word.len, r->word.at);
                return;
            }
            r->buf.at[buf].producer = op;
        } else if (!(r->buf.at[buf].flags & PROGRAM_INPUT) &&
                   (r->buf.at[buf].producer == PROGRAM_NONE || r->buf.at[buf].producer == op)) {
            fail(r, "buffer '%.*s' is used before it is made", (int)r->word.len, r->word.at);
            return;
        }
        vec_push_in(r->a, &r->use, ((struct read_use){op, {buf, (uint8_t)how}}));
    }
}

static void read_order(struct reader *r, uint32_t op, unsigned flags)
{
    struct names n = need_names(r, "a list of ops");

    while (next_name(r, &n)) {
        uint32_t on = named(r, IS_OP, "op");
        if (on == op)
            fail(r, "an op cannot come after itself");
        vec_push_in(r->a, &r->dep, ((struct read_dep){op, {on, PROGRAM_NONE, (uint8_t)flags}}));
    }
}

static void read_ends(struct reader *r, uint32_t op)
{
    struct names n = need_names(r, "a list of collectives");

    while (next_name(r, &n)) {
        uint32_t c = named(r, IS_OP, "op");
        if (r->status != TUCK_OK)
            return;
        if (r->op.at[c].kind != PROGRAM_COLLECTIVE)
            fail(r, "'%.*s' is not a collective", (int)r->word.len, r->word.at);
        r->op.at[c].flags |= PROGRAM_ENDED;
        vec_push_in(r->a, &r->wait, ((struct read_pair){op, c}));
    }
}

static void read_nodes(struct reader *r, uint32_t op)
{
    struct names n = need_names(r, "a list of nodes");

    while (next_name(r, &n))
        vec_push_in(r->a, &r->node, ((struct read_pair){op, intern(r)}));
}

/* ---- lines ---- */

static const char *const op_words[] = {
    "nodes", "reads",   "mutates", "writes", "ends",    "after", "weak", "fake", "coll", "reduce",
    "group", "message", "by",      "async",  "barrier", "loop",  "nop",  "ns",   "flops"};
static const char *const buf_words[] = {"bytes", "flexible", "fixed",  "comm",    "group",
                                        "at",    "freeable", "output", "unwaited"};

static void unknown(struct reader *r, const char *const *known, size_t n)
{
    char text[64] = "";

    if (r->word.len < sizeof(text))
        memcpy(text, r->word.at, r->word.len);
    const char *near = near_word(text, known, n);
    if (near != NULL)
        fail(r, "unknown word '%.*s'; did you mean '%s'?", (int)r->word.len, r->word.at, near);
    else
        fail(r, "unknown word '%.*s'", (int)r->word.len, r->word.at);
}

static void read_op_word(struct reader *r, uint32_t id, struct program_op *op)
{
    if (is(r, "nodes"))
        read_nodes(r, id);
    else if (is(r, "reads"))
        read_uses(r, id, PROGRAM_READS);
    else if (is(r, "mutates"))
        read_uses(r, id, PROGRAM_MUTATES);
    else if (is(r, "writes"))
        read_uses(r, id, PROGRAM_WRITES);
    else if (is(r, "ends"))
        read_ends(r, id);
    else if (is(r, "after"))
        read_order(r, id, 0);
    else if (is(r, "weak"))
        read_order(r, id, PROGRAM_WEAK);
    else if (is(r, "fake"))
        read_order(r, id, PROGRAM_FAKE);
    else if (is(r, "coll"))
        op->coll = need_kind(r);
    else if (is(r, "reduce"))
        op->reduce_op = need_text(r, "the reduction") ? intern(r) : 0;
    else if (is(r, "group"))
        op->group = group_named(r);
    else if (is(r, "message"))
        op->message = need_number(r, "the message");
    else if (is(r, "by"))
        op->algorithm = need_word(r, "the algorithm") ? intern(r) : 0;
    else if (is(r, "async"))
        op->flags |= PROGRAM_ASYNC;
    else if (is(r, "barrier"))
        op->flags |= PROGRAM_BARRIER;
    else if (is(r, "loop"))
        op->flags |= PROGRAM_LOOP;
    else if (is(r, "nop"))
        op->flags |= PROGRAM_NOP;
    else if (is(r, "ns"))
        op->ps = need_time(r);
    else if (is(r, "flops"))
        op->flops = need_number(r, "the number of operations");
    else
        unknown(r, op_words, sizeof(op_words) / sizeof(*op_words));
}

static void read_op(struct reader *r)
{
    uint32_t id = r->op.len;
    struct program_op op = {.group = PROGRAM_NONE, .message = -1, .ps = -1};
    uint32_t nodes = r->node.len;
    int kind = 0;

    op.name = new_name(r, IS_OP, id, "op");
    if (!need_word(r, "the kind of the op"))
        return;
    while (kind < PROGRAM_KIND_END && !is(r, program_kind_name[kind]))
        kind++;
    if (kind == PROGRAM_KIND_END) {
        unknown(r, program_kind_name, PROGRAM_KIND_END);
        return;
    }
    op.kind = (uint8_t)kind;
    op.kernel = need_text(r, "the kernel") ? intern(r) : 0;
    vec_push_in(r->a, &r->op, op);
    while (next_word(r)) {
        struct program_op now = r->op.at[id];
        read_op_word(r, id, &now);
        r->op.at[id] = now;
    }
    if (r->node.len == nodes && op.kind != PROGRAM_COPY)
        vec_push_in(r->a, &r->node, ((struct read_pair){id, op.name}));
}

static void read_buffer(struct reader *r, bool input)
{
    uint32_t id = r->buf.len;
    struct program_buf b = {.offset = -1,
                            .producer = PROGRAM_NONE,
                            .group = PROGRAM_NONE,
                            .flags = PROGRAM_UNKNOWN | (input ? PROGRAM_INPUT : 0)};

    if (input && (r->op.len > 0 || r->buf.len > r->p->n_input))
        fail(r, "inputs come before all buffers and ops");
    b.name = new_name(r, IS_BUF, id, "buffer");
    while (next_word(r)) {
        if (r->word.quoted) {
            b.type = intern(r);
        } else if (is(r, "bytes")) {
            b.bytes = need_number(r, "the number of bytes");
            b.flags &= (uint8_t)~PROGRAM_UNKNOWN;
        } else if (is(r, "flexible")) {
            b.layout = PROGRAM_FLEXIBLE;
        } else if (is(r, "fixed")) {
            b.layout = PROGRAM_FIXED;
        } else if (is(r, "comm")) {
            b.layout = PROGRAM_COMM;
        } else if (is(r, "group")) {
            b.group = group_named(r);
        } else if (is(r, "at")) {
            b.offset = need_number(r, "the offset");
        } else if (is(r, "freeable")) {
            b.flags |= PROGRAM_FREEABLE;
            if (!input)
                fail(r, "only an input can be freed by the caller");
        } else if (is(r, "output")) {
            b.flags |= PROGRAM_OUTPUT;
        } else if (is(r, "unwaited")) {
            b.flags |= PROGRAM_UNWAITED;
        } else {
            unknown(r, buf_words, sizeof(buf_words) / sizeof(*buf_words));
        }
    }
    if (b.layout == PROGRAM_COMM && b.group == PROGRAM_NONE && r->status == TUCK_OK) {
        r->word = (struct word){NULL, 0, false};
        fail(r, "a comm buffer needs a group");
    }
    r->p->n_unknown += (b.flags & PROGRAM_UNKNOWN) != 0;
    vec_push_in(r->a, &r->buf, b);
    r->p->n_input += input;
}

static void read_group(struct reader *r)
{
    static const char *const words[] = {"size", "rank", "heap"};
    struct program_group g = {.rank = -1};
    int64_t heap = 0;

    g.name = new_name(r, IS_GROUP, 0, "group");
    while (next_word(r)) {
        if (is(r, "size"))
            g.size = need_number(r, "the size of the group");
        else if (is(r, "rank"))
            g.rank = need_number(r, "the rank in the group");
        else if (is(r, "heap"))
            heap = need_number(r, "the size of the heap");
        else
            unknown(r, words, 3);
    }
    vec_push_in(r->a, &r->group, g);
    vec_push_in(r->a, &r->heap, heap);
}

static void read_line(struct reader *r)
{
    static const char *const words[] = {"program", "group", "input", "buffer", "op"};

    if (!next_word(r))
        return;
    if (!r->headed && !is(r, "program")) {
        fail(r, "a program begins with the line `program NAME`");
    } else if (is(r, "program")) {
        if (r->headed)
            fail(r, "one program only");
        r->headed = true;
        r->p->name = need_text(r, "the program's name") ? intern(r) : 0;
        if (next_word(r))
            unknown(r, NULL, 0);
    } else if (is(r, "group")) {
        read_group(r);
    } else if (is(r, "input") || is(r, "buffer")) {
        read_buffer(r, is(r, "input"));
    } else if (is(r, "op")) {
        read_op(r);
    } else {
        unknown(r, words, sizeof(words) / sizeof(*words));
    }
}

/* ---- the arrays ---- */

static void finish(struct reader *r)
{
    struct program *p = r->p;
    uint32_t *order_at;

    p->op = r->op.at;
    p->n_op = r->op.len;
    p->buf = r->buf.at;
    p->n_buf = r->buf.len;
    p->group = r->group.at;
    p->n_group = r->group.len;
    p->heap = r->heap.at;
    ROW_STARTS(&p->arena, p, r->use, op, p->use_at);
    p->use = arena_array(&p->arena, struct program_use, r->use.len);
    for (uint32_t i = 0; i < r->use.len; i++)
        p->use[csr_place(p->use_at, r->use.at[i].op)] = r->use.at[i].use;
    ROW_STARTS(&p->arena, p, r->node, op, p->node_at);
    p->node = arena_array(&p->arena, str_id, r->node.len);
    p->node_id = arena_zeroed(&p->arena, r->node.len * sizeof(*p->node_id));
    for (uint32_t i = 0; i < r->node.len; i++)
        p->node[csr_place(p->node_at, r->node.at[i].op)] = r->node.at[i].what;
    ROW_STARTS(&p->arena, p, r->wait, op, p->wait_at);
    p->wait = arena_array(&p->arena, uint32_t, r->wait.len);
    for (uint32_t i = 0; i < r->wait.len; i++)
        p->wait[csr_place(p->wait_at, r->wait.at[i].op)] = r->wait.at[i].what;
    ROW_STARTS(&p->arena, p, r->dep, op, order_at);
    struct program_dep *order = arena_array(&p->arena, struct program_dep, r->dep.len);
    for (uint32_t i = 0; i < r->dep.len; i++)
        order[csr_place(order_at, r->dep.at[i].op)] = r->dep.at[i].dep;
    program_derive(p, order_at, order, &p->arena);
}

static void check(struct reader *r)
{
    r->word = (struct word){NULL, 0, false};
    if (!r->headed)
        fail(r, "the text has no program");
    for (uint32_t i = 0; i < r->buf.len; i++)
        if (r->buf.at[i].producer == PROGRAM_NONE && !(r->buf.at[i].flags & PROGRAM_INPUT))
            fail(r, "buffer '%s' is never made", str_text(&r->p->str, r->buf.at[i].name));
    uint32_t over = program_overflow(r->buf.at, r->buf.len);
    if (over < r->buf.len)
        fail(r, "the sizes of all buffers up to '%s' add up to more than 64 bits can hold",
             str_text(&r->p->str, r->buf.at[over].name));
}

static void do_read(void *arg)
{
    struct reader *r = arg;
    const char *end = r->source.text + r->source.len;

    for (const char *s = r->source.text; s < end && r->status == TUCK_OK;) {
        const char *stop = memchr(s, '\n', (size_t)(end - s));
        r->line++;
        r->line_start = r->at = s;
        r->end = stop ? stop : end;
        read_line(r);
        s = stop ? stop + 1 : end;
    }
    check(r);
    if (r->status == TUCK_OK)
        finish(r);
}

tuck_status program_read(const char *text, size_t len, const char *name,
                         const tuck_allocator *alloc, tuck_diags *diags, struct program **out)
{
    struct reader r = {.p = program_new(alloc),
                       .source = {.file = name, .text = text, .len = len},
                       .line_start = text,
                       .diags = diags};

    if (r.p == NULL)
        return TUCK_ENOMEM;
    r.a = &r.p->arena;
    tuck_status st = mem_guard(&r.p->mem, do_read, &r) ? r.status : TUCK_ENOMEM;
    if (st != TUCK_OK)
        program_free(r.p);
    else
        *out = r.p;
    return st;
}

static tuck_status from_text(const char *text, size_t len, const char *name,
                             const tuck_allocator *alloc, tuck_diags *diags, void *out)
{
    return program_read(text, len, name, alloc, diags, out);
}

tuck_status program_read_file(const char *path, const tuck_allocator *alloc, tuck_diags *diags,
                              struct program **out)
{
    return file_read(path, alloc, diags, from_text, out);
}

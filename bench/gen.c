/* usage: bench_gen NODES MODEL...  >graph.txt
 *
 * Writes one graph of at least NODES nodes: training steps of the given models, repeated. A MODEL
 * is the path of a pair of corpus graphs without its ending: fsdp/llama stands for
 * fsdp/llama_fw.txt and fsdp/llama_bw.txt, as PyTorch printed them. Every statement comes from
 * there, with its comment and annotation; names are made unique as FX does, and frees follow FX's
 * rule. Nothing of Tuck's reader or printer is used, so that the text can be used to test them.
 *
 *   step 1        fw ── values saved for the backward, by name ──▸ bw ── gradients ──┐
 *   step 2   ┌─── if annotations are equal: every second input of the next step ─────┘
 *            └─▸  fw ── …                     the other inputs are parameters of the graph
 *
 * Unused results are returned. Groups of ranks are renamed so that each model has its own.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/str.h"

enum { INDENT = 8 };

struct slot { /* where a statement mentions a value */
    uint32_t at, len;
    uint32_t local; /* inputs of the half come first, then its statements */
};

struct line {
    str_id comment;    /* the one above the statement, 0 if none */
    str_id base;       /* of the name: mm for mm_12 */
    str_id ann;        /* : "f32[4]", 0 = none */
    str_id rhs;        /* torch.ops.… */
    uint32_t slot_end; /* in half.slot; they begin where those of the previous line end */
};

struct input {
    str_id name, base, ann;
};

/* A forward or a backward graph. */
struct half {
    VEC(struct input) input;
    VEC(struct line) line;
    VEC(struct slot) slot;
    VEC(uint32_t) result; /* returned locals */
    VEC(str_id) name;     /* of every local */
};

struct value {
    str_id name, ann;
    uint32_t last; /* last statement that uses it, 0 if none */
};

struct stmt {
    const struct half *half;
    uint32_t line, value, arg; /* arg: its first in gen.arg */
};

/* A result of a half that is not used yet. */
struct offer {
    str_id name; /* its name in the corpus */
    uint32_t value;
    uint32_t next; /* next offer with the same annotation in the pool */
};

struct gen {
    struct mem mem;
    struct strtab str; /* owner: the name is used; tag: last number used with a base */
    struct buf tmp;
    VEC(struct half) half; /* two per model */
    VEC(str_id) group;     /* renamed groups: "MODEL/NAME"; the index is the new name */
    VEC(struct value) value;
    VEC(struct stmt) stmt;
    VEC(uint32_t) arg;
    VEC(uint32_t) input;    /* values that are parameters of the graph */
    VEC(struct offer) last; /* of the half before */
    VEC(struct offer) pool; /* of all halves before that; [0] unused */
    VEC(uint32_t) newest;   /* in the pool, by annotation */
    VEC(uint32_t) local;    /* local → value, for the current half */
    uint32_t matches;
};

_Noreturn static void fail(const char *what, const char *where)
{
    fprintf(stderr, "bench_gen: %s: %s\n", where, what);
    exit(1);
}

static str_id intern(struct gen *x, const char *s, size_t len)
{
    return str_intern(&x->str, s, len);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static size_t word_len(const char *s)
{
    size_t n = 0;

    while (is_word(s[n]))
        n++;
    return n;
}

/* ---- reading a half ---- */

static str_id base_of(struct gen *x, const char *s, size_t len)
{
    size_t n = len;

    while (n > 0 && s[n - 1] >= '0' && s[n - 1] <= '9')
        n--;
    return n < len && n > 1 && s[n - 1] == '_' ? intern(x, s, n - 1) : intern(x, s, len);
}

/* `name: "f32[4]"` at *s, which moves past it. */
static struct input read_name(struct gen *x, const char **s)
{
    const char *p = *s;
    size_t n = word_len(p);
    struct input in = {.name = intern(x, p, n), .base = base_of(x, p, n)};

    p += n;
    if (strncmp(p, ": \"", 3) == 0) {
        size_t len = 4 + strcspn(p + 3, "\"");
        in.ann = intern(x, p, len);
        p += len;
    }
    *s = p;
    return in;
}

/* Names of a half are found through the scratch fields of their strings. */
static void add_local(struct gen *x, struct half *h, str_id name, uint32_t serial)
{
    struct str *s = &x->str.all.at[name];

    s->owner = serial;
    s->node = h->name.len;
    vec_push(&x->mem, &h->name, name);
}

/* The number of the model's group, a string of digits at s. */
static uint32_t group_number(struct gen *x, const char *model, const char *s, size_t len)
{
    uint32_t i = 0;

    x->tmp.len = 0;
    buf_str(&x->tmp, model);
    buf_chr(&x->tmp, '/');
    buf_add(&x->tmp, s, len);
    str_id id = intern(x, x->tmp.at, x->tmp.len);
    while (i < x->group.len && x->group.at[i] != id)
        i++;
    if (i == x->group.len)
        vec_push(&x->mem, &x->group, id);
    return i;
}

/* A right-hand side: copies it with renamed groups, and records which values it mentions. */
static str_id read_rhs(struct gen *x, struct half *h, const char *model, const char *s,
                       const char *end, uint32_t serial)
{
    struct buf out;
    int depth = 0;

    buf_init(&out, &x->mem);
    while (s < end) {
        size_t n = word_len(s);

        if (*s == '\'') {
            n = strcspn(s + 1, "'\n");
            if (n > 0 && strspn(s + 1, "0123456789") == n)
                buf_printf(&out, "'%u'", group_number(x, model, s + 1, n));
            else
                buf_add(&out, s, n + 2);
            s += n + 2;
            continue;
        }
        if (n == 0) {
            depth += *s == '(';
            depth -= *s == ')';
            buf_chr(&out, *s++);
            continue;
        }
        str_id id = str_find(&x->str, s, n);
        bool member = out.len > 0 && out.at[out.len - 1] == '.';
        bool keyword = depth > 0 && (s[n] == '=' || strncmp(s + n, " = ", 3) == 0);
        if (id != 0 && str_at(&x->str, id)->owner == serial && !member && !keyword)
            vec_push(&x->mem, &h->slot,
                     ((struct slot){(uint32_t)out.len, (uint32_t)n, str_at(&x->str, id)->node}));
        buf_add(&out, s, n);
        s += n;
    }
    str_id text = intern(x, out.at, out.len);
    buf_destroy(&out);
    return text;
}

/* Where the statement's own text ends: before its frees, if it has any. */
static const char *without_frees(const char *s, const char *eol)
{
    static const char none[] = " = None";
    size_t len = (size_t)(eol - s), n = sizeof(none) - 1;

    if (len < n || memcmp(eol - n, none, n) != 0)
        return eol;
    for (const char *p = eol - n; p > s; p--)
        if (strncmp(p, ";  ", 3) == 0)
            return p;
    return eol;
}

static void read_result(struct gen *x, struct half *h, const char *s, const char *eol,
                        uint32_t serial)
{
    while (s < eol) {
        size_t n = word_len(s);
        str_id id = n ? str_find(&x->str, s, n) : 0;
        if (id != 0 && str_at(&x->str, id)->owner == serial)
            vec_push(&x->mem, &h->result, str_at(&x->str, id)->node);
        s += n ? n : 1;
    }
}

static char *read_file(struct gen *x, const char *path)
{
    FILE *f = fopen(path, "rb");
    struct buf b;
    char piece[4096];
    size_t n;

    if (f == NULL)
        fail("cannot open", path);
    buf_init(&b, &x->mem);
    while ((n = fread(piece, 1, sizeof(piece), f)) > 0)
        buf_add(&b, piece, n);
    fclose(f);
    buf_text(&b);
    return b.at; /* never freed: it is needed until the end */
}

static void read_half(struct gen *x, const char *model, const char *which)
{
    struct half h = {.input = {NULL, 0, 0}};
    uint32_t serial = x->half.len + 2; /* 1 marks the names of the new graph */
    str_id comment = 0;
    char path[4096];

    snprintf(path, sizeof(path), "%s_%s.txt", model, which);
    const char *s = strstr(read_file(x, path), "def forward(self");
    if (s == NULL)
        fail("no graph in class form", path);
    for (s += 16; strncmp(s, ", ", 2) == 0;) {
        s += 2;
        struct input in = read_name(x, &s);
        vec_push(&x->mem, &h.input, in);
        add_local(x, &h, in.name, serial);
    }
    s += strcspn(s, "\n");
    for (bool done = false; *s != '\0' && !done; s += strcspn(s, "\n")) {
        s++;
        const char *eol = s + strcspn(s, "\n"), *p = s + strspn(s, " ");

        if (p == eol)
            continue;
        if (*p == '#') {
            comment = intern(x, p, (size_t)(eol - p));
        } else if (strncmp(p, "return ", 7) == 0) {
            read_result(x, &h, p + 7, eol, serial);
            done = true;
        } else {
            struct input in = read_name(x, &p);
            if (strncmp(p, " = ", 3) != 0)
                fail("statement of an unknown kind", path);
            str_id rhs = read_rhs(x, &h, model, p + 3, without_frees(p, eol), serial);
            vec_push(&x->mem, &h.line, ((struct line){comment, in.base, in.ann, rhs, h.slot.len}));
            add_local(x, &h, in.name, serial);
            comment = 0;
        }
    }
    vec_push(&x->mem, &x->half, h);
}

/* ---- adding a half to the new graph ---- */

/* mm, mm_1, mm_2 …; a base that never occurs alone in the corpus is a word that Python reserves. */
static str_id fresh_name(struct gen *x, str_id base)
{
    struct str *b = &x->str.all.at[base];

    if (b->owner > 1 && b->tag == 0) {
        b->owner = 1;
        return base;
    }
    for (;;) {
        x->tmp.len = 0;
        buf_str(&x->tmp, str_text(&x->str, base));
        buf_printf(&x->tmp, "_%u", ++x->str.all.at[base].tag);
        str_id name = intern(x, x->tmp.at, x->tmp.len);
        if (x->str.all.at[name].owner != 1) {
            x->str.all.at[name].owner = 1;
            return name;
        }
    }
}

static uint32_t new_value(struct gen *x, str_id base, str_id ann)
{
    str_id name = fresh_name(x, base);

    vec_push(&x->mem, &x->value, ((struct value){name, ann, 0}));
    return x->value.len - 1;
}

/* The value that the previous half returned under this name: what a forward saves. */
static uint32_t *saved(struct gen *x, const struct input *in)
{
    for (uint32_t i = 0; i < x->last.len; i++) {
        struct offer *o = &x->last.at[i];
        if (o->name == in->name && o->value != 0 && x->value.at[o->value].ann == in->ann)
            return &o->value;
    }
    return NULL;
}

static uint32_t find_input(struct gen *x, const struct input *in)
{
    uint32_t *taken = saved(x, in), v;

    if (taken == NULL && in->ann < x->newest.len && x->newest.at[in->ann] != 0 &&
        x->matches++ % 2 == 0) {
        uint32_t *head = &x->newest.at[in->ann];
        taken = &x->pool.at[*head].value;
        *head = x->pool.at[*head].next;
    }
    if (taken != NULL) {
        v = *taken;
        *taken = 0;
        return v;
    }
    v = new_value(x, in->base, in->ann);
    vec_push(&x->mem, &x->input, v);
    return v;
}

/* What the previous half offered by name is now offered by annotation. */
static void fill_pool(struct gen *x)
{
    for (uint32_t i = 0; i < x->last.len; i++) {
        struct offer o = x->last.at[i];
        str_id ann = x->value.at[o.value].ann;

        if (o.value == 0)
            continue;
        while (x->newest.len <= ann)
            vec_push(&x->mem, &x->newest, 0);
        o.next = ann ? x->newest.at[ann] : 0;
        vec_push(&x->mem, &x->pool, o);
        if (ann != 0)
            x->newest.at[ann] = x->pool.len - 1;
    }
    x->last.len = 0;
}

static void add_half(struct gen *x, const struct half *h)
{
    uint32_t slot = 0;

    x->local.len = 0;
    for (uint32_t i = 0; i < h->input.len; i++)
        vec_push(&x->mem, &x->local, find_input(x, &h->input.at[i]));
    fill_pool(x);
    for (uint32_t i = 0; i < h->line.len; i++) {
        const struct line *l = &h->line.at[i];
        struct stmt st = {.half = h, .line = i, .arg = x->arg.len};

        for (; slot < l->slot_end; slot++) {
            uint32_t v = x->local.at[h->slot.at[slot].local];
            x->value.at[v].last = x->stmt.len + 1;
            vec_push(&x->mem, &x->arg, v);
        }
        st.value = new_value(x, l->base, l->ann);
        vec_push(&x->mem, &x->local, st.value);
        vec_push(&x->mem, &x->stmt, st);
    }
    for (uint32_t i = 0; i < h->result.len; i++) {
        uint32_t local = h->result.at[i];
        bool again = false;
        for (uint32_t k = 0; k < i && !again; k++)
            again = h->result.at[k] == local;
        if (!again)
            vec_push(&x->mem, &x->last, ((struct offer){h->name.at[local], x->local.at[local], 0}));
    }
}

/* ---- printing ---- */

static bool to_stdout(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    return fwrite(text, 1, len, stdout) == len;
}

static void put(struct gen *x, struct buf *b, str_id id)
{
    buf_add(b, str_text(&x->str, id), id ? str_at(&x->str, id)->len : 0);
}

static void print_free(struct gen *x, struct buf *b, uint32_t v, bool *any)
{
    buf_str(b, *any ? "" : ";  ");
    put(x, b, x->value.at[v].name);
    buf_str(b, " = ");
    *any = true;
}

static void print_stmt(struct gen *x, struct buf *b, uint32_t i, str_id *comment)
{
    const struct stmt *st = &x->stmt.at[i];
    const struct half *h = st->half;
    const struct line *l = &h->line.at[st->line];
    const struct slot *slot = h->slot.at + (st->line ? l[-1].slot_end : 0);
    uint32_t n_args = l->slot_end - (uint32_t)(slot - h->slot.at), from = 0;
    const char *rhs = str_text(&x->str, l->rhs);
    bool any = false;

    if (l->comment != 0 && l->comment != *comment) {
        *comment = l->comment;
        buf_str(b, i > 0 ? "\n" : "");
        buf_fill(b, ' ', INDENT);
        put(x, b, l->comment);
        buf_chr(b, '\n');
    }
    buf_fill(b, ' ', INDENT);
    put(x, b, x->value.at[st->value].name);
    put(x, b, l->ann);
    buf_str(b, " = ");
    for (uint32_t k = 0; k < n_args; k++) {
        buf_add(b, rhs + from, slot[k].at - from);
        put(x, b, x->value.at[x->arg.at[st->arg + k]].name);
        from = slot[k].at + slot[k].len;
    }
    buf_str(b, rhs + from);
    for (uint32_t k = 0; k < n_args; k++) {
        uint32_t v = x->arg.at[st->arg + k];
        if (x->value.at[v].last == i + 1) {
            x->value.at[v].last = 0;
            print_free(x, b, v, &any);
        }
    }
    if (x->value.at[st->value].last == 0)
        print_free(x, b, st->value, &any);
    buf_str(b, any ? "None\n" : "\n");
}

static void print_graph(struct gen *x)
{
    struct buf b;
    str_id comment = 0;
    bool any = false;

    for (uint32_t i = 1; i < x->pool.len; i++)
        if (x->pool.at[i].value != 0)
            x->value.at[x->pool.at[i].value].last = UINT32_MAX;
    buf_to(&b, &x->mem, to_stdout, NULL);
    buf_str(&b, "class GraphModule(torch.nn.Module):\n    def forward(self");
    for (uint32_t i = 0; i < x->input.len; i++) {
        buf_str(&b, ", ");
        put(x, &b, x->value.at[x->input.at[i]].name);
        put(x, &b, x->value.at[x->input.at[i]].ann);
    }
    buf_str(&b, "):\n");
    for (uint32_t i = 0; i < x->stmt.len; i++)
        print_stmt(x, &b, i, &comment);
    buf_fill(&b, ' ', INDENT);
    buf_str(&b, "return (");
    for (uint32_t i = 1; i < x->pool.len; i++) {
        if (x->pool.at[i].value == 0)
            continue;
        buf_str(&b, any ? ", " : "");
        put(x, &b, x->value.at[x->pool.at[i].value].name);
        any = true;
    }
    buf_str(&b, ")\n");
    buf_flush(&b);
    if (b.failed || fflush(stdout) != 0)
        fail("cannot write", "standard output");
    buf_destroy(&b);
}

int main(int argc, char **argv)
{
    struct gen x = {.matches = 0};
    unsigned long want = argc > 2 ? strtoul(argv[1], NULL, 10) : 0;

    if (want == 0) {
        fputs("usage: bench_gen NODES MODEL...\n", stderr);
        return 2;
    }
    mem_init(&x.mem, NULL);
    strtab_init(&x.str, &x.mem);
    buf_init(&x.tmp, &x.mem);
    for (int i = 2; i < argc; i++) {
        read_half(&x, argv[i], "fw");
        read_half(&x, argv[i], "bw");
    }
    vec_push(&x.mem, &x.value, (struct value){.last = 0}); /* 0: no value */
    vec_push(&x.mem, &x.pool, (struct offer){.next = 0});
    for (uint32_t i = 0; x.input.len + x.stmt.len + 1 < want || i % 2 == 1; i++)
        add_half(&x, &x.half.at[i % x.half.len]);
    fill_pool(&x);
    print_graph(&x);
    return 0;
}

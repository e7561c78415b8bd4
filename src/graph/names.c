/* Names of nodes, made unique the way PyTorch 2.13 does it.
 *
 * A candidate is turned into an identifier and split into base and number at a trailing _<digits>.
 * The last number used is remembered per base. A name is never used twice, even after its node is
 * erased. PyTorch separates globals when it prints; a graph that is text must do so at once: words
 * that its text uses for something else are taken, too.
 */
#include "base/utf8.h"
#include "graph/graph.h"

struct fx_names {
    struct slot {
        str_id name;    /* 0 = free */
        uint32_t node;  /* 0 if it is not (or no longer) the name of a node */
        uint32_t count; /* last number used with this base; valid if counted */
        bool counted;
        uint8_t flags; /* enum fx_name_flags */
    } * slot;
    uint32_t n_slot, n_used;
};

/* Names that a node must not have: Python's keywords and builtins, and globals of generated code.
 * Sorted, for a binary search. */
static const char *const reserved[] = {
    "ArithmeticError",
    "AssertionError",
    "AttributeError",
    "BaseException",
    "BaseExceptionGroup",
    "BlockingIOError",
    "BrokenPipeError",
    "BufferError",
    "BytesWarning",
    "ChildProcessError",
    "ConnectionAbortedError",
    "ConnectionError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "DeprecationWarning",
    "EOFError",
    "Ellipsis",
    "EncodingWarning",
    "EnvironmentError",
    "Exception",
    "ExceptionGroup",
    "False",
    "FileExistsError",
    "FileNotFoundError",
    "FloatingPointError",
    "FutureWarning",
    "GeneratorExit",
    "IOError",
    "ImportError",
    "ImportWarning",
    "IndentationError",
    "IndexError",
    "InterruptedError",
    "IsADirectoryError",
    "KeyError",
    "KeyboardInterrupt",
    "LookupError",
    "MemoryError",
    "ModuleNotFoundError",
    "NameError",
    "None",
    "NoneType",
    "NotADirectoryError",
    "NotImplemented",
    "NotImplementedError",
    "OSError",
    "OverflowError",
    "PendingDeprecationWarning",
    "PermissionError",
    "ProcessLookupError",
    "RecursionError",
    "ReferenceError",
    "ResourceWarning",
    "RuntimeError",
    "RuntimeWarning",
    "StopAsyncIteration",
    "StopIteration",
    "SyntaxError",
    "SyntaxWarning",
    "SystemError",
    "SystemExit",
    "TabError",
    "TimeoutError",
    "True",
    "TypeError",
    "UnboundLocalError",
    "UnicodeDecodeError",
    "UnicodeEncodeError",
    "UnicodeError",
    "UnicodeTranslateError",
    "UnicodeWarning",
    "UserWarning",
    "ValueError",
    "Warning",
    "ZeroDivisionError",
    "__build_class__",
    "__debug__",
    "__doc__",
    "__import__",
    "__loader__",
    "__name__",
    "__package__",
    "__spec__",
    "abs",
    "aiter",
    "all",
    "and",
    "anext",
    "any",
    "as",
    "ascii",
    "assert",
    "async",
    "await",
    "bin",
    "bool",
    "break",
    "breakpoint",
    "bytearray",
    "bytes",
    "callable",
    "chr",
    "class",
    "classmethod",
    "compile",
    "complex",
    "continue",
    "copyright",
    "credits",
    "def",
    "del",
    "delattr",
    "device",
    "dict",
    "dir",
    "divmod",
    "elif",
    "else",
    "enumerate",
    "eval",
    "except",
    "exec",
    "exit",
    "filter",
    "finally",
    "float",
    "for",
    "format",
    "from",
    "frozenset",
    "fx_pytree",
    "getattr",
    "global",
    "globals",
    "hasattr",
    "hash",
    "help",
    "hex",
    "id",
    "if",
    "import",
    "in",
    "inf",
    "input",
    "int",
    "is",
    "isinstance",
    "issubclass",
    "iter",
    "lambda",
    "len",
    "license",
    "list",
    "locals",
    "map",
    "max",
    "memoryview",
    "min",
    "nan",
    "next",
    "nonlocal",
    "not",
    "object",
    "oct",
    "open",
    "or",
    "ord",
    "pass",
    "pow",
    "print",
    "property",
    "pytree",
    "quit",
    "raise",
    "range",
    "repr",
    "return",
    "reversed",
    "round",
    "set",
    "setattr",
    "slice",
    "sorted",
    "staticmethod",
    "str",
    "sum",
    "super",
    "torch",
    "try",
    "tuple",
    "type",
    "vars",
    "while",
    "with",
    "yield",
    "zip",
};

bool name_is_reserved(const char *s, size_t len)
{
    size_t lo = 0, hi = sizeof(reserved) / sizeof(*reserved);

    /* no reserved word ends in a digit, as most names do */
    if (len > 0 && s[len - 1] >= '0' && s[len - 1] <= '9')
        return false;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        int cmp = strncmp(reserved[mid], s, len);

        if (cmp == 0 && reserved[mid][len] == '\0')
            return true;
        if (cmp < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return false;
}

void names_free(tuck_graph *g)
{
    if (g->names == NULL)
        return;
    struct mem *m = &g->store->mem;

    mem_free(m, g->names->slot, g->names->n_slot * sizeof(*g->names->slot));
    mem_free(m, g->names, sizeof(*g->names));
    g->names = NULL;
}

/* Names of a text are looked up in the order of their ids: sixteen consecutive ones are adjacent in
 * memory. What is in the way of one of them is in the way of most, so the search goes on in the
 * next sixteen; after the last, at the first and with the next place in each. */
static struct slot *probe(struct slot *slot, uint32_t n_slot, str_id name)
{
    uint32_t hash = (uint32_t)hash_u64(name >> 4);
    uint32_t i = (hash << 4 | ((name ^ hash >> 28) & 15)) & (n_slot - 1);

    while (slot[i].name != 0 && slot[i].name != name) {
        i += 16;
        if (i >= n_slot)
            i = (i + 1) & 15;
    }
    return &slot[i];
}

static bool is_full(uint32_t n_used, size_t n_slot)
{
    return n_used >= n_slot / 4 * 3;
}

static void grow(tuck_graph *g, uint32_t n_slot)
{
    struct fx_names *t = g->names;
    struct mem *m = &g->store->mem;
    struct slot *s = mem_resize(m, NULL, 0, mem_times(m, n_slot, sizeof(*s)));

    memset(s, 0, n_slot * sizeof(*s));
    for (uint32_t i = 0; i < t->n_slot; i++)
        if (t->slot[i].name != 0)
            *probe(s, n_slot, t->slot[i].name) = t->slot[i];
    mem_free(m, t->slot, t->n_slot * sizeof(*s));
    t->slot = s;
    t->n_slot = n_slot;
}

/* The slot of a name, created if it is new. Pointers are valid until the next call. */
static struct slot *slot_of(tuck_graph *g, str_id name)
{
    struct fx_names *t = g->names;
    struct slot *s = t->n_slot ? probe(t->slot, t->n_slot, name) : NULL;

    if (s != NULL && s->name != 0)
        return s;
    if (is_full(t->n_used, t->n_slot)) {
        grow(g, t->n_slot ? t->n_slot * 2 : 64);
        s = probe(t->slot, t->n_slot, name);
    }
    s->name = name;
    t->n_used++;
    return s;
}

/* Where the trailing _<digits> of an identifier begins, or len; its number in *number. */
static size_t cut(const char *s, size_t len, uint32_t *number)
{
    size_t i = len;
    uint64_t v = 0;

    while (i > 0 && s[i - 1] >= '0' && s[i - 1] <= '9')
        i--;
    if (i == len || i < 2 || s[i - 1] != '_' || len - i > 9)
        return len;
    for (size_t k = i; k < len; k++)
        v = v * 10 + (uint64_t)(s[k] - '0');
    *number = (uint32_t)v;
    return i - 1;
}

enum { N_BASES = 256 };

/* Bases found before, as there are few in a graph; 0 = none. */
struct bases {
    str_id at[N_BASES];
};

/* The base of an identifier and its trailing number; *numbered if there is one. `known` may be
 * NULL. */
static str_id base_of(tuck_graph *g, struct bases *known, str_id name, uint32_t *number,
                      bool *numbered)
{
    struct strtab *t = &g->store->str;
    const char *s = str_at(t, name)->at;
    size_t len = str_at(t, name)->len, base = cut(s, len, number);

    *numbered = base < len;
    if (base == len)
        return name;
    unsigned hash = (unsigned char)s[0] + (unsigned char)s[base - 1] * 7u + (unsigned)base * 31u;
    str_id id = known != NULL ? known->at[hash % N_BASES] : 0;
    if (id != 0 && str_at(t, id)->len == base && memcmp(str_at(t, id)->at, s, base) == 0)
        return id;
    id = str_find(t, s, base);
    if (id == 0)
        id = str_intern(t, s, base);
    if (known != NULL)
        known->at[hash % N_BASES] = id;
    return id;
}

static void take(tuck_graph *g, str_id name, uint32_t node)
{
    struct slot *s = slot_of(g, name);

    s->node = node;
    s->flags |= NAME_USED;
}

/* Enters a name from the text: the highest number of a base counts. */
static void remember(tuck_graph *g, struct bases *known, str_id name, uint32_t node)
{
    uint32_t number = 0;
    bool numbered;
    str_id base = base_of(g, known, name, &number, &numbered);

    take(g, name, node);
    struct slot *b = slot_of(g, base);
    if (!b->counted || b->count < number) {
        b->counted = true;
        b->count = number;
    }
}

static bool word_byte(char c)
{
    return byte_in_identifier[(unsigned char)c];
}

void names_add_words(tuck_graph *g, const char *s)
{
    struct strtab *t = &g->store->str;

    names_need(g);
    while (*s != '\0') {
        size_t n = 0;

        while (word_byte(s[n]))
            n++;
        if (n > 0 && !(*s >= '0' && *s <= '9') && !name_is_reserved(s, n)) {
            str_id id = str_find(t, s, n);
            slot_of(g, id ? id : str_intern(t, s, n))->flags |= NAME_WORD;
        }
        s += n > 0 ? n : 1;
        while (n > 0 && *s == '.' &&
               word_byte(s[1])) /* the rest of a dotted path means nothing by itself */
            for (s++; word_byte(*s);)
                s++;
    }
}

void names_add_param(tuck_graph *g, str_id text)
{
    const char *s = graph_str(g, text);

    names_need(g);
    s += strspn(s, "*");
    str_id id = str_find(&g->store->str, s, strlen(s));
    slot_of(g, id ? id : str_intern(&g->store->str, s, strlen(s)))->flags |= NAME_PARAM;
}

enum { N_SEEN = 1024 };

struct fill_args {
    tuck_graph *g;
    VEC(const tuck_graph *) todo;
    struct bases known;
    str_id seen[N_SEEN]; /* texts whose words were added; a graph uses a few hundred operators */
};

static void add_text(struct fill_args *x, str_id text)
{
    str_id *seen = &x->seen[text % N_SEEN];

    if (*seen != text)
        names_add_words(x->g, graph_str(x->g, text));
    *seen = text;
}

static void add_words_of(struct fill_args *x, const struct fx_node *node)
{
    if (node->kind == TUCK_CALL_FUNCTION && node->syntax == FX_CALL)
        add_text(x, node->target);
    for (uint32_t i = 0; i < node->n_vals; i++)
        if (node->vals[i].kind == TUCK_V_NAME || node->vals[i].kind == TUCK_V_SYM ||
            node->vals[i].kind == TUCK_V_TEXT)
            add_text(x, node->vals[i].a);
}

/* Names that nested graphs use without defining them: they belong to the graph around. */
static void add_inner(struct fill_args *x)
{
    tuck_graph *g = x->g;
    struct mem *m = &g->store->mem;

    vec_push(m, &x->todo, g);
    while (x->todo.len > 0) {
        const tuck_graph *c = x->todo.at[--x->todo.len];

        for (uint32_t i = 0; i < c->child.len; i++)
            vec_push(m, &x->todo, c->child.at[i]);
        if (c == g)
            continue;
        for_each_node (c, n) {
            const struct fx_node *node = &c->node.at[n];
            for (uint32_t i = 0; i < node->n_vals; i++)
                if (node->vals[i].kind == TUCK_V_NAME)
                    slot_of(g, node->vals[i].a)->flags |= NAME_INNER;
        }
    }
}

static void fill(void *p)
{
    struct fill_args *x = p;
    tuck_graph *g = x->g;
    uint32_t n_slot = 64;

    while (n_slot < UINT32_MAX / 4 && is_full(g->n_nodes + g->n_nodes / 8, n_slot))
        n_slot *= 2;
    grow(g, n_slot);
    names_add_words(g, "self");
    if (g->style.prologue == FX_BOXED)
        names_add_words(g, "args_list args_iter");
    if (g->style.prologue == FX_BYTECODE)
        names_add_words(g, "_fn_args");
    for (uint32_t i = 0; i < g->param.len; i++)
        names_add_param(g, g->param.at[i].text);
    for_each_node (g, n) {
        if (g->node.at[n].name != 0 && n != g->output)
            remember(g, &x->known, g->node.at[n].name, n);
        add_words_of(x, &g->node.at[n]);
    }
    /* `return` is printed without a name, so a node may be called output. */
    str_id output = g->output ? g->node.at[g->output].name : 0;
    if (output != 0 && !(slot_of(g, output)->flags & NAME_USED))
        remember(g, &x->known, output, g->output);
    add_inner(x);
}

/* A graph that is only read and printed never needs this. */
void names_need(tuck_graph *g)
{
    if (g->names != NULL)
        return;
    struct mem *m = &g->store->mem;
    struct fill_args x = {.g = g};

    g->names = mem_resize(m, NULL, 0, sizeof(*g->names));
    *g->names = (struct fx_names){.n_slot = 0};
    bool ok = mem_guard(m, fill, &x);
    vec_free(m, &x.todo);
    if (!ok) {
        names_free(g);
        mem_exhausted(m);
    }
}

static const struct slot *find(tuck_graph *g, str_id name)
{
    names_need(g);
    const struct slot *s = g->names->n_slot ? probe(g->names->slot, g->names->n_slot, name) : NULL;
    return s != NULL && s->name != 0 ? s : NULL;
}

uint32_t name_lookup(tuck_graph *g, str_id name)
{
    const struct slot *s = find(g, name);

    return s ? s->node : 0;
}

unsigned name_flags(tuck_graph *g, str_id name)
{
    const struct slot *s = find(g, name);

    return s ? s->flags : 0;
}

void name_enter(tuck_graph *g, str_id name, uint32_t node)
{
    uint32_t number = 0;
    bool numbered;

    if (g->names == NULL)
        return;
    str_id base = base_of(g, NULL, name, &number, &numbered);
    slot_of(g, name); /* everything that can fail comes first */
    slot_of(g, base)->counted = true;
    if (numbered)
        slot_of(g, base)->count = number;
    take(g, name, node);
}

void name_forget(tuck_graph *g, str_id name)
{
    if (g->names != NULL && g->names->n_slot != 0 && name != 0)
        probe(g->names->slot, g->names->n_slot, name)->node = 0;
}

static bool word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Every run of other characters becomes one '_'; a leading digit gets one in front. */
static void clean(struct buf *b, const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (word_char(s[i]))
            buf_chr(b, s[i]);
        else if (i == 0 || word_char(s[i - 1]))
            buf_chr(b, '_');
    }
    if (b->len == 0)
        buf_str(b, "_unnamed");
    if (b->at[0] >= '0' && b->at[0] <= '9') {
        buf_chr(b, '_');
        memmove(b->at + 1, b->at, b->len - 1);
        b->at[0] = '_';
    }
}

static bool taken(tuck_graph *g, const char *s, size_t len)
{
    str_id id = str_find(&g->store->str, s, len);

    return (id != 0 && name_flags(g, id) != 0) || name_is_reserved(s, len);
}

struct create_args {
    tuck_graph *g;
    const char *candidate;
    size_t len;
    struct buf b;
    str_id out;
};

static void do_create(void *p)
{
    struct create_args *x = p;
    tuck_graph *g = x->g;
    struct buf *b = &x->b;
    uint32_t number = 0;

    names_need(g);
    clean(b, x->candidate, x->len);
    size_t base = cut(b->at, b->len, &number);
    str_id base_id = str_intern(&g->store->str, b->at, base);
    bool clash = taken(g, b->at, b->len);

    if (base == b->len || clash) {
        const struct slot *s = slot_of(g, base_id);
        number = s->counted ? s->count : 0;
    }
    while (clash) {
        b->len = base;
        buf_chr(b, '_');
        buf_int(b, ++number);
        clash = taken(g, b->at, b->len);
    }
    x->out = str_intern(&g->store->str, b->at, b->len);
    slot_of(g, x->out); /* so that name_enter() finds both */
}

str_id name_create(tuck_graph *g, const char *candidate, size_t len)
{
    struct mem *m = &g->store->mem;
    struct create_args x = {.g = g, .candidate = candidate, .len = len};

    buf_init(&x.b, m);
    bool ok = mem_guard(m, do_create, &x);
    buf_destroy(&x.b);
    if (!ok)
        mem_exhausted(m);
    return x.out;
}

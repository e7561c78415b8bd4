/* Names of nodes, made unique the way PyTorch 2.13 makes them.
 *
 * A candidate is cleaned into an identifier and cut into base and number at a trailing _<digits>. The
 * last number given out is remembered per base.
 */
#include "fx/graph.h"

struct fx_names {
    struct slot {
        str_id name; /* 0 = free */
        uint32_t node;  /* 0 = not the name of a node (any more) */
        uint32_t count; /* last number given to this base; meaningful if counted */
        bool counted;
    } *slot;
    uint32_t n_slot, n_used;
};

/* What a node must not be called: Python's keywords and builtins, and the globals of generated code.
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

static struct slot *probe(struct slot *slot, uint32_t n_slot, str_id name)
{
    uint32_t i = hash_u64(name) & (n_slot - 1);

    while (slot[i].name != 0 && slot[i].name != name)
        i = (i + 1) & (n_slot - 1);
    return &slot[i];
}

/* The slot of a name, made if it is new. Pointers hold until the next call. */
static struct slot *slot_of(tuck_graph *g, str_id name)
{
    struct fx_names *t = g->names;
    struct mem *m = &g->store->mem;

    if (t->n_used >= t->n_slot / 2) {
        uint32_t n = t->n_slot ? t->n_slot * 2 : 64;
        struct slot *s = mem_resize(m, NULL, 0, mem_times(m, n, sizeof(*s)));

        memset(s, 0, n * sizeof(*s));
        for (uint32_t i = 0; i < t->n_slot; i++)
            if (t->slot[i].name != 0)
                *probe(s, n, t->slot[i].name) = t->slot[i];
        mem_free(m, t->slot, t->n_slot * sizeof(*s));
        t->slot = s;
        t->n_slot = n;
    }
    struct slot *s = probe(t->slot, t->n_slot, name);
    if (s->name == 0) {
        s->name = name;
        t->n_used++;
    }
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

static void remember(tuck_graph *g, str_id name, uint32_t node)
{
    const struct str *s = str_at(&g->store->str, name);
    uint32_t number = 0;
    size_t base = cut(s->at, s->len, &number);
    str_id base_id = base < s->len ? str_intern(&g->store->str, s->at, base) : name;

    slot_of(g, name)->node = node;
    struct slot *b = slot_of(g, base_id);
    if (!b->counted || b->count < number) {
        b->counted = true;
        b->count = number;
    }
}

/* A graph that is only read and printed never pays for this. */
static void need(tuck_graph *g)
{
    if (g->names != NULL)
        return;
    struct mem *m = &g->store->mem;

    g->names = mem_resize(m, NULL, 0, sizeof(*g->names));
    *g->names = (struct fx_names){.n_slot = 0};
    for_each_node(g, n)
        if (g->node.at[n].name != 0)
            remember(g, g->node.at[n].name, n);
}

uint32_t name_lookup(tuck_graph *g, str_id name)
{
    need(g);
    if (g->names->n_slot == 0)
        return 0;
    struct slot *s = probe(g->names->slot, g->names->n_slot, name);
    return s->name != 0 ? s->node : 0;
}

void name_enter(tuck_graph *g, str_id name, uint32_t node)
{
    if (g->names != NULL)
        remember(g, name, node);
}

void name_forget(tuck_graph *g, str_id name)
{
    if (g->names != NULL && g->names->n_slot != 0 && name != 0) {
        struct slot *s = probe(g->names->slot, g->names->n_slot, name);
        s->node = 0;
    }
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

    return name_is_reserved(s, len) || (id != 0 && name_lookup(g, id) != 0);
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

    need(g);
    clean(b, x->candidate, x->len);
    size_t base = cut(b->at, b->len, &number);
    str_id base_id = str_intern(&g->store->str, b->at, base);

    if (base == b->len || taken(g, b->at, b->len)) {
        struct slot *s = slot_of(g, base_id);
        number = s->counted ? s->count : 0;
    }
    while (taken(g, b->at, b->len)) {
        b->len = base;
        buf_printf(b, "_%u", ++number);
    }
    x->out = str_intern(&g->store->str, b->at, b->len);
    struct slot *s = slot_of(g, base_id);
    s->counted = true;
    s->count = number;
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

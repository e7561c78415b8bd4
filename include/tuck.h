/* Tuck: tucks communication under computation.
 *
 * The public interface of libtuck: read the graph of a training step as PyTorch prints it, look at
 * it, edit it, print it again.
 *
 *   tuck_diags *diags = tuck_diags_new(NULL);
 *   tuck_doc *doc;
 *   if (tuck_doc_read_file("graph.txt", NULL, diags, &doc) == TUCK_OK) {
 *       tuck_graph *g = tuck_doc_graph(doc, 0);
 *       for (tuck_node n = tuck_graph_first(g); !tuck_is_none(n); n = tuck_graph_next(g, n))
 *           puts(tuck_node_name(g, n));
 *       tuck_doc_free(doc);
 *   }
 *
 * Conventions
 * - A function that can fail returns a tuck_status and adds diagnostics; outputs come last and are
 *   written only on success. Nothing here prints or exits.
 * - Options are structs whose first member is their size. Fill one with its tuck_..._options_init()
 *   and change what should differ; a program that was compiled with an older header keeps working.
 *   A NULL pointer means the defaults.
 * - Results are opaque. Ask them by functions, print them as a table or as JSON, free them. Objects
 *   may be NULL in the functions that free them.
 * - Strings handed out belong to the object they came from and live as long as it does.
 * - Times are picoseconds in int64_t, and their names end in _ps. -1: not known.
 * - What may still change is in tuck_experimental.h.
 *
 * Threads. A document, its graphs, their copies and everything made from them share state: use them
 * from one thread at a time; different documents, and clusters and profiles once made, may be used
 * by several threads at once.
 */
#ifndef TUCK_H
#define TUCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TUCK_VERSION_MAJOR 0
#define TUCK_VERSION_MINOR 2
#define TUCK_VERSION_PATCH 0
#define TUCK_VERSION "0.2.0"
/* For #if: 0.2.0 is 200, 1.12.3 is 11203. */
#define TUCK_VERSION_NUMBER                                                                        \
    (TUCK_VERSION_MAJOR * 10000 + TUCK_VERSION_MINOR * 100 + TUCK_VERSION_PATCH)

#define TUCK_API __attribute__((visibility("default")))
#define TUCK_MUST_CHECK __attribute__((warn_unused_result))

/* The version of the library that is running: TUCK_VERSION and TUCK_VERSION_NUMBER when it was
 * built. */
TUCK_API const char *tuck_version(void);
TUCK_API unsigned tuck_version_number(void);

/* ---- Status, memory, output ---- */

typedef enum tuck_status {
    TUCK_OK = 0,
    TUCK_ENOMEM = -1, /* the allocator refused */
    TUCK_EINVAL = -2, /* the call makes no sense: bad argument, node of another graph, name taken */
    TUCK_ESYNTAX = -3, /* the text is not a graph, or a broken one: see the diagnostics */
    TUCK_EIO = -4,     /* a file could not be read or written */
    TUCK_ELINT = -5,   /* the graph breaks a rule: see the diagnostics */
    TUCK_EEXEC = -6,   /* the graph holds operands that Python could not evaluate */
} tuck_status;

/* "out of memory", "bad argument", … */
TUCK_API const char *tuck_status_text(tuck_status status);

/* resize(ctx, NULL, 0, n) allocates, resize(ctx, p, old, n) grows or shrinks, resize(ctx, p, old,
 * 0) frees and returns NULL. NULL for n > 0 means: no memory. */
typedef struct tuck_allocator {
    void *ctx;
    void *(*resize)(void *ctx, void *ptr, size_t old_size, size_t new_size);
} tuck_allocator;

/* Receives text in pieces, in order. False ends the printing with TUCK_EIO. */
typedef bool (*tuck_write_fn)(void *ctx, const char *text, size_t len);
/* One for files: ctx is a FILE * of <stdio.h>; false for NULL, a file that was not opened. */
TUCK_API bool tuck_write_file(void *ctx, const char *text, size_t len);

/* "4096", "25MB", "1.5GiB": 1 KB = 1 KiB = 1024 bytes, and so on. -1: not a size. */
TUCK_API int64_t tuck_parse_bytes(const char *text);
enum { TUCK_BYTES_TEXT = 32 };
/* 1536 → "1.50 KiB"; below 0: "?". Returns `out`. */
TUCK_API const char *tuck_format_bytes(int64_t bytes, char out[TUCK_BYTES_TEXT]);

/* How results are printed. */
typedef enum tuck_print_form {
    TUCK_PRINT_TABLE, /* for people */
    TUCK_PRINT_JSON,  /* for programs: docs/files.md */
    TUCK_PRINT_BRIEF, /* a table of few lines, where there is one */
} tuck_print_form;

typedef enum tuck_colour { TUCK_PLAIN, TUCK_COLOURED } tuck_colour;

/* More than is printed by default; flags. */
typedef enum tuck_detail {
    TUCK_DETAIL_NONE = 0,
    TUCK_DETAIL_TIMES = 1,    /* how long each pass took */
    TUCK_DETAIL_TIMELINE = 2, /* every op, with when it runs */
    TUCK_DETAIL_STATS = 4,    /* how many graphs were lowered and simulated for it */
} tuck_detail;

/* Where a JSON document is one of several in one text, {"schema": 1, "file": FILE, KEY:
 * [...]}: what it says of itself. The document with index 0 begins the text,
 * tuck_print_items_end() ends it. */
typedef struct tuck_print_item {
    size_t size;
    const char *file, *key;
    size_t index;      /* in the list */
    size_t graph;      /* its number in the document that was read */
    const char *title; /* or "" */
    uint32_t line;
    int rank;      /* -1: none */
    int64_t world; /* ranks that were simulated together; 0: it says nothing of that */
} tuck_print_item;

#define TUCK_NO_ROWS 0x80000000u

typedef struct tuck_print_options {
    size_t size;
    tuck_print_form form;
    tuck_colour colour;
    uint32_t top;                /* rows of a list; 0: the default; TUCK_NO_ROWS: none */
    uint32_t width;              /* columns of the terminal; 0: no limit */
    uint32_t detail;             /* of tuck_detail */
    const tuck_print_item *item; /* of JSON; NULL: a document of its own */
} tuck_print_options;

TUCK_API void tuck_print_options_init(tuck_print_options *o);
TUCK_API void tuck_print_item_init(tuck_print_item *item);
TUCK_API tuck_status tuck_print_items_end(tuck_write_fn write, void *ctx);

/* ---- Diagnostics ---- */

typedef enum tuck_severity { TUCK_WARNING, TUCK_ERROR } tuck_severity;

typedef struct tuck_diag {
    tuck_severity severity;
    const char *file;       /* "" where there is none */
    uint32_t line, column;  /* from 1; 0 = unknown. Columns count bytes */
    const char *message;    /* no final stop; a list of names may be on a line of its own */
    const char *note;       /* a hint, or NULL */
    const char *source;     /* the line it is about (a long one: the part around it), or NULL */
    uint32_t caret, length; /* what to underline in source */
} tuck_diag;

typedef struct tuck_diags tuck_diags;

/* A list that calls append to. NULL allocator: malloc. NULL on no memory. */
TUCK_API tuck_diags *tuck_diags_new(const tuck_allocator *alloc);
TUCK_API void tuck_diags_free(tuck_diags *d);
TUCK_API void tuck_diags_clear(tuck_diags *d);
TUCK_API size_t tuck_diags_count(const tuck_diags *d);
TUCK_API size_t tuck_diags_errors(const tuck_diags *d);
TUCK_API const tuck_diag *tuck_diags_at(const tuck_diags *d, size_t i);
/* Add a copy of a diagnostic, made up or from another list. */
TUCK_API void tuck_diags_append(tuck_diags *d, const tuck_diag *diag);

/* One diagnostic as compilers write it: file:line:column: error: message, the line, a caret. */
TUCK_API tuck_status tuck_diag_print(const tuck_diag *d, tuck_colour colour, tuck_write_fn write,
                                     void *ctx);
/* All of a list, in order. */
TUCK_API tuck_status tuck_diags_print(const tuck_diags *d, tuck_colour colour, tuck_write_fn write,
                                      void *ctx);

/* ---- Documents: a text with one or more graphs in it ---- */

typedef struct tuck_doc tuck_doc;
typedef struct tuck_graph tuck_graph;

typedef struct tuck_read_options {
    size_t size;
    const tuck_allocator *alloc; /* NULL: malloc */
} tuck_read_options;

TUCK_API void tuck_read_options_init(tuck_read_options *o);

/* Read every graph of a text: a readable dump, gm.code, a log, fx_graph_runnable, str(graph), an
 * exported program (docs/graph-text.md). `name` is used in diagnostics. Any error means no
 * document; a graph that its text ends inside of is left out with a warning, as long as there is
 * another. A text without a graph is an error. options and diags may be NULL. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_doc_read_text(const char *text, size_t len,
                                                        const char *name,
                                                        const tuck_read_options *options,
                                                        tuck_diags *diags, tuck_doc **doc_out);
TUCK_API TUCK_MUST_CHECK tuck_status tuck_doc_read_file(const char *path,
                                                        const tuck_read_options *options,
                                                        tuck_diags *diags, tuck_doc **doc_out);
TUCK_API void tuck_doc_free(tuck_doc *doc);

TUCK_API size_t tuck_doc_count(const tuck_doc *doc);
TUCK_API tuck_graph *tuck_doc_graph(const tuck_doc *doc, size_t i); /* owned by the document */

/* Where a graph came from: the title of a log's banner ("AFTER POST GRAD"), or "", the rank of its
 * log lines, or -1, the line its text began at. */
TUCK_API const char *tuck_doc_title(const tuck_doc *doc, size_t i);
TUCK_API int tuck_doc_rank(const tuck_doc *doc, size_t i);
TUCK_API uint32_t tuck_doc_line(const tuck_doc *doc, size_t i);

/* ---- Printing ---- */

typedef enum tuck_form {
    TUCK_FORM_TEXT, /* as it was read; byte for byte when nothing changed */
    TUCK_FORM_CODE, /* gm.code: a bare def forward, no annotations of values, no comments */
    TUCK_FORM_EXEC, /* Python that exec() accepts; or TUCK_EEXEC */
} tuck_form;

TUCK_API tuck_status tuck_doc_print(const tuck_doc *doc, tuck_form form, tuck_diags *diags,
                                    tuck_write_fn write, void *ctx);
TUCK_API tuck_status tuck_graph_print(const tuck_graph *g, tuck_form form, tuck_diags *diags,
                                      tuck_write_fn write, void *ctx);

/* Graphviz. */
TUCK_API tuck_status tuck_graph_dot(const tuck_graph *g, tuck_write_fn write, void *ctx);

/* ---- Graphs ---- */

/* A node of one graph. Ids are small, dense and never used again in the same graph. */
typedef struct tuck_node {
    uint32_t id;
} tuck_node;

static inline bool tuck_is_none(tuck_node n)
{
    return n.id == 0;
}

typedef enum tuck_kind {
    TUCK_PLACEHOLDER = 1, /* an input */
    TUCK_GET_ATTR,        /* self.a.b */
    TUCK_CALL_FUNCTION,   /* torch.ops.aten.mm.default(…), a + b, x[0] */
    TUCK_CALL_METHOD,     /* x.size(0): target "size", the object is the first argument */
    TUCK_CALL_MODULE,     /* self.linear(x) */
    TUCK_OUTPUT,          /* return …; its one argument is what is returned */
    TUCK_OPAQUE,          /* a statement kept word for word, a barrier to everything */
    TUCK_RESULT,          /* one more name that the opaque statement before it assigns */
} tuck_kind;

/* An empty graph that is printed as class `name` (NULL: GraphModule). */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_new(const char *name, const tuck_allocator *alloc,
                                                    tuck_graph **g_out);
/* A copy that shares strings with g and can outlive it; nested graphs come along. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_copy(const tuck_graph *g, tuck_graph **g_out);
/* For graphs from the two functions above; those of a document go with it. */
TUCK_API void tuck_graph_free(tuck_graph *g);

TUCK_API const char *tuck_graph_name(const tuck_graph *g); /* the class, "" for a bare function */
TUCK_API size_t tuck_graph_size(const tuck_graph *g);      /* nodes, nested graphs not counted */
TUCK_API tuck_node tuck_graph_first(const tuck_graph *g);
TUCK_API tuck_node tuck_graph_last(const tuck_graph *g);
TUCK_API tuck_node tuck_graph_next(const tuck_graph *g, tuck_node n);
TUCK_API tuck_node tuck_graph_prev(const tuck_graph *g, tuck_node n);
TUCK_API tuck_node tuck_graph_output(const tuck_graph *g); /* none where nothing is returned */
TUCK_API tuck_node tuck_graph_find(tuck_graph *g, const char *name);
/* An upper bound of all node ids, for arrays indexed by them. */
TUCK_API uint32_t tuck_graph_id_end(const tuck_graph *g);

/* Graphs nested in this one, read as attributes: class cond_true_0 for self.cond_true_0. */
TUCK_API size_t tuck_graph_child_count(const tuck_graph *g);
TUCK_API tuck_graph *tuck_graph_child(const tuck_graph *g, size_t i);

/* ---- Nodes ---- */

TUCK_API tuck_kind tuck_node_kind(const tuck_graph *g, tuck_node n);
TUCK_API const char *tuck_node_name(const tuck_graph *g, tuck_node n);
/* What is called or read, as the text spells it: "torch.ops.aten.mm.default", "operator.add" for a
 * plus, "layers.0.weight" for an attribute, the parameter's name for a placeholder. */
TUCK_API const char *tuck_node_target(const tuck_graph *g, tuck_node n);
/* The annotation between the quotes: f32[8, 4][4, 1]cuda:0; "" where there is none. */
TUCK_API const char *tuck_node_annotation(const tuck_graph *g, tuck_node n);
/* Where it was in the text it was read from; 0 for nodes made since. */
TUCK_API uint32_t tuck_node_line(const tuck_graph *g, tuck_node n);

/* A diagnostic about a node, with the place it was read from (none: about the graph; g NULL: about
 * nothing in particular). For passes of a caller. d may be NULL; the message is copied. */
TUCK_API void tuck_diags_add(tuck_diags *d, tuck_severity severity, const tuck_graph *g,
                             tuck_node n, const char *message);

typedef enum tuck_value_kind {
    TUCK_V_NONE = 1,
    TUCK_V_BOOL,
    TUCK_V_INT,    /* fits 64 bits */
    TUCK_V_FLOAT,  /* inf and nan too */
    TUCK_V_NUMBER, /* any other number, as text: complex, integers beyond 64 bits */
    TUCK_V_STR,    /* its text is what the quotes mean, escapes resolved */
    TUCK_V_BYTES,  /* as text, b'..' */
    TUCK_V_DTYPE,  /* torch.float32 */
    TUCK_V_LAYOUT, /* torch.strided */
    TUCK_V_FORMAT, /* torch.contiguous_format */
    TUCK_V_DEVICE, /* device(type='cuda', index=0) */
    TUCK_V_NAME,   /* any other global used as a value: Ellipsis, C.RED, torch.per_tensor_affine */
    TUCK_V_OP,     /* an operator used as a value: torch.ops.aten.mm.default */
    TUCK_V_SYM,    /* an expression of symbols: 2*s0 + 1 */
    TUCK_V_TEXT,   /* part of a TUCK_V_RAW */
    TUCK_V_NODE,   /* another node's result */
    TUCK_V_KEY,    /* inside a TUCK_V_CALL: the next value's keyword */
    TUCK_V_LIST,   /* containers from here on */
    TUCK_V_TUPLE,
    TUCK_V_SIZE, /* torch.Size([..]) */
    TUCK_V_DICT, /* key, value, key, value … */
    TUCK_V_SET,
    TUCK_V_SLICE, /* start, stop, step */
    TUCK_V_CALL,  /* Name(..): a TUCK_V_NAME, then the arguments */
    TUCK_V_RAW,   /* what has no other reading, word for word: TUCK_V_TEXT and TUCK_V_NODE pieces */
} tuck_value_kind;

/* One value of an argument list. Containers are followed by their items, so a whole argument list
 * is one flat array; use the functions below rather than the members. */
typedef struct tuck_value {
    uint8_t kind, flags;
    uint16_t unused;
    uint32_t a;
    union {
        int64_t i;
        double f;
        uint64_t w;
    } u;
} tuck_value;

TUCK_API size_t tuck_node_arg_count(const tuck_graph *g, tuck_node n);
TUCK_API const tuck_value *tuck_node_arg(const tuck_graph *g, tuck_node n, size_t i);
TUCK_API size_t tuck_node_kwarg_count(const tuck_graph *g, tuck_node n);
TUCK_API const char *tuck_node_kwarg_name(const tuck_graph *g, tuck_node n, size_t i);
TUCK_API const tuck_value *tuck_node_kwarg(const tuck_graph *g, tuck_node n, size_t i);

static inline tuck_value_kind tuck_value_kind_of(const tuck_value *v)
{
    return (tuck_value_kind)v->kind;
}

TUCK_API bool tuck_value_is_container(const tuck_value *v);
TUCK_API size_t tuck_value_len(const tuck_value *v);                       /* items; 0 for atoms */
TUCK_API const tuck_value *tuck_value_item(const tuck_value *v, size_t i); /* NULL: no such item */
TUCK_API const tuck_value *tuck_value_next(const tuck_value *v); /* what follows v and its items */
TUCK_API int64_t tuck_value_int(const tuck_value *v);            /* int or bool, else 0 */
TUCK_API double tuck_value_float(const tuck_value *v);           /* float, int or bool, else 0 */
TUCK_API tuck_node tuck_value_node(const tuck_value *v);         /* none if it is not one */
/* A string's content; for atoms that are kept as text, that text; "" for the rest. */
TUCK_API const char *tuck_value_text(const tuck_graph *g, const tuck_value *v);

/* Users: every occurrence of n in another node's arguments, one by one.
 *   for (tuck_use u = tuck_node_uses(g, n); u.id; u = tuck_use_next(g, u)) … tuck_use_user(g, u) */
typedef struct tuck_use {
    uint32_t id;
} tuck_use;
TUCK_API size_t tuck_node_use_count(const tuck_graph *g, tuck_node n);
TUCK_API tuck_use tuck_node_uses(const tuck_graph *g, tuck_node n);
TUCK_API tuck_use tuck_use_next(const tuck_graph *g, tuck_use u);
TUCK_API tuck_node tuck_use_user(const tuck_graph *g, tuck_use u);

/* ---- Types ----
 * The dtype, sizes, strides and device of every node, from the inputs on. Where the text is
 * annotated the annotation is used. Where there is no rule the type is unknown, and nothing
 * downstream guesses. An edit makes the types of new nodes unknown until the next call. */
typedef enum tuck_check {
    TUCK_TRUST_ANNOTATIONS,
    TUCK_CHECK_ANNOTATIONS, /* a warning where the operands say otherwise */
} tuck_check;

TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_infer(tuck_graph *g, tuck_check check,
                                                      tuck_diags *diags);

/* As an annotation is written, f32[8, s0][s0, 1]cuda:0; lists of results in
 * parentheses; "?" = unknown. */
TUCK_API tuck_status tuck_node_type(const tuck_graph *g, tuck_node n, tuck_write_fn write,
                                    void *ctx);
/* The bytes of a tensor; false: no tensor, unknown, or with symbols in its sizes. */
TUCK_API bool tuck_node_bytes(const tuck_graph *g, tuck_node n, int64_t *out);

/* ---- Process groups ----
 * What is known of
 * the groups that collectives name. A group that is a value in the graph goes by its definition:
 * "self._opaque_obj0", "mesh_get_process_group(arg0_1, 1)". Sizes come from collectives that print
 * them and from a runnable script, then from the calls below; later ones win. */

TUCK_API size_t tuck_graph_group_count(const tuck_graph *g);
TUCK_API const char *tuck_graph_group_name(const tuck_graph *g, size_t i);
TUCK_API int64_t tuck_graph_group_size(const tuck_graph *g, size_t i);         /* 0 = unknown */
TUCK_API int64_t tuck_graph_group_rank(const tuck_graph *g, size_t i);         /* -1 = unknown */
TUCK_API const int64_t *tuck_graph_group_ranks(const tuck_graph *g, size_t i); /* or NULL */
TUCK_API int tuck_node_group(const tuck_graph *g, tuck_node n); /* of a collective; -1 = none */
TUCK_API int64_t tuck_graph_rank(const tuck_graph *g); /* global, of this text; -1 = unknown */

/* ranks: members as global ranks, `size` of them, or NULL. TUCK_EINVAL: no collective names it. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_set_group(tuck_graph *g, const char *name,
                                                          int64_t size, const int64_t *ranks,
                                                          tuck_diags *diags);
/* The graph is the one of this global rank: its place in each group whose members are known. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_set_rank(tuck_graph *g, int64_t rank,
                                                         tuck_diags *diags);
/* The side-car of a graph file, if there is one: X.json for X.txt; for X.rankR.txt also X.json with
 * its groups_by_rank. rank < 0: the one the side-car or the file's name says. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_read_sidecar(tuck_graph *g, const char *graph_path,
                                                             int64_t rank, tuck_diags *diags);

/* What is not known of the groups of `to` is as in `from`, a graph of another document perhaps. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_inherit_groups(const tuck_graph *from,
                                                               tuck_graph *to);

/* ---- Symbols ----
 * Sizes that the text leaves open: s0, u1. Bytes and times need their values. Those of a graph come
 * from a runnable script, from the line above the graph and from its side-car, then from
 * tuck_graph_set_symbol(); later values win. A machine's hints win over all of them. */

typedef struct tuck_hint { /* the value of a symbol; "*" is every symbol that has no other value */
    const char *symbol;
    int64_t value;
} tuck_hint;

/* The values a graph has been given, in that order; the last one of a symbol counts. */
TUCK_API size_t tuck_graph_hint_count(const tuck_graph *g);
TUCK_API bool tuck_graph_hint(const tuck_graph *g, size_t i, tuck_hint *out); /* false: no such */
/* TUCK_EINVAL: a value below 0, or no name. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_set_symbol(tuck_graph *g, const char *symbol,
                                                           int64_t value);

typedef enum tuck_symbol_state {
    TUCK_SYMBOL_KNOWN,
    TUCK_SYMBOL_ASSUMED, /* only data decides it (u0): a default value is used */
    TUCK_SYMBOL_MISSING, /* nothing is known: what depends on it has neither bytes nor a time */
} tuck_symbol_state;

typedef struct tuck_symbol {
    const char *name;
    tuck_symbol_state state;
    int64_t value;
    bool in_sizes; /* a size or a stride in the graph depends on it */
} tuck_symbol;

typedef struct tuck_symbols tuck_symbols;

/* Every symbol that has a value or is in a size of the graph. Those in sizes need
 * tuck_graph_infer(). */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_symbols(const tuck_graph *g, tuck_symbols **out);
TUCK_API void tuck_symbols_free(tuck_symbols *s);
TUCK_API size_t tuck_symbols_count(const tuck_symbols *s);
TUCK_API const tuck_symbol *tuck_symbols_at(const tuck_symbols *s, size_t i); /* NULL: no such */

/* From here on the text of the graph has what is known of it and the text does not say by itself:
 * groups, the rank, values of symbols. It is a line `# tuck: {…}` above the graph, which the reader
 * understands (docs/graph-text.md). Where nothing is missing there is no such line. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_remember(tuck_graph *g);

/* ---- Descriptions ----
 * What the graphs of a document are: nodes by class, inputs and outputs, collectives by group, the
 * most that is live at once. Needs tuck_graph_infer(). */

typedef struct tuck_describe_options {
    size_t size;
    size_t from, count;     /* which graphs; count 0: all from there on */
    const char *file;       /* for titles and JSON */
    const tuck_hint *hints; /* values of symbols, for sizes in bytes */
    size_t n_hints;
} tuck_describe_options;

TUCK_API void tuck_describe_options_init(tuck_describe_options *o);

typedef struct tuck_description tuck_description;

/* The document must outlive it and stay as it is. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_doc_describe(const tuck_doc *doc,
                                                       const tuck_describe_options *options,
                                                       tuck_description **out);
TUCK_API void tuck_description_free(tuck_description *d);

/* Of one graph; bytes are -1 where they are not all known. Nested graphs count in nodes, opaque and
 * collectives. */
typedef struct tuck_graph_facts {
    size_t size;
    size_t nodes, nested, opaque;
    size_t inputs, parameters, buffers, outputs, collectives;
    int64_t input_bytes, output_bytes;
    int64_t peak_bytes; /* live at once in this order, inputs never freed */
} tuck_graph_facts;

TUCK_API size_t tuck_description_count(const tuck_description *d);
/* out->size must be set. False: there is no such graph. */
TUCK_API bool tuck_description_facts(const tuck_description *d, size_t i, tuck_graph_facts *out);
/* A table, or everything about every node as JSON. */
TUCK_API tuck_status tuck_description_print(const tuck_description *d,
                                            const tuck_print_options *how, tuck_write_fn write,
                                            void *ctx);

/* ---- Cost ----
 * Times of collectives and kernels on a machine: docs/cost-model.md. A cluster never changes once
 * it is made and may be used by several threads. */

typedef struct tuck_cluster tuck_cluster;

/* By name, DEVICE[xPER_NODE[xNODES]]: "h100x8x4", "a100", "cpu-loopback".
 * TUCK_EINVAL: no such name. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_cluster_preset(const char *name,
                                                         const tuck_allocator *alloc,
                                                         tuck_diags *diags, tuck_cluster **out);
/* From a cluster file, or its text. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_cluster_read_file(const char *path,
                                                            const tuck_allocator *alloc,
                                                            tuck_diags *diags, tuck_cluster **out);
TUCK_API TUCK_MUST_CHECK tuck_status tuck_cluster_read_text(const char *text, size_t len,
                                                            const char *name,
                                                            const tuck_allocator *alloc,
                                                            tuck_diags *diags, tuck_cluster **out);
/* Default: h100x8 with as many nodes as the graph's largest group needs; cpu-loopback for graphs on
 * the cpu. Needs tuck_graph_infer() to know which. Without a graph (NULL): h100x8. What is printed
 * with such a cluster says that it is assumed. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_cluster_for_graph(const tuck_graph *g,
                                                            const tuck_allocator *alloc,
                                                            tuck_diags *diags, tuck_cluster **out);
TUCK_API void tuck_cluster_free(tuck_cluster *c);

TUCK_API const char *tuck_cluster_name(const tuck_cluster *c); /* "h100x8x4" */
TUCK_API bool tuck_cluster_is_assumed(const tuck_cluster *c);  /* from tuck_cluster_for_graph() */
TUCK_API int64_t tuck_cluster_per_node(const tuck_cluster *c);
TUCK_API int64_t tuck_cluster_ranks(const tuck_cluster *c); /* on all nodes together */

typedef enum tuck_coll {
    TUCK_ALL_REDUCE = 1,
    TUCK_ALL_GATHER,
    TUCK_REDUCE_SCATTER,
    TUCK_ALL_TO_ALL,
    TUCK_BROADCAST,
    TUCK_P2P,
    TUCK_SHARD_DIM_ALLTOALL,
    TUCK_OTHER_COLLECTIVE,   /* of another kind; costs what a broadcast does */
    TUCK_NESTED_COLLECTIVES, /* a call of graphs that communicate; has no cost of its own */
} tuck_coll;

typedef enum tuck_algorithm {
    TUCK_ALGO_LIBRARY = 1, /* whatever the library that was measured took */
    TUCK_ALGO_RING,
    TUCK_ALGO_TREE,
    TUCK_ALGO_ONE_SHOT, /* needs symmetric memory, and so does the next */
    TUCK_ALGO_TWO_SHOT,
    TUCK_ALGO_HIERARCHICAL,
    TUCK_ALGO_PAIRWISE,
    TUCK_ALGO_DIRECT,
} tuck_algorithm;

/* How a time is found. AUTO: the first of the next four that knows the case. */
typedef enum tuck_cost_model {
    TUCK_MODEL_AUTO,
    TUCK_MODEL_TABLE,      /* measured points, between them log-log; outside by their law */
    TUCK_MODEL_LAW,        /* a + c sqrt(bytes) + bytes/B, fitted to measured points */
    TUCK_MODEL_NCCL,       /* NCCL's own formulas */
    TUCK_MODEL_ALPHA_BETA, /* Hockney, hierarchical over nodes */
    TUCK_MODEL_TORCH,      /* what PyTorch's Inductor estimates, 2026 */
    TUCK_MODEL_TORCH_OLD,  /* … and from 2023 to early 2026 */
} tuck_cost_model;

/* "all_reduce", "ring", "alpha-beta"; the other way round 0 or, for models, -1
 * where there is no such. */
TUCK_API const char *tuck_coll_name(tuck_coll coll);
TUCK_API const char *tuck_algorithm_name(tuck_algorithm a);
TUCK_API const char *tuck_cost_model_name(tuck_cost_model m);
TUCK_API tuck_coll tuck_coll_by_name(const char *name);
TUCK_API int tuck_cost_model_by_name(const char *name);

/* A question. Zero is a good default of everything but coll and ranks. */
typedef struct tuck_collective {
    tuck_coll coll;
    int64_t bytes;          /* the full message: the larger of what goes in and what comes out */
    int64_t ranks;          /* of the group */
    int64_t stride;         /* between its members' global ranks; 0 = 1 */
    const int64_t *members; /* global ranks, `ranks` of them, instead of a stride; or NULL */
    tuck_cost_model model;  /* TABLE and LAW fall back as AUTO does where they know nothing */
    bool symmetric;         /* the operand is in symmetric memory: allows one-shot and two-shot */
    bool hierarchical;      /* it may be done in phases, within nodes and across them */
    int64_t
        one_shot_bytes; /* PyTorch's rule: one-shot up to this size, whatever it costs; 0 = off */
} tuck_collective;

enum { TUCK_MAX_ALTERNATIVES = 16 };

/* An answer, with how it came about; latency_ps + ramp_ps + bytes_ps = ps. */
typedef struct tuck_collective_cost {
    int64_t ps;
    int64_t latency_ps; /* whatever the size */
    int64_t ramp_ps;    /* of a three-term law: what grows with the square root of the size */
    int64_t bytes_ps;   /* moving the bytes */
    tuck_cost_model model;
    tuck_algorithm algorithm;
    const char *protocol;    /* of NCCL: "LL", "LL128", "SIMPLE", "NVLS"; else "" */
    const char *source;      /* where the numbers come from, one line */
    int64_t nodes, per_node; /* how the group lies: nodes, most ranks on one */
    uint32_t n_alternatives; /* includes the chosen one; cheapest first */
    struct {
        int64_t ps;
        tuck_cost_model model;
        tuck_algorithm algorithm;
        const char *protocol;
        bool symmetric; /* needs symmetric memory */
    } alternative[TUCK_MAX_ALTERNATIVES];
} tuck_collective_cost;

/* TUCK_EINVAL: no such collective, negative sizes, members that are no ranks. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_cost_collective(const tuck_cluster *c,
                                                          const tuck_collective *q,
                                                          tuck_collective_cost *out);

/* The smallest message that keeps a link busy for the share `efficiency` (0.9) of its
 * time: PyTorch's estimate for TUCK_MODEL_TORCH and AUTO, else from the model itself.
 * bytes of q is not looked at. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_cost_saturation(const tuck_cluster *c,
                                                          const tuck_collective *q,
                                                          double efficiency, int64_t *bytes_out);

/* Measured times of nodes, by name: {"schema": 1, "unit": "ns", "nodes": {"mm_3": 51200.0}}. */
typedef struct tuck_profile tuck_profile;

TUCK_API TUCK_MUST_CHECK tuck_status tuck_profile_read_file(const char *path,
                                                            const tuck_allocator *alloc,
                                                            tuck_diags *diags, tuck_profile **out);
TUCK_API TUCK_MUST_CHECK tuck_status tuck_profile_read_text(const char *text, size_t len,
                                                            const char *name,
                                                            const tuck_allocator *alloc,
                                                            tuck_diags *diags, tuck_profile **out);
TUCK_API void tuck_profile_free(tuck_profile *p);
TUCK_API size_t tuck_profile_count(const tuck_profile *p);
TUCK_API const char *tuck_profile_name(const tuck_profile *p, size_t i); /* NULL: no such */
/* The time of a node of that name; false: it is not in the profile. */
TUCK_API bool tuck_profile_ps(const tuck_profile *p, const char *name, int64_t *ps_out);
/* Can a node take time at all? Views, waits and inputs do not, whatever a profile says. */
TUCK_API bool tuck_node_takes_time(const tuck_graph *g, tuck_node n);
/* A caller's own estimate of a node; -1: none, and the profile's or the model's is used.
 * otherwise_ps is the model's, -1 where it has none. */
typedef int64_t (*tuck_estimate_fn)(void *ctx, const tuck_graph *g, tuck_node n,
                                    int64_t otherwise_ps);

/* ---- The machine ----
 * What times and sizes are worked out for. Lowering, simulating, explaining, optimizing and
 * comparing take one; NULL is the default machine of the graph. */

typedef enum tuck_contention {
    TUCK_LINKS_FREE,   /* collectives of different groups do not slow each other down */
    TUCK_LINKS_SHARED, /* they share their links, and kernels run slower beside them */
} tuck_contention;

typedef enum tuck_unknown {
    /* a group without a size has all ranks, a loop runs once: tuck_graph_assumptions() */
    TUCK_ASSUME,
    TUCK_REFUSE, /* TUCK_EINVAL, with an error for each group, loop or size that is not known */
} tuck_unknown;

typedef struct tuck_simulation tuck_simulation;

typedef struct tuck_machine {
    size_t size;
    const tuck_cluster *cluster; /* NULL: tuck_cluster_for_graph() */
    const tuck_profile *profile; /* its times are used instead of the model's; or NULL */
    tuck_cost_model model;       /* of collectives */
    tuck_estimate_fn estimate;   /* used before profile and model; or NULL */
    void *estimate_ctx;
    const tuck_hint *hints; /* values of symbols; they win over those of the graph */
    size_t n_hints;
    double bandwidth; /* link speed factor; 0 means 1 */
    tuck_contention contention;
    tuck_unknown unknown;
    /* Collectives that the profile does not have are priced by the laws that were fitted for this
     * simulation, so that a graph before and after passes is measured alike; NULL: by laws fitted
     * to the graph itself. */
    const tuck_simulation *like;
} tuck_machine;

TUCK_API void tuck_machine_init(tuck_machine *m);

/* How contention is modelled on a cluster, a sentence. */
TUCK_API const char *tuck_cluster_contention(const tuck_cluster *c);

/* What the times of a graph rest on that nothing says. */
typedef enum tuck_assumed {
    TUCK_ASSUMED_RANKS, /* the size of group `name` is taken to be `value` */
    TUCK_ASSUMED_TRIPS, /* `value` loops, `name` the first of them, are taken to run once */
    /* of `value` conditions, `name` the first of them, the most expensive branch counts */
    TUCK_ASSUMED_BRANCH,
} tuck_assumed;

typedef struct tuck_assumption {
    tuck_assumed what;
    const char *name;
    int64_t value;
} tuck_assumption;

typedef struct tuck_assumptions tuck_assumptions;

TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_assumptions(const tuck_graph *g,
                                                            const tuck_cluster *c,
                                                            tuck_assumptions **out);
TUCK_API void tuck_assumptions_free(tuck_assumptions *a);
TUCK_API size_t tuck_assumptions_count(const tuck_assumptions *a);
TUCK_API const tuck_assumption *tuck_assumptions_at(const tuck_assumptions *a, size_t i);
/* A line each; nothing where nothing is assumed. */
TUCK_API tuck_status tuck_assumptions_print(const tuck_assumptions *a,
                                            const tuck_print_options *how, tuck_write_fn write,
                                            void *ctx);

/* ---- Editing ----
 * Users are kept right by every call. A call that fails changes nothing.
 *
 * Order. Inputs come first and the return last: TUCK_EINVAL for anything before an input or after
 * the return. The inputs are the parameters of the signature, in the same order; none may come
 * after a parameter with a default or a star that Python wants after it. Where the text flattens
 * its parameters (pytree), the number and order of inputs is fixed from outside: TUCK_EINVAL.
 * Whether a node comes after what it uses is checked at the end: tuck_graph_sort() ensures it,
 * tuck_graph_lint() checks it.
 *
 * Names are made as PyTorch 2.13 makes them: cleaned into an identifier, numbered if taken.
 * A name stays taken when its node is gone, and so does a word that the text uses for
 * something else (a global, a symbol). The other way round, a target or operand whose first
 * word is the name of a node is TUCK_EINVAL. A node that a nested graph mentions by name can
 * neither be renamed nor erased.
 *
 * Opaque statements can be moved and erased, with all that they assign, and nothing else. */

/* An argument list under construction: values in order, containers opened and closed,
 * tuck_args_key() before the value of a keyword. Errors are remembered until the list is used. */
typedef struct tuck_args tuck_args;
TUCK_API tuck_args *tuck_args_new(tuck_graph *g); /* NULL on no memory */
TUCK_API void tuck_args_free(tuck_args *a);
TUCK_API void tuck_args_clear(tuck_args *a);
TUCK_API void tuck_args_none(tuck_args *a);
TUCK_API void tuck_args_bool(tuck_args *a, bool v);
TUCK_API void tuck_args_int(tuck_args *a, int64_t v);
TUCK_API void tuck_args_float(tuck_args *a, double v);
TUCK_API void tuck_args_str(tuck_args *a, const char *v);
TUCK_API void tuck_args_node(tuck_args *a, tuck_node n);
/* Any operand in Python's spelling, on one line: "torch.bfloat16", "device(type='cuda', index=0)",
 * "[1, x]". Names of nodes are nodes; other undefined names are an error. */
TUCK_API void tuck_args_text(tuck_args *a, const char *text);
TUCK_API void tuck_args_value(tuck_args *a,
                              const tuck_value *v); /* a copy of one of the same graph */
/* Opens a list, tuple, dict, set, slice or torch.Size; tuck_args_close() closes the innermost. */
TUCK_API void tuck_args_open(tuck_args *a, tuck_value_kind container);
TUCK_API void tuck_args_close(tuck_args *a);
TUCK_API void tuck_args_key(tuck_args *a, const char *name);

/* A place in the order of nodes. With no node: as far to the front, or to the back, as a node of
 * its kind may be. After an opaque statement means after all that it assigns. */
typedef struct tuck_where {
    tuck_node node;
    bool after;
} tuck_where;

static inline tuck_where tuck_before(tuck_node n)
{
    tuck_where where = {n, false};

    return where;
}

static inline tuck_where tuck_after(tuck_node n)
{
    tuck_where where = {n, true};

    return where;
}

static inline tuck_where tuck_at_end(void)
{
    tuck_where where = {{0}, true};

    return where;
}

/* A new node. `target` is what tuck_node_target() would say; of an input the parameter (NULL: the
 * same as its name), of the return nothing. `name` is a suggestion; NULL: after the target
 * ("add_tensor" for torch.ops.aten.add.Tensor). `annotation` is the text between the quotes, or
 * NULL; in a text that was read, strides and devices are left out where the annotations around have
 * none. args may be NULL: none. Calls are spelled as operators (x + y, x[0], x.shape) wherever such
 * a text can be read again. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_add(tuck_graph *g, tuck_where where, tuck_kind kind,
                                                    const char *target, const tuck_args *args,
                                                    const char *name, const char *annotation,
                                                    tuck_node *n_out);
TUCK_API TUCK_MUST_CHECK tuck_status tuck_node_set_args(tuck_graph *g, tuck_node n,
                                                        const tuck_args *args);
TUCK_API TUCK_MUST_CHECK tuck_status tuck_node_set_target(tuck_graph *g, tuck_node n,
                                                          const char *target);
TUCK_API TUCK_MUST_CHECK tuck_status tuck_node_set_annotation(tuck_graph *g, tuck_node n,
                                                              const char *annotation);
/* The new name is a wish, as in tuck_graph_add(). */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_node_rename(tuck_graph *g, tuck_node n, const char *name);
TUCK_API TUCK_MUST_CHECK tuck_status tuck_node_move(tuck_graph *g, tuck_node n, tuck_where where);
/* Only a node without users. The parameter of an input is erased with it. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_node_erase(tuck_graph *g, tuck_node n);
/* Every use of `old` becomes one of `with`, but for those in `except` (none: all of them). The
 * result must not make `with` its own operand. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_node_replace_uses(tuck_graph *g, tuck_node old,
                                                            tuck_node with, tuck_node except);

/* Erase unused nodes without effects of their own, in nested graphs too. Inputs stay, and so
 * does whatever writes an operand, draws random numbers (as Node.is_impure() has it),
 * communicates, waits, checks, calls a module or an operator that is not known, or calls a
 * nested graph that does. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_remove_dead(tuck_graph *g, size_t *removed_out);

/* Put every node after what it uses, moving as little as a stable sort does: of the nodes that
 * could come next, the one that was first. Nodes with effects (those that tuck_graph_remove_dead()
 * would keep) stay in the order they have among each other, and reads on their side of writes to
 * the same storage, but where a use says otherwise. Nested graphs are left alone. TUCK_ELINT on a
 * cycle, which the diagnostic names, and nothing moved. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_sort(tuck_graph *g, tuck_diags *diags);

/* Check uses, order, names, the pairing of collectives and waits; nested graphs too. The result of
 * a collective may go into a wait, into [i], into questions about its sizes, into what is not
 * known, and nowhere else; a buffer it works on in place must not be touched until the wait. A
 * collective that is never waited for, or returned so by the outermost graph, is a warning. That an
 * edit moved a read over a write to the same storage is an error. TUCK_ELINT if there was an error;
 * warnings alone are fine. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_lint(const tuck_graph *g, tuck_diags *diags);

/* What lint found in the graphs of a file: one line with the counts, or as JSON what `found` holds
 * (it may be NULL for the line). */
typedef struct tuck_lint_sum {
    size_t size;
    const char *file;
    size_t graphs, nodes;    /* that were looked at */
    size_t errors, warnings; /* a list of diagnostics keeps the first 50 warnings only */
} tuck_lint_sum;

TUCK_API void tuck_lint_sum_init(tuck_lint_sum *sum);
TUCK_API tuck_status tuck_lint_print(const tuck_lint_sum *sum, const tuck_diags *found,
                                     const tuck_print_options *how, tuck_write_fn write, void *ctx);

/* ---- Simulating ----
 * What a graph takes on a machine, as it stands: lowered, priced, run op by op on its streams, and
 * bounded from below. docs/simulation.md explains it. */

typedef struct tuck_times { /* of a step */
    int64_t step_ps, compute_ps, comm_ps;
    int64_t exposed_ps; /* communication that no compute hides */
    int64_t launch_ps;  /* the host's part, where it counts */
    int64_t slowed_ps;  /* of the compute: what contention added */
    int64_t peak_bytes, resident_bytes;
} tuck_times;

typedef struct tuck_bound { /* no order makes a step faster than this; -1: not known */
    int64_t any_ps;         /* with any bucketing and any algorithm, too */
    int64_t order_ps;       /* with the collectives of the graph */
    const char *any_kind, *any_meaning, *order_kind; /* what binds, in a word; in a sentence */
} tuck_bound;

typedef struct tuck_sim_op { /* an op of the lowered graph, with when it runs */
    const char *name, *kind; /* "collective", "wait", "fused", … */
    const char *group;       /* of a collective; "" for ops on the compute stream */
    const char *coll;        /* "all_gather"; "" for everything else */
    const char *algorithm;
    int64_t bytes; /* the message of a collective; -1: not known */
    int64_t start_ps, end_ps;
    int64_t exposed_ps; /* of a collective */
} tuck_sim_op;

/* Types are inferred. The graph and the machine's cluster and profile must outlive the simulation.
 * TUCK_EINVAL: too much is not known, see the diagnostics. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_simulate(tuck_graph *g, const tuck_machine *m,
                                                         tuck_diags *diags, tuck_simulation **out);
TUCK_API void tuck_simulation_free(tuck_simulation *s);
TUCK_API void tuck_simulation_times(const tuck_simulation *s, tuck_times *out);
TUCK_API void tuck_simulation_bound(const tuck_simulation *s, tuck_bound *out);
TUCK_API uint32_t tuck_simulation_op_count(const tuck_simulation *s);
TUCK_API bool tuck_simulation_op(const tuck_simulation *s, uint32_t op, tuck_sim_op *out);
TUCK_API uint32_t tuck_simulation_unknown(const tuck_simulation *s); /* ops without a time */
TUCK_API const tuck_cluster *tuck_simulation_cluster(const tuck_simulation *s);
TUCK_API const tuck_assumptions *tuck_simulation_assumptions(const tuck_simulation *s);
/* top: collectives, the most exposed first (10); detail: TUCK_DETAIL_TIMELINE. */
TUCK_API tuck_status tuck_simulation_print(const tuck_simulation *s, const tuck_print_options *how,
                                           tuck_write_fn write, void *ctx);

/* ---- Explaining ---- */

typedef enum tuck_order_rule {
    /* collectives of one group keep their order: right where all ranks run the same graph */
    TUCK_ORDER_IN_GROUPS,
    TUCK_ORDER_OF_ALL, /* no collective passes another */
} tuck_order_rule;

/* Progress: called with what is tried next; false ends the work with TUCK_EIO. */
typedef bool (*tuck_observe_fn)(void *ctx, const char *what, size_t step, bool after,
                                const tuck_graph *g);

typedef struct tuck_explain_options {
    size_t size;
    const char *node; /* explain this one; NULL: the step */
    const char
        *subject; /* how commands in the text name the graph, "step.txt --group 0=8"; NULL: FILE */
    tuck_order_rule order;
    tuck_observe_fn observe; /* or NULL */
    void *ctx;
} tuck_explain_options;

TUCK_API void tuck_explain_options_init(tuck_explain_options *o);

typedef struct tuck_exposed { /* a collective */
    const char *name, *wait;  /* wait: "" where nothing waits for it */
    int64_t ps, exposed_ps, hidden_ps, queued_ps;
    uint32_t under;         /* compute ops that run under it */
    const char *limit;      /* what keeps it from being hidden, in a word: docs/simulation.md */
    const char *limit_node; /* … which op that is, or "" */
    int64_t more_bytes;     /* limit "memory": bytes above the peak that hiding it would take */
} tuck_exposed;

typedef struct tuck_remedy { /* something that was tried and helps */
    const char *what;
    int64_t step_ps, peak_bytes;
    uint32_t hidden;     /* collectives that are no longer exposed */
    const char *options; /* of the `tuck optimize` that applies it; NULL: no command does */
} tuck_remedy;

typedef struct tuck_explanation tuck_explanation;

/* As tuck_graph_simulate(), and why communication is exposed, and what would help. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_explain(tuck_graph *g, const tuck_machine *m,
                                                        const tuck_explain_options *options,
                                                        tuck_diags *diags, tuck_explanation **out);
TUCK_API void tuck_explanation_free(tuck_explanation *x);
TUCK_API const tuck_simulation *tuck_explanation_simulation(const tuck_explanation *x);
TUCK_API bool tuck_explanation_has(const tuck_explanation *x, const char *node); /* in an op? */
TUCK_API size_t
tuck_explanation_count(const tuck_explanation *x); /* collectives, the most exposed first */
TUCK_API bool tuck_explanation_at(const tuck_explanation *x, size_t i, tuck_exposed *out);
TUCK_API size_t tuck_explanation_remedy_count(const tuck_explanation *x);
TUCK_API bool tuck_explanation_remedy(const tuck_explanation *x, size_t i, tuck_remedy *out);
TUCK_API tuck_status tuck_explanation_print(const tuck_explanation *x,
                                            const tuck_print_options *how, tuck_write_fn write,
                                            void *ctx);

/* ---- Comparing ---- */

typedef struct tuck_diff tuck_diff;

/* What became of a graph. Both simulations and their graphs must outlive the result. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_simulation_diff(const tuck_simulation *before,
                                                          const tuck_simulation *after,
                                                          tuck_diff **out);
TUCK_API void tuck_diff_free(tuck_diff *d);
TUCK_API size_t tuck_diff_moved(const tuck_diff *d); /* nodes that another order needs to move */
TUCK_API tuck_status tuck_diff_print(const tuck_diff *d, const tuck_print_options *how,
                                     tuck_write_fn write, void *ctx);

/* ---- Pictures ---- */

typedef struct tuck_page tuck_page;

/* A page of simulated steps: as HTML that needs nothing else, or as a trace for Perfetto. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_page_new(const char *title, const tuck_allocator *alloc,
                                                   tuck_page **out);
TUCK_API void tuck_page_free(tuck_page *p);
/* One graph, simulated n times (before and after), each with a label. Takes what it needs to know
 * out of the simulations, which must outlive the page. title "": the page has no other graph. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_page_add(tuck_page *p, const char *title,
                                                   tuck_simulation *const *s,
                                                   const char *const *label, size_t n);
TUCK_API tuck_status tuck_page_html(const tuck_page *p, tuck_write_fn write, void *ctx);
TUCK_API tuck_status tuck_page_trace(const tuck_page *p, tuck_write_fn write, void *ctx);
/* The page of one step, as HTML; after: what became of it, on the same page, or NULL. */
TUCK_API tuck_status tuck_simulation_html(const tuck_simulation *s, const tuck_simulation *after,
                                          const char *title, tuck_write_fn write, void *ctx);

/* ---- Passes ----
 * A pass rewrites a graph and reports what it did. A pipeline is a list of them with options:
 *
 *   deduplicate_wait_tensors, bucket_all_gather(cap_mb=50:500)
 *
 * separated by commas or lines, # begins a comment. Of a list of values the last one repeats.
 * Keys of PyTorch's configuration are accepted as they are (bucket_all_gathers_fx=all).
 * docs/passes.md explains each. */

TUCK_API size_t tuck_pass_count(void);
TUCK_API const char *tuck_pass_name(size_t pass); /* NULL after the last */
TUCK_API const char *tuck_pass_help(size_t pass); /* one line */

typedef struct tuck_option {
    const char *name, *type, *dflt,
        *help; /* type: bool, int, float, text, numbers, names, or a|b|c */
} tuck_option;
TUCK_API size_t tuck_pass_option_count(size_t pass);
TUCK_API bool tuck_pass_option(size_t pass, size_t option, tuck_option *out);

/* All passes with their options and the keys of PyTorch; one pass; the reasons for which passes
 * leave candidates alone. */
TUCK_API tuck_status tuck_passes_print(const tuck_print_options *how, tuck_write_fn write,
                                       void *ctx);
TUCK_API tuck_status tuck_pass_print(size_t pass, const tuck_print_options *how,
                                     tuck_write_fn write, void *ctx);
TUCK_API tuck_status tuck_reasons_print(const tuck_print_options *how, tuck_write_fn write,
                                        void *ctx);

typedef struct tuck_pipeline tuck_pipeline;
/* `name` is used in diagnostics. TUCK_EINVAL: an unknown pass or option, or an invalid value. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_pipeline_parse(const char *text, size_t len,
                                                         const char *name,
                                                         const tuck_allocator *alloc,
                                                         tuck_diags *diags, tuck_pipeline **out);
TUCK_API void tuck_pipeline_free(tuck_pipeline *p);
TUCK_API size_t tuck_pipeline_count(const tuck_pipeline *p);
/* Is there a pass in it that looks at times, and so at the machine? */
TUCK_API bool tuck_pipeline_is_timed(const tuck_pipeline *p);

/* The same step by step. What fails adds nothing. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_pipeline_new(const tuck_allocator *alloc,
                                                       tuck_pipeline **out);
/* A pass by its name, its options as text: "cap_mb=50:500, mode=coalesced"; NULL: the defaults. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_pipeline_add(tuck_pipeline *p, const char *pass,
                                                       const char *options, tuck_diags *diags);

/* The steps of a text, as tuck_pipeline_parse() reads it. After a failure the pipeline may only be
 * freed. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_pipeline_add_text(tuck_pipeline *p, const char *text,
                                                            size_t len, const char *name,
                                                            tuck_diags *diags);

/* A pass of the caller. It edits g, a copy with the same node ids whose types are inferred, and
 * must not free it. The step is run as those of the table are: linted, reported, new nodes typed
 * and annotated, and the caller's graph is replaced only when all went well. Anything but TUCK_OK
 * is the result of the run and leaves the graph as it was; so does TUCK_ELINT where the pass breaks
 * it. diags may be NULL; tuck_diags_add() says more. */
typedef tuck_status (*tuck_pass_fn)(void *ctx, tuck_graph *g, tuck_diags *diags);
/* The name is for reports and diagnostics. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_pipeline_append(tuck_pipeline *p, const char *name,
                                                          tuck_pass_fn fn, void *ctx);

/* Functions in place of options of the passes bucket_…; each may be NULL. */
typedef struct tuck_bucket_options {
    size_t size;
    /* MiB that a bucket may hold, by its number in its run of collectives with equal keys: the
     * first of them is often exposed, and better small. Asked once for each bucket. A negative
     * result or not a number: the pass fails. */
    double (*cap_mb)(void *ctx, size_t bucket);
    /* May the collective that `wait` waits for be merged? False: it is left
     * alone, reason "filtered". */
    bool (*filter)(void *ctx, const tuck_graph *g, tuck_node wait);
    void *ctx;
} tuck_bucket_options;
TUCK_API void tuck_bucket_options_init(tuck_bucket_options *rules);
/* tuck_pipeline_add() with such functions. TUCK_EINVAL, too, for a pass without buckets. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_pipeline_add_bucket(tuck_pipeline *p, const char *pass,
                                                              const char *options,
                                                              const tuck_bucket_options *rules,
                                                              tuck_diags *diags);

typedef enum tuck_judge {
    TUCK_JUDGE_NOTHING,
    TUCK_JUDGE_RESULT, /* simulate the graph before and after the passes, for the report */
} tuck_judge;

typedef struct tuck_run_options {
    size_t size;
    const tuck_machine *machine; /* for passes on schedules, and for judging; NULL: the default */
    tuck_observe_fn observe;     /* progress: before and after each pass; or NULL */
    void *ctx;
    tuck_order_rule
        order;        /* the report says where collectives of different groups changed places */
    tuck_judge judge; /* tuck_graph_optimize() always does */
    /* The peak that tuck_graph_optimize() may leave: so many bytes; 0: that of the graph as given,
     * times 1 + memory_share, plus memory_more bytes. */
    int64_t memory, memory_more;
    double memory_share;
    /* Where not NULL, of a run that succeeds: the graph as given and as it is now, simulated; NULL
     * where sizes are not known. The caller's to free. */
    tuck_simulation **before_out, **after_out;
} tuck_run_options;

TUCK_API void tuck_run_options_init(tuck_run_options *o);

typedef struct tuck_report tuck_report;
/* Run the passes one by one; each is atomic. A graph that lints with errors is refused,
 * TUCK_ELINT with its diagnostics, and nothing is run. Where a pass fails the graph is what
 * the passes before it made of it. *report_out (may be NULL) is written on failure too, and
 * is the caller's to free. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_pipeline_run(const tuck_pipeline *p, tuck_graph *g,
                                                       const tuck_run_options *options,
                                                       tuck_diags *diags, tuck_report **report_out);
TUCK_API void tuck_report_free(tuck_report *t);

typedef struct tuck_gain {
    tuck_times before, after;
    int64_t
        bound_ps; /* no order, bucketing or algorithm makes the graph as given faster than this */
    const char *bound_kind, *bound_meaning; /* what binds, in a word and in a sentence */
    bool changed;
    int64_t memory_limit; /* bytes that the peak had to stay within */
    bool over_limit;      /* nothing that was tried does, nor does the original graph */
} tuck_gain;

/* The default passes: bucketing to the size that saturates the link, and orders that hide
 * communication. Several ways are tried and simulated; the fastest that needs no more memory than
 * the original graph is kept, and where none is faster the graph stays as it was. observe sees all
 * that is tried. gain_out and report_out may be NULL. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_optimize(tuck_graph *g,
                                                         const tuck_run_options *options,
                                                         tuck_diags *diags, tuck_gain *gain_out,
                                                         tuck_report **report_out);
/* What the report knows of the step before and after; false: it was not simulated. */
TUCK_API bool tuck_report_gain(const tuck_report *t, tuck_gain *out);
/* form: TUCK_PRINT_BRIEF is a line a pass; detail: TUCK_DETAIL_TIMES,
 * TUCK_DETAIL_STATS. */
TUCK_API tuck_status tuck_report_print(const tuck_report *t, const tuck_print_options *how,
                                       tuck_write_fn write, void *ctx);

#ifdef __cplusplus
}
#endif
#endif

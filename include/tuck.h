/* Tuck: tucks communication under computation.
 *
 * The public interface of libtuck: read the graph of a training step as PyTorch prints it,
 * inspect it, edit it, simulate, explain and optimize it, print it again.
 *
 *   tuck_diags *diags = tuck_diags_new(NULL);
 *   tuck_doc *doc;
 *   if (tuck_doc_read_file("graph.txt", NULL, diags, &doc) == TUCK_OK) {
 *       tuck_graph *g = tuck_doc_graph(doc, 0);
 *       for (tuck_node n = tuck_graph_first(g); !tuck_is_none(n); n = tuck_graph_next(g, n))
 *           puts(tuck_node_name(g, n));
 *       tuck_doc_free(doc);
 *   }
 *   tuck_diags_print(diags, TUCK_PLAIN, tuck_write_file, stderr);
 *   tuck_diags_free(diags);
 *
 * Conventions
 * - A function that can fail returns a tuck_status and adds diagnostics; outputs come last and are
 *   written only on success. Nothing here prints or exits.
 * - Options are structs whose first member is their size. Fill one with its tuck_..._options_init()
 *   and change what should differ; a program that was compiled with an older header keeps working.
 *   A NULL pointer means the defaults.
 * - Results are opaque. Query them with functions, print them as a table or as JSON, free them.
 *   Functions that free objects accept NULL.
 * - Returned strings belong to the object they come from and live as long as it does.
 * - Times are picoseconds in int64_t; their names are ps or end in _ps. -1 means unknown.
 * - The parts that may still change are in tuck_experimental.h and tuck_run.h.
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

/* The version of the running library: TUCK_VERSION and TUCK_VERSION_NUMBER at its build. */
TUCK_API const char *tuck_version(void);
TUCK_API unsigned tuck_version_number(void);

/* ---- Status, memory, output ---- */

typedef enum tuck_status {
    TUCK_OK = 0,
    TUCK_ENOMEM = -1,  /* out of memory */
    TUCK_EINVAL = -2,  /* invalid call: bad argument, node of another graph, name already used */
    TUCK_ESYNTAX = -3, /* the text is not a graph, or is invalid: see the diagnostics */
    TUCK_EIO = -4,     /* a file could not be read or written, or a callback returned false */
    TUCK_ELINT = -5,   /* the graph is invalid: see the diagnostics */
    TUCK_EEXEC = -6,   /* the graph has operands that Python cannot evaluate */
} tuck_status;

/* "out of memory", "bad argument", … */
TUCK_API const char *tuck_status_text(tuck_status status);

/* resize(ctx, NULL, 0, n) allocates, resize(ctx, p, old, n) grows or shrinks, resize(ctx, p, old,
 * 0) frees and returns NULL. NULL for n > 0 means out of memory. */
typedef struct tuck_allocator {
    void *ctx;
    void *(*resize)(void *ctx, void *ptr, size_t old_size, size_t new_size);
} tuck_allocator;

/* Receives text in pieces, in order. Returning false ends the printing with TUCK_EIO. */
typedef bool (*tuck_write_fn)(void *ctx, const char *text, size_t len);
/* A tuck_write_fn for files: ctx is a FILE * of <stdio.h>. False if it is NULL, as after a failed
 * fopen(). */
TUCK_API bool tuck_write_file(void *ctx, const char *text, size_t len);

/* "4096", "25MB", "1.5GiB": 1 KB = 1 KiB = 1024 bytes, and so on. -1: not a size. */
TUCK_API int64_t tuck_parse_bytes(const char *text);
enum { TUCK_BYTES_TEXT = 32 };
/* 1536 → "1.50 KiB"; "?" if negative. Returns `out`. */
TUCK_API const char *tuck_format_bytes(int64_t bytes, char out[TUCK_BYTES_TEXT]);

/* How results are printed. */
typedef enum tuck_print_form {
    TUCK_PRINT_TABLE, /* for reading */
    TUCK_PRINT_JSON,  /* for programs: docs/files.md */
    TUCK_PRINT_BRIEF, /* a shorter table, if there is one */
} tuck_print_form;

typedef enum tuck_color { TUCK_PLAIN, TUCK_COLORED } tuck_color;

/* Flags: what to print in addition to the default. */
typedef enum tuck_detail {
    TUCK_DETAIL_NONE = 0,
    TUCK_DETAIL_TIMES = 1,    /* how long each pass took */
    TUCK_DETAIL_TIMELINE = 2, /* every op, with its start and end */
    TUCK_DETAIL_STATS = 4,    /* how many graphs were lowered and simulated */
    TUCK_DETAIL_ORIGINS = 8,  /* where each collective comes from, if the text says it */
    TUCK_DETAIL_PART = 16,    /* one graph of a step whose others communicate: if it does not, how
                                 to have collectives in it is not explained */
} tuck_detail;

/* If a JSON document is one of several in one text, {"schema": 1, "file": FILE, KEY: [...]}:
 * what it says about itself. The document with index 0 begins the text, tuck_print_items_end()
 * ends it. */
typedef struct tuck_print_item {
    size_t size;
    const char *file, *key;
    size_t index;      /* in the list */
    size_t graph;      /* its number in the document that was read */
    const char *title; /* or "" */
    uint32_t line;
    int rank;      /* -1: none */
    int64_t world; /* number of ranks simulated together; 0 if not applicable */
} tuck_print_item;

#define TUCK_NO_ROWS 0x80000000u

typedef struct tuck_print_options {
    size_t size;
    tuck_print_form form;
    tuck_color color;
    uint32_t top;                /* rows of a list; 0 means the default; TUCK_NO_ROWS: none */
    uint32_t width;              /* columns of the terminal; 0 means no limit */
    uint32_t detail;             /* of tuck_detail */
    const tuck_print_item *item; /* for JSON; NULL: a document by itself */
    /* For JSON: a value that the document has as "measured_runs", after its schema; NULL: none */
    const char *measured;
} tuck_print_options;

TUCK_API void tuck_print_options_init(tuck_print_options *o);
TUCK_API void tuck_print_item_init(tuck_print_item *item);
TUCK_API tuck_status tuck_print_items_end(tuck_write_fn write, void *ctx);

/* ---- Diagnostics ---- */

typedef enum tuck_severity { TUCK_WARNING, TUCK_ERROR } tuck_severity;

typedef struct tuck_diag {
    tuck_severity severity;
    const char *file;      /* "" if there is none */
    uint32_t line, column; /* from 1; 0 = unknown. Columns count bytes */
    const char *message;   /* no final period; a list of names may be on a separate line */
    const char *note;      /* a hint, or NULL */
    /* the line it is about (from a long line, the part around it), or NULL */
    const char *source;
    uint32_t caret, length; /* what to underline in source */
} tuck_diag;

typedef struct tuck_diags tuck_diags;

/* A list that functions append to. NULL allocator: malloc. NULL if out of memory. */
TUCK_API tuck_diags *tuck_diags_new(const tuck_allocator *alloc);
TUCK_API void tuck_diags_free(tuck_diags *d);
TUCK_API void tuck_diags_clear(tuck_diags *d);
TUCK_API size_t tuck_diags_count(const tuck_diags *d);
TUCK_API size_t tuck_diags_errors(const tuck_diags *d);
TUCK_API const tuck_diag *tuck_diags_at(const tuck_diags *d, size_t i);
/* Adds a copy of a diagnostic, a new one or from another list. */
TUCK_API void tuck_diags_append(tuck_diags *d, const tuck_diag *diag);

/* Prints one diagnostic as compilers do: file:line:column: error: message, the line, a caret. */
TUCK_API tuck_status tuck_diag_print(const tuck_diag *d, tuck_color color, tuck_write_fn write,
                                     void *ctx);
/* All of a list, in order. */
TUCK_API tuck_status tuck_diags_print(const tuck_diags *d, tuck_color color, tuck_write_fn write,
                                      void *ctx);

/* ---- Documents: a text with one or more graphs in it ---- */

typedef struct tuck_doc tuck_doc;
typedef struct tuck_graph tuck_graph;

typedef struct tuck_read_options {
    size_t size;
    const tuck_allocator *alloc; /* NULL: malloc */
} tuck_read_options;

TUCK_API void tuck_read_options_init(tuck_read_options *o);

/* Reads every graph of a text: a readable dump, gm.code, a log, fx_graph_runnable, str(graph), an
 * exported program (docs/graph-text.md). `name` is used in diagnostics. On any error there is no
 * document; but a graph that is cut off is skipped with a warning if there is another one. A text
 * without a graph is an error. options and diags may be NULL. */
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

/* Where a graph came from: the title of a log's banner ("AFTER POST GRAD") or ""; the rank of its
 * log lines or -1; the line where its text begins. */
TUCK_API const char *tuck_doc_title(const tuck_doc *doc, size_t i);
TUCK_API int tuck_doc_rank(const tuck_doc *doc, size_t i);
TUCK_API uint32_t tuck_doc_line(const tuck_doc *doc, size_t i);

/* ---- Printing ---- */

typedef enum tuck_form {
    TUCK_FORM_TEXT, /* as it was read; byte for byte if nothing changed */
    TUCK_FORM_CODE, /* gm.code: a bare def forward, without annotations of values and comments */
    TUCK_FORM_EXEC, /* Python for exec(); or TUCK_EEXEC */
} tuck_form;

TUCK_API tuck_status tuck_doc_print(const tuck_doc *doc, tuck_form form, tuck_diags *diags,
                                    tuck_write_fn write, void *ctx);
TUCK_API tuck_status tuck_graph_print(const tuck_graph *g, tuck_form form, tuck_diags *diags,
                                      tuck_write_fn write, void *ctx);

/* Graphviz. */
TUCK_API tuck_status tuck_graph_dot(const tuck_graph *g, tuck_write_fn write, void *ctx);

/* ---- Graphs ---- */

/* A node of one graph. Ids are small, dense and never reused in the same graph. */
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
    TUCK_OPAQUE,          /* a statement kept verbatim; nothing is moved across it */
    TUCK_RESULT,          /* a further name that the opaque statement before it assigns */
} tuck_kind;

/* An empty graph that is printed as class `name` (NULL: GraphModule). */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_new(const char *name, const tuck_allocator *alloc,
                                                    tuck_graph **g_out);
/* A copy that shares strings with g and can outlive it; includes nested graphs. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_copy(const tuck_graph *g, tuck_graph **g_out);
/* For graphs from the two functions above; those of a document are freed with it. */
TUCK_API void tuck_graph_free(tuck_graph *g);

TUCK_API const char *tuck_graph_name(const tuck_graph *g); /* the class, "" for a bare function */
/* number of nodes, without nested graphs */
TUCK_API size_t tuck_graph_size(const tuck_graph *g);
TUCK_API tuck_node tuck_graph_first(const tuck_graph *g);
TUCK_API tuck_node tuck_graph_last(const tuck_graph *g);
TUCK_API tuck_node tuck_graph_next(const tuck_graph *g, tuck_node n);
TUCK_API tuck_node tuck_graph_prev(const tuck_graph *g, tuck_node n);
TUCK_API tuck_node tuck_graph_output(const tuck_graph *g); /* none if nothing is returned */
/* none if no node has that name */
TUCK_API tuck_node tuck_graph_find(tuck_graph *g, const char *name);
/* An upper bound of all node ids, for arrays indexed by them. */
TUCK_API uint32_t tuck_graph_id_end(const tuck_graph *g);

/* Graphs nested in this one, read as attributes: class cond_true_0 for self.cond_true_0. */
TUCK_API size_t tuck_graph_child_count(const tuck_graph *g);
TUCK_API tuck_graph *tuck_graph_child(const tuck_graph *g, size_t i);

/* ---- Nodes ---- */

TUCK_API tuck_kind tuck_node_kind(const tuck_graph *g, tuck_node n);
TUCK_API const char *tuck_node_name(const tuck_graph *g, tuck_node n);
/* What is called or read, as spelled in the text: "torch.ops.aten.mm.default", "operator.add" for a
 * plus, "layers.0.weight" for an attribute, the parameter's name for a placeholder. */
TUCK_API const char *tuck_node_target(const tuck_graph *g, tuck_node n);
/* The annotation without its quotes: f32[8, 4][4, 1]cuda:0; "" if there is none. */
TUCK_API const char *tuck_node_annotation(const tuck_graph *g, tuck_node n);
/* Its position in the text it was read from; 0 for new nodes. */
TUCK_API uint32_t tuck_node_line(const tuck_graph *g, tuck_node n);

/* Adds a diagnostic about a node, with the position it was read from (none: about the graph; g
 * NULL: without a position). For passes of a caller. d may be NULL; the message is copied. */
TUCK_API void tuck_diags_add(tuck_diags *d, tuck_severity severity, const tuck_graph *g,
                             tuck_node n, const char *message);

typedef enum tuck_value_kind {
    TUCK_V_NONE = 1,
    TUCK_V_BOOL,
    TUCK_V_INT,    /* fits in 64 bits */
    TUCK_V_FLOAT,  /* also inf and nan */
    TUCK_V_NUMBER, /* any other number, as text: complex, integers beyond 64 bits */
    TUCK_V_STR,    /* its text is the content, with escapes resolved */
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
    TUCK_V_RAW,   /* anything else, verbatim: TUCK_V_TEXT and TUCK_V_NODE pieces */
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
TUCK_API size_t tuck_value_len(const tuck_value *v); /* items; 0 for atoms */
/* NULL if there is no such item */
TUCK_API const tuck_value *tuck_value_item(const tuck_value *v, size_t i);
TUCK_API const tuck_value *tuck_value_next(const tuck_value *v); /* what follows v and its items */
TUCK_API int64_t tuck_value_int(const tuck_value *v);            /* int or bool, else 0 */
TUCK_API double tuck_value_float(const tuck_value *v);           /* float, int or bool, else 0 */
TUCK_API tuck_node tuck_value_node(const tuck_value *v);         /* none if it is not one */
/* A string's content; the text of atoms that are kept as text; "" for the rest. */
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
 * The dtype, sizes, strides and device of every node, computed from the inputs on. If the text
 * is annotated, the annotation is used. If there is no rule, the type is unknown, and nothing
 * downstream guesses. After an edit the types of new nodes are unknown until the next call. */
typedef enum tuck_check {
    TUCK_TRUST_ANNOTATIONS,
    TUCK_CHECK_ANNOTATIONS, /* warns if the operands contradict an annotation */
} tuck_check;

TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_infer(tuck_graph *g, tuck_check check,
                                                      tuck_diags *diags);

/* As in an annotation, f32[8, s0][s0, 1]cuda:0; lists of results in parentheses; "?" if unknown. */
TUCK_API tuck_status tuck_node_type(const tuck_graph *g, tuck_node n, tuck_write_fn write,
                                    void *ctx);
/* The bytes of a tensor; false if it is not a tensor, unknown, or has symbols in its sizes. */
TUCK_API bool tuck_node_bytes(const tuck_graph *g, tuck_node n, int64_t *out);

/* ---- Process groups ----
 * What is known about the groups that collectives name. A group that is a value in the graph is
 * named by its definition: "self._opaque_obj0", "mesh_get_process_group(arg0_1, 1)". Sizes come
 * from collectives that print them and from a runnable script, then from the calls below; later
 * ones win. */

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
/* Sets the global rank that the graph belongs to, and so its position in each group with known
 * members. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_set_rank(tuck_graph *g, int64_t rank,
                                                         tuck_diags *diags);
/* Reads the side-car of a graph file, if there is one: X.json for X.txt; for X.rankR.txt also
 * X.json with its groups_by_rank. rank < 0: from the side-car or the file's name. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_read_sidecar(tuck_graph *g, const char *graph_path,
                                                             int64_t rank, tuck_diags *diags);

/* Completes what is unknown about the groups of `to` from `from`, which may be a graph of another
 * document. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_inherit_groups(const tuck_graph *from,
                                                               tuck_graph *to);

/* ---- Symbols ----
 * Symbolic sizes: s0, u1. Bytes and times need their values. Those of a graph come from a
 * runnable script, from the line above the graph and from its side-car, then from
 * tuck_graph_set_symbol(); later values win. A machine's hints override all of them. */

/* the value of a symbol; "*" means every symbol without a value of its own */
typedef struct tuck_hint {
    const char *symbol;
    int64_t value;
} tuck_hint;

/* The values that a graph was given, in that order; the last one of a symbol counts. */
TUCK_API size_t tuck_graph_hint_count(const tuck_graph *g);
/* false if there is no such entry */
TUCK_API bool tuck_graph_hint(const tuck_graph *g, size_t i, tuck_hint *out);
/* TUCK_EINVAL: a negative value, or no name. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_set_symbol(tuck_graph *g, const char *symbol,
                                                           int64_t value);

typedef enum tuck_symbol_state {
    TUCK_SYMBOL_KNOWN,
    TUCK_SYMBOL_ASSUMED, /* it depends on data (u0): a default value is used */
    TUCK_SYMBOL_MISSING, /* unknown: what depends on it has neither bytes nor a time */
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
/* NULL if there is no such entry */
TUCK_API const tuck_symbol *tuck_symbols_at(const tuck_symbols *s, size_t i);

/* From now on the text of the graph contains what is known about it and the text would not contain
 * otherwise: groups, the rank, values of symbols. It is a line `# tuck: {…}` above the graph, which
 * the reader understands (docs/graph-text.md). If nothing is missing there is no such line. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_remember(tuck_graph *g);

/* ---- Descriptions ----
 * A description of the graphs of a document: nodes by class, inputs and outputs, collectives by
 * group, the most that is live at once. Needs tuck_graph_infer(). */

typedef struct tuck_describe_options {
    size_t size;
    size_t from, count;     /* which graphs; count 0 means all from there on */
    const char *file;       /* for titles and JSON */
    const tuck_hint *hints; /* values of symbols, for sizes in bytes */
    size_t n_hints;
} tuck_describe_options;

TUCK_API void tuck_describe_options_init(tuck_describe_options *o);

typedef struct tuck_description tuck_description;

/* The document must outlive the description and not change. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_doc_describe(const tuck_doc *doc,
                                                       const tuck_describe_options *options,
                                                       tuck_description **out);
TUCK_API void tuck_description_free(tuck_description *d);

/* For one graph; bytes are -1 if some are unknown. Nested graphs count in nodes, opaque and
 * collectives. */
typedef struct tuck_graph_facts {
    size_t size;
    size_t nodes, nested, opaque;
    size_t inputs, parameters, buffers, outputs, collectives;
    int64_t input_bytes, output_bytes;
    int64_t peak_bytes; /* live at once in this order, if inputs are never freed */
} tuck_graph_facts;

TUCK_API size_t tuck_description_count(const tuck_description *d);
/* out->size must be set. False if there is no such graph. */
TUCK_API bool tuck_description_facts(const tuck_description *d, size_t i, tuck_graph_facts *out);
/* A table, or everything about every node as JSON. */
TUCK_API tuck_status tuck_description_print(const tuck_description *d,
                                            const tuck_print_options *how, tuck_write_fn write,
                                            void *ctx);

/* ---- Cost ----
 * Times of collectives and kernels on a machine: docs/cost-model.md. A cluster never changes once
 * it is made and may be used by several threads. */

typedef struct tuck_cluster tuck_cluster;

/* By name, DEVICE[xPER_NODE[xNODES]]: "h100x8x4", "a100", "cpu-loopback". TUCK_EINVAL: no such
 * name. */
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
/* The default cluster: h100x8 with as many nodes as the graph's largest group needs; cpu-loopback
 * for graphs on the cpu. Needs tuck_graph_infer(). Without a graph (NULL): h100x8. Output that uses
 * such a cluster says that it is assumed. */
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
    TUCK_OTHER_COLLECTIVE,   /* another kind; costs as much as a broadcast */
    TUCK_NESTED_COLLECTIVES, /* a call of graphs that communicate; has no cost itself */
} tuck_coll;

typedef enum tuck_algorithm {
    TUCK_ALGO_LIBRARY = 1, /* whatever the measured library chose */
    TUCK_ALGO_RING,
    TUCK_ALGO_TREE,
    TUCK_ALGO_ONE_SHOT, /* needs symmetric memory, and so does the next */
    TUCK_ALGO_TWO_SHOT,
    TUCK_ALGO_HIERARCHICAL,
    TUCK_ALGO_PAIRWISE,
    TUCK_ALGO_DIRECT,
} tuck_algorithm;

/* How a time is computed. AUTO: the first of the next four that covers the case. */
typedef enum tuck_cost_model {
    TUCK_MODEL_AUTO,
    TUCK_MODEL_TABLE,      /* measured points, log-log interpolation; outside them their law */
    TUCK_MODEL_LAW,        /* a + c sqrt(bytes) + bytes/B, fitted to measured points */
    TUCK_MODEL_NCCL,       /* NCCL's own formulas */
    TUCK_MODEL_ALPHA_BETA, /* Hockney, hierarchical over nodes */
    TUCK_MODEL_TORCH,      /* what PyTorch's Inductor estimates, 2026 */
    TUCK_MODEL_TORCH_OLD,  /* what it estimated from 2023 to early 2026 */
} tuck_cost_model;

/* "all_reduce", "ring", "alpha-beta". The reverse functions return 0, or -1 for models, if there is
 * no such name. */
TUCK_API const char *tuck_coll_name(tuck_coll coll);
TUCK_API const char *tuck_algorithm_name(tuck_algorithm a);
TUCK_API const char *tuck_cost_model_name(tuck_cost_model m);
TUCK_API tuck_coll tuck_coll_by_name(const char *name);
TUCK_API int tuck_cost_model_by_name(const char *name);

/* A question about a collective. Zero is a good default for everything except coll and ranks. */
typedef struct tuck_collective {
    tuck_coll coll;
    int64_t bytes;          /* the full message: a rank's input or output, whichever is larger */
    int64_t ranks;          /* of the group */
    int64_t stride;         /* between its members' global ranks; 0 means 1 */
    const int64_t *members; /* global ranks, `ranks` of them, instead of a stride; or NULL */
    tuck_cost_model model;  /* TABLE and LAW fall back like AUTO if they have no answer */
    bool symmetric;         /* the operand is in symmetric memory: allows one-shot and two-shot */
    bool hierarchical;      /* allow phases within nodes and across nodes */
    /* PyTorch's rule: one-shot up to this size, even if slower; 0 means off */
    int64_t one_shot_bytes;
} tuck_collective;

enum { TUCK_MAX_ALTERNATIVES = 16 };

/* The answer and how it was computed; latency_ps + ramp_ps + bytes_ps = ps. */
typedef struct tuck_collective_cost {
    int64_t ps;
    int64_t latency_ps; /* for any size */
    int64_t ramp_ps;    /* in a three-term law: what grows with the square root of the size */
    int64_t bytes_ps;   /* moving the bytes */
    tuck_cost_model model;
    tuck_algorithm algorithm;
    const char *protocol;    /* for NCCL: "LL", "LL128", "SIMPLE", "NVLS"; else "" */
    const char *source;      /* the source of the numbers, one line */
    int64_t nodes, per_node; /* placement of the group: nodes, most ranks on one */
    uint32_t n_alternatives; /* includes the chosen one; cheapest first */
    struct {
        int64_t ps;
        tuck_cost_model model;
        tuck_algorithm algorithm;
        const char *protocol;
        bool symmetric; /* needs symmetric memory */
    } alternative[TUCK_MAX_ALTERNATIVES];
} tuck_collective_cost;

/* TUCK_EINVAL: no such collective, negative sizes, members that are not ranks. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_cost_collective(const tuck_cluster *c,
                                                          const tuck_collective *q,
                                                          tuck_collective_cost *out);

/* The smallest message that keeps a link busy for the share `efficiency` (0.9) of its time:
 * PyTorch's estimate for TUCK_MODEL_TORCH and AUTO, else from the model itself. Ignores q's
 * bytes. */
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
/* NULL if there is no such entry */
TUCK_API const char *tuck_profile_name(const tuck_profile *p, size_t i);
/* The time of the node with that name. False: it is not in the profile. */
TUCK_API bool tuck_profile_ps(const tuck_profile *p, const char *name, int64_t *ps_out);
/* Can a node take time at all? Views, waits and inputs do not, even if a profile has a time for
 * them. */
TUCK_API bool tuck_node_takes_time(const tuck_graph *g, tuck_node n);
/* A caller's own estimate of a node; -1: none, and the profile's or the model's is used.
 * otherwise_ps is the model's, -1 if it has none. */
typedef int64_t (*tuck_estimate_fn)(void *ctx, const tuck_graph *g, tuck_node n,
                                    int64_t otherwise_ps);

/* ---- The machine ----
 * The machine for which times and sizes are computed. Lowering, simulating, explaining,
 * optimizing and comparing take one; NULL means the default machine of the graph. */

typedef enum tuck_contention {
    TUCK_LINKS_FREE,   /* collectives of different groups do not slow each other down */
    TUCK_LINKS_SHARED, /* they share their links, and kernels run slower next to them */
} tuck_contention;

typedef enum tuck_unknown {
    /* a group without a size has all ranks, a loop runs once: tuck_graph_assumptions() */
    TUCK_ASSUME,
    TUCK_REFUSE, /* TUCK_EINVAL, with an error for each unknown group, loop or size */
} tuck_unknown;

typedef struct tuck_simulation tuck_simulation;

typedef struct tuck_machine {
    size_t size;
    const tuck_cluster *cluster; /* NULL: tuck_cluster_for_graph() */
    const tuck_profile *profile; /* its times are used instead of the model's; or NULL */
    tuck_cost_model model;       /* of collectives */
    tuck_estimate_fn estimate;   /* overrides profile and model; or NULL */
    void *estimate_ctx;
    const tuck_hint *hints; /* values of symbols; they override those of the graph */
    size_t n_hints;
    double bandwidth; /* link speed factor; 0 means 1 */
    tuck_contention contention;
    tuck_unknown unknown;
    /* Collectives that the profile does not have get their times from the laws fitted for this
     * simulation, so that a graph before and after passes is measured the same way; NULL: from laws
     * fitted to the graph itself. */
    const tuck_simulation *like;
    /* Groups with symmetric memory, "*" means all: their all-reduces may become one-shot kernels.
     * They live as long as what is made with the machine. */
    const char *const *symm_groups;
    size_t n_symm_groups;
} tuck_machine;

TUCK_API void tuck_machine_init(tuck_machine *m);

/* How contention is modeled on a cluster, one sentence. */
TUCK_API const char *tuck_cluster_contention(const tuck_cluster *c);

/* What the times of a graph assume because it is not given. */
typedef enum tuck_assumed {
    TUCK_ASSUMED_RANKS, /* the size of group `name` is assumed to be `value` */
    TUCK_ASSUMED_TRIPS, /* `value` loops, `name` the first of them, are assumed to run once */
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
/* One line each; nothing if nothing is assumed. */
TUCK_API tuck_status tuck_assumptions_print(const tuck_assumptions *a,
                                            const tuck_print_options *how, tuck_write_fn write,
                                            void *ctx);

/* ---- Editing ----
 * Every call keeps the lists of users correct. A call that fails changes nothing.
 *
 * Order. Inputs come first and the return last: TUCK_EINVAL for anything before an input or after
 * the return. The inputs are the parameters of the signature, in the same order; Python's rules
 * about defaults and stars apply. If the text flattens its parameters (pytree), the number and
 * order of inputs is fixed: TUCK_EINVAL. Whether a node comes after what it uses is checked at the
 * end: tuck_graph_sort() ensures it, tuck_graph_lint() checks it.
 *
 * Names are made as in PyTorch 2.13: turned into an identifier, and numbered if already used. A
 * name is never reused, even after its node is erased, and neither is a word that the text uses for
 * something else (a global, a symbol). Conversely, a target or operand whose first word is the name
 * of a node is TUCK_EINVAL. A node that a nested graph mentions by name can neither be renamed nor
 * erased.
 *
 * Opaque statements can only be moved and erased, with everything they assign.
 */

/* An argument list under construction: values in order, containers opened and closed,
 * tuck_args_key() before the value of a keyword. The first error is kept until the list is used. */
typedef struct tuck_args tuck_args;
TUCK_API tuck_args *tuck_args_new(tuck_graph *g); /* NULL if out of memory */
TUCK_API void tuck_args_free(tuck_args *a);
TUCK_API void tuck_args_clear(tuck_args *a);
TUCK_API void tuck_args_none(tuck_args *a);
TUCK_API void tuck_args_bool(tuck_args *a, bool v);
TUCK_API void tuck_args_int(tuck_args *a, int64_t v);
TUCK_API void tuck_args_float(tuck_args *a, double v);
TUCK_API void tuck_args_str(tuck_args *a, const char *v);
TUCK_API void tuck_args_node(tuck_args *a, tuck_node n);
/* Any operand in Python's notation, on one line: "torch.bfloat16", "device(type='cuda', index=0)",
 * "[1, x]". Names of nodes are nodes; other undefined names are an error. */
TUCK_API void tuck_args_text(tuck_args *a, const char *text);
/* A copy of a value of the same graph. */
TUCK_API void tuck_args_value(tuck_args *a, const tuck_value *v);
/* Opens a list, tuple, dict, set, slice or torch.Size; tuck_args_close() closes the innermost. */
TUCK_API void tuck_args_open(tuck_args *a, tuck_value_kind container);
TUCK_API void tuck_args_close(tuck_args *a);
TUCK_API void tuck_args_key(tuck_args *a, const char *name);

/* A position in the order of nodes. Without a node: as far to the front, or to the back, as a node
 * of its kind may be. After an opaque statement means after everything it assigns. */
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

/* Adds a node. `target` is what tuck_node_target() would return; for an input the parameter (NULL:
 * the same as its name), for the return NULL. `name` is a suggestion; NULL: derived from the target
 * ("add_tensor" for torch.ops.aten.add.Tensor). `annotation` is the text between the quotes, or
 * NULL; in a text that was read, strides and devices are omitted if the other annotations have
 * none. args may be NULL: none. Calls are spelled as operators (x + y, x[0], x.shape) if such a
 * text can be read again. */
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
/* The new name is a suggestion, as in tuck_graph_add(). */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_node_rename(tuck_graph *g, tuck_node n, const char *name);
TUCK_API TUCK_MUST_CHECK tuck_status tuck_node_move(tuck_graph *g, tuck_node n, tuck_where where);
/* Only a node without users. The parameter of an input is erased with it. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_node_erase(tuck_graph *g, tuck_node n);
/* Replaces every use of `old` by `with`, except for those in `except` (none: replaces all). The
 * result must not make `with` its own operand. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_node_replace_uses(tuck_graph *g, tuck_node old,
                                                            tuck_node with, tuck_node except);

/* Erases unused nodes without effects, also in nested graphs. Inputs stay, and so does whatever
 * writes an operand, draws random numbers (as in Node.is_impure()), communicates, waits, checks,
 * calls a module or an unknown operator, or calls a nested graph that does. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_remove_dead(tuck_graph *g, size_t *removed_out);

/* Puts every node after what it uses, with a stable sort: of the nodes that could come next, the
 * one that was first. Nodes with effects (those that tuck_graph_remove_dead() would keep) stay in
 * order among each other, and reads stay on their side of writes to the same storage, unless a use
 * contradicts that. Nested graphs are not changed. TUCK_ELINT on a cycle, which the diagnostic
 * names; then nothing moves. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_sort(tuck_graph *g, tuck_diags *diags);

/* Checks uses, order, names, the pairing of collectives and waits; also in nested graphs. The
 * result of a collective may be used by a wait, by [i], by queries of its sizes, by unknown
 * operators, and by nothing else; a buffer it works on in place must not be used until the wait. A
 * collective that is never waited for, or that the outermost graph returns without a wait, is a
 * warning. If an edit moved a read across a write to the same storage, that is an error. TUCK_ELINT
 * if there was an error; warnings alone are fine. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_lint(const tuck_graph *g, tuck_diags *diags);

/* What lint found in the graphs of a file: one line with the counts, or as JSON the diagnostics in
 * `found` (which may be NULL for the line). */
typedef struct tuck_lint_sum {
    size_t size;
    const char *file;
    size_t graphs, nodes;    /* that were checked */
    size_t errors, warnings; /* a list of diagnostics keeps the first 50 warnings only */
} tuck_lint_sum;

TUCK_API void tuck_lint_sum_init(tuck_lint_sum *sum);
TUCK_API tuck_status tuck_lint_print(const tuck_lint_sum *sum, const tuck_diags *found,
                                     const tuck_print_options *how, tuck_write_fn write, void *ctx);

/* ---- Simulating ----
 * The time and memory of a graph on a machine in its current order: lowered, estimated, run op
 * by op on its streams, and with lower bounds. docs/simulation.md explains it. */

typedef struct tuck_times { /* of a step */
    int64_t step_ps, compute_ps, comm_ps;
    int64_t exposed_ps; /* communication that compute does not hide */
    int64_t launch_ps;  /* the host's part, if it counts */
    int64_t slowed_ps;  /* compute time added by contention */
    int64_t peak_bytes, resident_bytes;
} tuck_times;

typedef struct tuck_bound { /* no order makes a step faster than this; -1 if unknown */
    int64_t any_ps;         /* also with any bucketing and any algorithm */
    int64_t order_ps;       /* with the collectives of the graph */
    /* what limits it, in one word; in one sentence */
    const char *any_kind, *any_meaning, *order_kind;
} tuck_bound;

typedef struct tuck_sim_op { /* an op of the lowered graph, with its start and end */
    const char *name, *kind; /* "collective", "wait", "fused", … */
    const char *group;       /* of a collective; "" for ops on the compute stream */
    const char *coll;        /* "all_gather"; "" for everything else */
    const char *algorithm;
    int64_t bytes; /* the message of a collective; -1 if unknown */
    int64_t start_ps, end_ps;
    int64_t exposed_ps; /* of a collective */
} tuck_sim_op;

/* Infers types. The graph and the machine's cluster and profile must outlive the simulation.
 * TUCK_EINVAL: too much is unknown, see the diagnostics. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_simulate(tuck_graph *g, const tuck_machine *m,
                                                         tuck_diags *diags, tuck_simulation **out);
TUCK_API void tuck_simulation_free(tuck_simulation *s);
TUCK_API void tuck_simulation_times(const tuck_simulation *s, tuck_times *out);
TUCK_API void tuck_simulation_bound(const tuck_simulation *s, tuck_bound *out);
TUCK_API uint32_t tuck_simulation_op_count(const tuck_simulation *s);
TUCK_API bool tuck_simulation_op(const tuck_simulation *s, uint32_t op, tuck_sim_op *out);
/* number of ops without a time */
TUCK_API uint32_t tuck_simulation_unknown(const tuck_simulation *s);
TUCK_API const tuck_cluster *tuck_simulation_cluster(const tuck_simulation *s);
TUCK_API const tuck_assumptions *tuck_simulation_assumptions(const tuck_simulation *s);
/* top: the number of most exposed collectives (10); detail: TUCK_DETAIL_TIMELINE. */
TUCK_API tuck_status tuck_simulation_print(const tuck_simulation *s, const tuck_print_options *how,
                                           tuck_write_fn write, void *ctx);

/* ---- Explaining ---- */

typedef enum tuck_order_rule {
    /* the default: right if all ranks run the same graph and decide alike. Sends, receives,
     * collectives of an unknown kind, of an unknown group or of one whose size is assumed, and
     * nested graphs that communicate keep their place among all others. Passes with PyTorch's names
     * keep the order in groups. */
    TUCK_ORDER_FREE,
    /* collectives of one group keep their order, those of different groups may pass each other */
    TUCK_ORDER_IN_GROUPS,
    TUCK_ORDER_OF_ALL, /* no collective may pass another */
} tuck_order_rule;

/* Progress: called before and after each pass, with its name and how many came before it; while
 * explaining only before each remedy that is tried. g is the graph at that point. Returning false
 * ends the work with TUCK_EIO. */
typedef bool (*tuck_observe_fn)(void *ctx, const char *what, size_t step, bool after,
                                const tuck_graph *g);

typedef struct tuck_explain_options {
    size_t size;
    const char *node; /* explain this one; NULL: the whole step */
    /* how commands in the output name the graph, "step.txt --group 0=8"; NULL means FILE */
    const char *subject;
    tuck_order_rule order;
    tuck_observe_fn observe; /* or NULL */
    void *ctx;
    const struct tuck_decision *decision; /* and why `node` is in its bucket of this; or NULL */
} tuck_explain_options;

TUCK_API void tuck_explain_options_init(tuck_explain_options *o);

typedef struct tuck_exposed { /* a collective */
    const char *name, *wait;  /* wait: "" if nothing waits for it */
    int64_t ps, exposed_ps, hidden_ps;
    int64_t queued_ps;      /* how long it waits for others of its group before it starts */
    uint32_t under;         /* compute ops that run at the same time */
    const char *limit;      /* what keeps it from being hidden, in one word: docs/simulation.md */
    const char *limit_node; /* the op that limits it, or "" */
    int64_t more_bytes;     /* limit "memory": bytes above the peak that hiding it would need */
} tuck_exposed;

typedef struct tuck_remedy { /* something that was tried and helps */
    const char *what;
    int64_t step_ps, peak_bytes;
    uint32_t hidden; /* collectives that are no longer exposed */
    /* options of the `tuck optimize` command that applies it; NULL if there is none */
    const char *options;
} tuck_remedy;

typedef struct tuck_explanation tuck_explanation;

/* Like tuck_graph_simulate(), plus why communication is exposed, and what would help. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_explain(tuck_graph *g, const tuck_machine *m,
                                                        const tuck_explain_options *options,
                                                        tuck_diags *diags, tuck_explanation **out);
TUCK_API void tuck_explanation_free(tuck_explanation *x);
TUCK_API const tuck_simulation *tuck_explanation_simulation(const tuck_explanation *x);
/* Is the node part of an op? */
TUCK_API bool tuck_explanation_has(const tuck_explanation *x, const char *node);
/* Collectives, the most exposed first. */
TUCK_API size_t tuck_explanation_count(const tuck_explanation *x);
TUCK_API bool tuck_explanation_at(const tuck_explanation *x, size_t i, tuck_exposed *out);
TUCK_API size_t tuck_explanation_remedy_count(const tuck_explanation *x);
TUCK_API bool tuck_explanation_remedy(const tuck_explanation *x, size_t i, tuck_remedy *out);
TUCK_API tuck_status tuck_explanation_print(const tuck_explanation *x,
                                            const tuck_print_options *how, tuck_write_fn write,
                                            void *ctx);

/* ---- Comparing ---- */

typedef struct tuck_diff tuck_diff;

/* Compares two versions of a graph. Both simulations and their graphs must outlive the result. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_simulation_diff(const tuck_simulation *before,
                                                          const tuck_simulation *after,
                                                          tuck_diff **out);
TUCK_API void tuck_diff_free(tuck_diff *d);

typedef struct tuck_diff_side { /* the graph before, or the graph after */
    tuck_times times;
    int64_t bound_ps; /* no order, bucketing or algorithm makes it faster; -1 if unknown */
    size_t nodes;     /* without inputs and the return */
    size_t collectives;
} tuck_diff_side;

TUCK_API void tuck_diff_before(const tuck_diff *d, tuck_diff_side *out);
TUCK_API void tuck_diff_after(const tuck_diff *d, tuck_diff_side *out);
TUCK_API size_t tuck_diff_same(const tuck_diff *d); /* nodes that are in both graphs */
/* The same node in the other graph, from before to after and back; none if it is not there. */
TUCK_API tuck_node tuck_diff_node_after(const tuck_diff *d, tuck_node before);
TUCK_API tuck_node tuck_diff_node_before(const tuck_diff *d, tuck_node after);

typedef enum tuck_change {
    TUCK_APPEARED, /* only in the graph after */
    TUCK_VANISHED, /* only in the graph before */
    TUCK_MERGED,   /* a collective of the graph before that was merged into a new one */
    TUCK_MOVED,    /* in both; the fewest nodes that explain the new order */
} tuck_change;

typedef struct tuck_changed {
    tuck_node before, after; /* none if it is not in that graph */
    /* For a moved node: its position among the nodes of both, before and after, and how many
     * unmoved nodes it passed: positive if it is later now, negative if earlier. */
    uint32_t from, to;
    int64_t places;
} tuck_changed;

TUCK_API size_t tuck_diff_count(const tuck_diff *d, tuck_change change);
/* In the order of the graph before for TUCK_VANISHED and TUCK_MERGED, else of the graph after.
 * False if there is no such change. */
TUCK_API bool tuck_diff_at(const tuck_diff *d, tuck_change change, size_t i, tuck_changed *out);
TUCK_API tuck_status tuck_diff_print(const tuck_diff *d, const tuck_print_options *how,
                                     tuck_write_fn write, void *ctx);

/* ---- Pictures ---- */

typedef struct tuck_page tuck_page;

/* A page of simulated steps: as self-contained HTML, or as a trace for Perfetto. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_page_new(const char *title, const tuck_allocator *alloc,
                                                   tuck_page **out);
TUCK_API void tuck_page_free(tuck_page *p);
/* One graph, simulated n times (before and after), each with a label. The simulations must outlive
 * the page. The title may be "" if it is the only graph of the page. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_page_add(tuck_page *p, const char *title,
                                                   tuck_simulation *const *s,
                                                   const char *const *label, size_t n);
TUCK_API tuck_status tuck_page_html(const tuck_page *p, tuck_write_fn write, void *ctx);
TUCK_API tuck_status tuck_page_trace(const tuck_page *p, tuck_write_fn write, void *ctx);
/* The page of one step, as HTML; after: the step afterwards, on the same page, or NULL. */
TUCK_API tuck_status tuck_simulation_html(const tuck_simulation *s, const tuck_simulation *after,
                                          const char *title, tuck_write_fn write, void *ctx);

/* ---- Passes ----
 * A pass rewrites a graph and reports what it did. A pipeline is a list of them with options:
 *
 *   deduplicate_wait_tensors, bucket_all_gather(cap_mb=50:500)
 *
 * separated by commas or lines, # begins a comment. In a list of values the last one repeats.
 * Keys of PyTorch's configuration are accepted, too (bucket_all_gathers_fx=all).
 * docs/passes.md explains each. */

TUCK_API size_t tuck_pass_count(void);
TUCK_API const char *tuck_pass_name(size_t pass); /* NULL after the last */
TUCK_API const char *tuck_pass_help(size_t pass); /* one line */

typedef struct tuck_option {
    const char *name;
    const char *type; /* bool, int, float, text, numbers, names, or a|b|c */
    const char *dflt, *help;
} tuck_option;
TUCK_API size_t tuck_pass_option_count(size_t pass);
TUCK_API bool tuck_pass_option(size_t pass, size_t option, tuck_option *out);

/* All passes with their options and the keys of PyTorch; one pass; the reasons why passes leave
 * candidates alone. */
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
/* Does it contain a pass that uses times, and therefore the machine? */
TUCK_API bool tuck_pipeline_is_timed(const tuck_pipeline *p);

/* The same step by step. A failed call adds nothing. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_pipeline_new(const tuck_allocator *alloc,
                                                       tuck_pipeline **out);
/* A pass by its name, with options as text: "cap_mb=50:500, mode=coalesced"; NULL means the
 * defaults. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_pipeline_add(tuck_pipeline *p, const char *pass,
                                                       const char *options, tuck_diags *diags);

/* The steps of a text, as tuck_pipeline_parse() reads it. After a failure the pipeline may only be
 * freed. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_pipeline_add_text(tuck_pipeline *p, const char *text,
                                                            size_t len, const char *name,
                                                            tuck_diags *diags);

/* A pass of the caller. It edits g, a copy with the same node ids and inferred types, and must not
 * free it. The step is run like those of the table: linted, reported, new nodes typed and
 * annotated, and the caller's graph is replaced only on success. Any result but TUCK_OK is the
 * result of the run and leaves the graph unchanged; so does TUCK_ELINT if the pass left an invalid
 * graph. diags may be NULL; use tuck_diags_add() to say more. */
typedef tuck_status (*tuck_pass_fn)(void *ctx, tuck_graph *g, tuck_diags *diags);
/* The name is for reports and diagnostics. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_pipeline_append(tuck_pipeline *p, const char *name,
                                                          tuck_pass_fn fn, void *ctx);

/* Functions instead of options of the passes bucket_…; each may be NULL. */
typedef struct tuck_bucket_options {
    size_t size;
    /* MiB that a bucket may hold, by its number in its run of collectives with equal keys: the
     * first one is often exposed, and better small. Called once per bucket. If the result is
     * negative or not a number, the pass fails. */
    double (*cap_mb)(void *ctx, size_t bucket);
    /* May the collective that `wait` waits for be merged? False: it is left alone, reason
     * "filtered". */
    bool (*filter)(void *ctx, const tuck_graph *g, tuck_node wait);
    void *ctx;
} tuck_bucket_options;
TUCK_API void tuck_bucket_options_init(tuck_bucket_options *rules);
/* tuck_pipeline_add() with such functions. Also TUCK_EINVAL for a pass without buckets. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_pipeline_add_bucket(tuck_pipeline *p, const char *pass,
                                                              const char *options,
                                                              const tuck_bucket_options *rules,
                                                              tuck_diags *diags);

typedef enum tuck_judge {
    TUCK_JUDGE_NOTHING,
    TUCK_JUDGE_RESULT, /* simulate the graph before and after the passes, for the report */
} tuck_judge;

typedef struct tuck_decision tuck_decision; /* tuck_experimental.h */

typedef struct tuck_progress { /* of tuck_graph_optimize() */
    int64_t step_ps;           /* the best so far; -1 if nothing fits yet */
    int64_t bound_ps;          /* nothing is faster than this; -1 if there is no bound */
    double done;               /* the share of the work, an estimate: from 0 to 1 */
    uint32_t tries;            /* passes that were run on copies of the graph */
} tuck_progress;
/* Called before each try. Returning false ends the search: its result is the best so far, and the
 * report says how many tries that were; `tries` of the options repeats it. */
typedef bool (*tuck_progress_fn)(void *ctx, const tuck_progress *p);

typedef struct tuck_run_options {
    size_t size;
    const tuck_machine *machine; /* for passes on schedules, and for judging; NULL: the default */
    tuck_observe_fn observe;     /* progress: before and after each pass; or NULL */
    void *ctx;
    tuck_order_rule order; /* the report says if collectives changed places */
    tuck_judge judge;      /* tuck_graph_optimize() always does */
    /* The peak that tuck_graph_optimize() may reach, in bytes. If `memory` is 0: the graph's own
     * peak times 1 + memory_share, plus memory_more bytes. */
    int64_t memory, memory_more;
    double memory_share;
    /* If not NULL, a successful run stores the simulations of the graph before and after; NULL if
     * sizes are unknown. The caller frees them. */
    tuck_simulation **before_out, **after_out;
    /* How much tuck_graph_optimize() tries, from 0 (one order for each of a few ways to bucket) to
     * 9. The same effort gives the same result on every machine. */
    uint32_t effort;
    /* If not NULL, a successful run stores what was done, to be repeated; the caller frees it:
     * tuck_experimental.h. */
    tuck_decision **decision_out;
    tuck_progress_fn progress; /* of tuck_graph_optimize(); or NULL */
    void *progress_ctx;
    uint32_t tries; /* after so many, tuck_graph_optimize() takes the best; 0: no limit */
} tuck_run_options;

TUCK_API void tuck_run_options_init(tuck_run_options *o);

typedef struct tuck_report tuck_report;
/* Runs the passes one by one; each is atomic. A graph with lint errors is refused, TUCK_ELINT with
 * its diagnostics, and nothing is run. If a pass fails, the graph is the result of the passes
 * before it. *report_out (may be NULL) is also written on failure; the caller frees it. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_pipeline_run(const tuck_pipeline *p, tuck_graph *g,
                                                       const tuck_run_options *options,
                                                       tuck_diags *diags, tuck_report **report_out);
TUCK_API void tuck_report_free(tuck_report *t);

/* How many tries tuck_graph_optimize() made; *stopped: it did not make all. */
TUCK_API uint32_t tuck_report_tries(const tuck_report *t, bool *stopped);

typedef struct tuck_gain {
    tuck_times before, after;
    /* no order, bucketing or algorithm makes the original graph faster than this; -1 if there is no
     * bound, because the time of an op is unknown */
    int64_t bound_ps;
    /* what limits it, in one word and in one sentence; NULL if there is no bound */
    const char *bound_kind, *bound_meaning;
    bool changed;
    int64_t memory_limit; /* the allowed peak in bytes */
    bool over_limit;      /* neither the original graph nor anything that was tried fits */
} tuck_gain;

/* The default passes: bucketing to the size that saturates the link, and orders that hide
 * communication. Several ways are tried and simulated; the fastest within the memory limit is kept,
 * or one that is at most a thousandth slower and needs less memory. If none is faster the graph
 * stays unchanged, unless it does not fit itself: then what fits may be slower. observe sees
 * everything that is tried. gain_out and report_out may be NULL. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_optimize(tuck_graph *g,
                                                         const tuck_run_options *options,
                                                         tuck_diags *diags, tuck_gain *gain_out,
                                                         tuck_report **report_out);
/* The step before and after, from the report; false if it was not simulated. */
TUCK_API bool tuck_report_gain(const tuck_report *t, tuck_gain *out);
/* form: TUCK_PRINT_BRIEF is one line per pass; detail: TUCK_DETAIL_TIMES, TUCK_DETAIL_STATS. */
TUCK_API tuck_status tuck_report_print(const tuck_report *t, const tuck_print_options *how,
                                       tuck_write_fn write, void *ctx);

#ifdef __cplusplus
}
#endif
#endif

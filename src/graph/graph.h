/* The internal form of a graph as PyTorch prints it.
 *
 *   doc ── graph ── nodes (array, linked in order) ── vals (flat argument list)
 *             │         └── uses: who mentions this node, and in which val
 *             └── children: nested classes
 *   store: strings and annotations, shared by all graphs of a document and their copies
 *
 * Nodes are addressed by id: an index into graph->node. Id 0 is the head of the list: its
 * next is the first node, its prev the last. Ids are never reused, so a pass may
 * index plain arrays by them.
 */
#ifndef TUCK_GRAPH_GRAPH_H
#define TUCK_GRAPH_GRAPH_H

#include "base/arena.h"
#include "base/check.h"
#include "base/diag.h"
#include "base/str.h"
#include "graph/annotation.h"
#include "sym/sym.h"
#include "graph/type.h"
#include "graph/value.h"

#ifdef TUCK_STRESS /* nothing may assume that ids start at 1 */
#define FX_FIRST_ID 977
#else
#define FX_FIRST_ID 1
#endif

struct fx_use {
    uint32_t user, slot; /* node `user` mentions it in vals[slot] */
    uint32_t next, prev; /* in the list of the mentioned node; 0 ends it */
};

struct fx_node {
    uint32_t prev, next;
    uint8_t kind;   /* tuck_kind; 0 = erased */
    uint8_t syntax; /* enum fx_syntax: how the statement is spelled */
    uint16_t op;    /* row of ops.def, 0 = unknown */
    str_id name;
    str_id target;
    uint32_t n_vals;  /* all values, including those inside containers */
    tuck_value *vals; /* n_args arguments, then n_kwargs times a key and a value */
    uint32_t n_args, n_kwargs;
    uint32_t use_first, use_last, n_uses;
    uint32_t ann;         /* annotation, 0 = none */
    str_id comment, lead; /* the current comment; the raw lines before the statement as read */
    uint32_t line, column;
    uint32_t pos; /* position in the order, valid if graph->ordered */
    /* when lowered, it is not fused with a loop before it; FX_APART after the statement marks it */
    bool apart;
};

/* Marks loops that must not be fused although an order made them adjacent. */
#define FX_APART "# tuck: a loop of its own"

/* A line above a graph with facts that its text does not contain, as JSON. */
#define FX_KNOWN "# tuck: {"

enum fx_syntax {
    FX_CALL,      /* callee(args) */
    FX_OPERATOR,  /* a + b, -a, a[b], a += b, a[b] = c: by the row of the operator */
    FX_ATTRIBUTE, /* x.shape: builtin getattr of two arguments */
};

enum fx_form { FX_CLASS, FX_DEF };
enum fx_frees { FX_FREES_FULL, FX_FREES_NOT_SELF, FX_FREES_NONE };
enum fx_prologue { FX_PLAIN, FX_BOXED, FX_PYTREE, FX_BYTECODE };
enum fx_return { FX_RETURN_PLAIN, FX_RETURN_PYTREE, FX_RETURN_BYTECODE, FX_RETURN_MISSING };

/* What the text looked like, so that it is printed the same way. */
struct fx_style {
    uint8_t form;                /* enum fx_form */
    uint8_t frees;               /* enum fx_frees */
    uint8_t prologue;            /* enum fx_prologue */
    uint8_t ret;                 /* enum fx_return */
    bool expanded;               /* one parameter per line */
    bool ret_expanded;           /* one returned value per line */
    bool annotated;              /* values have annotations */
    bool strides, devices, bare; /* annotations have strides, have devices, have no quotes */
    bool blank_indented;         /* empty lines are indented: before 2.13 */
    bool pass_body;              /* an empty graph printed as `pass` */
    bool inputs_annotated;       /* the text itself annotates an input */
    bool silent_inputs; /* annotations of inputs come from elsewhere and are not in the text */
    str_id ret_type;    /* "torch.Tensor" of `-> torch.Tensor` */
    str_id head;        /* lines before a bare def: wrap(..) calls */
    str_id flat_call;   /* pytree: what tree_flatten_spec is called with */
    str_id flat_lead;   /* the raw lines before the prologue, as read; 0 if none */
};

/* The text around a graph in a runnable Python script. It is printed with the graph; what it says
 * about inputs and groups is not repeated. */
struct fx_script {
    str_id inside; /* lines between the class line and forward, 0 = none */
    str_id head;   /* everything before the graph */
    str_id tail;   /* everything after it; 0 if there are several graphs */
    bool is;
};

/* One parameter of the signature. Usually each is a placeholder; after a pytree prologue the
 * placeholders are the flattened parameters. */
struct fx_param {
    str_id text;   /* as in the signature, with stars */
    uint32_t node; /* the placeholder it is, 0 = none */
    uint32_t ann;
    str_id dflt;           /* default value, verbatim; 0 = none */
    str_id descriptor;     /* comment after it in the expanded form */
    uint32_t line, column; /* in the text it was read from */
    uint32_t storage;      /* inputs with the same number share storage; 0 = not given */
    bool aliased;          /* the placeholder's name differs: `l_x_ = L_x_` follows */
};

struct fx_hint { /* a symbol's value */
    str_id symbol;
    int64_t value;
};

/* What is known about a group of ranks. */
struct fx_group {
    str_id name;   /* its name in collectives */
    uint32_t node; /* placeholder or call that yields it, if it is a value; 0 if it is a string */
    int64_t size;  /* 0 = unknown */
    int64_t rank;  /* this rank's position in it, -1 if unknown */
    const int64_t *ranks; /* members as global ranks, NULL = unknown */
    uint8_t from;         /* enum group_source */
};

struct fx_store {
    struct mem mem;
    struct strtab str;
    struct arena arena; /* annotations */
    VEC(struct fx_ann) anns;
    struct symtab sym;
    struct typetab type;
    uint32_t refs; /* graphs and documents that use it */
    uint32_t last_serial;
    uint64_t last_revision;
    struct fx_words {
        str_id empty;
    } word;
};

struct tuck_graph {
    struct fx_store *store;
    struct arena arena; /* argument lists, parameters */
    VEC(struct fx_node) node;
    VEC(struct fx_use) use; /* [0] unused */
    uint32_t free_use;      /* recycled, linked by next */
    uint32_t n_nodes;       /* alive */
    uint32_t output;        /* node id, 0 = none */
    uint32_t serial;        /* marks this graph's names in the string table while it is read */
    /* A number that changes with each edit of the graph or of one nested in it: graphs of one store
     * with equal numbers are equal, with equal node ids. */
    uint64_t revision;
    uint64_t typed_at; /* the revision that `type` belongs to; 0 if none */
    uint64_t order_at; /* the revision that `order` was recorded at; 0 if none */
    uint64_t loose_at; /* the revision that `loose` belongs to; 0 if none */
    str_id name;       /* class, 0 for a bare def */
    str_id gap;        /* raw text before it: empty lines, comments */
    str_id known;      /* the `# tuck: {…}` line above it, without its end; 0 = none */
    struct fx_script script;
    struct fx_style style;
    VEC(struct fx_param) param;
    VEC(struct fx_placeholder_note)
    note;                       /* flattened placeholders with a descriptor of their own */
    VEC(str_id) out_descriptor; /* per returned item, expanded form */
    VEC(tuck_graph *) child;
    tuck_graph *parent;       /* NULL if it is not nested */
    VEC(uint32_t) child_slot; /* hash of their names: index in child + 1, 0 if free */
    VEC(struct fx_group) group;
    int64_t rank;                  /* the global rank that the text is of, -1 if unknown */
    VEC(struct fx_hint) hint;      /* values of symbols: first those of a script, then others */
    uint32_t n_script_hint;        /* number of those of a script */
    VEC(type_id) type;             /* by node id, after infer_graph() */
    type_id result;                /* what the graph returns, after infer_graph() */
    VEC(uint32_t) frees_at, frees; /* as read, if they differ from the rule; by node id */
    VEC(struct fx_remark)
    remark; /* comments after statements, in the order of the nodes, as read */
    /* the last writers before each access, as recorded before the first edit */
    struct storage_order *order;
    /* Its nodes in the list that PyTorch has before it sorts them, in which some come before their
     * operands; written by passes that merge like PyTorch, for those that look at that list. */
    VEC(uint32_t) loose;
    struct fx_names *names; /* name → node and suffix counters; made when first needed */
    uint32_t first_line;
    str_id source_name; /* file it was read from, for diagnostics */
    bool fresh;         /* made, not read: it has no text before it */
    bool edited;        /* differs from what was read: print it by the rules */
    bool ordered;       /* node.pos is up to date */
    bool frees_verbatim;
};

struct fx_remark {
    uint32_t node;
    str_id text; /* with the blanks before it */
};

struct fx_placeholder_note {
    uint32_t node;
    str_id descriptor;
};

struct fx_entry {
    tuck_graph *graph;
    str_id title;
    int rank;
    uint32_t line;
    str_id end; /* "\n" and the blank line that older versions put after a body; 0 if none */
    uint32_t known_line, known_column; /* position of graph->known in the file */
};

struct tuck_doc {
    struct fx_store *store;
    VEC(struct fx_entry) entry;
    VEC(struct fx_hint) hint;
    str_id tail; /* raw text after the last graph */
    bool crlf;   /* lines end in CR LF */
    bool bom;    /* it begins with a byte order mark, also when printed */
};

/* store.c */
struct fx_store *store_new(const tuck_allocator *alloc); /* NULL if out of memory */
void store_release(struct fx_store *s);

/* In graph.c. Nothing here checks its arguments; when memory runs out, these jump to the store's
 * guard. */
tuck_graph *graph_new(struct fx_store *s);
void graph_free(tuck_graph *g);
/* A copy with the same node ids, including erased ones, and the same types: arrays indexed by node
 * id are valid for both graphs until one of them is edited. (tuck_graph_copy() renumbers nodes.) */
tuck_graph *graph_clone(const tuck_graph *g);
void graph_enter_child(tuck_graph *g, uint32_t i); /* makes child i findable by its name */
tuck_graph *graph_child_named(const tuck_graph *g, str_id name); /* the first, or NULL */
uint32_t graph_add_node(tuck_graph *g, uint32_t before, struct fx_node init);
/* Sets `vals` (copied into the arena, with use lists) as the arguments of n, which has none yet. */
void graph_set_vals(tuck_graph *g, uint32_t n, const tuck_value *vals, uint32_t n_vals,
                    uint32_t n_args, uint32_t n_kwargs);
/* The same for an array that is already in the arena, with room for its uses: cannot fail. */
void graph_take_vals(tuck_graph *g, uint32_t n, tuck_value *vals, uint32_t n_vals, uint32_t n_args,
                     uint32_t n_kwargs);
void graph_drop_vals(tuck_graph *g, uint32_t n);
void graph_unlink(tuck_graph *g, uint32_t n);
void graph_link_before(tuck_graph *g, uint32_t n, uint32_t before);
void graph_erase(tuck_graph *g, uint32_t n);
void graph_redirect_use(tuck_graph *g, uint32_t use, uint32_t to);
void graph_swap(tuck_graph *a, tuck_graph *b); /* exchanges two graphs of one store */
void graph_number(tuck_graph *g);              /* updates node.pos */
void graph_edited(tuck_graph *g, bool order_too);
void graph_reordered(tuck_graph *g); /* nodes only moved: types stay valid */
void graph_changed(tuck_graph *g);   /* a new revision without a change of the text */
/* Keeps a list of all nodes as g->loose, until the next edit. */
void graph_set_loose(tuck_graph *g, const uint32_t *node, uint32_t n);

static inline struct fx_node *node_at(const tuck_graph *g, uint32_t n)
{
    assert_hot(n < g->node.len);
    return &g->node.at[n];
}

/* Valid after infer_graph(); 0 if unknown. */
static inline type_id node_type(const tuck_graph *g, uint32_t n)
{
    return n < g->type.len ? g->type.at[n] : 0;
}

/* The nested graph that a get_attr node refers to, or NULL. */
static inline tuck_graph *child_of(const tuck_graph *g, uint32_t get_attr)
{
    const struct fx_node *x = node_at(g, get_attr);

    return x->kind == TUCK_GET_ATTR ? graph_child_named(g, x->target) : NULL;
}

static inline bool node_alive(const tuck_graph *g, uint32_t n)
{
    return n >= FX_FIRST_ID && n < g->node.len && g->node.at[n].kind != 0;
}

static inline const char *graph_str(const tuck_graph *g, str_id s)
{
    return str_text(&g->store->str, s);
}

#define for_each_node(g, n)                                                                        \
    for (uint32_t n = (g)->node.at[0].next; n != 0; n = (g)->node.at[n].next)

/* In names.c: names made the way PyTorch makes them. */
enum fx_name_flags {
    NAME_USED = 1,  /* a node has or had this name */
    NAME_WORD = 2,  /* the text uses it for something else: a global, a symbol */
    NAME_PARAM = 4, /* a parameter has or had this name */
    NAME_INNER = 8, /* a nested graph uses it without defining it */
};
bool name_is_reserved(const char *s, size_t len);
void names_need(tuck_graph *g); /* builds the table if needed */
/* Finds a free name. name_enter() then takes it and cannot fail. */
str_id name_create(tuck_graph *g, const char *candidate, size_t len);
uint32_t name_lookup(tuck_graph *g, str_id name); /* node, or 0 */
unsigned name_flags(tuck_graph *g, str_id name);
void names_add_words(tuck_graph *g, const char *text); /* identifiers that no new node may have */
void names_add_param(tuck_graph *g, str_id text);
void name_forget(tuck_graph *g, str_id name);
void name_enter(tuck_graph *g, str_id name, uint32_t node);
void names_free(tuck_graph *g);

/* Where the frees of n's statement end in g->frees, including those after its further results. */
static inline uint32_t frees_end(const tuck_graph *g, uint32_t n)
{
    for (n++; n < g->node.len && g->node.at[n].kind == TUCK_RESULT;)
        n++;
    return g->frees_at.at[n];
}

#endif

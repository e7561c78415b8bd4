/* What a pass is: a row with a name, a line of help, options, a contract and a function.
 *
 * Each folder of passes has its own rows; study/pass_table.c collects them, so that `tuck passes`,
 * the parser of pipelines and the runner all read the same rows. A pass works on the runner's copy
 * of a graph: if it fails, the caller's graph is unchanged.
 */
#ifndef TUCK_PASS_PASS_H
#define TUCK_PASS_PASS_H

#include "graph/symbol_values.h"
#include "graph/effect.h"
#include "graph/graph.h"
#include "pass/pass_report.h"
#include "tuck_experimental.h"

/* ---- Options
 * ------------------------------------------------------------------------------------ */

enum pass_type {
    PASS_BOOL,   /* bool: true, false, True, False, 1, 0 */
    PASS_INT,    /* int64_t; None is PASS_NO_INT */
    PASS_FLOAT,  /* double; None is NAN */
    PASS_TEXT,   /* const char *; None is NULL */
    PASS_CHOICE, /* int: the index in `choices` */
    PASS_FLOATS, /* struct pass_floats: 50:500 or [50, 500]; the last value repeats */
    PASS_TEXTS,  /* struct pass_texts: a:b:c or [a, b, c] */
};

#define PASS_NO_INT INT64_MIN

struct pass_floats {
    const double *at;
    uint32_t n; /* 0 means None */
};

struct pass_texts {
    const char *const *at;
    uint32_t n;
};

struct pass_option {
    const char *name;
    uint8_t type;        /* enum pass_type */
    size_t at;           /* offset in the pass's options struct */
    const char *dflt;    /* as a user would write it */
    const char *choices; /* for PASS_CHOICE: "none|all|only_fsdp" */
    const char *help;    /* one line */
};

/* Value number i of a list whose last value repeats. */
static inline double pass_float_at(const struct pass_floats *f, uint32_t i)
{
    return f->at[i < f->n ? i : f->n - 1];
}

/* Functions of the caller that replace options of bucketing; each may be NULL. */
struct bucket_rules {
    double (*cap_mb)(void *ctx, size_t bucket); /* cap of bucket 0, 1, … in its run of equal keys */
    bool (*filter)(void *ctx, const tuck_graph *g, tuck_node wait); /* false: do not merge it */
    void *ctx;
};

/* ---- Passes
 * ------------------------------------------------------------------------------------- */

/* What a pass needs, and what is still valid after it. The runner computes what is missing. */
enum pass_facts {
    PASS_TYPES = 1,  /* g->type: infer_graph() */
    PASS_PLACES = 2, /* node.pos: graph_number() */
    PASS_NAMES = 4,  /* the table of names, for passes that make or erase nodes: names_need() */
    PASS_TIMES = 8,  /* r->machine, with a cluster: the times of nodes decide what it does */
};

struct machine;
struct pass_run;
struct pipeline;
struct schedule;

struct pass {
    const char *name;
    const char *help; /* one line */
    uint8_t needs, keeps;
    const struct pass_option *options;
    uint32_t n_options;
    /* Options of passes that run with this one: accepted, but not listed. */
    const struct pass_option *also;
    uint32_t n_also;
    size_t options_size; /* size of the options struct */
    bool takes_rules;    /* the struct has a struct bucket_rules at offset rules_at */
    size_t rules_at;
    bool of_caller; /* not in the table: a function that a caller put into the pipeline */
    /* A pass has one of these three. This one rewrites the graph r->g and reports to r what it did.
     * Any result but TUCK_OK needs a diagnostic in r->diags, and makes the runner discard r->g. */
    tuck_status (*on_graph)(struct pass_run *r, const void *options);
    /* For a pass that may run on a part of a graph: what an operator means to it; or NULL. Such a
     * pass only moves nodes towards the end. */
    tuck_part (*part)(uint32_t op, const void *options);
    /* Changes the order of a schedule; the runner applies that order to the graph. */
    tuck_status (*on_order)(struct schedule *s, const void *options, tuck_diags *diags);
    /* A name for a list of passes: appends them to the pipeline. */
    tuck_status (*expand)(struct pipeline *p, const void *options, struct diag_pos pos,
                          tuck_diags *diags);
    bool expands_to_orders; /* these are passes on orders */
};

static inline bool pass_is_on_order(const struct pass *p)
{
    return p->on_order != NULL || p->expands_to_orders;
}

#define PASS_OPTIONS(table) (table), (uint32_t)(sizeof(table) / sizeof(*(table)))

/* Rows of several folders, looked up by name. */
struct pass_table {
    const struct pass *const *row;
    uint32_t n;
    const struct pass_key *key;
    uint32_t n_key;
};

/* A key of PyTorch's configuration: it turns passes on, or sets one of their options under another
 * name. */
struct pass_key {
    const char *name;
    const char *help;
    /* "all=bucket_all_gather|only_fsdp=bucket_fsdp_all_gather|none=": the passes that a value turns
     * on; NULL if the key is an option. */
    const char *turns_on;
    /* The option it sets, in every pass of `passes` ("a|b"), or if that is NULL in all passes that
     * have it. */
    const char *option, *passes;
};

/* ---- Pipelines: a list of passes with their options
 * ---------------------------------------------- */

struct pipeline_step {
    const struct pass *pass;
    const void *options; /* struct of options_size bytes */
    /* the options that were given, as the report shows them: "cap_mb=50:500" */
    const char *text;
};

struct pipeline {
    struct mem mem;
    struct arena arena;
    const struct pass_table *table;
    VEC(struct pipeline_step) step;
    VEC(struct pipeline_setting) setting;
    struct buf text; /* options of the step being read */
};

struct pipeline_setting { /* a key that is an option: applies to every step */
    const struct pass_key *key;
    const char *value;
};

/* text: "a(x=1),b" or one pass per line with # comments; `name` is used in diagnostics. */
tuck_status pipeline_parse(struct pipeline *p, const char *text, size_t len, const char *name,
                           tuck_diags *diags);
/* Adds a step with its options as text ("x=1, y=2", may be ""). For expand() and for callers in
 * C. */
tuck_status pipeline_add(struct pipeline *p, const char *pass, const char *options,
                         struct diag_pos pos, tuck_diags *diags);
/* The same by its row, with default options except for one number (option NULL: none). When memory
 * runs out, jumps to p's guard. */
void pipeline_push(struct pipeline *p, const struct pass *pass, const char *option, double value);
/* Adds a step that calls fn, under that name; if it leaves an invalid graph, that is an error. When
 * memory runs out, jumps to p's guard. */
void pipeline_call(struct pipeline *p, const char *name, tuck_pass_fn fn, void *ctx);
/* Like pipeline_add(), with its own guard, and with rules if given. Adds nothing on failure. */
tuck_status pipeline_add_whole(struct pipeline *p, const char *pass, const char *options,
                               const struct bucket_rules *rules, tuck_diags *diags);
void pipeline_init(struct pipeline *p, const struct pass_table *table, const tuck_allocator *alloc);
void pipeline_destroy(struct pipeline *p);

const struct pass *pass_find(const struct pass_table *t, const char *name, size_t len);
/* The default options of a pass, in the arena. */
void *pass_defaults(const struct pass *pass, struct arena *a);
/* "bool", "int", "numbers", or the choices, "none|all". */
const char *pass_option_type(const struct pass_option *o);
const struct pass_option *pass_option_at(const struct pass *pass, size_t i);
const struct pass_option *pass_option_find(const struct pass *pass, const char *name, size_t len);
/* Reads a value into the options struct. False: the value is invalid, and *wanted says what is
 * valid. */
bool pass_option_set(const struct pass_option *o, void *options, const char *value, size_t len,
                     struct arena *a, const char **wanted);
/* ---- Running
 * ------------------------------------------------------------------------------------- */

struct pass_run {
    tuck_graph *g;   /* a copy: the pass may change it freely */
    struct mem *mem; /* the graph's; a guard is set, so allocation never returns NULL */
    /* for this pass, freed when it ends; use vec_push_in() for arrays that grow */
    struct arena arena;
    struct assume assume;
    const struct machine *machine; /* whose times decide; cost/machine.h; NULL: there is none */
    struct sigs sigs;              /* signatures of operators: comm_operand() */
    struct pass_report *report;
    tuck_diags *diags;
    tuck_args *args;                  /* for the builder */
    struct build_known *known;        /* calls the builder has made before */
    struct comm_known *comm;          /* rewrite/comm_order.c; NULL until needed */
    const struct comm_places *places; /* rewrite/comm_order.h; NULL until needed */
    bool keep_order;                  /* no collective may pass another, even of another group */
    bool crossed;                     /* collectives changed places, or were merged across others */
    bool changed;                     /* set by the pass */
};

/* Adds a diagnostic about a node, with its place in the text. Returns TUCK_EINVAL. */
tuck_status pass_fail(struct pass_run *r, uint32_t node, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif

/* Tuck: the part of the public interface that may still change in a new minor version.
 *
 * Options by name, graphs as arrays, the operator table, costs of single nodes, scaling curves,
 * several ranks, programs, schedules, comm blocks. The conventions are those of tuck.h, which this
 * header includes.
 */
#ifndef TUCK_EXPERIMENTAL_H
#define TUCK_EXPERIMENTAL_H

#include "tuck.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Names ---- */

/* Suggests the name that was probably meant: of those that `name` returns for 0, 1, ... (until
 * NULL) the one with the fewest edits, or that begins with the word; NULL if none is close. */
TUCK_API const char *tuck_suggest(const char *word, const char *(*name)(const void *ctx, size_t i),
                                  const void *ctx);

/* ---- Options by name ----
 * For bindings of other languages: they set options by their names and pass on pointers, and need
 * to know the layout of no struct.
 *
 *   tuck_settings_new(NULL, &s);
 *   tuck_settings_set(s, "cluster", "h100x8x4", diags);
 *   tuck_graph_simulate(g, tuck_settings_machine(s), diags, &simulation);
 */
typedef struct tuck_settings tuck_settings;

TUCK_API TUCK_MUST_CHECK tuck_status tuck_settings_new(const tuck_allocator *alloc,
                                                       tuck_settings **out);
/* What was made with its machine may use it: free it last. */
TUCK_API void tuck_settings_free(tuck_settings *s);
/* Of the machine: cluster (a name or a file), profile (a file), model, symbol (s0=8; several),
 * bandwidth, contention, strict. Of runs: order (free, groups, all), memory (40GiB, +5%), judge. Of
 * printing: form (table, json, brief), top, width, color, times, timeline. Of explaining: node,
 * subject. Switches are yes or no. TUCK_EINVAL: no such setting, or not a value of it; see the
 * diagnostics. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_settings_set(tuck_settings *s, const char *key,
                                                       const char *value, tuck_diags *diags);
/* They live as long as the settings and change with them. */
TUCK_API const tuck_machine *tuck_settings_machine(const tuck_settings *s);
TUCK_API const tuck_run_options *tuck_settings_run(const tuck_settings *s);
TUCK_API const tuck_print_options *tuck_settings_print(const tuck_settings *s);
TUCK_API const tuck_explain_options *tuck_settings_explain(const tuck_settings *s);

/* ---- Graphs as arrays ----
 * For programs that have a graph in memory: it goes in as numbers, and what passes did comes back
 * as an edit of the caller's own nodes.
 *
 * Nodes are numbered from 0 in the order of their graph; those that passes add get higher numbers.
 * Texts are numbered from 0, each ends with NUL. A value is one word, its number times 32 plus its
 * tuck_value_kind. The number is the value of an int or a bool, the index of a float, the number of
 * a node or of a text, or how many items a container has, which follow it. 31 is an int that is too
 * large for that and is the next word.
 *
 *   words   number of graphs, the graphs
 *   graph   its parent (a nested one: the number of an earlier graph, else 0), its name (text; of a
 *           nested one the attribute that holds it), number of nodes, the nodes
 *   node    tuck_kind, target, name, annotation (texts; "" if there is none), number of arguments,
 *           of keyword arguments, of the words that follow: the arguments, then for each keyword a
 *           TUCK_V_KEY and the value
 */
typedef struct tuck_arrays tuck_arrays;

/* Nothing is printed or read as text, so targets and names may be any. TUCK_EINVAL: the arrays are
 * not a graph; see the diagnostics. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_arrays_read(const int64_t *words, size_t n_words,
                                                      const char *texts, size_t texts_len,
                                                      const double *floats, size_t n_floats,
                                                      const tuck_allocator *alloc,
                                                      tuck_diags *diags, tuck_arrays **out);
TUCK_API void tuck_arrays_free(tuck_arrays *a);
/* The graph, for passes and questions; owned by the arrays. */
TUCK_API tuck_graph *tuck_arrays_graph(const tuck_arrays *a);

/* What was done to the graph since it was made, in the three arrays below, which live until the
 * next call. For each graph, in the order in which they were given: its number, then lists, each
 * begins with its length:
 *
 *   new nodes, in their order      number, then as above: kind, target, …
 *   nodes with other operands      number, how many nodes it uses, their numbers
 *   nodes with other arguments     as a new node
 *   nodes whose type changed       number
 *   nodes that are new or moved,   number, the number of the node before it; -1: none
 *     in their order
 *   erased nodes                   number
 *
 * At the end a list of new nested graphs: the number of the parent (those of this list go on
 * counting after the given ones), its name, number of nodes, and each as a new node. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_arrays_edit(tuck_arrays *a);
TUCK_API const int64_t *tuck_arrays_words(const tuck_arrays *a, size_t *n_out);
TUCK_API const double *tuck_arrays_floats(const tuck_arrays *a, size_t *n_out);
TUCK_API const char *tuck_arrays_texts(const tuck_arrays *a, size_t *len_out);

/* ---- A part of a graph ----
 * A pass that only moves nodes need not see all of them, if it can tell by the operators that the
 * rest does not matter. */

typedef enum tuck_part {
    TUCK_PART_WHOLE,   /* where a node calls this operator, the pass needs the whole graph */
    TUCK_PART_NOTHING, /* such nodes matter only as users of others */
    TUCK_PART_START,   /* they belong to the part, and so do their users */
    TUCK_PART_FOLLOW,  /* their users belong to the part, if they do themselves */
} tuck_part;

typedef enum tuck_run {
    TUCK_RUN_SAME,    /* the number again and again */
    TUCK_RUN_COUNTED, /* each is one more than the one before */
    TUCK_RUN_LISTED,
} tuck_run;

/* What an operator (tuck_op_find()) of the graph means to the pipeline. */
TUCK_API tuck_part tuck_pipeline_part(const tuck_pipeline *p, uint32_t op);

/* Runs the pipeline on a part of a graph of n_graph nodes without nested graphs, all of whose nodes
 * are placeholders, attributes, the output, or calls of operators that are not TUCK_PART_WHOLE.
 * Nodes are numbered from 0 in the order of the graph. `words`:
 *
 *   head       how many starts, nodes, nodes that are followed, and uses there are
 *   starts     in any order, the operator of each. They are not among the nodes
 *   nodes      the operator of each, 0 for the output
 *   gaps       for each node: 1 if there are other nodes of the graph between it and the one before
 *   followed   the node that each is
 *   users      for each start, then for each that is followed: how many users it has
 *   uses       those users, in the same order
 *
 * Lists are written as runs, since most have few different numbers: how many numbers, which
 * tuck_run, and the number, the first of them, or all of them.
 *
 * `moves` has room for 2 words a node; on return it has *n_moves_out pairs: a node, and the one
 * right before which it goes, in that order. *report_out: NULL if the pass needs the whole graph.
 */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_pipeline_run_part(
    const tuck_pipeline *p, const int64_t *words, size_t n_words, size_t n_graph,
    const tuck_allocator *alloc, int64_t *moves, size_t *n_moves_out, tuck_report **report_out);

/* ---- The operator table ----
 * Operators are numbered from 1 in the order of their names. */

typedef struct tuck_op {
    size_t size;
    const char *name;      /* "aten.mm.default" */
    const char *signature; /* docs/operators.md */
    const char *op_class, *class_meaning;
} tuck_op;

TUCK_API uint32_t tuck_op_count(void);
/* In any spelling of graph texts: torch.ops.aten.mm.default, aten.mm; 0 if not in the table. */
TUCK_API uint32_t tuck_op_find(const char *name);
/* out->size must be set. False if there is no such operator. */
TUCK_API bool tuck_op_info(uint32_t op, tuck_op *out);
/* Operators with that name, or else those whose names contain it; NULL means all. Their number, and
 * printing them. */
TUCK_API uint32_t tuck_ops_matching(const char *name);
TUCK_API tuck_status tuck_ops_print(const char *name, const tuck_print_options *how,
                                    tuck_write_fn write, void *ctx);

/* ---- Costs of collectives and of single nodes ---- */

/* x is the answer of tuck_cost_collective() to q: prints its time, how it is computed, and the
 * alternatives. */
TUCK_API tuck_status tuck_collective_cost_print(const tuck_cluster *c, const tuck_collective *q,
                                                const tuck_collective_cost *x,
                                                const tuck_print_options *how, tuck_write_fn write,
                                                void *ctx);

/* The cost of every node of a graph by itself. The graph must outlive the costs, and not change.
 * Infers types. */
typedef struct tuck_costs tuck_costs;
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_costs(tuck_graph *g, const tuck_machine *m,
                                                      tuck_diags *diags, tuck_costs **out);
TUCK_API void tuck_costs_free(tuck_costs *c);

typedef struct tuck_node_cost {
    tuck_node node;
    int64_t ps;        /* 0 for views, waits and numbers; -1 if unknown */
    int64_t comm_ps;   /* the part spent in collectives of the graphs that the node calls */
    double flops;      /* operations of its kernel */
    int64_t bytes;     /* read and written; for a collective its message */
    tuck_coll coll;    /* 0 if not a collective */
    const char *bound; /* what its time comes from: "compute", "memory", "collective", … */
} tuck_node_cost;

TUCK_API size_t tuck_costs_count(const tuck_costs *c); /* the nodes of the graph */
/* In the order of the graph. False: there is no row i. */
TUCK_API bool tuck_costs_row(const tuck_costs *c, size_t i, tuck_node_cost *out);
/* A table of the `top` longest nodes (default: 20), or all nodes as JSON. */
TUCK_API tuck_status tuck_costs_print(const tuck_costs *c, const tuck_print_options *how,
                                      tuck_write_fn write, void *ctx);
/* Writes the times of the graph's ops as a profile file: reading it gives the same step. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_costs_write_profile(const tuck_costs *c,
                                                              tuck_diags *diags,
                                                              tuck_write_fn write, void *ctx);

typedef struct tuck_cost_options {
    size_t size;
    tuck_cost_model model;       /* of collectives */
    const tuck_profile *profile; /* overrides the model; or NULL */
    tuck_estimate_fn estimate;   /* overrides both; or NULL */
    void *estimate_ctx;
} tuck_cost_options;

TUCK_API void tuck_cost_options_init(tuck_cost_options *o);

/* The time of every node by itself into ps_out[id], for all ids below tuck_graph_id_end(). Views,
 * waits and numbers take 0; a node with unknown sizes has -1. Needs tuck_graph_infer(). options may
 * be NULL. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_cost(const tuck_graph *g, const tuck_cluster *c,
                                                     const tuck_cost_options *options,
                                                     int64_t *ps_out);

/* Writes a profile file from times by node id, such as those of tuck_graph_cost(); negative ones
 * are omitted. */
TUCK_API tuck_status tuck_profile_write(const tuck_graph *g, const int64_t *ps, tuck_write_fn write,
                                        void *ctx);

/* ---- Scaling curves ----
 * The step with 8, 16, 32, … ranks in some groups of a graph. Full messages and compute stay those
 * of the graph. */

/* A copy of the graph in which these groups have this many ranks; groups NULL: the largest one.
 * TUCK_EINVAL: there is no such group. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_grow(const tuck_graph *g, const char *const *groups,
                                                     size_t n_groups, int64_t ranks,
                                                     tuck_graph **out);

/* The simulation of a point, which is freed after the call. Returning false ends the work with
 * TUCK_EIO. */
typedef bool (*tuck_point_fn)(void *ctx, int64_t ranks, const tuck_simulation *s);

typedef struct tuck_scaling_options {
    size_t size;
    int64_t from, to;          /* ranks: `from`, twice as many, … up to `to` */
    const char *const *groups; /* as for tuck_graph_grow() */
    size_t n_groups;
    tuck_point_fn point; /* called for each point; or NULL */
    void *ctx;
} tuck_scaling_options;

TUCK_API void tuck_scaling_options_init(tuck_scaling_options *o);

typedef struct tuck_scaling_point {
    int64_t ranks;
    tuck_times times;
    int64_t bound_ps; /* no order, bucketing or algorithm makes it faster; -1 if unknown */
} tuck_scaling_point;

typedef struct tuck_scaling tuck_scaling;

/* The graph itself is not changed. Without a cluster, the machine of each point has as many nodes
 * as its ranks need. TUCK_EINVAL: as for tuck_graph_grow() and tuck_graph_simulate(). */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_scale(const tuck_graph *g, const tuck_machine *m,
                                                      const tuck_scaling_options *options,
                                                      tuck_diags *diags, tuck_scaling **out);
TUCK_API void tuck_scaling_free(tuck_scaling *s);
TUCK_API size_t tuck_scaling_count(const tuck_scaling *s); /* number of points */
TUCK_API bool tuck_scaling_at(const tuck_scaling *s, size_t i, tuck_scaling_point *out);
TUCK_API tuck_status tuck_scaling_print(const tuck_scaling *s, const tuck_print_options *how,
                                        tuck_write_fn write, void *ctx);

/* ---- Traces of a profiler ----
 * What torch.profiler recorded: docs/jobs.md. */

typedef struct tuck_traces tuck_traces;

TUCK_API TUCK_MUST_CHECK tuck_status tuck_traces_new(const tuck_allocator *alloc,
                                                     tuck_traces **out);
TUCK_API void tuck_traces_free(tuck_traces *t);
/* Adds the trace of a rank, plain or gzip; "-" is standard input. Of a folder, every trace directly
 * in it, by rank, step and name. If it fails, nothing is added. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_traces_add_file(tuck_traces *t, const char *path,
                                                          tuck_diags *diags);
TUCK_API TUCK_MUST_CHECK tuck_status tuck_traces_add_text(tuck_traces *t, const char *text,
                                                          size_t len, const char *name,
                                                          tuck_diags *diags);

typedef struct tuck_trace_figures { /* all steps of a rank */
    int64_t rank, world;            /* -1 and 0 if unknown */
    uint32_t steps, kernels, collectives;
    int64_t step_ps, compute_ps, comm_ps, exposed_ps, idle_ps;
} tuck_trace_figures;

/* Timelines: one for each trace; one of Tuck's own has one for each run. 0 if out of memory. */
TUCK_API size_t tuck_traces_count(tuck_traces *t);
/* False: there is no timeline i. */
TUCK_API bool tuck_traces_figures(tuck_traces *t, size_t i, tuck_trace_figures *out);
TUCK_API tuck_status tuck_traces_print(tuck_traces *t, const tuck_print_options *how,
                                       tuck_write_fn write, void *ctx);
/* A page, and a trace for Perfetto, of one step of each; step -1: the one whose time is in the
 * middle. TUCK_EINVAL: there is no such step. */
TUCK_API tuck_status tuck_traces_html(tuck_traces *t, const char *title, int64_t step,
                                      tuck_write_fn write, void *ctx);
TUCK_API tuck_status tuck_traces_perfetto(tuck_traces *t, int64_t step, tuck_write_fn write,
                                          void *ctx);

/* Writes a cluster file (docs/cost-model.md) with what was measured: collectives, matrix products,
 * memory, gaps between kernels. device: as in names of clusters; NULL: by the name in the traces.
 * per_node 0: the device's own. table: what was found, for people; may be NULL. TUCK_EINVAL with a
 * diagnostic: the device is not known. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_traces_calibrate(tuck_traces *t, const char *device,
                                                           int64_t per_node, tuck_diags *diags,
                                                           tuck_write_fn write, void *ctx,
                                                           tuck_write_fn table, void *table_ctx);

/* A graph and the trace of its run: which measured time belongs to which op. */
typedef struct tuck_tie tuck_tie;

typedef struct tuck_tie_options {
    size_t size;
    /* Inductor's mapping of kernels to nodes, a JSON file with "cppCodeToPost"; or NULL */
    const char *provenance;
    /* Costs come from the steps whose number leaves `rest` modulo `every`, and the measured step is
     * the mean of the others; every 0: all of them for both. */
    int64_t every, rest;
} tuck_tie_options;

TUCK_API void tuck_tie_options_init(tuck_tie_options *o);
/* The first trace is that of the graph's rank; all are used for laws. m: for the sizes and the
 * groups of the graph. If the mapping names all collectives and waits, the graph is put in the
 * order of Inductor's code. TUCK_EINVAL with a diagnostic: nothing in the trace is like the
 * graph. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_traces_tie(tuck_traces *t, tuck_graph *g,
                                                     const tuck_machine *m,
                                                     const tuck_tie_options *options,
                                                     tuck_diags *diags, tuck_tie **out);
TUCK_API void tuck_tie_free(tuck_tie *t);
/* The measured times of its nodes, and what was measured as a cluster, NULL if the device of the
 * trace is not known. Both belong to the tie. */
TUCK_API tuck_profile *tuck_tie_profile(const tuck_tie *t);
TUCK_API tuck_cluster *tuck_tie_cluster(const tuck_tie *t);
/* How much is tied, and the measured step beside a simulation of the graph, which may be NULL. As
 * JSON it is one value, for `measured` of tuck_print_options. */
TUCK_API tuck_status tuck_tie_print(const tuck_tie *t, const tuck_simulation *s,
                                    const tuck_print_options *how, tuck_write_fn write, void *ctx);

/* ---- Several ranks ---- */

typedef struct tuck_rank { /* one rank */
    const tuck_simulation *simulation;
    const char *name; /* its file, for the report */
    int64_t number;   /* global rank; -1 if unknown */
} tuck_rank;

typedef struct tuck_straggler { /* a rank whose kernels take `factor` times as long */
    int64_t rank;
    double factor;
} tuck_straggler;

/* Every group of a name, if one rank's own group does not determine the others. */
typedef struct tuck_instances {
    const char *name;
    size_t n;             /* number of groups */
    int64_t size;         /* members of each */
    const int64_t *ranks; /* n times size */
} tuck_instances;

typedef struct tuck_ranks_options {
    size_t size;
    const tuck_straggler *stragglers;
    size_t n_stragglers;
    const tuck_instances *instances;
    size_t n_instances;
} tuck_ranks_options;

TUCK_API void tuck_ranks_options_init(tuck_ranks_options *o);

typedef struct tuck_rank_times {
    int64_t rank;
    double factor; /* of a straggler, else 1 */
    tuck_times times;
    int64_t for_others_ps; /* waiting for slower ranks */
} tuck_rank_times;

typedef struct tuck_rank_simulation tuck_rank_simulation;

/* If n is 1: all ranks that the graph's groups span, each running it. Otherwise one rank per entry;
 * groups with the same members are the same. Uses the machine of the first. TUCK_EINVAL: the
 * members of a group cannot be determined. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_ranks_simulate(const tuck_rank *rank, size_t n,
                                                         const tuck_ranks_options *options,
                                                         tuck_diags *diags,
                                                         tuck_rank_simulation **out);
TUCK_API void tuck_rank_simulation_free(tuck_rank_simulation *s);
TUCK_API size_t tuck_rank_simulation_count(const tuck_rank_simulation *s);
TUCK_API bool tuck_rank_simulation_at(const tuck_rank_simulation *s, size_t i,
                                      tuck_rank_times *out);
/* -1 if it never ends */
TUCK_API int64_t tuck_rank_simulation_step_ps(const tuck_rank_simulation *s);
/* If ranks do not fit together: "mismatch", "deadlock", "peer"; NULL if all finish. */
TUCK_API const char *tuck_rank_simulation_fault(const tuck_rank_simulation *s);
/* Adds them to a page, each rank in rows of its own; the simulation must live as long as the page.
 * Of very many, those with another speed and the first ones. TUCK_EINVAL if they do not finish. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_page_add_ranks(tuck_page *p, const char *title,
                                                         const tuck_rank_simulation *s);
TUCK_API tuck_status tuck_rank_simulation_print(const tuck_rank_simulation *s,
                                                const tuck_print_options *how, tuck_write_fn write,
                                                void *ctx);

/* ---- Programs ----
 * A graph after it is decided which buffer each value lives in and which kernel makes it: ops in
 * order, including collectives and waits, with what they read, write and mutate.
 * docs/lowering.md explains it.
 *
 *   tuck_graph_lower(g, NULL, diags, &p);
 *   tuck_program_plan(p, NULL, NULL);
 *   tuck_program_write(p, write, ctx);
 */

typedef struct tuck_program tuck_program;
typedef struct tuck_problem tuck_problem;

typedef enum tuck_op_times {
    TUCK_ESTIMATE_TIMES,
    TUCK_NO_TIMES, /* the ops of the program have none */
} tuck_op_times;

typedef struct tuck_lower_options {
    size_t size;
    bool no_fuse;     /* one op per node: no fused loops */
    bool keep_clones; /* like PyTorch: always clone the operand of an all-reduce */
    bool auto_select; /* small all-reduces become one-shot kernels over symmetric memory */
    int64_t one_shot_threshold;    /* up to this many bytes (default: 128 KiB) */
    const char *const *symm_group; /* groups with symmetric memory; "*" means all */
    size_t n_symm_group;
    const char *const *keep; /* inputs that the caller keeps */
    size_t n_keep;
    const char *const *free; /* inputs that the caller gives up, if their names do not say so */
    size_t n_free;
    const tuck_machine *machine; /* for times and values of symbols; NULL: the default */
    tuck_op_times times;
} tuck_lower_options;

TUCK_API void tuck_lower_options_init(tuck_lower_options *o);

/* options may be NULL. TUCK_EINVAL: a symbol has no value; see the diagnostics. Infers types. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_lower(tuck_graph *g,
                                                      const tuck_lower_options *options,
                                                      tuck_diags *diags, tuck_program **out);
/* Reads what tuck_program_write() wrote. Such a program has no graph. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_program_read_text(const char *text, size_t len,
                                                            const char *name,
                                                            const tuck_allocator *alloc,
                                                            tuck_diags *diags, tuck_program **out);
TUCK_API TUCK_MUST_CHECK tuck_status tuck_program_read_file(const char *path,
                                                            const tuck_allocator *alloc,
                                                            tuck_diags *diags, tuck_program **out);
TUCK_API void tuck_program_free(tuck_program *p);
/* Its text (docs/lowering.md): buffers, with their offsets once it is planned, and ops. Comments
 * name the machine of the times, and what was assumed. */
TUCK_API tuck_status tuck_program_write(const tuck_program *p, tuck_write_fn write, void *ctx);
/* Figures about a program that was planned: numbers of ops, kernels and buffers, and its
 * memory; TUCK_PRINT_BRIEF: one line with its peak. TUCK_EINVAL: it was not planned, or JSON
 * was requested. */
TUCK_API tuck_status tuck_program_print(const tuck_program *p, const tuck_print_options *how,
                                        tuck_write_fn write, void *ctx);

typedef enum tuck_op_kind {
    TUCK_OP_COMPUTE,    /* a kernel */
    TUCK_OP_FUSED,      /* a loop over several nodes */
    TUCK_OP_GEMM,       /* a library kernel: matrix product, convolution, attention */
    TUCK_OP_COPY,       /* inserted by lowering: a clone, or an operand made contiguous */
    TUCK_OP_COLLECTIVE, /* starts communication */
    TUCK_OP_WAIT,       /* ends communication */
} tuck_op_kind;

TUCK_API uint32_t tuck_program_op_count(const tuck_program *p);
TUCK_API const char *tuck_program_op_name(const tuck_program *p, uint32_t op); /* "" if none */
TUCK_API tuck_op_kind tuck_program_op_kind(const tuck_program *p, uint32_t op);
TUCK_API int64_t tuck_program_op_ps(const tuck_program *p, uint32_t op); /* -1 if unknown */
TUCK_API uint32_t tuck_program_kernel_count(const tuck_program *p); /* ops that launch a kernel */
TUCK_API uint32_t tuck_program_buffer_count(const tuck_program *p); /* including inputs */
/* Buffers of unknown size, which count as 0. */
TUCK_API uint32_t tuck_program_unknown_count(const tuck_program *p);

/* Warns about ops of unknown time. An error and TUCK_EINVAL if too many are unknown to say anything
 * about the step, or any at all with TUCK_REFUSE. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_program_check_times(const tuck_program *p,
                                                              tuck_unknown unknown,
                                                              tuck_diags *diags);

typedef struct tuck_memory {
    int64_t peak;         /* at least this many bytes are live at once */
    int64_t arena;        /* bytes of the plan, without symmetric memory */
    int64_t resident;     /* resident inputs */
    uint64_t comm_digest; /* equal on ranks that can share symmetric memory; 0 if there is none */
} tuck_memory;

/* Assigns an address to every buffer for this order of the ops (NULL: as they are). memory_out may
 * be NULL. TUCK_EINVAL: not an order of the ops. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_program_plan(tuck_program *p, const uint32_t *order,
                                                       tuck_memory *memory_out);

/* The peak of a graph as PyTorch's passes on graphs estimate it, for comparison: device storages,
 * node by node, without fusion, and without keeping a transfer's operands until its wait. */
typedef struct tuck_torch_peak {
    int64_t peak;     /* bytes */
    int64_t initial;  /* inputs and attributes, live from the start */
    tuck_node node;   /* at which node; none: before the first */
    uint32_t unknown; /* storages of unknown size, counted as 0 */
} tuck_torch_peak;
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_torch_peak(tuck_graph *g, const tuck_hint *hints,
                                                           size_t n_hints,
                                                           tuck_torch_peak *peak_out);

/* The schedule problem; its ops are those of the program, by number. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_program_problem(const tuck_program *p, tuck_diags *diags,
                                                          tuck_problem **out);

/* Applies the order of the ops to the graph, which must be as it was when it was lowered.
 * TUCK_EINVAL: it was edited since, the program has no graph, or this is not an order; then nothing
 * changes. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_program_apply(const tuck_program *p,
                                                        const uint32_t *order, tuck_graph *g);

/* ---- Schedules ----
 * Orders of a schedule problem: ops with their runtimes, what needs what, buffers with their sizes
 * and users. docs/scheduling.md describes its files. Ops are numbered in the order of the file.
 *
 *   tuck_schedule_new(problem, NULL, diags, &s);
 *   tuck_schedule_run(s, "raise_comms,sink_waits_iterative", diags);
 *   const uint32_t *order = tuck_schedule_order(s);
 */

typedef struct tuck_schedule tuck_schedule;

TUCK_API TUCK_MUST_CHECK tuck_status tuck_problem_read_text(const char *text, size_t len,
                                                            const char *name,
                                                            const tuck_allocator *alloc,
                                                            tuck_diags *diags, tuck_problem **out);
TUCK_API TUCK_MUST_CHECK tuck_status tuck_problem_read_file(const char *path,
                                                            const tuck_allocator *alloc,
                                                            tuck_diags *diags, tuck_problem **out);
/* Is the file a problem rather than a graph? True if it is named *.json, or begins with a brace,
 * which no graph text does. Also true if it cannot be opened: reading it will report why. For "-",
 * standard input, nothing is consumed. */
TUCK_API bool tuck_problem_is_file(const char *path);
TUCK_API void tuck_problem_free(tuck_problem *p);
TUCK_API uint32_t tuck_problem_op_count(const tuck_problem *p);
TUCK_API const char *tuck_problem_op_name(const tuck_problem *p, uint32_t op);
/* Writes the problem with its ops in `order` (NULL: as they are). */
TUCK_API tuck_status tuck_problem_write(const tuck_problem *p, const uint32_t *order,
                                        tuck_write_fn write, void *ctx);

/* How ranks exchange their runtimes, for align_runtime_estimations_across_all_distributed_ranks:
 * each op then has the (lower) median of all ranks, so that every rank makes the same decisions.
 * They are numbers in the problem's unit, not times in ps, like those of PyTorch's schedulers. */
typedef struct tuck_estimates {
    const double *at;
    uint32_t n;
} tuck_estimates;

typedef struct tuck_transport {
    void *ctx;
    uint32_t rank, n_rank;
    /* Submits this rank's numbers and waits for those of all, by rank; they are valid until the
     * next call. NULL: it failed. */
    const tuck_estimates *(*gather)(void *ctx, uint32_t rank, const double *mine, uint32_t n);
} tuck_transport;

typedef struct tuck_schedule_options {
    size_t size;
    const char *compat;     /* NULL, or "torch", "torch,-stale-group-peak" */
    const char *const *set; /* options for all passes, "name=value" */
    size_t n_set;
    /* The runtime of an op in the problem's unit, called once per op; NULL: the problem's own. */
    double (*estimate)(void *ctx, uint32_t op);
    void *ctx;
    const tuck_transport *transport; /* or NULL; must outlive the schedule */
    /* The problems of the other ranks instead of a transport: runtimes are then the medians of all
     * ranks. */
    const tuck_problem *const *others;
    size_t n_others;
    bool keep_order; /* no collective may pass another, even of another group */
} tuck_schedule_options;

TUCK_API void tuck_schedule_options_init(tuck_schedule_options *o);

/* Starts with the problem's own order. The problem must outlive it. options may be NULL. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_schedule_new(const tuck_problem *p,
                                                       const tuck_schedule_options *options,
                                                       tuck_diags *diags, tuck_schedule **out);
TUCK_API void tuck_schedule_free(tuck_schedule *s);

/* Runs passes, "name(option=value),name". If one fails, the order is what it was before that
 * pass. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_schedule_run(tuck_schedule *s, const char *passes,
                                                       tuck_diags *diags);
/* The same with a pipeline, all of whose steps must be passes on orders. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_schedule_run_pipeline(tuck_schedule *s,
                                                                const tuck_pipeline *p,
                                                                tuck_diags *diags);
/* Runs a function of the caller that changes the order in place. TUCK_EINVAL: the result is not an
 * order of the problem; then nothing changes. */
TUCK_API TUCK_MUST_CHECK tuck_status
tuck_schedule_call(tuck_schedule *s, void (*fn)(void *ctx, uint32_t *order, uint32_t n), void *ctx);

/* tuck_problem_op_count() entries */
TUCK_API const uint32_t *tuck_schedule_order(const tuck_schedule *s);
TUCK_API int64_t tuck_schedule_peak(const tuck_schedule *s);       /* bytes; -1: out of memory */
TUCK_API int64_t tuck_schedule_exposed_ps(const tuck_schedule *s); /* picoseconds */

/* What each pass did, and what happened to each collective and wait; as JSON also the order. */
TUCK_API tuck_status tuck_schedule_print(const tuck_schedule *s, const tuck_print_options *how,
                                         tuck_write_fn write, void *ctx);
/* The order as text, with what overlaps; `form` is ignored. */
TUCK_API tuck_status tuck_schedule_print_overlap(const tuck_schedule *s,
                                                 const tuck_print_options *how, tuck_write_fn write,
                                                 void *ctx);
/* Writes the problem with its ops in the order and with the runtimes that the passes used. */
TUCK_API tuck_status tuck_schedule_write_problem(const tuck_schedule *s, tuck_write_fn write,
                                                 void *ctx);

/* Where PyTorch 2.13 differs from its documentation: what the compat "torch" reproduces, and
 * "torch,-NAME" does not. */
TUCK_API size_t tuck_compat_count(void);
TUCK_API const char *tuck_compat_name(size_t i); /* NULL after the last */
TUCK_API const char *tuck_compat_help(size_t i); /* one line */

/* A pass of the caller on the order of a graph's ops; tuck_pipeline_append() is for graphs. It
 * changes `order`, tuck_problem_op_count() ops, in place; the problem is freed after the call.
 * TUCK_EINVAL if the result is not an order. If collectives of a group would change places, the
 * order is kept, and the report says so; more time or memory is the caller's decision. */
typedef tuck_status (*tuck_order_fn)(void *ctx, const tuck_problem *problem, uint32_t *order,
                                     tuck_diags *diags);
TUCK_API TUCK_MUST_CHECK tuck_status tuck_pipeline_append_order(tuck_pipeline *p, const char *name,
                                                                tuck_order_fn fn, void *ctx);

/* ---- PyTorch's own ----
 * tuck_graph_optimize() also judges what PyTorch's overlap scheduler with bucketing makes of the
 * graph, schedule_overlap_bucketing(compat=torch), and is not slower than that unless it needs more
 * memory than is allowed. */
typedef struct tuck_rival {
    size_t size;
    const char *refused; /* why there is no result that could be used; NULL if there is one: */
    tuck_times times;
    bool fits; /* into the memory limit */
} tuck_rival;
/* From a report; out->size must be set. False if it was not run. */
TUCK_API bool tuck_report_rival(const tuck_report *t, tuck_rival *out);

/* ---- Decisions ----
 * What tuck_graph_optimize() or tuck_pipeline_run() did to a graph, from decision_out of their
 * options: it can be written, read, and applied to the same program, also with other names, without
 * searching. */
/* docs/files.md has the format. TUCK_ESYNTAX: see the diagnostics. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_decision_read_text(const char *text, size_t len,
                                                             const char *name,
                                                             const tuck_allocator *alloc,
                                                             tuck_diags *diags,
                                                             tuck_decision **out);
TUCK_API TUCK_MUST_CHECK tuck_status tuck_decision_read_file(const char *path,
                                                             const tuck_allocator *alloc,
                                                             tuck_diags *diags,
                                                             tuck_decision **out);
TUCK_API tuck_status tuck_decision_write(const tuck_decision *d, tuck_write_fn write, void *ctx);
TUCK_API void tuck_decision_free(tuck_decision *d);
/* Applies it. TUCK_EINVAL: it is for another program, and the diagnostics name the first node that
 * differs, or its steps do not give the sequence of communication that it says. Another time or
 * peak than promised, as on another machine, is a warning. After a failure the graph is unchanged.
 * Of the options, machine, order, judge, observe, before_out and after_out count. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_decision_apply(const tuck_decision *d, tuck_graph *g,
                                                         const tuck_run_options *options,
                                                         tuck_diags *diags,
                                                         tuck_report **report_out);

/* ---- One decision for several ranks ---- */

typedef struct tuck_rank_graph { /* one rank */
    tuck_graph *graph;
    const char *name; /* its file, for the report */
    int64_t number;   /* global rank; -1 if unknown */
} tuck_rank_graph;

typedef struct tuck_ranks_report tuck_ranks_report;

/* tuck_graph_optimize() for the graphs of several ranks. Ranks that run the same program, whatever
 * the names of nodes and groups, the index of the device and numbers among the operands, get the
 * same decision: it is made for the first and applied to the others. Where ranks of different
 * programs are members of one group, or may be, their sequences of communication stay as they are.
 * All ranks are simulated together, before and after: if that is slower, nothing is changed. After
 * a failure nothing is changed either. Of the options, before_out and after_out do not count;
 * TUCK_EINVAL: decision_out, and there are several programs; two graphs of one rank.
 * report_out may be NULL. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_ranks_optimize(const tuck_rank_graph *rank, size_t n,
                                                         const tuck_run_options *options,
                                                         tuck_diags *diags,
                                                         tuck_ranks_report **report_out);
TUCK_API void tuck_ranks_report_free(tuck_ranks_report *x);
/* The number of different programs; which of them a rank runs; what was done to it; is its sequence
 * of communication kept? */
TUCK_API size_t tuck_ranks_report_programs(const tuck_ranks_report *x);
TUCK_API size_t tuck_ranks_report_program(const tuck_ranks_report *x, size_t rank);
TUCK_API const tuck_report *tuck_ranks_report_at(const tuck_ranks_report *x, size_t program);
TUCK_API bool tuck_ranks_report_keeps_order(const tuck_ranks_report *x, size_t program);
TUCK_API bool tuck_ranks_report_changed(const tuck_ranks_report *x); /* was any graph changed? */
TUCK_API tuck_status tuck_ranks_report_print(const tuck_ranks_report *x,
                                             const tuck_print_options *how, tuck_write_fn write,
                                             void *ctx);

/* ---- Digests ----
 * What ranks of one job must agree on, as 16 hexadecimal digits: ranks compare theirs before they
 * run. Neither depends on names of nodes and groups, on the index of a device, or on numbers among
 * the operands. Both infer types. */
enum { TUCK_DIGEST_TEXT = 17 };

/* The sequence of communication over all groups together, docs/simulation.md: a line for each
 * collective with its kind, group (numbered by first use), dtype, reduce op and bytes. m gives the
 * values of symbols and may be NULL. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_sequence_digest(tuck_graph *g,
                                                                const tuck_machine *m,
                                                                char out[TUCK_DIGEST_TEXT]);
/* The lines themselves, to see where two of them differ. */
TUCK_API tuck_status tuck_graph_sequence_print(tuck_graph *g, const tuck_machine *m,
                                               tuck_write_fn write, void *ctx);
/* The program: operators, operands by place, shapes, dtypes, sizes of groups. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_program_digest(tuck_graph *g,
                                                               char out[TUCK_DIGEST_TEXT]);

/* ---- Jobs ----
 * The graphs of a training job as its files have them: folders of TORCH_TRACE, TORCH_COMPILE_DEBUG
 * and tuck.torch.capture(), archives of such folders (tar, zip), logs of TORCH_LOGS. Those that
 * make up a step are kept: of each compilation the last attempt and the last stage, forwards and
 * backwards in the order in which they run. docs/jobs.md says how they are chosen. */
typedef struct tuck_job tuck_job;

/* Is it a folder or an archive, which only tuck_job_read() can read? */
TUCK_API bool tuck_path_is_job(const char *path);
/* Is it a log with graphs of several ranks, or of forward and backward, whose compilations are
 * named? False if it cannot be read, too. */
TUCK_API bool tuck_path_is_job_log(const char *path);

/* All paths together are one job. TUCK_EIO: a path cannot be read; TUCK_ESYNTAX: there is no
 * graph. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_job_read(const char *const *paths, size_t n,
                                                   const tuck_allocator *alloc, tuck_diags *diags,
                                                   tuck_job **out);
TUCK_API void tuck_job_free(tuck_job *j);

/* Both documents belong to the job. The parts are the graphs of a step, of one rank after the
 * other, in the order in which they run; a title is "forward 0/0". The steps are one graph for
 * each rank: its parts, joined, with values that a backward got from its forward used directly.
 * They are copies: after the parts were changed, tuck_job_join() makes them again. */
TUCK_API tuck_doc *tuck_job_parts(const tuck_job *j);
TUCK_API tuck_doc *tuck_job_steps(const tuck_job *j);
TUCK_API TUCK_MUST_CHECK tuck_status tuck_job_join(tuck_job *j, tuck_diags *diags);

/* Like tuck_graph_remember(), of all parts, after it: where each is in the step and which inputs
 * are saved values, if its text would not say it, so that the texts of the parts, in files
 * "N.forward.rankR.txt", are the same job again. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_job_remember(tuck_job *j);

/* The first part of step i, and how many there are. */
TUCK_API size_t tuck_job_first_part(const tuck_job *j, size_t i, size_t *n_out);

/* The peak of forward and backward of step i together, as PyTorch's graph passes estimate it. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_job_pytorch_peak(tuck_job *j, size_t i,
                                                           int64_t *bytes_out);

/* The contents: the parts of each step, and the graphs that were passed over, with the reason. */
TUCK_API tuck_status tuck_job_print(tuck_job *j, const char *name, const tuck_print_options *how,
                                    tuck_write_fn write, void *ctx);
/* One sentence about step i. */
TUCK_API tuck_status tuck_job_say(const tuck_job *j, size_t i, const char *name,
                                  const tuck_print_options *how, tuck_write_fn write, void *ctx);

/* ---- Comm blocks ----
 * The nodes that belong to one collective, in the order of the graph: the collective, the [i]
 * that pick its results, its waits, and the views right after those. A collective whose result
 * is used by anything but waits has none. */
typedef struct tuck_comm_blocks tuck_comm_blocks;
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_comm_blocks(const tuck_graph *g,
                                                            tuck_comm_blocks **out);
TUCK_API void tuck_comm_blocks_free(tuck_comm_blocks *b);
TUCK_API size_t tuck_comm_blocks_count(const tuck_comm_blocks *b);
TUCK_API tuck_node tuck_comm_block_collective(const tuck_comm_blocks *b, size_t i);
/* Arrays of *n_out nodes that live as long as b: all nodes of the block, its waits, the operands of
 * the collective, and the nodes of the block that something outside uses. */
TUCK_API const tuck_node *tuck_comm_block_nodes(const tuck_comm_blocks *b, size_t i, size_t *n_out);
TUCK_API const tuck_node *tuck_comm_block_waits(const tuck_comm_blocks *b, size_t i, size_t *n_out);
TUCK_API const tuck_node *tuck_comm_block_inputs(const tuck_comm_blocks *b, size_t i,
                                                 size_t *n_out);
TUCK_API const tuck_node *tuck_comm_block_outputs(const tuck_comm_blocks *b, size_t i,
                                                  size_t *n_out);

#ifdef __cplusplus
}
#endif
#endif

/* Tuck: the part of the public interface that may still change in a new minor version.
 *
 * Names of operators, costs of single nodes, several ranks, programs, schedules, comm blocks. The
 * conventions are those of tuck.h, which comes with this header.
 */
#ifndef TUCK_EXPERIMENTAL_H
#define TUCK_EXPERIMENTAL_H

#include "tuck.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Names ---- */

/* Which name was probably meant: of those that `name` gives for 0, 1, ... (until NULL) the one with
 * the fewest edits, or that begins with the word; NULL: none is close. */
TUCK_API const char *tuck_suggest(const char *word, const char *(*name)(const void *ctx, size_t i),
                                  const void *ctx);

/* ---- The operator table ----
 * Operators are numbered from 1 in the order of their names. */

typedef struct tuck_op {
    size_t size;
    const char *name;      /* "aten.mm.default" */
    const char *signature; /* docs/operators.md */
    const char *op_class, *class_meaning;
} tuck_op;

TUCK_API uint32_t tuck_op_count(void);
/* In any spelling of graph texts: torch.ops.aten.mm.default, aten.mm; 0: not in the table. */
TUCK_API uint32_t tuck_op_find(const char *name);
/* out->size must be set. False: there is no such operator. */
TUCK_API bool tuck_op_info(uint32_t op, tuck_op *out);
/* Operators of that name; else those with a part of it in theirs; NULL:
 * all. How many, and print. */
TUCK_API uint32_t tuck_ops_matching(const char *name);
TUCK_API tuck_status tuck_ops_print(const char *name, const tuck_print_options *how,
                                    tuck_write_fn write, void *ctx);

/* ---- Costs of collectives and of single nodes ---- */

/* x is what tuck_cost_collective() answered to q: its time, how that comes about, and
 * the other ways there were. */
TUCK_API tuck_status tuck_collective_cost_print(const tuck_cluster *c, const tuck_collective *q,
                                                const tuck_collective_cost *x,
                                                const tuck_print_options *how, tuck_write_fn write,
                                                void *ctx);

/* The cost of every node of a graph by itself. The graph must outlive the costs, and stay as it is.
 * Types are inferred. */
typedef struct tuck_costs tuck_costs;
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_costs(tuck_graph *g, const tuck_machine *m,
                                                      tuck_diags *diags, tuck_costs **out);
TUCK_API void tuck_costs_free(tuck_costs *c);

typedef struct tuck_node_cost {
    tuck_node node;
    int64_t ps;        /* views, waits and numbers: 0; -1: not known */
    int64_t comm_ps;   /* of it, collectives in the graphs that the node calls */
    double flops;      /* operations of its kernel */
    int64_t bytes;     /* read and written; of a collective its message */
    tuck_coll coll;    /* 0: not a collective */
    const char *bound; /* what its time comes from: "compute", "memory", "collective", … */
} tuck_node_cost;

TUCK_API size_t tuck_costs_count(const tuck_costs *c); /* the nodes of the graph */
/* In the order of the graph. False: there is no row i. */
TUCK_API bool tuck_costs_row(const tuck_costs *c, size_t i, tuck_node_cost *out);
/* A table of the `top` longest nodes (default: 20), or all nodes as JSON. */
TUCK_API tuck_status tuck_costs_print(const tuck_costs *c, const tuck_print_options *how,
                                      tuck_write_fn write, void *ctx);
/* The times of the graph's ops as a profile file: read back, it gives the same step. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_costs_write_profile(const tuck_costs *c,
                                                              tuck_diags *diags,
                                                              tuck_write_fn write, void *ctx);

/* ---- Several ranks ---- */

typedef struct tuck_rank { /* what one rank does */
    const tuck_simulation *simulation;
    const char *name; /* for the report: its file */
    int64_t number;   /* global; -1: not known */
} tuck_rank;

typedef struct tuck_straggler { /* a rank whose kernels take `factor` times as long */
    int64_t rank;
    double factor;
} tuck_straggler;

typedef struct
    /* every group of a name, where one rank's are not enough to know the others' */
    tuck_instances {
    const char *name;
    size_t n;             /* groups */
    int64_t size;         /* of each */
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
    int64_t for_others_ps; /* waiting for ranks that come later */
} tuck_rank_times;

typedef struct tuck_rank_simulation tuck_rank_simulation;

/* n == 1: all ranks that the groups of the graph span, each running it. Else one rank each; groups
 * are the same if they have the same members. On the machine of the first. TUCK_EINVAL: who is in
 * which group cannot be known. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_ranks_simulate(const tuck_rank *rank, size_t n,
                                                         const tuck_ranks_options *options,
                                                         tuck_diags *diags,
                                                         tuck_rank_simulation **out);
TUCK_API void tuck_rank_simulation_free(tuck_rank_simulation *s);
TUCK_API size_t tuck_rank_simulation_count(const tuck_rank_simulation *s);
TUCK_API bool tuck_rank_simulation_at(const tuck_rank_simulation *s, size_t i,
                                      tuck_rank_times *out);
TUCK_API int64_t
tuck_rank_simulation_step_ps(const tuck_rank_simulation *s); /* -1: it never ends */
/* Ranks that do not fit together: "mismatch", "deadlock", "peer"; NULL: all come to the end. */
TUCK_API const char *tuck_rank_simulation_fault(const tuck_rank_simulation *s);
TUCK_API tuck_status tuck_rank_simulation_print(const tuck_rank_simulation *s,
                                                const tuck_print_options *how, tuck_write_fn write,
                                                void *ctx);

/* ---- Costs of single nodes ---- */

typedef struct tuck_cost_options {
    size_t size;
    tuck_cost_model model;       /* of collectives */
    const tuck_profile *profile; /* overrides the model; or NULL */
    tuck_estimate_fn estimate;   /* overrides both; or NULL */
    void *estimate_ctx;
} tuck_cost_options;

TUCK_API void tuck_cost_options_init(tuck_cost_options *o);

/* The time of every node by itself into ps_out[id], for all ids below tuck_graph_id_end().
 * Views, waits, numbers take nothing; a node whose sizes are not known has -1. Needs
 * tuck_graph_infer(). options may be NULL. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_cost(const tuck_graph *g, const tuck_cluster *c,
                                                     const tuck_cost_options *options,
                                                     int64_t *ps_out);

/* A profile file from times by node id, such as tuck_graph_cost() gives;
 * those below 0 are left out. */
TUCK_API tuck_status tuck_profile_write(const tuck_graph *g, const int64_t *ps, tuck_write_fn write,
                                        void *ctx);

/* ---- Programs ----
 * What a
 * graph becomes when it is known which buffer each value lives in and by which kernel it is made:
 * ops in order, with what they read, write and mutate, collectives and waits among them.
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
    bool no_fuse;     /* one op a node: no fused loops */
    bool keep_clones; /* as PyTorch lowers: the operand of an all-reduce is always cloned */
    bool auto_select; /* small all-reduces become one-shot ones over symmetric memory */
    int64_t one_shot_threshold;    /* … up to this many bytes (default: 128 KiB) */
    const char *const *symm_group; /* groups with symmetric memory; "*" is all of them */
    size_t n_symm_group;
    const char *const *keep; /* inputs that the caller keeps … */
    size_t n_keep;
    const char *const *free; /* … and those that it lets go of, where their names say otherwise */
    size_t n_free;
    const tuck_machine *machine; /* for times and values of symbols; NULL: the default */
    tuck_op_times times;
} tuck_lower_options;

TUCK_API void tuck_lower_options_init(tuck_lower_options *o);

/* options may be NULL. TUCK_EINVAL: a symbol without a value; see the
 * diagnostics. Types are inferred. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_lower(tuck_graph *g,
                                                      const tuck_lower_options *options,
                                                      tuck_diags *diags, tuck_program **out);
/* What tuck_program_write() wrote. Such a program has no graph. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_program_read_text(const char *text, size_t len,
                                                            const char *name,
                                                            const tuck_allocator *alloc,
                                                            tuck_diags *diags, tuck_program **out);
TUCK_API TUCK_MUST_CHECK tuck_status tuck_program_read_file(const char *path,
                                                            const tuck_allocator *alloc,
                                                            tuck_diags *diags, tuck_program **out);
TUCK_API void tuck_program_free(tuck_program *p);
/* Its text (docs/lowering.md): buffers, with their places once it is planned, and ops. Comments say
 * of which machine the times are, and what of that is assumed. */
TUCK_API tuck_status tuck_program_write(const tuck_program *p, tuck_write_fn write, void *ctx);
/* A program that was planned, for people: numbers of ops, kernels and buffers, and its memory;
 * TUCK_PRINT_BRIEF: its peak, a line. TUCK_EINVAL: it was not planned; there is no JSON of it. */
TUCK_API tuck_status tuck_program_print(const tuck_program *p, const tuck_print_options *how,
                                        tuck_write_fn write, void *ctx);

typedef enum tuck_op_kind {
    TUCK_OP_COMPUTE,    /* a kernel */
    TUCK_OP_FUSED,      /* a loop over several nodes */
    TUCK_OP_GEMM,       /* a matrix product, a convolution, attention: a library's kernel */
    TUCK_OP_COPY,       /* made by the lowering: a clone, or an operand made contiguous */
    TUCK_OP_COLLECTIVE, /* starts communication */
    TUCK_OP_WAIT,       /* ends it */
} tuck_op_kind;

TUCK_API uint32_t tuck_program_op_count(const tuck_program *p);
TUCK_API const char *tuck_program_op_name(const tuck_program *p, uint32_t op); /* "": none */
TUCK_API tuck_op_kind tuck_program_op_kind(const tuck_program *p, uint32_t op);
TUCK_API int64_t tuck_program_op_ps(const tuck_program *p, uint32_t op); /* -1: not known */
TUCK_API uint32_t tuck_program_kernel_count(const tuck_program *p); /* ops that launch a kernel */
TUCK_API uint32_t tuck_program_buffer_count(const tuck_program *p); /* inputs among them */
/* Buffers whose size is not known; they count as nothing. */
TUCK_API uint32_t tuck_program_unknown_count(const tuck_program *p);

/* Ops whose time is not known: a warning; or an error and TUCK_EINVAL, where too many are unknown
 * to say anything about the step, or with TUCK_REFUSE any is. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_program_check_times(const tuck_program *p,
                                                              tuck_unknown unknown,
                                                              tuck_diags *diags);

typedef struct tuck_memory {
    int64_t peak;         /* bytes live at once, at least */
    int64_t arena;        /* bytes of the plan, symmetric memory not counted */
    int64_t resident;     /* resident inputs */
    uint64_t comm_digest; /* equal on ranks that can share symmetric memory; 0: there is none */
} tuck_memory;

/* Give every buffer its place for this order of the ops (NULL: as they are). memory_out may be
 * NULL. TUCK_EINVAL: not an order of the ops. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_program_plan(tuck_program *p, const uint32_t *order,
                                                       tuck_memory *memory_out);

/* The peak of a graph as PyTorch's passes on graphs estimate it, for comparison: storages off the
 * host, node by node, nothing fused, no wait holding what a transfer reads. */
typedef struct tuck_torch_peak {
    int64_t peak;     /* bytes */
    int64_t initial;  /* inputs and attributes, live from the start */
    tuck_node node;   /* where the peak is; none: before the first */
    uint32_t unknown; /* storages whose size is not known, counted as nothing */
} tuck_torch_peak;
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_torch_peak(tuck_graph *g, const tuck_hint *hints,
                                                           size_t n_hints,
                                                           tuck_torch_peak *peak_out);

/* The schedule problem; its ops are those of the program, by number. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_program_problem(const tuck_program *p, tuck_diags *diags,
                                                          tuck_problem **out);

/* Give the graph, as it was when it was lowered, the order of the ops. TUCK_EINVAL: it was edited
 * meanwhile, the program has no graph, or that is not an order; nothing has changed then. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_program_apply(const tuck_program *p,
                                                        const uint32_t *order, tuck_graph *g);

/* ---- Schedules ----
 * Orders of a
 * schedule problem: ops with their runtimes, what needs what, buffers with their sizes and users,
 * as docs/scheduling.md describes its files. Ops are numbered in the order of the file.
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
/* Is that file a problem rather than a graph? It is called so (.json), or begins with a brace, as
 * no text of a graph does. A file that cannot be opened counts: reading it says why. "-" is
 * standard input, of which nothing is lost. */
TUCK_API bool tuck_problem_is_file(const char *path);
TUCK_API void tuck_problem_free(tuck_problem *p);
TUCK_API uint32_t tuck_problem_op_count(const tuck_problem *p);
TUCK_API const char *tuck_problem_op_name(const tuck_problem *p, uint32_t op);
/* The file again, with the ops in `order` (NULL: as they are). */
TUCK_API tuck_status tuck_problem_write(const tuck_problem *p, const uint32_t *order,
                                        tuck_write_fn write, void *ctx);

/* How ranks exchange their runtimes, for
 * align_runtime_estimations_across_all_distributed_ranks: each op then takes the (lower) median
 * of all ranks, so that every rank decides in the same way. They are numbers in the problem's unit,
 * not times in ps, as PyTorch's schedulers are given them. */
typedef struct tuck_estimates {
    const double *at;
    uint32_t n;
} tuck_estimates;

typedef struct tuck_transport {
    void *ctx;
    uint32_t rank, n_rank;
    /* Hands in this rank's numbers and waits for those of all, by rank; they live until the
     * next call. NULL: it failed. */
    const tuck_estimates *(*gather)(void *ctx, uint32_t rank, const double *mine, uint32_t n);
} tuck_transport;

typedef struct tuck_schedule_options {
    size_t size;
    const char *compat;     /* NULL, or "torch", "torch,-stale-group-peak" */
    const char *const *set; /* options for all passes, "name=value" */
    size_t n_set;
    /* The runtime of an op in the problem's unit, asked once per op;
     * NULL: what the problem says. */
    double (*estimate)(void *ctx, uint32_t op);
    void *ctx;
    const tuck_transport *transport; /* or NULL; must outlive the schedule */
    /* The problems of the other ranks instead of a transport: runtimes are then the medians of all
     * ranks. */
    const tuck_problem *const *others;
    size_t n_others;
    bool keep_order; /* no collective passes another, also where their groups differ */
} tuck_schedule_options;

TUCK_API void tuck_schedule_options_init(tuck_schedule_options *o);

/* The problem's own order. The problem must outlive it. options may be NULL. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_schedule_new(const tuck_problem *p,
                                                       const tuck_schedule_options *options,
                                                       tuck_diags *diags, tuck_schedule **out);
TUCK_API void tuck_schedule_free(tuck_schedule *s);

/* Run passes, "name(option=value),name". What failed leaves the order that was there before it. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_schedule_run(tuck_schedule *s, const char *passes,
                                                       tuck_diags *diags);
/* The same with a pipeline, all of whose steps must be passes on orders. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_schedule_run_pipeline(tuck_schedule *s,
                                                                const tuck_pipeline *p,
                                                                tuck_diags *diags);
/* A pass of the caller's own: fn changes the order in place. TUCK_EINVAL: the result is not an
 * order of the problem; nothing has changed then. */
TUCK_API TUCK_MUST_CHECK tuck_status
tuck_schedule_call(tuck_schedule *s, void (*fn)(void *ctx, uint32_t *order, uint32_t n), void *ctx);

TUCK_API const uint32_t *tuck_schedule_order(const tuck_schedule *s); /* tuck_problem_op_count() */
TUCK_API int64_t tuck_schedule_peak(const tuck_schedule *s); /* bytes; -1: no memory to count */
TUCK_API int64_t tuck_schedule_exposed_ps(const tuck_schedule *s); /* picoseconds */

/* What each pass did, and what became of each collective and wait; as JSON also the order. */
TUCK_API tuck_status tuck_schedule_print(const tuck_schedule *s, const tuck_print_options *how,
                                         tuck_write_fn write, void *ctx);
/* The order as text, with what runs under what; `form` is not looked at. */
TUCK_API tuck_status tuck_schedule_print_overlap(const tuck_schedule *s,
                                                 const tuck_print_options *how, tuck_write_fn write,
                                                 void *ctx);
/* The problem again, with its ops in the order and with the runtimes that the passes went by. */
TUCK_API tuck_status tuck_schedule_write_problem(const tuck_schedule *s, tuck_write_fn write,
                                                 void *ctx);

/* Where PyTorch 2.13 does something else than it says: what the compat "torch" reproduces, and
 * "torch,-NAME" does not. */
TUCK_API size_t tuck_compat_count(void);
TUCK_API const char *tuck_compat_name(size_t i); /* NULL after the last */
TUCK_API const char *tuck_compat_help(size_t i); /* one line */

/* A pass of the caller on the order of a graph's ops, as tuck_pipeline_append() has them on
 * graphs. It changes `order`, tuck_problem_op_count() ops, in place; the problem is gone
 * after the call. TUCK_EINVAL where the result is not an order. The order is kept as it was,
 * and the report says so, where collectives of a group would change places; more time or
 * memory is the caller's decision. */
typedef tuck_status (*tuck_order_fn)(void *ctx, const tuck_problem *problem, uint32_t *order,
                                     tuck_diags *diags);
TUCK_API TUCK_MUST_CHECK tuck_status tuck_pipeline_append_order(tuck_pipeline *p, const char *name,
                                                                tuck_order_fn fn, void *ctx);

/* ---- Comm blocks ----
 * The nodes that
 * belong to one collective, in the order of the graph: the collective, the [i] that pick its
 * results, its waits, and the views right after those. A collective whose result is used by
 * anything but waits has none. */
typedef struct tuck_comm_blocks tuck_comm_blocks;
TUCK_API TUCK_MUST_CHECK tuck_status tuck_graph_comm_blocks(const tuck_graph *g,
                                                            tuck_comm_blocks **out);
TUCK_API void tuck_comm_blocks_free(tuck_comm_blocks *b);
TUCK_API size_t tuck_comm_blocks_count(const tuck_comm_blocks *b);
TUCK_API tuck_node tuck_comm_block_collective(const tuck_comm_blocks *b, size_t i);
/* Arrays of *n_out nodes that live as long as b: all of the block, its waits, the operands of the
 * collective, and those nodes of the block that something outside of it uses. */
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

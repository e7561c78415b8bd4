/* A job: graphs on ranks, from files and options to what was measured. */
#ifndef TUCK_RUN_RUN_H
#define TUCK_RUN_RUN_H

#include "run/comm/launch.h"
#include "run/exec.h"
#include "run/safetensors.h"
#include "tuck_run.h"

/* ---- what is known before ranks start ---- */

/* One graph on one rank. */
struct run_rank {
    tuck_graph *g;
    struct program *p;
    bool shared; /* p belongs to another rank */
    struct exec_number *number;
    uint32_t n_number;
    struct fx_hint *hint; /* the same for lowering, with 1 for what depends on data */
    uint32_t n_hint;
    const char **keep; /* inputs that the graph writes, and the caller sees */
    size_t n_keep;
    uint32_t *written; /* inputs that the graph writes, as buffers of the program */
    uint32_t n_written;
    int32_t *set; /* by group of the program: index in run_plan.set, -1 if unknown */
};

/* A graph on all ranks; a job that verifies has two. */
struct run_side {
    struct run_rank *rank; /* [world] */
    bool same_text;
};

struct run_set { /* members of a group, as ranks of the world */
    int32_t *member;
    int32_t n;
};

enum { RUN_SIDES = 2 };

struct run_plan {
    struct mem mem;
    struct arena arena;
    const tuck_exec_options *o;
    tuck_diags *diags;
    int world;
    struct run_side side[RUN_SIDES];
    uint32_t n_side;
    VEC(struct run_set) set;
    struct st_file **file; /* by rank: its inputs; all NULL if they come from the seed */
    struct exec_kernel *kernel;
    struct run_note *note; /* after run_go() */
    const char *transport; /* the name of the one that was used */
    tuck_status status;
};

/* The graphs of each side: one for all ranks, or n for as many. After a failure, too, run_end()
 * frees what was made. */
TUCK_MUST_CHECK tuck_status run_begin(struct run_plan *plan, tuck_graph *const *const side[],
                                      uint32_t n_side, size_t n, const tuck_exec_options *o,
                                      tuck_diags *diags);
void run_end(struct run_plan *plan);

/* in run_world.c: how many ranks there are, and which of them form groups */
int run_count_ranks(const struct run_plan *plan, tuck_graph *const *g, size_t n);
bool run_find_groups(struct run_plan *plan, struct run_side *side, int rank);
/* An error of the graph, where `node` stands in its text; PROGRAM_NONE: of the whole graph. */
void run_refuse(struct run_plan *plan, const tuck_graph *g, uint32_t node, const char *hint,
                const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* in run_inputs.c */
bool run_open_inputs(struct run_plan *plan);
/* Values of symbols and of inputs that are numbers, for one rank. */
bool run_learn(struct run_plan *plan, struct run_rank *r, int rank);
/* Fills an input. False: why (EXEC_ERROR_BYTES) says what is wrong. */
bool run_fill(const struct run_plan *plan, const struct run_rank *r, int rank,
              const struct exec_input *in, char *why);
/* What the graph returned and changed, to NAME.rankR.safetensors. */
bool run_write(const struct run_plan *plan, int rank, const struct exec *x, char *why);

/* in run_seed.c: elements of an input, from the seed, the input's name and the rank */
void run_draw(uint64_t seed, const struct run_rank *r, int rank, const struct exec_input *in);

/* ---- what ranks report ---- */

struct run_compared {
    double ulp, relative, absolute;
    int64_t elements, different;
    int32_t rank;
    bool equal, within;
};

/* Memory that all ranks of this machine share; under MPI each process has its own. */
struct run_note {
    size_t bytes;
    int world;
    bool speaks;
    struct {
        int64_t *step_ns;       /* by measured step: of the slowest rank */
        struct exec_time *time; /* by op: of the median step on rank 0 */
        int64_t began;          /* when that step began */
        struct exec_memory memory;
    } side[RUN_SIDES];
    struct run_compared *compared; /* by result */
    uint32_t n_compared;
};

void run_note_free(struct run_note *n); /* n may be NULL */
/* Calls a kernel of the caller's; in api/, where its public form is known. */
bool run_own_kernel(void *kernel, struct rt_call *c);

/* Starts the ranks, runs all steps of all sides, and compares results if there are two. */
TUCK_MUST_CHECK tuck_status run_go(struct run_plan *plan);

/* in run_compare.c */
void run_compare(const struct rt_tensor *a, const struct rt_tensor *b, struct run_compared *out);
bool run_copy_dense(const struct rt_tensor *from, void *to, char *why); /* contiguous */

#endif

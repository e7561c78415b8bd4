/* Tuck: running graphs on real ranks, comparing two of them, and measuring this machine.
 *
 * Like tuck_experimental.h, this may still change in a new minor version. The conventions are those
 * of tuck.h, which this header includes.
 */
#ifndef TUCK_RUN_H
#define TUCK_RUN_H

#include "tuck.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Running graphs on real ranks ----
 * A rank is a process of this machine (or a thread, or a process that mpirun started), pinned to a
 * core; docs/running.md. The caller must have no other threads where ranks are processes. */

/* What a kernel of the caller's is called with: operands in the order of the operator's signature,
 * results with memory that the kernel fills. Strides count elements. */
typedef struct tuck_kernel_call tuck_kernel_call;
typedef struct tuck_tensor {
    void *data;
    const char *dtype; /* "float32" */
    uint32_t n;        /* dimensions */
    const int64_t *sizes, *strides;
} tuck_tensor;

TUCK_API size_t tuck_kernel_operand_count(const tuck_kernel_call *c);
/* false: that operand is not a tensor; item -1 if it is no list of them. */
TUCK_API bool tuck_kernel_tensor(const tuck_kernel_call *c, size_t operand, int64_t item,
                                 tuck_tensor *out);
/* false: it is no number. */
TUCK_API bool tuck_kernel_number(const tuck_kernel_call *c, size_t operand, double *out);
TUCK_API bool tuck_kernel_result(const tuck_kernel_call *c, size_t i, tuck_tensor *out);
/* Says why the kernel returns false. */
TUCK_API void tuck_kernel_fail(tuck_kernel_call *c, const char *why);

/* false: the step fails. It is called on every rank, in that rank's process. */
typedef bool (*tuck_kernel_fn)(void *ctx, tuck_kernel_call *c);

typedef struct tuck_kernel {
    const char *op; /* aten.add.Tensor, or any name that a graph calls */
    tuck_kernel_fn run;
    void *ctx;
} tuck_kernel;

typedef struct tuck_exec_options {
    size_t size;
    int64_t ranks;          /* 0: as many as the graph's groups have */
    uint32_t steps, warmup; /* measured steps, and those before them */
    uint64_t seed;          /* for inputs, if no file gives them */
    const char *inputs;     /* NAME: NAME.rank0.safetensors …, or NAME.safetensors for all */
    const char *outputs;    /* NAME: writes NAME.rank0.safetensors …; NULL: writes nothing */
    const char *transport;  /* "shm", "threads", "mpi"; NULL: mpi under mpirun, else shm */
    double timeout_s;       /* how long a rank waits for others */
    bool no_pin;            /* ranks may move between cores */
    bool count_memory;      /* find out which bytes steps write: slow, two more steps */
    const tuck_hint *hints; /* values of symbols */
    size_t n_hints;
    const tuck_kernel *kernels; /* of the caller's, for operators without one or instead of it */
    size_t n_kernels;
    void (*progress)(void *ctx, uint32_t step, uint32_t steps); /* on rank 0; or NULL */
    void *ctx;
} tuck_exec_options;

TUCK_API void tuck_exec_options_init(tuck_exec_options *o);

typedef struct tuck_exec_memory {
    int64_t arena_bytes;   /* planned for everything that a step makes, and allocated before it */
    int64_t peak_bytes;    /* of it, the most that is live at once */
    int64_t input_bytes;   /* of inputs that stay with the caller */
    int64_t scratch_bytes; /* of kernels */
    int64_t grown_bytes;   /* for sizes that depend on data */
    int64_t planned_bytes; /* of the arena, without what is lost to alignment */
    int64_t touched_bytes; /* of the arena, written by steps; -1 if not counted */
    int64_t highest_byte;  /* the end of the last of them; -1 if not counted */
    int64_t allocations;   /* made while steps ran */
} tuck_exec_memory;

typedef struct tuck_execution tuck_execution;

/* Runs a graph: one for all ranks, or one for each. TUCK_EINVAL: it cannot be run, and the
 * diagnostics list why, before anything is started; or ranks failed, and they say which one. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_ranks_execute(tuck_graph *const *graphs, size_t n,
                                                        const tuck_exec_options *options,
                                                        tuck_diags *diags, tuck_execution **out);
TUCK_API void tuck_execution_free(tuck_execution *e);
/* Does this process report? False for ranks other than 0 under mpirun. */
TUCK_API bool tuck_execution_speaks(const tuck_execution *e);
TUCK_API int64_t tuck_execution_ranks(const tuck_execution *e);
TUCK_API uint32_t tuck_execution_step_count(const tuck_execution *e);
/* The time of a measured step: of the slowest rank. -1 if there is no such step. */
TUCK_API int64_t tuck_execution_step_ns(const tuck_execution *e, uint32_t step);
TUCK_API void tuck_execution_memory(const tuck_execution *e, tuck_exec_memory *out);
/* The measured timeline of rank 0, of the step with the median time, in the form of a simulated
 * one, for tables, pages and traces. TUCK_EINVAL: this process does not report. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_execution_timeline(const tuck_execution *e,
                                                             tuck_simulation **out);
TUCK_API tuck_status tuck_execution_print(const tuck_execution *e, const tuck_print_options *how,
                                          tuck_write_fn write, void *ctx);

/* One result of both graphs, over all ranks. */
typedef struct tuck_compared {
    const char *name; /* "output 3 (add_7)" */
    bool equal;       /* to the bit, on all ranks */
    bool within;      /* of the tolerance for its dtype */
    double most_ulp;  /* the largest difference in units of the last place */
    double most_relative, most_absolute;
    int64_t elements, different; /* on the rank with the largest difference */
    int rank;                    /* that rank */
    const char *cause;           /* a node of the second graph that sums in another order, or "" */
} tuck_compared;

typedef struct tuck_verification tuck_verification;

/* Runs both on the same inputs and compares what they return. TUCK_EINVAL: as above, or they have
 * different inputs or results. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_ranks_verify(tuck_graph *const *before,
                                                       tuck_graph *const *after, size_t n,
                                                       const tuck_exec_options *options,
                                                       tuck_diags *diags, tuck_verification **out);
TUCK_API void tuck_verification_free(tuck_verification *v);
TUCK_API bool tuck_verification_speaks(const tuck_verification *v);
TUCK_API bool tuck_verification_within(const tuck_verification *v); /* all of them */
TUCK_API size_t tuck_verification_count(const tuck_verification *v);
TUCK_API bool tuck_verification_at(const tuck_verification *v, size_t i, tuck_compared *out);
TUCK_API tuck_status tuck_verification_print(const tuck_verification *v,
                                             const tuck_print_options *how, tuck_write_fn write,
                                             void *ctx);

/* ---- Calibration ----
 * Collectives of a transport, matrix products, loops and copies, measured on this machine. */
typedef struct tuck_calibration tuck_calibration;

/* ranks, transport, timeout_s and no_pin of the options count. TUCK_EINVAL: ranks failed, and the
 * diagnostics say why. */
TUCK_API TUCK_MUST_CHECK tuck_status tuck_calibrate(const tuck_exec_options *options,
                                                    tuck_diags *diags, tuck_calibration **out);
TUCK_API void tuck_calibration_free(tuck_calibration *c);
TUCK_API bool tuck_calibration_speaks(const tuck_calibration *c); /* as for executions */
/* A cluster file, docs/cost-model.md. */
TUCK_API tuck_status tuck_calibration_write(const tuck_calibration *c, tuck_write_fn write,
                                            void *ctx);
TUCK_API tuck_status tuck_calibration_print(const tuck_calibration *c,
                                            const tuck_print_options *how, tuck_write_fn write,
                                            void *ctx);

#ifdef __cplusplus
}
#endif
#endif

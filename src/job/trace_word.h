/* The words of a profiler's trace: names of kernels and collectives, shapes, dtypes. */
#ifndef TUCK_JOB_TRACE_WORD_H
#define TUCK_JOB_TRACE_WORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op/collective.h"

/* The kind that a name means, "_allgather_base" or "ncclDevKernel_AllGather_RING_LL"; 0: none. */
tuck_coll trace_kind(const char *name);
/* The elements of operands, "[[512,512],[]]"; a list of tensors, "[[[512],[512]],[]]", is one. */
struct trace_shapes {
    int64_t most, total; /* of the largest and of all; -1 if there is none */
    bool found;          /* one of them has as many as wanted */
};
struct trace_shapes trace_shapes(const char *dims, int64_t wanted);
/* Of the largest; -1 if there is none. */
int64_t trace_numel(const char *dims);
/* A dtype as traces name it, "Float", "c10::BFloat16"; NULL if unknown. */
struct trace_dtype {
    const char *name, *abbr; /* "f32" */
    int bytes;
};
const struct trace_dtype *trace_dtype(const char *name, size_t len);
/* The first dtype in "["TensorList","float",""]"; NULL. */
const struct trace_dtype *trace_dtype_in(const char *types);
/* Does a kernel of that name move data between ranks, as far as the name says? */
bool trace_communicates(const char *kernel);
/* Is it a matrix product, convolution or attention, as far as the name says? Also of the host. */
bool trace_is_product(const char *name);
/* A kernel's name without its template arguments, parameters and namespaces: where it begins and
 * how long it is. */
size_t trace_short_name(const char *full, const char **from);
/* GB/s on the slowest link of a ring, as nccl-tests define it; 0 if something is unknown. */
double trace_bus_gbps(tuck_coll kind, int64_t bytes, int64_t p, int64_t ps);

#endif

/* Kernels: what computes the elements of an operator's results, one thread, on the CPU.
 *
 * An operator's row names its kernel (column `kernel` of ops.def, rows in op/kernels.def). A caller
 * resolves a call once into values and tensors, and runs it as often as it likes:
 *
 *   - Operands are in the order of the operator's signature, with defaults filled in; lists are
 *     lists, a keyword is an operand like any other. What no kernel needs (devices, layouts, memory
 *     formats, groups) is RT_OTHER.
 *   - The caller allocates the results with the types that inference gives (dtype, sizes, strides);
 *     the kernel writes every element of them. Operands may have any strides, results any that do
 *     not overlap. Lists of results are flat: out[] has all their tensors. A result that the
 *     operator does not return (a gradient that the mask leaves out) has dtype DTYPE_NONE.
 *   - An operator that returns an operand it writes (add_, copy_, out=) has that operand's tensor
 *     as result, so that add_ runs the kernel of add. One that returns nothing writes through its
 *     operands. Results overlap operands in no other way.
 *   - An operand that the signature calls a tensor is one, or None if it may be; kernels that work
 *     element by element take numbers there, too.
 *   - Views have no kernel: they are sizes, strides and an address.
 *   - A kernel allocates nothing and has no state. What it needs for itself is scratch, of
 *     kernel_scratch() bytes, aligned to RT_ALIGN; its contents are lost.
 *   - Indices that come from data are checked; a wrong one is an error, and results are undefined.
 */
#ifndef TUCK_RUN_KERNEL_KERNEL_H
#define TUCK_RUN_KERNEL_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op/dtype.h"
#include "op/ops.h"

enum { RT_DIMS = 16, RT_ALIGN = 64 };

/* A kernel that needs as much scratch is not run. */
#define KERNEL_MOST_BYTES ((int64_t)1 << 60)

struct rt_tensor {
    void *data; /* the element at index 0 in every dimension */
    uint8_t dtype, n;
    int64_t size[RT_DIMS], stride[RT_DIMS]; /* strides count elements */
};

enum rt_kind {
    RT_NONE,
    RT_TENSOR,
    RT_INT,
    RT_FLOAT,
    RT_BOOL,
    RT_COMPLEX,
    RT_STR,
    RT_DTYPE,
    RT_LIST,
    RT_OTHER,
};

struct rt_value {
    uint8_t kind;  /* enum rt_kind */
    uint8_t dtype; /* RT_DTYPE */
    bool b;
    uint32_t n; /* items of a list */
    union {
        const struct rt_tensor *tensor;
        int64_t i;
        double f, z[2];
        const char *str;
        const struct rt_value *item;
    };
};

struct kernel_row;

struct rt_call {
    const struct kernel_row *kernel;
    const struct rt_value *arg;
    struct rt_tensor *out;
    uint32_t n_arg, n_out;
    uint64_t key; /* what random operators draw from */
    void *scratch;
    char *error; /* of error_size bytes: what is wrong, if the kernel returns false */
    size_t error_size;
};

typedef bool (*rt_kernel)(struct rt_call *c);

struct kernel_row {
    const char *name;
    bool (*run)(struct rt_call *c);
    size_t (*scratch)(const struct rt_call *c); /* NULL: none */
    int64_t (*count)(const struct rt_call *c);  /* NULL: no size depends on data */
    uint16_t id;                                /* enum op_kernel */
};

/* The row of a kernel, NULL if there is none. */
const struct kernel_row *kernel_at(enum op_kernel kernel);

/* Bytes of scratch that the call needs: from sizes, never from data. */
size_t kernel_scratch(const struct rt_call *c);

/* The size of the result that the operands' data decide; there are no results yet. false if nothing
 * depends on data. */
bool kernel_count(struct rt_call *c, int64_t *count);

/* false: c->error says why. */
bool kernel_run(struct rt_call *c);

/* ---- for callers ---- */

int64_t rt_numel(const struct rt_tensor *t);

/* Contiguous, as a result of empty(): strides of dimensions of size 1 do not matter. */
bool rt_contiguous(const struct rt_tensor *t);

/* The same with dimensions in any order. */
bool rt_dense(const struct rt_tensor *t);

/* The number in a tensor of one element, as _local_scalar_dense gives it. */
struct rt_value rt_item(const struct rt_tensor *t);

#endif

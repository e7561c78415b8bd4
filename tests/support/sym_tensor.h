/* Internals of the evaluator: elements, storages, tensors. Not for tests. */
#ifndef TUCK_TESTS_SYM_TENSOR_H
#define TUCK_TESTS_SYM_TENSOR_H

#include "support/sym_eval.h"

/* ---- memory that is freed with the run ---- */

struct pool {
    struct chunk *first;
};

void *pool_get(struct pool *p, size_t size); /* zeroed */
void pool_done(struct pool *p);
#define POOL_ARRAY(p, type, n) ((type *)pool_get((p), (size_t)(n) * sizeof(type)))

/* ---- numbers ---- */

/* The field has 2^54 - 33 elements. Two more bits of a value say that it was widened, and from
 * which dtype: converting it back, or to another dtype, works as if it had not been. */
#define FIELD 18014398509481951u
#define VALUE_NOTHING UINT64_MAX /* uninitialized; what is computed from it is uninitialized, too */

uint64_t field_of(uint64_t value); /* for arithmetic */

uint64_t field_add(uint64_t a, uint64_t b);
uint64_t field_neg(uint64_t a);
uint64_t field_mul(uint64_t a, uint64_t b);
uint64_t field_inv(uint64_t a);  /* 0 for 0 */
uint64_t field_conj(uint64_t v); /* of a value: twice is the same value again */
uint64_t field_int(int64_t v);
uint64_t field_hash(uint64_t a, uint64_t b); /* a random function */

/* ---- dtypes ---- */

struct sym_dtype {
    const char *name;   /* as in annotations: bf16 */
    const char *python; /* torch.bfloat16 */
    int size;           /* bytes */
    int number;         /* its number in bucketing operators of torch 2.13 */
    int rank;           /* in promotion */
};

extern const struct sym_dtype symeval_dtypes[];
int dtype_named(const char *name, size_t len); /* -1: none */
int dtype_of_python(const char *python);
int dtype_of_number(int64_t number);
int dtype_promoted(int a, int b);

/* ---- cells: one for each byte of a storage ---- */

/* Byte `part` of a number of a dtype. The adjacent bytes of one number form that number again;
 * others are read as a random function of them. */
typedef uint64_t cell;

#define CELL_NOTHING UINT64_MAX

struct sym_storage {
    cell *at;
    int64_t n;         /* bytes */
    int reads, writes; /* collectives in flight that read it, or will write it */
};

enum { SYM_DIMS = 6 };

struct tensor {
    struct sym_storage *st;
    int dtype, n_dim;
    bool cpu;    /* otherwise it is on the GPU */
    bool conj;   /* its elements are the conjugates of what is stored */
    int64_t off; /* elements */
    int64_t size[SYM_DIMS], stride[SYM_DIMS];
};

int64_t tensor_numel(const struct tensor *t);
int tensor_item(const struct tensor *t); /* bytes of an element */
bool tensor_fits(const struct tensor *t);
/* The position of element i, counted row by row, in the storage, in elements. */
int64_t tensor_place(const struct tensor *t, int64_t i);
uint64_t tensor_load(const struct tensor *t, int64_t i);
void tensor_store(const struct tensor *t, int64_t i, uint64_t v);
/* The bytes of an element, and back; not of conjugates. */
void tensor_take(const struct tensor *t, int64_t i, cell *to);
void tensor_put(const struct tensor *t, int64_t i, const cell *from);
bool tensor_contiguous(const struct tensor *t);
bool tensor_dense(const struct tensor *t);         /* is it a permutation of a contiguous one? */
void tensor_pack(struct tensor *t);                /* sets contiguous strides */
void tensor_new(struct pool *p, struct tensor *t); /* a new storage for its sizes and strides */
/* The strides of a view with other sizes (-1 already resolved); false if there is none. */
bool tensor_view(const struct tensor *t, int n_dim, const int64_t *size, struct tensor *out);
/* Converts a value to another dtype. */
uint64_t convert(uint64_t v, int from, int to);
/* Element by element, with broadcast, converted if dtypes differ. */
bool tensor_copy(const struct tensor *to, const struct tensor *from);
bool tensor_broadcast(const struct tensor *t, int n_dim, const int64_t *size, struct tensor *out);

/* ---- annotations ---- */

/* An expression of integers and symbols: 2*s0 + 1. */
bool symeval_number(const struct sym_world *w, const char *text, size_t len, int64_t *out);
/* f32[2*s0, 4][4, 1]cuda:0: fills in dtype, sizes and, if given, strides and device. Sets *strides
 * if strides are given. */
bool symeval_annotation(const struct sym_world *w, const char *text, struct tensor *out,
                        bool *strides);

#endif

/* Internals of the generator of random graphs: values and how they are made. Not for tests. */
#ifndef TUCK_TESTS_RANDOM_GEN_H
#define TUCK_TESTS_RANDOM_GEN_H

#include "support/random_graph.h"

enum { MAX_VALS = 400, MAX_FLIGHTS = 64, DIMS = 4, RANK_MARK = 1 };

struct dim {
    int64_t k;
    int sym; /* 0: k; 1: k*s0; 2: k*s1 */
};

/* Numbers of gen_dtype_python[]: what most graphs are of, and what only few operators take. */
enum { F32, BF16, F16, F64, N_FLOATS, C64 = N_FLOATS, C32, BOOL };

enum layout { PACKED, SLICED, PERMUTED }; /* SLICED: strides descend, with gaps */

struct val {
    char name[40];
    int dtype, device, n_dim, storage;
    struct dim size[DIMS], stride[DIMS];
    enum layout layout;
    bool flying;  /* only a wait may use it */
    bool taken;   /* has all the users it may have */
    bool changes; /* may be written */
    bool begins;  /* it begins at the start of its storage */
};

struct storage {
    int reads, writes; /* collectives in flight */
};

enum sink { SINK_FREE, SINK_RETURN, SINK_COPY, SINK_CONVERT };

struct flight {
    int result, from, to; /* value, storages */
    int buffer;           /* the value that is reduced in place, or -1 */
    int into;             /* SINK_COPY: the value that is written */
    enum sink sink;
    bool landed;
};

struct gen {
    struct rng *rng;
    struct random_graph *x;
    struct text body, head, tail; /* tail: nested graphs */
    int token;                    /* last token of effects; -1 if none yet */
    struct val val[MAX_VALS];
    int n_val;
    struct storage storage[MAX_VALS];
    int n_storage;
    struct flight flight[MAX_FLIGHTS];
    int n_flight;
    int returned[MAX_VALS], n_returned;
    int n_name;
    bool annotated, literal;
    /* What most collectives of this graph have in common, so that some can be merged. */
    int group, dtype;
    const char *reduce;
};

extern const char *const gen_dtype_python[];
extern const int gen_dtype_size[];
extern const char *const gen_device_python[];

uint32_t gen_below(struct gen *g, uint32_t n);
bool gen_one_in(struct gen *g, uint32_t n);
void gen_put(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "self = %s; dim = 0" as the operands of a call: by place or, from a random one on, by name, and
 * those by name in any order. What begins with a star is always given by name. */
void gen_operands(struct gen *g, struct text *t, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same on a new line's end: "aten.slice.Tensor(…)". */
void gen_call(struct gen *g, const char *op, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- types ---- */

void gen_put_dims(struct text *t, const struct dim *d, int n);
void gen_put_type(struct text *t, const struct val *v); /* as an annotation */
struct dim gen_numel(const struct val *v);
void gen_pack(struct val *v); /* contiguous */
bool gen_is_symbolic(const struct val *v);
struct val gen_random_type(struct gen *g);

/* ---- values ---- */

bool gen_full(const struct gen *g); /* no room for another pattern */
int gen_new_storage(struct gen *g);
int gen_add_val(struct gen *g, struct val v, const char *stem);
int gen_add_input(struct gen *g, struct val v, const char *stem);
int gen_begin(struct gen *g, struct val v, const char *stem); /* "name: "type" = torch.ops." */
/* name: "type" = list_number[i] */
int gen_item(struct gen *g, struct val v, const char *list, int number, int i);
struct val gen_fresh(struct gen *g, int v); /* of its type, with its own storage */
struct val gen_view_of(struct gen *g, int v);

bool gen_readable(const struct gen *g, int v);
bool gen_readable_packed(const struct gen *g, int v);
bool gen_writable(const struct gen *g, int v);
typedef bool (*test_fn)(const struct gen *g, int v);
int gen_pick(struct gen *g, test_fn test);  /* one for which the test holds, or -1 */
int gen_pick_like(struct gen *g, int like); /* a readable one of the same type, or `like` itself */

int gen_compute(struct gen *g, int v);
int gen_convert_to(struct gen *g, int v, int dtype);
int gen_divide(struct gen *g, int v, int by);
void gen_view(struct gen *g);
/* Depends on where v lies: as_strided and its kin, another dtype, complex numbers, the offset. */
void gen_reinterpret(struct gen *g, int v);
void gen_write_something(struct gen *g);

/* ---- calls inside other calls ---- */

void gen_effect(struct gen *g);
void gen_control_deps(struct gen *g);
void gen_subgraph(struct gen *g);
void gen_cond(struct gen *g);
void gen_unknown(struct gen *g);
void gen_wrapped_write(struct gen *g, int v); /* in a with_effects or a control_deps */

/* ---- collectives: each returns the number of its flight ---- */

int gen_any_group(struct gen *g);
int gen_group_size(const struct gen *g, int group);
const char *gen_any_reduce(struct gen *g);
int gen_fly(struct gen *g, int result, int from);
int gen_all_reduce(struct gen *g, int v, const char *reduce, int group);
int gen_empty_like(struct gen *g, const struct val *like); /* the value */
int gen_all_gather(struct gen *g, int v, int group);
/* The call alone, into a buffer unless that is -1. */
void gen_put_gather(struct gen *g, int v, int buffer, int group);
bool gen_scatters(const struct gen *g, int v, int group); /* can it be scattered? */
int gen_reduce_scatter(struct gen *g, int v, const char *reduce, int group);
void gen_other_collective(struct gen *g, int v, int group);

int gen_put_wait(struct gen *g, int v);
void gen_give_back(struct gen *g, int v);      /* returns it; it has no other user */
int gen_land(struct gen *g, struct flight *f); /* the wait, and what its sink does */
void gen_land_some(struct gen *g, uint32_t leave);
void gen_land_one(struct gen *g);

#endif

/* What is known about a value: a tensor, a number, a list of values. Types are interned: equal ids
 * mean equal types, so inference over repeated layers is mostly table lookups. Id 0 is "unknown".
 */
#ifndef TUCK_GRAPH_TYPE_H
#define TUCK_GRAPH_TYPE_H

#include "base/buf.h"
#include "base/str.h"
#include "op/dtype.h"
#include "graph/annotation.h"
#include "sym/sym.h"

typedef uint32_t type_id;

enum type_kind {
    TYPE_UNKNOWN,
    TYPE_NONE,   /* Python's None */
    TYPE_TENSOR, /* n dimensions */
    TYPE_SYM,    /* a number, its value an expression: SymInt, SymFloat, SymBool */
    TYPE_LIST,   /* n items, a tuple or a list: results of operators with several outputs */
};

struct type {
    uint8_t kind;  /* enum type_kind */
    uint8_t dtype; /* enum dtype, of a tensor */
    bool strided;  /* the strides are known */
    uint32_t n;
    const sym_id *size, *stride; /* of a tensor; stride is NULL unless strided */
    str_id device;               /* of a tensor: "cuda:0"; 0 = unknown */
    sym_id sym;                  /* of a number */
    const type_id *item;         /* of a list */
    uint32_t hash;
};

struct typetab {
    struct mem *mem;
    struct arena arena;
    VEC(struct type) all; /* [0]: unknown */
    uint32_t *slot;
    uint32_t n_slot;
};

void typetab_init(struct typetab *t, struct mem *m);
void typetab_destroy(struct typetab *t);

extern const struct type type_unknown;

/* Pointers are valid until the next type is made. An empty table has the unknown type, too. */
static inline const struct type *type_at(const struct typetab *t, type_id id)
{
    assert_hot(id == 0 || id < t->all.len);
    return id != 0 ? &t->all.at[id] : &type_unknown;
}

/* The arrays are copied. A size or stride of 0 (an expression that could not be formed) makes the
 * whole type unknown. stride == NULL: strides unknown. */
type_id type_tensor(struct typetab *t, enum dtype dtype, uint32_t n, const sym_id *size,
                    const sym_id *stride, str_id device);
type_id type_sym(struct typetab *t, sym_id value); /* 0: unknown */
type_id type_list(struct typetab *t, const type_id *item, uint32_t n);
type_id type_none(struct typetab *t);

/* The type that an annotation describes; what it omits (strides, device) is unknown. */
type_id type_of_ann(struct fx_store *s, uint32_t ann);

/* Prints it as inside an annotation's quotes; lists and None as in Python. */
void type_print(const struct fx_store *s, type_id id, struct buf *b, bool strides, bool devices);

#endif

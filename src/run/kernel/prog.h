/* A loop as a list of steps: loads, conversions, functions and stores of blocks of elements.
 *
 * Registers hold a tile: some rows of a space of elements. A space has outer and inner dimensions;
 * values of the full level have an element for each point of the space, values of the row level one
 * for each point of the outer dimensions. A reduction of the inner dimensions makes the second from
 * the first. Without reductions the inner dimension is cut into blocks, too.
 *
 * Building: prog_begin(), then the steps in order, then prog_finish(), which decides on tiles and
 * places registers in scratch memory. Nothing is allocated: the caller gives the arrays.
 */
#ifndef TUCK_RUN_KERNEL_PROG_H
#define TUCK_RUN_KERNEL_PROG_H

#include "run/kernel/hot.h"

enum { PROG_DIMS = 24, PROG_IN = 4 };

enum step_what {
    STEP_LOAD,    /* out = mem */
    STEP_CONVERT, /* out = in[0], of another kind */
    STEP_ROUND,   /* out = in[0] rounded to dtype, in place */
    STEP_POINT,
    STEP_SPREAD, /* out (full) = in[0] (row) */
    STEP_REDUCE, /* out (row) = in[0] (full) reduced, divided by `divide` if not 0 */
    STEP_VAR,    /* out, out2 (row) = variance and mean of in[0] */
    STEP_COLUMN, /* accumulator += in[0], over the outer dimensions */
    STEP_STORE,  /* mem = in[0] */
};

struct step {
    uint8_t what, n_in, kind, from_kind, dtype, reduce;
    bool row; /* of the row level */
    uint16_t in[PROG_IN], out, out2, mem;
    point_fn fn;
    struct point_params params;
    double divide;
};

/* A tensor in the space. Dimension 0 is the innermost; steps in bytes. */
struct prog_mem {
    char *base;
    uint8_t dtype;
    bool row;    /* has outer dimensions only */
    bool column; /* has inner dimensions only: a sum over the outer ones */
    int64_t step[PROG_DIMS];
};

struct prog_value {
    uint8_t kind;
    bool row;
    bool constant;   /* filled once, before the loop */
    uint16_t last;   /* the last step that reads it */
    uint16_t direct; /* 1 + the mem where it may live, if the tile lies there as in a register */
    uint32_t at;     /* in the scratch, in units of RT_ALIGN */
    union {
        uint8_t b;
        int64_t i;
        float f, c[2];
        double d, z[2];
    } fill;
};

struct prog {
    struct step *step;
    struct prog_mem *mem;
    struct prog_value *value;
    uint16_t n_step, n_mem, n_value;
    uint16_t max_step, max_mem, max_value;
    bool full; /* an array was too small */
    int n;     /* dimensions */
    int inner; /* of them inner; 0: no reduction, any order will do */
    int64_t size[PROG_DIMS];
    int64_t width, rows; /* of a tile */
    size_t scratch;      /* bytes */
    size_t columns;      /* where accumulators begin */
};

enum { PROG_NO_VALUE = UINT16_MAX };

void prog_begin(struct prog *p);

/* Each adds a step and returns its value. */
uint16_t prog_constant(struct prog *p, enum kind kind, const void *element, bool row);
uint16_t prog_load(struct prog *p, const struct prog_mem *m);
uint16_t prog_convert(struct prog *p, uint16_t in, enum kind to);
uint16_t prog_round(struct prog *p, uint16_t in, enum dtype d);
uint16_t prog_spread(struct prog *p, uint16_t in);
uint16_t prog_point(struct prog *p, point_fn fn, const struct point_params *params, enum kind kind,
                    const uint16_t *in, int n_in, bool row);
uint16_t prog_reduce(struct prog *p, enum reduce_op op, uint16_t in, double divide);
uint16_t prog_var(struct prog *p, uint16_t in, double divide, uint16_t *mean);
void prog_column(struct prog *p, enum reduce_op op, uint16_t in, double divide,
                 const struct prog_mem *m);
void prog_store(struct prog *p, uint16_t in, const struct prog_mem *m);

/* false: the loop would need more memory than it is worth. */
bool prog_finish(struct prog *p);

/* scratch: p->scratch bytes. */
void prog_run(const struct prog *p, void *scratch);

#endif

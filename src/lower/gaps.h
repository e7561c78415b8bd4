/* What is unknown about a program's times. Unknown is not zero: if too much is unknown, no time is
 * given. */
#ifndef TUCK_LOWER_GAPS_H
#define TUCK_LOWER_GAPS_H

#include "graph/graph.h"
#include "lower/program.h"

enum {
    GAPS_SHARE = 10, /* at most one op in this many may be unknown */
    GAPS_NAMED = 5   /* this many of them are named */
};

/* What to do about missing sizes, and about symbols in sizes. */
extern const char gaps_how[], gaps_how_symbols[];

struct gaps {
    uint32_t n_op;        /* ops that take time */
    uint32_t n_unknown;   /* those with an unknown time */
    uint32_t n_coll;      /* collectives among the unknown */
    uint32_t n_unsized;   /* ops that use something of unknown size */
    uint32_t n_buf;       /* buffers of unknown size, which the peak leaves out */
    uint32_t first, last; /* the first and the last unknown op, or PROGRAM_NONE */
};

/* The program must have been estimated. */
struct gaps gaps_of(const struct program *p);
/* Is too much unknown: any collective, or more than a tenth of the ops? */
bool gaps_refuse(const struct gaps *g);

/* Adds an error or, if the rest can be computed, a warning that says how many and which nodes are
 * unknown. strict: any gap is an error. TUCK_EINVAL: refused. */
tuck_status gaps_tell(const struct program *p, bool strict, tuck_diags *diags);
/* Only the error: TUCK_EINVAL if too much is unknown; otherwise adds nothing. */
tuck_status gaps_check(const struct program *p, tuck_diags *diags);

#endif

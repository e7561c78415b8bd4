/* What is not known of a program's times. Unknown is not zero: where too much is
 * unknown, no time is given. */
#ifndef TUCK_LOWER_GAPS_H
#define TUCK_LOWER_GAPS_H

#include "graph/graph.h"
#include "lower/program.h"

enum {
    GAPS_SHARE = 10, /* one op in this many may be unknown */
    GAPS_NAMED = 5   /* this many of them are named */
};

/* What to do about sizes that a text does not have; about symbols in them. */
extern const char gaps_how[], gaps_how_symbols[];

struct gaps {
    uint32_t n_op;        /* that take time */
    uint32_t n_unknown;   /* … but an unknown amount */
    uint32_t n_coll;      /* collectives among those */
    uint32_t n_buf;       /* buffers of unknown size: the peak leaves them out */
    uint32_t first, last; /* ops among the unknown, PROGRAM_NONE */
};

/* Of an estimated program. */
struct gaps gaps_of(const struct program *p);
/* Too much is unknown: a collective is, or more than a tenth of the ops. */
bool gaps_refuse(const struct gaps *g);

/* An error or, where the rest can be computed, a warning, with how many and which nodes. strict:
 * any gap is an error. TUCK_EINVAL: refused. */
tuck_status gaps_tell(const struct program *p, bool strict, tuck_diags *diags);
/* The error alone: TUCK_EINVAL where too much is unknown, and not a word otherwise. */
tuck_status gaps_check(const struct program *p, tuck_diags *diags);

#endif

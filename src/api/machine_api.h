/* Turns the public machine into the internal one: here and nowhere else. */
#ifndef TUCK_API_MACHINE_API_H
#define TUCK_API_MACHINE_API_H

#include "cost/machine.h"

/* The internal machine with what had to be made for it; shared by all results for this machine. */
struct given_machine {
    struct machine machine;
    uint32_t refs;
    struct mem *mem;       /* of the graph's store */
    tuck_cluster *cluster; /* the graph's default; NULL if the caller named one */
    struct fx_hint *hint;  /* n_hint entries */
    size_t n_hint;
};

enum machine_need {
    MACHINE_SYMBOLS, /* only the values of symbols: if no cluster is named there is none */
    MACHINE_TIMES,   /* a cluster, and the laws of the profile; infers types */
};

/* m may be NULL: the defaults. TUCK_EINVAL: m is invalid, or something required is unknown. The
 * caller's cluster and profile must outlive the result. */
TUCK_MUST_CHECK tuck_status machine_take(const tuck_machine *m, tuck_graph *g,
                                         enum machine_need need, tuck_diags *diags,
                                         struct given_machine **out);
/* Completes a machine that was taken for symbols only, because times are needed now. */
TUCK_MUST_CHECK tuck_status machine_need_times(struct given_machine *x, tuck_graph *g,
                                               tuck_diags *diags);
void machine_drop(struct given_machine *x); /* x may be NULL */

#endif

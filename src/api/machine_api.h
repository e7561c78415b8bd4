/* The public machine becomes the one that everything inside uses: here and nowhere else. */
#ifndef TUCK_API_MACHINE_API_H
#define TUCK_API_MACHINE_API_H

#include "cost/machine.h"

/* With what had to be made for it; shared by all results that are of this machine. */
struct given_machine {
    struct machine machine;
    uint32_t refs;
    struct mem *mem;       /* of the graph's store */
    tuck_cluster *cluster; /* the graph's default; NULL: the caller named one */
    struct fx_hint *hint;  /* n_hint of them */
    size_t n_hint;
};

enum machine_need {
    MACHINE_SYMBOLS, /* values of symbols alone: where no cluster is named there is none */
    MACHINE_TIMES,   /* a cluster, and the laws of the profile; types are inferred */
};

/* m NULL: the defaults. TUCK_EINVAL: it makes no sense, or something is not known that must be. The
 * caller's cluster and profile must outlive it. */
TUCK_MUST_CHECK tuck_status machine_take(const tuck_machine *m, tuck_graph *g,
                                         enum machine_need need, tuck_diags *diags,
                                         struct given_machine **out);
/* One that was taken for symbols alone is needed for times now. */
TUCK_MUST_CHECK tuck_status machine_need_times(struct given_machine *x, tuck_graph *g,
                                               tuck_diags *diags);
void machine_drop(struct given_machine *x); /* NULL is fine */

#endif

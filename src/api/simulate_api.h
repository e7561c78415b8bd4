/* Simulations of the public interface: an evaluation with the machine it is of. */
#ifndef TUCK_API_SIMULATE_API_H
#define TUCK_API_SIMULATE_API_H

#include "api/machine_api.h"
#include "study/study.h"

struct tuck_simulation {
    struct given_machine *given;
    struct evaluation *e;
    tuck_graph *g;
    tuck_graph *own; /* the same, where it goes with the simulation; or NULL */
    tuck_assumptions *assumptions;
    bool keep_order; /* of what is searched for it */
    struct mem mem;
};

/* One whose machine is taken, and nothing else. *out is to be freed whatever came out, and may be
 * NULL. */
TUCK_MUST_CHECK tuck_status simulation_begin(tuck_graph *g, const tuck_machine *m,
                                             tuck_diags *diags, tuck_simulation **out);
/* Its evaluation, by a study on its machine; and what must be said of sizes that are not known. */
TUCK_MUST_CHECK tuck_status simulation_fill(tuck_simulation *s, struct study *study,
                                            tuck_diags *diags);
/* One of an evaluation that is there already; the simulation has a reference of its own to it and
 * to the machine. */
TUCK_MUST_CHECK tuck_status simulation_of(struct given_machine *given, tuck_graph *g,
                                          struct evaluation *e, tuck_simulation **out);

#endif

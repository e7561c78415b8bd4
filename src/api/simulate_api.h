/* Simulations of the public interface: an evaluation and its machine. */
#ifndef TUCK_API_SIMULATE_API_H
#define TUCK_API_SIMULATE_API_H

#include "api/machine_api.h"
#include "study/study.h"

struct tuck_simulation {
    struct given_machine *given;
    struct evaluation *e;
    tuck_graph *g;
    tuck_graph *own; /* the same if freed with the simulation, or NULL */
    tuck_assumptions *assumptions;
    bool keep_order; /* for searches on it */
    struct mem mem;
};

/* A simulation with its machine only. *out must be freed also on failure, and may be NULL. */
TUCK_MUST_CHECK tuck_status simulation_begin(tuck_graph *g, const tuck_machine *m,
                                             tuck_diags *diags, tuck_simulation **out);
/* Evaluates it with a study on its machine, and adds diagnostics about unknown sizes. */
TUCK_MUST_CHECK tuck_status simulation_fill(tuck_simulation *s, struct study *study,
                                            tuck_diags *diags);
/* A simulation of an existing evaluation; it holds its own reference to it and to the machine. */
TUCK_MUST_CHECK tuck_status simulation_of(struct given_machine *given, tuck_graph *g,
                                          struct evaluation *e, tuck_simulation **out);

#endif

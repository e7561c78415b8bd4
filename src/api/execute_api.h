/* Executions of the public interface: a job and what it measured. */
#ifndef TUCK_API_EXECUTE_API_H
#define TUCK_API_EXECUTE_API_H

#include "api/simulate_api.h"
#include "run/run.h"

struct tuck_execution {
    struct mem mem;
    tuck_exec_options o;
    struct run_plan plan;
    tuck_simulation *timeline; /* NULL if this process does not report */
};

tuck_execution *execution_new(const tuck_graph *g); /* NULL if out of memory */
TUCK_MUST_CHECK tuck_status execution_run(tuck_execution *x, tuck_graph *const *const side[],
                                          uint32_t n_side, size_t n, const tuck_exec_options *o,
                                          tuck_diags *diags);

#endif

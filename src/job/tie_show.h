/* A tie as a profile file, and as a table beside the simulated step. */
#ifndef TUCK_JOB_TIE_SHOW_H
#define TUCK_JOB_TIE_SHOW_H

#include "job/tie_trace.h"

/* The times of tied ops: on the node that each is named after, 0 on its other nodes. */
void tie_profile(const struct tie *t, const struct program *p, struct buf *b);
/* times: of the simulated step; NULL: coverage only. */
void tie_table(const struct tie *t, const tuck_times *times, struct buf *b);
void tie_json(const struct tie *t, const tuck_times *times, struct buf *b); /* on one line */

/* Reads Inductor's mapping of kernels to nodes. TUCK_ESYNTAX with a diagnostic. */
TUCK_MUST_CHECK tuck_status tie_read_kernels(const char *path, struct arena *a, tuck_diags *diags,
                                             struct tie_kernel **out, uint32_t *n);

#endif

/* Reads a job: files, the choice of graphs, and the steps. */
#ifndef TUCK_JOB_READ_JOB_H
#define TUCK_JOB_READ_JOB_H

#include "job/job.h"

void job_init(struct job *j, const tuck_allocator *alloc, tuck_diags *diags);
void job_end(struct job *j);

/* TUCK_EIO: a path cannot be read; TUCK_ESYNTAX: there is no graph; both are in the diagnostics. */
TUCK_MUST_CHECK tuck_status job_read(struct job *j, const char *const *path, size_t n,
                                     tuck_diags *diags);

/* Is the file a log whose graphs are of several ranks, or of forward and backward, of named
 * compilations? */
bool job_is_log(struct job *j, const char *path);

/* Joins the parts again, after they were changed. */
TUCK_MUST_CHECK tuck_status job_steps(struct job *j, tuck_diags *diags);

#endif

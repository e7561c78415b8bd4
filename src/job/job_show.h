/* Prints the contents of a job. */
#ifndef TUCK_JOB_JOB_SHOW_H
#define TUCK_JOB_JOB_SHOW_H

#include "base/buf.h"
#include "job/job.h"

void job_table(const struct job *j, const char *name, const struct job_peak *peak, struct buf *b);
void job_json(const struct job *j, const char *name, const struct job_peak *peak, struct buf *b);

/* "the step of rank 0: forward 0/0, backward 0/0; 12 other graphs are passed over" */
void job_line(const struct job *j, const struct job_rank *r, const char *name, struct buf *b);

#endif

/* A program in numbers, for readers. */
#ifndef TUCK_REPORT_PROGRAM_SHOW_H
#define TUCK_REPORT_PROGRAM_SHOW_H

#include "lower/program.h"
#include "tuck.h"

/* Ops by kind, kernels, buffers, memory. The program must have been planned. machine: what its
 * times are of; NULL: it has none. */
void program_summary(const struct program *p, const char *machine, struct buf *out);
/* Comments for its text: the cluster that its times are of, and groups whose size is assumed. */
void program_notes(const struct program *p, const tuck_cluster *c, struct buf *out);
/* One line: its peak. */
void program_peak_line(const struct program *p, struct buf *out);

#endif

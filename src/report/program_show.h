/* Prints figures about a program. */
#ifndef TUCK_REPORT_PROGRAM_SHOW_H
#define TUCK_REPORT_PROGRAM_SHOW_H

#include "lower/program.h"
#include "tuck.h"

/* Ops by kind, kernels, buffers, memory. The program must have been planned. machine: the machine
 * of its times; NULL if it has no times. */
void program_summary(const struct program *p, const char *machine, struct buf *out);
/* Comments for the program's text: the cluster of its times, and groups whose size is assumed. */
void program_notes(const struct program *p, const tuck_cluster *c, struct buf *out);
/* One line with its peak. */
void program_peak_line(const struct program *p, struct buf *out);

#endif

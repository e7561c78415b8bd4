/* A progress line on the terminal, for anything that takes over a second. */
#ifndef TUCK_CLI_PROGRESS_H
#define TUCK_CLI_PROGRESS_H

#include "tuck.h"

/* Writes "WHAT: STAGE, 3 s", updated each second, if standard error is a terminal. The strings must
 * stay valid. */
void progress_begin(const char *what);
void progress_stage(const char *stage);
void progress_end(void);   /* and erases the line; harmless if nothing began */
void progress_clear(void); /* erases the line, so that something else can be written */

/* For tuck_run_options: the stage is the running pass. */
bool progress_observe(void *ctx, const char *pass, size_t step, bool after, const tuck_graph *g);

#endif

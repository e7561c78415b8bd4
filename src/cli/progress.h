/* A progress line on the terminal, for anything that takes over a second. */
#ifndef TUCK_CLI_PROGRESS_H
#define TUCK_CLI_PROGRESS_H

#include "tuck.h"

/* Writes "WHAT: STAGE, 3 s", updated each second, if standard error is a terminal; with
 * progress_ask() each second a line in any case. The strings must stay valid. */
void progress_ask(void);
void progress_begin(const char *what);
void progress_stage(const char *stage);
void progress_end(void);   /* and erases the line; harmless if nothing began */
void progress_clear(void); /* erases the line, so that something else can be written */

/* For tuck_run_options: the stage is the running pass. */
bool progress_observe(void *ctx, const char *pass, size_t step, bool after, const tuck_graph *g);

/* For tuck_run_options: shows the best so far. Between progress_stoppable() and progress_end() the
 * first SIGINT ends the search, and its best is the result; the second one ends the program. */
bool progress_search(void *ctx, const tuck_progress *p);
void progress_stoppable(void);

#endif

/* A line on the terminal about what is going on, for anything that takes over a second. */
#ifndef TUCK_CLI_PROGRESS_H
#define TUCK_CLI_PROGRESS_H

#include "tuck.h"

/* What is written is "WHAT: STAGE, 3 s", each second anew, if standard error is a
 * terminal. Strings must stay. */
void progress_begin(const char *what);
void progress_stage(const char *stage);
void progress_end(void);   /* and wipe the line; harmless where nothing began */
void progress_clear(void); /* wipe the line, for something else to be written */

/* For tuck_run_options: the stage is the pass that runs. */
bool progress_observe(void *ctx, const char *pass, size_t step, bool after, const tuck_graph *g);

#endif

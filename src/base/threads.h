/* Runs a function many times, on several cores. */
#ifndef TUCK_BASE_THREADS_H
#define TUCK_BASE_THREADS_H

#include <stdint.h>

/* Cores that this process may use. */
uint32_t threads_cores(void);

/* fn(arg[0]) … fn(arg[n - 1]), on at most `most` threads, this one included (0: one for each core).
 * What cannot get a thread runs on this one. fn must not allocate from anything shared. */
void threads_run(void (*fn)(void *arg), void **arg, uint32_t n, uint32_t most);

#endif

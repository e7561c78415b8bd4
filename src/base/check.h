/* Assertions.
 *
 *   assert(x)      cheap: in every build, including the installed one
 *   assert_hot(x)  on paths that run for every node or value: only in builds with TUCK_CHECK (dev,
 *                  asan, stress, …)
 *
 * Whole structures are checked by separate functions (lower/verify.h), which builds with TUCK_CHECK
 * call after each step that made one.
 */
#ifndef TUCK_BASE_CHECK_H
#define TUCK_BASE_CHECK_H

#include <assert.h>

#ifdef TUCK_CHECK
#define assert_hot(x) assert(x)
#else
#define assert_hot(x) ((void)0)
#endif

#endif

/* What the public functions share. */
#ifndef TUCK_API_API_H
#define TUCK_API_API_H

#include "base/buf.h"
#include "base/options_take.h"
#include "tuck_experimental.h"
#include "tuck_run.h"

/* The common end of every tuck_..._print(): `fn` writes into a buffer that goes to `write`, with
 * the color and width of `how` (NULL means the defaults) and inside a guard. The `how` that `fn`
 * gets is never NULL and is complete. TUCK_OK; TUCK_EINVAL: no `write`, or `how` is invalid;
 * TUCK_EIO: `write` refused; TUCK_ENOMEM. */
typedef void (*api_print_fn)(struct buf *b, const tuck_print_options *how, const void *arg);
TUCK_MUST_CHECK tuck_status api_print(const tuck_allocator *alloc, const tuck_print_options *how,
                                      tuck_write_fn write, void *ctx, api_print_fn fn,
                                      const void *arg);

/* The number of rows to print. */
static inline uint32_t api_top(const tuck_print_options *how, uint32_t dflt)
{
    return how->top == 0 ? dflt : how->top == TUCK_NO_ROWS ? 0 : how->top;
}

#endif

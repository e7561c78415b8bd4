/* Decisions of the public interface; they are made and applied in run_api.c. */
#include "api/api.h"
#include "base/json_in.h"
#include "study/decision.h"

tuck_status tuck_decision_read_text(const char *text, size_t len, const char *name,
                                    const tuck_allocator *alloc, tuck_diags *diags,
                                    tuck_decision **out)
{
    if (text == NULL || out == NULL)
        return TUCK_EINVAL;
    return decision_read(text, len, name ? name : "", alloc, diags, out);
}

static tuck_status from_text(const char *text, size_t len, const char *name,
                             const tuck_allocator *alloc, tuck_diags *diags, void *out)
{
    return decision_read(text, len, name, alloc, diags, out);
}

tuck_status tuck_decision_read_file(const char *path, const tuck_allocator *alloc,
                                    tuck_diags *diags, tuck_decision **out)
{
    if (path == NULL || out == NULL)
        return TUCK_EINVAL;
    return file_read(path, alloc, diags, from_text, out);
}

static void print(struct buf *b, const tuck_print_options *how, const void *arg)
{
    (void)how;
    decision_write(arg, b);
}

tuck_status tuck_decision_write(const tuck_decision *d, tuck_write_fn write, void *ctx)
{
    return d != NULL ? api_print(&d->mem.alloc, NULL, write, ctx, print, d) : TUCK_EINVAL;
}

/* The traces of a folder. */
#ifndef TUCK_JOB_TRACE_FOLDER_H
#define TUCK_JOB_TRACE_FOLDER_H

#include "base/vec.h"
#include "job/trace.h"

struct trace_folder {
    struct mem mem;
    VEC(struct trace *) trace; /* by rank, first step and path; who takes one leaves NULL */
    VEC(const char *) passed;  /* paths of what else there is, sorted */
    struct arena arena;        /* of paths */
};

/* Reads the traces directly in a folder: files that end in .json or .json.gz and have events.
 * TUCK_ESYNTAX and TUCK_EIO with a diagnostic. To be freed in any case. */
TUCK_MUST_CHECK tuck_status trace_folder_read(const char *path, const tuck_allocator *alloc,
                                              tuck_diags *diags, struct trace_folder *out);
void trace_folder_free(struct trace_folder *f);

#endif

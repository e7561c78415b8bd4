/* Files of named tensors in the safetensors format: a number of eight bytes, that many bytes of
 * JSON, and the elements one after the other.
 *
 *   {"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {…}}
 *
 * A file is checked as a whole before anything of it is used: offsets lie inside of the file, add
 * up without gaps or overlaps, and fit shape and dtype.
 */
#ifndef TUCK_RUN_SAFETENSORS_H
#define TUCK_RUN_SAFETENSORS_H

#include "base/arena.h"
#include "base/diag.h"
#include "op/dtype.h"

struct st_tensor {
    const char *name;
    enum dtype dtype;
    uint32_t n;
    const int64_t *size;
    const void *data; /* contiguous, not aligned */
    int64_t bytes;
};

struct st_file;

/* A file, mapped into memory. */
TUCK_MUST_CHECK tuck_status st_open(const char *path, const tuck_allocator *alloc,
                                    tuck_diags *diags, struct st_file **out);
/* The same from bytes that the caller keeps. */
TUCK_MUST_CHECK tuck_status st_read(const void *bytes, size_t len, const char *name,
                                    const tuck_allocator *alloc, tuck_diags *diags,
                                    struct st_file **out);
void st_close(struct st_file *f); /* f may be NULL */

uint32_t st_count(const struct st_file *f);
const struct st_tensor *st_at(const struct st_file *f, uint32_t i);         /* sorted by name */
const struct st_tensor *st_find(const struct st_file *f, const char *name); /* or NULL */

/* Writes a file; one that exists is replaced when all is written. TUCK_EIO, reported. */
TUCK_MUST_CHECK tuck_status st_write(const char *path, const struct st_tensor *t, uint32_t n,
                                     const tuck_allocator *alloc, tuck_diags *diags);

/* "F32"; NULL if the format has no such dtype. */
const char *st_dtype_name(enum dtype d);

#endif

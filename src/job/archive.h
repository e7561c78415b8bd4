/* Archives in memory: tar, tar.gz, zip, and a single file compressed with gzip. */
#ifndef TUCK_JOB_ARCHIVE_H
#define TUCK_JOB_ARCHIVE_H

#include "base/mem.h"

enum { ARCHIVE_LOOK = 512 }; /* bytes of the beginning that archive_is() needs */

/* Does a file that begins with these bytes look like one? */
bool archive_is(const unsigned char *head, size_t n);

/* One file in it. The text belongs to the caller from now on: `size` bytes of mem, of which `len`
 * are used and one more is free. False ends the reading. */
typedef bool archive_file(void *ctx, const char *name, char *text, size_t len, size_t size);
/* Is it worth unpacking? */
typedef bool archive_wanted(const char *name);

/* Calls fn for each wanted file. NULL, or why the archive cannot be read; *enough is false if
 * memory ran out. Never jumps to a guard. */
const char *archive_read(struct mem *m, const unsigned char *at, size_t n, archive_wanted *wanted,
                         archive_file *fn, void *ctx, bool *enough);

#endif

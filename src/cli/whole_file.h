/* Files that are written whole or not at all.
 *
 * What goes to a regular file, or to one that is not there yet, is written into a file next to it
 * and renamed into place when it is complete: whatever ends the program before that leaves the old
 * file. Symbolic links are followed, and the mode of the old file is kept. Pipes, devices and open
 * descriptors (/dev/stdout, /dev/fd/3) are written directly. */
#ifndef TUCK_CLI_WHOLE_FILE_H
#define TUCK_CLI_WHOLE_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct file_out {
    int fd;
    int error; /* errno of the first write that failed; what follows is dropped */
    size_t len;
    char target[PATH_MAX]; /* links followed; "": written directly */
    char temp[PATH_MAX];   /* next to it, until it is renamed; "": none */
    char buffer[1 << 14];
};

/* These return 0 or an errno. A path of "-" is standard output. */
int file_begin(struct file_out *f, const char *path);
int file_finish(struct file_out *f); /* complete: into place, or dropped where a write failed */
void file_drop(struct file_out *f);  /* the old file stays */

bool file_write(void *f, const char *text, size_t len); /* a tuck_write_fn */

/* Would both write to one place: the same file by any name, the same pipe?
 * Devices are never the same. */
bool file_same(const char *a, const char *b);

/* NULL and errno, EISDIR also for a directory, which fopen() opens. */
FILE *open_to_read(const char *path);

#endif

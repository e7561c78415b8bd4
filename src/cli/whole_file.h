/* Files that are written completely or not at all.
 *
 * Output to a regular file, or to one that does not exist yet, is written into a temporary file
 * next to it, which is renamed when it is complete: if the program ends before that, the old file
 * stays. Symbolic links are followed, and the mode of the old file is kept. Pipes, devices and open
 * descriptors (/dev/stdout, /dev/fd/3) are written directly.
 */
#ifndef TUCK_CLI_WHOLE_FILE_H
#define TUCK_CLI_WHOLE_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct file_out {
    int fd;
    int error; /* errno of the first failed write; later output is dropped */
    size_t len;
    char target[PATH_MAX]; /* with links followed; "" if written directly */
    char temp[PATH_MAX];   /* next to it, until it is renamed; "" if none */
    char buffer[1 << 14];
};

/* These return 0 or an errno. A path of "-" is standard output. */
int file_begin(struct file_out *f, const char *path);
int file_finish(struct file_out *f); /* renames it into place, or drops it if a write failed */
void file_drop(struct file_out *f);  /* the old file stays */

bool file_write(void *f, const char *text, size_t len); /* a tuck_write_fn */

/* Would both write to one place: the same file under any name, or the same pipe? Devices are never
 * the same. */
bool file_same(const char *a, const char *b);

/* Does a path lead to a file in that folder? Writes its name there to `name`. */
bool file_in_folder(const char *path, const char *folder, char name[NAME_MAX + 1]);

/* NULL and errno on failure; EISDIR also for a directory, which fopen() would open. */
FILE *open_to_read(const char *path);

#endif

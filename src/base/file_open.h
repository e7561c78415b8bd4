/* Files to read. */
#ifndef TUCK_BASE_FILE_OPEN_H
#define TUCK_BASE_FILE_OPEN_H

#include <stdio.h>

/* NULL and errno on failure; EISDIR also for a directory, which fopen() would open. */
FILE *file_open(const char *path);

#endif

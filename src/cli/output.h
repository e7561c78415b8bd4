/* Output of a command to standard output or to a file, which is written completely or not at
 * all. */
#ifndef TUCK_CLI_OUTPUT_H
#define TUCK_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/whole_file.h"

/* Call this first in main(): signals remove unfinished files, a file size limit is a normal error,
 * and failed writes to standard output are detected, with the reason, also those of a library. */
void output_start(void);

struct output {
    struct file_out file;
    const char *name; /* for messages; NULL means standard output */
};

/* `path` NULL or "-": standard output. Returns an exit code; errors were reported. */
int output_open(struct output *o, const char *path);
bool output_put(void *o, const char *text, size_t len); /* a tuck_write_fn */
/* With EXIT_FINE the file is completed; with another code it is dropped, and that code returned. */
int output_close(struct output *o, int code);

/* Options that name output files; path is NULL if not given. EXIT_USAGE if two lead to the same
 * file. */
struct output_name {
    const char *option, *path;
};
int outputs_apart(const struct output_name *list, size_t n);

#endif

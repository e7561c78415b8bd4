/* What a command writes, and where: standard output or a file, which is
 * there whole or not at all. */
#ifndef TUCK_CLI_OUTPUT_H
#define TUCK_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/whole_file.h"

/* Before anything else in main(): signals remove unfinished files, a limit of file sizes is an
 * error like any other, and what standard output refuses is noticed, with its reason, also
 * where a library wrote it. */
void output_start(void);

struct output {
    struct file_out file;
    const char *name; /* for messages; NULL: standard output */
};

/* `path` NULL or "-": standard output. An exit code; errors were reported. */
int output_open(struct output *o, const char *path);
bool output_put(void *o, const char *text, size_t len); /* a tuck_write_fn */
/* With EXIT_FINE complete and into place; with another code dropped, and that code returned. */
int output_close(struct output *o, int code);

/* Options that name files to write, path NULL: not given. EXIT_USAGE
 * where two lead to one place. */
struct output_name {
    const char *option, *path;
};
int outputs_apart(const struct output_name *list, size_t n);

#endif

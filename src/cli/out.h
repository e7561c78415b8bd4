/* Output of commands: whether it has color and how wide it may be, by --color and --width, or else
 * by the terminal and the environment. */
#ifndef TUCK_CLI_OUT_H
#define TUCK_CLI_OUT_H

#include <stdbool.h>
#include <stdio.h>

#include "tuck.h"

/* What a piece of text is; on a terminal each has its color. */
enum tint {
    TINT_PLAIN,
    TINT_HEAD,  /* headings, and the most important number */
    TINT_BAD,   /* errors; exposed, slower */
    TINT_GOOD,  /* hidden, faster */
    TINT_LIMIT, /* limits, and unknown values */
    TINT_DIM,   /* less important text */
    TINT_WARNING,
};

/* Takes --color WHEN and --width N out of the arguments, wherever they are. False: one of them is
 * invalid, and was reported. */
bool out_options(int *argc, char **argv);
/* Only standard output and standard error may have color, files never. */
bool out_color(FILE *f);
/* Columns that tables must fit into, 0 if there is no limit: from --width, COLUMNS or the terminal;
 * files have no limit. */
uint32_t out_width(FILE *f);

/* A cell of a table on standard output. */
void put(enum tint k, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void put_line(enum tint k, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* the last cell */
/* A sentence that begins with `indent` spaces; lines after the first have four more. */
void put_wrapped(enum tint k, int indent, const char *text);
void put_to(FILE *f, enum tint k, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Prints "WHERE: warning: …" on standard error. */
void put_warning(const char *where, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void put_error(const char *where, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* How results are printed on standard output: as JSON, or as a table with color if allowed. */
tuck_print_options print_how(bool json);

bool to_file(void *f, const char *text, size_t len); /* a tuck_write_fn */
int complain(const char *path);                      /* prints errno; returns EXIT_FILE */

#endif

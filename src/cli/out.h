/* What commands write, whether it has colour and how wide it may be: --color and --width, or else
 * what the terminal and its user say. */
#ifndef TUCK_CLI_OUT_H
#define TUCK_CLI_OUT_H

#include <stdbool.h>
#include <stdio.h>

#include "tuck.h"

/* What a piece of text is; on a terminal each has a colour. */
enum tint {
    TINT_PLAIN,
    TINT_HEAD,  /* headings, and the number that matters most */
    TINT_BAD,   /* errors; exposed, slower */
    TINT_GOOD,  /* hidden, faster */
    TINT_LIMIT, /* what limits, and what is not known */
    TINT_DIM,   /* what is only there for completeness */
    TINT_WARNING,
};

/* Takes --color WHEN and --width N out of the arguments, wherever they are. False: one of them is
 * invalid; reported. */
bool out_options(int *argc, char **argv);
/* Only standard output and error may have colour, files never. */
bool out_colour(FILE *f);
/* Columns that tables have to fit into, 0: no limit. --width; COLUMNS; those of the terminal; files
 * have no limit. */
uint32_t out_width(FILE *f);

/* A cell of a table on standard output. */
void put(enum tint k, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void put_line(enum tint k, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* the last */
void put_to(FILE *f, enum tint k, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* "WHERE: warning: …" on standard error, a line. */
void put_warning(const char *where, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void put_error(const char *where, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* How results are printed on standard output: as JSON, or a table in
 * colour where it may have it. */
tuck_print_options print_how(bool json);

bool to_file(void *f, const char *text, size_t len); /* a tuck_write_fn */
int complain(const char *path);                      /* by errno: EXIT_FILE */

#endif

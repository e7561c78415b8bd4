/* --html and --trace, for the commands that simulate. */
#ifndef TUCK_CLI_PICTURE_H
#define TUCK_CLI_PICTURE_H

#include "cli/cli.h"

struct drawn;

struct picture {
    const char *html, *trace; /* files, or NULL */
    struct drawn *first, *last;
    bool done; /* by picture_ranks() */
};

extern const struct argp picture_argp;

bool picture_wanted(const struct picture *p);

/* Adds one simulated graph of a file, or the same before and after: n simulations, at most 2, with
 * their labels, which must stay valid. Takes ownership of the simulations. Returns an exit code. */
int picture_add(struct picture *p, const struct input *in, size_t i, tuck_simulation **s,
                const char *const *label, size_t n);

/* Writes the ranks of a step at once. Only one step can be drawn. Returns an exit code. */
int picture_ranks(struct picture *p, const char *title, const tuck_rank_simulation *s);

/* Writes all of them if `code` is EXIT_FINE, and clears the list. Returns the code, or that of a
 * failed write. */
int picture_end(struct picture *p, const char *title, int code);

#endif

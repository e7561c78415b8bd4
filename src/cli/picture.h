/* --html and --trace, for the commands that simulate. */
#ifndef TUCK_CLI_PICTURE_H
#define TUCK_CLI_PICTURE_H

#include "cli/cli.h"
#include "pipeline/evaluate.h"

struct picture {
    const char *html, *trace; /* files, or NULL */
};

extern const struct argp picture_argp;

bool picture_wanted(const struct picture *p);

/* One graph, or the same before and after: n of them, at most 2, with their labels. An exit code. */
int picture_write(const struct picture *p, const char *title, tuck_graph *const *g,
                  const char *const *label, uint32_t n, const struct evaluate_options *o,
                  tuck_diags *diags);

#endif

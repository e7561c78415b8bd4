/* Options of commands, before argp gets them. */
#ifndef TUCK_CLI_OPTIONS_H
#define TUCK_CLI_OPTIONS_H

#include <argp.h>
#include <stdint.h>

/* In the flags of an argp_option: it may be given several times. */
enum { OPTION_MANY = 0x1000 };

/* argp_parse(), after a look at what is given twice; ends the program where something is wrong. */
void options_parse(const struct argp *argp, int argc, char **argv, void *input);

/* A whole number from `low` to `high`; argp_error() if it is not one. `what` names the option. */
int64_t option_number(struct argp_state *state, const char *what, const char *arg, int64_t low,
                      int64_t high);

/* One of several forms: argp_error() where another was chosen before. */
void option_form(struct argp_state *state, int *form, int chosen);

/* Ranks of a group or of a world: what a machine may have. */
enum { RANKS_MOST = 1 << 24 };

#endif

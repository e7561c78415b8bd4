/* Parsing of command-line options, around argp. */
#ifndef TUCK_CLI_OPTIONS_H
#define TUCK_CLI_OPTIONS_H

#include <argp.h>
#include <stdint.h>

/* In the flags of an argp_option: it may be repeated. */
enum { OPTION_MANY = 0x1000 };

/* argp_parse(), after checking for options given twice; ends the program on an error. */
void options_parse(const struct argp *argp, int argc, char **argv, void *input);

/* A whole number from `low` to `high`; calls argp_error() otherwise. `what` names the option. */
int64_t option_number(struct argp_state *state, const char *what, const char *arg, int64_t low,
                      int64_t high);

/* "0.5x", greater than 0 and at most `most`; calls argp_error() otherwise. `what` says what is
 * wanted. */
double option_factor(struct argp_state *state, const char *what, const char *arg, double most);

/* Chooses one of several output forms; calls argp_error() if another was chosen before. */
void option_form(struct argp_state *state, int *form, int chosen);

/* Limit for the ranks of a group or of a world. */
enum { RANKS_MOST = 1 << 24 };

#endif

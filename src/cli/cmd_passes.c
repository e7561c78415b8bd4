/* tuck passes: the table of passes. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

enum { OPT_REASONS = 0x200 };

struct passes {
    const char *name;
    bool json, reasons;
};

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "The whole table, as JSON", 0},
    {"reasons", OPT_REASONS, NULL, 0, "The reasons why passes leave candidates alone", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct passes *p = state->input;

    switch (key) {
    case 'j': p->json = true; return 0;
    case OPT_REASONS: p->reasons = true; return 0;
    case ARGP_KEY_ARG:
        if (p->name != NULL)
            argp_error(state, "one pass only, found '%s' after '%s'", arg, p->name);
        p->name = arg;
        return 0;
    case ARGP_KEY_END:
        if (p->json + p->reasons + (p->name != NULL) > 1)
            argp_error(state, "give only one of PASS, --json and --reasons");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    options,
    parse,
    "[PASS]",
    "List the passes, or the options of PASS.\vA pipeline is a list of passes, "
    "`name(option=value,option=value),name`, for `tuck optimize --passes` or a file with one pass "
    "per line. In a list of values (50:500) the last one repeats.",
    NULL,
    NULL,
    NULL};

static const char *name_at(const void *ctx, size_t i)
{
    (void)ctx;
    return tuck_pass_name(i);
}

/* The index of the row; tuck_pass_count() if there is none. */
static size_t find(const char *name)
{
    size_t i = 0;

    while (i < tuck_pass_count() && strcmp(tuck_pass_name(i), name) != 0)
        i++;
    return i;
}

int cmd_passes(int argc, char **argv)
{
    struct passes p = {.name = NULL};

    options_parse(&argp, argc, argv, &p);
    tuck_print_options how = print_how(p.json);
    if (p.reasons)
        return exit_code_of(tuck_reasons_print(&how, to_file, stdout));
    if (p.name == NULL)
        return exit_code_of(tuck_passes_print(&how, to_file, stdout));
    size_t one = find(p.name);
    if (one < tuck_pass_count())
        return exit_code_of(tuck_pass_print(one, &how, to_file, stdout));
    const char *near = tuck_suggest(p.name, name_at, NULL);
    fprintf(stderr, "tuck passes: unknown pass '%s'%s%s%s\n", p.name,
            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return EXIT_USAGE;
}

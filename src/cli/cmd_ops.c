/* tuck ops: the operator table. */
#include <stdio.h>

#include "cli/cli.h"

struct ops {
    const char *name;
    bool json;
};

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "As JSON", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct ops *o = state->input;

    switch (key) {
    case 'j': o->json = true; return 0;
    case ARGP_KEY_ARG:
        if (o->name != NULL)
            argp_error(state, "one name only");
        o->name = arg;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    options,
    parse,
    "[NAME]",
    "The operators Tuck knows, one per line: name, class, what it reads, writes and returns. With "
    "NAME "
    "(aten.mm.default, torch.ops.aten.mm.default, aten.mm, or a part of a name) only those.",
    NULL,
    NULL,
    NULL};

int cmd_ops(int argc, char **argv)
{
    struct ops o = {.name = NULL};

    options_parse(&argp, argc, argv, &o);
    bool found = tuck_ops_matching(o.name) > 0;
    if (!found && !o.json) {
        fprintf(stderr,
                "tuck: no operator '%s' in the table; unknown operators are kept, and nothing is "
                "moved across them\n",
                o.name);
        return EXIT_FOUND;
    }
    tuck_print_options how = print_how(o.json);
    int code = exit_code_of(tuck_ops_print(o.name, &how, to_file, stdout));
    return code != EXIT_FINE ? code : found ? EXIT_FINE : EXIT_FOUND;
}

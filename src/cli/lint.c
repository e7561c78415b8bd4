#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"

static const struct argp_child children[] = {{&input_argp, 0, NULL, 0}, {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    (void)arg;
    if (key == ARGP_KEY_INIT)
        state->child_inputs[0] = state->input;
    return key == ARGP_KEY_INIT ? 0 : ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
    NULL,
    parse,
    "FILE",
    "Check the graphs of FILE: every use behind its definition, names, operators, collectives and "
    "their waits, shapes against annotations. A collective without a wait is a warning; reading "
    "its "
    "result before the wait is an error.\vExit code 1 if there are errors.",
    children,
    NULL,
    NULL};

int cmd_lint(int argc, char **argv)
{
    struct input in = {.path = NULL};
    size_t from, to, errors = 0, warnings = 0, nodes = 0;

    argp_parse(&argp, argc, argv, 0, NULL, &in);
    int code = input_open(&in);
    if (code == EXIT_FINE)
        code = input_range(&in, &from, &to);
    if (code == EXIT_FINE)
        code = input_infer(&in, true);
    if (code == EXIT_FINE) {
        warnings = tuck_diags_count(in.diags);
        print_diags(in.diags);
        for (size_t i = from; i < to && code != EXIT_MEMORY; i++) {
            tuck_graph *g = tuck_doc_graph(in.doc, i);
            tuck_status st = tuck_graph_lint(g, in.diags);
            errors += tuck_diags_errors(in.diags);
            warnings += tuck_diags_count(in.diags) - tuck_diags_errors(in.diags);
            nodes += tuck_graph_size(g);
            print_diags(in.diags);
            if (st != TUCK_OK)
                code = exit_code_of(st);
        }
        warnings += input_warn_groups(&in);
        printf("%zu graph%s, %zu nodes: ", to - from, to - from == 1 ? "" : "s", nodes);
        put(errors ? INK_BAD : INK_GOOD, "%zu error%s", errors, errors == 1 ? "" : "s");
        printf(", ");
        put_line(warnings ? INK_LIMIT : INK_GOOD, "%zu warning%s", warnings,
                 warnings == 1 ? "" : "s");
    }
    input_close(&in);
    return code;
}

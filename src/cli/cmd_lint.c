/* tuck lint: checks a graph. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"

struct lint {
    struct input in;
    bool json;
    size_t graphs, nodes, errors, warnings;
    tuck_diags *all; /* with --json: everything found */
};

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "What was found, as JSON", 0},
    {NULL, 0, NULL, 0, "The graph:", 1},
    {0},
};

static const struct argp_child children[] = {{&input_argp, 0, NULL, 0}, {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct lint *l = state->input;

    (void)arg;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &l->in; return 0;
    case 'j': l->json = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    options,
    parse,
    "FILE",
    "Check the graphs of FILE: every use after its definition, names, operators, collectives and "
    "their waits, shapes against annotations. A collective without a wait is a warning; reading "
    "its "
    "result before the wait is an error.\vExit code 1 if there are errors.",
    children,
    NULL,
    NULL};

static int check(struct lint *l)
{
    struct input *in = &l->in;
    size_t from, to;
    int code = input_open(in);

    if (code == EXIT_FINE)
        code = input_range(in, &from, &to);
    if (code == EXIT_FINE)
        code = input_infer(in, true);
    if (code != EXIT_FINE)
        return code;
    l->graphs = to - from;
    l->warnings = in->n_warned + tuck_diags_count(in->diags);
    print_diags(in->diags);
    for (size_t i = from; i < to && code != EXIT_MEMORY; i++) {
        tuck_graph *g = tuck_doc_graph(in->doc, i);
        tuck_status st = tuck_graph_lint(g, in->diags);
        l->errors += tuck_diags_errors(in->diags);
        l->warnings += tuck_diags_count(in->diags) - tuck_diags_errors(in->diags);
        l->nodes += tuck_graph_size(g);
        print_diags(in->diags);
        if (st != TUCK_OK)
            code = exit_code_of(st);
    }
    l->warnings += input_warn_groups(in);
    return code;
}

/* JSON is written even if the text could not be read: the diagnostics in it say why. */
static int print(const struct lint *l)
{
    tuck_print_options how = print_how(l->json);
    tuck_lint_sum sum = {.size = sizeof(sum),
                         .file = l->in.path,
                         .graphs = l->graphs,
                         .nodes = l->nodes,
                         .errors = l->errors,
                         .warnings = l->warnings};

    return exit_code_of(tuck_lint_print(&sum, l->all, &how, to_file, stdout));
}

int cmd_lint(int argc, char **argv)
{
    struct lint l = {.json = false};

    options_parse(&argp, argc, argv, &l);
    if (l.json) {
        l.all = tuck_diags_new(NULL);
        if (l.all == NULL)
            return exit_code_of(TUCK_ENOMEM);
        keep_diags(l.all);
    }
    int code = check(&l);
    keep_diags(NULL);
    if (l.json ? code != EXIT_MEMORY && code != EXIT_USAGE : l.graphs > 0) {
        int printed = print(&l);
        code = code == EXIT_FINE ? printed : code;
    }
    input_close(&l.in);
    tuck_diags_free(l.all);
    return code;
}

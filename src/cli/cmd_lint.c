/* tuck lint: is a graph right? */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "cli/cli.h"

struct lint {
    struct input in;
    bool json;
    size_t graphs, nodes, errors, warnings;
    tuck_diags *all; /* with --json: everything that was found */
};

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "What was found, for other programs", 0},
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
    "Check the graphs of FILE: every use behind its definition, names, operators, collectives and "
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

static void put_sum(const struct lint *l)
{
    printf("%zu graph%s, %zu nodes: ", l->graphs, l->graphs == 1 ? "" : "s", l->nodes);
    put(l->errors ? INK_BAD : INK_GOOD, "%zu error%s", l->errors, l->errors == 1 ? "" : "s");
    printf(", ");
    put_line(l->warnings ? INK_LIMIT : INK_GOOD, "%zu warning%s", l->warnings,
             l->warnings == 1 ? "" : "s");
}

static void print_json(struct buf *b, const void *ctx)
{
    const struct lint *l = ctx;
    size_t n = tuck_diags_count(l->all), errors = tuck_diags_errors(l->all);
    struct json_out j;

    json_begin(&j, b);
    json_open(&j, NULL, '{');
    json_schema(&j, 1);
    json_str(&j, "file", l->in.path);
    json_int(&j, "graph_count", (int64_t)l->graphs);
    json_int(&j, "node_count", (int64_t)l->nodes);
    json_int(&j, "errors", (int64_t)errors);
    json_int(&j, "warnings", (int64_t)(n - errors));
    json_open(&j, "diagnostics", '[');
    for (size_t i = 0; i < n; i++) {
        const tuck_diag *d = tuck_diags_at(l->all, i);

        json_open(&j, NULL, '{');
        json_str(&j, "severity", d->severity == TUCK_ERROR ? "error" : "warning");
        json_str(&j, "file", d->file);
        if (d->line > 0)
            json_int(&j, "line", d->line);
        if (d->line > 0 && d->column > 0)
            json_int(&j, "column", d->column);
        json_str(&j, "message", d->message);
        if (d->note != NULL)
            json_str(&j, "note", d->note);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
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
    if (l.json && code != EXIT_MEMORY && code != EXIT_USAGE) {
        int printed = print_through(print_json, &l);
        code = code == EXIT_FINE ? printed : code;
    } else if (l.graphs > 0) {
        put_sum(&l);
    }
    input_close(&l.in);
    tuck_diags_free(l.all);
    return code;
}

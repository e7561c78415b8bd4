/* tuck diff: how a graph changed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/graphs.h"

enum { OPT_BEFORE = 0x720, OPT_AFTER };

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "Everything, as JSON", 0},
    {"top", OPT_TOP, "N", 0, "Name at most N of each kind of change (10)", 0},
    {NULL, 0, NULL, 0, "The graphs:", 1},
    {"graph-before", OPT_BEFORE, "N|TITLE", 0, "Which graph of BEFORE (default: --graph, or all)",
     1},
    {"graph-after", OPT_AFTER, "N|TITLE", 0, "Which graph of AFTER (default: --graph, or all)", 1},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct question *x = state->input;

    if (key == OPT_BEFORE || key == OPT_AFTER) {
        *(key == OPT_BEFORE ? &x->graph_before : &x->graph_after) = arg;
        return 0;
    }

    if (key == ARGP_KEY_END && x->in.path != NULL && x->word == NULL)
        argp_error(state, "the second file is missing");
    return question_parse(state->input, "two files only", key, arg, state);
}

static const struct argp argp = {
    options,
    parse,
    "BEFORE AFTER",
    "Compare two graphs of the same step: which nodes moved, merged, appeared and vanished, and "
    "the time and memory of both on the same machine.",
    question_children,
    NULL,
    NULL};

static tuck_status print(const void *result, const tuck_print_options *how, tuck_write_fn write,
                         void *ctx)
{
    return tuck_diff_print(result, how, write, ctx);
}

/* like: the simulation it is compared with, or NULL. */
static int simulate(struct question *x, struct input *in, tuck_graph *g,
                    const tuck_simulation *like, tuck_simulation **out)
{
    tuck_machine machine;
    tuck_status st = tuck_graph_infer(g, TUCK_TRUST_ANNOTATIONS, in->diags);
    int code = st == TUCK_OK ? model_groups(&x->model, in, g) : exit_code_of(st);

    if (code != EXIT_FINE)
        return code;
    model_public(&x->model, in, &machine);
    machine.like = like;
    st = tuck_graph_simulate(g, &machine, in->diags, out);
    print_diags(in->diags);
    return refused_or(st);
}

static int compare(struct question *x, struct input *after, size_t i, size_t k,
                   struct graph_list *list)
{
    tuck_graph *a = tuck_doc_graph(x->in.doc, i), *b = tuck_doc_graph(after->doc, k);
    tuck_simulation *ea = NULL, *eb = NULL;
    tuck_diff *d = NULL;
    tuck_print_options how;
    bool assumed;
    tuck_status st = tuck_graph_inherit_groups(a, b); /* the second file often has no side-car */

    if (st == TUCK_OK)
        st = tuck_graph_infer(a, TUCK_TRUST_ANNOTATIONS, x->in.diags);
    int code = st == TUCK_OK ? model_for(&x->model, &x->in, a, &assumed) : exit_code_of(st);
    if (code == EXIT_FINE)
        code = simulate(x, &x->in, a, NULL, &ea);
    if (code == EXIT_FINE)
        code = simulate(x, after, b, ea, &eb);
    if (code == EXIT_FINE)
        code = exit_code_of(tuck_simulation_diff(ea, eb, &d));
    if (code == EXIT_FINE && !x->list.json) {
        put_graph(&x->in, i);
        put_graph(after, k);
        put_machine(&x->model, a, assumed);
    }
    listing_how(&x->list, &how);
    if (code == EXIT_FINE)
        code = graph_list_show(list, i, 0, &how, print, d);
    tuck_diff_free(d);
    tuck_simulation_free(eb);
    tuck_simulation_free(ea);
    return code;
}

int cmd_diff(int argc, char **argv)
{
    struct question x = {.list.top = 10};
    struct graph_list list;
    size_t from = 0, to = 0, from_b = 0, to_b = 0;

    options_parse(&argp, argc, argv, &x);
    struct input after = input_like(&x.in, x.word);
    after.rank = x.in.rank;
    if (x.graph_before != NULL)
        x.in.graph_word = x.graph_before;
    if (x.graph_after != NULL)
        after.graph_word = x.graph_after;
    x.model.any_name = x.in.several = true;
    int code = model_input_open(&x.model, &x.in, &from, &to);
    if (code == EXIT_FINE)
        code = input_open(&after);
    if (code == EXIT_FINE)
        code = input_range(&after, &from_b, &to_b);
    if (code == EXIT_FINE && to - from != to_b - from_b) {
        fprintf(stderr,
                "tuck diff: %s has %zu graphs and %s has %zu; --graph-before and --graph-after "
                "pick one of each\n",
                x.in.path, to - from, after.path, to_b - from_b);
        code = EXIT_USAGE;
    }
    graph_list_begin(&list, &x.in, "graphs", x.list.json && to - from > 1);
    for (size_t i = 0; code == EXIT_FINE && i < to - from; i++)
        code = compare(&x, &after, from + i, from_b + i, &list);
    graph_list_end(&list);
    input_close_like(&after);
    model_close(&x.model);
    input_close(&x.in);
    return code;
}

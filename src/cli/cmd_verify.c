/* tuck verify: two graphs on the same inputs, on real ranks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/graphs.h"
#include "cli/progress.h"
#include "cli/ranks.h"

struct verify {
    struct input in;
    struct ranks ranks;
    struct listing list;
    const char **more;
    size_t n_more;
};

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "Everything, as JSON", 0},
    {NULL, 0, NULL, 0, "The graphs:", 1},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct verify *v = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &v->in;
        state->child_inputs[1] = &v->ranks;
        break;
    case ARGP_KEY_ARG:
        if (v->in.path == NULL)
            return ARGP_ERR_UNKNOWN; /* the first file belongs to the child parser */
        option_append(state, &v->more, &v->n_more, arg);
        break;
    case ARGP_KEY_END:
        if (v->in.path != NULL && v->n_more == 0)
            argp_error(state, "the second file is missing");
        if (v->n_more % 2 == 0)
            argp_error(state, "as many files after as before are expected");
        if (v->ranks.o.outputs != NULL)
            argp_error(state, "--outputs is for tuck run");
        break;
    default: return listing_parse(&v->list, key, arg, state);
    }
    return 0;
}

static const struct argp_child children[] = {
    {&input_argp, 0, NULL, 0}, {&ranks_argp, 0, "The ranks:", 4}, {0}};
static const struct argp argp = {
    options,
    parse,
    "BEFORE AFTER\nBEFORE... AFTER...",
    "Run both graphs on the same inputs on real ranks and compare what they return: to the bit, or "
    "by how much it differs. If the ranks have graphs of their own, first come those of all ranks "
    "before, then as many after. Exit code 1: some result differs by more than rounding. See "
    "docs/running.md.",
    children,
    NULL,
    NULL};

static int compare(struct verify *v, const struct rank_files *f)
{
    tuck_verification *x = NULL;
    size_t half = f->n / 2;
    tuck_graph **g = ranks_graphs(f, 2);

    if (g == NULL)
        return exit_code_of(TUCK_ENOMEM);

    v->ranks.o.hints = v->in.hints;
    v->ranks.o.n_hints = v->in.n_hint;
    if (!v->ranks.steps_given) {
        v->ranks.o.steps = 1;
        v->ranks.o.warmup = 0;
    }
    progress_begin("tuck verify");
    progress_stage("running both");
    tuck_status st = tuck_ranks_verify(g, g + half, half, &v->ranks.o, v->in.diags, &x);
    progress_end();
    print_diags(v->in.diags);
    int code = ranks_code(st);
    if (code == EXIT_FINE && tuck_verification_speaks(x)) {
        tuck_print_options how;
        listing_how(&v->list, &how);
        code = exit_code_of(tuck_verification_print(x, &how, to_file, stdout));
        if (code == EXIT_FINE && !tuck_verification_within(x))
            code = EXIT_FOUND;
    }
    tuck_verification_free(x);
    free(g);
    return code;
}

int cmd_verify(int argc, char **argv)
{
    struct verify v = {.list.top = 10};
    struct rank_files f = {.n = 0};

    options_parse(&argp, argc, argv, &v);
    v.in.several = true;
    int code = input_open(&v.in);
    if (code == EXIT_FINE)
        code = rank_files_open(&f, "tuck verify", &v.in, v.more, v.n_more);
    if (code == EXIT_FINE)
        code = compare(&v, &f);
    rank_files_close(&f);
    free(v.more);
    input_close(&v.in);
    return code;
}

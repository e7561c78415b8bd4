/* tuck lower: lowers a graph to a program. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/graphs.h"

enum {
    OPT_NO_FUSE = 0x400,
    OPT_COMPAT,
    OPT_SELECT,
    OPT_THRESHOLD,
    OPT_KEEP,
    OPT_FREE,
    OPT_SUMMARY,
    OPT_PROBLEM,
    OPT_PEAK,
    OPT_NO_COST,
    OPT_READ
};

enum form { FORM_TEXT, FORM_SUMMARY, FORM_PROBLEM, FORM_PEAK };

struct lower_command {
    struct input in;
    struct model model;
    int form; /* enum form */
    bool read, peak_fx;
    tuck_lower_options o;
    const char **keep, **let_go;
};

static const struct argp_option options[] = {
    {"no-fuse", OPT_NO_FUSE, NULL, 0, "One op per node: no fused loops", 0},
    {"compat", OPT_COMPAT, "torch", 0,
     "Clone the operand of every all-reduce, as PyTorch's lowering does", 0},
    {"auto-select", OPT_SELECT, NULL, 0,
     "Small all-reduces become one-shot ones over symmetric memory", 0},
    {"one-shot-threshold", OPT_THRESHOLD, "BYTES", 0, "... up to this size (131072)", 0},
    {"keep", OPT_KEEP, "INPUT", OPTION_MANY, "An input that the caller keeps: it is never freed",
     0},
    {"free", OPT_FREE, "INPUT", OPTION_MANY, "An input that is freed after its last use", 0},
    {"no-cost", OPT_NO_COST, NULL, 0, "Omit the times of ops", 0},
    {"read", OPT_READ, NULL, 0, "FILE is a program, as this command prints it", 0},
    {NULL, 0, NULL, 0, "One of these instead of the program:", 1},
    {"summary", OPT_SUMMARY, NULL, 0, "Numbers of ops, kernels, buffers; memory", 1},
    {"problem", OPT_PROBLEM, NULL, 0, "Its schedule problem, for tuck schedule", 1},
    {"peak", OPT_PEAK, "program|fx", 0,
     "Its peak memory; fx: as PyTorch's passes on graphs estimate it", 1},
    {NULL, 0, NULL, 0, "The graph:", 3},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct lower_command *c = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &c->in;
        state->child_inputs[1] = &c->model;
        break;
    case OPT_NO_FUSE: c->o.no_fuse = true; break;
    case OPT_COMPAT:
        if (strcmp(arg, "torch") != 0)
            argp_error(state, "--compat wants torch, found '%s'", arg);
        c->o.keep_clones = true;
        break;
    case OPT_NO_COST: c->o.times = TUCK_NO_TIMES; break;
    case OPT_READ: c->read = true; break;
    case OPT_SUMMARY: option_form(state, &c->form, FORM_SUMMARY); break;
    case OPT_PROBLEM: option_form(state, &c->form, FORM_PROBLEM); break;
    case OPT_PEAK:
        if (strcmp(arg, "fx") != 0 && strcmp(arg, "program") != 0)
            argp_error(state, "--peak wants program or fx, found '%s'", arg);
        option_form(state, &c->form, FORM_PEAK);
        c->peak_fx = strcmp(arg, "fx") == 0;
        break;
    case OPT_SELECT: c->o.auto_select = true; break;
    case OPT_THRESHOLD:
        c->o.one_shot_threshold = option_number(state, "--one-shot-threshold", arg, 0, INT64_MAX);
        break;
    case OPT_KEEP: option_append(state, &c->keep, &c->o.n_keep, arg); break;
    case OPT_FREE: option_append(state, &c->let_go, &c->o.n_free, arg); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp_child children[] = {
    {&input_argp, 0, NULL, 4}, {&model_argp, 0, "The machine:", 5}, {0}};
static const struct argp argp = {options,
                                 parse,
                                 "FILE",
                                 "Lower each graph of FILE to a program and print it: its buffers "
                                 "with layout and bytes, its ops with what they read, write and "
                                 "mutate, and their times. docs/lowering.md explains the text.",
                                 children,
                                 NULL,
                                 NULL};

/* ---- output ---- */

static int write_problem(const tuck_program *p, tuck_diags *diags)
{
    tuck_problem *problem = NULL;
    tuck_status st = tuck_program_problem(p, diags, &problem);

    print_diags(diags);
    if (st == TUCK_OK)
        st = tuck_problem_write(problem, NULL, to_file, stdout);
    tuck_problem_free(problem);
    return exit_code_of(st);
}

static int show(struct lower_command *c, tuck_program *p)
{
    tuck_print_options how = print_how(false);
    tuck_status st = tuck_program_plan(p, NULL, NULL);

    if (st != TUCK_OK)
        return exit_code_of(st);
    if (c->form == FORM_TEXT)
        return exit_code_of(tuck_program_write(p, to_file, stdout));
    if (c->form == FORM_PROBLEM)
        return write_problem(p, c->in.diags);
    if (c->form == FORM_PEAK)
        how.form = TUCK_PRINT_BRIEF;
    return exit_code_of(tuck_program_print(p, &how, to_file, stdout));
}

/* ---- input ---- */

static int show_torch_peak(const struct input *in, tuck_graph *g)
{
    tuck_torch_peak peak;
    char text[32];
    int code = exit_code_of(tuck_graph_torch_peak(g, in->hints, in->n_hint, &peak));

    if (code == EXIT_FINE)
        printf("%s: %s%lld bytes (%s), as PyTorch's graph passes estimate it%s%s%s\n",
               *tuck_graph_name(g) ? tuck_graph_name(g) : "forward",
               peak.unknown > 0 ? "at least " : "", (long long)peak.peak,
               tuck_format_bytes(peak.peak, text), tuck_is_none(peak.node) ? "" : "; at ",
               tuck_is_none(peak.node) ? "" : tuck_node_name(g, peak.node),
               peak.unknown > 0 ? "; some sizes are not known" : "");
    return code;
}

/* In a program the title is a comment. */
static void put_comment(const struct input *in, size_t i)
{
    if (tuck_doc_count(in->doc) > 1) {
        printf("# ");
        put_graph(in, i);
    }
}

static int lower_on_model(struct lower_command *c, tuck_graph *g, size_t number)
{
    tuck_program *p = NULL;
    tuck_machine machine;
    bool assumed;
    tuck_status st = tuck_graph_infer(g, TUCK_TRUST_ANNOTATIONS, c->in.diags);
    int code = st == TUCK_OK && c->o.times == TUCK_ESTIMATE_TIMES
                   ? model_for(&c->model, &c->in, g, &assumed)
                   : exit_code_of(st);

    if (code != EXIT_FINE)
        return code;
    model_public(&c->model, &c->in, &machine);
    c->o.machine = &machine;
    st = tuck_graph_lower(g, &c->o, c->in.diags, &p);
    print_diags(c->in.diags);
    code = refused_or(st);
    if (code == EXIT_FINE && c->form == FORM_TEXT && c->o.times == TUCK_ESTIMATE_TIMES)
        put_comment(&c->in, number);
    else if (code == EXIT_FINE && c->form != FORM_TEXT && c->form != FORM_PROBLEM)
        put_graph(&c->in, number);
    if (code == EXIT_FINE)
        code = show(c, p);
    tuck_program_free(p);
    return code;
}

static int lower(struct lower_command *c, size_t number)
{
    tuck_graph *g = tuck_doc_graph(c->in.doc, number);

    if (c->form != FORM_PEAK || !c->peak_fx)
        return lower_on_model(c, g, number);
    put_graph(&c->in, number);
    return show_torch_peak(&c->in, g);
}

static int check_names(const struct lower_command *c)
{
    int code = graph_check_inputs(&c->in, "--keep", c->keep, c->o.n_keep);

    if (code == EXIT_FINE)
        code = graph_check_inputs(&c->in, "--free", c->let_go, c->o.n_free);
    for (size_t i = 0; code == EXIT_FINE && i < c->o.n_keep; i++)
        for (size_t k = 0; code == EXIT_FINE && k < c->o.n_free; k++)
            if (strcmp(c->keep[i], c->let_go[k]) == 0) {
                fprintf(stderr, "tuck lower: --keep and --free both name the input '%s'\n",
                        c->keep[i]);
                code = EXIT_USAGE;
            }
    return code;
}

static int lower_all(struct lower_command *c)
{
    size_t from = 0, to = 0;
    int code = model_input_open(&c->model, &c->in, &from, &to);

    if (code == EXIT_FINE)
        code = check_names(c);
    if (code == EXIT_FINE && c->form == FORM_PROBLEM)
        code = graph_only_one(&c->in, "--problem", from, to);
    for (size_t i = code == EXIT_FINE ? from : to; graph_go_on(code) && i < to; i++)
        code = graph_with(&c->in, i, code, lower(c, i));
    return code;
}

/* Prints it as it was written, but with a new memory plan. */
static int read_program(struct lower_command *c)
{
    tuck_program *p = NULL;

    if ((c->form == FORM_PEAK && c->peak_fx) || input_is_asked(&c->in) ||
        model_is_asked(&c->model) || c->o.n_keep + c->o.n_free > 0) {
        fputs("tuck lower: --read reads a program; --peak fx and options about graphs and machines "
              "do not apply\n",
              stderr);
        return EXIT_USAGE;
    }
    c->in.diags = tuck_diags_new(NULL);
    if (c->in.diags == NULL)
        return exit_code_of(TUCK_ENOMEM);
    tuck_status st = tuck_program_read_file(c->in.path, NULL, c->in.diags, &p);
    print_diags(c->in.diags);
    int code = st == TUCK_OK ? show(c, p) : exit_code_of(st);
    tuck_program_free(p);
    return code;
}

int cmd_lower(int argc, char **argv)
{
    struct lower_command c = {.keep = NULL};

    tuck_lower_options_init(&c.o);
    options_parse(&argp, argc, argv, &c);
    c.o.symm_group = c.model.symm;
    c.o.n_symm_group = c.model.n_symm;
    c.o.keep = c.keep;
    c.o.free = c.let_go;
    int code = c.read ? read_program(&c) : lower_all(&c);
    free(c.keep);
    free(c.let_go);
    model_close(&c.model);
    input_close(&c.in);
    return code;
}

/* tuck schedule: finds an order for a schedule problem, or for a graph's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/graphs.h"

enum { OPT_PASSES = 0x100, OPT_SET, OPT_COMPAT, OPT_ALIGN, OPT_JSON, OPT_WRITE, OPT_OVERLAP };

enum form { FORM_TABLE, FORM_JSON, FORM_PROBLEM, FORM_OVERLAP };

struct args {
    struct input in;
    struct model model;
    const char *passes, *compat;
    const char **set, **other; /* other: problem files of the other ranks */
    size_t n_set, n_other;
    int form;               /* enum form */
    struct graph_list list; /* for JSON */
    size_t graph;           /* the current one */
};

static const char own_passes[] =
    "reorder_communication_preserving_peak_memory,sink_waits_iterative";

static const struct argp_option options[] = {
    {"passes", OPT_PASSES, "LIST", 0,
     "What to run: names separated by commas, options in parentheses (default: "
     "reorder_communication_preserving_peak_memory,sink_waits_iterative)",
     0},
    {"set", OPT_SET, "NAME=VALUE", OPTION_MANY,
     "An option for all of them, or another key of PyTorch's configuration; may be repeated", 0},
    {"compat", OPT_COMPAT, "torch[,-NAME]", 0,
     "PyTorch's defaults and its slips, except those that are named", 0},
    {"keep-order", OPT_KEEP_ORDER, NULL, 0, "No collective may pass another, even of another group",
     0},
    {"align", OPT_ALIGN, "FILE", OPTION_MANY,
     "The problem of another rank; may be repeated. Runtimes are then the medians of all ranks", 0},
    {NULL, 0, NULL, 0, "One of these instead of the tables:", 1},
    {"json", OPT_JSON, NULL, 0, "Order, peak and statistics as JSON", 1},
    {"overlap", OPT_OVERLAP, NULL, 0,
     "The new order as text, with what overlaps (PyTorch's visualize_overlap)", 1},
    {"problem", OPT_WRITE, NULL, 0, "The problem again, with its ops in the new order", 1},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->in;
        state->child_inputs[1] = &a->model;
        break;
    case OPT_PASSES: a->passes = arg; break;
    case OPT_COMPAT: a->compat = arg; break;
    case OPT_KEEP_ORDER: a->model.keep_order = true; break;
    case OPT_ALIGN: a->other[a->n_other++] = arg; break;
    case OPT_JSON: option_form(state, &a->form, FORM_JSON); break;
    case OPT_WRITE: option_form(state, &a->form, FORM_PROBLEM); break;
    case OPT_OVERLAP: option_form(state, &a->form, FORM_OVERLAP); break;
    case OPT_SET:
        if (strchr(arg, '=') == NULL)
            argp_error(state, "--set wants NAME=VALUE, found '%s'", arg);
        a->set[a->n_set++] = arg;
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* The end of the help text is generated from the table. */
static char *help(int key, const char *text, void *input)
{
    char *out = NULL;
    size_t size;

    (void)input;
    if (key != ARGP_KEY_HELP_POST_DOC)
        return (char *)(uintptr_t)text;
    FILE *f = open_memstream(&out, &size);
    if (f == NULL)
        return NULL;
    fputs("`tuck passes' lists the passes with their options.\n\nWhere PyTorch 2.13 behaves "
          "differently from its documentation, --compat torch does the same, except for each "
          "-NAME:\n",
          f);
    for (size_t i = 0; i < tuck_compat_count(); i++)
        fprintf(f, "\n%s: %s", tuck_compat_name(i), tuck_compat_help(i));
    fclose(f);
    return out;
}

static const struct argp_child children[] = {
    {&input_argp, 0, "Of a graph:", 2}, {&model_argp, 0, "The machine of a graph:", 3}, {0}};
static const struct argp argp = {
    options,
    parse,
    "FILE",
    "Reads a schedule problem (JSON, docs/scheduling.md), or a graph, which is lowered and whose "
    "ops are estimated; runs passes on it, and reports what they did.",
    children,
    help,
    NULL};

/* --set applies to all passes, and may turn some on; those of --passes come after them. */
static tuck_status read_passes(const struct args *a, tuck_diags *diags, tuck_pipeline **out)
{
    tuck_pipeline *steps = NULL;
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    if (f == NULL)
        return TUCK_ENOMEM;
    for (size_t i = 0; i < a->n_set; i++)
        fprintf(f, "%s\n", a->set[i]);
    tuck_status st = fclose(f) == 0 ? tuck_pipeline_parse(text, len, "--set", NULL, diags, &steps)
                                    : TUCK_ENOMEM;
    const char *passes = a->passes ? a->passes : tuck_pipeline_count(steps) == 0 ? own_passes : "";
    if (st == TUCK_OK)
        st = tuck_pipeline_add_text(steps, passes, strlen(passes), "--passes", diags);
    print_diags(diags);
    free(text);
    if (st == TUCK_OK)
        *out = steps;
    else
        tuck_pipeline_free(steps);
    return st;
}

/* ---- the other ranks, as files ---- */

struct ranks {
    tuck_problem **p; /* [n] */
    size_t n;
};

static void ranks_close(struct ranks *r)
{
    for (size_t i = 0; r->p != NULL && i < r->n; i++)
        tuck_problem_free(r->p[i]);
    free(r->p);
}

static int ranks_open(struct ranks *r, const struct args *a, tuck_diags *diags)
{
    r->n = a->n_other;
    r->p = calloc(r->n + 1, sizeof(*r->p));
    if (r->p == NULL)
        return exit_code_of(TUCK_ENOMEM);
    for (size_t i = 0; i < r->n; i++) {
        tuck_status st = tuck_problem_read_file(a->other[i], NULL, diags, &r->p[i]);
        print_diags(diags);
        if (st != TUCK_OK)
            return exit_code_of(st);
    }
    return EXIT_FINE;
}

/* ---- the schedule ---- */

static tuck_status print(struct args *a, const tuck_schedule *s)
{
    tuck_print_options how = print_how(a->form == FORM_JSON);
    tuck_print_item item;

    switch ((enum form)a->form) {
    case FORM_OVERLAP: return tuck_schedule_print_overlap(s, &how, to_file, stdout);
    case FORM_PROBLEM: return tuck_schedule_write_problem(s, to_file, stdout);
    default:
        graph_list_item(&a->list, a->graph, &how, &item);
        return tuck_schedule_print(s, &how, to_file, stdout);
    }
}

/* Errors in --compat are reported like those of other options. */
static int begin(const struct args *a, const tuck_problem *p, const struct ranks *ranks,
                 tuck_diags *diags, tuck_schedule **out)
{
    tuck_schedule_options o;

    tuck_schedule_options_init(&o);
    o.compat = a->compat;
    o.keep_order = a->model.keep_order;
    o.others = (const tuck_problem *const *)ranks->p;
    o.n_others = ranks->n;
    tuck_status st = tuck_schedule_new(p, &o, diags, out);
    if (st == TUCK_EINVAL && tuck_diags_count(diags) > 0)
        fprintf(stderr, "tuck: --%s\n", tuck_diags_at(diags, 0)->message);
    tuck_diags_clear(diags);
    return exit_code_of(st);
}

static int run(struct args *a, const tuck_problem *p, tuck_diags *diags)
{
    struct ranks ranks = {.n = 0};
    tuck_pipeline *steps = NULL;
    tuck_schedule *s = NULL;
    int code = ranks_open(&ranks, a, diags);

    if (code == EXIT_FINE)
        code = begin(a, p, &ranks, diags, &s);
    if (code == EXIT_FINE) {
        tuck_status st = read_passes(a, diags, &steps);
        if (st == TUCK_OK)
            st = tuck_schedule_run_pipeline(s, steps, diags);
        print_diags(diags);
        code = exit_code_of(st == TUCK_OK ? print(a, s) : st);
    }
    tuck_pipeline_free(steps);
    tuck_schedule_free(s);
    ranks_close(&ranks);
    return code;
}

/* ---- input ---- */

static int run_problem(struct args *a)
{
    tuck_problem *p = NULL;

    if (input_is_asked(&a->in) || model_is_asked(&a->model)) {
        fprintf(stderr,
                "tuck: options about graphs and machines are for graphs; the problem %s has its "
                "own runtimes\n",
                a->in.path);
        return EXIT_USAGE;
    }
    tuck_diags *diags = tuck_diags_new(NULL);
    if (diags == NULL)
        return exit_code_of(TUCK_ENOMEM);
    tuck_status st = tuck_problem_read_file(a->in.path, NULL, diags, &p);
    print_diags(diags);
    int code = st == TUCK_OK ? run(a, p, diags) : exit_code_of(st);
    tuck_problem_free(p);
    tuck_diags_free(diags);
    return code;
}

/* The program of a graph, and its problem. */
static tuck_status lower(struct args *a, tuck_graph *g, tuck_problem **out)
{
    tuck_program *program = NULL;
    tuck_machine machine;
    tuck_lower_options o;

    model_public(&a->model, &a->in, &machine);
    tuck_lower_options_init(&o);
    o.keep_clones = a->compat != NULL;
    o.machine = &machine;
    tuck_status st = tuck_graph_lower(g, &o, a->in.diags, &program);
    if (st == TUCK_OK)
        st = tuck_program_check_times(program, a->model.strict ? TUCK_REFUSE : TUCK_ASSUME,
                                      a->in.diags);
    if (st == TUCK_OK)
        st = tuck_program_problem(program, a->in.diags, out);
    tuck_program_free(program);
    return st;
}

static int run_graph(struct args *a, tuck_graph *g)
{
    tuck_problem *p = NULL;
    bool assumed;
    tuck_status st = tuck_graph_infer(g, TUCK_TRUST_ANNOTATIONS, a->in.diags);
    int code = st == TUCK_OK ? model_for(&a->model, &a->in, g, &assumed) : exit_code_of(st);

    if (code != EXIT_FINE)
        return code;
    st = lower(a, g, &p);
    print_diags(a->in.diags);
    code = refused_or(st);
    if (code == EXIT_FINE && (a->form == FORM_TABLE || a->form == FORM_OVERLAP))
        put_graph(&a->in, a->graph);
    if (code == EXIT_FINE && a->form == FORM_TABLE)
        put_machine(&a->model, g, assumed);
    if (code == EXIT_FINE)
        code = run(a, p, a->in.diags);
    tuck_problem_free(p);
    return code;
}

static int run_graphs(struct args *a)
{
    size_t from = 0, to = 0;
    int code = model_input_open(&a->model, &a->in, &from, &to);

    if (code == EXIT_FINE && a->form == FORM_PROBLEM)
        code = graph_only_one(&a->in, "--problem", from, to);
    graph_list_begin(&a->list, &a->in, "graphs", a->form == FORM_JSON && to - from > 1);
    for (a->graph = code == EXIT_FINE ? from : to; graph_go_on(code) && a->graph < to; a->graph++)
        code = graph_with(&a->in, a->graph, code,
                          run_graph(a, tuck_doc_graph(a->in.doc, a->graph)));
    graph_list_end(&a->list);
    model_close(&a->model);
    return code;
}

int cmd_schedule(int argc, char **argv)
{
    struct args a = {.passes = NULL};

    a.set = calloc(2 * ((size_t)argc + 1), sizeof(*a.set));
    if (a.set == NULL)
        return exit_code_of(TUCK_ENOMEM);
    a.other = a.set + argc + 1;
    options_parse(&argp, argc, argv, &a);
    int code = tuck_problem_is_file(a.in.path) ? run_problem(&a) : run_graphs(&a);
    input_close(&a.in);
    free(a.set);
    return code;
}

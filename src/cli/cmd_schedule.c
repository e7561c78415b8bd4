/* tuck schedule: an order for a schedule problem, or for the one that a graph is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/graphs.h"
#include "lower/estimate.h"
#include "study/pass_table.h"
#include "plan/from_program.h"
#include "report/schedule_show.h"

enum { OPT_PASSES = 0x100, OPT_SET, OPT_COMPAT, OPT_ALIGN, OPT_JSON, OPT_WRITE, OPT_OVERLAP };

enum form { FORM_TABLE, FORM_JSON, FORM_PROBLEM, FORM_OVERLAP };

struct args {
    struct input in;
    struct model model;
    const char *passes, *compat;
    const char **set, **other; /* other: problems of the other ranks */
    size_t n_set, n_other;
    int form;               /* enum form */
    struct graph_list list; /* of JSON */
    size_t graph;           /* being worked on */
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
     "PyTorch's defaults and its slips, but for those that are named", 0},
    {"keep-order", OPT_KEEP_ORDER, NULL, 0,
     "No collective passes another, also where their groups differ", 0},
    {"align", OPT_ALIGN, "FILE", OPTION_MANY,
     "The problem of another rank; may be repeated. Runtimes are then the medians of all ranks", 0},
    {NULL, 0, NULL, 0, "One of these instead of the tables:", 1},
    {"json", OPT_JSON, NULL, 0, "Order, peak and statistics as JSON", 1},
    {"overlap", OPT_OVERLAP, NULL, 0,
     "The new order as text, with what runs under what (PyTorch's visualize_overlap)", 1},
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

/* The end of the help text is made of the table. */
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
    fputs("`tuck passes' lists the passes with their options.\n\nWhere PyTorch 2.13 does something "
          "else than it says, --compat torch does it, too, unless told -NAME:\n",
          f);
    for (size_t i = 0; i < n_schedule_slips; i++)
        fprintf(f, "\n%s: %s", schedule_slip_table[i].name, schedule_slip_table[i].help);
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
    "ops are estimated; runs passes on it, and says what they did.",
    children,
    help,
    NULL};

static int get_options(const struct args *a, struct schedule_options *o)
{
    char why[160];

    schedule_defaults(o, false);
    if (a->compat != NULL && !schedule_compat(o, a->compat, why)) {
        fprintf(stderr, "tuck: --compat %s\n", why);
        return EXIT_USAGE;
    }
    o->runtime_estimations_align_across_all_distributed_ranks |= a->n_other > 0;
    o->keep_order = a->model.keep_order;
    return EXIT_FINE;
}

/* What --set says holds for all passes, and may turn some on; those of --passes come after them. */
static tuck_status read_passes(const struct args *a, struct pipeline *steps, tuck_diags *diags)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    if (f == NULL)
        return TUCK_ENOMEM;
    for (size_t i = 0; i < a->n_set; i++)
        fprintf(f, "%s\n", a->set[i]);
    tuck_status st = fclose(f) == 0 ? pipeline_parse(steps, text, len, "--set", diags)
                                    : TUCK_ENOMEM;
    const char *passes = a->passes ? a->passes : steps->step.len == 0 ? own_passes : "";
    if (st == TUCK_OK)
        st = pipeline_parse(steps, passes, strlen(passes), "--passes", diags);
    print_diags(diags); /* they point into the text */
    free(text);
    return st;
}

/* ---- the other ranks, as files ---- */

struct ranks {
    struct problem **p; /* [n]; the first place is this rank's own, and empty */
    tuck_estimates *row;
    uint32_t n;
};

static const tuck_estimates *gather(void *ctx, uint32_t rank, const double *mine, uint32_t n)
{
    struct ranks *r = ctx;

    r->row[rank] = (tuck_estimates){mine, n};
    return r->row;
}

static void ranks_close(struct ranks *r)
{
    for (uint32_t i = 1; r->p != NULL && i < r->n; i++)
        problem_free(r->p[i]);
    free(r->p);
    free(r->row);
}

/* Their runtimes in the unit of p. */
static int ranks_open(struct ranks *r, const struct args *a, const struct problem *p,
                      tuck_diags *diags)
{
    r->n = (uint32_t)a->n_other + 1;
    r->p = calloc(r->n, sizeof(*r->p));
    r->row = calloc(r->n, sizeof(*r->row));
    if (r->p == NULL || r->row == NULL)
        return exit_code_of(TUCK_ENOMEM);
    for (uint32_t i = 1; i < r->n; i++) {
        tuck_status st = problem_read_file(a->other[i - 1], NULL, diags, &r->p[i]);
        print_diags(diags);
        if (st != TUCK_OK)
            return exit_code_of(st);
        double scale = problem_unit_ns(r->p[i]) / problem_unit_ns(p);
        for (uint32_t x = 0; scale != 1 && x < r->p[i]->n_op; x++)
            r->p[i]->runtime[x] *= scale;
        r->row[i] = (tuck_estimates){r->p[i]->runtime, r->p[i]->n_op};
    }
    return EXIT_FINE;
}

struct printed {
    const struct schedule *s;
    const struct args *a;
};

static void print(struct buf *b, const void *ctx)
{
    const struct printed *x = ctx;

    switch ((enum form)x->a->form) {
    case FORM_TABLE: schedule_table(x->s, b); break;
    case FORM_JSON: schedule_json(x->s, b); break;
    case FORM_OVERLAP: schedule_overlap(x->s, b); break;
    case FORM_PROBLEM: {
        struct problem p = *x->s->p;
        p.runtime = x->s->runtime;
        problem_write(&p, x->s->order, b);
        break;
    }
    }
}

static int run(struct args *a, const struct problem *p, tuck_diags *diags)
{
    struct schedule_options o;
    struct pipeline steps;
    struct schedule s;
    struct ranks ranks = {.n = 0};
    tuck_transport others = {.ctx = &ranks, .n_rank = (uint32_t)a->n_other + 1, .gather = gather};
    int code = get_options(a, &o);

    if (code == EXIT_FINE)
        code = ranks_open(&ranks, a, p, diags);
    if (code == EXIT_FINE && !schedule_begin(&s, p, &o))
        code = exit_code_of(TUCK_ENOMEM);
    if (code != EXIT_FINE) {
        ranks_close(&ranks);
        return code;
    }
    s.transport = a->n_other > 0 ? &others : NULL;
    pipeline_init(&steps, &all_passes, NULL);
    tuck_status st = read_passes(a, &steps, diags);
    if (st == TUCK_OK)
        st = schedule_steps(&s, &steps, diags);
    print_diags(diags);
    code = st == TUCK_OK ? graph_list_print(&a->list, a->graph, 0, print, &(struct printed){&s, a})
                         : exit_code_of(st);
    pipeline_destroy(&steps);
    schedule_end(&s);
    ranks_close(&ranks);
    return code;
}

/* ---- where the problem comes from ---- */

/* A problem is called so, or begins with a brace, as no text of a graph does; '[' begins a log of
 * ranks. What cannot be opened is for the reader to say. */
static bool is_graph(const char *path)
{
    bool std = strcmp(path, "-") == 0;
    size_t len = strlen(path);
    int c;

    if (len > 5 && strcmp(path + len - 5, ".json") == 0)
        return false;
    FILE *f = std ? stdin : open_to_read(path);
    if (f == NULL)
        return false;
    do
        c = getc(f);
    while (c == ' ' || c == '\t' || c == '\n' || c == '\r');
    if (std && c != EOF)
        ungetc(c, f);
    else if (!std)
        fclose(f);
    return c != '{' && c != EOF;
}

static int run_problem(struct args *a)
{
    struct problem *p = NULL;

    if (input_is_asked(&a->in) || model_is_asked(&a->model)) {
        fprintf(stderr,
                "tuck: options about graphs and machines are for graphs; the problem %s says its "
                "runtimes itself\n",
                a->in.path);
        return EXIT_USAGE;
    }
    tuck_diags *diags = tuck_diags_new(NULL);
    if (diags == NULL)
        return exit_code_of(TUCK_ENOMEM);
    tuck_status st = problem_read_file(a->in.path, NULL, diags, &p);
    print_diags(diags);
    int code = st == TUCK_OK ? run(a, p, diags) : exit_code_of(st);
    problem_free(p);
    tuck_diags_free(diags);
    return code;
}

static int run_graph(struct args *a, tuck_graph *g)
{
    struct lower_options lower;
    struct program *program = NULL;
    struct problem *p = NULL;
    bool assumed;
    tuck_status st = tuck_graph_infer(g, false, a->in.diags);
    int code = st == TUCK_OK ? model_for(&a->model, &a->in, g, &assumed) : exit_code_of(st);

    if (code != EXIT_FINE)
        return code;
    lower_defaults(&lower);
    lower.keep_clones = a->compat != NULL;
    struct machine machine;
    model_machine(&a->model, &a->in, &machine);
    lower.machine = &machine;
    st = laws_fit(&machine, g);
    if (st == TUCK_OK)
        st = lower_graph(g, &lower, a->in.diags, &program);
    if (st == TUCK_OK)
        st = lower_estimate(program, g, &machine);
    if (st == TUCK_OK)
        st = gaps_tell(program, a->model.strict, a->in.diags);
    if (st == TUCK_OK)
        st = problem_of_program(program, a->in.diags, &p);
    print_diags(a->in.diags);
    code = refused_or(st);
    if (code == EXIT_FINE && (a->form == FORM_TABLE || a->form == FORM_OVERLAP))
        put_graph(&a->in, a->graph);
    if (code == EXIT_FINE && a->form == FORM_TABLE)
        put_machine(&a->model, g, assumed);
    if (code == EXIT_FINE)
        code = run(a, p, a->in.diags);
    problem_free(p);
    program_free(program);
    return code;
}

static int run_graphs(struct args *a)
{
    size_t from = 0, to = 0;
    int code = model_input_open(&a->model, &a->in, &from, &to);

    if (code == EXIT_FINE && a->form == FORM_PROBLEM)
        code = graph_only_one(&a->in, "--problem", from, to);
    graph_list_begin(&a->list, &a->in, "graphs", a->form == FORM_JSON && to - from > 1);
    for (a->graph = from; code == EXIT_FINE && a->graph < to; a->graph++)
        code = run_graph(a, tuck_doc_graph(a->in.doc, a->graph));
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
    int code = is_graph(a.in.path) ? run_graphs(&a) : run_problem(&a);
    input_close(&a.in);
    free(a.set);
    return code;
}

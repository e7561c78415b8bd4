/* tuck lower: the program that a graph becomes. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/graphs.h"
#include "lower/estimate.h"
#include "plan/graph_peak.h"
#include "plan/arena_plan.h"
#include "plan/from_program.h"

enum {
    OPT_NO_FUSE = 0x400,
    OPT_COMPAT,
    OPT_SELECT,
    OPT_THRESHOLD,
    OPT_SYMM,
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
    bool no_cost, read, peak_fx;
    struct lower_options o;
    const char **symm, **keep, **let_go;
};

static const struct argp_option options[] = {
    {"no-fuse", OPT_NO_FUSE, NULL, 0, "One op a node: no fused loops", 0},
    {"compat", OPT_COMPAT, "torch", 0,
     "Clone the operand of every all-reduce, as PyTorch's lowering does", 0},
    {"auto-select", OPT_SELECT, NULL, 0,
     "Small all-reduces become one-shot ones over symmetric memory", 0},
    {"one-shot-threshold", OPT_THRESHOLD, "BYTES", 0, "... up to this size (131072)", 0},
    {"symm-mem", OPT_SYMM, "GROUP", OPTION_MANY, "A group with symmetric memory; '*': all of them",
     0},
    {"keep", OPT_KEEP, "INPUT", OPTION_MANY, "An input that the caller keeps: it is never freed",
     0},
    {"free", OPT_FREE, "INPUT", OPTION_MANY, "An input that the caller lets go of", 0},
    {"no-cost", OPT_NO_COST, NULL, 0, "Leave out what each op takes", 0},
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
    case OPT_NO_COST: c->no_cost = true; break;
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
    case OPT_SYMM: option_append(state, &c->symm, &c->o.n_symm_group, arg); break;
    case OPT_KEEP: option_append(state, &c->keep, &c->o.n_keep, arg); break;
    case OPT_FREE: option_append(state, &c->let_go, &c->o.n_free, arg); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp_child children[] = {
    {&input_argp, 0, NULL, 4}, {&model_argp, 0, "The machine:", 5}, {0}};
static const struct argp argp = {
    options,
    parse,
    "FILE",
    "Print the program that each graph of FILE becomes: its buffers with layout and bytes, its ops "
    "with what they read, write and mutate and what they take. docs/lowering.md explains the text.",
    children,
    NULL,
    NULL};

/* ---- what is printed ---- */

static void print(struct buf *b, const void *program)
{
    program_print(program, b);
}

static void print_as_problem(struct buf *b, const void *problem)
{
    problem_write(problem, NULL, b);
}

static int print_problem(const struct program *p, tuck_diags *diags)
{
    struct problem *problem = NULL;
    tuck_status st = problem_of_program(p, diags, &problem);

    print_diags(diags);
    int code = st == TUCK_OK ? print_through(print_as_problem, problem) : exit_code_of(st);
    problem_free(problem);
    return code;
}

static void line(const char *what, int64_t bytes)
{
    char text[32];

    printf("  %-18s %15lld", what, (long long)bytes);
    put_line(INK_DIM, "  %s", human_bytes(bytes, text));
}

static void print_summary(const struct program *p, const char *machine)
{
    size_t kind[PROGRAM_KIND_END] = {0}, comm = 0, inputs = p->n_input, kernels = 0;
    double ns = 0;

    for (uint32_t i = 0; i < p->n_op; i++) {
        kind[p->op[i].kind]++;
        kernels += program_is_kernel(&p->op[i]);
        if (p->op[i].ns > 0 && p->op[i].kind != PROGRAM_COLLECTIVE)
            ns += p->op[i].ns;
    }
    for (uint32_t i = 0; i < p->n_buf; i++)
        comm += p->buf[i].layout == PROGRAM_COMM;
    put_line(INK_HEAD, "%s", program_str(p, p->name));
    printf("  %-18s %15u", "ops", p->n_op);
    for (int k = 0; k < PROGRAM_KIND_END; k++)
        put(INK_DIM, "%s%zu %s", k ? ", " : "  ", kind[k], program_kind_name[k]);
    printf("\n  %-18s %15zu\n", "kernels", kernels);
    printf("  %-18s %15u", "buffers", p->n_buf);
    put_line(INK_DIM, "  %zu inputs, %zu in symmetric memory", inputs, comm);
    if (p->n_unknown > 0)
        put_line(INK_LIMIT, "  %-18s %15u  counted as nothing", "of unknown size", p->n_unknown);
    line("peak", p->peak);
    line("resident inputs", p->resident);
    line("arena", p->arena_bytes);
    printf("  %-18s %14.2f%%", "fragmentation",
           p->arena_bytes > 0
               ? 100.0 * (double)(p->arena_bytes - p->arena_least) / (double)p->arena_bytes
               : 0.0);
    put_line(INK_DIM, "  of the arena, above what is live at once");
    for (uint32_t i = 0; i < p->n_group; i++)
        if (p->heap[i] > 0) {
            char what[64];
            snprintf(what, sizeof(what), "heap of %s", program_str(p, p->group[i].name));
            line(what, p->heap[i]);
        }
    if (p->comm_digest != 0)
        printf("  %-18s %016llx\n", "heap digest", (unsigned long long)p->comm_digest);
    if (machine != NULL) {
        char text[32];
        printf("  %-18s %15s", "compute", human_us(ns / 1000, text));
        put_line(INK_DIM, "  on %s", machine);
    }
}

static int show(struct lower_command *c, struct program *p, const char *machine)
{
    char text[32];
    int code = exit_code_of(memory_plan(p, NULL));

    if (code != EXIT_FINE)
        return code;
    switch (c->form) {
    case FORM_TEXT: return print_through(print, p);
    case FORM_PROBLEM: return print_problem(p, c->in.diags);
    case FORM_SUMMARY: print_summary(p, machine); break;
    case FORM_PEAK:
        printf("%s: %lld bytes (%s)\n", program_str(p, p->name), (long long)p->peak,
               human_bytes(p->peak, text));
        break;
    }
    return EXIT_FINE;
}

/* ---- where it comes from ---- */

static int show_graph_peak(struct lower_command *c, tuck_graph *g)
{
    struct graph_peak peak;
    char text[32];
    int code = exit_code_of(memory_graph_peak(g, c->in.hint, c->in.n_hint, &peak));

    if (code == EXIT_FINE)
        printf("%s: %lld bytes (%s), as PyTorch's graph passes estimate it%s%s\n",
               *tuck_graph_name(g) ? tuck_graph_name(g) : "forward", (long long)peak.peak,
               human_bytes(peak.peak, text), peak.node ? "; at " : "",
               peak.node ? graph_str(g, node_at(g, peak.node)->name) : "");
    return code;
}

/* In a program a title is a comment. */
static void put_comment(const struct input *in, size_t i)
{
    if (tuck_doc_count(in->doc) > 1) {
        printf("# ");
        put_graph(in, i);
    }
}

static int lower(struct lower_command *c, size_t number)
{
    tuck_graph *g = tuck_doc_graph(c->in.doc, number);
    struct program *p = NULL;
    bool assumed, priced = !c->no_cost;

    if (c->form == FORM_PEAK && c->peak_fx) {
        put_graph(&c->in, number);
        return show_graph_peak(c, g);
    }
    tuck_status st = tuck_graph_infer(g, false, c->in.diags);
    int code = st == TUCK_OK && priced ? model_for(&c->model, &c->in, g, &assumed)
                                       : exit_code_of(st);
    if (code != EXIT_FINE)
        return code;
    struct machine machine;
    model_machine(&c->model, &c->in, &machine);
    c->o.machine = &machine;
    st = lower_graph(g, &c->o, c->in.diags, &p);
    if (st == TUCK_OK && priced) {
        st = laws_fit(&machine, g);
        if (st == TUCK_OK)
            st = lower_estimate(p, g, &machine);
        if (st == TUCK_OK && c->form == FORM_TEXT) {
            put_comment(&c->in, number);
            printf("# times on %s%s\n", tuck_cluster_name(c->model.cluster),
                   assumed ? " (assumed; --cluster names another)" : "");
            for (uint32_t i = 0; i < p->n_group; i++) {
                const char *name = program_str(p, p->group[i].name);
                if (shape_is_assumed(c->model.cluster, name, p->group[i].size))
                    printf("# group %s: %" PRId64 " ranks, assumed; --group %s=SIZE says it\n",
                           name, shape_of_group(c->model.cluster, name, 0, NULL).p, name);
            }
        }
    }
    print_diags(c->in.diags);
    code = refused_or(st);
    if (code == EXIT_FINE && c->form != FORM_TEXT && c->form != FORM_PROBLEM)
        put_graph(&c->in, number);
    if (code == EXIT_FINE)
        code = show(c, p, priced ? tuck_cluster_name(c->model.cluster) : NULL);
    program_free(p);
    return code;
}

static int check_names(const struct lower_command *c)
{
    int code = graph_check_inputs(&c->in, "--keep", c->keep, c->o.n_keep);

    if (code == EXIT_FINE)
        code = graph_check_inputs(&c->in, "--free", c->let_go, c->o.n_free);
    for (size_t i = 0; code == EXIT_FINE && i < c->o.n_symm_group; i++)
        if (strcmp(c->symm[i], "*") != 0)
            code = graph_check_groups(&c->in, "--symm-mem", &c->symm[i], 1);
    for (size_t i = 0; code == EXIT_FINE && i < c->o.n_keep; i++)
        for (size_t k = 0; code == EXIT_FINE && k < c->o.n_free; k++)
            if (strcmp(c->keep[i], c->let_go[k]) == 0) {
                fprintf(stderr, "tuck lower: --keep and --free of the same input '%s'\n",
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
    for (size_t i = from; code == EXIT_FINE && i < to; i++)
        code = lower(c, i);
    return code;
}

/* Just as it was written; its plan is made anew. */
static int read_program(struct lower_command *c)
{
    struct program *p = NULL;

    if ((c->form == FORM_PEAK && c->peak_fx) || input_is_asked(&c->in) ||
        model_is_asked(&c->model) || c->o.n_keep + c->o.n_free + c->o.n_symm_group > 0) {
        fputs("tuck lower: --read is of a program; --peak fx and options about graphs and machines "
              "are not for it\n",
              stderr);
        return EXIT_USAGE;
    }
    c->in.diags = tuck_diags_new(NULL);
    if (c->in.diags == NULL)
        return exit_code_of(TUCK_ENOMEM);
    tuck_status st = program_read_file(c->in.path, NULL, c->in.diags, &p);
    print_diags(c->in.diags);
    int code = st == TUCK_OK ? show(c, p, NULL) : exit_code_of(st);
    program_free(p);
    return code;
}

int cmd_lower(int argc, char **argv)
{
    struct lower_command c = {.symm = NULL};

    lower_defaults(&c.o);
    options_parse(&argp, argc, argv, &c);
    c.o.symm_group = c.symm;
    c.o.keep = c.keep;
    c.o.free = c.let_go;
    int code = c.read ? read_program(&c) : lower_all(&c);
    free(c.symm);
    free(c.keep);
    free(c.let_go);
    model_close(&c.model);
    input_close(&c.in);
    return code;
}

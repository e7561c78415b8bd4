/* tuck diff: what became of a graph. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "pipeline/diff.h"

enum { OPT_TOP = 0x700 };

struct differ {
    struct input in; /* the first; options are for both */
    struct model model;
    const char *other;
    bool json;
    uint32_t top;
};

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "Everything, for other programs", 0},
    {"top", OPT_TOP, "N", 0, "Name at most N of each kind of change (10)", 0},
    {NULL, 0, NULL, 0, "The graphs:", 1},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct differ *x = state->input;
    char *end;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &x->in;
        state->child_inputs[1] = &x->model;
        break;
    case 'j': x->json = true; break;
    case OPT_TOP: {
        errno = 0;
        long v = strtol(arg, &end, 10);
        if (errno != 0 || *end != '\0' || end == arg || v < 0)
            argp_error(state, "--top must be a number from 0 on, found '%s'", arg);
        x->top = v < 1000000 ? (uint32_t)v : 1000000;
        break;
    }
    case ARGP_KEY_ARG:
        if (x->in.path == NULL)
            return ARGP_ERR_UNKNOWN; /* the first is the child's */
        if (x->other != NULL)
            argp_error(state, "two files only, found '%s' after '%s'", arg, x->other);
        x->other = arg;
        break;
    case ARGP_KEY_END:
        if (x->in.path != NULL && x->other == NULL)
            argp_error(state, "which file is it compared with?");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp_child children[] = {
    {&input_argp, 0, NULL, 0}, {&model_argp, 0, "The machine:", 2}, {0}};
static const struct argp argp = {
    options,
    parse,
    "BEFORE AFTER",
    "Compare two graphs of the same step: which nodes moved, merged, appeared and vanished, and "
    "what both take, in time and memory, on the same machine.",
    children,
    NULL,
    NULL};

struct print_args {
    const struct differ *x;
    const struct diff *d;
    struct buf b;
};

static void do_print(void *arg)
{
    struct print_args *p = arg;

    if (p->x->json)
        diff_json(p->d, &p->b);
    else
        diff_table(p->d, p->x->top, &p->b);
    buf_flush(&p->b);
}

static int print(const struct differ *x, const struct diff *d)
{
    struct mem m;
    struct print_args p = {.x = x, .d = d};

    mem_init(&m, NULL);
    buf_to(&p.b, &m, to_stdout, NULL);
    bool ok = mem_guard(&m, do_print, &p);
    buf_destroy(&p.b);
    return ok ? EXIT_FINE : exit_code_of(TUCK_ENOMEM);
}

static int evaluate(const struct differ *x, struct input *in, tuck_graph *g, struct evaluation *e)
{
    struct evaluate_options o;

    evaluate_defaults(&o);
    o.cluster = x->model.cluster;
    o.cost.collective.model = x->model.kind;
    o.cost.profile = x->model.profile;
    o.hint = in->hint;
    o.n_hint = in->n_hint;
    tuck_status st = tuck_graph_infer(g, false, in->diags);
    if (st == TUCK_OK)
        st = evaluate_graph(g, &o, in->diags, e);
    print_diags(in->diags);
    return st == TUCK_EINVAL ? EXIT_REFUSED : exit_code_of(st);
}

/* What is not known of the groups of the second, which often has no side-car, is as in the first. */
static tuck_status inherit_groups(const tuck_graph *a, tuck_graph *b)
{
    tuck_status st = TUCK_OK;

    for (size_t i = 0; i < tuck_graph_group_count(a) && st != TUCK_ENOMEM; i++)
        for (size_t k = 0; k < tuck_graph_group_count(b); k++)
            if (tuck_graph_group_ranks(b, k) == NULL && tuck_graph_group_size(a, i) > 0 &&
                (tuck_graph_group_size(b, k) == 0 ||
                 tuck_graph_group_size(b, k) == tuck_graph_group_size(a, i)) &&
                strcmp(tuck_graph_group_name(a, i), tuck_graph_group_name(b, k)) == 0)
                st = tuck_graph_set_group(b, tuck_graph_group_name(b, k),
                                          tuck_graph_group_size(a, i), tuck_graph_group_ranks(a, i),
                                          NULL);
    return st;
}

static int compare(struct differ *x, struct input *after, tuck_graph *a, tuck_graph *b)
{
    struct evaluation ea = {.program = NULL}, eb = {.program = NULL};
    struct diff d;
    bool assumed;
    tuck_status st = inherit_groups(a, b);

    if (st == TUCK_OK)
        st = tuck_graph_infer(a, false, x->in.diags);
    int code = st == TUCK_OK ? model_for(&x->model, a, x->in.diags, &assumed) : exit_code_of(st);

    if (code != EXIT_FINE)
        return code;
    code = evaluate(x, &x->in, a, &ea);
    if (code == EXIT_FINE) {
        code = evaluate(x, after, b, &eb);
        if (code == EXIT_FINE) {
            code = exit_code_of(diff_graphs(a, &ea, b, &eb, &d));
            if (code == EXIT_FINE && !x->json)
                printf("%s on %s%s\n", *tuck_graph_name(a) ? tuck_graph_name(a) : "forward",
                       tuck_cluster_name(x->model.cluster),
                       assumed ? " (assumed; --cluster names another)" : "");
            if (code == EXIT_FINE)
                code = print(x, &d);
            diff_end(&d);
        }
        evaluate_end(&eb);
    }
    evaluate_end(&ea);
    return code;
}

int cmd_diff(int argc, char **argv)
{
    struct differ x = {.top = 10};
    size_t from = 0, to = 0, from_b = 0, to_b = 0;

    argp_parse(&argp, argc, argv, 0, NULL, &x);
    struct input after = {.path = x.other,
                          .graph = x.in.graph,
                          .rank = x.in.rank,
                          .group = x.in.group,
                          .n_group = x.in.n_group,
                          .assume = x.in.assume,
                          .n_assume = x.in.n_assume};
    int code = input_open(&x.in);
    if (code == EXIT_FINE)
        code = input_open(&after);
    if (code == EXIT_FINE)
        code = input_range(&x.in, &from, &to);
    if (code == EXIT_FINE)
        code = input_range(&after, &from_b, &to_b);
    if (code == EXIT_FINE && to - from != to_b - from_b) {
        fprintf(stderr, "tuck diff: %s has %zu graphs, %s has %zu; --graph chooses one of each\n",
                x.in.path, to - from, after.path, to_b - from_b);
        code = EXIT_USAGE;
    }
    if (code == EXIT_FINE)
        code = model_open(&x.model, x.in.diags);
    if (code == EXIT_FINE)
        input_warn_groups(&x.in);
    for (size_t i = 0; code == EXIT_FINE && i < to - from; i++)
        code = compare(&x, &after, tuck_doc_graph(x.in.doc, from + i),
                       tuck_doc_graph(after.doc, from_b + i));
    after.group = after.assume = NULL; /* those of the first */
    input_close(&after);
    model_close(&x.model);
    input_close(&x.in);
    return code;
}

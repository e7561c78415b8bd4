/* tuck explain: why communication is exposed, and what would help. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/progress.h"
#include "pipeline/explain.h"

enum { OPT_TOP = 0x600 };

struct explain {
    struct input in;
    struct model model;
    const char *node;
    bool json;
    uint32_t top;
};

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "Everything, for other programs", 0},
    {"top", OPT_TOP, "N", 0, "Show the N most exposed collectives (10)", 0},
    {NULL, 0, NULL, 0, "The graph:", 1},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct explain *x = state->input;
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
            return ARGP_ERR_UNKNOWN; /* the file */
        if (x->node != NULL)
            argp_error(state, "one node only, found '%s' after '%s'", arg, x->node);
        x->node = arg;
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
    "FILE [NODE]",
    "Explain where a step loses time: each collective with its cost, how much of it is exposed, "
    "what limits it, and what would help, tried by simulating it. With NODE, that one alone.",
    children,
    NULL,
    NULL};

struct print_args {
    const struct explain *x;
    const struct explanation *e;
    const struct evaluate_options *o;
    struct buf b;
    bool found;
};

static void do_print(void *arg)
{
    struct print_args *p = arg;

    if (p->x->node != NULL)
        p->found = explain_node(p->e, p->o, p->x->node, &p->b);
    else if (p->x->json)
        explain_json(p->e, &p->b);
    else
        explain_table(p->e, p->x->top, &p->b);
    buf_flush(&p->b);
}

static int print(const struct explain *x, const struct explanation *e,
                 const struct evaluate_options *o)
{
    struct mem m;
    struct print_args p = {.x = x, .e = e, .o = o, .found = true};

    mem_init(&m, NULL);
    buf_to(&p.b, &m, to_stdout, NULL);
    bool ok = mem_guard(&m, do_print, &p);
    buf_destroy(&p.b);
    if (ok && !p.found) {
        fprintf(stderr, "tuck explain: no op has a node '%s' (views and inputs take no time)\n",
                x->node);
        return EXIT_USAGE;
    }
    return ok ? EXIT_FINE : exit_code_of(TUCK_ENOMEM);
}

static int explain(struct explain *x, tuck_graph *g)
{
    struct evaluate_options o;
    struct explanation e;
    tuck_hint *hint = calloc(x->in.n_hint + 1, sizeof(*hint));
    bool assumed;

    if (hint == NULL)
        return exit_code_of(TUCK_ENOMEM);
    for (size_t k = 0; k < x->in.n_hint; k++)
        hint[k] = (tuck_hint){graph_str(g, x->in.hint[k].symbol), x->in.hint[k].value};
    tuck_status st = tuck_graph_infer(g, false, x->in.diags);
    int code = st == TUCK_OK ? model_for(&x->model, g, x->in.diags, &assumed) : exit_code_of(st);
    if (code != EXIT_FINE) {
        free(hint);
        return code;
    }
    tuck_cost_options cost = {.model = x->model.kind, .profile = x->model.profile};
    tuck_run_options run = {
        .cluster = x->model.cluster, .cost = &cost, .hints = hint, .n_hints = x->in.n_hint};
    evaluate_defaults(&o);
    o.cluster = x->model.cluster;
    o.cost.collective.model = x->model.kind;
    o.cost.profile = x->model.profile;
    o.hint = x->in.hint;
    o.n_hint = x->in.n_hint;
    run.observe = progress_observe;
    progress_begin("tuck explain");
    st = explain_graph(g, &o, &run, x->in.diags, &e);
    progress_end();
    print_diags(x->in.diags);
    code = st == TUCK_EINVAL ? EXIT_REFUSED : exit_code_of(st);
    if (code == EXIT_FINE && !x->json && x->node == NULL)
        printf("%s on %s%s\n", *tuck_graph_name(g) ? tuck_graph_name(g) : "forward",
               tuck_cluster_name(x->model.cluster),
               assumed ? " (assumed; --cluster names another)" : "");
    if (code == EXIT_FINE)
        code = print(x, &e, &o);
    explain_end(&e);
    free(hint);
    return code;
}

int cmd_explain(int argc, char **argv)
{
    struct explain x = {.top = 10};
    size_t from = 0, to = 0;

    argp_parse(&argp, argc, argv, 0, NULL, &x);
    int code = input_open(&x.in);
    if (code == EXIT_FINE)
        code = input_range(&x.in, &from, &to);
    if (code == EXIT_FINE)
        code = model_open(&x.model, x.in.diags);
    if (code == EXIT_FINE)
        input_warn_groups(&x.in);
    for (size_t i = from; code == EXIT_FINE && i < to; i++)
        code = explain(&x, tuck_doc_graph(x.in.doc, i));
    model_close(&x.model);
    input_close(&x.in);
    return code;
}

/* tuck explain: why communication is exposed, and what would help. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/graphs.h"
#include "cli/job_input.h"
#include "cli/keep_memory.h"
#include "cli/progress.h"

enum { OPT_CONTENTION = 0x7A0, OPT_DECISION };

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "Everything, as JSON", 0},
    {"top", OPT_TOP, "N", 0, "Show the N most exposed collectives (10)", 0},
    {"keep-order", OPT_KEEP_ORDER, NULL, 0, "No collective may pass another, even of another group",
     0},
    {"contention", OPT_CONTENTION, NULL, 0,
     "Concurrent collectives share their link, and kernels run slower next to them", 0},
    {"decision", OPT_DECISION, "FILE", 0,
     "With NODE: what tuck optimize --decision wrote for this graph; why NODE is in its bucket", 0},
    {NULL, 0, NULL, 0, "The graph:", 1},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct question *x = state->input;

    if (key == OPT_KEEP_ORDER) {
        x->model.keep_order = true;
        return 0;
    }
    if (key == OPT_DECISION) {
        x->decision = arg;
        return 0;
    }
    if (key == ARGP_KEY_END && x->decision != NULL && x->word == NULL)
        argp_error(state, "--decision is about one collective: name it after the file");
    if (key == OPT_CONTENTION) {
        x->model.contention = true;
        return 0;
    }
    return question_parse(x, "one node only", key, arg, state);
}

static const struct argp argp = {
    options,
    parse,
    "FILE|FOLDER|LOG... [NODE]",
    "Explain where a step loses time: each collective with its cost, how much of it is exposed, "
    "what limits it, and what would help, tried by simulating it. With NODE, only that one. Of a "
    "folder, an archive or logs, forward and backward are one step; --rank picks one of several "
    "ranks.",
    question_children,
    NULL,
    NULL};

static tuck_status print(const void *result, const tuck_print_options *how, tuck_write_fn write,
                         void *ctx)
{
    return tuck_explanation_print(result, how, write, ctx);
}

static void add_word(FILE *f, const char *option, const char *word)
{
    bool plain = *word != '\0' && word[strcspn(word, " '\"\\$*?;&|<>()[]{}~#!`\t\n")] == '\0';

    fprintf(f, plain ? " %s%s%s" : " %s%s'%s'", option, *option ? " " : "", word);
}

/* The file and its options, as on a command line. NULL if out of memory. */
static char *subject_of(const struct question *x)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    if (f == NULL)
        return NULL;
    add_word(f, "", x->in.path);
    for (size_t i = 0; i < x->in.n_more; i++)
        add_word(f, "", x->in.more[i]);
    if (x->in.job != NULL && x->in.graph_word != NULL)
        add_word(f, "--graph", x->in.graph_word);
    else if (x->in.graph >= 0)
        fprintf(f, " --graph %ld", x->in.graph);
    if (x->in.rank >= 0)
        fprintf(f, " --rank %ld", x->in.rank);
    for (size_t i = 0; i < x->in.n_group; i++)
        add_word(f, "--group", x->in.group[i]);
    for (size_t i = 0; i < x->in.n_assume; i++)
        add_word(f, "--assume", x->in.assume[i]);
    if (x->model.cluster_name != NULL)
        add_word(f, "--cluster", x->model.cluster_name);
    if (x->model.kind != TUCK_MODEL_AUTO)
        add_word(f, "--model", tuck_cost_model_name(x->model.kind));
    if (x->model.profile_path != NULL)
        add_word(f, "--profile", x->model.profile_path);
    if (x->model.keep_order)
        fputs(" --keep-order", f);
    if (x->model.contention)
        fputs(" --contention", f);
    fclose(f);
    return text;
}

static int ask(struct question *x, tuck_graph *g, tuck_explanation **out)
{
    tuck_machine machine;
    tuck_explain_options o;
    char *subject = subject_of(x);

    model_public(&x->model, &x->in, &machine);
    tuck_explain_options_init(&o);
    o.node = x->word;
    o.subject = subject != NULL ? subject + 1 : NULL; /* after the first space */
    o.order = x->model.keep_order ? TUCK_ORDER_OF_ALL : TUCK_ORDER_FREE;
    o.observe = progress_observe;
    tuck_decision *decision = NULL;
    tuck_status st = x->decision == NULL
                         ? TUCK_OK
                         : tuck_decision_read_file(x->decision, NULL, x->in.diags, &decision);
    o.decision = decision;
    progress_begin("tuck explain");
    if (st == TUCK_OK)
        st = tuck_graph_explain(g, &machine, &o, x->in.diags, out);
    progress_end();
    tuck_decision_free(decision);
    print_diags(x->in.diags);
    free(subject);
    return refused_or(st);
}

static int explain(struct question *x, size_t i, struct graph_list *list)
{
    tuck_graph *g = tuck_doc_graph(x->in.doc, i);
    tuck_explanation *e = NULL;
    tuck_print_options how;
    bool assumed;
    tuck_status st = tuck_graph_infer(g, TUCK_TRUST_ANNOTATIONS, x->in.diags);
    int code = st == TUCK_OK ? model_for(&x->model, &x->in, g, &assumed) : exit_code_of(st);

    if (code == EXIT_FINE)
        code = ask(x, g, &e);
    if (code == EXIT_FINE && x->word != NULL && !tuck_explanation_has(e, x->word)) {
        fprintf(stderr, "tuck explain: no op has a node '%s' (views and inputs take no time)\n",
                x->word);
        code = EXIT_USAGE;
    }
    if (code == EXIT_FINE && !x->list.json)
        put_part(&x->in, i);
    if (code == EXIT_FINE && !x->list.json && x->word == NULL)
        put_machine(&x->model, g, assumed);
    listing_how(&x->list, &how);
    how.measured = model_measured(&x->model);
    if (x->in.job != NULL)
        how.detail |= TUCK_DETAIL_ORIGINS;
    if (code == EXIT_FINE)
        code = graph_list_show(list, i, 0, &how, print, e);
    tuck_explanation_free(e);
    return code;
}

int cmd_explain(int argc, char **argv)
{
    struct question x = {.list.top = 10,
                         .in = {.job_as = JOB_STEPS, .job_logs = true, .job_many = true}};
    struct graph_list list;
    size_t from = 0, to = 0;

    keep_memory();
    options_parse(&argp, argc, argv, &x);
    int code = model_input_open(&x.model, &x.in, &from, &to);
    if (x.in.job != NULL && x.in.doc == tuck_job_steps(x.in.job) && to > from)
        to = from + 1; /* the other ranks run the same: tuck simulate shows them together */
    graph_list_begin(&list, &x.in, "graphs", x.list.json && to - from > 1);
    for (size_t i = code == EXIT_FINE ? from : to; graph_go_on(code) && i < to; i++)
        code = graph_with(&x.in, i, code, explain(&x, i, &list));
    graph_list_end(&list);
    model_close(&x.model);
    input_close(&x.in);
    return code;
}

/* tuck show: describes a graph, or prints it in another form. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/graphs.h"

enum { AS_SUMMARY, AS_TEXT, AS_CODE, AS_EXEC, AS_JSON, AS_DOT, AS_SEQUENCE };

struct show {
    struct input in;
    int form;
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "One of these instead of the summary:", 0},
    {"text", 't', NULL, 0, "The graph as it was read, byte for byte", 0},
    {"code", 'c', NULL, 0, "As gm.code prints it: a bare function without annotations", 0},
    {"exec", 'x', NULL, 0, "Python for exec(), with the globals it needs in comments at the top",
     0},
    {"json", 'j', NULL, 0, "Everything about every node, as JSON", 0},
    {"dot", 'd', NULL, 0, "Graphviz: tuck show --dot F | dot -Tsvg -o f.svg", 0},
    {"sequence", 's', NULL, 0,
     "The sequence of communication, a line for each collective, and its digest", 0},
    {NULL, 0, NULL, 0, "The graph:", 1},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    static const char keys[] = "tcxjds";
    struct show *s = state->input;
    const char *at = key > 0 && key < 128 ? strchr(keys, key) : NULL;

    (void)arg;
    if (key == ARGP_KEY_INIT) {
        state->child_inputs[0] = &s->in;
        return 0;
    }
    if (at == NULL)
        return ARGP_ERR_UNKNOWN;
    if (s->form != AS_SUMMARY)
        argp_error(state, "one form at a time");
    s->form = AS_TEXT + (int)(at - keys);
    return 0;
}

static const struct argp_child children[] = {{&input_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
    options,
    parse,
    "FILE|FOLDER",
    "Show the graphs of FILE: a dump of print_readable, tlparse or TORCH_LOGS, gm.code, a runnable "
    "script, str(graph). Of a FOLDER of TORCH_TRACE, TORCH_COMPILE_DEBUG or tuck.torch.capture(), "
    "of an archive of one, or of several logs: the contents, which graphs make up a step and which "
    "are passed over.",
    children,
    NULL,
    NULL};

/* ---- the command ---- */

/* The contents of a folder. */
static int show_job(struct show *s)
{
    tuck_print_options how = print_how(s->form == AS_JSON);

    return exit_code_of(tuck_job_print(s->in.job, s->in.path, &how, to_file, stdout));
}

static int describe(struct show *s, size_t from, size_t to)
{
    tuck_describe_options o = {.size = sizeof(o),
                               .file = s->in.path,
                               .from = from,
                               .count = to - from,
                               .hints = s->in.hints,
                               .n_hints = s->in.n_hint};
    tuck_print_options how = print_how(s->form == AS_JSON);
    tuck_description *d = NULL;
    tuck_status st = tuck_doc_describe(s->in.doc, &o, &d);

    if (st == TUCK_OK)
        st = tuck_description_print(d, &how, to_file, stdout);
    tuck_description_free(d);
    if (s->form == AS_SUMMARY)
        input_warn_groups(&s->in);
    return exit_code_of(st);
}

/* The same on every rank of a job, or the ranks wait for each other forever. */
static int show_sequence(struct show *s, size_t from, size_t to)
{
    tuck_machine machine;
    tuck_status st = TUCK_OK;

    tuck_machine_init(&machine);
    machine.hints = s->in.hints;
    machine.n_hints = s->in.n_hint;
    for (size_t i = from; i < to && st == TUCK_OK; i++) {
        tuck_graph *g = tuck_doc_graph(s->in.doc, i);
        char digest[TUCK_DIGEST_TEXT];

        if (to - from > 1)
            put_graph(&s->in, i);
        st = tuck_graph_sequence_print(g, &machine, to_file, stdout);
        if (st == TUCK_OK)
            st = tuck_graph_sequence_digest(g, &machine, digest);
        if (st == TUCK_OK)
            printf("digest %s\n", digest);
    }
    return exit_code_of(st);
}

static int show_form(struct show *s, size_t from, size_t to)
{
    static const tuck_form forms[] = {
        [AS_TEXT] = TUCK_FORM_TEXT, [AS_CODE] = TUCK_FORM_CODE, [AS_EXEC] = TUCK_FORM_EXEC};
    tuck_status st = TUCK_OK;

    if (s->form == AS_DOT) {
        for (size_t i = from; i < to && st == TUCK_OK; i++)
            st = tuck_graph_dot(tuck_doc_graph(s->in.doc, i), to_file, stdout);
    } else if (s->in.graph < 0) {
        st = tuck_doc_print(s->in.doc, forms[s->form], s->in.diags, to_file, stdout);
    } else {
        st = tuck_graph_print(tuck_doc_graph(s->in.doc, from), forms[s->form], s->in.diags, to_file,
                              stdout);
    }
    print_diags(s->in.diags);
    return exit_code_of(st);
}

int cmd_show(int argc, char **argv)
{
    struct show s = {.form = AS_SUMMARY, .in.job_many = true};
    size_t from, to;

    options_parse(&argp, argc, argv, &s);
    int code = input_open(&s.in);
    if (code == EXIT_FINE)
        code = input_range(&s.in, &from, &to);
    if (code == EXIT_FINE && s.in.job != NULL && s.in.graph < 0 && !s.in.each &&
        (s.form == AS_SUMMARY || s.form == AS_JSON)) {
        code = show_job(&s);
        input_close(&s.in);
        return code;
    }
    if (code == EXIT_FINE && (s.form == AS_SUMMARY || s.form == AS_JSON))
        code = input_infer(&s.in, false);
    if (code == EXIT_FINE)
        code = s.form == AS_SUMMARY || s.form == AS_JSON ? describe(&s, from, to)
               : s.form == AS_SEQUENCE                   ? show_sequence(&s, from, to)
                                                         : show_form(&s, from, to);
    input_close(&s.in);
    return code;
}

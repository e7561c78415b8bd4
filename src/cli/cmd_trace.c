/* tuck trace: what a profiler's trace says. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/output.h"

enum { OPT_HTML = 0x770, OPT_TRACE, OPT_STEP };

struct traces {
    const char **path;
    size_t n;
    struct listing list;
    const char *html, *trace;
    int64_t step;
};

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "Everything, as JSON", 0},
    {"top", OPT_TOP, "N", 0, "Show the N most exposed collectives and longest kernels (10)", 0},
    {NULL, 0, NULL, 0, "Pictures of one step:", 1},
    {"html", OPT_HTML, "FILE", 0, "A page to look at: the timeline, every collective", 1},
    {"trace", OPT_TRACE, "FILE", 0, "The timeline for Perfetto, only what matters of it", 1},
    {"step", OPT_STEP, "N", 0, "Which step to draw (default: the one of median time)", 1},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct traces *x = state->input;

    switch (key) {
    case OPT_HTML: x->html = arg; return 0;
    case OPT_TRACE: x->trace = arg; return 0;
    case OPT_STEP: x->step = option_number(state, "--step", arg, 0, INT64_MAX); return 0;
    case ARGP_KEY_ARG: option_append(state, &x->path, &x->n, arg); return 0;
    case ARGP_KEY_END:
        if (x->n == 0)
            argp_error(state, "a trace is missing");
        return 0;
    default: return listing_parse(&x->list, key, arg, state);
    }
}

static const struct argp argp = {
    options,
    parse,
    "TRACE|FOLDER...",
    "What torch.profiler recorded, one file per rank, plain or gzip, or the folder with all of "
    "them: for each step the time that "
    "computes, communicates, is exposed and idle; every collective with its bandwidth, its "
    "exposure and, with several ranks, how long it waited for the last of them.",
    NULL,
    NULL,
    NULL};

/* html: a page; else a trace for Perfetto. */
static int draw(const struct traces *x, tuck_traces *t, const char *path, bool html)
{
    struct output o;
    int code = output_open(&o, path);

    if (code != EXIT_FINE)
        return code;
    tuck_status st = html ? tuck_traces_html(t, x->path[0], x->step, output_put, &o)
                          : tuck_traces_perfetto(t, x->step, output_put, &o);
    if (st == TUCK_EINVAL) {
        if (x->step >= 0)
            fprintf(stderr, "tuck trace: some trace has no step %lld\n", (long long)x->step);
        else
            fprintf(stderr, "tuck trace: there is nothing to draw\n");
        return output_close(&o, EXIT_USAGE);
    }
    return output_close(&o, exit_code_of(st));
}

static int show(struct traces *x, tuck_traces *t)
{
    tuck_print_options how;
    int code = EXIT_FINE;

    listing_how(&x->list, &how);
    code = exit_code_of(tuck_traces_print(t, &how, to_file, stdout));
    if (code == EXIT_FINE && x->html != NULL)
        code = draw(x, t, x->html, true);
    if (code == EXIT_FINE && x->trace != NULL)
        code = draw(x, t, x->trace, false);
    return code;
}

int traces_open(const char *const *path, size_t n, tuck_diags *diags, tuck_traces **out)
{
    int code = diags != NULL ? exit_code_of(tuck_traces_new(NULL, out)) : exit_code_of(TUCK_ENOMEM);

    for (size_t i = 0; i < n && code == EXIT_FINE; i++) {
        code = exit_code_of(tuck_traces_add_file(*out, path[i], diags));
        print_diags(diags);
    }
    return code;
}

int cmd_trace(int argc, char **argv)
{
    struct traces x = {.list.top = 10, .step = -1};
    tuck_traces *t = NULL;

    options_parse(&argp, argc, argv, &x);
    const struct output_name names[] = {{"--html", x.html}, {"--trace", x.trace}};
    tuck_diags *diags = tuck_diags_new(NULL);
    int code = outputs_apart(names, 2);
    if (code == EXIT_FINE)
        code = traces_open(x.path, x.n, diags, &t);
    if (code == EXIT_FINE)
        code = show(&x, t);
    tuck_traces_free(t);
    if (diags != NULL)
        tuck_diags_free(diags);
    free(x.path);
    return code;
}

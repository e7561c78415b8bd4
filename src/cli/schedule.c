/* tuck schedule: an order for a schedule problem. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "schedule/pipeline.h"
#include "schedule/report.h"

enum { OPT_PASSES = 0x100, OPT_SET, OPT_COMPAT, OPT_JSON, OPT_WRITE, OPT_OVERLAP, OPT_LIST };

enum form { FORM_TABLE, FORM_JSON, FORM_PROBLEM, FORM_OVERLAP };

struct args {
    const char *path, *passes, *compat;
    const char **set;
    size_t n_set;
    enum form form;
    bool list;
};

static const struct argp_option options[] = {
    {"passes", OPT_PASSES, "LIST", 0,
     "What to run: names separated by commas, options in parentheses (default: "
     "reorder_communication_preserving_peak_memory,sink_waits_iterative)",
     0},
    {"set", OPT_SET, "NAME=VALUE", 0, "An option for all of them", 0},
    {"compat", OPT_COMPAT, "torch[,-NAME]", 0,
     "PyTorch's defaults and its slips, but for those that are named", 0},
    {NULL, 0, NULL, 0, "One of these instead of the tables:", 1},
    {"json", OPT_JSON, NULL, 0, "Order, peak and statistics as JSON", 1},
    {"overlap", OPT_OVERLAP, NULL, 0, "The new order as text, with what runs under what", 1},
    {"problem", OPT_WRITE, NULL, 0, "The problem again, with its ops in the new order", 1},
    {"list", OPT_LIST, NULL, 0, "The passes, their options and the slips; needs no file", 1},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;

    switch (key) {
    case OPT_PASSES: a->passes = arg; break;
    case OPT_COMPAT: a->compat = arg; break;
    case OPT_JSON: a->form = FORM_JSON; break;
    case OPT_WRITE: a->form = FORM_PROBLEM; break;
    case OPT_OVERLAP: a->form = FORM_OVERLAP; break;
    case OPT_LIST: a->list = true; break;
    case OPT_SET:
        if (strchr(arg, '=') == NULL)
            argp_error(state, "--set wants NAME=VALUE, found '%s'", arg);
        a->set[a->n_set++] = arg;
        break;
    case ARGP_KEY_ARG:
        if (a->path != NULL)
            argp_error(state, "one file only, found '%s' after '%s'", arg, a->path);
        a->path = arg;
        break;
    case ARGP_KEY_END:
        if (a->path == NULL && !a->list)
            argp_error(state, "which file? `-' is standard input");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp argp = {options,
                                 parse,
                                 "PROBLEM",
                                 "Reads a schedule problem (JSON, docs/scheduling.md), runs passes "
                                 "on it, and says what they did.",
                                 NULL,
                                 NULL,
                                 NULL};

static int list_all(void)
{
    struct schedule_options own, torch;
    char a[32], b[32];

    schedule_defaults(&own, false);
    schedule_defaults(&torch, true);
    puts("Passes:");
    for (size_t i = 0; i < n_schedule_passes; i++)
        printf("  %s\n      %s\n", schedule_passes[i].name, schedule_passes[i].help);
    puts("\nOptions (default; with --compat torch):");
    for (size_t i = 0; i < n_schedule_options; i++) {
        const struct schedule_option *x = &schedule_option_table[i];
        schedule_get(&own, x, a);
        schedule_get(&torch, x, b);
        printf("  %s (%s; %s)\n      %s\n", x->name, a, b, x->help);
    }
    puts("\nSlips of PyTorch, for --compat torch,-NAME:");
    for (size_t i = 0; i < n_schedule_slips; i++)
        printf("  %s\n      %s\n", schedule_slip_table[i].name, schedule_slip_table[i].help);
    return EXIT_FINE;
}

static int get_options(const struct args *a, struct schedule_options *o)
{
    char why[160];

    schedule_defaults(o, false);
    if (a->compat != NULL && !schedule_compat(o, a->compat, why)) {
        fprintf(stderr, "tuck: --compat %s\n", why);
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < a->n_set; i++) {
        const char *text = a->set[i], *value = strchr(text, '=') + 1;
        const struct schedule_option *x = schedule_find_option(text, (size_t)(value - 1 - text));
        if (x == NULL) {
            fprintf(stderr,
                    "tuck: --set %s: there is no such option; `tuck schedule --list' has them\n",
                    text);
            return EXIT_USAGE;
        }
        if (!schedule_set(o, x, value, strlen(value), why)) {
            fprintf(stderr, "tuck: --set %s\n", why);
            return EXIT_USAGE;
        }
    }
    return EXIT_FINE;
}

struct print {
    struct schedule *s;
    const struct args *a;
    struct buf out;
};

static void do_print(void *ctx)
{
    struct print *x = ctx;

    switch (x->a->form) {
    case FORM_TABLE: report_table(x->s, &x->out); break;
    case FORM_JSON:
        report_json(x->s, strstr(x->a->passes, "decide_global_ordering_of_comms") != NULL, &x->out);
        break;
    case FORM_OVERLAP: report_overlap(x->s, &x->out); break;
    case FORM_PROBLEM: problem_write(x->s->p, x->s->order, &x->out); break;
    }
    buf_flush(&x->out);
}

static int print(struct schedule *s, const struct args *a)
{
    struct print x = {.s = s, .a = a};

    buf_to(&x.out, &s->mem, to_stdout, NULL);
    bool ok = mem_guard(&s->mem, do_print, &x);
    buf_destroy(&x.out);
    return ok ? EXIT_FINE : exit_code_of(TUCK_ENOMEM);
}

static int run(const struct args *a, const struct problem *p)
{
    struct schedule_options o;
    struct schedule s;
    char why[256];
    int code = get_options(a, &o);

    if (code != EXIT_FINE)
        return code;
    if (!schedule_begin(&s, p, &o))
        return exit_code_of(TUCK_ENOMEM);
    tuck_status st = pipeline_run(&s, a->passes, why);
    if (st == TUCK_EINVAL)
        fprintf(stderr, "tuck: --passes: %s\n", why);
    code = st == TUCK_OK ? print(&s, a) : exit_code_of(st);
    schedule_end(&s);
    return code;
}

int cmd_schedule(int argc, char **argv)
{
    struct args a = {.passes = "reorder_communication_preserving_peak_memory,sink_waits_iterative"};
    struct problem *p = NULL;

    a.set = calloc((size_t)argc + 1, sizeof(*a.set));
    tuck_diags *diags = tuck_diags_new(NULL);
    if (a.set == NULL || diags == NULL) {
        free(a.set);
        tuck_diags_free(diags);
        return exit_code_of(TUCK_ENOMEM);
    }
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    int code = EXIT_FINE;
    if (a.list) {
        code = list_all();
    } else {
        tuck_status st = problem_read_file(a.path, NULL, diags, &p);
        print_diags(diags);
        code = st == TUCK_OK ? run(&a, p) : exit_code_of(st);
    }
    problem_free(p);
    tuck_diags_free(diags);
    free(a.set);
    return code;
}

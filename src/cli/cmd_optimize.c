/* tuck optimize: run passes over the graphs of a file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/graphs.h"
#include "cli/keep_memory.h"
#include "cli/optimize_ranks.h"
#include "cli/optimizing.h"
#include "cli/progress.h"

enum {
    OPT_FILE = 0x300,
    OPT_SET,
    OPT_REPORT,
    OPT_DUMP,
    OPT_DOT,
    OPT_NO_TIMES,
    OPT_MEMORY,
    OPT_EFFORT,
    OPT_CONTENTION,
    OPT_STATS,
    OPT_DECISION,
    OPT_APPLY,
    OPT_BANDWIDTH,
    OPT_VERIFY,
    OPT_TRIES,
    OPT_PROGRESS
};

static const struct argp_option options[] = {
    {"passes", 'p', "LIST", 0, "Passes with their options: 'a(x=1),b'; `tuck passes` lists them",
     0},
    {"passes-file", OPT_FILE, "FILE", 0, "The same from a file: one pass per line, # comments", 0},
    {"set", OPT_SET, "KEY=VALUE", OPTION_MANY, "A key of PyTorch's configuration; may be repeated",
     0},
    {"keep-order", OPT_KEEP_ORDER, NULL, 0,
     "No collective may pass another, and Tuck's own passes merge none (default: they may: right "
     "if all ranks run the same graph)",
     0},
    {"output", 'o', "FILE", 0,
     "The resulting text (default: standard output); of several files a folder for all, or names "
     "with % for the rank: out/rank%.txt",
     0},
    {"json", 'j', NULL, 0, "The report as JSON instead of a table", 0},
    {"brief", 'b', NULL, 0, "The report with one line per pass", 0},
    {"report", OPT_REPORT, "FILE", 0,
     "Write the report there (default: standard output with -o, else standard error)", 0},
    {"no-times", OPT_NO_TIMES, NULL, 0,
     "Omit times from the report: those of passes, and with --passes the step before and "
     "after",
     0},
    {"memory", OPT_MEMORY, "SIZE", 0,
     "The peak that the result may have: 40GiB, or an increase over the graph's own: +5%, +512MiB "
     "(default: its own)",
     0},
    {"effort", OPT_EFFORT, "N", 0,
     "How much is tried, from 0 (a fraction of a second) to 9 (default: 5); the same on every "
     "machine",
     0},
    {"tries", OPT_TRIES, "N", 0,
     "Stop after N tries and take the best; Ctrl-C does so at once, and the report names N", 0},
    {"progress", OPT_PROGRESS, NULL, 0,
     "The best so far each second, also if standard error is no terminal", 0},
    {"contention", OPT_CONTENTION, NULL, 0,
     "Judge with concurrent collectives sharing their link, and kernels running slower next to "
     "them",
     0},
    {"bandwidth", OPT_BANDWIDTH, "Fx", 0, "Link speed factor: 0.5x is half as fast", 0},
    {"stats", OPT_STATS, NULL, 0, "How many graphs were lowered and simulated, below the report",
     0},
    {"decision", OPT_DECISION, "FILE", 0,
     "Write what was decided (passes, orders, buckets, what it promises) for --apply, as JSON", 0},
    {"apply", OPT_APPLY, "FILE", 0,
     "Apply what --decision wrote for the same program, also with other names, instead of "
     "searching",
     0},
    {"verify", OPT_VERIFY, "N", 0,
     "Run the graph before and after on N real ranks with the same inputs and compare what they "
     "return; if that differs by more than rounding, nothing is written and the exit status is 1",
     0},
    {"dump", OPT_DUMP, "DIR", 0,
     "Write the graph before and after each pass into DIR; of Tuck's own passes, all that is tried",
     0},
    {"dump-dot", OPT_DOT, NULL, 0, "... as DOT instead of text", 0},
    {NULL, 0, NULL, 0, "The graph:", 1},
    {0},
};

/* Adds a line to the pipeline. */
static void add_text(struct argp_state *state, struct optimize *o, const char *s, size_t len)
{
    if (o->len + len + 2 > o->cap) {
        o->cap = (o->len + len + 2) * 2;
        char *more = realloc(o->text, o->cap);
        if (more == NULL)
            argp_failure(state, EXIT_MEMORY, ENOMEM, "options");
        o->text = more;
    }
    memcpy(o->text + o->len, s, len);
    o->len += len;
    o->text[o->len++] = '\n';
}

/* 40GiB, +512MiB, +5% */
static void parse_memory(struct argp_state *state, struct optimize *o, const char *arg)
{
    const char *number = arg + (*arg == '+');
    size_t len = strlen(number);
    char *end;

    if (o->memory_given)
        argp_error(state, "--memory is given twice");
    o->memory_given = true;
    if (*arg == '+' && len > 1 && number[len - 1] == '%') {
        double v = strtod(number, &end);
        if (end == number + len - 1 && *number >= '0' && *number <= '9' && v >= 0 && v <= 1e6) {
            o->memory_share = v / 100;
            return;
        }
    } else {
        int64_t bytes = tuck_parse_bytes(number);
        if (*arg == '+' ? bytes >= 0 : bytes > 0) {
            *(*arg == '+' ? &o->memory_more : &o->memory) = bytes;
            return;
        }
    }
    argp_error(
        state,
        "--memory wants a peak such as 40GiB, or an increase such as +5%% or +512MiB, found '%s'",
        arg);
}

/* Several files are one decision for several ranks. */
static void check_several(struct argp_state *state, const struct optimize *o)
{
    if (o->passes != NULL || o->file != NULL || o->len > 0 || o->apply != NULL)
        argp_error(state, "several files are one decision of Tuck's own passes; --passes and "
                          "--apply are for one file");
    if (o->dump.folder != NULL || picture_wanted(&o->picture))
        argp_error(state, "--dump, --html and --trace are for one rank");
    if (o->in.rank >= 0)
        argp_error(state, "--rank is for one file; several files give their own ranks");
    if (o->verify > 0)
        argp_error(state, "--verify is for one file; `tuck verify' takes a file of each rank");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct optimize *o = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->in;
        state->child_inputs[1] = &o->model;
        state->child_inputs[2] = &o->picture;
        break;
    case 'p': o->passes = arg; break;
    case OPT_FILE: o->file = arg; break;
    case OPT_SET:
        if (strchr(arg, '=') == NULL)
            argp_error(state, "--set wants KEY=VALUE, found '%s'", arg);
        add_text(state, o, arg, strlen(arg));
        break;
    case 'o': o->out = arg; break;
    case 'j':
    case 'b':
        if (o->form != TUCK_PRINT_TABLE)
            argp_error(state, "--json and --brief cannot be combined");
        o->form = key == 'j' ? TUCK_PRINT_JSON : TUCK_PRINT_BRIEF;
        break;
    case OPT_REPORT: o->report = arg; break;
    case OPT_MEMORY: parse_memory(state, o, arg); break;
    case OPT_EFFORT: o->effort = option_number(state, "--effort", arg, 0, 9); break;
    case OPT_TRIES: o->tries = option_number(state, "--tries", arg, 1, UINT32_MAX); break;
    case OPT_PROGRESS: progress_ask(); break;
    case OPT_DUMP: o->dump.folder = arg; break;
    case OPT_KEEP_ORDER: o->model.keep_order = true; break;
    case OPT_CONTENTION: o->model.contention = true; break;
    case OPT_DOT: o->dump.dot = true; break;
    case OPT_NO_TIMES: o->no_times = true; break;
    case OPT_STATS: o->stats = true; break;
    case OPT_BANDWIDTH:
        o->bandwidth = option_factor(state, "--bandwidth wants a factor such as 0.5x", arg, 1e6);
        break;
    case ARGP_KEY_ARG:
        if (o->in.path == NULL)
            return ARGP_ERR_UNKNOWN; /* the first file belongs to the child parser */
        option_append(state, &o->more, &o->n_more, arg);
        break;
    case OPT_DECISION: o->decision = arg; break;
    case OPT_APPLY: o->apply = arg; break;
    case OPT_VERIFY: o->verify = option_number(state, "--verify", arg, 1, 1024); break;
    case ARGP_KEY_END:
        if (o->apply != NULL && (o->memory_given || o->decision != NULL || o->passes != NULL ||
                                 o->file != NULL || o->len > 0))
            argp_error(state, "--apply says what is done: it cannot be combined with passes, "
                              "--memory or --decision");
        if (o->memory_given && (o->passes != NULL || o->file != NULL || o->len > 0))
            argp_error(
                state,
                "--memory is for Tuck's own passes; the passes of --passes have their own budgets");
        if ((o->effort >= 0 || o->tries > 0) &&
            (o->passes != NULL || o->file != NULL || o->len > 0))
            argp_error(state, "--effort and --tries are for Tuck's own passes, not for those of "
                              "--passes");
        if (o->dump.dot && o->dump.folder == NULL)
            argp_error(state, "--dump-dot needs --dump");
        if (o->n_more > 0)
            check_several(state, o);
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp_child children[] = {
    {&input_argp, 0, NULL, 0},
    {&model_argp, 0, "The machine, for passes on schedules:", 2},
    {&picture_argp, 0, "Pictures, before and after:", 3},
    {0}};
static const struct argp argp = {
    options,
    parse,
    "FILE [FILE...]|FOLDER|LOG",
    "Run passes over the graphs of FILE and print the result in the syntax it was read in, with a "
    "report of what each pass did and what it left alone. With no passes given, Tuck's own are "
    "tried and the result is judged by simulating it: never slower, never more memory than "
    "--memory allows. Several files are the graphs of several ranks, which get one decision: where "
    "their programs differ, the order of communication is kept. Of a folder, an archive or a log, "
    "the "
    "graphs of a step are optimized one by one, the same way on all ranks, and shown as one step; "
    "-o is then a folder.\v"
    "If a pass fails, nothing is written, and the exit status is non-zero.",
    children,
    NULL,
    NULL};

/* ---- the pipeline ---- */

static int parse_one(const char *text, size_t len, const char *name, struct optimize *o,
                     tuck_pipeline **out)
{
    tuck_status st = tuck_pipeline_parse(text, len, name, NULL, o->in.diags, out);

    print_diags(o->in.diags);
    return exit_code_of(st);
}

/* Keys of --set apply to the passes of --passes and --passes-file: one text. */
static int read_pipeline(struct optimize *o, tuck_pipeline **out)
{
    char *whole = NULL;
    size_t n = 0, cap = 0;
    FILE *f = NULL;

    if (o->len == 0 && o->passes != NULL && o->file == NULL)
        return parse_one(o->passes, strlen(o->passes), "--passes", o, out);
    FILE *mem = open_memstream(&whole, &cap);
    if (mem == NULL)
        return exit_code_of(TUCK_ENOMEM);
    if (o->len > 0)
        fwrite(o->text, 1, o->len, mem);
    if (o->passes != NULL)
        fprintf(mem, "%s\n", o->passes);
    if (o->file != NULL) {
        char part[4096];
        f = open_to_read(o->file);
        if (f == NULL) {
            int code = complain(o->file);
            fclose(mem);
            free(whole);
            return code;
        }
        while ((n = fread(part, 1, sizeof(part), f)) > 0)
            fwrite(part, 1, n, mem);
        bool broken = ferror(f) != 0;
        fclose(f);
        if (broken) {
            fclose(mem);
            free(whole);
            errno = EIO;
            return complain(o->file);
        }
    }
    fclose(mem);
    const char *name = o->passes      ? "--passes"
                       : o->len == 0  ? o->file
                       : o->file == 0 ? "--set"
                                      : "--set and --passes-file";
    int code = parse_one(whole, cap, name, o, out);
    free(whole);
    return code;
}

/* ---- running ---- */

static tuck_status print_report(const struct optimize *o, const tuck_report *t, size_t graph,
                                tuck_print_options *how, tuck_write_fn write, void *ctx)
{
    tuck_status st = how->form == TUCK_PRINT_JSON
                         ? TUCK_OK
                         : graph_title(&o->in, graph, how->color, write, ctx);

    return st == TUCK_OK ? tuck_report_print(t, how, write, ctx) : st;
}

static tuck_print_options print_options(const struct optimize *o)
{
    tuck_print_options how;

    tuck_print_options_init(&how);
    how.form = o->form;
    how.detail = o->no_times ? TUCK_DETAIL_NONE : TUCK_DETAIL_TIMES;
    how.detail |= o->stats ? TUCK_DETAIL_STATS : TUCK_DETAIL_NONE;
    how.detail |= o->is_part ? TUCK_DETAIL_PART : TUCK_DETAIL_NONE;
    return how;
}

/* The reports of all graphs, one after the other; one JSON document. */
static tuck_status print_all(const struct optimize *o, tuck_report *const *t, size_t from, size_t n,
                             tuck_color color, uint32_t width, tuck_write_fn write, void *ctx)
{
    tuck_print_options how;
    tuck_print_item item;
    tuck_status st = TUCK_OK;
    bool many = n > 1 && o->form == TUCK_PRINT_JSON;

    how = print_options(o);
    how.color = color;
    how.width = width;
    for (size_t i = 0; i < n && st == TUCK_OK; i++) {
        graph_item(&o->in, "graphs", i, from + i, &item);
        how.item = many ? &item : NULL;
        st = print_report(o, t[i], from + i, &how, write, ctx);
    }
    return many && st == TUCK_OK ? tuck_print_items_end(write, ctx) : st;
}

int optimize_write_reports(const struct optimize *o, tuck_report *const *t, size_t from, size_t n)
{
    struct output f;

    if (o->report == NULL && o->out == NULL)
        return exit_code_of(print_all(o, t, from, n, out_color(stderr) ? TUCK_COLORED : TUCK_PLAIN,
                                      out_width(stderr), to_file, stderr));
    int code = output_open(&f, o->report);
    if (code != EXIT_FINE)
        return code;
    bool color = f.name == NULL && out_color(stdout);
    tuck_status st = print_all(o, t, from, n, color ? TUCK_COLORED : TUCK_PLAIN,
                               f.name == NULL ? out_width(stdout) : 0, output_put, &f);
    return output_close(&f, exit_code_of(st));
}

/* Sets up the machine for judging passes, and checks that everything it needs is known. */
static int machine_for(struct optimize *o, tuck_graph *g)
{
    bool assumed;
    tuck_status st = tuck_graph_infer(g, TUCK_TRUST_ANNOTATIONS, NULL);

    int code = st == TUCK_OK ? model_for(&o->model, &o->in, g, &assumed) : exit_code_of(st);
    if (code == EXIT_FINE)
        put_tie(&o->model, stderr);
    return code;
}

/* Warns about what the times of a pipeline assume. With --strict everything must be known, even if
 * no pass uses it. */
static int check_known(struct optimize *o, const tuck_pipeline *p, tuck_graph *g)
{
    tuck_machine machine;
    tuck_simulation *s = NULL;
    bool timed = !o->no_times || tuck_pipeline_is_timed(p);

    if ((!timed && !o->model.strict) ||
        tuck_graph_infer(g, TUCK_TRUST_ANNOTATIONS, NULL) != TUCK_OK)
        return EXIT_FINE; /* errors in the graph are reported by the run */
    bool assumed;
    int code = model_for(&o->model, &o->in, g, &assumed);
    if (code != EXIT_FINE || !o->model.strict)
        return code;
    model_public(&o->model, &o->in, &machine);
    machine.bandwidth = o->bandwidth;
    code = refused_or(tuck_graph_simulate(g, &machine, o->in.diags, &s));
    print_diags(o->in.diags);
    tuck_simulation_free(s);
    return code;
}

static void run_options(const struct optimize *o, tuck_run_options *run)
{
    tuck_run_options_init(run);
    run->order = o->model.keep_order ? TUCK_ORDER_OF_ALL : TUCK_ORDER_FREE;
    run->judge = o->no_times ? TUCK_JUDGE_NOTHING : TUCK_JUDGE_RESULT;
    run->memory = o->memory;
    run->memory_more = o->memory_more;
    run->memory_share = o->memory_share;
    run->progress = progress_search;
    run->tries = (uint32_t)o->tries;
    if (o->effort >= 0)
        run->effort = (uint32_t)o->effort;
}

int optimize_run(struct optimize *o, const tuck_pipeline *p, size_t i, struct both *both,
                 tuck_report **report)
{
    struct input *in = &o->in;
    tuck_graph *g = tuck_doc_graph(in->doc, i);
    tuck_machine machine;
    tuck_run_options run;

    int code = p == NULL ? machine_for(o, g) : check_known(o, p, g);
    if (code != EXIT_FINE)
        return code;
    if (p != NULL)
        model_forget(&o->model);
    model_public(&o->model, in, &machine);
    machine.bandwidth = o->bandwidth;
    run_options(o, &run);
    run.machine = &machine;
    o->dump.graph = i;
    o->dump.n = 0;
    o->dump.numbered = p == NULL;
    run.observe = o->dump.folder ? dump_graph : progress_observe;
    run.ctx = &o->dump;
    run.decision_out = o->decision != NULL || o->verify > 1 ? &o->made : NULL;
    if (picture_wanted(&o->picture)) {
        run.before_out = &both->s[0];
        run.after_out = &both->s[1];
    }
    tuck_status st = o->given ? tuck_decision_apply(o->given, g, &run, in->diags, report)
                     : p      ? tuck_pipeline_run(p, g, &run, in->diags, report)
                              : tuck_graph_optimize(g, &run, in->diags, NULL, report);
    print_diags(in->diags);
    return o->dump.code != EXIT_FINE ? o->dump.code : refused_or(st);
}

/* Draws the step before and after, on the machine it was optimized for. If it could not be
 * simulated, this reports why. */
static int draw(struct optimize *o, size_t i, tuck_graph *before, struct both *both)
{
    static const char *const label[] = {"before", "after"};
    tuck_graph *g[] = {before, tuck_doc_graph(o->in.doc, i)};
    tuck_machine machine;
    int code = machine_for(o, before);

    model_public(&o->model, &o->in, &machine);
    machine.bandwidth = o->bandwidth;
    for (int k = 0; k < 2 && code == EXIT_FINE; k++)
        if (both->s[k] == NULL) {
            machine.like = k > 0 ? both->s[0] : NULL;
            code = refused_or(tuck_graph_simulate(g[k], &machine, o->in.diags, &both->s[k]));
            print_diags(o->in.diags);
        }
    if (code != EXIT_FINE)
        return code;
    code = picture_add(&o->picture, &o->in, i, both->s, label, 2);
    *both = (struct both){{NULL}};
    return code;
}

static int run_and_draw(struct optimize *o, const tuck_pipeline *p, size_t i, tuck_report **report)
{
    struct both both = {{NULL}};
    tuck_graph *before = NULL;
    int code = EXIT_FINE;

    if (picture_wanted(&o->picture) || o->verify > 0)
        code = exit_code_of(tuck_graph_copy(tuck_doc_graph(o->in.doc, i), &before));
    if (code == EXIT_FINE)
        code = optimize_run(o, p, i, &both, report);
    if (code == EXIT_FINE && o->verify > 0)
        code = optimize_verify(o, i, before);
    if (code == EXIT_FINE && picture_wanted(&o->picture))
        code = draw(o, i, before, &both);
    tuck_simulation_free(both.s[1]);
    tuck_simulation_free(both.s[0]);
    tuck_graph_free(before);
    return code;
}

/* A report as text says it; people do not read JSON, and programs that do have `over_limit`. */
static int over_limit(const struct optimize *o, const tuck_gain *gain)
{
    const double mib = 1024 * 1024;

    if (o->form == TUCK_PRINT_JSON && (o->report != NULL || o->out != NULL))
        fprintf(stderr,
                "tuck optimize: nothing that was tried fits into %.2f MiB: nothing is written\n",
                (double)gain->memory_limit / mib);
    return EXIT_REFUSED;
}

/* Writes nothing before every graph is done. */
static int run_on_all(struct optimize *o, const tuck_pipeline *p, size_t from, size_t to)
{
    tuck_report **report = calloc(to - from + 1, sizeof(*report));
    tuck_gain gain;
    int code = EXIT_FINE;

    if (report == NULL)
        return exit_code_of(TUCK_ENOMEM);
    progress_begin("tuck optimize");
    if (p == NULL && o->given == NULL)
        progress_stoppable();
    for (size_t i = from; code == EXIT_FINE && i < to; i++)
        code = run_and_draw(o, p, i, &report[i - from]);
    progress_end();
    if (code == EXIT_FINE)
        code = optimize_write_reports(o, report, from, to - from);
    /* A graph over the memory limit does not meet the request. */
    for (size_t i = from; i < to && code == EXIT_FINE; i++)
        if (tuck_report_gain(report[i - from], &gain) && gain.over_limit)
            code = over_limit(o, &gain);
    for (size_t i = from; i < to; i++)
        tuck_report_free(report[i - from]);
    free(report);
    return code;
}

/* A decision is about one graph. */
static int check_one(const struct optimize *o, size_t n)
{
    if (n == 1 || (o->decision == NULL && o->apply == NULL))
        return EXIT_FINE;
    fprintf(stderr, "tuck optimize: %s has %zu graphs; --graph says which one %s is for\n",
            o->in.path, n, o->decision != NULL ? "--decision" : "--apply");
    return EXIT_USAGE;
}

static int read_decision(struct optimize *o)
{
    tuck_status st = tuck_decision_read_file(o->apply, NULL, o->in.diags, &o->given);

    print_diags(o->in.diags);
    return exit_code_of(st);
}

static int write_decision(const struct optimize *o)
{
    struct output f;
    int code = output_open(&f, o->decision);

    if (code != EXIT_FINE)
        return code;
    return output_close(&f, exit_code_of(tuck_decision_write(o->made, output_put, &f)));
}

static int write_graph(struct optimize *o)
{
    struct output f;
    int code = output_open(&f, o->out);

    if (code != EXIT_FINE)
        return code;
    tuck_status st = o->in.graph < 0
                         ? tuck_doc_print(o->in.doc, TUCK_FORM_TEXT, o->in.diags, output_put, &f)
                         : tuck_graph_print(tuck_doc_graph(o->in.doc, (size_t)o->in.graph),
                                            TUCK_FORM_TEXT, o->in.diags, output_put, &f);
    print_diags(o->in.diags);
    return output_close(&f, exit_code_of(st));
}

/* With -o the report goes to standard output, unless the graph goes there. */
static int check_outputs(struct optimize *o)
{
    if (o->out != NULL && (strcmp(o->out, "-") == 0 || file_same(o->out, "-")))
        o->out = NULL;
    const struct output_name all[] = {{"--output", o->out ? o->out : "-"},
                                      {"--report", o->report ? o->report
                                                   : o->out  ? "-"
                                                             : NULL},
                                      {"--html", o->picture.html},
                                      {"--trace", o->picture.trace},
                                      {"--decision", o->decision}};

    memcpy(o->dump.other, all, sizeof(all));
    o->dump.in = &o->in;
    return outputs_apart(all, sizeof(all) / sizeof(*all));
}

static int run_several(struct optimize *o)
{
    struct optimize_ranks r = {.in = &o->in,
                               .model = &o->model,
                               .more = o->more,
                               .n_more = o->n_more,
                               .out = o->out,
                               .report = o->report,
                               .decision = o->decision,
                               .bandwidth = o->bandwidth,
                               .how = print_options(o)};

    run_options(o, &r.run);
    r.run.observe = progress_observe;
    return optimize_ranks(&r);
}

/* One file: what is read, run, and written. */
static int run_one(struct optimize *o, size_t from, size_t to)
{
    tuck_pipeline *p = NULL;
    int code = EXIT_FINE;

    if (o->passes != NULL || o->file != NULL || o->len > 0)
        code = read_pipeline(o, &p);
    bool job = o->in.job != NULL && o->in.graph < 0 && !o->in.each;
    if (code == EXIT_FINE)
        code = job ? optimize_job_check(o) : check_one(o, to - from);
    if (code == EXIT_FINE && o->apply != NULL)
        code = read_decision(o);
    if (code == EXIT_FINE && o->dump.folder != NULL)
        code = dump_open(&o->dump);
    if (code == EXIT_FINE)
        code = input_remember(&o->in); /* so that files of --dump have it, too */
    if (code == EXIT_FINE)
        code = job ? optimize_job(o, p) : run_on_all(o, p, from, to);
    if (code == EXIT_FINE)
        code = input_remember(&o->in);
    if (code == EXIT_FINE && o->decision != NULL)
        code = write_decision(o);
    if (code == EXIT_FINE)
        code = job ? optimize_job_write(o) : write_graph(o);
    tuck_pipeline_free(p);
    return code;
}

int cmd_optimize(int argc, char **argv)
{
    struct optimize o = {.effort = -1, .in.job_logs = true};
    size_t from = 0, to = 0;

    keep_memory();
    options_parse(&argp, argc, argv, &o);
    o.model.any_name = o.in.several = o.n_more > 0;
    int code = o.n_more > 0 ? EXIT_FINE : check_outputs(&o);
    if (code == EXIT_FINE)
        code = model_input_open(&o.model, &o.in, &from, &to);
    if (code == EXIT_FINE)
        code = o.n_more > 0 ? run_several(&o) : run_one(&o, from, to);
    code = picture_end(&o.picture, o.in.path, code);
    tuck_decision_free(o.made);
    tuck_decision_free(o.given);
    tuck_graph_free(o.kept);
    free(o.text);
    free(o.more);
    model_close(&o.model);
    input_close(&o.in);
    return code;
}

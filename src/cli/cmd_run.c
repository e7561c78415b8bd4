/* tuck run: a graph on real ranks. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/graphs.h"
#include "cli/picture.h"
#include "cli/progress.h"
#include "cli/ranks.h"

enum { OPT_TIMELINE = 0x920, OPT_COUNT };

struct run {
    struct input in;
    struct ranks ranks;
    struct picture picture;
    struct listing list;
    bool timeline;
    const char **more;
    size_t n_more;
};

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "Everything, as JSON", 0},
    {"timeline", OPT_TIMELINE, NULL, 0, "With every op's times", 0},
    {"top", OPT_TOP, "N", 0, "Show the N most exposed collectives (10)", 0},
    {"count-memory", OPT_COUNT, NULL, 0,
     "Count which bytes of the planned memory a step writes, in two more steps", 0},
    {NULL, 0, NULL, 0, "The graph:", 1},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct run *r = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &r->in;
        state->child_inputs[1] = &r->picture;
        state->child_inputs[2] = &r->ranks;
        break;
    case OPT_TIMELINE: r->timeline = true; break;
    case OPT_COUNT: r->ranks.o.count_memory = true; break;
    case ARGP_KEY_ARG:
        if (r->in.path == NULL)
            return ARGP_ERR_UNKNOWN; /* the first file belongs to the child parser */
        option_append(state, &r->more, &r->n_more, arg);
        break;
    default: return listing_parse(&r->list, key, arg, state);
    }
    return 0;
}

static const struct argp_child children[] = {{&input_argp, 0, NULL, 0},
                                             {&picture_argp, 0, "Pictures:", 3},
                                             {&ranks_argp, 0, "The ranks:", 4},
                                             {0}};
static const struct argp argp = {
    options,
    parse,
    "FILE [FILE...]",
    "Run the graph of FILE on real ranks and measure it: processes of this machine over shared "
    "memory, or over MPI under mpirun. Several files are the graphs of the ranks, one each. A "
    "graph with an operator that has no kernel is refused before anything is started. See "
    "docs/running.md.",
    children,
    NULL,
    NULL};

static int show(struct run *r, const tuck_execution *x)
{
    tuck_print_options how;
    tuck_simulation *s = NULL;
    static const char *const label[] = {"measured"};

    if (!tuck_execution_speaks(x))
        return EXIT_FINE;
    listing_how(&r->list, &how);
    if (r->timeline)
        how.detail |= TUCK_DETAIL_TIMELINE;
    int code = exit_code_of(tuck_execution_print(x, &how, to_file, stdout));
    if (code != EXIT_FINE || !picture_wanted(&r->picture))
        return code;
    code = exit_code_of(tuck_execution_timeline(x, &s));
    return code == EXIT_FINE ? picture_add(&r->picture, &r->in, 0, &s, label, 1) : code;
}

static int run_all(struct run *r)
{
    struct rank_files f;
    tuck_execution *x = NULL;
    int code = rank_files_open(&f, "tuck run", &r->in, r->more, r->n_more);
    tuck_graph **g = code == EXIT_FINE ? ranks_graphs(&f, 1) : NULL;

    if (code == EXIT_FINE && g == NULL)
        code = exit_code_of(TUCK_ENOMEM);
    if (code == EXIT_FINE) {
        r->ranks.o.hints = r->in.hints;
        r->ranks.o.n_hints = r->in.n_hint;
        progress_begin("tuck run");
        progress_stage("running");
        tuck_status st = tuck_ranks_execute(g, f.n, &r->ranks.o, r->in.diags, &x);
        progress_end();
        print_diags(r->in.diags);
        code = ranks_code(st);
    }
    if (code == EXIT_FINE)
        code = show(r, x);
    code = picture_end(&r->picture, r->in.path, code);
    tuck_execution_free(x);
    free(g);
    rank_files_close(&f);
    return code;
}

int cmd_run(int argc, char **argv)
{
    struct run r = {.list.top = 10};

    options_parse(&argp, argc, argv, &r);
    r.in.several = r.n_more > 0;
    int code = outputs_apart((struct output_name[]){{"standard output", "-"},
                                                    {"--html", r.picture.html},
                                                    {"--trace", r.picture.trace}},
                             3);
    if (code == EXIT_FINE)
        code = input_open(&r.in);
    if (code == EXIT_FINE)
        code = run_all(&r);
    free(r.more);
    input_close(&r.in);
    return code;
}

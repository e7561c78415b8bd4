/* tuck calibrate: a cluster file of this machine, and how well it predicts steps; or one of what a
 * profiler recorded. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/graphs.h"
#include "cli/progress.h"
#include "cli/ranks.h"

enum { OPT_MEASURED = 0x7B0, OPT_DEVICE, OPT_PER_NODE };

struct calibrate {
    struct ranks ranks;
    const char *out;
    const char **trace; /* --measured, n_trace entries */
    size_t n_trace;
    const char *device;
    int64_t per_node;
    const char **graph;
    size_t n_graph;
    tuck_diags *diags;
};

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "The cluster file (default: standard output)", 0},
    {NULL, 0, NULL, 0, "From what was recorded:", 1},
    {"measured", OPT_MEASURED, "TRACE", OPTION_MANY,
     "Measure nothing: take what torch.profiler recorded; traces of other ranks may follow", 1},
    {"device", OPT_DEVICE, "NAME", 0, "The device, if its name in the trace is not known", 1},
    {"per-node", OPT_PER_NODE, "N", 0, "Devices of one node (default: by the device)", 1},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct calibrate *c = state->input;

    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &c->ranks; break;
    case 'o': c->out = arg; break;
    case OPT_MEASURED: option_append(state, &c->trace, &c->n_trace, arg); break;
    case OPT_DEVICE: c->device = arg; break;
    case OPT_PER_NODE: c->per_node = option_number(state, "--per-node", arg, 1, RANKS_MOST); break;
    case ARGP_KEY_ARG: option_append(state, &c->graph, &c->n_graph, arg); break;
    case ARGP_KEY_END:
        if (c->n_trace == 0 && (c->device != NULL || c->per_node > 0))
            argp_error(state, "--device and --per-node are about the traces of --measured");
        if (c->n_trace == 0 && c->n_graph > 0 && c->out == NULL)
            argp_error(state, "steps are predicted with the cluster file: -o is needed");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp_child children[] = {{&ranks_argp, 0, "The ranks:", 4}, {0}};
static const struct argp argp = {
    options,
    parse,
    "[GRAPH...]\n--measured TRACE...",
    "Measure collectives, matrix products, loops and copies on real ranks (2, or -n) and write a "
    "cluster file for --cluster. With graphs: run each on these ranks, too, and compare its "
    "measured step with the one that is simulated with that file. See docs/running.md. With "
    "--measured: the same from traces of torch.profiler. See docs/jobs.md.",
    children,
    NULL,
    NULL};

static int write_cluster(const struct calibrate *c, const tuck_calibration *x)
{
    struct output f;
    int code = output_open(&f, c->out);

    return code == EXIT_FINE
               ? output_close(&f, exit_code_of(tuck_calibration_write(x, output_put, &f)))
               : code;
}

/* ---- predicted against measured ---- */

static int measure(struct calibrate *c, tuck_graph *g, double *ms)
{
    tuck_execution *x = NULL;
    tuck_simulation *s = NULL;
    tuck_times t;
    int code = refused_or(tuck_ranks_execute(&g, 1, &c->ranks.o, c->diags, &x));

    if (code == EXIT_FINE)
        code = exit_code_of(tuck_execution_timeline(x, &s));
    if (code == EXIT_FINE) {
        tuck_simulation_times(s, &t);
        *ms = (double)t.step_ps / 1e9;
    }
    tuck_simulation_free(s);
    tuck_execution_free(x);
    return code;
}

static int predict(struct calibrate *c, tuck_graph *g, const tuck_cluster *cluster, double *ms)
{
    tuck_machine m;
    tuck_simulation *s = NULL;
    tuck_times t;

    tuck_machine_init(&m);
    m.cluster = cluster;
    m.contention = TUCK_LINKS_SHARED; /* by the factors in the file, if it has some */
    int code = refused_or(tuck_graph_simulate(g, &m, c->diags, &s));
    if (code == EXIT_FINE) {
        tuck_simulation_times(s, &t);
        *ms = (double)t.step_ps / 1e9;
    }
    tuck_simulation_free(s);
    return code;
}

static int compare_one(struct calibrate *c, const char *path, const tuck_cluster *cluster)
{
    struct input in = {.path = path, .graph = -1, .rank = -1};
    struct rank_files f = {.n = 0};
    tuck_graph *g = NULL;
    double measured = 0, predicted = 0;
    int code = input_open(&in);

    if (code == EXIT_FINE)
        code = rank_files_open(&f, "tuck calibrate", &in, NULL, 0);
    if (code == EXIT_FINE) {
        g = rank_files_graph(&f, 0);
        code = measure(c, g, &measured);
    }
    if (code == EXIT_FINE)
        code = predict(c, g, cluster, &predicted);
    print_diags(c->diags);
    if (code == EXIT_FINE)
        printf("  %-40s %10.3f %10.3f %+8.1f %%\n", path, predicted, measured,
               100 * (predicted / measured - 1));
    rank_files_close(&f);
    input_close(&in);
    return code;
}

static int compare_all(struct calibrate *c)
{
    tuck_cluster *cluster = NULL;
    int code = exit_code_of(tuck_cluster_read_file(c->out, NULL, c->diags, &cluster));

    print_diags(c->diags);
    if (code == EXIT_FINE)
        printf("\n  %-40s %10s %10s %8s\n", "a step, ms", "predicted", "measured", "error");
    for (size_t i = 0; i < c->n_graph && code == EXIT_FINE; i++)
        code = compare_one(c, c->graph[i], cluster);
    tuck_cluster_free(cluster);
    return code;
}

static int run(struct calibrate *c)
{
    tuck_print_options how = print_how(false);
    tuck_calibration *x = NULL;

    progress_begin("tuck calibrate");
    progress_stage("measuring");
    int code = refused_or(tuck_calibrate(&c->ranks.o, c->diags, &x));
    progress_end();
    print_diags(c->diags);
    if (code == EXIT_FINE && tuck_calibration_speaks(x)) {
        code = write_cluster(c, x);
        if (code == EXIT_FINE && c->out != NULL)
            code = exit_code_of(tuck_calibration_print(x, &how, to_file, stdout));
    }
    tuck_calibration_free(x);
    return code == EXIT_FINE && c->n_graph > 0 ? compare_all(c) : code;
}

/* ---- from traces ---- */

static int from_traces(struct calibrate *c)
{
    struct output f;
    tuck_traces *t = NULL;

    for (size_t i = 0; i < c->n_graph; i++) { /* what follows are traces of other ranks */
        const char **more = realloc(c->trace, (c->n_trace + 1) * sizeof(*more));
        if (more == NULL)
            return exit_code_of(TUCK_ENOMEM);
        c->trace = more;
        c->trace[c->n_trace++] = c->graph[i];
    }
    int code = traces_open(c->trace, c->n_trace, c->diags, &t);
    if (code == EXIT_FINE && (code = output_open(&f, c->out)) == EXIT_FINE) {
        tuck_status st = tuck_traces_calibrate(t, c->device, c->per_node, c->diags, output_put, &f,
                                               c->out != NULL ? to_file : NULL,
                                               c->out != NULL ? stdout : NULL);
        print_diags(c->diags);
        code = output_close(&f, exit_code_of(st));
    }
    tuck_traces_free(t);
    return code;
}

int cmd_calibrate(int argc, char **argv)
{
    struct calibrate c = {.out = NULL};

    options_parse(&argp, argc, argv, &c);
    c.diags = tuck_diags_new(NULL);
    int code = c.diags == NULL ? exit_code_of(TUCK_ENOMEM)
               : c.n_trace > 0 ? from_traces(&c)
                               : run(&c);
    tuck_diags_free(c.diags);
    free(c.graph);
    free(c.trace);
    return code;
}

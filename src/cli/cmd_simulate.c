/* tuck simulate: the time and memory of a graph on a machine. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/graphs.h"
#include "cli/job_input.h"
#include "cli/picture.h"
#include "cli/progress.h"
#include "cli/rank_files.h"

enum { OPT_TIMELINE = 0x500, OPT_WORLD, OPT_SCALE, OPT_BANDWIDTH, OPT_STRAGGLER, OPT_CONTENTION };

struct simulate {
    struct input in;
    struct model model;
    struct picture picture;
    struct listing list;
    bool timeline;
    int64_t world_from, world_to; /* 0 if there is no curve */
    const char **scale;           /* groups that grow with the world */
    size_t n_scale;
    double bandwidth;
    tuck_straggler *straggler;
    size_t n_straggler;
    const char **more; /* files after the first: one rank each */
    size_t n_more;
    struct graph_list docs; /* for JSON */
};

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "Everything, as JSON", 0},
    {"timeline", OPT_TIMELINE, NULL, 0, "With every op's times", 0},
    {"top", OPT_TOP, "N", 0, "Show the N most exposed collectives (10)", 0},
    {"world", OPT_WORLD, "A..B", 0,
     "A scaling curve: A, 2A, 4A, … B ranks in the groups of --scale; full messages and compute "
     "stay as they are",
     0},
    {"scale", OPT_SCALE, "GROUP", OPTION_MANY,
     "A group that grows with --world (default: the largest)", 0},
    {"bandwidth", OPT_BANDWIDTH, "Fx", 0, "Link speed factor: 0.5x is half as fast", 0},
    {"contention", OPT_CONTENTION, NULL, 0,
     "Concurrent collectives share their link, and kernels run slower next to them, by the factors "
     "of the cluster file or the preset",
     0},
    {"straggler", OPT_STRAGGLER, "RANK=Fx", OPTION_MANY,
     "All ranks together, with one whose kernels take F times as long: 3=1.3x", 0},
    {NULL, 0, NULL, 0, "The graph:", 1},
    {0},
};

static int64_t whole(struct argp_state *state, const char *what, const char *s, char **end)
{
    errno = 0;
    long long v = strtoll(s, end, 10);
    if (errno != 0 || *end == s || v < 1 || v > RANKS_MOST)
        argp_error(state, "%s: a number from 1 to %d is expected, found '%s'", what, RANKS_MOST, s);
    return v;
}

static void parse_world(struct argp_state *state, struct simulate *s, const char *arg)
{
    char *end;

    s->world_from = s->world_to = whole(state, "--world", arg, &end);
    if (strncmp(end, "..", 2) == 0)
        s->world_to = whole(state, "--world", end + 2, &end);
    if (*end != '\0' || s->world_to < s->world_from)
        argp_error(state, "--world wants A..B, found '%s'", arg);
}

static void parse_straggler(struct argp_state *state, struct simulate *s, const char *arg)
{
    char *end;

    errno = 0;
    long long rank = strtoll(arg, &end, 10);
    if (errno != 0 || end == arg || rank < 0 || rank >= RANKS_MOST || *end != '=')
        argp_error(state, "--straggler wants RANK=Fx, such as 3=1.3x, found '%s'", arg);
    for (size_t i = 0; i < s->n_straggler; i++)
        if (s->straggler[i].rank == rank)
            argp_error(state, "--straggler gives two values for rank %lld", rank);
    s->straggler = option_grow(state, s->straggler, s->n_straggler, sizeof(*s->straggler));
    s->straggler[s->n_straggler++] = (tuck_straggler){
        rank, option_factor(state, "--straggler wants a factor such as 1.3x", end + 1, 1000)};
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct simulate *s = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &s->in;
        state->child_inputs[1] = &s->model;
        state->child_inputs[2] = &s->picture;
        break;
    case OPT_TIMELINE: s->timeline = true; break;
    case OPT_WORLD: parse_world(state, s, arg); break;
    case OPT_SCALE: option_append(state, &s->scale, &s->n_scale, arg); break;
    case OPT_BANDWIDTH:
        s->bandwidth = option_factor(state, "--bandwidth wants a factor such as 0.5x", arg, 1e6);
        break;
    case OPT_CONTENTION: s->model.contention = true; break;
    case OPT_STRAGGLER: parse_straggler(state, s, arg); break;
    case ARGP_KEY_ARG:
        if (s->in.path == NULL)
            return ARGP_ERR_UNKNOWN; /* the first file belongs to the child parser */
        option_append(state, &s->more, &s->n_more, arg);
        break;
    case ARGP_KEY_END:
        if (s->n_scale > 0 && !s->world_from)
            argp_error(state, "--scale needs --world");
        if (s->world_from && ((s->timeline && !s->list.json) || picture_wanted(&s->picture)))
            argp_error(state,
                       "--world prints one line per number of ranks: no timeline and no pictures");
        if (s->world_from && (s->n_more > 0 || s->n_straggler > 0))
            argp_error(state, "--world is for one graph whose ranks are alike");
        if (s->n_more > 0 && s->in.rank >= 0)
            argp_error(state, "--rank is for one file; several files give their own ranks");
        break;
    default: return listing_parse(&s->list, key, arg, state);
    }
    return 0;
}

static const struct argp_child children[] = {{&input_argp, 0, NULL, 0},
                                             {&model_argp, 0, "The machine:", 2},
                                             {&picture_argp, 0, "Pictures:", 3},
                                             {0}};
static const struct argp argp = {
    options,
    parse,
    "FILE [FILE...]",
    "Simulate the graphs of FILE as they are: step time, compute, communication and how much of "
    "it is exposed, peak memory, and lower bounds that no order can beat. Several files are the "
    "graphs of several ranks, which are simulated together; --straggler simulates all ranks of one "
    "graph.",
    children,
    NULL,
    NULL};

static tuck_status print(const void *result, const tuck_print_options *how, tuck_write_fn write,
                         void *ctx)
{
    return tuck_simulation_print(result, how, write, ctx);
}

static tuck_status print_ranks(const void *result, const tuck_print_options *how,
                               tuck_write_fn write, void *ctx)
{
    return tuck_rank_simulation_print(result, how, write, ctx);
}

static void choose_how(const struct simulate *s, tuck_print_options *how)
{
    listing_how(&s->list, how);
    how->measured = model_measured(&s->model);
    if (s->in.job != NULL)
        how->detail |= TUCK_DETAIL_ORIGINS;
    if (s->timeline)
        how->detail |= TUCK_DETAIL_TIMELINE;
}

static int evaluate(struct simulate *s, struct input *in, tuck_graph *g, bool same_machine,
                    tuck_simulation **out, bool *assumed)
{
    tuck_machine machine;

    progress_begin("tuck simulate");
    progress_stage("inferring types");
    tuck_status st = tuck_graph_infer(g, TUCK_TRUST_ANNOTATIONS, in->diags);
    int code = exit_code_of(st);

    if (code == EXIT_FINE)
        code = same_machine ? model_groups(&s->model, in, g) : model_for(&s->model, in, g, assumed);
    print_diags(in->diags);
    if (code != EXIT_FINE) {
        progress_end();
        return code;
    }
    model_public(&s->model, in, &machine);
    machine.bandwidth = s->bandwidth;
    progress_stage("lowering, simulating, bounding");
    st = tuck_graph_simulate(g, &machine, in->diags, out);
    progress_end();
    print_diags(in->diags);
    return refused_or(st);
}

/* ---- scaling ---- */

struct curve {
    struct simulate *s;
    size_t graph;
    tuck_scaling_options o;
    int code; /* if a point could not be printed */
};

static bool print_point(void *ctx, int64_t ranks, const tuck_simulation *e)
{
    struct curve *x = ctx;
    struct simulate *s = x->s;
    tuck_print_options how;

    print_diags(s->in.diags);
    if (!s->list.json)
        return true; /* all of them are one table */
    choose_how(s, &how);
    x->code = graph_list_show(&s->docs, x->graph, ranks, &how, print, e);
    return x->code == EXIT_FINE;
}

static bool has_group(const tuck_graph *g, const char *name)
{
    for (size_t k = 0; k < tuck_graph_group_count(g); k++)
        if (strcmp(tuck_graph_group_name(g, k), name) == 0)
            return true;
    return false;
}

/* The groups of --scale that this graph has, in a new array. False: out of memory. */
static bool choose_groups(const struct simulate *s, const tuck_graph *g, tuck_scaling_options *o,
                          const char ***list)
{
    *list = s->n_scale > 0 ? calloc(s->n_scale, sizeof(**list)) : NULL;
    if (s->n_scale > 0 && *list == NULL)
        return false;
    for (size_t i = 0; i < s->n_scale; i++)
        if (has_group(g, s->scale[i]))
            (*list)[o->n_groups++] = s->scale[i];
    o->groups = *list;
    return true;
}

/* Warns about what is assumed, with the groups of the first point. */
static int warn_of_assumed(struct simulate *s, const tuck_graph *original, const struct curve *x)
{
    tuck_graph *g = NULL;
    bool assumed;
    tuck_status st = tuck_graph_grow(original, x->o.groups, x->o.n_groups, x->o.from, &g);

    if (st == TUCK_OK)
        st = tuck_graph_infer(g, TUCK_TRUST_ANNOTATIONS, s->in.diags);
    int code = st == TUCK_OK ? model_for(&s->model, &s->in, g, &assumed) : exit_code_of(st);
    print_diags(s->in.diags);
    tuck_graph_free(g);
    return code;
}

static int simulate_curve(struct simulate *s, struct curve *x)
{
    const tuck_graph *g = tuck_doc_graph(s->in.doc, x->graph);
    tuck_print_options how = print_how(false);
    tuck_scaling *scaling = NULL;
    tuck_machine machine;
    int code = warn_of_assumed(s, g, x);

    if (code != EXIT_FINE)
        return code;
    model_public(&s->model, &s->in, &machine);
    machine.bandwidth = s->bandwidth;
    if (s->model.cluster_name == NULL)
        machine.cluster = NULL; /* each point has its own */
    progress_begin("tuck simulate");
    progress_stage("lowering, simulating, bounding");
    tuck_status st = tuck_graph_scale(g, &machine, &x->o, s->in.diags, &scaling);
    progress_end();
    print_diags(s->in.diags);
    if (st == TUCK_OK && !s->list.json)
        st = tuck_scaling_print(scaling, &how, to_file, stdout);
    tuck_scaling_free(scaling);
    return x->code != EXIT_FINE ? x->code : refused_or(st);
}

static int curve(struct simulate *s, size_t graph)
{
    struct curve x = {.s = s, .graph = graph};
    const char **groups = NULL;

    tuck_scaling_options_init(&x.o);
    x.o.from = s->world_from;
    x.o.to = s->world_to;
    x.o.point = print_point;
    x.o.ctx = &x;
    if (!s->list.json)
        put_graph(&s->in, graph);
    int code = choose_groups(s, tuck_doc_graph(s->in.doc, graph), &x.o, &groups)
                   ? simulate_curve(s, &x)
                   : exit_code_of(TUCK_ENOMEM);
    free(groups);
    return code;
}

/* ---- several ranks ---- */

static int together(struct simulate *s, const tuck_rank *rank, size_t n, size_t first)
{
    tuck_ranks_options o;
    tuck_print_options how;
    tuck_rank_simulation *x = NULL;

    tuck_ranks_options_init(&o);
    o.stragglers = s->straggler;
    o.n_stragglers = s->n_straggler;
    o.instances = s->in.instances;
    o.n_instances = s->in.n_instances;
    progress_begin("tuck simulate");
    progress_stage("all ranks together");
    tuck_status st = tuck_ranks_simulate(rank, n, &o, s->in.diags, &x);
    progress_end();
    print_diags(s->in.diags);
    int code = exit_code_of(st);
    choose_how(s, &how);
    if (code == EXIT_FINE)
        code = graph_list_show(&s->docs, first, 0, &how, print_ranks, x);
    if (code == EXIT_FINE && tuck_rank_simulation_fault(x) != NULL)
        code = EXIT_FOUND;
    if (code == EXIT_FINE && picture_wanted(&s->picture))
        code = picture_ranks(&s->picture, s->in.path, x);
    tuck_rank_simulation_free(x);
    return code;
}

static int simulate_files(struct simulate *s, const struct rank_files *f, tuck_simulation **e,
                          tuck_rank *rank)
{
    bool assumed;
    int code = rank_files_model(f, &s->model, &assumed);

    for (size_t i = 0; i < f->n && code == EXIT_FINE; i++) {
        code = evaluate(s, &f->in[i], rank_files_graph(f, i), true, &e[i], &assumed);
        rank[i] = (tuck_rank){e[i], f->in[i].path, f->number[i]};
    }
    if (code != EXIT_FINE)
        return code;
    if (!s->list.json)
        put_machine(&s->model, rank_files_graph(f, 0), assumed);
    return together(s, rank, f->n, 0);
}

static int several_files(struct simulate *s)
{
    struct rank_files f;
    size_t n = s->n_more + 1;
    tuck_simulation **e = calloc(n, sizeof(tuck_simulation *));
    tuck_rank *rank = calloc(n, sizeof(*rank));
    int code = rank_files_open(&f, "tuck simulate", &s->in, s->more, s->n_more);

    if (code == EXIT_FINE && (e == NULL || rank == NULL))
        code = exit_code_of(TUCK_ENOMEM);
    if (code == EXIT_FINE)
        code = simulate_files(s, &f, e, rank);
    for (size_t i = 0; e != NULL && i < n; i++)
        tuck_simulation_free(e[i]);
    rank_files_close(&f);
    free(e);
    free(rank);
    return code;
}

/* The steps of all ranks of a job. */
static int several_steps(struct simulate *s)
{
    size_t n = tuck_doc_count(s->in.doc);
    tuck_simulation **e = calloc(n, sizeof(*e));
    tuck_rank *rank = calloc(n, sizeof(*rank));
    tuck_graph *last = tuck_doc_graph(s->in.doc, n - 1); /* the machine must have room for it */
    bool assumed = false;
    int code = e && rank ? exit_code_of(tuck_graph_infer(last, TUCK_TRUST_ANNOTATIONS, NULL))
                         : exit_code_of(TUCK_ENOMEM);

    if (code == EXIT_FINE)
        code = model_for(&s->model, &s->in, last, &assumed);
    for (size_t i = 0; i < n && code == EXIT_FINE; i++) {
        code = evaluate(s, &s->in, tuck_doc_graph(s->in.doc, i), true, &e[i], &assumed);
        rank[i] = (tuck_rank){e[i], "", tuck_doc_rank(s->in.doc, i)};
    }
    if (code == EXIT_FINE && !s->list.json) {
        put_part(&s->in, 0);
        put_machine(&s->model, tuck_doc_graph(s->in.doc, 0), assumed);
    }
    if (code == EXIT_FINE)
        code = together(s, rank, n, 0);
    for (size_t i = 0; e != NULL && i < n; i++)
        tuck_simulation_free(e[i]);
    free(e);
    free(rank);
    return code;
}

/* Are there steps of several ranks, and no option asks for one of them? */
static bool has_ranks(const struct simulate *s, size_t from, size_t to)
{
    return s->in.job != NULL && s->in.doc == tuck_job_steps(s->in.job) && to - from > 1 &&
           !s->world_from;
}

static int simulate(struct simulate *s, size_t i)
{
    static const char *const label[] = {"as it stands"};
    tuck_graph *g = tuck_doc_graph(s->in.doc, i);
    tuck_simulation *e = NULL;
    tuck_print_options how;
    bool assumed;
    int code = evaluate(s, &s->in, g, false, &e, &assumed);

    if (code != EXIT_FINE)
        return code;
    if (!s->list.json) {
        put_part(&s->in, i);
        put_machine(&s->model, g, assumed);
    }
    choose_how(s, &how);
    if (s->n_straggler > 0) {
        tuck_rank all = {e, s->in.path, -1};
        code = together(s, &all, 1, i);
    } else {
        code = graph_list_show(&s->docs, i, 0, &how, print, e);
    }
    if (code == EXIT_FINE && picture_wanted(&s->picture) && s->n_straggler == 0)
        return picture_add(&s->picture, &s->in, i, &e, label, 1);
    tuck_simulation_free(e);
    return code;
}

int cmd_simulate(int argc, char **argv)
{
    struct simulate s = {.list.top = 10, .in = {.job_as = JOB_STEPS, .job_logs = true}};
    size_t from = 0, to = 0;

    options_parse(&argp, argc, argv, &s);
    s.model.any_name = s.in.several = s.n_more > 0;
    int code = outputs_apart((struct output_name[]){{"standard output", "-"},
                                                    {"--html", s.picture.html},
                                                    {"--trace", s.picture.trace}},
                             3);
    if (code == EXIT_FINE)
        code = model_input_open(&s.model, &s.in, &from, &to);
    if (code == EXIT_FINE)
        code = graph_check_groups(&s.in, "--scale", s.scale, s.n_scale);
    if (code == EXIT_FINE && s.n_more > 0)
        code = several_files(&s);
    bool ranks = code == EXIT_FINE && s.n_more == 0 && has_ranks(&s, from, to);
    graph_list_begin(&s.docs, &s.in, s.world_from ? "points" : "graphs",
                     s.list.json && s.n_more == 0 && !ranks && (s.world_from || to - from > 1));
    if (ranks)
        code = several_steps(&s);
    if (code != EXIT_FINE || s.n_more > 0 || ranks)
        from = to;
    for (size_t i = from; graph_go_on(code) && i < to; i++)
        code = graph_with(&s.in, i, code, s.world_from ? curve(&s, i) : simulate(&s, i));
    graph_list_end(&s.docs);
    code = picture_end(&s.picture, s.in.path, code);
    free(s.scale);
    free(s.straggler);
    free(s.more);
    model_close(&s.model);
    input_close(&s.in);
    return code;
}

/* tuck cost: the time of a collective on a cluster, or of every node of a graph. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/graphs.h"

enum {
    OPT_RANKS = 0x500,
    OPT_STRIDE,
    OPT_MOST,
    OPT_SYMMETRIC,
    OPT_HIERARCHICAL,
    OPT_ONE_SHOT,
    OPT_WRITE
};

struct cost {
    struct input in;
    struct model model;
    const char *coll_name; /* for a collective: its name, then the size */
    tuck_collective q;
    bool one_shot, sized, json, write_profile;
    long top;
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Of a collective:", 0},
    {"ranks", OPT_RANKS, "N", 0, "Ranks of the group (default: all of the cluster)", 0},
    {"stride", OPT_STRIDE, "N", 0, "Stride between its members' global ranks (default: 1)", 0},
    {"symmetric", OPT_SYMMETRIC, NULL, 0,
     "The operand is in symmetric memory: one-shot and two-shot may be used", 0},
    {"hierarchical", OPT_HIERARCHICAL, NULL, 0, "Allow phases within nodes and across nodes", 0},
    {"one-shot", OPT_ONE_SHOT, "SIZE", 0,
     "PyTorch's rule: all-reduces up to SIZE are one-shot, even if slower", 0},
    {NULL, 0, NULL, 0, "Of a graph:", 1},
    {"top", OPT_MOST, "N", 0, "How many nodes to show, the longest first (default: 20; 0: all)", 1},
    {"write-profile", OPT_WRITE, NULL, 0, "Print the times as a profile file", 1},
    {NULL, 0, NULL, 0, "For both:", 2},
    {"json", 'j', NULL, 0, "As JSON; for a graph, all nodes", 2},
    {0},
};

static int64_t number(struct argp_state *state, const char *what, const char *arg, int64_t low)
{
    char *end;

    errno = 0;
    long long v = strtoll(arg, &end, 10);
    if (errno != 0 || end == arg || *end != '\0' || v < low || v > 1000000000)
        argp_error(state, "%s must be a number from %lld on, found '%s'", what, (long long)low,
                   arg);
    return v;
}

/* A collective by its name, however its words are joined: all_reduce, all-reduce, AllReduce. 0 if
 * none. */
static tuck_coll coll_by_word(const char *word)
{
    for (int k = TUCK_ALL_REDUCE; k <= TUCK_SHARD_DIM_ALLTOALL; k++) {
        const char *name = tuck_coll_name((tuck_coll)k), *w = word;
        while (*w != '\0' && *name != '\0') {
            if (*w == '_' || *w == '-')
                w++;
            else if (*name == '_')
                name++;
            else if (tolower((unsigned char)*w) == *name)
                w++, name++;
            else
                break;
        }
        if (*w == '\0' && *name == '\0')
            return (tuck_coll)k;
    }
    return (tuck_coll)0;
}

static error_t parse_arg(struct cost *c, char *arg, struct argp_state *state)
{
    if (c->coll_name == NULL && c->in.path == NULL && coll_by_word(arg) != 0 &&
        access(arg, F_OK) != 0) {
        c->q.coll = coll_by_word(arg);
        c->coll_name = tuck_coll_name(c->q.coll);
        return 0;
    }
    if (c->coll_name == NULL)
        return ARGP_ERR_UNKNOWN; /* the file of a graph */
    if (c->sized)
        argp_error(state, "one size only, found '%s' too", arg);
    c->q.bytes = tuck_parse_bytes(arg);
    c->sized = true;
    if (c->q.bytes < 0)
        argp_error(state, "'%s' is not a size: 4096, 64KB, 25MB, 1.5GB (1 KB = 1 KiB = 1024 bytes)",
                   arg);
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct cost *c = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        c->in.optional = true;
        state->child_inputs[0] = &c->in;
        state->child_inputs[1] = &c->model;
        break;
    case 'j': c->json = true; break;
    case OPT_RANKS: c->q.ranks = number(state, "--ranks", arg, 1); break;
    case OPT_STRIDE: c->q.stride = number(state, "--stride", arg, 1); break;
    case OPT_MOST: c->top = (long)number(state, "--top", arg, 0); break;
    case OPT_SYMMETRIC: c->q.symmetric = true; break;
    case OPT_HIERARCHICAL: c->q.hierarchical = true; break;
    case OPT_WRITE: c->write_profile = true; break;
    case OPT_ONE_SHOT:
        c->one_shot = true;
        c->q.one_shot_bytes = tuck_parse_bytes(arg);
        if (c->q.one_shot_bytes < 0)
            argp_error(state, "--one-shot: '%s' is not a size", arg);
        break;
    case ARGP_KEY_ARG: return parse_arg(c, arg, state);
    case ARGP_KEY_END:
        if (c->coll_name != NULL && !c->sized)
            argp_error(state, "the size is missing: `tuck cost %s 25MB'", c->coll_name);
        if (c->coll_name == NULL && c->in.path == NULL)
            argp_error(state, "a collective and its size, or a file with a graph");
        if (c->json && c->write_profile)
            argp_error(state, "--json and --write-profile cannot be combined");
        if (c->coll_name != NULL && (c->top >= 0 || c->write_profile || input_is_asked(&c->in)))
            argp_error(state, "--top, --write-profile and options about graphs are for graphs, "
                              "not for a collective");
        if (c->coll_name == NULL &&
            (c->q.ranks || c->q.stride || c->q.symmetric || c->q.hierarchical || c->one_shot))
            argp_error(state, "--ranks, --stride, --symmetric, --hierarchical and --one-shot are "
                              "for a collective, not for a graph");
        if (c->top < 0)
            c->top = 20;
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp_child children[] = {
    {&input_argp, 0, "The graph:", 3}, {&model_argp, 0, "The machine:", 4}, {0}};
static const struct argp argp = {
    options,
    parse,
    "COLLECTIVE SIZE\nFILE",
    "The time of a collective on a cluster, how it is computed, and the alternatives: all_reduce, "
    "all_gather, reduce_scatter, all_to_all, broadcast, p2p, shard_dim_alltoall. SIZE is the full "
    "message, a rank's input or output, whichever is larger: 4096, 64KB, 25MB "
    "(1 KB = 1 KiB = 1024 bytes). Or the time of every node of the graphs in FILE by itself.",
    children,
    NULL,
    NULL};

/* ---- a collective ---- */

/* The named cluster, or the default. */
static int open_model(struct cost *c)
{
    tuck_diags *diags = tuck_diags_new(NULL);

    if (diags == NULL)
        return exit_code_of(TUCK_ENOMEM);
    int code = model_open(&c->model, diags);
    if (code == EXIT_FINE && c->model.cluster == NULL)
        code = exit_code_of(tuck_cluster_for_graph(NULL, NULL, diags, &c->model.cluster));
    tuck_diags_free(diags);
    return code;
}

static int cost_of_collective(struct cost *c)
{
    tuck_collective_cost x;
    tuck_print_options how = print_how(c->json);
    int code = open_model(c);

    if (code != EXIT_FINE)
        return code;
    int64_t ranks = tuck_cluster_ranks(c->model.cluster), stride = c->q.stride ? c->q.stride : 1;
    if (c->q.ranks == 0)
        c->q.ranks = c->q.coll == TUCK_P2P ? 2 : (ranks + stride - 1) / stride;
    if ((c->q.ranks - 1) * stride >= ranks) {
        fprintf(stderr,
                "tuck: %" PRId64 " ranks, %" PRId64 " apart, do not fit the %" PRId64
                " of cluster '%s'\n",
                c->q.ranks, stride, ranks, tuck_cluster_name(c->model.cluster));
        return EXIT_USAGE;
    }
    c->q.model = c->model.kind;
    tuck_status st = tuck_cost_collective(c->model.cluster, &c->q, &x);
    if (st == TUCK_OK)
        st = tuck_collective_cost_print(c->model.cluster, &c->q, &x, &how, to_file, stdout);
    return exit_code_of(st);
}

/* ---- a graph ---- */

static int print_costs(const struct cost *c, const tuck_costs *costs, size_t graph,
                       struct graph_list *list)
{
    tuck_print_options how = print_how(c->json);
    tuck_print_item item;

    if (c->write_profile) {
        tuck_status st = tuck_costs_write_profile(costs, c->in.diags, to_file, stdout);
        print_diags(c->in.diags);
        return refused_or(st);
    }
    if (!c->json)
        put_graph(&c->in, graph);
    how.top = c->top > 0 ? (uint32_t)c->top : UINT32_MAX;
    graph_list_item(list, graph, &how, &item);
    return exit_code_of(tuck_costs_print(costs, &how, to_file, stdout));
}

static int cost_of_graph(struct cost *c, size_t i, struct graph_list *list)
{
    tuck_graph *g = tuck_doc_graph(c->in.doc, i);
    tuck_machine machine;
    tuck_costs *costs = NULL;
    bool assumed;
    int code = model_for(&c->model, &c->in, g, &assumed);

    if (code != EXIT_FINE)
        return code;
    model_public(&c->model, &c->in, &machine);
    tuck_status st = tuck_graph_costs(g, &machine, c->in.diags, &costs);
    print_diags(c->in.diags);
    code = st == TUCK_OK ? print_costs(c, costs, i, list) : refused_or(st);
    tuck_costs_free(costs);
    return code;
}

static int cost_of_graphs(struct cost *c)
{
    struct graph_list list;
    size_t from = 0, to = 0;
    int code = model_input_open(&c->model, &c->in, &from, &to);

    if (code == EXIT_FINE)
        code = input_infer(&c->in, false);
    if (code == EXIT_FINE && c->write_profile)
        code = graph_only_one(&c->in, "--write-profile", from, to);
    graph_list_begin(&list, &c->in, "graphs", c->json && to - from > 1);
    for (size_t i = code == EXIT_FINE ? from : to; graph_go_on(code) && i < to; i++)
        code = graph_with(&c->in, i, code, cost_of_graph(c, i, &list));
    graph_list_end(&list);
    input_close(&c->in);
    return code;
}

int cmd_cost(int argc, char **argv)
{
    struct cost c = {.top = -1};

    options_parse(&argp, argc, argv, &c);
    int code = c.coll_name ? cost_of_collective(&c) : cost_of_graphs(&c);
    model_close(&c.model);
    return code;
}

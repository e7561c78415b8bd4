/* --cluster, --model, --profile: on what machine, by which model, with which measurements. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

enum { OPT_CLUSTER = 0x300, OPT_MODEL, OPT_PROFILE };

static const struct argp_option options[] = {
    {"cluster", OPT_CLUSTER, "NAME|FILE", 0,
     "The machine: DEVICExPER_NODE[xNODES], as in h100x8x4, or a cluster file (default: by the "
     "graph)",
     2},
    {"model", OPT_MODEL, "MODEL", 0,
     "Of collectives: auto, table, law, nccl, alpha-beta, torch, torch-old (default: auto, the "
     "first of the next four that knows the case)",
     2},
    {"profile", OPT_PROFILE, "FILE", 0, "Measured times of nodes, which go before the model's", 2},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct model *m = state->input;

    switch (key) {
    case OPT_CLUSTER: m->cluster_name = arg; break;
    case OPT_PROFILE: m->profile_path = arg; break;
    case OPT_MODEL: {
        int kind = tuck_cost_model_by_name(arg);
        if (kind < 0)
            argp_error(state, "no model '%s': auto, table, law, nccl, alpha-beta, torch, torch-old",
                       arg);
        m->kind = (tuck_cost_model)kind;
        break;
    }
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

const struct argp model_argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

/* A file, if it looks like one or is there. */
static bool is_path(const char *s)
{
    size_t n = strlen(s);

    return strchr(s, '/') != NULL || strcmp(s, "-") == 0 ||
           (n > 5 && strcmp(s + n - 5, ".json") == 0) || access(s, F_OK) == 0;
}

int model_open(struct model *m, tuck_diags *diags)
{
    tuck_status st = TUCK_OK;

    if (m->cluster_name != NULL)
        st = is_path(m->cluster_name)
                 ? tuck_cluster_read_file(m->cluster_name, NULL, diags, &m->cluster)
                 : tuck_cluster_preset(m->cluster_name, NULL, diags, &m->cluster);
    if (st == TUCK_OK && m->profile_path != NULL)
        st = tuck_profile_read_file(m->profile_path, NULL, diags, &m->profile);
    print_diags(diags);
    return exit_code_of(st);
}

int model_for(struct model *m, const tuck_graph *g, tuck_diags *diags, bool *assumed)
{
    *assumed = m->cluster_name == NULL;
    if (!*assumed)
        return EXIT_FINE;
    tuck_cluster_free(m->cluster);
    m->cluster = NULL;
    tuck_status st = tuck_cluster_for_graph(g, NULL, diags, &m->cluster);
    print_diags(diags);
    return exit_code_of(st);
}

void model_close(struct model *m)
{
    tuck_cluster_free(m->cluster);
    tuck_profile_free(m->profile);
    m->cluster = NULL;
    m->profile = NULL;
}

int model_input_open(struct model *m, struct input *in, size_t *from, size_t *to)
{
    int code = input_open(in);

    if (code == EXIT_FINE)
        code = input_range(in, from, to);
    if (code == EXIT_FINE)
        code = model_open(m, in->diags);
    return code;
}

void model_options(const struct model *m, const struct input *in, struct evaluate_options *o)
{
    evaluate_defaults(o);
    o->cluster = m->cluster;
    o->cost.collective.model = m->kind;
    o->cost.profile = m->profile;
    o->hint = in->hint;
    o->n_hint = in->n_hint;
}

bool model_run(const struct model *m, const struct input *in, const tuck_graph *g,
               struct run_setting *out)
{
    tuck_hint *hint = calloc(in->n_hint + 1, sizeof(*hint));

    for (size_t k = 0; hint != NULL && k < in->n_hint; k++)
        hint[k] = (tuck_hint){graph_str(g, in->hint[k].symbol), in->hint[k].value};
    *out = (struct run_setting){.cost = {.model = m->kind, .profile = m->profile}, .hint = hint};
    out->run = (tuck_run_options){
        .cluster = m->cluster, .cost = &out->cost, .hints = hint, .n_hints = in->n_hint};
    return hint != NULL;
}

void put_machine(const struct model *m, const tuck_graph *g, bool assumed)
{
    put(INK_HEAD, "%s", *tuck_graph_name(g) ? tuck_graph_name(g) : "forward");
    printf(" on %s", tuck_cluster_name(m->cluster));
    put_line(INK_DIM, "%s", assumed ? " (assumed; --cluster names another)" : "");
}

error_t listing_parse(struct listing *l, int key, char *arg, struct argp_state *state)
{
    char *end;

    if (key == 'j') {
        l->json = true;
        return 0;
    }
    if (key != OPT_TOP)
        return ARGP_ERR_UNKNOWN;
    errno = 0;
    long v = strtol(arg, &end, 10);
    if (errno != 0 || *end != '\0' || end == arg || v < 0)
        argp_error(state, "--top must be a number from 0 on, found '%s'", arg);
    l->top = v < 1000000 ? (uint32_t)v : 1000000;
    return 0;
}

const struct argp_child question_children[] = {
    {&input_argp, 0, NULL, 0}, {&model_argp, 0, "The machine:", 2}, {0}};

error_t question_parse(struct question *q, const char *most, int key, char *arg,
                       struct argp_state *state)
{
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &q->in;
        state->child_inputs[1] = &q->model;
        return 0;
    case ARGP_KEY_ARG:
        if (q->in.path == NULL)
            return ARGP_ERR_UNKNOWN; /* the file: the child's */
        if (q->word != NULL)
            argp_error(state, "%s, found '%s' after '%s'", most, arg, q->word);
        q->word = arg;
        return 0;
    default: return listing_parse(&q->list, key, arg, state);
    }
}

int64_t parse_bytes(const char *text)
{
    static const char *const unit[] = {"", "K", "M", "G", "T"};
    char *end;
    double v = strtod(text, &end);

    if (end == text || !(v >= 0) || (text[0] < '0' || text[0] > '9'))
        return -1;
    for (int u = 0; u < 5; u++) {
        size_t n = strlen(unit[u]);
        if (strncmp(end, unit[u], n) != 0)
            continue;
        const char *rest = end + n;
        if (*rest != '\0' && strcmp(rest, "B") != 0 && (u == 0 || strcmp(rest, "iB") != 0))
            continue;
        for (int i = 0; i < u; i++)
            v *= 1024;
        return v <= 9.0e18 ? (int64_t)v : -1;
    }
    return -1;
}

const char *human_us(double us, char out[32])
{
    if (us < 0)
        snprintf(out, 32, "?");
    else if (us < 1000)
        snprintf(out, 32, us < 10 ? "%.2f us" : "%.1f us", us);
    else if (us < 1e6)
        snprintf(out, 32, us < 1e4 ? "%.2f ms" : "%.1f ms", us / 1e3);
    else
        snprintf(out, 32, "%.2f s", us / 1e6);
    return out;
}

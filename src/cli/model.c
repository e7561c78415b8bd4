/* --cluster, --model, --profile: on what machine, by which model, with which measurements. */
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

#include "cli/ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPT_SEED = 0x900,
    OPT_INPUTS,
    OPT_OUTPUTS,
    OPT_STEPS,
    OPT_WARMUP,
    OPT_TRANSPORT,
    OPT_TIMEOUT,
    OPT_NO_PIN
};

static const struct argp_option options[] = {
    {"ranks", 'n', "N", 0,
     "The number of ranks (default: as many as mpirun started, else that of the graph's groups)",
     4},
    {"seed", OPT_SEED, "N", 0, "Draw the inputs from this seed (0)", 4},
    {"inputs", OPT_INPUTS, "NAME", 0,
     "Take the inputs from NAME.rank0.safetensors …, or from NAME.safetensors for all ranks; a "
     "tensor that is as many times as long as there are ranks is split among them",
     4},
    {"outputs", OPT_OUTPUTS, "NAME", 0,
     "Write what each rank returns, and inputs that it changed, to NAME.rank0.safetensors …", 4},
    {"steps", OPT_STEPS, "N", 0, "Measure N steps (5)", 4},
    {"warmup", OPT_WARMUP, "N", 0, "Run N steps before those (1)", 4},
    {"transport", OPT_TRANSPORT, "shm|threads|mpi|nccl", 0,
     "How ranks communicate (default: mpi under mpirun, else shm)", 4},
    {"timeout", OPT_TIMEOUT, "S", 0, "Give up if a rank waits S seconds for another (60)", 4},
    {"no-pin", OPT_NO_PIN, NULL, 0, "Let ranks move between cores", 4},
    {0},
};

static uint64_t seed_of(struct argp_state *state, const char *arg)
{
    char *end;

    errno = 0;
    unsigned long long v = strtoull(arg, &end, 0);
    if (errno != 0 || end == arg || *end != '\0' || *arg == '-')
        argp_error(state, "--seed wants a number from 0 on, found '%s'", arg);
    return v;
}

static double seconds_of(struct argp_state *state, const char *arg)
{
    char *end;
    double v = strtod(arg, &end);

    if (end == arg || *end != '\0' || !(v > 0) || v > 1e6)
        argp_error(state, "--timeout wants seconds, found '%s'", arg);
    return v;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct ranks *r = state->input;

    switch (key) {
    case ARGP_KEY_INIT: tuck_exec_options_init(&r->o); break;
    case 'n': r->o.ranks = option_number(state, "-n", arg, 1, 1024); break;
    case OPT_SEED: r->o.seed = seed_of(state, arg); break;
    case OPT_INPUTS: r->o.inputs = arg; break;
    case OPT_OUTPUTS: r->o.outputs = arg; break;
    case OPT_STEPS:
        r->o.steps = (uint32_t)option_number(state, "--steps", arg, 1, 1000000);
        r->steps_given = true;
        break;
    case OPT_WARMUP:
        r->o.warmup = (uint32_t)option_number(state, "--warmup", arg, 0, 1000000);
        break;
    case OPT_TRANSPORT: r->o.transport = arg; break;
    case OPT_TIMEOUT: r->o.timeout_s = seconds_of(state, arg); break;
    case OPT_NO_PIN: r->o.no_pin = true; break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

const struct argp ranks_argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

static void sort_by_rank(const struct rank_files *f, tuck_graph **g, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (f->number[i] < 0)
            return;
    for (size_t i = from; i < to; i++) {
        size_t at = from;
        for (size_t k = from; k < to; k++)
            at += f->number[k] < f->number[i] || (f->number[k] == f->number[i] && k < i);
        g[at] = rank_files_graph(f, i);
    }
}

tuck_graph **ranks_graphs(const struct rank_files *f, size_t parts)
{
    tuck_graph **g = calloc(f->n, sizeof(tuck_graph *));

    for (size_t i = 0; g != NULL && i < f->n; i++)
        g[i] = rank_files_graph(f, i);
    for (size_t i = 0; g != NULL && i < parts; i++)
        sort_by_rank(f, g, f->n / parts * i, f->n / parts * (i + 1));
    return g;
}

int ranks_code(tuck_status st)
{
    return refused_or(st);
}

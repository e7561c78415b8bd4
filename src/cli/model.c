/* --cluster, --model, --profile: the machine, the model, the measurements. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/graphs.h"
#include "cli/job_input.h"
#include "cli/progress.h"

enum {
    OPT_CLUSTER = 0x300,
    OPT_MODEL,
    OPT_PROFILE,
    OPT_STRICT,
    OPT_MEASURED,
    OPT_PROVENANCE,
    OPT_MEASURED_STEPS,
    OPT_SYMM
};

static const struct argp_option options[] = {
    {"cluster", OPT_CLUSTER, "NAME|FILE", 0,
     "The machine: DEVICExPER_NODE[xNODES], as in h100x8x4, or a cluster file (default: by the "
     "graph)",
     2},
    {"model", OPT_MODEL, "MODEL", 0,
     "The model of collectives: auto, table, law, nccl, alpha-beta, torch, torch-old (default: "
     "auto, the first of the next four that covers the case)",
     2},
    {"profile", OPT_PROFILE, "FILE", 0, "Measured times of nodes, used instead of the model's", 2},
    {"measured", OPT_MEASURED, "TRACE", OPTION_MANY,
     "What torch.profiler recorded of this graph; first the trace of its rank. What is found in it "
     "has its measured time, the rest that of laws fitted to it",
     2},
    {"provenance", OPT_PROVENANCE, "FILE", 0,
     "With --measured: Inductor's mapping of kernels to nodes", 2},
    {"measured-steps", OPT_MEASURED_STEPS, "WHICH", 0,
     "With --measured: times come from even or odd steps, and are judged by the others (default: "
     "all)",
     2},
    {"symm-mem", OPT_SYMM, "GROUP", OPTION_MANY,
     "A group with symmetric memory, '*': all of them. Its all-reduces may be one-shot kernels", 2},
    {"strict", OPT_STRICT, NULL, 0, "Assume nothing: refuse graphs with unknown groups or sizes",
     2},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct model *m = state->input;

    switch (key) {
    case OPT_CLUSTER: m->cluster_name = arg; break;
    case OPT_PROFILE: m->profile_path = arg; break;
    case OPT_STRICT: m->strict = true; break;
    case OPT_MEASURED: option_append(state, &m->measured, &m->n_measured, arg); break;
    case OPT_SYMM: option_append(state, &m->symm, &m->n_symm, arg); break;
    case OPT_PROVENANCE: m->provenance = arg; break;
    case OPT_MEASURED_STEPS:
        m->every = strcmp(arg, "all") == 0 ? 0 : 2;
        m->rest = strcmp(arg, "odd") == 0;
        if (m->every != 0 && m->rest == 0 && strcmp(arg, "even") != 0)
            argp_error(state, "--measured-steps must be even, odd or all, found '%s'", arg);
        break;
    case ARGP_KEY_END:
        if (m->n_measured > 0 && m->profile_path != NULL)
            argp_error(state, "times come from --measured or from --profile, not from both");
        if (m->n_measured == 0 && (m->provenance != NULL || m->every != 0))
            argp_error(state, "--provenance and --measured-steps need --measured");
        return ARGP_ERR_UNKNOWN;
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

/* Is it a file: does it look like one, or does it exist? */
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

static bool warned_before(struct model *m, const char *name)
{
    for (size_t i = 0; i < m->n_warned; i++)
        if (strcmp(m->warned[i], name) == 0)
            return true;
    if (m->n_warned < sizeof(m->warned) / sizeof(*m->warned))
        m->warned[m->n_warned++] = name;
    return false;
}

/* How often a loop runs. The most expensive branch is an upper bound, and the tables say so. */
static void say_trips(struct model *m, const char *file, const tuck_assumption *x)
{
    if (m->strict)
        put_error(file, "how often the loop '%s' runs is unknown, and --strict assumes nothing",
                  x->name);
    else
        put_warning(file, "how often the loop '%s' runs is unknown: its time is that of one trip",
                    x->name);
}

static void say_assumed(struct model *m, const char *file, const tuck_assumption *x)
{
    progress_clear();
    if (x->what == TUCK_ASSUMED_TRIPS) {
        say_trips(m, file, x);
        return;
    }
    if (m->strict)
        put_error(file, "the size of group '%s' is unknown, and --strict assumes none", x->name);
    else
        put_warning(file, "the size of group '%s' is unknown: %" PRId64 " ranks are assumed on %s",
                    x->name, x->value, tuck_cluster_name(m->cluster));
    put_to(stderr, TINT_DIM, "  note: give it with --group '%s=SIZE', or in a side-car file",
           x->name);
    fputc('\n', stderr);
}

int model_groups(struct model *m, const struct input *in, const tuck_graph *g)
{
    tuck_assumptions *a = NULL;
    int code = exit_code_of(tuck_graph_assumptions(g, m->cluster, &a));

    for (size_t i = 0; i < tuck_assumptions_count(a); i++) {
        const tuck_assumption *x = tuck_assumptions_at(a, i);

        if (x->what == TUCK_ASSUMED_BRANCH)
            continue;
        if (!warned_before(m, x->name))
            say_assumed(m, in->path, x);
        code = m->strict ? EXIT_REFUSED : code;
    }
    tuck_assumptions_free(a);
    return code;
}

/* A graph that was tied to the traces of --measured, and its simulation. */
struct model_tie {
    tuck_tie *tie;
    tuck_simulation *s;
    char *json;
    struct model_tie *next;
};

void model_forget(struct model *m)
{
    if (m->cluster_name != NULL || m->cluster == NULL)
        return;
    if (m->tie != NULL && m->tie->tie != NULL && m->cluster == tuck_tie_cluster(m->tie->tie)) {
        m->cluster = NULL; /* the tie keeps it */
        return;
    }
    tuck_cluster **more = realloc(m->old, (m->n_old + 1) * sizeof(*more));
    if (more != NULL) { /* otherwise it is not freed: pictures may still use it */
        m->old = more;
        m->old[m->n_old++] = m->cluster;
    }
    m->cluster = NULL;
}

/* ---- measured ---- */

/* For JSON documents. */
static tuck_status tie_text(struct model_tie *x)
{
    tuck_print_options how = print_how(true);
    size_t len = 0;
    FILE *f = open_memstream(&x->json, &len);

    if (f == NULL)
        return TUCK_ENOMEM;
    tuck_status st = tuck_tie_print(x->tie, x->s, &how, to_file, f);
    return fclose(f) == 0 ? st : TUCK_ENOMEM;
}

const char *model_measured(const struct model *m)
{
    return m->tie != NULL ? m->tie->json : NULL;
}

static int tie_graph(struct model *m, const struct input *in, tuck_graph *g, bool *assumed)
{
    tuck_tie_options o;
    tuck_machine machine;
    struct model_tie *x = calloc(1, sizeof(*x));
    int code = x != NULL ? EXIT_FINE : exit_code_of(TUCK_ENOMEM);

    if (code == EXIT_FINE && m->traces == NULL)
        code = traces_open(m->measured, m->n_measured, in->diags, &m->traces);
    if (x == NULL)
        return code;
    x->next = m->tie;
    m->tie = x;
    m->profile = NULL;
    if (code != EXIT_FINE)
        return code;
    tuck_tie_options_init(&o);
    o.provenance = m->provenance;
    o.every = m->every;
    o.rest = m->rest;
    model_public(m, in, &machine);
    tuck_status st = tuck_traces_tie(m->traces, g, &machine, &o, in->diags, &x->tie);
    if (st == TUCK_OK) {
        m->profile = tuck_tie_profile(x->tie);
        if (m->cluster_name == NULL && tuck_tie_cluster(x->tie) != NULL) {
            model_forget(m);
            m->cluster = tuck_tie_cluster(x->tie);
            *assumed = false;
        }
        model_public(m, in, &machine);
        st = tuck_graph_simulate(g, &machine, in->diags, &x->s);
    }
    if (st == TUCK_OK)
        st = tie_text(x);
    print_diags(in->diags);
    return refused_or(st);
}

void put_tie(const struct model *m, FILE *f)
{
    tuck_print_options how = print_how(false);

    if (m->tie != NULL && m->tie->tie != NULL)
        (void)tuck_tie_print(m->tie->tie, m->tie->s, &how, to_file, f);
}

static void drop_ties(struct model *m)
{
    while (m->tie != NULL) {
        struct model_tie *x = m->tie;
        m->tie = x->next;
        tuck_simulation_free(x->s);
        tuck_tie_free(x->tie);
        free(x->json);
        free(x);
    }
    tuck_traces_free(m->traces);
    free(m->measured);
    m->traces = NULL;
    m->measured = NULL;
}

int model_for(struct model *m, const struct input *in, tuck_graph *g, bool *assumed)
{
    *assumed = m->cluster_name == NULL;
    if (*assumed) {
        model_forget(m);
        tuck_status st = tuck_cluster_for_graph(g, NULL, in->diags, &m->cluster);
        print_diags(in->diags);
        if (st != TUCK_OK)
            return exit_code_of(st);
    }
    int code = model_groups(m, in, g);
    return code == EXIT_FINE && m->n_measured > 0 ? tie_graph(m, in, g, assumed) : code;
}

bool model_is_asked(const struct model *m)
{
    return m->cluster_name != NULL || m->profile_path != NULL || m->kind != TUCK_MODEL_AUTO ||
           m->strict || m->n_measured > 0 || m->n_symm > 0;
}

void model_close(struct model *m)
{
    for (size_t i = 0; i < m->n_old; i++)
        tuck_cluster_free(m->old[i]);
    free(m->old);
    if (m->n_measured == 0) /* a tie keeps its own */
        tuck_profile_free(m->profile);
    if (m->tie == NULL || m->tie->tie == NULL || m->cluster != tuck_tie_cluster(m->tie->tie))
        tuck_cluster_free(m->cluster);
    drop_ties(m);
    free(m->symm);
    m->symm = NULL;
    m->n_symm = 0;
    m->old = NULL;
    m->n_old = 0;
    m->cluster = NULL;
    m->profile = NULL;
}

enum { NAMED = 5 };
enum { NO_NODE, TAKES_TIME, TAKES_NONE }; /* what a name in a profile refers to */

/* Warns about names of the profile, naming the first. */
static void warn_names(const struct model *m, const uint8_t *seen, uint8_t what, const char *text)
{
    uint32_t n = 0;
    const char *name;
    int64_t ps;

    for (size_t i = 0; (name = tuck_profile_name(m->profile, i)) != NULL; i++) {
        if (seen[i] != what ||
            (what == TAKES_NONE && tuck_profile_ps(m->profile, name, &ps) && ps == 0))
            continue;
        if (n == 0)
            put_warning(m->profile_path, "%s:", text);
        if (n++ < NAMED)
            fprintf(stderr, "%s%s", n == 1 ? "  " : ", ", name);
    }
    if (n > 0)
        fprintf(stderr, n > NAMED ? ", … (%u more)\n" : "\n", n - NAMED);
}

/* Warns about names that match nothing and times on nodes that take no time: both have no
 * effect. */
static int check_profile(const struct model *m, const struct input *in, size_t from, size_t to)
{
    uint8_t *seen = calloc(tuck_profile_count(m->profile) + 1, 1);
    const char *name;

    if (seen == NULL)
        return exit_code_of(TUCK_ENOMEM);
    for (size_t k = 0; (name = tuck_profile_name(m->profile, k)) != NULL; k++)
        for (size_t i = from; i < to; i++) {
            tuck_graph *g = tuck_doc_graph(in->doc, i);
            tuck_node n = tuck_graph_find(g, name);
            if (!tuck_is_none(n) && seen[k] != TAKES_TIME)
                seen[k] = tuck_node_takes_time(g, n) ? TAKES_TIME : TAKES_NONE;
            else if (tuck_is_none(n) && seen[k] == NO_NODE && tuck_graph_child_count(g) > 0)
                seen[k] = TAKES_TIME; /* perhaps in a nested graph */
        }
    warn_names(m, seen, NO_NODE, "these names match no node");
    warn_names(m, seen, TAKES_NONE, "these are views, waits or inputs, and take no time");
    free(seen);
    return EXIT_FINE;
}

int model_input_open(struct model *m, struct input *in, size_t *from, size_t *to)
{
    int code = input_open(in);

    if (code == EXIT_FINE)
        code = input_range(in, from, to);
    if (code == EXIT_FINE)
        code = model_open(m, in->diags);
    for (size_t i = 0; code == EXIT_FINE && i < m->n_symm; i++)
        if (strcmp(m->symm[i], "*") != 0)
            code = graph_check_groups(in, "--symm-mem", &m->symm[i], 1);
    if (code == EXIT_FINE && m->cluster != NULL && in->rank >= tuck_cluster_ranks(m->cluster)) {
        fprintf(stderr, "tuck: --rank %ld: cluster '%s' has ranks 0 to %lld\n", in->rank,
                tuck_cluster_name(m->cluster), (long long)tuck_cluster_ranks(m->cluster) - 1);
        code = EXIT_USAGE;
    }
    if (code == EXIT_FINE && m->profile != NULL && !m->any_name)
        code = check_profile(m, in, *from, *to);
    return code;
}

void model_public(const struct model *m, const struct input *in, tuck_machine *out)
{
    tuck_machine_init(out);
    out->cluster = m->cluster;
    out->profile = m->profile;
    out->model = m->kind;
    out->hints = in->hints;
    out->n_hints = in->n_hint;
    out->contention = m->contention ? TUCK_LINKS_SHARED : TUCK_LINKS_FREE;
    out->unknown = m->strict ? TUCK_REFUSE : TUCK_ASSUME;
    out->symm_groups = m->symm;
    out->n_symm_groups = m->n_symm;
}

static void put_assumed(const struct model *m, const tuck_graph *g)
{
    tuck_assumptions *a = NULL;
    tuck_print_options how = print_how(false);

    if (tuck_graph_assumptions(g, m->cluster, &a) == TUCK_OK)
        tuck_assumptions_print(a, &how, to_file, stdout);
    tuck_assumptions_free(a);
}

void put_machine(const struct model *m, const tuck_graph *g, bool assumed)
{
    put(TINT_HEAD, "%s", *tuck_graph_name(g) ? tuck_graph_name(g) : "forward");
    printf(" on %s", tuck_cluster_name(m->cluster));
    put_line(TINT_DIM, "%s", assumed ? " (assumed; --cluster names another)" : "");
    put_assumed(m, g);
    if (m->contention) {
        char text[400];
        snprintf(text, sizeof(text), "contention: %s", tuck_cluster_contention(m->cluster));
        put_wrapped(TINT_DIM, 2, text);
    }
    put_tie(m, stdout);
}

void listing_how(const struct listing *l, tuck_print_options *out)
{
    *out = print_how(l->json);
    out->top = l->top > 0 ? l->top : TUCK_NO_ROWS;
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
            return ARGP_ERR_UNKNOWN; /* the file belongs to the child parser */
        if (q->word == NULL && job_takes(state, &q->in, arg))
            return 0;
        if (q->word != NULL)
            argp_error(state, "%s, found '%s' after '%s'", most, arg, q->word);
        q->word = arg;
        return 0;
    default: return listing_parse(&q->list, key, arg, state);
    }
}

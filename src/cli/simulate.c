/* tuck simulate: what a graph takes on a machine. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/picture.h"

enum { OPT_TIMELINE = 0x500, OPT_WORLD, OPT_SCALE, OPT_BANDWIDTH, OPT_TOP };

struct simulate {
    struct input in;
    struct model model;
    struct picture picture;
    bool json, timeline;
    int64_t world_from, world_to; /* 0: no curve */
    const char **scale;           /* groups that grow with the world */
    size_t n_scale;
    double bandwidth;
    uint32_t top;
};

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "Everything, for other programs", 0},
    {"timeline", OPT_TIMELINE, NULL, 0, "... with every op's times", 0},
    {"top", OPT_TOP, "N", 0, "Show the N most exposed collectives (10)", 0},
    {"world", OPT_WORLD, "A..B", 0,
     "A scaling curve: A, 2A, 4A, … B ranks in the groups of --scale; full messages and compute "
     "stay as they are",
     0},
    {"scale", OPT_SCALE, "GROUP", 0, "A group that grows with --world (default: the largest)", 0},
    {"bandwidth", OPT_BANDWIDTH, "Fx", 0, "Links F times as fast: 0.5x", 0},
    {NULL, 0, NULL, 0, "The graph:", 1},
    {0},
};

static int64_t whole(struct argp_state *state, const char *what, const char *s, char **end)
{
    errno = 0;
    long long v = strtoll(s, end, 10);
    if (errno != 0 || *end == s || v < 1)
        argp_error(state, "%s: a number from 1 on is expected, found '%s'", what, s);
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

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct simulate *s = state->input;
    char *end;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &s->in;
        state->child_inputs[1] = &s->model;
        state->child_inputs[2] = &s->picture;
        break;
    case 'j': s->json = true; break;
    case OPT_TIMELINE: s->timeline = s->json = true; break;
    case OPT_TOP:
        s->top = (uint32_t)whole(state, "--top", arg, &end);
        if (*end != '\0')
            argp_error(state, "--top wants a number, found '%s'", arg);
        break;
    case OPT_WORLD: parse_world(state, s, arg); break;
    case OPT_SCALE: {
        const char **more = realloc(s->scale, (s->n_scale + 1) * sizeof(*more));
        if (more == NULL)
            argp_failure(state, EXIT_MEMORY, ENOMEM, "options");
        s->scale = more;
        more[s->n_scale++] = arg;
        break;
    }
    case OPT_BANDWIDTH:
        s->bandwidth = strtod(arg, &end);
        if (end == arg || strcmp(end, "x") != 0 || !(s->bandwidth > 0) || s->bandwidth > 1e6)
            argp_error(state, "--bandwidth wants a factor as 0.5x, found '%s'", arg);
        break;
    default: return ARGP_ERR_UNKNOWN;
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
    "FILE",
    "Simulate the graphs of FILE as they stand: step time, compute, communication and how much of "
    "it is exposed, peak memory, and lower bounds that no order can beat.",
    children,
    NULL,
    NULL};

struct print_args {
    const struct evaluation *e;
    const struct simulate *s;
    struct buf b;
};

static void do_print(void *arg)
{
    struct print_args *x = arg;

    if (x->s->json)
        evaluation_json(x->e, x->s->timeline, &x->b);
    else
        evaluation_table(x->e, x->s->top, &x->b);
    buf_flush(&x->b);
}

static int print(const struct simulate *s, const struct evaluation *e)
{
    struct mem m;
    struct print_args x = {.e = e, .s = s};

    mem_init(&m, NULL);
    buf_to(&x.b, &m, to_stdout, NULL);
    bool ok = mem_guard(&m, do_print, &x);
    buf_destroy(&x.b);
    return ok ? EXIT_FINE : exit_code_of(TUCK_ENOMEM);
}

static void set_options(const struct simulate *s, struct evaluate_options *o)
{
    evaluate_defaults(o);
    o->cluster = s->model.cluster;
    o->cost.collective.model = s->model.kind;
    o->cost.profile = s->model.profile;
    o->hint = s->in.hint;
    o->n_hint = s->in.n_hint;
    if (s->bandwidth > 0)
        o->bandwidth = s->bandwidth;
}

static int evaluate(struct simulate *s, tuck_graph *g, struct evaluation *e, bool *assumed)
{
    struct evaluate_options o;
    tuck_status st = tuck_graph_infer(g, false, s->in.diags);
    int code = st == TUCK_OK ? model_for(&s->model, g, s->in.diags, assumed) : exit_code_of(st);

    if (code != EXIT_FINE)
        return code;
    set_options(s, &o);
    st = evaluate_graph(g, &o, s->in.diags, e);
    print_diags(s->in.diags);
    if (st != TUCK_OK)
        evaluate_end(e);
    return st == TUCK_EINVAL ? EXIT_REFUSED : exit_code_of(st);
}

/* ---- scaling ---- */

static bool grows(const struct simulate *s, const tuck_graph *g, size_t i)
{
    size_t largest = 0;

    for (size_t k = 0; k < s->n_scale; k++)
        if (strcmp(s->scale[k], tuck_graph_group_name(g, i)) == 0)
            return true;
    if (s->n_scale > 0)
        return false;
    for (size_t k = 1; k < tuck_graph_group_count(g); k++)
        if (tuck_graph_group_size(g, k) > tuck_graph_group_size(g, largest))
            largest = k;
    return i == largest;
}

static int curve(struct simulate *s, const tuck_graph *original)
{
    int code = EXIT_FINE;

    if (!s->json)
        printf("%8s %12s %12s %12s %12s %8s\n", "ranks", "step ms", "comm ms", "exposed ms",
               "bound ms", "gap");
    for (int64_t w = s->world_from; code == EXIT_FINE && w <= s->world_to; w *= 2) {
        struct evaluation e;
        tuck_graph *g;
        bool assumed;

        code = exit_code_of(tuck_graph_copy(original, &g));
        if (code != EXIT_FINE)
            break;
        for (size_t i = 0; i < tuck_graph_group_count(g); i++)
            if (grows(s, original, i) &&
                tuck_graph_set_group(g, tuck_graph_group_name(g, i), w, NULL, NULL) != TUCK_OK)
                code = EXIT_USAGE;
        if (code == EXIT_FINE)
            code = evaluate(s, g, &e, &assumed);
        if (code == EXIT_FINE) {
            if (s->json)
                print(s, &e);
            else
                printf("%8lld %12.3f %12.3f %12.3f %12.3f %7.1f%%\n", (long long)w,
                       (double)e.time.makespan / 1e9, (double)e.time.comm / 1e9,
                       (double)e.time.exposed / 1e9, (double)e.any.ps / 1e9,
                       100 * evaluation_gap(&e));
            evaluate_end(&e);
        }
        tuck_graph_free(g);
    }
    if (!s->json && code == EXIT_FINE)
        puts("Full messages and compute are those of the graph; the machine has as many nodes as "
             "the ranks need.");
    return code;
}

static int simulate(struct simulate *s, tuck_graph *g)
{
    struct evaluation e;
    bool assumed;
    int code = evaluate(s, g, &e, &assumed);

    if (code != EXIT_FINE)
        return code;
    if (!s->json)
        printf("%s on %s%s\n", *tuck_graph_name(g) ? tuck_graph_name(g) : "forward",
               tuck_cluster_name(s->model.cluster),
               assumed ? " (assumed; --cluster names another)" : "");
    code = print(s, &e);
    evaluate_end(&e);
    if (code == EXIT_FINE && picture_wanted(&s->picture)) {
        static const char *const label[] = {"as it stands"};
        struct evaluate_options o;
        set_options(s, &o);
        code = picture_write(&s->picture, s->in.path, &g, label, 1, &o, s->in.diags);
    }
    return code;
}

int cmd_simulate(int argc, char **argv)
{
    struct simulate s = {.top = 10};
    size_t from = 0, to = 0;

    argp_parse(&argp, argc, argv, 0, NULL, &s);
    int code = input_open(&s.in);
    if (code == EXIT_FINE)
        code = input_range(&s.in, &from, &to);
    if (code == EXIT_FINE)
        code = model_open(&s.model, s.in.diags);
    if (code == EXIT_FINE)
        input_warn_groups(&s.in);
    for (size_t i = from; code == EXIT_FINE && i < to; i++)
        code = s.world_from ? curve(&s, tuck_doc_graph(s.in.doc, i))
                            : simulate(&s, tuck_doc_graph(s.in.doc, i));
    free(s.scale);
    model_close(&s.model);
    input_close(&s.in);
    return code;
}

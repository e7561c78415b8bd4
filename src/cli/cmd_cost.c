/* tuck cost: what a collective takes on a cluster, or every node of a graph. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/graphs.h"
#include "cost/kernel_cost.h"
#include "graph/symbol_values.h"
#include "infer/infer.h"

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
    const char *coll_name; /* of a collective: the first word, then the size */
    tuck_collective q;
    bool one_shot, sized, json, write_profile, assumed;
    long top;
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Of a collective:", 0},
    {"ranks", OPT_RANKS, "N", 0, "Ranks of the group (default: all of the cluster)", 0},
    {"stride", OPT_STRIDE, "N", 0, "Distance of its members' global ranks (default: 1)", 0},
    {"symmetric", OPT_SYMMETRIC, NULL, 0,
     "The operand is in symmetric memory: one-shot and two-shot may be taken", 0},
    {"hierarchical", OPT_HIERARCHICAL, NULL, 0,
     "It may be done in phases, within nodes and across them", 0},
    {"one-shot", OPT_ONE_SHOT, "SIZE", 0,
     "PyTorch's rule: all-reduces up to SIZE are one-shot, whatever that takes", 0},
    {NULL, 0, NULL, 0, "Of a graph:", 1},
    {"top", OPT_MOST, "N", 0, "How many nodes to show, the dearest first (default: 20; 0: all)", 1},
    {"write-profile", OPT_WRITE, NULL, 0, "Print the times as a profile file", 1},
    {NULL, 0, NULL, 0, "Of both:", 2},
    {"json", 'j', NULL, 0, "For other programs; of a graph all nodes", 2},
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

/* A collective by its name, however its words are joined: all_reduce, all-reduce, AllReduce. 0: none. */
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
        return ARGP_ERR_UNKNOWN; /* a graph's file */
    if (c->sized)
        argp_error(state, "one size only, found '%s' too", arg);
    c->q.bytes = parse_bytes(arg);
    c->sized = true;
    if (c->q.bytes < 0)
        argp_error(state, "'%s' is no size: 4096, 64KB, 25MB, 1.5GB (1 KB = 1 KiB = 1024 bytes)",
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
        c->q.one_shot_bytes = parse_bytes(arg);
        if (c->q.one_shot_bytes < 0)
            argp_error(state, "--one-shot: '%s' is no size", arg);
        break;
    case ARGP_KEY_ARG: return parse_arg(c, arg, state);
    case ARGP_KEY_END:
        if (c->coll_name != NULL && !c->sized)
            argp_error(state, "of which size? `tuck cost %s 25MB'", c->coll_name);
        if (c->coll_name == NULL && c->in.path == NULL)
            argp_error(state, "a collective and its size, or a file with a graph");
        if (c->json && c->write_profile)
            argp_error(state, "--json and --write-profile are two forms");
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
    "What a collective takes on a cluster, with how that comes about and what else there was: "
    "all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, p2p, shard_dim_alltoall. SIZE "
    "is "
    "the full message, the larger of what goes in and what comes out of a rank: 4096, 64KB, 25MB "
    "(1 KB = 1 KiB = 1024 bytes). Or what every node of the graphs of FILE takes by itself.",
    children,
    NULL,
    NULL};

/* ---- a collective ---- */

static const char *way_name(tuck_algorithm a, const char *protocol, char out[48])
{
    snprintf(out, 48, "%s%s%s", tuck_algorithm_name(a), *protocol ? " " : "", protocol);
    return out;
}

static void put_collective(const struct cost *c, const tuck_collective_cost *x)
{
    char t1[32], t2[48], b[32];
    const tuck_cluster *k = c->model.cluster;

    put_line(INK_HEAD, "%s of %s (%" PRId64 " bytes) over %" PRId64 " ranks of %s", c->coll_name,
             human_bytes(c->q.bytes, b), c->q.bytes, c->q.ranks, tuck_cluster_name(k));
    if (c->assumed)
        put_line(INK_DIM, "  cluster    %s, assumed; say it with --cluster", tuck_cluster_name(k));
    printf("  group      %" PRId64 " node%s, at most %" PRId64 " rank%s on one\n", x->nodes,
           x->nodes == 1 ? "" : "s", x->per_node, x->per_node == 1 ? "" : "s");
    put_line(INK_HEAD, "  time       %s", human_us(x->us, t1));
    printf("  latency    %s, whatever the size\n", human_us(x->latency_us, t1));
    if (x->ramp_us > 0)
        printf("  ramp       %s, with the root of the size\n", human_us(x->ramp_us, t1));
    printf("  bytes      %s", human_us(x->bytes_us, t1));
    if (x->us > 0)
        put(INK_DIM, "; %.1f GB/s over all", (double)c->q.bytes / (1000 * x->us));
    printf("\n  algorithm  %s\n", way_name(x->algorithm, x->protocol, t2));
    printf("  model      %s: ", tuck_cost_model_name(x->model));
    put_line(INK_DIM, "%s", x->source);
    for (uint32_t i = 0; i < x->n_alternatives && x->n_alternatives > 1; i++)
        put_line(x->alternative[i].us == x->us ? INK_GOOD : INK_PLAIN, "  %-10s %-20s %-11s %s%s",
                 i == 0 ? "all ways" : "",
                 way_name(x->alternative[i].algorithm, x->alternative[i].protocol, t2),
                 tuck_cost_model_name(x->alternative[i].model), human_us(x->alternative[i].us, t1),
                 x->alternative[i].symmetric ? ", with symmetric memory" : "");
}

struct json_args {
    const struct cost *c;
    const tuck_collective_cost *x;
};

static void do_json_collective(struct buf *b, const void *ctx)
{
    const struct json_args *a = ctx;
    const tuck_collective_cost *x = a->x;
    struct json_out j;

    json_begin(&j, b);
    json_open(&j, NULL, '{');
    json_schema(&j, 1);
    json_str(&j, "cluster", tuck_cluster_name(a->c->model.cluster));
    json_str(&j, "coll", a->c->coll_name);
    json_int(&j, "bytes", a->c->q.bytes);
    json_int(&j, "ranks", a->c->q.ranks);
    json_int(&j, "nodes", x->nodes);
    json_int(&j, "per_node", x->per_node);
    json_float(&j, "ns", 1e3 * x->us);
    json_float(&j, "latency_ns", 1e3 * x->latency_us);
    json_float(&j, "ramp_ns", 1e3 * x->ramp_us);
    json_float(&j, "bytes_ns", 1e3 * x->bytes_us);
    json_str(&j, "model", tuck_cost_model_name(x->model));
    json_str(&j, "algorithm", tuck_algorithm_name(x->algorithm));
    json_str(&j, "protocol", x->protocol);
    json_str(&j, "source", x->source);
    json_open(&j, "alternatives", '[');
    for (uint32_t i = 0; i < x->n_alternatives; i++) {
        json_open(&j, NULL, '{');
        j.flat = true;
        json_float(&j, "ns", 1e3 * x->alternative[i].us);
        json_str(&j, "model", tuck_cost_model_name(x->alternative[i].model));
        json_str(&j, "algorithm", tuck_algorithm_name(x->alternative[i].algorithm));
        json_str(&j, "protocol", x->alternative[i].protocol);
        json_bool(&j, "symmetric", x->alternative[i].symmetric);
        json_close(&j, '}');
        j.flat = false;
    }
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}

static int cost_of_collective(struct cost *c)
{
    tuck_diags *diags = tuck_diags_new(NULL);
    tuck_collective_cost x;

    if (diags == NULL)
        return exit_code_of(TUCK_ENOMEM);
    c->assumed = c->model.cluster_name == NULL;
    if (c->assumed)
        c->model.cluster_name = "h100x8";
    int code = model_open(&c->model, diags);
    tuck_diags_free(diags);
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
    if (st != TUCK_OK)
        return exit_code_of(st);
    if (c->json)
        return print_through(do_json_collective, &(struct json_args){c, &x});
    put_collective(c, &x);
    return EXIT_FINE;
}

/* ---- a graph ---- */

struct priced {
    uint32_t node;
    struct cost_part part;
};

struct graph_cost {
    const struct cost *c;
    tuck_graph *g;
    uint32_t line;
    bool assumed;
    struct mem mem;
    struct cost_run run;
    struct assume assume;
    VEC(struct priced) node; /* all of them, in order */
    VEC(uint32_t) order;     /* those with a time, dearest first */
    struct cost_assumed *assumed_group;
    uint32_t n_assumed, unknown_colls;
    double inside; /* what collectives in nested graphs take */
    double total[BOUND_UNKNOWN + 1];
    size_t count[BOUND_UNKNOWN + 1];
};

static int dearer(const void *a, const void *b, void *all)
{
    const struct priced *x = (struct priced *)all + *(const uint32_t *)a;
    const struct priced *y = (struct priced *)all + *(const uint32_t *)b;

    if (x->part.ns != y->part.ns)
        return x->part.ns > y->part.ns ? -1 : 1;
    return (x > y) - (x < y);
}

static void gather(void *p)
{
    struct graph_cost *a = p;

    cost_run_graph(&a->run, a->g);
    a->n_assumed = cost_assumed_find(a->g, a->c->model.cluster, &a->run.arena, &a->assumed_group);
    for_each_node (a->g, n) {
        struct priced x = {.node = n};
        cost_node(&a->run, n, &x.part);
        bool measured = x.part.coll != 0 &&
                        (x.part.bound == BOUND_PROFILE || x.part.bound == BOUND_CALLER);
        enum cost_bound as = measured ? BOUND_COLLECTIVE : (enum cost_bound)x.part.bound;
        a->count[as]++;
        a->inside += x.part.bound == BOUND_NESTED ? x.part.comm_ns : 0;
        a->unknown_colls += x.part.bound == BOUND_UNKNOWN && x.part.coll != 0;
        if (x.part.ns > 0) {
            a->total[as] += x.part.ns;
            vec_push(&a->mem, &a->order, a->node.len);
        }
        vec_push(&a->mem, &a->node, x);
    }
    if (a->order.len > 0)
        qsort_r(a->order.at, a->order.len, sizeof(*a->order.at), dearer, a->node.at);
}

static const char *op_name(const tuck_graph *g, uint32_t n)
{
    const char *target = graph_str(g, node_at(g, n)->target);

    return strncmp(target, "torch.ops.", 10) == 0 ? target + 10 : target;
}

static void print_assumed(struct buf *b, const void *ctx)
{
    const struct graph_cost *a = ctx;

    cost_assumed_table(b, a->assumed_group, a->n_assumed, a->assume.used_default);
}

/* By which law the collectives that a profile does not name have their times. */
static void put_laws(const struct cost_laws *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const struct cost_fit *f = &l->at[i];
        printf("  law          %s on group %s: ", tuck_coll_name((tuck_coll)f->coll), f->group);
        if (f->factor > 0)
            printf("%.3g times the model's, from one size", f->factor);
        else if (isfinite(f->law.b))
            printf("%.4g us%s + bytes / %.4g GB/s, from %u sizes", f->law.a,
                   f->law.c > 0 ? " + a root" : "", f->law.b / 1000, f->n);
        else
            printf("%.4g us whatever the size, from %u sizes", f->law.a, f->n);
        put_line(INK_DIM, "; off by at most %.1f %%", 100 * f->residual);
    }
}

static void put_head(const struct graph_cost *a)
{
    double kernels = 0, all = 0;
    char t[32], u[32], v[32];

    for (int i = 0; i <= BOUND_UNKNOWN; i++)
        all += a->total[i];
    kernels = all - a->total[BOUND_COLLECTIVE] - a->inside;
    put_line(INK_HEAD, "%s:%u: %s", a->c->in.path, a->line,
             *tuck_graph_name(a->g) ? tuck_graph_name(a->g) : "def forward");
    printf("  cluster      %s", tuck_cluster_name(a->c->model.cluster));
    put_line(INK_DIM, "%s", a->assumed ? ", assumed; say it with --cluster" : "");
    printf("  kernels      %s: arithmetic %s, memory %s", human_us(kernels / 1000, t),
           human_us(a->total[BOUND_COMPUTE] / 1000, u), human_us(a->total[BOUND_MEMORY] / 1000, v));
    printf(", too small %s", human_us(a->total[BOUND_KERNEL] / 1000, t));
    if (a->count[BOUND_NESTED] > 0)
        printf(", nested %s", human_us((a->total[BOUND_NESTED] - a->inside) / 1000, t));
    if (a->count[BOUND_PROFILE] > 0)
        printf(", by profile %s", human_us(a->total[BOUND_PROFILE] / 1000, t));
    printf("\n  collectives  %s, %zu of them", human_us(a->total[BOUND_COLLECTIVE] / 1000, t),
           a->count[BOUND_COLLECTIVE]);
    if (a->inside > 0)
        printf(", and %s in nested graphs", human_us(a->inside / 1000, t));
    putchar('\n');
    if (a->count[BOUND_UNKNOWN] > 0)
        put_line(INK_LIMIT, "  unknown      %zu node%s whose sizes or groups are not known",
                 a->count[BOUND_UNKNOWN], a->count[BOUND_UNKNOWN] == 1 ? "" : "s");
    put_laws(&a->run.options.laws);
    print_through(print_assumed, a);
}

static void put_nodes(const struct graph_cost *a)
{
    size_t n = a->c->top == 0 || (size_t)a->c->top > a->order.len ? a->order.len
                                                                  : (size_t)a->c->top;
    char t[32], b[32];

    if (n == 0)
        return;
    put_line(INK_HEAD, "  %10s  %-10s %10s %12s  %-28s %s", "time", "bound", "GFLOP", "bytes",
             "node", "operator");
    for (size_t i = 0; i < n; i++) {
        const struct priced *x = &a->node.at[a->order.at[i]];
        char flops[32] = "";
        if (x->part.flops > 0)
            snprintf(flops, sizeof(flops), "%.2f", x->part.flops / 1e9);
        printf("  %10s  ", human_us(x->part.ns / 1000, t));
        put(x->part.bound == BOUND_COLLECTIVE ? INK_LIMIT : INK_PLAIN, "%-10s",
            cost_bound_name((enum cost_bound)x->part.bound));
        printf(" %10s %12s  %-28s ", flops, human_bytes(x->part.bytes, b),
               graph_str(a->g, node_at(a->g, x->node)->name));
        put_line(INK_DIM, "%s", op_name(a->g, x->node));
    }
    if (n < a->order.len)
        put_line(INK_DIM, "  … and %zu more; --top 0 shows all", a->order.len - n);
}

static void do_json_graph(struct buf *b, const void *ctx)
{
    const struct graph_cost *a = ctx;
    struct json_out j;

    json_begin(&j, b);
    json_open(&j, NULL, '{');
    json_schema(&j, 1);
    if (b->head == NULL) {
        json_str(&j, "file", a->c->in.path);
        json_int(&j, "line", a->line);
    }
    json_str(&j, "cluster", tuck_cluster_name(a->c->model.cluster));
    json_bool(&j, "cluster_assumed", a->assumed);
    json_str(&j, "model", tuck_cost_model_name(a->c->model.kind));
    cost_assumed_json(&j, a->assumed_group, a->n_assumed, a->assume.used_default);
    json_open(&j, "nodes", '[');
    for (uint32_t i = 0; i < a->node.len; i++) {
        const struct priced *x = &a->node.at[i];
        json_open(&j, NULL, '{');
        j.flat = true;
        json_str(&j, "name", graph_str(a->g, node_at(a->g, x->node)->name));
        if (x->part.bound == BOUND_UNKNOWN)
            json_null(&j, "ns");
        else
            json_float(&j, "ns", x->part.ns);
        json_str(&j, "bound", cost_bound_name((enum cost_bound)x->part.bound));
        json_float(&j, "flops", x->part.flops);
        json_int(&j, "bytes", x->part.bytes);
        if (x->part.comm_ns > 0)
            json_float(&j, "communication_ns", x->part.comm_ns);
        if (x->part.coll != 0)
            json_str(&j, "coll", tuck_coll_name((tuck_coll)x->part.coll));
        json_close(&j, '}');
        j.flat = false;
    }
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}

/* The times of ops, which are what a step is made of: a loop's on the node that it is named after, and nothing on the others of
 * the loop. So a profile that is read back gives the same step. */
static int print_profile(const struct graph_cost *a)
{
    struct program *p = NULL;
    struct lower_options lower;
    double *ns = calloc(tuck_graph_id_end(a->g) + 1, sizeof(*ns));

    if (ns == NULL)
        return exit_code_of(TUCK_ENOMEM);
    lower_defaults(&lower);
    struct machine machine;
    model_machine(&a->c->model, &a->c->in, &machine);
    machine.cost = a->run.options;
    lower.machine = &machine;
    tuck_status st = lower_graph(a->g, &lower, a->c->in.diags, &p);
    if (st == TUCK_OK)
        st = lower_estimate(p, a->g, &machine);
    for (uint32_t i = 0; i < tuck_graph_id_end(a->g); i++)
        ns[i] = -1;
    for (uint32_t i = 0; st == TUCK_OK && i < p->n_op; i++) {
        if (p->op[i].kind == PROGRAM_COPY || p->op[i].kind == PROGRAM_WAIT)
            continue; /* copies have no node of their own */
        for (uint32_t k = p->node_at[i]; k < p->node_at[i + 1]; k++)
            if (p->op[i].kind == PROGRAM_FUSED && !cost_takes_none(a->g, p->node_id[k]))
                ns[p->node_id[k]] = 0;
        if (!cost_takes_none(a->g, p->op[i].node))
            ns[p->op[i].node] = p->op[i].ns;
    }
    print_diags(a->c->in.diags);
    if (st == TUCK_OK)
        st = tuck_profile_write(a->g, ns, to_file, stdout);
    program_free(p);
    free(ns);
    return refused_or(st);
}

/* Groups that the cluster has no room for. */
static void warn_large(const struct cost *c, const tuck_graph *g)
{
    for (uint32_t i = 0; i < g->group.len; i++)
        if (g->group.at[i].size > tuck_cluster_ranks(c->model.cluster))
            put_warning(c->in.path,
                        "group '%s' has %" PRId64 " ranks, cluster '%s' has %" PRId64
                        "; priced as if it had more nodes",
                        graph_str(g, g->group.at[i].name), g->group.at[i].size,
                        tuck_cluster_name(c->model.cluster), tuck_cluster_ranks(c->model.cluster));
}

/* Nodes of unknown cost: a warning, or a refusal by the same rule as for programs. */
static int tell_gaps(struct graph_cost *a)
{
    struct gaps gaps = {.n_op = a->node.len - (uint32_t)a->count[BOUND_NOTHING],
                        .n_unknown = (uint32_t)a->count[BOUND_UNKNOWN],
                        .n_coll = a->unknown_colls};
    bool refused = gaps_refuse(&gaps) || (gaps.n_unknown > 0 && a->c->model.strict);
    uint32_t named = 0;

    if (gaps.n_unknown == 0)
        return EXIT_FINE;
    if (a->assume.n_missing > 0)
        assume_meet_all(&a->assume, a->g);
    (refused ? put_error : put_warning)(
        a->c->in.path, "the cost of %u of %u nodes is not known:", gaps.n_unknown, gaps.n_op);
    fputs("  ", stderr);
    for (uint32_t i = 0; i < a->node.len && named < GAPS_NAMED; i++)
        if (a->node.at[i].part.bound == BOUND_UNKNOWN)
            fprintf(stderr, "%s%s", named++ ? ", " : "",
                    graph_str(a->g, node_at(a->g, a->node.at[i].node)->name));
    if (gaps.n_unknown > named)
        fprintf(stderr, ", … (%u more)", gaps.n_unknown - named);
    fputc('\n', stderr);
    for (uint32_t i = 0; i < a->assume.n_missing; i++)
        fprintf(stderr, "%s%s", i == 0 ? "  symbols in sizes have no value: " : ", ",
                a->assume.missing_name[i]);
    put_to(stderr, INK_DIM, "%s  note: %s\n", a->assume.n_missing > 0 ? "\n" : "",
           a->assume.n_missing > 0 ? gaps_how_symbols : gaps_how);
    return refused ? EXIT_REFUSED : EXIT_FINE;
}

static int cost_of_graph(struct cost *c, size_t i, struct graph_list *list)
{
    struct graph_cost a = {
        .c = c, .g = tuck_doc_graph(c->in.doc, i), .line = tuck_doc_line(c->in.doc, i)};

    int code = model_for(&c->model, &c->in, a.g, &a.assumed);
    if (code != EXIT_FINE)
        return code;
    warn_large(c, a.g);
    struct machine machine;
    model_machine(&c->model, &c->in, &machine);
    code = exit_code_of(laws_fit(&machine, a.g));
    if (code != EXIT_FINE)
        return code;
    mem_init(&a.mem, NULL);
    a.assume = machine_symbols(&machine, a.g->store);
    cost_run_init(&a.run, &a.mem, machine.cluster, &machine.cost, &a.assume);
    if (!mem_guard(&a.mem, gather, &a)) {
        code = exit_code_of(TUCK_ENOMEM);
    } else if (tell_gaps(&a) != EXIT_FINE) {
        code = EXIT_REFUSED;
    } else if (c->write_profile) {
        code = print_profile(&a);
    } else if (c->json) {
        code = graph_list_print(list, i, 0, do_json_graph, &a);
    } else {
        put_graph(&c->in, i);
        put_head(&a);
        put_nodes(&a);
    }
    vec_free(&a.mem, &a.node);
    vec_free(&a.mem, &a.order);
    cost_run_done(&a.run);
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
    for (size_t i = from; code == EXIT_FINE && i < to; i++)
        code = cost_of_graph(c, i, &list);
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

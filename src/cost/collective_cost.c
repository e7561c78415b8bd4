/* Chooses the model that answers, and the algorithm. */
#include "cost/collective_cost.h"

#include <assert.h>
#include <math.h>

/* ---- names ---- */

static const char *const algo_names[] = {
    "", "library", "ring", "tree", "one-shot", "two-shot", "hierarchical", "pairwise", "direct",
};
static const char *const model_names[] = {
    "auto", "table", "law", "nccl", "alpha-beta", "torch", "torch-old",
};

enum {
    N_ALGO = sizeof(algo_names) / sizeof(*algo_names),
    N_MODEL = sizeof(model_names) / sizeof(*model_names),
};

const char *tuck_algorithm_name(tuck_algorithm a)
{
    return (unsigned)a < N_ALGO ? algo_names[a] : "";
}

const char *tuck_cost_model_name(tuck_cost_model m)
{
    return (unsigned)m < N_MODEL ? model_names[m] : "";
}

int tuck_cost_model_by_name(const char *name)
{
    for (int i = 0; name != NULL && i < N_MODEL; i++)
        if (strcmp(model_names[i], name) == 0)
            return i;
    return -1;
}

/* ---- measured ---- */

void ways_add(struct cost_ways *w, struct cost_way way)
{
    assert(w->n < TUCK_MAX_ALTERNATIVES);
    if (way.protocol == NULL)
        way.protocol = "";
    w->at[w->n++] = way;
}

/* The kind under which a collective was measured. */
static tuck_coll measured_as(tuck_coll coll)
{
    return coll == TUCK_SHARD_DIM_ALLTOALL ? TUCK_ALL_TO_ALL : coll;
}

static bool table_fits(const struct cost_table *t, struct cost_shape s, tuck_coll coll)
{
    return t->coll == (uint8_t)coll && t->where == (uint8_t)shape_link(s) && t->p == s.p;
}

/* A cluster file's table replaces the built-in one for the same case. */
static void table_ways(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, double bytes,
                       struct cost_ways *out, const char **source)
{
    bool own = false;

    for (uint32_t i = 0; i < c->table.len && out->n < TUCK_MAX_ALTERNATIVES; i++) {
        const struct cost_table *t = &c->table.at[i];
        if (!table_fits(t, s, coll) || (t->builtin && own))
            continue;
        double us = table_time(t, bytes), latency = fmin(us, t->smooth[0]);
        own |= !t->builtin;
        *source = t->builtin ? "points measured on such a node (built in)"
                             : "points measured, from the cluster file";
        ways_add(out, (struct cost_way){.latency = latency,
                                        .moving = us - latency,
                                        .model = TUCK_MODEL_TABLE,
                                        .algo = t->algo});
    }
}

static const struct {
    uint8_t device, coll;
    uint16_t groups, p;
    double a2, b2, a, c, b;
} fits[] = {
#define FIT(device, coll, groups, p, a2, b2, a, c, b)                                              \
    {DEV_##device, TUCK_##coll, groups, p, a2, b2, a, c, b},
#include "cost/fits.def"
#undef FIT
};

/* The laws for the next smaller and larger number of ranks, or p itself if it was measured. Of two
 * for the same p, the one with more ranks active at once. */
struct neighbor {
    struct cost_law law;
    int64_t p, width; /* p = 0 if none */
};

struct neighbors {
    struct neighbor below, above;
};

static void meet(struct neighbors *n, int64_t p, struct neighbor x)
{
    if (x.p <= p && (x.p > n->below.p || (x.p == n->below.p && x.width > n->below.width)))
        n->below = x;
    if (x.p >= p &&
        (n->above.p == 0 || x.p < n->above.p || (x.p == n->above.p && x.width > n->above.width)))
        n->above = x;
}

static void law_ways(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, double bytes,
                     struct cost_ways *out, const char **source)
{
    struct neighbors n = {.below = {.p = 0}};
    bool own = false;

    for (uint32_t i = 0; i < c->table.len; i++) {
        const struct cost_table *t = &c->table.at[i];
        if (t->builtin || t->algo != TUCK_ALGO_LIBRARY || t->coll != (uint8_t)coll ||
            t->where != (uint8_t)shape_link(s))
            continue;
        own = true;
        meet(&n, s.p, (struct neighbor){t->law, t->p, 0});
    }
    if (!own && shape_link(s) == LINK_INTRA && c->standard[LINK_INTRA])
        for (size_t i = 0; i < sizeof(fits) / sizeof(*fits); i++) {
            if (fits[i].device != (uint8_t)c->device || fits[i].coll != (uint8_t)coll)
                continue;
            struct cost_law law = {fits[i].a, fits[i].c / 1000, fits[i].b * 1000};
            if (fits[i].c < 0)
                law = (struct cost_law){fits[i].a2, 0, fits[i].b2 * 1000};
            meet(&n, s.p, (struct neighbor){law, fits[i].p, fits[i].groups * fits[i].p});
        }
    if (n.below.p == 0 || n.above.p == 0)
        return;
    struct cost_law law = n.below.law;
    *source = "a law fitted to measured points";
    if (n.below.p < n.above.p) {
        law = law_between(&n.below.law, n.below.p, &n.above.law, n.above.p, s.p);
        *source = "interpolated between laws fitted at fewer and at more ranks";
    }
    ways_add(out, (struct cost_way){.latency = law.a,
                                    .ramp = law.c * sqrt(bytes),
                                    .moving = bytes / law.b,
                                    .model = TUCK_MODEL_LAW,
                                    .algo = TUCK_ALGO_LIBRARY});
}

/* ---- the answer ---- */

static const char hockney_source[] = "steps and bytes on the links of the cluster";

static void sort_ways(struct cost_ways *w)
{
    for (uint32_t i = 1; i < w->n; i++) { /* only a few; equal ones keep their order */
        struct cost_way x = w->at[i];
        uint32_t k = i;
        for (; k > 0 && way_us(&w->at[k - 1]) > way_us(&x); k--)
            w->at[k] = w->at[k - 1];
        w->at[k] = x;
    }
}

static void find_ways(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, double bytes,
                      tuck_cost_model model, struct cost_ways *w, const char **source);

/* Adds kernels on symmetric memory to the library's ways. */
static void add_symmetric(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, double bytes,
                          struct cost_ways *out)
{
    struct cost_ways more = {.n = 0};

    hockney_ways(c, s, coll, bytes, &more);
    for (uint32_t i = 0; i < more.n && out->n < TUCK_MAX_ALTERNATIVES; i++)
        if (more.at[i].symmetric)
            ways_add(out, more.at[i]);
}

/* Adds the best way without symmetric memory to a sum of phases. */
static void add_phase(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, double bytes,
                      struct cost_way *sum)
{
    struct cost_ways w = {.n = 0};
    const char *source;
    uint32_t best = 0;

    find_ways(c, s, coll, bytes, TUCK_MODEL_AUTO, &w, &source);
    for (uint32_t i = 0; i < w.n; i++)
        if (!w.at[i].symmetric && way_us(&w.at[i]) < way_us(&w.at[best]))
            best = i;
    sum->latency += w.at[best].latency;
    sum->ramp += w.at[best].ramp;
    sum->moving += w.at[best].moving;
}

/* Three phases: within nodes, across nodes between peers, within nodes again. Each phase is itself
 * a collective, on one node or with one rank per node, so this never nests deeper. */
static void add_hierarchical(const tuck_cluster *c, struct cost_shape s, tuck_coll coll,
                             double bytes, struct cost_ways *out)
{
    struct cost_shape inner = {s.per_node, 1, s.per_node}, outer = {s.nodes, s.nodes, 1};
    struct cost_way sum = {.model = TUCK_MODEL_NCCL, .algo = TUCK_ALGO_HIERARCHICAL};
    double part = bytes / (double)s.per_node;

    if (coll != TUCK_ALL_REDUCE && coll != TUCK_ALL_GATHER && coll != TUCK_REDUCE_SCATTER)
        return;
    if (coll != TUCK_ALL_GATHER)
        add_phase(c, inner, TUCK_REDUCE_SCATTER, bytes, &sum);
    add_phase(c, outer, coll, part, &sum);
    if (coll != TUCK_REDUCE_SCATTER)
        add_phase(c, inner, TUCK_ALL_GATHER, bytes, &sum);
    if (out->n < TUCK_MAX_ALTERNATIVES)
        ways_add(out, sum);
}

static void find_ways(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, double bytes,
                      tuck_cost_model model, struct cost_ways *w, const char **source)
{
    *source = "";
    if (model == TUCK_MODEL_TORCH || model == TUCK_MODEL_TORCH_OLD) {
        *source = "what PyTorch's Inductor estimates";
        if (model == TUCK_MODEL_TORCH)
            torch_ways(c, s, coll, bytes, w);
        else
            torch_old_ways(c, s, coll, bytes, w);
        return;
    }
    if (model <= TUCK_MODEL_TABLE)
        table_ways(c, s, measured_as(coll), bytes, w, source);
    if (w->n == 0 && model <= TUCK_MODEL_LAW)
        law_ways(c, s, measured_as(coll), bytes, w, source);
    if (w->n == 0 && model <= TUCK_MODEL_NCCL) {
        nccl_ways(c, s, coll, bytes, w);
        *source = "NCCL's formulas on the links of the cluster";
        if (w->n > 0)
            add_symmetric(c, s, coll, bytes, w);
        if (w->n > 0 && s.nodes > 1 && s.per_node > 1)
            add_hierarchical(c, s, coll, bytes, w);
    }
    if (w->n == 0) {
        hockney_ways(c, s, coll, bytes, w);
        *source = hockney_source;
    }
}

/* PyTorch's rule chooses the one-shot kernel by size alone. */
static bool by_rule(tuck_coll coll, int64_t bytes, const struct cost_choice *how)
{
    return coll == TUCK_ALL_REDUCE && how->one_shot_bytes > 0 && bytes <= how->one_shot_bytes;
}

/* Chooses among sorted ways. */
static uint32_t choose(const struct cost_ways *w, tuck_coll coll, int64_t bytes,
                       const struct cost_choice *how)
{
    bool by_size = by_rule(coll, bytes, how);
    uint8_t only = by_size ? TUCK_ALGO_ONE_SHOT : how->only;

    for (uint32_t i = 0; i < w->n && only != 0; i++)
        if (w->at[i].algo == only)
            return i;
    for (uint32_t i = 0; i < w->n; i++)
        if ((!w->at[i].symmetric || how->symmetric) &&
            (w->at[i].algo != TUCK_ALGO_HIERARCHICAL || how->hierarchical))
            return i;
    return 0;
}

/* The one-shot kernel, which no model of the library has. */
static void add_one_shot(const tuck_cluster *c, struct cost_shape s, double bytes,
                         struct cost_ways *w)
{
    struct cost_ways more = {.n = 0};

    for (uint32_t i = 0; i < w->n; i++)
        if (w->at[i].algo == TUCK_ALGO_ONE_SHOT)
            return;
    hockney_ways(c, s, TUCK_ALL_REDUCE, bytes, &more);
    for (uint32_t i = 0; i < more.n && w->n < TUCK_MAX_ALTERNATIVES; i++)
        if (more.at[i].algo == TUCK_ALGO_ONE_SHOT)
            ways_add(w, more.at[i]);
}

static uint32_t answer(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, int64_t bytes,
                       const struct cost_choice *how, struct cost_ways *w, const char **source)
{
    *w = (struct cost_ways){.n = 0};
    find_ways(c, s, coll, (double)bytes, how->model, w, source);
    if (coll == TUCK_ALL_REDUCE &&
        (how->symmetric || how->only == TUCK_ALGO_ONE_SHOT || by_rule(coll, bytes, how)))
        add_one_shot(c, s, (double)bytes, w);
    sort_ways(w);
    return choose(w, coll, bytes, how);
}

static int64_t ps_of_way(const struct cost_way *w)
{
    return ps_round(way_us(w) * PS_PER_US);
}

/* The whole and its parts: sums of the first parts are rounded, so that the parts add up. */
static void put_parts(const struct cost_way *w, tuck_collective_cost *out)
{
    int64_t start = ps_round(w->latency * PS_PER_US),
            ramp = ps_round((w->latency + w->ramp) * PS_PER_US);

    out->ps = ps_of_way(w);
    out->latency_ps = start;
    out->ramp_ps = ramp - start;
    out->bytes_ps = out->ps - ramp;
}

void cost_collective(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, int64_t bytes,
                     const struct cost_choice *how, tuck_collective_cost *out)
{
    struct cost_ways w;
    const char *source;

    *out = (tuck_collective_cost){.model = how->model,
                                  .algorithm = TUCK_ALGO_LIBRARY,
                                  .protocol = "",
                                  .source = "a group of one: nothing moves",
                                  .nodes = s.nodes,
                                  .per_node = s.per_node};
    if (s.p <= 1)
        return;
    uint32_t best = answer(c, s, coll, bytes, how, &w, &source);
    out->source = w.at[best].model == TUCK_MODEL_ALPHA_BETA ? hockney_source : source;
    put_parts(&w.at[best], out);
    out->model = (tuck_cost_model)w.at[best].model;
    out->algorithm = (tuck_algorithm)w.at[best].algo;
    out->protocol = w.at[best].protocol;
    out->n_alternatives = w.n;
    for (uint32_t i = 0; i < w.n; i++) {
        out->alternative[i].ps = ps_of_way(&w.at[i]);
        out->alternative[i].model = (tuck_cost_model)w.at[i].model;
        out->alternative[i].algorithm = (tuck_algorithm)w.at[i].algo;
        out->alternative[i].protocol = w.at[i].protocol;
        out->alternative[i].symmetric = w.at[i].symmetric;
    }
}

double cost_collective_us(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, int64_t bytes,
                          const struct cost_choice *how)
{
    struct cost_ways w;
    const char *source;

    if (s.p <= 1)
        return 0;
    uint32_t best = answer(c, s, coll, bytes, how, &w, &source);
    return way_us(&w.at[best]);
}

/* ---- rates ---- */

int64_t cost_saturation(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, double e,
                        const struct cost_choice *how)
{
    const int64_t most = (int64_t)1 << 40;
    int64_t low = 1, high = most;

    if (s.p <= 1)
        return 0;
    if (how->model == TUCK_MODEL_AUTO || how->model == TUCK_MODEL_TORCH)
        return torch_saturation(c, s, coll, e);
    /* Where the algorithmic bandwidth reaches the share e of its limit. */
    double limit = (double)most / cost_collective_us(c, s, coll, most, how);
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        if ((double)mid / cost_collective_us(c, s, coll, mid, how) >= e * limit)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

/* ---- public ---- */

static bool shape_of_question(const tuck_cluster *c, const tuck_collective *q, struct cost_shape *s)
{
    if (c == NULL || q == NULL || q->coll < TUCK_ALL_REDUCE || q->coll > TUCK_SHARD_DIM_ALLTOALL ||
        q->bytes < 0 || q->ranks < 1 || q->stride < 0 || q->model < TUCK_MODEL_AUTO ||
        q->model > TUCK_MODEL_TORCH_OLD)
        return false;
    for (int64_t i = 0; q->members != NULL && i < q->ranks; i++)
        if (q->members[i] < 0)
            return false;
    *s = q->members ? shape_of_members(c, q->members, q->ranks)
                    : shape_of_stride(c, q->ranks, q->stride);
    return true;
}

tuck_status tuck_cost_collective(const tuck_cluster *c, const tuck_collective *q,
                                 tuck_collective_cost *out)
{
    struct cost_shape s;

    if (out == NULL || !shape_of_question(c, q, &s))
        return TUCK_EINVAL;
    struct cost_choice how = {.model = q->model,
                              .symmetric = q->symmetric,
                              .hierarchical = q->hierarchical,
                              .one_shot_bytes = q->one_shot_bytes};
    cost_collective(c, s, q->coll, q->bytes, &how, out);
    return TUCK_OK;
}

tuck_status tuck_cost_saturation(const tuck_cluster *c, const tuck_collective *q, double efficiency,
                                 int64_t *bytes_out)
{
    struct cost_shape s;

    if (bytes_out == NULL || !(efficiency > 0 && efficiency < 1) || !shape_of_question(c, q, &s))
        return TUCK_EINVAL;
    struct cost_choice how = {.model = q->model,
                              .symmetric = q->symmetric,
                              .hierarchical = q->hierarchical,
                              .one_shot_bytes = q->one_shot_bytes};
    *bytes_out = cost_saturation(c, s, q->coll, efficiency, &how);
    return TUCK_OK;
}

/* Reads cluster files. All members except "schema" and "device" are optional; the device gives
 * defaults. */
#include <stdio.h>
#include <stdlib.h>

#include "base/json_in.h"
#include "base/suggest.h"
#include "base/units.h"
#include "cost/cluster.h"
#include "graph/graph.h"
#include "infer/infer.h"
#include "op/ops.h"

#define NAMES(...)                                                                                 \
    (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

enum { MOST_RANKS = 1000000 };

struct reading {
    struct jin in;
    tuck_cluster *c;
    const char *text, *name;
    size_t len;
    tuck_diags *diags;
    tuck_status status;
};

/* ---- parts ---- */

static void wrong_word(struct jin *in, const struct jin_at *at, const char *what, const char *word,
                       const char *const *known, size_t n)
{
    const char *near = near_word(word, known, n);

    if (near != NULL)
        jin_error(in, at, "no %s '%.60s'; did you mean '%s'?", what, word, near);
    else
        jin_error(in, at, "no %s '%.60s'", what, word);
}

/* A collective by name; 0 if unknown, with an error. */
static int read_coll(struct jin *in, const struct jin_at *at, const char *word)
{
    const char *known[TUCK_SHARD_DIM_ALLTOALL];
    int coll = tuck_coll_by_name(word);

    for (int i = 0; i < TUCK_SHARD_DIM_ALLTOALL; i++)
        known[i] = tuck_coll_name((tuck_coll)(i + 1));
    if (coll == 0)
        wrong_word(in, at, "collective", word, known, TUCK_SHARD_DIM_ALLTOALL);
    return coll;
}

static bool read_device(struct jin *in, const struct jin_at *root, enum cost_device *out)
{
    struct jin_at at = jin_member(root, "device");
    const char *word, *known[N_DEV];

    if (!jin_want_str(in, &at, &word))
        return false;
    if (device_find(word, strlen(word), out))
        return true;
    for (unsigned d = 0; d < N_DEV; d++)
        known[d] = machine_at((enum cost_device)d)->name;
    wrong_word(in, &at, "device", word, known, N_DEV);
    return false;
}

static void read_link(struct jin *in, const struct jin_at *links, const char *which,
                      struct cost_link *out, bool *nvlink)
{
    struct jin_at at = jin_member(links, which);

    if (!jin_there(&at) || !jin_want_object(in, &at))
        return;
    struct jin_at gbps = jin_member(&at, "gbps"), us = jin_member(&at, "us"),
                  kind = jin_member(&at, "kind");
    if (nvlink != NULL)
        jin_known(in, &at, NAMES("gbps", "us", "kind"));
    else
        jin_known(in, &at, NAMES("gbps", "us"));
    jin_want_number(in, &gbps, 0, false, 1e6, &out->gbps);
    if (us.v != NULL)
        jin_want_number(in, &us, 0, false, 1e6, &out->us);
    if (nvlink != NULL && kind.v != NULL) {
        const char *word;
        if (!jin_want_str(in, &kind, &word))
            return;
        if (strcmp(word, "nvlink") != 0 && strcmp(word, "pcie") != 0)
            wrong_word(in, &kind, "kind of link", word, NAMES("nvlink", "pcie"));
        *nvlink = strcmp(word, "nvlink") == 0;
    }
}

static void read_links(struct reading *r, const struct jin_at *root)
{
    struct jin_at at = jin_member(root, "links");

    if (at.v == NULL || !jin_want_object(&r->in, &at))
        return;
    jin_known(&r->in, &at, NAMES("intra", "inter"));
    read_link(&r->in, &at, "intra", &r->c->m.intra, &r->c->m.nvlink);
    read_link(&r->in, &at, "inter", &r->c->m.inter, NULL);
}

static const char *const rate_names[N_RATE] = {"f64", "f32", "f16", "f8"};

static void read_rates(struct jin *in, const struct jin_at *up, const char *key, double high,
                       double out[N_RATE])
{
    struct jin_at at = jin_member(up, key);

    if (at.v == NULL || !jin_want_object(in, &at))
        return;
    jin_known(in, &at, rate_names, N_RATE);
    for (int i = 0; i < N_RATE; i++) {
        struct jin_at rate = jin_member(&at, rate_names[i]);
        if (rate.v != NULL)
            jin_want_number(in, &rate, 0, false, high, &out[i]);
    }
}

static void read_compute(struct reading *r, const struct jin_at *root)
{
    struct jin_at at = jin_member(root, "compute");
    struct cost_machine *m = &r->c->m;

    if (at.v == NULL || !jin_want_object(&r->in, &at))
        return;
    jin_known(&r->in, &at,
              NAMES("tflops", "efficiency", "dram_gbps", "dram_efficiency", "kernel_us", "gemm",
                    "loops"));
    read_rates(&r->in, &at, "tflops", 1e9, m->peak);
    read_rates(&r->in, &at, "efficiency", 1, m->eff);
    struct jin_at dram = jin_member(&at, "dram_gbps"), eff = jin_member(&at, "dram_efficiency"),
                  kernel = jin_member(&at, "kernel_us");
    if (dram.v != NULL)
        jin_want_number(&r->in, &dram, 0, false, 1e9, &m->dram);
    if (eff.v != NULL)
        jin_want_number(&r->in, &eff, 0, false, 1, &m->eff_memory);
    if (kernel.v != NULL)
        jin_want_number(&r->in, &kernel, 0, true, 1e6, &m->kernel_us);
}

static void read_groups(struct reading *r, const struct jin_at *root)
{
    struct jin_at at = jin_member(root, "groups");
    struct jin *in = &r->in;

    if (at.v == NULL || !jin_want_object(in, &at))
        return;
    for (void *i = jin_first(&at); i != NULL; i = jin_next(&at, i)) {
        struct jin_at group = jin_at_iter(&at, i);
        struct cost_group k = {.stride = 1};

        if (!jin_want_object(in, &group))
            continue;
        jin_known(in, &group, NAMES("size", "stride"));
        struct jin_at size = jin_member(&group, "size"), stride = jin_member(&group, "stride");
        if (!jin_want_int(in, &size, 1, MOST_RANKS, &k.size))
            continue;
        if (stride.v != NULL && !jin_want_int(in, &stride, 1, MOST_RANKS, &k.stride))
            continue;
        if ((k.size - 1) * k.stride >= r->c->per_node * r->c->nodes)
            jin_error(in, &group, "%lld ranks, %lld apart, do not fit %lld ranks",
                      (long long)k.size, (long long)k.stride,
                      (long long)(r->c->per_node * r->c->nodes));
        k.name = arena_str(&r->c->arena, group.key, strlen(group.key));
        vec_push(&r->c->mem, &r->c->group, k);
    }
}

/* what: of what there are so many, "bytes". */
static bool read_points(struct reading *r, const struct jin_at *at, const char *what,
                        struct cost_table *t)
{
    struct jin_at points = jin_member(at, "points");
    struct jin *in = &r->in;

    if (!jin_want_list(in, &points))
        return false;
    size_t n = jin_len(&points);
    if (n < 2) {
        jin_error(in, &points, "must have at least two points, found %zu", n);
        return false;
    }
    struct cost_point *raw = arena_array(&r->c->arena, struct cost_point, n);
    for (size_t i = 0; i < n; i++) {
        struct jin_at point = jin_item(&points, i);
        if (!jin_want_list(in, &point))
            return false;
        if (jin_len(&point) != 2) {
            jin_error(in, &point, "must be [%s, us], found %zu items", what, jin_len(&point));
            return false;
        }
        struct jin_at bytes = jin_item(&point, 0), us = jin_item(&point, 1);
        if (!jin_want_number(in, &bytes, 1, true, 1e18, &raw[i].bytes) ||
            !jin_want_number(in, &us, 0, false, 1e12, &raw[i].us))
            return false;
        if (i > 0 && raw[i].bytes <= raw[i - 1].bytes) {
            jin_error(in, &bytes, "%.15g %s come after %.15g; sizes must increase", raw[i].bytes,
                      what, raw[i - 1].bytes);
            return false;
        }
    }
    t->raw = raw;
    t->n = (uint32_t)n;
    return true;
}

static bool read_algo(struct jin *in, const struct jin_at *at, uint8_t *out)
{
    const char *word, *known[TUCK_ALGO_DIRECT];

    if (!jin_there(at))
        return true;
    if (!jin_want_str(in, at, &word))
        return false;
    for (int i = 0; i < TUCK_ALGO_DIRECT; i++) {
        known[i] = tuck_algorithm_name((tuck_algorithm)(i + 1));
        if (strcmp(known[i], word) == 0) {
            *out = (uint8_t)(i + 1);
            return true;
        }
    }
    wrong_word(in, at, "algorithm", word, known, TUCK_ALGO_DIRECT);
    return false;
}

static void read_table(struct reading *r, const struct jin_at *at)
{
    struct cost_table t = {.where = LINK_INTRA, .algo = TUCK_ALGO_LIBRARY};
    struct jin *in = &r->in;
    const char *word;

    if (!jin_want_object(in, at))
        return;
    jin_known(in, at, NAMES("coll", "p", "link", "algo", "points"));
    struct jin_at coll = jin_member(at, "coll"), p = jin_member(at, "p"),
                  link = jin_member(at, "link"), algo = jin_member(at, "algo");
    if (!jin_want_str(in, &coll, &word))
        return;
    t.coll = (uint8_t)read_coll(in, &coll, word);
    if (!jin_want_int(in, &p, 2, MOST_RANKS, &t.p) || !jin_want_str(in, &link, &word))
        return;
    if (strcmp(word, "intra") != 0 && strcmp(word, "inter") != 0)
        wrong_word(in, &link, "link", word, NAMES("intra", "inter"));
    t.where = strcmp(word, "inter") == 0 ? LINK_INTER : LINK_INTRA;
    if (!read_algo(in, &algo, &t.algo) || !read_points(r, at, "bytes", &t) || in->bad)
        return;
    cluster_add_table(r->c, t);
    const struct cost_table *made = &r->c->table.at[r->c->table.len - 1];
    if (made->n_changed > 0)
        jin_warning(in, at,
                    "measured times decrease as messages grow: %u of %u points were raised or "
                    "lowered, by at most %.1f %%",
                    made->n_changed, made->n, 100 * made->largest_change);
}

/* compute.gemm: measured products, by rate. */
static void read_gemm(struct reading *r, const struct jin_at *compute)
{
    struct jin_at at = jin_member(compute, "gemm");
    struct jin *in = &r->in;

    if (at.v == NULL || !jin_want_object(in, &at))
        return;
    jin_known(in, &at, rate_names, N_RATE);
    for (int i = 0; i < N_RATE; i++) {
        struct jin_at rate = jin_member(&at, rate_names[i]);
        struct cost_table t = {.algo = TUCK_ALGO_LIBRARY};

        if (rate.v == NULL || !jin_want_object(in, &rate))
            continue;
        jin_known(in, &rate, NAMES("points"));
        if (read_points(r, &rate, "operations", &t) && !in->bad)
            cluster_set_gemm(r->c, (enum cost_rate)i, t);
    }
}

/* compute.loops: measured loops and copies. */
static void read_loops(struct reading *r, const struct jin_at *compute)
{
    struct jin_at at = jin_member(compute, "loops");
    struct cost_table t = {.algo = TUCK_ALGO_LIBRARY};

    if (at.v == NULL || !jin_want_object(&r->in, &at))
        return;
    jin_known(&r->in, &at, NAMES("points"));
    if (read_points(r, &at, "bytes", &t) && !r->in.bad)
        cluster_set_loops(r->c, t);
}

/* What a table is about, as a number to sort by. */
struct table_key {
    uint64_t what;
    int64_t p;
    uint32_t index;
};

static int by_key(const void *a, const void *b)
{
    const struct table_key *x = a, *y = b;

    if (x->what != y->what)
        return x->what < y->what ? -1 : 1;
    if (x->p != y->p)
        return x->p < y->p ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static void check_twice(struct reading *r, const struct jin_at *tables)
{
    const tuck_cluster *c = r->c;
    struct table_key *key = arena_array(&r->c->arena, struct table_key, c->table.len);

    for (uint32_t i = 0; i < c->table.len; i++) {
        const struct cost_table *t = &c->table.at[i];
        key[i] = (struct table_key){(uint64_t)t->coll << 16 | (uint64_t)t->where << 8 | t->algo,
                                    t->p, i};
    }
    qsort(key, c->table.len, sizeof(*key), by_key);
    for (uint32_t i = 1; i < c->table.len; i++)
        if (key[i].what == key[i - 1].what && key[i].p == key[i - 1].p) {
            const struct cost_table *t = &c->table.at[key[i].index];
            struct jin_at at = jin_item(tables, key[i].index);
            jin_error(&r->in, &at, "a second table of %s over %lld ranks, %s, %s",
                      tuck_coll_name((tuck_coll)t->coll), (long long)t->p,
                      t->where == LINK_INTER ? "inter" : "intra",
                      tuck_algorithm_name((tuck_algorithm)t->algo));
        }
}

static void read_tables(struct reading *r, const struct jin_at *root)
{
    struct jin_at at = jin_member(root, "tables");

    if (at.v == NULL || !jin_want_list(&r->in, &at))
        return;
    for (size_t i = 0; i < jin_len(&at); i++) {
        struct jin_at table = jin_item(&at, i);
        read_table(r, &table);
    }
    if (!r->in.bad) /* only then are all tables present, by index */
        check_twice(r, &at);
}

static void read_slowdown(struct reading *r, const struct jin_at *root)
{
    struct jin_at at = jin_member(root, "slowdown");
    struct jin *in = &r->in;
    const char *known[OP_CLASS_END];

    if (at.v == NULL || !jin_want_object(in, &at))
        return;
    r->c->beside = 0; /* the file replaces the default */
    for (int i = 0; i < OP_CLASS_END; i++)
        known[i] = op_class_name((enum op_class)i);
    for (void *i = jin_first(&at); i != NULL; i = jin_next(&at, i)) {
        struct jin_at cls = jin_at_iter(&at, i);
        size_t k = 0;

        while (k < OP_CLASS_END && strcmp(known[k], cls.key) != 0)
            k++;
        if (k == OP_CLASS_END)
            wrong_word(in, &cls, "class of operators", cls.key, known, OP_CLASS_END);
        if (k == OP_CLASS_END || !jin_want_object(in, &cls))
            continue;
        for (void *j = jin_first(&cls); j != NULL; j = jin_next(&cls, j)) {
            struct jin_at factor = jin_at_iter(&cls, j);
            struct cost_slowdown s = {.cls = known[k]};

            s.coll = (uint8_t)read_coll(in, &factor, factor.key);
            if (s.coll != 0 && jin_want_number(in, &factor, 1, true, 1000, &s.factor))
                vec_push(&r->c->mem, &r->c->slowdown, s);
        }
    }
}

static void read_transfer_slowdown(struct reading *r, const struct jin_at *root)
{
    struct jin_at at = jin_member(root, "transfer_slowdown");
    struct jin *in = &r->in;

    if (at.v == NULL || !jin_want_object(in, &at))
        return;
    for (void *i = jin_first(&at); i != NULL; i = jin_next(&at, i)) {
        struct jin_at factor = jin_at_iter(&at, i);
        int coll = read_coll(in, &factor, factor.key);
        double f;

        if (coll != 0 && jin_want_number(in, &factor, 1, true, 1000, &f))
            r->c->transfer_slowdown[coll] = f;
    }
}

/* ---- the whole ---- */

static void read_launch(struct reading *r, const struct jin_at *at)
{
    double us;

    if (jin_want_number(&r->in, at, 0, true, 1e6, &us))
        r->c->launch_ps = ps_round(us * PS_PER_US);
}

static void read_fuse(struct reading *r, const struct jin_at *root)
{
    struct jin_at at = jin_member(root, "fuse");
    bool fuse = true;

    if (at.v != NULL)
        jin_want_bool(&r->in, &at, &fuse);
    r->c->unfused = !fuse;
}

static void read_overlap(struct reading *r, const struct jin_at *root)
{
    struct jin_at at = jin_member(root, "overlap");
    bool overlap = true;

    if (at.v != NULL)
        jin_want_bool(&r->in, &at, &overlap);
    r->c->on_cores = !overlap;
}

static void read_root(struct reading *r)
{
    struct jin *in = &r->in;
    struct jin_at root = jin_root(in);
    enum cost_device device;
    int64_t schema;

    if (!jin_want_object(in, &root))
        return;
    jin_known(in, &root,
              NAMES("schema", "device", "per_node", "nodes", "links", "compute", "groups", "tables",
                    "slowdown", "transfer_slowdown", "launch_us", "fuse", "overlap"));
    struct jin_at version = jin_member(&root, "schema"), per_node = jin_member(&root, "per_node"),
                  nodes = jin_member(&root, "nodes"), launch = jin_member(&root, "launch_us");
    jin_want_int(in, &version, 1, 1, &schema);
    if (!read_device(in, &root, &device))
        return;
    cluster_set_device(r->c, device);
    if (per_node.v != NULL)
        jin_want_int(in, &per_node, 1, MOST_RANKS, &r->c->per_node);
    if (nodes.v != NULL)
        jin_want_int(in, &nodes, 1, MOST_RANKS, &r->c->nodes);
    if (launch.v != NULL)
        read_launch(r, &launch);
    read_fuse(r, &root);
    read_overlap(r, &root);
    read_links(r, &root);
    read_compute(r, &root);
    struct jin_at compute = jin_member(&root, "compute");
    if (compute.v != NULL && !in->bad)
        read_gemm(r, &compute);
    read_loops(r, &compute);
    read_groups(r, &root);
    read_tables(r, &root);
    read_slowdown(r, &root);
    read_transfer_slowdown(r, &root);
    if (!in->bad)
        cluster_finish(r->c);
}

static void do_read(void *p)
{
    read_root(p);
}

tuck_status tuck_cluster_read_text(const char *text, size_t len, const char *name,
                                   const tuck_allocator *alloc, tuck_diags *diags,
                                   tuck_cluster **out)
{
    struct reading r = {.text = text, .len = len};

    if (text == NULL || name == NULL || out == NULL)
        return TUCK_EINVAL;
    r.c = cluster_new(alloc);
    if (r.c == NULL)
        return TUCK_ENOMEM;
    tuck_status st = jin_text(&r.in, text, len, name, diags);
    if (st == TUCK_OK && !mem_guard(&r.c->mem, do_read, &r))
        st = TUCK_ENOMEM;
    if (st == TUCK_OK && r.in.bad)
        st = TUCK_ESYNTAX;
    jin_done(&r.in);
    if (st != TUCK_OK)
        tuck_cluster_free(r.c);
    else
        *out = r.c;
    return st;
}

static tuck_status from_text(const char *text, size_t len, const char *name,
                             const tuck_allocator *alloc, tuck_diags *diags, void *out)
{
    return tuck_cluster_read_text(text, len, name, alloc, diags, out);
}

tuck_status tuck_cluster_read_file(const char *path, const tuck_allocator *alloc, tuck_diags *diags,
                                   tuck_cluster **out)
{
    return file_read(path, alloc, diags, from_text, out);
}

/* ---- defaults ---- */

/* Is some tensor of the graph on the cpu, and none elsewhere? */
static bool on_cpu(const tuck_graph *g)
{
    bool cpu = false;

    for_each_node (g, n) {
        const struct type *t = type_at(&g->store->type, node_type(g, n));
        if (t->kind != TYPE_TENSOR || t->device == 0)
            continue;
        if (strncmp(graph_str(g, t->device), "cpu", 3) != 0)
            return false;
        cpu = true;
    }
    return cpu;
}

tuck_status tuck_cluster_for_graph(const tuck_graph *g, const tuck_allocator *alloc,
                                   tuck_diags *diags, tuck_cluster **out)
{
    enum { PER_NODE = 8 };
    int64_t ranks = 1;
    char name[64];

    if (out == NULL)
        return TUCK_EINVAL;
    for (uint32_t i = 0; g != NULL && i < g->group.len; i++) {
        const struct fx_group *k = &g->group.at[i];
        if (k->size > ranks)
            ranks = k->size;
        for (int64_t j = 0; k->ranks != NULL && j < k->size; j++)
            if (k->ranks[j] >= ranks)
                ranks = k->ranks[j] + 1;
    }
    if (ranks > MOST_RANKS)
        ranks = MOST_RANKS;
    if (g != NULL && on_cpu(g))
        snprintf(name, sizeof(name), "cpu-loopbackx%lld", (long long)ranks);
    else
        snprintf(name, sizeof(name), "h100x%dx%lld", PER_NODE,
                 (long long)((ranks + PER_NODE - 1) / PER_NODE));
    tuck_status st = tuck_cluster_preset(name, alloc, diags, out);
    if (st == TUCK_OK)
        (*out)->assumed = true;
    return st;
}

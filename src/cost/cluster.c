#include "cost/cluster.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/diag.h"
#include "base/suggest.h"

static const struct cost_machine machines[] = {
#define DEVICE(id, name, what, library, generation, per_node, nvlink, intra, intra_us, inter,      \
               inter_us, f64, f32, f16, f8, dram, eff_f32, eff_f16, eff_f8, eff_memory, kernel_us, \
               symmetric_us)                                                                       \
    {name,                                                                                         \
     what,                                                                                         \
     LIBRARY_##library,                                                                            \
     generation,                                                                                   \
     per_node,                                                                                     \
     nvlink,                                                                                       \
     {intra, intra_us},                                                                            \
     {inter, inter_us},                                                                            \
     {f64, f32, f16, f8},                                                                          \
     dram,                                                                                         \
     {eff_f32, eff_f32, eff_f16, eff_f8},                                                          \
     eff_memory,                                                                                   \
     kernel_us,                                                                                    \
     symmetric_us},
#include "cost/devices.def"
#undef DEVICE
};

const struct cost_machine *machine_at(enum cost_device d)
{
    return &machines[d];
}

bool device_find(const char *name, size_t len, enum cost_device *out)
{
    for (unsigned d = 0; d < N_DEV; d++)
        if (strlen(machines[d].name) == len && strncasecmp(machines[d].name, name, len) == 0) {
            *out = (enum cost_device)d;
            return true;
        }
    return false;
}

/* ---- making ---- */

tuck_cluster *cluster_new(const tuck_allocator *alloc)
{
    struct mem m;

    mem_init(&m, alloc);
    tuck_cluster *c = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*c));
    if (c == NULL)
        return NULL;
    *c = (tuck_cluster){.mem = m, .name = "", .per_node = 1, .nodes = 1};
    arena_init(&c->arena, &c->mem);
    return c;
}

void tuck_cluster_free(tuck_cluster *c)
{
    if (c == NULL)
        return;
    struct mem m = c->mem;

    vec_free(&c->mem, &c->table);
    vec_free(&c->mem, &c->group);
    vec_free(&c->mem, &c->slowdown);
    arena_destroy(&c->arena);
    m.alloc.resize(m.alloc.ctx, c, sizeof(*c), 0);
}

/* Kernels while a collective runs: 18.9 % slower on average over GPT and LLaMA training on A100,
 * H100, MI250 and MI210 (Lee et al., Characterizing Compute-Communication Overlap in
 * GPU-Accelerated Distributed Deep Learning, arXiv 2507.03114, 2025; 40 % at most). Assumed to hold
 * for other GPUs, and equally for every kind of kernel and collective. Nothing is known about ranks
 * on one CPU. */
static double beside_collectives(enum cost_device d)
{
    return d == DEV_cpu ? 0 : 1.189;
}

void cluster_set_device(tuck_cluster *c, enum cost_device d)
{
    c->device = d;
    c->beside = beside_collectives(d);
    c->m = machines[d];
    c->per_node = c->m.per_node;
}

static void prepare(tuck_cluster *c, struct cost_table *t)
{
    struct arena_mark mark;

    t->smooth = arena_array(&c->arena, double, t->n);
    mark = arena_mark(&c->arena);
    table_prepare(t, arena_array(&c->arena, uint32_t, t->n));
    arena_release(&c->arena, mark);
}

void cluster_add_table(tuck_cluster *c, struct cost_table t)
{
    prepare(c, &t);
    vec_push(&c->mem, &c->table, t);
}

void cluster_set_gemm(tuck_cluster *c, enum cost_rate rate, struct cost_table t)
{
    prepare(c, &t);
    c->gemm[rate] = t;
}

void cluster_set_loops(tuck_cluster *c, struct cost_table t)
{
    prepare(c, &t);
    c->loops = t;
}

enum { N_MEASURED = 22 }; /* 1 KiB … 2 GiB */

static const struct {
    uint8_t device, coll;
    int64_t p;
    double us[N_MEASURED];
} measured[] = {
#define MEASURED(device, coll, p, ...) {DEV_##device, TUCK_##coll, p, {__VA_ARGS__}},
#include "cost/measured.def"
#undef MEASURED
};

static bool same_link(struct cost_link a, struct cost_link b)
{
    return a.gbps == b.gbps && a.us == b.us;
}

static const char *made_name(tuck_cluster *c)
{
    char text[128];

    snprintf(text, sizeof(text), "%sx%" PRId64, c->m.name, c->per_node);
    if (c->nodes > 1)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "x%" PRId64, c->nodes);
    return arena_str(&c->arena, text, strlen(text));
}

void cluster_finish(tuck_cluster *c)
{
    const struct cost_machine *own = &machines[c->device];

    c->standard[LINK_INTRA] = same_link(c->m.intra, own->intra) && c->m.nvlink == own->nvlink;
    c->standard[LINK_INTER] = same_link(c->m.inter, own->inter);
    for (size_t i = 0; i < sizeof(measured) / sizeof(*measured) && c->standard[LINK_INTRA]; i++) {
        if (measured[i].device != (uint8_t)c->device)
            continue;
        struct cost_point *at = arena_array(&c->arena, struct cost_point, N_MEASURED);
        for (int k = 0; k < N_MEASURED; k++)
            at[k] = (struct cost_point){(double)((int64_t)1024 << k), measured[i].us[k]};
        cluster_add_table(c, (struct cost_table){.coll = measured[i].coll,
                                                 .where = LINK_INTRA,
                                                 .algo = TUCK_ALGO_LIBRARY,
                                                 .builtin = true,
                                                 .p = measured[i].p,
                                                 .n = N_MEASURED,
                                                 .raw = at});
    }
    c->name = made_name(c);
}

/* ---- names ---- */

/* "x8": a number after an x; NULL if it is neither that nor the end. */
static const char *times(const char *s, int64_t *out)
{
    char *end;

    if (*s == '\0')
        return s;
    if ((*s != 'x' && *s != 'X') || s[1] < '1' || s[1] > '9')
        return NULL;
    long long v = strtoll(s + 1, &end, 10);
    if (v > 1000000)
        return NULL;
    *out = v;
    return end;
}

bool cluster_parse_name(const char *name, enum cost_device *d, int64_t *per_node, int64_t *nodes)
{
    /* "mi300x" and "mi300xx8" both begin with a device: takes the longest one that leaves a valid
     * remainder. */
    for (size_t len = strlen(name); len > 0; len--) {
        if (!device_find(name, len, d))
            continue;
        const char *rest = name + len;
        *per_node = machines[*d].per_node;
        *nodes = 1;
        rest = times(rest, per_node);
        if (rest != NULL)
            rest = times(rest, nodes);
        if (rest != NULL && *rest == '\0')
            return true;
    }
    return false;
}

struct preset_args {
    tuck_cluster *c;
    enum cost_device device;
    int64_t per_node, nodes;
};

static void do_preset(void *p)
{
    struct preset_args *a = p;

    cluster_set_device(a->c, a->device);
    a->c->per_node = a->per_node;
    a->c->nodes = a->nodes;
    cluster_finish(a->c);
}

static tuck_status make(struct preset_args *a, const tuck_allocator *alloc, tuck_cluster **out)
{
    a->c = cluster_new(alloc);
    if (a->c == NULL)
        return TUCK_ENOMEM;
    if (!mem_guard(&a->c->mem, do_preset, a)) {
        tuck_cluster_free(a->c);
        return TUCK_ENOMEM;
    }
    *out = a->c;
    return TUCK_OK;
}

static void complain(const char *name, tuck_diags *diags)
{
    const char *names[N_DEV], *x = strchr(name, 'x');
    char word[32],
        note[256] = "a name is DEVICE, DEVICExPER_NODE or DEVICExPER_NODExNODES; devices: ";
    size_t len = x ? (size_t)(x - name) : strlen(name);

    for (unsigned d = 0; d < N_DEV; d++) {
        names[d] = machines[d].name;
        size_t n = strlen(note);
        snprintf(note + n, sizeof(note) - n, "%s%s", d ? ", " : "", names[d]);
    }
    snprintf(word, sizeof(word), "%.*s", (int)(len < 31 ? len : 31), name);
    const char *near = near_word(word, names, N_DEV);
    if (near == NULL)
        near = near_word(name, names, N_DEV);
    if (near != NULL && strcmp(near, word) != 0)
        diag_add(diags, TUCK_ERROR, NOWHERE, note, "no cluster '%.60s'; did you mean '%s%.60s'?",
                 name, near, x && near_word(word, names, N_DEV) ? x : "");
    else
        diag_add(diags, TUCK_ERROR, NOWHERE, note, "no cluster '%.60s'", name);
}

tuck_status tuck_cluster_preset(const char *name, const tuck_allocator *alloc, tuck_diags *diags,
                                tuck_cluster **out)
{
    struct preset_args a;

    if (name == NULL || out == NULL)
        return TUCK_EINVAL;
    if (!cluster_parse_name(name, &a.device, &a.per_node, &a.nodes)) {
        complain(name, diags);
        return TUCK_EINVAL;
    }
    return make(&a, alloc, out);
}

const char *tuck_cluster_name(const tuck_cluster *c)
{
    return c->name;
}

bool tuck_cluster_is_assumed(const tuck_cluster *c)
{
    return c->assumed;
}

int64_t tuck_cluster_per_node(const tuck_cluster *c)
{
    return c->per_node;
}

int64_t tuck_cluster_ranks(const tuck_cluster *c)
{
    return c->per_node * c->nodes;
}

/* ---- groups ---- */

struct cost_shape shape_of_stride(const tuck_cluster *c, int64_t p, int64_t stride)
{
    struct cost_shape s = {p, 1, p};

    if (stride < 1)
        stride = 1;
    /* How many members fit on a node, with the first of them in its first place. */
    s.per_node = stride >= c->per_node ? 1 : (c->per_node + stride - 1) / stride;
    if (s.per_node >= p)
        s.per_node = p;
    else
        s.nodes = (p + s.per_node - 1) / s.per_node;
    return s;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Members are usually sorted; if not, a sorted copy is counted. */
static struct cost_shape count_nodes(const tuck_cluster *c, const int64_t *rank, int64_t p)
{
    struct cost_shape s = {p, 1, 1};
    int64_t run = 1;

    for (int64_t i = 1; i < p; i++) {
        if (rank[i] / c->per_node == rank[i - 1] / c->per_node) {
            run++;
        } else {
            s.nodes++;
            run = 1;
        }
        if (run > s.per_node)
            s.per_node = run;
    }
    return s;
}

struct cost_shape shape_of_members(const tuck_cluster *c, const int64_t *rank, int64_t p)
{
    bool sorted = true;

    for (int64_t i = 1; i < p && sorted; i++)
        sorted = rank[i] >= rank[i - 1];
    if (sorted || p <= 0)
        return count_nodes(c, rank, p);
    const tuck_allocator *alloc = &c->mem.alloc;
    size_t size = (size_t)p * sizeof(*rank);
    int64_t *copy = alloc->resize(alloc->ctx, NULL, 0, size);
    if (copy == NULL)
        return shape_of_stride(c, p, 1);
    memcpy(copy, rank, size);
    qsort(copy, (size_t)p, sizeof(*copy), by_number);
    struct cost_shape s = count_nodes(c, copy, p);
    alloc->resize(alloc->ctx, copy, size, 0);
    return s;
}

/* What a cluster file says about a group, or NULL. */
static const struct cost_group *described(const tuck_cluster *c, const char *name)
{
    for (uint32_t i = 0; i < c->group.len; i++)
        if (strcmp(c->group.at[i].name, name) == 0)
            return &c->group.at[i];
    return NULL;
}

struct cost_shape shape_of_group(const tuck_cluster *c, const char *name, int64_t size,
                                 const int64_t *members)
{
    if (members != NULL && size > 0)
        return shape_of_members(c, members, size);
    const struct cost_group *k = described(c, name);
    if (k != NULL)
        return shape_of_stride(c, size > 0 ? size : k->size, k->stride);
    if (size > 0)
        return shape_of_stride(c, size, 1);
    /* A group of one rank would be pointless. */
    int64_t all = tuck_cluster_ranks(c);
    return shape_of_stride(c, all > 2 ? all : 2, 1);
}

bool shape_is_assumed(const tuck_cluster *c, const char *name, int64_t size)
{
    return size <= 0 && described(c, name) == NULL;
}

#include "job/measured_cluster.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

/* Bytes of a message, operations of a product: no machine has seen as many, and they fit into
 * 63 bits when they are doubled. */
#define MOST 0x1p60

/* ---- the machine ---- */

/* "NVIDIA H100 80GB HBM3" is an h100: the device whose name is a word in it, the longest one. */
static const char *device_in(const char *text)
{
    const char *found = NULL;

    for (unsigned d = 0; d < N_DEV; d++) {
        const char *name = machine_at((enum cost_device)d)->name, *at = strcasestr(text, name);
        if (at != NULL && (at == text || !isalnum((unsigned char)at[-1])) &&
            (found == NULL || strlen(name) > strlen(found)))
            found = name;
    }
    return found;
}

static bool choose_machine(const struct trace_part *part, uint32_t n, const char *device,
                           int64_t per_node, struct measured_cluster *out)
{
    enum cost_device d;
    int64_t world = 1;

    for (uint32_t i = 0; i < n; i++) {
        const struct trace *t = part[i].t;
        if (device == NULL && t->device != 0)
            device = device_in(trace_str(t, t->device));
        else if (device == NULL && !part[i].device)
            device = "cpu-loopback";
        world = t->world > world ? t->world : world;
    }
    if (device == NULL || !device_find(device, strlen(device), &d))
        return false;
    out->device = machine_at(d)->name;
    out->per_node = per_node > 0 ? per_node : machine_at(d)->per_node;
    if (out->per_node > world)
        out->per_node = world;
    out->nodes = (world + out->per_node - 1) / out->per_node;
    return true;
}

/* ---- medians ---- */

struct sample {
    uint64_t what; /* the case */
    double size, us;
};

static int by_sample(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;

    if (x->what != y->what)
        return x->what < y->what ? -1 : 1;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return (x->us > y->us) - (x->us < y->us);
}

/* Samples of one case, sorted: one point for each size. */
static uint32_t medians(const struct sample *s, uint32_t n, struct measured_point *out)
{
    uint32_t m = 0;

    for (uint32_t i = 0, k; i < n; i = k) {
        for (k = i; k < n && s[k].size == s[i].size;)
            k++;
        double us = (s[i + (k - i - 1) / 2].us + s[i + (k - i) / 2].us) / 2;
        if (s[i].size >= 1 && us > 0)
            out[m++] = (struct measured_point){s[i].size, us, k - i};
    }
    return m;
}

/* ---- collectives ---- */

/* Do the group's ranks sit on several nodes? Of a group whose ranks are not recorded, all of which
 * would fit on one, it is assumed that they do not. */
static bool is_inter(const struct trace *t, const struct trace_coll *c, int64_t per_node)
{
    const char *p = trace_str(t, c->ranks);
    int64_t node = -1;

    for (; *p; p++) {
        if (!isdigit((unsigned char)*p))
            continue;
        char *end;
        int64_t rank = strtoll(p, &end, 10);
        if (node >= 0 && rank / per_node != node)
            return true;
        node = rank / per_node;
        p = end - 1;
        if (*end == '\0')
            break;
    }
    return c->p > per_node;
}

bool measured_counts(const struct trace_coll *c)
{
    return c->bytes > 0 && (double)c->bytes < MOST && c->p >= 2 && c->transfer > 0 &&
           c->kind < TUCK_OTHER_COLLECTIVE;
}

uint64_t measured_case(const struct trace_part *p, const struct trace_coll *c, int64_t per_node)
{
    return (uint64_t)c->kind << 40 | (uint64_t)c->p << 1 | is_inter(p->t, c, per_node);
}

void measured_fit(struct measured_coll *c, struct arena *a)
{
    struct cost_point *at = arena_array(a, struct cost_point, c->n + 1);

    for (uint32_t i = 0; i < c->n; i++)
        at[i] = (struct cost_point){c->at[i].size, c->at[i].us};
    if (c->n > 1)
        c->law = law_fit(at, c->n);
}

static void residual(struct measured_coll *c, const struct sample *s, uint32_t n)
{
    for (uint32_t i = 0; c->n > 1 && i < n; i++)
        c->residual += fabs(law_time(&c->law, s[i].size) / s[i].us - 1) / n;
}

static void collectives(const struct trace_part *part, uint32_t n, struct arena *a,
                        struct measured_cluster *out)
{
    VEC(struct sample) list = {NULL, 0, 0};
    VEC(struct measured_coll) found = {NULL, 0, 0};

    for (uint32_t i = 0; i < n; i++) {
        const double *own = beside_own(&part[i], a);
        struct beside_covers cover;
        beside_covers(&part[i], a, &cover);
        for (uint32_t k = 0; k < part[i].coll.len; k++) {
            const struct trace_coll *c = &part[i].coll.at[k];
            if (!measured_counts(c))
                continue;
            double share = beside_share(&cover.compute, c->end - c->transfer, c->end);
            double us = beside_alone((double)c->transfer * own[k], share, out->beside.transfer);
            struct sample s = {measured_case(&part[i], c, out->per_node), (double)c->bytes,
                               us / PS_PER_US};
            vec_push_in(a, &list, s);
        }
    }
    if (list.len > 0)
        qsort(list.at, list.len, sizeof(*list.at), by_sample);
    for (uint32_t i = 0, k; i < list.len; i = k) {
        for (k = i; k < list.len && list.at[k].what == list.at[i].what;)
            k++;
        struct measured_coll c = {.what = list.at[i].what,
                                  .kind = (tuck_coll)(list.at[i].what >> 40),
                                  .p = (int64_t)(list.at[i].what >> 1 & 0x7FFFFFFFFF),
                                  .inter = list.at[i].what & 1,
                                  .at = arena_array(a, struct measured_point, k - i)};
        c.n = medians(&list.at[i], k - i, c.at);
        measured_fit(&c, a);
        residual(&c, &list.at[i], k - i);
        vec_push_in(a, &found, c);
    }
    out->coll = found.at;
    out->n_coll = found.len;
}

/* ---- products and memory ---- */

/* The dimensions of the first tensors in "[[512,512],[512,64]]"; how many there are. */
static int shapes(const char *dims, int64_t out[4][4], int rank[4])
{
    int depth = 0, n = 0;

    for (const char *p = dims; *p && n < 4; p++) {
        if (*p == '[' && ++depth == 2)
            rank[n] = 0;
        else if (*p == ']' && depth-- == 2)
            n++;
        else if (isdigit((unsigned char)*p) && depth == 2) {
            char *end;
            int64_t v = strtoll(p, &end, 10);
            if (rank[n] == 4)
                return 0;
            out[n][rank[n]++] = v;
            p = end - 1;
        }
    }
    return n;
}

static const struct {
    const char *name;
    int first; /* operand */
} known[] = {{"aten::mm", 0},
             {"aten::addmm", 1},
             {"aten::bmm", 0},
             {"aten::baddbmm", 1},
             {"aten::_scaled_mm", 0}};

bool trace_has_flops(const char *name)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (strcmp(known[i].name, name) == 0)
            return true;
    return false;
}

/* Operations of a product of matrices whose sizes are known; 0 otherwise. */
static double product(const char *name, const char *dims)
{
    int64_t d[4][4];
    int rank[4] = {0}, n = shapes(dims, d, rank);

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        int a = known[i].first, b = a + 1;
        if (strcmp(known[i].name, name) != 0 || n <= b || rank[a] != rank[b] || rank[a] < 2)
            continue;
        if (rank[a] == 2 && d[a][1] == d[b][0])
            return 2.0 * (double)d[a][0] * (double)d[a][1] * (double)d[b][1];
        if (rank[a] == 3 && d[a][2] == d[b][1])
            return 2.0 * (double)d[a][0] * (double)d[a][1] * (double)d[a][2] * (double)d[b][2];
    }
    return 0;
}

double trace_product(const char *name, const char *dims)
{
    double flops = product(name, dims);

    return flops < MOST ? flops : 0;
}

/* Bytes that a copy or a sum moves: what it reads and writes. */
static double moved(const char *name, const char *dims, int elem)
{
    int64_t d[4][4];
    int rank[4] = {0}, n = shapes(dims, d, rank);
    double size = (double)trace_numel(dims) * elem;

    if (size <= 0 || n < 2)
        return 0;
    if (strcmp(name, "aten::copy_") == 0)
        return 2 * size;
    /* a sum or product of two; one with a number is one read less */
    return (rank[1] > 0 ? 3 : 2) * size;
}

static int rate_of(int elem)
{
    return elem >= 8 ? RATE_F64 : elem == 4 ? RATE_F32 : elem == 2 ? RATE_F16 : RATE_F8;
}

static int by_external(const void *a, const void *b)
{
    const struct trace_event *const *x = a, *const *y = b;

    return ((*x)->external > (*y)->external) - ((*x)->external < (*y)->external);
}

const struct trace_event **trace_operators(const struct trace *t, struct arena *a, uint32_t *n)
{
    const struct trace_event **list = arena_array(a, const struct trace_event *, t->cpu.len + 1);

    *n = 0;
    for (uint32_t i = 0; i < t->cpu.len; i++)
        if (t->cpu.at[i].cls == TRACE_COMPUTE && t->cpu.at[i].more != 0)
            list[(*n)++] = &t->cpu.at[i];
    qsort(list, *n, sizeof(*list), by_external);
    return list;
}

const struct trace_event *trace_operator_of(const struct trace_event **op, uint32_t n,
                                            const struct trace_event *e)
{
    const struct trace_event **by = e->external >= 0 ? bsearch(&e, op, n, sizeof(*op), by_external)
                                                     : NULL;

    return by != NULL ? *by : NULL;
}

struct kernels {
    VEC(struct sample) gemm;
    double bytes, us; /* of copies and sums */
};

static void add_kernel(struct kernels *k, const struct trace *t, const struct trace_event *op,
                       double ps, struct arena *a)
{
    enum { LARGE = 1 << 20 }; /* smaller ones may be in a cache, and take their least time */
    const struct trace_operands *o = &t->operand.at[op->more];
    const char *name = trace_str(t, op->name), *dims = trace_str(t, o->dims);
    const struct trace_dtype *d = trace_dtype_in(trace_str(t, o->types));
    double flops = trace_product(name, dims), us = ps / PS_PER_US;

    if (d == NULL || us <= 0)
        return;
    if (flops > 0) {
        vec_push_in(a, &k->gemm, ((struct sample){(uint64_t)rate_of(d->bytes), flops, us}));
    } else if (strstr(name, "mm") == NULL) {
        double bytes = moved(name, dims, d->bytes);
        if (bytes >= LARGE) {
            k->bytes += bytes;
            k->us += us;
        }
    }
}

static void gather_kernels(const struct trace_part *p, double beside, struct kernels *k,
                           struct arena *a)
{
    const struct trace *t = p->t;
    uint32_t n;
    const struct trace_event **op = trace_operators(t, a, &n);
    struct beside_covers cover;

    beside_covers(p, a, &cover);

    for (uint32_t i = 0; i < p->span.len; i++) {
        const struct trace_span *s = &p->span.at[i];
        if (s->cls != TRACE_COMPUTE)
            continue;
        const struct trace_event *e = p->device ? &t->gpu.at[s->event] : &t->cpu.at[s->event];
        const struct trace_event *by = p->device      ? trace_operator_of(op, n, e)
                                       : e->more != 0 ? e
                                                      : NULL;
        double share = beside_share(&cover.comm, s->start, s->end);
        if (by != NULL)
            add_kernel(k, t, by, beside_alone((double)(s->end - s->start), share, beside), a);
    }
}

static void products(const struct trace_part *part, uint32_t n, struct arena *a,
                     struct measured_cluster *out)
{
    struct kernels k = {.bytes = 0};

    for (uint32_t i = 0; i < n; i++)
        gather_kernels(&part[i], out->beside.kernel, &k, a);
    if (k.gemm.len > 0)
        qsort(k.gemm.at, k.gemm.len, sizeof(*k.gemm.at), by_sample);
    for (uint32_t i = 0, j; i < k.gemm.len; i = j) {
        uint64_t rate = k.gemm.at[i].what;
        for (j = i; j < k.gemm.len && k.gemm.at[j].what == rate;)
            j++;
        out->gemm[rate] = arena_array(a, struct measured_point, j - i);
        out->n_gemm[rate] = medians(&k.gemm.at[i], j - i, out->gemm[rate]);
    }
    out->dram_gbps = k.us > 0 ? k.bytes / k.us / 1000 : 0;
}

/* ---- gaps ---- */

static int by_double(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Between one kernel and the next of a step, when nothing else runs. Of the longest hundredth the
 * host does something else: it loads data, or waits. */
static void gaps(const struct trace_part *part, uint32_t n, struct arena *a,
                 struct measured_cluster *out)
{
    VEC(double) gap = {NULL, 0, 0};
    VEC(double) length = {NULL, 0, 0};
    double sum = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct trace_part *p = &part[i];
        int64_t busy = 0;
        for (uint32_t k = 0; k < p->span.len; k++) {
            const struct trace_span *s = &p->span.at[k];
            if (s->step == TRACE_NONE)
                break;
            bool first = k == 0 || p->span.at[k - 1].step != s->step;
            if (!p->device && !first && s->end <= busy)
                continue; /* inside of another operator */
            if (s->cls == TRACE_COMPUTE) {
                vec_push_in(a, &length, (double)(s->end - s->start) / PS_PER_US);
                if (!first)
                    vec_push_in(a, &gap,
                                s->start > busy ? (double)(s->start - busy) / PS_PER_US : 0);
            }
            busy = first || s->end > busy ? s->end : busy;
        }
    }
    out->kernel_us = out->launch_us = -1;
    out->n_kernel = length.len;
    if (length.len > 0) {
        qsort(length.at, length.len, sizeof(double), by_double);
        out->kernel_us = length.at[length.len / 20];
    }
    if (gap.len > 0) {
        uint32_t most = gap.len - gap.len / 100;
        qsort(gap.at, gap.len, sizeof(double), by_double);
        for (uint32_t i = 0; i < most; i++)
            sum += gap.at[i];
        out->launch_us = sum / most;
    }
}

bool measured_cluster(const struct trace_part *part, uint32_t n, const char *device,
                      int64_t per_node, struct arena *a, struct measured_cluster *out)
{
    *out = (struct measured_cluster){.n_rank = n};
    if (!choose_machine(part, n, device, per_node, out))
        return false;
    beside_fit(part, n, a, &out->beside);
    collectives(part, n, a, out);
    products(part, n, a, out);
    gaps(part, n, a, out);
    return true;
}

/* The collectives of a trace: from recorded arguments; in older traces from the annotation or
 * operator around the launch; else from the kernel's name. */
#include <ctype.h>
#include <stdlib.h>

#include "job/trace_study.h"

/* ---- words ---- */

tuck_coll trace_kind(const char *name)
{
    static const struct {
        const char *word;
        tuck_coll kind;
    } words[] = {
        {"allreduce", TUCK_ALL_REDUCE},
        {"allgather", TUCK_ALL_GATHER},
        {"reducescatter", TUCK_REDUCE_SCATTER},
        {"alltoall", TUCK_ALL_TO_ALL},
        {"broadcast", TUCK_BROADCAST},
        {"sendrecv", TUCK_P2P},
        {"send", TUCK_P2P},
        {"recv", TUCK_P2P},
        {"reduce", TUCK_OTHER_COLLECTIVE},
        {"gather", TUCK_OTHER_COLLECTIVE},
        {"scatter", TUCK_OTHER_COLLECTIVE},
        {"barrier", TUCK_OTHER_COLLECTIVE},
    };
    char plain[96]; /* lower case, letters only: all names of collectives are shorter */
    size_t n = 0;

    for (; *name && *name != '(' && n < sizeof(plain) - 1; name++)
        if (isalpha((unsigned char)*name))
            plain[n++] = (char)tolower((unsigned char)*name);
    plain[n] = '\0';
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strstr(plain, words[i].word) != NULL)
            return words[i].kind;
    return (tuck_coll)0;
}

int64_t trace_numel(const char *dims)
{
    int64_t most = -1, n = 1;
    bool any = false;

    for (const char *p = dims; *p; p++) {
        if (*p == '[') {
            n = 1;
            any = false;
        } else if (*p == ']') {
            if (any && n > most)
                most = n;
            any = false;
        } else if (isdigit((unsigned char)*p)) {
            char *end;
            int64_t v = strtoll(p, &end, 10);
            if (!size_mul(n, v, &n))
                return -1;
            any = true;
            p = end - 1;
        }
    }
    return most;
}

const struct trace_dtype *trace_dtype(const char *name, size_t len)
{
    static const struct trace_dtype types[] = {
        {"Float", "f32", 4},
        {"float", "f32", 4},
        {"BFloat16", "bf16", 2},
        {"c10::BFloat16", "bf16", 2},
        {"Half", "f16", 2},
        {"c10::Half", "f16", 2},
        {"Double", "f64", 8},
        {"double", "f64", 8},
        {"Long", "i64", 8},
        {"long", "i64", 8},
        {"long int", "i64", 8},
        {"Int", "i32", 4},
        {"int", "i32", 4},
        {"Short", "i16", 2},
        {"short", "i16", 2},
        {"short int", "i16", 2},
        {"Char", "i8", 1},
        {"signed char", "i8", 1},
        {"Byte", "u8", 1},
        {"unsigned char", "u8", 1},
        {"Bool", "b8", 1},
        {"bool", "b8", 1},
        {"ComplexFloat", "c64", 8},
        {"c10::complex<float>", "c64", 8},
        {"ComplexDouble", "c128", 16},
        {"c10::complex<double>", "c128", 16},
        {"Float8_e4m3fn", "f8e4m3fn", 1},
        {"c10::Float8_e4m3fn", "f8e4m3fn", 1},
        {"Float8_e5m2", "f8e5m2", 1},
        {"c10::Float8_e5m2", "f8e5m2", 1},
        {"Float8_e4m3fnuz", "f8e4m3fnuz", 1},
        {"c10::Float8_e4m3fnuz", "f8e4m3fnuz", 1},
        {"Float8_e5m2fnuz", "f8e5m2fnuz", 1},
        {"c10::Float8_e5m2fnuz", "f8e5m2fnuz", 1},
        {"Float8_e8m0fnu", "f8e8m0fnu", 1},
        {"c10::Float8_e8m0fnu", "f8e8m0fnu", 1},
        {"UInt16", "u16", 2},
        {"unsigned short", "u16", 2},
        {"UInt32", "u32", 4},
        {"unsigned int", "u32", 4},
        {"UInt64", "u64", 8},
        {"unsigned long", "u64", 8},
    };

    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if (strlen(types[i].name) == len && memcmp(types[i].name, name, len) == 0)
            return &types[i];
    return NULL;
}

const struct trace_dtype *trace_dtype_in(const char *types)
{
    for (const char *p = types; (p = strchr(p, '"')) != NULL; p++) {
        const char *end = strchr(p + 1, '"');
        const struct trace_dtype *d = end != NULL ? trace_dtype(p + 1, (size_t)(end - p - 1))
                                                  : NULL;

        if (d != NULL || end == NULL)
            return d;
        p = end;
    }
    return NULL;
}

size_t trace_short_name(const char *full, const char **out)
{
    size_t end = strcspn(full, "<("), from = 0;

    for (size_t k = 0; k < end; k++)
        if (full[k] == ' ' || (full[k] == ':' && k + 1 < end && full[k + 1] == ':'))
            from = k + 1 + (full[k] == ':');
    if (strncmp(full, "void ", 5) != 0 && memchr(full, '(', end + 1) == NULL && full[end] == '\0')
        from = 0; /* not a kernel of C++ */
    if (from >= end) {
        from = 0;
        end = strlen(full);
    }
    *out = full + from;
    return end - from;
}

double trace_bus_gbps(tuck_coll kind, int64_t bytes, int64_t p, int64_t ps)
{
    double share = (double)(p - 1) / (double)(p > 0 ? p : 1);

    if (bytes <= 0 || ps <= 0 || (p < 2 && kind != TUCK_P2P))
        return 0;
    if (kind == TUCK_ALL_REDUCE)
        share *= 2;
    else if (kind == TUCK_BROADCAST || kind == TUCK_P2P || kind == TUCK_OTHER_COLLECTIVE)
        share = 1;
    return (double)bytes * share / ((double)ps / PS_PER_NS);
}

/* ---- what is recorded ---- */

/* Adds what m says and c does not know yet. */
static void learn(struct trace_coll *c, const struct trace *t, const struct trace_more *m)
{
    int64_t n = m->in_n > m->out_n ? m->in_n : m->out_n, bytes;

    if (n == 0 && strcmp(trace_str(t, m->coll), "coalesced") == 0)
        n = -1; /* several in one: how much they are together is not recorded */
    const char *word = trace_str(t, m->dtype);
    const struct trace_dtype *d = trace_dtype(word, strlen(word));

    if (d == NULL)
        d = trace_dtype_in(trace_str(t, m->types));
    if (c->group == 0)
        c->group = m->group;
    if (c->ranks == 0)
        c->ranks = m->ranks;
    if (c->p == 0)
        c->p = m->group_size > 0 && m->group_size < INT32_MAX ? m->group_size : 0;
    if (*c->dtype == '\0' && d != NULL) {
        c->dtype = d->abbr;
        c->elem = d->bytes;
    }
    if (n < 0 && m->dims != 0)
        n = trace_numel(trace_str(t, m->dims));
    if (t->ours)
        c->bytes = m->bytes;
    else if (n >= 0 && c->elem > 0 && size_mul(n, c->elem, &bytes) && bytes > c->bytes)
        c->bytes = bytes;
}

/* A group that is only named, or the only one there is. */
static void learn_group(struct trace_coll *c, const struct trace *t)
{
    for (uint32_t i = 0; i < t->group.len; i++) {
        const struct trace_group *g = &t->group.at[i];
        if (c->group != 0 ? g->name == c->group : t->group.len == 1) {
            c->group = g->name;
            c->p = c->p > 0 ? c->p : g->size;
            c->ranks = c->ranks != 0 ? c->ranks : g->ranks;
        }
    }
}

/* ---- calls of the host ---- */

struct call {
    int64_t start, end;
    str_id tid;
    uint32_t event; /* in trace.cpu */
};

struct calls {
    struct call *at;
    uint32_t n;
};

static int by_thread(const void *a, const void *b)
{
    const struct call *x = a, *y = b;

    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->end != y->end)
        return x->end > y->end ? -1 : 1; /* the outer one first */
    return (x->event > y->event) - (x->event < y->event);
}

static void gather_calls(const struct trace *t, struct arena *a, struct calls *out)
{
    out->at = arena_array(a, struct call, t->cpu.len + 1);
    out->n = 0;
    for (uint32_t i = 0; i < t->cpu.len; i++) {
        const struct trace_event *e = &t->cpu.at[i];
        if (e->cls == TRACE_CALL)
            out->at[out->n++] = (struct call){e->start, trace_end(e), e->tid, i};
    }
    qsort(out->at, out->n, sizeof(*out->at), by_thread);
}

/* The innermost call on that thread around a moment; TRACE_NONE. */
static uint32_t call_around(const struct calls *c, str_id tid, int64_t when)
{
    enum { MOST_BACK = 8 }; /* calls inside of one another */
    uint32_t low = 0, high = c->n;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (c->at[mid].tid < tid || (c->at[mid].tid == tid && c->at[mid].start <= when))
            low = mid + 1;
        else
            high = mid;
    }
    for (uint32_t k = 0; k < MOST_BACK && low > 0 && c->at[low - 1].tid == tid; k++, low--)
        if (when < c->at[low - 1].end)
            return low - 1;
    return TRACE_NONE;
}

/* All calls around one, from the inside out, tell what they know. */
static void learn_calls(struct trace_coll *c, const struct trace *t, const struct calls *calls,
                        uint32_t k)
{
    int64_t when = calls->at[k].start;
    str_id tid = calls->at[k].tid;

    for (uint32_t back = 0; back < 8 && k != TRACE_NONE && calls->at[k].tid == tid; back++) {
        const struct trace_event *e = &t->cpu.at[calls->at[k].event];
        tuck_coll kind = trace_kind(trace_str(t, e->name));

        if (calls->at[k].end > when) {
            learn(c, t, &t->more.at[e->more]);
            if (kind != 0 && (c->kind == 0 || c->by_name)) {
                c->kind = kind;
                c->by_name = false;
            }
            c->call = calls->at[k].event;
        }
        k = k > 0 ? k - 1 : TRACE_NONE;
    }
}

/* ---- on a device: each kernel is one ---- */

static int by_correlation(const void *a, const void *b)
{
    const struct trace_launch *x = a, *y = b;

    return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

static void from_kernels(struct trace_part *p, struct arena *a)
{
    const struct trace *t = p->t;
    struct trace_launch *l = arena_array(a, struct trace_launch, t->launch.len + 1);
    struct calls calls;

    gather_calls(t, a, &calls);
    if (t->launch.len > 0)
        memcpy(l, t->launch.at, t->launch.len * sizeof(*l));
    qsort(l, t->launch.len, sizeof(*l), by_correlation);
    for (uint32_t i = 0; i < p->span.len; i++) {
        const struct trace_span *s = &p->span.at[i];
        const struct trace_event *e = &t->gpu.at[s->event];
        struct trace_launch key = {.correlation = e->correlation};

        if (s->cls != TRACE_COMM)
            continue;
        const struct trace_more *m = &t->more.at[e->more];
        struct trace_coll c = {.start = s->start,
                               .end = s->end,
                               .bytes = -1,
                               .dtype = "",
                               .event = s->event,
                               .call = TRACE_NONE,
                               .step = s->step,
                               .name = e->name,
                               .n_rank = 1,
                               .transfer = s->end - s->start};
        c.kind = m->coll != 0 ? trace_kind(trace_str(t, m->coll)) : (tuck_coll)0;
        learn(&c, t, m);
        if (c.kind == 0) {
            c.kind = trace_kind(trace_str(t, e->name));
            c.by_name = true;
        }
        const struct trace_launch *by = e->correlation >= 0 ? bsearch(&key, l, t->launch.len,
                                                                      sizeof(*l), by_correlation)
                                                            : NULL;
        c.issued = by != NULL ? by->start : s->start;
        uint32_t k = by != NULL ? call_around(&calls, by->tid, by->start) : TRACE_NONE;
        if (k != TRACE_NONE)
            learn_calls(&c, t, &calls, k);
        if (c.kind == 0)
            c.kind = TUCK_OTHER_COLLECTIVE;
        learn_group(&c, t);
        vec_push_in(a, &p->coll, c);
    }
}

/* ---- without a device: calls, in order, and the library's threads ---- */

/* The outermost calls in the order in which they begin. */
static uint32_t outer_calls(struct calls *c, uint32_t *outer)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->n; i++)
        if (n == 0 || c->at[outer[n - 1]].tid != c->at[i].tid ||
            c->at[i].start >= c->at[outer[n - 1]].end)
            outer[n++] = i;
    return n;
}

struct issue {
    struct trace_coll c;
    int64_t start; /* of the call */
    int64_t numel; /* of what the library's annotation may show; -1 */
};

static int by_issue(const void *a, const void *b)
{
    const struct issue *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

static int by_begin(const void *a, const void *b)
{
    const struct trace_span *const *x = a, *const *y = b;

    if ((*x)->start != (*y)->start)
        return (*x)->start < (*y)->start ? -1 : 1;
    return ((*x)->event > (*y)->event) - ((*x)->event < (*y)->event);
}

static uint32_t gather_issues(const struct trace *t, struct arena *a, struct issue **out)
{
    struct calls calls;
    uint32_t n = 0;

    gather_calls(t, a, &calls);
    uint32_t *outer = arena_array(a, uint32_t, calls.n + 1), m = outer_calls(&calls, outer);
    struct issue *list = arena_array(a, struct issue, m + 1);
    for (uint32_t i = 0; i < m; i++) {
        uint32_t last = i + 1 < m ? outer[i + 1] : calls.n;
        const struct call *k = &calls.at[outer[i]];
        struct issue x = {.start = k->start,
                          .numel = -1,
                          .c = {.bytes = -1, .dtype = "", .call = k->event, .n_rank = 1}};

        for (uint32_t j = outer[i]; j < last; j++) { /* itself, and the calls inside of it */
            const struct trace_event *e = &t->cpu.at[calls.at[j].event];
            tuck_coll kind = trace_kind(trace_str(t, e->name));
            if (x.c.kind == 0)
                x.c.kind = kind;
            learn(&x.c, t, &t->more.at[e->more]);
        }
        x.c.name = t->cpu.at[k->event].name;
        learn_group(&x.c, t);
        if (x.c.kind != 0)
            list[n++] = x;
    }
    if (n > 0)
        qsort(list, n, sizeof(*list), by_issue);
    *out = list;
    return n;
}

/* Is this transfer one that the call may have started? The library may do a collective by another
 * one: gloo's reduce-scatter is an all-reduce. */
static bool fits(const struct trace *t, const struct issue *x, const struct trace_span *s)
{
    const struct trace_event *e = &t->cpu.at[s->event];
    const struct trace_more *m = &t->more.at[e->more];
    int64_t n = m->dims != 0 ? trace_numel(trace_str(t, m->dims)) : -1, bytes;

    if (s->start < x->start)
        return false;
    if (n < 0 || x->c.bytes < 0)
        return true;
    if (!size_mul(n, x->c.elem, &bytes))
        return false;
    return bytes == x->c.bytes || (x->c.p > 0 && x->c.bytes / x->c.p == bytes) ||
           x->c.kind == TUCK_ALL_TO_ALL;
}

static void from_calls(struct trace_part *p, struct arena *a)
{
    const struct trace *t = p->t;
    const struct trace_span **run = arena_array(a, const struct trace_span *, p->span.len + 1);
    struct issue *list;
    uint32_t n = gather_issues(t, a, &list), m = 0, first = 0;

    for (uint32_t i = 0; i < p->span.len; i++)
        if (p->span.at[i].cls == TRACE_COMM)
            run[m++] = &p->span.at[i];
    qsort(run, m, sizeof(*run), by_begin);
    bool *used = arena_zeroed(a, m + 1);
    for (uint32_t i = 0; i < n; i++) {
        enum { MOST_AHEAD = 64 }; /* transfers of others that may have begun meanwhile */
        struct issue *x = &list[i];
        uint32_t seen = 0;

        while (first < m && (used[first] || run[first]->start < x->start))
            first++;
        uint32_t k = first;
        while (k < m && seen < MOST_AHEAD && (used[k] || !fits(t, x, run[k]))) {
            seen += !used[k];
            k++;
        }
        if (k == m || seen == MOST_AHEAD) {
            p->n_unmatched++;
            continue;
        }
        used[k] = true;
        x->c.issued = x->start;
        x->c.start = run[k]->start;
        x->c.end = run[k]->end;
        x->c.event = run[k]->event;
        x->c.step = trace_step_at(p, x->start);
        x->c.transfer = x->c.end - x->c.start;
        vec_push_in(a, &p->coll, x->c);
    }
}

static int by_time(const void *a, const void *b)
{
    const struct trace_coll *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->event > y->event) - (x->event < y->event);
}

void trace_colls(struct trace_part *p, struct arena *a)
{
    if (p->device)
        from_kernels(p, a);
    else
        from_calls(p, a);
    if (p->coll.len > 0)
        qsort(p->coll.at, p->coll.len, sizeof(*p->coll.at), by_time);
}

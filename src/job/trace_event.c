/* What becomes of an event: a record, or nothing. */
#include "job/trace_event.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/num.h"
#include "job/trace_word.h"

/* ---- the raw event ---- */

void trace_raw_init(struct trace_raw *r, struct mem *m)
{
    *r = (struct trace_raw){.ph = 0};
    buf_init(&r->cat, m);
    buf_init(&r->name, m);
    buf_init(&r->pid, m);
    buf_init(&r->tid, m);
    for (int i = 0; i < ARG_END; i++)
        buf_init(&r->text[i], m);
}

void trace_raw_clear(struct trace_raw *r)
{
    r->ph = 0;
    r->given = 0;
    r->ts = r->dur = (struct trace_time){.given = false};
    r->cat.len = r->name.len = r->pid.len = r->tid.len = 0;
}

void trace_raw_destroy(struct trace_raw *r)
{
    buf_destroy(&r->cat);
    buf_destroy(&r->name);
    buf_destroy(&r->pid);
    buf_destroy(&r->tid);
    for (int i = 0; i < ARG_END; i++)
        buf_destroy(&r->text[i]);
}

static const struct {
    const char *name;
    enum trace_arg arg;
} args[] = {
    {"stream", ARG_STREAM},
    {"correlation", ARG_CORRELATION},
    {"External id", ARG_EXTERNAL},
    {"external id", ARG_EXTERNAL},
    {"bytes", ARG_BYTES},
    {"Collective name", ARG_COLL},
    {"In msg nelems", ARG_IN_N},
    {"Out msg nelems", ARG_OUT_N},
    {"In msg size", ARG_IN_N},
    {"Out msg size", ARG_OUT_N},
    {"dtype", ARG_DTYPE},
    {"Group size", ARG_GROUP_SIZE},
    {"Process Group Name", ARG_GROUP},
    {"Process Group Description", ARG_GROUP_SAYS},
    {"Process Group Ranks", ARG_RANKS},
    {"Input Dims", ARG_DIMS},
    {"Input dims", ARG_DIMS},
    {"Input type", ARG_TYPES},
    {"exposed_us", ARG_EXPOSED},
    {"coll", ARG_OUR_COLL},
    {"group", ARG_OUR_GROUP},
    {"ranks", ARG_OUR_RANKS},
    {"name", ARG_LABEL},
};

enum trace_arg trace_arg_find(const char *s, size_t len)
{
    for (size_t i = 0; i < sizeof(args) / sizeof(*args); i++)
        if (args[i].name[0] == *s && strlen(args[i].name) == len &&
            memcmp(args[i].name, s, len) == 0)
            return args[i].arg;
    return ARG_NONE;
}

/* A whole number, as Python's int() reads it from a text or a number. */
static bool whole(const char *s, size_t len, int64_t *out)
{
    char text[24];
    char *end;

    while (len > 0 && isspace((unsigned char)*s))
        s++, len--;
    while (len > 0 && isspace((unsigned char)s[len - 1]))
        len--;
    if (len == 0 || len >= sizeof(text))
        return false;
    memcpy(text, s, len);
    text[len] = '\0';
    long long v = strtoll(text, &end, 10);
    if (*end != '\0' || v == INT64_MAX || v == INT64_MIN)
        return false;
    *out = v;
    return true;
}

void trace_arg_number(struct trace_raw *r, enum trace_arg a, const char *s, size_t len)
{
    double v;

    if (whole(s, len, &r->number[a])) {
        r->given |= 1u << a;
        r->exposed_us = (double)r->number[a];
    } else if (num_float(s, len, &v)) {
        if (v >= -9e18 && v <= 9e18)
            r->number[a] = (int64_t)v;
        else
            return;
        r->given |= 1u << a;
        if (a == ARG_EXPOSED)
            r->exposed_us = v;
    }
    r->text[a].len = 0;
    buf_add(&r->text[a], s, len);
}

void trace_add_ranks(struct buf *b, const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (s[i] != ' ')
            buf_chr(b, s[i]);
}

void trace_arg_text(struct trace_raw *r, enum trace_arg a, const char *s, size_t len)
{
    int64_t v;

    r->text[a].len = 0;
    if (a == ARG_RANKS) /* as a list is kept */
        trace_add_ranks(&r->text[a], s, len);
    else
        buf_add(&r->text[a], s, len);
    if (a == ARG_STREAM || a == ARG_CORRELATION || a == ARG_EXTERNAL) {
        if (!whole(s, len, &v))
            return;
        r->number[a] = v;
    }
    r->given |= 1u << a;
}

enum { PS_DIGITS = 6 };

/* Digits, a point, digits; anything else goes through a double. */
void trace_time_read(struct trace_time *t, const char *s, size_t len)
{
    const char *p = s, *end = s + len;
    int64_t us = 0, ps = 0;
    bool minus = p < end && *p == '-';
    int digits = 0;

    *t = (struct trace_time){.given = true};
    if (!num_float(s, len, &t->value))
        return;
    for (p += minus; p < end && isdigit((unsigned char)*p) && us < INT64_MAX / 100; p++)
        us = us * 10 + (*p - '0');
    if (p < end && *p == '.') {
        t->fraction = true;
        for (p++; p < end && isdigit((unsigned char)*p); p++, digits++)
            if (digits < PS_DIGITS)
                ps = ps * 10 + (*p - '0');
            else if (digits == PS_DIGITS)
                ps += *p >= '5';
        for (; digits < PS_DIGITS; digits++)
            ps *= 10;
    }
    if (p < end) { /* an exponent, or more digits than a time has */
        t->fraction = true;
        if (!(t->value > -9e16 && t->value < 9e16))
            return;
        minus = t->value < 0;
        double v = minus ? -t->value : t->value;
        us = (int64_t)v;
        ps = (int64_t)((v - (double)us) * PS_PER_US + 0.5);
    }
    if (ps >= 1000000) {
        us++;
        ps -= 1000000;
    }
    if (minus) {
        us = -us - (ps > 0);
        ps = ps > 0 ? 1000000 - ps : 0;
    }
    t->us = us;
    t->ps = ps;
    t->good = true;
}

/* ---- classes ---- */

static bool has(const struct buf *b, const char *word)
{
    return b->len > 0 && memmem(b->at, b->len, word, strlen(word)) != NULL;
}

static bool begins(const struct buf *b, const char *word)
{
    size_t n = strlen(word);

    return b->len >= n && b->len > 0 && memcmp(b->at, word, n) == 0;
}

static bool is(const struct buf *b, const char *word)
{
    return b->len == strlen(word) && begins(b, word);
}

enum cat {
    CAT_NONE,
    CAT_KERNEL,
    CAT_MEMORY,
    CAT_LAUNCH,
    CAT_OP,
    CAT_NOTE,
    CAT_DEVICE_NOTE,
    CAT_OURS,
    CAT_OUR_COLL,
    CAT_OUR_WAIT
};

static const struct {
    const char *name;
    enum cat cat;
} cats[] = {
    {"cpu_op", CAT_OP},
    {"kernel", CAT_KERNEL},
    {"gpu_memcpy", CAT_MEMORY},
    {"gpu_memset", CAT_MEMORY},
    {"cuda_runtime", CAT_LAUNCH},
    {"cuda_driver", CAT_LAUNCH},
    {"hip_runtime", CAT_LAUNCH},
    {"privateuse1_runtime", CAT_LAUNCH},
    {"privateuse1_driver", CAT_LAUNCH},
    {"user_annotation", CAT_NOTE},
    {"gpu_user_annotation", CAT_DEVICE_NOTE},
    {"collective", CAT_OUR_COLL},
    {"wait", CAT_OUR_WAIT},
    {"gemm", CAT_OURS},
    {"fused", CAT_OURS},
    {"compute", CAT_OURS},
    {"copy", CAT_OURS},
    /* torch before 1.13 */
    {"Operator", CAT_OP},
    {"Kernel", CAT_KERNEL},
    {"Memcpy", CAT_MEMORY},
    {"Memset", CAT_MEMORY},
    {"Runtime", CAT_LAUNCH},
};

static enum cat cat_of(const struct buf *b)
{
    for (size_t i = 0; i < sizeof(cats) / sizeof(*cats); i++)
        if (is(b, cats[i].name))
            return cats[i].cat;
    return CAT_NONE;
}

/* The class of an operator or annotation of the host; TRACE_CLASS_END: not needed. */
static enum trace_class host_class(const struct trace_raw *r, enum cat cat)
{
    const struct buf *n = &r->name;

    if (begins(n, "_c10d_functional::wait_tensor") || begins(n, "c10d_functional::wait_tensor"))
        return TRACE_WAIT;
    if (begins(n, "_c10d_functional") || begins(n, "c10d") || is(n, "record_param_comms") ||
        begins(n, "nccl:") || begins(n, "symm_mem::"))
        return TRACE_CALL;
    if (begins(n, "gloo:") || begins(n, "mpi:") || begins(n, "ucc:"))
        return TRACE_COMM;
    if (cat != CAT_OP)
        return TRACE_CLASS_END;
    if (has(n, "_fused_") || begins(n, "aten::") || begins(n, "triton_"))
        return TRACE_COMPUTE;
    if (has(n, "::") && !begins(n, "autograd::") && !begins(n, "torch::"))
        return TRACE_COMPUTE;
    return TRACE_CLASS_END;
}

/* Are the operands of an operator needed? Of products, copies and sums: efficiencies are measured
 * by them. */
static bool has_operands(const struct trace_raw *r)
{
    const struct buf *n = &r->name;

    return (begins(n, "aten::") && has(n, "mm")) || is(n, "aten::copy_") || is(n, "aten::add") ||
           is(n, "aten::add_") || is(n, "aten::mul") || is(n, "aten::mul_");
}

/* ---- records ---- */

static str_id keep(struct trace *t, const struct trace_raw *r, enum trace_arg a)
{
    const struct buf *b = &r->text[a];

    if (!(r->given & (1u << a)))
        return 0;
    return str_intern(&t->str, b->len > 0 ? b->at : "", b->len);
}

static str_id intern(struct trace *t, const struct buf *b)
{
    return b->len > 0 ? str_intern(&t->str, b->at, b->len) : 0;
}

/* Is this kernel a collective? What its name says is found out once for each name. */
static bool is_comm_kernel(struct trace *t, const struct trace_raw *r)
{
    enum { NOT = 1, IS };
    str_id id = intern(t, &r->name);
    struct str *name = &t->str.all.at[id];

    if (id != 0 && name->tag == 0)
        name->tag = trace_communicates(name->at) ? IS : NOT;
    return (r->given & (1u << ARG_COLL)) || (id != 0 && name->tag == IS);
}

static int64_t number(const struct trace_raw *r, enum trace_arg a, int64_t none)
{
    return r->given & (1u << a) ? r->number[a] : none;
}

static uint32_t more(struct trace *t, const struct trace_raw *r)
{
    enum {
        ANY = 1u << ARG_COLL | 1u << ARG_IN_N | 1u << ARG_OUT_N | 1u << ARG_DTYPE |
              1u << ARG_GROUP_SIZE | 1u << ARG_GROUP | 1u << ARG_RANKS | 1u << ARG_DIMS |
              1u << ARG_BYTES | 1u << ARG_EXPOSED
    };

    if (!(r->given & ANY))
        return 0;
    struct trace_more m = {
        .coll = keep(t, r, r->given & (1u << ARG_OUR_COLL) ? ARG_OUR_COLL : ARG_COLL),
        .dtype = keep(t, r, ARG_DTYPE),
        .group = keep(t, r, r->given & (1u << ARG_OUR_GROUP) ? ARG_OUR_GROUP : ARG_GROUP),
        .group_says = keep(t, r, ARG_GROUP_SAYS),
        .ranks = keep(t, r, ARG_RANKS),
        .dims = keep(t, r, ARG_DIMS),
        .types = keep(t, r, ARG_TYPES),
        .in_n = number(r, ARG_IN_N, -1),
        .out_n = number(r, ARG_OUT_N, -1),
        .group_size = number(r, ARG_GROUP_SIZE, number(r, ARG_OUR_RANKS, 0)),
        .bytes = number(r, ARG_BYTES, -1),
        .exposed = r->given & (1u << ARG_EXPOSED) ? ps_round(r->exposed_us * PS_PER_US) : -1,
    };
    vec_push(&t->mem, &t->more, m);
    return t->more.len - 1;
}

static uint32_t operands(struct trace *t, const struct trace_raw *r)
{
    struct trace_operands o = {keep(t, r, ARG_DIMS), keep(t, r, ARG_TYPES)};

    if (o.dims == 0)
        return 0;
    vec_push(&t->mem, &t->operand, o);
    return t->operand.len - 1;
}

/* Everything so far was far from where the trace is. */
static void forget(struct trace *t)
{
    t->n_skipped += t->n_placed;
    t->n_placed = 0;
    t->gpu.len = t->cpu.len = t->launch.len = t->step.len = t->region.len = 0;
    t->steps_named = t->ours = false;
}

/* ps since the base; false: too far from it. The base is the first event, unless most are far from
 * that one: an event at 0 in front of a trace that counts from 1970 is alone. */
static bool place(struct trace *t, const struct trace_raw *r, int64_t *start, int64_t *dur)
{
    int64_t us = r->ts.us - t->base_us;
    bool near = us <= TRACE_MOST_US && us >= -TRACE_MOST_US;

    if (!r->ts.good || !r->dur.good || r->dur.us > TRACE_MOST_US || r->dur.us < 0)
        return false;
    bool alone = t->n_placed == 1 && us > 0;
    if (t->n_placed == 0 || (!near && (t->n_near == 0 || alone))) {
        forget(t);
        t->base_us = r->ts.us;
        t->n_near = us = 0;
        near = true;
    }
    t->n_near += near ? 1 : -1;
    if (!near)
        return false;
    t->n_placed++;
    *start = us * 1000000 + r->ts.ps;
    *dur = r->dur.us * 1000000 + r->dur.ps;
    return true;
}

static struct trace_event event_of(struct trace *t, const struct trace_raw *r, enum trace_class cls,
                                   int64_t start, int64_t dur)
{
    int64_t stream = number(r, ARG_STREAM, -1);

    return (struct trace_event){
        .ts = r->ts.value,
        .start = start,
        .dur = dur,
        .correlation = number(r, ARG_CORRELATION, -1),
        .external = number(r, ARG_EXTERNAL, -1),
        .stream = stream > INT32_MAX   ? INT32_MAX
                  : stream < INT32_MIN ? INT32_MIN
                                       : (int32_t)stream,
        .name = intern(t, &r->name),
        .pid = intern(t, &r->pid),
        .tid = intern(t, &r->tid),
        .cls = (uint8_t)cls,
    };
}

int32_t trace_stream(const struct trace *t, const struct trace_event *e)
{
    const char *row = trace_str(t, e->tid);
    int64_t v = e->stream;

    if (v == -1 || v == INT32_MAX || v == INT32_MIN)
        whole(row, strlen(row), &v);
    return v >= INT32_MIN && v <= INT32_MAX ? (int32_t)v : -1;
}

static void add_device(struct trace *t, const struct trace_raw *r, enum trace_class cls,
                       int64_t start, int64_t dur)
{
    struct trace_event e = event_of(t, r, cls, start, dur);

    if (cls == TRACE_COMM || cls == TRACE_MEMORY)
        e.more = more(t, r);
    vec_push(&t->mem, &t->gpu, e);
}

static void add_host(struct trace *t, const struct trace_raw *r, enum trace_class cls,
                     int64_t start, int64_t dur)
{
    struct trace_event e = event_of(t, r, cls, start, dur);

    if (cls != TRACE_COMPUTE)
        e.more = more(t, r);
    else if (has_operands(r))
        e.more = operands(t, r);
    vec_push(&t->mem, &t->cpu, e);
}

/* A step's annotation: "ProfilerStep#12". */
static void add_step(struct trace *t, const struct trace_raw *r, int64_t start, int64_t dur,
                     bool on_device)
{
    struct trace_step s = {.ts = r->ts.value,
                           .start = start,
                           .dur = dur,
                           .number = -1,
                           .name = intern(t, &r->name),
                           .on_device = on_device};
    const char *text = trace_str(t, s.name), *sharp = strchr(text, '#');

    if (sharp != NULL && strncmp(text, "ProfilerStep", 12) == 0)
        whole(sharp + 1, strlen(sharp + 1), &s.number);
    t->steps_named |= t->step.len > 0 && t->step.at[0].name != s.name;
    vec_push(&t->mem, &t->step, s);
}

static void add_complete(struct trace *t, const struct trace_raw *r)
{
    enum cat cat = cat_of(&r->cat);
    bool streamed = (r->given & (1u << ARG_STREAM)) && r->number[ARG_STREAM] != -1;
    int64_t start, dur;

    if (r->cat.len == 0 || is(&r->cat, "Trace") ||
        (cat == CAT_NONE && !streamed && !(r->given & (1u << ARG_CORRELATION))))
        return;
    if (!place(t, r, &start, &dur)) {
        t->n_skipped++;
        return;
    }
    if (cat == CAT_OURS || cat == CAT_OUR_COLL || cat == CAT_OUR_WAIT) {
        t->ours = true;
        add_device(t, r,
                   cat == CAT_OUR_COLL   ? TRACE_COMM
                   : cat == CAT_OUR_WAIT ? TRACE_WAIT
                                         : TRACE_COMPUTE,
                   start, dur);
        return;
    }
    if ((cat == CAT_NOTE || cat == CAT_DEVICE_NOTE || cat == CAT_OP) &&
        has(&r->name, "ProfilerStep"))
        add_step(t, r, start, dur, cat == CAT_DEVICE_NOTE);
    if (cat == CAT_NOTE && begins(&r->name, "## Call CompiledFxGraph"))
        vec_push(&t->mem, &t->region, ((struct trace_region){start, dur, intern(t, &r->name)}));
    if (cat == CAT_KERNEL || cat == CAT_MEMORY) {
        add_device(t, r,
                   cat == CAT_MEMORY      ? TRACE_MEMORY
                   : is_comm_kernel(t, r) ? TRACE_COMM
                                          : TRACE_COMPUTE,
                   start, dur);
    } else if (streamed) {
        add_device(t, r, TRACE_OTHER, start, dur);
    } else {
        enum trace_class cls = host_class(r, cat);
        if (cls != TRACE_CLASS_END && (cat == CAT_OP || cat == CAT_NOTE))
            add_host(t, r, cls, start, dur);
        if ((r->given & (1u << ARG_CORRELATION)) && !is(&r->cat, "cuda_sync"))
            vec_push(&t->mem, &t->launch,
                     ((struct trace_launch){r->ts.value, start, r->number[ARG_CORRELATION],
                                            intern(t, &r->tid)}));
    }
}

void trace_event_add(struct trace *t, const struct trace_raw *r)
{
    t->n_event++;
    t->any |= r->ph != '\0';
    t->fractions |= !r->ts.given || r->ts.fraction;
    if (r->ph == 'X')
        add_complete(t, r);
    else if (r->ph == 'M' && is(&r->name, "process_name") && (r->given & (1u << ARG_LABEL)))
        vec_push(&t->mem, &t->process,
                 ((struct trace_process){intern(t, &r->pid), intern(t, &r->text[ARG_LABEL])}));
}

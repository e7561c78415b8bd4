/* A profiler's trace of one rank, as torch.profiler writes it.
 *
 * A file is read once, from front to back, and only what is needed later is kept, in records of a
 * fixed size; names are interned. Everything is in the order of the file, which is none in time.
 *
 * Times are picoseconds since the first event of the file. `ts` is also kept as the file's own
 * number, in us: rounding as others do it needs that number.
 */
#ifndef TUCK_JOB_TRACE_H
#define TUCK_JOB_TRACE_H

#include "base/diag.h"
#include "base/str.h"
#include "base/units.h"
#include "op/collective.h"
#include "op/dtype.h"

/* No event is farther from the others, or longer: 46 days. */
#define TRACE_MOST_US INT64_C(4000000000000)

enum trace_class {
    TRACE_COMPUTE, /* a kernel; in a trace without a GPU, an operator */
    TRACE_COMM,    /* a collective's kernel; without a GPU, its part on a thread of the library */
    TRACE_MEMORY,  /* a copy or a fill by the device */
    TRACE_OTHER,   /* something else with a stream: only others' figures count it */
    TRACE_CALL,    /* an operator of the host that starts a collective */
    TRACE_WAIT,    /* the host waits for a collective */
    TRACE_CLASS_END
};

struct trace_event {
    double ts;           /* us */
    int64_t start, dur;  /* ps */
    int64_t correlation; /* the launch; -1 if none */
    int64_t external;    /* the operator that launched it, or this operator's own number; -1 */
    int32_t stream;      /* -1 if none; INT32_MAX or INT32_MIN: a number too large for it */
    str_id name, pid, tid;
    /* index into trace.more, for an operator that computes into trace.operand; 0: none */
    uint32_t more;
    uint8_t cls; /* enum trace_class */
};

/* What is recorded about a collective or an operator; 0 and -1 if it is not. */
struct trace_more {
    str_id coll;              /* "allreduce", "_allgather_base" */
    str_id dtype;             /* "Float" */
    str_id group, group_says; /* name and description of the process group */
    str_id ranks;             /* "[0, 1]" */
    str_id dims, types;       /* "[[512,512],[]]" and "["float",""]" */
    int64_t in_n, out_n;      /* elements; -1 */
    int64_t group_size;       /* 0 */
    int64_t bytes;            /* of a copy, or of a message in Tuck's own traces; -1 */
    int64_t exposed;          /* ps: in Tuck's own traces; -1 */
};

struct trace_operands { /* of an operator that computes */
    str_id dims, types; /* as in trace_more */
};

/* The host's side of a kernel. */
struct trace_launch {
    double ts;
    int64_t start; /* ps */
    int64_t correlation;
    str_id tid;
};

struct trace_step {
    double ts;
    int64_t start, dur;
    int64_t number; /* of ProfilerStep#N; -1 if it is not such a step, but the whole trace */
    str_id name;
    bool on_device; /* the device's copy of the annotation */
};

struct trace_region { /* a call of a compiled graph */
    int64_t start, dur;
    str_id name;
};

struct trace_process {
    str_id pid, name;
};

struct trace_group { /* of distributedInfo.pg_config */
    str_id name, says, ranks;
    int64_t size;
};

struct trace {
    struct mem mem;
    struct strtab str;
    const char *file;
    VEC(struct trace_event) gpu;        /* on the device */
    VEC(struct trace_event) cpu;        /* on the host: operators, calls of collectives, waits */
    VEC(struct trace_more) more;        /* [0] is empty */
    VEC(struct trace_operands) operand; /* [0] is empty */
    VEC(struct trace_launch) launch;
    VEC(struct trace_step) step;
    VEC(struct trace_region) region;
    VEC(struct trace_group) group;
    VEC(struct trace_process) process; /* those that have a name */
    str_id device, backend;
    int64_t rank, world; /* -1 and 0 if unknown */
    int64_t base_us;     /* of the first event that is near the others */
    int64_t n_near;      /* events near it, less those that are far */
    uint64_t n_placed;   /* that are kept, or would be if they were needed */
    bool fractions;      /* some ts has a fraction, or an event has none */
    bool ours;           /* written by `tuck simulate --trace` */
    bool steps_named;    /* more than one name contains "ProfilerStep" */
    bool any;            /* some event says of what kind it is */
    uint64_t n_event;    /* of the file */
    uint64_t n_skipped;  /* events whose times are missing, not numbers, or out of range */
    uint64_t n_bytes;    /* of the text */
};

static inline const char *trace_str(const struct trace *t, str_id s)
{
    return str_text(&t->str, s);
}

static inline int64_t trace_end(const struct trace_event *e)
{
    return e->start + e->dur;
}

/* The stream of a kernel; if it has none, its row in the file, which is the stream, too. -1. */
int32_t trace_stream(const struct trace *t, const struct trace_event *e);

/* NULL if out of memory. */
struct trace *trace_new(const tuck_allocator *alloc);
void trace_free(struct trace *t); /* t may be NULL */

/* Reads a file ("-": standard input) or a text, either of them plain or gzip. TUCK_ESYNTAX with a
 * diagnostic: it is not a trace, or only a part of one. any: it has events, even if it is broken
 * behind them. */
TUCK_MUST_CHECK tuck_status trace_read_file(const char *path, const tuck_allocator *alloc,
                                            tuck_diags *diags, bool *any, struct trace **out);
TUCK_MUST_CHECK tuck_status trace_read_text(const char *text, size_t len, const char *name,
                                            const tuck_allocator *alloc, tuck_diags *diags,
                                            struct trace **out);

#endif

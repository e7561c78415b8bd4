/* One event while it is read, and what becomes of it. */
#ifndef TUCK_JOB_TRACE_EVENT_H
#define TUCK_JOB_TRACE_EVENT_H

#include "base/buf.h"
#include "job/trace.h"

/* A number of microseconds as the file has it, exactly. */
struct trace_time {
    int64_t us, ps; /* whole us, and the rest below 1 us: 0 <= ps < 1000000 */
    double value;
    bool given, good; /* there is such a member; it is a number in range */
    bool fraction;    /* written with a point or an exponent */
};

/* Members of an event's "args" that matter. */
enum trace_arg {
    ARG_NONE,
    ARG_STREAM,
    ARG_CORRELATION,
    ARG_EXTERNAL,
    ARG_BYTES,
    ARG_COLL,
    ARG_IN_N,
    ARG_OUT_N,
    ARG_DTYPE,
    ARG_GROUP_SIZE,
    ARG_GROUP,
    ARG_GROUP_SAYS,
    ARG_RANKS,
    ARG_DIMS,
    ARG_TYPES,
    ARG_EXPOSED,
    ARG_OUR_COLL,
    ARG_OUR_GROUP,
    ARG_OUR_RANKS,
    ARG_LABEL,
    ARG_END
};

struct trace_raw {
    char ph;
    struct trace_time ts, dur;
    struct buf cat, name, pid, tid;
    uint32_t given; /* bit by enum trace_arg */
    int64_t number[ARG_END];
    double exposed_us;
    struct buf text[ARG_END];
};

void trace_raw_init(struct trace_raw *r, struct mem *m);
void trace_raw_clear(struct trace_raw *r);
void trace_raw_destroy(struct trace_raw *r);

enum trace_arg trace_arg_find(const char *s, size_t len);
/* A value of such a member. */
void trace_arg_number(struct trace_raw *r, enum trace_arg a, const char *s, size_t len);
void trace_arg_text(struct trace_raw *r, enum trace_arg a, const char *s, size_t len);
/* "[0, 1]" without its blanks. */
void trace_add_ranks(struct buf *b, const char *s, size_t len);
void trace_time_read(struct trace_time *t, const char *s, size_t len);

/* Keeps what is needed of the event. */
void trace_event_add(struct trace *t, const struct trace_raw *r);

#endif

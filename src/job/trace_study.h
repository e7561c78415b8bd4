/* What a trace says: steps, how their time is spent, collectives. */
#ifndef TUCK_JOB_TRACE_STUDY_H
#define TUCK_JOB_TRACE_STUDY_H

#include "job/trace.h"
#include "job/trace_word.h"

#define TRACE_NONE UINT32_MAX

/* An event on the time axis, for the figures. */
struct trace_span {
    int64_t start, end;
    int64_t issued; /* when the host launched it */
    uint32_t step;  /* index into steps, or TRACE_NONE */
    uint32_t event; /* index into trace.gpu, or trace.cpu if there is no device */
    uint8_t cls;    /* enum trace_class */
};

/* ps. Without a device `span` is the step, and what the host does is counted instead of kernels. */
struct trace_figures {
    int64_t step;    /* the annotation's time; without one, the span */
    int64_t span;    /* from the first kernel to the end of the last */
    int64_t compute; /* at least one kernel computes */
    int64_t comm;    /* at least one collective runs */
    int64_t exposed; /* … and nothing computes; without a device, the host waits for it */
    int64_t both;    /* compute and communication */
    int64_t memory;  /* only copies and fills */
    int64_t calls;   /* without a device: the host starts collectives */
    int64_t idle;    /* nothing of this, within the span */
    uint32_t n_kernel, n_coll;
};

struct trace_step_figures {
    int64_t number; /* -1: the whole trace */
    int64_t start, end;
    struct trace_figures x;
};

struct trace_coll {
    int64_t start, end, exposed; /* ps */
    int64_t bytes;               /* of the full message; -1 if unknown */
    int64_t p;                   /* ranks of the group; 0 if unknown */
    int64_t issued;              /* when the host started it */
    uint32_t event;              /* its kernel, or its part on a thread of the library */
    uint32_t call;               /* index into trace.cpu of what started it; TRACE_NONE */
    uint32_t step;               /* index into steps, or TRACE_NONE */
    str_id group, ranks, name;
    const char *dtype; /* "f32"; "" if unknown */
    int elem;          /* bytes of an element; 0 if unknown */
    tuck_coll kind;
    bool by_name; /* the kind is from the kernel's name alone */
    /* with several ranks: */
    uint32_t n_rank;  /* ranks that it was found on; 1: nobody else has it */
    int64_t transfer; /* the shortest of them */
};

/* One timeline: a rank; Tuck's own traces have one for each simulated run. */
struct trace_part {
    const struct trace *t;
    str_id pid; /* 0: all of them */
    const char *label;
    bool device;                 /* kernels on a device; else operators of the host */
    bool device_steps;           /* steps are annotations of the device, by which kernels count */
    VEC(struct trace_span) span; /* sorted by step and start */
    VEC(struct trace_step_figures) step;
    VEC(struct trace_coll) coll; /* sorted by start */
    struct trace_figures sum;    /* all steps */
    uint32_t n_unmatched;        /* calls of collectives without a transfer */
    uint32_t n_outside;          /* spans that ran, but were launched outside of all steps */
    int64_t outside;             /* how long at least one of those ran, ps */
};

/* Figures as Holistic Trace Analysis defines them: times rounded to whole us, starts up and ends
 * down, if any start has a fraction; kinds by the kernel's name; without the kernels that were
 * launched from the last step on, if there are several. us. */
struct trace_holistic {
    bool any; /* there are kernels */
    double compute, non_compute, idle, kernel, overlap_percent;
};

/* Memory comes from `a` and the trace's own guard is not used: a's guard. */
void trace_study(const struct trace *t, str_id pid, struct arena *a, struct trace_part *out);
void trace_holistic(const struct trace *t, struct arena *a, struct trace_holistic *out);

/* The parts of trace_study(). */
void trace_colls(struct trace_part *p, struct arena *a);
uint32_t trace_step_at(const struct trace_part *p, int64_t when);

/* Merged intervals, for "how much of this interval do they cover?". */
struct trace_cover {
    const int64_t *start, *end, *before; /* before[i]: covered by those before i */
    uint32_t n;
};
/* Spans in any order whose class is in the set (bits). */
void trace_cover_make(const struct trace_span *s, uint32_t n, uint32_t classes, struct arena *a,
                      struct trace_cover *out);
int64_t trace_covered(const struct trace_cover *c, int64_t start, int64_t end);

/* Collectives of all ranks are matched: n_rank and transfer are filled. Returns the number that
 * could not be. */
uint32_t trace_match_ranks(struct trace_part *part, uint32_t n, struct arena *a);

#endif

/* Why communication is exposed, and what would help. */
#ifndef TUCK_STUDY_EXPLAIN_H
#define TUCK_STUDY_EXPLAIN_H

#include "study/runner.h"
#include "schedule/schedule.h"

/* What keeps a collective from being hidden. */
enum explain_limit {
    EXPLAIN_HIDDEN,      /* nothing: it is hidden */
    EXPLAIN_ORDER_HELPS, /* only its place: another order hides it */
    EXPLAIN_DEPENDENCY,  /* what it needs comes right before it */
    EXPLAIN_MEMORY,      /* earlier it would need more memory than there is */
    EXPLAIN_ORDER,       /* a collective of its group that it must not pass */
    EXPLAIN_CHANNEL,     /* its group's channel is busy with others */
    EXPLAIN_HOLDS_UP,    /* nothing waits for it yet, but for a later one on its channel */
    EXPLAIN_NOTHING,     /* no compute left to hide it */
    EXPLAIN_END
};

const char *explain_limit_name(enum explain_limit l);

struct explained {
    uint32_t op;   /* a collective */
    uint32_t wait; /* its first wait in the order, PROGRAM_NONE: none */
    int64_t ps, exposed, hidden, queued;
    uint32_t n_under; /* compute ops that run under it */
    enum explain_limit limit;
    uint32_t limit_op; /* what limits it, PROGRAM_NONE */
    int64_t more;      /* EXPLAIN_MEMORY: bytes above the peak that it would need */
};

enum remedy_kind {
    REMEDY_OPTIMIZE, /* tuck optimize */
    REMEDY_MEMORY,   /* more memory, and the order that it allows */
    REMEDY_BUCKETS,  /* fewer, larger collectives */
    REMEDY_GROUP,    /* some collectives on a group of their own */
    REMEDY_LINKS,    /* faster links */
    REMEDY_ORDER,    /* another order */
};

/* Something that was tried on the graph: the step's time then. */
struct remedy {
    enum remedy_kind kind;
    char what[120]; /* in words */
    int64_t ps, peak;
    uint32_t hidden;   /* collectives that are no longer exposed */
    int64_t own;       /* of a remedy for one collective: how much of it is exposed then; -1 */
    double parameter;  /* bytes of memory or of a bucket, the factor of links; 0: none */
    char options[320]; /* of the `tuck optimize` that applies it; "" has none */
    const char
        *no_command; /* why no command applies it; NULL: `tuck optimize` with those options does */
};

enum {
    REMEDIES_MAX = 12,      /* more than there are kinds and steps of them */
    EXPLAIN_LINKS_MOST = 64 /* how much faster links are tried */
};

struct explanation {
    struct evaluation *e; /* of the study */
    uint32_t n;
    struct explained *row; /* collectives, the most exposed first */
    struct remedy remedy[REMEDIES_MAX];
    uint32_t n_remedy;
    bool crosses; /* in orders that were tried, collectives of different groups changed places */
    const char *subject; /* "step.txt --group 0=8", for commands; NULL: "FILE" */
};

struct explain_options {
    const char *node; /* only what helps this collective is tried; NULL: what helps the step */
    struct observer observer; /* of what is tried */
};

/* Why, and what would help. The graph is evaluated by the study, whose machine must have its laws
 * already: what is tried is measured by them. To be ended whatever came out. */
TUCK_MUST_CHECK tuck_status explain_graph(struct study *study, tuck_graph *g,
                                          const struct explain_options *o, tuck_diags *diags,
                                          struct explanation *x);
/* Why alone, of an evaluation that is there: it must outlive the explanation. Nothing to end. */
TUCK_MUST_CHECK tuck_status explain_why(struct evaluation *e, bool keep_order,
                                        struct explanation *x);
void explain_end(struct explanation *x);

void explain_table(const struct explanation *x, uint32_t most, struct buf *out);
/* node: with that collective alone; NULL: all. */
void explain_json(const struct explanation *x, const char *node, struct buf *out);
/* The op that a node is part of, PROGRAM_NONE: none, as with views and inputs. */
uint32_t explain_op(const struct explanation *x, const char *node);
/* One collective, or whatever op the node is part of. */
void explain_node(const struct explanation *x, const struct machine *m, const char *node,
                  struct buf *out);

#endif

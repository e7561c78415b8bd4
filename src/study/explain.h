/* Why communication is exposed, and what would help. */
#ifndef TUCK_STUDY_EXPLAIN_H
#define TUCK_STUDY_EXPLAIN_H

#include "study/bucket_why.h"
#include "study/issue_place.h"
#include "study/runner.h"
#include "schedule/schedule.h"

/* What keeps a collective from being hidden. */
enum explain_limit {
    EXPLAIN_HIDDEN,      /* nothing: it is hidden */
    EXPLAIN_ORDER_HELPS, /* only its position: another order hides it */
    EXPLAIN_DEPENDENCY,  /* its operands are computed right before it */
    EXPLAIN_MEMORY,      /* starting it earlier would need more memory than is allowed */
    EXPLAIN_ORDER,       /* a collective of its group that it must not pass */
    EXPLAIN_CHANNEL,     /* its group's channel is busy with others */
    /* its own wait does not stall, but it delays a later collective on its channel */
    EXPLAIN_HOLDS_UP,
    EXPLAIN_NOTHING, /* there is no compute left to hide it */
    EXPLAIN_END
};

const char *explain_limit_name(enum explain_limit l);

struct explained {
    uint32_t op;   /* a collective */
    uint32_t wait; /* its first wait in the order, or PROGRAM_NONE */
    int64_t ps, exposed, hidden, queued;
    uint32_t n_under; /* compute ops that run while it runs */
    enum explain_limit limit;
    uint32_t limit_op; /* the op that limits it, or PROGRAM_NONE */
    bool in_part;      /* EXPLAIN_ORDER_HELPS: another order hides only a part of it */
    int64_t more;      /* EXPLAIN_MEMORY: the bytes above the peak that it would need */
};

enum remedy_kind {
    REMEDY_OPTIMIZE, /* run `tuck optimize` */
    REMEDY_MEMORY,   /* allow more memory, and use the order that this permits */
    REMEDY_BUCKETS,  /* merge collectives into fewer, larger ones */
    REMEDY_GROUP,    /* move some collectives to a group of their own */
    REMEDY_LINKS,    /* use faster links */
    REMEDY_ORDER,    /* use another order */
};

/* A change that was tried on the graph, and the step time with it. */
struct remedy {
    enum remedy_kind kind;
    char what[120]; /* description */
    int64_t ps, peak;
    uint32_t hidden; /* collectives that are no longer exposed */
    /* for a remedy for one collective: how much of it is still exposed; else -1 */
    int64_t own;
    double parameter; /* bytes of memory or of a bucket, or the link factor; 0 if none */
    /* options of the `tuck optimize` command that applies it; "" if none are needed */
    char options[320];
    /* why no command applies it; NULL if `tuck optimize` with these options does */
    const char *no_command;
};

enum {
    REMEDIES_MAX = 12,      /* more than all kinds of remedies and their variants */
    EXPLAIN_LINKS_MOST = 64 /* largest link factor that is tried */
};

struct explanation {
    struct evaluation *e; /* owned by the study */
    uint32_t n;
    struct explained *row; /* collectives, the most exposed first */
    struct remedy remedy[REMEDIES_MAX];
    uint32_t n_remedy;
    /* in some orders that were tried, collectives of different groups changed places */
    bool crosses;
    struct bucket_why bucket;
    struct places place; /* of the collective that was asked for, if it was one */
    const char *subject; /* "step.txt --group 0=8", for the commands shown; NULL means "FILE" */
};

struct explain_options {
    const char *node; /* try only what helps this collective; NULL: what helps the whole step */
    struct observer observer;             /* called for each thing that is tried */
    const struct tuck_decision *decision; /* why is the node in its bucket of this? NULL: none */
};

/* Why communication is exposed, and what would help. The study evaluates the graph; its machine
 * must already have its laws, because trials use them. The explanation must be ended, also after a
 * failure. */
TUCK_MUST_CHECK tuck_status explain_graph(struct study *study, tuck_graph *g,
                                          const struct explain_options *o, tuck_diags *diags,
                                          struct explanation *x);
/* Only the reasons, from an existing evaluation, which must outlive the explanation. There is
 * nothing to end. */
TUCK_MUST_CHECK tuck_status explain_why(struct evaluation *e, bool keep_order,
                                        struct explanation *x);
void explain_end(struct explanation *x);

void explain_table(const struct explanation *x, uint32_t most, struct buf *out);
/* Only the given collective; NULL means all. */
void explain_json(const struct explanation *x, const char *node, struct buf *out);
/* The op that a node belongs to; PROGRAM_NONE for nodes without one, such as views and inputs. */
uint32_t explain_op(const struct explanation *x, const char *node);
/* Explains one collective, or whatever op the node belongs to. */
void explain_node(const struct explanation *x, const struct machine *m, const char *node,
                  struct buf *out);

#endif

/* Why communication is exposed, and what would help. */
#ifndef TUCK_PIPELINE_EXPLAIN_H
#define TUCK_PIPELINE_EXPLAIN_H

#include "pipeline/evaluate.h"
#include "schedule/schedule.h"

/* What keeps a collective from being hidden. */
enum explain_limit {
    EXPLAIN_HIDDEN,      /* nothing: it is hidden */
    EXPLAIN_ORDER_HELPS, /* only where it stands: another order hides it */
    EXPLAIN_DEPENDENCY,  /* what it needs comes right before it */
    EXPLAIN_MEMORY,      /* earlier it would need more memory than there is */
    EXPLAIN_ORDER,       /* a collective of its group that it must not pass */
    EXPLAIN_CHANNEL,     /* its group's channel is busy with others */
    EXPLAIN_NOTHING,     /* there is no compute left to hide behind */
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
    int64_t more;      /* EXPLAIN_MEMORY: bytes above the peak that it would take */
};

/* Something that was tried on the graph: what a step would take then. */
struct remedy {
    const char *what;
    int64_t ps, peak;
    uint32_t hidden; /* collectives that are no longer exposed */
    bool tried;
};

enum { REMEDIES_MAX = 8 };

struct explanation {
    struct evaluation e;
    uint32_t n;
    struct explained *row; /* collectives, the most exposed first */
    struct remedy remedy[REMEDIES_MAX];
    uint32_t n_remedy;
};

/* run: how passes are to be run when remedies are tried; NULL: none is. */
TUCK_MUST_CHECK tuck_status explain_graph(tuck_graph *g, const struct evaluate_options *o,
                                          const tuck_run_options *run, tuck_diags *diags,
                                          struct explanation *x);
void explain_end(struct explanation *x);

void explain_table(const struct explanation *x, uint32_t most, struct buf *out);
void explain_json(const struct explanation *x, struct buf *out);
/* Is a node part of an op? Views and inputs are not. */
bool explain_has(const struct explanation *x, const char *node);
/* One collective, or whatever op the node is part of. */
void explain_node(const struct explanation *x, const struct evaluate_options *o, const char *node,
                  struct buf *out);

#endif

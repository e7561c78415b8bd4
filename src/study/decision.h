/* A decision: what was done to a graph, so that it can be done again without searching, on the same
 * graph or on one with other names. Rewrites are repeated by their passes; what passes on orders
 * found is an explicit order.
 */
#ifndef TUCK_STUDY_DECISION_H
#define TUCK_STUDY_DECISION_H

#include "study/digest.h"
#include "study/runner.h"
#include "tuck_experimental.h"

enum { DECISION_VERSION = 1 };

struct decision_step {
    const char *pass, *options; /* a pass on graphs; NULL: an order: */
    uint32_t *order, n_order;   /* the places of all nodes before the step, as they are after it */
    uint32_t *apart, n_apart; /* places, after it, of loops that are not fused with those before */
};

struct decision_bucket {
    uint32_t *member, n; /* places of collectives in the original graph */
};

struct tuck_decision {
    struct mem mem;
    struct arena arena;
    uint64_t program, sequence; /* digests: of the original graph, of the result's communication */
    uint32_t n_node, *node;     /* program_digest.hash of the original graph */
    const char *machine;        /* for readers */
    int64_t step_ps, peak;      /* promised; -1 if not judged */
    VEC(struct decision_step) step;
    VEC(struct decision_bucket) bucket;
};

struct tuck_decision *decision_new(const tuck_allocator *alloc); /* NULL: out of memory */

/* Repeats the passes of a report on `original`, a copy, and records them. Then fills in the rest:
 * `result` is what the passes made. TUCK_EINVAL: a pass cannot be repeated. */
TUCK_MUST_CHECK tuck_status decision_record(struct tuck_decision *d, const struct runner *r,
                                            tuck_graph *original, const tuck_report *report,
                                            tuck_graph *result, tuck_diags *diags);

/* Is it for this graph? If not, TUCK_EINVAL, and a diagnostic at the first node that differs. Needs
 * types. */
TUCK_MUST_CHECK tuck_status decision_check(const struct tuck_decision *d, const tuck_graph *g,
                                           tuck_diags *diags);
/* Applies the steps to g. TUCK_EINVAL: it does not give the recorded sequence. After a failure g is
 * the result of some of the steps. */
TUCK_MUST_CHECK tuck_status decision_run(const struct tuck_decision *d, const struct runner *r,
                                         tuck_graph *g, tuck_report *report, tuck_diags *diags);

/* decision_file.c */
void decision_write(const struct tuck_decision *d, struct buf *out);
TUCK_MUST_CHECK tuck_status decision_read(const char *text, size_t len, const char *name,
                                          const tuck_allocator *alloc, tuck_diags *diags,
                                          struct tuck_decision **out);

#endif

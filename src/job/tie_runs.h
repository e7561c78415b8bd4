/* Runs of compiled graphs in a trace, and what ran in each. */
#ifndef TUCK_JOB_TIE_RUNS_H
#define TUCK_JOB_TIE_RUNS_H

#include "job/tie_trace.h"

/* Something that ran, or an op of the program. Alike if the keys are. */
struct item {
    uint64_t key;
    uint32_t ref; /* op, or index of its name */
    int64_t ps;
    int64_t call; /* of a collective that the host moves: its time to start it */
    bool other;   /* that ran: the program has nothing alike, so it is not the program's */
};

typedef VEC(struct item) items;

struct window {
    int64_t start, end;
    int64_t step;
    str_id name;
    items item[TIE_CLASS_END];
    struct trace_figures x;
    int64_t lost; /* ps: in waits for other ranks nothing is done */
    /* Without a device: how often the host waits for collectives that it has started since it last
     * waited for any. */
    uint32_t stops;
    bool started; /* such a collective, while this is counted */
};

struct runs {
    struct window **at;
    uint32_t n;
};

/* Is what ran the program's ops, in their order, but for what is not the program's? */
bool tie_same_sequence(const items *ops, const items *run);
/* Finds out what is not the program's: barriers, collectives and products outside of its graphs. */
void tie_mark_others(const items ops[TIE_CLASS_END], struct window *w, uint32_t n, struct arena *a);
uint64_t tie_coll_key(unsigned kind, int64_t bytes, bool sized);
static inline uint64_t tie_coll_bytes(uint64_t key)
{
    return key & ((UINT64_C(1) << 56) - 1);
}
/* An operator of the host that is known by its name only, as the trace has it; no operations are as
 * many. 0: the trace has no such operator. */
static inline uint64_t tie_name_key(str_id name)
{
    return UINT64_C(1) << 63 | name;
}
/* Calls of compiled graphs, or whole steps, which are also what there is if the trace has no
 * such calls. Products that are known by their names: those that the program has. In the order
 * of their starts; sized: collectives of other bytes are not alike; beside: what to take off the
 * times of items, and waits for other ranks, too; NULL: nothing. */
uint32_t tie_runs(const struct trace_part *p, const items *products, bool whole, bool sized,
                  const struct beside *beside, struct arena *a, struct window **out);
/* Each `m` calls one after the other in a step, as one run: a job of that many graphs. */
uint32_t tie_join_runs(const struct window *w, uint32_t n, uint32_t m, struct arena *a,
                       struct window **out);

#endif

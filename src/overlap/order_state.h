/* What the scheduler knows while it makes an order. */
#ifndef TUCK_OVERLAP_ORDER_STATE_H
#define TUCK_OVERLAP_ORDER_STATE_H

#include "base/heap.h"
#include "overlap/live.h"
#include "overlap/ready_heap.h"

/* How deep waits may lead to further waits; Python's stack ends about there. */
enum { ORDER_DEPTH = 200 };

/* Collectives of a group that may be started early: a set of numbers in which the next one is found
 * quickly. Numbers are places among the group's collectives. */
struct open_set {
    uint64_t *word, *some; /* some: a bit for each word that is not 0 */
    uint32_t n_word, n_some;
    uint32_t *coll; /* by place */
};

struct cand {
    uint32_t coll, rank; /* rank: of its key among the keys of this list */
    uint32_t dom, place;
    uint8_t prio;
    bool clear;
    double gain; /* below 0: what it would hide */
};

/* Time that a node gives away, to each group all of it. */
struct budget {
    uint32_t node, when, excluded; /* excluded: a group that gets nothing; or NO_PLACE */
    uint32_t n_open;               /* groups with something left */
    double *left;                  /* by group */
    uint32_t *next;                /* by group: while candidates are collected */
    struct heap merge;
    struct cand *cand;
    uint32_t n_cand, n_clear;
    uint32_t *key_best, *key_rank; /* by key */
    VEC(uint32_t) keys;            /* keys of the list */
};

struct order {
    struct facts *f;
    struct arena *a;
    struct overlap_result *out;
    struct live live;
    int64_t allowed, max_in_flight, max_off_bucket;
    bool *done; /* by place: scheduled */
    uint32_t *order, n_order;
    uint32_t *waits_for; /* by place: operands that are not scheduled */
    uint32_t *held_by;   /* by place: operands through which something holds it back … */
    bool *passed;        /* … none of which this one is any more */
    VEC(uint32_t) todo;  /* while that is handed on */
    struct ready_heap on_path, off_path;
    int64_t *pending;  /* by key: bytes of those that are ready off the path */
    uint32_t *n_ready; /* by key: how many of those there are in the heap */
    uint32_t compute;  /* how many compute nodes are scheduled */
    uint32_t furthest; /* the last place that was scheduled on the path, and 1 */
    struct range_max prefetched, projected; /* by compute node */
    /* in flight, in the order of their starts; by collective */
    uint32_t *prev, *next, first, last;
    bool *flying;
    int64_t in_flight;
    uint32_t *like; /* by torch's other key: how many are in flight */
    struct group_state {
        uint32_t first, last;                 /* in flight */
        uint32_t first_exposed, last_exposed; /* of those */
        uint32_t active;                      /* place in `active`; NO_PLACE: none is exposed */
        struct open_set open;
    } * group;
    uint32_t *group_prev, *group_next, *exposed_prev, *exposed_next; /* by collective */
    uint32_t *open_at;           /* by collective: its place in the set of its group */
    uint32_t *by_dom;            /* collectives on the path by dom, … */
    uint32_t n_by_dom, n_opened; /* … and how many of them are near enough */
    VEC(uint32_t) active;        /* groups with something exposed in flight */
    VEC(uint32_t) path, waits;   /* stacks */
    uint32_t *seen, looks;       /* marks by place */
    uint32_t *below, below_when; /* marks: depends on the node of budget below_when */
    struct budget *budget[ORDER_DEPTH];
    uint32_t depth, budgets;
};

/* order_flight.c */
void flight_begin(struct order *s);
void flight_start(struct order *s, uint32_t c);
void flight_end(struct order *s, uint32_t c);
/* The time that nothing hides falls by that much. */
void flight_hide(struct order *s, uint32_t c, double ms, const struct budget *b);
bool is_hidden_by(const struct coll *c, const struct budget *b);
void open_begin(struct order *s);
void open_more(struct order *s); /* another compute node was scheduled */
void open_take(struct order *s, uint32_t c);
/* The first of the set from `from` on; NO_PLACE: none. */
uint32_t open_next(const struct open_set *o, uint32_t from);

/* overlap_order.c */
void order_schedule(struct order *s, uint32_t i);
void order_start(struct order *s, uint32_t c);
void order_wait(struct order *s, uint32_t i);
void order_release(struct order *s, uint32_t i); /* a wait that nothing holds back any more */
void order_raise(struct order *s, uint32_t i, const char *why);

/* order_prefetch.c */
struct budget *budget_begin(struct order *s, uint32_t node, double ms, uint32_t excluded);
void budget_spend(struct order *s, struct budget *b);
void budget_end(struct order *s);

#endif

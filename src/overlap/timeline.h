/* For each group what happens in the order that was found: its starts and waits, compute, and what
 * hides its collectives. A group's collectives run one after the other, so a wait for one ends
 * those before it, too. */
#ifndef TUCK_OVERLAP_TIMELINE_H
#define TUCK_OVERLAP_TIMELINE_H

#include "overlap/extra_edges.h"

#define NO_EVENT UINT32_MAX

enum event_kind { EVENT_COMPUTE, EVENT_START, EVENT_WAIT };

struct event {
    uint32_t node;     /* place */
    uint32_t position; /* in its timeline */
    uint32_t prev, next;
    uint8_t kind;
};

struct moved {
    uint32_t head, was; /* was: its key */
};

/* Nodes that become one: the first that was there, and those that joined it. */
struct merged {
    uint32_t *head;          /* by place: the first; itself if it is alone */
    uint32_t *next, *last;   /* by place: the next of them; by head: the last */
    uint32_t *key;           /* by head: rises along every edge */
    VEC(struct moved) moved; /* whose keys the last join changed */
    VEC(struct moved) pool;  /* the same by key, while they are handed out */
};

struct timelines {
    struct facts *f;
    const uint32_t *at; /* by place: where it is in the order */
    VEC(struct event) event;
    uint32_t *first;    /* by group: its first event */
    uint32_t *of;       /* by place: the event, of the group at hand */
    uint32_t *of_group; /* … if this is the group, and 1 */
    uint32_t group;
    struct extra_edges *extra;
    struct fan ties_in, ties_out; /* a start before what hides it, and that before the wait */
    bool *hides;                  /* by place: it hides a collective wholly, maybe with others */
    struct merged merged;
    VEC(uint32_t) todo;
    uint32_t *seen, looks; /* marks by place */
    uint32_t n;
};

void timelines_begin(struct timelines *t, struct facts *f, const struct overlap_result *order,
                     struct extra_edges *extra);
void timeline_use(struct timelines *t, uint32_t group);

static inline struct event *event_of(const struct timelines *t, uint32_t place)
{
    assert_hot(t->of_group[place] == t->group + 1);
    return &t->event.at[t->of[place]];
}

/* Where a start or wait was taken out of. */
struct gap {
    uint32_t prev, next;
};

struct gap timeline_take_out(struct timelines *t, uint32_t place);
void timeline_put_back(struct timelines *t, uint32_t place, struct gap gap);

void merged_join(struct timelines *t, uint32_t head, uint32_t other);
void merged_leave(struct timelines *t, uint32_t head, uint32_t other); /* the last that joined */
/* Must one of the nodes that `to` stands for come after one of `from`? */
bool merged_path(struct timelines *t, uint32_t from, uint32_t to);

/* Visit all that comes before (or after) those in t->todo by uses and ties, down to `limit` in
 * the order; true if `stop` says so of one. */
bool ties_reach(struct timelines *t, bool forward, uint32_t limit,
                bool (*stop)(const void *ctx, uint32_t place), const void *ctx);

#endif

/* Which op must come after which, by op and in both directions. */
#ifndef TUCK_SCHEDULE_EDGES_H
#define TUCK_SCHEDULE_EDGES_H

#include "schedule/schedule.h"

enum {
    EDGE_REAL = 1,      /* all dependences of the problem except fake ones */
    EDGE_FILE_FAKE = 2, /* the fake ones */
    EDGE_ADDED = 4,     /* those that passes added */
    EDGE_CHAIN = 8,   /* from each collective to the next it must not pass, in the current order */
    EDGE_FENCES = 16, /* the same where the order of collectives is free: schedule_freedom() */
};

struct edges {
    uint32_t *need_at, *need; /* [op]: the ops it needs, possibly repeated */
    uint32_t *user_at, *user; /* [op]: the ops that need it */
};

void edges_build(const struct schedule *s, unsigned which, struct arena *a, struct edges *out);

/* The fake dependences that count: with PyTorch's rules those of the file, otherwise only those
 * that keep groups in order. */
static inline unsigned edges_fake(const struct schedule *s)
{
    return EDGE_ADDED | (s->opt.torch ? EDGE_FILE_FAKE : EDGE_CHAIN);
}

#endif

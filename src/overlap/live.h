/* Bytes that are live in an order, as PyTorch's memory tracker has it: of fake tensors, not on the
 * host, and what an operand holds is gone where its last user starts. */
#ifndef TUCK_OVERLAP_LIVE_H
#define TUCK_OVERLAP_LIVE_H

#include "overlap/overlap.h"

struct live_storage {
    int64_t bytes;
    uint32_t left; /* values that hold it and are used still */
    bool live, kept;
};

struct live {
    struct facts *f;
    struct live_storage *at;
    struct fan fresh, held; /* by place: storages that it makes; that its value holds */
    uint32_t *users;        /* by place: users that are not scheduled yet */
    int64_t now, most;      /* bytes; the peak so far */
    uint32_t n_storage;
    struct live_storage *start; /* as they were at first, to begin again … */
    uint32_t *start_users;
    int64_t start_now;
};

void live_begin(struct live *l, struct facts *f);
void live_again(struct live *l); /* as after live_begin() */
void live_schedule(struct live *l, uint32_t i);

/* Numbers 0 … n - 1, all of which in a range can be added to, and whose largest can be asked for;
 * O(log n). */
struct range_max {
    int64_t *most, *add;
    uint32_t n;
};

void range_begin(struct range_max *m, struct arena *a, const int64_t *value, uint32_t n);
void range_add(struct range_max *m, uint32_t from, uint32_t end, int64_t v);
int64_t range_most(const struct range_max *m, uint32_t from, uint32_t end);

#endif

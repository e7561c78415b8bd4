/* A way to bucket: for each kind of collective which of them, up to which size, and how. */
#ifndef TUCK_STUDY_BUCKET_PLAN_H
#define TUCK_STUDY_BUCKET_PLAN_H

#include <stdbool.h>
#include <stdint.h>

/* In the order of passes: gathers are bucketed last, because their buckets are written in place,
 * and other rewrites leave those alone. */
enum { SCATTERS, REDUCES, GATHERS, N_KINDS };

/* FSDP's own: of parameters and gradients, all or only the small ones. Others are on the way of the
 * compute. CHAIN: FSDP's own, cut by when each is needed (study/cut.h). */
enum which { LEAVE, SMALL, OF_FSDP, ALL, CHAIN };

struct plan {
    struct {
        int8_t which; /* enum which */
        int8_t size;  /* the cap is the size that keeps the links busy times 2 to half of this */
        bool lists;   /* a bucket is one collective on a list */
        bool room;    /* buckets are smaller where there is less memory (study/cut.h) */
    } kind[N_KINDS];
};

/* How one kind of a plan may be changed. */
enum change {
    LISTS,
    SMALLER,
    LARGER,
    SMALL_ONES,
    CHAINED,
    OTHERS,
    SWITCH,
    ROOM,
    A_LITTLE_SMALLER,
    A_LITTLE_LARGER,
    N_CHANGES
};

enum { N_FIRST_PLANS = 6 };

/* One size for all kinds; k < N_FIRST_PLANS. */
struct plan plan_first(uint32_t k, int size);
/* A plan that differs in one kind; false: there is no such. A kind that is left begins again at
 * several sizes: the one at which others do best need not suit it. */
bool plan_change(struct plan *p, uint32_t kind, enum change how);
bool plan_same(const struct plan *a, const struct plan *b, uint32_t kind);
/* Is the memory at hand looked at? */
bool plan_has_room(const struct plan *p);

#endif

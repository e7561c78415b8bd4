#include "study/bucket_plan.h"

enum { SMALLEST = -8, LARGEST = 8 };

bool plan_same(const struct plan *a, const struct plan *b, uint32_t kind)
{
    return a->kind[kind].which == b->kind[kind].which &&
           (a->kind[kind].which == LEAVE || (a->kind[kind].size == b->kind[kind].size &&
                                             a->kind[kind].lists == b->kind[kind].lists &&
                                             a->kind[kind].room == b->kind[kind].room));
}

static struct plan plan_of(enum which scatters, enum which reduces, enum which gathers, int size)
{
    return (struct plan){{{(int8_t)scatters, (int8_t)size, scatters != SMALL, false},
                          {(int8_t)reduces, (int8_t)size, true, false},
                          {(int8_t)gathers, (int8_t)size, false, false}}};
}

struct plan plan_first(uint32_t k, int size)
{
    switch (k) {
    case 0: return plan_of(OF_FSDP, ALL, OF_FSDP, size);
    case 1: return plan_of(ALL, ALL, ALL, size);
    case 2: return plan_of(OF_FSDP, LEAVE, OF_FSDP, size);
    case 3: return plan_of(ALL, ALL, LEAVE, size);
    case 4: return plan_of(CHAIN, CHAIN, CHAIN, size + 4); /* only a limit */
    default: return plan_of(SMALL, ALL, SMALL, size);
    }
}

bool plan_has_room(const struct plan *p)
{
    return p->kind[SCATTERS].room || p->kind[REDUCES].room || p->kind[GATHERS].room;
}

bool plan_change(struct plan *p, uint32_t kind, enum change how)
{
    static const int8_t step[N_CHANGES] = {
        [SMALLER] = -2, [LARGER] = 2, [A_LITTLE_SMALLER] = -1, [A_LITTLE_LARGER] = 1};
    int8_t *which = &p->kind[kind].which, *size = &p->kind[kind].size;

    if (how == SMALL_ONES && kind != REDUCES) {
        bool was_large = *which != SMALL;
        *which = was_large ? SMALL : OF_FSDP;
        *size = 0;
        p->kind[kind].lists = !was_large && kind != GATHERS;
        return true;
    }
    if (how == CHAINED) {
        bool was = *which == CHAIN;
        *which = was ? kind == REDUCES ? ALL : OF_FSDP : CHAIN;
        *size = was ? 0 : 2;
        return true;
    }
    if (how == LISTS) {
        p->kind[kind].lists = !p->kind[kind].lists;
        return *which != LEAVE;
    }
    if (how == ROOM) {
        p->kind[kind].room = !p->kind[kind].room;
        return *which != LEAVE && *which != SMALL;
    }
    if (*which == LEAVE) {
        *which = ALL;
        *size = step[how];
        return how != OTHERS && how != SMALL_ONES;
    }
    if (how == OTHERS) { /* of this kind */
        bool others = *which == OF_FSDP || *which == ALL;
        *which = (int8_t)(*which == ALL ? OF_FSDP : ALL);
        return kind != REDUCES && others;
    }
    if (how == SWITCH) {
        *which = LEAVE;
        return true;
    }
    *size = (int8_t)(*size + step[how]);
    return *size >= SMALLEST && *size <= LARGEST;
}

/* Checks of calls, names, and the table of groups. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/comm/comm_call.h"

static const char *const kind_name[COMM_KINDS] = {
    [COMM_BARRIER] = "barrier",       [COMM_ALL_REDUCE] = "all_reduce",
    [COMM_ALL_GATHER] = "all_gather", [COMM_REDUCE_SCATTER] = "reduce_scatter",
    [COMM_ALL_TO_ALL] = "all_to_all", [COMM_BROADCAST] = "broadcast",
    [COMM_REDUCE] = "reduce",         [COMM_GATHER] = "gather",
    [COMM_SCATTER] = "scatter",       [COMM_P2P] = "send/receive",
};

static const char *const reduce_name[COMM_REDUCES] = {
    [COMM_SUM] = "sum",         [COMM_AVG] = "avg",   [COMM_MIN] = "min", [COMM_MAX] = "max",
    [COMM_PRODUCT] = "product", [COMM_BAND] = "band", [COMM_BOR] = "bor", [COMM_BXOR] = "bxor",
};

const char *comm_kind_name(enum comm_kind kind)
{
    return (unsigned)kind < COMM_KINDS ? kind_name[kind] : "?";
}

const char *comm_reduce_name(enum comm_reduce reduce)
{
    return (unsigned)reduce < COMM_REDUCES ? reduce_name[reduce] : "?";
}

int comm_reduce_by_name(const char *name)
{
    for (int i = 0; i < COMM_REDUCES; i++)
        if (strcmp(name, reduce_name[i]) == 0)
            return i;
    return -1;
}

bool comm_can_reduce(enum comm_reduce reduce, enum dtype dtype)
{
    if ((unsigned)reduce >= COMM_REDUCES)
        return false;
    bool bits = reduce == COMM_BAND || reduce == COMM_BOR || reduce == COMM_BXOR;
    switch (dtype_at(dtype)->category) {
    case DTYPE_IS_FLOAT: return dtype != DTYPE_NONE && !bits;
    case DTYPE_IS_COMPLEX: return reduce == COMM_SUM || reduce == COMM_AVG;
    case DTYPE_IS_INT: return reduce != COMM_AVG;
    case DTYPE_IS_UINT: return reduce != COMM_AVG && dtype_at(dtype)->bits >= 16;
    case DTYPE_IS_BOOL: return dtype == DTYPE_B8 && reduce != COMM_AVG;
    default: return false;
    }
}

bool comm_fail(struct comm *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(c->error, sizeof(c->error), fmt, ap);
    va_end(ap);
    return false;
}

void call_describe(const struct comm_call *call, char *text, size_t size)
{
    if (call->label == NULL || call->label[0] == '\0')
        snprintf(text, size, "%s", comm_kind_name(call->kind));
    else
        snprintf(text, size, "%s '%s'", comm_kind_name(call->kind), call->label);
}

static bool invalid(struct comm *c, const struct comm_call *call, const char *what)
{
    char text[256];
    call_describe(call, text, sizeof(text));
    return comm_fail(c, "rank %d: %s: %s", c->rank, text, what);
}

static int64_t split_sum(const int64_t *split, int32_t n)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < n; i++)
        if (split[i] < 0 || __builtin_add_overflow(sum, split[i], &sum))
            return -1;
    return sum;
}

int64_t call_in_count(const struct comm *c, const struct comm_call *call, const struct comm_part *p)
{
    const struct comm_group *g = &c->group[call->group];
    switch (call->kind) {
    case COMM_REDUCE_SCATTER: return p->count * g->n;
    case COMM_ALL_TO_ALL:
        return call->in_split != NULL ? split_sum(call->in_split, g->n) : p->count * g->n;
    case COMM_BROADCAST: return g->me == call->root ? p->count : 0;
    case COMM_SCATTER: return g->me == call->root ? p->count * g->n : 0;
    case COMM_P2P: return p->receive ? 0 : p->count;
    case COMM_BARRIER: return 0;
    default: return p->count;
    }
}

int64_t call_out_count(const struct comm *c, const struct comm_call *call,
                       const struct comm_part *p)
{
    const struct comm_group *g = &c->group[call->group];
    switch (call->kind) {
    case COMM_ALL_GATHER: return p->count * g->n;
    case COMM_ALL_TO_ALL:
        return call->out_split != NULL ? split_sum(call->out_split, g->n) : p->count * g->n;
    case COMM_REDUCE: return g->me == call->root ? p->count : 0;
    case COMM_GATHER: return g->me == call->root ? p->count * g->n : 0;
    case COMM_P2P: return p->receive ? p->count : 0;
    case COMM_BARRIER: return 0;
    default: return p->count;
    }
}

static bool check_part(struct comm *c, const struct comm_call *call, const struct comm_part *p)
{
    const struct comm_group *g = &c->group[call->group];
    size_t bytes = dtype_at(p->dtype)->bytes;
    int64_t most = INT64_MAX / 16 / g->n;
    if (bytes == 0)
        return invalid(c, call, "the dtype is unknown");
    if (p->count < 0 || p->count > most)
        return invalid(c, call, "the number of elements is out of range");
    if (call->kind == COMM_P2P && (p->peer < 0 || p->peer >= g->n))
        return invalid(c, call, "the peer is not a member of the group");
    int64_t in = call_in_count(c, call, p), out = call_out_count(c, call, p);
    if (in < 0 || out < 0 || in > most || out > most)
        return invalid(c, call, "the split sizes are out of range");
    if ((in > 0 && p->in == NULL) || (out > 0 && p->out == NULL))
        return invalid(c, call, "an operand has no memory");
    if (kind_reduces(call->kind) && !comm_can_reduce(call->reduce, p->dtype)) {
        char text[256];
        snprintf(text, sizeof(text), "%s of %s cannot be computed", comm_reduce_name(call->reduce),
                 dtype_at(p->dtype)->name);
        return invalid(c, call, text);
    }
    return true;
}

bool call_check(struct comm *c, const struct comm_call *call)
{
    if (call->kind >= COMM_KINDS)
        return invalid(c, call, "unknown kind of collective");
    if (call->group < 0 || call->group >= c->n_group)
        return invalid(c, call, "there is no such group");
    const struct comm_group *g = &c->group[call->group];
    if (g->me < 0)
        return invalid(c, call, "this rank is not a member of the group");
    bool rooted = call->kind == COMM_BROADCAST || call->kind == COMM_REDUCE ||
                  call->kind == COMM_GATHER || call->kind == COMM_SCATTER;
    if (rooted && (call->root < 0 || call->root >= g->n))
        return invalid(c, call, "the root is not a member of the group");
    if (call->kind == COMM_ALL_TO_ALL && (call->in_split == NULL) != (call->out_split == NULL))
        return invalid(c, call, "only one of the two lists of split sizes is given");
    if (call->kind == COMM_ALL_TO_ALL && call->in_split != NULL &&
        call->in_split[g->me] != call->out_split[g->me])
        return invalid(c, call, "what this rank sends itself is not what it expects from itself");
    if (call->kind == COMM_ALL_TO_ALL && call->in_split != NULL && call->n_part != 1)
        return invalid(c, call, "split sizes need exactly one tensor");
    for (uint32_t i = 0; i < call->n_part; i++)
        if (!check_part(c, call, &call->part[i]))
            return false;
    return true;
}

/* ---- copies ---- */

static bool keep_parts(struct call_keep *k, const struct comm_call *call)
{
    if (call->n_part > (k->part == NULL ? 1 : k->part_cap)) {
        struct comm_part *more = malloc(call->n_part * sizeof(*more));
        if (more == NULL)
            return false;
        call_drop(k);
        k->part = more;
        k->part_cap = call->n_part;
    }
    if (k->part == NULL) {
        k->part = &k->one;
        k->part_cap = 1;
    }
    for (uint32_t i = 0; i < call->n_part; i++)
        k->part[i] = call->part[i];
    return true;
}

bool call_keep(struct call_keep *k, const struct comm_call *call, int32_t n)
{
    if (!keep_parts(k, call))
        return false;
    k->call = *call;
    k->call.part = k->part;
    if (call->n_part == 0)
        k->call.kind = COMM_BARRIER;
    if (call->kind != COMM_ALL_TO_ALL || call->in_split == NULL) {
        k->call.in_split = k->call.out_split = NULL;
        return true;
    }
    if ((uint32_t)n * 2 > k->split_cap) {
        int64_t *more = realloc(k->split, (size_t)n * 2 * sizeof(*more));
        if (more == NULL)
            return false;
        k->split = more;
        k->split_cap = (uint32_t)n * 2;
    }
    for (int32_t i = 0; i < n; i++) {
        k->split[i] = call->in_split[i];
        k->split[n + i] = call->out_split[i];
    }
    k->call.in_split = k->split;
    k->call.out_split = k->split + n;
    return true;
}

void call_drop(struct call_keep *k)
{
    if (k->part != &k->one)
        free(k->part);
    free(k->split);
    k->part = NULL;
    k->split = NULL;
    k->part_cap = k->split_cap = 0;
}

/* ---- groups ---- */

static bool members_fit(struct comm *c, const int32_t *member, int32_t n)
{
    if (n <= 0 || n > c->world)
        return comm_fail(c, "a group has %d members, but there are %d ranks", n, c->world);
    for (int32_t i = 0; i < n; i++)
        if (member[i] < 0 || member[i] >= c->world)
            return comm_fail(c, "a group has rank %d, but there are %d ranks", member[i], c->world);
    for (int32_t i = 0; i < n; i++)
        for (int32_t k = 0; k < i; k++)
            if (member[i] == member[k])
                return comm_fail(c, "rank %d is in a group twice", member[i]);
    return true;
}

int32_t groups_add(struct comm *c, const int32_t *member, int32_t n, bool *added)
{
    *added = false;
    if (!members_fit(c, member, n))
        return -1;
    size_t bytes = (size_t)n * sizeof(*member);
    for (int32_t i = 0; i < c->n_group; i++)
        if (c->group[i].n == n && memcmp(c->group[i].member, member, bytes) == 0)
            return i;
    struct comm_group *more = realloc(c->group, (size_t)(c->n_group + 1) * sizeof(*more));
    if (more != NULL)
        c->group = more;
    int32_t *copy = more != NULL ? malloc(bytes) : NULL;
    if (copy == NULL)
        return comm_fail(c, "out of memory for a group of %d ranks", n) - 1;
    memcpy(copy, member, bytes);
    more[c->n_group] = (struct comm_group){.n = n, .me = -1, .member = copy};
    for (int32_t i = 0; i < n; i++)
        if (member[i] == c->rank)
            more[c->n_group].me = i;
    *added = true;
    return c->n_group++;
}

void groups_free(struct comm *c)
{
    for (int32_t i = 0; i < c->n_group; i++)
        free(c->group[i].member);
    free(c->group);
    c->group = NULL;
    c->n_group = 0;
}

/* Do all ranks plan the same calls? Digests first; texts only if those differ. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/comm/comm_call.h"

enum { TEXT = 256 };

static uint64_t hash_more(uint64_t h, const char *s)
{
    for (; *s != '\0'; s++)
        h = (h ^ (unsigned char)*s) * 1099511628211u;
    return (h ^ 0xff) * 1099511628211u;
}

static const uint64_t HASH_FIRST = 14695981039346656037u;

/* The row number k of a group; NULL if it has fewer. */
static const char *row_at(const struct comm_planned *row, uint32_t n, int32_t group, uint64_t k)
{
    for (uint32_t i = 0; i < n; i++)
        if (row[i].group == group && k-- == 0)
            return row[i].what;
    return NULL;
}

static uint64_t count_rows(const struct comm_planned *row, uint32_t n, int32_t group)
{
    uint64_t k = 0;
    for (uint32_t i = 0; i < n; i++)
        k += row[i].group == group;
    return k;
}

/* Of the first k rows of a group. */
static uint64_t digest_of_first(const struct comm_planned *row, uint32_t n, int32_t group,
                                uint64_t k)
{
    uint64_t h = HASH_FIRST;
    for (uint32_t i = 0; i < n && k > 0; i++)
        if (row[i].group == group) {
            h = hash_more(h, row[i].what);
            k--;
        }
    return h ^ k; /* fewer rows than k: different */
}

static bool same_in(const struct comm_group *g, const uint64_t *all)
{
    for (int32_t i = 1; i < g->n; i++)
        if (all[g->member[i]] != all[g->member[0]])
            return false;
    return true;
}

/* The number of rows at the beginning that are the same for all members: a binary search over
 * digests of beginnings. All ranks take part. */
static bool find_first(struct comm *c, const struct comm_planned *row, uint32_t n, int32_t group,
                       uint64_t *all, uint64_t *first)
{
    const struct comm_group *g = &c->group[group];
    uint64_t mine = count_rows(row, n, group), lo = 0, hi = 0;
    if (!comm_exchange(c, &mine, sizeof(mine), all))
        return false;
    for (int32_t i = 0; i < g->n; i++)
        if (all[g->member[i]] > hi)
            hi = all[g->member[i]];
    while (hi - lo > 1) { /* the first lo are the same, the first hi are not */
        uint64_t mid = lo + (hi - lo) / 2;
        mine = digest_of_first(row, n, group, mid);
        if (!comm_exchange(c, &mine, sizeof(mine), all))
            return false;
        if (same_in(g, all))
            lo = mid;
        else
            hi = mid;
    }
    *first = lo;
    return true;
}

static bool name_difference(struct comm *c, const struct comm_planned *row, uint32_t n,
                            int32_t group, uint64_t *all)
{
    const struct comm_group *g = &c->group[group];
    uint64_t first;
    if (!find_first(c, row, n, group, all, &first))
        return false;
    char mine[TEXT], *text = malloc((size_t)c->world * TEXT);
    const char *what = row_at(row, n, group, first);
    snprintf(mine, sizeof(mine), "%s", what != NULL ? what : "no further call");
    bool ok = text != NULL && comm_exchange(c, mine, TEXT, text);
    for (int32_t i = 1; ok && i < g->n; i++) {
        char *a = text + (size_t)g->member[0] * TEXT, *b = text + (size_t)g->member[i] * TEXT;
        a[TEXT - 1] = b[TEXT - 1] = '\0';
        if (strcmp(a, b) == 0)
            continue;
        comm_fail(c,
                  "ranks do not make the same calls: call %llu of group %d is %s at rank %d, but "
                  "%s at rank %d",
                  (unsigned long long)first + 1, group, a, g->member[0], b, g->member[i]);
        break;
    }
    free(text);
    return false;
}

bool comm_compare(struct comm *c, const struct comm_planned *row, uint32_t n)
{
    size_t groups = (size_t)c->n_group, world = (size_t)c->world;
    uint64_t *mine = calloc(groups, sizeof(*mine));
    uint64_t *all = malloc(groups * world * sizeof(*all));
    uint64_t *one = malloc(world * sizeof(*one));
    bool ok = mine != NULL && all != NULL && one != NULL;
    if (!ok)
        comm_fail(c, "out of memory");
    for (size_t g = 0; ok && g < groups; g++)
        mine[g] = HASH_FIRST;
    for (uint32_t i = 0; ok && i < n; i++) {
        if (row[i].group >= 0 && row[i].group < c->n_group)
            mine[row[i].group] = hash_more(mine[row[i].group], row[i].what);
        else
            ok = comm_fail(c, "%s: there is no group %d", row[i].what, row[i].group);
    }
    ok = ok && comm_exchange(c, mine, groups * sizeof(*mine), all);
    for (int32_t g = 0; ok && g < c->n_group; g++) {
        for (size_t r = 0; r < world; r++)
            one[r] = all[r * groups + (size_t)g];
        ok = same_in(&c->group[g], one) || name_difference(c, row, n, g, one);
    }
    free(mine);
    free(all);
    free(one);
    return ok;
}

/* Small graphs: every way to put collectives into buckets, each with its fastest order within the
 * memory. What is left out is only what merge_bucket refuses, because it cannot be written. Where
 * there are a few more ops: two at a time, as long as that helps. */
#include <stdio.h>

#include "op/ops.h"
#include "rewrite/bucket/bucket.h"
#include "schedule/schedule.h"
#include "search/exact.h"
#include "study/tries.h"

enum { MOST_COLLECTIVES = EXACT_MOST_OPS / 2, MOST_WAYS = 600 };

struct small {
    struct search *s;
    const char *name[MOST_COLLECTIVES];
    uint32_t op[MOST_COLLECTIVES];
    uint32_t n, n_ways;
    int64_t least_ps; /* of all ways */
    bool proven;      /* of each way the fastest order is known */
};

static bool is_optimal(const struct stage *x)
{
    const struct pass_report *row = &x->report->pass.at[x->report->pass.len - 1];

    return row->note != NULL && strncmp(row->note, "optimal", 7) == 0;
}

/* ---- one way ---- */

static tuck_status try_way(struct small *t, const struct stage *x)
{
    struct stage fast = {.from = NULL};
    bool fits = false;

    if (++t->n_ways > MOST_WAYS) {
        t->proven = false;
        return TUCK_OK;
    }
    tuck_status st = try_improve(t->s, x, 1, &fast);
    if (st == TUCK_OK)
        st = try_offer(t->s, &fast, &fits);
    if (st == TUCK_OK && fits && fast.e->time.makespan < t->least_ps)
        t->least_ps = fast.e->time.makespan;
    /* If none fits, that is known too. */
    if (st == TUCK_OK && fits)
        t->proven = t->proven && is_optimal(&fast);
    stage_end(&fast);
    return st;
}

/* ---- all ways ---- */

static uint32_t place_of(const tuck_graph *g, const char *name)
{
    uint32_t place = 0;

    for_each_node (g, n) {
        if (strcmp(graph_str(g, node_at(g, n)->name), name) == 0)
            break;
        place += comm_communicates(g, n);
    }
    return place;
}

/* The collectives at these places among all of them become one. They may not be able to: then
 * to->g is NULL. */
static tuck_status try_merge(struct search *s, const struct stage *x, const uint32_t *place,
                             uint32_t n, struct stage *to)
{
    char text[16 + 12 * MOST_COLLECTIVES];
    int len = snprintf(text, sizeof(text), "nodes=");

    for (uint32_t i = 0; i < n; i++)
        len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%%c%u", i > 0 ? ":" : "",
                        place[i]);
    tuck_status st = try_next_with(s, x, &pass_merge_bucket, text, true, to);
    if (st != TUCK_EINVAL && st != TUCK_ELINT)
        return st;
    stage_end(to);
    return TUCK_OK;
}

static tuck_status try_rest(struct small *t, const struct stage *x, uint32_t placed);

/* The collectives in the set `members` become one. */
static tuck_status try_bucket(struct small *t, const struct stage *x, uint32_t placed,
                              uint32_t members)
{
    uint32_t place[MOST_COLLECTIVES], n = 0;
    struct stage merged = {.from = NULL};

    for (uint32_t i = 0; i < t->n; i++)
        if (members >> i & 1)
            place[n++] = place_of(x->g, t->name[i]);
    tuck_status st = try_merge(t->s, x, place, n, &merged);
    if (st == TUCK_OK && merged.g != NULL)
        st = try_rest(t, &merged, placed | members);
    stage_end(&merged);
    return st;
}

/* The first that has no place yet stays alone, or goes with any of the others like it. */
static tuck_status try_rest(struct small *t, const struct stage *x, uint32_t placed)
{
    uint32_t first = 0, others = 0;
    tuck_status st = TUCK_OK;

    while (first < t->n && (placed >> first & 1))
        first++;
    if (first == t->n)
        return try_way(t, x);
    for (uint32_t i = first + 1; i < t->n; i++)
        if (!(placed >> i & 1) && t->op[i] == t->op[first])
            others |= UINT32_C(1) << i;
    /* All subsets of `others`, the empty one first. */
    for (uint32_t with = 0; st == TUCK_OK; with = (with - others) & others) {
        uint32_t bucket = with | UINT32_C(1) << first;
        st = with == 0 ? try_rest(t, x, placed | bucket) : try_bucket(t, x, placed, bucket);
        if (with == others)
            break;
    }
    return st;
}

static bool is_mergeable(const tuck_graph *g, uint32_t n)
{
    return (op_at(node_op(g, n))->flags &
            (OP_F_ALL_GATHER | OP_F_REDUCE_SCATTER | OP_F_ALL_REDUCE)) != 0;
}

static bool find_collectives(struct small *t, const tuck_graph *g)
{
    for_each_node (g, n) {
        if (!is_mergeable(g, n))
            continue;
        if (t->n == MOST_COLLECTIVES)
            return false;
        t->op[t->n] = node_op(g, n);
        t->name[t->n++] = graph_str(g, node_at(g, n)->name);
    }
    return true;
}

static tuck_status try_every(struct search *s, const struct stage *from)
{
    struct small t = {.s = s, .least_ps = INT64_MAX, .proven = true};

    if (!find_collectives(&t, from->g))
        return TUCK_OK;
    tuck_status st = s->study->o->keep_order ? try_way(&t, from) : try_rest(&t, from, 0);
    if (st == TUCK_OK && t.proven && t.least_ps < s->small_ps)
        s->small_ps = t.least_ps;
    return st;
}

/* ---- two at a time ---- */

enum { MOST_PAIRED_OPS = 64, MOST_PAIRED = 10 };

struct pairing {
    uint32_t place[MOST_PAIRED], op[MOST_PAIRED], n;
};

static bool find_pairable(struct pairing *x, const tuck_graph *g)
{
    uint32_t place = 0;

    *x = (struct pairing){.n = 0};
    for_each_node (g, n) {
        if (is_mergeable(g, n) && x->n == MOST_PAIRED)
            return false;
        if (is_mergeable(g, n)) {
            x->op[x->n] = node_op(g, n);
            x->place[x->n++] = place;
        }
        place += comm_communicates(g, n);
    }
    return true;
}

/* The best time with these two as one; INT64_MAX if that cannot be. */
static tuck_status try_pair(struct search *s, const struct stage *from, const uint32_t place[2],
                            int64_t *ps)
{
    struct stage merged = {.from = NULL}, timed[2] = {{.from = NULL}};
    tuck_status st = try_merge(s, from, place, 2, &merged);

    *ps = INT64_MAX;
    if (st == TUCK_OK && merged.g != NULL) {
        st = try_timed(s, &merged, timed);
        *ps = s->timed_ps;
    }
    stage_end(&timed[1]);
    stage_end(&timed[0]);
    stage_end(&merged);
    return st;
}

static tuck_status find_best_pair(struct search *s, const struct stage *from, uint32_t best[2],
                                  int64_t *least)
{
    struct pairing x;
    tuck_status st = TUCK_OK;

    *least = INT64_MAX;
    if (!find_pairable(&x, from->g))
        return TUCK_OK;
    for (uint32_t i = 0; i < x.n; i++)
        for (uint32_t k = i + 1; k < x.n && st == TUCK_OK; k++) {
            const uint32_t place[2] = {x.place[i], x.place[k]};
            int64_t ps = INT64_MAX;
            if (x.op[i] == x.op[k])
                st = try_pair(s, from, place, &ps);
            if (ps < *least) {
                *least = ps;
                memcpy(best, place, sizeof(place));
            }
        }
    return st;
}

static tuck_status try_pairs(struct search *s, const struct stage *from)
{
    struct stage at[MOST_PAIRED] = {{.from = NULL}};
    int64_t was = INT64_MAX, least = 0;
    uint32_t n = 0, place[2];
    tuck_status st = TUCK_OK;

    while (st == TUCK_OK && n < MOST_PAIRED) {
        const struct stage *top = n > 0 ? &at[n - 1] : from;
        st = find_best_pair(s, top, place, &least);
        if (st != TUCK_OK || least >= was)
            break;
        was = least;
        st = try_merge(s, top, place, 2, &at[n++]);
    }
    while (n > 0)
        stage_end(&at[--n]);
    return st;
}

tuck_status try_small(struct search *s, const struct stage *from)
{
    uint32_t n = from->e->problem->n_op;

    if (s->small && n <= EXACT_MOST_OPS)
        return try_every(s, from);
    return n <= MOST_PAIRED_OPS && !s->study->o->keep_order ? try_pairs(s, from) : TUCK_OK;
}

#include "study/rank_programs.h"

#include <stdlib.h>

#include "graph/groups.h"
#include "graph/nested.h"
#include "op/ops.h"
#include "study/digest.h"

struct numbered { /* a rank by its number */
    int64_t number;
    uint32_t rank;
};

struct finding {
    struct rank_programs *out;
    const struct rank_graph *rank;
    struct program_digest *digest; /* by rank */
    struct numbered *by_number;
    bool numbered; /* all numbers are known */
};

/* ---- which are the same ---- */

static bool same_program(const struct finding *x, uint32_t a, uint32_t b)
{
    return !x->rank[a].alone && !x->rank[b].alone && x->digest[a].all == x->digest[b].all &&
           x->rank[a].sequence == x->rank[b].sequence;
}

static void find_difference(const struct finding *x, struct rank_program *p)
{
    const struct program_digest *is = &x->digest[p->first];
    const struct program_digest *there = &x->digest[x->out->program[0].first];
    uint32_t k = 0;

    while (k < is->n && k < there->n && is->hash[k] == there->hash[k])
        k++;
    p->node = k < is->n ? is->node[k] : 0;
    p->node_there = k < there->n ? there->node[k] : 0;
}

static void find_programs(struct finding *x)
{
    struct rank_programs *out = x->out;

    for (uint32_t r = 0; r < out->n_rank; r++) {
        uint32_t k = 0;
        while (k < out->n_program && !same_program(x, r, out->program[k].first))
            k++;
        if (k == out->n_program) {
            out->program[k] = (struct rank_program){.first = r, .group = ""};
            find_difference(x, &out->program[k]);
            out->n_program++;
        }
        out->program[k].n++;
        out->of[r] = k;
    }
}

/* ---- which meet ---- */

static int by_number(const void *a, const void *b)
{
    int64_t x = ((const struct numbered *)a)->number, y = ((const struct numbered *)b)->number;

    return x < y ? -1 : x > y;
}

static void number_ranks(struct finding *x)
{
    uint32_t n = x->out->n_rank;

    x->by_number = arena_array(&x->out->arena, struct numbered, n);
    x->numbered = true;
    for (uint32_t r = 0; r < n; r++) {
        x->by_number[r] = (struct numbered){x->rank[r].number, r};
        x->numbered &= x->rank[r].number >= 0;
    }
    qsort(x->by_number, n, sizeof(*x->by_number), by_number);
}

static void meet(struct finding *x, uint32_t a, uint32_t b, const char *group)
{
    for (int side = 0; side < 2; side++) {
        struct rank_program *p = &x->out->program[side == 0 ? a : b];
        if (p->meets)
            continue;
        p->meets = true;
        p->other = side == 0 ? b : a;
        p->group = group;
    }
}

/* All other programs: who is in the group is not known. */
static void meet_all(struct finding *x, uint32_t program, const char *group)
{
    for (uint32_t k = 0; k < x->out->n_program; k++)
        if (k != program)
            meet(x, program, k, group);
}

static void meet_members(struct finding *x, uint32_t program, const tuck_graph *g,
                         const struct fx_group *group)
{
    const char *name = graph_str(g, group->name);

    if (group->ranks == NULL || !x->numbered) {
        meet_all(x, program, name);
        return;
    }
    for (int64_t i = 0; i < group->size; i++) {
        struct numbered key = {.number = group->ranks[i]};
        const struct numbered *at = bsearch(&key, x->by_number, x->out->n_rank,
                                            sizeof(*x->by_number), by_number);
        if (at != NULL && x->out->of[at->rank] != program)
            meet(x, program, x->out->of[at->rank], name);
    }
}

/* Sends and receives keep their place in any case; their peers need not run the same. */
static void find_meetings(struct finding *x, uint32_t r)
{
    const tuck_graph *g = x->rank[r].g;
    const int32_t *group = groups_of_nodes(g, &x->out->arena);
    bool *used = arena_zeroed(&x->out->arena, (size_t)g->group.len + 1);
    uint32_t program = x->out->of[r];

    for_each_node (g, n) {
        uint8_t cls = op_at(acting_op(g, n))->cls;
        bool collective = cls == OP_COLLECTIVE || cls == OP_SYNC_COLLECTIVE;

        if (node_nests_comm(g, n, 0) || (collective && group[n] < 0))
            meet_all(x, program, "");
        else if (collective)
            used[group[n]] = true;
    }
    for (uint32_t k = 0; k < g->group.len; k++)
        if (used[k])
            meet_members(x, program, g, &g->group.at[k]);
}

/* ---- the whole ---- */

static void do_find(void *arg)
{
    struct finding *x = arg;
    struct rank_programs *out = x->out;

    out->of = arena_array(&out->arena, uint32_t, out->n_rank);
    out->program = arena_array(&out->arena, struct rank_program, out->n_rank);
    find_programs(x);
    if (out->n_program == 1)
        return;
    number_ranks(x);
    for (uint32_t r = 0; r < out->n_rank; r++)
        find_meetings(x, r);
}

static void do_alloc(void *arg)
{
    struct finding *x = arg;

    x->digest = arena_zeroed(&x->out->arena, x->out->n_rank * sizeof(*x->digest));
}

tuck_status rank_programs_find(const struct rank_graph *rank, uint32_t n, struct rank_programs *out)
{
    struct finding x = {.out = out, .rank = rank};
    uint32_t made = 0;

    *out = (struct rank_programs){.n_rank = n};
    mem_init(&out->mem, &rank[0].g->store->mem.alloc);
    arena_init(&out->arena, &out->mem);
    tuck_status st = mem_guard(&out->mem, do_alloc, &x) ? TUCK_OK : TUCK_ENOMEM;
    for (; made < n && st == TUCK_OK; made++)
        st = program_digest_of(rank[made].g, &x.digest[made]);
    if (st == TUCK_OK && !mem_guard(&out->mem, do_find, &x))
        st = TUCK_ENOMEM;
    while (made > 0)
        program_digest_end(&x.digest[--made]);
    return st;
}

void rank_programs_end(struct rank_programs *x)
{
    arena_destroy(&x->arena);
}

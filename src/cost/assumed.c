#include "cost/assumed.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/layout.h"
#include "base/json.h"
#include "graph/symbol_values.h"
#include "op/ops.h"

struct found {
    VEC(struct cost_assumed) at;
    VEC(const tuck_graph *) todo;
};

static bool is_there(const struct found *f, const char *name)
{
    for (uint32_t i = 0; i < f->at.len; i++)
        if (f->at.at[i].what == ASSUMED_RANKS && strcmp(f->at.at[i].name, name) == 0)
            return true;
    return false;
}

/* One more loop or cond. */
static void count(struct found *f, const tuck_graph *g, uint32_t n, enum cost_assumed_what what,
                  struct arena *a)
{
    for (uint32_t i = 0; i < f->at.len; i++)
        if (f->at.at[i].what == what) {
            f->at.at[i].n++;
            return;
        }
    vec_push_in(a, &f->at,
                ((struct cost_assumed){graph_str(g, node_at(g, n)->name), 1, (uint8_t)what}));
}

static void look_at_nodes(struct found *f, const tuck_graph *g, struct arena *a)
{
    for_each_node (g, n) {
        const struct fx_node *x = node_at(g, n);
        uint8_t moves = op_at(x->op)->moves;

        if (x->kind != TUCK_CALL_FUNCTION)
            continue;
        if (moves == OP_MOVES_trips)
            count(f, g, n, ASSUMED_TRIP, a);
        else if (moves == OP_MOVES_branches)
            count(f, g, n, ASSUMED_BRANCH, a);
    }
}

static void look_at(struct found *f, const tuck_graph *g, const tuck_cluster *c, struct arena *a)
{
    for (uint32_t i = 0; i < g->group.len; i++) {
        const char *name = graph_str(g, g->group.at[i].name);
        int64_t size = g->group.at[i].size;
        if (!shape_is_assumed(c, name, size) || is_there(f, name))
            continue;
        vec_push_in(
            a, &f->at,
            ((struct cost_assumed){name, shape_of_group(c, name, size, NULL).p, ASSUMED_RANKS}));
    }
    if (g->child.len > 0)
        look_at_nodes(f, g, a);
}

uint32_t cost_assumed_find(const tuck_graph *g, const tuck_cluster *c, struct arena *a,
                           struct cost_assumed **out)
{
    struct found f = {.at = {.len = 0}};

    vec_push_in(a, &f.todo, g);
    while (f.todo.len > 0) {
        const tuck_graph *x = f.todo.at[--f.todo.len];
        look_at(&f, x, c, a);
        for (uint32_t i = x->child.len; i > 0; i--)
            vec_push_in(a, &f.todo, x->child.at[i - 1]);
    }
    *out = f.at.at;
    return f.at.len;
}

static void json_row(struct json_out *j, const struct cost_assumed *x)
{
    switch ((enum cost_assumed_what)x->what) {
    case ASSUMED_RANKS:
        json_str(j, "group", x->name);
        json_int(j, "ranks", x->n);
        break;
    case ASSUMED_TRIP:
        json_str(j, "loop", x->name);
        json_int(j, "trips", 1);
        json_int(j, "loops", x->n);
        break;
    case ASSUMED_BRANCH:
        json_str(j, "cond", x->name);
        json_str(j, "branch", "dearest");
        json_int(j, "conds", x->n);
        break;
    }
}

void cost_assumed_json(struct json_out *j, const struct cost_assumed *at, uint32_t n, bool unbacked)
{
    json_open(j, "assumed", '[');
    for (uint32_t i = 0; i < n; i++) {
        json_open(j, NULL, '{');
        json_row(j, &at[i]);
        json_close(j, '}');
    }
    if (unbacked) {
        json_open(j, NULL, '{');
        json_int(j, "unbacked", ASSUME_UNBACKED);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void table_row(struct buf *b, const struct cost_assumed *x)
{
    char more[48] = "";

    if (x->what != ASSUMED_RANKS && x->n > 1)
        snprintf(more, sizeof(more), " and %" PRId64 " more", x->n - 1);
    switch ((enum cost_assumed_what)x->what) {
    case ASSUMED_RANKS:
        wrap_hang(b, INK_LIMIT, 2,
                  "assumed: group %s has %" PRId64 " ranks; give it with --group %s=SIZE", x->name,
                  x->n, x->name);
        break;
    case ASSUMED_TRIP:
        wrap_hang(b, INK_LIMIT, 2,
                  "assumed: one trip of the loop %s%s; the number of trips is not known", x->name,
                  more);
        break;
    case ASSUMED_BRANCH:
        wrap_hang(b, INK_LIMIT, 2, "assumed: the most expensive branch of %s%s", x->name, more);
        break;
    }
}

void cost_assumed_table(struct buf *b, const struct cost_assumed *at, uint32_t n, bool unbacked)
{
    for (uint32_t i = 0; i < n; i++)
        table_row(b, &at[i]);
    if (unbacked)
        wrap_hang(
            b, INK_LIMIT, 2,
            "assumed: %d for sizes that depend on data (u0, u1, …); give it with --assume u0=N",
            ASSUME_UNBACKED);
}

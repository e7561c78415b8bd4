#include "cost/assumed.h"

#include <inttypes.h>

#include "base/ink.h"
#include "base/json.h"
#include "fx/assume.h"

struct found {
    VEC(struct cost_assumed) at;
    VEC(const tuck_graph *) todo;
};

static bool is_there(const struct found *f, const char *name)
{
    for (uint32_t i = 0; i < f->at.len; i++)
        if (strcmp(f->at.at[i].group, name) == 0)
            return true;
    return false;
}

static void look_at(struct found *f, const tuck_graph *g, const tuck_cluster *c, struct arena *a)
{
    for (uint32_t i = 0; i < g->group.len; i++) {
        const char *name = graph_str(g, g->group.at[i].name);
        int64_t size = g->group.at[i].size;
        if (!shape_is_assumed(c, name, size) || is_there(f, name))
            continue;
        vec_push_in(a, &f->at,
                    ((struct cost_assumed){name, shape_of_group(c, name, size, NULL).p}));
    }
}

uint32_t cost_assumed_groups(const tuck_graph *g, const tuck_cluster *c, struct arena *a,
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

void cost_assumed_json(struct json_out *j, const struct cost_assumed *at, uint32_t n, bool unbacked)
{
    json_open(j, "assumed", '[');
    for (uint32_t i = 0; i < n; i++) {
        json_open(j, NULL, '{');
        json_str(j, "group", at[i].group);
        json_int(j, "ranks", at[i].ranks);
        json_close(j, '}');
    }
    if (unbacked) {
        json_open(j, NULL, '{');
        json_int(j, "unbacked", ASSUME_UNBACKED);
        json_close(j, '}');
    }
    json_close(j, ']');
}

void cost_assumed_table(struct buf *b, const struct cost_assumed *at, uint32_t n, bool unbacked)
{
    for (uint32_t i = 0; i < n; i++)
        ink_line(b, INK_LIMIT, "  assumed: group %s has %" PRId64 " ranks; --group %s=SIZE says it",
                 at[i].group, at[i].ranks, at[i].group);
    if (unbacked)
        ink_line(
            b, INK_LIMIT,
            "  assumed: %d for sizes that only data decides (u0, u1, …); --assume u0=N says it",
            ASSUME_UNBACKED);
}

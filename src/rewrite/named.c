#include "rewrite/named.h"

#include <stdlib.h>

/* "12": the node with 12 others before it. */
static uint32_t at_place(const tuck_graph *g, const uint32_t *order, const char *digits)
{
    char *end;
    unsigned long long place = strtoull(digits, &end, 10);

    if (digits[0] < '0' || digits[0] > '9' || *end != '\0' || place >= g->n_nodes)
        return 0;
    return order[place];
}

static uint32_t by_name(tuck_graph *g, const char *name)
{
    str_id id = str_find(&g->store->str, name, strlen(name));

    return id ? name_lookup(g, id) : 0;
}

uint32_t *named_nodes(struct pass_run *r, const struct pass_texts *names)
{
    tuck_graph *g = r->g;
    uint32_t *node = arena_array(&r->arena, uint32_t, names->n);
    uint32_t *order = arena_array(&r->arena, uint32_t, g->n_nodes), n = 0;

    for_each_node (g, k)
        order[n++] = k;
    names_need(g);
    for (uint32_t i = 0; i < names->n; i++)
        node[i] = names->at[i][0] == '%' ? at_place(g, order, names->at[i] + 1)
                                         : by_name(g, names->at[i]);
    return node;
}

uint32_t named_node(struct pass_run *r, const char *name)
{
    return *named_nodes(r, &(struct pass_texts){&name, 1});
}

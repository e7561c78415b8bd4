#include "rewrite/named.h"

#include <stdlib.h>

#include "rewrite/comm_order.h"

struct places {
    uint32_t *node, *comm; /* all nodes, those that communicate; in the order of the graph */
    uint32_t n_nodes, n_comm;
};

static struct places find_places(struct pass_run *r)
{
    const tuck_graph *g = r->g;
    struct places p = {.node = arena_array(&r->arena, uint32_t, g->n_nodes),
                       .comm = arena_array(&r->arena, uint32_t, g->n_nodes)};

    for_each_node (g, k) {
        p.node[p.n_nodes++] = k;
        if (comm_communicates(g, k))
            p.comm[p.n_comm++] = k;
    }
    return p;
}

/* "12": the node with 12 others before it; "c3": the collective with 3 others before it. */
static uint32_t at_place(const struct places *p, const char *text)
{
    bool comm = text[0] == 'c';
    const char *digits = text + comm;
    char *end;
    unsigned long long place = strtoull(digits, &end, 10);

    if (digits[0] < '0' || digits[0] > '9' || *end != '\0' ||
        place >= (comm ? p->n_comm : p->n_nodes))
        return 0;
    return (comm ? p->comm : p->node)[place];
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
    struct places places = find_places(r);

    names_need(g);
    for (uint32_t i = 0; i < names->n; i++)
        node[i] = names->at[i][0] == '%' ? at_place(&places, names->at[i] + 1)
                                         : by_name(g, names->at[i]);
    return node;
}

uint32_t named_node(struct pass_run *r, const char *name)
{
    return *named_nodes(r, &(struct pass_texts){&name, 1});
}

/* Which parameter a collective is about. AOTAutograd prints descriptors: an input is a
 * ParamAOTInput(target='lin.weight'), a result a GradAOTOutput(grad_of=ParamAOTInput(…)). */
#include "lower/lower.h"

enum { STEPS = 12 }; /* of casts, views and waits between the two */

void lower_describe(struct lower *l)
{
    const tuck_graph *g = l->g;
    str_id *by_node = NULL;

    for (uint32_t i = 0; i < g->param.len; i++) {
        const struct fx_param *q = &g->param.at[i];
        if (q->node == 0 || q->descriptor == 0)
            continue;
        if (by_node == NULL)
            by_node = arena_zeroed(&l->scratch, g->node.len * sizeof(*by_node));
        by_node[q->node] = q->descriptor;
    }
    l->described = by_node;
}

/* lin.weight of "ParamAOTInput(target='lin.weight')"; 0 if it is not about a parameter. */
static str_id target_in(struct lower *l, str_id descriptor)
{
    static const char key[] = "target='";
    const char *s = descriptor != 0 ? graph_str(l->g, descriptor) : "";
    const char *at = strstr(s, key);

    if (at == NULL)
        return 0;
    at += sizeof(key) - 1;
    return str_intern(&l->p->str, at, strcspn(at, "'"));
}

/* The first operand that is a value. */
static uint32_t first_value(const struct fx_node *x)
{
    for (uint32_t i = 0; i < x->n_vals; i++)
        if (x->vals[i].kind == TUCK_V_NODE)
            return x->vals[i].a;
    return 0;
}

static str_id from_input(struct lower *l, uint32_t node)
{
    uint32_t n = first_value(node_at(l->g, node));

    for (int i = 0; i < STEPS && n != 0 && l->described != NULL; i++) {
        if (node_at(l->g, n)->kind == TUCK_PLACEHOLDER)
            return target_in(l, l->described[n]);
        n = first_value(node_at(l->g, n));
    }
    return 0;
}

/* The descriptor of the returned item that the collective ends in. */
static str_id from_output(struct lower *l, uint32_t node)
{
    const tuck_graph *g = l->g;
    uint32_t n = node;

    for (int i = 0; i < STEPS && g->out_descriptor.len > 0; i++) {
        uint32_t u = node_at(g, n)->use_first;
        if (u == 0 || g->use.at[u].next != 0)
            return 0;
        if (g->use.at[u].user == g->output) {
            uint32_t at = g->use.at[u].slot - 1; /* after the container itself */
            return at < g->out_descriptor.len ? target_in(l, g->out_descriptor.at[at]) : 0;
        }
        n = g->use.at[u].user;
    }
    return 0;
}

str_id lower_parameter(struct lower *l, uint32_t node)
{
    str_id found = from_output(l, node);

    return found != 0 ? found : from_input(l, node);
}

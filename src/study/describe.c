#include "study/describe.h"

#include <string.h>

#include "graph/groups.h"
#include "infer/infer.h"

static int64_t bytes_of(struct assume *a, const tuck_graph *g, uint32_t n)
{
    int64_t b;

    return assume_bytes(a, node_type(g, n), &b) ? b : -1;
}

/* The bytes of an operand: of a tensor, or of all tensors of a list. */
static int64_t operand_bytes(struct assume *a, const tuck_graph *g, const tuck_value *v)
{
    int64_t sum = 0;
    const tuck_value *end = value_next(v);

    for (; v < end; v++)
        if (v->kind == TUCK_V_NODE) {
            int64_t b = bytes_of(a, g, v->a);
            if (b < 0 || !size_add(sum, b, &sum))
                return -1;
        }
    return sum;
}

int64_t describe_message_bytes(struct assume *a, const tuck_graph *g, uint32_t n)
{
    const struct fx_node *x = node_at(g, n);
    const struct type *t = type_at(&g->store->type, node_type(g, n));
    const tuck_value *first = call_operand(g, x, 0);
    int64_t in = first != NULL ? operand_bytes(a, g, first) : -1, out = 0, b;

    if (t->kind == TYPE_LIST) {
        for (uint32_t i = 0; i < t->n && out >= 0; i++)
            if (!assume_bytes(a, t->item[i], &b) || !size_add(out, b, &out))
                out = -1;
    } else {
        out = bytes_of(a, g, n);
    }
    return in > out ? in : out;
}

static void meet_collective(struct mem *m, struct description *f, const tuck_graph *g, uint32_t n)
{
    int k = group_of(g, n);
    const char *group = k >= 0 ? graph_str(g, g->group.at[k].name) : "?";
    struct described_collectives *r = NULL;

    for (uint32_t i = 0; i < f->row.len; i++)
        if (f->row.at[i].op == g->node.at[n].op && strcmp(f->row.at[i].group, group) == 0)
            r = &f->row.at[i];
    if (r == NULL) {
        vec_push(m, &f->row,
                 ((struct described_collectives){.op = g->node.at[n].op,
                                                 .group = group,
                                                 .size = k >= 0 ? g->group.at[k].size : 0}));
        r = &f->row.at[f->row.len - 1];
    }
    int64_t b = describe_message_bytes(&f->assume, g, n);
    r->count++;
    if (b >= 0) {
        r->sized++;
        r->bytes += b;
    }
}

static bool starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

static const char *role_of(const char *descriptor)
{
    if (starts(descriptor, "ParamAOTInput") || starts(descriptor, "PARAMETER"))
        return "parameter";
    if (starts(descriptor, "BufferAOTInput") || starts(descriptor, "BUFFER"))
        return "buffer";
    if (starts(descriptor, "TangentAOTInput"))
        return "tangent";
    return *descriptor ? "input" : "";
}

static const char *descriptor_of(const tuck_graph *g, uint32_t n)
{
    for (uint32_t i = 0; i < g->note.len; i++)
        if (g->note.at[i].node == n)
            return graph_str(g, g->note.at[i].descriptor);
    for (uint32_t i = 0; i < g->param.len; i++)
        if (g->param.at[i].node == n)
            return graph_str(g, g->param.at[i].descriptor);
    return "";
}

const char *describe_role(const tuck_graph *g, uint32_t n)
{
    return node_at(g, n)->kind == TUCK_PLACEHOLDER ? role_of(descriptor_of(g, n)) : "";
}

static void add_nodes(struct mem *m, struct description *f, const tuck_graph *g)
{
    f->nodes += g->n_nodes;
    for_each_node (g, n) {
        const struct fx_node *x = node_at(g, n);
        uint8_t cls = op_at(x->op)->cls;

        if (x->kind == TUCK_OPAQUE)
            f->opaque++;
        if (x->kind == TUCK_CALL_FUNCTION)
            f->kind[cls]++;
        if (x->kind == TUCK_CALL_FUNCTION &&
            (cls == OP_COLLECTIVE || cls == OP_SYNC_COLLECTIVE || cls == OP_P2P))
            meet_collective(m, f, g, n);
    }
}

/* Nested graphs in the order of the text, by a stack of those still to visit. */
static void add_nested(struct mem *m, struct arena *scratch, struct description *f)
{
    VEC(const tuck_graph *) todo = {0};
    const tuck_graph *g = f->g;

    for (;;) {
        for (uint32_t k = g->child.len; k > 0; k--)
            vec_push_in(scratch, &todo, (const tuck_graph *)g->child.at[k - 1]);
        if (todo.len == 0)
            return;
        g = todo.at[--todo.len];
        vec_push(m, &f->nested, g);
    }
}

/* The order in which the table of collectives visits graphs: children from last to first. */
static void add_all_nodes(struct mem *m, struct arena *scratch, struct description *f)
{
    VEC(const tuck_graph *) todo = {0};

    vec_push_in(scratch, &todo, f->g);
    while (todo.len > 0) {
        const tuck_graph *g = todo.at[--todo.len];
        add_nodes(m, f, g);
        for (uint32_t i = 0; i < g->child.len; i++)
            vec_push_in(scratch, &todo, (const tuck_graph *)g->child.at[i]);
    }
}

static void count_role(struct description *f, const char *role)
{
    f->parameters += strcmp(role, "parameter") == 0;
    f->buffers += strcmp(role, "buffer") == 0;
}

static void add_inputs(struct description *f)
{
    const tuck_graph *g = f->g;

    for (uint32_t i = 0; i < g->param.len; i++)
        count_role(f, role_of(graph_str(g, g->param.at[i].descriptor)));
    for (uint32_t i = 0; i < g->note.len; i++)
        count_role(f, role_of(graph_str(g, g->note.at[i].descriptor)));
    for_each_node (g, n) {
        if (node_at(g, n)->kind != TUCK_PLACEHOLDER)
            continue;
        f->inputs++;
        int64_t b = bytes_of(&f->assume, g, n);
        if (b >= 0)
            f->input_bytes += b;
        else
            f->inputs_unsized++;
    }
}

void describe_graph(struct mem *m, struct arena *scratch, struct description *f)
{
    const tuck_graph *g = f->g;
    struct storages s;

    add_all_nodes(m, scratch, f);
    add_nested(m, scratch, f);
    add_inputs(f);
    if (g->output != 0) {
        const tuck_value *v = node_at(g, g->output)->vals;
        f->outputs = value_is_container(v) ? v->a : 1;
        f->output_bytes = operand_bytes(&f->assume, g, v);
    }
    storages_build(g, scratch, &s);
    storage_peak(g, &s, scratch, assume_size, &f->assume, &f->peak);
}

void describe_free(struct mem *m, struct description *f)
{
    vec_free(m, &f->row);
    vec_free(m, &f->nested);
}

/* The step of a rank as one graph: its parts one after the other, where what a forward saved is
 * used directly by its backward. Between two parts is a node that nothing moves across, because
 * they are compiled one by one. */
#include <string.h>

#include "graph/groups.h"
#include "job/job.h"
#include "op/ops.h"

#define BETWEEN "torch.ops.tuck.next_graph.default"

struct join {
    const struct job *j;
    const struct job_rank *r;
    tuck_graph *g;
    struct mem *mem;
    struct arena arena;
    uint32_t **id;         /* by part of the rank, by node there: the node in g */
    uint32_t body;         /* the first node of g that is not an input, 0 if none yet */
    bool **kept;           /* by part, by node: a backward gets it, so it is not returned */
    struct value_list ret; /* what the step returns */
    struct buf name;
};

/* A name like that of the part; if it is taken, one that says which part it is of. */
static str_id own_name(struct join *x, const struct piece *piece, str_id name)
{
    tuck_graph *g = x->g;
    const struct str *s = str_at(&g->store->str, name);

    if (name_flags(g, name) == 0)
        return name;
    x->name.len = 0;
    buf_add(&x->name, s->at, s->len);
    buf_str(&x->name, piece->role == ROLE_BACKWARD ? "_bw" : "_fw");
    return name_create(g, x->name.at, x->name.len);
}

static uint32_t add_node(struct join *x, const struct piece *piece, const struct fx_node *from,
                         uint32_t before)
{
    struct fx_node init = *from;

    init.vals = NULL;
    init.n_vals = init.n_args = init.n_kwargs = 0;
    init.use_first = init.use_last = init.n_uses = 0;
    init.lead = 0;
    init.name = own_name(x, piece, from->name);
    uint32_t n = graph_add_node(x->g, before, init);
    name_enter(x->g, init.name, n);
    return n;
}

static const struct fx_param *param_of(const tuck_graph *g, uint32_t node)
{
    for (uint32_t i = 0; i < g->param.len; i++)
        if (g->param.at[i].node == node)
            return &g->param.at[i];
    return NULL;
}

static void add_input(struct join *x, uint32_t part, uint32_t n, const struct fx_param *like)
{
    const struct job_part *p = &x->j->part.at[x->r->first + part];
    const struct piece *piece = &x->j->pieces.all.at[p->piece];
    uint32_t id = add_node(x, piece, node_at(p->graph, n), x->body);
    struct fx_node *node = node_at(x->g, id);
    struct fx_param q = {.text = node->name, .node = id, .ann = node->ann};

    node->target = node->name;
    if (like != NULL) {
        q.descriptor = like->descriptor;
        q.line = like->line;
        q.column = like->column;
    }
    vec_push(x->mem, &x->g->param, q);
    x->id[part][n] = id;
}

static void add_inputs(struct join *x, uint32_t part)
{
    const struct job_part *p = &x->j->part.at[x->r->first + part];
    const tuck_graph *g = p->graph;
    uint32_t at = 0; /* parameters are in the order of the inputs, almost always */

    for_each_node (g, n) {
        if (node_at(g, n)->kind != TUCK_PLACEHOLDER)
            continue;
        const struct fx_param *like = at < g->param.len && g->param.at[at].node == n
                                          ? &g->param.at[at]
                                          : param_of(g, n);
        at++;
        struct tie t = p->tie != NULL ? p->tie[n] : (struct tie){NO_PART, 0};
        if (t.part == NO_PART) {
            add_input(x, part, n, like);
        } else {
            uint32_t from = job_tied(x->j, t);
            x->id[part][n] = x->id[t.part - x->r->first][from];
            /* What is no tensor stays an input that is only handed through. */
            x->kept[t.part - x->r->first][from] = node_at(g, n)->ann != 0;
        }
    }
}

/* Nested graphs, with names of their own. */
static void add_children(struct join *x, const tuck_graph *from)
{
    for (uint32_t i = 0; i < from->child.len; i++) {
        tuck_graph *copy = NULL;

        vec_reserve(x->mem, &x->g->child, 1);
        if (tuck_graph_copy(from->child.at[i], &copy) != TUCK_OK)
            mem_exhausted(x->mem);
        copy->parent = x->g;
        x->g->child.at[x->g->child.len++] = copy;
        if (graph_child_named(x->g, copy->name) != NULL) {
            x->name.len = 0;
            buf_str(&x->name, graph_str(x->g, copy->name));
            buf_printf(&x->name, "_part%u", x->g->child.len);
            copy->name = str_intern(&x->g->store->str, x->name.at, x->name.len);
        }
        graph_enter_child(x->g, x->g->child.len - 1);
    }
}

static str_id child_name(const struct join *x, const tuck_graph *from, uint32_t first, str_id name)
{
    for (uint32_t i = 0; i < from->child.len; i++)
        if (from->child.at[i]->name == name)
            return x->g->child.at[first + i]->name;
    return name;
}

static void set_values(struct join *x, uint32_t part, const struct fx_node *from, uint32_t to)
{
    tuck_value *v = arena_array(&x->g->arena, tuck_value, from->n_vals);

    vec_reserve(x->mem, &x->g->use, from->n_vals);
    for (uint32_t i = 0; i < from->n_vals; i++) {
        v[i] = from->vals[i];
        if (v[i].kind == TUCK_V_NODE)
            v[i].a = x->id[part][v[i].a];
    }
    graph_take_vals(x->g, to, v, from->n_vals, from->n_args, from->n_kwargs);
}

static void add_body(struct join *x, uint32_t part)
{
    const struct job_part *p = &x->j->part.at[x->r->first + part];
    const struct piece *piece = &x->j->pieces.all.at[p->piece];
    const tuck_graph *g = p->graph;
    uint32_t first = x->g->child.len;

    add_children(x, g);
    for_each_node (g, n) {
        const struct fx_node *from = node_at(g, n);
        if (from->kind == TUCK_PLACEHOLDER || from->kind == TUCK_OUTPUT)
            continue;
        uint32_t id = add_node(x, piece, from, 0);
        if (x->body == 0)
            x->body = id;
        x->id[part][n] = id;
        if (from->kind == TUCK_GET_ATTR)
            node_at(x->g, id)->target = child_name(x, g, first, from->target);
        set_values(x, part, from, id);
    }
}

static void add_between(struct join *x, uint32_t part)
{
    struct fx_store *s = x->g->store;
    const struct job_part *p = &x->j->part.at[x->r->first + part];
    const struct piece *piece = &x->j->pieces.all.at[p->piece];
    struct fx_node init = {.kind = TUCK_CALL_FUNCTION,
                           .target = str_intern(&s->str, BETWEEN, strlen(BETWEEN)),
                           .op = (uint16_t)op_find(BETWEEN, strlen(BETWEEN))};
    const char *name = piece->role == ROLE_BACKWARD ? "backward" : "next_graph";

    init.name = name_create(x->g, name, strlen(name));
    uint32_t n = graph_add_node(x->g, 0, init);
    name_enter(x->g, init.name, n);
    graph_take_vals(x->g, n, NULL, 0, 0, 0);
    if (x->body == 0)
        x->body = n;
}

/* Everything that a part returns and no backward gets, once each. */
static void add_output(struct join *x)
{
    bool *done = arena_zeroed(&x->arena, x->g->node.len * sizeof(*done));
    struct fx_node init = {.kind = TUCK_OUTPUT, .name = 0};

    values_open(x->mem, &x->ret, TUCK_V_TUPLE);
    for (uint32_t i = 0; i < x->r->n; i++) {
        const tuck_graph *g = x->j->part.at[x->r->first + i].graph;
        const struct fx_node *out = node_at(g, g->output);
        for (uint32_t k = 0; g->output != 0 && k < out->n_vals; k++) {
            if (out->vals[k].kind != TUCK_V_NODE || x->kept[i][out->vals[k].a])
                continue;
            uint32_t n = x->id[i][out->vals[k].a];
            if (n == 0 || done[n])
                continue;
            done[n] = true;
            values_push(x->mem, &x->ret, (tuck_value){.kind = TUCK_V_NODE, .a = n});
            vec_push(x->mem, &x->g->out_descriptor,
                     k - 1 < g->out_descriptor.len ? g->out_descriptor.at[k - 1]
                                                   : x->g->store->word.empty);
        }
    }
    values_close(&x->ret);
    init.name = name_create(x->g, "output", 6);
    uint32_t n = graph_add_node(x->g, 0, init);
    name_enter(x->g, init.name, n);
    graph_set_vals(x->g, n, x->ret.v.at, x->ret.v.len, 1, 0);
    x->g->output = n;
}

static void do_join(void *arg)
{
    struct join *x = arg;
    const struct job_part *first = &x->j->part.at[x->r->first];
    struct fx_store *s = first->graph->store;

    x->g = graph_new(s);
    x->g->style = first->graph->style;
    x->g->style.form = FX_CLASS;
    x->g->style.prologue = FX_PLAIN;
    x->g->style.ret = FX_RETURN_PLAIN;
    x->g->style.head = 0;
    x->g->name = str_intern(&s->str, "step", 4);
    x->g->gap = s->word.empty;
    x->g->source_name = first->graph->source_name;
    x->g->first_line = first->graph->first_line;
    x->g->rank = x->r->number;
    x->g->fresh = x->g->edited = true;
    names_need(x->g);
    x->id = arena_array(&x->arena, uint32_t *, x->r->n);
    x->kept = arena_array(&x->arena, bool *, x->r->n);
    for (uint32_t i = 0; i < x->r->n; i++) {
        const tuck_graph *g = x->j->part.at[x->r->first + i].graph;
        x->id[i] = arena_zeroed(&x->arena, g->node.len * sizeof(*x->id[i]));
        x->kept[i] = arena_zeroed(&x->arena, g->node.len * sizeof(*x->kept[i]));
    }
    for (uint32_t i = 0; i < x->r->n; i++) {
        const tuck_graph *g = x->j->part.at[x->r->first + i].graph;
        add_inputs(x, i);
        if (i > 0)
            add_between(x, i);
        add_body(x, i);
        for (uint32_t k = 0; k < g->hint.len; k++)
            vec_push(x->mem, &x->g->hint, g->hint.at[k]);
    }
    add_output(x);
}

tuck_graph *job_join(const struct job *j, const struct job_rank *r)
{
    struct mem *m = &j->part.at[r->first].graph->store->mem;
    struct join x = {.j = j, .r = r, .mem = m};

    arena_init(&x.arena, m);
    buf_init(&x.name, m);
    bool ok = mem_guard(m, do_join, &x);
    arena_destroy(&x.arena);
    buf_destroy(&x.name);
    values_free(m, &x.ret);
    if (ok)
        return x.g;
    graph_free(x.g);
    return NULL;
}

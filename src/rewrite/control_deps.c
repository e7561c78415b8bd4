/* insert_control_deps: fixes the order of collectives in a form that PyTorch keeps.
 *
 * Inductor reorders a graph to save memory, and may move the start or the wait of a collective.
 * A node that is called through higher_order.control_deps stays after the nodes it names:
 *
 *   all_gather = …                      mm = control_deps((all_gather,), subgraph_mm, x, w)
 *   mm = aten.mm(x, w)             →    wait = control_deps((mm,), subgraph_wait, all_gather)
 *   wait = wait_tensor(all_gather)
 *
 * So the first kernel after the start of a collective is tied to that start, and its wait to the
 * last kernel before it: what is between them stays there.
 */
#include "rewrite/control_deps.h"

#include <stdio.h>

#include "op/ops.h"
#include "graph/storage.h"
#include "rewrite/build.h"
#include "rewrite/comm_order.h"

struct tie {
    uint32_t node, behind; /* `node` must stay after `behind` */
};

struct control {
    struct pass_run *r;
    VEC(struct tie) tie; /* in the order of their nodes */
    uint32_t *of;        /* by node: the last node that mentioned it */
    uint32_t *input;     /* by node: which input of that node it is */
};

/* A kernel that can be moved into a graph of its own: known, without side effects, and all its
 * operands are values. */
static bool is_kernel(const tuck_graph *g, uint32_t n)
{
    const struct fx_node *x = node_at(g, n);
    const struct op_row *row = op_at(x->op);
    bool uses = false;

    if (x->kind != TUCK_CALL_FUNCTION || x->op == 0 || x->syntax != FX_CALL ||
        row->flags & (OP_F_EFFECT | OP_F_MUTATES | OP_F_RANDOM | OP_F_METADATA | OP_F_HOST))
        return false;
    switch ((enum op_class)row->cls) {
    case OP_VIEW:
    case OP_GETITEM:
    case OP_SCALAR:
    case OP_HOP:
    case OP_GROUP: return false;
    default: break;
    }
    for (uint32_t i = 0; i < x->n_vals; i++)
        uses |= x->vals[i].kind == TUCK_V_NODE;
    return uses;
}

/* The collective that a wait ends, if it is a plain one. */
static uint32_t started_by(const tuck_graph *g, uint32_t wait)
{
    uint32_t start = op_at(node_op(g, wait))->cls == OP_WAIT ? call_node(g, node_at(g, wait), 0)
                                                             : 0;

    return start != 0 && comm_starts(g, start) ? start : 0;
}

/* One walk with the collectives that have no kernel after them yet, and the last kernel. */
static void find_ties(struct control *c)
{
    const tuck_graph *g = c->r->g;
    struct arena *a = &c->r->arena;
    VEC(uint32_t) open = {NULL, 0, 0};
    uint32_t kernel = 0;

    for_each_node (g, n) {
        uint32_t start = started_by(g, n);

        if (comm_starts(g, n)) {
            vec_push_in(a, &open, n);
        } else if (start != 0) {
            if (kernel != 0 && node_at(g, kernel)->pos > node_at(g, start)->pos)
                vec_push_in(a, &c->tie, ((struct tie){n, kernel}));
        } else if (is_kernel(g, n)) {
            for (uint32_t i = 0; i < open.len; i++)
                vec_push_in(a, &c->tie, ((struct tie){n, open.at[i]}));
            open.len = 0;
            kernel = n;
        }
    }
}

/* ---- rewriting ---- */

/* The distinct nodes that n mentions, in order. */
static uint32_t operands_of(struct control *c, uint32_t n, uint32_t *out)
{
    const struct fx_node *x = node_at(c->r->g, n);
    uint32_t count = 0;

    for (uint32_t i = 0; i < x->n_vals; i++) {
        uint32_t v = x->vals[i].a;
        if (x->vals[i].kind != TUCK_V_NODE || c->of[v] == n)
            continue;
        c->of[v] = n;
        c->input[v] = count;
        out[count++] = v;
    }
    return count;
}

static void must(struct pass_run *r, tuck_status st)
{
    if (st == TUCK_ENOMEM)
        mem_exhausted(r->mem);
    assert(st == TUCK_OK);
    (void)st;
}

/* The text of an annotation without its quotes, NULL if there is none. */
static const char *annotation(struct control *c, uint32_t n)
{
    const char *s = tuck_node_annotation(c->r->g, (tuck_node){n});

    return *s ? s : NULL;
}

/* A class containing only this call; its operands become inputs. */
static void make_child(struct control *c, uint32_t n, const uint32_t *operand, uint32_t n_operand,
                       str_id name)
{
    struct pass_run *r = c->r;
    tuck_graph *g = r->g;
    const struct fx_node *x = node_at(g, n);
    tuck_value *vals = arena_array(&r->arena, tuck_value, x->n_vals);
    uint32_t n_vals = x->n_vals, n_args = x->n_args, n_kwargs = x->n_kwargs;
    tuck_node made = {0};

    uint32_t *input = arena_array(&r->arena, uint32_t, n_operand);

    memcpy(vals, x->vals, n_vals * sizeof(*vals));
    vec_reserve(r->mem, &g->child, 1);
    tuck_graph *child = graph_new(g->store);
    g->child.at[g->child.len++] = child;
    child->name = name;
    child->style = g->style;
    child->style.form = FX_CLASS;
    child->style.expanded = child->style.ret_expanded = false;
    child->style.prologue = FX_PLAIN;
    child->style.ret = FX_RETURN_PLAIN;
    child->fresh = child->edited = true;
    graph_enter_child(g, g->child.len - 1);
    for (uint32_t i = 0; i < n_operand; i++) {
        char text[24];
        snprintf(text, sizeof(text), "arg_%u", i);
        must(r, tuck_graph_add(child, tuck_at_end(), TUCK_PLACEHOLDER, text, NULL, text,
                               annotation(c, operand[i]), &made));
        input[i] = made.id;
    }
    for (uint32_t k = 0; k < n_vals; k++)
        if (vals[k].kind == TUCK_V_NODE)
            vals[k].a = input[c->input[vals[k].a]];
    must(r,
         tuck_graph_add(child, tuck_at_end(), TUCK_CALL_FUNCTION,
                        graph_str(g, node_at(g, n)->target), NULL, NULL, annotation(c, n), &made));
    graph_set_vals(child, made.id, vals, n_vals, n_args, n_kwargs);
    tuck_args *args = tuck_args_new(child);
    if (args == NULL)
        mem_exhausted(r->mem);
    tuck_args_node(args, made);
    tuck_status st = tuck_graph_add(child, tuck_at_end(), TUCK_OUTPUT, NULL, args, NULL, NULL,
                                    NULL);
    tuck_args_free(args);
    must(r, st);
}

static void rewrite(struct control *c, uint32_t n, const struct tie *tie, uint32_t n_tie)
{
    struct pass_run *r = c->r;
    tuck_graph *g = r->g;
    uint32_t *operand = arena_array(&r->arena, uint32_t, node_at(g, n)->n_vals);
    uint32_t n_operand = operands_of(c, n, operand);
    char wish[256];
    tuck_node attr = {0};

    snprintf(wish, sizeof(wish), "subgraph_%s", graph_str(g, node_at(g, n)->name));
    names_need(g);
    str_id name = name_create(g, wish, strlen(wish));
    const char *text = graph_str(g, name);
    make_child(c, n, operand, n_operand, name);
    must(r, tuck_graph_add(g, tuck_before((tuck_node){n}), TUCK_GET_ATTR, text, NULL, text, NULL,
                           &attr));
    node_at(g, attr.id)->comment = node_at(g, n)->comment;
    tuck_args_clear(r->args);
    tuck_args_open(r->args, TUCK_V_TUPLE);
    for (uint32_t i = 0; i < n_tie; i++)
        tuck_args_node(r->args, (tuck_node){tie[i].behind});
    tuck_args_close(r->args);
    tuck_args_node(r->args, attr);
    for (uint32_t i = 0; i < n_operand; i++)
        tuck_args_node(r->args, (tuck_node){operand[i]});
    must(r, tuck_node_set_args(g, (tuck_node){n}, r->args));
    must(r, tuck_node_set_target(g, (tuck_node){n}, "torch.ops.higher_order.control_deps"));
    r->changed = true;
}

static tuck_status run(struct pass_run *r, const void *options)
{
    struct control c = {.r = r};
    int64_t wrapped = 0;

    (void)options;
    c.of = arena_zeroed(&r->arena, r->g->node.len * sizeof(*c.of));
    c.input = arena_zeroed(&r->arena, r->g->node.len * sizeof(*c.input));
    find_ties(&c);
    for (uint32_t i = 0, k; i < c.tie.len; i = k, wrapped++) {
        for (k = i + 1; k < c.tie.len && c.tie.at[k].node == c.tie.at[i].node; k++)
            ;
        rewrite(&c, c.tie.at[i].node, &c.tie.at[i], k - i);
    }
    report_count(r->report, "nodes kept in place", wrapped);
    return TUCK_OK;
}

const struct pass pass_insert_control_deps = {
    .name = "insert_control_deps",
    .help = "keep kernels and waits in place, so that PyTorch keeps the order of collectives",
    .needs = PASS_PLACES,
    .keeps = PASS_TYPES,
    .on_graph = run,
};

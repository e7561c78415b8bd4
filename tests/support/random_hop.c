/* Calls inside other calls: with_effects, control_deps, invoke_subgraph, cond. */
#include "support/random_gen.h"

#include <stdio.h>

/* What a wrapper calls, on one operand. */
struct act {
    const char *op;
    const char *more; /* operands after the first */
    bool writes, flies;
    int factor; /* the result has this many times as many rows */
};

static struct act any_act(struct gen *g, int v, int group, char *room, size_t size)
{
    const char *name = g->x->group[group].name;
    bool writable = gen_writable(g, v);

    switch (gen_below(g, 6)) {
    case 0: return (struct act){"aten.relu.default", "", .factor = 1};
    case 1:
        if (writable)
            return (struct act){"aten.mul_.Tensor", ", 5", .writes = true, .factor = 1};
        return (struct act){"aten.mul.Tensor", ", 5", .factor = 1};
    case 2:
        snprintf(room, size, ", %d, '%s'", gen_group_size(g, group), name);
        return (struct act){"_c10d_functional.all_gather_into_tensor.default", room, .flies = true,
                            .factor = gen_group_size(g, group)};
    case 3:
        if (writable) {
            snprintf(room, size, ", '%s', '%s'", g->reduce, name);
            return (struct act){"_c10d_functional.all_reduce_.default", room, true, true, 1};
        }
        return (struct act){"aten.clone.default", "", .factor = 1};
    default:
        snprintf(room, size, ", '%s', '%s'", g->reduce, name);
        return (struct act){"_c10d_functional.all_reduce.default", room, .flies = true,
                            .factor = 1};
    }
}

static struct val result_of(struct gen *g, int v, const struct act *a)
{
    struct val f = a->writes ? gen_view_of(g, v) : gen_fresh(g, v);

    if (!a->writes) {
        f.size[0].k *= a->factor;
        gen_pack(&f);
    }
    return f;
}

/* with_effects(token, operator, …): a token and the result. */
void gen_effect(struct gen *g)
{
    int v = gen_pick(g, gen_readable_packed), list = g->n_name++;
    char room[64];

    if (v < 0 || gen_full(g))
        return;
    if (g->token < 0) {
        struct val none = {.n_dim = 1};
        gen_pack(&none);
        g->token = gen_add_input(g, none, "token");
        g->val[g->token].taken = true;
    }
    struct act a = any_act(g, v, gen_any_group(g), room, sizeof(room));
    gen_put(&g->body,
            "        effect_%d = torch.ops.higher_order.with_effects(%s, torch.ops.%s, %s%s)\n",
            list, g->val[g->token].name, a.op, g->val[v].name, a.more);
    struct val token = g->val[g->token];
    g->token = gen_item(g, token, "effect", list, 0);
    int out = gen_item(g, result_of(g, v, &a), "effect", list, 1);
    if (a.flies)
        gen_fly(g, out, v);
}

static void begin_graph(struct gen *g, const char *stem, int number)
{
    gen_put(&g->tail, "\n    class %s_%d(torch.nn.Module):\n        def forward(self", stem,
            number);
}

static void put_input(struct gen *g, const struct val *v, const char *name)
{
    gen_put(&g->tail, ", %s: \"", name);
    gen_put_type(&g->tail, v);
    gen_put(&g->tail, "\"");
}

static void put_inside(struct gen *g, const struct val *v, const char *name)
{
    gen_put(&g->tail, "            %s: \"", name);
    gen_put_type(&g->tail, v);
    gen_put(&g->tail, "\" = torch.ops.");
}

/* control_deps((what it stays after,), graph of one call, operand) */
void gen_control_deps(struct gen *g)
{
    int v = gen_pick(g, gen_readable_packed), dep = gen_pick(g, gen_readable), k = g->n_name++;
    char room[64];

    if (v < 0 || dep < 0 || gen_full(g))
        return;
    struct act a = any_act(g, v, gen_any_group(g), room, sizeof(room));
    struct val f = result_of(g, v, &a);
    begin_graph(g, "held", k);
    put_input(g, &g->val[v], "inner_a");
    gen_put(&g->tail, "):\n");
    put_inside(g, &f, "inner_r");
    gen_put(&g->tail, "%s(inner_a%s)\n            return inner_r\n", a.op, a.more);
    gen_put(&g->body, "        held_%d = self.held_%d\n", k, k);
    int out = gen_begin(g, f, "control_deps");
    gen_put(&g->body, "higher_order.control_deps((%s,), held_%d, %s)\n", g->val[dep].name, k,
            g->val[v].name);
    if (a.flies)
        gen_fly(g, out, v);
}

/* The body of a nested graph of inner_a and inner_b, which have the same type; it returns one
 * result of that type. */
static void put_body(struct gen *g, const struct val *type, bool two, int group)
{
    struct val f = *type;
    const char *last = "inner_m";

    put_input(g, type, "inner_a");
    if (two)
        put_input(g, type, "inner_b");
    gen_put(&g->tail, "):\n");
    put_inside(g, &f, "inner_m");
    if (two)
        gen_put(&g->tail, "aten.add.Tensor(inner_a, inner_b)\n");
    else
        gen_put(&g->tail, "aten.%s\n",
                gen_one_in(g, 2) ? "relu.default(inner_a)" : "mul.Tensor(inner_a, 3)");
    if (gen_one_in(g, 3) && !gen_is_symbolic(type) &&
        gen_numel(type).k > 1) { /* from its storage */
        struct val s = {.n_dim = 1, .dtype = f.dtype, .device = f.device};
        s.size[0].k = 1;
        gen_pack(&s);
        put_inside(g, &s, "inner_s");
        gen_put(&g->tail, "aten.as_strided.default(%s, [1], [1], 1)\n",
                two ? "inner_b" : "inner_a");
        put_inside(g, &f, "inner_t");
        gen_put(&g->tail, "aten.mul.Tensor(inner_m, inner_s)\n");
        last = "inner_t";
    }
    if (group >= 0) {
        put_inside(g, &f, "inner_r");
        gen_put(&g->tail, "_c10d_functional.all_reduce.default(%s, '%s', '%s')\n", last, g->reduce,
                g->x->group[group].name);
        put_inside(g, &f, "inner_w");
        gen_put(&g->tail, "_c10d_functional.wait_tensor.default(inner_r)\n");
        last = "inner_w";
    }
    gen_put(&g->tail, "            return (%s,)\n", last);
}

/* invoke_subgraph(graph, 'name', operands…), once or twice */
void gen_subgraph(struct gen *g)
{
    int v = gen_pick(g, gen_readable_packed), k = g->n_name++;
    bool two = gen_one_in(g, 2);

    if (v < 0 || gen_full(g))
        return;
    begin_graph(g, "repeated", k);
    put_body(g, &g->val[v], two, gen_one_in(g, 2) ? gen_any_group(g) : -1);
    for (int times = 1 + (int)gen_below(g, 2); times > 0; times--) {
        int w = gen_pick_like(g, v), call = g->n_name++;
        gen_put(&g->body, "        graph_%d = self.repeated_%d\n", call, k);
        gen_put(&g->body,
                "        invoke_%d = torch.ops.higher_order.invoke_subgraph(graph_%d, "
                "'repeated_%d', %s",
                call, call, k, g->val[v].name);
        if (two)
            gen_put(&g->body, ", %s", g->val[w].name);
        gen_put(&g->body, ")\n");
        gen_item(g, gen_fresh(g, v), "invoke", call, 0);
        v = w;
    }
}

/* cond(pred, graph, graph, (operand,)) */
void gen_cond(struct gen *g)
{
    int v = gen_pick(g, gen_readable_packed), k = g->n_name++;
    int group = gen_one_in(g, 3) ? gen_any_group(g) : -1;

    if (v < 0 || gen_full(g))
        return;
    gen_put(&g->head, ", pred_%d: \"b8[][]cpu\"", k);
    for (int i = 0; i < 2; i++) {
        begin_graph(g, i ? "false" : "true", k);
        put_body(g, &g->val[v], false, group);
        gen_put(&g->body, "        %s_%d = self.%s_%d\n", i ? "false" : "true", k,
                i ? "false" : "true", k);
    }
    gen_put(&g->body,
            "        cond_%d = torch.ops.higher_order.cond(pred_%d, true_%d, false_%d, (%s,))\n", k,
            k, k, k, g->val[v].name);
    gen_item(g, gen_fresh(g, v), "cond", k, 0);
}

/* Calls inside other calls: with_effects, control_deps, invoke_subgraph, cond; and of operators that
 * only the evaluator knows. */
#include "support/random_gen.h"

#include <stdio.h>

/* What a wrapper calls. */
struct act {
    const char *op;
    char operands[120]; /* "self = @a; other = @b": of the values with these letters */
    int n;              /* how many values */
    bool writes, flies; /* writes the first */
    int factor;         /* the result has this many times as many rows */
};

enum { MAX_ACT = 3 };

static struct act act(const char *op, const char *operands, int n)
{
    struct act a = {.op = op, .n = n, .factor = 1};

    snprintf(a.operands, sizeof(a.operands), "%s", operands);
    return a;
}

static struct act any_write(struct gen *g, bool apart, const char *group)
{
    struct act a;

    switch (gen_below(g, apart ? 5 : 2)) {
    case 0: a = act("aten.mul_.Tensor", "self = @a; other = 5", 1); break;
    case 1:
        a = act("_c10d_functional.all_reduce_.default", "", 1);
        snprintf(a.operands, sizeof(a.operands), "input = @a; reduce_op = '%s'; group_name = '%s'",
                 g->reduce, group);
        a.flies = true;
        break;
    case 2: a = act("aten.add_.Tensor", "self = @a; other = @b", 2); break;
    case 3: a = act("aten.copy_.default", "self = @a; src = @b", 2); break;
    default: a = act("aten.add.out", "self = @b; other = @c; *out = @a", 3); break;
    }
    a.writes = true;
    return a;
}

static struct act any_act(struct gen *g, const int *v)
{
    int group = gen_any_group(g);
    const char *name = g->x->group[group].name;
    bool apart = g->val[v[0]].storage != g->val[v[1]].storage &&
                 g->val[v[0]].storage != g->val[v[2]].storage;
    struct act a;

    if (gen_writable(g, v[0]) && gen_one_in(g, 3))
        return any_write(g, apart, name);
    switch (gen_below(g, 5)) {
    case 0: return act("aten.relu.default", "self = @a", 1);
    case 1: return act("aten.add.Tensor", "self = @a; other = @b", 2);
    case 2:
        a = act("_c10d_functional.all_gather_into_tensor.default", "", 1);
        a.factor = gen_group_size(g, group);
        snprintf(a.operands, sizeof(a.operands), "input = @a; group_size = %d; group_name = '%s'",
                 a.factor, name);
        break;
    default:
        a = act("_c10d_functional.all_reduce.default", "", 1);
        snprintf(a.operands, sizeof(a.operands), "input = @a; reduce_op = '%s'; group_name = '%s'",
                 g->reduce, name);
        break;
    }
    a.flies = true;
    return a;
}

/* The operands, with these names for the values. */
static void put_act(struct gen *g, struct text *t, const struct act *a, const char *const *name)
{
    char room[300];
    size_t n = 0;

    for (const char *s = a->operands; *s != '\0'; s++)
        if (*s == '@')
            n += (size_t)snprintf(room + n, sizeof(room) - n, "%s", name[*++s - 'a']);
        else
            room[n++] = *s;
    room[n] = '\0';
    gen_operands(g, t, "%s", room);
}

/* Values to call it on; false: there are none. */
static bool pick_values(struct gen *g, int *v)
{
    v[0] = gen_pick(g, gen_readable_packed);
    if (v[0] < 0 || gen_full(g))
        return false;
    v[1] = gen_pick_like(g, v[0]);
    v[2] = gen_pick_like(g, v[0]);
    return true;
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
static void put_effect(struct gen *g, const int *v, struct act a)
{
    int list = g->n_name++;

    if (g->token < 0) {
        struct val none = {.n_dim = 1};
        gen_pack(&none);
        g->token = gen_add_input(g, none, "token");
        g->val[g->token].taken = true;
    }
    const char *name[MAX_ACT] = {g->val[v[0]].name, g->val[v[1]].name, g->val[v[2]].name};
    gen_put(&g->body, "        effect_%d = torch.ops.higher_order.with_effects(%s, torch.ops.%s, ",
            list, g->val[g->token].name, a.op);
    put_act(g, &g->body, &a, name);
    gen_put(&g->body, ")\n");
    struct val token = g->val[g->token];
    g->token = gen_item(g, token, "effect", list, 0);
    int out = gen_item(g, result_of(g, v[0], &a), "effect", list, 1);
    if (a.flies)
        gen_fly(g, out, v[0]);
}

void gen_effect(struct gen *g)
{
    int v[MAX_ACT];

    if (pick_values(g, v))
        put_effect(g, v, any_act(g, v));
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

/* control_deps((what it stays after,), graph of one call, operands…) */
static void put_control_deps(struct gen *g, int dep, const int *v, struct act a)
{
    static const char *const inner[MAX_ACT] = {"inner_a", "inner_b", "inner_c"};
    int k = g->n_name++;
    struct val f = result_of(g, v[0], &a);
    begin_graph(g, "held", k);
    for (int i = 0; i < a.n; i++)
        put_input(g, &g->val[v[i]], inner[i]);
    gen_put(&g->tail, "):\n");
    put_inside(g, &f, "inner_r");
    gen_put(&g->tail, "%s(", a.op);
    put_act(g, &g->tail, &a, inner);
    gen_put(&g->tail, ")\n            return inner_r\n");
    gen_put(&g->body, "        held_%d = self.held_%d\n", k, k);
    int out = gen_begin(g, f, "control_deps");
    gen_put(&g->body, "higher_order.control_deps((%s,), held_%d", g->val[dep].name, k);
    for (int i = 0; i < a.n; i++)
        gen_put(&g->body, ", %s", g->val[v[i]].name);
    gen_put(&g->body, ")\n");
    if (a.flies)
        gen_fly(g, out, v[0]);
}

void gen_control_deps(struct gen *g)
{
    int v[MAX_ACT], dep = gen_pick(g, gen_readable);

    if (dep >= 0 && pick_values(g, v))
        put_control_deps(g, dep, v, any_act(g, v));
}

void gen_wrapped_write(struct gen *g, int v)
{
    int dep = gen_pick(g, gen_readable), values[MAX_ACT] = {v, v, v};
    struct act a = act("aten.mul_.Tensor", "self = @a; other = 5", 1);

    a.writes = true;
    if (dep >= 0 && gen_one_in(g, 2))
        put_control_deps(g, dep, values, a);
    else
        put_effect(g, values, a);
}

/* What a nested graph does. */
struct inside {
    bool two;    /* it has a second input, like the first */
    bool writes; /* it writes the first */
    int group;   /* it communicates in that one; -1: it does not */
};

/* The first input is written, or reduced in place. */
static void put_write(struct gen *g, const struct val *type, const struct inside *in,
                      const char *from)
{
    uint32_t kind = gen_below(g, in->group >= 0 ? 3 : 2);

    put_inside(g, type, "inner_x");
    if (kind == 2) {
        gen_put(&g->tail, "_c10d_functional.all_reduce_.default(");
        gen_operands(g, &g->tail, "input = inner_a; reduce_op = '%s'; group_name = '%s'", g->reduce,
                     g->x->group[in->group].name);
        gen_put(&g->tail, ")\n");
        put_inside(g, type, "inner_y");
        gen_put(&g->tail, "_c10d_functional.wait_tensor.default(inner_x)\n");
        return;
    }
    if (kind == 1) {
        gen_put(&g->tail, "aten.copy_.default(");
        gen_operands(g, &g->tail, "self = inner_a; src = %s", from);
    } else {
        gen_put(&g->tail, "aten.mul_.Tensor(");
        gen_operands(g, &g->tail, "self = inner_a; other = 5");
    }
    gen_put(&g->tail, ")\n");
}

/* The body of a nested graph of inner_a and inner_b, which have the same type; it returns one
 * result of that type. */
static void put_body(struct gen *g, const struct val *type, const struct inside *in)
{
    struct val f = *type;
    const char *last = "inner_m", *other = in->two ? "inner_b" : "inner_a";
    bool early = in->writes && gen_one_in(g, 2);

    put_input(g, type, "inner_a");
    if (in->two)
        put_input(g, type, "inner_b");
    gen_put(&g->tail, "):\n");
    if (early)
        put_write(g, type, in, other);
    put_inside(g, &f, "inner_m");
    if (in->two)
        gen_put(&g->tail, "aten.add.Tensor(inner_a, inner_b)\n");
    else
        gen_put(&g->tail, "aten.%s\n",
                gen_one_in(g, 2) ? "relu.default(self = inner_a)" : "mul.Tensor(inner_a, 3)");
    if (gen_one_in(g, 3) && !gen_is_symbolic(type) &&
        gen_numel(type).k > 1) { /* from its storage */
        struct val s = {.n_dim = 1, .dtype = f.dtype, .device = f.device};
        s.size[0].k = 1;
        gen_pack(&s);
        put_inside(g, &s, "inner_s");
        gen_put(&g->tail, "aten.as_strided.default(%s, [1], [1], 1)\n", other);
        put_inside(g, &f, "inner_t");
        gen_put(&g->tail, "aten.mul.Tensor(inner_m, inner_s)\n");
        last = "inner_t";
    }
    if (in->group >= 0) {
        put_inside(g, &f, "inner_r");
        gen_put(&g->tail, "_c10d_functional.all_reduce.default(");
        gen_operands(g, &g->tail, "input = %s; reduce_op = '%s'; group_name = '%s'", last,
                     g->reduce, g->x->group[in->group].name);
        gen_put(&g->tail, ")\n");
        put_inside(g, &f, "inner_w");
        gen_put(&g->tail, "_c10d_functional.wait_tensor.default(inner_r)\n");
        last = "inner_w";
    }
    if (in->writes && !early)
        put_write(g, type, in, last);
    gen_put(&g->tail, "            return (%s,)\n", last);
}

/* May it be called on these? What it writes is not what it reads under another name. */
static bool may_call(const struct gen *g, const struct inside *in, int v, int w)
{
    return !in->writes ||
           (gen_writable(g, v) && !(in->two && g->val[v].storage == g->val[w].storage));
}

/* invoke_subgraph(graph, 'name', operands…), once or twice */
void gen_subgraph(struct gen *g)
{
    int v = gen_pick(g, gen_readable_packed), k = g->n_name++;

    if (v < 0 || gen_full(g))
        return;
    struct inside in = {.two = gen_one_in(g, 2), .group = gen_one_in(g, 2) ? gen_any_group(g) : -1};
    in.writes = gen_writable(g, v) && gen_one_in(g, 2);
    begin_graph(g, "repeated", k);
    put_body(g, &g->val[v], &in);
    for (int times = 1 + (int)gen_below(g, 2); times > 0; times--) {
        int w = gen_pick_like(g, v), call = g->n_name++;
        if (!may_call(g, &in, v, w))
            continue;
        gen_put(&g->body, "        graph_%d = self.repeated_%d\n", call, k);
        gen_put(&g->body,
                "        invoke_%d = torch.ops.higher_order.invoke_subgraph(graph_%d, "
                "'repeated_%d', %s",
                call, call, k, g->val[v].name);
        if (in.two)
            gen_put(&g->body, ", %s", g->val[w].name);
        gen_put(&g->body, ")\n");
        gen_item(g, gen_fresh(g, v), "invoke", call, 0);
        v = w;
    }
}

/* cond(pred, graph, graph, (operands…)) */
void gen_cond(struct gen *g)
{
    int v = gen_pick(g, gen_readable_packed), k = g->n_name++;

    if (v < 0 || gen_full(g))
        return;
    struct inside in = {.two = gen_one_in(g, 3), .group = gen_one_in(g, 3) ? gen_any_group(g) : -1};
    int w = gen_pick_like(g, v);
    in.writes = gen_one_in(g, 2);
    in.writes = in.writes && may_call(g, &in, v, w);
    gen_put(&g->head, ", pred_%d: \"b8[][]cpu\"", k);
    for (int i = 0; i < 2; i++) {
        struct inside branch = in;
        branch.writes = in.writes && gen_one_in(g, 2);
        begin_graph(g, i ? "false" : "true", k);
        put_body(g, &g->val[v], &branch);
        gen_put(&g->body, "        %s_%d = self.%s_%d\n", i ? "false" : "true", k,
                i ? "false" : "true", k);
    }
    gen_put(
        &g->body,
        "        cond_%d = torch.ops.higher_order.cond(pred_%d, true_%d, false_%d, (%s,%s%s))\n", k,
        k, k, k, g->val[v].name, in.two ? " " : "", in.two ? g->val[w].name : "");
    gen_item(g, gen_fresh(g, v), "cond", k, 0);
}

/* Operators that Tuck does not know, of two operands that are alike. What they give is the second
 * one, or memory of their own, or the first, once the second was written. */
void gen_unknown(struct gen *g)
{
    int v[MAX_ACT];

    if (!pick_values(g, v))
        return;
    const char *a = g->val[v[0]].name, *b = g->val[v[1]].name;
    struct val second = gen_view_of(g, v[1]);
    if (gen_one_in(g, 3)) {
        int list = g->n_name++;
        gen_put(&g->body, "        both_%d = torch.ops.mylib.both.default(%s, %s)\n", list, a, b);
        gen_item(g, second, "both", list, 0);
        gen_item(g, gen_fresh(g, v[0]), "both", list, 1);
    } else if (gen_one_in(g, 2) && gen_writable(g, v[1])) {
        gen_begin(g, gen_view_of(g, v[0]), "bump_");
        gen_put(&g->body, "mylib.bump_.default(%s, %s)\n", a, b);
    } else {
        gen_begin(g, second, "second");
        gen_put(&g->body, "mylib.second.default(%s, %s)\n", a, b);
    }
}

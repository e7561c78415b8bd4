/* split_fused_collectives: operators that communicate and compute in one become plain collectives,
 * waits and the compute around them:
 *
 *   symm_mem.fused_all_gather_matmul       all_gather_into_tensor, a product for each matrix
 *   symm_mem.fused_matmul_reduce_scatter   a product, reduce_scatter_tensor
 *   _dtensor.shard_dim_alltoall            all_to_all_single
 *
 * A collective works on the first dimension. A gather along another one is one of views with that
 * dimension in front, as the operator itself does it; otherwise parts are put side by side before
 * or after it.
 */
#include "rewrite/split_fused.h"

#include "op/ops.h"
#include "rewrite/build.h"
#include "rewrite/comm_order.h"

/* A tensor of known sizes. */
struct shape {
    uint32_t node, n;
    int64_t size[16];
};

struct split {
    struct pass_run *r;
    const int32_t *group;
    struct build b;
    uint32_t node;            /* that is replaced */
    int64_t ranks;            /* of its group */
    const tuck_value *called; /* the group's name */
};

static bool shape_of(const struct split *s, const tuck_value *v, struct shape *out)
{
    const tuck_graph *g = s->r->g;

    if (v == NULL || v->kind != TUCK_V_NODE)
        return false;
    const struct type *t = type_at(&g->store->type, node_type(g, v->a));
    *out = (struct shape){.node = v->a, .n = t->n};
    if (t->kind != TYPE_TENSOR || t->n == 0 || t->n > 16)
        return false;
    for (uint32_t i = 0; i < t->n; i++)
        if (!sym_as_int(&g->store->sym, t->size[i], &out->size[i]))
            return false;
    return true;
}

static const tuck_value *operand(struct split *s, const char *name)
{
    return comm_operand(s->r->g, &s->r->sigs, s->node, name);
}

static bool dim_of(struct split *s, const char *name, const struct shape *x, uint32_t *out)
{
    const tuck_value *v = operand(s, name);
    int64_t d = v != NULL && v->kind == TUCK_V_INT ? v->u.i : INT64_MIN;

    d += d < 0 && d > INT64_MIN ? x->n : 0;
    *out = (uint32_t)d;
    return d >= 0 && d < x->n;
}

/* ---- nodes ---- */

static uint32_t waited(struct split *s, uint32_t n)
{
    build_call(&s->b, "_c10d_functional.wait_tensor.default");
    build_node(&s->b, n);
    return build_end(&s->b, "wait_tensor");
}

/* As many parts along one dimension as there are ranks, side by side along another. */
static uint32_t turned(struct split *s, const struct shape *x, uint32_t cut, uint32_t join)
{
    uint32_t *part = arena_array(&s->r->arena, uint32_t, (size_t)s->ranks);

    if (cut == join)
        return x->node;
    build_call(&s->b, "aten.split.Tensor");
    build_node(&s->b, x->node);
    build_int(&s->b, x->size[cut] / s->ranks);
    build_int(&s->b, cut);
    uint32_t parts = build_end(&s->b, "split");
    for (int64_t i = 0; i < s->ranks; i++)
        part[i] = build_getitem(&s->b, parts, i);
    build_call(&s->b, "aten.cat.default");
    build_open(&s->b);
    for (int64_t i = 0; i < s->ranks; i++)
        build_node(&s->b, part[i]);
    build_close(&s->b);
    build_int(&s->b, join);
    return build_end(&s->b, "cat");
}

/* x turned, with the sizes that it has then. */
static struct shape turn(struct split *s, struct shape x, uint32_t cut, uint32_t join)
{
    x.node = turned(s, &x, cut, join);
    x.size[cut] /= s->ranks;
    x.size[join] *= s->ranks;
    return x;
}

/* Dimension `from` at place `to`, by a view. */
static struct shape moved(struct split *s, struct shape x, uint32_t from, uint32_t to)
{
    struct shape y = {.n = x.n};

    if (from == to)
        return x;
    build_call(&s->b, "aten.permute.default");
    build_node(&s->b, x.node);
    build_open(&s->b);
    for (uint32_t i = 0, rest = 0; i < x.n; i++) {
        if (rest == from)
            rest++;
        uint32_t of = i == to ? from : rest++;
        y.size[i] = x.size[of];
        build_int(&s->b, of);
    }
    build_close(&s->b);
    y.node = build_end(&s->b, "permute");
    return y;
}

/* Along the first dimension. */
static struct shape gathered(struct split *s, struct shape x)
{
    build_call(&s->b, "_c10d_functional.all_gather_into_tensor.default");
    build_node(&s->b, x.node);
    build_int(&s->b, s->ranks);
    build_value(&s->b, s->called);
    x.node = waited(s, build_end(&s->b, "all_gather_into_tensor"));
    x.size[0] *= s->ranks;
    return x;
}

static uint32_t reshaped(struct split *s, uint32_t node, const int64_t *size, uint32_t n)
{
    build_call(&s->b, "aten.reshape.default");
    build_node(&s->b, node);
    build_open(&s->b);
    for (uint32_t i = 0; i < n; i++)
        build_int(&s->b, size[i]);
    build_close(&s->b);
    return build_end(&s->b, "reshape");
}

/* Of the last dimension of a, and a matrix. */
static struct shape product(struct split *s, struct shape a, const struct shape *b)
{
    int64_t flat[2] = {1, a.size[a.n - 1]};

    for (uint32_t i = 0; i + 1 < a.n; i++)
        flat[0] *= a.size[i];
    uint32_t rows = a.n == 2 ? a.node : reshaped(s, a.node, flat, 2);
    build_call(&s->b, "aten.mm.default");
    build_node(&s->b, rows);
    build_node(&s->b, b->node);
    a.node = build_end(&s->b, "mm");
    a.size[a.n - 1] = b->size[1];
    if (a.n != 2)
        a.node = reshaped(s, a.node, a.size, a.n);
    return a;
}

/* ---- one operator each: false if it is left alone ---- */

static bool fits(const struct shape *a, const struct shape *b)
{
    return a->n >= 2 && b->n == 2 && a->size[a->n - 1] == b->size[0];
}

/* Is every use of n an item of it? */
static bool only_items(const tuck_graph *g, uint32_t n)
{
    uint32_t k;

    for (uint32_t u = node_at(g, n)->use_first; u != 0; u = g->use.at[u].next) {
        const struct fx_node *x = node_at(g, g->use.at[u].user);
        if (op_at(x->op)->form != OP_FORM_GETITEM || !call_item(g, x, &k))
            return false;
    }
    return true;
}

static bool takes_item(const tuck_graph *g, uint32_t n, uint32_t which)
{
    for (uint32_t u = node_at(g, n)->use_first; u != 0; u = g->use.at[u].next) {
        uint32_t k = 0;

        call_item(g, node_at(g, g->use.at[u].user), &k);
        if (k == which)
            return true;
    }
    return false;
}

/* Every use of n[k] becomes one of with[k]; the items go. */
static void give_items(struct split *s, uint32_t n, const uint32_t *with)
{
    const tuck_graph *g = s->r->g;

    while (node_at(g, n)->use_first != 0) {
        uint32_t item = g->use.at[node_at(g, n)->use_first].user, k = 0;

        call_item(g, node_at(g, item), &k);
        build_replace(s->r, item, with[k]);
        build_erase(s->r, item);
    }
}

static bool items_fit(const struct split *s, uint32_t n, uint32_t products)
{
    const tuck_graph *g = s->r->g;

    if (!only_items(g, n))
        return false;
    for (uint32_t u = node_at(g, n)->use_first; u != 0; u = g->use.at[u].next) {
        uint32_t item = g->use.at[u].user, k = 0;

        call_item(g, node_at(g, item), &k);
        if (k > 1 || !build_may_erase(s->r, item) || (k == 1 && !only_items(g, item)))
            return false;
        for (uint32_t w = k == 1 ? node_at(g, item)->use_first : 0; w != 0; w = g->use.at[w].next) {
            uint32_t which = 0;

            call_item(g, node_at(g, g->use.at[w].user), &which);
            if (which >= products || !build_may_erase(s->r, g->use.at[w].user))
                return false;
        }
    }
    return true;
}

static bool split_gather(struct split *s)
{
    const tuck_graph *g = s->r->g;
    const tuck_value *list = operand(s, "Bs");
    struct shape a, *b;
    uint32_t dim;

    if (!shape_of(s, operand(s, "A"), &a) || list == NULL || !value_is_container(list) ||
        !dim_of(s, "gather_dim", &a, &dim) || !items_fit(s, s->node, list->a))
        return false;
    b = arena_array(&s->r->arena, struct shape, (size_t)list->a + 1);
    uint32_t *made = arena_array(&s->r->arena, uint32_t, (size_t)list->a + 1);
    struct shape whole = a;
    whole.size[dim] *= s->ranks;
    for (uint32_t i = 0; i < list->a; i++)
        if (!shape_of(s, value_item(list, i), &b[i]) || !fits(&whole, &b[i]))
            return false;
    /* As the operator does it: its results lie in memory with the gathered dimension first. */
    struct shape front = gathered(s, moved(s, a, dim, 0));
    bool last = dim + 1 == a.n;
    if (last || takes_item(g, s->node, 0))
        whole = moved(s, front, 0, dim);
    for (uint32_t i = 0; i < list->a; i++)
        made[i] = last ? product(s, whole, &b[i]).node
                       : moved(s, product(s, front, &b[i]), 0, dim).node;
    while (node_at(g, s->node)->use_first != 0) {
        uint32_t item = g->use.at[node_at(g, s->node)->use_first].user, k = 0;

        call_item(g, node_at(g, item), &k);
        if (k == 0)
            build_replace(s->r, item, whole.node);
        else
            give_items(s, item, made);
        build_erase(s->r, item);
    }
    build_erase(s->r, s->node);
    return true;
}

static bool split_scatter(struct split *s)
{
    struct shape a, b;
    uint32_t dim;

    if (!shape_of(s, operand(s, "A"), &a) || !shape_of(s, operand(s, "B"), &b) || !fits(&a, &b) ||
        !dim_of(s, "scatter_dim", &a, &dim))
        return false;
    int64_t along = dim + 1 < a.n ? a.size[dim] : b.size[1];
    if (along % s->ranks != 0 || along == 0)
        return false;
    struct shape sum = turn(s, product(s, a, &b), dim, 0);
    build_call(&s->b, "_c10d_functional.reduce_scatter_tensor.default");
    build_node(&s->b, sum.node);
    build_value(&s->b, operand(s, "reduce_op"));
    build_int(&s->b, s->ranks);
    build_value(&s->b, s->called);
    build_replace(s->r, s->node, waited(s, build_end(&s->b, "reduce_scatter_tensor")));
    build_erase(s->r, s->node);
    return true;
}

static bool split_all_to_all(struct split *s)
{
    struct shape x;
    uint32_t gather, shard;

    if (!shape_of(s, operand(s, "input"), &x) || !dim_of(s, "gather_dim", &x, &gather) ||
        !dim_of(s, "shard_dim", &x, &shard) || x.size[shard] % s->ranks != 0 || x.size[shard] == 0)
        return false;
    x = turn(s, x, shard, 0);
    build_call(&s->b, "_c10d_functional.all_to_all_single.default");
    build_node(&s->b, x.node);
    for (int side = 0; side < 2; side++) {
        build_open(&s->b);
        for (int64_t i = 0; i < s->ranks; i++)
            build_int(&s->b, x.size[0] / s->ranks);
        build_close(&s->b);
    }
    build_value(&s->b, s->called);
    x.node = waited(s, build_end(&s->b, "all_to_all_single"));
    build_replace(s->r, s->node, turn(s, x, 0, gather).node);
    build_erase(s->r, s->node);
    return true;
}

static const struct form {
    const char *op;
    bool (*split)(struct split *s);
} forms[] = {
    {"symm_mem.fused_all_gather_matmul.default", split_gather},
    {"symm_mem.fused_matmul_reduce_scatter.default", split_scatter},
    {"_dtensor.shard_dim_alltoall.default", split_all_to_all},
};

static const struct form *form_of(const tuck_graph *g, uint32_t n)
{
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
        if (node_at(g, n)->kind == TUCK_CALL_FUNCTION &&
            strcmp(op_at(node_at(g, n)->op)->name, forms[i].op) == 0)
            return &forms[i];
    return NULL;
}

/* Is its group known, and by a name? */
static bool begin(struct split *s, uint32_t n)
{
    const tuck_graph *g = s->r->g;
    int32_t k = s->group[n];

    s->node = n;
    s->called = operand(s, "group_name");
    if (k < 0 || g->group.at[k].size < 1 || s->called == NULL || s->called->kind != TUCK_V_STR)
        return false;
    s->ranks = g->group.at[k].size;
    s->b = build_at(s->r, n);
    return true;
}

static tuck_status run(struct pass_run *r, const void *options)
{
    struct split s = {.r = r, .group = comm_groups(r)};
    const tuck_graph *g = r->g;
    uint32_t last = g->node.len, next; /* nodes from here on are new */
    uint64_t done = 0;

    (void)options;
    for (uint32_t n = g->node.at[0].next; n != 0; n = next) {
        const struct form *form = n < last ? form_of(g, n) : NULL;

        next = node_at(g, n)->next;
        if (form == NULL)
            continue;
        while (next != 0 && op_at(node_at(g, next)->op)->form == OP_FORM_GETITEM) /* it may go */
            next = node_at(g, next)->next;
        if (!begin(&s, n))
            report_left(r->report, g, n, LEFT_UNKNOWN_GROUP);
        else if (!build_may_erase(r, n) || !form->split(&s))
            report_left(r->report, g, n, LEFT_PATTERN);
        else
            done++;
    }
    report_count(r->report, "operators split", done);
    return TUCK_OK;
}

const struct pass pass_split_fused_collectives = {
    .name = "split_fused_collectives",
    .help = "products with a collective inside, and shard_dim_alltoall, become plain collectives",
    .needs = PASS_TYPES | PASS_NAMES,
    .on_graph = run,
};

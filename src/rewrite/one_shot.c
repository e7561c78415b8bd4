/* one_shot_all_reduce: an all-reduce and its wait become one kernel over symmetric memory, in which
 * every rank reads the operands of all others. It runs with the compute, where the all-reduce was
 * issued, and nothing waits for it.
 *
 * The result is a new tensor, as that of the all-reduce is; its elements are sums of the same
 * numbers, possibly in another order. Inductor puts the operand into symmetric memory.
 */
#include "rewrite/one_shot.h"

#include "cost/machine.h"
#include "graph/message.h"
#include "op/ops.h"
#include "rewrite/build.h"
#include "rewrite/comm_order.h"
#include "rewrite/named.h"

static const char library_op[] = "_c10d_functional.all_reduce.default";
static const char one_shot_op[] = "symm_mem.one_shot_all_reduce.default";

struct options {
    struct pass_texts nodes;
    double max_kb;
};

static const struct pass_option table[] = {
    {.name = "nodes",
     .type = PASS_TEXTS,
     .at = offsetof(struct options, nodes),
     .dflt = "None",
     .help = "only these all-reduces, a:b or %c2:%c5, of any group and size"},
    {.name = "max_kb",
     .type = PASS_FLOAT,
     .at = offsetof(struct options, max_kb),
     .dflt = "128",
     .help = "largest message, in KiB; as config._collective.one_shot_all_reduce_threshold_bytes"},
};

void one_shot_scan(struct one_shot_scan *s, struct pass_run *r)
{
    *s = (struct one_shot_scan){
        .r = r, .group = comm_groups(r), .op = op_find(library_op, sizeof(library_op) - 1)};
}

/* Is everything that uses it a wait, and may they all go? */
static bool has_only_waits(const struct one_shot_scan *s, uint32_t n, enum left_reason *why)
{
    const tuck_graph *g = s->r->g;

    *why = node_at(g, n)->use_first == 0 ? LEFT_NO_WAIT : LEFT_WAITS;
    for (uint32_t u = node_at(g, n)->use_first; u != 0; u = g->use.at[u].next) {
        uint32_t user = g->use.at[u].user;
        if (call_is_wrapper(node_at(g, user)) || !build_may_erase(s->r, user)) {
            *why = LEFT_WRAPPED;
            return false;
        }
        if (op_at(node_op(g, user))->cls != OP_WAIT || call_node(g, node_at(g, user), 0) != n)
            return false;
    }
    return node_at(g, n)->use_first != 0;
}

/* The library returns a contiguous copy, the kernel a tensor like its operand. */
static bool has_same_layout(const tuck_graph *g, uint32_t n)
{
    uint32_t from = call_node(g, node_at(g, n), 0);
    const struct type *t = type_at(&g->store->type, node_type(g, n));

    return from != 0 && node_type(g, n) != 0 && node_type(g, n) == node_type(g, from) &&
           t->kind == TYPE_TENSOR && t->strided;
}

static bool has_its_dtype(const tuck_graph *g, uint32_t n)
{
    enum dtype d = (enum dtype)type_at(&g->store->type, node_type(g, n))->dtype;

    return d == DTYPE_F32 || d == DTYPE_BF16;
}

static bool is_sum(struct one_shot_scan *s, uint32_t n)
{
    const tuck_value *v = comm_operand(s->r->g, &s->r->sigs, n, "reduce_op");

    return v != NULL && v->kind == TUCK_V_STR && strcmp(graph_str(s->r->g, v->a), "sum") == 0;
}

static bool is_in_reach(const struct one_shot_scan *s, uint32_t n, enum left_reason *why)
{
    const tuck_graph *g = s->r->g;
    int32_t k = s->group[n];
    const struct machine *m = s->r->machine;

    *why = LEFT_UNKNOWN_GROUP;
    if (k < 0)
        return false;
    const struct fx_group *group = &g->group.at[k];
    struct cost_shape shape = shape_of_group(m->cluster, graph_str(g, group->name), group->size,
                                             group->ranks);
    *why = LEFT_NO_SYMM_MEM;
    if (!s->by_name && !machine_has_symm_mem(m, graph_str(g, group->name)))
        return false;
    *why = shape.p == 1 ? LEFT_GROUP_OF_ONE : LEFT_ONE_NODE;
    return shape.p > 1 && shape.nodes == 1;
}

bool one_shot_may(struct one_shot_scan *s, uint32_t n, enum left_reason *why)
{
    const tuck_graph *g = s->r->g;
    const struct fx_node *x = node_at(g, n);

    *why = LEFT_END;
    if (x->kind != TUCK_CALL_FUNCTION || x->op != s->op)
        return false;
    if (!is_in_reach(s, n, why) || !has_only_waits(s, n, why))
        return false;
    *why = !build_may_erase(s->r, n)               ? LEFT_WRAPPED
           : !has_same_layout(g, n)                ? LEFT_LAYOUT
           : !has_its_dtype(g, n) || !is_sum(s, n) ? LEFT_PATTERN
                                                   : LEFT_END;
    return *why == LEFT_END;
}

/* ---- the rewrite ---- */

/* A bucket of one. */
static void tell(const struct one_shot_scan *s, uint32_t n, uint32_t sum)
{
    struct pass_run *r = s->r;
    const tuck_graph *g = r->g;
    const char *name = graph_str(g, node_at(g, n)->name);

    report_bucket(r->report, &(struct report_bucket){
                                 .kind = tuck_coll_name(TUCK_ALL_REDUCE),
                                 .group = graph_str(g, g->group.at[s->group[n]].name),
                                 .key = "one-shot",
                                 .member = &name,
                                 .n_member = 1,
                                 .bytes = message_bytes(g, n, 0, &r->sigs, &r->assume, &r->arena),
                                 .closed_by = CLOSED_CHOICE,
                                 .result = graph_str(g, node_at(g, sum)->name)});
}

static void rewrite(struct one_shot_scan *s, uint32_t n)
{
    struct pass_run *r = s->r;
    tuck_graph *g = r->g;
    struct build b = build_at(r, n);
    static const char *const operand[] = {"input", "reduce_op", "group_name"};

    build_call(&b, one_shot_op);
    for (int i = 0; i < 3; i++)
        build_value(&b, comm_operand(g, &r->sigs, n, operand[i]));
    uint32_t sum = build_end(&b, "one_shot_all_reduce");
    tell(s, n, sum);
    while (node_at(g, n)->use_first != 0) {
        uint32_t wait = g->use.at[node_at(g, n)->use_first].user;
        build_replace(r, wait, sum);
        build_erase(r, wait);
    }
    build_erase(r, n);
}

static tuck_status rewrite_named(struct one_shot_scan *s, const struct pass_texts *names,
                                 uint32_t *done)
{
    struct pass_run *r = s->r;
    const uint32_t *node = named_nodes(r, names);
    bool *named = arena_zeroed(&r->arena, r->g->node.len);
    enum left_reason why;

    s->by_name = true;
    for (uint32_t i = 0; i < names->n; i++) {
        if (node[i] == 0)
            return pass_fail(r, 0, "one_shot_all_reduce: there is no node '%s'", names->at[i]);
        if (named[node[i]])
            return pass_fail(r, node[i], "one_shot_all_reduce: '%s' is named twice", names->at[i]);
        named[node[i]] = true;
        if (comm_kind(r->g, node[i]) != TUCK_ALL_REDUCE)
            return pass_fail(r, node[i], "one_shot_all_reduce: '%s' is not an all-reduce",
                             names->at[i]);
    }
    for (uint32_t i = 0; i < names->n; i++) {
        if (one_shot_may(s, node[i], &why)) {
            rewrite(s, node[i]);
            ++*done;
        } else if (why != LEFT_END) {
            report_left(r->report, r->g, node[i], why);
        }
    }
    return TUCK_OK;
}

static uint32_t rewrite_small(struct one_shot_scan *s, double max_bytes)
{
    struct pass_run *r = s->r;
    const tuck_graph *g = r->g;
    uint32_t done = 0, next;

    for (uint32_t n = g->node.at[0].next; n != 0; n = next) {
        enum left_reason why;
        next = node_at(g, n)->next;
        if (node_is_silent(node_at(g, n)))
            continue;
        bool may = one_shot_may(s, n, &why);
        int64_t bytes = may ? message_bytes(g, n, 0, &r->sigs, &r->assume, &r->arena) : 0;
        if (may && (bytes < 0 || (double)bytes > max_bytes)) {
            why = bytes < 0 ? LEFT_UNHINTED : LEFT_OVERSIZED;
            may = false;
        }
        if (why != LEFT_END)
            report_left(r->report, g, n, why);
        if (!may)
            continue;
        while (next != 0 && op_at(node_op(g, next))->cls == OP_WAIT) /* it may go */
            next = node_at(g, next)->next;
        rewrite(s, n);
        done++;
    }
    return done;
}

static bool is_taken(void *ctx, uint32_t n)
{
    const struct one_shot_scan *s = ctx;

    return node_at(s->r->g, n)->op == s->op || op_at(acting_op(s->r->g, n))->cls != OP_COLLECTIVE;
}

static tuck_status run(struct pass_run *r, const void *given)
{
    const struct options *o = given;
    struct one_shot_scan s;
    uint32_t done = 0;
    tuck_status st = TUCK_OK;

    uint32_t removed = comm_dedup_waits(r);
    if (removed > 0)
        report_count(r->report, "duplicate waits removed", removed);
    one_shot_scan(&s, r);
    comm_leave_forms(r, TUCK_ALL_REDUCE, is_taken, &s);
    comm_leave_hidden(r, TUCK_ALL_REDUCE);
    if (o->nodes.n > 0)
        st = rewrite_named(&s, &o->nodes, &done);
    else
        done = rewrite_small(&s, o->max_kb * 1024);
    report_count(r->report, "all-reduces made one-shot", done);
    return st;
}

const struct pass pass_one_shot_all_reduce = {
    .name = "one_shot_all_reduce",
    .help = "small all-reduces and their waits become one kernel over symmetric memory",
    .needs = PASS_TYPES | PASS_NAMES | PASS_TIMES,
    .options = PASS_OPTIONS(table),
    .options_size = sizeof(struct options),
    .on_graph = run,
};

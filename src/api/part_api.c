/* Runs a pass on the part of a graph that it looks at. */
#include "api/pass_api.h"
#include "graph/effect.h"
#include "tuck_experimental.h"

struct part {
    const struct pipeline_step *step;
    struct fx_store *store;
    tuck_report *report;
    struct pass_run r;
    const int64_t *word, *end; /* those not taken yet */
    /* a start has number i, a node n_starts + i */
    uint32_t n_starts, n_nodes, n_follow, n_uses;
    const uint32_t *start_op, *node, *gap, *follow, *n_users, *user;
    size_t n_graph;   /* nodes of the whole graph */
    uint32_t *id;     /* by number: its node */
    uint32_t *number; /* by node: which of the nodes it is */
    str_id group_name;
    struct known_op {
        uint32_t op, n_args;
    } known[2]; /* the latest of group_args() */
    int64_t *moves;
    size_t n_moves;
    bool enough; /* the pass needs nothing else */
    tuck_status status;
};

static const struct pipeline_step *only_step(const tuck_pipeline *p)
{
    const struct pipeline_step *s = p->p.step.len == 1 ? p->p.step.at : NULL;

    return s != NULL && s->pass->part != NULL ? s : NULL;
}

tuck_part tuck_pipeline_part(const tuck_pipeline *p, uint32_t op)
{
    const struct pipeline_step *s = p != NULL ? only_step(p) : NULL;

    if (s == NULL || op == 0 || op > op_count())
        return TUCK_PART_WHOLE;
    return s->pass->part(op, s->options);
}

/* ---- the graph ---- */

/* The next run of a list, n numbers at most, to `to`: how many it has, 0 if it is not one. */
static uint32_t take_run(struct part *x, uint32_t *to, uint32_t n, int64_t low, int64_t limit)
{
    const int64_t *at = x->word;

    if (x->end - at < 3 || at[0] < 1 || at[0] > n)
        return 0;
    uint32_t len = (uint32_t)at[0];
    if (at[1] == TUCK_RUN_LISTED ? x->end - at - 2 < len
                                 : at[1] != TUCK_RUN_SAME && at[1] != TUCK_RUN_COUNTED)
        return 0;
    bool listed = at[1] == TUCK_RUN_LISTED, good = true;
    int64_t first = listed ? 0 : at[2], step = at[1] == TUCK_RUN_COUNTED;
    if (!listed && (first < low || first >= limit || step * (len - 1) >= limit - first))
        return 0;
    x->word += listed ? 2 + (size_t)len : 3;
    for (uint32_t i = 0; i < len; i++) {
        int64_t number = listed ? at[2 + i] : first + step * i;
        good &= number >= low && number < limit;
        to[i] = (uint32_t)number;
    }
    return good ? len : 0;
}

/* A list of n numbers from low on and below limit; NULL if the words have none. */
static const uint32_t *take_list(struct part *x, uint32_t n, int64_t low, int64_t limit)
{
    uint32_t *list = arena_array(&x->r.arena, uint32_t, (size_t)n + 1);

    for (uint32_t done = 0, len; done < n; done += len) {
        len = take_run(x, list + done, n - done, low, limit);
        if (len == 0)
            return NULL;
    }
    return list;
}

static bool take_words(struct part *x)
{
    int64_t most = (int64_t)x->n_graph + 1, n_ops = (int64_t)op_count() + 1;

    if (x->end - x->word < 4)
        return false;
    for (int i = 0; i < 4; i++)
        if (x->word[i] < 0 || x->word[i] >= (i < 3 ? most : UINT32_MAX / 4))
            return false;
    x->n_starts = (uint32_t)*x->word++;
    x->n_nodes = (uint32_t)*x->word++;
    x->n_follow = (uint32_t)*x->word++;
    x->n_uses = (uint32_t)*x->word++;
    if ((x->start_op = take_list(x, x->n_starts, 1, n_ops)) == NULL ||
        (x->node = take_list(x, x->n_nodes, 0, n_ops)) == NULL ||
        (x->gap = take_list(x, x->n_nodes, 0, 2)) == NULL ||
        (x->follow = take_list(x, x->n_follow, 0, x->n_nodes)) == NULL ||
        (x->n_users = take_list(x, x->n_starts + x->n_follow, 0, x->n_uses + 1)) == NULL ||
        (x->user = take_list(x, x->n_uses, 0, x->n_nodes)) == NULL)
        return false;
    uint64_t users = 0;
    for (uint32_t i = 0; i < x->n_starts + x->n_follow; i++)
        users += x->n_users[i];
    return users == x->n_uses && x->word == x->end;
}

/* What each node uses: those of node i begin at operand[start[i]]. NULL: a user comes before. */
static uint32_t *operands(struct part *x, uint32_t *operand)
{
    uint32_t *start = arena_zeroed(&x->r.arena, ((size_t)x->n_nodes + 2) * sizeof(*start));
    const uint32_t *user = x->user;

    for (uint32_t i = 0; i < x->n_uses; i++)
        start[user[i] + 2]++;
    for (uint32_t i = 1; i < x->n_nodes + 2; i++)
        start[i] += start[i - 1];
    for (uint32_t i = 0; i < x->n_starts + x->n_follow; i++) {
        bool is_start = i < x->n_starts;
        uint32_t node = is_start ? 0 : x->follow[i - x->n_starts];
        for (uint32_t k = 0; k < x->n_users[i]; k++, user++) {
            if (!is_start && *user <= node)
                return NULL;
            operand[start[*user + 1]++] = is_start ? i : x->n_starts + node;
        }
    }
    return start;
}

/* How many arguments a call gets: a start those up to the name of its group, which every collective
 * has; others none. */
static uint32_t group_args(struct part *x, uint32_t op)
{
    static const char group[] = "group_name";
    bool start = op != 0 && x->step->pass->part(op, x->step->options) == TUCK_PART_START;

    return start ? (uint32_t)(op_param_find(sigs_get(&x->r.sigs, op), group, sizeof(group) - 1) + 1)
                 : 0;
}

/* Most graphs have two operators here, in turns. */
static uint32_t group_args_again(struct part *x, uint32_t op)
{
    uint32_t k = op == x->known[0].op ? 0 : 1;

    if (op != x->known[k].op) {
        x->known[1] = x->known[0];
        x->known[0] = (struct known_op){op, group_args(x, op)};
        k = 0;
    }
    return x->known[k].n_args;
}

/* A call of what is in the part. */
static uint32_t add_call(struct part *x, uint32_t op, const uint32_t *operand, uint32_t n)
{
    uint32_t n_group = group_args_again(x, op), n_args = n + n_group;
    tuck_value *v = arena_array(&x->r.g->arena, tuck_value, n_args);
    struct fx_node node = {.kind = op != 0 ? TUCK_CALL_FUNCTION : TUCK_OUTPUT, .op = (uint16_t)op};

    for (uint32_t k = 0; k < n_group; k++)
        v[k] = (tuck_value){.kind = TUCK_V_STR, .a = x->group_name};
    for (uint32_t k = 0; k < n; k++)
        v[n_group + k] = (tuck_value){.kind = TUCK_V_NODE, .a = x->id[operand[k]]};
    uint32_t id = graph_add_node(x->r.g, 0, node);
    graph_take_vals(x->r.g, id, v, n_args, n_args, 0);
    if (op == 0)
        x->r.g->output = id;
    return id;
}

/* By node: how many starts must come before it, because it uses them, or a node up to the next gap
 * does. */
static uint32_t *starts_before(struct part *x)
{
    uint32_t *before = arena_zeroed(&x->r.arena, ((size_t)x->n_nodes + 1) * sizeof(*before));
    const uint32_t *user = x->user;

    for (uint32_t i = 0; i < x->n_starts; i++)
        for (uint32_t k = 0; k < x->n_users[i]; k++)
            before[*user++] = i + 1;
    for (uint32_t i = x->n_nodes; i-- > 1;)
        if (x->gap[i] == 0 && before[i - 1] < before[i])
            before[i - 1] = before[i];
    return before;
}

/* The nodes in their order. What the part leaves out in a gap is left out here as well, but
 * something must be there: starts, if any are left that are needed from there on. */
static bool build(struct part *x)
{
    struct arena *a = &x->r.arena;
    uint32_t *operand = arena_array(a, uint32_t, x->n_uses);
    const uint32_t *start = operands(x, operand);

    if (start == NULL)
        return false;
    const uint32_t *before = starts_before(x);
    uint32_t n_done = 0;
    x->r.g = graph_new(x->store);
    x->group_name = str_intern(&x->store->str, "group_name", 10);
    x->id = arena_array(a, uint32_t, (size_t)x->n_starts + x->n_nodes);
    vec_reserve(x->r.mem, &x->r.g->node, x->n_starts + 2 * x->n_nodes);
    vec_reserve(x->r.mem, &x->r.g->use, (size_t)x->n_uses + 1);
    for (uint32_t i = 0; i < x->n_nodes; i++) {
        if (x->gap[i] != 0 && n_done >= before[i])
            graph_add_node(x->r.g, 0, (struct fx_node){.kind = TUCK_GET_ATTR});
        for (; n_done < before[i]; n_done++)
            x->id[n_done] = add_call(x, x->start_op[n_done], NULL, 0);
        x->id[x->n_starts + i] = add_call(x, x->node[i], operand + start[i],
                                          start[i + 1] - start[i]);
    }
    for (; n_done < x->n_starts; n_done++) /* without users */
        add_call(x, x->start_op[n_done], NULL, 0);
    x->number = arena_array(a, uint32_t, x->r.g->node.len);
    for (uint32_t i = 0; i < x->n_nodes; i++)
        x->number[x->id[x->n_starts + i]] = i;
    return true;
}

/* ---- the pass ---- */

/* Passes that look at a part move nodes towards the end only: those moved that a node from after
 * them is before now. Each goes before the next one that did not move. */
static void find_moves(struct part *x)
{
    const tuck_graph *g = x->r.g;
    bool *moved = arena_zeroed(&x->r.arena, g->node.len * sizeof(*moved));
    size_t n_moved = 0, at;
    uint32_t top = 0, kept = 0;

    for_each_node (g, n) {
        moved[n] = node_at(g, n)->pos < top;
        n_moved += moved[n];
        top = moved[n] ? top : node_at(g, n)->pos;
    }
    at = 2 * n_moved;
    for (uint32_t n = g->node.at[0].prev; n != 0; n = node_at(g, n)->prev) {
        if (!moved[n]) {
            kept = n;
            continue;
        }
        assert(node_at(g, n)->kind != TUCK_GET_ATTR && node_at(g, kept)->kind != TUCK_GET_ATTR);
        x->moves[--at] = x->number[kept];
        x->moves[--at] = x->number[n];
    }
    x->n_moves = n_moved;
}

static void do_run(void *arg)
{
    struct part *x = arg;
    tuck_report *t = x->report;
    struct pass_report row = {.all = t,
                              .name = x->step->pass->name,
                              .options = arena_str(&t->arena, x->step->text, strlen(x->step->text)),
                              .before = (uint32_t)x->n_graph,
                              .after = (uint32_t)x->n_graph};

    vec_push_in(&t->arena, &t->pass, row);
    x->r.report = &t->pass.at[0];
    if (!take_words(x) || !build(x)) {
        x->status = TUCK_EINVAL;
        return;
    }
    graph_number(x->r.g);
    x->status = x->step->pass->on_graph(&x->r, x->step->options);
    /* What is left alone is reported by name, and only the whole graph has names. */
    x->enough = x->status == TUCK_OK && x->r.report->left.len == 0;
    if (!x->enough)
        return;
    x->r.report->changed = x->r.changed;
    find_moves(x);
}

static tuck_status run(struct part *x, const tuck_allocator *alloc)
{
    x->store = store_new(alloc);
    x->report = report_new(alloc);
    if (x->store == NULL || x->report == NULL)
        return TUCK_ENOMEM;
    x->r = (struct pass_run){.mem = &x->store->mem};
    arena_init(&x->r.arena, x->r.mem);
    sigs_init(&x->r.sigs, x->r.mem);
    tuck_status st = mem_guard_two(&x->report->mem, x->r.mem, do_run, x) ? x->status : TUCK_ENOMEM;
    sigs_destroy(&x->r.sigs);
    arena_destroy(&x->r.arena);
    return st;
}

tuck_status tuck_pipeline_run_part(const tuck_pipeline *p, const int64_t *words, size_t n_words,
                                   size_t n_graph, const tuck_allocator *alloc, int64_t *moves,
                                   size_t *n_moves_out, tuck_report **report_out)
{
    if (p == NULL || words == NULL || moves == NULL || n_moves_out == NULL || report_out == NULL ||
        n_graph >= UINT32_MAX)
        return TUCK_EINVAL;
    struct part x = {.step = only_step(p),
                     .word = words,
                     .end = words + n_words,
                     .n_graph = n_graph,
                     .moves = moves};
    *report_out = NULL;
    if (x.step == NULL)
        return TUCK_OK;
    tuck_status st = run(&x, alloc);
    if (st == TUCK_OK && x.enough) {
        *n_moves_out = x.n_moves;
        *report_out = x.report;
    } else {
        tuck_report_free(x.report);
    }
    graph_free(x.r.g);
    if (x.store != NULL)
        store_release(x.store);
    return st;
}

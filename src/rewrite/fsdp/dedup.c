/* dedup_fsdp_reduce_scatter: a reduce-scatter is linear, so the sum of two of them equals
 * one reduce-scatter of the sum.
 *
 *   wait(reduce_scatter(a, …)) + wait(reduce_scatter(b, …))   →   wait(reduce_scatter(a + b, …))
 *
 * A weight that several layers share produces such pairs, or trees of them. Operands come before
 * their sum, so one walk in order reaches the fixpoint. The merged collective goes where the second
 * of the two was, its wait where the second wait was.
 */
#include <stdio.h>

#include "base/csr.h"
#include "rewrite/fsdp/fsdp_passes.h"
#include "infer/infer.h"
#include "rewrite/build.h"
#include "rewrite/comm_order.h"

struct dedup_options {
    int compat; /* 1 means torch */
};

static const struct pass_option dedup_options[] = {
    {"compat", PASS_CHOICE, offsetof(struct dedup_options, compat), "none", "none|torch",
     "torch: the new nodes go where the sum was; sizes and alpha are not checked"},
};

struct member { /* a reduce-scatter of the input graph that was merged */
    const char *name;
    uint32_t next; /* index in `member` plus 1 */
};

struct merged {
    uint32_t scatter;               /* 0 if it was itself merged into another */
    uint32_t first, last, n_member; /* indices in `member` plus 1 */
    type_id type;                   /* of its operand; needed because a new node has no type yet */
};

struct write {
    uint32_t storage, place;
};

struct dedup {
    struct pass_run *r;
    bool torch;
    uint32_t add, wait, scatter, resize;
    struct storages s;
    uint32_t n_old;          /* nodes from this id on are new: nothing writes their results */
    uint32_t *place;         /* by node: its position; a new node takes over an old one's */
    uint32_t *stands_for;    /* by node: the original collective whose position it has */
    uint32_t *made;          /* by node: index in `merged` plus 1 */
    bool *told;              /* by node: the reason why it was left is reported */
    uint32_t *region;        /* by node: number of writes before it, the way torch counts them */
    VEC(struct write) write; /* in order of the graph, then by storage */
    uint32_t *write_start;   /* by storage */
    VEC(struct merged) merged;
    VEC(struct member) member;
    uint32_t at; /* position of the current node */
};

/* wait(reduce_scatter(input)) */
struct side {
    uint32_t wait, scatter, input;
};

struct pair {
    uint32_t sum;
    struct side side[2]; /* the two operands of the sum */
};

/* ---- writes ---- */

static void note_write(void *ctx, uint32_t storage, enum access how)
{
    struct dedup *x = ctx;

    if (how == ACCESS_WRITE)
        vec_push_in(&x->r->arena, &x->write, ((struct write){storage, x->at}));
}

/* By storage, and by position within each: a counting sort keeps the order. */
static void sort_writes(struct dedup *x)
{
    struct arena *a = &x->r->arena;
    uint32_t n = x->s.n + 1;
    uint32_t *start = csr_begin(a, n);
    struct write *sorted = arena_array(a, struct write, x->write.len);

    for (uint32_t i = 0; i < x->write.len; i++)
        csr_count(start, x->write.at[i].storage);
    csr_sum(start, n);
    for (uint32_t i = 0; i < x->write.len; i++)
        sorted[csr_place(start, x->write.at[i].storage)] = x->write.at[i];
    x->write.at = sorted;
    x->write_start = start;
}

/* Is the value written after `from` and before `to`? */
static bool written_between(const struct dedup *x, uint32_t value, uint32_t from, uint32_t to)
{
    uint32_t storage = value < x->n_old ? storage_of(&x->s, value, 0) : 0;

    if (storage == 0)
        return false;
    uint32_t lo = x->write_start[storage], hi = x->write_start[storage + 1], end = hi;
    while (lo < hi) { /* the first write after `from` */
        uint32_t mid = lo + (hi - lo) / 2;
        if (x->write.at[mid].place > from)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo < end && x->write.at[lo].place < to;
}

/* ---- matching ---- */

static bool side_of(const struct dedup *x, uint32_t wait, struct side *out)
{
    const tuck_graph *g = x->r->g;

    if (wait == 0 || !fsdp_is(g, wait, x->wait))
        return false;
    out->wait = wait;
    out->scatter = fsdp_node_operand(x->r, wait, "tensor");
    if (out->scatter == 0 || !fsdp_is(g, out->scatter, x->scatter))
        return false;
    out->input = fsdp_node_operand(x->r, out->scatter, "input");
    return out->input != 0;
}

static bool same_operand(const struct dedup *x, const struct pair *p, const char *name)
{
    const tuck_value *v = fsdp_operand(x->r, p->side[0].scatter, name);
    const tuck_value *w = fsdp_operand(x->r, p->side[1].scatter, name);

    if (v == NULL || w == NULL || v->kind != w->kind || value_is_container(v))
        return false;
    return v->kind == TUCK_V_INT ? v->u.i == w->u.i : v->a == w->a;
}

static bool linear(const struct dedup *x, uint32_t scatter)
{
    const tuck_graph *g = x->r->g;
    const tuck_value *v = fsdp_operand(x->r, scatter, "reduce_op");

    if (v == NULL || v->kind != TUCK_V_STR)
        return false;
    const char *s = graph_str(g, v->a);
    return strcmp(s, "sum") == 0 || strcmp(s, "avg") == 0;
}

static type_id input_type(const struct dedup *x, const struct side *s)
{
    uint32_t made = x->made[s->scatter];

    return made ? x->merged.at[made - 1].type : node_type(x->r->g, s->input);
}

static bool same_types(const struct dedup *x, const struct pair *p)
{
    const struct typetab *t = &x->r->g->store->type;
    const struct type *a = type_at(t, input_type(x, &p->side[0]));
    const struct type *b = type_at(t, input_type(x, &p->side[1]));

    if (a->kind != TYPE_TENSOR || b->kind != TYPE_TENSOR || a->dtype != b->dtype)
        return false;
    if (x->torch)
        return true;
    for (uint32_t i = 0; i < a->n && a->n == b->n; i++)
        if (a->size[i] != b->size[i])
            return false;
    return a->n == b->n;
}

static bool used_by_us(struct dedup *x, uint32_t n, uint32_t times)
{
    return node_at(x->r->g, n)->n_uses == times && build_may_erase(x->r, n);
}

/* One reduce-scatter added to itself: merging gains nothing. */
static bool itself(const struct pair *p)
{
    return p->side[0].wait == p->side[1].wait;
}

static uint32_t later(const struct dedup *x, uint32_t a, uint32_t b)
{
    return x->place[a] > x->place[b] ? a : b;
}

/* torch's pattern matcher only matches patterns without any write in between. */
static bool within_region(const struct dedup *x, const struct pair *p)
{
    uint32_t region = x->region[p->sum];

    for (int i = 0; i < 2; i++)
        if (x->region[p->side[i].wait] != region || x->region[p->side[i].scatter] != region)
            return false;
    return true;
}

/* Is there a fence between the two or, if the whole sequence must be kept, a collective of another
 * group? */
static bool passes_others(const struct dedup *x, const struct pair *p)
{
    const struct comm_places *c = x->r->places;
    uint32_t a = x->stands_for[p->side[0].scatter], b = x->stands_for[p->side[1].scatter];

    return comm_fence_between(c, a, b) || (x->r->keep_order && comm_others_between(c, a, b));
}

/* May the two be merged? LEFT_END if so. */
static enum left_reason judge(struct dedup *x, const struct pair *p)
{
    const tuck_value *alpha = fsdp_operand(x->r, p->sum, "alpha");
    const struct side *s = p->side;

    /* torch ignores the factor alpha of the sum, and merges a collective with itself. */
    bool plain = alpha == NULL || (alpha->kind == TUCK_V_INT && alpha->u.i == 1);
    if (!x->torch && (!plain || itself(p)))
        return LEFT_PATTERN;
    for (int i = 0; i < 2; i++)
        if (!linear(x, s[i].scatter) || !used_by_us(x, s[i].scatter, 1) ||
            !used_by_us(x, s[i].wait, itself(p) ? 2 : 1))
            return LEFT_PATTERN;
    if (!build_may_erase(x->r, p->sum))
        return LEFT_PATTERN;
    if (!same_operand(x, p, "reduce_op") || !same_operand(x, p, "group_size") ||
        !same_operand(x, p, "group_name") || !same_types(x, p))
        return LEFT_KEY;
    if (x->torch && !within_region(x, p))
        return LEFT_MUTATED;
    if (!x->torch && passes_others(x, p))
        return LEFT_ORDER;
    uint32_t to = x->place[x->torch ? p->sum : later(x, s[0].scatter, s[1].scatter)];
    for (int i = 0; i < 2; i++)
        if (written_between(x, s[i].input, x->place[s[i].scatter], to))
            return LEFT_MUTATED;
    return LEFT_END;
}

/* ---- rewriting ---- */

/* The reduce-scatters that were merged into this one; just itself if it is an original. */
static struct merged parts_of(struct dedup *x, uint32_t scatter)
{
    if (x->made[scatter] != 0) {
        struct merged m = x->merged.at[x->made[scatter] - 1];
        x->merged.at[x->made[scatter] - 1].scatter = 0;
        return m;
    }
    struct member one = {.name = report_name(x->r->report, x->r->g, scatter)};
    vec_push_in(&x->r->arena, &x->member, one);
    return (struct merged){.first = x->member.len, .last = x->member.len, .n_member = 1};
}

static void note_merged(struct dedup *x, const struct pair *p, uint32_t scatter)
{
    type_id type = input_type(x, &p->side[0]);
    struct merged a = parts_of(x, p->side[0].scatter);

    if (!itself(p)) {
        struct merged b = parts_of(x, p->side[1].scatter);
        x->member.at[a.last - 1].next = b.first;
        a.last = b.last;
        a.n_member += b.n_member;
    }
    a.scatter = scatter;
    a.type = type;
    vec_push_in(&x->r->arena, &x->merged, a);
    x->made[scatter] = x->merged.len;
}

static void merge(struct dedup *x, const struct pair *p)
{
    struct pass_run *r = x->r;
    const struct side *s = p->side;
    uint32_t old = s[0].scatter;
    uint32_t at = x->torch ? p->sum : later(x, s[0].scatter, s[1].scatter);
    uint32_t wait_at = x->torch ? p->sum : later(x, s[0].wait, s[1].wait);
    struct build b = build_at(r, at);

    build_call(&b, "aten.add.Tensor");
    build_node(&b, s[0].input);
    build_node(&b, s[1].input);
    uint32_t sum = build_end(&b, "add");
    build_call(&b, "_c10d_functional.reduce_scatter_tensor.default");
    build_node(&b, sum);
    build_value(&b, fsdp_operand(x->r, old, "reduce_op"));
    build_value(&b, fsdp_operand(x->r, old, "group_size"));
    build_value(&b, fsdp_operand(x->r, old, "group_name"));
    uint32_t scatter = build_end(&b, "reduce_scatter_tensor");
    b = build_at(r, wait_at);
    build_call(&b, "_c10d_functional.wait_tensor.default");
    build_node(&b, scatter);
    uint32_t wait = build_end(&b, "wait_tensor");
    uint32_t one = x->stands_for[s[0].scatter], other = x->stands_for[s[1].scatter];
    r->crossed |= comm_others_between(r->places, one, other);
    x->stands_for[scatter] = later(x, one, other);
    x->place[scatter] = x->place[at];
    x->place[wait] = x->place[wait_at];
    x->region[sum] = x->region[scatter] = x->region[wait] = x->region[p->sum];
    note_merged(x, p, scatter);
    build_replace(r, p->sum, wait);
    build_erase(r, p->sum);
    for (int i = itself(p); i < 2; i++) {
        build_erase(r, s[i].wait);
        build_erase(r, s[i].scatter);
    }
}

/* ---- the walk ---- */

/* Does its schema declare a write? */
static bool torch_sees_write(struct dedup *x, uint32_t n)
{
    const struct op_sig *sig = sigs_get(&x->r->sigs, node_op(x->r->g, n));

    for (uint32_t i = 0; sig != NULL && i < sig->n_params; i++)
        if (sig->params[i].mutated)
            return true;
    return fsdp_is(x->r->g, n, x->resize); /* its schema declares none, but it does write */
}

static void prepare(struct dedup *x)
{
    tuck_graph *g = x->r->g;
    struct arena *a = &x->r->arena;
    size_t room = g->node.len;

    for_each_node (g, n)
        if (fsdp_is(g, n, x->scatter))
            room += 3; /* each merge removes one and makes three nodes */
    x->n_old = g->node.len;
    x->place = arena_zeroed(a, room * sizeof(*x->place));
    x->made = arena_zeroed(a, room * sizeof(*x->made));
    x->stands_for = arena_array(a, uint32_t, room);
    for (uint32_t n = 0; n < x->n_old; n++)
        x->stands_for[n] = n;
    comm_places(x->r);
    x->told = arena_zeroed(a, room * sizeof(*x->told));
    x->region = arena_zeroed(a, room * sizeof(*x->region));
    storages_build(g, a, &x->s);
    uint32_t writes = 0;
    for_each_node (g, n) {
        x->region[n] = writes += torch_sees_write(x, n);
        x->place[n] = ++x->at;
        storage_accesses(&x->s, n, note_write, x);
    }
    sort_writes(x);
}

static void tell_left(struct dedup *x, const struct pair *p, enum left_reason why)
{
    for (int i = 0; i < 2; i++) {
        uint32_t n = p->side[i].scatter;
        if (!x->told[n])
            report_left(x->r->report, x->r->g, n, why);
        x->told[n] = true;
    }
}

static void tell_one(struct dedup *x, const struct merged *m)
{
    const tuck_graph *g = x->r->g;
    const struct type *t = type_at(&g->store->type, m->type);
    const tuck_value *group = fsdp_operand(x->r, m->scatter, "group_name");
    const tuck_value *op = fsdp_operand(x->r, m->scatter, "reduce_op");
    char key[32];
    struct report_bucket b = {.kind = "reduce_scatter",
                              .key = key,
                              .n_member = m->n_member,
                              .closed_by = CLOSED_END,
                              .result = report_name(x->r->report, g, m->scatter)};

    snprintf(key, sizeof(key), "%s %s", graph_str(g, op->a), dtype_at((enum dtype)t->dtype)->abbr);
    b.group = group->kind == TUCK_V_STR    ? graph_str(g, group->a)
              : group->kind == TUCK_V_NODE ? graph_str(g, node_at(g, group->a)->name)
                                           : "";
    if (!assume_bytes(&x->r->assume, m->type, &b.bytes))
        b.bytes = 0;
    b.member = arena_array(&x->r->arena, const char *, m->n_member);
    for (uint32_t n = 0, k = m->first; n < m->n_member; k = x->member.at[k - 1].next)
        b.member[n++] = x->member.at[k - 1].name;
    report_bucket(x->r->report, &b);
}

static tuck_status run(struct pass_run *r, const void *options)
{
    const struct dedup_options *o = options;
    struct dedup x = {.r = r,
                      .torch = o->compat == 1,
                      .add = fsdp_row("aten.add.Tensor"),
                      .wait = fsdp_row("_c10d_functional.wait_tensor.default"),
                      .scatter = fsdp_row("_c10d_functional.reduce_scatter_tensor.default"),
                      .resize = fsdp_row("inductor.resize_storage_bytes_.default")};
    tuck_graph *g = r->g;
    uint32_t next;

    prepare(&x);
    for (uint32_t n = g->node.at[0].next; n != 0; n = next) {
        struct pair p = {.sum = n};

        next = node_at(g, n)->next;
        if (!fsdp_is(g, n, x.add) || !side_of(&x, fsdp_node_operand(r, n, "self"), &p.side[0]) ||
            !side_of(&x, fsdp_node_operand(r, n, "other"), &p.side[1]))
            continue;
        enum left_reason why = judge(&x, &p);
        if (why == LEFT_END)
            merge(&x, &p);
        else
            tell_left(&x, &p, why);
    }
    for (uint32_t i = 0; i < x.merged.len; i++)
        if (x.merged.at[i].scatter != 0)
            tell_one(&x, &x.merged.at[i]);
    return TUCK_OK;
}

const struct pass pass_dedup_fsdp_reduce_scatter = {
    .name = "dedup_fsdp_reduce_scatter",
    .help = "replace the sum of two reduce-scatters by one reduce-scatter of the sum",
    .needs = PASS_TYPES,
    .options = PASS_OPTIONS(dedup_options),
    .options_size = sizeof(struct dedup_options),
    .on_graph = run,
};

/* Recognizes all-reduces of DDP gradients: divided by the group size or summed unchanged, waited
 * for once, and used only by the return or by the copy_ into the tensor that keeps the gradient. */
#include <strings.h>

#include "rewrite/ddp/block.h"
#include "rewrite/ddp/ddp.h"
#include "infer/infer.h"
#include "graph/storage.h"
#include "rewrite/build.h"
#include "rewrite/comm_order.h"

struct filter {
    struct ddp *d;
    uint32_t div, copy; /* rows of the operators it looks for */
    struct block_room room;
    struct storages storage; /* built when the first in-place collective is found */
    uint32_t *n_sharing;     /* by storage: number of results in it */
};

/* ---- keys ---- */

struct key {
    uint64_t part[8];
};

struct keys {
    struct arena *a;
    VEC(struct key) all;
    uint32_t *slot; /* open addressing; key number, from 1 */
    uint32_t n_slot;
};

static uint64_t key_hash(const struct key *k)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (size_t i = 0; i < sizeof(k->part) / sizeof(*k->part); i++) {
        h = (h ^ k->part[i]) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h;
}

static uint32_t *key_slot(const struct keys *t, const struct key *k)
{
    uint32_t i = (uint32_t)key_hash(k) & (t->n_slot - 1);

    while (t->slot[i] != 0 && memcmp(&t->all.at[t->slot[i] - 1], k, sizeof(*k)) != 0)
        i = (i + 1) & (t->n_slot - 1);
    return &t->slot[i];
}

static uint32_t key_number(struct keys *t, const struct key *k)
{
    if ((t->all.len + 1) * 2 > t->n_slot) {
        t->n_slot = t->n_slot ? t->n_slot * 2 : 16;
        t->slot = arena_zeroed(t->a, t->n_slot * sizeof(*t->slot));
        for (uint32_t i = 0; i < t->all.len; i++)
            *key_slot(t, &t->all.at[i]) = i + 1;
    }
    uint32_t *slot = key_slot(t, k);
    if (*slot == 0) {
        vec_push_in(t->a, &t->all, *k);
        *slot = t->all.len;
    }
    return *slot - 1;
}

static const struct type *type_of(const struct ddp *d, uint32_t n)
{
    return type_at(&d->r->g->store->type, node_type(d->r->g, n));
}

/* What the members of one bucket have in common. */
static struct key key_of(const struct ddp *d, const struct candidate *c)
{
    const struct type *t = type_of(d, c->operand);
    struct key k = {{c->group->kind, c->group->a, c->op->a, t->dtype, t->device,
                     type_of(d, c->gradient)->dtype}};

    if (c->divisor != NULL) {
        k.part[6] = c->divisor->kind;
        k.part[7] = c->divisor->kind == TUCK_V_NODE ? c->divisor->a : c->divisor->u.w;
    }
    return k;
}

/* ---- one all-reduce ---- */

/* x / y where y can also divide several x at once: a number. */
static bool divides_by_number(const struct ddp *d, const tuck_value *by)
{
    return by->kind == TUCK_V_INT || by->kind == TUCK_V_FLOAT ||
           (by->kind == TUCK_V_NODE && type_of(d, by->a)->kind == TYPE_SYM);
}

static void find_division(struct filter *f, struct candidate *c)
{
    struct pass_run *r = f->d->r;

    c->gradient = c->operand;
    c->reader = c->collective;
    if (node_op(r->g, c->operand) != f->div)
        return;
    const tuck_value *x = comm_operand(r->g, &r->sigs, c->operand, "self");
    const tuck_value *by = comm_operand(r->g, &r->sigs, c->operand, "other");
    if (x == NULL || by == NULL || x->kind != TUCK_V_NODE)
        return;
    if (!f->d->torch && !divides_by_number(f->d, by))
        return;
    c->gradient = x->a;
    c->reader = c->operand;
    c->divisor = by;
}

/* Is the only user the return, or a copy_ that reads the result? */
static bool user_is_fine(const struct filter *f, const struct candidate *c)
{
    struct pass_run *r = f->d->r;
    const tuck_graph *g = r->g;

    if (c->user == 0)
        return false;
    if (c->user == g->output)
        return true;
    if (node_op(g, c->user) != f->copy)
        return false;
    const tuck_value *into = comm_operand(g, &r->sigs, c->user, "self");
    return f->d->torch || (into != NULL && (into->kind != TUCK_V_NODE || into->a != c->wait));
}

static bool is_word(const tuck_graph *g, const tuck_value *v, const char *word)
{
    return v->kind == TUCK_V_STR && strcasecmp(graph_str(g, v->a), word) == 0;
}

static void count_sharing(struct filter *f)
{
    struct arena *a = &f->d->r->arena;
    struct storages *s = &f->storage;

    storages_build(f->d->r->g, a, s);
    f->n_sharing = arena_zeroed(a, ((size_t)s->n + 1) * sizeof(*f->n_sharing));
    for_each_node (f->d->r->g, n)
        for (uint32_t k = 0; k < s->count[n]; k++)
            f->n_sharing[storage_of(s, n, k)]++;
}

/* Works in place, but nobody can see it: the operand is made for the collective alone, and its
 * storage has no names other than operand, result and wait. */
static bool writes_unseen(struct filter *f, const struct candidate *c)
{
    const tuck_graph *g = f->d->r->g;
    uint8_t kind = node_at(g, c->operand)->kind;

    if (f->n_sharing == NULL)
        count_sharing(f);
    return (kind == TUCK_CALL_FUNCTION || kind == TUCK_CALL_METHOD) &&
           node_at(g, c->operand)->n_uses == 1 &&
           f->n_sharing[storage_of(&f->storage, c->operand, 0)] == 3;
}

static bool symbol_missing(struct ddp *d, const struct type *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        int64_t size;
        if (!assume_value(&d->r->assume, t->size[i], &size))
            return true;
    }
    return false;
}

static enum left_reason judge_type(struct ddp *d, struct candidate *c)
{
    const struct type *t = type_of(d, c->operand), *x = type_of(d, c->gradient);

    if (t->kind != TYPE_TENSOR || x->kind != TYPE_TENSOR || t->dtype == DTYPE_NONE ||
        x->dtype == DTYPE_NONE)
        return LEFT_UNKNOWN_TYPE;
    if (symbol_missing(d, t))
        return LEFT_UNHINTED;
    return assume_bytes(&d->r->assume, node_type(d->r->g, c->operand), &c->bytes)
               ? LEFT_END
               : LEFT_UNKNOWN_TYPE;
}

static enum left_reason judge(struct filter *f, const struct comm_block *b, struct candidate *c)
{
    struct ddp *d = f->d;
    struct pass_run *r = d->r;
    const tuck_graph *g = r->g;
    const tuck_value *input = comm_operand(g, &r->sigs, c->collective, "input");

    if (b->first_wait != 1)
        return LEFT_WAITS;
    c->wait = b->node[1];
    c->op = comm_operand(g, &r->sigs, c->collective, "reduce_op");
    c->group = comm_operand(g, &r->sigs, c->collective, "group_name");
    if (input == NULL || input->kind != TUCK_V_NODE || c->op == NULL || c->group == NULL)
        return LEFT_PATTERN;
    c->operand = input->a;
    find_division(f, c);
    if (d->torch && c->divisor == NULL)
        return LEFT_FILTERED;
    if (c->divisor == NULL && !is_word(g, c->op, "sum") && !is_word(g, c->op, "avg"))
        return LEFT_FILTERED;
    c->user = block_only_user(g, c->wait);
    if (!user_is_fine(f, c))
        return LEFT_USERS;
    enum left_reason why = judge_type(d, c);
    if (why != LEFT_END || d->torch)
        return why;
    int32_t group = d->group[c->collective];
    if (group >= 0 && g->group.at[group].size == 1)
        return LEFT_GROUP_OF_ONE;
    if (c->in_place && !writes_unseen(f, c))
        return LEFT_MUTATED;
    if (!build_may_erase(r, c->collective) || !build_may_erase(r, c->wait))
        return LEFT_PATTERN;
    return LEFT_END;
}

tuck_status ddp_find(struct ddp *d)
{
    struct pass_run *r = d->r;
    const tuck_graph *g = r->g;
    struct filter f = {.d = d,
                       .div = op_find("aten.div.Tensor", 15),
                       .copy = op_find("aten.copy_.default", 18),
                       .room = block_room(r)};
    struct keys keys = {.a = &r->arena};

    d->cand_of = arena_zeroed(&r->arena, g->node.len * sizeof(*d->cand_of));
    for_each_node (g, n) {
        struct candidate c = {.collective = n};
        struct comm_block b;

        if (!block_is_plain_all_reduce(r, n, &c.in_place))
            continue;
        enum left_reason why = comm_block(r, n, d->torch, &f.room, &b);
        if (why == LEFT_NO_WAIT && d->torch)
            return pass_fail(r, n,
                             "compat=torch: PyTorch raises StopIteration, because '%s' is not used",
                             graph_str(g, node_at(g, n)->name));
        c.why = why == LEFT_END ? judge(&f, &b, &c) : why;
        if (c.why == LEFT_END) {
            struct key k = key_of(d, &c);
            c.key = key_number(&keys, &k);
        }
        vec_push_in(&r->arena, &d->cand, c);
        d->cand_of[n] = d->cand.len;
    }
    d->n_key = keys.all.len;
    return TUCK_OK;
}

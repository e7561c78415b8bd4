/* remove_fsdp2_unsharded_param_graph_input_usage: FSDP2 passes unsharded parameters as inputs
 * without storage, gives them storage, copies the gathered values in, and frees the storage again.
 *
 *   resize_storage_bytes_(p, full)
 *   fsdp.copy_(p, y)
 *   … p …                                        →    … y …
 *   resize_storage_bytes_(p, 0)
 *
 * A layer that is used again has several such rounds; each use gets the y of its round. Resizes and
 * copies are removed. A return of p is left alone: it returns the input itself.
 *
 * One walk checks for each parameter whether this is safe, a second one rewrites.
 */
#include "rewrite/fsdp/fsdp_passes.h"
#include "infer/infer.h"
#include "rewrite/build.h"
#include "rewrite/place.h"

/* A placeholder that fsdp.copy_ writes. */
struct param {
    uint32_t node;
    uint32_t n_full, n_zero; /* number of resizes so far */
    bool backwards;          /* its storage was removed before it was allocated */
    uint32_t copy;           /* the last fsdp.copy_ so far, 0 = none yet */
    uint32_t with;           /* the value that it copied */
    uint32_t at;             /* position of that copy */
    uint32_t n_copy;
    bool refused;
    enum left_reason why;
};

struct unshard {
    struct pass_run *r;
    uint32_t copy, resize;
    struct storages s;
    VEC(struct param) param;
    uint32_t *param_of;  /* by node: index in `param` plus 1 */
    uint32_t *owner;     /* by storage of a parameter: index in `param` plus 1 */
    uint32_t *made;      /* by node that shares a parameter's storage: its round, from 1 */
    uint32_t *written;   /* by storage: position of the last write */
    const bool *watched; /* by node, see place_watched() */
    uint32_t node, place;
    tuck_status status;
};

static void refuse(struct param *p, enum left_reason why)
{
    if (!p->refused)
        p->why = why;
    p->refused = true;
}

/* The parameter that a resize or copy is for, or NULL. */
static struct param *param_at(struct unshard *x, uint32_t n, const char *operand)
{
    uint32_t p = fsdp_node_operand(x->r, n, operand);

    return p != 0 && x->param_of[p] != 0 ? &x->param.at[x->param_of[p] - 1] : NULL;
}

static void find_params(struct unshard *x)
{
    const tuck_graph *g = x->r->g;

    for_each_node (g, n) {
        if (!fsdp_is(g, n, x->copy))
            continue;
        uint32_t p = fsdp_node_operand(x->r, n, "tensor");
        if (p == 0 || node_at(g, p)->kind != TUCK_PLACEHOLDER) {
            report_left(x->r->report, g, n, LEFT_PATTERN);
        } else if (x->param_of[p] == 0) {
            struct param row = {.node = p};
            vec_push_in(&x->r->arena, &x->param, row);
            x->param_of[p] = x->param.len;
        }
    }
    storages_build(g, &x->r->arena, &x->s);
    x->owner = arena_zeroed(&x->r->arena, ((size_t)x->s.n + 1) * sizeof(*x->owner));
    x->written = arena_zeroed(&x->r->arena, ((size_t)x->s.n + 1) * sizeof(*x->written));
    x->watched = x->param.len > 0 ? place_watched(x->r) : NULL;
    for (uint32_t i = 0; i < x->param.len; i++) {
        uint32_t storage = storage_of(&x->s, x->param.at[i].node, 0);

        if (x->watched != NULL && x->watched[x->param.at[i].node])
            refuse(&x->param.at[i], LEFT_LAYOUT);
        if (storage == 0 || x->owner[storage] != 0)
            refuse(&x->param.at[i], LEFT_SHARED);
        if (storage != 0 && x->owner[storage] != 0)
            refuse(&x->param.at[x->owner[storage] - 1], LEFT_SHARED);
        x->owner[storage] = i + 1;
    }
}

/* ---- is it safe? ---- */

/* May y replace p: the same dtype, sizes and strides, as far as known? */
static bool same_type(const tuck_graph *g, uint32_t p, uint32_t y)
{
    const struct type *a = type_at(&g->store->type, node_type(g, p));
    const struct type *b = type_at(&g->store->type, node_type(g, y));

    if (a->kind == TYPE_UNKNOWN || b->kind == TYPE_UNKNOWN)
        return true;
    if (a->kind != TYPE_TENSOR || b->kind != TYPE_TENSOR || a->dtype != b->dtype || a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->size[i] != b->size[i] || (a->strided && b->strided && a->stride[i] != b->stride[i]))
            return false;
    return a->device == b->device || a->device == 0 || b->device == 0;
}

static void meet_resize(struct unshard *x, uint32_t n, struct param *p)
{
    const tuck_value *size = fsdp_operand(x->r, n, "new_size");
    bool zero = size != NULL && size->kind == TUCK_V_INT && size->u.i == 0;

    p->n_full += !zero;
    p->n_zero += zero;
    p->backwards |= p->n_zero > p->n_full;
    x->written[storage_of(&x->s, p->node, 0)] = x->place;
    if (p->backwards || node_at(x->r->g, n)->n_uses > 0)
        refuse(p, LEFT_PATTERN);
}

/* Do the resizes alternate (full, 0), at least once, and nothing else? */
static bool in_rounds(const struct param *p)
{
    return p->n_full > 0 && p->n_full == p->n_zero && !p->backwards;
}

static void meet_copy(struct unshard *x, uint32_t n, struct param *p)
{
    const tuck_graph *g = x->r->g;

    p->copy = n;
    p->with = fsdp_node_operand(x->r, n, "data");
    p->at = x->place;
    p->n_copy++;
    x->written[storage_of(&x->s, p->node, 0)] = x->place;
    /* No storage, no value, or its result is used: not the pattern of FSDP2. */
    if (p->n_full == p->n_zero || p->with == 0 || node_at(g, n)->n_uses > 0 ||
        storage_of(&x->s, p->with, 0) == storage_of(&x->s, p->node, 0) ||
        !same_type(g, p->node, p->with))
        refuse(p, LEFT_PATTERN);
}

static void note_write(void *ctx, uint32_t storage, enum access how)
{
    struct unshard *x = ctx;

    if (how == ACCESS_WRITE)
        x->written[storage] = x->place;
}

static void meet_access(void *ctx, uint32_t storage, enum access how)
{
    struct unshard *x = ctx;
    struct param *p = x->owner[storage] ? &x->param.at[x->owner[storage] - 1] : NULL;

    if (p == NULL || node_at(x->r->g, x->node)->kind == TUCK_OUTPUT)
        return;
    if (how == ACCESS_WRITE && node_is_barrier(x->r->g, x->node))
        refuse(p, LEFT_MUTATED); /* it may or may not write */
    else if (p->copy == 0 || p->n_full == p->n_zero)
        refuse(p, LEFT_PATTERN); /* it has no storage to read or write */
    else if (p->with != 0 && x->written[storage_of(&x->s, p->with, 0)] > p->at)
        refuse(p, LEFT_MUTATED); /* y has changed since it was copied */
}

/* Values that share a parameter's storage: uses of the parameter itself get the y of this round,
 * uses of a view get the y of the round in which the view was made. */
static void meet_operands(struct unshard *x, uint32_t n)
{
    const tuck_graph *g = x->r->g;
    const struct fx_node *y = node_at(g, n);

    for (uint32_t i = 0; i < y->n_vals; i++) {
        uint32_t d = y->vals[i].kind == TUCK_V_NODE ? y->vals[i].a : 0, k = 0, end = 0;
        if (d != 0)
            storage_mentions(&x->s, n, i, &k, &end);
        for (; k < end; k++) {
            uint32_t owner = x->owner[storage_of(&x->s, d, k)];
            struct param *p = owner ? &x->param.at[owner - 1] : NULL;

            if (p != NULL && d != p->node && (x->made[d] != p->n_copy || y->kind == TUCK_OUTPUT))
                refuse(p, LEFT_SHARED);
        }
    }
    for (uint32_t k = 0; k < x->s.count[n]; k++) {
        uint32_t owner = x->owner[storage_of(&x->s, n, k)];
        if (owner != 0 && x->param.at[owner - 1].copy != 0)
            x->made[n] = x->param.at[owner - 1].n_copy;
    }
}

static void look(struct unshard *x)
{
    const tuck_graph *g = x->r->g;

    for_each_node (g, n) {
        bool copy = fsdp_is(g, n, x->copy), resize = fsdp_is(g, n, x->resize);
        struct param *p = copy     ? param_at(x, n, "tensor")
                          : resize ? param_at(x, n, "variable")
                                   : NULL;

        x->node = n;
        x->place++;
        if (p != NULL && copy) {
            meet_copy(x, n, p);
            if (p->with != 0) /* it may be another parameter */
                meet_access(x, storage_of(&x->s, p->with, 0), ACCESS_READ);
        } else if (p != NULL) {
            meet_resize(x, n, p);
        } else {
            storage_accesses(&x->s, n, note_write, x);
            storage_accesses(&x->s, n, meet_access, x);
            meet_operands(x, n);
        }
    }
    for (uint32_t i = 0; i < x->param.len; i++)
        if (!in_rounds(&x->param.at[i]))
            refuse(&x->param.at[i], LEFT_PATTERN);
}

/* ---- what users must not do ---- */

static void meet_user_write(void *ctx, uint32_t storage, enum access how)
{
    struct unshard *x = ctx;
    const tuck_graph *g = x->r->g;
    const struct param *p = x->owner[storage] ? &x->param.at[x->owner[storage] - 1] : NULL;

    if (how != ACCESS_WRITE || p == NULL || x->status != TUCK_OK || !in_rounds(p))
        return;
    x->status = pass_fail(
        x->r, x->node, "'%s' writes the unsharded parameter '%s', whose values FSDP2 throws away",
        graph_str(g, node_at(g, x->node)->name), graph_str(g, node_at(g, p->node)->name));
}

static tuck_status check_user(struct unshard *x)
{
    const tuck_graph *g = x->r->g;

    for_each_node (g, n) {
        if (!node_may_write(g, n) || node_is_barrier(g, n) || fsdp_is(g, n, x->copy) ||
            fsdp_is(g, n, x->resize))
            continue;
        x->node = n;
        storage_accesses(&x->s, n, meet_user_write, x);
    }
    return x->status;
}

/* ---- rewriting ---- */

/* What replaces n now: a parameter's current y, or n itself. */
static uint32_t current(const struct unshard *x, uint32_t n)
{
    const struct param *p = x->param_of[n] ? &x->param.at[x->param_of[n] - 1] : NULL;

    return p != NULL && !p->refused && p->with != 0 ? p->with : n;
}

static void rewrite(struct unshard *x)
{
    tuck_graph *g = x->r->g;
    int64_t resizes = 0, copies = 0, uses = 0;
    uint32_t next;

    for (uint32_t i = 0; i < x->param.len; i++)
        x->param.at[i].with = 0;
    for (uint32_t n = g->node.at[0].next; n != 0; n = next) {
        bool copy = fsdp_is(g, n, x->copy), resize = fsdp_is(g, n, x->resize);
        struct param *own = copy     ? param_at(x, n, "tensor")
                            : resize ? param_at(x, n, "variable")
                                     : NULL;

        next = node_at(g, n)->next;
        if (own != NULL && !own->refused) {
            if (copy)
                own->with = current(x, fsdp_node_operand(x->r, n, "data"));
            copies += copy;
            resizes += resize;
            build_erase(x->r, n);
            continue;
        }
        for (uint32_t i = 0; n != g->output && i < node_at(g, n)->n_vals; i++) {
            const tuck_value *v = &node_at(g, n)->vals[i];
            uint32_t with = v->kind == TUCK_V_NODE ? current(x, v->a) : 0;

            if (with == 0 || with == v->a)
                continue;
            build_replace_in(x->r, n, i, with);
            uses++;
        }
    }
    report_count(x->r->report, "uses replaced", uses);
    report_count(x->r->report, "copies removed", copies);
    report_count(x->r->report, "resizes removed", resizes);
}

static tuck_status run(struct pass_run *r, const void *options)
{
    struct unshard x = {.r = r,
                        .copy = fsdp_row("fsdp.copy_.default"),
                        .resize = fsdp_row("inductor.resize_storage_bytes_.default")};

    (void)options;
    x.param_of = arena_zeroed(&r->arena, r->g->node.len * sizeof(*x.param_of));
    x.made = arena_zeroed(&r->arena, r->g->node.len * sizeof(*x.made));
    find_params(&x);
    look(&x);
    if (check_user(&x) != TUCK_OK)
        return x.status;
    for (uint32_t i = 0; i < x.param.len; i++)
        if (x.param.at[i].refused)
            report_left(r->report, r->g, x.param.at[i].node, x.param.at[i].why);
    rewrite(&x);
    return TUCK_OK;
}

const struct pass pass_remove_fsdp2_unsharded_param_graph_input_usage = {
    .name = "remove_fsdp2_unsharded_param_graph_input_usage",
    .help = "replace uses of inputs that FSDP2 fills temporarily by the gathered values",
    .needs = PASS_TYPES,
    .on_graph = run,
};

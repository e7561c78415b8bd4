/* Values: where each result of each node lies, with which sizes and strides. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lower/lower.h"
#include "run/exec_core.h"

/* ---- errors ---- */

static void put_error(struct exec *x, const char *name, const char *fmt, va_list ap)
{
    int n = name != NULL ? snprintf(x->error, sizeof(x->error), "%s: ", name) : 0;

    if (n >= 0 && (size_t)n < sizeof(x->error))
        vsnprintf(x->error + n, sizeof(x->error) - (size_t)n, fmt, ap);
    x->failed = true;
}

bool exec_fail(struct exec *x, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (!x->failed)
        put_error(x, NULL, fmt, ap);
    va_end(ap);
    return false;
}

bool exec_fail_at(struct exec *x, uint32_t node, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (!x->failed)
        put_error(x, graph_str(x->g, node_at(x->g, node)->name), fmt, ap);
    va_end(ap);
    return false;
}

/* ---- numbers ---- */

void exec_set_symbol(struct exec *x, const char *name, struct sym_num value)
{
    for (uint32_t i = 0; i < x->symbol.len; i++)
        if (strcmp(x->symbol.at[i].name, name) == 0) {
            x->symbol.at[i].value = value;
            return;
        }
    vec_push_in(&x->arena, &x->symbol, ((struct exec_number){name, value}));
}

bool exec_look_up(void *ctx, const char *name, struct sym_num *out)
{
    const struct exec *x = ctx;

    for (uint32_t i = 0; i < x->symbol.len; i++)
        if (strcmp(x->symbol.at[i].name, name) == 0) {
            *out = x->symbol.at[i].value;
            return true;
        }
    return !assume_is_unbacked(name) && strcmp(name, "*") != 0 && exec_look_up(ctx, "*", out);
}

enum exec_known exec_number_of(struct exec *x, sym_id v, struct sym_num *out)
{
    if (v == 0)
        return KNOWN_NEVER;
    switch (sym_eval(&x->g->store->sym, v, exec_look_up, x, out)) {
    case SYM_OK: return KNOWN;
    case SYM_UNBOUND: return x->preparing ? KNOWN_LATER : KNOWN_NEVER;
    default: return KNOWN_NEVER;
    }
}

static enum exec_known int_of(struct exec *x, sym_id v, int64_t *out)
{
    struct sym_num n;

    if (sym_as_int(&x->g->store->sym, v, out))
        return KNOWN;
    enum exec_known how = exec_number_of(x, v, &n);
    if (how == KNOWN && n.kind == SYM_T_FLOAT)
        return KNOWN_NEVER;
    *out = n.i;
    return how;
}

/* ---- tensors ---- */

enum exec_known exec_tensor_of(struct exec *x, type_id id, struct rt_tensor *t)
{
    const struct type *type = type_at(&x->g->store->type, id);
    int64_t dense = 1;

    if (type->kind != TYPE_TENSOR || type->n > RT_DIMS)
        return KNOWN_NEVER;
    t->data = NULL;
    t->dtype = type->dtype;
    t->n = (uint8_t)type->n;
    for (uint32_t i = type->n; i > 0; i--) {
        int64_t size, stride = dense;
        enum exec_known how = int_of(x, type->size[i - 1], &size);
        if (how == KNOWN && type->strided)
            how = int_of(x, type->stride[i - 1], &stride);
        if (how != KNOWN)
            return how;
        if (size < 0 || stride < 0 || stride > EXEC_MOST_BYTES ||
            !size_mul(dense, size > 0 ? size : 1, &dense) || dense > EXEC_MOST_BYTES)
            return KNOWN_NEVER;
        t->size[i - 1] = size;
        t->stride[i - 1] = stride;
    }
    return KNOWN;
}

int64_t exec_span(const struct rt_tensor *t)
{
    int64_t last = 0, bytes, elem = dtype_at((enum dtype)t->dtype)->bytes;

    for (uint32_t i = 0; i < t->n; i++) {
        int64_t more;
        if (t->size[i] == 0)
            return 0;
        if (!size_mul(t->size[i] - 1, t->stride[i], &more) || !size_add(last, more, &last))
            return INT64_MAX;
    }
    return size_add(last, 1, &last) && size_mul(last, elem, &bytes) ? bytes : INT64_MAX;
}

void exec_locate(struct exec *x, struct exec_value *v)
{
    const struct exec_place *p = &x->place.at[v->place];

    if (v->kind == EXEC_TENSOR)
        v->t.data = p->base != NULL ? p->base + v->at : NULL;
}

uint32_t exec_place_new(struct exec *x, int64_t bytes, enum exec_where where)
{
    struct exec_place p = {.bytes = bytes, .where = (uint8_t)where};

    vec_push_in(&x->arena, &x->place, p);
    return x->place.len - 1;
}

/* ---- operands ---- */

uint32_t exec_value_count(const struct exec *x, uint32_t n)
{
    return x->value_at[n + 1] - x->value_at[n];
}

struct exec_value *exec_operand(struct exec *x, const tuck_value *v)
{
    return v != NULL && v->kind == TUCK_V_NODE && exec_value_count(x, v->a) > 0
               ? &x->value[x->value_at[v->a]]
               : NULL;
}

const tuck_value *exec_param(struct exec *x, const struct fx_node *c, const char *name)
{
    const struct op_sig *sig = sigs_get(&x->sigs, c->op);
    int p = sig != NULL ? op_param_find(sig, name, strlen(name)) : -1;

    return p >= 0 ? call_operand(x->g, c, (uint32_t)p) : NULL;
}

static bool int_of_value(struct exec *x, const tuck_value *v, int64_t *out)
{
    struct exec_value *from;

    switch (v->kind) {
    case TUCK_V_INT:
    case TUCK_V_BOOL: *out = v->u.i; return true;
    case TUCK_V_NODE:
        from = exec_operand(x, v);
        if (from == NULL || from->kind != EXEC_NUMBER || from->number.kind == SYM_T_FLOAT)
            return false;
        *out = from->number.i;
        return true;
    default: return false;
    }
}

bool exec_int_operand(struct exec *x, const struct fx_node *c, int p, int64_t otherwise,
                      int64_t *out)
{
    const struct op_sig *sig = sigs_get(&x->sigs, c->op);

    *out = otherwise;
    if (sig == NULL || p < 0 || (uint32_t)p >= sig->n_params)
        return true;
    const tuck_value *v = call_operand(x->g, c, (uint32_t)p);
    const char *text = sig->params[p].default_text;
    if (v == NULL && text != NULL && strcmp(text, "None") != 0)
        *out = strtoll(text, NULL, 10);
    return v == NULL || v->kind == TUCK_V_NONE || int_of_value(x, v, out);
}

/* ---- results ---- */

static type_id result_type(const struct exec *x, uint32_t n, uint32_t k)
{
    const struct type *t = type_at(&x->g->store->type, node_type(x->g, n));

    return t->kind == TYPE_LIST ? t->item[k] : node_type(x->g, n);
}

static bool later(struct exec *x, uint32_t n)
{
    x->dynamic[n] = true;
    return true;
}

static bool unknown_type(struct exec *x, uint32_t n)
{
    const struct type *t = type_at(&x->g->store->type, node_type(x->g, n));

    if (t->kind == TYPE_TENSOR && t->n > RT_DIMS)
        return exec_fail_at(x, n, "%u dimensions are more than the %d that can be run", t->n,
                            RT_DIMS);
    return exec_fail_at(x, n, "the type of its result is not known");
}

/* Where a result lies: in its buffer; if it stays inside of a loop, or if nobody asked for it, in
 * room of its own. */
static void settle(struct exec *x, uint32_t n, uint32_t k, struct exec_value *v, bool is_later)
{
    const struct op_row *row = op_at(x->call[n]->op);
    uint32_t buf = exec_planned_buf(x->p, n, k);
    bool waits = row->cls == OP_COLLECTIVE || row->cls == OP_P2P;

    v->at = 0;
    if (buf != PROGRAM_NONE)
        v->place = buf;
    else if (x->preparing)
        v->place = exec_place_new(x, is_later ? 0 : exec_span(&v->t),
                                  waits ? WHERE_GROWN : WHERE_LOOP);
    if (is_later)
        x->place.at[v->place].where = WHERE_GROWN;
}

/* A result with memory of its own. */
static bool fresh(struct exec *x, uint32_t n, uint32_t k, struct exec_value *v)
{
    if (exec_span(&v->t) > EXEC_MOST_BYTES)
        return exec_fail_at(x, n, "needs more memory than can be had");
    settle(x, n, k, v, false);
    struct exec_place *p = &x->place.at[v->place];
    v->kind = EXEC_TENSOR;
    if (!x->preparing && p->where == WHERE_GROWN) {
        p->bytes = exec_span(&v->t);
        p->base = exec_grow(x, (size_t)p->bytes);
    }
    if (exec_span(&v->t) > p->bytes)
        return exec_fail_at(x, n, "needs %lld bytes, planned are %lld", (long long)exec_span(&v->t),
                            (long long)p->bytes);
    return true;
}

/* The operand that result k shares memory with; NULL if it is new. */
static struct exec_value *shared_with(struct exec *x, uint32_t n, const struct fx_node *c,
                                      uint32_t k)
{
    const struct op_sig *sig = sigs_get(&x->sigs, c->op);

    if (sig == NULL || sig->n_results == 0)
        return NULL;
    bool list = sig->n_results == 1 && sig->results[0].depth > 0;
    uint32_t r = list ? 0 : k < sig->n_results ? k : sig->n_results - 1;
    int p = op_result_alias_of(sig, r);
    const tuck_value *v = p >= 0 ? call_operand(x->g, c, (uint32_t)p) : NULL;
    if (v != NULL && value_is_container(v))
        v = list && k < v->a ? value_item(v, k) : NULL;
    if (v == NULL || v->kind != TUCK_V_NODE)
        return NULL;
    uint32_t item = list && exec_value_count(x, v->a) > k ? k : 0;
    (void)n;
    return exec_value_count(x, v->a) > item ? &x->value[x->value_at[v->a] + item] : NULL;
}

/* Does lowering know that an operator which may return its operand copies it here? */
static bool is_copied(const struct exec *x, uint32_t n, const struct fx_node *c)
{
    const struct op_row *row = op_at(c->op);
    const tuck_value *v = call_operand(x->g, c, 0);
    uint32_t buf = exec_planned_buf(x->p, n, 0);

    bool may_copy = call_is_wrapper(node_at(x->g, n)) ||
                    (x->p->role != NULL && (x->p->role[n] & ~ROLE_ENDS) == ROLE_FUSIBLE);

    if (!may_copy || (row->flags & OP_F_MUTATES) ||
        (row->cls != OP_VIEW && !(row->flags & OP_F_MAYBE)))
        return false;
    return v != NULL && v->kind == TUCK_V_NODE &&
           (buf == PROGRAM_NONE || buf != exec_planned_buf(x->p, v->a, 0));
}

/* An all-reduce or a broadcast in the memory of its operand. */
static struct exec_value *reused(struct exec *x, uint32_t n, const struct fx_node *c, uint32_t k)
{
    const struct op_row *row = op_at(c->op);
    uint32_t buf = exec_planned_buf(x->p, n, acting_result(x->g, n) + k);

    if (row->cls != OP_COLLECTIVE || !(row->flags & (OP_F_ALL_REDUCE | OP_F_BROADCAST)) ||
        buf == PROGRAM_NONE)
        return NULL;
    const tuck_value *v = call_operand(x->g, c, 0);
    if (v != NULL && value_is_container(v))
        v = k < v->a ? value_item(v, k) : NULL;
    struct exec_value *from = exec_operand(x, v);
    return from != NULL && from->kind == EXEC_TENSOR && from->place == buf ? from : NULL;
}

static bool result(struct exec *x, uint32_t n, const struct fx_node *c, uint32_t k)
{
    uint32_t first = acting_result(x->g, n), own = k - first;
    struct exec_value *v = &x->value[x->value_at[n] + k];
    const struct type *t = type_at(&x->g->store->type, result_type(x, n, k));

    if (k < first || t->kind == TYPE_NONE) {
        v->kind = EXEC_NOTHING;
        return true;
    }
    if (t->kind == TYPE_LIST || t->kind == TYPE_SYM || op_at(c->op)->cls == OP_CONTEXT) {
        v->kind = EXEC_OTHER;
        return true;
    }
    struct exec_value *from = is_copied(x, n, c) ? NULL : shared_with(x, n, c, own);
    if (from == NULL)
        from = reused(x, n, c, own);
    if (from != NULL && from->kind == EXEC_TENSOR) {
        *v = *from;
        if (op_at(c->op)->shape == OP_SHAPE_all_gather_copy_in && own == 0)
            return exec_view(x, n, c);
        return true;
    }
    if (from != NULL && from->kind == EXEC_UNSET)
        return later(x, n);
    switch (exec_tensor_of(x, result_type(x, n, k), &v->t)) {
    case KNOWN: return fresh(x, n, k, v);
    case KNOWN_LATER: settle(x, n, k, v, true); return later(x, n);
    default: return unknown_type(x, n);
    }
}

static bool number(struct exec *x, uint32_t n, const struct type *t)
{
    struct exec_value *v = &x->value[x->value_at[n]];

    switch (exec_number_of(x, t->sym, &v->number)) {
    case KNOWN: v->kind = EXEC_NUMBER; return true;
    case KNOWN_LATER: return later(x, n);
    default: return exec_fail_at(x, n, "its value is not known");
    }
}

/* x[1] of an operator with several results. */
static bool item(struct exec *x, uint32_t n, const struct fx_node *c)
{
    const tuck_value *of = call_operand(x->g, c, 0);
    struct exec_value *v = &x->value[x->value_at[n]];
    uint32_t k;

    if (of == NULL || of->kind != TUCK_V_NODE || !call_item(x->g, c, &k) ||
        type_at(&x->g->store->type, node_type(x->g, of->a))->kind != TYPE_LIST ||
        k >= exec_value_count(x, of->a))
        return exec_fail_at(x, n, "indexing like this cannot be run");
    const struct exec_value *from = &x->value[x->value_at[of->a] + k];
    if (from->kind == EXEC_UNSET)
        return later(x, n);
    *v = *from;
    return true;
}

static bool input(struct exec *x, uint32_t n)
{
    struct exec_value *v = &x->value[x->value_at[n]];
    uint32_t buf = exec_planned_buf(x->p, n, 0);
    const char *name = graph_str(x->g, node_at(x->g, n)->name);

    if (buf == PROGRAM_NONE ||
        type_at(&x->g->store->type, node_type(x->g, n))->kind != TYPE_TENSOR) {
        v->kind = EXEC_OTHER; /* a mesh, a group, a nested graph */
        return true;
    }
    if (exec_tensor_of(x, node_type(x->g, n), &v->t) != KNOWN)
        return exec_fail_at(x, n, "the sizes of this input are not known");
    if (exec_span(&v->t) > x->place.at[buf].bytes)
        return exec_fail(x, "%s: needs %lld bytes, planned are %lld", name,
                         (long long)exec_span(&v->t), (long long)x->place.at[buf].bytes);
    v->kind = EXEC_TENSOR;
    v->place = buf;
    v->at = 0;
    return true;
}

static bool call(struct exec *x, uint32_t n)
{
    const struct fx_node *c = x->call[n];
    const struct type *t = type_at(&x->g->store->type, node_type(x->g, n));

    for (uint32_t i = 0; i < c->n_vals && x->preparing; i++)
        if (c->vals[i].kind == TUCK_V_NODE && x->dynamic[c->vals[i].a])
            later(x, n);
    if (t->kind == TYPE_SYM)
        return number(x, n, t);
    if (t->kind == TYPE_NONE) {
        x->value[x->value_at[n]].kind = EXEC_NOTHING;
        return true;
    }
    if (op_at(c->op)->cls == OP_GETITEM)
        return item(x, n, c);
    if (exec_is_view(x->g, x->p, n, c))
        return exec_view(x, n, c);
    for (uint32_t k = 0; k < exec_value_count(x, n); k++)
        if (!result(x, n, c, k))
            return false;
    return true;
}

/* Elements that are in one place with others take time without taking memory. */
#define EXPANDED_MOST ((int64_t)1 << 32)

/* Every tensor lies inside of its memory, whatever made it. */
static bool is_inside(struct exec *x, uint32_t n)
{
    for (uint32_t k = 0; k < exec_value_count(x, n); k++) {
        const struct exec_value *v = &x->value[x->value_at[n] + k];
        if (v->kind != EXEC_TENSOR)
            continue;
        int64_t span = exec_span(&v->t);
        if (v->at < 0 || (span > 0 && span > x->place.at[v->place].bytes - v->at))
            return exec_fail_at(x, n, "reaches outside of its memory");
        int64_t elem = dtype_at((enum dtype)v->t.dtype)->bytes;
        if (elem == 0 || v->at % elem != 0)
            return exec_fail_at(x, n, "begins in the middle of an element");
        if (rt_numel(&v->t) > EXPANDED_MOST && rt_numel(&v->t) > span / elem)
            return exec_fail_at(x, n, "is expanded to more elements than can be run");
    }
    return true;
}

bool exec_resolve(struct exec *x, uint32_t n)
{
    const struct type *t = type_at(&x->g->store->type, node_type(x->g, n));

    switch (node_at(x->g, n)->kind) {
    case TUCK_PLACEHOLDER:
    case TUCK_GET_ATTR:
        return t->kind == TYPE_SYM ? number(x, n, t) : input(x, n) && is_inside(x, n);
    case TUCK_CALL_FUNCTION:
    case TUCK_CALL_METHOD:
        if (!call(x, n) || !is_inside(x, n))
            return false;
        for (uint32_t k = 0; !x->preparing && k < exec_value_count(x, n); k++)
            exec_locate(x, &x->value[x->value_at[n] + k]);
        return true;
    default: return true;
    }
}
